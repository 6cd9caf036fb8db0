"""The recursion of the ``tight`` accounting on a grid of losses, one step a query, rounded up.

Symbols as in :mod:`lumberjack.accounting.tight`, which says why each step is an upper bound.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from lumberjack.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Levels = tuple[tuple[Integers, Floats], ...]

ROUNDING = 1e-13
"""Upper bound on the relative error of a probability above 1e-80 and on the error of a loss."""

_BRANCHES = 8
"""Queries, or groups of queries, that are first looked at as one."""


@compiled(error_model="numpy")
def extend(values: Floats, pad: int, interval: float) -> Floats:
    """Return the values with upper bounds for arguments off either end of the grid."""
    n = values.size
    extended = np.empty(n + 2 * pad)
    extended[:pad] = values[0]
    extended[pad : pad + n] = values
    missing = 1.0 - values[n - 1]
    shrink = np.exp(-interval)
    for i in range(pad):
        missing *= shrink
        extended[pad + n + i] = 1.0 - missing
    return extended


@compiled(error_model="numpy")
def _raise_by(
    target: Floats, extended: Floats, begin: int, first: Integers, weights: Floats, c: int
) -> None:
    """Raise the target to what query ``c`` reaches."""
    n = target.size
    # Slices, not index sums: an index that might be negative forbids vectorisation.
    yes, no = begin + first[0, c], begin + first[1, c]
    yes_low, yes_high = extended[yes : yes + n], extended[yes + 1 : yes + n + 1]
    no_low, no_high = extended[no : no + n], extended[no + 1 : no + n + 1]
    w0, w1, w2, w3 = weights[0, c], weights[1, c], weights[2, c], weights[3, c]
    for i in range(n):
        value = w0 * yes_low[i] + w1 * yes_high[i] + w2 * no_low[i] + w3 * no_high[i]
        target[i] = value if value > target[i] else target[i]


@compiled(error_model="numpy")
def _may_raise(
    target: Floats, extended: Floats, begin: int, first: Integers, weights: Floats, c: int
) -> bool:
    """Return whether group ``c`` of queries might raise the target anywhere."""
    n = target.size
    yes, no = begin + first[0, c], begin + first[1, c]
    yes_low, yes_high = extended[yes : yes + n], extended[yes + 1 : yes + n + 1]
    no_low, no_high = extended[no : no + n], extended[no + 1 : no + n + 1]
    w0, w1, w2, w3 = weights[0, c], weights[1, c], weights[2, c], weights[3, c]
    n_above = 0
    for i in range(n):
        value = w0 * yes_low[i] + w1 * yes_high[i] + w2 * no_low[i] + w3 * no_high[i]
        n_above += not value <= target[i]  # also where there is no number
    return n_above > 0


@compiled(error_model="numpy")
def _ask_answers(
    values: Floats,
    n_queries: int,
    pad: int,
    interval: float,
    levels: Levels,
    floor_first: int,
    floor_weights: Floats,
) -> Floats:
    """Return U before the queries; ``levels`` as of :func:`_get_levels`, the rest of the caller.

    Most queries tell less than the best one everywhere, so groups of neighbours are compared with it
    first, each as one query that tells more. Skipping them changes no digit.
    """
    n = values.size
    (first, weights), (few_first, few_weights), (many_first, many_weights) = levels
    block = 256
    favourites = np.full(n // block + 1, first.shape[1] // 2)
    for _ in range(n_queries):
        extended = extend(values, pad, interval)
        best = values.copy()
        for begin in range(0, n, block):
            target = best[begin : min(n, begin + block)]
            low = extended[pad + floor_first + begin :]
            high = extended[pad + floor_first + begin + 1 :]
            for i in range(target.size):
                value = floor_weights[2] + floor_weights[0] * low[i] + floor_weights[1] * high[i]
                target[i] = value if value > target[i] else target[i]
            at = pad + begin
            favourite = favourites[begin // block]
            _raise_by(target, extended, at, first, weights, favourite)
            for many in range(many_first.shape[1]):
                if not _may_raise(target, extended, at, many_first, many_weights, many):
                    continue
                for few in range(many * _BRANCHES, min((many + 1) * _BRANCHES, few_first.shape[1])):
                    if not _may_raise(target, extended, at, few_first, few_weights, few):
                        continue
                    for c in range(few * _BRANCHES, min((few + 1) * _BRANCHES, first.shape[1])):
                        before = target[target.size // 2]
                        _raise_by(target, extended, at, first, weights, c)
                        if target[target.size // 2] > before:
                            favourites[begin // block] = c
        values = best
    return values


@compiled(error_model="numpy")
def ask_noisy_counts(
    values: Floats,
    n_queries: int,
    pad: int,
    interval: float,
    kernel_first: int,
    kernel: Floats,
    kernel_certain: float,
    floor_first: int,
    floor_weights: Floats,
) -> Floats:
    """Return U before ``n_queries`` queries whose noisy counts are released."""
    n = values.size
    for _ in range(n_queries):
        extended = extend(values, pad, interval)
        best = np.full(n, kernel_certain)
        for tap in range(kernel.size):
            weight = kernel[tap]
            source = extended[pad + kernel_first + tap :]
            for i in range(n):
                best[i] += weight * source[i]
        low, high = extended[pad + floor_first :], extended[pad + floor_first + 1 :]
        for i in range(n):
            value = floor_weights[2] + floor_weights[0] * low[i] + floor_weights[1] * high[i]
            value = value if value > best[i] else best[i]
            best[i] = value if value > values[i] else values[i]
        values = best
    return values


def place(loss: Floats, interval: float) -> tuple[Integers, Floats]:
    """Return the grid point below each loss and its weight on the chord in u (rounded up)."""
    raised = loss + ROUNDING
    first = np.floor(raised / interval)
    beyond = raised - first * interval
    weight = (np.exp(-beyond) - np.exp(-interval)) / -np.expm1(-interval)
    return first.astype(np.int64), np.clip(weight - 1e-15 / interval, 0.0, 1.0)


def get_gaussian_kernel(mu: float, interval: float) -> tuple[int, Floats, float]:
    """Return offset, weights and certain part of the loss N(mu^2/2, mu^2), rounded up to the grid.

    Between two grid points the chord in u needs only the masses that P and Q put there, as u turns
    one into the other. (Known as connecting the dots; Doroshenko et al. 2022.)
    """
    reach = mu * mu / 2 + 9 * mu
    size = math.ceil(reach / interval)
    points = np.arange(-size, size + 1)
    loss = points * interval

    def masses(mean: float) -> Floats:
        # Below the grid, between its points, above it; each from the side where it is small.
        z = (loss - mean) / mu
        inner = np.where(z[:-1] > 0, ndtr(-z[:-1]) - ndtr(-z[1:]), ndtr(z[1:]) - ndtr(z[:-1]))
        return np.concatenate(([ndtr(z[0])], inner, [ndtr(-z[-1])]))

    p, q = masses(mu * mu / 2), masses(-mu * mu / 2)
    u = np.exp(-loss)
    left = np.clip((q[1:-1] - u[1:] * p[1:-1]) / (u[:-1] - u[1:]), 0.0, p[1:-1])
    # Differences of Phi are good to eleven digits; a smaller weight of the lower point is safe.
    left = np.clip(left - 1e-11 / interval * p[1:-1], 0.0, None)
    weights = np.zeros(points.size)
    weights[:-1] += left
    weights[1:] += p[1:-1] - left
    weights[0] += p[0]
    to_last = min(p[-1], q[-1] / u[-1]) * (1 - 1e-11)
    weights[-1] += to_last
    certain = p[-1] - to_last
    return -size, weights * (1 + 1e-11), certain * (1 + 1e-11)


def _get_log_ratio(z_p: Floats, z_q: Floats) -> Floats:
    """Return log(Phi(z_p) / Phi(z_q)), raised by more than its rounding error."""
    log_p, log_q = log_ndtr(z_p), log_ndtr(z_q)
    raised: Floats = log_p - log_q - 2e-15 * (log_p + log_q)
    return raised


class Queries(NamedTuple):
    """Queries with two outcomes each, of which the adversary asks whichever tells most.

    Parameters
    ----------
    losses : ndarray of float, shape (2, n_queries)
        log dP/dQ of both outcomes, one at least 0 and one at most 0.
    probabilities : ndarray of float, shape (2, n_queries)
        Their probabilities under P.
    """

    losses: Floats
    probabilities: Floats


def get_widest(won: Floats, lost: Floats) -> Queries:
    """Return the queries with these losses; they tell no less than any with losses in between.

    The outcomes' u = exp(-loss) have mean 1 under P, and moving both away from 1 spreads them, which
    raises the mean of every convex U.
    """
    spread = np.exp(-won) * np.expm1(won - lost)
    p_won, p_lost = np.expm1(-lost) / spread, -np.expm1(-won) / spread
    return Queries(np.stack([won, lost]), np.stack([p_won, p_lost]))


def get_votes(scale: float, *, n_parts: int = 2048) -> Queries:
    """Return all queries that an exponential-mechanism leaf with this Gumbel scale can be.

    One more record of class y multiplies the weight of y by exp(r), r = 1/scale, so only whether y
    wins matters, with losses r - a and -a, a in [0, r] depending on the other counts; a removed
    record gives the same pairs. For a between two neighbours of a partition, the widest pair bounds
    U from above.
    """
    r = 1 / scale
    a = np.linspace(0, r, n_parts + 1)
    return get_widest(r - a[:-1], -a[1:])


def get_threshold_queries(z_p: Floats, z_q: Floats) -> Queries:
    """Return queries that are answered yes with probability Phi(z_p) under P and Phi(z_q) under Q."""
    return Queries(
        np.stack([_get_log_ratio(z_p, z_q), _get_log_ratio(-z_p, -z_q)]),
        np.stack([ndtr(z_p), ndtr(-z_p)]),
    )


def _get_levels(queries: Queries, interval: float) -> Levels:
    """Return offsets and weights of the queries, of groups of them, and of groups of groups."""
    levels = []
    for size in (1, _BRANCHES, _BRANCHES**2):
        one = queries
        if size > 1:
            starts = np.arange(0, queries.losses.shape[1], size)
            won = np.maximum.reduceat(queries.losses.max(axis=0), starts)
            one = get_widest(won, np.minimum.reduceat(queries.losses.min(axis=0), starts))
        first, low = place(one.losses, interval)
        p = one.probabilities * (1 + ROUNDING)
        weights = np.stack([p[0] * low[0], p[0] * (1 - low[0]), p[1] * low[1], p[1] * (1 - low[1])])
        # Groups are skipped only where rounding cannot be what keeps them below.
        levels.append((first, weights * (1 + 1e-9) if size > 1 else weights))
    return tuple(levels)


def ask_answers(
    values: Floats,
    n_queries: int,
    queries: Queries,
    interval: float,
    floor: tuple[int, Floats] = (0, np.zeros(3)),
) -> Floats:
    """Return U before ``n_queries`` queries of which only the answers are released.

    Parameters
    ----------
    values : ndarray of float, shape (n_points,)
        U after them.
    n_queries : int
        Number of queries.
    queries : Queries
        What can be asked each time.
    interval : float
        Distance of two grid points.
    floor : tuple of int and ndarray of float, shape (3,)
        Of the query at the floor: offset of the lower of two neighbouring grid points, the weights of
        both and of certain distinction.
    """
    levels = _get_levels(queries, interval)
    pad = int(max(np.abs(levels[0][0]).max(), abs(floor[0]))) + 2
    asked: Floats = _ask_answers(values, n_queries, pad, interval, levels, *floor)
    return asked
