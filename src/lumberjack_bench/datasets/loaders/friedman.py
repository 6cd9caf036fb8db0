"""A generated regression table: the first one of Friedman (1991), with a fixed public seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from lumberjack.schema import FeatureSchema, NumericFeature
from lumberjack_bench.datasets.dataset import Dataset, DataSource

N_ROWS, N_FEATURES, NOISE, SEED = 20_000, 10, 1.0, 0

SCHEMA = FeatureSchema(
    tuple(NumericFeature(f"x{number}", 0.0, 1.0) for number in range(1, N_FEATURES + 1)),
    label="y",
    name="friedman",
    citation="Friedman (1991), Multivariate adaptive regression splines, by scikit-learn; generated, no "
    "personal data",
    # 10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5 lies in [0, 30]; the noise has deviation 1.
    target_bounds=(-5.0, 35.0),
)


def load(config: Mapping[str, Any]) -> Dataset:
    """Generate the table; the config has no keys of its own."""
    # Seconds to import, which planning does not need.
    import pandas as pd
    from sklearn.datasets import make_friedman1

    X, y = make_friedman1(N_ROWS, N_FEATURES, noise=NOISE, random_state=SEED)
    source = DataSource(
        kind="generated",
        description=f"Friedman's first function of 5 of 10 features, generated with seed {SEED}",
        file="",
        sha256=_recipe_digest(),
        n_rows=N_ROWS,
    )
    rows = pd.DataFrame(X, columns=SCHEMA.feature_names)
    return Dataset(str(config["name"]), SCHEMA, rows, SCHEMA.encode_target(y), source)


def identity(config: Mapping[str, Any]) -> str:
    """Return the checksum of the recipe."""
    return f"generated:{_recipe_digest()}"


def _recipe_digest() -> str:
    recipe = ["make_friedman1", SCHEMA.digest(), N_ROWS, N_FEATURES, NOISE, SEED]
    return hashlib.sha256(json.dumps(recipe).encode()).hexdigest()
