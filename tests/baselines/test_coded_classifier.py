"""What all baselines share: their parameters and rows are checked once, in one line each."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from baselines.dp_logistic_regression import DPLogisticRegression
from baselines.majority import MajorityClassifier
from baselines.smooth_sensitivity import SmoothSensitivityClassifier
from lumberjack.schema import UNSEEN, CategoricalFeature, FeatureSchema, NumericFeature

SCHEMA = FeatureSchema((NumericFeature("a", 0, 1), CategoricalFeature("c", (0, 1, 2))), (0, 1))
X, Y = np.tile([0.5, 1.0], (50, 1)), np.arange(50) % 2
HOLED = np.where(np.arange(100).reshape(50, 2) == 7, np.nan, X)


@pytest.mark.parametrize(
    "wrong",
    [
        {"schema": None},
        {"epsilon": 0},
        {"delta": 1},
        {"mode": "tight"},
        {"n_estimators": 0},
        {"n_estimators": 2.5},
        {"n_jobs": 1.5},
    ],
)
def test_a_parameter_out_of_range_is_named_by_fit_and_by_the_card(wrong):
    model = SmoothSensitivityClassifier(**({"schema": SCHEMA} | wrong))
    for use in (lambda: model.fit(X, Y), model.privacy_card):
        with pytest.raises(ValueError, match=f"'{next(iter(wrong))}'") as caught:
            use()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["random_state", "noise_seed"])
def test_what_is_no_seed_is_refused(name):
    with pytest.raises(ValueError, match="seed must be"):
        SmoothSensitivityClassifier(schema=SCHEMA, **{name: -1}).fit(X, Y)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (HOLED, "1 NaN or infinite"),
        (csr_matrix(X), "sparse"),
        (X[:, :1], "1 features, but the schema lists 2"),
        (X[0], "2 dimensions"),
        (np.array([["x", "y"]] * 50), "numbers only"),
        (X[1:], "49 rows, but y has 50"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_with_what_is_wrong(table, message):
    with pytest.raises(ValueError, match=message):
        MajorityClassifier(schema=SCHEMA).fit(table, Y)


@pytest.mark.parametrize("labels", [Y + 1, Y + 0.5, Y.astype(str), Y[:, np.newaxis]])
def test_labels_that_are_no_class_codes_are_refused(labels):
    with pytest.raises(ValueError, match="y must"):
        MajorityClassifier(schema=SCHEMA).fit(X, labels)


def test_rows_reach_a_method_within_the_public_facts_and_as_a_copy():
    seen = []

    class Spy(MajorityClassifier):
        def _fit(self, table, labels):
            seen.append(table)
            super()._fit(table, labels)

    given = np.array([[-5.0, 0], [9, 1.5], [0.25, 7], [1, -3], [1, 2]])
    Spy(schema=SCHEMA).fit(given, [0, 1, 0, 1, 0])
    assert seen[0].tolist() == [[0, 0], [1, UNSEEN], [0.25, UNSEEN], [1, UNSEEN], [1, 2]]
    assert given[0, 0] == -5


def test_the_card_of_a_private_method_says_when_its_noise_is_fixed():
    free = SmoothSensitivityClassifier(schema=SCHEMA, epsilon=2).privacy_card()
    fixed = SmoothSensitivityClassifier(schema=SCHEMA, epsilon=2, noise_seed=1).privacy_card()
    assert (free.claimed.epsilon, free.claimed.delta) == (2.0, 0.0)
    assert len(fixed.concerns) == len(free.concerns) + 1
    assert "noise seed is fixed" in fixed.concerns[-1]
    assert not MajorityClassifier(schema=SCHEMA, noise_seed=1).privacy_card().concerns


@pytest.mark.parametrize("value", [np.uint8(128), np.int32(128), np.float16(0.5)])
def test_a_number_whose_products_may_wrap_is_refused(value):
    # 2 * np.uint8(128) is 0: noise of no size.
    method = DPLogisticRegression(schema=SCHEMA, n_steps=128)
    name = "momentum" if isinstance(value, np.floating) else "n_steps"
    with pytest.raises(ValueError, match=f"Write {name}={value.item()}"):
        method.set_params(**{name: value}).fit(X, Y)
    method.set_params(n_steps=np.int64(128), momentum=np.float64(0.5)).fit(X, Y)
