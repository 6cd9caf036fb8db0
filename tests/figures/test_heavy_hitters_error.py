from __future__ import annotations

import csv

import numpy as np
import pytest

from lumberjack.accounting import get_error_bound
from lumberjack_bench.figures import draw, heavy_hitters_error
from lumberjack_bench.figures.heavy_hitters_error import (
    BETA,
    chains,
    draw_errors,
    error_of,
    measure,
    measure_all,
)


@pytest.fixture(scope="module")
def measurements():
    return measure_all(heights=(10, 100, 300), n_trials=10, seed=1)


def test_chains_hang_below_the_root_and_keep_their_counts():
    hierarchy, counts = chains(4, np.array([5, 7]))
    assert hierarchy.parent.tolist() == [-1, 0, 0, 1, 2, 3, 4]
    assert counts.tolist() == [12, 5, 7, 5, 7, 5, 7]
    assert hierarchy.height == 4
    hierarchy.check_counts(counts)


def test_the_error_is_the_distance_of_the_worst_misjudged_count():
    counts = np.array([100, 60, 40, 30])
    # At threshold 50: 60 is Light though heavy (10 off), 30 is Heavy though light (20 off).
    assert error_of(np.array([True, False, False, True]), counts, 50.0) == 20.0
    assert error_of(np.array([True, False, False, False]), counts, 50.0) == 10.0
    assert error_of(np.array([True, True, False, False]), counts, 50.0) == 0.0


def test_touches_and_bound_are_those_of_the_search_and_of_lemma_5(measurements):
    # Of Algorithm 1 ceil(log2(h + 1)), of the baseline h.
    touches = {(one.method, one.height): one.n_touches for one in measurements}
    assert touches["binary_search", 100] == 7
    assert touches["top_down", 100] == 100
    for one in measurements:
        if one.method == "binary_search":
            size = {"n_records": one.n_records, "n_queries_per_record": one.n_touches}
            assert one.bound == pytest.approx(get_error_bound(one.sigma, beta=BETA, **size))


def test_errors_stay_within_the_bound(measurements):
    # The bound fails in at most 5 % of searches; it is loose by a factor of about 2 here.
    for one in measurements:
        assert 0 < one.smallest <= one.mean <= one.largest <= one.bound


def test_the_baseline_s_error_grows_with_the_height_and_algorithm_1_s_hardly(measurements):
    mean = {(one.method, one.height): one.mean for one in measurements}
    # Noise grows by sqrt(300 / 10) = 5.5 for the baseline and by sqrt(9 / 4) = 1.5 for Algorithm 1.
    assert mean["top_down", 300] > 4 * mean["top_down", 10]
    assert mean["binary_search", 300] < 3 * mean["binary_search", 10]
    assert mean["top_down", 300] > 4 * mean["binary_search", 300]


def test_equal_seeds_measure_the_same():
    first, second = (measure("top_down", 10, 3, np.random.default_rng(5)) for _ in range(2))
    assert first == second


def test_the_picture_holds_both_methods_and_their_bounds(measurements):
    (axes,) = draw_errors(measurements).axes
    assert [line.get_linestyle() for line in axes.lines] == ["-", ":"] * 2
    drawn = [line.get_ydata().tolist() for line in axes.lines]
    assert drawn[0] == [one.mean for one in measurements[:3]]
    assert drawn[3] == [one.bound for one in measurements[3:]]


def test_the_files_hold_the_picture_and_each_measurement(measurements, tmp_path, monkeypatch):
    monkeypatch.setattr(heavy_hitters_error, "measure_all", lambda: measurements)
    *_, path = draw("heavy_hitters_error", tmp_path)
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["method"], int(row["height"]), float(row["mean"])) for row in rows] == [
        (one.method, one.height, pytest.approx(one.mean)) for one in measurements
    ]
