"""How a table writes its entries: what may be said about it, and taking a column apart by it.

It is said in the schema file or on the command line. How an entry is read apart from that is the
one rule of :mod:`lumberjack.reading`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from lumberjack.reading import Column, PublicList, read_column, read_entry, shown
from lumberjack_bench.datasets.dataset import DatasetError

MISSING_TEXTS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""Texts that stand for a missing entry of a user's table unless something else is said."""

OPTION_NAMES = ("missing_texts", "decimal", "unlabelled")

_COMMAS_AND_POINTS = str.maketrans(",.", ".,")


@dataclass(frozen=True, slots=True)
class EntryOptions:
    """How a table writes its entries.

    Attributes
    ----------
    missing_texts : tuple of str
        Entries that are read like one of these are missing, in every column. No two of them are
        read alike.
    decimal : {".", ","}
        What separates the decimals of a number in text; for numeric features only.
    unlabelled : {"error", "drop"}
        What becomes of rows without a label.
    """

    missing_texts: tuple[str, ...] = ()
    decimal: str = "."
    unlabelled: str = "error"


def entry_options(
    config: Mapping[str, Any], in_file: Mapping[str, Any], *, table_name: str
) -> EntryOptions:
    """Return the options of a table: what `config` says wins over the schema file; None says nothing."""
    chosen = {
        name: in_file.get(name) if config.get(name) is None else config[name]
        for name in OPTION_NAMES
    }
    allowed = {"decimal": (".", ","), "unlabelled": ("error", "drop")}
    for name, values in allowed.items():
        if chosen[name] is None:
            chosen[name] = values[0]
        if chosen[name] not in values:
            raise DatasetError(
                f"{table_name}: {name} must be {values[0]!r} or {values[1]!r}, got {chosen[name]!r}."
            )
    return EntryOptions(
        _missing_texts(chosen["missing_texts"], table_name),
        str(chosen["decimal"]),
        str(chosen["unlabelled"]),
    )


def _missing_texts(chosen: Any, table_name: str) -> tuple[str, ...]:
    if chosen is None:
        chosen = MISSING_TEXTS
    texts = list(chosen) if isinstance(chosen, list | tuple) else [chosen]
    wrong = [
        text for text in texts if isinstance(text, bool) or not isinstance(text, str | int | float)
    ]
    if wrong:
        raise DatasetError(
            f"{table_name}: missing_texts must be texts such as [NA, '?'], got {shown(wrong[0])}. "
            "Put words like null and true in quotes."
        )
    # Two spellings of one reading would be refused as a public list.
    return tuple({read_entry(text): str(text) for text in texts}.values())


def read_entries(column: pa.ChunkedArray, options: EntryOptions, *, where: str) -> Column:
    """Take the entries of a column apart, with codes; those that `options` call missing become so.

    `where` names the column in the error about lists, records and values beyond Python's range.
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
    """Return entries in which numbers are written with decimal points, not with `decimal`.

    Where decimals stand behind commas, a point makes a text no number: it may group digits.
    """
    if decimal == "." or entries.values.dtype.kind != "O":
        return entries
    values = np.fromiter((with_decimal_point(value, decimal) for value in entries.values), object)
    return replace(entries, values=values)


def with_decimal_point(value: Any, decimal: str) -> Any:
    """Return one entry as :func:`with_decimal_points` does."""
    if decimal == "." or not isinstance(value, str):
        return value
    return value.translate(_COMMAS_AND_POINTS)
