"""The forest for numeric targets: what its leaves release, what that costs, and what is left on the model."""

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from lumberjack import (
    CategoricalFeature,
    FeatureSchema,
    LumberjackClassifier,
    LumberjackRegressor,
    NumericFeature,
    PrivacyLeakWarning,
    SchemaError,
)
from lumberjack.accounting import Group, Structure, calibrate_joint, gaussian
from lumberjack.regressor import RESOLUTION, mean_shares, sum_shares

FEATURES = (NumericFeature("x", 0, 1), CategoricalFeature("colour", ("red", "green", "blue")))
SCHEMA = FeatureSchema(FEATURES, label="price", target_bounds=(-10, 30))


def table(n_rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"x": rng.uniform(size=n_rows), "colour": rng.choice(FEATURES[1].categories, n_rows)}
    )
    return X, 10 * X.x + 8 * (X.colour == "red") + rng.normal(size=n_rows)


def forest(**parameters):
    defaults = {"epsilon": 4.0, "schema": SCHEMA, "random_state": 1, "noise_seed": 2}
    return LumberjackRegressor(**(defaults | {"n_estimators": 10} | parameters))


def r_squared(model, seed=1):
    return model.score(*table(seed=seed))


# Noise is seeded because several checks fit twice and compare. No check is expected to fail.
@pytest.mark.filterwarnings("ignore::lumberjack.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore::lumberjack.DataOutsideSchemaWarning")
@parametrize_with_checks([LumberjackRegressor(noise_seed=0, random_state=0, n_estimators=5)])
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("accounting", ["safe", "tight"])
def test_it_learns_a_number_and_a_category(accounting):
    model = forest(accounting=accounting).fit(*table())
    assert r_squared(model) > 0.75
    predicted = model.predict(table(seed=1)[0])
    assert predicted.shape == (4000,)
    assert predicted.min() >= -10
    assert predicted.max() <= 30


# A record adds (1 - t, t) to one leaf of a tree: norm^2 = 1 - 2 t (1 - t), largest, 1, at the bounds.
@pytest.mark.parametrize("target", [-1e9, -10.0, 3.7, 10.0, 29.999999, 30.0, 1e9])
@pytest.mark.parametrize("place", [0, 57, 100])
def test_a_record_changes_the_sums_of_one_leaf_by_at_most_one(target, place):
    _, y = table(101)
    y = y.to_numpy(copy=True)
    y[place] = target
    shares = forest()._read_labels(y, SCHEMA)
    nodes = np.random.default_rng(3).integers(5, size=101)
    kept = np.arange(101) != place
    change = sum_shares(nodes, shares, 5) - sum_shares(nodes[kept], shares[kept], 5)
    t = (min(max(target, -10.0), 30.0) + 10.0) / 40.0
    assert np.flatnonzero(change.any(axis=1)).tolist() == [nodes[place]]
    # Sums of multiples of the resolution are exact, so nothing is lost in the difference.
    assert np.linalg.norm(change) <= 1.0
    assert np.linalg.norm(change) == pytest.approx(
        math.sqrt(1 - 2 * t * (1 - t)), abs=2 * RESOLUTION
    )
    order = np.random.default_rng(4).permutation(101)
    assert np.array_equal(sum_shares(nodes[order], shares[order], 5), sum_shares(nodes, shares, 5))


def test_trees_are_grown_without_a_look_at_the_target():
    X, y = table()
    first, second = (forest().fit(X, target).estimators_ for target in (y, -y))
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one.feature, other.feature)
        assert np.array_equal(one.threshold, other.threshold)


def test_the_ledger_is_that_of_one_joint_release():
    ledger = forest(epsilon=2.0).fit(*table(500)).ledger_
    # 10 trees of 100 levels: 10 * (1 + floor(log2 100)) = 70 queries.
    trees, sums = Structure("structure", 70, 0.75), Group("sums", 10, 0.25)
    noise = calibrate_joint(2.0, 1e-6, trees, [sums])
    assert [release.group for release in ledger.releases] == [noise.structure, *noise.others]
    assert ledger.get_delta(2.0) <= 1e-6
    # In a second way: all noise as one Gaussian of the squares' sum, which a union bound only adds to.
    mu = math.sqrt(70 / noise.structure.sigma**2 + 10 / noise["sums"].sigma ** 2)
    assert 0 < gaussian.get_delta(2.0, mu) <= 1e-6
    assert "at most 1 in L2 norm" in ledger.releases[1].sensitivity


def test_the_noise_of_the_leaves_is_the_ledger_s():
    # Constant features: every tree is one leaf, whose count is 100 and whose targets lie in the middle.
    schema = FeatureSchema((NumericFeature("x", 1, 1),), target_bounds=(0, 1))
    model = LumberjackRegressor(1.0, schema=schema, n_estimators=4000, noise_seed=0)
    model.fit(np.ones((10_000, 1)), np.full(10_000, 0.5))
    sigma = model.ledger_.releases[1].group.sigma
    means = np.array([tree.value[0, 0] for tree in model.estimators_])
    # The mean is half and the sums are independent: sd of b / (a + b) is sigma / (sqrt(2) n).
    assert means.std() == pytest.approx(sigma / math.sqrt(2) / 10_000, rel=0.05)


@pytest.mark.parametrize(
    ("released", "expected"),
    # Overall 20 / 100 = 0.2; the noise of a count is sqrt(2) * sqrt(2) = 2 records. The second leaf has
    # 4 - 0.2 * 8 = 2.4 more than it would at the mean: 0.2 + 2.4 / (8 + 2) = 0.44.
    [([[76.0, 16.0], [4.0, 4.0]], [0.2 - 2.4 / 94, 0.44]), ([[-2.0, -2.0]], [0.5])],
)
def test_small_leaves_are_drawn_towards_the_mean_of_all(released, expected):
    found = mean_shares(np.array(released), scale=math.sqrt(2))
    assert found == pytest.approx(np.clip(expected, 0, 1))


def test_another_unit_of_the_target_gives_the_same_predictions_in_it():
    X, y = table()
    expected = forest().fit(X, y).predict(X)
    schema = FeatureSchema(FEATURES, label="price", target_bounds=(-1000, 3000))
    found = forest(schema=schema).fit(X, 100 * y).predict(X)
    assert found == pytest.approx(100 * expected, abs=0.01)


def test_the_same_seeds_give_the_same_forest_at_any_number_of_threads():
    X, y = table()
    first, second = (forest(n_jobs=n_jobs).fit(X, y).predict(X) for n_jobs in (1, 3))
    assert np.array_equal(first, second)


def test_a_pickle_holds_released_values_only():
    n_rows = 3989
    X, y = table(n_rows)
    model = forest().fit(X, y)
    data = pickle.dumps(model)
    again = pickle.loads(data)
    assert np.array_equal(again.predict(X), model.predict(X))
    assert set(vars(again)) == set(again.get_params()) | {
        "schema_", "estimators_", "ledger_", "guarantee_", "n_features_in_", "feature_names_in_",
    }  # fmt: skip
    size = sum(
        t.feature.nbytes + t.threshold.nbytes + t.children_left.nbytes + t.value.nbytes
        for t in again.estimators_
    )
    assert len(data) < size + 1000 * len(again.estimators_) + 10_000
    for tree in again.estimators_:
        # The exact means of the leaves are nowhere.
        leaves = tree.apply(model.schema_.encode(X).values, model.schema_.n_categories > 0)
        for node in np.unique(leaves):
            assert tree.value[node, 0] != pytest.approx(y[leaves == node].mean(), abs=1e-9)


def test_bounds_read_off_the_rows_are_announced_and_recorded():
    X, y = table(200)
    facts = {
        "schema": None,
        "bounds": {"x": (0, 1)},
        "categories": {"colour": ["red", "green", "blue"]},
    }
    with pytest.warns(PrivacyLeakWarning, match="target_bounds were read off the rows"):
        model = forest(**facts).fit(X, y)
    assert model.schema_.target_bounds == (y.min(), y.max())
    assert "target_bounds were read off" in str(model.ledger_)
    assert any(
        "target_bounds were read off" in concern for concern in model.privacy_card().concerns
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = forest(**facts, target_bounds=(-10, 30), noise_seed=None).fit(X, y)
    assert not model.ledger_.caveats


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"accounting": "paper"}, "'accounting' parameter of LumberjackRegressor must be a str"),
        ({"target_bounds": (0, 1)}, "give either schema or target_bounds, not both"),
        ({"schema": FeatureSchema(FEATURES, ("no", "yes"))}, "the schema has classes, but needs target_bounds"),
        ({"schema": None, "target_bounds": 5}, "target_bounds must be two numbers"),
        ({"schema": None, "target_bounds": (3, 3)}, "lower=3 must be less than upper=3"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::lumberjack.PrivacyLeakWarning")
def test_bad_parameters_are_refused_in_one_line(parameters, message):
    with pytest.raises(ValueError, match=message) as error:
        forest(**parameters).fit(*table(50))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("odd", [np.nan, np.inf, None, "many"])
def test_targets_that_are_no_numbers_are_refused_and_leave_nothing_behind(odd):
    X, y = table(50)
    model = forest()
    with pytest.raises(SchemaError, match="y has 1 entries that are missing, infinite"):
        model.fit(X, [odd, *y[1:]])
    assert not hasattr(model, "schema_")


def test_a_classifier_refuses_a_numeric_target():
    with pytest.raises(ValueError, match="the schema has target_bounds, but needs classes"):
        LumberjackClassifier(schema=SCHEMA).fit(*table(50))
