"""Zero-concentrated differential privacy: conversion (Lemma 9) and the leaf mechanisms' scales.

Symbols: ``rho`` is the zCDP parameter (Definition 2); it adds up over adaptive releases (Lemma 11).
Each mechanism here answers counting queries, so one record changes a count by at most 1.
"""

from __future__ import annotations

import math

from lumberjack.accounting.checks import check_delta, check_epsilon, check_positive
from lumberjack.accounting.roots import largest_within


def _converted(epsilon: float, rho: float) -> float:
    """Return the delta of Lemma 9, for 0 < rho <= epsilon."""
    gap = (epsilon - rho) / (2 * rho)
    return (
        2
        * math.exp(-(epsilon - rho) * gap / 2)
        / (1 + gap + math.sqrt((1 + gap) ** 2 + 4 / (math.pi * rho)))
    )


def get_delta(epsilon: float, rho: float) -> float:
    """Return the delta that Lemma 9 gives a rho-zCDP mechanism at epsilon.

    Parameters
    ----------
    epsilon : float
        Positive.
    rho : float
        Positive.

    Returns
    -------
    float
        1 where ``epsilon < rho``: the lemma does not speak there.
    """
    epsilon = check_epsilon(epsilon)
    rho = check_positive("rho", rho)
    return 1.0 if rho > epsilon else _converted(epsilon, rho)


def get_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho whose conversion (Lemma 9) stays within (epsilon, delta).

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        Rounded down; at most ``epsilon``, beyond which the lemma does not speak.
    """
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    if _converted(epsilon, epsilon) <= delta:
        return epsilon
    return largest_within(lambda rho: get_delta(epsilon, rho), delta, start=epsilon)


def get_gumbel_scale(rho: float) -> float:
    """Return the Gumbel scale that makes ``argmax(count + noise)`` rho-zCDP.

    Adding Gumbel noise of scale s is the exponential mechanism with weights exp(count/s). All
    counts of a neighbour move in one direction and by at most 1, so its range is bounded by 1/s and
    it is 1/(8 s^2)-zCDP (appendix J, after Rogers and Steinke 2021).

    Parameters
    ----------
    rho : float
        Positive; the share of one tree, as a record is in one leaf of each.

    Returns
    -------
    float
        1 / sqrt(8 rho).
    """
    return 1 / math.sqrt(8 * check_positive("rho", rho))


def get_gaussian_sigma(rho: float) -> float:
    """Return the standard deviation of Gaussian noise that makes a histogram rho-zCDP (Lemma 14).

    Parameters
    ----------
    rho : float
        Positive; the share of one tree, as a record is in one leaf of each.

    Returns
    -------
    float
        1 / sqrt(2 rho).
    """
    return 1 / math.sqrt(2 * check_positive("rho", rho))
