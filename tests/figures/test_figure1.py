from __future__ import annotations

import csv

import numpy as np
import pytest

from lumberjack_bench.figures import draw, figure1, style
from lumberjack_bench.figures.figure1 import Cell, draw_cells, fit_cell, read_settings, shares_of


@pytest.fixture(scope="module")
def settings():
    return read_settings()


def test_the_settings_are_those_of_the_paper(settings):
    assert (settings.eps, settings.delta, settings.n_seeds) == (2.0, 1e-6, 3)
    for name, depth in (("lumberjack", 100), ("fully_random", 10)):
        params = settings.methods[name]["params"]
        assert (params["n_estimators"], params["max_depth"]) == (25, depth)


def test_shares_are_counted_by_group():
    # Class 0: 3 of 4 right; class 1: 1 of 2; class 2: 0 of 1; moons 4 of 6; all 4 of 7.
    y = np.array([0, 0, 0, 0, 1, 1, 2])
    predicted = np.array([0, 0, 0, 1, 1, 0, 0])
    assert shares_of(predicted, y) == pytest.approx(
        {"larger_moon": 3 / 4, "smaller_moon": 1 / 2, "blob": 0, "moons": 4 / 6, "all": 4 / 7}
    )


@pytest.mark.parametrize("extent", [5, 5000])
def test_lumberjack_keeps_the_moons_however_far_the_blob_is(settings, extent):
    # An independent implementation reached 0.988 and 0.984.
    cell = fit_cell(settings, "lumberjack", extent)
    assert len(cell.shares) == 3
    assert cell.moon_share >= 0.975
    assert cell.regions.shape == (400, 500)


def test_random_trees_lose_the_smaller_moon_at_the_largest_extent(settings):
    near, far = (fit_cell(settings, "fully_random", extent) for extent in (5, 5000))
    assert near.moon_share == pytest.approx(0.98, abs=0.015)
    # Everything near the origin gets the label of the larger moon: 5500 of 9500 points.
    assert far.moon_share == pytest.approx(5500 / 9500, abs=1e-9)
    assert set(np.unique(far.regions)) == {0}


def test_regions_are_evaluated_where_they_are_drawn(settings):
    class Halves:
        def predict(self, X):
            return (X[:, 0] > 2.5).astype(int) + (X[:, 1] > 2.0)

    regions = figure1._regions(Halves(), (5.0, 4.0), (10, 8))
    # Rows go up the second feature, columns along the first.
    assert regions.shape == (8, 10)
    assert regions[0].tolist() == [0] * 5 + [1] * 5
    assert regions[-1].tolist() == [1] * 5 + [2] * 5


def made_up_cell(settings, method, extent):
    generator = np.random.default_rng(0)
    points = generator.uniform(0, 4, (30, 2))
    regions = generator.integers(0, 3, (8, 10))
    shares = [dict.fromkeys(("moons", "larger_moon"), share) for share in (0.5, 0.75)]
    return Cell(method, extent, points, np.repeat([0, 1, 2], 10), regions, regions, shares)


def test_the_files_hold_the_picture_and_each_seed_with_the_mean(tmp_path, monkeypatch):
    monkeypatch.setattr(figure1, "fit_cell", made_up_cell)
    paths = draw("figure1", tmp_path)
    assert [path.name for path in paths] == ["figure1.pdf", "figure1.png", "figure1.csv"]
    with paths[2].open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 3 * 3
    assert [(r["seed"], r["share_moons"]) for r in rows[:3]] == [
        ("0", "0.500000"),
        ("1", "0.750000"),
        ("mean", "0.625000"),
    ]


def test_the_grid_has_methods_down_and_extents_across(settings):
    cells = [made_up_cell(settings, m, e) for m in figure1.METHODS for e in figure1.EXTENTS]
    with style.our_look():
        figure = draw_cells(cells, settings)
    panels = [axes for axes in figure.axes if axes.get_title(loc="right")]
    assert [axes.get_title(loc="right") for axes in panels] == ["62.5% of moon points right"] * 6
    # The whole space is drawn into the panels that show a part of it.
    assert [len(axes.child_axes) for axes in panels] == [0, 1, 1, 0, 1, 1]
    words = [text.get_text() for axes in panels for text in axes.texts]
    assert "Lumberjack, (2, 10⁻⁶)-DP" in words
    assert "Fully random trees, depth 10, no noise" in words
