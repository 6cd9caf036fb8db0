"""Adversaries who choose each query after the last answer, enumerated exactly."""

import functools
import math

import pytest
from scipy.special import ndtr

from lumberjack.accounting import calibrate_paper, calibrate_safe, get_delta_paper


def yes_probability(count, sigma, margin):
    """Algorithm 2 at threshold 1 + margin."""
    return float(ndtr((count - 1 - margin) / sigma)) if count > 0 else 0.0


def spent_delta(strategy, epsilon, sigma, margin):
    """Hockey-stick divergence (record added) of a tree of queries (count, on yes, on no)."""

    def outcomes(node, p, q):
        if node is None:
            return max(0.0, p - math.exp(epsilon) * q)
        count, on_yes, on_no = node
        with_record = yes_probability(count + 1, sigma, margin)
        without = yes_probability(count, sigma, margin)
        return outcomes(on_yes, p * with_record, q * without) + outcomes(
            on_no, p * (1 - with_record), q * (1 - without)
        )

    return outcomes(strategy, 1.0, 1.0)


def worst_delta(epsilon, m, sigma, margin, *, is_added):
    """Largest divergence over all adaptive strategies with m touching queries."""
    counts = range(0, int(margin + 8 * sigma) + 2)
    yes = [yes_probability(count, sigma, margin) for count in range(len(counts) + 1)]

    @functools.cache
    def best(p, q, n_queries):
        value = max(0.0, p - math.exp(epsilon) * q)
        if n_queries == 0:
            return value
        for count in counts:
            first, second = yes[count + 1], yes[count]
            if not is_added:
                first, second = second, first
            value = max(
                value,
                best(p * first, q * second, n_queries - 1)
                + best(p * (1 - first), q * (1 - second), n_queries - 1),
            )
        return value

    return best(1.0, 1.0, m)


def test_the_known_adversary_spends_more_than_theorem_6_admits():
    # Counts 7 -> 8 first; on yes 9 -> 10, on no 0 -> 1.
    epsilon, sigma, margin = 0.5, 4.450, 11.460
    strategy = (7, (9, None, None), (0, None, None))
    assert get_delta_paper(epsilon, 2, sigma, margin) == pytest.approx(1.0004e-2, abs=5e-7)
    assert spent_delta(strategy, epsilon, sigma, margin) == pytest.approx(1.0516e-2, abs=5e-7)


def test_no_adversary_does_better_than_the_known_one_by_more_than_rounding():
    worst = worst_delta(0.5, 2, 4.450, 11.460, is_added=True)
    assert worst == pytest.approx(1.0516e-2, rel=2e-3)
    assert worst >= 1.0516e-2 - 5e-7


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-2), (1.0, 1e-3), (2.0, 0.05), (0.1, 0.1)])
@pytest.mark.parametrize("m", [1, 2])
def test_no_adaptive_adversary_exceeds_delta_under_safe(epsilon, delta, m):
    noise = calibrate_safe(epsilon, delta, m)
    for is_added in (True, False):
        spent = worst_delta(epsilon, m, noise.sigma, noise.margin, is_added=is_added)
        assert spent <= delta


def test_paper_holds_for_a_single_query_and_fails_for_two():
    one, two = calibrate_paper(0.5, 1e-2, 1), calibrate_paper(0.5, 1e-2, 2)
    assert worst_delta(0.5, 1, one.sigma, one.margin, is_added=True) <= 1e-2 * (1 + 1e-12)
    assert worst_delta(0.5, 2, two.sigma, two.margin, is_added=True) > 1.04e-2
