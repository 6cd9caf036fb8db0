"""Softmax regression by noisy gradient steps on one-hot cells: the linear rival of private forests.

Each step sums the gradients of all rows, adds Gaussian noise and moves with momentum. Nothing is sampled or
clipped, as a row has a norm of at most 1 (:func:`baselines.one_hot_cells.unit_rows`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils._param_validation import Interval

from baselines.coded_classifier import COUNT
from baselines.gaussian_classifier import GaussianClassifier
from baselines.one_hot_cells import unit_rows

LONGEST_WAY = 12_000.0
"""Of all steps together, in mean gradients."""

NOISE_IN_SCORES = 0.7
"""Standard deviation that the noise of all steps together may give a score, in nats."""


def noise_scale(n_steps: int, mu: float) -> float:
    """Return the standard deviation of the noise of each entry of a gradient.

    With a row x of norm at most 1, probabilities q and the label's unit vector e, one record adds the
    matrix x (e - q) of norm at most ``|e - q| <= sqrt(2)``; ``n_steps`` releases share `mu`.

    Parameters
    ----------
    n_steps : int
        Gradients that are released.
    mu : float
        Budget of all of them.
    """
    return math.sqrt(2 * n_steps) / mu


def length_of_way(n_rows: float, mu: float) -> float:
    """Return what all steps together are long, in mean gradients.

    It is so short that the noise on the way stays below a public number of nats in a score; where this
    allows a very long way, going all of it is of no more use.

    Parameters
    ----------
    n_rows : float
        Released number of rows.
    mu : float
        Budget of all gradients.
    """
    return min(LONGEST_WAY, NOISE_IN_SCORES * n_rows * mu / math.sqrt(2))


@dataclass(kw_only=True, eq=False, repr=False)
class DPLogisticRegression(GaussianClassifier):
    """Softmax regression by full-batch noisy gradient steps.

    Parameters
    ----------
    n_steps : int
        Gradients that are released.
    momentum : float
        Share of the last step that the next one repeats (heavy ball; post-processing).
    n_bins : int
        Cells of a numeric feature.

    Attributes
    ----------
    weights_ : ndarray of shape (n_columns, n_classes)
        Mean over the second half of the steps.

    Notes
    -----
    Two classes need no case of their own: centring the noisy gradient over classes leaves one number per
    column, the residual's, with the noise of a release of sensitivity 1. The settings, the same for all
    tables, were chosen on validation rows within the training rows of Adult, german, splice and optdigits.

    References
    ----------
    Bassily, Smith, Thakurta: "Private empirical risk minimization", 2014.
    """

    display_name: ClassVar[str] = "DP logistic regression"
    releases: ClassVar[str] = (
        "sums of gradients x (e - q) of sensitivity sqrt(2), as |x| <= 1; 1 % of mu squared on the "
        "number of rows, of sensitivity 1"
    )

    n_steps: int = 100
    momentum: float = 0.9
    n_bins: int = 16

    _parameter_constraints = GaussianClassifier._parameter_constraints | {
        "n_steps": COUNT,
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "n_bins": COUNT,
    }

    def _fit(self, table: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
        noise = self._noise_generator()
        n_rows, mu = self._buy_size(len(table), noise)
        sigma = noise_scale(self.n_steps, mu)
        step = length_of_way(n_rows, mu) * (1 - self.momentum) / self.n_steps / n_rows
        rows = unit_rows(table, self.schema, self.n_bins)
        columns = rows.T.tocsr()
        targets = np.eye(self.schema.n_classes)[labels]
        weights = np.zeros((rows.shape[1], self.schema.n_classes))
        velocity, total = np.zeros_like(weights), np.zeros_like(weights)
        first_kept = self.n_steps // 2
        for t in range(self.n_steps):
            gradient = columns @ (targets - softmax(rows @ weights, axis=1))
            gradient += noise.normal(scale=sigma, size=gradient.shape)
            gradient -= gradient.mean(axis=1, keepdims=True)
            velocity = self.momentum * velocity + step * gradient
            weights = weights + velocity
            if t >= first_kept:
                total += weights
        self.weights_ = total / (self.n_steps - first_kept)

    def _probabilities(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = unit_rows(table, self.schema, self.n_bins) @ self.weights_
        probabilities: NDArray[np.float64] = softmax(scores, axis=1)
        return probabilities
