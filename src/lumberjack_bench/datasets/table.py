"""Bring your own table: any csv or parquet file with a schema."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lumberjack.schema import FeatureSchema
from lumberjack_bench.datasets.cache import cached
from lumberjack_bench.datasets.compact import check_columns, compact_rows
from lumberjack_bench.datasets.csv_files import read_header, read_text_columns
from lumberjack_bench.datasets.dataset import Dataset, DatasetError, DataSource
from lumberjack_bench.datasets.entry_options import EntryOptions, entry_options
from lumberjack_bench.datasets.schema_files import read_schema_file
from lumberjack_bench.datasets.sources import data_folder, remembered_sha256

logger = logging.getLogger(__name__)

_PARQUET = (".parquet", ".pq")
_TEXT = (".csv", ".tsv", ".txt")


def load(config: Mapping[str, Any]) -> Dataset:
    """Load a local table.

    Parameters
    ----------
    config : mapping
        ``name``; ``path`` of the table; ``schema``, a file or the name of a schema that comes
        with the package; ``unlisted``, ``error`` (default) or ``rest``, what becomes of
        categories that the schema does not list; ``missing_texts``, ``decimal`` and
        ``unlabelled``, how the table writes its entries, which the schema file may say as well.
        Columns that the schema does not name are left out.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetError
        When the table cannot be read or does not fit the schema.
    """
    name = str(config["name"])
    path = _path(config)
    schema, options = _schema(config)
    unlisted = _unlisted(config)
    cache_folder = data_folder(config) / "cache"
    digest = remembered_sha256(path, cache_folder)
    key = {
        "source": digest,
        "file": path.name,
        "unlisted": unlisted,
        "options": astuple(options),
    }

    def build() -> Dataset:
        columns = (*schema.feature_names, schema.label)
        table = read_columns(path, columns, schema, what=name)
        X, y, counts = compact_rows(
            table, schema, what=name, is_strict=unlisted == "error", options=options
        )
        description = f"local table {path.name}"
        if len(y) < table.num_rows:
            n_dropped = table.num_rows - len(y)
            description += f", without {n_dropped:,} rows that have no label"
            logger.info("%s: %s", name, description)
        source = DataSource("table", description, path.name, digest, len(y))
        return Dataset(name, schema, X, y, source, counts)

    return cached(cache_folder, name, schema, key, build)


def identity(config: Mapping[str, Any]) -> str:
    """Return what determines the rows: checksums of the table and of the schema, and the options.

    Parameters
    ----------
    config : mapping
        As :func:`load` takes it.

    Returns
    -------
    str
    """
    digest = remembered_sha256(_path(config), data_folder(config) / "cache")
    schema, options = _schema(config)
    return f"table:{digest}:{schema.digest()}:{_unlisted(config)}:{astuple(options)}"


def read_columns(
    path: Path,
    columns: Sequence[str],
    schema: FeatureSchema,
    *,
    what: str,
) -> pa.Table:
    """Read some columns of a csv or parquet file.

    Parameters
    ----------
    path : Path
        The file; its name says which kind it is.
    columns : sequence of str
        Columns to read.
    schema : FeatureSchema
        The file must hold its columns.
    what : str
        Name of the table for messages.

    Returns
    -------
    pyarrow.Table
        Columns of a csv file are text.
    """
    check_columns(column_names(path, what=what), schema, what=f"{what} ({path.name})")
    return read_file(path, columns, what=what)


def read_file(path: Path, columns: Sequence[str], *, what: str) -> pa.Table:
    """Read some columns of a csv or parquet file, of which each is there.

    Parameters
    ----------
    path : Path
        The file; its name says which kind it is.
    columns : sequence of str
        Columns to read.
    what : str
        Name of the table for messages.

    Returns
    -------
    pyarrow.Table
        Columns of a csv file are text.
    """
    if is_text_table(path):
        return read_text_columns(path, columns, what=what)
    try:
        with path.open("rb") as handle:
            return pq.ParquetFile(handle).read(columns=list(columns), use_threads=False)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DatasetError(f"{what}: {path} is not a whole parquet file ({reason}).") from None


def is_text_table(path: Path) -> bool:
    """Whether a file is a csv or the like, by its name.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    bool
    """
    name = path.name.lower().removesuffix(".gz")
    return name.endswith(_TEXT)


def column_names(path: Path, *, what: str) -> list[str]:
    """Return the column names of a csv or parquet file.

    Parameters
    ----------
    path : Path
        The file.
    what : str
        Name of the table for messages.

    Returns
    -------
    list of str
    """
    if is_text_table(path):
        return read_header(path, what=what).names
    if path.suffix.lower() not in _PARQUET:
        raise DatasetError(
            f"{what}: {path.name} must be a csv or parquet file "
            f"({', '.join((*_TEXT, *_PARQUET))}; text may be compressed, .csv.gz)."
        )
    try:
        with path.open("rb") as handle:
            return list(pq.ParquetFile(handle).schema_arrow.names)
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise DatasetError(f"{what}: {path} is not a whole parquet file ({reason}).") from None
    except OSError as error:
        raise DatasetError(f"{what}: cannot read {path} ({error.strerror or error}).") from None


def _path(config: Mapping[str, Any]) -> Path:
    name = config["name"]
    if not config.get("path"):
        raise DatasetError(
            f"{name}: give the table's file with dataset.path=FILE (csv or parquet)."
        )
    path = Path(str(config["path"])).expanduser()
    if not path.is_file():
        raise DatasetError(f"{name}: no file {path} (from {Path.cwd()}). Check dataset.path.")
    return path


def _schema(config: Mapping[str, Any]) -> tuple[FeatureSchema, EntryOptions]:
    if not config.get("schema"):
        raise DatasetError(
            f"{config['name']}: give the table's schema with dataset.schema=FILE; "
            "python scripts/draft_schema.py TABLE --label COLUMN drafts one."
        )
    schema, in_file = read_schema_file(str(config["schema"]))
    return schema, entry_options(config, in_file, what=str(config["name"]))


def _unlisted(config: Mapping[str, Any]) -> str:
    unlisted = config.get("unlisted") or "error"
    if unlisted not in ("error", "rest"):
        raise DatasetError(
            f"{config['name']}: unlisted must be 'error' or 'rest', got {unlisted!r}."
        )
    return str(unlisted)
