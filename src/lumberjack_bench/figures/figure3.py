"""Figure 3 of the paper: accuracy against eps on Adult, ACSIncome and ACSEmployment."""

from __future__ import annotations

from pathlib import Path

from lumberjack_bench.figures.accuracy import make_accuracy
from lumberjack_bench.figures.request import Request

DATASETS = ("adult", "acs_income", "acs_employment")
COMMAND = "python run.py -m +experiment=figure3"


def make(request: Request) -> list[Path]:
    """Draw the figure from the results table.

    Parameters
    ----------
    request : Request
        What from, and where to.

    Returns
    -------
    list of Path
        PDF, PNG, csv and report.
    """
    return make_accuracy("figure3", DATASETS, COMMAND, request)
