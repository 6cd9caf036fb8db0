"""Smooth Sensitivity: a forest of fully random trees whose leaves release one label each.

After Fletcher and Islam, "Differentially private random decision forests using smooth
sensitivity" (2017). Every tree sees its own part of the rows and spends the whole budget on the
labels of its leaves. Numeric splits are binary at a uniform threshold, categorical splits have one
child per category, and neither looks at the rows.

Symbols: T number of trees (``n_estimators``), c_k count of class k in a leaf, j the gap between
the two largest counts, S = exp(-j epsilon) what the authors take for the smooth sensitivity.

A tree is nothing but its key (see :mod:`baselines.multiway_trees`), and the fitted part of it is a
dictionary from leaf key to label. A complete tree has millions of leaves, nearly all of them
empty, so only the leaves that a training row reaches are kept; the label of any other leaf is
uniform, drawn once and for all from the leaf's key.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from baselines.coded_classifier import CodedClassifier
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
    THRESHOLD_DRAW,
    Domains,
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
from lumberjack.schema import FeatureSchema

STOPPED = np.uint64(0)
"""Stands for the leaf of a row that met a category outside the domain and stopped above it."""

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

    Returns
    -------
    list of ndarray
        The rows of each tree.
    """
    size = n_rows // n_trees
    return np.split(rng.permutation(n_rows)[: size * n_trees], n_trees)


def deal_independently(
    n_rows: int, n_trees: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Give each row to a uniformly drawn tree, whatever the other rows are.

    Parameters
    ----------
    n_rows, n_trees : int
        n and T.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    list of ndarray
        The rows of each tree.
    """
    tree = rng.integers(n_trees, size=n_rows)
    order = np.argsort(tree, kind="stable")
    return np.split(order, np.searchsorted(tree[order], np.arange(1, n_trees)))


def smooth_sensitivity_probabilities(counts: ArrayLike, epsilon: float) -> NDArray[np.float64]:
    """Return the law of a leaf's label in the authors' program.

    A class of maximal count weighs exp(min(50, epsilon / (2 S))), any other 1. S depends on the
    counts, and that dependence is not paid for: this is not epsilon-differentially private.

    Parameters
    ----------
    counts : array-like of shape (..., n_classes)
        Class counts of each leaf.
    epsilon : float
        Positive, may be infinite.

    Returns
    -------
    ndarray of shape (..., n_classes), float64
        Uniform for a leaf without records.
    """
    counts = np.asarray(counts, dtype=np.float64)
    largest = counts.max(axis=-1, keepdims=True)
    if counts.shape[-1] == 1:
        return np.ones_like(counts)
    gap = largest[..., 0] - np.partition(counts, -2, axis=-1)[..., -2]
    # Written apart from the product so that an infinite budget times no gap is no gap.
    sensitivity = np.exp(-_times_budget(gap, epsilon))
    exponent = np.full(sensitivity.shape, MAX_WEIGHT_EXPONENT)
    is_regular = sensitivity >= _VANISHING_SENSITIVITY
    exponent[is_regular] = np.minimum(MAX_WEIGHT_EXPONENT, epsilon / (2 * sensitivity[is_regular]))
    weights = np.where(counts == largest, np.exp(exponent)[..., np.newaxis], 1.0)
    return weights / weights.sum(axis=-1, keepdims=True)


def permute_and_flip_probabilities(counts: ArrayLike, epsilon: float) -> NDArray[np.float64]:
    """Return the law of Permute-and-Flip on counts (McKenna and Sheldon 2020).

    Classes are visited in random order and class k is accepted with probability
    q_k = exp(epsilon (c_k - c_max)); counts have sensitivity 1 and are monotone, hence no factor
    1/2. Giving each class a uniform arrival time t turns the sum over orders into
    P(k) = q_k times the integral over t in [0, 1] of the product over i != k of (1 - q_i t).

    Parameters
    ----------
    counts : array-like of shape (n_classes,)
        Class counts of one leaf.
    epsilon : float
        Positive, may be infinite.

    Returns
    -------
    ndarray of shape (n_classes,), float64
    """
    counts = np.asarray(counts, dtype=np.float64)
    accepted = np.exp(-_times_budget(counts.max() - counts, epsilon))
    # Gauss-Legendre with m nodes is exact for the polynomial's degree n_classes - 1 <= 2m - 1.
    nodes, weights = np.polynomial.legendre.leggauss(len(counts) // 2 + 1)
    times, weights = (nodes + 1) / 2, weights / 2
    survival = 1 - np.outer(times, accepted)
    probabilities = np.empty_like(accepted)
    for k in range(len(counts)):
        others = np.delete(survival, k, axis=1).prod(axis=1)
        probabilities[k] = accepted[k] * (weights @ others)
    return probabilities


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

    Returns
    -------
    ndarray of shape (n_leaves,), int64
    """
    cumulated = smooth_sensitivity_probabilities(counts, epsilon).cumsum(axis=1)
    points = rng.random(len(counts))[:, np.newaxis] * cumulated[:, -1:]
    return (points >= cumulated[:, :-1]).sum(axis=1)


def draw_permute_and_flip_labels(
    counts: NDArray[np.int64], epsilon: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the label of each leaf by Permute-and-Flip.

    Drawn as the largest of epsilon c_k + E_k with standard exponential E_k, which has the same law
    (Ding, Kifer, Saghaian N. E., Steinke, Wang, Xiao and Zhang 2021).

    Parameters
    ----------
    counts : ndarray of shape (n_leaves, n_classes)
        Class counts.
    epsilon : float
        Positive, may be infinite.
    rng : numpy.random.Generator
        Source of the draw.

    Returns
    -------
    ndarray of shape (n_leaves,), int64
    """
    deficit = counts.max(axis=1, keepdims=True) - counts
    scores = rng.standard_exponential(counts.shape) - _times_budget(deficit, epsilon)
    return scores.argmax(axis=1)


def _times_budget(gap: NDArray[Any], epsilon: float) -> NDArray[np.float64]:
    """Return gap * epsilon, where no gap stays no gap however large the budget."""
    product = np.zeros(np.shape(gap))
    np.multiply(gap, epsilon, out=product, where=np.asarray(gap) > 0)
    return product


@compiled(nogil=True)
def leaf_keys(
    rows: NDArray[np.float64],
    root_key: np.uint64,
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    n_categories: NDArray[np.int64],
    depth: int,
) -> NDArray[np.uint64]:
    """Return the leaf that each row reaches.

    At each node a feature is drawn uniformly among the candidates: all numeric features, each
    with the interval that is left of its range, and the categorical ones not yet used on the path.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features), float64
        Coded rows; -1 in a categorical feature is outside the domain.
    root_key : uint64
        Key of the tree.
    lower, upper : ndarray of shape (n_features,)
        Ranges of the numeric features.
    n_categories : ndarray of shape (n_features,), int64
        Number of categories, 0 for a numeric feature.
    depth : int
        Number of splits on a path, fewer where no candidate is left.

    Returns
    -------
    ndarray of shape (n_rows,), uint64
        Leaf keys; :data:`STOPPED` for a row that met a category outside the domain.
    """
    n_rows, n_features = rows.shape
    keys = np.empty(n_rows, dtype=np.uint64)
    candidates = np.empty(n_features, dtype=np.int64)
    low = np.empty(n_features)
    high = np.empty(n_features)
    for i in range(n_rows):
        for f in range(n_features):
            candidates[f] = f
            low[f] = lower[f]
            high[f] = upper[f]
        n_candidates = n_features
        key = root_key
        for _ in range(max(depth, 1)):
            if n_candidates == 0:
                break
            pick = int(keyed_uniform(key, FEATURE_DRAW) * n_candidates)
            feature = candidates[pick]
            value = rows[i, feature]
            if n_categories[feature] == 0:
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


@compiled(nogil=True)
def _add_votes(
    votes: NDArray[np.int64],
    keys: NDArray[np.uint64],
    known_keys: NDArray[np.uint64],
    known_labels: NDArray[np.int64],
    label_key: np.uint64,
    n_labels: int,
) -> None:
    """Add one tree's vote for each row; a leaf without a stored label has a keyed uniform one."""
    places = np.searchsorted(known_keys, keys)
    for i in range(len(keys)):
        if keys[i] == STOPPED:
            continue
        place = places[i]
        if place < len(known_keys) and known_keys[place] == keys[i]:
            label = known_labels[place]
        else:
            label = int(keyed_uniform(keys[i] ^ label_key, FEATURE_DRAW) * n_labels)
        votes[i, label] += 1


class SmoothSensitivityClassifier(CodedClassifier):
    """Random forest of Fletcher and Islam (2017).

    Parameters
    ----------
    schema : FeatureSchema
        Schema of the coded table.
    epsilon : float
        Privacy budget, spent in full by every tree on its own rows.
    delta : float
        Ignored: the guarantee is pure.
    mode : {"paper", "corrected"}
        "paper": shuffled rows in equal parts, labels drawn with data-dependent weights; not
        private as claimed. "corrected": each row goes to a tree of its own random choice, labels
        by Permute-and-Flip; epsilon-differentially private under adding or removing a row.
    random_state : int, SeedSequence or None
        Seed of the tree structure.
    noise_seed : int, SeedSequence or None
        Seed of the labels and of the parts; None takes entropy from the operating system.
    n_jobs : int or None
        Threads; the result does not depend on it.
    n_estimators : int
        Number of trees; 30 in the Lumberjack paper.
    domains : {"schema", "training"}
        Where ranges, categories and classes come from. The authors' program reads them off the
        training rows ("training", only with ``mode="paper"``).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class codes.
    depth_ : int
        Number of splits on a path.

    Notes
    -----
    A category outside the domain ends a row's way at an inner node: a training row is then
    counted nowhere in that tree, a test row gets no vote from it.
    """

    display_name = "Smooth Sensitivity"
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
        n_estimators: int = 30,
        domains: Literal["schema", "training"] = "schema",
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.mode = mode
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.n_jobs = n_jobs
        self.n_estimators = n_estimators
        self.domains = domains

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Draw the trees and release a label for each of their leaves.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Coded rows.
        y : array-like of shape (n_rows,)
            Class codes.

        Returns
        -------
        SmoothSensitivityClassifier

        Raises
        ------
        ValueError
            When a parameter or an entry is out of range, or in paper mode when there are fewer
            rows than trees.
        """
        epsilon = self._check_parameters()
        rows = check_table(X, self.schema)
        labels = check_labels(y, len(rows), self.schema.n_classes)
        n_trees = self.n_estimators
        if self.mode == "paper" and len(rows) < n_trees:
            raise ValueError(
                f"{n_trees} trees that share the rows need at least {n_trees} rows, got {len(rows)}. "
                "Lower n_estimators."
            )
        domains = find_domains(self.schema, self.domains, rows, labels)
        rows = domains.recode(rows)
        labels = np.searchsorted(domains.classes, labels)
        n_categories = self.schema.n_categories
        n_numeric = int((n_categories == 0).sum())

        noise = generator(self.noise_seed, NOISE_STREAM)
        # Drawn with the noise: a part that an outsider can work out protects nobody in it.
        deal = deal_equal_parts if self.mode == "paper" else deal_independently
        parts = deal(len(rows), n_trees, noise)
        label_noise = draw_generators(noise, n_trees)

        self.classes_ = np.arange(self.schema.n_classes)
        self.n_features_in_ = self.schema.n_features
        self.depth_ = tree_depth(n_numeric, len(n_categories) - n_numeric)
        self.domains_ = domains
        self.tree_keys_ = draw_keys(generator(self.random_state, STRUCTURE_STREAM), n_trees)
        self.label_keys_ = draw_keys(noise, n_trees)

        def fit_tree(tree: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
            part = parts[tree]
            keys = self._find_leaves(rows[part], tree)
            is_at_leaf = keys != STOPPED
            known, leaf = np.unique(keys[is_at_leaf], return_inverse=True)
            counts = np.zeros((len(known), len(domains.classes)), dtype=np.int64)
            np.add.at(counts, (leaf, labels[part][is_at_leaf]), 1)
            draw = (
                draw_smooth_sensitivity_labels
                if self.mode == "paper"
                else draw_permute_and_flip_labels
            )
            return known, draw(counts, epsilon, label_noise[tree])

        fitted = for_each_tree(fit_tree, n_trees, self.n_jobs)
        self.known_leaves_ = [known for known, _ in fitted]
        self.known_labels_ = [released for _, released in fitted]
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the share of the votes that each class gets.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Coded rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
            Uniform for a row without votes.
        """
        votes = self._votes(X).astype(np.float64)
        votes[votes.sum(axis=1) == 0] = 1.0
        return votes / votes.sum(axis=1, keepdims=True)

    def fit_report(self) -> dict[str, float]:
        """Return figures about the fitted forest that the model itself shows.

        Returns
        -------
        dict of str to float
        """
        check_is_fitted(self)
        n_leaves = [len(known) for known in self.known_leaves_]
        return {"depth": float(self.depth_), "mean_leaves_per_tree": float(np.mean(n_leaves))}

    def privacy_card(self) -> PrivacyCard:
        """Return what is claimed about privacy and what is known against it.

        Returns
        -------
        PrivacyCard
        """
        epsilon = self._check_parameters()
        shared_concerns = (
            "the fitted object lists the leaves that training rows reach; the claim is about its "
            "predictions, and the object is an experiment's artefact, not to be published",
            "labels come from an ordinary, not a cryptographic, generator in floating point",
            *fixed_noise_concerns(self.noise_seed),
        )
        public = ["schema (bounds, categories, classes)", "number of trees"]
        if self.mode == "corrected":
            return PrivacyCard(
                method=self.display_name,
                mode=self.mode,
                claimed=Guarantee(epsilon, 0.0),
                source="Permute-and-Flip (McKenna and Sheldon 2020) with sensitivity 1 on monotone "
                "counts in disjoint leaves; one row is in one tree, chosen independently of all "
                "other rows",
                status="holds",
                concerns=shared_concerns,
                public_inputs=tuple(public),
            )
        concerns = [
            "the label's weights use a sensitivity that depends on the counts, and the dependence "
            "is not paid for: one row more costs a loss of 17.3 at epsilon 1 in a leaf with counts "
            "10 and 7, and ln((e^50 + 1) / 2) = 49.3 at epsilon 4 in an empty leaf (found by N. "
            "Holohan; authors' addendum; Lumberjack paper, section E)",
            "equal parts of n // T rows: one row more or less moves others to other trees and "
            "changes which rows are left out",
        ]
        if self.domains == "training":
            public.remove("schema (bounds, categories, classes)")
            concerns.append(
                "ranges, categories and classes are read off the training rows, as in the "
                "authors' program"
            )
        return PrivacyCard(
            method=self.display_name,
            mode=self.mode,
            claimed=Guarantee(epsilon, 0.0),
            source="Fletcher and Islam 2017, before the addendum",
            status="broken",
            concerns=(*concerns, *shared_concerns),
            public_inputs=tuple(public),
        )

    def _check_parameters(self) -> float:
        epsilon, _ = check_privacy_parameters(self.epsilon, self.delta)
        check_mode(self.mode, self.modes)
        check_count("n_estimators", self.n_estimators)
        if self.domains not in ("schema", "training"):
            raise ValueError(f"domains must be 'schema' or 'training', got {self.domains!r}.")
        if self.domains == "training" and self.mode == "corrected":
            raise ValueError(
                "domains='training' reads the rows without paying for it; mode='corrected' needs "
                "domains='schema'."
            )
        return epsilon

    def _find_leaves(self, rows: NDArray[np.float64], tree: int) -> NDArray[np.uint64]:
        domains: Domains = self.domains_
        return leaf_keys(
            rows,
            self.tree_keys_[tree],
            domains.lower,
            domains.upper,
            domains.n_categories,
            self.depth_,
        )

    def _votes(self, X: ArrayLike) -> NDArray[np.int64]:
        check_is_fitted(self)
        rows = self.domains_.recode(check_table(X, self.schema))
        n_labels = len(self.domains_.classes)
        all_keys = for_each_tree(
            lambda tree: self._find_leaves(rows, tree), self.n_estimators, self.n_jobs
        )
        votes = np.zeros((len(rows), n_labels), dtype=np.int64)
        for tree, keys in enumerate(all_keys):
            _add_votes(
                votes,
                keys,
                self.known_leaves_[tree],
                self.known_labels_[tree],
                self.label_keys_[tree],
                n_labels,
            )
        in_schema = np.zeros((len(rows), self.schema.n_classes), dtype=np.int64)
        in_schema[:, self.domains_.classes] = votes
        return in_schema
