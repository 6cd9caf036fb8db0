"""Figure 2, drawn step by step: the search of Algorithm 1 on a small tree, with real noise.

The steps are recorded from :func:`lumberjack.heavy_hitters.mark_heavy_hitters` itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from numpy.typing import NDArray

from lumberjack.accounting import ThresholdNoise, calibrate_safe, get_n_queries_per_record
from lumberjack.heavy_hitters import GaussianSparseThreshold, Hierarchy, mark_heavy_hitters
from lumberjack_bench.figures import style
from lumberjack_bench.figures.curves import power_of_ten
from lumberjack_bench.figures.request import Request

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EPSILON, DELTA = 1.0, 1e-6
THRESHOLD = 100.0
SEED = 0

LEAF_COUNTS = (300, 160, 75, 65, 40, 30, 30, 20, 25, 20, 15, 20, 20, 10, 25, 15)
"""Records of the lowest level, left to right: made up so that every phase has something to do."""

UNMARKED, LIGHT, HEAVY = 0, 1, 2

_COLOURS = {UNMARKED: style.GREY, LIGHT: style.VERMILION, HEAVY: style.BLUE}
_LETTERS = {UNMARKED: "?", LIGHT: "L", HEAVY: "H"}
_BANDS = {"I": "#FBEBCB", "II": "#E9DFF2", "III": "#DDF0E6"}

"""Of a node; the lowest level's nodes are 1 apart."""
LEVEL_HEIGHT = 1.9


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One round of queries."""

    queried: NDArray[np.intp]
    """Nodes asked about."""
    answers: NDArray[np.bool_]
    """Whether each passed the threshold."""
    before: NDArray[np.int8]
    after: NDArray[np.int8]
    """Marks of all nodes, shape (n_nodes,): unmarked, Light or Heavy."""


def make(request: Request) -> list[Path]:
    """Run the search and draw its steps; write PDF and PNG."""
    hierarchy, counts = binary_tree(LEAF_COUNTS)
    noise = calibrate_safe(EPSILON, DELTA, get_n_queries_per_record(hierarchy.height))
    steps = record_search(hierarchy, counts, noise, np.random.default_rng(SEED))
    with style.our_look():
        return style.save(draw_steps(hierarchy, counts, noise, steps), request)


def binary_tree(leaf_counts: Sequence[int]) -> tuple[Hierarchy, NDArray[np.int64]]:
    """Return a complete binary tree above these leaves and the counts of its nodes, breadth first.

    The number of leaves is a power of two.
    """
    levels = [np.asarray(leaf_counts, dtype=np.int64)]
    while len(levels[0]) > 1:
        levels.insert(0, levels[0].reshape(-1, 2).sum(axis=1))
    counts = np.concatenate(levels)
    parent = (np.arange(len(counts)) - 1) // 2
    return Hierarchy(parent), counts


def record_search(
    hierarchy: Hierarchy,
    counts: NDArray[np.int64],
    noise: ThresholdNoise,
    generator: np.random.Generator,
) -> list[Step]:
    """Run Algorithm 1 on a tree of these counts and record its rounds of queries, in their order."""
    query = GaussianSparseThreshold(noise.sigma, THRESHOLD, noise.margin, generator)
    steps: list[Step] = []
    marks = np.zeros(len(hierarchy), dtype=np.int8)

    def check_threshold(nodes: NDArray[np.intp]) -> NDArray[np.bool_]:
        nonlocal marks
        answers = query(counts[nodes])
        after = marks.copy()
        for node, is_yes in zip(nodes, answers, strict=True):
            if is_yes:
                after[_path_up(hierarchy, int(node))] = HEAVY
            else:
                after[_all_below(hierarchy, int(node))] = LIGHT
        steps.append(Step(nodes.copy(), answers, marks, after))
        marks = after
        return answers

    mark_heavy_hitters(hierarchy, check_threshold)
    return steps


def draw_steps(
    hierarchy: Hierarchy, counts: NDArray[np.int64], noise: ThresholdNoise, steps: Sequence[Step]
) -> Figure:
    """Draw the counts, the steps, and what is released, of a tree that :func:`binary_tree` made."""
    n_columns = 3
    n_rows = -(-(len(steps) + 2) // n_columns)
    width, height, top, bottom, gap = 4.1, 2.35, 0.42, 0.62, 0.12
    total = (n_columns * width + (n_columns + 1) * gap, n_rows * (height + top) + bottom)
    figure = Figure(figsize=total)
    positions = _positions(hierarchy)

    def panel(number: int, title: str, detail: str) -> Axes:
        row, column = divmod(number, n_columns)
        y = total[1] - (row + 1) * (height + top)
        axes = style.add_axes(figure, gap + column * (width + gap), y, width, height)
        axes.set_xlim(-1.55, (hierarchy.level == hierarchy.height - 1).sum() - 0.3)
        axes.set_ylim(-LEVEL_HEIGHT * (hierarchy.height - 1) - 0.75, 0.75)
        axes.set_axis_off()
        style.write_above(axes, title, 7, at=0.02, fontsize=9.5, fontweight="bold")
        style.write_above(axes, detail, -4, at=0.02, fontsize=8, color=style.GREY)
        for level in range(hierarchy.height):
            up = -LEVEL_HEIGHT * level
            axes.text(-1.1, up, str(level), fontsize=7.5, va="center", color=style.GREY)
        return axes

    axes = panel(0, "The tree", "records at or below each node; not released")
    _draw_edges(axes, hierarchy, positions)
    for node, (x, y) in enumerate(positions):
        is_heavy = counts[node] > THRESHOLD
        _draw_node(axes, x, y, str(counts[node]), style.INK, is_filled=False, is_bold=is_heavy)

    middle = hierarchy.height // 2
    for number, step in enumerate(steps, start=1):
        levels = sorted({int(level) for level in hierarchy.level[step.queried]})
        phase = "I" if levels == [middle] else "II" if min(levels) > middle else "III"
        where = {"I": "the middle", "II": "below the middle", "III": "above the middle"}[phase]
        axes = panel(
            number,
            f"Step {number}: query level {', '.join(map(str, levels))}",
            f"phase {phase}, {where}: {len(step.queried)} asked, {step.answers.sum()} yes",
        )
        for level in levels:
            corner = (-0.7, -LEVEL_HEIGHT * level - 0.72)
            across = positions[:, 0].max() + 1.4
            band = Rectangle(corner, across, 1.44, facecolor=_BANDS[phase], edgecolor="none")
            axes.add_patch(band).set_zorder(0)
        _draw_step(axes, hierarchy, positions, step)

    final = steps[-1].after
    wrong = int(((final == HEAVY) != (counts > THRESHOLD)).sum())
    errors = "all judged right" if wrong == 0 else f"{wrong} misjudged"
    axes = panel(
        len(steps) + 1, "Released", f"Heavy nodes; the Light ones below them are leaves ({errors})"
    )
    is_heavy = final == HEAVY
    is_released = is_heavy | ((hierarchy.parent >= 0) & is_heavy[hierarchy.parent])
    _draw_edges(axes, hierarchy, positions, is_released)
    for place, mark in zip(positions[is_released], final[is_released], strict=True):
        _draw_mark(axes, place, mark)
    touches = get_n_queries_per_record(hierarchy.height)
    figure.text(
        0.012,
        0.06 / total[1],
        f"H Heavy, L Light, ? unmarked; bold ring: queried in this step; arrows: marks that follow "
        f"(yes: all nodes above are Heavy, no: all below are Light). No record is counted in more "
        f"than {touches} queries; asking every level would take {hierarchy.height}.\n"
        f"Threshold {THRESHOLD:g}, ε = {EPSILON:g}, δ = {power_of_ten(DELTA)}: noise of standard "
        f"deviation {noise.sigma:.1f}, counts up to {THRESHOLD - noise.margin - 1:.0f} always "
        "rejected.",
        fontsize=8,
        va="bottom",
        linespacing=1.5,
    )
    return figure


def _path_up(hierarchy: Hierarchy, node: int) -> list[int]:
    path = []
    while node >= 0:
        path.append(node)
        node = int(hierarchy.parent[node])
    return path


def _all_below(hierarchy: Hierarchy, node: int) -> list[int]:
    found, waiting = [], [node]
    while waiting:
        found += waiting
        waiting = hierarchy.children(np.array(waiting)).tolist()
    return found


def _positions(hierarchy: Hierarchy) -> NDArray[np.float64]:
    """Place the lowest level side by side and every other node above the middle of its children."""
    lowest = hierarchy.height - 1
    positions = np.zeros((len(hierarchy), 2))
    positions[:, 1] = -LEVEL_HEIGHT * hierarchy.level
    n_below = 2.0 ** (lowest - hierarchy.level)
    first_of_level = 2.0**hierarchy.level - 1
    positions[:, 0] = (np.arange(len(hierarchy)) - first_of_level + 0.5) * n_below - 0.5
    return positions


def _draw_edges(
    axes: Axes,
    hierarchy: Hierarchy,
    positions: NDArray[np.float64],
    nodes: NDArray[np.bool_] | None = None,
) -> None:
    for node, above in enumerate(hierarchy.parent):
        if above >= 0 and (nodes is None or nodes[node]):
            axes.plot(*positions[[above, node]].T, color=style.PALE, linewidth=0.8, zorder=1)


def _draw_node(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    colour: str,
    *,
    is_filled: bool,
    is_bold: bool = False,
    is_ringed: bool = False,
    is_faint: bool = False,
) -> None:
    is_count = text.isdigit()
    edge = style.INK if is_ringed else style.PALE if is_faint else colour
    axes.scatter(
        [x],
        [y],
        s=190 if is_count else 118,
        facecolor=colour if is_filled else "white",
        edgecolor="none" if is_count else edge,
        linewidth=1.9 if is_ringed else 0.9,
        linestyle="-" if is_filled or is_ringed else (0, (2, 1)),
        zorder=3,
    )
    axes.text(
        x,
        y - 0.02,
        text,
        ha="center",
        va="center",
        fontsize=7.2 if is_count else 7.5,
        color="white" if is_filled else style.GREY if is_faint else colour,
        fontweight="bold" if is_bold else "normal",
        zorder=4,
    )


def _draw_mark(axes: Axes, place: NDArray[np.float64], mark: int, **look: bool) -> None:
    """Draw a node with the letter and colour of its mark."""
    x, y = place
    _draw_node(axes, x, y, _LETTERS[mark], _COLOURS[mark], is_filled=mark == HEAVY, **look)


def _draw_step(
    axes: Axes, hierarchy: Hierarchy, positions: NDArray[np.float64], step: Step
) -> None:
    _draw_edges(axes, hierarchy, positions)
    is_new = step.before != step.after
    for node, above in enumerate(hierarchy.parent):
        if above < 0:
            continue
        marks = (step.after[node], step.after[above])
        is_up = is_new[above] and marks == (HEAVY, HEAVY)
        is_down = is_new[node] and node not in step.queried and marks == (LIGHT, LIGHT)
        if is_up or is_down:
            ends = (node, above) if is_up else (above, node)
            arrow = FancyArrowPatch(
                *(tuple(positions[end]) for end in ends),
                arrowstyle="-|>",
                mutation_scale=7,
                shrinkA=6,
                shrinkB=6,
                linewidth=1.1,
                linestyle="-" if is_up else (0, (3, 1.5)),
                color=style.BLUE if is_up else style.VERMILION,
                zorder=2,
            )
            axes.add_patch(arrow)
    for node, place in enumerate(positions):
        mark = step.after[node]
        is_queried = node in step.queried
        is_faint = not is_new[node] and mark == LIGHT
        _draw_mark(axes, place, mark, is_bold=is_queried, is_ringed=is_queried, is_faint=is_faint)
