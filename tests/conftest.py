from __future__ import annotations

from pathlib import Path

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


@pytest.fixture
def development_tables() -> Path:
    """The folder of ACS tables beside the project; where it is not, its tests are skipped."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data" / "acs"
    if not folder.is_dir():
        pytest.skip("needs the development tables in ../shared/data/acs")
    return folder
