"""Reading csv files strictly: every line has all its fields.

Fields are separated by commas, semicolons or tabs, whichever fits the first lines; a file may be
compressed (.gz).
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from lumberjack_bench.datasets.dataset import DatasetError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
"""What may separate the fields, and its name for messages."""

_N_FIRST = 100


@dataclass(frozen=True, slots=True)
class Header:
    """The beginning of a csv file.

    Attributes
    ----------
    names : list of str
        Column names, without blanks around them.
    separator : str
        A key of :data:`SEPARATORS`.
    position : int
        Number of empty lines before the names.
    has_rows : bool
        Whether anything follows.
    """

    names: list[str]
    separator: str
    position: int
    has_rows: bool


def read_header(path: Path, *, table_name: str) -> Header:
    """Read the column names of a csv file and guess what separates the fields.

    The separator is the one that gives all of the first lines the same number of fields, and of
    several the one that gives most.

    Raises
    ------
    DatasetError
        When the file is missing, empty, or not UTF-8 text.
    """
    candidates: list[tuple[tuple[bool, bool, int], Header]] = []
    failure: Exception | None = None
    for separator in SEPARATORS:
        with _opened(path, table_name) as handle:
            lines = io.TextIOWrapper(handle, encoding="utf-8-sig", newline="")
            try:
                first = list(itertools.islice(csv.reader(lines, delimiter=separator), _N_FIRST))
            except csv.Error as error:  # such as a very long line without this separator
                failure = error
                continue
        filled = [fields for fields in first if fields]
        if not filled:
            raise DatasetError(
                f"{table_name}: {path} is empty; expected a line with the column names."
            )
        n_fields = len(filled[0])
        is_even = n_fields > 1 and all(len(fields) == n_fields for fields in filled)
        names = [name.strip() for name in filled[0]]
        header = Header(names, separator, first.index(filled[0]), len(filled) > 1)
        is_expected = separator == "\t" and ".tsv" in path.name.lower()
        candidates.append(((is_even, is_expected, n_fields), header))
    if not candidates:
        raise DatasetError(f"{table_name}: {path} is not a csv file ({failure}).")
    return max(candidates, key=lambda candidate: candidate[0])[1]


def read_text_columns(
    path: Path,
    columns: Sequence[str],
    *,
    table_name: str,
    header_names: Sequence[str] | None = None,
    skip_lines: int = 0,
) -> pa.Table:
    """Read some columns of a csv file as text.

    Parameters
    ----------
    path : Path
        The file, in UTF-8.
    columns : sequence of str
        The columns to read, all present; of several with one name the first is read.
    table_name : str
        For messages.
    header_names : sequence of str or None
        Column names of a file that has no header line and is separated by commas.
    skip_lines : int
        Lines to leave out at the start of a file without header.

    Returns
    -------
    pyarrow.Table
        Text columns, without nulls.

    Raises
    ------
    DatasetError
        When a line has too few or too many fields, as in a truncated file.
    """
    if header_names is None:
        header = read_header(path, table_name=table_name)
        if not header.has_rows:
            return pa.table({name: pa.array([], pa.large_string()) for name in columns})
    else:
        header = Header(list(header_names), ",", -1, True)
    # By position: a name that nobody asked for may stand there twice.
    positions = [str(header.names.index(name)) for name in columns]
    with _opened(path, table_name) as handle:
        try:
            table = pa_csv.read_csv(
                handle,
                read_options=pa_csv.ReadOptions(
                    use_threads=False,
                    column_names=[str(position) for position in range(len(header.names))],
                    skip_rows=skip_lines,
                    skip_rows_after_names=header.position + 1,
                ),
                parse_options=pa_csv.ParseOptions(
                    delimiter=header.separator, newlines_in_values=True
                ),
                convert_options=pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(positions, pa.large_string()),
                    include_columns=positions,
                    strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid as error:
            raise DatasetError(_explain(error, path, table_name, len(header.names))) from None
    return table.rename_columns(list(columns))


def has_whole_last_line(path: Path) -> bool:
    """Whether a text file ends with a line break, as a file that was written to its end does."""
    with path.open("rb") as handle:
        handle.seek(0, io.SEEK_END)
        if not handle.tell():
            return False
        handle.seek(-1, io.SEEK_END)
        return handle.read(1) == b"\n"


@contextlib.contextmanager
def _opened(path: Path, table_name: str) -> Iterator[Any]:
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as handle:
            yield handle
    except (FileNotFoundError, IsADirectoryError):
        raise DatasetError(f"{table_name}: no file {path}. Check the path.") from None
    except UnicodeDecodeError as error:
        raise DatasetError(_not_utf8(path, table_name, str(error))) from None
    except (EOFError, OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise DatasetError(f"{table_name}: cannot read {path} ({reason}).") from None


def _not_utf8(path: Path, table_name: str, reason: str) -> str:
    return f"{table_name}: {path} is not text in UTF-8 ({reason}). Save it in UTF-8."


def _explain(error: pa.ArrowInvalid, path: Path, table_name: str, n_names: int) -> str:
    text = str(error).splitlines()[0]
    ragged = re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", text)
    if ragged:
        line = f"line {ragged[1]}" if ragged[1] else "a line"
        return (
            f"{table_name}: {path}: {line} has {ragged[3]} fields, but there are {n_names} columns. The "
            "file is truncated or damaged; get it again, or correct the line."
        )
    if "Empty CSV" in text:
        return f"{table_name}: {path} has no rows."
    if "invalid UTF8" in text:
        return _not_utf8(path, table_name, "a field holds other bytes")
    return f"{table_name}: {path} cannot be read as csv: {text}"
