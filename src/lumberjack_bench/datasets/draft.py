"""A first draft of a schema, read from a table.

A draft is no schema yet: whatever it takes from the rows (bounds, categories, classes) would leak
into every model, so each such value is marked for somebody to replace by public knowledge.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from lumberjack.reading import read_entry, read_number, shown
from lumberjack.schema import CategoricalFeature, Feature, FeatureSchema, NumericFeature
from lumberjack_bench.datasets.csv_files import SEPARATORS, read_header
from lumberjack_bench.datasets.dataset import DatasetError
from lumberjack_bench.datasets.entries import EntryOptions, entry_options
from lumberjack_bench.datasets.row_validation import validate_rows
from lumberjack_bench.datasets.schema_files import parse_schema
from lumberjack_bench.datasets.seen_columns import SeenColumn, is_number, see_column
from lumberjack_bench.datasets.table_files import column_names, is_text_table, read_file

MARK = "# check: read from data"

MISSING_ANYWHERE = ("?", "na", "n/a", "n.a.", "#n/a", "<na>", "nan", "null")
"""Texts, in any case, that are taken for a missing entry in every column."""

MISSING_AMONG_NUMBERS = ("-", "--", ".", "none", "nil", "missing", "unknown")
"""Texts, in any case, that are so where all other entries of the column are numbers."""

PUBLISHED_FACTS = (
    "Bounds are the smallest and largest values of the published table, categories the values that "
    "occur in it."
)
"""What is said of a schema that is drafted from a published table."""

FEWEST_ROWS = 10
"""Rows with a label that a run needs."""

_MANY = 100
_HEADER = f"""\
# Draft of a schema. Bounds, categories and classes must be public knowledge: a value taken from
# the rows reveals something about them, and the privacy guarantee does not cover it.
# Replace or confirm each value marked "{MARK}", then delete the mark.
"""

_is_index_name = re.compile(r"|Unnamed: \d+|__index_level_\d+__").fullmatch


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
    """Draft a schema file for a table, with which the table loader takes the same table.

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

    Raises
    ------
    DatasetError
        When the file cannot be read, lacks the label column, or its rows or labels give nothing to
        learn from.
    """
    table_name = path.name
    options = entry_options({"decimal": decimal}, {"missing_texts": []}, table_name=table_name)
    names = column_names(path, table_name=table_name)
    notes = []
    if is_text_table(path):
        separator = SEPARATORS[read_header(path, table_name=table_name).separator]
        notes.append(f"{table_name}: read as columns separated by {separator}")
    left_out = _unusable_names(names, label, path)
    table = read_file(path, [name for name in names if name not in left_out], table_name=table_name)
    if not table.num_rows:
        raise DatasetError(f"{table_name}: the table has no rows.")
    of_all_rows: dict[str, SeenColumn] = {}
    for name in table.column_names:
        try:
            of_all_rows[name] = see_column(table.column(name), options)
        except DatasetError as error:
            reason = str(error).removeprefix("it ").partition(". ")[0].rstrip(".")
            left_out[name] = " ".join(reason.split())
            if name == label:
                raise DatasetError(
                    f"{table_name}: label column {label!r} {left_out[name]}."
                ) from None
    options, about, marker_notes = _with_missing_texts(of_all_rows, label, options)
    labels = see_column(table.column(label), options)
    n_rows, n_unlabelled = table.num_rows, labels.n_missing
    if n_unlabelled:
        options = replace(options, unlabelled="drop")
        table = table.filter(pa.array(labels.rows >= 0))
        labels = see_column(table.column(label), options)
    _check_labels(labels, label, table_name)
    columns: dict[str, SeenColumn] = {}
    for name in of_all_rows.keys() - {label}:
        columns[name] = see_column(table.column(name), options)
        # Of all rows: those without a label would leave gaps.
        if of_all_rows[name].numbers_rows():
            left_out[name] = "numbers the rows"
        elif reason := columns[name].why_of_no_use():
            left_out[name] = reason
    names = [name for name in dict.fromkeys(names) if name != label]
    if len(left_out) == len(names):
        reasons = "; ".join(f"{name!r} {left_out[name]}" for name in names)
        raise DatasetError(f"{table_name}: no column is left to learn from: {reasons}.")
    features: list[str] = []
    for name in names:
        if name in left_out:
            features.append(f"  # left out: {_scalar(name)} {left_out[name]}")
            notes.append(f"column {_scalar(name)} is left out: it {left_out[name]}")
        else:
            lines, hints = _feature(name, columns[name], labels)
            features += lines
            notes += [f"column {_scalar(name)} {hint}" for hint in hints]
    notes += marker_notes
    if decimal != ".":
        about.append(f"decimal: {_scalar(decimal)}")
    if n_unlabelled:
        about.append("unlabelled: drop # rows without a label are left out")
        notes.append(
            f"{n_unlabelled:,} of {n_rows:,} rows have no label; a run with this draft leaves them out"
        )
    lines = [
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
    text = "\n".join(lines) + "\n"
    _check_draft(text, table, table_name)
    return Draft(text, tuple(notes))


def published_schema(table: pa.Table, label: str, *, name: str, source: str) -> FeatureSchema:
    """Draft the schema of a table that is public itself: its facts are taken from its rows.

    Columns are read as :func:`draft_schema` reads them; those of no use are left out. A missing
    entry is filled by the smallest value or the first category. The citation says all this, after
    the words of `source`.
    """
    options = EntryOptions()
    labels = see_column(table.column(label), options)
    _check_labels(labels, label, name)
    features: list[Feature] = []
    for column in table.column_names:
        if column == label:
            continue
        seen = see_column(table.column(column), options)
        if seen.why_of_no_use():
            continue
        if seen.is_numeric:
            lower, upper = float(seen.finite.min()), float(seen.finite.max())
            has_missing = len(seen.finite) < len(seen.numbers)
            features.append(NumericFeature(column, lower, upper, lower if has_missing else None))
        else:
            values = tuple(value for value, _ in _listed(seen))
            features.append(
                CategoricalFeature(column, values, values[0] if seen.n_missing else None)
            )
    classes = tuple(value for value, _ in _listed(labels))
    return FeatureSchema(tuple(features), classes, label, name, f"{source}. {PUBLISHED_FACTS}")


def _unusable_names(names: list[str], label: str, path: Path) -> dict[str, str]:
    """Return the columns that their names rule out, and why."""
    table_name = path.name
    if label not in names:
        hint = ""
        if len(names) == 1 and is_text_table(path):
            hint = " Columns must be separated by commas, semicolons or tabs."
        raise DatasetError(f"{table_name}: no label column {label!r}; the table has {names}.{hint}")
    if len(names) < 2:
        raise DatasetError(f"{table_name}: the table has no column besides the label.")
    if names.count(label) > 1:
        raise DatasetError(f"{table_name}: the label column {label!r} appears more than once.")
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


def _with_missing_texts(
    columns: Mapping[str, SeenColumn], label: str, options: EntryOptions
) -> tuple[EntryOptions, list[str], list[str]]:
    """Return options that name the texts taken for missing, and say where these stand.

    In lines for the draft, and in a note with numbers of rows, which belong to nobody but the data
    holder.
    """
    places: dict[str, list[str]] = {}
    counts: dict[str, list[str]] = {}
    for name, seen in columns.items():
        found: dict[str, int] = {}
        among_numbers: dict[str, int] = {}
        for position, (text, *_) in enumerate(texts or [""] for texts in seen.spellings):
            if text.lower() in MISSING_ANYWHERE:
                found[text] = position
            elif text.lower() in MISSING_AMONG_NUMBERS:
                among_numbers[text] = position
        n_others = len(seen.values) - len(found) - len(among_numbers)
        if name != label and sum(seen.are_numbers) == n_others > 0:
            found |= among_numbers
        for text, position in found.items():
            n_rows = int((seen.rows == position).sum())
            places.setdefault(text, []).append(_scalar(name))
            counts.setdefault(text, []).append(
                f"{_scalar(name)} ({n_rows:,} of {len(seen.rows):,} rows)"
            )
    if not places:
        return options, [], []
    comment, note = (
        "; ".join(f"{_scalar(text)} in {', '.join(where)}" for text, where in each.items())
        for each in (places, counts)
    )
    lines = [
        f"# taken for a missing value: {comment}",
        f"missing_texts: [{', '.join(map(_scalar, places))}] {MARK}",
    ]
    options = replace(options, missing_texts=tuple(places))
    return options, lines, [f"taken for a missing value: {note}"]


def _check_labels(labels: SeenColumn, label: str, table_name: str) -> None:
    n_rows = len(labels.rows)
    if not n_rows:
        raise DatasetError(f"{table_name}: label column {label!r} has no value in any row.")
    if n_rows < FEWEST_ROWS:
        raise DatasetError(
            f"{table_name}: the table has {n_rows} rows with a label; a run needs at least "
            f"{FEWEST_ROWS}."
        )
    if len(labels.values) == 1:
        raise DatasetError(
            f"{table_name}: label column {label!r} has one class only: all {n_rows:,} rows are "
            f"{shown(labels.values[0])}. A classifier needs at least two."
        )
    if len(labels.values) > _MANY:
        raise DatasetError(
            f"{table_name}: label column {label!r} has {len(labels.values):,} different values in "
            f"{n_rows:,} rows; classes are needed, so group them first."
        )


def _feature(name: str, seen: SeenColumn, labels: SeenColumn) -> tuple[list[str], list[str]]:
    """Return the lines of a feature, and what somebody should know about it."""
    hints = []
    if seen.repeats(labels):
        hints.append("repeats the label; leave it out unless it is known before the label")
    if seen.is_numeric:
        has_missing = len(seen.finite) < len(seen.numbers)
        lower, upper = _plain(seen.finite.min()), _plain(seen.finite.max())
        if len(seen.rows) > 2 and (seen.numbers[1:] > seen.numbers[:-1]).all():
            hints.append("grows from row to row; leave it out if it numbers or orders them")
        lines = [f"    numeric: [{_scalar(lower)}, {_scalar(upper)}] {MARK}"]
        fill: Any = lower
    else:
        has_missing = seen.n_missing > 0
        hints += _hints_at_numbers(seen)
        lines = ["    categories:", *_value_lines(seen, "      ")]
        fill = _listed(seen)[0][0]
    if has_missing:
        lines.append(f"    fill: {_scalar(fill)} {MARK}, some rows have no value here")
    return [
        f"  - name: {_scalar(name)}",
        *(f"    # check: {hint}" for hint in hints),
        *lines,
    ], hints


def _hints_at_numbers(seen: SeenColumn) -> list[str]:
    """Say why a column of many texts may have been meant for numbers, or is of little use."""
    words = list(itertools.compress(seen.values, np.logical_not(seen.are_numbers)))
    if words and all("," in str(value) and is_number(value, ",") for value in words):
        return ["looks like numbers with decimal commas; draft again with --decimal ,"]
    if (
        sum(seen.are_numbers) > len(words) > 0
        and all(isinstance(read_entry(value), str) for value in words)
        and not seen.entries.is_categorical
    ):
        example = _scalar(_written(words[0], is_number=False))
        others = f" and {len(words) - 1} others" if len(words) > 1 else ""
        return [
            f"would be numeric without {example}{others}; "
            "name under missing_texts what means 'no value'"
        ]
    if len(seen.values) > _MANY:
        return [f"has {len(seen.values):,} different texts; leave it out if they identify rows"]
    return []


def _value_lines(seen: SeenColumn, indent: str) -> list[str]:
    lines = []
    for value, texts in _listed(seen):
        others = [_scalar(text) for text in texts if text != str(value)] if len(texts) > 1 else []
        also = f"; also written {', '.join(others)}" if others else ""
        lines.append(f"{indent}- {_scalar(value)} {MARK}{also}")
    return lines


def _listed(seen: SeenColumn) -> list[tuple[bool | int | float | str, list[str]]]:
    """Return the values as a schema lists them, numbers in their order, and their spellings."""
    # A point in a listed value is one in either case: only numeric features know decimal commas.
    are_numbers = all(seen.are_numbers) and all(map(is_number, seen.values))
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


def _check_draft(text: str, table: pa.Table, table_name: str) -> None:
    """Make sure that the loader takes the table with the draft."""
    try:
        schema, in_file = parse_schema(text, where="schema")
        options = entry_options({}, in_file, table_name=table_name)
        validate_rows(table, schema, table_name=table_name, is_strict=True, options=options)
    except DatasetError as error:
        raise DatasetError(f"{table_name}: no draft fits this table: {error}") from None
