"""What a draft of a schema has to know about a column: its values, spellings and rows."""

from __future__ import annotations

import datetime
import re
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lumberjack.reading import MISSING_READING, Column, read_entry
from lumberjack.schema import NumericFeature, SchemaError
from lumberjack_bench.datasets.dataset import DatasetError
from lumberjack_bench.datasets.entries import (
    EntryOptions,
    read_entries,
    with_decimal_point,
    with_decimal_points,
)

_has_leading_zero = re.compile(r"\s*[-+]?0\d").match
_is_date_text = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))"
    r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AaPp][Mm])?(?:Z| ?[-+]\d{2}:?\d{2})?)?"
    r"|\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?"
).fullmatch


@dataclass(frozen=True)
class SeenColumn:
    """A column as a draft sees it.

    Attributes
    ----------
    entries : Column
    values : list
        One entry of each reading, missing ones apart.
    spellings : list of list of str
        All texts in which each of them is written; none where it is no text.
    rows : ndarray of int64, shape (n_rows,)
        Which of them each row has; -1 where it is missing.
    decimal : {".", ","}
        What separates the decimals of a number in text.
    """

    entries: Column
    values: list[Any]
    spellings: list[list[str]]
    rows: NDArray[np.int64]
    decimal: str

    @property
    def n_missing(self) -> int:
        """Number of rows without a value."""
        return int((self.rows < 0).sum())

    @cached_property
    def are_numbers(self) -> list[bool]:
        """Which values are numbers in every way they are written."""
        if self.entries.values.dtype.kind in "iuf":
            return [True] * len(self.values)
        return [
            all(is_number(text, self.decimal) for text in texts or [value])
            for value, texts in zip(self.values, self.spellings, strict=True)
        ]

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The number of each row, NaN for none."""
        return with_decimal_points(self.entries, self.decimal).numbers()

    @property
    def finite(self) -> NDArray[np.float64]:
        """The finite ones of the numbers."""
        return self.numbers[np.isfinite(self.numbers)]

    @cached_property
    def is_numeric(self) -> bool:
        """Whether the column makes a numeric feature."""
        return not self.entries.is_categorical and all(self.are_numbers) and len(self.finite) > 0

    def repeats(self, other: SeenColumn) -> bool:
        """Whether the column holds the same as another, in other words perhaps."""
        n_others = len(other.values)
        n_pairs = len(np.unique(self.rows * n_others + other.rows))
        return n_pairs == len(np.unique(self.rows)) == n_others

    def numbers_rows(self) -> bool:
        """Whether the column holds consecutive numbers, each once."""
        n_rows = len(self.rows)
        if len(self.values) < n_rows or not self.is_numeric:
            return False
        numbers = np.sort(self.numbers)
        return np.array_equal(numbers, numbers[0] + np.arange(n_rows))

    def why_of_no_use(self) -> str:
        """Return why the column makes no feature, empty if it does."""
        if not self.values:
            return "has no value in any row"
        if all(map(_is_date, self.values)):
            return "holds dates or times; turn them into numbers, such as days since a fixed day"
        if self.is_numeric:
            try:
                NumericFeature("it", self.finite.min(), self.finite.max())
            except SchemaError as error:
                return f"cannot be used: {str(error).partition(': ')[2].partition('. ')[0]}"
        elif len(self.values) == len(self.rows) and not any(self.are_numbers):
            return "holds another text in every row, as names and keys do"
        return ""


def see_column(column: pa.ChunkedArray, options: EntryOptions) -> SeenColumn:
    """Take a column apart, or say why it cannot be used (``it holds ...``)."""
    entries = read_entries(column, options, where="it")
    values, codes = entries.values, entries.codes
    assert codes is not None
    if values.dtype.kind in "biuf":
        # Fast, as no two numbers of one type are read alike.
        values, places = np.unique(values, return_inverse=True)
        n_numbers = int((values == values).sum())  # NaN comes last
        rows = np.append(places, -1)[codes]
        rows[rows == n_numbers] = -1
        kept = values[:n_numbers].tolist()
        return SeenColumn(entries, kept, [[] for _ in kept], rows, options.decimal)
    kept = []
    spellings: list[list[str]] = []
    known: dict[Hashable, int] = {}
    position_of = np.full(len(values) + 1, -1)
    for code in np.unique(codes[codes >= 0]):
        value, reading = values[code], read_entry(values[code])
        if reading == MISSING_READING:
            continue
        if not _is_text_or_number(reading):
            raise DatasetError(f"it holds values of type {type(value).__name__}")
        position = position_of[code] = known.setdefault(reading, len(known))
        if position == len(kept):
            kept.append(value)
            spellings.append([])
        if isinstance(value, str) and value.strip() not in spellings[position]:
            spellings[position].append(value.strip())
    return SeenColumn(entries, kept, spellings, position_of[codes], options.decimal)


def is_number(value: Any, decimal: str = ".") -> bool:
    """Whether a value is a number, as opposed to a word, a truth value or a code like 007."""
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        value = with_decimal_point(value, decimal).strip()
        if _has_leading_zero(value) or value.lower() in ("true", "false"):
            return False
    reading = read_entry(value)
    return not isinstance(reading, str) and _is_text_or_number(reading)


def _is_text_or_number(reading: Hashable) -> bool:
    is_large = isinstance(reading, tuple) and reading[0] is float
    return isinstance(reading, str | int | float) or is_large


def _is_date(value: Any) -> bool:
    if isinstance(value, str):
        return _is_date_text(value.strip()) is not None
    return isinstance(value, datetime.date | datetime.time)
