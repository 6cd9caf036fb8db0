"""The files of a data set: their folder, their checksums, and the sources they may come from.

Sources are tried in order and the first that works wins. A file takes its final name only when
it is whole and right, and a file that is already there is never replaced.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from lumberjack_bench.datasets.checksums import sha256_of
from lumberjack_bench.datasets.dataset import DatasetError
from lumberjack_bench.datasets.download import Fetch, SourceFailure
from lumberjack_bench.files import locked, project_folder, write_atomically

logger = logging.getLogger(__name__)

DATA_FOLDER_VARIABLE = "LUMBERJACK_DATA"
STAND_IN_VARIABLE = "LUMBERJACK_STAND_IN_DIR"


def data_folder(config: Mapping[str, Any]) -> Path:
    """Return the folder that holds data files and the cache; it need not exist yet.

    ``data_dir`` of a data set's config wins over the environment variable ``LUMBERJACK_DATA``,
    which wins over ``data/`` in the project's folder. Where the package was installed without the
    project, it is the user's folder for data of programs.
    """
    chosen = config.get("data_dir") or os.environ.get(DATA_FOLDER_VARIABLE)
    if chosen:
        return Path(str(chosen)).expanduser().absolute()
    project = project_folder()
    return project / "data" if project else platformdirs.user_data_path("lumberjack")


@contextlib.contextmanager
def folder_lock(folder: Path, purpose: str) -> Iterator[None]:
    """Let one process at a time work in a folder; `purpose` is told to those who wait.

    Where there can be no lock the block runs without: files still appear whole, at worst the work
    is done twice.
    """
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(
                locked(
                    folder / ".lock",
                    on_wait=lambda: logger.info(
                        "%s: another process is at it in %s, waiting", purpose, folder
                    ),
                )
            )
        except OSError as error:
            logger.debug("%s: no lock in %s (%s)", purpose, folder, error)
        yield


@dataclass(frozen=True, slots=True)
class Source:
    """A place that files may come from: its name for messages, and the way to them."""

    name: str
    fetch: Fetch


def no_source(name: str, why_not: str) -> Source:
    """Return a source that is known not to work, for the error that lists them all."""

    def fetch(names: Sequence[str], folder: Path) -> None:
        raise SourceFailure(why_not)

    return Source(name, fetch)


def published_mark(path: Path) -> Path:
    """Return the file that keeps the checksum of a file as it was fetched."""
    return path.with_name(f"{path.name}.sha256")


def ensure_files(
    dataset_name: str,
    folder: Path,
    checksums: Mapping[str, str | None],
    sources: Sequence[Source],
    *,
    by_hand: str,
) -> None:
    """Make sure that the files of a data set lie in a folder, fetching what is missing.

    Parameters
    ----------
    dataset_name : str
        For messages.
    folder : Path
        Where the files lie or shall lie.
    checksums : mapping of str to str or None
        SHA-256 by file name. Where it is not known beforehand, that of the fetched file is kept
        beside it (:func:`published_mark`).
    sources : sequence of Source
        In order of preference.
    by_hand : str
        How to get the files without any of them, the last line of the error.

    Raises
    ------
    DatasetError
        When a file that is there has a wrong checksum (it is left alone), or no source works.
    """
    if not _missing(dataset_name, folder, checksums):
        return
    try:
        with folder_lock(folder, f"{dataset_name}: fetching files"):
            missing = _missing(dataset_name, folder, checksums)
            if missing:
                _fetch(dataset_name, folder, missing, sources, by_hand)
    except OSError as error:
        raise DatasetError(
            f"{dataset_name}: cannot write to {folder} ({error.strerror or error}). Make it "
            f"writable, or set data_dir or {DATA_FOLDER_VARIABLE} to a folder that is."
        ) from None


def _missing(
    dataset_name: str, folder: Path, checksums: Mapping[str, str | None]
) -> dict[str, str | None]:
    """Return the files that are not there; one that differs is an error."""
    missing = {}
    for name, checksum in checksums.items():
        path = folder / name
        if not path.is_file():
            missing[name] = checksum
        elif checksum is not None and (seen := sha256_of(path)) != checksum:
            raise DatasetError(
                f"{dataset_name}: {path} is not the published file: expected sha256 {checksum}, got "
                f"{seen} ({path.stat().st_size:,} bytes). It is left alone; delete or replace it."
            )
    return missing


def _fetch(
    dataset_name: str,
    folder: Path,
    missing: Mapping[str, str | None],
    sources: Sequence[Source],
    by_hand: str,
) -> None:
    failures = [f"  - files in {folder}: {' and '.join(missing)} not there"]
    folder.mkdir(parents=True, exist_ok=True)
    for source in sources:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as scratch:
            logger.info("%s: trying %s", dataset_name, source.name)
            try:
                source.fetch(list(missing), Path(scratch))
                _check(Path(scratch), missing)
            except SourceFailure as failure:
                logger.info("%s: %s: %s", dataset_name, source.name, failure)
                failures.append(f"  - {source.name}: {failure}")
                continue
            for name, checksum in missing.items():
                if checksum is None:
                    seen = sha256_of(Path(scratch, name))
                    write_atomically(published_mark(folder / name), f"{seen}\n")
                os.replace(Path(scratch, name), folder / name)
        logger.info("%s: files fetched from %s into %s", dataset_name, source.name, folder)
        return
    raise DatasetError(
        "\n".join([f"{dataset_name}: no source worked. Tried in this order:", *failures, by_hand])
    )


def _check(folder: Path, checksums: Mapping[str, str | None]) -> None:
    for name, checksum in checksums.items():
        if not (folder / name).is_file():
            raise SourceFailure(f"it gave no {name}")
        if checksum is not None and (seen := sha256_of(folder / name)) != checksum:
            raise SourceFailure(
                f"its {name} differs from the published file (sha256 {seen[:12]}..., expected "
                f"{checksum[:12]}...)"
            )
