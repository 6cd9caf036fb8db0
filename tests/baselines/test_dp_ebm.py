"""The wrapped DP-EBM: what it would read off the rows is public."""

from __future__ import annotations

import builtins
import warnings
from typing import Any

import numpy as np
import pytest

from baselines.dp_ebm import DPExplainableBoosting
from lumberjack.schema import UNSEEN, CategoricalFeature, FeatureSchema, NumericFeature

SCHEMA = FeatureSchema((NumericFeature("a", 0.0, 1.0), CategoricalFeature("b", (0, 1, 2))), (0, 1))


def fitted(X: np.ndarray, y: np.ndarray, **changes: Any) -> DPExplainableBoosting:
    pytest.importorskip("interpret", reason="needs the extra rivals")
    settings = {"epsilon": 50.0, "random_state": 0, "noise_seed": 0, "max_rounds": 50}
    return DPExplainableBoosting(schema=SCHEMA, **(settings | changes)).fit(X, y)


def table(n_rows: int = 2000) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.column_stack([rng.random(n_rows), rng.integers(0, 2, n_rows)])


def test_bounds_categories_and_classes_are_those_of_the_schema_whatever_the_rows() -> None:
    # Neither category 2 nor class 1 nor a number above 0.5 occurs.
    X = table() * [0.5, 1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(X, np.zeros(len(X), dtype=np.int64)).model_
    assert model.classes_.tolist() == [0, 1]
    assert model.feature_bounds_[0].tolist() == [0.0, 1.0]
    assert model.feature_types_in_ == ["continuous", "nominal"]
    rows, labels = DPExplainableBoosting(schema=SCHEMA)._public_rows()
    assert set(rows[:, 1]) == {0, 1, 2, 3}
    assert set(labels) == {0, 1}


def test_public_rows_have_no_influence_to_speak_of() -> None:
    X = table()
    y = (X[:, 0] > 0.5).astype(np.int64)
    model = fitted(X, y)
    assert model.score(X, y) > 0.95
    assert np.isfinite(model.predict_proba(np.array([[0.5, UNSEEN], [0.5, 2]]))).all()


def test_more_than_two_classes_are_skipped() -> None:
    three = FeatureSchema(SCHEMA.features, (0, 1, 2))
    assert "two classes" in str(DPExplainableBoosting(schema=three).skip(10))
    assert DPExplainableBoosting(schema=SCHEMA).skip(10) is None


def test_without_the_package_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **keywords: Any) -> Any:
        if name.startswith("interpret"):
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install -c constraints.txt -e '.\[bench,rivals\]'"):
        DPExplainableBoosting(schema=SCHEMA).fit(table(10), np.zeros(10, dtype=np.int64))
