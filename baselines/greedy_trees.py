"""Greedy trees whose splits and leaves are chosen by the exponential mechanism, compiled.

A node's candidates are, for each numeric feature, one private median or several equally spaced
thresholds, and for each categorical feature some sets of categories. Each is scored by the class
counts of its two sides, and one is drawn with a probability that grows exponentially with its
score. A tree is an array of nodes: the children of node i are 2i + 1 (left) and 2i + 2.

What budget a draw gets, and what that is worth in privacy, is decided in
:mod:`baselines.suihkonen`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from baselines.private_median import draw_private_median
from lumberjack.compiled import compiled
from lumberjack.schema import FeatureSchema

MAX_SUBSET_SIZE = 8
N_SAMPLED_SUBSETS = 64

NO_FEATURE = -1


class Budgets(NamedTuple):
    """Factors of the exponents of the three draws.

    Attributes
    ----------
    median : float
        Weight of an interval is its width times exp(-median * |N_left - N_right|).
    split : float
        Weight of a candidate is exp(split * score).
    leaf : float
        Weight of a class is exp(leaf * count).
    """

    median: float
    split: float
    leaf: float


class Rules(NamedTuple):
    """What trees are grown.

    Attributes
    ----------
    max_depth : int
        Splits on a path.
    n_thresholds : int
        Equally spaced thresholds per numeric feature; 0 for one private median.
    has_sampled_subsets : bool
        Whether the sets of categories of a feature are drawn, or single categories.
    looks_at_purity : bool
        Stop at pure and at small nodes and label pure ones without noise (not private).
    smallest_node : int
        With `looks_at_purity`, a node with fewer records is a leaf.
    """

    max_depth: int
    n_thresholds: int
    has_sampled_subsets: bool
    looks_at_purity: bool
    smallest_node: int


class Columns(NamedTuple):
    """A table laid out for growing.

    Attributes
    ----------
    table : ndarray of shape (n_rows, n_features), column-major
        Coded values.
    labels : ndarray of shape (n_rows,), int64
        Class codes.
    ranks : ndarray of shape (n_rows, n_features), int64, column-major
        Position of each value among the distinct values of its numeric feature.
    distinct : ndarray of shape (n_distinct,)
        Those values, feature after feature.
    offsets : ndarray of shape (n_features + 1,), int64
        Where each feature's values start.
    lower, upper : ndarray of shape (n_features,)
        Public bounds.
    n_categories : ndarray of shape (n_features,), int64
        0 for a numeric feature.
    n_classes : int
        Number of classes.
    """

    table: NDArray[np.float64]
    labels: NDArray[np.int64]
    ranks: NDArray[np.int64]
    distinct: NDArray[np.float64]
    offsets: NDArray[np.int64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    n_categories: NDArray[np.int64]
    n_classes: int


class GreedyTree(NamedTuple):
    """A grown tree.

    Attributes
    ----------
    feature : ndarray of shape (n_nodes,), int64
        Feature that the node splits, ``NO_FEATURE`` at a leaf.
    threshold : ndarray of shape (n_nodes,)
        A numeric value at most this large goes left.
    goes_left : ndarray of shape (n_nodes, largest number of categories), bool
        Whether a category goes left; unseen categories go right.
    label : ndarray of shape (n_nodes,), int64
        Class of a leaf.
    """

    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    goes_left: NDArray[np.bool_]
    label: NDArray[np.int64]


def lay_out(
    table: NDArray[np.float64], labels: NDArray[np.int64], schema: FeatureSchema
) -> Columns:
    """Return the table as :func:`grow_tree` takes it.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_features)
        Coded table.
    labels : ndarray of shape (n_rows,), int64
        Class codes.
    schema : FeatureSchema
        Coded schema.
    """
    ranks = np.zeros(table.shape, dtype=np.int64, order="F")
    distinct: list[NDArray[np.float64]] = []
    for j, n in enumerate(schema.n_categories):
        if n == 0:
            values, ranks[:, j] = np.unique(table[:, j], return_inverse=True)
        else:
            values = np.empty(0)
        distinct.append(values)
    offsets = np.concatenate([[0], np.cumsum([len(values) for values in distinct])])
    return Columns(
        np.asfortranarray(table),
        labels,
        ranks,
        np.concatenate(distinct),
        offsets.astype(np.int64),
        schema.lower,
        schema.upper,
        schema.n_categories,
        schema.n_classes,
    )


@compiled(nogil=True)
def split_score(left: NDArray[np.int64], total: NDArray[np.int64]) -> float:
    """Return minus the summed Gini impurity n * Gini of the two sides of a split.

    Parameters
    ----------
    left, total : ndarray of shape (n_classes,), int64
        Class counts of the left side and of the node.
    """
    n_left = n_right = 0
    squares_left = squares_right = 0.0
    for k in range(len(total)):
        right = total[k] - left[k]
        n_left += left[k]
        n_right += right
        squares_left += float(left[k]) * left[k]
        squares_right += float(right) * right
    impurity = 0.0
    if n_left > 0:
        impurity += n_left - squares_left / n_left
    if n_right > 0:
        impurity += n_right - squares_right / n_right
    return -impurity


@compiled(nogil=True)
def _gumbel(noise: np.random.Generator) -> float:
    return -np.log(-np.log(1.0 - noise.random()))


@compiled(nogil=True)
def _draw_class(counts: NDArray[np.int64], exponent: float, noise: np.random.Generator) -> int:
    best, best_score = 0, -np.inf
    for k in range(len(counts)):
        score = exponent * counts[k] + _gumbel(noise)
        if score > best_score:
            best, best_score = k, score
    return best


@compiled(nogil=True)
def grow_tree(
    columns: Columns,
    rules: Rules,
    budgets: Budgets,
    structure: np.random.Generator,
    noise: np.random.Generator,
) -> GreedyTree:
    """Grow one tree.

    Parameters
    ----------
    columns : Columns
        The table.
    rules : Rules
    budgets : Budgets
    structure : numpy.random.Generator
        Source of sampled sets of categories, which nobody needs to protect.
    noise : numpy.random.Generator
        Source of all other draws.
    """
    n_rows, n_features = columns.table.shape
    rows = np.arange(n_rows)
    n_classes = columns.n_classes
    n_nodes = 2 ** (rules.max_depth + 1) - 1
    largest_domain = max(1, columns.n_categories.max())
    feature = np.full(n_nodes, NO_FEATURE, dtype=np.int64)
    threshold = np.zeros(n_nodes)
    goes_left = np.zeros((n_nodes, largest_domain), dtype=np.bool_)
    label = np.zeros(n_nodes, dtype=np.int64)

    exists = np.zeros(n_nodes, dtype=np.bool_)
    exists[0] = True
    starts = np.zeros(n_nodes, dtype=np.int64)
    ends = np.zeros(n_nodes, dtype=np.int64)
    ends[0] = n_rows
    node_lower = np.empty((n_nodes, n_features))
    node_upper = np.empty((n_nodes, n_features))
    node_lower[0] = columns.lower
    node_upper[0] = columns.upper

    total = np.empty(n_classes, dtype=np.int64)
    left = np.empty(n_classes, dtype=np.int64)
    n_cells = max(largest_domain, rules.n_thresholds + 1, len(rows))
    for j in range(n_features):
        n_cells = max(n_cells, columns.offsets[j + 1] - columns.offsets[j])
    cells = np.zeros((n_cells + 1, n_classes), dtype=np.int64)
    values = np.empty(n_cells + 1)
    value_counts = np.empty(n_cells + 1, dtype=np.int64)
    log_weights = np.empty(n_cells + 2)
    thresholds = np.empty(max(1, rules.n_thresholds))
    is_member = np.zeros(largest_domain, dtype=np.bool_)
    best_members = np.zeros(largest_domain, dtype=np.bool_)
    order = np.empty(largest_domain, dtype=np.int64)
    spare = np.empty(len(rows), dtype=np.int64)
    own_labels = np.empty(len(rows), dtype=np.int64)

    for node in range(n_nodes):
        if not exists[node]:
            continue
        own = rows[starts[node] : ends[node]]
        total[:] = 0
        for i in range(len(own)):
            own_labels[i] = columns.labels[own[i]]
            total[own_labels[i]] += 1
        is_last = 2 * node + 1 >= n_nodes
        is_pure = len(own) > 0 and total.max() == len(own)
        stops = rules.looks_at_purity and (is_pure or len(own) < rules.smallest_node)
        best_score = -np.inf
        if not is_last and not stops:
            for j in range(n_features):
                n_categories = columns.n_categories[j]
                if n_categories == 0 and rules.n_thresholds == 0:
                    n_values = _count_values(
                        columns, own, own_labels, j, cells, values, value_counts
                    )
                    drawn, n_left_values = draw_private_median(
                        values[:n_values],
                        value_counts[:n_values],
                        node_lower[node, j],
                        node_upper[node, j],
                        budgets.median,
                        log_weights,
                        noise,
                    )
                    left[:] = 0
                    for v in range(n_left_values):
                        _add(left, cells, v)
                    score = budgets.split * split_score(left, total) + _gumbel(noise)
                    if score > best_score:
                        best_score = score
                        feature[node] = j
                        threshold[node] = drawn
                elif n_categories == 0:
                    _count_between_thresholds(
                        columns,
                        own,
                        own_labels,
                        j,
                        node_lower[node, j],
                        node_upper[node, j],
                        thresholds,
                        cells,
                    )
                    left[:] = 0
                    for t in range(rules.n_thresholds):
                        _add(left, cells, t)
                        score = budgets.split * split_score(left, total) + _gumbel(noise)
                        if score > best_score:
                            best_score = score
                            feature[node] = j
                            threshold[node] = thresholds[t]
                elif n_categories > 1:
                    cells[:n_categories] = 0
                    for i in range(len(own)):
                        category = int(columns.table[own[i], j])
                        if category >= 0:
                            cells[category, own_labels[i]] += 1
                    is_sampled = rules.has_sampled_subsets and n_categories > 2
                    if is_sampled:
                        n_subsets = N_SAMPLED_SUBSETS
                    else:
                        # Of two categories one against the rest is the other against the rest.
                        n_subsets = 1 if n_categories == 2 else n_categories
                    for subset in range(n_subsets):
                        if is_sampled:
                            _draw_subset(n_categories, is_member, order, structure)
                        else:
                            is_member[:n_categories] = False
                            is_member[subset] = True
                        left[:] = 0
                        for category in range(n_categories):
                            if is_member[category]:
                                _add(left, cells, category)
                        score = budgets.split * split_score(left, total) + _gumbel(noise)
                        if score > best_score:
                            best_score = score
                            feature[node] = j
                            best_members[:] = False
                            best_members[:n_categories] = is_member[:n_categories]
        if feature[node] == NO_FEATURE:
            if rules.looks_at_purity and is_pure:
                label[node] = total.argmax()
            else:
                label[node] = _draw_class(total, budgets.leaf, noise)
            continue

        j = feature[node]
        if columns.n_categories[j] > 0:
            goes_left[node] = best_members
        n_left = n_right = 0
        for i in range(len(own)):
            if _is_left(
                columns.table[own[i], j], columns.n_categories[j], threshold[node], goes_left[node]
            ):
                own[n_left] = own[i]
                n_left += 1
            else:
                spare[n_right] = own[i]
                n_right += 1
        own[n_left:] = spare[:n_right]
        middle = starts[node] + n_left
        for side in range(2):
            child = 2 * node + 1 + side
            exists[child] = True
            starts[child] = starts[node] if side == 0 else middle
            ends[child] = middle if side == 0 else ends[node]
            node_lower[child] = node_lower[node]
            node_upper[child] = node_upper[node]
        if columns.n_categories[j] == 0:
            node_upper[2 * node + 1, j] = threshold[node]
            node_lower[2 * node + 2, j] = threshold[node]
    return GreedyTree(feature, threshold, goes_left, label)


@compiled(nogil=True)
def _add(sums: NDArray[np.int64], cells: NDArray[np.int64], place: int) -> None:
    # Written out because an array expression on so few numbers costs several times as much.
    for k in range(len(sums)):
        sums[k] += cells[place, k]


@compiled(nogil=True)
def _count_between_thresholds(
    columns: Columns,
    own: NDArray[np.int64],
    own_labels: NDArray[np.int64],
    j: int,
    lower: float,
    upper: float,
    thresholds: NDArray[np.float64],
    cells: NDArray[np.int64],
) -> None:
    """Write equally spaced thresholds and the class counts of the values up to and after each."""
    n_thresholds = len(thresholds)
    step = (upper - lower) / (n_thresholds + 1)
    for t in range(n_thresholds):
        thresholds[t] = lower + step * (t + 1)
    cells[: n_thresholds + 1] = 0
    for i in range(len(own)):
        value = columns.table[own[i], j]
        place = 0
        if step > 0:
            place = min(max(int((value - lower) / step), 0), n_thresholds)
        # The division may round to a neighbour, and a value on a threshold goes left of it.
        while place < n_thresholds and value > thresholds[place]:
            place += 1
        while place > 0 and value <= thresholds[place - 1]:
            place -= 1
        cells[place, own_labels[i]] += 1


@compiled(nogil=True)
def _count_values(
    columns: Columns,
    own: NDArray[np.int64],
    own_labels: NDArray[np.int64],
    j: int,
    cells: NDArray[np.int64],
    values: NDArray[np.float64],
    value_counts: NDArray[np.int64],
) -> int:
    """Write the node's distinct values of feature j, sorted, with their class counts.

    Returns how many there are.
    """
    offset = columns.offsets[j]
    n_distinct = columns.offsets[j + 1] - offset
    n_values = 0
    if n_distinct <= 4 * len(own) + 64:
        cells[:n_distinct] = 0
        for i in range(len(own)):
            cells[columns.ranks[own[i], j], own_labels[i]] += 1
        for rank in range(n_distinct):
            count = 0
            for k in range(columns.n_classes):
                count += cells[rank, k]
            if count > 0:
                for k in range(columns.n_classes):
                    cells[n_values, k] = cells[rank, k]
                values[n_values] = columns.distinct[offset + rank]
                value_counts[n_values] = count
                n_values += 1
        return n_values
    order = np.argsort(columns.ranks[:, j][own])
    last_rank = -1
    for i in order:
        rank = columns.ranks[own[i], j]
        if rank != last_rank:
            cells[n_values] = 0
            values[n_values] = columns.distinct[offset + rank]
            value_counts[n_values] = 0
            n_values += 1
            last_rank = rank
        cells[n_values - 1, own_labels[i]] += 1
        value_counts[n_values - 1] += 1
    return n_values


@compiled(nogil=True)
def _draw_subset(
    n_categories: int,
    is_member: NDArray[np.bool_],
    order: NDArray[np.int64],
    structure: np.random.Generator,
) -> None:
    """Draw a set of uniform size, from one category to the largest allowed, without the data."""
    largest = min(MAX_SUBSET_SIZE, n_categories - 1)
    size = 1 + int(structure.random() * largest)
    for category in range(n_categories):
        order[category] = category
        is_member[category] = False
    for i in range(size):
        place = i + int(structure.random() * (n_categories - i))
        order[i], order[place] = order[place], order[i]
        is_member[order[i]] = True


@compiled(nogil=True)
def _is_left(
    value: float, n_categories: int, threshold: float, goes_left: NDArray[np.bool_]
) -> bool:
    if n_categories == 0:
        return value <= threshold
    return value >= 0 and goes_left[int(value)]


@compiled(nogil=True)
def add_votes(
    table: NDArray[np.float64],
    n_categories: NDArray[np.int64],
    tree: GreedyTree,
    votes: NDArray[np.int64],
) -> None:
    """Add a tree's votes.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_features), row-major
        Coded table.
    n_categories : ndarray of shape (n_features,), int64
        0 for a numeric feature.
    tree : GreedyTree
    votes : ndarray of shape (n_rows, n_classes), int64
        Changed in place.
    """
    for i in range(len(table)):
        node = 0
        while tree.feature[node] != NO_FEATURE:
            j = tree.feature[node]
            is_left = _is_left(
                table[i, j], n_categories[j], tree.threshold[node], tree.goes_left[node]
            )
            node = 2 * node + (1 if is_left else 2)
        votes[i, tree.label[node]] += 1
