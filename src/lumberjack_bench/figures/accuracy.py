"""A metric against the privacy budget, with what is drawn as csv and table, and the report beside it.

Draws the figures of curves in the registry: each shows its own data sets, or those asked for.
"""

from __future__ import annotations

from pathlib import Path

from lumberjack_bench import figures
from lumberjack_bench.figures import style
from lumberjack_bench.figures.curves import csv_rows, load_panels
from lumberjack_bench.figures.means import markdown
from lumberjack_bench.figures.panels import draw_panels
from lumberjack_bench.figures.request import Request


def make(request: Request) -> list[Path]:
    """Draw the curves; write PDF, PNG, csv, Markdown and report."""
    own = figures.FIGURES[request.name]
    _, panels = load_panels(request, own.command, own.datasets, own.methods)
    with style.our_look():
        paths = style.save(draw_panels(panels), request)
    return [
        *paths,
        request.write_csv(csv_rows(request.name, panels)),
        request.write(".md", markdown(panels)),
        *figures.make("report", request),
    ]
