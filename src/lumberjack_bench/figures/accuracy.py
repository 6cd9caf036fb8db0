"""Accuracy against the privacy budget, with a csv of what is drawn and the report beside it."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lumberjack_bench.figures import report, style
from lumberjack_bench.figures.curves import csv_rows, read_panels, require_panels
from lumberjack_bench.figures.panels import draw_panels
from lumberjack_bench.figures.request import Request, check_known, read_results


def make(request: Request) -> list[Path]:
    """Draw every data set of the results table, or those asked for.

    Parameters
    ----------
    request : Request
        What from, and where to.

    Returns
    -------
    list of Path
    """
    return make_accuracy("accuracy", (), "python run.py -m +experiment=figure3", request)


def make_accuracy(name: str, datasets: Sequence[str], command: str, request: Request) -> list[Path]:
    """Draw a figure of accuracy against eps, with its csv and the report beside it.

    Parameters
    ----------
    name : str
        Name of the figure and of its files.
    datasets : sequence of str
        Data sets that the figure is about, in order; empty for all.
    command : str
        The command that makes the rows.
    request : Request
        What from, and where to.

    Returns
    -------
    list of Path
        PDF, PNG, csv and report.

    Raises
    ------
    FigureError
        When there is nothing to draw.
    """
    table = read_results(request.results, command)
    check_known("data set", request.datasets, sorted(table["dataset"].unique()))
    wanted = request.datasets or tuple(datasets)
    panels = read_panels(table, wanted, request.methods)
    require_panels(panels, table, name, wanted, command)
    with style.our_look():
        paths = style.save(draw_panels(panels), request.out, name)
    paths.append(style.write_whole(request.out / f"{name}.csv", _to_csv(csv_rows(name, panels))))
    return [*paths, *report.make(request)]


def _to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: f"{v:.10g}" if isinstance(v, float) else v for k, v in row.items()})
    return text.getvalue()
