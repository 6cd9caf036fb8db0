"""The exact guarantee of Gaussian noise (Lemma 14) and its inverses.

Symbols: ``mu`` is sensitivity over standard deviation of one or several Gaussian releases; several
compose, also adaptively, by adding the squares of their ``mu``. ``Phi`` is the standard normal
distribution function and

    G(epsilon, mu) = Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)

the smallest delta at epsilon (Balle and Wang 2018; Dong, Roth and Su 2022).
"""

from __future__ import annotations

import functools
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, log_ndtr, ndtr

from lumberjack.accounting.checks import check_delta, check_non_negative
from lumberjack.accounting.roots import largest_within, smallest_within

_SQRT_HALF = np.sqrt(0.5)
_SQRT_HALF_PI = np.sqrt(0.5 * np.pi)
_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def _mills_ratio(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (1 - Phi(z)) / phi(z)."""
    ratio: NDArray[np.float64] = _SQRT_HALF_PI * erfcx(z * _SQRT_HALF)
    return ratio


def _delta_of_non_negative_epsilon(
    epsilon: NDArray[np.float64], mu: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return G for epsilon >= 0 and 0 < mu < inf (one-dimensional arrays).

    With z1 = epsilon/mu - mu/2, z2 = z1 + mu and R the Mills ratio, exp(epsilon) phi(z2) = phi(z1)
    turns Lemma 14 into G = phi(z1) (R(z1) - R(z2)), which subtracts no two nearly equal
    probabilities. Where even R(z1) and R(z2) are close (small mu), their difference is the integral
    of -R'(z) = 1 - z R(z) from z1 to z2.
    """
    with np.errstate(over="ignore", under="ignore"):
        z1 = epsilon / mu - mu / 2
        z2 = epsilon / mu + mu / 2
        delta = np.zeros_like(z1)

        far_left = z1 < 0
        if far_left.any():
            e, left, right = epsilon[far_left], z1[far_left], z2[far_left]
            delta[far_left] = ndtr(-left) - np.exp(e + log_ndtr(-right))
        narrow = (mu < 0.5) & (z1 < 1e6)
        if narrow.any():
            half = mu[narrow, None] / 2
            z = (z1[narrow, None] + half) + half * _NODES
            # 1 - z R(z) -> 1/z^2 - 3/z^4 + ...: the direct form loses digits like z^2.
            slope = 1 - z * _mills_ratio(z)
            far = z > 100
            slope[far] = z[far] ** -2 * (1 - 3 * z[far] ** -2 * (1 - 5 * z[far] ** -2))
            area = half[:, 0] * (slope @ _WEIGHTS)
            delta[narrow] = np.exp(-0.5 * z1[narrow] ** 2 - _LOG_SQRT_2PI) * area
        rest = ~far_left & (mu >= 0.5)
        if rest.any():
            gap = _mills_ratio(z1[rest]) - _mills_ratio(z2[rest])
            delta[rest] = np.exp(-0.5 * z1[rest] ** 2 - _LOG_SQRT_2PI) * gap
    return delta


@overload
def get_delta(epsilon: float, mu: float) -> float: ...
@overload
def get_delta(epsilon: ArrayLike, mu: ArrayLike) -> float | NDArray[np.float64]: ...
def get_delta(epsilon: ArrayLike, mu: ArrayLike) -> float | NDArray[np.float64]:
    """Return the smallest delta of Gaussian noise at epsilon (Lemma 14).

    Parameters
    ----------
    epsilon : float or array_like
        Any real number; the mixed terms of Theorem 6 ask for negative ones.
    mu : float or array_like
        Sensitivity over standard deviation, not negative; broadcast against ``epsilon``.

    Returns
    -------
    float or ndarray
        G(epsilon, mu), with a relative error below 1e-12 wherever it is above 1e-300.
    """
    epsilons, mus = np.broadcast_arrays(
        np.asarray(epsilon, dtype=np.float64), np.asarray(mu, dtype=np.float64)
    )
    if np.isnan(epsilons).any():
        raise ValueError("epsilon must be a number, got nan.")
    if not (mus >= 0).all():
        raise ValueError(f"mu must not be negative, got {np.min(mus):g}.")
    shape = epsilons.shape
    e, width = epsilons.ravel(), mus.ravel()

    # Neighbours change places: G(-e) = 1 - exp(-e) + exp(-e) G(e). All terms are positive.
    size = np.abs(e)
    delta = np.zeros_like(size)
    delta[np.isinf(width)] = 1.0
    ordinary = (width > 0) & np.isfinite(width) & np.isfinite(e)
    delta[ordinary] = _delta_of_non_negative_epsilon(size[ordinary], width[ordinary])
    negative = e < 0
    delta[negative] = -np.expm1(e[negative]) + np.exp(e[negative]) * delta[negative]
    delta = np.clip(delta, 0.0, 1.0)
    return float(delta[0]) if shape == () else delta.reshape(shape)


def get_epsilon(delta: float, mu: float) -> float:
    """Return the smallest epsilon >= 0 at which Gaussian noise stays within delta.

    Parameters
    ----------
    delta : float
        In (0, 1).
    mu : float
        Sensitivity over standard deviation, not negative.

    Returns
    -------
    float
        Rounded up: ``get_delta`` at the result is at most ``delta``.
    """
    delta = check_delta(delta)
    mu = check_non_negative("mu", mu)
    if get_delta(0.0, mu) <= delta:
        return 0.0
    return smallest_within(lambda epsilon: get_delta(epsilon, mu), delta, start=mu * (mu + 1))


def get_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu whose Gaussian noise satisfies (epsilon, delta).

    Parameters
    ----------
    epsilon : float
        Not negative.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        Rounded down: ``get_delta`` at the result is at most ``delta``.
    """
    return _find_mu(check_non_negative("epsilon", epsilon), check_delta(delta))


@functools.lru_cache(maxsize=64)
def _find_mu(epsilon: float, delta: float) -> float:
    return largest_within(lambda mu: get_delta(epsilon, mu), delta)
