"""The exact sampler: its law, against probabilities computed in another way."""

from decimal import Decimal

import mpmath
import numpy as np
import pytest
from scipy.stats import chisquare

from lumberjack import discrete_gaussian
from lumberjack.discrete_gaussian import flip_coins, get_block_table, sample_discrete_gaussian


def probabilities(sigma, integers):
    """The definition, in double precision."""
    around = np.arange(-int(40 * sigma) - 2, int(40 * sigma) + 3)
    return np.exp(-(integers**2) / (2 * sigma**2)) / np.exp(-(around**2) / (2 * sigma**2)).sum()


@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.45, 150.5, 700.25])
def test_draws_have_the_law_of_the_discrete_gaussian(sigma):
    n_draws = 200_000
    draws = sample_discrete_gaussian(sigma, n_draws, np.random.default_rng(1))
    edges = np.unique(np.round(np.linspace(-3, 3, 60) * sigma).astype(int))
    integers = np.arange(-int(20 * sigma) - 5, int(20 * sigma) + 6)
    cell = np.searchsorted(edges, integers)
    expected = np.bincount(cell, probabilities(sigma, integers)) * n_draws
    observed = np.bincount(np.searchsorted(edges, draws), minlength=len(expected))
    assert chisquare(observed, expected).pvalue > 1e-3


@pytest.mark.parametrize("exponent", [20, 36, 56])
def test_large_draws_have_the_moments_and_the_low_order_bits_of_the_law(exponent):
    n_draws = 200_000
    draws = sample_discrete_gaussian(1.7 * 2.0**exponent, n_draws, np.random.default_rng(2))
    scaled = draws / (1.7 * 2.0**exponent)
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (4, 3, 96)):
        assert abs((scaled**power).mean() - moment) < 4 * np.sqrt(variance / n_draws)
    observed = np.bincount(draws % 64, minlength=64)
    assert chisquare(observed).pvalue > 1e-3


@pytest.mark.parametrize("sigma", [0.3, 2.0, 37.5])
def test_the_table_is_the_distribution_function_to_120_bits(sigma):
    table = get_block_table(sigma)
    with mpmath.workprec(400):
        weights = [
            mpmath.exp(-(mpmath.mpf(j) ** 2) / (2 * mpmath.mpf(sigma) ** 2))
            for j in range(table.first, table.first + len(table.high) + 1)
        ]
        # The sum over all integers.
        whole = mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * mpmath.mpf(sigma) ** 2)))
        passed = mpmath.mpf(0)
        for weight, high, low in zip(
            weights, table.high.tolist(), table.low.tolist(), strict=False
        ):
            passed += weight
            assert (
                abs(passed / whole - mpmath.mpf((high << 64) + low) / 2**128)
                < mpmath.mpf(2) ** -120
            )


def test_a_tie_in_the_upper_word_is_decided_by_the_lower_one(monkeypatch):
    table = get_block_table(2.0)
    position = len(table.high) // 2
    block = table.first + position
    for lower, expected in (
        (int(table.low[position]) - 1, block),
        (int(table.low[position]), block + 1),
    ):
        words = iter([table.high[position], np.uint64(lower)])
        monkeypatch.setattr(
            discrete_gaussian,
            "draw_words",
            lambda size, generator, words=words: np.array([next(words)]),
        )
        assert sample_discrete_gaussian(2.0, 1, None).tolist() == [expected]


def test_a_coin_that_floating_point_cannot_judge_is_judged_by_more_digits():
    generator = np.random.default_rng(3)
    probability = np.full(20_000, 0.25)
    # What floating point says of the probability is wrong here, so digits must have decided.
    heads = flip_coins(probability, lambda i: Decimal(-1), generator, close=1.0)
    assert abs(heads.mean() - np.exp(-1)) < 4 * np.sqrt(0.25 / len(heads))


def test_a_scale_that_64_bits_cannot_hold_is_refused():
    with pytest.raises(ValueError, match=r"at most 2\^57"):
        sample_discrete_gaussian(2.0**58, 1, np.random.default_rng(0))


def test_the_sampler_agrees_with_that_of_opendp():
    opendp = pytest.importorskip("opendp.prelude")
    opendp.enable_features("contrib")
    sigma, n_draws = 3.7, 20_000
    space = opendp.vector_domain(opendp.atom_domain(T=int)), opendp.l2_distance(T=float)
    theirs = np.array(opendp.m.make_gaussian(*space, scale=sigma)([0] * n_draws))
    ours = sample_discrete_gaussian(sigma, n_draws, np.random.default_rng(4))
    width = 12
    counts = [
        np.bincount(np.clip(draws, -width, width) + width, minlength=2 * width + 1)
        for draws in (ours, theirs)
    ]
    both = np.array(counts)[:, np.sum(counts, axis=0) > 20]
    assert (((both[0] - both[1]) ** 2) / both.sum(axis=0)).sum() < 3 * both.shape[1]
