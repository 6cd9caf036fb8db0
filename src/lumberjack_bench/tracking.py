"""MLflow as a view of the result files.

Result files are the truth; what is shown here can be rebuilt from them. MLflow takes seconds to
import, so it is imported only when something is to be shown. Losing the tracking store in the
middle of a sweep costs no result.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from lumberjack_bench.results import data_version
from lumberjack_bench.runs.store import ResultStore

if TYPE_CHECKING:
    from lumberjack_bench.config import Settings
    from lumberjack_bench.runs.identity import RunConfig

log = logging.getLogger(__name__)

SQLITE_PREFIX = "sqlite:///"
LOCK_TIMEOUT_SECONDS = 5.0
METRICS_PER_BATCH = 1000
PARAM_LENGTH = 500


class TrackingError(RuntimeError):
    """A tracking store that cannot be used; the message is one line for a person."""


class Tracker(Protocol):
    """Where runs are shown. No method but :meth:`open_sweep` raises; problems are returned."""

    def open_sweep(self, description: str | None) -> None:
        """Make the store ready, before any worker exists."""
        ...

    def close_sweep(self, status: str, results: Iterable[dict[str, Any]]) -> str:
        """Show the results that are missing, and end the sweep's entry."""
        ...

    def begin(self, run: RunConfig) -> str | None:
        """Show that a run is being done; return the name of its entry."""
        ...

    def complete(self, entry: str | None, result: dict[str, Any]) -> str:
        """Show a result; return why that did not work, or nothing."""
        ...

    def abandon(self, entry: str | None, status: str, reason: str) -> str:
        """Show that a run ended without a result."""
        ...


class NoTracker:
    """Shows nothing and imports nothing."""

    def open_sweep(self, description: str | None) -> None:
        """Do nothing."""

    def close_sweep(self, status: str, results: Iterable[dict[str, Any]]) -> str:
        """Do nothing."""
        return ""

    def begin(self, run: RunConfig) -> str | None:
        """Do nothing."""
        return None

    def complete(self, entry: str | None, result: dict[str, Any]) -> str:
        """Do nothing."""
        return ""

    def abandon(self, entry: str | None, status: str, reason: str) -> str:
        """Do nothing."""
        return ""


def make_tracker(settings: Settings) -> Tracker:
    """Return the tracker that a configuration asks for.

    Parameters
    ----------
    settings : Settings
        With the kind and the address of the store.

    Returns
    -------
    Tracker
    """
    if settings.tracking["kind"] == "none":
        return NoTracker()
    return MlflowTracker(settings)


class MlflowTracker:
    """Shows runs in an MLflow tracking store: a SQLite file beside the results, or a server.

    Parameters
    ----------
    settings : Settings
        With the kind and the address of the store.
    """

    def __init__(self, settings: Settings) -> None:
        self._store = ResultStore(settings.results_dir)
        self._sweep_id = settings.sweep_id
        self._context_file = settings.sweep_dir / "tracking.json"
        self._experiment = str(settings.tracking["experiment"])
        self._is_server = settings.tracking["kind"] == "server"
        default = f"{SQLITE_PREFIX}{settings.results_dir / 'mlflow.db'}"
        self.uri = str(settings.tracking.get("uri") or default)
        self._client_cache: Any = None
        self._context_cache: dict[str, Any] | None = None

    def open_sweep(self, description: str | None) -> None:
        """Make the store ready: create or upgrade it, make the experiment, close stale entries.

        Two processes that first open a fresh SQLite store at once break its set-up, so this is done
        once, in the parent, under a lock.

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
            if self._is_server:
                self._check_server()
            else:
                self._prepare_sqlite()
            try:
                experiment_id = self._experiment_id()
                self._close_stale(experiment_id)
                self._context_cache = {"experiment_id": experiment_id}
                if description is None:
                    return
                parent = self._client.create_run(
                    experiment_id,
                    run_name=f"sweep {self._sweep_id}",
                    tags={**self._tags("sweep"), "mlflow.note.content": description},
                )
            except Exception as error:
                raise TrackingError(self._explain(error)) from error
        self._context_cache["parent"] = parent.info.run_id
        self._context_file.parent.mkdir(parents=True, exist_ok=True)
        self._context_file.write_text(json.dumps(self._context_cache))

    def sync(self, results: Iterable[dict[str, Any]]) -> int:
        """Show every result that has no complete entry yet.

        Parameters
        ----------
        results : iterable of dict
            Results as stored.

        Returns
        -------
        int
            How many were added.

        Raises
        ------
        TrackingError
            When the store does not take them.
        """
        try:
            experiment_id = self._context.get("experiment_id") or self._experiment_id()
            current = {result["run_hash"]: result for result in results}
            missing = dict(current)
            for run in self._search(experiment_id, "tags.complete = 'true'"):
                run_hash, started = run.data.tags.get("run_hash"), run.data.tags.get("started")
                if run_hash not in current:
                    continue
                if started == current[run_hash]["started"] and run_hash in missing:
                    del missing[run_hash]
                else:
                    # A run that was done again: only its last result counts.
                    self._client.set_tag(run.info.run_id, "complete", "superseded")
            for result in missing.values():
                self._show(self._create(experiment_id, result["run"], result), result)
            return len(missing)
        except Exception as error:
            raise TrackingError(self._explain(error)) from error

    def close_sweep(self, status: str, results: Iterable[dict[str, Any]]) -> str:
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
            self.sync(results)
            self._close_stale(self._context["experiment_id"])
            if parent := self._context.get("parent"):
                self._client.set_terminated(parent, status)
            return ""
        except Exception as error:
            return self._explain(error)

    def begin(self, run: RunConfig) -> str | None:
        """Show that a run is being done.

        Parameters
        ----------
        run : RunConfig
            The run.

        Returns
        -------
        str or None
            Name of its entry.
        """
        try:
            return self._create(
                self._context["experiment_id"], run.to_dict(), {"run_hash": run.hash}
            )
        except Exception as error:
            log.warning("%s", self._explain(error))
            return None

    def complete(self, entry: str | None, result: dict[str, Any]) -> str:
        """Show a result.

        Parameters
        ----------
        entry : str or None
            From :meth:`begin`.
        result : dict
            As stored.

        Returns
        -------
        str
            Why it did not work, or nothing.
        """
        if entry is None:
            return "tracking was not available"
        try:
            self._show(entry, result)
            return ""
        except Exception as error:
            log.warning("%s", self._explain(error))
            return self._explain(error)

    def abandon(self, entry: str | None, status: str, reason: str) -> str:
        """Show that a run ended without a result.

        Parameters
        ----------
        entry : str or None
            From :meth:`begin`.
        status : {"FAILED", "KILLED"}
            How it ended.
        reason : str
            First line of the error.

        Returns
        -------
        str
            Why it did not work, or nothing.
        """
        if entry is None:
            return ""
        try:
            self._client.set_tag(entry, "reason", reason[:PARAM_LENGTH])
            self._client.set_terminated(entry, status)
            return ""
        except Exception as error:
            return self._explain(error)

    @property
    def _client(self) -> Any:
        if self._client_cache is None:
            self._client_cache = _make_client(self.uri)
        return self._client_cache

    @property
    def _context(self) -> dict[str, Any]:
        if self._context_cache is None:
            try:
                self._context_cache = json.loads(self._context_file.read_text())
            except FileNotFoundError:
                self._context_cache = {}
        assert self._context_cache is not None
        return self._context_cache

    def _tags(self, kind: str) -> dict[str, str]:
        return {"kind": kind, "sweep_id": self._sweep_id, "store": self._store.identifier()}

    def _create(self, experiment_id: str, run: dict[str, Any], about: dict[str, Any]) -> str:
        privacy = f"eps={run['eps']:g}" if run["method"]["is_private"] else "not private"
        tags = {**self._tags("run"), "run_hash": about["run_hash"], "complete": "false"}
        if parent := self._context.get("parent"):
            tags["mlflow.parentRunId"] = parent
        entry = self._client.create_run(
            experiment_id,
            start_time=_milliseconds(about["started"]) if "started" in about else None,
            tags=tags,
            run_name=f"{run['dataset']['name']} {run['method']['name']} {privacy}",
        )
        return str(entry.info.run_id)

    def _show(self, entry: str, result: dict[str, Any]) -> None:
        from mlflow.entities import Metric, Param, RunTag

        now = int(time.time() * 1000)
        end = min(now, _milliseconds(result["started"]) + round(1000 * result["seconds"]))
        metrics = [
            Metric(name, value, end, step) for name, value, step in _metrics(result["repetitions"])
        ]
        params = [Param(name, text[:PARAM_LENGTH]) for name, text in _params(result)]
        tags = [
            RunTag("complete", "true"),
            RunTag("started", result["started"]),
            RunTag("privacy_status", result["card"]["status"]),
            RunTag("data_source", result["data_source"]["label"]),
            RunTag("data_version", data_version(result["run"])),
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

    def _experiment_id(self) -> str:
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

    def _search(self, experiment_id: str, condition: str) -> Iterable[Any]:
        own = f"tags.store = '{self._store.identifier()}' and {condition}"
        token = None
        while True:
            page = self._client.search_runs(
                [experiment_id], own, max_results=1000, page_token=token
            )
            yield from page
            token = page.token
            if not token:
                return

    def _close_stale(self, experiment_id: str) -> None:
        """End entries whose process was killed: they say RUNNING but nobody holds their lock."""
        for run in list(self._search(experiment_id, "attributes.status = 'RUNNING'")):
            tags = run.data.tags
            is_sweep = tags.get("kind") == "sweep"
            name = f"sweep-{tags.get('sweep_id')}" if is_sweep else tags.get("run_hash", "")
            if tags.get("sweep_id") == self._sweep_id and is_sweep:
                continue
            if not self._store.is_locked(name):
                self._client.set_terminated(run.info.run_id, "KILLED")

    def _check_server(self) -> None:
        parts = urlsplit(self.uri)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise TrackingError(
                f"tracking=server needs an address like http://127.0.0.1:5000, got {self.uri!r}. "
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
        text = " ".join(str(error).split())
        where = self.uri if self._is_server else self.uri[len(SQLITE_PREFIX) :]
        advice = "Move the file away to start a new one, or run with tracking=none."
        if "locked" in text:
            reason = "is locked by another program"
            advice = "Close that program, or run with tracking=none."
        elif "disk is full" in text or "No space left" in text:
            reason = "has no room left"
            advice = "Free some, or run with tracking=none."
        elif "readonly" in text or "read-only" in text or "Permission denied" in text:
            reason = "cannot be written"
            advice = "Choose another with tracking.uri=sqlite:///FILE, or run with tracking=none."
        elif "not a database" in text or "malformed" in text or "no such table" in text:
            reason = "is damaged"
        elif self._is_server:
            reason, advice = "does not answer", "Start it, or run with tracking=none."
        else:
            reason = f"cannot be used ({type(error).__name__}: {text[:160]})"
        return f"the MLflow store {where} {reason}. {advice} Results are safe in the result files."


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


def _params(result: dict[str, Any]) -> Iterable[tuple[str, str]]:
    run = result["run"]
    method = run["method"]
    yield from (
        ("dataset", str(run["dataset"]["name"])),
        ("method", str(method["name"])),
        ("mode", str(result["card"]["mode"])),
        ("eps", "inf" if math.isinf(run["eps"]) else repr(run["eps"])),
        ("delta", repr(run["delta"])),
        ("seed", str(run["seed"])),
        ("n_repeats", str(run["n_repeats"])),
    )
    for name, value in method["params"].items():
        yield f"params.{name}", json.dumps(value) if isinstance(value, dict | list) else str(value)


def _milliseconds(text: str) -> int:
    from datetime import datetime

    return round(datetime.fromisoformat(text).timestamp() * 1000)
