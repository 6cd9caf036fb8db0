"""Rows of numbers, of many categories and of constants, whose class goes with the category."""

import numpy as np

from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature


def mixed_schema(n_classes=2):
    return FeatureSchema(
        (
            NumericFeature("age", 0, 100),
            CategoricalFeature("job", tuple(range(41))),
            NumericFeature("constant", 3, 3),
            CategoricalFeature("only", (0,)),
        ),
        tuple(range(n_classes)),
    )


def mixed_table(n_rows=3000, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    job = rng.integers(0, 41, n_rows)
    X = np.column_stack([100 * rng.random(n_rows), job, np.full(n_rows, 3.0), np.zeros(n_rows)])
    return X, job % n_classes
