"""The Gaussian sparse threshold (Algorithms 2 and 3): privacy, calibration and accuracy.

Symbols: ``m`` is the number of threshold queries in which one record can be counted; ``sigma`` the
standard deviation of the noise; ``margin`` (the paper's Delta) the distance from the threshold
down to the smallest count that is not rejected without noise; ``p = Phi(margin / sigma)`` the
probability that such a smallest count is still answered no; ``G`` is
:func:`lumberjack.accounting.gaussian.get_delta`.

Two accountings live here. ``paper`` is Theorem 6 / Lemma 15. For queries fixed in advance it is
exact when noisy counts are released and an upper bound when only answers are; for adaptively
chosen queries, which is what the lemma claims, it can be too small. ``safe`` holds for any adaptive
order, for answers and for noisy counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtri

from lumberjack.accounting import gaussian
from lumberjack.accounting.checks import (
    check_count,
    check_delta,
    check_epsilon,
    check_non_negative,
    check_positive,
)
from lumberjack.accounting.roots import smallest_within

GAUSSIAN_SHARE = 0.6
"""Part of delta that ``safe`` gives to G; the rest covers counts that step over the floor."""


@dataclass(frozen=True, slots=True)
class ThresholdNoise:
    """Parameters of a Gaussian sparse threshold.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise, in records.
    margin : float
        The paper's Delta, in records.
    """

    sigma: float
    margin: float

    @property
    def threshold(self) -> float:
        """The threshold 1 + margin, at which exactly the empty nodes are rejected without noise."""
        return 1.0 + self.margin


@dataclass(frozen=True, slots=True)
class PaperDelta:
    """The three parts of Theorem 6.

    Parameters
    ----------
    delta_inf : float
        Every affected query steps over the floor: ``1 - p^m``.
    added : float
        The worst mix of steps and Gaussian queries when a record is added.
    removed : float
        The worst mix when a record is removed.
    """

    delta_inf: float
    added: float
    removed: float

    @property
    def delta(self) -> float:
        """The largest part, which is what Theorem 6 asks for."""
        return max(self.delta_inf, self.added, self.removed)


@dataclass(frozen=True, slots=True)
class SafeDelta:
    """The two parts of Lemma 16.

    Parameters
    ----------
    delta_gauss : float
        G(epsilon, mu) of everything Gaussian together.
    delta_inf : float
        ``1 - p^m``, the probability that some step over the floor shows.
    """

    delta_gauss: float
    delta_inf: float

    @property
    def delta(self) -> float:
        """The sum of both parts."""
        return self.delta_gauss + self.delta_inf


def get_n_queries_per_record(height: int) -> int:
    """Return the number of threshold queries of Algorithm 1 that count one record (Lemma 3).

    Parameters
    ----------
    height : int
        Number of nodes on a root-to-leaf path, at least 1.

    Returns
    -------
    int
        1 + floor(log2(height)), for one tree.
    """
    return check_count("height", height).bit_length()


def get_delta_inf(m: int, ratio: float) -> float:
    """Return ``1 - Phi(ratio)^m``, at the ratio margin/sigma, without losing its digits."""
    return float(-np.expm1(m * log_ndtr(ratio)))


def get_margin_ratio(delta_inf: float, m: int) -> float:
    """Return the smallest ratio margin/sigma at which :func:`get_delta_inf` is within ``delta_inf``."""
    ratio = max(0.0, float(-ndtri(-np.expm1(np.log1p(-delta_inf) / m))))
    while get_delta_inf(m, ratio) > delta_inf:
        ratio = ratio * (1 + 1e-15) if ratio > 0 else 1e-300
    return ratio


def get_delta_paper_parts(epsilon: float, m: int, sigma: float, margin: float) -> PaperDelta:
    """Return the three parts of Theorem 6 (also Lemma 15).

    Parameters
    ----------
    epsilon : float
        Positive.
    m : int
        Queries in which one record can be counted, at least 1.
    sigma : float
        Standard deviation of the noise, in records, positive.
    margin : float
        The paper's Delta, in records, not negative.
    """
    epsilon = check_epsilon(epsilon)
    m = check_count("m", m)
    sigma = check_positive("sigma", sigma)
    margin = check_non_negative("margin", margin)
    ratio = margin / sigma
    j = np.arange(1, m + 1, dtype=np.float64)
    gamma = (m - j) * log_ndtr(ratio)  # <= 0
    mu = np.sqrt(j) / sigma
    no_step_shows = np.exp(gamma)
    added = -np.expm1(gamma) + no_step_shows * gaussian.get_delta(epsilon - gamma, mu)
    removed = gaussian.get_delta(epsilon + gamma, mu)
    return PaperDelta(
        delta_inf=get_delta_inf(m, ratio),
        added=float(np.max(added)),
        removed=float(np.max(removed)),
    )


def get_delta_paper(epsilon: float, m: int, sigma: float, margin: float) -> float:
    """Return the delta of the Gaussian sparse threshold by Theorem 6.

    Arguments as for :func:`get_delta_paper_parts`. Too small for some adaptive adversaries; see the
    module docstring and :func:`get_delta_safe`.
    """
    return get_delta_paper_parts(epsilon, m, sigma, margin).delta


def get_delta_safe(epsilon: float, m: int, sigma: float, margin: float) -> float:
    """Return a delta that holds for adaptive queries, answers or noisy counts.

    Fix an adversary and a pair of neighbours. Let an intermediate mechanism answer from the second
    data set wherever exactly one of the two counts is rejected without noise, and from the first
    elsewhere. It differs from the first data set's answers only if one of at most m such steps is
    answered yes, which has probability at most 1 - p^m whatever the adversary does; from the
    second's it differs by an adaptive composition of Gaussian releases. So the sum bounds both
    directions. (The intermediate step is the one in the proof of Lemma 16, which this bound is for
    the two-sided threshold of Algorithm 3: that proof covers floor and ceiling alike.)

    Arguments as for :func:`get_delta_paper_parts`; ``(1 - p^m) + G(epsilon, sqrt(m)/sigma)``, at most 1.
    """
    epsilon = check_epsilon(epsilon)
    m = check_count("m", m)
    sigma = check_positive("sigma", sigma)
    margin = check_non_negative("margin", margin)
    delta_gauss = gaussian.get_delta(epsilon, math.sqrt(m) / sigma)
    return min(1.0, SafeDelta(delta_gauss, get_delta_inf(m, margin / sigma)).delta)


def calibrate_paper(epsilon: float, delta: float, m: int) -> ThresholdNoise:
    """Return the least noise for which Theorem 6 gives (epsilon, delta).

    The two pure parts ask for sigma = sqrt(m)/mu with G(epsilon, mu) = delta and for
    margin = sigma Phi^-1((1 - delta)^(1/m)). Should a mixed part still exceed delta, both are raised
    until it does not; the mixed parts have been found to follow from the pure ones at every
    setting tried, so this corrects no more than rounding.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).
    m : int
        Queries in which one record can be counted, at least 1.

    Returns
    -------
    ThresholdNoise
        ``get_delta_paper`` at it is at most ``delta``.
    """
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    m = check_count("m", m)
    sigma = math.sqrt(m) / gaussian.get_mu(epsilon, delta)
    noise = ThresholdNoise(sigma, margin=sigma * get_margin_ratio(delta, m))
    return _raised_for_theorem_6(epsilon, delta, m, noise)


def _raised_for_theorem_6(
    epsilon: float, delta: float, m: int, noise: ThresholdNoise
) -> ThresholdNoise:
    """Return the noise, raised in sigma and in margin/sigma until Theorem 6 gives delta."""

    def raised(factor: float) -> ThresholdNoise:
        return ThresholdNoise(noise.sigma * factor, noise.margin * factor * factor)

    def delta_at(factor: float) -> float:
        return get_delta_paper(epsilon, m, raised(factor).sigma, raised(factor).margin)

    for factor in (1.0, 1 + 1e-15, 1 + 1e-14):
        if delta_at(factor) <= delta:
            return raised(factor)
    return raised(smallest_within(delta_at, delta, relative_tolerance=1e-14))


def calibrate_safe(epsilon: float, delta: float, m: int) -> ThresholdNoise:
    """Return noise for which the ``safe`` accounting gives (epsilon, delta).

    Arguments as for :func:`calibrate_paper`; 0.6 of ``delta`` covers the Gaussian part and 0.4 the
    steps over the floor. :func:`get_delta_safe` at the noise is at most ``delta``.
    """
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    m = check_count("m", m)
    sigma = math.sqrt(m) / gaussian.get_mu(epsilon, GAUSSIAN_SHARE * delta)
    margin = sigma * get_margin_ratio((1 - GAUSSIAN_SHARE) * delta, m)
    # Rounding only: each step takes a few units in the last place.
    while get_delta_safe(epsilon, m, sigma, margin) > delta:
        sigma, margin = sigma * (1 + 4e-16), margin * (1 + 2e-15)
    return ThresholdNoise(sigma, margin)


def get_error_bound(
    sigma: float, *, beta: float, n_records: int, n_queries_per_record: int
) -> float:
    """Return how far from the threshold a node can be misjudged (Lemma 5, Theorem 6).

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise, in records, positive.
    beta : float
        Probability that the bound fails, in (0, 1).
    n_records : int
        Number of records n, at least 1. Not private: for the data holder's eyes.
    n_queries_per_record : int
        Number of threshold queries that count one record, m; at least 1. Of k trees searched by
        Algorithm 1 it is ``k * get_n_queries_per_record(height)``.

    Returns
    -------
    float
        sigma sqrt(2 ln(2 n m / beta)), in records. With probability 1 - beta every node with a
        count further than this from the threshold is judged right, provided that the threshold is
        at least 1 + margin.
    """
    sigma = check_positive("sigma", sigma)
    if not 0 < check_positive("beta", beta) < 1:
        raise ValueError(f"beta must lie strictly between 0 and 1, got {beta:g}.")
    n_queries = check_count("n_records", n_records) * check_count(
        "n_queries_per_record", n_queries_per_record
    )
    return sigma * math.sqrt(2 * math.log(2 * n_queries / beta))
