"""Bring your own table: any csv or parquet file with a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lumberjack.schema import FeatureSchema
from lumberjack_bench.datasets.cache import cached
from lumberjack_bench.datasets.compact import check_columns, compact_rows
from lumberjack_bench.datasets.csv_files import MISSING_TEXTS, read_header, read_text_columns
from lumberjack_bench.datasets.dataset import Dataset, DatasetError, DataSource
from lumberjack_bench.datasets.schema_files import read_schema
from lumberjack_bench.datasets.sources import data_folder, remembered_sha256

_PARQUET = (".parquet", ".pq")
_CSV = (".csv",)


def load(config: Mapping[str, Any]) -> Dataset:
    """Load a local table.

    Parameters
    ----------
    config : mapping
        ``name``; ``path`` of the table; ``schema``, a file or the name of a schema that comes
        with the package; ``unlisted``, ``error`` (default) or ``rest``, what becomes of
        categories that the schema does not list; ``missing_texts``, the csv fields that stand
        for a missing entry. Columns that the schema does not name are left out.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetError
        When the table cannot be read or does not fit the schema.
    """
    name = str(config["name"])
    path, schema = _path(config), _schema(config)
    unlisted = config.get("unlisted") or "error"
    if unlisted not in ("error", "rest"):
        raise DatasetError(f"{name}: unlisted must be 'error' or 'rest', got {unlisted!r}.")
    missing_texts = _missing_texts(config)
    cache_folder = data_folder(config) / "cache"
    digest = remembered_sha256(path, cache_folder)
    key = {
        "source": digest,
        "file": path.name,
        "unlisted": unlisted,
        "missing_texts": missing_texts,
    }

    def build() -> Dataset:
        columns = (*schema.feature_names, schema.label)
        table = read_columns(path, columns, schema, what=name, missing_texts=missing_texts)
        X, y, counts = compact_rows(table, schema, what=name, is_strict=unlisted == "error")
        source = DataSource("table", f"local table {path.name}", path.name, digest, len(y))
        return Dataset(name, schema, X, y, source, counts)

    return cached(cache_folder, name, schema, key, build)


def identity(config: Mapping[str, Any]) -> str:
    """Return what determines the rows: checksums of the table and of the schema.

    Parameters
    ----------
    config : mapping
        As :func:`load` takes it.

    Returns
    -------
    str
    """
    digest = remembered_sha256(_path(config), data_folder(config) / "cache")
    options = [str(config.get("unlisted") or "error"), *_missing_texts(config)]
    return f"table:{digest}:{_schema(config).digest()}:{options}"


def read_columns(
    path: Path,
    columns: Sequence[str],
    schema: FeatureSchema,
    *,
    what: str,
    missing_texts: Sequence[str] = MISSING_TEXTS,
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
    missing_texts : sequence of str
        Fields of a csv file that are missing entries.

    Returns
    -------
    pyarrow.Table
        Columns of a csv file are text.
    """
    check_columns(column_names(path, what=what), schema, what=f"{what} ({path.name})")
    if path.suffix.lower() in _CSV:
        return read_text_columns(path, columns, what=what, missing_texts=missing_texts)
    with path.open("rb") as handle:
        return pq.ParquetFile(handle).read(columns=list(columns), use_threads=False)


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
    suffix = path.suffix.lower()
    if suffix in _CSV:
        return read_header(path, what=what)
    if suffix not in _PARQUET:
        raise DatasetError(
            f"{what}: {path.name} must be a csv or parquet file (.csv, .parquet), got {suffix!r}."
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


def _schema(config: Mapping[str, Any]) -> FeatureSchema:
    if not config.get("schema"):
        raise DatasetError(
            f"{config['name']}: give the table's schema with dataset.schema=FILE; "
            "python scripts/draft_schema.py TABLE --label COLUMN drafts one."
        )
    return read_schema(str(config["schema"]))


def _missing_texts(config: Mapping[str, Any]) -> list[str]:
    chosen = config.get("missing_texts")
    return list(MISSING_TEXTS) if chosen is None else [str(text) for text in chosen]
