"""Where a row lies: bins of released histograms, and cells of features and of random trees.

A feature has bins, whose counts by class are released first; what is released says which bins are put
together in one cell, and where random trees cut. All of it is a function of public facts, of coins and of
what was released, and each row is looked at by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lumberjack.compiled import compiled
from lumberjack.noise import to_fixed_point
from lumberjack.schema import FeatureSchema

CellCodes = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]


class Bins(NamedTuple):
    """Equal bins of numeric features, and the categories of others.

    Attributes
    ----------
    n_bins : ndarray of int64, shape (n_features,)
        Bins or categories of each feature.
    first : ndarray of int64, shape (n_features,)
        Where a feature's bins start in a list of all; an entry for unseen categories ends each block.
    lower, scale : ndarray of float64, shape (n_features,)
        A number x of a numeric feature lies in bin ``(x - lower) * scale``.
    is_category : ndarray of bool, shape (n_features,)
    """

    n_bins: NDArray[np.int64]
    first: NDArray[np.int64]
    lower: NDArray[np.float64]
    scale: NDArray[np.float64]
    is_category: NDArray[np.bool_]

    def block(self, feature: int) -> slice:
        """Return where a feature's bins are in a list of all, without the entry for unseen categories."""
        first = int(self.first[feature])
        return slice(first, first + int(self.n_bins[feature]))

    @property
    def size(self) -> int:
        """Length of a list of all bins."""
        return int(self.n_bins.sum()) + len(self.n_bins)


N_BINS = 1024
"""Of a numeric feature; a power of two. Public bounds may be far wider than where the rows lie."""


def make_bins(schema: FeatureSchema) -> Bins:
    """Return the bins of a schema."""
    is_category = schema.n_categories > 0
    width = schema.upper - schema.lower
    sizes = np.where(is_category, schema.n_categories, N_BINS).astype(np.int64)
    scale = N_BINS / np.where(width > 0, width, np.inf)
    return Bins(sizes, np.cumsum(sizes + 1) - sizes - 1, schema.lower, scale, is_category)


@compiled(nogil=True)
def _bin_of(x: float, f: int, bins: Bins) -> int:
    if bins.is_category[f]:
        # The code of unseen categories, -1, takes the last entry of the block.
        return int(x) if x >= 0.0 else int(bins.n_bins[f])
    return min(max(int((x - bins.lower[f]) * bins.scale[f]), 0), int(bins.n_bins[f]) - 1)


@compiled(nogil=True)
def count_bins(
    values: NDArray[np.float64], labels: NDArray[np.int64], bins: Bins, n_classes: int
) -> NDArray[np.int64]:
    """Count rows by bin and class: NOT private.

    Parameters
    ----------
    values : ndarray of float64, shape (n_rows, n_features)
        Encoded rows.
    labels : ndarray of int64, shape (n_rows,)
        Class codes.
    bins : Bins
    n_classes : int

    Returns
    -------
    ndarray of int64, shape (bins.size, n_classes)
        Unseen categories are counted nowhere.
    """
    n_features = values.shape[1]
    counts = np.zeros((bins.n_bins.sum() + n_features, n_classes), dtype=np.int64)
    for f in range(n_features):
        first, n_bins = bins.first[f], bins.n_bins[f]
        for i in range(values.shape[0]):
            own = _bin_of(values[i, f], f, bins)
            if own < n_bins:
                counts[first + own, labels[i]] += 1
    return counts


@compiled(nogil=True)
def sum_bins(
    values: NDArray[np.float64], shares: NDArray[np.float64], bins: Bins
) -> NDArray[np.int64]:
    """Sum the shares u of rows in [0, 1], and 1 - u, by bin: NOT private.

    A row adds (1 - u, u), a vector of L2 norm at most 1, to one bin of each feature.

    Parameters
    ----------
    values : ndarray of float64, shape (n_rows, n_features)
        Encoded rows.
    shares : ndarray of float64, shape (n_rows,)
    bins : Bins

    Returns
    -------
    ndarray of int64, shape (bins.size, 2)
        Fixed-point sums, of 1 - u first. Unseen categories are counted nowhere.
    """
    n_features = values.shape[1]
    sums = np.zeros((bins.n_bins.sum() + n_features, 2), dtype=np.int64)
    for f in range(n_features):
        first, n_bins = bins.first[f], bins.n_bins[f]
        for i in range(values.shape[0]):
            own = _bin_of(values[i, f], f, bins)
            if own < n_bins:
                sums[first + own, 0] += to_fixed_point(1.0 - shares[i])
                sums[first + own, 1] += to_fixed_point(shares[i])
    return sums


class Cells(NamedTuple):
    """Groups of cells: one group per feature, then one per tree; a row lies in one cell of each.

    Attributes
    ----------
    bins : Bins
    cell_of_bin : ndarray of uint8, uint16 or uint32, shape (bins.size,)
        The cell of each bin; unseen categories have the last one of their feature.
    level_of_bin : ndarray of uint8, shape (bins.size,)
        What the trees cut at.
    tree_feature : ndarray of int64, shape (n_trees, 2**depth - 1)
        The feature that a node cuts; the children of node i are 2 i + 1 and 2 i + 2.
    tree_level : ndarray of uint8, shape (n_trees, 2**depth - 1)
        Rows with a level above it go to the second child.
    first : ndarray of int64, shape (n_groups,)
        Where a group's cells start in a list of all.
    sizes : ndarray of int64, shape (n_groups,)
        Cells of each group.
    """

    bins: Bins
    cell_of_bin: CellCodes
    level_of_bin: NDArray[np.uint8]
    tree_feature: NDArray[np.int64]
    tree_level: NDArray[np.uint8]
    first: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def block(self, group: int) -> slice:
        """Return where a group's cells are in a list of all."""
        first = int(self.first[group])
        return slice(first, first + int(self.sizes[group]))


@compiled(nogil=True)
def _find_cells(
    values: NDArray[np.float64],
    bins: Bins,
    cell_of_bin: CellCodes,
    level_of_bin: NDArray[np.uint8],
    tree_feature: NDArray[np.int64],
    tree_level: NDArray[np.uint8],
    found: CellCodes,
) -> None:
    n_rows, n_features = values.shape
    n_trees, n_nodes = tree_feature.shape
    depth = round(math.log2(n_nodes + 1))
    levels = np.empty(n_features, dtype=np.uint8)
    nodes = np.empty(n_trees, dtype=np.int64)
    for i in range(n_rows):
        for f in range(n_features):
            place = bins.first[f] + _bin_of(values[i, f], f, bins)
            found[i, f] = cell_of_bin[place]
            levels[f] = level_of_bin[place]
        # All trees level by level, as one tree's nodes wait for each other.
        nodes[:] = 0
        for _ in range(depth):
            for t in range(n_trees):
                node = nodes[t]
                is_above = levels[tree_feature[t, node]] > tree_level[t, node]
                nodes[t] = 2 * node + 1 + is_above
        for t in range(n_trees):
            found[i, n_features + t] = nodes[t] - n_nodes


def find_cells_by_block(
    blocks: Iterable[tuple[slice, NDArray[np.float64]]], n_rows: int, cells: Cells
) -> CellCodes:
    """Return what :func:`find_cells` does of rows that come in blocks, each with its place."""
    found: CellCodes = np.empty((n_rows, len(cells.sizes)), dtype=cells.cell_of_bin.dtype)
    for rows, values in blocks:
        found[rows] = find_cells(values, cells)
    return found


def find_cells(values: NDArray[np.float64], cells: Cells) -> CellCodes:
    """Return the cell of each group that encoded rows lie in.

    Parameters
    ----------
    values : ndarray of float64, shape (n_rows, n_features)
    cells : Cells

    Returns
    -------
    ndarray of uint8, uint16 or uint32, shape (n_rows, n_groups)
    """
    found: CellCodes = np.empty((len(values), len(cells.sizes)), dtype=cells.cell_of_bin.dtype)
    _find_cells(
        values,
        cells.bins,
        cells.cell_of_bin,
        cells.level_of_bin,
        cells.tree_feature,
        cells.tree_level,
        found,
    )
    return found
