from __future__ import annotations

import numpy as np
import pytest

from baselines.majority import MajorityClassifier
from lumberjack.schema import FeatureSchema, NumericFeature

SCHEMA = FeatureSchema((NumericFeature("a", 0.0, 1.0),), (0, 1, 2))


@pytest.mark.parametrize(
    ("labels", "majority"),
    [([0, 1, 1], 1), ([2, 2, 0, 1], 2), ([1, 0], 0), ([2], 2)],
    ids=["a majority", "a plurality", "a tie goes to the lowest code", "a single row"],
)
def test_the_most_frequent_class_is_predicted_everywhere(labels: list[int], majority: int) -> None:
    X = np.zeros((len(labels), 1))
    method = MajorityClassifier(schema=SCHEMA).fit(X, np.array(labels))
    assert method.predict(np.array([[0.0], [1.0]])).tolist() == [majority, majority]
    shares = [labels.count(code) / len(labels) for code in range(3)]
    assert method.predict_proba(np.zeros((1, 1))).tolist() == [shares]
