"""Means in numbers: a table of methods and eps for each data set, to be read or pasted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from lumberjack_bench.figures.curves import Panel
from lumberjack_bench.figures.panels import DOUBTED, TUNED, marks_of

Cell = tuple[str, bool]
"""A text, and whether it is the best of its kind."""


def means_table(panel: Panel) -> tuple[list[str], list[list[Cell]]]:
    """Return header and rows of a table: methods down, eps across, the best private mean marked."""
    private = [curve for curve in panel.curves if curve.kind == "private"]
    means: dict[float, list[float]] = {}
    for point in (point for curve in private for point in curve.points):
        means.setdefault(point.eps, []).append(point.interval.mean)
    choose = max if panel.metric.is_larger_better else min
    best = {eps: choose(means[eps]) for eps in sorted(means)}
    rows = []
    for curve in panel.curves:
        found = {point.eps: point.interval for point in curve.points}
        row = [(curve.label + marks_of(curve), False)]
        if curve.kind != "private":
            row += [(str(found[math.inf]), False)] * max(1, len(best))
        else:
            row += [
                (str(found[eps]), found[eps].mean == mean) if eps in found else ("", False)
                for eps, mean in best.items()
            ]
        rows.append(row)
    return ["method", *(f"eps = {eps:g}" for eps in best)] + ["value"] * (not best), rows


def markdown(panels: Sequence[Panel]) -> str:
    """Write the table of each data set in Markdown."""
    metric = panels[0].metric
    parts = []
    for panel in panels:
        header, rows = means_table(panel)
        lines = [[f"**{text}**" if is_best else text for text, is_best in row] for row in rows]
        parts.append(f"## {panel.title} ({panel.data_source})\n\n{markdown_table(header, lines)}")
    notes = (
        f"Mean test {metric.axis_title} over repetitions with its {metric.interval_name}; "
        f"bold: best private mean. {DOUBTED} guarantee doubted or broken; {TUNED} tuned on "
        "validation rows without paying."
    )
    left_out = [f"- {line}" for line in dict.fromkeys(li for p in panels for li in p.left_out)]
    return "\n\n".join([*parts, notes, *(["\n".join(left_out)] if left_out else [])]) + "\n"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table in Markdown: the first column to the left, numbers to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
