"""Lemma 9 and the leaf mechanisms' scales."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from lumberjack.accounting import gaussian, zcdp

# (epsilon of the leaves, rho, Gumbel scale of one of 30 trees, standard deviation of one of 30)
LEAVES = [
    (0.125, 0.000385155, 98.672932, 197.345863),
    (0.25, 0.001442622, 50.984647, 101.969295),
    (0.5, 0.005397983, 26.357238, 52.714475),
    (1, 0.020097828, 13.659697, 27.319394),
    (2, 0.073956201, 7.120793, 14.241585),
]


@pytest.mark.parametrize(("epsilon", "rho", "gumbel_scale", "sigma"), LEAVES)
def test_rho_and_scales_equal_the_reference_table(epsilon, rho, gumbel_scale, sigma):
    found = zcdp.get_rho(epsilon, 2.5e-7)
    assert found == pytest.approx(rho, abs=5.1e-10)
    assert zcdp.get_gumbel_scale(found / 30) == pytest.approx(gumbel_scale, abs=5.1e-7)
    assert zcdp.get_gaussian_sigma(found / 30) == pytest.approx(sigma, abs=5.1e-7)


@pytest.mark.parametrize("epsilon", [row[0] for row in LEAVES])
def test_rho_satisfies_lemma_9_in_high_precision(epsilon):
    rho = mpmath.mpf(zcdp.get_rho(epsilon, 2.5e-7))
    with mpmath.workdps(50):
        gap = (epsilon - rho) / (2 * rho)
        delta = (2 * mpmath.exp(-((epsilon - rho) ** 2) / (4 * rho))) / (
            1 + gap + mpmath.sqrt((1 + gap) ** 2 + 4 / (mpmath.pi * rho))
        )
    assert float(delta) == pytest.approx(2.5e-7, rel=1e-12)


@pytest.mark.parametrize("epsilon", [row[0] for row in LEAVES])
def test_lemma_9_lies_between_the_best_renyi_conversion_and_the_simple_one(epsilon):
    rho = zcdp.get_rho(epsilon, 2.5e-7)
    orders = 1 + np.geomspace(1e-2, 1e4, 4000)
    best, _ = rdp_privacy_accountant.compute_delta(orders, rho * orders, epsilon)
    simple = math.exp(-((epsilon - rho) ** 2) / (4 * rho))
    assert best <= 2.5e-7 <= simple
    # A good bound, not just a bound: the best conversion is smaller by less than a factor of 3.
    assert best > 2.5e-7 / 3


@pytest.mark.parametrize("epsilon", [row[0] for row in LEAVES])
def test_lemma_9_covers_the_exact_gaussian_mechanism(epsilon):
    rho = zcdp.get_rho(epsilon, 2.5e-7)
    assert gaussian.get_delta(epsilon, math.sqrt(2 * rho)) < 2.5e-7


def renyi_divergence(p, q, order):
    return logsumexp(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1)


def test_gumbel_noise_on_counts_is_rho_zcdp_and_nearly_no_better():
    # argmax(count + Gumbel(s)) has the law softmax(count / s), so divergences can be summed.
    rho = 0.02
    scale = zcdp.get_gumbel_scale(rho)
    generator = np.random.default_rng(7)
    largest = 0.0
    for _ in range(400):
        n_classes = generator.integers(2, 7)
        counts = generator.uniform(-6, 6, n_classes) * scale
        weights = np.exp(counts / scale)
        heavier = weights.copy()
        heavier[generator.integers(n_classes)] *= math.exp(1 / scale)
        p, q = weights / weights.sum(), heavier / heavier.sum()
        for order in (1.0001, 1.5, 2, 5, 20, 100):
            for first, second in ((p, q), (q, p)):
                largest = max(largest, renyi_divergence(first, second, order) / order)
    assert 0.97 * rho < largest <= rho * (1 + 1e-9)


def test_gaussian_noise_on_counts_is_rho_zcdp_exactly():
    # D_alpha(N(1, s^2) || N(0, s^2)) = alpha / (2 s^2).
    rho = 0.02
    assert 1 / (2 * zcdp.get_gaussian_sigma(rho) ** 2) == pytest.approx(rho, rel=1e-15)


@settings(deadline=None, max_examples=80)
@given(epsilon=st.floats(1e-3, 30), delta=st.floats(-12, -0.1).map(lambda x: 10**x))
def test_rho_is_the_largest_that_stays_within_delta(epsilon, delta):
    rho = zcdp.get_rho(epsilon, delta)
    assert zcdp.get_delta(epsilon, rho) <= delta
    assert rho <= epsilon
    if rho < epsilon:
        assert zcdp.get_delta(epsilon, min(epsilon, rho * (1 + 1e-9))) > delta
        assert zcdp.get_delta(epsilon * (1 - 1e-8), rho) > delta


@settings(deadline=None, max_examples=80)
@given(epsilon=st.floats(1e-2, 20), rho=st.floats(1e-5, 20), more=st.floats(1.001, 2))
def test_delta_rises_with_rho_and_falls_with_epsilon(epsilon, rho, more):
    delta = zcdp.get_delta(epsilon, rho)
    assert zcdp.get_delta(epsilon, rho * more) >= delta
    assert zcdp.get_delta(epsilon * more, rho) <= delta


def test_nothing_is_claimed_where_lemma_9_does_not_speak():
    assert zcdp.get_delta(1.0, 1.5) == 1.0
    assert zcdp.get_rho(1.0, 0.9) == 1.0


def test_impossible_arguments_are_refused():
    with pytest.raises(ValueError, match="epsilon must be positive and finite, got inf"):
        zcdp.get_rho(math.inf, 1e-6)
    with pytest.raises(ValueError, match="rho must be positive and finite, got -2"):
        zcdp.get_gumbel_scale(-2)
