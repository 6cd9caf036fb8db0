"""Figures and tables of the paper and of our own, each made again by one command.

A figure is a module with ``make(request)``, which writes its files and returns their paths.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from lumberjack_bench.figures.request import FigureError, Request

FIGURES = {
    "table1": "the data sets beside the paper's Table 1 (loads data)",
    "figure1": "decision regions on two moons (fits small forests)",
    "figure2": "the search of Algorithm 1, step by step",
    "figure3": "accuracy against eps: Adult, ACSIncome, ACSEmployment",
    "figure4": "accuracy against eps: ACSPublicCoverage, ACSTravelTime",
    "accuracy": "accuracy against eps: every data set in the results table",
    "heavy_hitters_error": "error of the heavy-hitter search against the height of the tree",
    "report": "one HTML page with figures, tables, privacy cards, versions and commands",
}
"""What can be drawn, and a line about each."""

__all__ = ["FIGURES", "FigureError", "Request", "draw", "make"]


def make(name: str, request: Request) -> list[Path]:
    """Make a figure or table.

    Parameters
    ----------
    name : str
        One of :data:`FIGURES`.
    request : Request
        What from, and where to.

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    FigureError
        When there is no such figure or it cannot be drawn.
    """
    if name not in FIGURES:
        raise FigureError(f"there is no figure {name!r}; there are {', '.join(FIGURES)}.")
    # Imported when used: each needs matplotlib, some numba or the data loaders.
    module = importlib.import_module(f"{__name__}.{name}")
    paths: list[Path] = module.make(request)
    return paths


def draw(name: str, folder: Path) -> list[Path]:
    """Make a figure from a results folder, into the same folder.

    Parameters
    ----------
    name : str
        One of :data:`FIGURES`.
    folder : Path
        Results folder.

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    FigureError
        When there is no such figure or it cannot be drawn.
    """
    return make(name, Request(results=folder / "results.csv", out=folder))
