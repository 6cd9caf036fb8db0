"""What may be said about how a table writes its entries: in its schema file, or on the command line.

How an entry is read apart from that is the one rule of :mod:`lumberjack.reading`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lumberjack.reading import read_entry, shown
from lumberjack_bench.datasets.dataset import DatasetError

MISSING_TEXTS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""Texts that stand for a missing entry of a user's table unless something else is said."""

OPTION_NAMES = ("missing_texts", "decimal", "unlabelled")


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
    config: Mapping[str, Any], in_file: Mapping[str, Any], *, what: str
) -> EntryOptions:
    """Return the options of a table.

    Parameters
    ----------
    config : mapping
        May hold the options; what it says wins, None says nothing.
    in_file : mapping
        The options of the schema file.
    what : str
        Name of the table for messages.

    Returns
    -------
    EntryOptions

    Raises
    ------
    DatasetError
        When an option is of the wrong kind.
    """
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
                f"{what}: {name} must be {values[0]!r} or {values[1]!r}, got {chosen[name]!r}."
            )
    return EntryOptions(
        _missing_texts(chosen["missing_texts"], what),
        str(chosen["decimal"]),
        str(chosen["unlabelled"]),
    )


def _missing_texts(chosen: Any, what: str) -> tuple[str, ...]:
    if chosen is None:
        chosen = MISSING_TEXTS
    texts = list(chosen) if isinstance(chosen, list | tuple) else [chosen]
    wrong = [
        text for text in texts if isinstance(text, bool) or not isinstance(text, str | int | float)
    ]
    if wrong:
        raise DatasetError(
            f"{what}: missing_texts must be texts such as [NA, '?'], got {shown(wrong[0])}. "
            "Put words like null and true in quotes."
        )
    # Two spellings of one reading would be refused as a public list.
    return tuple({read_entry(text): str(text) for text in texts}.values())
