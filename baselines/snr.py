"""SNR: a forest of random multiway trees with noisy leaf counts, pruned by signal-to-noise ratio.

After Fletcher and Islam, "A differentially private random decision forest using reliable
signal-to-noise ratios" (2015). Features are categorical, numeric ones are cut into bins of equal
width. Every tree sees all rows and spends epsilon / T on Laplace noise in its leaf counts; what
inner nodes count is the sum of their leaves. Each row is classified at the node of its path whose
noisy majority is the largest, and the forest goes with the most confident tree.

Symbols: n number of rows the forest is planned for, k number of features, v_a number of values of
feature a, C number of classes, T number of trees, N total noisy count of a node, L number of
leaves below it.

All leaves of a tree carry noise, also the empty ones, and an inner node sums them all. A tree is
therefore built in full, level by level in flat arrays; how large it gets depends on the schema, n
and epsilon only, and is estimated before anything is built.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from baselines.coded_input import (
    Seed,
    check_count,
    check_labels,
    check_mode,
    check_privacy_parameters,
    check_table,
    fixed_noise_concerns,
)
from baselines.multiway_trees import (
    FEATURE_DRAW,
    NOISE_STREAM,
    STRUCTURE_STREAM,
    Domains,
    check_n_jobs,
    child_key,
    draw_generators,
    draw_keys,
    find_domains,
    for_each_tree,
    generator,
    keyed_uniform,
)
from lumberjack.accounting.guarantee import Guarantee, PrivacyCard
from lumberjack.compiled import compiled
from lumberjack.schema import CategoricalFeature, FeatureSchema

NO_NODE = -1
FIRST_PRUNED_LEVEL = 2
N_ESTIMATION_WALKS = 2000
LARGEST_COUNT = 2**40
MAX_PLANNED_TREES = 2**40
BYTES_PER_TREE = 4000


@dataclass(frozen=True, slots=True)
class ForestPlan:
    """How many trees there are and what each may do.

    Attributes
    ----------
    n_trees : int
        T.
    epsilon_per_tree : float
        Budget of each tree, epsilon / T.
    min_support : float
        Estimated number of rows at or below which a node is not split: C sqrt(2) T / epsilon,
        where noise and signal are alike.
    root_features : tuple of int
        Features the first roots are drawn from; all features once these are used up.
    """

    n_trees: int
    epsilon_per_tree: float
    min_support: float
    root_features: tuple[int, ...]


def plan_forest(n_rows: int, domain_sizes: ArrayLike, n_classes: int, epsilon: float) -> ForestPlan:
    """Choose the number of trees so that the trees' shallowest and deepest paths make sense.

    Starting from one tree per feature, trees are added while a path over half of the features
    still ends above the minimum support; then, while a path of two splits already ends below it,
    a tree is taken away together with the feature of the largest domain as a root.

    Parameters
    ----------
    n_rows : int
        Number of rows to plan for.
    domain_sizes : array-like of shape (n_features,)
        Number of values of each feature.
    n_classes : int
        Number of classes.
    epsilon : float
        Budget of the whole forest, finite.

    Returns
    -------
    ForestPlan

    Raises
    ------
    MemoryError
        When the number of trees is beyond counting.
    """
    sizes = np.asarray(domain_sizes, dtype=np.float64)
    support_per_tree = n_classes * math.sqrt(2) / epsilon
    mean_size = sizes.mean()
    shallow = n_rows / mean_size**2
    deep = n_rows / mean_size ** (len(sizes) / 2)

    n_trees = len(sizes)
    if deep > MAX_PLANNED_TREES * support_per_tree:
        raise MemoryError(
            f"SNR would grow more than {MAX_PLANNED_TREES:.3g} trees at epsilon={epsilon:g} on "
            f"{n_rows} rows. Lower epsilon."
        )
    if deep > n_trees * support_per_tree:
        # A jump to the end of the authors' loop, which adds one tree at a time.
        n_trees = max(n_trees, math.ceil(deep / support_per_tree) - 1)
        while deep > n_trees * support_per_tree:
            n_trees += 1

    valid = list(range(len(sizes)))
    while n_trees * support_per_tree > shallow and n_trees > 1:
        n_trees -= 1
        if len(valid) > 1:
            mean_before = sizes[valid].mean()
            valid.remove(max(valid, key=lambda feature: sizes[feature]))
            shallow = n_rows / (mean_before * sizes[valid].mean())
        else:
            # The last feature stays: the authors' loop would divide by the mean of nothing.
            shallow = n_rows / sizes[valid[0]] ** 2
            n_trees = max(1, min(n_trees, math.floor(shallow / support_per_tree) + 1))
    return ForestPlan(n_trees, epsilon / n_trees, n_trees * support_per_tree, tuple(valid))


def draw_root_features(
    plan: ForestPlan, n_features: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the feature of each tree's root, without replacement as long as possible.

    Parameters
    ----------
    plan : ForestPlan
        The forest's plan.
    n_features : int
        Number of features.
    rng : numpy.random.Generator
        Source of the draw.

    Returns
    -------
    ndarray of shape (n_trees,), int64
        The first pool is ``plan.root_features``; every later one holds all features.
    """
    pools = [rng.permutation(np.array(plan.root_features))]
    n_drawn = len(plan.root_features)
    while n_drawn < plan.n_trees:
        pools.append(rng.permutation(n_features))
        n_drawn += n_features
    return np.concatenate(pools)[: plan.n_trees]


@compiled(nogil=True)
def grow_tree(
    root_key: np.uint64,
    root_feature: int,
    domain_sizes: NDArray[np.int64],
    n_rows: float,
    min_support: float,
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Grow the whole structure of one tree, level by level.

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
        As in :class:`ForestPlan`.

    Returns
    -------
    feature : ndarray of shape (n_nodes,), int32
        Feature a node splits on, -1 for a leaf. Parents come before their children.
    first_child : ndarray of shape (n_nodes,), int64
        The child for value v is ``first_child + v``.
    parent : ndarray of shape (n_nodes,), int64
        -1 for the root, which is node 0.
    level : ndarray of shape (n_nodes,), int32
        Number of splits above a node.
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
    return feature[:n_nodes], first_child[:n_nodes], parent[:n_nodes], level[:n_nodes]


def estimate_nodes_per_tree(
    plan: ForestPlan, domain_sizes: NDArray[np.int64], n_rows: float
) -> float:
    """Estimate the mean number of nodes of a tree without building one.

    Each random walk from root to leaf contributes the product of the domain sizes it passes,
    which is unbiased (Knuth 1975). The walks have a fixed seed: the estimate is a function of
    the plan alone.

    Parameters
    ----------
    plan : ForestPlan
        The forest's plan.
    domain_sizes : ndarray of shape (n_features,), int64
        Number of values of each feature.
    n_rows : float
        Number of rows the forest is planned for.

    Returns
    -------
    float
    """
    rng = np.random.default_rng(0)
    total = 0.0
    for walk in range(N_ESTIMATION_WALKS):
        root = plan.root_features[walk % len(plan.root_features)]
        others = rng.permutation(len(domain_sizes))
        path = [root, *others[others != root]]
        width, nodes = 1.0, 1.0
        for step, feature in enumerate(path):
            if step > 0 and n_rows / width <= plan.min_support:
                break
            width *= float(domain_sizes[feature])
            nodes += width
        total += nodes
    return total / N_ESTIMATION_WALKS


def distinct_rows(
    bins: NDArray[np.int32], domain_sizes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the rows that differ, for there may be far fewer of them than rows.

    Parameters
    ----------
    bins : ndarray of shape (n_rows, n_features), int32
        Values -1 to v_a - 1.
    domain_sizes : ndarray of shape (n_features,), int64
        Number of values of each feature.

    Returns
    -------
    first : ndarray of shape (n_distinct,), int64
        A row of each kind, kinds in lexicographic order.
    kind : ndarray of shape (n_rows,), int64
        Position in `first` of the row's kind.
    """
    kind = np.zeros(len(bins), dtype=np.int64)
    n_kinds = 1
    for j, size in enumerate(domain_sizes.tolist()):
        if n_kinds > 2**62 // (size + 1):
            values, kind = np.unique(kind, return_inverse=True)
            n_kinds = len(values)
        kind = kind * (size + 1) + (bins[:, j] + 1)
        n_kinds *= size + 1
    _, first, kind = np.unique(kind, return_index=True, return_inverse=True)
    return first, kind


@compiled(nogil=True)
def count_in_leaves(
    bins: NDArray[np.int32],
    class_counts: NDArray[np.int64],
    feature: NDArray[np.int32],
    first_child: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Count the rows of each class in each leaf.

    Parameters
    ----------
    bins : ndarray of shape (n_distinct, n_features), int32
        Values 0 to v_a - 1; a negative value ends the row's way, and it is counted nowhere.
    class_counts : ndarray of shape (n_distinct, n_classes), int64
        How many rows of each class there are of each kind.
    feature, first_child : ndarray of shape (n_nodes,)
        As :func:`grow_tree` gives them.

    Returns
    -------
    ndarray of shape (n_nodes, n_classes), int64
        0 for inner nodes.
    """
    n_classes = class_counts.shape[1]
    counts = np.zeros((len(feature), n_classes), dtype=np.int64)
    for i in range(len(bins)):
        node = np.int64(0)
        while feature[node] >= 0:
            value = bins[i, feature[node]]
            if value < 0:
                break
            node = first_child[node] + value
        if feature[node] < 0:
            for k in range(n_classes):
                counts[node, k] += class_counts[i, k]
    return counts


def noisy_counts(counts: ArrayLike, noise: ArrayLike) -> NDArray[np.int64]:
    """Return max(0, trunc(count + noise)).

    Counts are whole, so cutting the noise down to whole numbers first gives the same, and the
    last bits of a floating-point sum cannot tell the count. Results above ``LARGEST_COUNT`` are
    set to it, so that sums over leaves stay whole numbers at any budget.

    Parameters
    ----------
    counts : array-like of int
        True counts.
    noise : array-like of float, same shape
        Laplace noise.

    Returns
    -------
    ndarray of int64
    """
    whole = np.floor(np.asarray(noise, dtype=np.float64)).clip(-(2.0**60), 2.0**60)
    sums = np.asarray(counts, dtype=np.int64) + whole.astype(np.int64)
    return sums.clip(0, LARGEST_COUNT)


def signal_to_noise(
    totals: ArrayLike, n_leaves: ArrayLike, epsilon_per_tree: float, n_classes: int
) -> NDArray[np.float64]:
    """Return the signal-to-noise ratio by which nodes are pruned.

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
        Number of classes.

    Returns
    -------
    ndarray of shape (n_nodes,), float64
    """
    leaves = np.asarray(n_leaves, dtype=np.float64)
    signal = epsilon_per_tree * leaves * np.asarray(totals, dtype=np.float64)
    return signal / (np.sqrt(2 * leaves) * n_classes)


@compiled(nogil=True)
def sum_upwards(
    leaf_counts: NDArray[np.int64],
    feature: NDArray[np.int32],
    parent: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give each inner node the sum of its leaves.

    Parameters
    ----------
    leaf_counts : ndarray of shape (n_nodes, n_classes), int64
        Counts of the leaves, 0 at inner nodes.
    feature, parent : ndarray of shape (n_nodes,)
        As :func:`grow_tree` gives them.

    Returns
    -------
    counts : ndarray of shape (n_nodes, n_classes), int64
        Counts of all nodes.
    n_leaves : ndarray of shape (n_nodes,), int64
        Number of leaves below each node, 1 for a leaf.
    """
    counts = leaf_counts.copy()
    n_leaves = np.zeros(len(feature), dtype=np.int64)
    for node in range(len(feature) - 1, -1, -1):
        if feature[node] < 0:
            n_leaves[node] = 1
        above = parent[node]
        if above >= 0:
            n_leaves[above] += n_leaves[node]
            for k in range(counts.shape[1]):
                counts[above, k] += counts[node, k]
    return counts, n_leaves


@dataclass(frozen=True, slots=True)
class ReleasedTree:
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

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.feature)


def prune_tree(
    feature: NDArray[np.int32],
    first_child: NDArray[np.int64],
    parent: NDArray[np.int64],
    level: NDArray[np.int32],
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
    feature, first_child, parent, level : ndarray of shape (n_nodes,)
        As :func:`grow_tree` gives them.
    leaf_counts : ndarray of shape (n_nodes, n_classes), int64
        Noisy counts of the leaves, 0 at inner nodes.
    domain_sizes : ndarray of shape (n_features,), int64
        Number of values of each feature.
    epsilon_per_tree : float
        Budget of the tree.

    Returns
    -------
    ReleasedTree
    """
    counts, n_leaves = sum_upwards(leaf_counts, feature, parent)
    totals = counts.sum(axis=1)
    ratios = signal_to_noise(totals, n_leaves, epsilon_per_tree, counts.shape[1])
    is_kept = (level < FIRST_PRUNED_LEVEL) | ((ratios > 1) & (totals >= 1))
    return ReleasedTree(
        *_keep_connected(feature, first_child, parent, counts, totals, is_kept, domain_sizes)
    )


@compiled(nogil=True)
def _keep_connected(
    feature: NDArray[np.int32],
    first_child: NDArray[np.int64],
    parent: NDArray[np.int64],
    counts: NDArray[np.int64],
    totals: NDArray[np.int64],
    is_kept: NDArray[np.bool_],
    domain_sizes: NDArray[np.int64],
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Renumber the nodes that are kept with all their ancestors, and find each one's vote."""
    n_nodes, n_classes = counts.shape
    number = np.full(n_nodes, NO_NODE, dtype=np.int64)
    n_kept = 0
    n_slots = 0
    for node in range(n_nodes):
        if is_kept[node] and (node == 0 or number[parent[node]] >= 0):
            number[node] = n_kept
            n_kept += 1
            if feature[node] >= 0:
                n_slots += domain_sizes[feature[node]]

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
        best_above = -1.0 if node == 0 else majority[number[parent[node]]]
        own = -1.0
        if totals[node] >= 1:
            for k in range(n_classes):
                own = max(own, counts[node, k] / totals[node])
        majority[kept] = max(own, best_above)
        for k in range(n_classes):
            if own >= 0 and own >= best_above:
                votes[kept, k] = counts[node, k] / totals[node]
            elif best_above >= 0:
                votes[kept, k] = votes[number[parent[node]], k]
            else:
                # Not even the root counts a row; the authors' program crashes here.
                votes[kept, k] = 1.0 / n_classes
        if feature[node] < 0:
            continue
        has_children = False
        for value in range(domain_sizes[feature[node]]):
            child = number[first_child[node] + value]
            children[n_slots + value] = child
            has_children = has_children or child >= 0
        if has_children:
            kept_feature[kept] = feature[node]
            child_offset[kept] = n_slots
            n_slots += domain_sizes[feature[node]]
    return kept_feature, child_offset, children[:n_slots].copy(), votes


@compiled(nogil=True)
def _collect_votes(
    largest: NDArray[np.float64],
    total: NDArray[np.float64],
    bins: NDArray[np.int32],
    feature: NDArray[np.int32],
    child_offset: NDArray[np.int64],
    children: NDArray[np.int64],
    votes: NDArray[np.float64],
) -> None:
    """Let one tree vote on each row: keep the largest and the sum of the class fractions."""
    for i in range(len(bins)):
        node = np.int64(0)
        while feature[node] >= 0:
            value = bins[i, feature[node]]
            if value < 0:
                break
            child = children[child_offset[node] + value]
            if child < 0:
                break
            node = child
        for k in range(votes.shape[1]):
            largest[i, k] = max(largest[i, k], votes[node, k])
            total[i, k] += votes[node, k]


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
        _collect_votes(
            largest, total, bins, tree.feature, tree.child_offset, tree.children, tree.votes
        )
    return largest, total


def decide(largest: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the class that the most confident tree is for.

    Parameters
    ----------
    largest, total : ndarray of shape (n_rows, n_classes)
        As :func:`forest_votes` gives them.

    Returns
    -------
    ndarray of shape (n_rows,), int64
        Exact ties go to the larger sum, then to the lowest class code.
    """
    is_tied = largest == largest.max(axis=1, keepdims=True)
    return np.where(is_tied, total, -1.0).argmax(axis=1)


def cut_into_bins(
    rows: NDArray[np.float64], schema: FeatureSchema, n_bins: int
) -> NDArray[np.float64]:
    """Replace numeric values by the number of their bin, of equal width on the public bounds.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features), float64
        Coded rows.
    schema : FeatureSchema
        Schema of the coded table.
    n_bins : int
        Bins per numeric feature; a feature whose bounds coincide has one.

    Returns
    -------
    ndarray of shape (n_rows, n_features), float64
        Categorical features are as they were.
    """
    binned = rows.copy()
    for j, feature in enumerate(schema.features):
        if isinstance(feature, CategoricalFeature):
            continue
        width = (feature.upper - feature.lower) / n_bins
        if width > 0:
            binned[:, j] = np.floor((rows[:, j] - feature.lower) / width).clip(0, n_bins - 1)
        else:
            binned[:, j] = 0
    return binned


def binned_schema(schema: FeatureSchema, n_bins: int) -> FeatureSchema:
    """Return the schema of the table that :func:`cut_into_bins` gives.

    Parameters
    ----------
    schema : FeatureSchema
        Schema of the coded table.
    n_bins : int
        Bins per numeric feature.

    Returns
    -------
    FeatureSchema
    """
    features = [
        feature
        if isinstance(feature, CategoricalFeature)
        else CategoricalFeature(
            feature.name, tuple(range(n_bins if feature.upper > feature.lower else 1))
        )
        for feature in schema.features
    ]
    return FeatureSchema(
        tuple(features), schema.classes, schema.label, schema.name, schema.citation
    )


class SnrClassifier(ClassifierMixin, BaseEstimator):
    """Random forest of Fletcher and Islam (2015) with signal-to-noise pruning.

    Parameters
    ----------
    schema : FeatureSchema
        Schema of the coded table.
    epsilon : float
        Privacy budget, finite; the trees share it.
    delta : float
        Ignored: the guarantee is pure.
    mode : {"paper", "corrected"}
        Both run the same algorithm on public domains and bins. "paper" plans the forest with the
        exact number of training rows. "corrected" plans it with `public_n_rows`, or with a noisy
        number of rows that is paid for; epsilon-differentially private under adding or removing a
        row.
    random_state : int, SeedSequence or None
        Seed of the tree structure.
    noise_seed : int, SeedSequence or None
        Seed of the noise; None takes entropy from the operating system.
    n_jobs : int or None
        Threads; the result does not depend on it.
    n_bins : int
        Bins of equal width per numeric feature; 5 in the Lumberjack paper.
    public_n_rows : int or None
        A number of rows to plan for that does not come from the table, with
        ``mode="corrected"``; None buys one.
    size_share : float
        Share of the budget that buys the number of rows, in (0, 1), when none is given.
    domains : {"schema", "training"}
        Where the values of features and classes come from. The authors' program reads them off
        the training rows ("training", only with ``mode="paper"``).
    memory_limit_gb : float
        A forest that is estimated to need more is refused.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class codes.
    plan_ : ForestPlan
        Number of trees, budget of each and minimum support.
    trees_ : list of ReleasedTree
        The forest.

    Notes
    -----
    A value outside the domain ends a row's way at an inner node: a training row is then counted
    nowhere in that tree, a test row is classified from that node upwards.
    """

    display_name = "SNR"
    is_private = True
    modes = ("paper", "corrected")

    def __init__(
        self,
        *,
        schema: FeatureSchema,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        mode: str = "paper",
        random_state: Seed = None,
        noise_seed: Seed = None,
        n_jobs: int | None = 1,
        n_bins: int = 5,
        public_n_rows: int | None = None,
        size_share: float = 0.01,
        domains: Literal["schema", "training"] = "schema",
        memory_limit_gb: float = 4.0,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.mode = mode
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.n_jobs = n_jobs
        self.n_bins = n_bins
        self.public_n_rows = public_n_rows
        self.size_share = size_share
        self.domains = domains
        self.memory_limit_gb = memory_limit_gb

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Grow the trees, release their noisy leaf counts and prune them.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Coded rows.
        y : array-like of shape (n_rows,)
            Class codes.

        Returns
        -------
        SnrClassifier

        Raises
        ------
        ValueError
            When a parameter or an entry is out of range.
        MemoryError
            When the forest is estimated to need more than `memory_limit_gb`.
        """
        epsilon = self._check_parameters()
        if math.isinf(epsilon):
            raise ValueError(
                "epsilon must be finite: SNR grows its trees until noise and signal are alike. "
                "For a non-private baseline use method=extra_trees."
            )
        rows = check_table(X, self.schema)
        labels = check_labels(y, len(rows), self.schema.n_classes)
        binned = cut_into_bins(rows, self.schema, self.n_bins)
        domains = find_domains(
            binned_schema(self.schema, self.n_bins), self.domains, binned, labels
        )
        bins = domains.recode(binned).astype(np.int32)
        sizes, n_classes = domains.n_categories, len(domains.classes)
        first, kind = distinct_rows(bins, sizes)
        class_counts = np.zeros((len(first), n_classes), dtype=np.int64)
        np.add.at(class_counts, (kind, np.searchsorted(domains.classes, labels)), 1)
        bins = bins[first]

        noise = generator(self.noise_seed, NOISE_STREAM)
        n_rows, counting_epsilon = self._rows_to_plan_for(len(rows), epsilon, noise)
        plan = plan_forest(n_rows, sizes, n_classes, counting_epsilon)
        self._refuse_blow_up(plan, sizes, n_rows, n_classes)

        structure = generator(self.random_state, STRUCTURE_STREAM)
        roots = draw_root_features(plan, len(sizes), structure)
        keys = draw_keys(structure, plan.n_trees)
        count_noise = draw_generators(noise, plan.n_trees)

        def fit_tree(tree: int) -> ReleasedTree:
            feature, first_child, parent, level = grow_tree(
                keys[tree], roots[tree], sizes, float(n_rows), plan.min_support
            )
            counts = count_in_leaves(bins, class_counts, feature, first_child)
            is_leaf = feature < 0
            laplace = count_noise[tree].laplace(
                scale=1 / plan.epsilon_per_tree, size=(int(is_leaf.sum()), n_classes)
            )
            counts[is_leaf] = noisy_counts(counts[is_leaf], laplace)
            return prune_tree(
                feature, first_child, parent, level, counts, sizes, plan.epsilon_per_tree
            )

        self.classes_ = np.arange(self.schema.n_classes)
        self.n_features_in_ = self.schema.n_features
        self.domains_ = domains
        self.plan_ = plan
        self.trees_ = for_each_tree(fit_tree, plan.n_trees, self.n_jobs)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the class to which some tree gives the largest fraction.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Coded rows.

        Returns
        -------
        ndarray of shape (n_rows,), int64
            Exact ties go to the larger mean fraction, then to the lowest class code.
        """
        largest, total = self._votes(X)
        return self.domains_.classes[decide(largest, total)]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the largest fraction of each class over the trees, normalised.

        A score that ranks classes as :meth:`predict` does, not a calibrated probability; where
        largest fractions tie, the winner is lifted above the others by a part in 10^9.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Coded rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
        """
        largest, total = self._votes(X)
        largest[np.arange(len(largest)), decide(largest, total)] *= 1 + 1e-9
        scores = np.zeros((len(largest), self.schema.n_classes))
        scores[:, self.domains_.classes] = largest
        return scores / scores.sum(axis=1, keepdims=True)

    def fit_report(self) -> dict[str, float]:
        """Return figures about the fitted forest that the model itself shows.

        Returns
        -------
        dict of str to float
        """
        check_is_fitted(self)
        return {
            "n_trees": float(self.plan_.n_trees),
            "min_support": self.plan_.min_support,
            "mean_nodes_per_tree": float(np.mean([tree.n_nodes for tree in self.trees_])),
        }

    def privacy_card(self) -> PrivacyCard:
        """Return what is claimed about privacy and what is known against it.

        Returns
        -------
        PrivacyCard
        """
        epsilon = self._check_parameters()
        shared_concerns = (
            "Laplace noise comes from an ordinary, not a cryptographic, generator; it is cut down "
            "to whole numbers before it meets a count, so the last bits of a sum tell nothing",
            *fixed_noise_concerns(self.noise_seed),
        )
        public = ["schema (bounds, categories, classes)", "number of bins"]
        if self.mode == "corrected":
            if self.public_n_rows is not None:
                public.append(f"number of rows planned for ({self.public_n_rows})")
                source = "Laplace mechanism on disjoint leaf counts, epsilon / T per tree"
            else:
                source = (
                    f"Laplace mechanism: {self.size_share:g} epsilon on the number of rows, the "
                    "rest in equal parts on the disjoint leaf counts of each tree"
                )
            return PrivacyCard(
                method=self.display_name,
                mode=self.mode,
                claimed=Guarantee(epsilon, 0.0),
                source=source,
                status="holds",
                concerns=shared_concerns,
                public_inputs=tuple(public),
            )
        public.append("number of rows")
        concerns = [
            "number of trees, budget per tree and depth are functions of the exact number of rows, "
            "which the authors take to be public; when a row is added or removed it changes (own "
            "analysis)",
        ]
        if self.domains == "training":
            public.remove("schema (bounds, categories, classes)")
            public.insert(0, "bounds of numeric features")
            concerns.append(
                "values of features and classes are read off the training rows, as in the "
                "authors' program"
            )
        return PrivacyCard(
            method=self.display_name,
            mode=self.mode,
            claimed=Guarantee(epsilon, 0.0),
            source="Fletcher and Islam 2015: Laplace mechanism on leaf counts, epsilon / T per tree",
            status="doubted",
            concerns=(*concerns, *shared_concerns),
            public_inputs=tuple(public),
        )

    def _check_parameters(self) -> float:
        epsilon, _ = check_privacy_parameters(self.epsilon, self.delta)
        check_mode(self.mode, self.modes)
        check_count("n_bins", self.n_bins)
        check_n_jobs(self.n_jobs)
        if not 0 < self.size_share < 1:
            raise ValueError(f"size_share must lie in (0, 1), got {self.size_share!r}.")
        if not self.memory_limit_gb > 0:
            raise ValueError(f"memory_limit_gb must be positive, got {self.memory_limit_gb!r}.")
        if self.domains not in ("schema", "training"):
            raise ValueError(f"domains must be 'schema' or 'training', got {self.domains!r}.")
        if self.mode == "corrected" and self.domains == "training":
            raise ValueError(
                "domains='training' reads the rows without paying for it; mode='corrected' needs "
                "domains='schema'."
            )
        if self.public_n_rows is not None:
            check_count("public_n_rows", self.public_n_rows)
            if self.mode == "paper":
                raise ValueError(
                    "public_n_rows needs mode='corrected'; mode='paper' plans with the exact "
                    "number of training rows."
                )
        return epsilon

    def _rows_to_plan_for(
        self, n_rows: int, epsilon: float, rng: np.random.Generator
    ) -> tuple[int, float]:
        """Return the number of rows to plan for and the budget that is left for counting."""
        if self.mode == "paper":
            return n_rows, epsilon
        if self.public_n_rows is not None:
            return int(self.public_n_rows), epsilon
        size_epsilon = self.size_share * epsilon
        noisy = noisy_counts(n_rows, rng.laplace(scale=1 / size_epsilon))
        return max(1, int(noisy)), epsilon - size_epsilon

    def _refuse_blow_up(
        self, plan: ForestPlan, sizes: NDArray[np.int64], n_rows: int, n_classes: int
    ) -> None:
        nodes = estimate_nodes_per_tree(plan, sizes, float(n_rows))
        # While a tree is built: its structure twice as arrays double, then counts, noise, sums.
        while_built = 2 * 40 + n_classes * (8 + 8 + 8 + 8) + 40
        when_kept = 4 + 8 + 8 + 8 * n_classes
        n_threads = min(check_n_jobs(self.n_jobs), plan.n_trees)
        n_bytes = nodes * (n_threads * while_built + plan.n_trees * when_kept)
        gigabytes = (n_bytes + plan.n_trees * BYTES_PER_TREE) / 1e9
        if gigabytes > self.memory_limit_gb:
            raise MemoryError(
                f"SNR would grow {plan.n_trees} trees of about {nodes:.3g} nodes, an estimated "
                f"{gigabytes:.3g} GB, more than memory_limit_gb={self.memory_limit_gb:g}. "
                "Lower epsilon or n_bins, or raise the limit."
            )

    def _votes(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        check_is_fitted(self)
        binned = cut_into_bins(check_table(X, self.schema), self.schema, self.n_bins)
        domains: Domains = self.domains_
        return forest_votes(self.trees_, domains.recode(binned).astype(np.int32))
