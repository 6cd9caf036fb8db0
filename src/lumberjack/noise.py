"""How every release adds its noise: right onto a grid, with no trace of what it was added to.

Neighbouring tables differ by one added or removed record; sensitivities are the callers' matter, and
what noise they need is computed in :mod:`lumberjack.accounting`.

Continuous noise. A sum of doubles tells by its low-order bits which numbers were added (Mironov
2012). So noise is rounded to a grid first, and then added to a whole number of grid steps in exact
integer arithmetic. As the grid holds every possible sum, that is the same as rounding the sum
of data and Gaussian noise: post-processing of the Gaussian mechanism (Lemma 14). A grid step is
2^-20 of the noise's own size, so that some 2^30 doubles of the noise share it. What stays open: the
noise is a Gaussian draw in double precision, whose law differs from the ideal one by about
2^-30 in the probability of a grid point and by more beyond 8 standard deviations; no theorem
here bounds what that is worth.

Discrete noise. The discrete Gaussian on integers, or on the steps of fixed-point numbers, has no such
gap: its draws are exact (:mod:`lumberjack.discrete_gaussian`) and its accounting is of
this very law (:mod:`lumberjack.accounting.discrete_gaussian`).

Fixed point. Real sums are released from integers: each record's contribution is truncated
towards zero to a multiple of 2^-36, which lengthens no vector, and the integers are summed. Such a sum
does not depend on the order of records or on the number of threads, which rounding errors of doubles do.
A contribution is bounded before it is truncated; a caller whose own arithmetic may exceed
the bound by some last digits aims below it by one part in 2^40.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lumberjack.compiled import compiled
from lumberjack.discrete_gaussian import sample_discrete_gaussian

Noise = Literal["continuous", "discrete"]

FRACTION_BITS = 36
"""Of the fixed-point numbers in which real contributions are summed."""

_UNIT = 2.0**FRACTION_BITS

COUNT_STEP, SUM_STEP = 1.0, 2.0**-FRACTION_BITS
"""What discrete noise of counts and of sums is a multiple of."""

_GRID_BITS = 20
"""A grid step is at least this many powers of two below the noise."""

_LARGEST_SUM = 2**62

_LARGEST_SIGMA = 2.0**20


@compiled(nogil=True)
def to_fixed_point(value: float) -> int:
    """Return a real number below 2^26 in steps of 2^-36, truncated towards zero."""
    return int(value * _UNIT)


def from_fixed_point(steps: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return fixed-point numbers as real ones, rounded to doubles."""
    values: NDArray[np.float64] = steps / _UNIT
    return values


def _get_grid_exponent(sigma: float) -> int:
    """Return the power of two of the grid for noise of a standard deviation."""
    return math.frexp(sigma)[1] - 1 - _GRID_BITS


def add_noise_to_counts(
    counts: NDArray[np.int64],
    sigma: float,
    generator: np.random.Generator,
    *,
    noise: Noise = "continuous",
) -> NDArray[np.float64]:
    """Release counts by the (discrete) Gaussian mechanism.

    Parameters
    ----------
    counts : ndarray of int64
        Any shape; below 2^31 in size, or below 2^52 where `sigma` is above 2^20.
    sigma : float
        Standard deviation of the noise, or the parameter of the discrete Gaussian; in the counts' unit.
    generator : numpy.random.Generator
        Source of noise.
    noise : {"continuous", "discrete"}, default="continuous"

    Returns
    -------
    ndarray of float64, of the same shape
        Whole numbers (discrete), or multiples of the power of two that is 2^20 times below
        `sigma`, or of 1 if that is less.
    """
    if noise == "discrete":
        drawn = sample_discrete_gaussian(sigma, counts.size, generator)
        return (counts + drawn.reshape(counts.shape)).astype(np.float64)
    step = 2.0 ** min(_get_grid_exponent(sigma), 0)
    steps = np.rint(generator.normal(scale=sigma, size=counts.shape) / step)
    released: NDArray[np.float64] = counts + steps * step
    return released


def add_noise_to_sums(
    sums: NDArray[np.int64],
    sigma: ArrayLike,
    generator: np.random.Generator,
    *,
    noise: Noise = "continuous",
) -> NDArray[np.float64]:
    """Release sums of real contributions by the (discrete) Gaussian mechanism.

    Parameters
    ----------
    sums : ndarray of int64
        Any shape; sums of fixed-point numbers (:func:`to_fixed_point`).
    sigma : float or array-like
        Standard deviation of the noise, or the parameter of the discrete Gaussian, in the sums' own
        unit, for all or each of them; below 2^20.
    generator : numpy.random.Generator
        Source of noise.
    noise : {"continuous", "discrete"}, default="continuous"

    Returns
    -------
    ndarray of float64, of the same shape
        In the sums' own unit: multiples of the power of two that is 2^20 times below `sigma`, or of
        2^-36 if that is more.

    Raises
    ------
    ValueError
        If sums or noise do not fit into 64 bits.
    """
    sigmas = np.broadcast_to(np.asarray(sigma, dtype=np.float64), sums.shape)
    if sums.size and not (sigmas.min() > 0 and sigmas.max() < _LARGEST_SIGMA):
        raise ValueError(
            f"sigma of real sums must lie between 0 and 2^20, got {sigmas.min():g} to {sigmas.max():g}."
        )
    if sums.size and max(int(sums.max()), -int(sums.min())) >= _LARGEST_SUM:
        raise ValueError(
            "sums must stay below 2^26 in size, so that they and the noise fit into 64 bits."
        )
    if noise == "discrete":
        steps = np.empty(sums.shape, dtype=np.int64)
        for one in np.unique(sigmas).tolist():
            is_one = sigmas == one
            steps[is_one] = sample_discrete_gaussian(one * _UNIT, int(is_one.sum()), generator)
    else:
        steps = np.rint(generator.normal(scale=sigmas * _UNIT, size=sums.shape)).astype(np.int64)
    noisy = sums + steps
    # To the nearest multiple of 2^shift steps; halves go up.
    exponent = np.frexp(sigmas)[1].astype(np.int64) - 1 - _GRID_BITS
    shift = np.maximum(exponent + FRACTION_BITS, 0)
    nearest = (noisy + ((1 << shift) >> 1)) >> shift
    released: NDArray[np.float64] = np.ldexp(nearest.astype(np.float64), shift - FRACTION_BITS)
    return released
