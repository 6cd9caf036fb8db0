"""Lemma 14 against a reference table, high precision, integration and dp-accounting."""

import math

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from lumberjack.accounting import gaussian


def exact_delta(epsilon, mu):
    """Lemma 14 with 60 digits."""
    with mpmath.workdps(60):
        e, width = mpmath.mpf(float(epsilon)), mpmath.mpf(float(mu))

        def distribution(x):
            return mpmath.erfc(-x / mpmath.sqrt(2)) / 2

        return distribution(width / 2 - e / width) - mpmath.exp(e) * distribution(
            -width / 2 - e / width
        )


MU_ROOTS = {
    (0.375, 7.5e-7): 0.093383992,
    (0.75, 7.5e-7): 0.178590369,
    (1.5, 7.5e-7): 0.339865360,
    (3, 7.5e-7): 0.640135233,
    (6, 7.5e-7): 1.184038392,
    (1, 1e-6): 0.236704381,
    (1, 1e-5): 0.268051123,
    (8, 1e-6): 1.531545118,
}


@pytest.mark.parametrize(("target", "mu"), MU_ROOTS.items())
def test_mu_roots_equal_the_reference_table(target, mu):
    assert gaussian.get_mu(*target) == pytest.approx(mu, abs=5.1e-10)


@pytest.mark.parametrize("target", MU_ROOTS)
def test_mu_roots_satisfy_lemma_14_in_high_precision(target):
    epsilon, delta = target
    assert float(exact_delta(epsilon, gaussian.get_mu(epsilon, delta))) == pytest.approx(
        delta, rel=1e-12
    )


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.375, 7.5e-7), (6, 7.5e-7)])
def test_sigma_agrees_with_dp_accounting(epsilon, delta):
    assert 1 / gaussian.get_mu(epsilon, delta) == pytest.approx(
        dp_accounting.get_sigma_gaussian(epsilon, delta, tol=1e-10), rel=1e-9
    )


@pytest.mark.parametrize(("delta", "mu"), [(1e-6, 0.25), (1e-9, 1.0), (1e-3, 0.1)])
def test_epsilon_agrees_with_dp_accounting(delta, mu):
    assert gaussian.get_epsilon(delta, mu) == pytest.approx(
        dp_accounting.get_epsilon_gaussian(1 / mu, delta, tol=1e-10), abs=2e-10
    )


def test_composition_agrees_with_a_privacy_loss_distribution():
    # 210 releases at sigma 81.14 and 30 at sigma 50 have mu^2 = 210/81.14^2 + 30/50^2.
    loss = privacy_loss_distribution.from_gaussian_mechanism(
        81.14, sensitivity=math.sqrt(210), value_discretization_interval=1e-4
    ).compose(
        privacy_loss_distribution.from_gaussian_mechanism(
            50.0, sensitivity=math.sqrt(30), value_discretization_interval=1e-4
        )
    )
    mu = math.hypot(math.sqrt(210) / 81.14, math.sqrt(30) / 50)
    for epsilon in (0.5, 0.9, 1.2):
        assert loss.get_delta_for_epsilon(epsilon) == pytest.approx(
            gaussian.get_delta(epsilon, mu), rel=2e-3
        )


@pytest.mark.parametrize(("epsilon", "mu"), [(1.0, 0.3), (0.0, 0.5), (-0.7, 0.4), (6.0, 1.2)])
def test_delta_is_the_integral_of_the_privacy_loss(epsilon, mu):
    # Under P the loss is N(mu^2/2, mu^2); delta = E max(0, 1 - exp(epsilon - loss)).
    def integrand(z):
        loss = mu * mu / 2 + mu * z
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        return density * max(0.0, -math.expm1(epsilon - loss))

    corner = (epsilon - mu * mu / 2) / mu
    value, _ = quad(integrand, max(corner, -38), max(corner, -38) + 50, epsabs=0, epsrel=1e-11)
    assert gaussian.get_delta(epsilon, mu) == pytest.approx(value, rel=1e-9)


def test_delta_keeps_its_digits_from_tiny_to_huge_mu():
    generator = np.random.default_rng(20240501)
    for _ in range(1500):
        mu = 10 ** generator.uniform(-9, 2.5)
        epsilon = mu * generator.uniform(-5, 37) * generator.choice([1, 1e-3, 1e-6])
        exact = exact_delta(epsilon, mu)
        if exact > 1e-300:
            assert abs(float((gaussian.get_delta(epsilon, mu) - exact) / exact)) < 1e-12


def test_delta_at_the_ends_of_its_range():
    assert gaussian.get_delta(1.0, 0.0) == 0.0
    assert gaussian.get_delta(0.0, 0.0) == 0.0
    assert gaussian.get_delta(-1.0, 0.0) == pytest.approx(1 - math.exp(-1), rel=1e-15)
    assert gaussian.get_delta(3.0, math.inf) == 1.0
    assert gaussian.get_delta(math.inf, 2.0) == 0.0
    assert gaussian.get_delta(-math.inf, 2.0) == 1.0
    assert gaussian.get_delta(1000.0, 1.0) == 0.0
    assert gaussian.get_delta(800.0, 60.0) == pytest.approx(float(exact_delta(800, 60)), rel=1e-12)


def test_delta_broadcasts_over_arrays():
    table = gaussian.get_delta(np.array([[0.5], [1.0]]), np.array([0.0, 0.2, 1.0]))
    assert table.shape == (2, 3)
    for i, epsilon in enumerate((0.5, 1.0)):
        for j, mu in enumerate((0.0, 0.2, 1.0)):
            assert table[i, j] == gaussian.get_delta(epsilon, mu)


small_deltas = st.floats(-12, -0.2).map(lambda x: 10**x)


@settings(deadline=None, max_examples=60)
@given(epsilon=st.floats(0, 20), delta=small_deltas)
def test_mu_is_the_largest_that_stays_within_delta(epsilon, delta):
    mu = gaussian.get_mu(epsilon, delta)
    assert gaussian.get_delta(epsilon, mu) <= delta
    assert gaussian.get_delta(epsilon, mu * (1 + 1e-9)) > delta


@settings(deadline=None, max_examples=60)
@given(mu=st.floats(1e-3, 8), delta=small_deltas)
def test_epsilon_is_the_smallest_that_stays_within_delta(mu, delta):
    epsilon = gaussian.get_epsilon(delta, mu)
    assert gaussian.get_delta(epsilon, mu) <= delta
    if epsilon > 1e-6:
        assert gaussian.get_delta(epsilon * (1 - 1e-8), mu) > delta
        assert gaussian.get_mu(epsilon, delta) == pytest.approx(mu, rel=1e-8)


@settings(deadline=None, max_examples=100)
@given(epsilon=st.floats(-5, 20), mu=st.floats(0, 10), more=st.floats(1.0001, 3))
def test_delta_falls_with_epsilon_and_rises_with_mu(epsilon, mu, more):
    delta = gaussian.get_delta(epsilon, mu)
    assert 0 <= delta <= 1
    assert gaussian.get_delta(epsilon + more, mu) <= delta
    assert gaussian.get_delta(epsilon, mu * more) >= delta


def test_epsilon_is_zero_where_delta_already_covers_everything():
    assert gaussian.get_epsilon(0.5, 0.1) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gaussian.get_mu(-1, 1e-6), "epsilon must be finite and not negative, got -1"),
        (lambda: gaussian.get_mu(math.nan, 1e-6), "epsilon must be a number, got nan"),
        (lambda: gaussian.get_mu(1, 1), "delta must lie strictly between 0 and 1, got 1"),
        (lambda: gaussian.get_epsilon(1e-6, -0.1), "mu must be finite and not negative, got -0.1"),
        (lambda: gaussian.get_delta(1.0, -0.1), "mu must not be negative, got -0.1"),
        (lambda: gaussian.get_delta(math.nan, 0.1), "epsilon must be a number, got nan"),
    ],
)
def test_impossible_arguments_are_refused_in_one_line(call, message):
    with pytest.raises(ValueError, match=message) as refusal:
        call()
    assert "\n" not in str(refusal.value)
