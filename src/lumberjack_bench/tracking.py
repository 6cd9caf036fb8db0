"""MLflow as a view of the result files.

Result files are the truth; what is shown here can be rebuilt from them. MLflow takes seconds to
import, so it is imported only when something is to be shown. Losing the tracking store in the
middle of a sweep costs no result.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import re
import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from lumberjack_bench.files import write_atomically
from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.store import ResultStore

if TYPE_CHECKING:
    from lumberjack_bench.config import Settings
    from lumberjack_bench.runs.execute import Outcome

SQLITE_PREFIX = "sqlite:///"
LOCK_TIMEOUT_SECONDS = 5.0
METRICS_PER_BATCH = 1000
PARAM_LENGTH = 500
NAME_LENGTH = 250


class TrackingError(RuntimeError):
    """A tracking store that cannot be used; the message is one line for a person."""


class NoView:
    """Shows nothing and imports nothing."""

    def is_in_step(self, results: Iterable[dict[str, Any]]) -> bool:
        """There is nothing to show."""
        return True

    def open(self, description: str | None) -> None:
        """Do nothing."""

    def show(self, run: RunConfig, outcome: Outcome, result: dict[str, Any] | None) -> None:
        """Do nothing."""

    def close(self, status: str, results: Iterable[dict[str, Any]]) -> str:
        """Do nothing."""
        return ""


def make_view(settings: Settings) -> MlflowView | NoView:
    """Return the view that a configuration asks for."""
    return NoView() if settings.tracking.kind == "none" else MlflowView(settings)


class MlflowView:
    """Shows runs in an MLflow tracking store: a SQLite file beside the results, or a server.

    Only the process of the command uses it; whatever was left behind by one that was killed is put
    right by the next.

    Parameters
    ----------
    settings : Settings
        With the kind and the address of the store.
    """

    def __init__(self, settings: Settings) -> None:
        self._store = ResultStore(settings.results_dir)
        self._sweep_id = settings.sweep_id
        self._experiment = settings.tracking.experiment
        self._is_server = settings.tracking.kind == "server"
        default = f"{SQLITE_PREFIX}{settings.results_dir / 'mlflow.db'}"
        self.uri = settings.tracking.uri or default
        self._note = settings.results_dir / "shown_in_mlflow"
        self._experiment_id = ""
        self._parent: str | None = None
        self._problem = ""

    def is_in_step(self, results: Iterable[dict[str, Any]]) -> bool:
        """Whether the last command that used the store left it equal to just these results.

        Known without MLflow, which takes seconds to import: a command takes the note of it away when it
        opens the store, and leaves one when it has closed it well.
        """
        is_there = self._is_server or Path(self.uri.removeprefix(SQLITE_PREFIX)).exists()
        with suppress(OSError):
            return is_there and self._note.read_text(encoding="utf-8") == self._state(results)
        return False

    def _state(self, results: Iterable[dict[str, Any]]) -> str:
        shown = sorted((result["run_hash"], result["started"]) for result in results)
        return hashlib.sha256(json.dumps([self.uri, self._experiment, shown]).encode()).hexdigest()

    def open(self, description: str | None) -> None:
        """Make the store ready: create or upgrade it, make the experiment, close stale entries.

        Parameters
        ----------
        description : str or None
            What the sweep does; None when it has nothing to do and needs no entry.

        Raises
        ------
        TrackingError
            When the store is locked, damaged or out of reach.
        """
        with self._store.lock("tracking-store"):
            self._note.unlink(missing_ok=True)
            if self._is_server:
                self._check_server()
            else:
                self._prepare_sqlite()
            try:
                self._experiment_id = self._find_experiment()
                self._close_stale()
                if description is not None:
                    parent = self._client.create_run(
                        self._experiment_id,
                        run_name=f"sweep {self._sweep_id}",
                        tags={**self._tags("sweep"), "mlflow.note.content": description},
                    )
                    self._parent = str(parent.info.run_id)
            except Exception as error:
                raise TrackingError(self._explain(error)) from error

    def show(self, run: RunConfig, outcome: Outcome, result: dict[str, Any] | None) -> None:
        """Show how a run ended, by its result or as failed; a problem is said by :meth:`close`."""
        if self._problem or outcome.status in ("done before", "skipped"):
            return
        try:
            if outcome.is_good and result is not None:
                self.sync([result])
            else:
                entry = self._create(run)
                self._client.set_tag(entry, "reason", outcome.reason[:PARAM_LENGTH])
                self._client.set_terminated(entry, "FAILED")
        except Exception as error:
            # Once is enough: closing shows whatever is missing, or says that it cannot.
            self._problem = self._explain(error)

    def sync(self, results: Iterable[dict[str, Any]]) -> int:
        """Make the store equal to results: each has one complete entry, and it says FINISHED.

        Returns
        -------
        int
            How many were added.

        Raises
        ------
        TrackingError
            When the store does not take them.
        """
        # Held, so that of two commands that end together one sees what the other has added.
        try:
            with self._store.lock("tracking-entries"):
                return self._sync(results)
        except Exception as error:
            raise TrackingError(self._explain(error)) from error

    def _sync(self, results: Iterable[dict[str, Any]]) -> int:
        current = {result["run_hash"]: result for result in results}
        missing = dict(current)
        condition = "tags.complete = 'true'"
        if len(current) == 1:
            condition += f" and tags.run_hash = '{next(iter(current))}'"
        for run in list(self._search(condition)):
            run_hash, started = run.data.tags.get("run_hash"), run.data.tags.get("started")
            if run_hash not in current:
                continue
            if started == current[run_hash]["started"] and run_hash in missing:
                del missing[run_hash]
                if run.info.status != "FINISHED":
                    self._client.set_terminated(run.info.run_id, "FINISHED")
            else:
                # A run that was done again: only its last result counts.
                self._client.set_tag(run.info.run_id, "complete", "superseded")
        for result in missing.values():
            self._add(result)
        return len(missing)

    def close(self, status: str, results: Iterable[dict[str, Any]]) -> str:
        """Show the results that are missing, and end the sweep's entry.

        Parameters
        ----------
        status : {"FINISHED", "FAILED", "KILLED"}
            How the sweep ended.
        results : iterable of dict
            Results of the sweep.

        Returns
        -------
        str
            Why it did not work, or nothing.
        """
        try:
            results = list(results)
            self.sync(results)
            if self._parent:
                self._client.set_terminated(self._parent, status)
            write_atomically(self._note, self._state(results))
            return ""
        except Exception as error:
            return self._explain(error)

    @functools.cached_property
    def _client(self) -> Any:
        return _make_client(self.uri)

    def _tags(self, kind: str) -> dict[str, str]:
        return {"kind": kind, "sweep_id": self._sweep_id, "store": self._store.identifier()}

    def _create(self, run: RunConfig, started: str = "") -> str:
        tags = {**self._tags("run"), "run_hash": run.hash, "complete": "false"}
        if self._parent:
            tags["mlflow.parentRunId"] = self._parent
        entry = self._client.create_run(
            self._experiment_id,
            start_time=_milliseconds(started) if started else None,
            tags=tags,
            run_name=str(run),
        )
        return str(entry.info.run_id)

    def _add(self, result: dict[str, Any]) -> None:
        from mlflow.entities import Metric, Param, RunTag

        run = RunConfig.from_dict(result["run"])
        entry = self._create(run, result["started"])
        now = int(time.time() * 1000)
        end = min(now, _milliseconds(result["started"]) + round(1000 * result["seconds"]))
        metrics = [
            Metric(_plain_name(name), value, end, step)
            for name, value, step in _metrics(result["repetitions"])
        ]
        params = [
            Param(_plain_name(name), text[:PARAM_LENGTH])
            for name, text in _params(run, result["card"]["mode"])
        ]
        tags = [
            RunTag("complete", "true"),
            RunTag("started", result["started"]),
            RunTag("privacy_status", result["card"]["status"]),
            RunTag("data_source", result["data_source"]["label"]),
            RunTag("data_version", run.data_version),
            RunTag("commit", result["commit"]),
            RunTag("machine", result["machine"]),
            *(RunTag(f"version.{name}", v) for name, v in result["versions"].items()),
        ]
        self._client.log_dict(
            entry, {k: v for k, v in result.items() if k != "identity"}, "result.json"
        )
        for start in range(METRICS_PER_BATCH, len(metrics), METRICS_PER_BATCH):
            self._client.log_batch(entry, metrics[start : start + METRICS_PER_BATCH])
        self._client.log_batch(entry, metrics[:METRICS_PER_BATCH], params, tags)
        self._client.set_terminated(entry, "FINISHED", end)

    def _find_experiment(self) -> str:
        found = self._client.get_experiment_by_name(self._experiment)
        if found is not None:
            if found.lifecycle_stage != "active":
                raise TrackingError(
                    f"the MLflow experiment {self._experiment!r} was deleted. "
                    "Restore it, or choose another with tracking.experiment=NAME."
                )
            return str(found.experiment_id)
        # A SQLite store would put artifacts under the current folder unless told where.
        place = None if self._is_server else (self._store.folder / "mlflow_artifacts").as_uri()
        return str(self._client.create_experiment(self._experiment, artifact_location=place))

    def _search(self, condition: str) -> Iterable[Any]:
        own = f"tags.store = '{self._store.identifier()}' and {condition}"
        token = None
        while True:
            page = self._client.search_runs(
                [self._experiment_id], own, max_results=1000, page_token=token
            )
            yield from page
            token = page.token
            if not token:
                return

    def _close_stale(self) -> None:
        """End entries whose command was killed: they say RUNNING but nobody holds its lock."""
        for run in list(self._search("attributes.status = 'RUNNING'")):
            tags = run.data.tags
            if self._store.is_locked(f"sweep-{tags.get('sweep_id')}"):
                continue
            is_whole = tags.get("complete") == "true"
            self._client.set_terminated(run.info.run_id, "FINISHED" if is_whole else "KILLED")

    def _check_server(self) -> None:
        parts = urlsplit(self.uri)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise TrackingError(
                f"tracking=server needs an address like http://127.0.0.1:5000, got "
                f"{_without_password(self.uri)!r}. "
                "Give it with tracking.uri=ADDRESS or MLFLOW_TRACKING_URI."
            )

    def _prepare_sqlite(self) -> None:
        if not self.uri.startswith(SQLITE_PREFIX):
            raise TrackingError(
                f"tracking=sqlite needs an address like sqlite:///FILE, got {self.uri!r}."
            )
        if "?" in self.uri or unquote(self.uri) != self.uri:
            raise TrackingError(
                f"the MLflow store {self.uri[len(SQLITE_PREFIX) :]} cannot have '?' or %XX in its path. "
                "Choose another with tracking.uri=sqlite:///FILE, or run with tracking=none."
            )
        path = Path(self.uri[len(SQLITE_PREFIX) :])
        for left_behind in path.parent.glob(f".{path.name}.*.tmp*"):
            left_behind.unlink(missing_ok=True)
        if not path.exists():
            self._create_sqlite(path)
        try:
            with closing(sqlite3.connect(path, timeout=LOCK_TIMEOUT_SECONDS)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                connection.rollback()
        except sqlite3.Error as error:
            raise TrackingError(self._explain(error)) from error

    def _create_sqlite(self, path: Path) -> None:
        """Set the database up under another name, so that a half-made one is never found."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _make_client(f"{SQLITE_PREFIX}{temporary}").search_experiments()
            os.replace(temporary, path)
        except Exception as error:
            raise TrackingError(self._explain(error)) from error
        finally:
            temporary.unlink(missing_ok=True)

    def _explain(self, error: Exception) -> str:
        if isinstance(error, TrackingError):
            return str(error)
        where = _without_password(self.uri) if self._is_server else self.uri[len(SQLITE_PREFIX) :]
        code = _sqlite_code(error)
        if code == sqlite3.SQLITE_FULL:
            # Nor may there be room for results: nothing is said of them.
            return (
                f"the MLflow store {where} has no room left. Free some, or run with tracking=none."
            )
        if self._is_server:
            reason, advice = "does not answer", "Start it"
        elif code in _SQLITE_PROBLEMS:
            reason, advice = _SQLITE_PROBLEMS[code]
        else:
            text = " ".join(str(error).split())[:160]
            reason, advice = f"cannot be used ({type(error).__name__}: {text})", _START_ANEW
        return (
            f"the MLflow store {where} {reason}. {advice}, or run with tracking=none. "
            "Results are safe in the result files."
        )


_START_ANEW = "Move the file away to start a new one"
_ELSEWHERE = "Choose another with tracking.uri=sqlite:///FILE"

_SQLITE_PROBLEMS = {
    sqlite3.SQLITE_BUSY: ("is locked by another program", "Close that program"),
    sqlite3.SQLITE_READONLY: ("cannot be written", _ELSEWHERE),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", _ELSEWHERE),
    sqlite3.SQLITE_NOTADB: ("is damaged", _START_ANEW),
    sqlite3.SQLITE_CORRUPT: ("is damaged", _START_ANEW),
}


def _sqlite_code(error: BaseException | None) -> int:
    """Return SQLite's own code for what is behind an error; 0 when it is not SQLite's."""
    while error is not None:
        if isinstance(error, sqlite3.Error):
            # The low byte; the others refine it.
            return getattr(error, "sqlite_errorcode", 0) & 0xFF
        error = error.__cause__ or error.__context__
    return 0


def _plain_name(name: str) -> str:
    """Return a name that MLflow takes: letters, digits and a few signs."""
    return re.sub(r"[^\w\-. /:]", "_", name)[:NAME_LENGTH]


def _without_password(address: str) -> str:
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host).geturl()


def _make_client(uri: str) -> Any:
    # No reports to third parties, and no minutes of retries when a server is away.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    from mlflow import MlflowClient

    for name in ("alembic", "mlflow"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return MlflowClient(tracking_uri=uri)


def _metrics(repetitions: list[dict[str, Any]]) -> Iterable[tuple[str, float, int]]:
    names = list(dict.fromkeys(name for r in repetitions for name in r["metrics"]))
    for name in names:
        values = [r["metrics"][name] for r in repetitions if name in r["metrics"]]
        yield name, fmean(values), 0
        for r in repetitions:
            if name in r["metrics"]:
                yield f"repetition.{name}", r["metrics"][name], r["repetition"]


def _params(run: RunConfig, mode: str) -> Iterable[tuple[str, str]]:
    yield from (
        ("dataset", run.dataset["name"]),
        ("method", run.method.name),
        ("mode", mode),
        ("eps", repr(run.eps)),
        ("delta", repr(run.delta)),
        ("seed", str(run.seed)),
        ("n_repeats", str(run.n_repeats)),
    )
    for name, value in run.method.params.items():
        yield f"params.{name}", json.dumps(value) if isinstance(value, dict | list) else str(value)


def _milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
