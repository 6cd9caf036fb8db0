"""Reading csv files strictly: every line has all its fields, every name is used once."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from lumberjack_bench.datasets.dataset import DatasetError

MISSING_TEXTS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""Fields that stand for a missing entry unless the caller says otherwise."""


def read_header(path: Path, *, what: str) -> list[str]:
    """Return the column names of a csv file.

    Parameters
    ----------
    path : Path
        The file.
    what : str
        Name of the table for messages.

    Returns
    -------
    list of str

    Raises
    ------
    DatasetError
        When the file is missing, empty, not UTF-8 text, or names a column twice.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            names = next(csv.reader(handle), [])
    except (FileNotFoundError, IsADirectoryError):
        raise DatasetError(f"{what}: no file {path}. Check the path.") from None
    except OSError as error:
        raise DatasetError(f"{what}: cannot read {path} ({error.strerror}).") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"{what}: {path} is not a csv file in UTF-8 ({error}).") from None
    if not names:
        raise DatasetError(f"{what}: {path} is empty; expected a line with the column names.")
    names = [name.strip() for name in names]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DatasetError(
            f"{what}: {path} has duplicate columns {repeated}. Rename or drop the copies."
        )
    return names


def read_text_columns(
    path: Path,
    columns: Sequence[str],
    *,
    what: str,
    missing_texts: Sequence[str] = (),
    header_names: Sequence[str] | None = None,
    skip_lines: int = 0,
) -> pa.Table:
    """Read some columns of a csv file as text.

    Parameters
    ----------
    path : Path
        The file, UTF-8, comma separated.
    columns : sequence of str
        The columns to read, all present.
    what : str
        Name of the table for messages.
    missing_texts : sequence of str
        Fields that are missing entries.
    header_names : sequence of str or None
        Column names of a file that has no header line.
    skip_lines : int
        Lines to leave out at the start of a file without header.

    Returns
    -------
    pyarrow.Table
        Text columns; missing entries are null.

    Raises
    ------
    DatasetError
        When a line has too few or too many fields, as in a truncated file.
    """
    names = list(header_names) if header_names is not None else read_header(path, what=what)
    text = pa.large_string()
    try:
        with path.open("rb") as handle:
            return pa_csv.read_csv(
                handle,
                read_options=pa_csv.ReadOptions(
                    use_threads=False,
                    column_names=names,
                    skip_rows=skip_lines if header_names is not None else 1,
                ),
                parse_options=pa_csv.ParseOptions(newlines_in_values=True),
                convert_options=pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(columns, text),
                    include_columns=list(columns),
                    null_values=list(missing_texts),
                    strings_can_be_null=bool(missing_texts),
                    quoted_strings_can_be_null=False,
                ),
            )
    except pa.ArrowInvalid as error:
        raise DatasetError(_explain(error, path, what, len(names))) from None
    except OSError as error:
        raise DatasetError(f"{what}: cannot read {path} ({error.strerror or error}).") from None


def has_whole_last_line(path: Path) -> bool:
    """Whether a text file ends with a line break, as a file that was written to its end does.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    bool
    """
    with path.open("rb") as handle:
        handle.seek(0, io.SEEK_END)
        if not handle.tell():
            return False
        handle.seek(-1, io.SEEK_END)
        return handle.read(1) == b"\n"


def _explain(error: pa.ArrowInvalid, path: Path, what: str, n_names: int) -> str:
    text = str(error).splitlines()[0]
    ragged = re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", text)
    if ragged:
        line = f"line {ragged[1]}" if ragged[1] else "a line"
        return (
            f"{what}: {path}: {line} has {ragged[3]} fields, but there are {n_names} columns. The "
            "file is truncated or damaged; get it again, or correct the line."
        )
    if "Empty CSV" in text:
        return f"{what}: {path} has no rows."
    return f"{what}: {path} cannot be read as csv: {text}"
