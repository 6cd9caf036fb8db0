"""Theorem 6, Lemmas 3, 5 and 16 and the calibrations."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm

from lumberjack.accounting import (
    Structure,
    ThresholdNoise,
    calibrate_paper,
    calibrate_safe,
    gaussian,
    get_delta_joint_parts,
    get_delta_paper,
    get_delta_paper_parts,
    get_delta_safe,
    get_error_bound,
    get_n_queries_per_record,
    sparse_threshold,
)

# epsilon, m, sigma, margin, delta, its three parts
THEOREM_6 = [
    (1, 7, 10, 50, 8.03202080e-06, (2.006559e-06, 8.032021e-06, 8.032021e-06)),
    (0.5, 7, 20, 100, 3.14624345e-06, (2.006559e-06, 3.146243e-06, 3.146243e-06)),
    (1.5, 210, 42.64, 246.77, 7.51080281e-07, (7.510803e-07, 7.494456e-07, 7.494456e-07)),
    (2, 4, 3, 12, 6.60029696e-04, (1.266789e-04, 6.600297e-04, 6.600297e-04)),
    (3, 1, 2, 9, 3.39767312e-06, (3.397673e-06, 3.400912e-10, 3.400912e-10)),
]

# trees, m, epsilon of the whole forest, sigma, margin; the structure gets 3/4 of (epsilon, 1e-6)
PAPER_SETTINGS = [
    (30, 210, 0.5, 155.180523, 898.112057),
    (30, 210, 1, 81.143103, 469.618208),
    (30, 210, 2, 42.638581, 246.772101),
    (30, 210, 4, 22.637993, 131.018080),
    (30, 210, 8, 12.238942, 70.833251),
    (50, 350, 0.5, 200.337194, 1176.534366),
    (50, 350, 1, 104.755296, 615.203812),
    (50, 350, 2, 55.046172, 323.273533),
    (50, 350, 4, 29.225523, 171.634789),
    (50, 350, 8, 15.800406, 92.792156),
]


@pytest.mark.parametrize(("epsilon", "m", "sigma", "margin", "delta", "parts"), THEOREM_6)
def test_theorem_6_equals_the_reference_table(epsilon, m, sigma, margin, delta, parts):
    found = get_delta_paper_parts(epsilon, m, sigma, margin)
    assert (found.delta_inf, found.added, found.removed) == pytest.approx(parts, rel=5e-7)
    assert get_delta_paper(epsilon, m, sigma, margin) == pytest.approx(delta, rel=2e-9)


def exact_theorem_6(epsilon, m, sigma, margin):
    """The formula as printed, with 60 digits."""
    with mpmath.workdps(60):

        def distribution(x):
            return mpmath.erfc(-x / mpmath.sqrt(2)) / 2

        def g(e, j):
            mu = mpmath.sqrt(j) / sigma
            return distribution(mu / 2 - e / mu) - mpmath.exp(e) * distribution(-mu / 2 - e / mu)

        epsilon, sigma, margin = mpmath.mpf(epsilon), mpmath.mpf(sigma), mpmath.mpf(margin)
        p = distribution(margin / sigma)
        added = max(
            1 - p ** (m - j) + p ** (m - j) * g(epsilon - (m - j) * mpmath.log(p), j)
            for j in range(1, m + 1)
        )
        removed = max(g(epsilon + (m - j) * mpmath.log(p), j) for j in range(1, m + 1))
        return 1 - p**m, added, removed


@pytest.mark.parametrize(
    ("epsilon", "m", "sigma", "margin"),
    [row[:4] for row in THEOREM_6]
    + [(1, 12, 60, 480), (0.1, 30, 400, 2600), (8, 5, 2, 3), (0.5, 40, 8, 40)],
)
def test_theorem_6_agrees_with_high_precision(epsilon, m, sigma, margin):
    found = get_delta_paper_parts(epsilon, m, sigma, margin)
    exact = exact_theorem_6(epsilon, m, sigma, margin)
    for ours, theirs in zip((found.delta_inf, found.added, found.removed), exact, strict=True):
        assert ours == pytest.approx(float(theirs), rel=1e-11)


def mixed_delta_by_integration(epsilon, n_steps, n_gaussian, sigma, margin, *, is_added):
    """Hockey-stick divergence of n_steps 0-to-1 queries and n_gaussian noisy counts."""
    log_p = n_steps * float(log_ndtr(margin / sigma))
    mu = math.sqrt(n_gaussian) / sigma
    shift = log_p if is_added else -log_p

    def integrand(z):
        loss = shift + mu * mu / 2 + mu * z
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        return density * max(0.0, -math.expm1(epsilon - loss))

    corner = (epsilon - shift - mu * mu / 2) / mu
    value, _ = quad(integrand, max(corner, -38), max(corner, -38) + 40, epsabs=0, epsrel=1e-10)
    if is_added:  # some step shows, which the smaller data set cannot produce, or none does
        return -math.expm1(log_p) + math.exp(log_p) * value
    return value


@pytest.mark.parametrize(("epsilon", "m", "sigma", "margin"), [row[:4] for row in THEOREM_6[:4]])
def test_theorem_6_is_the_integral_of_the_mixed_privacy_losses(epsilon, m, sigma, margin):
    found = get_delta_paper_parts(epsilon, m, sigma, margin)
    for is_added, part in ((True, found.added), (False, found.removed)):
        values = [
            mixed_delta_by_integration(epsilon, m - j, j, sigma, margin, is_added=is_added)
            for j in range(1, m + 1)
        ]
        assert part == pytest.approx(max(values), rel=1e-8)


def test_a_mixed_pattern_agrees_with_a_composed_privacy_loss_distribution():
    # Two 0-to-1 queries and five Gaussian ones at sigma 10, margin 45, composed by dp-accounting.
    epsilon, m, j, sigma, margin = 1.0, 7, 5, 10.0, 45.0
    log_q, log_p = float(log_ndtr(-margin / sigma)), float(log_ndtr(margin / sigma))
    step = privacy_loss_distribution.from_two_probability_mass_functions(
        log_probability_mass_function_lower={"no": 0.0},
        log_probability_mass_function_upper={"no": log_p, "yes": log_q},
        value_discretization_interval=1e-5,
    )
    loss = step.self_compose(m - j).compose(
        privacy_loss_distribution.from_gaussian_mechanism(
            sigma, sensitivity=math.sqrt(j), value_discretization_interval=1e-5
        )
    )
    by_formula = max(
        mixed_delta_by_integration(epsilon, m - j, j, sigma, margin, is_added=True),
        mixed_delta_by_integration(epsilon, m - j, j, sigma, margin, is_added=False),
    )
    assert loss.get_delta_for_epsilon(epsilon) == pytest.approx(by_formula, rel=1e-3)


@pytest.mark.parametrize(("k", "m", "epsilon", "sigma", "margin"), PAPER_SETTINGS)
def test_paper_calibration_equals_the_reference_table(k, m, epsilon, sigma, margin):
    assert m == k * get_n_queries_per_record(100)
    noise = calibrate_paper(0.75 * epsilon, 7.5e-7, m)
    assert noise.sigma == pytest.approx(sigma, abs=5.1e-7)
    assert noise.margin == pytest.approx(margin, abs=5.1e-7)
    assert noise.threshold == 1 + noise.margin


@pytest.mark.parametrize(("k", "m", "epsilon", "sigma", "margin"), PAPER_SETTINGS)
def test_both_pure_parts_are_tight_at_the_paper_settings(k, m, epsilon, sigma, margin):
    noise = calibrate_paper(0.75 * epsilon, 7.5e-7, m)
    parts = get_delta_paper_parts(0.75 * epsilon, m, noise.sigma, noise.margin)
    assert parts.delta_inf == pytest.approx(7.5e-7, rel=1e-10)
    assert gaussian.get_delta(0.75 * epsilon, math.sqrt(m) / noise.sigma) == pytest.approx(
        7.5e-7, rel=1e-10
    )


def safe_parts(epsilon, m, sigma, margin):
    return get_delta_joint_parts(epsilon, Structure("structure", m, scale=sigma, margin=margin))


@pytest.mark.parametrize(
    ("m", "sigma", "margin", "epsilon", "gaussian_part", "step_part"),
    [
        (7, 10, 50, 1, 8.032021e-06, 2.006559e-06),
        (210, 90, 520, 0.75, 7.398662e-08, 7.947834e-07),
    ],
)
def test_lemma_16_equals_the_reference(m, sigma, margin, epsilon, gaussian_part, step_part):
    parts = safe_parts(epsilon, m, sigma, margin)
    assert parts.delta_gauss == pytest.approx(gaussian_part, rel=5e-7)
    assert parts.delta_inf == pytest.approx(step_part, rel=5e-7)
    assert get_delta_safe(epsilon, m, sigma, margin) == parts.delta_gauss + parts.delta_inf
    # Second way: dp-accounting for the Gaussian part, a binomial tail for the steps.
    loss = privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sensitivity=math.sqrt(m), value_discretization_interval=1e-4
    )
    assert parts.delta_gauss == pytest.approx(loss.get_delta_for_epsilon(epsilon), rel=2e-3)
    assert parts.delta_inf == pytest.approx(m * norm.sf(margin / sigma), rel=1e-5)


def answer_probabilities(counts, sigma, margin, *, is_two_sided):
    """Probability of yes at threshold 1 + margin; counts up to 0 are rejected without noise."""
    threshold = 1 + margin
    counts = np.asarray(counts, dtype=float)
    yes = np.where(counts > 0, ndtr((counts - threshold) / sigma), 0.0)
    return np.where(counts >= threshold + margin + 1, 1.0, yes) if is_two_sided else yes


@pytest.mark.parametrize("is_two_sided", [False, True])
@pytest.mark.parametrize(("m", "sigma", "margin"), [(1, 2.0, 5.0), (2, 2.5, 5.5), (3, 1.5, 3.25)])
def test_enumerated_answers_stay_within_the_bounds(m, sigma, margin, is_two_sided):
    # Every vector of counts (0 to past the ceiling), every vector of answers, both directions.
    epsilon = 0.8
    smaller = np.arange(0, int(2 * margin) + 5)
    no_or_yes = [
        np.stack([1 - yes, yes])
        for yes in (
            answer_probabilities(smaller, sigma, margin, is_two_sided=is_two_sided),
            answer_probabilities(smaller + 1, sigma, margin, is_two_sided=is_two_sided),
        )
    ]
    worst = 0.0
    for chosen in itertools.combinations_with_replacement(smaller, m):
        without, with_record = np.ones(1), np.ones(1)
        for count in chosen:
            without = np.outer(without, no_or_yes[0][:, count]).ravel()
            with_record = np.outer(with_record, no_or_yes[1][:, count]).ravel()
        for p, q in ((with_record, without), (without, with_record)):
            worst = max(worst, np.maximum(0, p - math.exp(epsilon) * q).sum())
    if is_two_sided:
        assert worst <= get_delta_safe(epsilon, m, sigma, margin)
    else:
        assert worst <= get_delta_paper(epsilon, m, sigma, margin) * (1 + 1e-12)
        # 0-to-1 queries alone already reach the first part.
        assert worst >= get_delta_paper_parts(epsilon, m, sigma, margin).delta_inf * (1 - 1e-9)


def test_lowering_the_threshold_below_the_raised_floor_spends_more_than_delta():
    # A floor that rejects counts up to 2 with the threshold left at margin: a count going from 2 to
    # 3 is answered yes with probability Phi(-(margin - 3)/sigma). On Adult at eps 8 (30 trees).
    noise = calibrate_paper(6.0, 7.5e-7, 210)
    lowered = noise.margin - 3  # the threshold less 3, the smallest count that is not rejected
    spent = get_delta_paper(6.0, 210, noise.sigma, lowered)
    assert spent / 7.5e-7 == pytest.approx(4.2, abs=0.05)
    # The same by hand: 210 such nodes, at least one yes.
    by_hand = -math.expm1(210 * norm.logcdf((noise.margin - 3) / noise.sigma))
    assert by_hand > 4 * 7.5e-7
    assert spent >= by_hand * (1 - 1e-12)


@pytest.mark.parametrize(("k", "m", "epsilon", "sigma", "margin"), PAPER_SETTINGS)
def test_safe_needs_only_a_few_percent_more_noise_than_paper(k, m, epsilon, sigma, margin):
    noise = calibrate_safe(0.75 * epsilon, 7.5e-7, m)
    assert 1.015 < noise.sigma / sigma < 1.028
    assert 1.03 < noise.margin / margin < 1.06
    parts = safe_parts(0.75 * epsilon, m, noise.sigma, noise.margin)
    assert parts.delta_gauss == pytest.approx(0.6 * 7.5e-7, rel=1e-10)
    assert parts.delta_inf == pytest.approx(0.4 * 7.5e-7, rel=1e-10)


def test_safe_covers_removal_as_computed_by_its_own_formula():
    # Removal alone satisfies G(eps + m log p, mu); the sum is never smaller at calibrated noise.
    for epsilon, delta, m in [(0.375, 7.5e-7, 210), (6, 7.5e-7, 350), (0.5, 1e-2, 2), (3, 0.1, 5)]:
        noise = calibrate_safe(epsilon, delta, m)
        shift = m * float(log_ndtr(noise.margin / noise.sigma))
        assert gaussian.get_delta(epsilon + shift, math.sqrt(m) / noise.sigma) <= delta


budgets = {
    "epsilon": st.floats(0.02, 12),
    "delta": st.floats(-12, -0.5).map(lambda x: 10**x),
    "m": st.integers(1, 600),
}


@settings(deadline=None, max_examples=60)
@given(**budgets)
def test_calibrated_noise_satisfies_its_own_accounting(epsilon, delta, m):
    noise = calibrate_paper(epsilon, delta, m)
    assert get_delta_paper(epsilon, m, noise.sigma, noise.margin) <= delta
    safe = calibrate_safe(epsilon, delta, m)
    assert get_delta_safe(epsilon, m, safe.sigma, safe.margin) <= delta
    assert safe.sigma >= noise.sigma * (1 - 1e-6) or safe.margin >= noise.margin


@settings(deadline=None, max_examples=60)
@given(**budgets)
def test_paper_calibration_wastes_nothing(epsilon, delta, m):
    noise = calibrate_paper(epsilon, delta, m)
    shrunk = ThresholdNoise(noise.sigma * (1 - 1e-6), noise.margin * (1 - 1e-6))
    assert (
        get_delta_paper(epsilon, m, noise.sigma, noise.margin * (1 - 1e-5)) > delta
        or get_delta_paper(epsilon, m, shrunk.sigma, shrunk.margin) > delta
    )


@settings(deadline=None, max_examples=60)
@given(**budgets)
def test_mixed_parts_follow_from_the_two_pure_ones(epsilon, delta, m):
    sigma = math.sqrt(m) / gaussian.get_mu(epsilon, delta)
    ratio = norm.isf(-math.expm1(math.log1p(-delta) / m))
    if ratio > 0:
        parts = get_delta_paper_parts(epsilon, m, sigma, ratio * sigma)
        assert max(parts.added, parts.removed) <= delta * (1 + 1e-9)


def test_too_little_noise_is_raised_until_theorem_6_holds_and_no_further():
    little = ThresholdNoise(sigma=8.0, margin=30.0)
    assert get_delta_paper(1.0, 7, little.sigma, little.margin) > 1e-6
    raised = sparse_threshold._raised_for_theorem_6(1.0, 1e-6, 7, little)
    assert raised.sigma > little.sigma
    assert raised.margin / raised.sigma > little.margin / little.sigma
    assert get_delta_paper(1.0, 7, raised.sigma, raised.margin) == pytest.approx(1e-6, rel=1e-9)
    assert get_delta_paper(1.0, 7, raised.sigma, raised.margin) <= 1e-6


@settings(deadline=None, max_examples=80)
@given(
    epsilon=st.floats(0.05, 10),
    m=st.integers(1, 300),
    sigma=st.floats(0.5, 300),
    ratio=st.floats(0, 9),
    more=st.floats(1.001, 2),
)
def test_delta_is_monotone_in_every_argument(epsilon, m, sigma, ratio, more):
    margin = ratio * sigma
    for get_delta in (get_delta_paper, get_delta_safe):
        delta = get_delta(epsilon, m, sigma, margin)
        slack = 1 + 1e-12
        assert 0 <= delta <= 1
        assert get_delta(epsilon * more, m, sigma, margin) <= delta * slack
        assert get_delta(epsilon, m, sigma * more, margin * more) <= delta * slack
        assert get_delta(epsilon, m, sigma, margin * more) <= delta * slack
        assert get_delta(epsilon, m + 1, sigma, margin) >= delta / slack
    assert get_delta_paper(epsilon, m, sigma, margin) <= get_delta_safe(
        epsilon, m, sigma, margin
    ) * (1 + 1e-12)


def test_a_hundred_thousand_queries_at_a_tiny_delta_are_calibrated():
    noise = calibrate_paper(1.0, 1e-12, 100_000)
    parts = get_delta_paper_parts(1.0, 100_000, noise.sigma, noise.margin)
    assert parts.delta <= 1e-12
    assert parts.delta_inf == pytest.approx(1e-12, rel=1e-9)
    with mpmath.workdps(50):
        p = mpmath.erfc(-mpmath.mpf(noise.margin) / noise.sigma / mpmath.sqrt(2)) / 2
        assert parts.delta_inf == pytest.approx(float(1 - p**100_000), rel=1e-10)


@pytest.mark.parametrize(
    ("height", "n_queries"), [(1, 1), (2, 2), (3, 2), (4, 3), (63, 6), (64, 7), (100, 7), (127, 7)]
)
def test_a_record_is_in_one_plus_the_floor_of_log2_queries_of_a_tree(height, n_queries):
    assert get_n_queries_per_record(height) == n_queries
    assert n_queries == 1 + math.floor(math.log2(height)) == math.ceil(math.log2(height + 1))


def test_error_bound_equals_the_formula_by_hand():
    # sigma = 10, k = 3, n = 50, h = 100 (7 queries), beta = 0.05: 2 k n 7 / beta = 42000;
    # sqrt(2 ln 42000) = sqrt(21.2908), so 46.14.
    bound = get_error_bound(10.0, beta=0.05, n_records=50, n_queries_per_record=3 * 7)
    assert bound == pytest.approx(10 * math.sqrt(2 * math.log(42_000)), rel=1e-14)
    assert bound == pytest.approx(46.14, abs=0.01)


@pytest.mark.parametrize("calibrate", [calibrate_paper, calibrate_safe])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1e-6, 7), "epsilon must be positive and finite, got 0"),
        ((math.nan, 1e-6, 7), "epsilon must be a number, got nan"),
        (("1", 1e-6, 7), "epsilon must be a number, got '1'"),
        ((1, 0, 7), "delta must lie strictly between 0 and 1, got 0"),
        ((1, 1e-6, 0), "m must be at least 1, got 0"),
        ((1, 1e-6, 7.0), r"m must be an integer, got 7\.0"),
        ((1, 1e-6, True), "m must be an integer, got True"),
    ],
)
def test_calibrations_refuse_impossible_budgets_in_one_line(calibrate, arguments, message):
    with pytest.raises(ValueError, match=message) as refusal:
        calibrate(*arguments)
    assert "\n" not in str(refusal.value)
