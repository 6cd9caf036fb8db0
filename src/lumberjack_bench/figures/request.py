"""What is asked of a figure, how it is refused, and how its table is read and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lumberjack_bench.files import write_atomically
from lumberjack_bench.results import COLUMNS, read_table
from lumberjack_bench.spelling import suggest

if TYPE_CHECKING:
    import pandas as pd

METRIC = "accuracy"
"""What figures, tables and comparisons show unless told otherwise."""


class FigureError(ValueError):
    """A figure that cannot be drawn; the message is one line: what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a figure is drawn from, and where to."""

    results: Path
    """The results table."""
    out: Path
    """Folder of the files that are made; it is created."""
    datasets: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    """Names to show; empty shows what the figure is about."""
    overrides: tuple[str, ...] = ()
    """``key=value`` settings of data sets, for figures that load data."""
    name: str = ""
    """The figure, whose files are called so."""
    metric: str = METRIC

    def write(self, ending: str, content: bytes | str) -> Path:
        """Write a file of the figure, such as its ``.md``, and return where it is."""
        path = self.out / f"{self.name}{ending}"
        write_atomically(path, content)
        return path

    def write_csv(self, rows: Sequence[Mapping[str, Any]], form: str = "%.10g") -> Path:
        """Write what the figure shows as csv, a line for each row."""
        return self.write(".csv", csv_text(rows, form))


def csv_text(rows: Sequence[Mapping[str, Any]] | pd.DataFrame, form: str = "%.10g") -> str:
    """Write rows as csv; numbers that are missing are empty."""
    import pandas as pd

    text: str = pd.DataFrame(rows).to_csv(index=False, float_format=form, lineterminator="\n")
    return text


def read_results(path: Path, command: str) -> pd.DataFrame:
    """Read the results table, or say what is wrong with it and that `command` makes it.

    Raises
    ------
    FigureError
        When it is missing, cannot be read or is no results table.
    """
    if path.is_dir():
        path = path / "results.csv"
    if not path.is_file():
        raise FigureError(
            f"there is no results table at {str(path)!r}. Make one with: {command} "
            "(or name another with --results FILE)."
        )
    try:
        table = read_table(path)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise FigureError(
            f"{str(path)!r} cannot be read as a results table: {reason}. "
            "A finished sweep writes it anew."
        ) from error
    missing = [name for name in COLUMNS if name not in table.columns]
    if missing:
        raise FigureError(
            f"{str(path)!r} is no results table of this version: it has no column "
            f"{', '.join(missing)}. A finished sweep writes it anew."
        )
    return table


def check_known(kind: str, wanted: Sequence[str], known: Sequence[str]) -> None:
    """Refuse names, of a "method" or "data set", that the results table does not hold."""
    for name in wanted:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise FigureError(
                f"the results hold no {kind} {name!r}{suggest(name, known)} They hold: {listed}."
            )
