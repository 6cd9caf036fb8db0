"""Smooth Sensitivity: a forest of fully random trees whose leaves release one label each.

After Fletcher and Islam, "Differentially private random decision forests using smooth
sensitivity" (2017). Every tree sees its own part of the rows and spends the whole budget on the
labels of its leaves. Numeric splits are binary at a uniform threshold, categorical splits have one
child per category, and neither looks at the rows: a tree is nothing but its key
(:mod:`baselines.keyed_trees`).

Symbols: T number of trees (``n_estimators``), c_k count of class k in a leaf, j the gap between
the two largest counts, S = exp(-j epsilon) what the authors take for the smooth sensitivity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from baselines import permute_and_flip
from baselines.coded_classifier import CodedClassifier, draw_generators
from baselines.keyed_trees import (
    FEATURE_DRAW,
    STOPPED,
    THRESHOLD_DRAW,
    SplitSpace,
    add_votes,
    child_key,
    count_classes,
    draw_keys,
)
from lumberjack.accounting.guarantee import PrivacyCard
from lumberjack.compiled import compiled
from lumberjack.keyed_draws import keyed_uniform

MAX_DEPTH_WITH_NUMERIC = 15
MAX_WEIGHT_EXPONENT = 50.0
_VANISHING_SENSITIVITY = 1e-10


def tree_depth(n_numeric: int, n_categorical: int) -> int:
    """Return the depth that the authors' rule gives a tree.

    Without numeric features it is half the number of categorical ones. With m numeric features,
    let d* be the smallest d >= 0 with m ((m-1)/m)^d <= m/2, the depth at which half of the
    numeric features are expected to have been split on; the depth is d* + 1 plus half of the
    categorical ones, at most 15. The "+1" is in the authors' program but not in their text.

    Parameters
    ----------
    n_numeric, n_categorical : int
        How many features of each kind there are.

    Returns
    -------
    int
        Number of splits on a path; 0 (a single categorical feature) still means one split, for
        the root always splits.
    """
    if n_numeric == 0:
        return n_categorical // 2
    half_seen = 0
    untouched = float(n_numeric)
    while untouched > n_numeric / 2:
        untouched *= (n_numeric - 1) / n_numeric
        half_seen += 1
    return min(MAX_DEPTH_WITH_NUMERIC, math.floor(half_seen + 1 + n_categorical / 2))


def deal_equal_parts(
    n_rows: int, n_trees: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Shuffle the rows and give each tree floor(n / T) of them; the rest is left out.

    Parameters
    ----------
    n_rows, n_trees : int
        n and T.
    rng : numpy.random.Generator
        Source of the shuffle.
    """
    size = n_rows // n_trees
    return np.split(rng.permutation(n_rows)[: size * n_trees], n_trees)


def deal_independently(
    n_rows: int, n_trees: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Give each row to a uniformly drawn tree, whatever the other rows are.

    Parameters
    ----------
    n_rows, n_trees, rng
        As for :func:`deal_equal_parts`.
    """
    tree = rng.integers(n_trees, size=n_rows)
    order = np.argsort(tree, kind="stable")
    return np.split(order, np.searchsorted(tree[order], np.arange(1, n_trees)))


def smooth_sensitivity_probabilities(counts: ArrayLike, epsilon: float) -> NDArray[np.float64]:
    """Return the law of a leaf's label in the authors' program, of the shape of its counts.

    A class of maximal count weighs exp(min(50, epsilon / (2 S))), any other 1. S depends on the
    counts, and that dependence is not paid for: this is not epsilon-differentially private.

    Parameters
    ----------
    counts : array-like of shape (..., n_classes)
        Class counts of each leaf.
    epsilon : float
        Positive, may be infinite.
    """
    counts = np.asarray(counts, dtype=np.float64)
    largest = counts.max(axis=-1, keepdims=True)
    if counts.shape[-1] == 1:
        return np.ones_like(counts)
    gap = largest[..., 0] - np.partition(counts, -2, axis=-1)[..., -2]
    # Written apart from the product so that an infinite budget times no gap is no gap.
    sensitivity = np.exp(-permute_and_flip.times_budget(gap, epsilon))
    exponent = np.full(sensitivity.shape, MAX_WEIGHT_EXPONENT)
    is_regular = sensitivity >= _VANISHING_SENSITIVITY
    exponent[is_regular] = np.minimum(MAX_WEIGHT_EXPONENT, epsilon / (2 * sensitivity[is_regular]))
    weights = np.where(counts == largest, np.exp(exponent)[..., np.newaxis], 1.0)
    return weights / weights.sum(axis=-1, keepdims=True)


def draw_smooth_sensitivity_labels(
    counts: NDArray[np.int64], epsilon: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the label of each leaf as the authors' program does.

    Parameters
    ----------
    counts : ndarray of shape (n_leaves, n_classes)
        Class counts.
    epsilon : float
        Positive, may be infinite.
    rng : numpy.random.Generator
        Source of the draw.
    """
    cumulated = smooth_sensitivity_probabilities(counts, epsilon).cumsum(axis=1)
    points = rng.random(len(counts))[:, np.newaxis] * cumulated[:, -1:]
    return (points >= cumulated[:, :-1]).sum(axis=1)


@compiled(nogil=True)
def leaves_of_rows(
    table: NDArray[np.float64], space: SplitSpace, tree_key: np.uint64, depth: int
) -> NDArray[np.uint64]:
    """Return the leaf that each row reaches, one of several children at each split.

    At each node a feature is drawn uniformly among the candidates: all numeric features, each
    with the interval that is left of its range, and the categorical ones not yet used on the path.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_features), float64
        Coded rows; -1 in a categorical feature is outside the domain.
    space : SplitSpace
    tree_key : uint64
        Key of the root.
    depth : int
        Number of splits on a path, fewer where no candidate is left.

    Returns
    -------
    ndarray of shape (n_rows,), uint64
        Leaf keys; :data:`STOPPED` for a row that met a category outside the domain.
    """
    n_rows, n_features = table.shape
    keys = np.empty(n_rows, dtype=np.uint64)
    candidates = np.empty(n_features, dtype=np.int64)
    low = np.empty(n_features)
    high = np.empty(n_features)
    for i in range(n_rows):
        for f in range(n_features):
            candidates[f] = f
            low[f] = space.lower[f]
            high[f] = space.upper[f]
        n_candidates = n_features
        key = tree_key
        for _ in range(max(depth, 1)):
            if n_candidates == 0:
                break
            pick = int(keyed_uniform(key, FEATURE_DRAW) * n_candidates)
            feature = candidates[pick]
            value = table[i, feature]
            if space.n_categories[feature] == 0:
                width = high[feature] - low[feature]
                threshold = low[feature] + keyed_uniform(key, THRESHOLD_DRAW) * width
                if value < threshold:
                    high[feature] = threshold
                    child = 0
                else:
                    low[feature] = threshold
                    child = 1
            else:
                if value < 0:
                    key = STOPPED
                    break
                child = int(value)
                n_candidates -= 1
                candidates[pick] = candidates[n_candidates]
            key = child_key(key, child)
        keys[i] = key
    return keys


@dataclass(kw_only=True, eq=False, repr=False)
class SmoothSensitivityClassifier(CodedClassifier):
    """Random forest of Fletcher and Islam (2017).

    Parameters
    ----------
    mode : {"paper", "corrected"}
        "paper": shuffled rows in equal parts, labels drawn with data-dependent weights; not
        private as claimed. "corrected": each row goes to a tree of its own random choice, labels
        by Permute-and-Flip; epsilon-differentially private under adding or removing a row.
    n_estimators : int
        Number of trees; 30 in the Lumberjack paper.

    Attributes
    ----------
    depth_ : int
        Number of splits on a path.
    tree_keys_ : ndarray of shape (n_trees,), uint64
        The trees.
    known_leaves_, known_labels_ : list of ndarray
        For each tree the keys of the leaves that a training row reached, and their labels.

    Notes
    -----
    The authors' program reads ranges, categories and classes off the training rows; here they are
    those of the schema. A category that it does not list ends a row's way at an inner node: a
    training row is then counted nowhere in that tree, a test row gets no vote from it.
    """

    display_name: ClassVar[str] = "Smooth Sensitivity"
    is_private: ClassVar[bool] = True

    mode: str = "paper"
    n_estimators: int = 30

    def fit_report(self) -> dict[str, float]:
        """Return figures about the fitted forest that the model itself shows."""
        check_is_fitted(self)
        n_leaves = [len(known) for known in self.known_leaves_]
        return {"depth": float(self.depth_), "mean_leaves_per_tree": float(np.mean(n_leaves))}

    def privacy_card(self) -> PrivacyCard:
        """Return what is claimed about privacy and what is known against it."""
        shared_concerns = (
            "the fitted object lists the leaves that training rows reach; the claim is about its "
            "predictions, and the object is an experiment's artefact, not to be published",
            "labels come from an ordinary, not a cryptographic, generator in floating point",
        )
        if self.mode == "corrected":
            return self._card(
                status="holds",
                source="Permute-and-Flip (McKenna and Sheldon 2020) with sensitivity 1 on monotone "
                "counts in disjoint leaves; one row is in one tree, chosen independently of all "
                "other rows",
                concerns=shared_concerns,
                public_inputs=("number of trees",),
            )
        return self._card(
            status="broken",
            source="Fletcher and Islam 2017, before the addendum",
            concerns=(
                "the label's weights use a sensitivity that depends on the counts, and the dependence "
                "is not paid for: one row more costs a loss of 17.3 at epsilon 1 in a leaf with counts "
                "10 and 7, and ln((e^50 + 1) / 2) = 49.3 at epsilon 4 in an empty leaf (found by N. "
                "Holohan; authors' addendum; Lumberjack paper, section E)",
                "equal parts of n // T rows: one row more or less moves others to other trees and "
                "changes which rows are left out",
                *shared_concerns,
            ),
            public_inputs=("number of trees",),
        )

    def _fit(self, table: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
        n_trees = self.n_estimators
        is_paper = self.mode == "paper"
        if is_paper and len(table) < n_trees:
            raise ValueError(
                f"{n_trees} trees that share the rows need at least {n_trees} rows, got {len(table)}. "
                "Lower n_estimators."
            )
        is_numeric = self.schema.n_categories == 0
        noise = self._noise_generator()
        # Drawn with the noise: a part that an outsider can work out protects nobody in it.
        deal = deal_equal_parts if is_paper else deal_independently
        parts = deal(len(table), n_trees, noise)
        label_noise = draw_generators(noise, n_trees)
        draw = draw_smooth_sensitivity_labels if is_paper else permute_and_flip.draw_labels

        self.depth_ = tree_depth(int(is_numeric.sum()), int((~is_numeric).sum()))
        self.tree_keys_ = draw_keys(self._structure_generator(), n_trees)
        self.label_keys_ = draw_keys(noise, n_trees)

        def fit_tree(tree: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
            part = parts[tree]
            keys = self._find_leaves(table[part], tree)
            is_at_leaf = keys != STOPPED
            known, counts = count_classes(
                keys[is_at_leaf], labels[part][is_at_leaf], self.schema.n_classes
            )
            return known, draw(counts, self.epsilon, label_noise[tree])

        fitted = self._for_each_tree(fit_tree, n_trees)
        self.known_leaves_ = [known for known, _ in fitted]
        self.known_labels_ = [released for _, released in fitted]

    def _probabilities(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        leaves = self._for_each_tree(lambda tree: self._find_leaves(table, tree), self.n_estimators)
        votes = np.zeros((len(table), self.schema.n_classes), dtype=np.int64)
        for reached, *of_tree in zip(
            leaves, self.known_leaves_, self.known_labels_, self.label_keys_, strict=True
        ):
            add_votes(votes, reached, *of_tree)
        # Uniform for a row without votes.
        votes[votes.sum(axis=1) == 0] = 1
        return votes / votes.sum(axis=1, keepdims=True)

    def _find_leaves(self, table: NDArray[np.float64], tree: int) -> NDArray[np.uint64]:
        leaves: NDArray[np.uint64] = leaves_of_rows(
            table, SplitSpace.of(self.schema), self.tree_keys_[tree], self.depth_
        )
        return leaves
