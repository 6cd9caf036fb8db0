"""The guide: what one record changes in it, and what denoising may do."""

import numpy as np
import pytest

from lumberjack.guide import N_BINS, count_cells, haar_denoise, release_guide
from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature

SCHEMA = FeatureSchema(
    (
        NumericFeature("x", 0, 256),
        CategoricalFeature("c", ("a", "b", "d")),
        NumericFeature("constant", 5, 5),
    ),
    classes=(0, 1),
)


def rows(n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.uniform(0, 256, n_rows), rng.integers(-1, 3, n_rows), np.full(n_rows, 5.0)]
    )
    return np.asfortranarray(X), rng.integers(0, 2, n_rows)


def test_cells_are_counted_by_hand():
    # x = 0 and 0.5 lie in bin 0, 1 in bin 1, 256 in the last; an unseen category has no cell.
    X = np.array([[0, 0, 5], [0.5, 2, 5], [1, 2, 5], [256, -1, 5]], dtype=float)
    x, c, constant = count_cells(X, np.array([0, 1, 1, 0]), SCHEMA)
    assert x.shape == (N_BINS, 2)
    assert x[0].tolist() == [1, 1]
    assert x[1].tolist() == [0, 1]
    assert x[-1].tolist() == [1, 0]
    assert x.sum() == 4
    assert c.tolist() == [[1, 0], [0, 0], [0, 2]]
    assert constant[0].tolist() == [2, 2]


def test_one_record_more_changes_at_most_one_cell_per_feature_by_one():
    X, y = rows()
    for row in range(len(X)):
        with_record = count_cells(X, y, SCHEMA)
        without = count_cells(np.delete(X, row, axis=0), np.delete(y, row), SCHEMA)
        squared = 0.0
        for a, b in zip(with_record, without, strict=True):
            difference = a - b
            assert np.abs(difference).sum() <= 1
            squared += (difference**2).sum()
        assert squared <= SCHEMA.n_features


def test_denoising_keeps_what_stands_out_and_the_total():
    counts = np.zeros((256, 2))
    counts[7] = (5000, 0)
    counts[128:] = (10, 30)
    kept = haar_denoise(counts, sigma=1.0, threshold=3.0)
    assert kept[7, 0] == pytest.approx(5000, abs=50)
    assert kept[128:] == pytest.approx(np.tile([10.0, 30.0], (128, 1)), abs=1.0)
    assert kept.sum(axis=0) == pytest.approx(counts.sum(axis=0), rel=0.02)


def test_denoising_pools_cells_that_do_not_differ():
    rng = np.random.default_rng(0)
    noisy = 100 + rng.normal(scale=20, size=(256, 1))
    smooth = haar_denoise(noisy, sigma=20.0, threshold=3.0)
    # Almost all details are noise (0.3 % exceed 3 sigma), so the error falls far below 20.
    assert np.sqrt(np.mean((smooth - 100) ** 2)) < 6


def test_without_noise_the_guide_is_the_cumulated_histogram():
    X, y = rows()
    guide = release_guide(X, y, SCHEMA, 1e-9, np.random.default_rng(0))
    for k in (0, 1):
        cumulative = guide.cumulative[: N_BINS + 1, k]
        expected = [np.sum((X[:, 0] < edge) & (y == k)) for edge in range(257)]
        assert cumulative == pytest.approx(expected, abs=1e-3)
    assert guide.first.tolist() == [0, N_BINS + 1, N_BINS + 4]
    assert guide.n_bins.tolist() == [N_BINS, 0, N_BINS]


def test_the_guide_has_the_noise_it_was_given():
    X, y = np.empty((0, 3)), np.empty(0, dtype=np.int64)
    sigma = 50.0
    rng = np.random.default_rng(1)
    cells = [
        release_guide(X, y, SCHEMA, sigma, rng).cumulative[N_BINS + 1 : N_BINS + 4].ravel()
        for _ in range(2000)
    ]
    # Cells of an empty table are max(N(0, sigma^2), 0): half are zero, mean sigma / sqrt(2 pi).
    cells = np.concatenate(cells)
    assert (cells == 0).mean() == pytest.approx(0.5, abs=0.02)
    assert cells.mean() == pytest.approx(sigma / np.sqrt(2 * np.pi), rel=0.05)
