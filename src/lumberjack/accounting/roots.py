"""The largest argument that keeps an increasing function within a limit.

Every calibration of this package is such a question, and every answer is rounded to the private
side: the value returned has been evaluated and found within the limit.

``scipy.optimize.elementwise`` needs a third of the evaluations and was rejected: its roots are equal to
these to 4e-16, but half of them lie beyond the limit, and of 40 settings of ``gaussian.get_mu`` it
found the same number at 10 (25 after a walk to the last float within). Seeded noise would change.
"""

from __future__ import annotations

import math
from collections.abc import Callable


def largest_within(
    function: Callable[[float], float],
    limit: float,
    *,
    start: float = 1.0,
    relative_tolerance: float = 4e-16,
) -> float:
    """Return the largest positive argument at which an increasing function is within the limit.

    Parameters
    ----------
    function : callable
        Non-decreasing on the positive numbers.
    limit : float
        What the function must not exceed.
    start : float, default=1.0
        Where the search begins.
    relative_tolerance : float, default=4e-16
        Relative distance at which the two sides of the answer count as one.

    Returns
    -------
    float
        An argument at which ``function`` is at most ``limit``, within the tolerance of the largest.

    Raises
    ------
    ArithmeticError
        If the function is within the limit everywhere or nowhere on the positive numbers.
    """
    lower, upper = _bracket(function, limit, start)
    # The false-position step (with the Illinois halving of a stagnant end) needs few evaluations;
    # the bisection in between bounds their number whatever the shape of the function.
    value_lower, value_upper = function(lower) - limit, function(upper) - limit
    for step in range(200):
        if upper - lower <= relative_tolerance * upper:
            break
        middle = math.sqrt(lower) * math.sqrt(upper)
        if step % 3 and math.isfinite(value_upper) and value_upper > value_lower:
            middle = lower - value_lower * (upper - lower) / (value_upper - value_lower)
        if not lower < middle < upper:
            middle = lower + (upper - lower) / 2
        if not lower < middle < upper:
            break
        value = function(middle) - limit
        if value <= 0:
            lower, value_lower, value_upper = middle, value, value_upper / 2
        else:
            upper, value_upper, value_lower = middle, value, value_lower / 2
    return lower


def smallest_within(
    function: Callable[[float], float],
    limit: float,
    *,
    start: float = 1.0,
    relative_tolerance: float = 4e-16,
) -> float:
    """Return the smallest positive argument at which a decreasing function is within the limit.

    Parameters
    ----------
    function : callable
        Non-increasing on the positive numbers.
    limit, start, relative_tolerance
        As for :func:`largest_within`.
    """
    seen: dict[float, float] = {}

    def of_inverse(inverse: float) -> float:
        argument = 1 / inverse
        seen[inverse] = argument
        return function(argument)

    best = largest_within(of_inverse, limit, start=1 / start, relative_tolerance=relative_tolerance)
    return seen[best]


def _bracket(function: Callable[[float], float], limit: float, start: float) -> tuple[float, float]:
    """Return two arguments, the first within the limit and the second beyond it."""
    factor, lower, upper = 2.0, start, start
    if function(start) <= limit:
        while function(upper) <= limit:
            lower, upper, factor = upper, upper * factor, min(factor * factor, 65536.0)
            if math.isinf(upper):
                raise ArithmeticError(f"the limit {limit:g} is never exceeded.")
    else:
        while not function(lower) <= limit:
            lower, upper, factor = lower / factor, lower, min(factor * factor, 65536.0)
            if lower == 0:
                raise ArithmeticError(f"the limit {limit:g} is exceeded everywhere.")
    return lower, upper
