"""What the discrete Gaussian buys, against its exact law: sums over the tails, not the theorem in use."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest

from lumberjack.accounting import (
    Group,
    Guarantee,
    Structure,
    calibrate_joint,
    calibrate_separately,
    discrete_gaussian,
    gaussian,
    get_delta_joint,
)
from lumberjack.accounting.tight import calibrate_tight, get_delta_tight


def masses(scale, reach=14.0):
    """Return integers and their probabilities under the discrete Gaussian."""
    k = np.arange(-math.ceil(reach * scale) - 1, math.ceil(reach * scale) + 2)
    weight = np.exp(-0.5 * (k / scale) ** 2)
    return k, weight / weight.sum()


def loss_law(scale, count):
    """Return losses log P/Q and their probabilities under P, of ``count`` integers that grow by 1.

    The loss of one is ``(x - 1/2) / scale^2`` with x = 1 + X, so that of all is a function of the sum.
    """
    _, one = masses(scale)
    law = np.array([1.0])
    power, left = one, count
    while left:
        if left % 2:
            law = np.convolve(law, power)
        power, left = np.convolve(power, power), left // 2
    total = np.arange(len(law)) - (len(law) - 1) // 2
    return (total + count / 2) / scale**2, law


def exact_delta(epsilon, laws):
    """Return delta of independent releases: the sum over all outcomes of two of them and the rest."""
    (losses, law), *others = laws
    for other_losses, other in others:
        keep, keep_other = law > 1e-19, other > 1e-19
        losses = np.add.outer(losses[keep], other_losses[keep_other]).ravel()
        law = np.multiply.outer(law[keep], other[keep_other]).ravel()
        if len(law) > 4e5:
            # Losses are binned upwards, which never lowers delta, by less than 1e-4.
            width = 1e-4
            slot = np.ceil(losses / width).astype(int)
            law = np.bincount(slot - slot.min(), law)
            losses = (np.arange(len(law)) + slot.min()) * width
    above = losses > epsilon
    return float(law[above] @ -np.expm1(epsilon - losses[above]))


@pytest.mark.parametrize("scale", [0.3, 0.5, 1.0, 2.7, 11.3, 80.0])
def test_mu_is_the_largest_step_between_probits_of_the_distribution_function(scale):
    mu = discrete_gaussian.get_mu(scale)
    with mpmath.workdps(60):
        weight = [
            mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(scale) ** 2))
            for k in range(0, int(40 * scale) + 9)
        ]
        whole = 2 * mpmath.fsum(weight) - 1

        def probit(k):
            tail = mpmath.fsum(weight[k:]) / whole
            return mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * tail)

        steps = [
            probit(k + 1) - probit(k)
            for k in sorted({1, 2, 3, *range(1, int(8 * scale), max(int(scale), 1))})
        ]
        centre = 2 * probit(1)
        exact = float(max([*steps, centre]))
    assert exact <= mu <= exact * (1 + 3e-8)


@pytest.mark.parametrize("scale", [0.7, 1.0, 5.45, 40.0])
@pytest.mark.parametrize("count", [1, 3, 20])
def test_many_discrete_releases_stay_below_the_gaussian_curve_of_their_mu(scale, count):
    mu = discrete_gaussian.get_mu(scale) * math.sqrt(count)
    for epsilon in (0.05, 0.3, 1.0, 4.0):
        exact = exact_delta(epsilon, [loss_law(scale, count)])
        assert exact <= gaussian.get_delta(epsilon, mu) * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize("scale", [0.7, 5.45, 40.0])
def test_one_release_has_the_delta_of_its_definition(scale):
    # Theorem 7 of Canonne, Kamath and Steinke 2020.
    k, mass = masses(scale)
    for epsilon in (0.01, 0.2, 1.0):
        tail = (
            mass[k > epsilon * scale**2 - 0.5].sum()
            - math.exp(epsilon) * mass[k > epsilon * scale**2 + 0.5].sum()
        )
        assert exact_delta(epsilon, [loss_law(scale, 1)]) == pytest.approx(
            tail, rel=1e-6, abs=1e-15
        )
        assert tail <= gaussian.get_delta(epsilon, discrete_gaussian.get_mu(scale)) + 1e-15


@pytest.mark.parametrize("mu", [3.0, 0.9, 0.11, 1e-3, 1e-7])
def test_the_scale_is_nearly_the_smallest_with_its_mu(mu):
    scale = discrete_gaussian.get_scale(mu)
    assert discrete_gaussian.get_mu(scale) <= mu
    assert discrete_gaussian.get_mu(scale * (1 - 1e-7)) > mu


@pytest.mark.parametrize("scale", [2e4, 3e5, 1e9])
def test_mu_of_a_large_scale_is_that_of_continuous_noise(scale):
    assert 1 < discrete_gaussian.get_mu(scale) * scale < 1 + 3e-8


def groups(rng):
    """A forest's groups at random, all of them discrete."""
    shares = rng.dirichlet([3, 2, 2])
    trees = int(rng.integers(1, 12))
    structure = Structure("structure", trees * int(rng.integers(1, 7)), shares[0], step=1)
    others = [
        Group("guide", int(rng.integers(1, 15)), shares[1], is_first=True, step=1),
        Group("leaves", trees, shares[2], step=1),
    ]
    return structure, others


@pytest.mark.parametrize("seed", range(20))
def test_the_exact_delta_of_calibrated_discrete_noise_is_at_most_the_claim(seed):
    rng = np.random.default_rng(seed)
    epsilon, delta = float(rng.choice([0.5, 1, 2, 4, 8])), float(rng.choice([1e-3, 1e-5]))
    noise = calibrate_joint(epsilon, delta, *groups(rng))
    everything = (noise.structure, *noise.others)
    # Noisy counts of the threshold queries tell no less than their answers; then the floor.
    laws = [loss_law(group.scale, group.count) for group in everything]
    k, mass = masses(noise.structure.scale)
    steps_over = -math.expm1(
        noise.structure.count * math.log1p(-mass[k > noise.structure.margin].sum())
    )
    reached = exact_delta(epsilon, laws) + steps_over
    assert 0.2 * delta < reached <= delta
    # All of a release depends on the scales alone.
    assert get_delta_joint(epsilon, noise.structure, noise.others) <= delta


@pytest.mark.parametrize("released", ["added", "removed"])
def test_the_tight_delta_bounds_what_one_count_asked_again_and_again_tells(released):
    trees = 5
    m = trees * 3
    structure = Structure("structure", m, 0.7, step=1)
    noise = calibrate_tight(1.0, 1e-3, structure, [Group("leaves", trees, 0.3, step=1)])
    structure, (leaves,) = noise.structure, noise.others
    claimed = get_delta_tight(1.0, structure, [leaves])
    assert claimed <= 1e-3
    k, mass = masses(structure.scale)
    worst = 0.0
    for count in range(1, int(structure.margin + 6 * structure.scale), 3):
        less, more = (mass[k >= structure.margin + 2 - c].sum() for c in (count, count + 1))
        p, q = (more, less) if released == "added" else (less, more)
        n_yes = np.arange(m + 1)
        with np.errstate(divide="ignore"):
            log_choose = np.array(
                [math.lgamma(m + 1) - math.lgamma(i + 1) - math.lgamma(m - i + 1) for i in n_yes]
            )
            log_p = log_choose + n_yes * math.log(p) + (m - n_yes) * math.log1p(-p)
        losses = n_yes * math.log(p / q) + (m - n_yes) * (math.log1p(-p) - math.log1p(-q))
        worst = max(
            worst, exact_delta(1.0, [(losses, np.exp(log_p)), loss_law(leaves.scale, trees)])
        )
    assert 0.3 * claimed < worst <= claimed


def test_discrete_noise_is_a_little_larger_than_continuous_noise_under_each_accounting():
    structure, others = groups(np.random.default_rng(3))
    plain = replace(structure, step=None), [replace(group, step=None) for group in others]
    whole = (Guarantee(0.4, 4e-7), Guarantee(0.3, 3e-7), Guarantee(0.3, 3e-7))
    for calibrate in (
        lambda s, o: calibrate_joint(1.0, 1e-6, s, o),
        lambda s, o: calibrate_tight(1.0, 1e-6, s, o),
        lambda s, o: calibrate_separately(s, o, whole),
        lambda s, o: calibrate_separately(s, o, whole, is_paper=True),
    ):
        discrete, continuous = calibrate(structure, others), calibrate(*plain)
        pairs = zip(
            (discrete.structure, *discrete.others),
            (continuous.structure, *continuous.others),
            strict=True,
        )
        # A whole threshold is a little higher, and tight accounting gives that back to all groups.
        assert all(0.99 < one.scale / other.scale < 1.01 for one, other in pairs)
        assert abs(discrete.structure.margin - continuous.structure.margin) < 2
        assert discrete.structure.margin_ratio >= continuous.structure.margin_ratio * (1 - 3e-3)


def test_a_structure_with_discrete_noise_has_a_whole_margin():
    with pytest.raises(ValueError, match="whole margin"):
        Structure("structure", 3, scale=4.0, margin=7.5, step=1)
