"""Random trees whose structure is a function of a key, visited and never built.

Nodes are identified by keys as in :mod:`baselines.multiway_trees`: the key of its root fixes a
tree, and only the nodes on the way of a record are ever looked at. (A tree of depth 19 has a
million nodes, of which a thousand records reach some thousands.) The law is that of a tree built in
full. A fitted forest keeps the keys of the leaves that some record reached, which tells them from
empty ones: it is an artefact of experiments and must not be released.

Two kinds of splits: a threshold uniform in the node's interval (``x <= threshold`` goes left), and,
for the features given a number of categories, one category against the rest, uniform among those
that no ancestor used (as in section 5 of the Lumberjack paper).

What a leaf's label is worth in privacy is the business of the methods, not of this module.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baselines.multiway_trees import FEATURE_DRAW, THRESHOLD_DRAW, child_key, keyed_uniform
from baselines.smooth_sensitivity import draw_permute_and_flip_labels
from lumberjack.compiled import compiled

_LEFT, _RIGHT = 0, 1
# A leaf draws no feature, so that number of its stream is free for the label of an empty leaf.
_EMPTY_LABEL_DRAW = FEATURE_DRAW


@dataclass(frozen=True, slots=True)
class SplitSpace:
    """The box that random trees split.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_features,)
        Public bounds; of no meaning for a feature with categories.
    n_categories : ndarray of shape (n_features,), int64
        0 for a feature split by thresholds, else its number of categories.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    n_categories: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RandomTrees:
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
        Their labels, class codes. A leaf that no training record reached has a label too, uniform
        over the classes and drawn from its key.
    """

    space: SplitSpace
    max_depth: int
    n_classes: int
    tree_keys: NDArray[np.uint64]
    leaf_keys: list[NDArray[np.uint64]]
    leaf_labels: list[NDArray[np.int64]]

    def votes(self, table: NDArray[np.float64]) -> NDArray[np.int64]:
        """Count the trees that vote for each class.

        Parameters
        ----------
        table : ndarray of shape (n_rows, n_features), row-major

        Returns
        -------
        ndarray of shape (n_rows, n_classes), int64
        """
        votes = np.zeros((len(table), self.n_classes), dtype=np.int64)
        for key, leaf_keys, leaf_labels in zip(
            self.tree_keys, self.leaf_keys, self.leaf_labels, strict=True
        ):
            reached = leaves_of_rows(table, self.space, key, self.max_depth)
            _add_votes(reached, leaf_keys, leaf_labels, votes)
        return votes


def leaves_of_rows(
    table: NDArray[np.float64], space: SplitSpace, tree_key: np.uint64, max_depth: int
) -> NDArray[np.uint64]:
    """Return the key of the leaf that each row reaches.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_features), row-major
    space : SplitSpace
    tree_key : uint64
        Key of the root.
    max_depth : int
        Depth of the leaves.

    Returns
    -------
    ndarray of shape (n_rows,), uint64
    """
    no_sides = np.empty((0, 0), dtype=np.uint8)
    return _descend_rows(
        table, space.lower, space.upper, space.n_categories, tree_key, max_depth, no_sides
    )


def grow(
    table: NDArray[np.float64],
    labels: NDArray[np.int64],
    n_classes: int,
    space: SplitSpace,
    tree_keys: NDArray[np.uint64],
    max_depth: int,
    epsilon: float,
    noise: np.random.Generator,
    tree_of_row: NDArray[np.int64] | None = None,
) -> RandomTrees:
    """Label the leaves of random trees by Permute-and-Flip on their class counts.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_features), row-major
    labels : ndarray of shape (n_rows,), int64
        Class codes.
    n_classes : int
        Number of classes.
    space : SplitSpace
    tree_keys : ndarray of shape (n_trees,), uint64
    max_depth : int
        Depth of the leaves.
    epsilon : float
        Exponent of Permute-and-Flip; infinity for the exact majority, ties at random.
    noise : numpy.random.Generator
        Source of the labels.
    tree_of_row : ndarray of shape (n_rows,), int64, optional
        The one tree that counts each row; without it every tree counts all rows.

    Returns
    -------
    RandomTrees
    """
    leaf_keys, leaf_labels = [], []
    for tree, key in enumerate(tree_keys):
        rows, row_labels = table, labels
        if tree_of_row is not None:
            is_own = tree_of_row == tree
            rows, row_labels = table[is_own], labels[is_own]
        reached, leaf_of_row = np.unique(
            leaves_of_rows(rows, space, key, max_depth), return_inverse=True
        )
        cells = leaf_of_row * n_classes + row_labels
        counts = np.bincount(cells, minlength=len(reached) * n_classes)
        leaf_keys.append(reached)
        leaf_labels.append(
            draw_permute_and_flip_labels(counts.reshape(-1, n_classes), epsilon, noise)
        )
    return RandomTrees(space, max_depth, n_classes, tree_keys, leaf_keys, leaf_labels)


def votes_at_every_depth(
    training: NDArray[np.float64],
    labels: NDArray[np.int64],
    validation: NDArray[np.float64],
    n_classes: int,
    space: SplitSpace,
    tree_keys: NDArray[np.uint64],
    max_depth: int,
    epsilon: float,
    noise: np.random.Generator,
    tree_of_row: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Count the votes on validation rows of the forests of depth 1 to `max_depth`.

    A tree of depth D is the top of the tree of depth `max_depth` with the same key, so that one
    descent serves all depths. At each depth the votes follow the law of :func:`grow` followed by
    :meth:`RandomTrees.votes`; between depths they depend on each other.

    Parameters
    ----------
    training, validation : ndarray of shape (n_rows, n_features), row-major
    labels : ndarray, int64
        Class codes of the training rows.
    n_classes : int
        Number of classes.
    space : SplitSpace
        Without categorical features.
    tree_keys : ndarray of shape (n_trees,), uint64
    max_depth : int
        Largest depth.
    epsilon : float
        Exponent of Permute-and-Flip.
    noise : numpy.random.Generator
        Source of the labels.
    tree_of_row : ndarray, int64
        The tree that counts each training row.

    Returns
    -------
    ndarray of shape (max_depth, n_validation_rows, n_classes), int32
    """
    if space.n_categories.any():
        raise ValueError(
            "votes_at_every_depth needs trees that all reach max_depth: thresholds only."
        )
    votes = np.zeros((max_depth, len(validation), n_classes), dtype=np.int32)
    for tree, key in enumerate(tree_keys):
        is_own = tree_of_row == tree
        own_labels = labels[is_own]
        rows = np.concatenate([training[is_own], validation])
        sides = np.empty((len(rows), max_depth), dtype=np.uint8)
        _descend_rows(rows, space.lower, space.upper, space.n_categories, key, max_depth, sides)
        group = np.zeros(len(rows), dtype=np.int64)
        n_groups = 1
        for depth in range(max_depth):
            counts = _refine(group, n_groups, sides[:, depth], own_labels, n_classes)
            n_groups = len(counts)
            # A group of validation rows alone has zero counts, for which the law is uniform.
            group_labels = draw_permute_and_flip_labels(counts, epsilon, noise)
            _add_group_votes(group[len(own_labels) :], group_labels, votes[depth])
    return votes


@compiled(nogil=True)
def _descend_rows(
    table: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    n_categories: NDArray[np.int64],
    tree_key: np.uint64,
    max_depth: int,
    sides: NDArray[np.uint8],
) -> NDArray[np.uint64]:
    """Return the leaf key of each row; note the side taken at each depth if `sides` has rows."""
    n_rows, n_features = table.shape
    has_sides = len(sides) > 0
    leaves = np.empty(n_rows, dtype=np.uint64)
    node_lower, node_upper = np.empty(n_features), np.empty(n_features)
    is_used = np.zeros((n_features, max(1, n_categories.max())), dtype=np.bool_)
    n_used = np.zeros(n_features, dtype=np.int64)
    for i in range(n_rows):
        for j in range(n_features):
            node_lower[j] = lower[j]
            node_upper[j] = upper[j]
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
def _add_votes(
    reached: NDArray[np.uint64],
    leaf_keys: NDArray[np.uint64],
    leaf_labels: NDArray[np.int64],
    votes: NDArray[np.int64],
) -> None:
    n_classes = votes.shape[1]
    for i in range(len(reached)):
        place = np.searchsorted(leaf_keys, reached[i])
        if place < len(leaf_keys) and leaf_keys[place] == reached[i]:
            votes[i, leaf_labels[place]] += 1
        else:
            votes[i, int(keyed_uniform(reached[i], _EMPTY_LABEL_DRAW) * n_classes)] += 1


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


@compiled(nogil=True)
def _add_group_votes(
    group: NDArray[np.int64], group_labels: NDArray[np.int64], votes: NDArray[np.int32]
) -> None:
    for i in range(len(group)):
        votes[i, group_labels[group[i]]] += 1
