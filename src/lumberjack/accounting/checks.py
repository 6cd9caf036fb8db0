"""What the accounting accepts as an argument: one refusal, in one line, for each kind of value.

Each function returns the value, or raises a ``ValueError`` that names it.
"""

from __future__ import annotations

import math
import numbers


def _number(name: str, value: float) -> float:
    """Return the value as a float; refuse what is not a real number or is NaN."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"{name} must be a number, got {value!r}.")
    if math.isnan(value):
        raise ValueError(f"{name} must be a number, got nan.")
    return float(value)


def check_epsilon(epsilon: float) -> float:
    """Return epsilon if it is positive and finite."""
    return check_positive("epsilon", epsilon)


def check_delta(delta: float) -> float:
    """Return delta if it lies strictly between 0 and 1."""
    delta = _number("delta", delta)
    if not 0 < delta < 1:
        raise ValueError(
            f"delta must lie strictly between 0 and 1, got {delta:g};"
            " Gaussian noise gives no guarantee at delta = 0."
        )
    return delta


def check_positive(name: str, value: float) -> float:
    """Return the value if it is positive and finite."""
    value = _number(name, value)
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value:g}.")
    return value


def check_non_negative(name: str, value: float) -> float:
    """Return the value if it is finite and not negative."""
    value = _number(name, value)
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be finite and not negative, got {value:g}.")
    return value


def check_count(name: str, value: int, *, minimum: int = 1) -> int:
    """Return the value if it is an integer of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ValueError(f"{name} must be an integer, got {value!r}.")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}.")
    return int(value)


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    """Return the value if it is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}.")
    return value
