"""Noise: on its grid, of its law, and without a trace of what it was added to."""

import numpy as np
import pytest

from lumberjack.noise import FRACTION_BITS, add_noise_to_counts, add_noise_to_sums, to_fixed_point

NOISES = ("continuous", "discrete")


def is_multiple(values, step):
    return (np.asarray(values) / step == np.rint(np.asarray(values) / step)).all()


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("sigma", [0.7, 5.45, 3000.0])
def test_noise_does_not_depend_on_the_counts_it_is_added_to(noise, sigma):
    draw = [
        add_noise_to_counts(np.full(1000, count), sigma, np.random.default_rng(0), noise=noise)
        - count
        for count in (0, 1, 2**31 - 1)
    ]
    assert (draw[0] == draw[1]).all()
    assert (draw[0] == draw[2]).all()


@pytest.mark.parametrize(
    ("noise", "sigma", "step"),
    [
        ("continuous", 0.7, 2.0**-21),
        ("continuous", 5.45, 2.0**-18),
        ("continuous", 2.0**30, 1.0),
        ("discrete", 5.45, 1.0),
    ],
)
def test_noisy_counts_lie_on_a_grid_that_holds_whole_numbers(noise, sigma, step):
    counts = np.arange(1000).reshape(50, 20)
    noisy = add_noise_to_counts(counts, sigma, np.random.default_rng(1), noise=noise)
    assert noisy.shape == counts.shape
    assert is_multiple(noisy, step)
    assert not is_multiple(noisy, 2 * step)
    assert abs((noisy - counts).std() / sigma - 1) < 0.1


def test_continuous_noise_is_that_of_the_generator_to_the_grid():
    counts = np.arange(1000)
    noisy = add_noise_to_counts(counts, 5.45, np.random.default_rng(2))
    raw = counts + np.random.default_rng(2).normal(scale=5.45, size=1000)
    assert np.abs(noisy - raw).max() <= 2.0**-19


@pytest.mark.parametrize("value", [1.5, -1.5, 0.1, -0.1, 1e-12, -1e-12, 0.0])
def test_fixed_point_numbers_are_truncated_towards_zero(value):
    steps = to_fixed_point(value)
    assert steps == int(value * 2**FRACTION_BITS)
    assert abs(steps) <= abs(value) * 2**FRACTION_BITS < abs(steps) + 1


@pytest.mark.parametrize("noise", NOISES)
def test_noisy_sums_lie_on_the_grid_of_their_own_noise(noise):
    sums = np.array([to_fixed_point(value) for value in np.linspace(-3, 3, 4000)])
    sigmas = np.tile([2.0**-20, 0.3, 1.0, 17.0], 1000)
    noisy = add_noise_to_sums(sums, sigmas, np.random.default_rng(3), noise=noise)
    exact = sums / 2.0**FRACTION_BITS
    for start, step in enumerate((2.0**-36, 2.0**-22, 2.0**-20, 2.0**-16)):
        mine = slice(start, None, 4)
        assert is_multiple(noisy[mine], step)
        assert not is_multiple(noisy[mine], 2 * step)
        assert abs((noisy - exact)[mine].std() / sigmas[start] - 1) < 0.1


@pytest.mark.parametrize(
    ("sums", "sigma", "message"),
    [
        ([0], 0.0, "sigma of real sums"),
        ([0], 2.0**20, "sigma of real sums"),
        ([2**62], 1.0, "below 2"),
    ],
)
def test_sums_that_do_not_fit_into_64_bits_are_refused(sums, sigma, message):
    with pytest.raises(ValueError, match=message):
        add_noise_to_sums(np.array(sums), sigma, np.random.default_rng(0))
