"""What a model is fitted on depends on the training rows and the public schema alone."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lumberjack import LumberjackClassifier
from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature
from lumberjack_bench.datasets import Dataset, DataSource
from lumberjack_bench.datasets.row_validation import validate_rows

SCHEMA = FeatureSchema(
    features=(
        NumericFeature("size", 0, 100, fill=3),
        CategoricalFeature("colour", ("red", "green", "blue"), fill="green"),
        NumericFeature("share", 0, 1),
    ),
    classes=("no", "yes"),
    label="y",
)
N_ROWS, N_TRAIN = 60, 50


def loaded(last_row: tuple[object, object, object, str]) -> Dataset:
    """Sixty rows, of which the last one is given."""
    generator = np.random.default_rng(5)
    size = generator.integers(0, 101, N_ROWS).tolist()
    colour = generator.choice(["red", "green", "blue"], N_ROWS).tolist()
    share = generator.integers(0, 8, N_ROWS) / 8
    y = generator.choice(["no", "yes"], N_ROWS).tolist()
    size[-1], colour[-1], last_share, y[-1] = last_row
    table = pa.table(
        {
            "size": pa.array(size, pa.float64()),
            "colour": pa.array(colour, pa.string()),
            "share": pa.array([*share[:-1].tolist(), last_share], pa.float64()),
            "y": pa.array(y),
        }
    )
    X, codes, counts = validate_rows(table, SCHEMA, table_name="t", is_strict=False)
    return Dataset("t", SCHEMA, X, codes, DataSource("table", "", "", "", N_ROWS), counts)


def fitted(dataset: Dataset) -> bytes:
    values, _ = dataset.encoded()
    model = LumberjackClassifier(
        schema=dataset.schema.coded(),
        epsilon=50.0,
        delta=1e-3,
        n_estimators=2,
        max_depth=6,
        random_state=1,
        noise_seed=2,
    )
    model.fit(values[:N_TRAIN], dataset.y[:N_TRAIN].astype(np.int64))
    return pickle.dumps(model)


REFERENCE = loaded((50.0, "red", 0.5, "no"))
REFERENCE_MODEL = fitted(REFERENCE)


@settings(max_examples=25, deadline=None)
@given(
    size=st.one_of(st.none(), st.floats(-1e9, 1e9), st.sampled_from([0.0, 100.0, 0.1])),
    colour=st.one_of(st.none(), st.sampled_from(["red", "blue", "purple", ""])),
    share=st.floats(-2, 2),
    label=st.sampled_from(["no", "yes"]),
)
def test_changing_a_test_row_never_changes_a_fitted_model(size, colour, share, label):
    changed = loaded((size, colour, share, label))
    np.testing.assert_array_equal(changed.encoded()[0][:-1], REFERENCE.encoded()[0][:-1])
    np.testing.assert_array_equal(changed.y[:-1], REFERENCE.y[:-1])
    assert changed.schema == REFERENCE.schema
    assert fitted(changed) == REFERENCE_MODEL


def test_changing_a_training_row_can_change_the_model():
    # The comparison above is able to fail: half of the training labels turned over.
    values, _ = REFERENCE.encoded()
    turned = Dataset("t", SCHEMA, REFERENCE.X, 1 - REFERENCE.y, REFERENCE.source)
    assert values.shape == (N_ROWS, 3)
    assert fitted(turned) != REFERENCE_MODEL
