"""Random binary trees that are visited and never built, with labels by Permute-and-Flip.

A node has two children, and its split is drawn from its key (:mod:`baselines.keyed_trees`). (A tree
of depth 19 has a million nodes, of which a thousand records reach some thousands.) The law is that
of a tree built in full. Two kinds of splits: a threshold uniform in the node's interval
(``x <= threshold`` goes left), and, for the features given a number of categories, one category
against the rest, uniform among those that no ancestor used (as in section 5 of the Lumberjack
paper).

What a leaf's label is worth in privacy is the business of the methods, not of this module.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from baselines.keyed_trees import (
    FEATURE_DRAW,
    THRESHOLD_DRAW,
    SplitSpace,
    add_votes,
    child_key,
    count_classes,
)
from baselines.permute_and_flip import draw_labels
from lumberjack.compiled import compiled
from lumberjack.keyed_draws import keyed_uniform

_LEFT, _RIGHT = 0, 1
_NO_SIDES = np.empty((0, 0), dtype=np.uint8)


class Rows(NamedTuple):
    """Rows to learn from.

    Attributes
    ----------
    table : ndarray of shape (n_rows, n_features), row-major
    labels : ndarray of shape (n_rows,), int64
        Class codes.
    n_classes : int
        Number of classes.
    tree_of_row : ndarray of shape (n_rows,), int64, or None
        The one tree that counts each row; without it every tree counts all rows.
    """

    table: NDArray[np.float64]
    labels: NDArray[np.int64]
    n_classes: int
    tree_of_row: NDArray[np.int64] | None = None

    def of_tree(self, tree: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the table and labels of the rows that a tree counts."""
        if self.tree_of_row is None:
            return self.table, self.labels
        is_own = self.tree_of_row == tree
        return self.table[is_own], self.labels[is_own]


class RandomBinaryTrees(NamedTuple):
    """A forest of random trees with labelled leaves.

    Attributes
    ----------
    space : SplitSpace
        What the trees split.
    max_depth : int
        Depth of the leaves.
    n_classes : int
        Number of classes.
    tree_keys : ndarray of shape (n_trees,), uint64
        Key of each root.
    leaf_keys : list of ndarray, uint64
        For each tree the sorted keys of the leaves that a training record reached.
    leaf_labels : list of ndarray, int64
        Their labels, class codes.
    """

    space: SplitSpace
    max_depth: int
    n_classes: int
    tree_keys: NDArray[np.uint64]
    leaf_keys: list[NDArray[np.uint64]]
    leaf_labels: list[NDArray[np.int64]]

    def votes(self, table: NDArray[np.float64]) -> NDArray[np.int64]:
        """Count the trees that vote for each class, shape (n_rows, n_classes).

        Parameters
        ----------
        table : ndarray of shape (n_rows, n_features), row-major
        """
        votes = np.zeros((len(table), self.n_classes), dtype=np.int64)
        for key, leaf_keys, leaf_labels in zip(
            self.tree_keys, self.leaf_keys, self.leaf_labels, strict=True
        ):
            reached = leaves_of_rows(table, self.space, key, self.max_depth)
            add_votes(votes, reached, leaf_keys, leaf_labels, np.uint64(0))
        return votes


def grow(
    rows: Rows,
    space: SplitSpace,
    tree_keys: NDArray[np.uint64],
    max_depth: int,
    epsilon: float,
    noise: np.random.Generator,
) -> RandomBinaryTrees:
    """Label the leaves of random trees by Permute-and-Flip on their class counts.

    Parameters
    ----------
    rows : Rows
    space : SplitSpace
    tree_keys : ndarray of shape (n_trees,), uint64
    max_depth : int
        Depth of the leaves.
    epsilon : float
        Exponent of Permute-and-Flip; infinity for the exact majority, ties at random.
    noise : numpy.random.Generator
        Source of the labels.
    """
    leaf_keys, leaf_labels = [], []
    for tree, key in enumerate(tree_keys):
        table, labels = rows.of_tree(tree)
        leaf_of_row = leaves_of_rows(table, space, key, max_depth)
        reached, counts = count_classes(leaf_of_row, labels, rows.n_classes)
        leaf_keys.append(reached)
        leaf_labels.append(draw_labels(counts, epsilon, noise))
    return RandomBinaryTrees(space, max_depth, rows.n_classes, tree_keys, leaf_keys, leaf_labels)


def votes_at_every_depth(
    rows: Rows,
    validation: NDArray[np.float64],
    space: SplitSpace,
    tree_keys: NDArray[np.uint64],
    max_depth: int,
    epsilon: float,
    noise: np.random.Generator,
) -> NDArray[np.int32]:
    """Count the votes on validation rows of the forests of depth 1 to `max_depth`.

    A tree of depth D is the top of the tree of depth `max_depth` with the same key, so that one
    descent serves all depths. At each depth the votes follow the law of :func:`grow` followed by
    :meth:`RandomBinaryTrees.votes`; between depths they depend on each other.

    Parameters
    ----------
    rows : Rows
    validation : ndarray of shape (n_validation_rows, n_features), row-major
    space : SplitSpace
        Without categorical features: all trees must reach `max_depth`.
    tree_keys, max_depth, epsilon, noise
        As for :func:`grow`.

    Returns
    -------
    ndarray of shape (max_depth, n_validation_rows, n_classes), int32
    """
    votes = np.zeros((max_depth, len(validation), rows.n_classes), dtype=np.int32)
    for tree, key in enumerate(tree_keys):
        table, labels = rows.of_tree(tree)
        both = np.concatenate([table, validation])
        sides = np.empty((len(both), max_depth), dtype=np.uint8)
        _descend_rows(both, space, key, max_depth, sides)
        group = np.zeros(len(both), dtype=np.int64)
        n_groups = 1
        for depth in range(max_depth):
            counts = _refine(group, n_groups, sides[:, depth], labels, rows.n_classes)
            n_groups = len(counts)
            # A group of validation rows alone has zero counts, for which the law is uniform.
            group_labels = draw_labels(counts, epsilon, noise)
            votes[depth, np.arange(len(validation)), group_labels[group[len(labels) :]]] += 1
    return votes


def leaves_of_rows(
    table: NDArray[np.float64], space: SplitSpace, tree_key: np.uint64, max_depth: int
) -> NDArray[np.uint64]:
    """Return the key of the leaf that each row reaches, shape (n_rows,).

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_features), row-major
    space : SplitSpace
    tree_key : uint64
        Key of the root.
    max_depth : int
        Depth of the leaves.
    """
    leaves: NDArray[np.uint64] = _descend_rows(table, space, tree_key, max_depth, _NO_SIDES)
    return leaves


@compiled(nogil=True)
def _descend_rows(
    table: NDArray[np.float64],
    space: SplitSpace,
    tree_key: np.uint64,
    max_depth: int,
    sides: NDArray[np.uint8],
) -> NDArray[np.uint64]:
    """Return the leaf key of each row; note the side taken at each depth if `sides` has rows."""
    n_rows, n_features = table.shape
    n_categories = space.n_categories
    has_sides = len(sides) > 0
    leaves = np.empty(n_rows, dtype=np.uint64)
    node_lower, node_upper = np.empty(n_features), np.empty(n_features)
    is_used = np.zeros((n_features, max(1, n_categories.max())), dtype=np.bool_)
    n_used = np.zeros(n_features, dtype=np.int64)
    for i in range(n_rows):
        for j in range(n_features):
            node_lower[j] = space.lower[j]
            node_upper[j] = space.upper[j]
        key = tree_key
        n_candidates = n_features
        depth = 0
        while depth < max_depth and n_candidates > 0:
            feature = int(keyed_uniform(key, FEATURE_DRAW) * n_candidates)
            if n_candidates < n_features:
                to_pass = feature
                feature = 0
                while True:
                    if n_categories[feature] == 0 or n_used[feature] < n_categories[feature]:
                        if to_pass == 0:
                            break
                        to_pass -= 1
                    feature += 1
            fraction = keyed_uniform(key, THRESHOLD_DRAW)
            if n_categories[feature] == 0:
                width = node_upper[feature] - node_lower[feature]
                threshold = node_lower[feature] + fraction * width
                is_left = table[i, feature] <= threshold
                if is_left:
                    node_upper[feature] = threshold
                else:
                    node_lower[feature] = threshold
            else:
                to_pass = int(fraction * (n_categories[feature] - n_used[feature]))
                category = 0
                while is_used[feature, category] or to_pass > 0:
                    if not is_used[feature, category]:
                        to_pass -= 1
                    category += 1
                is_used[feature, category] = True
                n_used[feature] += 1
                if n_used[feature] == n_categories[feature]:
                    n_candidates -= 1
                is_left = table[i, feature] == category
            if has_sides:
                sides[i, depth] = 0 if is_left else 1
            key = child_key(key, _LEFT if is_left else _RIGHT)
            depth += 1
        leaves[i] = key
        for j in range(n_features):
            if n_used[j] > 0:
                n_used[j] = 0
                is_used[j, :] = False
    return leaves


@compiled(nogil=True)
def _refine(
    group: NDArray[np.int64],
    n_groups: int,
    sides: NDArray[np.uint8],
    labels: NDArray[np.int64],
    n_classes: int,
) -> NDArray[np.int64]:
    """Divide each group of rows at a node into those of its two children, in place.

    Returns the class counts of the new groups; only the rows with labels, the first ones, count.
    """
    renamed = np.full(2 * n_groups, -1, dtype=np.int64)
    n_new = 0
    for i in range(len(group)):
        child = 2 * group[i] + sides[i]
        if renamed[child] < 0:
            renamed[child] = n_new
            n_new += 1
        group[i] = renamed[child]
    counts = np.zeros((n_new, n_classes), dtype=np.int64)
    for i in range(len(labels)):
        counts[group[i], labels[i]] += 1
    return counts
