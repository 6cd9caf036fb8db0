"""What scikit-learn's users expect of a classifier besides its generic checks: names, order, codes."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.multiclass import OneVsRestClassifier

from lumberjack import (
    DataOutsideSchemaWarning,
    FeatureSchema,
    GuidedLumberjackClassifier,
    LumberjackClassifier,
    NumericFeature,
    SchemaError,
)

N_ROWS = 2000


def rows(seed=0):
    X = pd.DataFrame(np.random.default_rng(seed).uniform(size=(N_ROWS, 2)), columns=["a", "b"])
    return X, np.where(X.a > 0.5, "yes", "no")


def forest(**parameters):
    shared = {"epsilon": 8.0, "bounds": (0, 1), "classes": ["no", "yes"], "n_estimators": 5}
    return LumberjackClassifier(**(shared | {"noise_seed": 1, "random_state": 1} | parameters))


@pytest.mark.parametrize("estimator", [LumberjackClassifier, GuidedLumberjackClassifier])
@pytest.mark.parametrize("is_schema_given", [False, True])
def test_classes_are_sorted_with_the_columns_of_predict_proba(estimator, is_schema_given):
    X, y = rows()
    features = (NumericFeature("a", 0, 1), NumericFeature("b", 0, 1))
    probabilities = []
    for classes in (["no", "yes"], ["yes", "no"]):
        facts = {"bounds": (0, 1), "classes": classes}
        if is_schema_given:
            facts = {"schema": FeatureSchema(features, tuple(classes))}
        seeds = {"noise_seed": 1, "random_state": 1}
        model = estimator(8.0, **facts, n_estimators=5, accounting="safe", **seeds).fit(X, y)
        assert model.classes_.tolist() == ["no", "yes"]
        probabilities.append(model.predict_proba(X))
        assert roc_auc_score(y, probabilities[-1][:, 1]) > 0.95
        assert log_loss(y, probabilities[-1]) < 0.5
        assert (model.predict(X) == y).mean() > 0.9
    np.testing.assert_array_equal(*probabilities)


@pytest.mark.parametrize(
    ("classes", "labels"), [(["2", "10"], [2, 10]), ([2, 10], ["2", "10"]), (["0", "1"], [0, 1])]
)
def test_labels_of_another_type_than_the_classes_are_worth_a_word(classes, labels):
    X, y = rows()
    y = np.where(y == "no", *labels)
    with pytest.warns(UserWarning, match="Give classes in the labels' own type"):
        assert forest(classes=classes).fit(X, y).classes_.tolist() == sorted(classes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forest(classes=labels).fit(X, y)


def test_classes_that_are_no_list_and_nested_tables_are_refused():
    X, y = rows()
    for parameters, table, labels, message in (
        ({"classes": "ny"}, X, y, "a list of values is needed, got the text 'ny'"),
        ({}, X, [[label] for label in y], "y must have one dimension"),
        ({}, [[[v], [v]] for v in X.a], y, "2 dimensions"),
    ):
        with pytest.raises(ValueError, match=message):
            forest(**parameters).fit(table, labels)


def test_classes_of_several_types_keep_them():
    X, y = rows()
    model = forest(classes=["many", 1]).fit(X, [1 if label == "no" else "many" for label in y])
    assert model.classes_.tolist() == [1, "many"]
    assert set(model.predict(X).tolist()) == {1, "many"}


@pytest.mark.parametrize("to_frame", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_every_frame_is_matched_by_its_column_names(to_frame):
    X, y = rows()
    model = forest().fit(to_frame(X), y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    expected = forest().fit(X, y).predict_proba(X)
    for columns in (["a", "b"], ["b", "a"]):
        np.testing.assert_array_equal(model.predict_proba(to_frame(X[columns])), expected)
    with pytest.raises(SchemaError, match=r"missing columns \['b'\], unexpected columns \['c'\]"):
        model.predict(to_frame(X.rename(columns={"b": "c"})))


@pytest.mark.parametrize("to_labels", [list, pd.Series, pl.Series, pa.array])
def test_labels_come_in_any_container(to_labels):
    X, y = rows()
    assert forest().fit(X, to_labels(y.tolist())).score(X, y) > 0.9


def test_an_array_for_a_forest_that_knows_names_and_the_reverse_are_worth_a_word():
    X, y = rows()
    named, unnamed = forest().fit(X, y), forest().fit(X.to_numpy(), y)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but Lumberjack"):
        from_array = named.predict_proba(X.to_numpy())
    with pytest.warns(
        UserWarning, match="X has feature names, but LumberjackClassifier was fitted"
    ):
        from_frame = unnamed.predict_proba(X)
    np.testing.assert_array_equal(from_array, from_frame)
    with pytest.warns(UserWarning, match="X has feature names"):
        by_position = unnamed.predict_proba(X.set_axis(["x1", "x0"], axis=1))
    np.testing.assert_array_equal(by_position, from_frame)


def test_a_column_that_lies_wholly_outside_the_schema_is_worth_a_word():
    X, y = rows()
    categories = {"b": ["low", "high"]}
    X = X.assign(b=np.where(X.b > 0.5, "high", "low"))
    model = forest(categories=categories).fit(X, y)
    for odd in ({"b": X.b.str.upper()}, {"a": 100 * X.a + 1}):
        with pytest.warns(DataOutsideSchemaWarning, match=rf"no entry of \['{next(iter(odd))}'\]"):
            model.predict(X.assign(**odd))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X.assign(b=X.b.str.upper().where(X.index > 0, "low")))
        model.predict(X[:3].assign(b="?"))


@pytest.mark.parametrize("bounds", [(0, 1), {"x0": (0, 1)}, {0: (0, 1)}])
def test_public_bounds_say_that_a_feature_is_numeric_whatever_its_rows_hold(bounds):
    X = [[v / 100] for v in range(100)]
    y = ["no", "yes"] * 50
    assert forest(bounds=bounds).fit(X, y).schema_.features == (NumericFeature("x0", 0, 1),)
    with pytest.raises(SchemaError, match="'x0' is numeric, but 1 of 101 entries are no numbers"):
        forest(bounds=bounds).fit([*X, ["odd"]], [*y, "no"])


META_ESTIMATORS = {
    "cross_val_predict": lambda model: cross_val_predict(
        model, *labelled(model), cv=2, method="predict_proba"
    ),
    "voting": lambda model: VotingClassifier([("f", model)]).fit(*labelled(model)),
    "stacking": lambda model: StackingClassifier(
        [("f", model)], final_estimator=LogisticRegression(), cv=2
    ).fit(*labelled(model)),
    "one against the rest": lambda model: OneVsRestClassifier(model).fit(*labelled(model)),
}


def labelled(model):
    X, y = rows()
    return X, y if "yes" in model.classes else (y == "yes").astype(int)


@pytest.mark.parametrize("use", META_ESTIMATORS.values(), ids=META_ESTIMATORS)
def test_meta_estimators_that_pass_codes_get_the_way_out_and_it_works(use):
    way_out = r"encode the labels yourself and give classes=\[0, 1\]"
    with pytest.raises(SchemaError, match=way_out):
        use(forest())
    found = use(forest(classes=[0, 1]))
    X, y = labelled(forest(classes=[0, 1]))
    predicted = found.argmax(axis=1) if isinstance(found, np.ndarray) else found.predict(X)
    assert (predicted == y).mean() > 0.9
