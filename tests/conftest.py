from __future__ import annotations

import pytest

from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature


@pytest.fixture
def mixed_schema() -> FeatureSchema:
    features = (
        NumericFeature("age", 0.0, 100.0),
        CategoricalFeature("colour", ("red", "green", "blue")),
        NumericFeature("income", -10.0, 10.0),
    )
    return FeatureSchema(features, ("no", "yes"))
