"""Lower bounds on epsilon: their confidence, and what they find on mechanisms of known epsilon."""

import math

import numpy as np
import pytest
from scipy import stats

from lumberjack_bench.audit.bounds import bound_from_counts, find_lower_bound


def test_limits_are_those_of_the_exact_binomial_test():
    found = bound_from_counts(700, 200, 1000, 0.01, 0.95)
    least = stats.binomtest(700, 1000).proportion_ci(0.95).low
    most = stats.binomtest(200, 1000).proportion_ci(0.95).high
    assert found.epsilon == pytest.approx(math.log((least - 0.01) / most), rel=1e-9)
    assert (found.more, found.less, found.n_runs) == (0.7, 0.2, 1000)


@pytest.mark.parametrize(("n_more", "n_less"), [(0, 0), (0, 1000), (1000, 1000), (5, 900), (3, 3)])
def test_events_that_tell_nothing_bound_nothing(n_more, n_less):
    assert bound_from_counts(n_more, n_less, 1000, 0.0, 0.95).epsilon == 0.0


def test_certain_events_give_the_largest_bound_that_the_runs_allow():
    found = bound_from_counts(1000, 0, 1000, 0.0, 0.95).epsilon
    assert found == pytest.approx(math.log(1000 / 3.7), abs=0.02)
    # An event within delta may be certain on one table and impossible on the other.
    assert bound_from_counts(8, 0, 1000, 0.02, 0.95).epsilon == 0.0


def test_bounds_hold_with_their_confidence():
    # Randomised response keeps epsilon = log 3 exactly; a bound above it is an error.
    rng = np.random.default_rng(0)
    wrong = [
        bound_from_counts(*rng.binomial(200, [0.75, 0.25]), 200, 0.0, 0.90).epsilon > math.log(3)
        for _ in range(2000)
    ]
    assert np.mean(wrong) < 0.10 + 3 * math.sqrt(0.1 * 0.9 / 2000)


def noisy(rng, count, scale, n_runs):
    """A count with Laplace noise, among observations that say nothing."""
    return np.column_stack(
        [rng.normal(size=n_runs), count + rng.laplace(scale=scale, size=n_runs), np.ones(n_runs)]
    )


def test_the_laplace_mechanism_is_found_out_up_to_its_epsilon():
    rng = np.random.default_rng(1)
    bounds = []
    for _ in range(5):
        found = find_lower_bound(noisy(rng, 3, 1.0, 6000), noisy(rng, 4, 1.0, 6000), 0.0, 0.95)
        bounds.append(found.epsilon)
    assert np.median(bounds) > 0.7
    assert max(bounds) < 1.0 + 1e-9


@pytest.mark.parametrize(("without", "with_record"), [(3, 4), (4, 3)])
def test_too_little_noise_is_refuted_whether_the_record_raises_or_lowers_a_value(
    without, with_record
):
    rng = np.random.default_rng(2)
    seen = (noisy(rng, count, 0.25, 3000) for count in (without, with_record))
    assert find_lower_bound(*seen, 0.0, 0.95).epsilon > 2.0


def test_equal_laws_give_no_bound():
    rng = np.random.default_rng(4)
    for _ in range(20):
        found = find_lower_bound(noisy(rng, 3, 1.0, 600), noisy(rng, 3, 1.0, 600), 0.0, 0.999)
        assert found.epsilon == 0.0
