"""Drawing a metric against the privacy budget: one panel for each data set, names beside the lines."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from scipy.optimize import isotonic_regression

from lumberjack_bench.figures import style
from lumberjack_bench.figures.curves import Curve, Key, Panel, power_of_ten, shared_keys
from lumberjack_bench.results import ANY_NUMBER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

PANEL_WIDTH, PANEL_HEIGHT = 2.75, 2.9
LABEL_WIDTH = 1.88
LEFT, RIGHT, TOP, BELOW_AXES = 0.62, 0.02, 0.52, 0.52
FOOTNOTE_LINE = 0.155
PANELS_PER_ROW = 3
"""All lengths in inches."""

SAMPLE = 0.2
"""Length of the piece of line in front of a name, in inches."""

DOUBTED, TUNED = "†", "‡"


def draw_panels(panels: Sequence[Panel]) -> Figure:
    """Draw a metric against eps, a panel for each data set; at least one.

    Names stand beside the lines, in the order of their last values.
    """
    n_columns = min(len(panels), PANELS_PER_ROW)
    n_rows = math.ceil(len(panels) / n_columns)
    cell_width = LEFT + PANEL_WIDTH + LABEL_WIDTH + RIGHT
    cell_height = TOP + PANEL_HEIGHT + BELOW_AXES
    width = n_columns * cell_width
    notes = _footnotes(panels, characters=int(width * 17.5))
    note_height = FOOTNOTE_LINE * len(notes) + 0.12
    height = n_rows * cell_height + note_height
    figure = Figure(figsize=(width, height))
    looks = _looks(panels)
    for position, panel in enumerate(panels):
        row, column = divmod(position, n_columns)
        left = column * cell_width + LEFT
        bottom = height - row * cell_height - TOP - PANEL_HEIGHT
        axes = style.add_axes(figure, left, bottom, PANEL_WIDTH, PANEL_HEIGHT)
        _draw_panel(axes, panel, looks)
        if column == 0:
            axes.set_ylabel(f"Test {panel.metric.axis_title}", labelpad=2)
    for line, text in enumerate(notes):
        y = note_height - 0.04 - line * FOOTNOTE_LINE
        figure.text(0.12 / width, y / height, text, fontsize=7.5, va="top", color=style.INK)
    return figure


def spread(positions: Sequence[float], gap: float, low: float, high: float) -> NDArray[np.float64]:
    """Move positions apart to at least a gap, as little as possible, within limits.

    Parameters
    ----------
    positions : sequence of float
        In increasing order.
    gap : float
        Least distance between neighbours.
    low, high : float
        Limits; the upper one is exceeded when there is no room.

    Returns
    -------
    ndarray of float64
        In increasing order; the closest to `positions` by least squares before the limits are imposed.
    """
    steps = gap * np.arange(len(positions))
    moved: NDArray[np.float64] = isotonic_regression(np.asarray(positions) - steps).x
    room = max(0.0, high - low - gap * (len(positions) - 1))
    return np.clip(moved, low, low + room) + steps


def _looks(panels: Sequence[Panel]) -> dict[Key, style.Look]:
    """Give every curve its look; settings that differ from panel to panel only make no difference."""
    key_of = shared_keys(panels)
    looks = style.looks_of(key_of.values())
    return {key: looks[shared] for key, shared in key_of.items()}


def _draw_panel(axes: Axes, panel: Panel, looks: Mapping[Key, style.Look]) -> None:
    private = [curve for curve in panel.curves if curve.kind == "private"]
    fixed = [curve for curve in panel.curves if curve.kind != "private"]
    budgets = sorted({point.eps for curve in private for point in curve.points}) or [0.5, 8.0]
    first, last = budgets[0], budgets[-1]
    margin = (last / first) ** 0.05 if last > first else 1.5
    axes.set_xscale("log", base=2)
    axes.set_xlim(first / margin, last * margin)
    axes.xaxis.set_major_locator(FixedLocator(budgets))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda eps, _: f"{eps:g}"))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.grid(axis="y")
    axes.set_xlabel("Privacy budget ε")
    style.write_above(axes, panel.title, 20, fontsize=10.5, fontweight="bold")
    source_colour = style.VERMILION if panel.is_stand_in else style.GREY
    style.write_above(axes, panel.data_source, 8, fontsize=8, color=source_colour)
    low, high, far_off = _limits(panel)
    axes.set_ylim(low, high)
    # Lines of the background first, the best method last and on top.
    for depth, curve in enumerate(
        [*fixed, *sorted(private, key=lambda c: (is_ours(c), panel.metric.sign * c.last))]
    ):
        look = looks[curve.method, curve.variant]
        if curve.kind != "private":
            if curve not in far_off:
                axes.axhline(curve.last, zorder=2, **line_style(curve, look))
            continue
        eps = [point.eps for point in curve.points]
        intervals = [point.interval for point in curve.points]
        means = np.array([interval.mean for interval in intervals])
        ends = [(i.mean, i.mean) if math.isnan(i.lower) else (i.lower, i.upper) for i in intervals]
        lower, upper = zip(*ends, strict=True)
        axes.fill_between(eps, lower, upper, color=look.colour, alpha=0.14, lw=0, zorder=3)
        if len(eps) == 1:  # which is no band yet
            axes.vlines(eps, lower, upper, color=look.colour, alpha=0.5, lw=1.2, zorder=3)
        axes.plot(eps, means, zorder=4 + 0.01 * depth, **line_style(curve, look))
    _name_curves(axes, panel, looks, far_off)


def _limits(panel: Panel) -> tuple[float, float, list[Curve]]:
    """Return the limits of the axis, and the majority class where it would squeeze the rest."""
    majority = [curve for curve in panel.curves if curve.kind == "majority"]
    others = [curve for curve in panel.curves if curve.kind != "majority"] or majority
    means = [point.interval.mean for curve in others for point in curve.points]
    low, high = min(means), max(means)
    # Bands of two repetitions can be ten times as high as everything else: cut them off then.
    span = max(high - low, 0.01)
    bands = [
        float(np.clip(end, interval.mean - span, interval.mean + span))
        for curve in others
        if curve.kind == "private"
        for interval in (point.interval for point in curve.points)
        for end in (interval.lower, interval.upper)
        if not math.isnan(end)
    ]
    low, high = min([low, *bands]), max([high, *bands])
    room = 0.5 * max(high - low, 0.01)
    far_off = [curve for curve in majority if not low - room <= curve.last <= high + room]
    near = [curve.last for curve in majority if curve not in far_off]
    low, high = min([low, *near]), max([high, *near])
    span = max(high - low, 0.01)
    return low - 0.06 * span, high + 0.05 * span, far_off


def line_style(curve: Curve, look: style.Look) -> dict[str, Any]:
    """Return how matplotlib draws the line of a curve; dashed and hollow where its guarantee is doubted."""
    drawn: dict[str, Any] = {"color": look.colour, "linewidth": look.width}
    if curve.kind == "majority":
        drawn["linestyle"] = ":"
        drawn["linewidth"] = 1.0
    elif curve.is_doubted:
        drawn["linestyle"] = (0, (3.2, 1.6))
    if curve.kind == "private":
        drawn |= {
            "marker": look.marker,
            "markersize": 5.2 if look.width > 2 else 5,
            "markeredgecolor": look.colour,
            "markeredgewidth": 1.1,
            "markerfacecolor": "white" if curve.is_doubted else look.colour,
        }
    return drawn


def _name_curves(
    axes: Axes, panel: Panel, looks: Mapping[Key, style.Look], far_off: Sequence[Curve]
) -> None:
    """Write the names to the right of the lines, in the order of their last values."""
    low, high = axes.get_ylim()
    ordered = sorted(panel.curves, key=lambda curve: curve.last)
    heights = [(min(max(curve.last, low), high) - low) / (high - low) for curve in ordered]
    texts = [_name(curve, (low, high) if curve in far_off else ANY_NUMBER) for curve in ordered]
    gap = style.LABEL_SIZE * 1.24 / 72 / PANEL_HEIGHT
    # A name of two lines takes the room of two.
    extra = np.cumsum([0.0] + [gap * 0.85 * text.count("\n") for text in texts[:-1]])
    own = np.array([gap * 0.425 * text.count("\n") for text in texts])
    offsets = extra + own
    places = spread(list(np.array(heights) - offsets), gap, 0.0, 1.0 - float(offsets[-1])) + offsets
    x_sample = 1.0 + 0.13 / PANEL_WIDTH
    x_end = x_sample + SAMPLE / PANEL_WIDTH
    inside: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
    for curve, height, place, text in zip(ordered, heights, places, texts, strict=True):
        look = looks[curve.method, curve.variant]
        # The leader begins where the line ends: at the edge for a horizontal line.
        x_start = 1.0
        if curve.kind == "private":
            end = axes.transData.transform((curve.points[-1].eps, curve.last))
            x_start = float(axes.transAxes.inverted().transform(end)[0])
        leader: dict[str, Any] = {
            "color": look.colour,
            "linewidth": 0.6,
            "alpha": 0.75,
            "zorder": 1.5,
        }
        axes.plot([x_start, x_sample], [height, place], **inside, **leader)
        sample = [x_sample, (x_sample + x_end) / 2, x_end]
        axes.plot(sample, [place] * 3, markevery=[1], **inside, **line_style(curve, look))
        axes.text(
            x_end + 0.05 / PANEL_WIDTH,
            place,
            text,
            transform=axes.transAxes,
            fontsize=style.LABEL_SIZE,
            va="center",
            linespacing=1.05,
            fontweight="bold" if is_ours(curve) else "normal",
        )


def _name(curve: Curve, limits: tuple[float, float]) -> str:
    """Return what stands beside a curve; with its value where that is off the limits."""
    low, high = limits
    off = f" {curve.last:.3f} {'↓' if curve.last < low else '↑'}"
    name = "\n".join(textwrap.wrap(curve.label, 24, break_long_words=False))
    return f"{name}{marks_of(curve)}{off if not low <= curve.last <= high else ''}"


def marks_of(curve: Curve) -> str:
    """Return the footnote marks of a curve, with a space before them."""
    if curve.kind != "private" or not (curve.is_doubted or curve.is_tuned):
        return ""
    return " " + DOUBTED * curve.is_doubted + TUNED * curve.is_tuned


def is_ours(curve: Curve) -> bool:
    """Return whether a curve is of this project's own method."""
    return "lumberjack" in curve.method or curve.method.startswith("additive_")


def card_notes(private: Sequence[Curve]) -> list[str]:
    """Return what the marks of private curves mean, of those marks that occur."""
    notes, found = [], []
    for status, meaning in (("broken", "Shown not to hold"), ("doubted", "In doubt")):
        labels = list(dict.fromkeys(c.label for c in private if c.card_status == status))
        if labels:
            found.append(f"{meaning}: {', '.join(labels)}.")
    if found:
        notes.append(
            f"{DOUBTED} Dashed, hollow markers: the privacy guarantee is not believed as claimed. "
            f"{' '.join(found)} The cards in the report say why."
        )
    tuned = list(dict.fromkeys(c.label for c in private if c.is_tuned))
    if tuned:
        notes.append(
            f"{TUNED} Hyper-parameters chosen on validation rows, at a privacy cost that the claim "
            f"leaves out: {', '.join(tuned)}."
        )
    return notes


def _footnotes(panels: Sequence[Panel], characters: int) -> list[str]:
    private = [c for panel in panels for c in panel.curves if c.kind == "private"]
    notes = [_general_note(panels), *card_notes(private)]
    if any(panel.is_stand_in for panel in panels):
        notes.append(
            "Stand-in: not the rows of the paper but others of the same survey in their place; "
            "numbers need not agree with the paper's."
        )
    notes += dict.fromkeys(line for panel in panels for line in panel.left_out)
    return [line for note in notes for line in textwrap.wrap(note, characters)]


def _general_note(panels: Sequence[Panel]) -> str:
    points = [p for panel in panels for c in panel.curves for p in c.points]
    sizes = sorted({point.interval.n for point in points})
    several = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else sizes[0]
    repetitions = f"{several} repetition{'s' * (sizes[-1] != 1)}"
    deltas = sorted({c.delta for panel in panels for c in panel.curves if c.kind == "private"})
    delta = f" δ = {', '.join(power_of_ten(value) for value in deltas)}." if deltas else ""
    band = "" if sizes[-1] == 1 else f"; bands: {panels[0].metric.interval_name}"
    kinds = {curve.kind for panel in panels for curve in panel.curves}
    fixed = " Horizontal lines: not private." if "reference" in kinds else ""
    return f"Mean over {repetitions}, each with its own random split{band}.{delta}{fixed}"
