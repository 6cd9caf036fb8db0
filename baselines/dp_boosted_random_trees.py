"""Newton boosting on totally random trees (after Maddock et al. 2022).

Trees are complete and their splits are drawn without looking at the rows, so that all of the budget goes into
one noisy sum of gradients and curvatures per leaf and tree.

Sensitivity. With probabilities q of a row before a tree and the label's unit vector e, one record adds to
one leaf of it the vector ``[e - q, c q (1 - q)]`` (products by class), of norm at most sqrt(2):

- For two classes, with a the probability of the wrong one, its square is
  ``2 a^2 (1 + c^2 (1 - a)^2)``, at most 2 for ``c <= phi^(5/2) = 3.3301...`` (phi the golden ratio).
- For more, c = 2. Each wrong class of probability p adds ``p^2 + 4 p^2 (1 - p)^2 <= p``, as
  ``(1 - p) (1 - 2 p)^2 >= 0``. With b the sum of these p, the right class adds
  ``b^2 + 4 b^2 (1 - b)^2 <= b``. So the square is at most ``2 b <= 2``. Two wrong classes of probability
  1/2 reach it: no larger c will do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from baselines.gaussian_classifier import GaussianClassifier
from lumberjack.compiled import compiled
from lumberjack.schema import FeatureSchema

DEEPEST = 8
"""Splits on a path, at most; 256 leaves."""

SIGNAL_IN_LEAF = 15.0
"""Records in an average leaf, in standard deviations of the noise of its sums."""

LARGEST_STEP = 2.0
"""Of a Newton step in a score, in nats."""


class Splits(NamedTuple):
    """The inner nodes of a complete tree, level by level; node i has the children 2 i + 1 and 2 i + 2.

    Attributes
    ----------
    feature : ndarray of int64, shape (2 ** depth - 1,)
    cut : ndarray of float64, shape (2 ** depth - 1,)
        Rows up to the threshold go left; of a categorical feature, rows of this category.
    is_category : ndarray of bool, shape (2 ** depth - 1,)
    """

    feature: NDArray[np.int64]
    cut: NDArray[np.float64]
    is_category: NDArray[np.bool_]


def draw_splits(schema: FeatureSchema, depth: int, structure: np.random.Generator) -> Splits:
    """Draw a feature for each node, and a threshold or a category of it.

    Parameters
    ----------
    schema : FeatureSchema
        Coded schema.
    depth : int
        Splits on each path.
    structure : numpy.random.Generator
        Source of splits.
    """
    n_splits = 2**depth - 1
    feature = structure.integers(schema.n_features, size=n_splits)
    place = structure.random(n_splits)
    n_categories = schema.n_categories[feature]
    lower, upper = schema.lower[feature], schema.upper[feature]
    is_category = n_categories > 0
    cut = np.where(is_category, np.floor(place * n_categories), lower + place * (upper - lower))
    return Splits(feature, cut, is_category)


@compiled(nogil=True)
def find_leaves(table: NDArray[np.float64], splits: Splits) -> NDArray[np.int64]:
    """Return the leaf of each row, from 0.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_features)
        Coded table.
    splits : Splits
        The tree.
    """
    n_splits = len(splits.feature)
    leaves = np.empty(len(table), dtype=np.int64)
    for i in range(len(table)):
        node = 0
        while node < n_splits:
            x, cut = table[i, splits.feature[node]], splits.cut[node]
            is_left = x == cut if splits.is_category[node] else x <= cut
            node = 2 * node + (1 if is_left else 2)
        leaves[i] = node - n_splits
    return leaves


@compiled(nogil=True)
def sum_in_leaves(
    leaves: NDArray[np.int64],
    labels: NDArray[np.int64],
    scores: NDArray[np.float64],
    n_leaves: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sum e - q and q (1 - q) of the rows in each leaf. NOT private.

    Parameters
    ----------
    leaves, labels : ndarray of shape (n_rows,)
        Leaf and class code of each row.
    scores : ndarray of shape (n_rows, n_classes)
        Of the trees so far; q is their softmax.
    n_leaves : int
        Leaves of the tree.

    Returns
    -------
    gradient, curvature : ndarray of shape (n_leaves, n_classes)
    """
    n_rows, n_classes = scores.shape
    gradient, curvature = np.zeros((n_leaves, n_classes)), np.zeros((n_leaves, n_classes))
    q = np.empty(n_classes)
    for i in range(n_rows):
        largest = scores[i].max()
        for k in range(n_classes):
            q[k] = math.exp(scores[i, k] - largest)
        total = q.sum()
        for k in range(n_classes):
            p = q[k] / total
            gradient[leaves[i], k] -= p
            curvature[leaves[i], k] += p * (1 - p)
        gradient[leaves[i], labels[i]] += 1
    return gradient, curvature


def curvature_weight(n_classes: int) -> float:
    """Return the c of the module's docstring, rounded down."""
    return 3.33 if n_classes == 2 else 2.0


def noise_scale(n_estimators: int, mu: float) -> float:
    """Return the standard deviation of the noise of each sum of gradients; over c, of curvatures.

    Parameters
    ----------
    n_estimators : int
        Trees; a record is in one leaf of each.
    mu : float
        Budget of all of them.
    """
    return math.sqrt(2 * n_estimators) / mu


def choose_depth(n_rows: float, sigma: float) -> int:
    """Return the depth at which an average leaf still holds a multiple of its noise, 1 to 8.

    Parameters
    ----------
    n_rows : float
        Released number of rows.
    sigma : float
        Standard deviation of the noise of a sum.
    """
    n_leaves = n_rows / (SIGNAL_IN_LEAF * sigma) if sigma > 0 else math.inf
    return int(np.clip(math.log2(n_leaves), 1, DEEPEST))


@dataclass(kw_only=True, eq=False, repr=False)
class DPBoostedRandomTrees(GaussianClassifier):
    """Boosted complete trees with random splits and noisy Newton steps as leaves.

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    learning_rate : float
        Share of each Newton step that is taken.

    Attributes
    ----------
    trees_ : list of Splits
        The trees.
    values_ : list of ndarray of shape (n_leaves, n_classes)
        What each leaf adds to the scores.

    Notes
    -----
    Two classes need no case of their own: centring the gradients over classes, and taking the mean of the
    two curvatures, leaves one number of each with the noise of a release of sensitivity 1. The depth
    follows from the released number of rows and the noise. The settings were chosen on validation rows
    within the training rows of Adult, splice and optdigits.

    References
    ----------
    Maddock, Cormode, Wang, Maple, Jha: "Federated boosted decision trees with differential privacy",
    2022.
    """

    display_name: ClassVar[str] = "DP boosted random trees"
    releases: ClassVar[str] = (
        "per tree the sums of [e - q, c q (1 - q)] in its leaves, of sensitivity sqrt(2), with c = 3.33 "
        "for two classes and 2 for more; 1 % of mu squared on the number of rows, of sensitivity 1"
    )

    n_estimators: int = 200
    learning_rate: float = 0.3

    _parameter_constraints = GaussianClassifier._parameter_constraints | {
        "learning_rate": [Interval(Real, 0, 1, closed="right")],
    }

    def fit_report(self) -> dict[str, float]:
        """Return the depth that was chosen."""
        check_is_fitted(self)
        return {"depth": math.log2(len(self.values_[0]))}

    def _fit(self, table: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
        n_classes = self.schema.n_classes
        noise, structure = self._noise_generator(), self._structure_generator()
        n_rows, mu = self._buy_size(len(table), noise)
        sigma = noise_scale(self.n_estimators, mu)
        depth = choose_depth(n_rows, sigma)
        scores = np.zeros((len(table), n_classes))
        self.trees_, self.values_ = [], []
        for _ in range(self.n_estimators):
            tree = draw_splits(self.schema, depth, structure)
            leaves = find_leaves(table, tree)
            gradient, curvature = sum_in_leaves(leaves, labels, scores, 2**depth)
            gradient += noise.normal(scale=sigma, size=gradient.shape)
            curvature += noise.normal(
                scale=sigma / curvature_weight(n_classes), size=gradient.shape
            )
            value = self.learning_rate * _newton_step(gradient, curvature, sigma)
            scores += value[leaves]
            self.trees_.append(tree)
            self.values_.append(value)

    def _probabilities(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = np.zeros((len(table), self.schema.n_classes))
        for tree, value in zip(self.trees_, self.values_, strict=True):
            scores += value[find_leaves(table, tree)]
        probabilities: NDArray[np.float64] = softmax(scores, axis=1)
        return probabilities


def _newton_step(
    gradient: NDArray[np.float64], curvature: NDArray[np.float64], sigma: float
) -> NDArray[np.float64]:
    """Return the step of each leaf; the noise itself is its ridge."""
    n_classes = gradient.shape[1]
    if n_classes == 2:
        curvature = curvature.mean(axis=1, keepdims=True)
    gradient = gradient - gradient.mean(axis=1, keepdims=True)
    share = 1 - 1 / n_classes
    ridge = max(math.sqrt(share) * sigma, 1.0)
    step = share * gradient / (np.maximum(curvature, 0.0) + ridge)
    clipped: NDArray[np.float64] = step.clip(-LARGEST_STEP, LARGEST_STEP)
    return clipped
