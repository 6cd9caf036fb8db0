"""Fully random trees: exact counts of all records, and what figure 1 shows of them."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

from baselines.fully_random import FullyRandomClassifier
from baselines.keyed_trees import SplitSpace, draw_keys
from baselines.random_binary_trees import leaves_of_rows
from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature


def moons_with_an_outlier(extent, seed):
    moons, moon_of_point = make_moons((5500, 4000), noise=0.125, random_state=seed)
    moons += (1.75, 1.25)
    upper = np.array([extent, 0.8 * extent])
    blob, _ = make_blobs(500, centers=[upper - 1], cluster_std=0.175, random_state=seed)
    features = (NumericFeature("a", 0, upper[0]), NumericFeature("b", 0, upper[1]))
    points, classes = np.vstack([moons, blob]), np.append(moon_of_point, np.full(500, 2))
    return FeatureSchema(features, (0, 1, 2)), points, classes


@pytest.mark.parametrize(
    ("extent", "lowest", "highest"), [(5, 0.95, 1.0), (50, 0.82, 0.95), (5000, 0.57, 0.60)]
)
def test_random_trees_lose_the_moons_as_the_space_grows(extent, lowest, highest):
    # At extent 5000 depth 10 never separates the moons: all points get the larger one, 5500 / 9500.
    shares = []
    for seed in range(3):
        schema, points, classes = moons_with_an_outlier(extent, seed)
        model = FullyRandomClassifier(schema=schema, random_state=seed, noise_seed=seed)
        model.fit(points, classes)
        shares.append((model.predict(points[:9500]) == classes[:9500]).mean())
    assert lowest <= np.mean(shares) <= highest


def test_every_tree_counts_all_records():
    # One constant feature: every leaf has counts [9, 11], so all 25 trees vote for class 1.
    schema = FeatureSchema((NumericFeature("a", 0, 0),), (0, 1))
    X, y = np.zeros((20, 1)), np.repeat([0, 1], [9, 11])
    model = FullyRandomClassifier(schema=schema, random_state=0, noise_seed=0).fit(X, y)
    assert np.array_equal(model.predict_proba(X[:1]), [[0, 1]])


def test_categories_are_split_one_against_the_rest_each_at_most_once():
    # Depth 5 uses up all five categories of the only feature: every record is alone with its
    # category, and the sixth level finds no candidate split.
    space = SplitSpace(np.zeros(1), np.full(1, 4.0), np.array([5]))
    codes = np.array([[0.0], [1], [2], [3], [4], [-1]])
    for key in draw_keys(np.random.default_rng(0), 50):
        assert len(np.unique(leaves_of_rows(codes, space, key, 5))) == 6
        assert np.array_equal(
            leaves_of_rows(codes, space, key, 5), leaves_of_rows(codes, space, key, 9)
        )
        # One split separates one of the six values from the others.
        _, sizes = np.unique(leaves_of_rows(codes, space, key, 1), return_counts=True)
        assert sorted(sizes.tolist()) == [1, 5]


def test_the_first_split_is_uniform_over_features_and_their_categories():
    # Two features of 4 and 2 categories. Row r has category r of the first and 0 of the second, so
    # a split of the second feature separates no row (category 0 or 1: all rows on one side).
    space = SplitSpace(np.zeros(2), np.array([3.0, 1.0]), np.array([4, 2]))
    rows = np.array([[0.0, 0], [1, 0], [2, 0], [3, 0]])
    alone = np.zeros(4)
    n_together = 0
    for key in draw_keys(np.random.default_rng(1), 4000):
        _, sides, sizes = np.unique(
            leaves_of_rows(rows, space, key, 1), return_inverse=True, return_counts=True
        )
        if len(sizes) == 1:
            n_together += 1
        else:
            alone += sizes[sides] == 1
    # Half the splits choose the second feature; the others are uniform over four categories.
    assert n_together / 4000 == pytest.approx(0.5, abs=0.035)
    assert alone / 4000 == pytest.approx(np.full(4, 0.125), abs=0.025)


def test_any_schema_works_and_absent_classes_get_no_majority():
    schema = FeatureSchema(
        (CategoricalFeature("c", tuple(range(41))), CategoricalFeature("constant", (0,))),
        (0, 1, 2, 3),
    )
    generator = np.random.default_rng(0)
    X = np.column_stack([generator.integers(-1, 41, 2000), np.zeros(2000)])
    y = np.where(X[:, 0] > 20, 3, 1)
    model = FullyRandomClassifier(schema=schema, max_depth=60, random_state=0, noise_seed=0)
    assert model.fit(X, y).score(X, y) == 1.0
    assert model.fit_report()["mean_reached_leaves_per_tree"] == 42
