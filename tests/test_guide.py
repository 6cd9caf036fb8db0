"""The guide: what one record changes in it, and what denoising may do."""

import numpy as np
import pytest
from released_guide import release_guide

from lumberjack import guide as module
from lumberjack.guide import (
    N_BINS,
    count_cells,
    haar_denoise,
    order_categories,
)
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
    x, c, constant = count_cells(X.T, np.array([0, 1, 1, 0]), SCHEMA)
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
        with_record = count_cells(X.T, y, SCHEMA)
        without = count_cells(np.delete(X, row, axis=0).T, np.delete(y, row), SCHEMA)
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


def test_denoising_favours_no_place_of_a_boundary():
    # A step between any two cells is found as well as one in the middle, where the transform cuts.
    rng = np.random.default_rng(3)
    errors = []
    for edge in (128, 101, 37):
        counts = np.where(np.arange(256) < edge, 40.0, 120.0)[:, None]
        errors.append(
            np.mean(
                [
                    np.mean((haar_denoise(counts + rng.normal(scale=20, size=(256, 1)), 20, 3) - counts) ** 2)
                    for _ in range(40)
                ]
            )
        )  # fmt: skip
    assert max(errors) < 2 * errors[0]


def test_without_noise_the_guide_is_the_cumulated_histogram():
    X, y = rows()
    guide = release_guide(X, y, SCHEMA, 1e-9, np.random.default_rng(0))
    for k in (0, 1):
        cumulative = guide.cumulative[: N_BINS + 1, k]
        expected = [np.sum((X[:, 0] < edge) & (y == k)) for edge in range(257)]
        assert cumulative == pytest.approx(expected, abs=1e-3)
    scaled = guide.to_guide_scale(X)
    for k in (0, 1):
        cumulative = guide.cumulative[N_BINS + 1 : N_BINS + 5, k]
        seen = X[:, 1] >= 0
        expected = [np.sum(seen & (scaled[:, 1] < edge - 0.5) & (y == k)) for edge in range(4)]
        assert cumulative == pytest.approx(expected, abs=1e-3)
    assert guide.first.tolist() == [0, N_BINS + 1, N_BINS + 5]
    assert guide.n_bins.tolist() == [N_BINS, 3, N_BINS]
    assert guide.is_category.tolist() == [False, True, False]
    assert guide.lower.tolist() == [0, -0.5, 5]
    assert guide.upper.tolist() == [256, 2.5, 5]
    assert guide.class_shares == pytest.approx([(y == 0).mean(), (y == 1).mean()])


def test_the_guide_has_the_noise_it_was_given(monkeypatch):
    monkeypatch.setattr(module, "_THRESHOLD", 0.0)
    X, y = np.empty((0, 3)), np.empty(0, dtype=np.int64)
    sigma = 50.0
    rng = np.random.default_rng(1)
    cells = np.concatenate(
        [
            np.diff(
                release_guide(X, y, SCHEMA, sigma, rng).cumulative[: N_BINS + 1],
                axis=0,
            ).ravel()
            for _ in range(20)
        ]
    )
    # Undenoised cells of an empty table are max(N(0, sigma^2), 0): half of them are zero, their
    # mean is sigma / sqrt(2 pi).
    assert (cells < 1e-9).mean() == pytest.approx(0.5, abs=0.02)
    assert cells.mean() == pytest.approx(sigma / np.sqrt(2 * np.pi), rel=0.05)


def test_categories_have_the_noise_they_were_given():
    X, y = np.empty((0, 3)), np.empty(0, dtype=np.int64)
    sigma = 50.0
    rng = np.random.default_rng(1)
    totals = np.concatenate(
        [
            np.diff(release_guide(X, y, SCHEMA, sigma, rng).cumulative[N_BINS + 1 : N_BINS + 5].sum(axis=1))
            for _ in range(2000)
        ]
    )  # fmt: skip
    # A category's total over two classes is max(N(0, 2 sigma^2), 0).
    assert (totals < 1e-9).mean() == pytest.approx(0.5, abs=0.02)
    assert totals.mean() == pytest.approx(sigma / np.sqrt(np.pi), rel=0.05)


def test_categories_lie_in_the_order_of_their_class_shares():
    counts = np.array([[10, 90], [500, 500], [80, 20], [300, 100]], dtype=float)
    overall = counts.sum(axis=0) / counts.sum()
    masses, positions = order_categories(counts, overall, 1e-9)
    assert positions[:4].tolist() == [3, 2, 0, 1]
    assert masses == pytest.approx(counts[[2, 3, 1, 0]])
    # 0.44 of all are of the second class: between 300:100 and 500:500.
    assert positions[4] == 1.5


def test_a_category_of_little_weight_lies_near_the_whole_table():
    counts = np.array([[5000, 1000], [0, 3], [1000, 5000]], dtype=float)
    masses, positions = order_categories(counts, np.array([0.5, 0.5]), 50.0)
    assert positions[:3].tolist() == [0, 1, 2]
    assert masses[1] == pytest.approx([1.5, 1.5], abs=0.1)


def test_three_classes_are_ordered_along_the_direction_in_which_they_differ_most():
    shares = np.array([[0.1, 0.2, 0.7], [0.7, 0.2, 0.1], [0.4, 0.2, 0.4], [0.25, 0.2, 0.55]])
    _, positions = order_categories(1000 * shares, shares.mean(axis=0), 1e-9)
    order = positions[:4].tolist()
    assert order in ([3, 0, 1, 2], [0, 3, 2, 1])


def test_categories_take_their_positions_and_unseen_categories_lie_between_the_others():
    X, y = rows()
    y[X[:, 1] == 2] = 0
    guide = release_guide(X, y, SCHEMA, 1e-9, np.random.default_rng(0))
    scaled = guide.to_guide_scale(X)
    assert np.array_equal(scaled[:, [0, 2]], X[:, [0, 2]])
    position = guide.positions[guide.block(1)]
    for code in (-1, 0, 1, 2):
        assert (scaled[X[:, 1] == code, 1] == position[code]).all()
    assert sorted(position[:3]) == [0, 1, 2]
    assert position[3] % 1 == 0.5


def test_evidence_is_the_log_ratio_of_class_shares():
    X, y = rows(3000)
    y[X[:, 1] == 2] = 0
    guide = release_guide(X, y, SCHEMA, 1e-6, np.random.default_rng(0))
    overall = np.array([(y == 0).mean(), (y == 1).mean()])
    cell = N_BINS + int(guide.positions[guide.block(1)][0])
    inside = y[X[:, 1] == 0]
    ratio = np.log([(inside == 0).mean(), (inside == 1).mean()]) - np.log(overall)
    assert guide.evidence[cell] == pytest.approx(ratio - ratio.mean(), abs=1e-3)
    # All of one class: the largest evidence there is.
    assert guide.evidence[N_BINS + int(guide.positions[guide.block(1)][2])] == pytest.approx(
        [1.5, -1.5]
    )
    assert guide.evidence.sum(axis=1) == pytest.approx(0, abs=1e-12)


def test_a_feature_is_worth_its_mutual_information_with_the_class():
    # x is the class below and above the middle; c and the constant say nothing.
    X, _ = rows(20_000)
    y = (X[:, 0] > 128).astype(int)
    guide = release_guide(X, y, SCHEMA, 1e-6, np.random.default_rng(0))
    share = y.mean()
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert guide.mutual_information() == pytest.approx([entropy, 0, 0], abs=2e-3)
