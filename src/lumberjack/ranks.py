"""Tables as one byte an entry, in which every comparison with a threshold keeps its answer.

A row's way through a tree depends on its entries only through comparisons. So an entry is replaced by
its rank: how many of at most 255 values, the edges of its feature, are smaller. A threshold has a
rank too, and two different ranks decide. Equal ones decide where all entries of that rank are one
value, as those of categories and of small whole numbers are; only elsewhere the entry is looked up.

The edges are read off the rows, and change nothing but how often that happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lumberjack.compiled import compiled

N_RANKS = 256

_SAMPLE = 8192
"""Entries that the edges of a feature with many values are quantiles of."""

_SPARSE = 8
"""A node with less than this share of the rows (one in) is read row by row, for a row's bytes are neighbours."""

_U64 = np.uint64
_SIGN = np.uint64(63)


class RankedTable(NamedTuple):
    """Entries as ranks, once by feature and once by row. NOT private.

    Attributes
    ----------
    values : ndarray of float64, shape (n_kept * n_rows,)
        The entries of those features of which some rank holds several values, those of a feature
        together.
    kept_as : ndarray of int64, shape (n_features,)
        At which place among those a feature is.
    by_feature : ndarray of uint8, shape (n_features * n_rows,)
        Ranks, those of a feature together.
    by_row : ndarray of uint8, shape (n_rows * n_features,)
        The same, those of a row together.
    edges : ndarray of float64, shape (n_features, 256)
        Ascending, then infinity: entries of rank r lie above edge r - 1 and not above edge r.
    is_single : ndarray of bool, shape (n_features, 256)
        Whether all entries of a rank are equal to its edge.
    """

    values: NDArray[np.float64]
    kept_as: NDArray[np.int64]
    by_feature: NDArray[np.uint8]
    by_row: NDArray[np.uint8]
    edges: NDArray[np.float64]
    is_single: NDArray[np.bool_]


@compiled(nogil=True)
def _find_grid(column: NDArray[np.float64]) -> tuple[float, int]:
    """Return the least entry, and how many halves the largest lies above it; -1 if not all are halves."""
    least = largest = column[0]
    for x in column:
        least = min(least, x)
        largest = max(largest, x)
    if not (largest - least) * 2.0 <= N_RANKS - 2:
        return least, -1
    for x in column:
        if (x - least) * 2.0 != float(int((x - least) * 2.0)) or least + int(
            (x - least) * 2.0
        ) * 0.5 != x:
            return least, -1
    return least, int((largest - least) * 2.0)


@compiled(nogil=True, _nrt=False)
def _rank(edges: NDArray[np.float64], x: float) -> np.uint64:
    """Return how many edges are smaller."""
    rank = _U64(0)
    step = _U64(N_RANKS // 2)
    while step > _U64(0):
        # Not a branch: which way it goes is a coin toss.
        rank += step * _U64(edges[rank + step - _U64(1)] < x)
        step >>= _U64(1)
    return rank


@compiled(nogil=True)
def _rank_grid(column: NDArray[np.float64], least: float, ranks: NDArray[np.uint8]) -> None:
    for i in range(column.shape[0]):
        ranks[i] = np.uint8((column[i] - least) * 2.0)


@compiled(nogil=True)
def _rank_column(
    column: NDArray[np.float64],
    edges: NDArray[np.float64],
    ranks: NDArray[np.uint8],
    is_single: NDArray[np.bool_],
) -> None:
    for i in range(column.shape[0]):
        rank = _rank(edges, column[i])
        ranks[i] = rank
        is_single[rank] &= edges[rank] == column[i]


def _quantiles(column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return distinct entries that part a sample into shares of about equal size, N_RANKS - 1 at most."""
    sample = np.sort(column[:: -(-len(column) // _SAMPLE)])
    distinct = np.unique(sample)
    if len(distinct) < N_RANKS:
        return distinct
    places = np.linspace(0, len(sample) - 1, N_RANKS - 1).astype(np.int64)
    return np.unique(sample[places])


def rank_table(columns: Sequence[NDArray[Any]]) -> RankedTable:
    """Rank the entries of a table.

    Parameters
    ----------
    columns : sequence of ndarray, each of shape (n_rows,)
        Finite numbers of any type.
    """
    n_rows, n_features = len(columns[0]), len(columns)
    by_feature = np.zeros((n_features, n_rows), dtype=np.uint8)
    edges = np.full((n_features, N_RANKS), np.inf)
    is_single = np.ones((n_features, N_RANKS), dtype=np.bool_)
    for f in range(n_features if n_rows else 0):
        # Nothing is written; but read-only arrays would be a type that is compiled once more.
        column = np.require(columns[f], np.float64, ["C", "W"])
        least, n_halves = _find_grid(column)
        if n_halves >= 0:
            edges[f, : n_halves + 1] = least + 0.5 * np.arange(n_halves + 1)
            _rank_grid(column, least, by_feature[f])
        else:
            own = _quantiles(column)
            edges[f, : len(own)] = own
            _rank_column(column, edges[f], by_feature[f], is_single[f])
    by_row = np.ascontiguousarray(by_feature.T)
    is_kept = ~is_single.all(axis=1)
    kept = [columns[f] for f in np.flatnonzero(is_kept).tolist()]
    values = np.concatenate([np.empty(0), *kept], dtype=np.float64)
    kept_as = np.cumsum(is_kept) - 1
    return RankedTable(values, kept_as, by_feature.ravel(), by_row.ravel(), edges, is_single)


@compiled(nogil=True, _nrt=False)
def part_rows(
    table: RankedTable,
    feature: int,
    threshold: float,
    is_category: bool,
    rows: NDArray[np.uint32],
    start: int,
    stop: int,
    spare: NDArray[np.uint32],
) -> int:
    """Put those of ``rows[start:stop]`` that a split sends left before the others, keeping their order.

    Parameters
    ----------
    table : RankedTable
    feature, threshold, is_category
        The split (see :mod:`lumberjack.splits`).
    rows : ndarray of uint32
        Row numbers.
    start, stop : int
        Which of them.
    spare : ndarray of uint32
        Room for as many.

    Returns
    -------
    int
        Where those that go right start.
    """
    n_features = table.edges.shape[0]
    n_rows = table.by_row.shape[0] // n_features
    edges = table.edges[feature]
    rank = int(_rank(edges, threshold))
    is_edge = edges[rank] == threshold
    is_single = table.is_single[feature, rank]
    # Ranks first .. first + width go left; entries of rank `open` are looked up.
    first, width, undecided = 0, rank, -1
    if is_category:
        first, width = rank, 0
        if not is_single:
            undecided = rank
        elif not is_edge:
            width = -1
    elif not is_edge:
        if is_single:
            width = rank - 1
        else:
            undecided = rank
    if width < 0 and undecided < 0:
        return start
    if (stop - start) * _SPARSE < n_rows:
        ranks, place, stride = table.by_row, feature, n_features
    else:
        ranks, place, stride = table.by_feature, feature * n_rows, 1
    if undecided < 0:
        return _part_by_ranks(ranks, place, stride, first, width, rows, start, stop, spare)
    kept = table.kept_as[feature]
    return _part_by_ranks_and_values(
        ranks,
        place,
        stride,
        first,
        width,
        rows,
        start,
        stop,
        spare,
        undecided,
        table.values[kept * n_rows : (kept + 1) * n_rows],
        threshold,
        is_category,
    )


@compiled(nogil=True, _nrt=False)
def _part_by_ranks(
    ranks: NDArray[np.uint8],
    place: int,
    stride: int,
    first: int,
    width: int,
    rows: NDArray[np.uint32],
    start: int,
    stop: int,
    spare: NDArray[np.uint32],
) -> int:
    # No branch on an entry, and unsigned numbers, whose use as an index needs none either.
    offset, step = _U64(place), _U64(stride)
    low, last = _U64(first), _U64(width)
    write, n_right = _U64(start), _U64(0)
    for i in range(_U64(start), _U64(stop)):
        row = rows[i]
        above = (_U64(ranks[offset + step * _U64(row)]) - low) & _U64(255)
        goes_right = (last - above) >> _SIGN
        rows[write] = row
        spare[n_right] = row
        n_right += goes_right
        write += _U64(1) - goes_right
    for i in range(n_right):
        rows[write + i] = spare[i]
    return int(write)


@compiled(nogil=True, _nrt=False)
def _part_by_ranks_and_values(
    ranks: NDArray[np.uint8],
    place: int,
    stride: int,
    first: int,
    width: int,
    rows: NDArray[np.uint32],
    start: int,
    stop: int,
    spare: NDArray[np.uint32],
    undecided: int,
    values: NDArray[np.float64],
    threshold: float,
    is_category: bool,
) -> int:
    offset, step = _U64(place), _U64(stride)
    low, last, open_rank = _U64(first), _U64(width), _U64(undecided)
    write, n_right = _U64(start), _U64(0)
    for i in range(_U64(start), _U64(stop)):
        row = rows[i]
        rank = _U64(ranks[offset + step * _U64(row)])
        goes_right = (last - ((rank - low) & _U64(255))) >> _SIGN
        if rank == open_rank:
            value = values[_U64(row)]
            is_left = value == threshold if is_category else value <= threshold
            goes_right = _U64(not is_left)
        rows[write] = row
        spare[n_right] = row
        n_right += goes_right
        write += _U64(1) - goes_right
    for i in range(n_right):
        rows[write + i] = spare[i]
    return int(write)
