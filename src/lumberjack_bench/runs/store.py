"""Result files, the truth of the benchmark: one per finished run, written whole or not at all.

A results folder holds ``runs/<hash>.json`` (finished), ``reasons/<hash>.json`` (why a run has no
result: its last attempt failed, or its method skips it), ``predictions/<hash>.npz`` (what a finished
run predicted, where asked for), ``locks/`` (who is at work now) and ``logs/<sweep>/``. Several processes may use one folder at the same time.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock
import numpy as np

from lumberjack_bench.files import locked, write_atomically
from lumberjack_bench.runs.records import problem_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

PROBE_BYTES = 1 << 16
"""How much must fit into the folder before a sweep starts."""


class StoreError(OSError):
    """A results folder that cannot be used; its message is one line for a person."""


class ResultStore:
    """The result files of one folder.

    Parameters
    ----------
    folder : Path
        The results folder; it need not exist before :meth:`prepare`.
    needs_predictions : bool
        Whether a finished run without its predictions is to be done again.
    """

    def __init__(self, folder: Path, *, needs_predictions: bool = False) -> None:
        self.folder = folder
        self._needs_predictions = needs_predictions
        self._runs = folder / "runs"
        self._reasons = folder / "reasons"
        self._predictions = folder / "predictions"
        self._locks = folder / "locks"
        self._versions = folder / "versions.json"

    def prepare(self) -> None:
        """Make the folder, check that a result would fit into it, and remove what is half-written.

        Raises
        ------
        StoreError
            When the folder cannot be made or written.
        """
        probe = self._runs / ".probe"
        try:
            with self.lock("prepare"):
                for folder in (self._runs, self._reasons, self._predictions):
                    folder.mkdir(exist_ok=True)
                    for path in folder.glob(".*.tmp"):
                        if not self.is_locked(path.name.split(".")[1]):
                            path.unlink(missing_ok=True)
                write_atomically(probe, bytes(PROBE_BYTES))
                probe.unlink()
        except OSError as error:
            raise StoreError(
                f"cannot write to the results folder {str(self.folder)!r}: {error.strerror or error}. "
                "Choose another with results_dir=FOLDER."
            ) from error

    def identifier(self) -> str:
        """Return a name of this folder that no other has, made on first use."""
        path = self.folder / "store_id"
        with self.lock("store_id"):
            if not path.exists():
                write_atomically(path, uuid.uuid4().hex)
        return path.read_text().strip()

    def finished(self, run_hash: str) -> dict[str, Any] | None:
        """Return the result of a run, or None when there is none that counts."""
        result = _read_json(self._runs / f"{run_hash}.json")
        return None if result is None or problem_of(result, run_hash) else result

    def settled(self, run_hash: str, since: str = "") -> dict[str, Any] | None:
        """Return the record of a run that needs not be done; nothing else decides that.

        Parameters
        ----------
        run_hash : str
            Hash of the run.
        since : str
            The sweep that the record must come from, where finished runs are to be done again.

        Returns
        -------
        dict or None
            Its result (status "ok"), or why its method skips it (status "skipped").
        """
        result = self.finished(run_hash)
        if result is not None and self._needs_predictions and not self._has_predictions(result):
            result = None
        for record in (result, self.reason(run_hash)):
            if (
                record is not None
                and record["status"] in ("ok", "skipped")
                and since in ("", record["sweep_id"])
            ):
                return record
        return None

    def _has_predictions(self, result: Mapping[str, Any]) -> bool:
        return "predictions" in result and (self.folder / result["predictions"]).is_file()

    def problems(self) -> list[str]:
        """Return a line for each file among the results that does not count."""
        return [
            f"{path} {problem} and is left out."
            for path in sorted(self._runs.glob("[!.]*"))
            if (problem := problem_of(_read_json(path), path.stem))
        ]

    def reason(self, run_hash: str) -> dict[str, Any] | None:
        """Return the record of why a run has no result, or None when nothing is known."""
        record = _read_json(self._reasons / f"{run_hash}.json")
        return record if record is not None and record.get("run_hash") == run_hash else None

    def note_asked(self, versions: Mapping[str, str]) -> None:
        """Note which version of each data set, by name, a command asks for."""
        with self.lock("versions"):
            known = self.asked()
            for name, version in versions.items():
                earlier = [other for other in known.get(name, []) if other != version]
                known[name] = [*earlier, version]
            write_atomically(self._versions, json.dumps(known, indent=1))

    def asked(self) -> dict[str, list[str]]:
        """Return the versions of each data set that commands asked for, the last one last."""
        return _read_json(self._versions) or {}

    def write(
        self,
        run_hash: str,
        result: Mapping[str, Any],
        predictions: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Store the result of a run, in one step and for good, after what it predicted."""
        path = self._predictions / f"{run_hash}.npz"
        if predictions is None:
            # Those of an earlier result need not be those of this one.
            path.unlink(missing_ok=True)
        else:
            content = io.BytesIO()
            np.savez_compressed(content, **predictions)  # type: ignore[arg-type]
            write_atomically(path, content.getvalue())
            result = {**result, "predictions": f"{path.parent.name}/{path.name}"}
        write_atomically(self._runs / f"{run_hash}.json", json.dumps(result, indent=1))
        self.clear_reason(run_hash)

    def write_reason(self, run_hash: str, record: Mapping[str, Any]) -> None:
        """Store why a run has no result."""
        write_atomically(self._reasons / f"{run_hash}.json", json.dumps(record, indent=1))

    def clear_reason(self, run_hash: str) -> None:
        """Forget why a run had no result."""
        (self._reasons / f"{run_hash}.json").unlink(missing_ok=True)

    def results(self) -> Iterator[dict[str, Any]]:
        """Yield every finished result, in the order of the hashes."""
        for path in sorted(self._runs.glob("*.json")):
            if (result := self.finished(path.stem)) is not None:
                yield result

    def reasons(self) -> Iterator[dict[str, Any]]:
        """Yield why runs have no result, in the order of the hashes."""
        for path in sorted(self._reasons.glob("*.json")):
            if (record := self.reason(path.stem)) is not None:
                yield record

    def lock(self, name: str) -> AbstractContextManager[None]:
        """Hold a lock, as of a run by its hash; wait while another process holds it.

        The operating system frees the lock of a process that is killed.
        """
        return locked(self._locks / f"{name}.lock")

    def is_locked(self, name: str) -> bool:
        """Return whether somebody holds a lock now."""
        path = self._locks / f"{name}.lock"
        if not path.exists():
            return False
        try:
            with filelock.FileLock(path).acquire(timeout=0):
                return False
        except filelock.Timeout:
            return True
        except OSError:
            # A folder that one may only look at.
            return False

    def is_in_use(self) -> bool:
        """Return whether a sweep is under way here."""
        return any(self.is_locked(path.stem) for path in self._locks.glob("sweep-*.lock"))


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
