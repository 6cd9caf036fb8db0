"""Leaf mechanisms: what a leaf says about its classes (section 5 and appendix J).

One record is counted in one leaf of each tree and changes one class count by one, so the leaves
of a tree answer one query of sensitivity 1, and k trees compose to k of them. Both mechanisms treat
empty leaves like any other. Counts go in, released scores come out; nothing else is kept.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def release_labels(
    counts: NDArray[np.int64], scale: float, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Release one label per leaf by the exponential mechanism.

    The count of a class is a monotone score of sensitivity 1, so the mechanism with Gumbel scale
    b is (1/b)-bounded-range and (1 / (8 b^2))-zCDP (appendix J; Rogers and Steinke 2021).

    Parameters
    ----------
    counts : ndarray of int64, shape (n_leaves, n_classes)
        Records per class.
    scale : float
        Gumbel scale, in records (see :func:`lumberjack.accounting.zcdp.get_gumbel_scale`).
    generator : numpy.random.Generator
        Source of noise.

    Returns
    -------
    ndarray of float64, shape (n_leaves, n_classes)
        One-hot rows.
    """
    noisy = counts + generator.gumbel(scale=scale, size=counts.shape)
    scores = np.zeros(counts.shape)
    scores[np.arange(len(counts)), noisy.argmax(axis=1)] = 1.0
    return scores


def release_counts(
    counts: NDArray[np.int64], scale: float, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Release the class counts of each leaf by the Gaussian mechanism (Lemma 14).

    Parameters
    ----------
    counts, generator
        As for :func:`release_labels`.
    scale : float
        Standard deviation of the noise, in records (see
        :func:`lumberjack.accounting.zcdp.get_gaussian_sigma`).

    Returns
    -------
    ndarray of float64, shape (n_leaves, n_classes)
        Noisy counts, negative ones included.
    """
    return counts + generator.normal(scale=scale, size=counts.shape)


def class_shares(noisy_counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn released counts into class shares; negative counts are clipped first.

    Parameters
    ----------
    noisy_counts : ndarray of float64, shape (n_leaves, n_classes)
        As :func:`release_counts` gives them.

    Returns
    -------
    ndarray of float64, shape (n_leaves, n_classes)
        Rows sum to one; a row without a positive count is uniform.
    """
    clipped = np.maximum(noisy_counts, 0.0)
    total = clipped.sum(axis=1, keepdims=True)
    shares = np.full(clipped.shape, 1.0 / clipped.shape[1])
    np.divide(clipped, total, out=shares, where=total > 0)
    return shares
