"""Noisy gradient descent on squared loss over one-hot cells, for an additive regression.

A row is described by blocks: quantile levels and cells of single features, and the leaves of random
trees. In each block it has one entry, ``scale[block]``, in the column of its cell; the squares of the
scales add up to 1, so that a row has norm 1 whatever it holds. A full-batch step sums

    x clip(s - f(x), -c, c)

over the records, to which one adds a vector of L2 norm at most c. The sum is released with Gaussian noise.
What follows is post-processing: every block holds the sum of all residuals once more, which is averaged;
with the released masses of its cells a block is centred, so that descent does not have to learn the mean.

Length of the way. The step tau / n_steps stays below what the masses say the curvature is. In directions in which
descent has not converged the noise of a prediction is tau times that of the sum of all steps, whatever their
number; it is held to a part of the target's spread.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lumberjack.compiled import compiled
from lumberjack.target_guide import N_LEVELS, FeatureCells, TargetScale
from lumberjack.tree import ReleasedTree

LEAF_SHARE = 0.4
"""Of the squared norm of a row, for all trees."""

_NOISE_OF_SPREAD = 0.25
"""Noise of a prediction in directions that have not converged, in spreads of the target."""

_INTERCEPT = 0.1
"""Weight of the intercept in a step."""

_EXPLORATION = 0.1
"""Share of the draws of a tree's feature, and of the norm of features, that do not heed importance."""

_FEWER_LEVELS = 4


class Block(NamedTuple):
    """Columns of which each row has one.

    Attributes
    ----------
    masses : ndarray of float64, shape (n_columns,)
        Share of the records in each, as released.
    column_of_cell : ndarray of int64, shape (n_cells + 1,)
        Of a feature's cells, the last entry for an unseen category; empty for a tree.
    source : int
        Number of the feature, or of the tree.
    """

    masses: NDArray[np.float64]
    column_of_cell: NDArray[np.int64]
    source: int


def feature_blocks(cells: list[FeatureCells]) -> list[Block]:
    """Return the blocks of all features: a few and many quantile levels, and cells or public bins."""
    blocks = []
    for j, own in enumerate(cells):
        n_cells = len(own.masses)
        few = own.levels // (N_LEVELS // _FEWER_LEVELS)
        bins = (
            np.arange(n_cells + 1)
            if own.is_category
            else np.arange(n_cells + 1) * N_LEVELS // n_cells
        )
        # Unseen categories are counted with the levels in the middle; as cells they are nobody's.
        bins[-1] = 0 if not own.is_category else n_cells
        for levels in (few, own.levels, bins):
            columns = levels.astype(np.int64)
            masses = np.zeros(int(columns[:-1].max()) + 1)
            np.add.at(masses, columns[:-1], own.masses)
            blocks.append(Block(masses, columns, j))
    return blocks


def draw_tree(
    depth: int,
    draw_shares: NDArray[np.float64],
    level_masses: NDArray[np.float64],
    generator: np.random.Generator,
) -> tuple[ReleasedTree, NDArray[np.float64]]:
    """Draw a complete random tree on quantile levels.

    Parameters
    ----------
    depth : int
        Splits on each path.
    draw_shares : ndarray of float64, shape (n_features,)
        Probability of each feature at a node.
    level_masses : ndarray of float64, shape (n_features, N_LEVELS)
        Share of the records in each level.
    generator : numpy.random.Generator
        It never sees the rows.

    Returns
    -------
    tree : ReleasedTree
        Without values.
    masses : ndarray of float64, shape (2 ** depth,)
        Share of the records in each leaf, as if features were independent.
    """
    n_features, n_inner = len(draw_shares), 2**depth - 1
    feature = np.full(2 * n_inner + 1, -1, dtype=np.int32)
    threshold = np.zeros(2 * n_inner + 1)
    children_left = np.full(2 * n_inner + 1, -1, dtype=np.int32)
    lowest = np.zeros((2 * n_inner + 1, n_features), dtype=np.int64)
    highest = np.full((2 * n_inner + 1, n_features), N_LEVELS - 1)
    for node in range(n_inner):
        is_open = lowest[node] < highest[node]
        weights = np.where(is_open, draw_shares, 0.0)
        weights = weights if is_open.any() else draw_shares
        j = int(generator.choice(n_features, p=weights / weights.sum()))
        cut = int(generator.integers(lowest[node, j], max(highest[node, j], lowest[node, j] + 1)))
        feature[node], threshold[node], children_left[node] = j, cut, 2 * node + 1
        for child in (2 * node + 1, 2 * node + 2):
            lowest[child], highest[child] = lowest[node], highest[node]
        highest[2 * node + 1, j], lowest[2 * node + 2, j] = cut, cut + 1
    edges = np.zeros((n_features, N_LEVELS + 1))
    edges[:, 1:] = level_masses.cumsum(axis=1)
    own = np.arange(n_features)
    below = edges[own, np.minimum(highest[n_inner:] + 1, N_LEVELS)]
    masses = np.maximum(below - edges[own, np.minimum(lowest[n_inner:], N_LEVELS)], 0.0).prod(
        axis=1
    )
    masses = masses / masses.sum()
    value = np.zeros((2 * n_inner + 1, 1))
    return ReleasedTree(feature, threshold, children_left, value), masses


def weigh_features(cells: list[FeatureCells]) -> NDArray[np.float64]:
    """Return shares of the features that follow the roots of their importances, shape (n_features,)."""
    roots = np.sqrt([max(own.importance, 1e-8) for own in cells])
    shares: NDArray[np.float64] = (1 - _EXPLORATION) * roots / roots.sum() + _EXPLORATION / len(
        cells
    )
    return shares


def scale_blocks(
    blocks: list[Block], n_trees: int, feature_shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return each block's entry in a row, shape (n_blocks,); the squares add up to 1.

    The last `n_trees` blocks are trees.
    """
    n_own = len(blocks) - n_trees
    per_feature = (feature_shares + 1 / len(feature_shares)) / 2
    squares = per_feature[[block.source for block in blocks[:n_own]]]
    squares = np.append(
        (1 - LEAF_SHARE) * squares / squares.sum(), np.full(n_trees, LEAF_SHARE / n_trees)
    )
    # Rounded down, so that no row is longer than 1.
    scales: NDArray[np.float64] = np.sqrt(squares / squares.sum()) * (1 - 1e-12)
    return scales


@compiled(nogil=True)
def sum_residuals(
    columns: NDArray[np.int32],
    scales: NDArray[np.float64],
    residual_of_row: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    """Add x r of all rows to `sums`; a negative column stands for no entry. NOT private."""
    for row in range(columns.shape[0]):
        for block in range(columns.shape[1]):
            if columns[row, block] >= 0:
                sums[columns[row, block]] += scales[block] * residual_of_row[row]


@compiled(nogil=True)
def clip_residuals(
    columns: NDArray[np.int32],
    scales: NDArray[np.float64],
    weights: NDArray[np.float64],
    intercept: float,
    shares: NDArray[np.float64],
    width: float,
    residual_of_row: NDArray[np.float64],
) -> None:
    """Fill in what the model leaves of each target, clipped to [-width, width]. NOT private."""
    for row in range(columns.shape[0]):
        predicted = intercept
        for block in range(columns.shape[1]):
            if columns[row, block] >= 0:
                predicted += scales[block] * weights[columns[row, block]]
        residual_of_row[row] = min(max(shares[row] - predicted, -width), width)


def get_way(
    blocks: list[Block], scales: NDArray[np.float64], scale: TargetScale, n_steps: int, sigma: float
) -> float:
    """Return tau, the length of the way, from released numbers; `sigma` is the noise of a step over c."""
    curvature = float(scales**2 @ [block.masses.max() for block in blocks]) + _INTERCEPT
    longest = n_steps / (scale.n_rows * curvature)
    noise_of_sums = scale.width * sigma / math.sqrt(n_steps)
    return min(longest, _NOISE_OF_SPREAD * scale.spread / noise_of_sums)


def descend(
    columns: NDArray[np.int32],
    shares: NDArray[np.float64],
    blocks: list[Block],
    scales: NDArray[np.float64],
    scale: TargetScale,
    n_steps: int,
    sigma: float,
    generator: np.random.Generator,
) -> tuple[float, list[NDArray[np.float64]]]:
    """Release the sums of all steps, and return the model at their end.

    Parameters
    ----------
    columns : ndarray of int32, shape (n_rows, n_blocks)
        Where each row has its entries, columns of all blocks numbered through; -1 for none.
    shares : ndarray of float64, shape (n_rows,)
        Targets in [0, 1].
    blocks : list of Block
        What the columns are.
    scales : ndarray of float64, shape (n_blocks,)
        Entry of a row in each; the squares add up to at most 1.
    scale : TargetScale
        What was released of the target.
    n_steps : int
        Number of steps, of which the second half is averaged.
    sigma : float
        Standard deviation of the noise of each sum, in units of the width.
    generator : numpy.random.Generator
        Source of noise.

    Returns
    -------
    intercept : float
        As a share of the target's range, like all that follows.
    values : list of ndarray, shapes (n_columns,)
        What each column of a block adds.
    """
    sizes = np.array([len(block.masses) for block in blocks])
    block_of = np.repeat(np.arange(len(blocks)), sizes)
    centring = np.concatenate([block.masses for block in blocks]) * scales[block_of]
    # Every block tells the sum of all residuals, the less noisily the fewer its columns.
    trust = scales**2 / sizes
    trust /= trust.sum()
    step = get_way(blocks, scales, scale, n_steps, sigma) / n_steps
    weights = np.zeros(len(block_of))
    total = np.zeros(len(block_of))
    intercept, intercept_total = scale.centre, 0.0
    residuals = np.empty(len(shares))
    first_averaged = n_steps // 2
    for number in range(n_steps):
        sums = generator.normal(scale=scale.width * sigma, size=len(block_of))
        clip_residuals(columns, scales, weights, intercept, shares, scale.width, residuals)
        sum_residuals(columns, scales, residuals, sums)
        overall = float(trust @ (np.bincount(block_of, sums) / scales))
        weights += step * (sums - centring * overall)
        intercept += step * _INTERCEPT * overall
        if number >= first_averaged:
            total += weights
            intercept_total += intercept
    n_averaged = n_steps - first_averaged
    values = scales[block_of] * total / n_averaged
    return intercept_total / n_averaged, np.split(values, sizes.cumsum()[:-1])
