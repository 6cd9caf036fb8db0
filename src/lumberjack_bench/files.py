"""Files that several processes use at once: seen whole or not at all, and changed by one at a time.

Also where the project's own folder is.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import filelock

_LONGEST_STEM = 50


def project_folder() -> Path | None:
    """Return the project's folder, or None when the package was installed without it."""
    for folder in Path(__file__).resolve().parents:
        if (folder / "pyproject.toml").is_file() and (folder / "conf").is_dir():
            return folder
    return None


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file so that a reader sees the old or the new content, never a part.

    Parameters
    ----------
    path : Path
        Place of the file; missing folders are made.
    content : bytes or str
        All of it; text is written in UTF-8.
    """
    with open_atomically(path) as handle:
        handle.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def open_atomically(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears under its name only when it is whole.

    Parameters
    ----------
    path : Path
        Final name; missing folders are made.

    Yields
    ------
    binary file
        A file ``.STEM.*.tmp`` in the same folder, moved over `path` when the block ends well and
        removed when it raises. A killed process leaves it behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = tempfile.NamedTemporaryFile(  # noqa: SIM115 - closed below, before the move
        dir=path.parent, prefix=f".{path.stem[:_LONGEST_STEM]}.", suffix=".tmp", delete=False
    )
    try:
        yield handle
        handle.flush()
        os.fsync(handle.fileno())
        handle.close()
        # Temporary files are private; others are as open as the process wants them.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(handle.name, 0o666 & ~mask)
        os.replace(handle.name, path)
    except BaseException:
        handle.close()
        Path(handle.name).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def locked(path: Path, *, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Let one process and thread at a time work under a lock; the others wait.

    The operating system drops the lock when its holder dies.

    Parameters
    ----------
    path : Path
        The lock's file, which stays; missing folders are made.
    on_wait : callable, optional
        Called once when somebody else holds the lock.

    Raises
    ------
    OSError
        When there can be no lock in this place.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        if on_wait is not None:
            on_wait()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
