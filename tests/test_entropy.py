"""The operating system's random bits: fresh ones, of the right laws, also in compiled code."""

import sys

import numpy as np
import pytest
from scipy import stats

from lumberjack import LumberjackClassifier, entropy, estimator
from lumberjack.compiled import compiled
from lumberjack.entropy import make_system_generator


@compiled(nogil=True)
def draw_compiled(generator, draws):
    for i in range(len(draws)):
        draws[i] = generator.standard_normal()


def draw_normals(generator, n_draws):
    return generator.standard_normal(n_draws)


def draw_normals_compiled(generator, n_draws):
    draws = np.empty(n_draws)
    draw_compiled(generator, draws)
    return draws


@pytest.mark.parametrize("draw", [draw_normals, draw_normals_compiled])
def test_normals_are_normal_and_no_two_generators_share_them(draw):
    first, second = (draw(make_system_generator(), 20_000) for _ in range(2))
    assert stats.kstest(first, "norm").pvalue > 1e-6
    assert len(np.unique(np.concatenate([first, second]))) == 40_000


def test_uniform_numbers_and_small_integers_have_their_laws():
    generator = make_system_generator()
    assert stats.kstest(generator.random(20_000), "uniform").pvalue > 1e-6
    for size in (5, 2**20):  # by words of 32 bits
        drawn = generator.integers(0, size, 20_000) * 5 // size
        assert stats.chisquare(np.bincount(drawn, minlength=5)).pvalue > 1e-6


def test_words_are_those_of_the_system_each_used_once(monkeypatch):
    given = []

    def fake(size):
        given.append(np.random.default_rng(len(given)).bytes(size))
        return given[-1]

    monkeypatch.setattr(entropy.os, "urandom", fake)
    words = make_system_generator().integers(0, 2**64 - 1, 5000, dtype=np.uint64, endpoint=True)
    assert len(given) == 3
    assert words.tobytes() == b"".join(given)[: 8 * 5000]


def test_an_interrupt_while_bits_are_read_repeats_none_of_them(monkeypatch):
    real, calls = entropy.os.urandom, []

    def interrupted(size):
        calls.append(size)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(size)

    monkeypatch.setattr(entropy.os, "urandom", interrupted)
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)
    words = make_system_generator().integers(0, 2**64 - 1, 5000, dtype=np.uint64, endpoint=True)
    assert len(calls) == 4
    assert len(np.unique(words)) == 5000


def test_without_bits_of_the_system_no_generator_is_made(monkeypatch):
    def fail(size):
        raise OSError("no source of randomness")

    monkeypatch.setattr(entropy.os, "urandom", fail)
    with pytest.raises(OSError, match="no source"):
        make_system_generator()


@pytest.mark.parametrize(("noise_seed", "expected"), [(None, 4), (7, 0)])
def test_a_fit_without_a_noise_seed_draws_all_its_noise_from_the_system(
    monkeypatch, noise_seed, expected
):
    made = []

    def make():
        made.append(make_system_generator())
        return made[-1]

    monkeypatch.setattr(estimator, "make_system_generator", make)
    X = np.random.default_rng(0).uniform(size=(500, 2))
    y = (X[:, 0] > 0.5).astype(int)
    settings = {"n_estimators": 2, "max_depth": 4, "bounds": (0, 1), "classes": [0, 1]}
    fitted = LumberjackClassifier(noise_seed=noise_seed, **settings).fit(X, y)
    # Two trees, and what may be released before and after them.
    assert len(made) == expected
    assert any("not cryptographic" in one for one in fitted.privacy_card().concerns) == (
        expected == 0
    )
