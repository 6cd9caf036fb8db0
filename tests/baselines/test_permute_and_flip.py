"""Permute-and-Flip: its exact law, three ways, and what one row more costs."""

import math

import numpy as np
import pytest

from baselines.permute_and_flip import draw_labels


def law(counts, epsilon):
    """Return the exact law from the definition: classes in random order, accepted with q_k.

    Uniform arrival times t turn the sum over orders into q_k times the integral over t in [0, 1]
    of the product over i != k of (1 - q_i t).
    """
    counts = np.array(counts, dtype=float)
    deficit = counts.max() - counts
    accepted = np.exp(-np.multiply(deficit, epsilon, out=np.zeros_like(deficit), where=deficit > 0))
    # Gauss-Legendre with m nodes is exact for the polynomial's degree n_classes - 1 <= 2m - 1.
    nodes, weights = np.polynomial.legendre.leggauss(len(counts) // 2 + 1)
    survival = 1 - np.outer((nodes + 1) / 2, accepted)
    others = [np.delete(survival, k, axis=1).prod(axis=1) for k in range(len(counts))]
    return accepted * (np.array(others) @ (weights / 2))


@pytest.mark.parametrize(
    ("counts", "epsilon", "probabilities"),
    [
        ((10, 7), 0.5, (0.888435, 0.111565)),
        ((10, 7), 1.0, (0.975106, 0.024894)),
        ((1, 0), 0.5, (0.696735, 0.303265)),
        ((1, 0), 1.0, (0.816060, 0.183940)),
        ((5, 5), 2.0, (0.5, 0.5)),
        ((3, 2, 2), 1.0, (0.677232, 0.161384, 0.161384)),
        ((4, 4, 1), 1.0, (0.491702, 0.491702, 0.016596)),
        ((0, 0, 0, 0), 1.0, (0.25,) * 4),
        ((2, 0, 2), math.inf, (0.5, 0.0, 0.5)),
    ],
)
def test_labels_have_the_published_law(counts, epsilon, probabilities):
    exact = law(counts, epsilon)
    np.testing.assert_allclose(exact, probabilities, atol=6e-7)
    leaves = np.tile(np.array(counts), (100_000, 1))
    labels = draw_labels(leaves, epsilon, np.random.default_rng(0))
    shares = np.bincount(labels, minlength=len(counts)) / 100_000
    deviation = np.sqrt(exact * (1 - exact) / 100_000)
    assert (np.abs(shares - exact) <= 5 * deviation + 1e-9).all()


def test_they_agree_with_visiting_the_classes_in_random_order():
    # Seven classes by simulation of the definition; 20,000 draws, 5 deviations are at most 0.018.
    counts, epsilon = np.array([5, 4, 4, 3, 2, 0, 0]), 0.7
    rng = np.random.default_rng(0)
    accepted = np.exp(epsilon * (counts - counts.max()))
    shares = np.zeros(7)
    for _ in range(20_000):
        order = rng.permutation(7)
        shares[order[rng.random(7) < accepted[order]][0]] += 1 / 20_000
    np.testing.assert_allclose(law(counts, epsilon), shares, atol=0.018)


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_one_row_more_costs_epsilon_and_no_more(epsilon):
    losses = [
        np.abs(np.log(law((a, b, c), epsilon) / law((a + 1, b, c), epsilon))).max()
        for a in range(9)
        for b in range(9)
        for c in range(9)
    ]
    assert max(losses) <= epsilon + 1e-9
    assert max(losses) == pytest.approx(epsilon, abs=1e-3)
