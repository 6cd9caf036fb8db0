"""Permute-and-Flip on class counts: the label of a leaf (McKenna and Sheldon 2020).

Classes are visited in random order and class k is accepted with probability
exp(epsilon (c_k - c_max)), c_k being its count. Counts have sensitivity 1 and are monotone under
adding or removing a row, hence no factor 1/2: the label is epsilon-differentially private.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def draw_labels(
    counts: NDArray[np.int64], epsilon: float, noise: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the label of each leaf by Permute-and-Flip.

    Drawn as the largest of epsilon c_k + E_k with standard exponential E_k, which has the same law
    (Ding, Kifer, Saghaian N. E., Steinke, Wang, Xiao and Zhang 2021).

    Parameters
    ----------
    counts : ndarray of shape (n_leaves, n_classes)
        Class counts.
    epsilon : float
        Positive; infinity for the exact majority, ties at random.
    noise : numpy.random.Generator
        Source of the draw.
    """
    deficit = counts.max(axis=1, keepdims=True) - counts
    scores = noise.standard_exponential(counts.shape) - times_budget(deficit, epsilon)
    return scores.argmax(axis=1)


def times_budget(gap: NDArray[Any], epsilon: float) -> NDArray[np.float64]:
    """Return gap * epsilon, where no gap stays no gap however large the budget."""
    product = np.zeros(np.shape(gap))
    np.multiply(gap, epsilon, out=product, where=np.asarray(gap) > 0)
    return product
