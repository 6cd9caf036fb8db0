"""Threshold queries and other groups as one release, under the safe accounting."""

import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from example_groups import GUIDED, PLAIN, STACKED, VOTING, groups_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from lumberjack.accounting import (
    Group,
    Guarantee,
    Structure,
    calibrate_joint,
    calibrate_paper,
    calibrate_safe,
    calibrate_separately,
    gaussian,
    get_delta_joint,
    get_delta_joint_parts,
    joint,
    zcdp,
)

# groups, epsilon, mu, sigma, margin, sigma_leaf, sigma_guide; delta is 1e-6
REFERENCE_TABLE = [
    (PLAIN, 0.5, 0.120881, 138.4269, 815.6472, 90.6217, math.inf),
    (PLAIN, 1, 0.231025, 72.4303, 426.7783, 47.4168, math.inf),
    (PLAIN, 2, 0.438521, 38.1583, 224.8385, 24.9805, math.inf),
    (PLAIN, 4, 0.821492, 20.3693, 120.0211, 13.3348, math.inf),
    (PLAIN, 8, 1.505742, 11.1129, 65.4802, 7.2751, math.inf),
    (GUIDED, 0.5, 0.120881, 126.3659, 736.0703, 62.5349, 138.4269),
    (GUIDED, 1, 0.231025, 66.1196, 385.1406, 32.7207, 72.4303),
    (GUIDED, 2, 0.438521, 34.8336, 202.9026, 17.2382, 38.1583),
    (GUIDED, 4, 0.821492, 18.5945, 108.3115, 9.2019, 20.3693),
    (GUIDED, 8, 1.505742, 10.1447, 59.0918, 5.0203, 11.1129),
]


@pytest.mark.parametrize(
    ("groups", "epsilon", "mu", "sigma", "margin", "sigma_leaf", "sigma_guide"), REFERENCE_TABLE
)
def test_joint_calibration_equals_the_reference_table(
    groups, epsilon, mu, sigma, margin, sigma_leaf, sigma_guide
):
    noise = calibrate_joint(epsilon, 1e-6, *groups)
    assert noise.mu_total == pytest.approx(mu, abs=5.1e-7)
    assert noise.structure.sigma == pytest.approx(sigma, abs=5.1e-5)
    assert noise.structure.margin == pytest.approx(margin, abs=5.1e-5)
    others = [group.sigma for group in noise.others]
    assert others == pytest.approx([sigma_leaf, sigma_guide][: len(others)], abs=5.1e-5)
    parts = get_delta_joint_parts(epsilon, *groups_of(noise))
    assert parts.delta_gauss == pytest.approx(0.6e-6, rel=1e-10)
    assert parts.delta_inf == pytest.approx(0.4e-6, rel=1e-10)
    assert get_delta_joint(epsilon, *groups_of(noise)) <= 1e-6


def composed_loss(noise, n_steps, *, is_added, interval):
    """Privacy loss of n_steps 0-to-1 queries, all other queries Gaussian, all other groups."""
    structure = noise.structure
    pairs = [(structure.count - n_steps, structure.sigma)]
    pairs += [(group.count, group.sigma) for group in noise.others]
    loss = None
    for count, sigma in pairs:
        if count:
            one = privacy_loss_distribution.from_gaussian_mechanism(
                sigma, sensitivity=math.sqrt(count), value_discretization_interval=interval
            )
            loss = one if loss is None else loss.compose(one)
    if n_steps:
        # All steps at once: some yes shows with probability 1 - p^n, or none does.
        log_p = n_steps * float(log_ndtr(structure.margin / structure.sigma))
        with_record = {"no": log_p, "yes": math.log(-math.expm1(log_p))}
        without = {"no": 0.0}
        upper, lower = (with_record, without) if is_added else (without, with_record)
        loss = loss.compose(
            privacy_loss_distribution.from_two_probability_mass_functions(
                log_probability_mass_function_lower=lower,
                log_probability_mass_function_upper=upper,
                value_discretization_interval=interval,
            )
        )
    return loss


@pytest.mark.parametrize("groups", [PLAIN, GUIDED, STACKED])
@pytest.mark.parametrize("epsilon", [1, 8])
def test_every_fixed_pattern_stays_within_delta_by_dp_accounting(groups, epsilon):
    noise = calibrate_joint(epsilon, 1e-6, *groups)
    m = noise.structure.count
    for n_steps in (0, 1, m // 2, m - 1, m):
        for is_added in (True, False):
            loss = composed_loss(noise, n_steps, is_added=is_added, interval=4e-4 * epsilon)
            # Pessimistic rounding of the library adds up to one interval per composed group.
            assert loss.get_delta_for_epsilon(epsilon) <= 1e-6


@pytest.mark.parametrize("groups", [GUIDED, STACKED])
def test_the_purely_gaussian_pattern_uses_all_of_its_part_of_delta(groups):
    noise = calibrate_joint(1, 1e-6, *groups)
    loss = composed_loss(noise, 0, is_added=True, interval=2e-4)
    assert loss.get_delta_for_epsilon(1) == pytest.approx(0.6e-6, rel=0.01)


def test_a_simulated_pair_of_neighbours_shows_no_more_than_the_guarantee():
    # Two trees of one node each, one class, one guide cell, a stack; all counts 3 against 4. Counts outcomes
    # by their exact log-likelihood ratio, so the estimate of delta is unbiased.
    epsilon, delta = 0.5, 0.05
    others = Group("leaves", 2, 0.2), Group("guide", 1, 0.2, is_first=True), Group("stack", 1, 0.1)
    noise = calibrate_joint(epsilon, delta, Structure("structure", 2, 0.5), others)
    sigma, threshold = noise.structure.sigma, 1 + noise.structure.margin
    generator = np.random.default_rng(11)
    n_draws = 400_000
    record = 1.0
    answers = generator.normal(0, sigma, (n_draws, 2)) + 3 + record > threshold
    z_with, z_without = ((c - threshold) / sigma for c in (4, 3))
    loss = np.where(
        answers, log_ndtr(z_with) - log_ndtr(z_without), log_ndtr(-z_with) - log_ndtr(-z_without)
    ).sum(axis=1)
    for group in noise.others:
        released = generator.normal(0, group.sigma, (n_draws, group.count)) + record
        loss += ((released - 0.5) / group.sigma**2).sum(axis=1)
    seen = np.maximum(0, -np.expm1(epsilon - loss))
    estimate, error = seen.mean(), seen.std() / math.sqrt(n_draws)
    assert estimate - 4 * error > 0
    assert estimate + 4 * error < delta


def test_the_structure_alone_is_the_safe_calibration():
    noise = calibrate_joint(1.0, 1e-6, Structure("structure", 7, 1.0)).structure
    alone = calibrate_safe(1.0, 1e-6, 7)
    assert noise.sigma == pytest.approx(alone.sigma, rel=1e-12)
    assert noise.margin == pytest.approx(alone.margin, rel=1e-12)


@settings(deadline=None, max_examples=40)
@given(
    epsilon=st.floats(0.05, 10),
    delta=st.floats(-12, -1).map(lambda x: 10**x),
    m=st.integers(1, 500),
    counts=st.lists(st.integers(1, 80), max_size=5),
    weights=st.lists(st.floats(0.05, 1), min_size=6, max_size=6),
)
def test_shares_are_parts_of_the_squared_mu_and_delta_is_kept(epsilon, delta, m, counts, weights):
    weights = weights[: len(counts) + 1]
    first, *shares = (weight / sum(weights) for weight in weights)
    others = [
        Group(f"group {i}", *pair, is_first=i % 2 == 0)
        for i, pair in enumerate(zip(counts, shares, strict=True))
    ]
    noise = calibrate_joint(epsilon, delta, Structure("structure", m, first), others)
    squares = [group.count / group.scale**2 for group in (noise.structure, *noise.others)]
    assert sum(squares) == pytest.approx(noise.mu_total**2, rel=1e-12)
    assert squares == pytest.approx(
        [share * noise.mu_total**2 for share in (first, *shares)], rel=1e-9
    )
    assert get_delta_joint(epsilon, noise.structure, noise.others) <= delta
    less, _ = groups_of(noise, 0.99)
    assert get_delta_joint(epsilon, less, noise.others) > delta
    for group in noise.others:
        others = [
            replace(one, scale=0.99 * one.scale) if one is group else one for one in noise.others
        ]
        assert get_delta_joint(epsilon, noise.structure, others) > delta


def test_votes_compose_by_their_zcdp_and_floors_by_a_union_bound():
    one, two = calibrate_safe(1.0, 1e-6, 210), calibrate_safe(2.0, 1e-6, 40)
    structures = [
        Structure("structure", 210, scale=one.sigma, margin=one.margin),
        Structure("structure", 40, scale=two.sigma, margin=two.margin),
    ]
    votes = Group("leaves", 30, scale=25.0, mechanism="exponential")
    parts = get_delta_joint_parts(3.0, structures, [votes])
    rho = 210 / (2 * one.sigma**2) + 40 / (2 * two.sigma**2) + 30 / (8 * 25.0**2)
    assert parts.delta_gauss == pytest.approx(zcdp.get_delta(3.0, rho), rel=1e-12)
    assert parts.delta_inf == pytest.approx(0.8e-6, rel=1e-9)
    # Lemma 9 is no less than the exact delta of Gaussian noise with the same zCDP.
    noisy = get_delta_joint_parts(
        3.0, structures, [replace(votes, scale=50.0, mechanism="gaussian")]
    )
    assert noisy.delta_gauss < parts.delta_gauss
    assert noisy.delta_gauss == pytest.approx(
        gaussian.get_delta(3.0, math.sqrt(2 * rho)), rel=1e-12
    )


@pytest.mark.parametrize("is_paper", [True, False])
def test_separate_guarantees_are_those_of_each_group_by_itself(is_paper):
    guarantees = Guarantee(1.5, 7.5e-7), Guarantee(0.5, 2.5e-7)
    noise = calibrate_separately(*VOTING, guarantees, is_paper=is_paper)
    alone = (calibrate_paper if is_paper else calibrate_safe)(1.5, 7.5e-7, 210)
    assert (noise.structure.sigma, noise.structure.margin) == (alone.sigma, alone.margin)
    # The reference table of Lemma 9: epsilon 0.5 for 30 votes.
    assert noise["leaves"].scale == pytest.approx(26.357238, abs=5.1e-7)
    assert zcdp.get_delta(0.5, noise["leaves"].mu ** 2 / 2) == pytest.approx(2.5e-7, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibrate_joint(0, 1e-6, *PLAIN), "epsilon must be positive and finite, got 0"),
        (lambda: calibrate_joint(1, 1, *PLAIN), "delta must lie strictly between 0 and 1, got 1"),
        (lambda: Structure("trees", 0), "count of trees must be at least 1, got 0"),
        (lambda: Group("leaves", 2.5), r"count of leaves must be an integer, got 2\.5"),
        (lambda: Group("leaves", 2, 0), "share of leaves must be positive and finite, got 0"),
        (lambda: Group("leaves", 2, scale=math.nan), "scale of leaves must be a number, got nan"),
        (lambda: Group("leaves", 2, mechanism="laplace"), "must be one of gaussian, exponential"),
        (lambda: Structure("trees", 2, margin=-1), "margin of trees must be finite and not neg"),
        (lambda: get_delta_joint(1.0, *PLAIN), "group 'structure' has no noise yet"),
        (lambda: calibrate_joint(1, 1e-6, *VOTING), "use calibrate_tight"),
        (
            lambda: calibrate_joint(1, 1e-6, PLAIN[0], [Group("leaves", 3, 0.3)]),
            r"structure, leaves must be positive and add up to 1, got 0\.75 \+ 0\.3 = 1\.05",
        ),
        (lambda: joint.get_noise(0.0, 5.0, *PLAIN), "mu_total must be positive"),
    ],
)
def test_impossible_requests_are_refused_in_one_line(call, message):
    with pytest.raises(ValueError, match=message) as refusal:
        call()
    assert "\n" not in str(refusal.value)
