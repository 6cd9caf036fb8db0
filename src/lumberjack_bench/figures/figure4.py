"""Figure 4 of the paper: accuracy against eps on ACSPublicCoverage and ACSTravelTime."""

from __future__ import annotations

from pathlib import Path

from lumberjack_bench.figures.accuracy import make_accuracy
from lumberjack_bench.figures.request import Request

DATASETS = ("acs_public_coverage", "acs_travel_time")
COMMAND = "python run.py -m +experiment=figure4"


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
    return make_accuracy("figure4", DATASETS, COMMAND, request)
