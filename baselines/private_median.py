"""The private median of a column: a threshold by the exponential mechanism, compiled.

The sorted values cut the public range into intervals. An interval is drawn with a weight of its
width times exp(-exponent * |N_left - N_right|), then a point uniformly inside it. The difference
has sensitivity 1 and is not monotone: half the budget as the exponent is a budget's worth of
privacy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lumberjack.compiled import compiled


@compiled(nogil=True)
def draw_private_median(
    values: NDArray[np.float64],
    counts: NDArray[np.int64],
    lower: float,
    upper: float,
    exponent: float,
    weights: NDArray[np.float64],
    noise: np.random.Generator,
) -> tuple[float, int]:
    """Draw a threshold; return it and how many of the distinct values lie left of it.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        Distinct and sorted, within the bounds.
    counts : ndarray of shape (n_values,), int64
        How often each value occurs.
    lower, upper : float
        Public bounds.
    exponent : float
        Weight of the balance.
    weights : ndarray of shape (at least n_values + 1,)
        Room to work in.
    noise : numpy.random.Generator
        Source of the draw.
    """
    n_values = len(values)
    _write_log_weights(values, counts, lower, upper, exponent, weights)
    largest = weights[: n_values + 1].max()
    place = noise.random()
    within = noise.random()
    if largest == -np.inf:
        return lower, n_values
    total = 0.0
    for i in range(n_values + 1):
        weights[i] = np.exp(weights[i] - largest)
        total += weights[i]
    place *= total
    chosen = n_values
    for i in range(n_values + 1):
        if place < weights[i]:
            chosen = i
            break
        place -= weights[i]
    # Rounding may run past the last interval of positive width.
    while weights[chosen] == 0.0:
        chosen -= 1
    start = lower if chosen == 0 else values[chosen - 1]
    end = upper if chosen == n_values else values[chosen]
    return start + within * (end - start), chosen


@compiled(nogil=True)
def _write_log_weights(
    values: NDArray[np.float64],
    counts: NDArray[np.int64],
    lower: float,
    upper: float,
    exponent: float,
    log_weights: NDArray[np.float64],
) -> None:
    n_values = len(values)
    n_records = 0
    for i in range(n_values):
        n_records += counts[i]
    n_left = 0
    start = lower
    for i in range(n_values + 1):
        end = values[i] if i < n_values else upper
        width = end - start
        if width > 0:
            log_weights[i] = np.log(width) - exponent * abs(2 * n_left - n_records)
        else:
            log_weights[i] = -np.inf
        if i < n_values:
            n_left += counts[i]
            start = end
