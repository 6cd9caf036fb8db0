"""A first draft of a schema, read from a table.

A draft is no schema yet: whatever it takes from the rows (bounds, categories, classes) would leak
into every model, so each such value is marked for somebody to replace by public knowledge.
"""

from __future__ import annotations

import datetime
import itertools
import json
import math
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml
from numpy.typing import NDArray

from lumberjack.reading import MISSING_READING, Column, read_entry, read_number, shown
from lumberjack.schema import NumericFeature, SchemaError
from lumberjack_bench.datasets.compact import (
    compact_rows,
    read_entries,
    with_decimal_point,
    with_decimal_points,
)
from lumberjack_bench.datasets.csv_files import SEPARATORS, read_header
from lumberjack_bench.datasets.dataset import DatasetError
from lumberjack_bench.datasets.entry_options import EntryOptions, entry_options
from lumberjack_bench.datasets.schema_files import parse_schema
from lumberjack_bench.datasets.table import column_names, is_text_table, read_file

MARK = "# check: read from data"

MISSING_ANYWHERE = ("?", "na", "n/a", "n.a.", "#n/a", "<na>", "nan", "null")
"""Texts, in any case, that are taken for a missing entry in every column."""

MISSING_AMONG_NUMBERS = ("-", "--", ".", "none", "nil", "missing", "unknown")
"""Texts, in any case, that are so where all other entries of the column are numbers."""

FEWEST_ROWS = 10
"""Rows with a label that a run needs."""

_MANY = 100
_HEADER = f"""\
# Draft of a schema. Bounds, categories and classes must be public knowledge: a value taken from
# the rows reveals something about them, and the privacy guarantee does not cover it.
# Replace or confirm each value marked "{MARK}", then delete the mark.
"""

_is_index_name = re.compile(r"|Unnamed: \d+|__index_level_\d+__").fullmatch
_has_leading_zero = re.compile(r"\s*[-+]?0\d").match
_is_date_text = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))"
    r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AaPp][Mm])?(?:Z| ?[-+]\d{2}:?\d{2})?)?"
    r"|\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?"
).fullmatch


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft of a schema file.

    Attributes
    ----------
    text : str
        YAML, with :data:`MARK` behind every value that was read from the rows.
    notes : tuple of str
        What somebody should know about it, one line each.
    """

    text: str
    notes: tuple[str, ...]


def draft_schema(path: Path, label: str, *, decimal: str = ".") -> Draft:
    """Draft a schema file for a table.

    Numbers become numeric features with the range seen, text and truth values become categorical
    features with the values seen. Numbers written with leading zeros count as text. Columns that
    are of no use as they stand (no value at all, dates, numbers of the rows) are left out, with a
    comment in their place.

    Parameters
    ----------
    path : Path
        A csv or parquet file.
    label : str
        The column to predict.
    decimal : {".", ","}
        What separates the decimals of a number in text.

    Returns
    -------
    Draft
        The table loader takes the same table with it.

    Raises
    ------
    DatasetError
        When the file cannot be read, lacks the label column, or its rows or labels give nothing to
        learn from.
    """
    what = path.name
    options = entry_options({"decimal": decimal}, {"missing_texts": []}, what=what)
    names = column_names(path, what=what)
    notes = []
    if is_text_table(path):
        separator = SEPARATORS[read_header(path, what=what).separator]
        notes.append(f"{what}: read as columns separated by {separator}")
    left_out = _unusable_names(names, label, path)
    table = read_file(path, [name for name in names if name not in left_out], what=what)
    if not table.num_rows:
        raise DatasetError(f"{what}: the table has no rows.")
    usable: dict[str, _Seen] = {}
    for name in table.column_names:
        try:
            usable[name] = _see(table.column(name), options)
        except DatasetError as error:
            left_out[name] = str(error).removeprefix("it ").partition(". ")[0].rstrip(".")
            if name == label:
                raise DatasetError(f"{what}: label column {label!r} {left_out[name]}.") from None
    options, marker_comment, marker_note = _with_missing_texts(usable, label, options)
    table = table.select(list(usable))
    labels = _see(table.column(label), options)
    n_rows, n_unlabelled = table.num_rows, labels.n_missing
    if n_unlabelled:
        options = replace(options, unlabelled="drop")
        table = table.filter(pa.array(labels.rows >= 0))
        labels = _see(table.column(label), options)
    _check_labels(labels, label, what)
    features: list[str] = []
    n_features = 0
    for name in dict.fromkeys(names):
        if name == label:
            continue
        if name not in left_out:
            seen = _see(table.column(name), options)
            # Of all rows: those without a label would leave gaps.
            reason = "numbers the rows" if _numbers_rows(usable[name]) else _of_no_use(seen)
            if not reason:
                lines, hints = _feature(name, seen, labels)
                features += lines
                notes += [f"column {_scalar(name)} {hint}" for hint in hints]
                n_features += 1
                continue
            left_out[name] = reason
        left_out[name] = " ".join(left_out[name].split())
        features.append(f"  # left out: {_scalar(name)} {left_out[name]}")
        notes.append(f"column {_scalar(name)} is left out: it {left_out[name]}")
    if not n_features:
        reasons = "; ".join(f"{name!r} {reason}" for name, reason in left_out.items())
        raise DatasetError(f"{what}: no column is left to learn from: {reasons}.")
    about = []
    if marker_note:
        about.append(f"# taken for a missing value: {marker_comment}")
        about.append(f"missing_texts: [{', '.join(map(_scalar, options.missing_texts))}] {MARK}")
        notes.append(f"taken for a missing value: {marker_note}")
    if decimal != ".":
        about.append(f"decimal: {_scalar(decimal)}")
    if n_unlabelled:
        about.append("unlabelled: drop # rows without a label are left out")
        notes.append(
            f"{n_unlabelled:,} of {n_rows:,} rows have no label; a run with this draft leaves them out"
        )
    text = "\n".join(
        [
            _HEADER.rstrip(),
            f"name: {_scalar(Path(path.name.removesuffix('.gz')).stem)}",
            'citation: "" # where the public facts below come from',
            f"label: {_scalar(label)}",
            *about,
            "classes:",
            *_value_lines(labels, "  "),
            "features:",
            *features,
        ]
    )
    text += "\n"
    _check_draft(text, table, what)
    return Draft(text, tuple(notes))


def _unusable_names(names: list[str], label: str, path: Path) -> dict[str, str]:
    """Return the columns that their names rule out, and why."""
    what = path.name
    if label not in names:
        hint = ""
        if len(names) == 1 and is_text_table(path):
            hint = " Columns must be separated by commas, semicolons or tabs."
        raise DatasetError(f"{what}: no label column {label!r}; the table has {names}.{hint}")
    if len(names) < 2:
        raise DatasetError(f"{what}: the table has no column besides the label.")
    if names.count(label) > 1:
        raise DatasetError(f"{what}: the label column {label!r} appears more than once.")
    unusable = {
        name: "is named more than once; rename the copies" if name else "has no name"
        for name in names
        if names.count(name) > 1
    }
    return unusable | {
        name: "has no name, like the index that DataFrame.to_csv writes"
        for name in names
        if name != label and _is_index_name(name)
    }


@dataclass(frozen=True)
class _Seen:
    """A column as a draft sees it.

    Attributes
    ----------
    entries : Column
        Its entries.
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
        return int((self.rows < 0).sum())

    @cached_property
    def are_numbers(self) -> list[bool]:
        """Which values are numbers in every way they are written."""
        if self.entries.values.dtype.kind in "iuf":
            return [True] * len(self.values)
        return [
            all(_is_number(text, self.decimal) for text in texts or [value])
            for value, texts in zip(self.values, self.spellings, strict=True)
        ]

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The number of each row, NaN for none."""
        return with_decimal_points(self.entries, self.decimal).numbers()

    @cached_property
    def is_numeric(self) -> bool:
        """Whether the column makes a numeric feature."""
        return (
            not self.entries.is_categorical
            and all(self.are_numbers)
            and bool(np.isfinite(self.numbers).any())
        )


def _see(column: pa.ChunkedArray, options: EntryOptions) -> _Seen:
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
        return _Seen(entries, kept, [[] for _ in kept], rows, options.decimal)
    kept = []
    spellings: list[list[str]] = []
    known: dict[Hashable, int] = {}
    position_of = np.full(len(values) + 1, -1)
    for code in np.unique(codes[codes >= 0]):
        value, reading = values[code], read_entry(values[code])
        if reading == MISSING_READING:
            continue
        is_large = isinstance(reading, tuple) and reading[0] is float
        if not isinstance(reading, str | int | float) and not is_large:
            raise DatasetError(f"it holds values of type {type(value).__name__}")
        position = position_of[code] = known.setdefault(reading, len(known))
        if position == len(kept):
            kept.append(value)
            spellings.append([])
        if isinstance(value, str) and value.strip() not in spellings[position]:
            spellings[position].append(value.strip())
    return _Seen(entries, kept, spellings, position_of[codes], options.decimal)


def _with_missing_texts(
    columns: Mapping[str, _Seen], label: str, options: EntryOptions
) -> tuple[EntryOptions, str, str]:
    """Return options that name the texts taken for missing, and where they stand.

    In words: for the draft, and with numbers of rows, which belong to nobody but the data holder.
    """
    places: dict[str, list[str]] = {}
    counts: dict[str, list[str]] = {}
    for name, seen in columns.items():
        markers = {
            position: texts
            for position, texts in enumerate(seen.spellings)
            if texts and texts[0].lower() in MISSING_ANYWHERE
        }
        others = {
            position: texts
            for position, texts in enumerate(seen.spellings)
            if texts and texts[0].lower() in MISSING_AMONG_NUMBERS
        }
        n_words = len(markers) + len(others)
        if others and name != label and sum(seen.are_numbers) == len(seen.values) - n_words > 0:
            markers |= others
        for position, texts in markers.items():
            n_rows = int((seen.rows == position).sum())
            places.setdefault(texts[0], []).append(_scalar(name))
            counts.setdefault(texts[0], []).append(
                f"{_scalar(name)} ({n_rows:,} of {len(seen.rows):,} rows)"
            )
    comment, note = (
        "; ".join(f"{_scalar(text)} in {', '.join(where)}" for text, where in each.items())
        for each in (places, counts)
    )
    return replace(options, missing_texts=tuple(places)), comment, note


def _check_labels(labels: _Seen, label: str, what: str) -> None:
    n_rows = len(labels.rows)
    if not n_rows:
        raise DatasetError(f"{what}: label column {label!r} has no value in any row.")
    if n_rows < FEWEST_ROWS:
        raise DatasetError(
            f"{what}: the table has {n_rows} rows with a label; a run needs at least {FEWEST_ROWS}."
        )
    if len(labels.values) == 1:
        raise DatasetError(
            f"{what}: label column {label!r} has one class only: all {n_rows:,} rows are "
            f"{shown(labels.values[0])}. A classifier needs at least two."
        )
    if len(labels.values) > _MANY:
        raise DatasetError(
            f"{what}: label column {label!r} has {len(labels.values):,} different values in "
            f"{n_rows:,} rows; classes are needed, so group them first."
        )


def _numbers_rows(seen: _Seen) -> bool:
    n_rows = len(seen.rows)
    if len(seen.values) < n_rows or not seen.is_numeric:
        return False
    numbers = np.sort(seen.numbers)
    return np.array_equal(numbers, numbers[0] + np.arange(n_rows))


def _of_no_use(seen: _Seen) -> str:
    """Return why a column is left out, empty if it is not."""
    n_rows = len(seen.rows)
    if not seen.values:
        return "has no value in any row"
    if all(map(_is_date, seen.values)):
        return "holds dates or times; turn them into numbers, such as days since a fixed day"
    if seen.is_numeric:
        finite = seen.numbers[np.isfinite(seen.numbers)]
        try:
            NumericFeature("it", finite.min(), finite.max())
        except SchemaError as error:
            return f"cannot be used: {str(error).partition(': ')[2].partition('. ')[0]}"
        return ""
    if len(seen.values) == n_rows and not any(seen.are_numbers):
        return "holds another text in every row, as names and keys do"
    return ""


def _feature(name: str, seen: _Seen, labels: _Seen) -> tuple[list[str], list[str]]:
    """Return the lines of a feature, and what somebody should know about it."""
    hints = []
    if _repeats(seen, labels):
        hints.append("repeats the label; leave it out unless it is known before the label")
    if seen.is_numeric:
        finite = seen.numbers[np.isfinite(seen.numbers)]
        has_missing = len(finite) < len(seen.numbers)
        lower, upper = _plain(finite.min()), _plain(finite.max())
        if len(seen.rows) > 2 and (seen.numbers[1:] > seen.numbers[:-1]).all():
            hints.append("grows from row to row; leave it out if it numbers or orders them")
        lines = [f"    numeric: [{_scalar(lower)}, {_scalar(upper)}] {MARK}"]
        fill: Any = lower
    else:
        has_missing = seen.n_missing > 0
        words = list(itertools.compress(seen.values, np.logical_not(seen.are_numbers)))
        if words and all("," in str(value) and _is_number(value, ",") for value in words):
            hints.append("looks like numbers with decimal commas; draft again with --decimal ,")
        elif (
            sum(seen.are_numbers) > len(words) > 0
            and all(isinstance(read_entry(value), str) for value in words)
            and not seen.entries.is_categorical
        ):
            example = _scalar(_written(words[0], is_number=False))
            hints.append(
                f"would be numeric without {example}"
                f"{f' and {len(words) - 1} others' if len(words) > 1 else ''}; "
                "name under missing_texts what means 'no value'"
            )
        elif len(seen.values) > _MANY:
            hints.append(
                f"has {len(seen.values):,} different texts; leave it out if they identify rows"
            )
        lines = ["    categories:", *_value_lines(seen, "      ")]
        fill = _listed(seen)[0][0]
    if has_missing:
        lines.append(f"    fill: {_scalar(fill)} {MARK}, some rows have no value here")
    return [
        f"  - name: {_scalar(name)}",
        *(f"    # check: {hint}" for hint in hints),
        *lines,
    ], hints


def _repeats(seen: _Seen, labels: _Seen) -> bool:
    n_classes = len(labels.values)
    n_pairs = len(np.unique(seen.rows * n_classes + labels.rows))
    return n_pairs == len(np.unique(seen.rows)) == n_classes


def _is_number(value: Any, decimal: str = ".") -> bool:
    """Whether a value is a number, as opposed to a word, a truth value or a code like 007."""
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        value = with_decimal_point(value, decimal).strip()
        if _has_leading_zero(value) or value.lower() in ("true", "false"):
            return False
    reading = read_entry(value)
    is_large = isinstance(reading, tuple) and reading[0] is float
    return isinstance(reading, int | float) or is_large


def _is_date(value: Any) -> bool:
    if isinstance(value, str):
        return _is_date_text(value.strip()) is not None
    return isinstance(value, datetime.date | datetime.time)


def _value_lines(seen: _Seen, indent: str) -> list[str]:
    lines = []
    for value, texts in _listed(seen):
        others = [_scalar(text) for text in texts if text != str(value)] if len(texts) > 1 else []
        also = f"; also written {', '.join(others)}" if others else ""
        lines.append(f"{indent}- {_scalar(value)} {MARK}{also}")
    return lines


def _listed(seen: _Seen) -> list[tuple[bool | int | float | str, list[str]]]:
    """Return the values as a schema lists them, numbers in their order, and their spellings."""
    # A point in a listed value is one in either case: only numeric features know decimal commas.
    are_numbers = all(seen.are_numbers) and all(map(_is_number, seen.values))
    listed = [
        (_written(value, is_number=are_numbers), texts)
        for value, texts in zip(seen.values, seen.spellings, strict=True)
    ]
    return sorted(listed, key=lambda pair: read_number(pair[0]) if are_numbers else str(pair[0]))


def _written(value: Any, *, is_number: bool) -> bool | int | float | str:
    if isinstance(value, str) and not is_number:
        return value.strip()
    if isinstance(value, bool):
        return value
    reading: Any = read_entry(value)
    return reading[1] if isinstance(reading, tuple) else reading  # type: ignore[no-any-return]


def _plain(number: float) -> int | float:
    return int(number) if float(number).is_integer() and abs(number) < 2**53 else float(number)


def _scalar(value: bool | int | float | str) -> str:
    """Spell a value so that YAML gives it back: text in quotes, numbers bare."""
    if isinstance(value, str) or (isinstance(value, float) and math.isinf(value)):
        text: str = yaml.safe_dump(
            str(value), default_style='"', allow_unicode=True, width=math.inf
        )
        return text.strip()
    return json.dumps(value)


def _check_draft(text: str, table: pa.Table, what: str) -> None:
    """Make sure that the loader takes the table with the draft."""
    try:
        schema, in_file = parse_schema(text, where="schema")
        options = entry_options({}, in_file, what=what)
        compact_rows(table, schema, what=what, is_strict=True, options=options)
    except DatasetError as error:
        raise DatasetError(f"{what}: no draft fits this table: {error}") from None
