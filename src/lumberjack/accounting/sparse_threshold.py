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
    all_steps : float
        Every affected query steps over the floor: ``1 - p^m``.
    added : float
        The worst mix of steps and Gaussian queries when a record is added.
    removed : float
        The worst mix when a record is removed.
    """

    all_steps: float
    added: float
    removed: float

    @property
    def delta(self) -> float:
        """The largest part, which is what Theorem 6 asks for."""
        return max(self.all_steps, self.added, self.removed)


@dataclass(frozen=True, slots=True)
class SummedDelta:
    """A delta that is the sum of a Gaussian part and of a part for steps over the floor.

    Parameters
    ----------
    gaussian : float
        G(epsilon, mu) of everything Gaussian together.
    steps : float
        ``1 - p^m``, the probability that some step over the floor shows.
    """

    gaussian: float
    steps: float

    @property
    def delta(self) -> float:
        """The sum of both parts."""
        return self.gaussian + self.steps


def get_touches_per_tree(height: int) -> int:
    """Return the number of threshold queries of Algorithm 1 that one record can touch (Lemma 3).

    Parameters
    ----------
    height : int
        Number of nodes on a root-to-leaf path, at least 1.

    Returns
    -------
    int
        1 + floor(log2(height)).

    Raises
    ------
    ValueError
        If the height is not a positive integer.
    """
    return check_count("height", height).bit_length()


def get_margin(threshold: float, largest_rejected: float) -> float:
    """Return the margin of a threshold query that rejects small counts without noise.

    Whoever raises the deterministic floor and leaves the threshold where it was lowers the margin:
    rejecting counts up to 2 with a threshold of ``margin`` leaves ``margin - 3``.

    Parameters
    ----------
    threshold : float
        What noisy counts are compared with.
    largest_rejected : float
        The largest count that is answered no without noise.

    Returns
    -------
    float
        ``threshold - largest_rejected - 1``, to be used in the accounting.
    """
    return threshold - largest_rejected - 1


def _step_delta(m: int, ratio: float) -> float:
    """Return 1 - Phi(ratio)^m without losing its digits."""
    return float(-np.expm1(m * log_ndtr(ratio)))


def get_delta_paper_parts(epsilon: float, m: int, sigma: float, margin: float) -> PaperDelta:
    """Return the three parts of Theorem 6 (also Lemma 15).

    Parameters
    ----------
    epsilon : float
        Positive.
    m : int
        Queries in which one record can be counted, at least 1.
    sigma : float
        Standard deviation of the noise, positive.
    margin : float
        The paper's Delta, not negative.

    Returns
    -------
    PaperDelta

    Raises
    ------
    ValueError
        If an argument is out of range.
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
        all_steps=_step_delta(m, ratio), added=float(np.max(added)), removed=float(np.max(removed))
    )


def get_delta_paper(epsilon: float, m: int, sigma: float, margin: float) -> float:
    """Return the delta of the Gaussian sparse threshold by Theorem 6.

    Parameters
    ----------
    epsilon : float
        Positive.
    m : int
        Queries in which one record can be counted, at least 1.
    sigma : float
        Standard deviation of the noise, positive.
    margin : float
        The paper's Delta, not negative.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Too small for some adaptive adversaries; see the module docstring and ``get_delta_safe``.
    """
    return get_delta_paper_parts(epsilon, m, sigma, margin).delta


def get_delta_safe_parts(
    epsilon: float, m: int, sigma: float, margin: float, mu_extra: float = 0.0
) -> SummedDelta:
    """Return both parts of a delta that holds for adaptive queries, answers or noisy counts.

    Fix an adversary and a pair of neighbours. Let an intermediate mechanism answer from the second
    data set wherever exactly one of the two counts is rejected without noise, and from the first
    elsewhere. It differs from the first data set's answers only if one of at most m such steps is
    answered yes, which has probability at most 1 - p^m whatever the adversary does; from the
    second's it differs by an adaptive composition of Gaussian releases. So the sum bounds both
    directions. (The intermediate step is the one in the proof of Lemma 16.)

    Parameters
    ----------
    epsilon : float
        Positive.
    m : int
        Queries in which one record can be counted, at least 1.
    sigma : float
        Standard deviation of the noise, positive.
    margin : float
        The paper's Delta, not negative.
    mu_extra : float, default=0.0
        mu of everything else that is released with Gaussian noise, before, after or in between.

    Returns
    -------
    SummedDelta

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    epsilon = check_epsilon(epsilon)
    m = check_count("m", m)
    sigma = check_positive("sigma", sigma)
    margin = check_non_negative("margin", margin)
    mu_extra = check_non_negative("mu_extra", mu_extra)
    mu = math.hypot(math.sqrt(m) / sigma, mu_extra)
    return SummedDelta(
        gaussian=gaussian.get_delta(epsilon, mu), steps=_step_delta(m, margin / sigma)
    )


def get_delta_safe(
    epsilon: float, m: int, sigma: float, margin: float, mu_extra: float = 0.0
) -> float:
    """Return a delta that holds for adaptive queries, answers or noisy counts.

    Parameters
    ----------
    epsilon : float
        Positive.
    m : int
        Queries in which one record can be counted, at least 1.
    sigma : float
        Standard deviation of the noise, positive.
    margin : float
        The paper's Delta, not negative.
    mu_extra : float, default=0.0
        mu of everything else that is released with Gaussian noise.

    Returns
    -------
    float
        ``(1 - p^m) + G(epsilon, mu)``, at most 1.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    return min(1.0, get_delta_safe_parts(epsilon, m, sigma, margin, mu_extra).delta)


def get_delta_two_sided_parts(epsilon: float, m: int, sigma: float, margin: float) -> SummedDelta:
    """Return both parts of Lemma 16, for the two-sided threshold (Algorithm 3).

    Parameters
    ----------
    epsilon : float
        Positive.
    m : int
        Queries in which one record can be counted, at least 1.
    sigma : float
        Standard deviation of the noise, positive.
    margin : float
        The paper's Delta, not negative.

    Returns
    -------
    SummedDelta
        ``gaussian`` is the lemma's delta_Gauss, ``steps`` its delta_inf.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    The lemma is the ``safe`` bound: its proof is adaptive and covers floor and ceiling alike.
    """
    return get_delta_safe_parts(epsilon, m, sigma, margin)


def _ratio_for_steps(delta: float, m: int) -> float:
    """Return the smallest margin/sigma with 1 - Phi(margin/sigma)^m <= delta."""
    ratio = max(0.0, float(-ndtri(-np.expm1(np.log1p(-delta) / m))))
    while _step_delta(m, ratio) > delta:
        ratio = ratio * (1 + 1e-15) if ratio > 0 else 1e-300
    return ratio


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

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    m = check_count("m", m)
    sigma = math.sqrt(m) / gaussian.get_mu(epsilon, delta)
    noise = ThresholdNoise(sigma, margin=sigma * _ratio_for_steps(delta, m))
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

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1); 0.6 of it covers the Gaussian part and 0.4 the steps over the floor.
    m : int
        Queries in which one record can be counted, at least 1.

    Returns
    -------
    ThresholdNoise
        ``get_delta_safe`` at it is at most ``delta``.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    m = check_count("m", m)
    sigma = math.sqrt(m) / gaussian.get_mu(epsilon, GAUSSIAN_SHARE * delta)
    margin = sigma * _ratio_for_steps((1 - GAUSSIAN_SHARE) * delta, m)
    return _settled(epsilon, delta, m, ThresholdNoise(sigma, margin), mu_extra=0.0)


def calibrate_two_sided(epsilon: float, delta: float, m: int) -> ThresholdNoise:
    """Return noise for which Lemma 16 gives the two-sided threshold (epsilon, delta).

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

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    return calibrate_safe(epsilon, delta, m)


def _settled(
    epsilon: float, delta: float, m: int, noise: ThresholdNoise, *, mu_extra: float
) -> ThresholdNoise:
    """Return the noise, raised by a few units in the last place until ``safe`` holds as computed."""
    while get_delta_safe(epsilon, m, noise.sigma, noise.margin, mu_extra) > delta:
        sigma = noise.sigma * (1 + 4e-16)
        noise = ThresholdNoise(sigma, noise.margin * (1 + 2e-15))
    return noise


def _closed_form(epsilon: float, delta: float, m: int) -> ThresholdNoise:
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    m = check_count("m", m)
    if epsilon >= 1:
        raise ValueError(
            f"the closed form is proved for epsilon < 1 only, got {epsilon:g}."
            " Use calibrate_paper or calibrate_safe."
        )
    sigma = math.sqrt(2 * m * math.log(2.5 / delta)) / epsilon
    return ThresholdNoise(sigma=sigma, margin=sigma * math.sqrt(2 * math.log(2 * m / delta)))


def get_closed_form(epsilon: float, delta: float, m: int) -> ThresholdNoise:
    """Return the noise of Lemma 7, which is simple and larger than needed.

    Parameters
    ----------
    epsilon : float
        In (0, 1).
    delta : float
        In (0, 1).
    m : int
        Queries in which one record can be counted, at least 1.

    Returns
    -------
    ThresholdNoise

    Raises
    ------
    ValueError
        If an argument is out of range, in particular for epsilon >= 1.
    """
    return _closed_form(epsilon, delta, m)


def get_closed_form_two_sided(epsilon: float, delta: float, m: int) -> ThresholdNoise:
    """Return the noise of Corollary 17 for the two-sided threshold; the values of Lemma 7.

    Parameters
    ----------
    epsilon : float
        In (0, 1).
    delta : float
        In (0, 1).
    m : int
        Queries in which one record can be counted, at least 1.

    Returns
    -------
    ThresholdNoise

    Raises
    ------
    ValueError
        If an argument is out of range, in particular for epsilon >= 1.
    """
    return _closed_form(epsilon, delta, m)


def get_error_bound(
    sigma: float, *, beta: float, n_records: int, height: int, n_trees: int = 1
) -> float:
    """Return how far from the threshold a node can be misjudged (Lemma 5, Theorem 6).

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise, positive.
    beta : float
        Probability that the bound fails, in (0, 1).
    n_records : int
        Number of records, at least 1. Not private: for the data holder's eyes.
    height : int
        Number of nodes on a root-to-leaf path, at least 1.
    n_trees : int, default=1
        Number of trees.

    Returns
    -------
    float
        sigma sqrt(2 ln(2 k n ceil(log2(h + 1)) / beta)). With probability 1 - beta every node with
        a count further than this from the threshold is judged right, provided that the threshold
        is at least 1 + margin.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    sigma = check_positive("sigma", sigma)
    beta = check_positive("beta", beta)
    if beta >= 1:
        raise ValueError(f"beta must lie strictly between 0 and 1, got {beta:g}.")
    n_queries = (
        check_count("n_trees", n_trees)
        * check_count("n_records", n_records)
        * get_touches_per_tree(height)
    )
    return sigma * math.sqrt(2 * math.log(2 * n_queries / beta))
