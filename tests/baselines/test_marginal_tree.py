"""A tree of noisy marginals: the nearest distribution, and rows that follow it."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from baselines.marginal_tree import MarginalTree, NoisyCounts, fit_tree

EDGES = [(0, 2), (0, 1), (2, 3)]
SIZES = (3, 2, 4, 2)


def exact_counts(seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Marginals of a random table of 1000 records."""
    table = (
        np.random.default_rng(seed).dirichlet(np.full(np.prod(SIZES), 0.3)).reshape(SIZES) * 1000
    )
    axes = range(len(SIZES))
    single = [table.sum(axis=tuple(a for a in axes if a != j)) for j in axes]
    paired = []
    for parent, child in EDGES:
        pair = table.sum(axis=tuple(a for a in axes if a not in (parent, child)))
        paired.append(pair if parent < child else pair.T)
    return single, paired


def noisy(counts: list[np.ndarray], sigma: float, seed: int) -> list[NoisyCounts]:
    rng = np.random.default_rng(seed)
    return [NoisyCounts(c + rng.normal(0, sigma, c.shape), sigma**2) for c in counts]


def test_marginals_of_one_table_are_their_own_nearest_distribution() -> None:
    single, paired = exact_counts()
    tree = fit_tree(EDGES, noisy(single, 1e-9, 0), noisy(paired, 1e-9, 1), 1000.0)
    for found, wanted in zip([*tree.single, *tree.paired], [*single, *paired], strict=True):
        assert np.abs(found - wanted).max() < 1.0


def test_pairs_agree_with_their_attributes_whatever_the_noise() -> None:
    single, paired = exact_counts()
    tree = fit_tree(EDGES, noisy(single, 30, 0), noisy(paired, 30, 1), 1000.0, n_iterations=20)
    for (parent, child), pair in zip(EDGES, tree.paired, strict=True):
        assert pair.min() >= 0
        assert np.allclose(pair.sum(axis=1), tree.single[parent])
        assert np.allclose(pair.sum(axis=0), tree.single[child])
        assert pair.sum() == pytest.approx(1000.0)


@pytest.mark.slow
def test_the_nearest_distribution_is_that_of_the_authors_own_package() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mbi = pytest.importorskip("mbi", reason="needs mbi, the authors' package")
    single, paired = (noisy(c, 20, seed) for seed, c in enumerate(exact_counts()))
    tree = fit_tree(EDGES, single, paired, 1000.0)
    measured = [
        mbi.LinearMeasurement(one.counts.ravel(), clique, 20.0)
        for one, clique in zip(
            [*single, *paired], [*((j,) for j in range(len(SIZES))), *EDGES], strict=True
        )
    ]
    domain = mbi.Domain(range(len(SIZES)), SIZES)
    theirs = mbi.estimation.MirrorDescent().estimate(
        domain, measured, known_total=1000.0, iters=1500
    )
    for edge, pair in zip(EDGES, tree.paired, strict=True):
        assert np.abs(pair - np.asarray(theirs.project(edge).values)).max() < 1.0


def test_drawn_rows_have_the_expected_counts_along_every_edge() -> None:
    single, paired = exact_counts()
    rows = MarginalTree(EDGES, single, paired).draw(5000, np.random.default_rng(0))
    for (parent, child), pair in zip(EDGES, paired, strict=True):
        for a, b in itertools.product(range(pair.shape[0]), range(pair.shape[1])):
            drawn = ((rows[:, parent] == a) & (rows[:, child] == b)).sum()
            # Each group of equal parents is rounded once, and so is the parent itself.
            assert abs(drawn - 5 * pair[a, b]) < 20
