"""Figures and tables of the paper and of our own, each made again by one command.

A figure is an entry of :data:`FIGURES` and a module of its name, whose ``make(request)`` writes its
files and returns their paths. Accuracy against eps on other data sets needs no module.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lumberjack_bench.figures.request import METRIC, FigureError, Request

__all__ = ["FIGURES", "Figure", "FigureError", "Request", "draw", "make"]


@dataclass(frozen=True, slots=True)
class Figure:
    """What is known of a figure before its module is imported."""

    about: str
    """A line for those who choose."""
    title: str = ""
    """What the report writes above it; empty for what the report does not take up."""
    command: str = ""
    """What makes the rows it shows, or the figure itself where it shows none."""
    datasets: tuple[str, ...] = ()
    """Data sets of a figure of curves, which the module ``accuracy`` draws; empty for others."""
    is_of_sweep: bool = False
    """Whether a sweep that draws it at its end shows its own data sets only."""
    methods: tuple[str, ...] = ()
    """Methods that it shows, where results hold others too; empty for all."""


PAPER_METHODS = (
    *("additive_forest", "guided_lumberjack", "lumberjack", "snr", "smooth_sensitivity"),
    *("suihkonen", "diffprivlib", "diffprivlib_tuned", "extra_trees", "decision_tree", "majority"),
)
"""The forests of the paper, ours and the references."""

RIVALS = (
    *("additive_forest", "guided_lumberjack", "lumberjack", "dp_logistic_regression", "adassp"),
    *("adassp_boosted", "dp_boosted_random_trees", "dp_naive_bayes", "dp_ebm"),
    *(
        "diffprivlib_logistic_regression",
        "synthetic_boosting",
        "hist_gradient_boosting",
        "logistic_regression",
        "majority",
    ),
)
"""Private methods of any kind, and two ceilings without privacy."""

FIGURES = {
    "table1": Figure(
        "the data sets beside the paper's Table 1 (loads data)",
        "Table 1: the data sets, paper and ours",
        "python scripts/make_figures.py table1",
    ),
    "figure1": Figure(
        "decision regions on two moons (fits small forests)",
        "Figure 1: decision regions on two moons",
        "python run.py -m +experiment=figure1",
    ),
    "figure2": Figure(
        "the search of Algorithm 1, step by step",
        "Figure 2: the search of Algorithm 1",
        "python scripts/make_figures.py figure2",
    ),
    "figure3": Figure(
        "accuracy against eps: Adult, ACSIncome, ACSEmployment",
        "Figure 3",
        "python run.py -m +experiment=figure3",
        ("adult", "acs_income", "acs_employment"),
        methods=PAPER_METHODS,
    ),
    "figure4": Figure(
        "accuracy against eps: ACSPublicCoverage, ACSTravelTime",
        "Figure 4",
        "python run.py -m +experiment=figure4",
        ("acs_public_coverage", "acs_travel_time"),
        methods=PAPER_METHODS,
    ),
    "rivals": Figure(
        "our forests against private methods of any kind: Adult",
        command="python run.py -m +experiment=rivals",
        datasets=("adult",),
        methods=RIVALS,
    ),
    "accuracy": Figure(
        "accuracy against eps: every data set in the results table",
        command="python run.py -m +experiment=figure3",
    ),
    "heavy_hitters_error": Figure(
        "error of the heavy-hitter search against the height of the tree",
        "Error of the heavy-hitter search against height",
        "python scripts/make_figures.py heavy_hitters_error",
    ),
    "suite": Figure(
        "private methods across data sets: ranks, wins, differences to the best",
        "Across data sets",
        "python run.py -m +suite=tabular method=A,B eps=1,4 figure=suite",
        is_of_sweep=True,
    ),
    "report": Figure(
        "one HTML page to pick in, with figures, tables, privacy cards and commands",
        command="python run.py -m +experiment=figure3",
    ),
}
"""What can be drawn."""


def make(name: str, request: Request) -> list[Path]:
    """Make a figure or table and return the files that were written.

    Raises
    ------
    FigureError
        When there is no such figure or it cannot be drawn.
    """
    if name not in FIGURES:
        raise FigureError(f"there is no figure {name!r}; there are {', '.join(FIGURES)}.")
    # Imported when used: each needs matplotlib, some numba or the data loaders.
    module = importlib.import_module(f"{__name__}.{'accuracy' if FIGURES[name].datasets else name}")
    paths: list[Path] = module.make(replace(request, name=name))
    return paths


def not_in(name: str, datasets: Sequence[str], methods: Sequence[str]) -> list[str]:
    """Return those data sets and methods of a sweep that a figure leaves out unless they are asked for."""
    figure = FIGURES[name]
    return [
        *(one for one in datasets if figure.datasets and one not in figure.datasets),
        *(one for one in methods if figure.methods and one not in figure.methods),
    ]


def draw(
    name: str, folder: Path, *, metric: str = METRIC, datasets: Sequence[str] = ()
) -> list[Path]:
    """Make a figure from the table of a results folder, into the same folder.

    `datasets` are those of the sweep that ends with it.
    """
    figure = FIGURES.get(name)
    shown = tuple(datasets) if figure and figure.is_of_sweep else ()
    return make(name, Request(folder / "results.csv", folder, datasets=shown, metric=metric))
