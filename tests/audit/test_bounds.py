"""Lower bounds on epsilon: their confidence, and what they find on mechanisms of known epsilon."""

import math

import numpy as np
import pytest
from scipy import stats

from lumberjack_bench.audit.bounds import bound_from_counts, find_lower_bound, get_p_value


def test_the_p_value_is_that_of_a_sum_over_all_counts():
    n, epsilon, delta, wrong = 12, 0.4, 0.05, 0.05
    counts = np.arange(n + 1)
    further = np.add.outer(counts, -math.exp(epsilon) * counts) >= 9 - math.exp(epsilon) * 3 - 1e-9
    tails = []
    for q in np.linspace(*stats.binomtest(3, n).proportion_ci(1 - 0.02 * wrong), 400):
        p = min(math.exp(epsilon) * q + delta, 1.0)
        chances = np.outer(stats.binom.pmf(counts, n, p), stats.binom.pmf(counts, n, q))
        tails.append(chances[further].sum())
    expected = max(tails) + 0.02 * wrong
    assert get_p_value(9, 3, n, epsilon, delta, wrong) == pytest.approx(expected, rel=1e-3)


def test_the_bound_is_the_largest_epsilon_that_is_refused():
    found = bound_from_counts(700, 200, 1000, 0.01, 0.95)
    assert (found.more, found.less, found.n_runs) == (0.7, 0.2, 1000)
    refused = get_p_value(700, 200, 1000, found.epsilon, 0.01, 0.05)
    kept = get_p_value(700, 200, 1000, found.epsilon + 0.001, 0.01, 0.05)
    assert refused <= 0.05 < kept
    # One limit for each probability loses more.
    least, most = (stats.binomtest(k, 1000).proportion_ci(0.95) for k in (700, 200))
    assert math.log((least.low - 0.01) / most.high) < found.epsilon < math.log(0.69 / 0.2)


@pytest.mark.parametrize(("n_more", "n_less"), [(0, 0), (0, 1000), (1000, 1000), (5, 900), (3, 3)])
def test_events_that_tell_nothing_bound_nothing(n_more, n_less):
    assert bound_from_counts(n_more, n_less, 1000, 0.0, 0.95).epsilon == 0.0


def test_certain_events_give_the_largest_bound_that_the_runs_allow():
    found = bound_from_counts(1000, 0, 1000, 0.0, 0.95).epsilon
    assert found == pytest.approx(math.log(1000 / 3.0), abs=0.02)
    # An event within delta may be certain on one table and impossible on the other.
    assert bound_from_counts(8, 0, 1000, 0.02, 0.95).epsilon == 0.0


def test_bounds_hold_with_their_confidence():
    # Randomised response keeps epsilon = log 3 exactly; a bound above it is an error.
    rng = np.random.default_rng(0)
    counts, times = np.unique(
        rng.binomial(200, [0.75, 0.25], size=(2000, 2)), axis=0, return_counts=True
    )
    is_wrong = [get_p_value(*pair, 200, math.log(3), 0.0, 0.10) <= 0.10 for pair in counts.tolist()]
    assert np.average(is_wrong, weights=times) < 0.10 + 3 * math.sqrt(0.1 * 0.9 / 2000)


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
