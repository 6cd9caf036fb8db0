"""Rows checked against their schema and held in the smallest types.

A table may hold anything; what leaves this module fits the schema or is refused with the column,
the value and the number of rows. Every rule looks at one entry and the public schema only, except
the choice of a storage type, which changes no value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
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
    read_column,
    read_entry,
    shown,
)
from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature
from lumberjack_bench.datasets.dataset import DatasetError, RowCounts
from lumberjack_bench.datasets.entry_options import EntryOptions

UNLISTED_LEVEL = "(not in the schema)"
"""Level of a categorical column that stands for every value the schema does not list."""

_COMMAS_AND_POINTS = str.maketrans(",.", ".,")
_INTEGER_TYPES = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64)


def compact_rows(
    table: pa.Table,
    schema: FeatureSchema,
    *,
    what: str,
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
    what : str
        Name of the table for messages.
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
    y : ndarray of shape (n_rows,), int8 or int16
        Class codes.
    counts : RowCounts
        Entries that did not fit.

    Raises
    ------
    DatasetError
        When the table does not fit the schema.
    """
    options = options or EntryOptions()
    check_columns(table.column_names, schema, what=what)
    if not table.num_rows:
        raise DatasetError(f"{what}: the table has no rows.")
    labels = read_entries(
        table.column(schema.label), options, where=f"{what}: label column {schema.label!r}"
    )
    y = _labels(labels, schema, what, options.unlabelled)
    if (y < 0).any():
        table, y = table.filter(pa.array(y >= 0)), y[y >= 0]
    n_rows = len(y)
    columns: dict[str, Any] = {}
    clipped: dict[str, int] = {}
    unseen: dict[str, int] = {}
    filled: dict[str, int] = {}
    for feature in schema.features:
        where = f"{what}: column {feature.name!r}"
        entries = read_entries(table.column(feature.name), options, where=where)
        if isinstance(feature, NumericFeature):
            values, missing, n_clipped = _numeric(
                entries, feature, options.decimal, where, is_strict
            )
            if n_clipped:
                clipped[feature.name] = n_clipped
            columns[feature.name] = values
        else:
            codes, missing, n_unseen = _categorical(entries, feature, where, is_strict)
            if n_unseen:
                unseen[feature.name] = n_unseen
            columns[feature.name] = categorical_column(codes, feature, has_unlisted=n_unseen > 0)
        if missing:
            if feature.fill is None:
                raise DatasetError(
                    f"{where} has no value in {missing:,} of {n_rows:,} rows and the schema has no "
                    "fill value for it. Add 'fill: VALUE' to the schema, or fill these rows."
                )
            filled[feature.name] = missing
    return pd.DataFrame(columns, copy=False), y, RowCounts(clipped, unseen, filled)


def check_columns(present: Sequence[str], schema: FeatureSchema, *, what: str) -> None:
    """Name the columns of a schema that a table lacks or holds twice.

    Parameters
    ----------
    present : sequence of str
        Column names of the table.
    schema : FeatureSchema
        What the table should hold.
    what : str
        Name of the table for messages.

    Raises
    ------
    DatasetError
        When a column that the schema names is missing or repeats.
    """
    needed = (*schema.feature_names, schema.label)
    repeated = [name for name in needed if list(present).count(name) > 1]
    if repeated:
        raise DatasetError(
            f"{what}: columns appear more than once: {repeated}. Rename or drop the copies."
        )
    absent = [name for name in needed if name not in present]
    if absent:
        raise DatasetError(
            f"{what}: missing columns {absent}; the table has {_some(present)}. "
            "Column names must be those of the schema."
        )


def read_entries(column: pa.ChunkedArray, options: EntryOptions, *, where: str) -> Column:
    """Take the entries of a column apart.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Its rows.
    options : EntryOptions
        Say which entries are missing besides those that always are.
    where : str
        Name of the column for messages.

    Returns
    -------
    Column
        With codes.

    Raises
    ------
    DatasetError
        When the column holds lists or records, or values beyond the range of Python's.
    """
    kind = column.type
    if pa.types.is_nested(kind):
        raise DatasetError(
            f"{where} holds lists or records ({kind}). Leave it out of the schema, or turn it into "
            "columns of numbers or texts."
        )
    try:
        if column.null_count and pa.types.is_primitive(kind):
            # With nulls every row would become an object.
            column = column.dictionary_encode()
        entries = read_column(column)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        raise DatasetError(
            f"{where} has entries of type {kind} that cannot be read ({reason})."
        ) from None
    values, codes = entries.values, entries.codes
    codes = np.arange(len(values)) if codes is None else np.asarray(codes, dtype=np.int64)
    if options.missing_texts:
        is_missing = PublicList(options.missing_texts).codes(Column(values)) >= 0
        codes = np.where(np.append(is_missing, False)[codes], -1, codes)
    return Column(values, codes, pa.types.is_dictionary(kind))


def with_decimal_points(entries: Column, decimal: str) -> Column:
    """Return entries in which numbers are written with decimal points.

    Parameters
    ----------
    entries : Column
        As they stand in the table.
    decimal : {".", ","}
        What separates the decimals there.

    Returns
    -------
    Column
        Where decimals stand behind commas, a point makes a text no number: it may group digits.
    """
    if decimal == "." or entries.values.dtype.kind != "O":
        return entries
    values = np.fromiter((with_decimal_point(value, decimal) for value in entries.values), object)
    return replace(entries, values=values)


def with_decimal_point(value: Any, decimal: str) -> Any:
    """Return one entry as :func:`with_decimal_points` does.

    Parameters
    ----------
    value : object
        As it stands in the table.
    decimal : {".", ","}
        What separates the decimals there.

    Returns
    -------
    object
    """
    if decimal == "." or not isinstance(value, str):
        return value
    return value.translate(_COMMAS_AND_POINTS)


def categorical_column(
    codes: NDArray[Any], feature: CategoricalFeature, *, has_unlisted: bool
) -> pd.Categorical:
    """Return a categorical column from its codes.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,)
        Positions in the feature's categories; -1 is missing, ``len(categories)`` unlisted.
    feature : CategoricalFeature
        Gives the levels.
    has_unlisted : bool
        Whether a level for unlisted values is needed.

    Returns
    -------
    pandas.Categorical
    """
    # pandas takes no missing level; empty text is read like one. Objects, as numbers of two types
    # would be rounded to one.
    levels = ["" if read_entry(v) == MISSING_READING else v for v in feature.categories]
    levels += [UNLISTED_LEVEL] if has_unlisted else []
    return pd.Categorical.from_codes(codes, categories=pd.Index(levels, dtype=object))


def _numeric(
    entries: Column, feature: NumericFeature, decimal: str, where: str, is_strict: bool
) -> tuple[NDArray[Any], int, int]:
    n_rows = len(entries)
    entries_read = with_decimal_points(entries, decimal)
    numbers = entries_read.numbers()
    is_missing = ~np.isfinite(numbers)
    odd = _odd_values(entries_read, np.unique(_codes(entries)[is_missing]))
    if odd:
        is_odd = np.isin(_codes(entries), odd)
        n_odd = int(is_odd.sum())
        raise DatasetError(
            f"{where} is numeric in the schema but holds {_values_at(entries, is_odd)} in {n_odd:,} of {n_rows:,} "
            "rows. Correct the rows, make it categorical, or add to missing_texts what means 'no value'."
        )
    is_outside = (numbers < feature.lower) | (numbers > feature.upper)
    is_outside &= ~is_missing
    n_clipped = int(is_outside.sum())
    if is_strict and n_clipped and n_clipped == int((~is_missing).sum()):
        raise DatasetError(
            f"{where} lies outside the schema's bounds [{feature.lower:g}, {feature.upper:g}] in all "
            f"{n_clipped:,} rows, e.g. {numbers[is_outside][0]:g}. Correct the bounds."
        )
    finite = np.clip(numbers, feature.lower, feature.upper)
    finite[is_missing] = np.nan
    return (
        _smallest(finite, feature, has_missing=bool(is_missing.any())),
        int(is_missing.sum()),
        n_clipped,
    )


def _codes(entries: Column) -> NDArray[np.int64]:
    assert entries.codes is not None
    return entries.codes


def _odd_values(entries: Column, codes: NDArray[np.int64]) -> list[int]:
    """Return, of codes without a finite number, those that are neither missing nor infinite."""
    if entries.values.dtype.kind in "biuf":
        return []
    readings = {int(code): read_entry(entries.values[code]) for code in codes if code >= 0}
    return [
        code
        for code, reading in readings.items()
        if reading != MISSING_READING and not isinstance(reading, int | float)
    ]


def _smallest(
    values: NDArray[np.float64], feature: NumericFeature, *, has_missing: bool
) -> NDArray[Any]:
    if not has_missing and (values == np.rint(values)).all():
        for integer in _INTEGER_TYPES:
            limits = np.iinfo(integer)
            if limits.min <= feature.lower and feature.upper <= limits.max:
                return values.astype(integer)
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return single if np.array_equal(single, values, equal_nan=True) else values


def _categorical(
    entries: Column, feature: CategoricalFeature, where: str, is_strict: bool
) -> tuple[NDArray[np.int64], int, int]:
    codes = PublicList(feature.categories).codes(entries)
    is_unlisted = codes == UNSEEN
    n_unlisted = int(is_unlisted.sum())
    n_known = len(feature.categories)
    if n_unlisted and is_strict:
        raise DatasetError(
            f"{where} holds {_values_at(entries, is_unlisted)} in {n_unlisted:,} of {len(codes):,} rows, "
            f"which is not among the schema's {n_known} categories {_some(feature.categories)}. Add it "
            "there, or treat unlisted values alike (unlisted=rest)."
        )
    codes[is_unlisted] = n_known
    is_missing = codes == MISSING
    codes[is_missing] = -1
    return codes, int(is_missing.sum()), n_unlisted


def _labels(entries: Column, schema: FeatureSchema, what: str, unlabelled: str) -> NDArray[Any]:
    """Return the class of each row, negative for a row without a label."""
    where = f"{what}: label column {schema.label!r}"
    codes = PublicList(schema.classes).codes(entries)
    n_rows = len(codes)
    n_missing = int((codes == MISSING).sum())
    if n_missing and (n_missing == n_rows or unlabelled == "error"):
        raise DatasetError(
            f"{where} has no value in {n_missing:,} of {n_rows:,} rows. Drop these rows"
            f"{'' if n_missing == n_rows else ', or ask for it with unlabelled=drop'}."
        )
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


def _values_at(entries: Column, rows: NDArray[np.bool_]) -> str:
    return _some([entries.values[code] for code in np.unique(_codes(entries)[rows])])


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


def named_columns(values: Mapping[str, NDArray[Any]]) -> pa.Table:
    """Return numpy columns as a table.

    Parameters
    ----------
    values : mapping of str to ndarray of shape (n_rows,)
        Columns by name.

    Returns
    -------
    pyarrow.Table
    """
    return pa.table({name: pa.array(column) for name, column in values.items()})
