from __future__ import annotations

import numpy as np
import pytest

from lumberjack_bench import datasets
from lumberjack_bench.datasets import DatasetError
from lumberjack_bench.datasets.named import named_config


def load(**changes):
    return datasets.load({**named_config("toy_moons"), **changes})


@pytest.mark.parametrize(("extent", "upper_2"), [(5, 4), (50, 40), (5000, 4000)])
def test_points_are_those_of_figure_1(extent, upper_2):
    toy = load(extent=extent)
    assert toy.schema.lower.tolist() == [0, 0]
    assert toy.schema.upper.tolist() == [extent, upper_2]
    assert np.bincount(toy.y).tolist() == [5500, 4000, 500]
    values, counts = toy.encoded()
    assert counts.clipped == {}
    assert (values >= 0).all()
    assert (values <= [extent, upper_2]).all()
    blob = values[toy.y == 2]
    # Centre one below the upper bounds; 500 points with deviation 0.175: the mean lies within
    # 5 * 0.175 / sqrt(500) = 0.04 of it, the deviation within 5 * 0.175 / sqrt(1000) = 0.03.
    assert np.abs(blob.mean(axis=0) - [extent - 1, upper_2 - 1]).max() < 0.04
    assert np.abs(blob.std(axis=0) - 0.175).max() < 0.03
    # Without noise the outer moon is a half circle around (1.75, 1.25) of radius 1, the inner
    # one around (2.75, 1.75); the distances deviate by the noise, 0.125.
    outer = np.hypot(*(values[toy.y == 0] - [1.75, 1.25]).T)
    inner = np.hypot(*(values[toy.y == 1] - [2.75, 1.75]).T)
    for radius in (outer, inner):
        assert abs(radius.mean() - 1) < 0.02
        assert abs(radius.std() - 0.125) < 0.01


def test_the_same_seed_gives_the_same_points_and_extents_share_the_moons():
    first, again, other = load(), load(), load(points_seed=1)
    np.testing.assert_array_equal(first.X, again.X)
    assert not np.array_equal(first.X, other.X)
    wide = load(extent=5000)
    np.testing.assert_array_equal(first.X[first.y < 2], wide.X[wide.y < 2])


def test_extents_go_by_different_names():
    assert named_config("toy_moons", ["extent=50"])["name"] == "toy_moons_50"


def test_identity_follows_the_recipe():
    config = named_config("toy_moons")
    assert datasets.identity(config) == datasets.identity(dict(config))
    assert datasets.identity({**config, "extent": 50}) != datasets.identity(config)
    assert datasets.identity({**config, "points_seed": 1}) != datasets.identity(config)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("extent", [4, 500, "wide", True, None], "extent must be one of"),
        ("points_seed", ["abc", -1, 1.5, True, None], "must be a non-negative whole number"),
    ],
)
def test_wrong_settings_are_refused(name, values, message):
    for value in values:
        with pytest.raises(DatasetError, match=message):
            load(**{name: value})
