"""Rows checked against their schema and held in the smallest types.

A table may hold anything; what leaves this module fits the schema or is refused with the column,
the value and the number of rows. Every rule looks at one entry and the public schema only, except
the choice of a storage type, which changes no value.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature
from lumberjack_bench.datasets.dataset import DatasetError, RowCounts

UNLISTED_LEVEL = "(not in the schema)"
"""Level of a categorical column that stands for every value the schema does not list."""

_INTEGER_TYPES = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64)


def compact_rows(
    table: pa.Table, schema: FeatureSchema, *, what: str, is_strict: bool
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

    Returns
    -------
    X : DataFrame of shape (n_rows, n_features)
        As :class:`~lumberjack_bench.datasets.dataset.Dataset` holds it.
    y : ndarray of shape (n_rows,), int8 or int16
        Class codes.
    counts : RowCounts
        Entries that did not fit.

    Raises
    ------
    DatasetError
        When the table does not fit the schema.
    """
    check_columns(table.column_names, schema, what=what)
    n_rows = table.num_rows
    if not n_rows:
        raise DatasetError(f"{what}: the table has no rows.")
    y = _labels(table.column(schema.label), schema, what)
    columns: dict[str, Any] = {}
    clipped: dict[str, int] = {}
    unseen: dict[str, int] = {}
    filled: dict[str, int] = {}
    for feature in schema.features:
        where = f"{what}: column {feature.name!r}"
        if isinstance(feature, NumericFeature):
            values, missing, n_clipped = _numeric(
                table.column(feature.name), feature, where, is_strict
            )
            if n_clipped:
                clipped[feature.name] = n_clipped
            columns[feature.name] = values
        else:
            codes, missing, n_unseen = _categorical(
                table.column(feature.name), feature, where, is_strict
            )
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
    """Refuse duplicate columns and name the ones that are missing.

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
        When a column repeats or is missing.
    """
    repeated = sorted({name for name in present if list(present).count(name) > 1})
    if repeated:
        raise DatasetError(
            f"{what}: columns appear more than once: {repeated}. Rename or drop the copies."
        )
    absent = [name for name in (*schema.feature_names, schema.label) if name not in present]
    if absent:
        raise DatasetError(
            f"{what}: missing columns {absent}; the table has {_some(list(present))}. "
            "Column names must be those of the schema."
        )


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
    levels: list[Hashable] = [*feature.categories, *([UNLISTED_LEVEL] if has_unlisted else [])]
    index = pd.Index(np.array(levels, dtype=object)).infer_objects()
    return pd.Categorical.from_codes(codes, categories=index)  # type: ignore[arg-type]


def _numeric(
    column: pa.ChunkedArray, feature: NumericFeature, where: str, is_strict: bool
) -> tuple[NDArray[Any], int, int]:
    n_rows = len(column)
    if _is_text(column.type):
        text = pc.utf8_trim_whitespace(_as_text(column))
        numbers = pd.to_numeric(text.to_pandas(), errors="coerce").to_numpy(dtype=np.float64)
        bad = np.isnan(numbers) & np.asarray(pc.is_valid(text))
        if bad.any():
            raise DatasetError(
                f"{where} is numeric in the schema but holds {_examples(text.filter(pa.array(bad)))} "
                f"in {int(bad.sum()):,} of {n_rows:,} rows. Correct the rows, or make it categorical."
            )
    elif pa.types.is_boolean(column.type) or _is_number(column.type):
        numbers = column.cast(pa.float64()).to_numpy()
    else:
        raise DatasetError(
            f"{where} is numeric in the schema but has type {column.type} in all {n_rows:,} rows. "
            "Turn it into numbers."
        )
    numbers = np.array(numbers, dtype=np.float64)
    is_missing = ~np.isfinite(numbers)
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
    column: pa.ChunkedArray, feature: CategoricalFeature, where: str, is_strict: bool
) -> tuple[NDArray[np.int64], int, int]:
    codes, levels, level_codes = _coded(column, feature.categories)
    is_unlisted = codes == len(feature.categories)
    n_unlisted = int(is_unlisted.sum())
    if n_unlisted and is_strict:
        known = len(feature.categories)
        bad = [level for level, code in zip(levels, level_codes, strict=True) if code == known]
        raise DatasetError(
            f"{where} holds {_some(bad)} in {n_unlisted:,} of {len(codes):,} rows, which is not among "
            f"the schema's {known} categories {_some(list(feature.categories))}. Add it there, or "
            "treat unlisted values alike (unlisted=rest)."
        )
    return codes, int((codes < 0).sum()), n_unlisted


def _labels(column: pa.ChunkedArray, schema: FeatureSchema, what: str) -> NDArray[Any]:
    where = f"{what}: label column {schema.label!r}"
    codes, levels, level_codes = _coded(column, schema.classes)
    n_missing = int((codes < 0).sum())
    if n_missing:
        raise DatasetError(
            f"{where} has no value in {n_missing:,} of {len(codes):,} rows. Drop these rows."
        )
    unknown = codes == schema.n_classes
    if unknown.any():
        bad = [
            level
            for level, code in zip(levels, level_codes, strict=True)
            if code == schema.n_classes
        ]
        raise DatasetError(
            f"{where} holds {_some(bad)} in {int(unknown.sum()):,} of {len(codes):,} rows, which is "
            f"not among the schema's classes {_some(list(schema.classes))}. Add it, or drop the rows."
        )
    present = np.unique(codes)
    if len(present) < 2:
        raise DatasetError(
            f"{where} has only one class: all {len(codes):,} rows are "
            f"{schema.classes[int(present[0])]!r}. A classifier needs at least two."
        )
    return codes.astype(np.int8 if schema.n_classes <= 127 else np.int16)


def _coded(
    column: pa.ChunkedArray, known: tuple[Hashable, ...]
) -> tuple[NDArray[np.int64], list[Any], list[int]]:
    """Return codes (-1 missing, len(known) unlisted), the levels present, and their codes."""
    if _is_text(column.type):
        column = pc.utf8_trim_whitespace(_as_text(column))
    elif pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = pc.dictionary_encode(column).combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    levels = encoded.dictionary.to_pylist()
    lookup = _Lookup(known)
    level_codes = [lookup.code(level) for level in levels]
    positions = encoded.indices.fill_null(len(levels)).to_numpy(zero_copy_only=False)
    table = np.array([*level_codes, -1], dtype=np.int64)
    return table[positions], levels, level_codes


class _Lookup:
    """Position of a value among known ones, where text may spell a number or a truth value."""

    def __init__(self, known: tuple[Hashable, ...]) -> None:
        self.n_known = len(known)
        self.by_value = {(isinstance(v, bool), v): code for code, v in enumerate(known)}
        self.by_text = {str(v).lower() if isinstance(v, bool) else str(v): code
                        for code, v in enumerate(known)}  # fmt: skip

    def code(self, level: Any) -> int:
        if level is None or level != level:
            return -1
        key = (isinstance(level, bool), level)
        if key in self.by_value:
            return self.by_value[key]
        if isinstance(level, str):
            for text in (level, level.lower() if level.lower() in ("true", "false") else level):
                if text in self.by_text:
                    return self.by_text[text]
            try:
                return self.by_value.get((False, float(level)), self.n_known)
            except ValueError:
                return self.n_known
        whole = isinstance(level, float) and level.is_integer()
        text = (
            str(level).lower() if isinstance(level, bool) else str(int(level) if whole else level)
        )
        return self.by_text.get(text, self.by_value.get((False, level), self.n_known))


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return str(kind) in ("string", "large_string", "string_view")


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.large_string())


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    )


def _examples(values: pa.ChunkedArray) -> str:
    return _some(pc.unique(values).to_pylist())


def _some(values: Sequence[Any], limit: int = 5) -> str:
    """Spell the first few of many values; a single one stands without brackets."""
    if len(values) == 1:
        return repr(values[0])
    shown = ", ".join(repr(value) for value in values[:limit])
    return f"[{shown}{f', ... {len(values)} in all' if len(values) > limit else ''}]"


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
