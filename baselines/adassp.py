"""Ridge regression on noisy sufficient statistics (Wang 2018), and its boosted form (Tang et al. 2023).

With rows x of norm at most 1 (:func:`baselines.one_hot_cells.unit_rows`), the label's unit vector e and a
prediction q, a record adds

- ``x x^T``, of Frobenius norm at most 1; a symmetric matrix counts as the vector of its diagonal and sqrt(2)
  times what is above it;
- per round ``x (e - q)``, of norm at most ``sqrt(1 - 1/K)`` in the first, where q is uniform, and at most
  sqrt(2) in later ones, where q is the clipped prediction of those before;
- of a numeric target t in [-1, 1], ``x t``, of norm at most 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from baselines.coded_classifier import COUNT
from baselines.coded_regressor import CodedRegressor
from baselines.gaussian_classifier import GaussianClassifier, GaussianMethod
from baselines.one_hot_cells import unit_rows

LEAST_SHARE = 1e-3
"""No prediction of a regression is surer than this that a class is out of the question."""


def noise_scales(n_classes: int, n_rounds: int, mu: float) -> tuple[float, list[float]]:
    """Return the standard deviations on the diagonal of x x^T, and on x (e - q) of each round.

    Off the diagonal it is the first over sqrt(2). Half of the budget is for x x^T, half for the rounds.

    Parameters
    ----------
    n_classes : int
        K.
    n_rounds : int
        Sums of residuals that are released.
    mu : float
        Budget of all of it.
    """
    sensitivities = [math.sqrt(1 - 1 / n_classes), *[math.sqrt(2)] * (n_rounds - 1)]
    return math.sqrt(2) / mu, [s * math.sqrt(2 * n_rounds) / mu for s in sensitivities]


@dataclass(kw_only=True, eq=False, repr=False)
class AdaSSPClassifier(GaussianClassifier):
    """Least squares of the classes on one-hot cells.

    Parameters
    ----------
    n_rounds : int
        1 for AdaSSP; with more, each round fits what the clipped predictions of those before leave.
    n_bins : int
        Cells of a numeric feature.

    Attributes
    ----------
    weights_ : ndarray of shape (n_columns, n_classes)
        Sum of the solutions of the noisy normal equations.

    Notes
    -----
    AdaSSP spends a third of its budget on the smallest eigenvalue of the sum of x x^T, to choose the ridge.
    Here 0 is taken, and it is hardly ever more: the cells of a feature add up to the intercept. The ridge
    is the size of the noise, whose largest eigenvalue is close to ``sqrt(2 n_columns)`` standard
    deviations.

    The regression predicts class probabilities that may lie outside [0, 1]; they are clipped and
    normalised (post-processing).

    References
    ----------
    Wang: "Revisiting differentially private linear regression", 2018. Tang, Aydore, Kearns, Rho, Roth,
    Wang, Wang, Wu: "Improved differentially private regression via gradient boosting", 2023.
    """

    display_name: ClassVar[str] = "AdaSSP"
    releases: ClassVar[str] = (
        "half of mu squared on the sum of x x^T, of Frobenius sensitivity 1 as |x| <= 1, half in equal "
        "parts on those of x (e - q), of sensitivity sqrt(1 - 1/K) in the first round and sqrt(2) later"
    )

    n_rounds: int = 1
    n_bins: int = 16

    _parameter_constraints = GaussianClassifier._parameter_constraints | {
        "n_rounds": COUNT,
        "n_bins": COUNT,
    }

    def _fit(self, table: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
        n_classes = self.schema.n_classes
        noise = self._noise_generator()
        sigma, residual_sigmas = noise_scales(n_classes, self.n_rounds, self._mu())
        rows = unit_rows(table, self.schema, self.n_bins)
        inverse = release_inverse(rows, sigma, noise)
        targets = np.eye(n_classes)[labels]
        self.weights_ = np.zeros((rows.shape[1], n_classes))
        for residual_sigma in residual_sigmas:
            residuals = rows.T @ (targets - _to_shares(rows @ self.weights_))
            residuals += noise.normal(scale=residual_sigma, size=residuals.shape)
            residuals -= residuals.mean(axis=1, keepdims=True)
            self.weights_ = self.weights_ + inverse @ residuals

    def _probabilities(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        return _to_shares(unit_rows(table, self.schema, self.n_bins) @ self.weights_)


@dataclass(kw_only=True, eq=False, repr=False)
class AdaSSPRegressor(GaussianMethod, CodedRegressor):
    """Least squares of a numeric target on one-hot cells, as :class:`AdaSSPClassifier` does it.

    Parameters
    ----------
    n_bins : int
        Cells of a numeric feature.

    Attributes
    ----------
    weights_ : ndarray of shape (n_columns,)
        Solution of the noisy normal equations.

    References
    ----------
    Wang: "Revisiting differentially private linear regression", 2018.
    """

    display_name: ClassVar[str] = "AdaSSP regression"
    chosen_on: ClassVar[str] = ""
    releases: ClassVar[str] = (
        "half of mu squared on the sum of x x^T, of Frobenius sensitivity 1 as |x| <= 1, half on that of "
        "x t, of sensitivity 1 as the scaled target t lies in [-1, 1]"
    )

    n_bins: int = 16

    _parameter_constraints = GaussianMethod._parameter_constraints | {"n_bins": COUNT}

    def _fit(self, table: NDArray[np.float64], labels: NDArray[np.float64]) -> None:
        noise = self._noise_generator()
        # Both have sensitivity 1 and half of mu squared.
        sigma = math.sqrt(2) / self._mu()
        rows = unit_rows(table, self.schema, self.n_bins)
        inverse = release_inverse(rows, sigma, noise)
        sums = rows.T @ labels
        self.weights_ = inverse @ (sums + noise.normal(scale=sigma, size=sums.shape))

    def _values(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        values: NDArray[np.float64] = unit_rows(table, self.schema, self.n_bins) @ self.weights_
        return values


def release_inverse(
    rows: scipy.sparse.csr_array, sigma: float, noise: np.random.Generator
) -> NDArray[np.float64]:
    """Return the inverse of the noisy sum of x x^T plus a ridge of the size of the noise."""
    products = (rows.T @ rows).toarray()
    # The mean with its transpose has sigma on the diagonal, and off it sigma over sqrt(2).
    drawn = noise.normal(scale=sigma, size=products.shape)
    values, vectors = np.linalg.eigh(products + (drawn + drawn.T) / 2)
    # Eigenvalues that noise makes negative would point the wrong way.
    ridge = max(math.sqrt(2 * len(products)) * sigma, 1.0)
    inverse: NDArray[np.float64] = (vectors / (np.maximum(values, 0.0) + ridge)) @ vectors.T
    return inverse


def _to_shares(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return class probabilities for deviations from the uniform ones."""
    clipped = np.clip(scores + 1 / scores.shape[1], LEAST_SHARE, 1.0)
    shares: NDArray[np.float64] = clipped / clipped.sum(axis=1, keepdims=True)
    return shares
