"""A first draft of a schema, read from a table.

A draft is no schema yet: whatever it takes from the rows (bounds, categories, classes) would leak
into every model, so each such value is marked for somebody to replace by public knowledge.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lumberjack_bench.datasets.csv_files import MISSING_TEXTS, read_text_columns
from lumberjack_bench.datasets.dataset import DatasetError
from lumberjack_bench.datasets.table import column_names

MARK = "# check: read from data"

_MANY = 100
_HEADER = """\
# Draft of a schema. Bounds, categories and classes must be public knowledge: a value taken from
# the rows reveals something about them, and the privacy guarantee does not cover it.
# Replace or confirm each value marked "{mark}", then delete the mark.
"""


def draft_schema(path: Path, label: str) -> str:
    """Draft a schema file for a table.

    Numbers become numeric features with the range seen, text and truth values become categorical
    features with the values seen. Numbers written with leading zeros count as text.

    Parameters
    ----------
    path : Path
        A csv or parquet file.
    label : str
        The column to predict.

    Returns
    -------
    str
        YAML, with :data:`MARK` behind every value that was read from the rows.

    Raises
    ------
    DatasetError
        When the file cannot be read, lacks the label column, or the label has very many values.
    """
    what = path.name
    names = column_names(path, what=what)
    if label not in names:
        raise DatasetError(f"{what}: no label column {label!r}; the table has {names}.")
    if len(set(names)) != len(names):
        raise DatasetError(f"{what}: duplicate columns; rename or drop the copies.")
    if len(names) < 2:
        raise DatasetError(f"{what}: the table has no column besides the label.")
    if path.suffix.lower() == ".csv":
        table = read_text_columns(path, names, what=what, missing_texts=MISSING_TEXTS)
    else:
        with path.open("rb") as handle:
            table = pq.ParquetFile(handle).read(use_threads=False)
    if not table.num_rows:
        raise DatasetError(f"{what}: the table has no rows.")
    classes = _values(table.column(label))
    if len(classes) > _MANY:
        raise DatasetError(
            f"{what}: label column {label!r} has {len(classes):,} different values in "
            f"{table.num_rows:,} rows; classes are needed, so group them first."
        )
    lines = [
        _HEADER.format(mark=MARK).rstrip(),
        f"name: {_scalar(path.stem)}",
        'citation: "" # where the public facts below come from',
        f"label: {_scalar(label)}",
        "classes:",
        *(f"  - {_scalar(value)} {MARK}" for value in classes),
        "features:",
    ]
    for name in names:
        if name != label:
            lines += _feature(name, table.column(name))
    return "\n".join(lines) + "\n"


def _feature(name: str, column: pa.ChunkedArray) -> list[str]:
    lines = [f"  - name: {_scalar(name)}"]
    numbers = _numbers(column)
    if numbers is not None:
        finite = numbers[np.isfinite(numbers)]
        lower, upper = (_plain(finite.min()), _plain(finite.max())) if len(finite) else (0, 0)
        has_missing = len(finite) < len(numbers)
        lines.append(f"    numeric: [{_scalar(lower)}, {_scalar(upper)}] {MARK}")
        fill: Any = lower
    else:
        values = _values(column)
        has_missing = column.null_count > 0
        if len(values) > _MANY:
            lines.append(
                f"    # check: {len(values):,} different texts; leave this feature out if they "
                "identify rows"
            )
        lines.append("    categories:")
        lines += [f"      - {_scalar(value)} {MARK}" for value in values]
        fill = values[0] if values else None
    if has_missing:
        lines.append(f"    fill: {_scalar(fill)} {MARK}, some rows have no value here")
    return lines


def _numbers(column: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """Return the column as numbers, or None when it is to be categorical."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return np.array(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    text = pc.utf8_trim_whitespace(column)
    has_leading_zero = pc.any(pc.match_substring_regex(text, r"^[-+]?0[0-9]")).as_py()
    numbers = pd.to_numeric(text.to_pandas(), errors="coerce").to_numpy(dtype=np.float64)
    is_text = np.isnan(numbers) & np.asarray(pc.is_valid(text))
    if has_leading_zero or is_text.any() or not np.isfinite(numbers).any():
        return None
    return numbers


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Return the different values of a column in a stable order, numbers as numbers."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    numbers = _numbers(column)
    if numbers is not None:
        return [_plain(value) for value in np.unique(numbers[np.isfinite(numbers)])]
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.utf8_trim_whitespace(column)
    values = [value for value in pc.unique(column).to_pylist() if value is not None]
    return sorted(values, key=str)


def _plain(number: float) -> int | float:
    return int(number) if float(number).is_integer() and abs(number) < 2**53 else float(number)


def _scalar(value: Any) -> str:
    """Spell a value so that YAML gives it back: text in quotes, numbers bare."""
    if isinstance(value, (bool, int, float, str)) or value is None:
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(str(value), ensure_ascii=False)
