"""The non-private references: one-hot input, the search on validation rows, the empty promise."""

import numpy as np
import pytest
from sklearn.base import clone

from baselines.decision_tree import DecisionTreeReference
from baselines.extra_trees import ExtraTreesReference
from baselines.one_hot_reference import one_hot
from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature

REFERENCES = [ExtraTreesReference, DecisionTreeReference]
SMALL = {
    ExtraTreesReference: {"n_estimators": 20, "min_samples_split": 10},
    DecisionTreeReference: {"max_depth": 6},
}


def mixed_schema(n_classes=3):
    return FeatureSchema(
        (
            NumericFeature("a", 0, 1),
            CategoricalFeature("c", tuple(range(41))),
            CategoricalFeature("constant", (0,)),
        ),
        tuple(range(n_classes)),
    )


def mixed_table(n_rows, seed):
    generator = np.random.default_rng(seed)
    X = np.column_stack(
        [generator.random(n_rows), generator.integers(0, 41, n_rows), np.zeros(n_rows)]
    )
    return X, np.where(X[:, 1] == 7, 2, X[:, 0] > 0.5).astype(int)


def test_one_hot_drops_the_first_category_and_unseen_ones_are_all_zeros():
    schema = FeatureSchema(
        (NumericFeature("a", 0, 9), CategoricalFeature("c", (0, 1, 2)), NumericFeature("b", 0, 9)),
        (0, 1),
    )
    table = np.array([[5.0, 0, 1], [6, 1, 2], [7, 2, 3], [8, -1, 4]])
    expected = [[5, 0, 0, 1], [6, 1, 0, 2], [7, 0, 1, 3], [8, 0, 0, 4]]
    assert np.array_equal(one_hot(table, schema), expected)


def test_one_hot_of_nothing_but_a_constant_category_is_a_column_of_zeros():
    schema = FeatureSchema((CategoricalFeature("c", (0,)),), (0, 1))
    assert np.array_equal(one_hot(np.zeros((3, 1)), schema), np.zeros((3, 1)))


@pytest.mark.parametrize("reference", REFERENCES)
def test_a_reference_learns_any_schema(reference):
    X, y = mixed_table(3000, 0)
    model = clone(reference(schema=mixed_schema(), random_state=0, **SMALL[reference])).fit(X, y)
    X_test, y_test = mixed_table(500, 1)
    # A column drawn at random is one of 40 categories in 40 of 41 cases: Extra Trees find the rare
    # class seldom, the threshold of the number reliably.
    assert model.score(X_test, y_test) > 0.85
    assert model.predict_proba([[0.5, -1.0, -1.0]]).sum() == pytest.approx(1)
    assert model.fit_report()["mean_nodes_per_tree"] >= 3


@pytest.mark.parametrize("reference", REFERENCES)
def test_a_class_without_records_has_probability_zero(reference):
    X, y = mixed_table(300, 0)
    model = reference(schema=mixed_schema(4), random_state=0, **SMALL[reference])
    shares = model.fit(X, np.where(y == 2, 3, 1)).predict_proba(X)
    assert shares.shape == (300, 4)
    assert not shares[:, [0, 2]].any()
    assert set(model.predict(X)) <= {1, 3}


@pytest.mark.parametrize("reference", REFERENCES)
def test_tuning_returns_the_most_accurate_setting_of_the_grid(reference, monkeypatch):
    grids = {
        ExtraTreesReference: {"n_estimators": (20,), "min_samples_split": (2000, 10)},
        DecisionTreeReference: {"max_depth": (1, 6)},
    }
    monkeypatch.setattr(reference, "grid", grids[reference])
    X, y = mixed_table(3000, 0)
    chosen = reference(schema=mixed_schema(), random_state=0).tune(X, y, *mixed_table(500, 1))
    assert chosen == {key: values[-1] for key, values in grids[reference].items()}


@pytest.mark.parametrize("reference", REFERENCES)
def test_every_value_of_the_grid_is_a_parameter_and_the_privacy_parameters_change_nothing(
    reference,
):
    assert set(reference.grid) <= set(reference(schema=mixed_schema()).get_params())
    X, y = mixed_table(500, 0)
    same = [
        reference(schema=mixed_schema(), epsilon=e, delta=d, random_state=3, **SMALL[reference])
        .fit(X, y)
        .predict_proba(X)
        for e, d in ((0.5, 0.0), (np.inf, 1e-6))
    ]
    assert np.array_equal(*same)
