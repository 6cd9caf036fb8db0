"""Multiway trees with noisy leaf counts, pruned by their signal-to-noise ratio: the trees of SNR.

A tree is built in full, level by level in flat arrays, without looking at a row: all of its leaves
carry noise, also the empty ones, and an inner node sums them all. Then it is pruned, and what is
left says how a row that stops at a node votes. The forest is planned in :mod:`baselines.snr`.

Symbols: v_a number of values of feature a, C number of classes, N total noisy count of a node, L
number of leaves below it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from baselines.keyed_trees import FEATURE_DRAW, child_key
from lumberjack.compiled import compiled
from lumberjack.keyed_draws import keyed_uniform

NO_NODE = -1
FIRST_PRUNED_LEVEL = 2


class FullTree(NamedTuple):
    """The whole structure of one tree.

    Attributes
    ----------
    feature : ndarray of shape (n_nodes,), int32
        Feature a node splits on, -1 for a leaf. Parents come before their children.
    first_child : ndarray of shape (n_nodes,), int64
        The child for value v is ``first_child + v``.
    parent : ndarray of shape (n_nodes,), int64
        -1 for the root, which is node 0.
    level : ndarray of shape (n_nodes,), int32
        Number of splits above a node.
    """

    feature: NDArray[np.int32]
    first_child: NDArray[np.int64]
    parent: NDArray[np.int64]
    level: NDArray[np.int32]


class ReleasedTree(NamedTuple):
    """What is left of a tree: the nodes that were not pruned and how each votes.

    Attributes
    ----------
    feature : ndarray of shape (n_nodes,), int32
        Feature a node splits on, -1 for a node without children.
    child_offset : ndarray of shape (n_nodes,), int64
        The child for value v is ``children[child_offset + v]``.
    children : ndarray of int64
        Node numbers, -1 for a child that was pruned.
    votes : ndarray of shape (n_nodes, n_classes), float64
        Class fractions with which a row that stops here votes.
    """

    feature: NDArray[np.int32]
    child_offset: NDArray[np.int64]
    children: NDArray[np.int64]
    votes: NDArray[np.float64]


@compiled(nogil=True)
def grow_tree(
    root_key: np.uint64,
    root_feature: int,
    domain_sizes: NDArray[np.int64],
    n_rows: float,
    min_support: float,
) -> FullTree:
    """Grow the whole structure of one tree.

    A node at the root stands for `n_rows` rows and shares them evenly among its children. A node
    other than the root is a leaf when its share is at most `min_support` or no feature is left;
    otherwise it splits on a feature that its path has not used, drawn by its key.

    Parameters
    ----------
    root_key : uint64
        Key of the tree.
    root_feature : int
        Feature of the root, which always splits.
    domain_sizes : ndarray of shape (n_features,), int64
        Number of values of each feature.
    n_rows : float
        Number of rows the forest is planned for.
    min_support : float
        As in :class:`baselines.snr.ForestPlan`.
    """
    n_features = len(domain_sizes)
    capacity = 1024
    feature = np.full(capacity, -1, dtype=np.int32)
    first_child = np.full(capacity, -1, dtype=np.int64)
    parent = np.full(capacity, -1, dtype=np.int64)
    level = np.zeros(capacity, dtype=np.int32)
    key = np.zeros(capacity, dtype=np.uint64)
    support = np.zeros(capacity)
    is_used = np.zeros(n_features, dtype=np.bool_)

    key[0] = root_key
    support[0] = n_rows
    n_nodes = 1
    node = 0
    while node < n_nodes:
        if node == 0:
            chosen = root_feature
        elif support[node] <= min_support or level[node] >= n_features:
            node += 1
            continue
        else:
            above = parent[node]
            while above >= 0:
                is_used[feature[above]] = True
                above = parent[above]
            pick = int(keyed_uniform(key[node], FEATURE_DRAW) * (n_features - level[node]))
            chosen = -1
            for f in range(n_features):
                if is_used[f]:
                    is_used[f] = False
                elif pick >= 0:
                    if pick == 0:
                        chosen = f
                    pick -= 1
        n_children = domain_sizes[chosen]
        while n_nodes + n_children > capacity:
            feature = np.concatenate((feature, np.full(capacity, -1, dtype=np.int32)))
            first_child = np.concatenate((first_child, np.full(capacity, -1, dtype=np.int64)))
            parent = np.concatenate((parent, np.full(capacity, -1, dtype=np.int64)))
            level = np.concatenate((level, np.zeros(capacity, dtype=np.int32)))
            key = np.concatenate((key, np.zeros(capacity, dtype=np.uint64)))
            support = np.concatenate((support, np.zeros(capacity)))
            capacity *= 2
        feature[node] = chosen
        first_child[node] = n_nodes
        for value in range(n_children):
            parent[n_nodes] = node
            level[n_nodes] = level[node] + 1
            key[n_nodes] = child_key(key[node], value)
            support[n_nodes] = support[node] / n_children
            n_nodes += 1
        node += 1
    return FullTree(feature[:n_nodes], first_child[:n_nodes], parent[:n_nodes], level[:n_nodes])


@compiled(nogil=True)
def count_in_leaves(
    bins: NDArray[np.int32], class_counts: NDArray[np.int64], tree: FullTree
) -> NDArray[np.int64]:
    """Count the rows of each class in each leaf, shape (n_nodes, n_classes), 0 for inner nodes.

    Parameters
    ----------
    bins : ndarray of shape (n_distinct, n_features), int32
        Values 0 to v_a - 1; a negative value ends the row's way, and it is counted nowhere.
    class_counts : ndarray of shape (n_distinct, n_classes), int64
        How many rows of each class there are of each kind.
    tree : FullTree
    """
    n_classes = class_counts.shape[1]
    counts = np.zeros((len(tree.feature), n_classes), dtype=np.int64)
    for i in range(len(bins)):
        node = np.int64(0)
        while tree.feature[node] >= 0:
            value = bins[i, tree.feature[node]]
            if value < 0:
                break
            node = tree.first_child[node] + value
        if tree.feature[node] < 0:
            for k in range(n_classes):
                counts[node, k] += class_counts[i, k]
    return counts


def signal_to_noise(
    totals: ArrayLike, n_leaves: ArrayLike, epsilon_per_tree: float, n_classes: int
) -> NDArray[np.float64]:
    """Return the signal-to-noise ratio by which nodes are pruned, shape (n_nodes,).

    epsilon_t L N / (sqrt(2 L) C), which for a leaf (L = 1) is epsilon_t N / (sqrt(2) C). The
    authors multiply by L, although the noise of a sum of L counts calls for sqrt(2 L) alone.

    Parameters
    ----------
    totals : array-like of shape (n_nodes,)
        N.
    n_leaves : array-like of shape (n_nodes,)
        L.
    epsilon_per_tree : float
        Budget of the tree.
    n_classes : int
        C.
    """
    leaves = np.asarray(n_leaves, dtype=np.float64)
    signal = epsilon_per_tree * leaves * np.asarray(totals, dtype=np.float64)
    return signal / (np.sqrt(2 * leaves) * n_classes)


@compiled(nogil=True)
def sum_upwards(
    leaf_counts: NDArray[np.int64], tree: FullTree
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give each inner node the sum of its leaves.

    Parameters
    ----------
    leaf_counts : ndarray of shape (n_nodes, n_classes), int64
        Counts of the leaves, 0 at inner nodes.
    tree : FullTree

    Returns
    -------
    counts : ndarray of shape (n_nodes, n_classes), int64
        Counts of all nodes.
    n_leaves : ndarray of shape (n_nodes,), int64
        Number of leaves below each node, 1 for a leaf.
    """
    counts = leaf_counts.copy()
    n_leaves = np.zeros(len(tree.feature), dtype=np.int64)
    for node in range(len(tree.feature) - 1, -1, -1):
        if tree.feature[node] < 0:
            n_leaves[node] = 1
        above = tree.parent[node]
        if above >= 0:
            n_leaves[above] += n_leaves[node]
            for k in range(counts.shape[1]):
                counts[above, k] += counts[node, k]
    return counts, n_leaves


def prune_tree(
    tree: FullTree,
    leaf_counts: NDArray[np.int64],
    domain_sizes: NDArray[np.int64],
    epsilon_per_tree: float,
) -> ReleasedTree:
    """Turn noisy leaf counts into a pruned tree; all of it is post-processing.

    From level 2 on a node whose ratio is at most 1, or that counts no row, goes with all that is
    below it. A row that stops at a node votes with the node of its path that counts a row and has
    the largest majority fraction, the deepest of equals.

    Parameters
    ----------
    tree : FullTree
    leaf_counts : ndarray of shape (n_nodes, n_classes), int64
        Noisy counts of the leaves, 0 at inner nodes.
    domain_sizes : ndarray of shape (n_features,), int64
        Number of values of each feature.
    epsilon_per_tree : float
        Budget of the tree.
    """
    counts, n_leaves = sum_upwards(leaf_counts, tree)
    totals = counts.sum(axis=1)
    ratios = signal_to_noise(totals, n_leaves, epsilon_per_tree, counts.shape[1])
    is_kept = (tree.level < FIRST_PRUNED_LEVEL) | ((ratios > 1) & (totals >= 1))
    released: ReleasedTree = _keep_connected(tree, counts, totals, is_kept, domain_sizes)
    return released


@compiled(nogil=True)
def _keep_connected(
    tree: FullTree,
    counts: NDArray[np.int64],
    totals: NDArray[np.int64],
    is_kept: NDArray[np.bool_],
    domain_sizes: NDArray[np.int64],
) -> ReleasedTree:
    """Renumber the nodes that are kept with all their ancestors, and find each one's vote."""
    n_nodes, n_classes = counts.shape
    number = np.full(n_nodes, NO_NODE, dtype=np.int64)
    n_kept = 0
    n_slots = 0
    for node in range(n_nodes):
        if is_kept[node] and (node == 0 or number[tree.parent[node]] >= 0):
            number[node] = n_kept
            n_kept += 1
            if tree.feature[node] >= 0:
                n_slots += domain_sizes[tree.feature[node]]

    kept_feature = np.full(n_kept, -1, dtype=np.int32)
    child_offset = np.zeros(n_kept, dtype=np.int64)
    children = np.empty(n_slots, dtype=np.int64)
    votes = np.empty((n_kept, n_classes))
    majority = np.empty(n_kept)
    n_slots = 0
    for node in range(n_nodes):
        kept = number[node]
        if kept < 0:
            continue
        best_above = -1.0 if node == 0 else majority[number[tree.parent[node]]]
        own = -1.0
        if totals[node] >= 1:
            for k in range(n_classes):
                own = max(own, counts[node, k] / totals[node])
        majority[kept] = max(own, best_above)
        for k in range(n_classes):
            if own >= 0 and own >= best_above:
                votes[kept, k] = counts[node, k] / totals[node]
            elif best_above >= 0:
                votes[kept, k] = votes[number[tree.parent[node]], k]
            else:
                # Not even the root counts a row; the authors' program crashes here.
                votes[kept, k] = 1.0 / n_classes
        if tree.feature[node] < 0:
            continue
        has_children = False
        for value in range(domain_sizes[tree.feature[node]]):
            child = number[tree.first_child[node] + value]
            children[n_slots + value] = child
            has_children = has_children or child >= 0
        if has_children:
            kept_feature[kept] = tree.feature[node]
            child_offset[kept] = n_slots
            n_slots += domain_sizes[tree.feature[node]]
    return ReleasedTree(kept_feature, child_offset, children[:n_slots].copy(), votes)


@compiled(nogil=True)
def _collect_votes(
    largest: NDArray[np.float64],
    total: NDArray[np.float64],
    bins: NDArray[np.int32],
    tree: ReleasedTree,
) -> None:
    """Let one tree vote on each row: keep the largest and the sum of the class fractions."""
    for i in range(len(bins)):
        node = np.int64(0)
        while tree.feature[node] >= 0:
            value = bins[i, tree.feature[node]]
            if value < 0:
                break
            child = tree.children[tree.child_offset[node] + value]
            if child < 0:
                break
            node = child
        for k in range(tree.votes.shape[1]):
            largest[i, k] = max(largest[i, k], tree.votes[node, k])
            total[i, k] += tree.votes[node, k]


def forest_votes(
    trees: list[ReleasedTree], bins: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how the trees vote on each row.

    Parameters
    ----------
    trees : list of ReleasedTree
        The forest.
    bins : ndarray of shape (n_rows, n_features), int32
        Values 0 to v_a - 1; at a negative value a row stays where it is.

    Returns
    -------
    largest : ndarray of shape (n_rows, n_classes), float64
        Largest fraction that a tree gives to each class.
    total : ndarray of shape (n_rows, n_classes), float64
        Sum of the fractions over trees.
    """
    shape = (len(bins), trees[0].votes.shape[1])
    largest, total = np.zeros(shape), np.zeros(shape)
    for tree in trees:
        _collect_votes(largest, total, bins, tree)
    return largest, total


def decide(largest: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the class that the most confident tree is for, shape (n_rows,).

    Exact ties go to the larger sum, then to the lowest class code.

    Parameters
    ----------
    largest, total : ndarray of shape (n_rows, n_classes)
        As :func:`forest_votes` gives them.
    """
    is_tied = largest == largest.max(axis=1, keepdims=True)
    return np.where(is_tied, total, -1.0).argmax(axis=1)
