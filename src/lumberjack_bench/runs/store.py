"""Result files, the truth of the benchmark: one per finished run, written whole or not at all.

A results folder holds ``runs/<hash>.json`` (finished), ``failures/<hash>.json`` (the last attempt
failed; never taken for a result), ``locks/`` (who is at work now) and ``logs/<sweep>/``. Several
processes may use one folder at the same time.
"""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from lumberjack_bench.runs.records import problem_of

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
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runs = folder / "runs"
        self._failures = folder / "failures"
        self._locks = folder / "locks"
        self._versions = folder / "versions.json"

    def prepare(self) -> None:
        """Make the folder, and check that a result would fit into it.

        Raises
        ------
        StoreError
            When the folder cannot be made or written.
        """
        try:
            for folder in (self._runs, self._failures, self._locks):
                folder.mkdir(parents=True, exist_ok=True)
            probe = self._runs / f".probe.{os.getpid()}.tmp"
            try:
                with probe.open("wb") as file:
                    file.write(bytes(PROBE_BYTES))
                    os.fsync(file.fileno())
            finally:
                probe.unlink(missing_ok=True)
            self._sweep_up()
        except OSError as error:
            raise StoreError(
                f"cannot write to the results folder {str(self.folder)!r}: {error.strerror or error}. "
                "Choose another with results_dir=FOLDER."
            ) from error

    def identifier(self) -> str:
        """Return a name of this folder that no other has, made on first use.

        Returns
        -------
        str
        """
        path = self.folder / "store_id"
        if not path.exists():
            with self.lock("store_id"):
                if not path.exists():
                    _write_whole(path, uuid.uuid4().hex)
        return path.read_text().strip()

    def read(self, run_hash: str) -> dict[str, Any] | None:
        """Return the result of a run, or None when it is not finished.

        Parameters
        ----------
        run_hash : str
            Hash of the run.

        Returns
        -------
        dict or None
        """
        return _read_json(self._runs / f"{run_hash}.json")

    def finished(self, run_hash: str, since: str = "") -> dict[str, Any] | None:
        """Return the result of a run if it counts as done; nothing else decides that.

        Parameters
        ----------
        run_hash : str
            Hash of the run.
        since : str
            The sweep that the result must come from, where finished runs are to be done again.

        Returns
        -------
        dict or None
        """
        result = self.read(run_hash)
        if result is None or problem_of(result, run_hash):
            return None
        return result if not since or result["sweep_id"] == since else None

    def problems(self) -> list[str]:
        """Return a line for each file among the results that does not count."""
        return [
            f"{path} {problem} and is left out."
            for path in sorted(self._runs.glob("[!.]*"))
            if (problem := problem_of(_read_json(path), path.stem))
        ]

    def read_failure(self, run_hash: str) -> dict[str, Any] | None:
        """Return the record of the last attempt, or None when it did not fail.

        Parameters
        ----------
        run_hash : str
            Hash of the run.

        Returns
        -------
        dict or None
        """
        return _read_json(self._failures / f"{run_hash}.json")

    def note_asked(self, versions: Mapping[str, str]) -> None:
        """Note which version of each data set a command asks for.

        Parameters
        ----------
        versions : mapping of str to str
            Version by name of the data set.
        """
        known = self.asked()
        if all(known.get(name, [])[-1:] == [version] for name, version in versions.items()):
            return
        with self.lock("versions"):
            known = self.asked()
            for name, version in versions.items():
                earlier = [other for other in known.get(name, []) if other != version]
                known[name] = [*earlier, version]
            _write_whole(self._versions, json.dumps(known, indent=1))

    def asked(self) -> dict[str, list[str]]:
        """Return the versions of each data set that commands asked for, the last one last."""
        return _read_json(self._versions) or {}

    def write(self, run_hash: str, result: dict[str, Any]) -> None:
        """Store the result of a run, in one step and for good.

        Parameters
        ----------
        run_hash : str
            Hash of the run.
        result : dict
            Plain data.
        """
        _write_whole(self._runs / f"{run_hash}.json", json.dumps(result, indent=1))
        self.clear_failure(run_hash)

    def write_failure(self, run_hash: str, record: dict[str, Any]) -> None:
        """Store why a run failed.

        Parameters
        ----------
        run_hash : str
            Hash of the run.
        record : dict
            Plain data.
        """
        _write_whole(self._failures / f"{run_hash}.json", json.dumps(record, indent=1))

    def clear_failure(self, run_hash: str) -> None:
        """Forget that a run failed.

        Parameters
        ----------
        run_hash : str
            Hash of the run.
        """
        (self._failures / f"{run_hash}.json").unlink(missing_ok=True)

    def results(self) -> Iterator[dict[str, Any]]:
        """Yield every finished result, in the order of the hashes.

        Yields
        ------
        dict
        """
        for path, result in _read_folder(self._runs):
            if not problem_of(result, path.stem):
                yield result

    def failures(self) -> Iterator[dict[str, Any]]:
        """Yield the record of every run whose last attempt failed.

        Yields
        ------
        dict
        """
        for path, record in _read_folder(self._failures):
            if record.get("run_hash") == path.stem:
                yield record

    @contextmanager
    def lock(self, name: str, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
        """Hold the lock of a run; wait while another process holds it.

        The operating system frees the lock of a process that is killed.

        Parameters
        ----------
        name : str
            Hash of the run.
        on_wait : callable or None
            Called once when the lock is taken.
        """
        path = self._locks / f"{name}.lock"
        handle = _acquire(path, on_wait)
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink()
            handle.close()

    def is_locked(self, name: str) -> bool:
        """Return whether some process holds the lock of a run.

        Parameters
        ----------
        name : str
            Hash of the run.

        Returns
        -------
        bool
        """
        try:
            handle = (self._locks / f"{name}.lock").open("r")
        except FileNotFoundError:
            return False
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    def _sweep_up(self) -> None:
        """Remove what killed processes left half-written."""
        for folder in (self._runs, self._failures):
            for path in folder.glob(".*.tmp"):
                if not self.is_locked(path.name.split(".")[1]):
                    path.unlink(missing_ok=True)


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old or the new text, never a part.

    Parameters
    ----------
    path : Path
        Place of the file; its folder exists.
    text : str
        All of it.
    """
    _write_whole(path, text)


def _write_whole(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _acquire(path: Path, on_wait: Callable[[], None] | None) -> TextIO:
    while True:
        handle = path.open("a")
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if on_wait is not None:
                    on_wait()
                    on_wait = None
                fcntl.flock(handle, fcntl.LOCK_EX)
            # The last holder removes the file, so what was waited for may be a file without a name.
            with suppress(FileNotFoundError):
                if os.fstat(handle.fileno()).st_ino == path.stat().st_ino:
                    return handle
        except BaseException:
            handle.close()
            raise
        handle.close()


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _read_folder(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted(folder.glob("*.json")):
        content = _read_json(path)
        if content is not None:
            yield path, content
