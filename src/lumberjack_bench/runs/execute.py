"""Doing one run: load, split, fit and score each repetition, and leave a result or a failure.

A failure is recorded and reported, not raised, so that one bad run does not end a night of others.
"""

from __future__ import annotations

import datetime
import functools
import logging
import math
import numbers
import os
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lumberjack_bench.methods import TUNING_NOTE, MethodError, build_method, reason_to_skip
from lumberjack_bench.metrics import (
    label_metrics,
    main_metric,
    probability_metrics,
    regression_metrics,
)
from lumberjack_bench.own_methods import find_modules_in
from lumberjack_bench.runs import provenance
from lumberjack_bench.runs.identity import FORMAT, RunConfig
from lumberjack_bench.runs.isolation import CallFailed, OutOfTime, call_alone, first_line
from lumberjack_bench.runs.store import ResultStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lumberjack.schema import FeatureSchema
    from lumberjack_bench.config import Settings

log = logging.getLogger(__name__)

PRIVACY_WARNING = "PrivacyLeakWarning"
"""Name of the warnings by which libraries say that they read private rows; they fail a run."""

NOISE_NOTE = (
    "noise was drawn from a fixed seed so that the run can be repeated; its outputs are benchmark "
    "figures, not private releases"
)


SUM_TOLERANCE = 1e-6
"""How far the probabilities of a row may add up to something else than 1."""


class PrivacyLeak(RuntimeError):
    """A library said that it took private rows for public facts."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Attributes
    ----------
    run_hash : str
        Hash of the run.
    title : str
        The run, for a person.
    status : {"ok", "done before", "skipped", "failed", "timed out", "lost", "not started"}
        "skipped" means that its method cannot do it and says why; "lost" that its process died.
    reason : str
        Why it was skipped, or the first line of the error.
    log_file : str
        Where the traceback is, if any.
    """

    run_hash: str
    title: str
    status: str
    reason: str = ""
    log_file: str = ""

    @property
    def is_good(self) -> bool:
        """Whether nothing is left to do."""
        return self.status in ("ok", "done before", "skipped")


@dataclass(frozen=True, slots=True)
class LoadedRows:
    """A data set in the form that methods take; labels are class codes, or numbers."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    schema: FeatureSchema
    source: dict[str, Any]


def outcome_of(
    run: RunConfig, record: Mapping[str, Any], *, is_earlier: bool = False, log_file: str = ""
) -> Outcome:
    """Return how a run ended that has left a record, in this command or an earlier one."""
    status, reason = record["status"], record.get("reason", "")
    if status == "ok" and is_earlier:
        status = "done before"
    return Outcome(run.hash, str(run), status, reason, "" if status == "skipped" else log_file)


def execute(run: RunConfig, settings: Settings, n_jobs: int = 1, log_file: str = "") -> Outcome:
    """Do a run unless that is done; record a failure instead of raising it.

    Parameters
    ----------
    run : RunConfig
        What to do.
    settings : Settings
        Where and how.
    n_jobs : int
        Threads the method may use.
    log_file : str
        The run's own log; its folder is made.

    Raises
    ------
    Exception
        The failure itself, when the settings ask for it; later runs of the sweep do not start then.
    Stopped
        When the sweep is being stopped; the run stays undone.
    """
    # A worker of a cluster was not started by the command.
    find_modules_in(settings.import_folders)
    store = ResultStore(settings.results_dir, needs_predictions=settings.keeps_predictions)
    with store.lock(run.hash):
        if (earlier := store.settled(run.hash, settings.since)) is not None:
            return outcome_of(run, earlier, is_earlier=True)
        store.clear_reason(run.hash)
        try:
            if log_file:
                Path(log_file).parent.mkdir(parents=True, exist_ok=True)
            record = call_alone(
                measure, (run, settings, n_jobs), timeout=settings.timeout, log_file=log_file
            )
            if record["status"] == "ok":
                store.write(run.hash, record, record.pop("predictions"))
            else:
                store.write_reason(run.hash, record)
        except Exception as error:
            status = "timed out" if isinstance(error, OutOfTime) else "failed"
            reason, details = first_line(error), traceback.format_exc()
            if isinstance(error, CallFailed):
                reason, details = str(error), error.details
            record = _record(
                run, settings, status, reason=reason, traceback=details, log_file=log_file
            )
            with suppress(OSError):
                store.write_reason(run.hash, record)
            with suppress(OSError), open(log_file or os.devnull, "a", encoding="utf-8") as log:
                log.write(f"{run}: {status}: {reason}\n{details}\n")
            if settings.is_raising:
                error.add_note(details)
                raise
        return outcome_of(run, record, log_file=log_file)


def run_title(run: RunConfig, data_source: Mapping[str, Any]) -> str:
    """Name a run for a person, and say so when its data stand in for others."""
    note = f" [{data_source['label']}]" if data_source["is_stand_in"] else ""
    return f"{run}{note}"


def measure(run: RunConfig, settings: Settings, n_jobs: int) -> dict[str, Any]:
    """Do a run here and now, and return its whole result, or why its method skips it, as plain data.

    What it predicted is in it as arrays, if the settings ask for that: ``labels`` and ``predicted`` of
    shape (n_repeats, n_test_rows) and, of a method that gives them, ``probabilities`` of shape
    (n_repeats, n_test_rows, n_classes).

    Raises whatever the data, the method or its contract raise.
    """
    started = datetime.datetime.now(datetime.UTC)
    clock = time.perf_counter()
    from lumberjack_bench.runs.holdout import n_training_rows

    data = load_rows(run.dataset)
    build = functools.partial(
        build_method,
        asdict(run.method),
        schema=data.schema,
        epsilon=run.eps,
        delta=run.delta,
        n_jobs=n_jobs,
        allow_targets=settings.allow_targets,
    )
    method = build()
    if reason := reason_to_skip(method, n_training_rows(len(data.y))):
        return _record(run, settings, "skipped", reason=reason)
    # The card is of the method as one would release it; the fixed noise seed is noted beside it.
    card = method.privacy_card().to_dict()
    title = run_title(run, data.source)
    repetitions, predictions = [], []
    for repetition in range(run.n_repeats):
        with _strict_warnings():
            done, predicted = _repeat(run, data, build, repetition)
        repetitions.append(done)
        predictions.append(predicted)
        metric = main_metric(done["metrics"])
        place = f"repetition {repetition + 1} of {run.n_repeats}"
        log.info("%s: %s, %s %.4f", title, place, metric, done["metrics"][metric])
    log.info("%s: done", title)
    return _record(
        run,
        settings,
        "ok",
        identity=run.identity,
        repetitions=repetitions,
        predictions=_stacked(predictions) if settings.keeps_predictions else None,
        card=card,
        notes=[NOISE_NOTE] if run.method.is_private else [],
        data_source=data.source,
        n_threads=n_jobs,
        started=started.isoformat(timespec="milliseconds"),
        seconds=round(time.perf_counter() - clock, 3),
    )


def _record(run: RunConfig, settings: Settings, status: str, **more: Any) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "status": status,
        "run_hash": run.hash,
        "run": run.to_dict(),
        "versions": provenance.versions(),
        "commit": provenance.commit(),
        "machine": provenance.machine(),
        "sweep_id": settings.sweep_id,
        **more,
    }


def _repeat(
    run: RunConfig, data: LoadedRows, build: Callable[..., Any], repetition: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the record of a repetition, and what it predicted."""
    import numpy as np

    from lumberjack_bench.runs.holdout import stratified_split

    has_classes = data.schema.n_classes > 0
    # Numbers are one stratum.
    strata = data.y if has_classes else np.zeros(len(data.y), dtype=np.int64)
    split = stratified_split(strata, run.split_seed(repetition))
    metrics: dict[str, float] = {}
    record: dict[str, Any] = {"repetition": repetition, "metrics": metrics}
    method = build(
        random_state=run.method_seed("structure", repetition),
        noise_seed=run.method_seed("noise", repetition),
    )
    if run.method.is_tuned:
        tuner = build(
            random_state=run.method_seed("tuning", repetition),
            noise_seed=run.method_seed("tuning noise", repetition),
        )
        clock = time.perf_counter()
        chosen = tuner.tune(
            data.X[split.train],
            data.y[split.train],
            data.X[split.validation],
            data.y[split.validation],
        )
        metrics["tune_seconds"] = time.perf_counter() - clock
        record["tuned"] = {
            "parameters": {name: _plain(value) for name, value in chosen.items()},
            "note": TUNING_NOTE,
        }
        method.set_params(**chosen)
    rows = split.train_and_validation
    X, y = data.X[rows], data.y[rows]
    _forget_peak_memory()
    clock = time.perf_counter()
    method.fit(X, y)
    metrics["fit_seconds"] = time.perf_counter() - clock
    metrics["peak_memory_mb"] = _peak_memory_mb()
    X_test, y_test = data.X[split.test], data.y[split.test]
    clock = time.perf_counter()
    predicted = np.asarray(method.predict(X_test))
    metrics["predict_seconds"] = time.perf_counter() - clock
    predictions = {"labels": y_test, "predicted": predicted}
    if has_classes:
        _check_predictions(run, predicted, len(y_test), data.schema.n_classes)
        metrics.update(label_metrics(y_test, predicted))
    else:
        _check_numbers(run, predicted, len(y_test))
        metrics.update(regression_metrics(y_test, predicted))
    has_probabilities = has_classes and hasattr(method, "predict_proba")
    probabilities = method.predict_proba(X_test) if has_probabilities else None
    if probabilities is not None:
        probabilities = np.asarray(probabilities, dtype=np.float64)
        _check_probabilities(run, probabilities, (len(y_test), data.schema.n_classes))
        metrics.update(probability_metrics(y_test, probabilities))
        predictions["probabilities"] = probabilities
    missing = set(range(data.schema.n_classes)) - set(y_test.tolist())
    if missing:
        # Balanced accuracy and ROC AUC are means over the others.
        record["classes_not_tested"] = sorted(missing)
    if hasattr(method, "fit_report"):
        metrics.update(_checked_report(run, method.fit_report(), metrics))
    return record, predictions


def _stacked(predictions: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Put what the repetitions predicted into one array for each kind."""
    import numpy as np

    # Splits are stratified, so that all have as many test rows.
    return {name: np.stack([one[name] for one in predictions]) for name in predictions[0]}


def _forget_peak_memory() -> None:
    """Let the peak of this process count from now on, where the system can (Linux)."""
    with suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as switch:
        switch.write("5")


def _peak_memory_mb() -> float:
    """Return the largest resident memory of this process, with libraries and data, in 10^6 bytes.

    Since :func:`_forget_peak_memory`; where that cannot be, since the process began.
    """
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def _checked_report(
    run: RunConfig, report: Mapping[str, Any], metrics: Mapping[str, float]
) -> dict[str, float]:
    """Return what a method says of itself, which may not touch what the harness measured."""
    where = f"method {run.method.name}: fit_report"
    for name, value in report.items():
        if name in metrics:
            raise MethodError(f"{where} may not give {name!r}, which the harness measures.")
        if not isinstance(value, numbers.Real) or not math.isfinite(value):
            raise MethodError(f"{where} must give finite numbers, got {name}={value!r}.")
    return {name: float(value) for name, value in report.items()}


def load_rows(dataset: Mapping[str, Any]) -> LoadedRows:
    """Load the data set that the ``dataset`` part of a run describes."""
    from lumberjack_bench import datasets

    loaded = datasets.load(dataset)
    X, _ = loaded.encoded()
    source = {**asdict(loaded.source), "label": loaded.source.label}
    y = loaded.y.astype("int64" if loaded.schema.classes else "float64")
    return LoadedRows(X, y, loaded.schema.coded(), source)


def _check_predictions(
    run: RunConfig, predicted: NDArray[Any], n_rows: int, n_classes: int
) -> None:
    if predicted.shape != (n_rows,) or predicted.dtype.kind not in "iu":
        raise MethodError(
            f"method {run.method.name}: predict must return {n_rows} whole numbers, got "
            f"{predicted.dtype} of shape {predicted.shape}."
        )
    if n_rows and not (predicted.min() >= 0 and predicted.max() < n_classes):
        raise MethodError(
            f"method {run.method.name}: predict must return codes 0 to {n_classes - 1}, got "
            f"{predicted.min()} to {predicted.max()}."
        )


def _check_numbers(run: RunConfig, predicted: NDArray[Any], n_rows: int) -> None:
    import numpy as np

    is_number = predicted.dtype.kind == "f" and bool(np.isfinite(predicted).all())
    if predicted.shape != (n_rows,) or not is_number:
        raise MethodError(
            f"method {run.method.name}: predict must return {n_rows} finite numbers, got "
            f"{predicted.dtype} of shape {predicted.shape}{'' if is_number else ', not all finite'}."
        )


def _check_probabilities(
    run: RunConfig, probabilities: NDArray[np.float64], shape: tuple[int, int]
) -> None:
    where = f"method {run.method.name}: predict_proba must return"
    if probabilities.shape != shape:
        raise MethodError(f"{where} an array of shape {shape}, or None; got {probabilities.shape}.")
    sums = probabilities.sum(axis=1)
    # A NaN fails the comparison.
    if not ((probabilities >= 0).all() and (abs(sums - 1) <= SUM_TOLERANCE).all()):
        raise MethodError(
            f"{where} rows of probabilities that add up to 1, or None; got values from "
            f"{probabilities.min():g} to {probabilities.max():g} and sums from {sums.min():g} to {sums.max():g}."
        )


@contextmanager
def _strict_warnings() -> Iterator[None]:
    """Turn a library's privacy warnings into errors and send the others to the log."""

    def show(message: Warning | str, category: type[Warning], *where: Any, **_: Any) -> None:
        if category.__name__ == PRIVACY_WARNING:
            raise PrivacyLeak(str(message).strip().splitlines()[0])
        log.warning("%s: %s", category.__name__, message)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return str(value) if isinstance(value, Path) else value
