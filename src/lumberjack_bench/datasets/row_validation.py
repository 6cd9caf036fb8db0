"""Rows checked against their schema and held in the smallest types.

A table may hold anything; what leaves this module fits the schema or is refused with the column,
the value and the number of rows. Every rule looks at one entry and the public schema only, except
the choice of a storage type, which changes no value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from lumberjack.reading import (
    MISSING,
    MISSING_READING,
    UNSEEN,
    Column,
    PublicList,
    read_entry,
    shown,
)
from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature
from lumberjack_bench.datasets.dataset import DatasetError, RowCounts
from lumberjack_bench.datasets.entries import EntryOptions, read_entries, with_decimal_points

UNLISTED_LEVEL = "(not in the schema)"
"""Level of a categorical column that stands for every value the schema does not list."""

_INTEGER_TYPES = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64)


def validate_rows(
    table: pa.Table,
    schema: FeatureSchema,
    *,
    table_name: str,
    is_strict: bool,
    options: EntryOptions | None = None,
) -> tuple[pd.DataFrame, NDArray[Any], RowCounts]:
    """Check the rows of a table against a schema and hold them in compact types.

    Parameters
    ----------
    table : pyarrow.Table
        Holds a column for each feature and the label; other columns are ignored.
    schema : FeatureSchema
        Public facts, in the table's own values.
    table_name : str
        For messages.
    is_strict : bool
        True refuses unlisted categories and columns that lie wholly outside their bounds; False
        counts them. Values outside the bounds are clipped and counted either way.
    options : EntryOptions or None
        How the table writes its entries, where that is not the plain way.

    Returns
    -------
    X : DataFrame of shape (n_rows, n_features)
        As :class:`~lumberjack_bench.datasets.dataset.Dataset` holds it; without the rows that have
        no label, where `options` ask for it.
    y : ndarray of shape (n_rows,), int8 or int16, or float64
        Class codes, or numbers within the schema's bounds.
    counts : RowCounts

    Raises
    ------
    DatasetError
        When the table does not fit the schema.
    """
    options = options or EntryOptions()
    check_columns(table.column_names, schema, table_name=table_name)
    if not table.num_rows:
        raise DatasetError(f"{table_name}: the table has no rows.")
    where = f"{table_name}: label column {schema.label!r}"
    labels = read_entries(table.column(schema.label), options, where=where)
    clipped: dict[str, int] = {}
    y: NDArray[Any]
    if schema.target_bounds is None:
        y = _labels(labels, schema, where, options.unlabelled)
        is_labelled = y >= 0
    else:
        target = NumericFeature(schema.label, *schema.target_bounds)
        y, clipped[schema.label] = _numbers(labels, target, options.decimal, where, is_strict)
        is_labelled = ~np.isnan(y)
        _check_unlabelled(int((~is_labelled).sum()), len(y), where, options.unlabelled)
    if not is_labelled.all():
        table, y = table.filter(pa.array(is_labelled)), y[is_labelled]
    columns: dict[str, Any] = {}
    unseen: dict[str, int] = {}
    filled: dict[str, int] = {}
    for feature in schema.features:
        where = f"{table_name}: column {feature.name!r}"
        entries = read_entries(table.column(feature.name), options, where=where)
        if isinstance(feature, NumericFeature):
            values, clipped[feature.name] = _numbers(
                entries, feature, options.decimal, where, is_strict
            )
            columns[feature.name] = _smallest(values, feature)
            n_missing = int(np.isnan(values).sum())
        else:
            codes, n_unseen = _codes(entries, feature, where, is_strict)
            columns[feature.name] = categorical_column(codes, feature, has_unlisted=n_unseen > 0)
            n_missing, unseen[feature.name] = int((codes < 0).sum()), n_unseen
        if n_missing and feature.fill is None:
            raise DatasetError(
                f"{where} has no value in {n_missing:,} of {len(y):,} rows and the schema has no "
                "fill value for it. Add 'fill: VALUE' to the schema, or fill these rows."
            )
        filled[feature.name] = n_missing
    counts = RowCounts(*map(_positive, (clipped, unseen, filled)))
    return pd.DataFrame(columns, copy=False), y, counts


def check_columns(present: Sequence[str], schema: FeatureSchema, *, table_name: str) -> None:
    """Refuse a table that lacks a column of a schema or holds it twice."""
    needed = (*schema.feature_names, schema.label)
    repeated = [name for name in needed if list(present).count(name) > 1]
    if repeated:
        raise DatasetError(
            f"{table_name}: columns appear more than once: {repeated}. Rename or drop the copies."
        )
    absent = [name for name in needed if name not in present]
    if absent:
        raise DatasetError(
            f"{table_name}: missing columns {absent}; the table has {_some(present)}. "
            "Column names must be those of the schema."
        )


def categorical_column(
    codes: NDArray[Any], feature: CategoricalFeature, *, has_unlisted: bool
) -> pd.Categorical:
    """Return a categorical column from its codes.

    Codes are positions in the feature's categories; -1 is missing and ``len(categories)`` unlisted,
    which needs a level of its own (`has_unlisted`).
    """
    # pandas takes no missing level; empty text is read like one. Objects, as numbers of two types
    # would be rounded to one.
    levels = ["" if read_entry(v) == MISSING_READING else v for v in feature.categories]
    levels += [UNLISTED_LEVEL] if has_unlisted else []
    return pd.Categorical.from_codes(codes, categories=pd.Index(levels, dtype=object))


def _positive(counts: Mapping[str, int]) -> dict[str, int]:
    return {column: count for column, count in counts.items() if count}


def _numbers(
    entries: Column, feature: NumericFeature, decimal: str, where: str, is_strict: bool
) -> tuple[NDArray[np.float64], int]:
    """Return numbers within the bounds, NaN for a missing one, and how many had to be clipped."""
    entries_read = with_decimal_points(entries, decimal)
    numbers = entries_read.numbers()
    is_missing = ~np.isfinite(numbers)
    is_odd = is_missing & _are_odd(entries_read, is_missing)
    if is_odd.any():
        raise DatasetError(
            f"{where} is numeric in the schema but holds {_values_at(entries, is_odd)} in "
            f"{int(is_odd.sum()):,} of {len(entries):,} rows. Correct the rows, make it categorical, or "
            "add to missing_texts what means 'no value'."
        )
    numbers[is_missing] = np.nan
    is_outside = (numbers < feature.lower) | (numbers > feature.upper)
    n_clipped = int(is_outside.sum())
    if is_strict and n_clipped and n_clipped == int((~is_missing).sum()):
        raise DatasetError(
            f"{where} lies outside the schema's bounds [{feature.lower:g}, {feature.upper:g}] in all "
            f"{n_clipped:,} rows, e.g. {numbers[is_outside][0]:g}. Correct the bounds."
        )
    return np.clip(numbers, feature.lower, feature.upper), n_clipped


def _are_odd(entries: Column, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which rows, of some without a finite number, hold neither nothing nor infinity."""
    assert entries.codes is not None
    is_odd = np.zeros(len(entries.values) + 1, dtype=bool)
    if entries.values.dtype.kind not in "biuf":
        for code in np.unique(entries.codes[rows]):
            reading = read_entry(entries.values[code]) if code >= 0 else MISSING_READING
            is_odd[code] = reading != MISSING_READING and not isinstance(reading, int | float)
    return is_odd[entries.codes]


def _smallest(values: NDArray[np.float64], feature: NumericFeature) -> NDArray[Any]:
    if (values == np.rint(values)).all():
        for integer in _INTEGER_TYPES:
            limits = np.iinfo(integer)
            if limits.min <= feature.lower and feature.upper <= limits.max:
                return values.astype(integer)
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return single if np.array_equal(single, values, equal_nan=True) else values


def _codes(
    entries: Column, feature: CategoricalFeature, where: str, is_strict: bool
) -> tuple[NDArray[np.int64], int]:
    """Return codes as :func:`categorical_column` takes them, and how many entries are unlisted."""
    codes = PublicList(feature.categories).codes(entries)
    is_unlisted = codes == UNSEEN
    n_unlisted = int(is_unlisted.sum())
    if n_unlisted and is_strict:
        raise DatasetError(
            f"{where} holds {_values_at(entries, is_unlisted)} in {n_unlisted:,} of {len(codes):,} rows, "
            f"which is not among the schema's {len(feature.categories)} categories "
            f"{_some(feature.categories)}. Add it there, or treat unlisted values alike (unlisted=rest)."
        )
    is_missing = codes == MISSING
    codes[is_unlisted] = len(feature.categories)
    codes[is_missing] = -1
    return codes, n_unlisted


def _labels(
    entries: Column, schema: FeatureSchema, where: str, unlabelled: str
) -> NDArray[np.int8 | np.int16]:
    """Return the class of each row, negative for a row without a label."""
    codes = PublicList(schema.classes).codes(entries)
    n_rows = len(codes)
    n_missing = int((codes == MISSING).sum())
    _check_unlabelled(n_missing, n_rows, where, unlabelled)
    is_unknown = codes == UNSEEN
    if is_unknown.any():
        raise DatasetError(
            f"{where} holds {_values_at(entries, is_unknown)} in {int(is_unknown.sum()):,} of {n_rows:,} "
            f"rows, which is not among the schema's classes {_some(schema.classes)}. Add it, or drop the "
            "rows."
        )
    present = np.unique(codes[codes >= 0])
    if len(present) < 2:
        raise DatasetError(
            f"{where} has only one class: all {n_rows - n_missing:,} rows are "
            f"{schema.classes[int(present[0])]!r}. A classifier needs at least two."
        )
    return codes.astype(np.int8 if schema.n_classes <= 127 else np.int16)


def _check_unlabelled(n_missing: int, n_rows: int, where: str, unlabelled: str) -> None:
    if n_missing and (n_missing == n_rows or unlabelled == "error"):
        raise DatasetError(
            f"{where} has no value in {n_missing:,} of {n_rows:,} rows. Drop these rows"
            f"{'' if n_missing == n_rows else ', or ask for it with unlabelled=drop'}."
        )


def _values_at(entries: Column, rows: NDArray[np.bool_]) -> str:
    assert entries.codes is not None
    return _some([entries.values[code] for code in np.unique(entries.codes[rows])])


def _some(values: Iterable[Any], limit: int = 5) -> str:
    """Spell the first few of many values; a single one stands without brackets."""
    spelled = list(dict.fromkeys(map(_spelled, values)))
    if len(spelled) == 1:
        return spelled[0]
    more = f", ... {len(spelled)} in all" if len(spelled) > limit else ""
    return f"[{', '.join(spelled[:limit])}{more}]"


def _spelled(value: Any) -> str:
    reading = read_entry(value)
    # A date is shown as it is compared, which is how a schema would list it.
    return shown(reading if isinstance(reading, str) else value)
