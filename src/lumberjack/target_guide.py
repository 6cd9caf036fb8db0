"""What an additive regression releases first: the scale of its target, and the cells of its features.

Targets s are shares in [0, 1] of the way between their public bounds. Two groups of sums are released,
each with Gaussian noise; all else here is post-processing of them.

- The histogram of s, of sensitivity 1. It gives a centre m, a spread, and a width c: residuals are
  clipped to [-c, c] from here on, so that noise follows what targets do and not how wide their bounds are.
- For each feature the sums of 1 - u and of u in its cells, where u in [0, 1] is s - m clipped and
  scaled. A record adds a vector of L2 norm at most 1 to one cell of each feature, so d features make d
  queries of sensitivity 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lumberjack.guide import haar_denoise
from lumberjack.schema import FeatureSchema

N_TARGET_CELLS = 64
N_LEVELS = 16
"""Quantile levels of a feature, on which trees are cut."""

_TAIL = 0.005
"""Share of the records whose targets may lie farther from the centre than residuals are clipped at."""

_FEWEST_BINS, _MOST_BINS = 4, 8
"""Of a numeric feature, as powers of two."""

_THRESHOLD = 2.0
"""Standard deviations below which a detail of a histogram is dropped."""

_SHRINKAGE = 2.0
"""Standard deviations of noise that a cell's count is weighed against."""


class TargetScale(NamedTuple):
    """What is released of the target, as shares of its range.

    Attributes
    ----------
    n_rows : float
        Number of records, at least 10.
    centre, spread : float
        Mean and standard deviation.
    width : float
        Where residuals are clipped.
    """

    n_rows: float
    centre: float
    spread: float
    width: float


def release_scale(
    shares: NDArray[np.float64], sigma: float, generator: np.random.Generator
) -> TargetScale:
    """Release the target's histogram, and read its scale off it.

    Parameters
    ----------
    shares : ndarray of float64, shape (n_rows,)
        Targets in [0, 1].
    sigma : float
        Standard deviation of the noise of each cell, in records.
    generator : numpy.random.Generator
        Source of noise.
    """
    cells = np.minimum((shares * N_TARGET_CELLS).astype(np.int64), N_TARGET_CELLS - 1)
    noisy = np.bincount(cells, minlength=N_TARGET_CELLS) + generator.normal(
        scale=sigma, size=N_TARGET_CELLS
    )
    n_rows = max(float(noisy.sum()), 10.0)
    masses = haar_denoise(noisy[:, np.newaxis], sigma, _THRESHOLD)[:, 0]
    masses = masses / masses.sum() if masses.sum() > 0 else np.full(N_TARGET_CELLS, 1 / 64)
    middles = (np.arange(N_TARGET_CELLS) + 0.5) / N_TARGET_CELLS
    centre = float(masses @ middles)
    spread = max(float(np.sqrt(masses @ (middles - centre) ** 2)), 0.5 / N_TARGET_CELLS)
    distances = np.abs(middles - centre) + 0.5 / N_TARGET_CELLS
    outermost_first = np.argsort(-distances, kind="stable")
    # What may lie in so many cells; noise counts against cutting them off.
    n_cells = np.arange(1, N_TARGET_CELLS + 1)
    outside = noisy[outermost_first].cumsum() + sigma * np.sqrt(n_cells)
    n_cut = int(np.argmin(np.append(outside <= _TAIL * n_rows, False)))
    width = float(distances[outermost_first][min(n_cut, N_TARGET_CELLS - 1)])
    return TargetScale(n_rows, centre, spread, min(width, 1.0))


class FeatureCells(NamedTuple):
    """The cells of one feature, and what is released of them.

    A numeric feature has equal bins between its public bounds. Unseen categories have the last entry of
    `levels` and no cell.

    Attributes
    ----------
    masses : ndarray of float64, shape (n_cells,)
        Share of the records in each, of sum 1.
    levels : ndarray of float64, shape (n_cells + 1,)
        Quantile level of each, from 0 to :data:`N_LEVELS` - 1; categories in the order of their means.
    importance : float
        Variance of the cells' means, in the unit of the width.
    is_category : bool
        Whether cells are categories.
    """

    masses: NDArray[np.float64]
    levels: NDArray[np.float64]
    importance: float
    is_category: bool

    @property
    def level_masses(self) -> NDArray[np.float64]:
        """Share of the records in each level, shape (N_LEVELS,)."""
        masses: NDArray[np.float64] = np.zeros(N_LEVELS)
        np.add.at(masses, self.levels[:-1].astype(np.int64), self.masses)
        return masses


def find_cells(
    values: NDArray[np.float64], schema: FeatureSchema, sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the cell of each entry, -1 for an unseen category.

    Parameters
    ----------
    values : ndarray of float64, shape (n_rows, n_features)
        Encoded rows.
    schema : FeatureSchema
        Public facts.
    sizes : ndarray of int64, shape (n_features,)
        Cells of each feature.
    """
    width = schema.upper - schema.lower
    per_unit = np.divide(sizes, width, out=np.zeros(len(width)), where=width > 0)
    bins = np.clip(((values - schema.lower) * per_unit).astype(np.int64), 0, sizes - 1)
    cells: NDArray[np.int64] = np.where(schema.n_categories > 0, values, bins).astype(np.int64)
    return cells


def release_cells(
    values: NDArray[np.float64],
    shares: NDArray[np.float64],
    schema: FeatureSchema,
    scale: TargetScale,
    sigma: float,
    generator: np.random.Generator,
) -> list[FeatureCells]:
    """Release counts and sums of the target in the cells of all features.

    Parameters
    ----------
    values : ndarray of float64, shape (n_rows, n_features)
        Encoded rows.
    shares : ndarray of float64, shape (n_rows,)
        Targets in [0, 1].
    schema : FeatureSchema
        Public facts.
    scale : TargetScale
        What was released of the target.
    sigma : float
        Standard deviation of the noise of each sum, in records.
    generator : numpy.random.Generator
        Source of noise.
    """
    n_bins = np.clip(np.floor(np.log2(scale.n_rows / (4 * sigma))), _FEWEST_BINS, _MOST_BINS)
    sizes = np.where(schema.n_categories > 0, schema.n_categories, 2 ** int(n_bins))
    cells = find_cells(values, schema, sizes)
    upper = (np.clip((shares - scale.centre) / scale.width, -1.0, 1.0) + 1.0) / 2.0
    found = []
    for j, size in enumerate(sizes.tolist()):
        is_seen = cells[:, j] >= 0
        own = cells[is_seen, j]
        sums = np.column_stack(
            [np.bincount(own, part[is_seen], size) for part in (1.0 - upper, upper)]
        )
        noisy = sums + generator.normal(scale=sigma, size=sums.shape)
        found.append(_describe(noisy, sigma, is_category=bool(schema.n_categories[j])))
    return found


def _describe(noisy: NDArray[np.float64], sigma: float, *, is_category: bool) -> FeatureCells:
    if not is_category:
        noisy = haar_denoise(noisy, sigma, _THRESHOLD)
    counts = np.maximum(noisy.sum(axis=1), 0.0)
    means = (noisy[:, 1] - noisy[:, 0]) / (counts + _SHRINKAGE * sigma)
    # No cell is empty for sure.
    masses = (counts + 1e-9) / (counts + 1e-9).sum()
    importance = float(masses @ (means - masses @ means) ** 2)
    order = np.argsort(means, kind="stable") if is_category else np.arange(len(means))
    below = masses[order].cumsum() - masses[order] / 2
    levels = np.full(len(means) + 1, N_LEVELS // 2, dtype=np.float64)
    levels[order] = np.minimum(np.floor(below * N_LEVELS), N_LEVELS - 1)
    return FeatureCells(masses, levels, importance, is_category)
