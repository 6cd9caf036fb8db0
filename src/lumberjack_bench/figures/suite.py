"""Private methods across data sets on one page: a picture, a csv and a page in Markdown.

Left the mean rank of each method, right a dot for each data set: how far the method is ahead of the
best other private one. What is not private stands below, without a rank.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lumberjack_bench.figures import FIGURES, style
from lumberjack_bench.figures.across import Standing, Standings, standings
from lumberjack_bench.figures.curves import Key, Panel, load_panels, shared_keys
from lumberjack_bench.figures.means import markdown_table
from lumberjack_bench.figures.panels import card_notes, is_ours, line_style, marks_of
from lumberjack_bench.figures.request import Request
from lumberjack_bench.results import current_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lumberjack_bench.metrics import Metric

ROW, NAMES, RANKS, GAP, DOTS, RIGHT = 0.26, 2.15, 1.75, 0.4, 4.3, 0.15
ABOVE, BELOW, NOTE_LINE = 0.42, 0.52, 0.155
"""All lengths in inches."""

BOOTSTRAP_NOTE = (
    "Intervals: 95 %, bootstrap over data sets; they say how far other such data sets could move "
    "the number, and are too narrow for few data sets"
)


def make(request: Request) -> list[Path]:
    """Draw the figure; write PDF, PNG, csv and Markdown."""
    table, panels = load_panels(request, FIGURES[request.name].command)
    table, _ = current_rows(table)
    if request.methods:
        table = table[table["method"].isin(request.methods)]
    table = table[table["dataset"].isin({panel.dataset for panel in panels})]
    found, missing = standings(panels, table, are_all_asked=bool(request.methods))
    missing += [line for panel in panels for line in panel.left_out]
    with style.our_look():
        paths = style.save(draw_standings(found, panels, missing), request)
    return [
        *paths,
        request.write_csv(csv_rows(found, panels[0].metric)),
        request.write(".md", markdown(found, panels[0].metric, missing)),
    ]


def draw_standings(
    found: Sequence[Standings], panels: Sequence[Panel], missing: Sequence[str]
) -> Figure:
    """Draw a block for each eps: mean ranks and, beside them, the data sets."""
    looks = _looks(found, panels)
    heights = [ROW * (len(one.private) + len(one.others) + 0.6) for one in found]
    width = NAMES + RANKS + GAP + DOTS + RIGHT
    private = [standing.curve for one in found for standing in one.private]
    notes = [
        "A dot is a data set; the bar is their mean, and the name that of the data set furthest behind. "
        f"{BOOTSTRAP_NOTE}. Below the line, without a rank: what is not private, against the best private "
        "method; an arrow where dots lie beyond the axis.",
        *card_notes(private),
        *dict.fromkeys(missing),
    ]
    lines = [line for note in notes for line in textwrap.wrap(note, int(width * 17))]
    note_height = NOTE_LINE * len(lines) + 0.12
    height = sum(heights) + (ABOVE + BELOW) * len(found) + note_height
    figure = Figure(figsize=(width, height))
    limits = _limits(found)
    top = height
    for one, own in zip(found, heights, strict=True):
        bottom = top - ABOVE - own
        ranks = style.add_axes(figure, NAMES, bottom, RANKS, own)
        dots = style.add_axes(figure, NAMES + RANKS + GAP, bottom, DOTS, own)
        _draw_block(ranks, dots, one, looks, limits)
        dots.set_xlabel(f"Ahead of the best other private method, {panels[0].metric.title}")
        top = bottom - BELOW
    for number, text in enumerate(lines):
        y = note_height - 0.04 - number * NOTE_LINE
        figure.text(0.12 / width, y / height, text, fontsize=7.5, va="top")
    return figure


def _looks(found: Sequence[Standings], panels: Sequence[Panel]) -> Mapping[Key, style.Look]:
    private = {standing.key for one in found for standing in one.private}
    keys = [key for key in shared_keys(panels).values() if key in private]
    # Whatever the order of the data sets and the metric, a method looks the same.
    return style.looks_of(sorted(keys, key=lambda key: key[0]))


def _limits(found: Sequence[Standings]) -> tuple[float, float]:
    """Return the limits of what private methods need, with room for names on the left."""
    values = [v for one in found for s in one.private for v in s.advantages.values()]
    low, high = min(*values, 0.0), max(*values, 0.0)
    span = max(high - low, 0.01)
    return low - 0.2 * span, high + 0.04 * span


def _draw_block(
    ranks: Axes,
    dots: Axes,
    one: Standings,
    looks: Mapping[Key, style.Look],
    limits: tuple[float, float],
) -> None:
    title = f"ε = {one.eps:g}, {len(one.datasets)} data sets"
    style.write_above(ranks, title, 8, fontsize=10, fontweight="bold")
    n_private = len(one.private)
    rows = [*enumerate(one.private), *enumerate(one.others, n_private)]
    places = [number + 0.6 * (number >= n_private) for number, _ in rows]
    for axes in (ranks, dots):
        axes.set_ylim(places[-1] + 0.6, -0.6)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        if one.others:
            axes.axhline(n_private - 0.2, color=style.PALE, lw=0.7)
    ranks.set_xlim(0.7, n_private + 0.3)
    ranks.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    ranks.set_xlabel("Mean rank (1 is best)")
    dots.set_xlim(*limits)
    dots.axvline(0, color=style.GREY, lw=0.8, zorder=1)
    for (_, standing), y in zip(rows, places, strict=True):
        look, curve = looks.get(standing.key, style.Look(style.GREY)), standing.curve
        weight = "bold" if is_ours(curve) else "normal"
        name = f"{textwrap.shorten(curve.label, 34, placeholder='…')}{marks_of(curve)}"
        ranks.annotate(
            name,
            (0, y),
            xycoords=("axes fraction", "data"),
            xytext=(-6, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=style.LABEL_SIZE,
            fontweight=weight,
        )
        if (rank := standing.mean_rank) is not None:
            drawn = line_style(curve, look)
            ranks.plot(
                [rank.lower, rank.upper], [y, y], **{**drawn, "marker": "", "linewidth": 1.4}
            )
            ranks.plot([rank.mean], [y], **{**drawn, "linestyle": ""})
        _draw_dots(dots, standing, one.datasets, y, look)


def _draw_dots(
    axes: Axes, standing: Standing, datasets: Sequence[str], y: float, look: style.Look
) -> None:
    low, high = axes.get_xlim()
    for number, title in enumerate(datasets):
        if title not in standing.advantages:
            continue
        value = standing.advantages[title]
        # A data set has the same height in all rows, so that equal differences do not hide one another.
        height = y + 0.44 * ((number * 0.618034) % 1 - 0.5)
        marker = "<" if value < low else ">" if value > high else "o"
        axes.scatter(
            min(max(value, low), high),
            height,
            s=13,
            marker=marker,
            facecolor="none" if standing.curve.is_doubted else look.colour,
            edgecolor=look.colour,
            linewidth=0.7,
            alpha=0.6,
            clip_on=False,
            zorder=3,
        )
        if title == standing.worst and standing.mean_rank is not None and value < 0:
            axes.annotate(
                title,
                (value, height),
                xytext=(-4, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize=6.5,
                color=style.GREY,
            )
    mean = min(max(standing.mean_advantage, low), high)
    axes.plot([mean, mean], [y - 0.36, y + 0.36], color=style.INK, lw=1.4, zorder=4)


def csv_rows(found: Sequence[Standings], metric: Metric) -> list[dict[str, Any]]:
    """Return all numbers, a row each: mean ranks, win rates against others, advantages on data sets."""
    rows = []
    for one in found:
        for standing in (*one.private, *one.others):
            curve = standing.curve
            common = {
                "eps": one.eps,
                "metric": metric.name,
                "method": curve.method,
                "label": curve.label,
                "kind": curve.kind,
                "card_status": curve.card_status,
                "n_datasets": len(standing.advantages),
            }
            intervals = {("mean_rank", ""): standing.mean_rank} if standing.mean_rank else {}
            intervals |= {("win_rate", to): i for to, i in (standing.win_rates or {}).items()}
            rows += [
                common
                | {"quantity": name, "against": to, "value": i.mean}
                | {"lower": i.lower, "upper": i.upper}
                for (name, to), i in intervals.items()
            ]
            rows += [
                common | {"quantity": "advantage", "against": title, "value": value}
                for title, value in standing.advantages.items()
            ]
    return rows


def markdown(found: Sequence[Standings], metric: Metric, missing: Sequence[str]) -> str:
    """Write the page."""
    parts = [
        f"# {metric.heading} across data sets",
        f"Ahead: how much better than the best other private method on the same data set, in {metric.title}"
        f"{'' if metric.is_larger_better else ', of which less is better'}; negative: behind. Each data set "
        f"counts once, by its mean over the splits that all methods have. {BOOTSTRAP_NOTE}.",
    ]
    for one in found:
        parts.append(f"## eps = {one.eps:g}: {len(one.datasets)} data sets")
        header = ["private method", "mean rank", "mean ahead", "furthest behind", "on"]
        rows = [
            [
                _name(standing),
                _with_ends(standing.mean_rank, ".2f") if standing.mean_rank else "",
                f"{standing.mean_advantage:+.4f}",
                f"{standing.advantages[standing.worst]:+.4f}",
                standing.worst,
            ]
            for standing in one.private
        ]
        parts.append(markdown_table(header, rows))
        if one.others:
            header = [
                "not private",
                "data sets",
                "mean ahead of the best private",
                "smallest",
                "on",
            ]
            rows = [
                [
                    standing.curve.label,
                    str(len(standing.advantages)),
                    f"{standing.mean_advantage:+.4f}",
                    f"{standing.advantages[standing.worst]:+.4f}",
                    standing.worst,
                ]
                for standing in one.others
            ]
            parts.append(markdown_table(header, rows))
        parts.append("Share of data sets won (a tie counts half), row against column:")
        labels = [standing.curve.label for standing in one.private]
        rows = [
            [
                _name(standing),
                *(
                    _with_ends((standing.win_rates or {})[label], ".2f")
                    if label != standing.curve.label
                    else ""
                    for label in labels
                ),
            ]
            for standing in one.private
        ]
        parts.append(markdown_table(["", *map(_name, one.private)], rows))
        parts.append(f"Data sets: {', '.join(one.datasets)}.")
    notes = card_notes([standing.curve for one in found for standing in one.private])
    lines = [f"- {line}" for line in dict.fromkeys([*missing, *notes])]
    return "\n\n".join([*parts, *(["\n".join(lines)] if lines else [])]) + "\n"


def _name(standing: Standing) -> str:
    return f"{standing.curve.label}{marks_of(standing.curve)}"


def _with_ends(interval: Any, form: str) -> str:
    return f"{interval.mean:{form}} [{interval.lower:{form}}, {interval.upper:{form}}]"
