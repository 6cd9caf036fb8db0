"""Figure 1 of the paper: what fully random trees and Lumberjack make of two moons as bounds grow.

Decision regions are not in the results table, so the forests are fitted here, on the settings of
``conf/experiment/figure1.yaml``; that takes seconds. Beside the picture goes a csv with the share of
points in the right region, for each seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from lumberjack_bench.configured import configured
from lumberjack_bench.datasets import load
from lumberjack_bench.datasets.loaders.toy import EXTENTS
from lumberjack_bench.figures import style
from lumberjack_bench.figures.curves import power_of_ten
from lumberjack_bench.figures.request import FigureError, Request
from lumberjack_bench.methods import MethodError, build_method

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

METHODS = ("fully_random", "lumberjack")
"""Upper row, lower row."""

N_CLASSES = 3
CLASS_NAMES = ("larger moon", "smaller moon", "blob")
MOONS, BLOB = (0, 1), 2

WINDOW = (5.0, 4.0)
"""What the large panels show of the space: both moons, and at the smallest extent everything."""

GRID = (500, 400)
INSET_GRID = (150, 120)
N_SHOWN = 2500
"""Points that are drawn, of 10,000; all of them are counted."""

REGION_COLOURS = ("#FBE2D2", "#AACDE6", "#7DBFA3")
"""From light to dark, so that regions differ in grey too."""
POINT_COLOURS = (style.VERMILION, style.BLUE, "#00674B")
POINT_MARKERS = ("o", "s", "^")


@dataclass(frozen=True, slots=True)
class Settings:
    """What is fitted."""

    methods: dict[str, dict[str, Any]]
    """The ``method`` part of a configuration, by name."""
    eps: float
    delta: float
    n_seeds: int
    """Fits of each forest; the picture shows the first."""


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One method at one extent."""

    method: str
    extent: int
    """Upper bound of the first feature."""
    points: NDArray[np.float64]
    labels: NDArray[np.int64]
    """All points, shape (n_points, 2), and their classes."""
    regions: NDArray[np.int64]
    inset: NDArray[np.int64]
    """Predicted classes in the window and in the whole space, shapes (rows, columns), of the first seed."""
    shares: list[dict[str, float]]
    """For each seed: share of points in the right region, by group."""

    @property
    def moon_share(self) -> float:
        """Mean share of moon points in the right region."""
        return fmean(share["moons"] for share in self.shares)


def make(request: Request) -> list[Path]:
    """Fit the forests and draw their regions; write PDF, PNG and csv.

    Raises
    ------
    FigureError
        When a method cannot be built.
    """
    settings = read_settings()
    try:
        cells = [fit_cell(settings, method, extent) for method in METHODS for extent in EXTENTS]
    except MethodError as error:
        raise FigureError(f"figure1: {error}") from error
    with style.our_look():
        paths = style.save(draw_cells(cells, settings), request)
    return [*paths, request.write_csv(csv_rows(cells), "%.6f")]


def read_settings() -> Settings:
    """Read what the experiment's configuration says."""
    experiment = configured("experiment/figure1")
    methods = {name: configured(f"method/{name}", dataset="toy_moons") for name in METHODS}
    for method in methods.values():
        method["params"] |= experiment["method"]["params"]
    return Settings(methods, experiment["eps"], experiment["delta"], experiment["n_repeats"])


def fit_cell(settings: Settings, method: str, extent: int) -> Cell:
    """Fit a method to all points, once per seed, and evaluate it."""
    dataset = load({"name": f"toy_moons_{extent}", "kind": "toy", "extent": extent})
    X, _ = dataset.encoded()
    y = dataset.y.astype(np.int64)
    config = settings.methods[method]
    is_private = config["is_private"]
    models = [
        build_method(
            config,
            schema=dataset.schema.coded(),
            epsilon=settings.eps if is_private else math.inf,
            delta=settings.delta if is_private else 0.0,
            random_state=seed,
            # Fixed, so that the picture is the same each time: the points are no one's.
            noise_seed=1000 + seed,
        ).fit(X, y)
        for seed in range(settings.n_seeds)
    ]
    upper = dataset.schema.upper
    return Cell(
        method,
        extent,
        points=X,
        labels=y,
        regions=_regions(models[0], WINDOW, GRID),
        inset=_regions(models[0], (float(upper[0]), float(upper[1])), INSET_GRID),
        shares=[shares_of(np.asarray(model.predict(X)), y) for model in models],
    )


def shares_of(predicted: NDArray[np.int64], y: NDArray[np.int64]) -> dict[str, float]:
    """Return the share of points in a region of their own class: of both moons, each group, and all."""
    is_right = predicted == y
    return {
        "moons": float(is_right[y != BLOB].mean()),
        "larger_moon": float(is_right[y == MOONS[0]].mean()),
        "smaller_moon": float(is_right[y == MOONS[1]].mean()),
        "blob": float(is_right[y == BLOB].mean()),
        "all": float(is_right.mean()),
    }


def draw_cells(cells: Sequence[Cell], settings: Settings) -> Figure:
    """Draw the grid, row by row: methods down, extents across."""
    n_columns = len(EXTENTS)
    width, height = 3.15, 2.52
    left, right, top, bottom, gap_x, gap_y = 0.78, 0.08, 0.42, 0.92, 0.18, 0.42
    total_width = left + n_columns * width + (n_columns - 1) * gap_x + right
    figure = Figure(figsize=(total_width, top + 2 * height + gap_y + bottom))
    for position, cell in enumerate(cells):
        row, column = divmod(position, n_columns)
        x = left + column * (width + gap_x)
        y = bottom + (1 - row) * (height + gap_y)
        axes = style.add_axes(figure, x, y, width, height)
        _draw_cell(axes, cell)
        share = f"{cell.moon_share:.1%} of moon points right"
        axes.set_title(share, fontsize=8.5, pad=4, loc="right")
        axes.tick_params(labelbottom=row == 1, labelleft=column == 0)
        heading: dict[str, Any] = {"ha": "center", "fontweight": "bold"}
        if row == 0:
            bounds = f"[0, {cell.extent}] \N{MULTIPLICATION SIGN} [0, {cell.extent * 4 // 5}]"
            style.write_above(axes, f"bounds {bounds}", 19, at=0.5, fontsize=10.5, **heading)
        if row == 1:
            axes.set_xlabel("feature 1")
        if column == 0:
            axes.set_ylabel("feature 2")
            axes.annotate(
                _row_title(cell.method, settings),
                (0, 0.5),
                xycoords="axes fraction",
                xytext=(-46, 0),
                textcoords="offset points",
                rotation=90,
                va="center",
                fontsize=9.5,
                **heading,
            )
    _draw_legend(figure, settings)
    return figure


def csv_rows(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return the shares, a row for each method, extent and seed, and one with the mean over seeds."""
    rows = []
    for cell in cells:
        means = {name: fmean(share[name] for share in cell.shares) for name in cell.shares[0]}
        for seed, share in [*enumerate(cell.shares), ("mean", means)]:
            own = {"method": cell.method, "extent": cell.extent, "seed": seed}
            rows.append(own | {f"share_{name}": value for name, value in share.items()})
    return rows


def _regions(model: Any, upper: tuple[float, float], grid: tuple[int, int]) -> NDArray[np.int64]:
    """Return the predicted class in the middle of each cell of a grid from 0 to `upper`."""
    axes = [(np.arange(n) + 0.5) * (end / n) for n, end in zip(grid, upper, strict=True)]
    first, second = np.meshgrid(*axes)
    points = np.asfortranarray(np.column_stack([first.ravel(), second.ravel()]))
    return np.asarray(model.predict(points)).reshape(first.shape)


def _row_title(method: str, settings: Settings) -> str:
    params = settings.methods[method]["params"]
    if settings.methods[method]["is_private"]:
        return f"Lumberjack, ({settings.eps:g}, {power_of_ten(settings.delta)})-DP"
    return f"Fully random trees, depth {params['max_depth']}, no noise"


def _draw_regions(axes: Axes, regions: NDArray[np.int64], upper: Sequence[float]) -> None:
    axes.imshow(
        regions,
        cmap=ListedColormap(REGION_COLOURS),
        vmin=-0.5,
        vmax=N_CLASSES - 0.5,
        extent=(0, upper[0], 0, upper[1]),
        origin="lower",
        interpolation="nearest",
        aspect="auto",
        zorder=0,
    )


def _draw_cell(axes: Axes, cell: Cell) -> None:
    _draw_regions(axes, cell.regions, WINDOW)
    # Rows are grouped by class: every fourth point keeps the classes' shares.
    step = max(1, len(cell.points) // N_SHOWN)
    for code in range(N_CLASSES):
        x, y = cell.points[cell.labels == code][::step].T
        axes.scatter(
            x,
            y,
            s=2.6,
            marker=POINT_MARKERS[code],
            color=POINT_COLOURS[code],
            linewidths=0,
            alpha=0.75,
            rasterized=True,
            zorder=2,
        )
    axes.set(xlim=(0, WINDOW[0]), ylim=(0, WINDOW[1]), xticks=range(6), yticks=range(5))
    if cell.extent > WINDOW[0]:
        _draw_inset(axes, cell)


def _draw_inset(axes: Axes, cell: Cell) -> None:
    """Show the whole space, of which the panel is the lower left corner."""
    upper = (float(cell.extent), cell.extent * 0.8)
    paper: dict[str, Any] = {"facecolor": "white", "alpha": 0.85, "linewidth": 0, "zorder": 3}
    axes.add_patch(Rectangle((3.52, 2.55), 1.4, 1.37, **paper))
    inset = axes.inset_axes((3.58 / 5, 2.86 / 4, 1.28 / 5, 1.0 / 4), zorder=4)
    _draw_regions(inset, cell.inset, upper)
    blob = cell.points[cell.labels == BLOB].mean(axis=0)
    inset.plot(*blob, marker="^", color=POINT_COLOURS[BLOB], markersize=4, zorder=3, clip_on=False)
    # The corner is too small to see at the largest extent: draw it at a least size.
    corner = [max(shown, 0.035 * end) for shown, end in zip(WINDOW, upper, strict=True)]
    frame: dict[str, Any] = {
        "facecolor": "none",
        "edgecolor": style.INK,
        "linewidth": 1.0,
        "zorder": 4,
    }
    inset.add_patch(Rectangle((0, 0), *corner, **frame))
    inset.set(xlim=(0, upper[0]), ylim=(0, upper[1]), xticks=[], yticks=[])
    inset.spines[:].set(visible=True, linewidth=0.6)
    axes.text(4.22, 2.7, "whole space", fontsize=7, ha="center", va="center", zorder=4)


def _draw_legend(figure: Figure, settings: Settings) -> None:
    handles: list[Any] = []
    for code, name in enumerate(CLASS_NAMES):
        point: dict[str, Any] = {
            "marker": POINT_MARKERS[code],
            "color": POINT_COLOURS[code],
            "markersize": 4.5,
        }
        label = f"points of the {name}"
        handles.append(Line2D([], [], linestyle="", label=label, **point))
        handles.append(Patch(facecolor=REGION_COLOURS[code], label="its region"))
    height = float(figure.get_size_inches()[1])
    figure.legend(
        handles=handles,
        loc="lower center",
        bbox_to_anchor=(0.5, 0.21 / height),
        ncols=6,
        frameon=False,
        fontsize=8.5,
        columnspacing=1.3,
        handletextpad=0.4,
    )
    trees = settings.methods[METHODS[0]]["params"]["n_estimators"]
    figure.text(
        0.5,
        0.05 / height,
        f"{trees} trees each, majority vote; regions of the first seed, shares are means of "
        f"{settings.n_seeds} seeds. Insets: the whole space, with the blob (triangle) and the part "
        "shown (rectangle).",
        ha="center",
        va="bottom",
        fontsize=7.5,
    )
