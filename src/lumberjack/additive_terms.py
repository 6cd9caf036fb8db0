"""What an additive model is made of: terms of single features and of random trees, from released histograms.

A record is described by a vector x of slots. A feature has slots at several resolutions, quantile bins
of its released masses and equal bins of its public range; a tree has its leaves. A slot that a record
lies in is one, the others are zero; the slots of a feature are centred by their released masses. How
much of the squared norm each term has is decided by what was released, and a record whose
vector is longer than allowed is scaled down by itself (:func:`get_row_factors`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from lumberjack.additive_cells import N_BINS, Bins, CellCodes, Cells
from lumberjack.compiled import compiled
from lumberjack.guide import haar_denoise, order_categories

N_TREES = 20
"""As good as 30 on validation rows, and a quarter faster."""

_RESOLUTIONS = (2, 4, 8, 32, 128)
"""Slots of a feature; 127 quantile and 127 equal cuts leave at most 255 cells."""

_N_LEVELS = 16
"""Quantile bins that trees cut between."""

_INTERCEPT_SHARE = 0.03
"""Of the squared norm of a record."""

_LARGEST_EVIDENCE = 3.0
"""In nats, of a cell for or against a class."""

_HAAR_THRESHOLD = 1.5
"""Standard deviations below which a detail of a histogram is dropped."""

_DENSITY_SHARE = 0.85
"""Of the groups of a numeric feature, that lie where released rows are; others lie evenly."""

_LARGEST_GAIN = 8.0
"""Of vectors that are too short; where released histograms say that all rows are alike, 0 is their length."""

# The norms of rows are summed in another order than they are bounded by.
_SAFE = 1.0 - 1e-6


class Evidence(NamedTuple):
    """What released histograms say of each feature.

    Attributes
    ----------
    masses : ndarray of float64, shape (bins.size,)
        Share of the rows in each bin, by feature; zero for unseen categories.
    evidence : ndarray of float64, shape (bins.size, n_classes)
        Log class shares of a bin less those of the whole table, centred over classes.
    order : ndarray of int64, shape (bins.size,)
        Rank of each bin within its feature: of a category by its class shares.
    importances : ndarray of float64, shape (n_features,)
        Variance of a feature's evidence over rows, summed over classes, in squared nats.
    """

    masses: NDArray[np.float64]
    evidence: NDArray[np.float64]
    order: NDArray[np.int64]
    importances: NDArray[np.float64]


def get_n_groups(n_rows: float, n_classes: int, sigma: float) -> int:
    """Return a number of groups of bins: 4, or more if the count of a class is four times its noise on average."""
    power = math.floor(math.log2(max(n_rows / (4 * n_classes * sigma), 1.0)))
    return int(min(2 ** max(power, 2), N_BINS))


def group_bins(
    noisy: NDArray[np.float64], bins: Bins, n_groups: int, n_rows: float, sigma: float
) -> NDArray[np.int64]:
    """Put neighbouring bins of numeric features together, so that each group holds some of the rows.

    Parameters
    ----------
    noisy : ndarray of float64, shape (bins.size,)
        Released counts by bin, whatever the class; those of categories are not looked at.
    bins : Bins
    n_groups : int
        Most groups of a numeric feature.
    n_rows : float
        Released number of rows; those that noise hides may lie anywhere.
    sigma : float
        Standard deviation of the counts' noise.

    Returns
    -------
    ndarray of int64, shape (bins.size,)
        The group of each bin within its feature; every category has its own.
    """
    groups = np.zeros(bins.size, dtype=np.int64)
    for f in range(len(bins.n_bins)):
        block = bins.block(f)
        n_bins = int(bins.n_bins[f])
        groups[block] = np.arange(n_bins)
        if not bins.is_category[f]:
            threshold = math.sqrt(2 * math.log(n_bins))
            counts = haar_denoise(noisy[block][:, np.newaxis], sigma, threshold)[:, 0]
            density = _DENSITY_SHARE * counts / max(float(counts.sum()), n_rows)
            density += (1 - density.sum()) / n_bins
            places = np.cumsum(density) - density / 2
            groups[block] = np.unique(_cut(places, n_groups), return_inverse=True)[1]
        groups[block.stop] = groups[block].max() + 1
    return groups


def join_groups(groups: NDArray[np.int64], bins: Bins) -> tuple[list[int], NDArray[np.int64]]:
    """Return where the groups of all features but the first start in one list, and each bin's place in it.

    Entries of unseen categories, which hold no counts, have the last place, after all groups.
    """
    edges, places = [0], np.empty_like(groups)
    for f in range(len(bins.n_bins)):
        block = bins.block(f)
        places[block] = edges[-1] + groups[block]
        edges.append(edges[-1] + int(groups[block].max()) + 1)
    places[bins.first + bins.n_bins] = edges[-1]
    return edges[1:-1], places


def add_up_groups(counts: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return counts by group, shape (n_groups_of_all, n_classes), from counts by bin."""
    sums = np.zeros((int(places.max()) + 1, counts.shape[1]), dtype=np.int64)
    np.add.at(sums, places, counts)
    return sums[:-1]


def weigh_evidence(
    noisy: list[NDArray[np.float64]],
    groups: NDArray[np.int64],
    bins: Bins,
    class_shares: NDArray[np.float64],
    sigma: float,
) -> Evidence:
    """Return what released histograms say, with the noise removed that can be.

    Parameters
    ----------
    noisy : list of ndarray of float64, shapes (n_groups, n_classes)
        Released counts of each feature by group and class.
    groups : ndarray of int64, shape (bins.size,)
        The group of each bin.
    bins : Bins
    class_shares : ndarray of float64, shape (n_classes,)
        Released class shares of the whole table.
    sigma : float
        Standard deviation of the counts' noise.
    """
    masses, evidence = np.zeros(bins.size), np.zeros((bins.size, len(class_shares)))
    order = np.zeros(bins.size, dtype=np.int64)
    importances = np.zeros(len(bins.n_bins))
    for f, counts in enumerate(noisy):
        block = bins.block(f)
        group = groups[block]
        rank = np.arange(len(group))
        if bins.is_category[f]:
            by_rank, positions = order_categories(counts, class_shares, sigma)
            rank = positions[:-1].astype(np.int64)
            counts = by_rank[rank]
        else:
            counts = _denoise(counts, sigma)
        totals = counts.sum(axis=1, keepdims=True)
        shares = np.log((counts + sigma * class_shares) / (totals + sigma)) - np.log(class_shares)
        shares -= shares.mean(axis=1, keepdims=True)
        shares = shares.clip(-_LARGEST_EVIDENCE, _LARGEST_EVIDENCE)
        own = totals[:, 0] / max(totals.sum(), 1e-9)
        importances[f] = own @ ((shares - own @ shares) ** 2).sum(axis=1)
        # Within a group rows may lie anywhere.
        masses[block] = (own / np.bincount(group))[group]
        evidence[block], order[block] = shares[group], rank
    return Evidence(masses, evidence, order, importances)


def _denoise(counts: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """Return counts of a numeric feature with less noise; there may be any number of groups."""
    n_groups = len(counts)
    size = 1 << (n_groups - 1).bit_length()
    padded = np.vstack([counts, np.repeat(counts[-1:], size - n_groups, axis=0)])
    return haar_denoise(padded, sigma, _HAAR_THRESHOLD)[:n_groups]


class Design(NamedTuple):
    """How fine the terms are and how the squared norm of a record is shared.

    All of it follows from `ratio`: released rows per class over the noise of the whole descent. Where
    noise is large against it, coarse terms of single features say more than fine ones.

    Attributes
    ----------
    depth : int
        Of the random trees.
    resolutions : tuple of int
    weights : tuple of float
        Of each resolution, relative to each other.
    leaf_share : float
        Of the squared norm, of the leaves of all trees.
    least_importance : float
        What is added to a feature's importance, relative to the most important one: with little
        noise features share the norm evenly.
    """

    depth: int
    resolutions: tuple[int, ...]
    weights: tuple[float, ...]
    leaf_share: float
    least_importance: float


def get_design(ratio: float) -> Design:
    """Return the design for a released ratio of rows per class to noise, positive."""
    depth = min(max(round(math.log2(max(ratio, 1.0)) - 3), 3), 8)
    resolutions = tuple(size for size in _RESOLUTIONS if size <= max(4.0, ratio / 5))
    weights = tuple(min(1.0, ratio / (10 * size)) for size in resolutions)
    leaf_share, least_importance = 0.28 * ratio / (ratio + 200), 0.01 + ratio / (ratio + 1000)
    return Design(depth, resolutions, weights, leaf_share, least_importance)


class Terms(NamedTuple):
    """Cells of a row, and the slots that they stand for.

    Attributes
    ----------
    cells : Cells
    evidence : ndarray of float64, shape (n_cells, n_classes)
        Of the cells of features; zero for those of trees.
    slots : csr_array of int64, shape (n_slots, n_cells)
        Which slots a cell lies in: 1, or else 0.
    scale : ndarray of float64, shape (n_slots,)
        What each slot is multiplied by, for its share of the squared norm.
    centre : ndarray of float64, shape (n_slots,)
        What is subtracted from them before, wherever the record's category is listed.
    group_of_slot : ndarray of int64, shape (n_slots,)
    is_seen : ndarray of bool, shape (n_cells,)
        False for the cells of unseen categories.
    squared_norm : ndarray of float64, shape (n_cells,)
        What a cell adds to the squared norm of a row's vector.
    masses : ndarray of float64, shape (n_cells,)
        Share of the rows in each cell of a feature; zero for cells of trees.
    """

    cells: Cells
    evidence: NDArray[np.float64]
    slots: scipy.sparse.csr_array
    scale: NDArray[np.float64]
    centre: NDArray[np.float64]
    group_of_slot: NDArray[np.int64]
    is_seen: NDArray[np.bool_]
    squared_norm: NDArray[np.float64]
    masses: NDArray[np.float64]

    def to_slots(self, sums: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return sums by slot from sums by cell, shapes (n_slots, any) and (n_cells, any).

        Whole numbers are summed exactly, and only the sums are rounded.
        """
        seen = np.where(self.is_seen[:, np.newaxis], sums, 0)
        totals = np.add.reduceat(seen, self.cells.first, axis=0)
        centred = (self.slots @ sums) - self.centre[:, np.newaxis] * totals[self.group_of_slot]
        by_slot: NDArray[np.float64] = self.scale[:, np.newaxis] * centred
        return by_slot

    def to_cells(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what each cell says under weights of the slots: the transpose of :meth:`to_slots`."""
        scaled = self.scale[:, np.newaxis] * weights
        centred = np.zeros((len(self.cells.sizes), weights.shape[1]))
        np.add.at(centred, self.group_of_slot, self.centre[:, np.newaxis] * scaled)
        says: NDArray[np.float64] = self.slots.T @ scaled
        everywhere = np.repeat(centred, self.cells.sizes, axis=0)
        return says - np.where(self.is_seen[:, np.newaxis], everywhere, 0.0)


def make_terms(
    bins: Bins, evidence: Evidence, design: Design, generator: np.random.Generator
) -> Terms:
    """Return the terms of a model; random trees are drawn from `generator`.

    A tree's node cuts a feature drawn by the root of its importance, now and then any, at a uniform
    level.

    Parameters
    ----------
    bins : Bins
    evidence : Evidence
    design : Design
    generator : numpy.random.Generator
        Of structure, never of noise.
    """
    n_features = len(bins.n_bins)
    cell_of_bin = np.zeros(bins.size, dtype=np.int64)
    level_of_bin = np.zeros(bins.size, dtype=np.uint8)
    maps: list[tuple[NDArray[np.int64], list[float]]] = []
    sizes: list[int] = []
    masses: list[NDArray[np.float64]] = []
    says: list[NDArray[np.float64]] = []
    for f in range(n_features):
        block = bins.block(f)
        own, order = evidence.masses[block], evidence.order[block]
        quantiles = _get_quantiles(own, order)
        levels = _cut(quantiles, _N_LEVELS)
        of_bins = [_cut(quantiles, size) for size in design.resolutions]
        weights = list(design.weights)
        if bins.is_category[f]:
            # Every category by itself, and groups of categories that are alike.
            of_bins = [np.arange(len(own)), _cut(quantiles, _N_LEVELS)]
            weights = [1.0, 1.0]
            of_cells, cell = np.stack(of_bins), np.arange(len(own))
        else:
            places = (np.arange(len(own)) + 0.5) / len(own)
            of_bins += [_cut(places, size) for size in design.resolutions]
            weights += weights
            of_cells, cell = np.unique(np.stack([*of_bins, levels]), axis=1, return_inverse=True)
            of_cells, cell = of_cells[:-1], cell.ravel()
        cell_of_bin[block], level_of_bin[block] = cell, levels
        n_cells = of_cells.shape[1]
        cell_of_bin[block.stop], level_of_bin[block.stop] = n_cells, _N_LEVELS // 2 - 1
        maps.append((of_cells, weights))
        masses.append(np.bincount(cell, own, minlength=n_cells).astype(np.float64))
        says.append(_average(evidence.evidence[block], own, cell, n_cells))
        sizes.append(n_cells + 1)
    n_leaves = 2**design.depth
    chances = np.sqrt(np.maximum(evidence.importances, 1e-6))
    chances = 0.9 * chances / chances.sum() + 0.1 / n_features
    shape = (N_TREES, n_leaves - 1)
    all_sizes = np.array(sizes + [n_leaves] * N_TREES, dtype=np.int64)
    cells = Cells(
        bins=bins,
        cell_of_bin=_narrowed(cell_of_bin, int(all_sizes.max())),
        level_of_bin=level_of_bin,
        tree_feature=generator.choice(n_features, size=shape, p=chances),
        tree_level=generator.integers(_N_LEVELS - 1, size=shape, dtype=np.uint8),
        first=np.cumsum(all_sizes) - all_sizes,
        sizes=all_sizes,
    )
    relative = evidence.importances / max(float(evidence.importances.max()), 1e-9)
    relative += design.least_importance
    return _share_norm(cells, maps, masses, says, relative, design.leaf_share)


def _narrowed(cell_of_bin: NDArray[np.int64], n_cells: int) -> CellCodes:
    """Return cells in the narrowest numbers that hold `n_cells` of them."""
    narrowed: CellCodes = cell_of_bin.astype(np.min_scalar_type(n_cells - 1))
    return narrowed


def _get_quantiles(masses: NDArray[np.float64], order: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of rows below the middle of each bin, in the given order."""
    in_order = np.empty_like(masses)
    in_order[order] = masses
    middles = np.cumsum(in_order) - in_order / 2
    quantiles: NDArray[np.float64] = middles[order]
    return quantiles


def _cut(places: NDArray[np.float64], n_parts: int) -> NDArray[np.int64]:
    parts: NDArray[np.int64] = np.clip((places * n_parts).astype(np.int64), 0, n_parts - 1)
    return parts


def _average(
    evidence: NDArray[np.float64],
    masses: NDArray[np.float64],
    cell: NDArray[np.int64],
    n_cells: int,
) -> NDArray[np.float64]:
    """Return the mean evidence of each cell over its bins, and zeros for unseen categories."""
    weights = masses + 1e-12
    whole = np.bincount(cell, weights, minlength=n_cells)
    sums = [np.bincount(cell, weights * column, minlength=n_cells) for column in evidence.T]
    return np.vstack([np.column_stack(sums) / whole[:, np.newaxis], np.zeros(evidence.shape[1])])


def _share_norm(
    cells: Cells,
    maps: list[tuple[NDArray[np.int64], list[float]]],
    masses: list[NDArray[np.float64]],
    says: list[NDArray[np.float64]],
    relative: NDArray[np.float64],
    leaf_share: float,
) -> Terms:
    """Return terms whose slots have their shares of the squared norm of a row."""
    n_features, n_cells = len(maps), int(cells.sizes.sum())
    n_classes = says[0].shape[1]
    whole = sum(share * sum(weights) for share, (_, weights) in zip(relative, maps, strict=True))
    per_weight = (1 - _INTERCEPT_SHARE - leaf_share) / whole
    per_leaf = leaf_share / N_TREES
    slots: list[NDArray[np.int64]] = []
    columns: list[NDArray[np.int64]] = []
    scale: list[NDArray[np.float64]] = []
    centre: list[NDArray[np.float64]] = []
    group_of_slot: list[NDArray[np.int64]] = []
    squared_norm, is_seen = np.zeros(n_cells), np.ones(n_cells, dtype=np.bool_)
    evidence, all_masses = np.zeros((n_cells, n_classes)), np.zeros(n_cells)
    n_slots, expected = 0, leaf_share
    for f, (of_cells, weights) in enumerate(maps):
        first, size = int(cells.first[f]), int(cells.sizes[f])
        evidence[first : first + size] = says[f]
        is_seen[first + size - 1] = False
        all_masses[first : first + size - 1] = masses[f]
        for slot, weight in zip(of_cells, weights, strict=True):
            square = per_weight * float(relative[f]) * weight
            own = np.bincount(slot, masses[f]).astype(np.float64)
            slots.append(n_slots + slot)
            columns.append(first + np.arange(size - 1))
            scale.append(np.full(len(own), math.sqrt(square)))
            centre.append(own)
            group_of_slot.append(np.full(len(own), f))
            norms = square * np.maximum(1 - 2 * own[slot] + own @ own, 0.0)
            squared_norm[first : first + size - 1] += norms
            expected += float(masses[f] @ norms)
            n_slots += len(own)
    n_leaves = int(cells.sizes[-1])
    for group in range(n_features, len(cells.sizes)):
        first = int(cells.first[group])
        slots.append(n_slots + np.arange(n_leaves))
        columns.append(first + np.arange(n_leaves))
        scale.append(np.full(n_leaves, math.sqrt(per_leaf)))
        centre.append(np.zeros(n_leaves))
        group_of_slot.append(np.full(n_leaves, group))
        squared_norm[first : first + n_leaves] = per_leaf
        n_slots += n_leaves
    # Typical rows are made as long as allowed, so that none of the budget protects what no row has.
    gain = math.sqrt((1 - _INTERCEPT_SHARE) / max(expected, _LARGEST_GAIN**-2))
    places = (np.concatenate(slots), np.concatenate(columns))
    ones = np.ones(len(places[0]), dtype=np.int64)
    return Terms(
        cells=cells,
        evidence=evidence,
        slots=scipy.sparse.csr_array((ones, places), shape=(n_slots, n_cells)),
        scale=gain * np.concatenate(scale),
        centre=np.concatenate(centre),
        group_of_slot=np.concatenate(group_of_slot),
        is_seen=is_seen,
        squared_norm=gain**2 * squared_norm,
        masses=all_masses,
    )


@compiled(nogil=True)
def _get_row_factors(
    found: CellCodes, first: NDArray[np.int64], squared_norm: NDArray[np.float64]
) -> NDArray[np.float32]:
    n_rows, n_groups = found.shape
    factors = np.empty(n_rows, dtype=np.float32)
    for i in range(n_rows):
        square = 0.0
        for g in range(n_groups):
            square += squared_norm[first[g] + found[i, g]]
        largest = 1 - _INTERCEPT_SHARE
        factors[i] = math.sqrt(largest / max(square, largest)) * _SAFE
    return factors


def get_row_factors(found: CellCodes, terms: Terms) -> NDArray[np.float32]:
    """Return what each row's vector is scaled by, at most 1, so that with its intercept it is at most 1 long.

    Parameters
    ----------
    found : ndarray of uint8, uint16 or uint32, shape (n_rows, n_groups)
        Cells of the rows.
    terms : Terms

    Returns
    -------
    ndarray of float32, shape (n_rows,)
    """
    factors: NDArray[np.float32] = _get_row_factors(found, terms.cells.first, terms.squared_norm)
    return factors


def get_intercept_length() -> float:
    """Return the entry of the intercept in every row's vector."""
    return math.sqrt(_INTERCEPT_SHARE) * _SAFE
