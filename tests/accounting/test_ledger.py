"""Ledgers as privacy accountants: totals from the noise alone, and two fits on the same rows."""

import math
from dataclasses import replace

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from example_groups import GUIDED, PLAIN, STACKED, VOTING
from hypothesis import given, settings
from hypothesis import strategies as st

from lumberjack.accounting import (
    Group,
    Guarantee,
    Ledger,
    NeighbouringRelation,
    Release,
    Structure,
    calibrate_joint,
    calibrate_safe,
    calibrate_separately,
    gaussian,
    get_delta_joint,
)
from lumberjack.accounting.tight import calibrate_tight


def release(group, guarantee=None):
    return Release(group, "some mechanism", "a theorem", "1", guarantee)


def gaussian_ledger(epsilon, count=1):
    """A ledger whose only release is Gaussian, at delta 1e-6."""
    sigma = math.sqrt(count) / gaussian.get_mu(epsilon, 1e-6)
    return Ledger((release(Group("counts", count, scale=sigma)),), "safe", Guarantee(epsilon, 1e-6))


def accountant_of(ledgers, interval=5e-4):
    """dp-accounting's view of the Gaussian releases of some ledgers."""
    return PLDAccountant(value_discretization_interval=interval).compose(
        dp_accounting.ComposedDpEvent(
            [
                dp_accounting.GaussianDpEvent(one.group.sigma / math.sqrt(one.group.count))
                for ledger in ledgers
                for one in ledger.releases
            ]
        )
    )


FITS = {
    "safe": lambda epsilon: calibrate_joint(epsilon, 1e-6, *GUIDED),
    "tight": lambda epsilon: calibrate_tight(epsilon, 1e-6, *STACKED),
    "tight, votes": lambda epsilon: calibrate_tight(epsilon, 1e-6, *VOTING),
    "separate": lambda epsilon: calibrate_separately(*PLAIN, split(epsilon)),
    "safe, votes": lambda epsilon: calibrate_separately(*VOTING, split(epsilon)),
    "paper": lambda epsilon: calibrate_separately(*VOTING, split(epsilon), is_paper=True),
}
HAS_PARTS = ("separate", "safe, votes", "paper")


def split(epsilon):
    return Guarantee(0.75 * epsilon, 7.5e-7), Guarantee(0.25 * epsilon, 2.5e-7)


def fit(name, epsilon=1.0):
    """The ledger of a forest at delta 1e-6."""
    noise = FITS[name](epsilon)
    groups = noise.structure, *noise.others
    parts = split(epsilon) if name in HAS_PARTS else (None,) * len(groups)
    releases = tuple(release(*pair) for pair in zip(groups, parts, strict=True))
    return Ledger(releases, name.partition(",")[0], Guarantee(epsilon, 1e-6))


@pytest.mark.parametrize("name", FITS)
def test_a_total_follows_from_the_releases_and_epsilon_and_delta_are_inverses(name):
    ledger = fit(name)
    assert ledger.get_delta(1.0) <= 1e-6 * (1 + 1e-12)
    epsilon = ledger.get_epsilon(1e-6)
    assert epsilon <= 1 + 1e-4  # the tolerance of the tight search
    assert ledger.get_delta(epsilon) <= 1e-6
    if name in ("safe", "tight", "paper"):  # nothing of the budget is left over
        assert epsilon > 0.999
    assert ledger.get_delta(0.99 * epsilon) > 1e-6


@settings(deadline=None, max_examples=10)
@given(
    epsilons=st.lists(st.floats(0.1, 4), min_size=1, max_size=4),
    counts=st.lists(st.integers(1, 50), min_size=4, max_size=4),
)
def test_gaussian_ledgers_add_up_as_dp_accounting_composes_events(epsilons, counts):
    ledgers = [gaussian_ledger(*pair) for pair in zip(epsilons, counts, strict=False)]
    total = ledgers[0]
    for ledger in ledgers[1:]:
        total = total + ledger
    delta = len(ledgers) * 1e-6
    assert total.total.delta == pytest.approx(delta, rel=1e-12)
    theirs = accountant_of(ledgers)
    # Their losses are rounded up to a grid of 5e-4, ours are exact: both directions.
    ours = total.get_epsilon(delta)
    assert ours == pytest.approx(theirs.get_epsilon(delta), abs=len(ledgers) * 1e-3, rel=1e-3)
    assert total.get_delta(ours) <= delta
    assert total.get_delta(1.0) == pytest.approx(theirs.get_delta(1.0), rel=2e-2, abs=1e-12)
    if len(ledgers) > 1:
        assert total.total.epsilon == ours < sum(epsilons)


@pytest.mark.parametrize("first", ["safe", "tight", "separate"])
def test_two_fits_with_thresholds_give_no_less_than_their_gaussian_parts_by_dp_accounting(first):
    one, two = fit(first), fit("safe", 2.0)
    both = one + two
    assert both.accounting == "safe"
    assert [release.name for release in both.releases].count("structure") == 2
    assert both.total.delta == 2e-6
    # 0.4e-6 (0.3e-6 of 0.75e-6 under "separate") covers steps over each floor, G the rest.
    left = 2e-6 - 0.4e-6 - (0.3e-6 if first == "separate" else 0.4e-6)
    theirs = accountant_of([one, two]).get_epsilon(left)
    assert theirs - 2e-3 <= both.total.epsilon <= theirs * 1.01
    assert both.total.epsilon < one.total.epsilon + two.total.epsilon
    # Whoever sees all noisy counts has no less than that.
    assert both.total.epsilon >= accountant_of([one, two]).get_epsilon(2e-6) - 2e-3


def test_the_sum_does_not_depend_on_the_order_and_adds_caveats_once():
    one, two = (
        replace(ledger, caveats=("seeded", name))
        for name, ledger in (("a", fit("safe")), ("b", fit("tight")))
    )
    assert (one + two).total.epsilon == pytest.approx((two + one).total.epsilon, rel=1e-12)
    assert (one + two).caveats == ("seeded", "a", "b")
    assert (one + two + one).total.epsilon > (one + two).total.epsilon


def test_fits_by_the_paper_add_their_guarantees_and_others_take_none_of_theorem_6():
    paper, safe = fit("paper"), fit("safe")
    twice = paper + paper
    assert (twice.accounting, twice.total) == ("paper", Guarantee(2.0, 2e-6))
    assert twice.get_delta(1.9) == 1.0
    mixed = paper + safe
    assert mixed.accounting == "safe"
    assert all(release.guarantee is None for release in mixed.releases)
    structures = [paper.releases[0].group, safe.releases[0].group]
    others = [one.group for one in (*paper.releases[1:], *safe.releases[1:])]
    assert get_delta_joint(mixed.total.epsilon, structures, others) <= 2e-6


def test_a_ledger_is_kept_to_its_noise_relation_and_order():
    loud = release(Group("counts", 1, scale=1e-3), Guarantee(0.1, 1e-9))
    with pytest.raises(ValueError, match="the noise of counts gives delta"):
        Ledger((loud,), "safe", Guarantee(0.1, 1e-9))
    ledger = fit("tight")
    with pytest.raises(ValueError, match="add/remove neighbours"):
        replace(ledger, total=Guarantee(1, 1e-6, NeighbouringRelation.REPLACE_ONE))
    # What was released before threshold queries counts as known to them, whatever its flag says.
    in_order = sorted(ledger.releases, key=lambda one: not one.group.is_first)
    unmarked = tuple(replace(one, group=replace(one.group, is_first=False)) for one in in_order)
    assert replace(ledger, releases=unmarked).get_delta(1.0) == ledger.get_delta(1.0)
    with pytest.raises(ValueError, match="mechanism of votes"):
        Structure("votes", 3, scale=10.0, mechanism="exponential")


def test_sum_adds_ledgers_and_says_where_it_cannot():
    one = gaussian_ledger(1.0)
    assert sum([one, one, one]).total == (one + one + one).total
    likely = replace(one, total=Guarantee(1.0, 0.6))
    with pytest.raises(ValueError, match="sum of their deltas"):
        likely + likely


def test_counts_of_eight_bits_do_not_wrap():
    group = Group("leaves", np.uint8(200), 0.5, scale=np.float32(10))
    assert (type(group.count), type(group.scale), type(group.share)) == (int, float, float)
    assert 3 * group.count == 600


def test_nothing_is_promised_where_steps_over_the_floor_exceed_delta():
    structure = Structure("structure", 7, scale=10.0, margin=20.0)
    ledger = Ledger((release(structure),), "safe", Guarantee(1.0, 0.2))
    assert ledger.get_epsilon(1e-6) == math.inf


def test_a_total_that_the_noise_does_not_give_is_refused():
    noise = calibrate_safe(1.0, 1e-6, 7)
    structure = Structure("structure", 7, scale=noise.sigma, margin=noise.margin)
    for accounting in ("safe", "tight", "separate"):
        with pytest.raises(ValueError, match=r"the releases give delta = .* at epsilon = 0\.5"):
            Ledger((release(structure),), accounting, Guarantee(0.5, 1e-6))
    with pytest.raises(ValueError, match="accounting must be one of safe, tight, separate, paper"):
        Ledger((release(structure),), "loose", Guarantee(1.0, 1e-6))
