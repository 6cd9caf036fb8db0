"""The searches under every calibration."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumberjack.accounting.roots import largest_within, smallest_within


@settings(deadline=None)
@given(limit=st.floats(1e-30, 1e30), start=st.floats(1e-8, 1e8), power=st.sampled_from([0.3, 1, 4]))
def test_both_searches_find_the_root_of_a_power_and_stay_within_the_limit(limit, start, power):
    root = limit ** (1 / power)
    largest = largest_within(lambda x: x**power, limit, start=start)
    assert largest**power <= limit
    assert largest == pytest.approx(root, rel=1e-12)
    smallest = smallest_within(lambda x: x**-power, 1 / limit, start=start)
    assert smallest**-power <= 1 / limit
    assert smallest == pytest.approx(root, rel=1e-12)


def test_a_step_is_found_to_the_last_digits():
    assert largest_within(lambda x: float(x > math.pi), 0.5) == pytest.approx(math.pi, rel=1e-15)
    assert largest_within(lambda x: float(x > math.pi), 0.5) <= math.pi


def test_limits_that_are_never_or_always_exceeded_are_refused():
    with pytest.raises(ArithmeticError, match="the limit 2 is never exceeded"):
        largest_within(lambda x: 1.0, 2.0)
    with pytest.raises(ArithmeticError, match="the limit 2 is exceeded everywhere"):
        largest_within(lambda x: 3.0, 2.0)
