"""Leaf mechanisms: what a leaf says about its classes (section 5 and appendix J).

One record is counted in one leaf of each tree and changes one class count by one, so the leaves
of a tree answer one query of sensitivity 1, and k trees compose to k of them. Both mechanisms treat
empty leaves like any other. Counts go in, released scores come out; nothing else is kept.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from lumberjack.discrete_gaussian import flip_coins
from lumberjack.noise import Noise, add_noise_to_counts


def release_labels(
    counts: NDArray[np.int64],
    scale: float,
    generator: np.random.Generator,
    *,
    noise: Noise = "continuous",
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
    noise : {"continuous", "discrete"}, default="continuous"
        Gumbel noise in floating point, or draws of the same law without rounding.

    Returns
    -------
    ndarray of float64, shape (n_leaves, n_classes)
        One-hot rows.
    """
    if noise == "discrete":
        winners = _draw_winners(counts, scale, generator)
    else:
        winners = (counts + generator.gumbel(scale=scale, size=counts.shape)).argmax(axis=1)
    scores = np.zeros(counts.shape)
    scores[np.arange(len(counts)), winners] = 1.0
    return scores


def _draw_winners(
    counts: NDArray[np.int64], scale: float, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Draw a class of each leaf with weights exp(count/scale), by rejection."""
    winners = np.empty(len(counts), dtype=np.int64)
    waiting = np.arange(len(counts))
    while waiting.size:
        proposed = generator.integers(0, counts.shape[1], size=waiting.size)
        gap = counts[waiting].max(axis=1) - counts[waiting, proposed]

        def get_log_probability(i: int, gap: NDArray[np.int64] = gap) -> Decimal:
            return -Decimal(int(gap[i])) / Decimal(scale)

        is_kept = flip_coins(np.exp(-gap / scale), get_log_probability, generator)
        winners[waiting[is_kept]] = proposed[is_kept]
        waiting = waiting[~is_kept]
    return winners


def release_counts(
    counts: NDArray[np.int64],
    scale: float,
    generator: np.random.Generator,
    *,
    noise: Noise = "continuous",
) -> NDArray[np.float64]:
    """Release the class counts of each leaf by the (discrete) Gaussian mechanism (Lemma 14).

    Parameters
    ----------
    counts, generator
        As for :func:`release_labels`.
    scale : float
        Standard deviation of the noise, in records (see
        :func:`lumberjack.accounting.zcdp.get_gaussian_sigma`).
    noise : {"continuous", "discrete"}, default="continuous"

    Returns
    -------
    ndarray of float64, shape (n_leaves, n_classes)
        Noisy counts, negative ones included.
    """
    return add_noise_to_counts(counts, scale, generator, noise=noise)


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
