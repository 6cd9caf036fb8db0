"""What is asked of a figure, and how it is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lumberjack_bench.results import COLUMNS, read_table

if TYPE_CHECKING:
    import pandas as pd


class FigureError(ValueError):
    """A figure that cannot be drawn; the message is one line: what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a figure is drawn from, and where to.

    Parameters
    ----------
    results : Path
        The results table.
    out : Path
        Folder of the files that are made; it is created.
    datasets, methods : tuple of str
        Names to show; empty shows what the figure is about.
    overrides : tuple of str
        ``key=value`` settings of data sets, for figures that load data.
    """

    results: Path
    out: Path
    datasets: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()


def read_results(path: Path, command: str) -> pd.DataFrame:
    """Read the results table, or say what is wrong with it.

    Parameters
    ----------
    path : Path
        A ``results.csv``.
    command : str
        The command that makes what is wanted from it.

    Returns
    -------
    DataFrame

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
    """Refuse names that the results table does not hold.

    Parameters
    ----------
    kind : str
        "method" or "data set", for the message.
    wanted, known : sequence of str
        Names.

    Raises
    ------
    FigureError
        When a wanted name is not known.
    """
    for name in wanted:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise FigureError(f"the results hold no {kind} {name!r}; they hold {listed}.")
