"""How a table's entries are read: each by itself, whatever its container and type.

A column's type (its dtype, or what a reader of files made of it) is a fact about all of its rows:
one odd entry turns a column of numbers into text. If the type decided how entries compare, one
record would change how all others are read, and no noise covers that. So every entry has one
reading, a function of its value alone:

* text without blanks around it; text that spells a decimal number is that number, "true" and
  "false" in any case are 1 and 0, and bytes are text in UTF-8. So 1, "1", 1.0, " 1", "01", True and
  "True" are read alike;
* whole numbers exactly, others as the nearest double. A floating-point number of 2**53 or more may
  be a rounded one and is equal to no whole number;
* dates and times are their ISO text to the microsecond, those of a time zone in UTC, and text that
  spells one likewise; midnight is left out after a date;
* a complex number with no imaginary part is its real part;
* None, NaN, NaT and NA, the texts "nan" and "NaN" (NumPy writes them beside text) and empty text are
  the missing entry;
* anything else that can be hashed is itself; what cannot be is read as nothing at all.

An entry belongs to the listed value with the same reading. A list with two values of one reading
is refused, and one that lists a missing entry (as "" or "nan") makes all missing entries that value.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import math
import numbers
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNSEEN = -1
"""Code of an entry whose reading is not listed."""

MISSING = -2
"""Code of a missing entry, unless the list has one."""

MISSING_READING = "nan"

_EXACT_BELOW = 2.0**53
_NOTHING = object()

_is_whole = re.compile(r"[+-]?\d+", re.ASCII).fullmatch
_is_number = re.compile(
    r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity)", re.ASCII | re.IGNORECASE
).fullmatch
_is_date = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII
).fullmatch
_is_time = re.compile(r"\d\d:\d\d(?::\d\d(?:\.\d+)?)?", re.ASCII).fullmatch


def read_entry(value: Any) -> Hashable:
    """Return the reading of an entry, equal for entries that are read alike.

    That of a missing entry is :data:`MISSING_READING`.
    """
    if isinstance(value, np.datetime64 | np.timedelta64):
        if np.isnat(value):
            return MISSING_READING
        # Microseconds: item() of finer units is a whole number. Beyond the calendar they wrap around.
        coarse, fine = (value.astype(f"{value.dtype.kind}8[{unit}]") for unit in ("D", "us"))
        if fine.astype(coarse.dtype) != coarse or isinstance(fine.item(), int):
            return _NOTHING
        value = fine.item()
    if isinstance(value, np.generic) and not isinstance(value, np.longdouble):
        value = value.item()
    if isinstance(value, bytes):
        try:
            value = bytes(value).decode()
        except UnicodeDecodeError:
            return bytes(value)
    if isinstance(value, str):
        return _read_text(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, complex) and value.imag == 0:
        value = value.real  # as arrays turn numbers beside a complex one
    if isinstance(value, numbers.Real | Decimal):
        return _read_real(value)
    if _is_missing(value):
        return MISSING_READING
    if isinstance(value, datetime.date | datetime.time):
        return _date_text(value)
    if isinstance(value, datetime.timedelta):
        return datetime.timedelta, (value.days, value.seconds, value.microseconds)
    try:
        hash(value)
    except Exception:
        return _NOTHING
    return type(value), value


def read_number(value: Any) -> float:
    """Return the double nearest to what an entry is read as, infinite beyond their range; NaN for none."""
    reading = read_entry(value)
    if isinstance(reading, int):
        try:
            return float(reading)
        except OverflowError:
            return math.inf if reading > 0 else -math.inf
    if isinstance(reading, float):
        return reading
    if isinstance(reading, tuple) and reading[0] is float:
        return float(reading[1])
    return math.nan


def shown(value: Any) -> str:
    """Spell an entry for a message, in at most 60 characters."""
    is_date = isinstance(value, np.datetime64 | np.timedelta64)
    try:
        text = repr(value.item() if isinstance(value, np.generic) and not is_date else value)
    except Exception:  # a whole number of more digits than Python writes, or a foreign repr
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


@dataclass(frozen=True, slots=True)
class Column:
    """The entries of a column, apart from each other.

    Attributes
    ----------
    values : ndarray
        The entries, or the distinct ones.
    codes : ndarray of int, shape (n_rows,), or None
        Where `values` are the distinct entries, the position of each row's, negative for a missing
        one.
    is_categorical : bool
        Whether the container says that the column holds categories.
    """

    values: NDArray[Any]
    codes: NDArray[Any] | None = None
    is_categorical: bool = False

    def __len__(self) -> int:
        return len(self.values if self.codes is None else self.codes)

    def entry(self, row: int) -> Any:
        """Return the entry of a row; None for a missing one."""
        if self.codes is None:
            return self.values[row]
        return self.values[self.codes[row]] if self.codes[row] >= 0 else None

    def entries(self) -> NDArray[Any]:
        """Return the entries of all rows, None for a missing one."""
        return self._spread(self.values, None)

    def numbers(self) -> NDArray[np.float64]:
        """Return a copy of the entries as numbers, shape (n_rows,); NaN where one is none."""
        if self.values.dtype.kind in "biuf":
            found = self.values.astype(np.float64)
        else:
            values = _single_values(self.values)
            found = np.fromiter(map(read_number, values), np.float64, count=len(values))
        return self._spread(found, math.nan)

    def _spread(self, of_values: NDArray[Any], missing: Any) -> NDArray[Any]:
        if self.codes is None:
            return of_values
        return np.append(of_values, np.array(missing, of_values.dtype))[
            np.where(self.codes < 0, len(of_values), self.codes)
        ]


class PublicList:
    """The values that a column may hold, and the code of each: its position.

    Parameters
    ----------
    values : sequence of hashable
        At least one.

    Raises
    ------
    ValueError
        When two of them have the same reading, or one has none.
    """

    def __init__(self, values: Sequence[Hashable]) -> None:
        self._code_of: dict[Hashable, int] = {}
        for code, value in enumerate(values):
            reading = read_entry(value)
            if reading is _NOTHING:
                raise ValueError(f"{shown(value)} cannot be compared with the entries of a table")
            first = self._code_of.setdefault(reading, code)
            if first != code:
                raise ValueError(f"{shown(values[first])} and {shown(value)} are read alike")

    def code(self, value: Any) -> int:
        """Return the code of an entry, :data:`MISSING` or :data:`UNSEEN`."""
        reading = read_entry(value)
        return self._code_of.get(reading, MISSING if reading == MISSING_READING else UNSEEN)

    def codes(self, column: Column) -> NDArray[np.int64]:
        """Return the codes of a column's entries, shape (n_rows,)."""
        missing = self.code(None)
        values = column.values
        if values.dtype.kind in "biu":
            found = self._codes_of_whole(values)
        elif values.dtype.kind == "f":
            found = self._codes_of_floats(values.astype(np.float64), missing)
        else:
            # Text recurs and is read once. Values of other types may be equal and read differently.
            known: dict[str, int] = {}
            codes = []
            for value in _single_values(values):
                if type(value) is not str:
                    codes.append(self.code(value))
                    continue
                code = known.get(value)
                if code is None:
                    code = known[value] = self.code(value)
                codes.append(code)
            found = np.array(codes, dtype=np.int64)
        return column._spread(found, missing)

    def _codes_of_whole(self, values: NDArray[Any]) -> NDArray[np.int64]:
        values = values.astype(np.uint8) if values.dtype.kind == "b" else values
        limits = np.iinfo(values.dtype)
        pairs = [
            (reading, code)
            for reading, code in self._code_of.items()
            if isinstance(reading, int) and limits.min <= reading <= limits.max
        ]
        return _find(values, pairs)

    def _codes_of_floats(self, values: NDArray[np.float64], missing: int) -> NDArray[np.int64]:
        pairs = []
        for reading, code in self._code_of.items():
            if isinstance(reading, float) or (
                isinstance(reading, int) and abs(reading) < _EXACT_BELOW
            ):
                pairs.append((reading, code))
            elif isinstance(reading, tuple) and reading[0] is float:
                pairs.append((reading[1], code))
        return np.where(np.isnan(values), missing, _find(values, pairs))


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of one length.

    Attributes
    ----------
    names : tuple of str or None
        Names of the columns, where the container names them.
    has_text_names : bool
        Whether all names were text to begin with.
    columns : tuple of Column
        In the container's order.
    n_rows : int
        Their length.
    """

    names: tuple[str, ...] | None
    has_text_names: bool
    columns: tuple[Column, ...]
    n_rows: int


def is_frame(X: Any) -> bool:
    """Whether a container has named columns: a frame of pandas or polars, or a table of Arrow."""
    return _column_names(X) is not None


def read_table(X: Any) -> Table:
    """Take a table apart into columns.

    Parameters
    ----------
    X : frame or array-like of shape (n_rows, n_features)
        A frame of pandas or polars, a table of Arrow, an array or a list of rows.

    Raises
    ------
    ValueError
        When there are not two dimensions.
    """
    names = _column_names(X)
    if names is not None:
        if hasattr(X, "iloc"):
            columns = [read_column(X.iloc[:, j]) for j in range(len(names))]
        else:
            in_order = X.get_columns() if hasattr(X, "get_columns") else X.columns
            columns = [read_column(column) for column in in_order]
        has_text_names = all(isinstance(name, str) for name in names)
        n_rows = len(columns[0]) if columns else len(X)
        return Table(tuple(map(str, names)), has_text_names, tuple(columns), n_rows)
    array = rows_apart(X)
    if array.ndim != 2:
        raise ValueError(f"X must be a table (2 dimensions), got {array.ndim}.")
    columns = [Column(array[:, j]) for j in range(array.shape[1])]
    return Table(None, False, tuple(columns), len(array))


def read_column(values: Any) -> Column:
    """Take the entries of one column, or of labels, out of their container.

    Parameters
    ----------
    values : array-like of shape (n_rows,)
        A series of pandas or polars, an array of Arrow or NumPy, or a list.
    """
    if isinstance(values, np.ndarray):
        return Column(_unmasked(values))
    if hasattr(values, "cat") and hasattr(values.cat, "codes"):
        levels = _objects(values.cat.categories)
        return Column(levels, np.asarray(values.cat.codes, dtype=np.int64), True)
    if hasattr(values, "iloc"):
        dtype = getattr(values, "dtype", None)
        is_plain = isinstance(dtype, np.dtype) and dtype.kind in "biuf"
        return Column(values.to_numpy() if is_plain else np.asarray(values, dtype=object))
    if hasattr(values, "dictionary_encode"):
        return _arrow_column(values)
    if hasattr(values, "null_count") and hasattr(values, "to_list"):
        is_plain = values.dtype.is_integer() or values.dtype.is_float()
        if is_plain and not values.null_count() and "128" not in str(values.dtype):
            return Column(values.to_numpy())
        return Column(
            _objects(values.to_list()), None, str(values.dtype) in ("Categorical", "Enum")
        )
    return Column(_objects(values) if isinstance(values, list | tuple) else np.asarray(values))


def rows_apart(X: Any) -> NDArray[Any]:
    """Return an array of rows in which entries keep their own types: of objects, for a list.

    As an array of one type, a list with a single odd entry would read differently as a whole.
    """
    if hasattr(X, "dtype"):
        return _unmasked(np.asanyarray(X))
    if isinstance(X, list | tuple):
        rows = [row.tolist() if isinstance(row, np.ma.MaskedArray) else row for row in X]
        if rows and all(isinstance(row, list | tuple) for row in rows):
            width = len(rows[0])
            if all(len(row) == width for row in rows):
                entries = _objects(itertools.chain.from_iterable(rows), len(rows) * width)
                if len(entries) and all(map(_is_nested, entries)):
                    raise ValueError(
                        "X must be a table (2 dimensions), got lists of lists of lists."
                    )
                return entries.reshape(len(rows), width)
        X = rows
    return np.asarray(X, dtype=object)


def _column_names(X: Any) -> Sequence[Any] | None:
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        return list(X.columns)
    if hasattr(X, "get_columns") and hasattr(X, "columns"):
        return list(X.columns)
    if hasattr(X, "column_names") and hasattr(X, "schema"):
        return list(X.column_names)
    return None


def _arrow_column(values: Any) -> Column:
    if hasattr(values, "combine_chunks"):
        values = values.combine_chunks()
        if hasattr(values, "num_chunks"):
            values = values.chunk(0) if values.num_chunks else values.slice(0, 0).cast(values.type)
    kind = str(values.type)
    is_categorical = kind.startswith("dictionary")
    if kind in ("string", "large_string", "string_view"):
        values = values.dictionary_encode()
        kind = str(values.type)
    if kind.startswith("dictionary"):
        codes = values.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
        return Column(_objects(values.dictionary.to_pylist()), codes, is_categorical)
    is_plain = kind.removeprefix("u").startswith("int") or kind in ("float", "double", "halffloat")
    if is_plain and not values.null_count:
        return Column(values.to_numpy(zero_copy_only=False))
    return Column(_objects(values.to_pylist()))


def _objects(values: Any, count: int = -1) -> NDArray[Any]:
    # Not np.array: entries that are lists would become dimensions.
    if count < 0 and hasattr(values, "__len__"):
        count = len(values)
    return np.fromiter(values, dtype=object, count=count)


def _single_values(values: NDArray[Any]) -> Sequence[Any]:
    # tolist() of dates in nanoseconds gives whole numbers.
    return list(values) if values.dtype.kind in "mMV" else values.tolist()


def _find(values: NDArray[Any], pairs: list[tuple[Any, int]]) -> NDArray[np.int64]:
    if not pairs:
        return np.full(len(values), UNSEEN, dtype=np.int64)
    pairs.sort()
    reference = np.array([reading for reading, _ in pairs], dtype=values.dtype)
    codes = np.array([code for _, code in pairs], dtype=np.int64)
    place = np.searchsorted(reference, values).clip(0, len(pairs) - 1)
    return np.where(reference[place] == values, codes[place], UNSEEN)


def _unmasked(array: NDArray[Any]) -> NDArray[Any]:
    """Return a masked array as one of objects in which masked entries are None."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    data = np.ma.getdata(array)
    entries = _objects(_single_values(data.ravel())).reshape(data.shape)
    entries[np.ma.getmaskarray(array)] = None
    return entries


def _is_nested(entry: Any) -> bool:
    return isinstance(entry, list | tuple | np.ndarray)


def _read_text(text: str) -> Hashable:
    text = text.strip()
    if _is_whole(text):
        try:
            return int(text)
        except ValueError:  # more digits than Python takes
            return text
    if _is_number(text):
        return _read_real(float(text))
    if text in ("", "nan", "NaN"):
        return MISSING_READING
    lowered = text.lower()
    if lowered in ("true", "false"):
        return int(lowered == "true")
    if _is_date(text):
        with contextlib.suppress(ValueError):
            return _date_text(datetime.datetime.fromisoformat(text))
    if _is_time(text):
        with contextlib.suppress(ValueError):
            return _date_text(datetime.time.fromisoformat(text))
    return text


def _read_real(value: Any) -> Hashable:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return MISSING_READING
    if math.isnan(number):
        return MISSING_READING
    if math.isinf(number):
        return number
    if number.is_integer():
        if abs(number) < _EXACT_BELOW:
            # What float() rounded to a whole number may be none.
            return int(number) if value == int(number) else number
        if isinstance(value, Decimal | Fraction) and abs(number) < 1e40:
            return int(value) if value == int(value) else (float, number)
        return float, number
    return number


def _is_missing(value: Any) -> bool:
    try:
        return value is None or value is np.ma.masked or bool(value != value)
    except Exception:  # NA has no truth value, nor has an array
        return not hasattr(value, "__len__")


def _date_text(value: datetime.date | datetime.time) -> str:
    if not isinstance(value, datetime.datetime):
        return value.isoformat()
    if value.utcoffset() is not None:
        value = value.astimezone(datetime.UTC)
    # Not the method of a subclass, which may know nanoseconds.
    return datetime.datetime.isoformat(value, " ").removesuffix(" 00:00:00")
