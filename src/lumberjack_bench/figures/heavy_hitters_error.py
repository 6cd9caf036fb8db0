"""Error of the heavy-hitter search against the height of the tree, measured and as the theory bounds it.

Algorithm 1 against the baseline that walks from the root and queries every level. Both run with the
noise that their number of touches needs for the same guarantee, on the same kind of tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from lumberjack.accounting import calibrate_safe, get_error_bound, get_n_queries_per_record
from lumberjack.heavy_hitters import (
    GaussianSparseThreshold,
    Hierarchy,
    mark_heavy_hitters,
    mark_top_down,
)
from lumberjack_bench.figures import style
from lumberjack_bench.figures.curves import power_of_ten
from lumberjack_bench.figures.panels import spread
from lumberjack_bench.figures.request import Request

EPSILON, DELTA = 1.0, 1e-6
BETA = 0.05
"""Probability with which the bound of Lemma 5 may fail."""

HEIGHTS = (10, 30, 100, 300, 1000, 3000, 10_000)
N_CHAINS = 64
N_TRIALS = 12
SEED = 0

Method = Literal["binary_search", "top_down"]
METHODS: tuple[Method, ...] = ("binary_search", "top_down")

_SEARCHES = {"binary_search": mark_heavy_hitters, "top_down": mark_top_down}
_LABELS = {"binary_search": "Algorithm 1", "top_down": "top-down baseline"}
_LOOKS = {
    "binary_search": style.Look(style.BLUE, "o", 2.2),
    "top_down": style.Look(style.ORANGE, "s", 1.8),
}


@dataclass(frozen=True, slots=True)
class Measurement:
    """Error of a method at one height, in records."""

    method: Method
    """``binary_search`` (Algorithm 1) or ``top_down``."""
    height: int
    """Levels of the tree."""
    n_touches: int
    """Queries in which one record can be counted."""
    sigma: float
    threshold: float
    """Noise, and what noisy counts are compared with (1 + margin)."""
    n_records: int
    n_trials: int
    """Size of the data and number of searches."""
    mean: float
    smallest: float
    largest: float
    """Of the error over searches."""
    bound: float
    """Lemma 5 at probability 1 - beta."""


def make(request: Request) -> list[Path]:
    """Measure and draw; write PDF, PNG and csv."""
    measurements = measure_all()
    with style.our_look():
        paths = style.save(draw_errors(measurements), request)
    return [*paths, request.write_csv([asdict(one) for one in measurements])]


def measure_all(
    heights: Sequence[int] = HEIGHTS, n_trials: int = N_TRIALS, seed: int = SEED
) -> list[Measurement]:
    """Measure both methods at all heights, each with noise of its own."""
    seeds = iter(np.random.SeedSequence(seed).spawn(len(METHODS) * len(heights)))
    return [
        measure(method, height, n_trials, np.random.default_rng(next(seeds)))
        for method in METHODS
        for height in heights
    ]


def measure(
    method: Method, height: int, n_trials: int, generator: np.random.Generator
) -> Measurement:
    """Measure how far from the threshold a misjudged count lies, on a tree of chains.

    Below the root hang chains of equal length. All records of a chain reach its end, so its count
    is the same on every level; counts are spread evenly around the threshold, as far as the bound.

    """
    n_touches = get_n_queries_per_record(height) if method == "binary_search" else height
    noise = calibrate_safe(EPSILON, DELTA, n_touches)
    bound = partial(get_error_bound, noise.sigma, beta=BETA, n_queries_per_record=n_touches)
    # The bound depends on the number of records, which depends on how far the counts are spread;
    # the logarithm makes a guess of the former good enough for the latter.
    guess = N_CHAINS * noise.threshold
    spread_to = bound(n_records=int(guess))
    chain_counts = np.linspace(
        max(1.0, noise.threshold - spread_to), noise.threshold + spread_to, N_CHAINS
    ).round()
    hierarchy, counts = chains(height, chain_counts.astype(np.int64))
    query = GaussianSparseThreshold(noise.sigma, noise.threshold, noise.margin, generator)

    def check_threshold(nodes: NDArray[np.intp]) -> NDArray[np.bool_]:
        return query(counts[nodes])

    errors = [
        error_of(_SEARCHES[method](hierarchy, check_threshold), counts, noise.threshold)
        for _ in range(n_trials)
    ]
    n_records = int(counts[hierarchy.root])
    return Measurement(
        method=method,
        height=height,
        n_touches=n_touches,
        sigma=noise.sigma,
        threshold=noise.threshold,
        n_records=n_records,
        n_trials=n_trials,
        mean=float(np.mean(errors)),
        smallest=float(np.min(errors)),
        largest=float(np.max(errors)),
        bound=bound(n_records=n_records),
    )


def chains(height: int, chain_counts: NDArray[np.int64]) -> tuple[Hierarchy, NDArray[np.int64]]:
    """Return a root with a chain of `height` - 1 nodes for each count below it, level by level.

    Returns
    -------
    hierarchy : Hierarchy
        Node 0 is the root; then level by level, a node for each chain.
    counts : ndarray of int64, shape (n_nodes,)
        Records of each node.
    """
    n_chains = len(chain_counts)
    parent = np.arange(1 + n_chains * (height - 1)) - n_chains
    parent[1 : 1 + n_chains] = 0
    parent[0] = -1
    counts = np.concatenate([[chain_counts.sum()], np.tile(chain_counts, height - 1)])
    return Hierarchy(parent), counts


def error_of(is_heavy: NDArray[np.bool_], counts: NDArray[np.int64], threshold: float) -> float:
    """Return how far from the threshold the worst misjudged count lies: alpha of Lemma 5, in records.

    Zero when none is misjudged.

    Parameters
    ----------
    is_heavy : ndarray of bool, shape (n_nodes,)
        Answer of a search.
    counts : ndarray of int64, shape (n_nodes,)
        True counts; a node is heavy above `threshold`.
    """
    wrong = is_heavy != (counts > threshold)
    return float(np.abs(counts[wrong] - threshold).max()) if wrong.any() else 0.0


def draw_errors(measurements: Sequence[Measurement]) -> Figure:
    """Draw error against height on logarithmic axes."""
    figure = Figure(figsize=(6.6, 3.9))
    axes = figure.add_axes((0.115, 0.235, 0.61, 0.735))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(which="major")
    ends = []
    for method in METHODS:
        own = sorted((m for m in measurements if m.method == method), key=lambda m: m.height)
        look, label = _LOOKS[method], _LABELS[method]
        heights = [m.height for m in own]
        means, bounds = [m.mean for m in own], [m.bound for m in own]
        smallest, largest = [m.smallest for m in own], [m.largest for m in own]
        axes.fill_between(heights, smallest, largest, color=look.colour, alpha=0.18, lw=0)
        marked: dict[str, Any] = {"marker": look.marker, "markersize": 5, "linewidth": look.width}
        axes.plot(heights, means, color=look.colour, **marked)
        axes.plot(heights, bounds, color=look.colour, linewidth=1.1, linestyle=":")
        ends.append((means[-1], f"{label}, measured", look.colour, "-"))
        ends.append((bounds[-1], f"{label}, Lemma 5", look.colour, ":"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("Height of the tree (levels)")
    axes.set_ylabel("Error (records)")
    low, high = np.log10(axes.get_ylim())
    ends.sort()
    positions = [float((np.log10(value) - low) / (high - low)) for value, *_ in ends]
    places = spread(positions, 0.055, 0.0, 1.0)
    for (_, text, colour, line), position, place in zip(ends, positions, places, strict=True):
        axes.annotate(
            text,
            (1.0, position),
            xycoords="axes fraction",
            xytext=(1.03, place),
            textcoords="axes fraction",
            va="center",
            fontsize=style.LABEL_SIZE,
            arrowprops={"arrowstyle": "-", "color": colour, "linestyle": line, "shrinkA": 0},
        )
    figure.text(
        0.015,
        0.015,
        f"Error: largest distance from the threshold of a misjudged count; mean and range of "
        f"{measurements[0].n_trials} searches.\nDotted: bound of Lemma 5, which holds with probability "
        f"{1 - BETA:g}. ε = {EPSILON:g}, δ = {power_of_ten(DELTA)} for each search; threshold "
        "1 + margin.",
        fontsize=7.5,
        va="bottom",
        linespacing=1.4,
    )
    return figure
