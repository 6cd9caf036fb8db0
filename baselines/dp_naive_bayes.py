"""Naive Bayes from noisy histograms: one count per class and cell of every feature.

A record is counted once in the histogram of each feature, so that d of them have a sensitivity of sqrt(d)
together. All else is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from baselines.gaussian_classifier import GaussianClassifier
from baselines.one_hot_cells import one_hot_cells

MOST_BINS = 256
"""Cells of a numeric feature, at most."""

SIGNAL_IN_CELL = 30.0
"""Records in an average cell of a numeric feature, in standard deviations of the noise of a count."""

SHRINKAGE = 2.0
"""Records of the whole table's class shares that join those of a cell, in standard deviations of noise."""


def noise_scale(n_features: int, mu: float) -> float:
    """Return the standard deviation of the noise of each count.

    Parameters
    ----------
    n_features : int
        Histograms, in each of which a record is counted at most once.
    mu : float
        Budget of all of them.
    """
    return math.sqrt(n_features) / mu


def choose_n_bins(n_rows: float, sigma: float) -> int:
    """Return the largest power of two whose average cell still holds a multiple of its noise, 2 to 256.

    Parameters
    ----------
    n_rows : float
        Released number of rows.
    sigma : float
        Standard deviation of the noise of a count.
    """
    n_bins = n_rows / (SIGNAL_IN_CELL * sigma) if sigma > 0 else math.inf
    return 2 ** int(math.log2(np.clip(n_bins, 2, MOST_BINS)))


@dataclass(kw_only=True, eq=False, repr=False)
class DPNaiveBayes(GaussianClassifier):
    """Naive Bayes on one-hot cells.

    Attributes
    ----------
    n_bins_ : int
        Cells of a numeric feature.
    log_prior_ : ndarray of shape (n_classes,)
        Logarithms of the released class shares.
    log_likelihood_ : ndarray of shape (n_cells, n_classes)
        For each cell the logarithm of its share of a class, over that of its share of the table.

    Notes
    -----
    A cell's class shares are shrunk towards those of the table: one that holds nothing but noise says
    little.

    References
    ----------
    Vaidya, Shafiq, Basu, Hong: "Differentially private naive Bayes classification", 2013 (with Laplace
    noise).
    """

    display_name: ClassVar[str] = "DP naive Bayes"
    releases: ClassVar[str] = (
        "class counts in the cells of all d features, of sensitivity sqrt(d); 1 % of mu squared on the "
        "number of rows, of sensitivity 1"
    )

    def fit_report(self) -> dict[str, float]:
        """Return the number of cells of a numeric feature that was chosen."""
        check_is_fitted(self)
        return {"n_bins": float(self.n_bins_)}

    def _fit(self, table: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
        n_features = self.schema.n_features
        noise = self._noise_generator()
        n_rows, mu = self._buy_size(len(table), noise)
        sigma = noise_scale(n_features, mu)
        self.n_bins_ = choose_n_bins(n_rows, sigma)
        targets = np.eye(self.schema.n_classes)[labels]
        counts = one_hot_cells(table, self.schema, self.n_bins_).T @ targets
        counts += noise.normal(scale=sigma, size=counts.shape)
        # Every histogram counts the classes once.
        totals = np.maximum(counts.sum(axis=0) / n_features, 1.0)
        shares = totals / totals.sum()
        # At least one record, for a budget without noise.
        smooth = np.maximum(counts, 0.0) + max(SHRINKAGE * sigma, 1.0) * shares
        self.log_prior_ = np.log(shares)
        in_cells = smooth / smooth.sum(axis=1, keepdims=True)
        self.log_likelihood_ = np.log(in_cells) - self.log_prior_

    def _probabilities(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = one_hot_cells(table, self.schema, self.n_bins_) @ self.log_likelihood_
        probabilities: NDArray[np.float64] = softmax(scores + self.log_prior_, axis=1)
        return probabilities
