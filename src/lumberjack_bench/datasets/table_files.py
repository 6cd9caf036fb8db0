"""Tables in files: csv and the like, or parquet."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lumberjack.schema import FeatureSchema
from lumberjack_bench.datasets.csv_files import read_header, read_text_columns
from lumberjack_bench.datasets.dataset import DatasetError
from lumberjack_bench.datasets.row_validation import check_columns

_PARQUET = (".parquet", ".pq")
_TEXT = (".csv", ".tsv", ".txt")


def is_text_table(path: Path) -> bool:
    """Whether a file is a csv or the like, by its name."""
    return path.name.lower().removesuffix(".gz").endswith(_TEXT)


def column_names(path: Path, *, table_name: str) -> list[str]:
    """Return the column names of a csv or parquet file."""
    if is_text_table(path):
        return read_header(path, table_name=table_name).names
    if path.suffix.lower() not in _PARQUET:
        raise DatasetError(
            f"{table_name}: {path.name} must be a csv or parquet file "
            f"({', '.join((*_TEXT, *_PARQUET))}; text may be compressed, .csv.gz)."
        )
    with _parquet(path, table_name) as file:
        return list(file.schema_arrow.names)


def read_file(path: Path, columns: Sequence[str], *, table_name: str) -> pa.Table:
    """Read some columns of a csv or parquet file, of which each is there; those of a csv are text."""
    if is_text_table(path):
        return read_text_columns(path, columns, table_name=table_name)
    with _parquet(path, table_name) as file:
        return file.read(columns=list(columns), use_threads=False)


def read_columns(path: Path, schema: FeatureSchema, *, table_name: str) -> pa.Table:
    """Read the columns of a schema, features and label, from a csv or parquet file."""
    check_columns(
        column_names(path, table_name=table_name), schema, table_name=f"{table_name} ({path.name})"
    )
    return read_file(path, (*schema.feature_names, schema.label), table_name=table_name)


@contextlib.contextmanager
def _parquet(path: Path, table_name: str) -> Iterator[pq.ParquetFile]:
    try:
        # Not by path: a folder called "year=2018" on the way would be read as a partition.
        with path.open("rb") as handle:
            yield pq.ParquetFile(handle)
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise DatasetError(
            f"{table_name}: {path} is not a whole parquet file ({reason})."
        ) from None
    except OSError as error:
        raise DatasetError(
            f"{table_name}: cannot read {path} ({error.strerror or error})."
        ) from None
