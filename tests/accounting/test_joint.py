"""Structure, leaves and guide as one release, under the safe accounting."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr
from touch_groups import GUIDED, PLAIN, STACKED

from lumberjack.accounting import (
    calibrate_joint,
    calibrate_safe,
    get_delta_joint_safe,
    get_delta_joint_safe_parts,
    joint,
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


def touches_and_noise(groups, noise):
    return {
        "structure_touches": groups["structure_touches"],
        "leaf_touches": groups["leaf_touches"],
        "guide_touches": groups.get("guide_touches", 0),
        "stack_touches": groups.get("stack_touches", 0),
        "sigma": noise.sigma,
        "margin": noise.margin,
        "sigma_leaf": noise.sigma_leaf,
        "sigma_guide": noise.sigma_guide,
        "sigma_stack": noise.sigma_stack,
    }


@pytest.mark.parametrize(
    ("groups", "epsilon", "mu", "sigma", "margin", "sigma_leaf", "sigma_guide"), REFERENCE_TABLE
)
def test_joint_calibration_equals_the_reference_table(
    groups, epsilon, mu, sigma, margin, sigma_leaf, sigma_guide
):
    noise = calibrate_joint(epsilon, 1e-6, **groups)
    assert noise.mu_total == pytest.approx(mu, abs=5.1e-7)
    assert noise.sigma == pytest.approx(sigma, abs=5.1e-5)
    assert noise.margin == pytest.approx(margin, abs=5.1e-5)
    assert noise.sigma_leaf == pytest.approx(sigma_leaf, abs=5.1e-5)
    assert noise.sigma_guide == pytest.approx(sigma_guide, abs=5.1e-5)
    assert noise.threshold == 1 + noise.margin
    parts = get_delta_joint_safe_parts(epsilon, **touches_and_noise(groups, noise))
    assert parts.gaussian == pytest.approx(0.6e-6, rel=1e-10)
    assert parts.steps == pytest.approx(0.4e-6, rel=1e-10)
    assert get_delta_joint_safe(epsilon, **touches_and_noise(groups, noise)) <= 1e-6


def composed_loss(groups, noise, n_steps, *, is_added, interval):
    """Privacy loss of n_steps 0-to-1 queries, all other queries Gaussian, all leaves, all guides."""
    n_gaussian = groups["structure_touches"] - n_steps
    loss = privacy_loss_distribution.from_gaussian_mechanism(
        noise.sigma_leaf,
        sensitivity=math.sqrt(groups["leaf_touches"]),
        value_discretization_interval=interval,
    )
    for touches, sigma in (
        (n_gaussian, noise.sigma),
        (groups.get("guide_touches", 0), noise.sigma_guide),
        (groups.get("stack_touches", 0), noise.sigma_stack),
    ):
        if touches:
            loss = loss.compose(
                privacy_loss_distribution.from_gaussian_mechanism(
                    sigma,
                    sensitivity=math.sqrt(touches),
                    value_discretization_interval=interval,
                )
            )
    if n_steps:
        # All steps at once: some yes shows with probability 1 - p^n, or none does.
        log_p = n_steps * float(log_ndtr(noise.margin / noise.sigma))
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
    noise = calibrate_joint(epsilon, 1e-6, **groups)
    m = groups["structure_touches"]
    for n_steps in (0, 1, m // 2, m - 1, m):
        for is_added in (True, False):
            loss = composed_loss(groups, noise, n_steps, is_added=is_added, interval=4e-4 * epsilon)
            # Pessimistic rounding of the library adds up to one interval per composed group.
            assert loss.get_delta_for_epsilon(epsilon) <= 1e-6


@pytest.mark.parametrize("groups", [GUIDED, STACKED])
def test_the_purely_gaussian_pattern_uses_all_of_its_part_of_delta(groups):
    noise = calibrate_joint(1, 1e-6, **groups)
    loss = composed_loss(groups, noise, 0, is_added=True, interval=2e-4)
    assert loss.get_delta_for_epsilon(1) == pytest.approx(0.6e-6, rel=0.01)


def test_a_simulated_pair_of_neighbours_shows_no_more_than_the_guarantee():
    # Two trees of one node each, one class, one guide cell, a stack; all counts 3 against 4. Counts outcomes
    # by their exact log-likelihood ratio, so the estimate of delta is unbiased.
    groups = {
        "structure_touches": 2,
        "leaf_touches": 2,
        "guide_touches": 1,
        "stack_touches": 1,
        "structure_share": 0.5,
        "leaf_share": 0.2,
        "guide_share": 0.2,
        "stack_share": 0.1,
    }
    epsilon, delta = 0.5, 0.05
    noise = calibrate_joint(epsilon, delta, **groups)
    generator = np.random.default_rng(11)
    n_draws = 400_000
    record = 1.0
    answers = generator.normal(0, noise.sigma, (n_draws, 2)) + 3 + record > noise.threshold
    leaves = generator.normal(0, noise.sigma_leaf, (n_draws, 2)) + record
    guide = generator.normal(0, noise.sigma_guide, n_draws) + record
    stack = generator.normal(0, noise.sigma_stack, n_draws) + record
    z_with, z_without = ((c - noise.threshold) / noise.sigma for c in (4, 3))
    loss = np.where(
        answers, log_ndtr(z_with) - log_ndtr(z_without), log_ndtr(-z_with) - log_ndtr(-z_without)
    ).sum(axis=1)
    loss += ((leaves - 0.5) / noise.sigma_leaf**2).sum(axis=1)
    loss += (guide - 0.5) / noise.sigma_guide**2 + (stack - 0.5) / noise.sigma_stack**2
    seen = np.maximum(0, -np.expm1(epsilon - loss))
    estimate, error = seen.mean(), seen.std() / math.sqrt(n_draws)
    assert estimate - 4 * error > 0
    assert estimate + 4 * error < delta


def test_the_structure_alone_is_the_safe_calibration():
    noise = calibrate_joint(
        1.0, 1e-6, structure_touches=7, leaf_touches=0, structure_share=1.0, leaf_share=0.0
    )
    alone = calibrate_safe(1.0, 1e-6, 7)
    assert noise.sigma == pytest.approx(alone.sigma, rel=1e-12)
    assert noise.margin == pytest.approx(alone.margin, rel=1e-12)
    assert math.isinf(noise.sigma_leaf)


@settings(deadline=None, max_examples=40)
@given(
    epsilon=st.floats(0.05, 10),
    delta=st.floats(-12, -1).map(lambda x: 10**x),
    m=st.integers(1, 500),
    k=st.integers(1, 80),
    d=st.integers(1, 40),
    weights=st.tuples(*[st.floats(0.05, 1)] * 4),
)
def test_shares_are_parts_of_the_squared_mu_and_delta_is_kept(epsilon, delta, m, k, d, weights):
    structure, leaf, guide, stack = (weight / sum(weights) for weight in weights)
    groups = {
        "structure_touches": m,
        "leaf_touches": k,
        "guide_touches": d,
        "stack_touches": 1,
        "structure_share": structure,
        "leaf_share": leaf,
        "guide_share": guide,
        "stack_share": stack,
    }
    noise = calibrate_joint(epsilon, delta, **groups)
    squares = [
        m / noise.sigma**2,
        k / noise.sigma_leaf**2,
        d / noise.sigma_guide**2,
        1 / noise.sigma_stack**2,
    ]
    assert sum(squares) == pytest.approx(noise.mu_total**2, rel=1e-12)
    assert squares == pytest.approx(
        [share * noise.mu_total**2 for share in (structure, leaf, guide, stack)], rel=1e-9
    )
    arguments = touches_and_noise(groups, noise)
    assert get_delta_joint_safe(epsilon, **arguments) <= delta
    for names in (("sigma", "margin"), ("sigma_leaf",), ("sigma_guide",)):
        less = arguments | {name: 0.99 * arguments[name] for name in names}
        assert get_delta_joint_safe(epsilon, **less) > delta


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0}, "epsilon must be positive and finite, got 0"),
        ({"delta": 1}, "delta must lie strictly between 0 and 1, got 1"),
        ({"structure_touches": 0}, "structure_touches must be at least 1, got 0"),
        ({"leaf_touches": 2.5}, r"leaf_touches must be an integer, got 2\.5"),
        ({"leaf_share": -0.1}, r"leaf_share must be finite and not negative, got -0\.1"),
        ({"leaf_share": 0.3}, r"must add up to 1, got 0\.75 \+ 0\.3 \+ 0 \+ 0 = 1\.05"),
        ({"guide_touches": 4}, "guide_touches and guide_share must be both zero or both positive"),
        ({"structure_share": math.nan}, "structure_share must be a number, got nan"),
    ],
)
def test_impossible_budgets_are_refused_in_one_line(changes, message):
    arguments = {"epsilon": 1.0, "delta": 1e-6} | PLAIN | changes
    with pytest.raises(ValueError, match=message) as refusal:
        calibrate_joint(arguments.pop("epsilon"), arguments.pop("delta"), **arguments)
    assert "\n" not in str(refusal.value)


def test_a_group_that_is_touched_needs_noise():
    with pytest.raises(ValueError, match="sigma_leaf must be positive and finite, got inf"):
        get_delta_joint_safe(1.0, structure_touches=7, sigma=10, margin=50, leaf_touches=3)
    with pytest.raises(ValueError, match="mu_total must be positive"):
        joint.get_noise(0.0, 5.0, **PLAIN)
