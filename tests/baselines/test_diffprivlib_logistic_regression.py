"""The wrapped logistic regression: the conditions of its proof hold whatever the rows."""

from __future__ import annotations

import numpy as np
import pytest

from baselines.diffprivlib_logistic_regression import DiffPrivLibLogisticRegression, unit_rows
from lumberjack.schema import UNSEEN, CategoricalFeature, FeatureSchema, NumericFeature

SCHEMA = FeatureSchema(
    (
        NumericFeature("a", -10.0, 30.0),
        CategoricalFeature("b", (0, 1, 2)),
        NumericFeature("constant", 5.0, 5.0),
    ),
    (0, 1),
)


def test_no_row_is_longer_than_one() -> None:
    corners = np.array([[-10.0, 0, 5.0], [30.0, 2, 5.0], [10.0, UNSEEN, 5.0]])
    # 1 for the constant, for each end of the range, for a category and for a feature of one value.
    squares = (unit_rows(corners, SCHEMA) ** 2).sum(axis=1)
    assert squares == pytest.approx([1.0, 1.0, 0.5])


def test_the_rows_that_show_the_classes_do_not_change_the_fit() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-10, 30, 500), rng.integers(0, 3, 500), np.full(500, 5.0)])
    y = (X[:, 0] > 10).astype(np.int64)
    model = DiffPrivLibLogisticRegression(schema=SCHEMA, epsilon=1e9, noise_seed=0, random_state=0)
    found = model.fit(X, y).model_.coef_[0]
    # At the minimum of sum(loss) + |w|^2 / (2 C n_cells) the gradient is zero; no other row is in it.
    rows = unit_rows(X, SCHEMA)
    gradient = rows.T @ (1 / (1 + np.exp(-rows @ found)) - y) + found / 4
    assert np.abs(gradient).max() < 500 * 1e-5


def test_a_class_that_no_row_has_is_no_secret() -> None:
    X = np.array([[0.0, 1, 5.0]] * 20)
    for label in (0, 1):
        model = DiffPrivLibLogisticRegression(schema=SCHEMA, noise_seed=0, random_state=0)
        model.fit(X, np.full(20, label))
        assert model.model_.classes_.tolist() == [0, 1]


def test_the_budget_that_the_library_spent_is_the_claimed_one() -> None:
    three = FeatureSchema(SCHEMA.features, (0, 1, 2))
    model = DiffPrivLibLogisticRegression(schema=three, epsilon=1.5, noise_seed=0, random_state=0)
    model.fit(np.array([[0.0, 1, 5.0]] * 20), np.zeros(20, dtype=np.int64))
    assert model.model_.accountant.total() == (1.5, 0)
    claimed = model.privacy_card().claimed
    assert claimed is not None
    assert (claimed.epsilon, claimed.delta) == (1.5, 0.0)
