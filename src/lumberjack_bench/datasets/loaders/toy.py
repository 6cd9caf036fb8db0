"""The toy data of figure 1: two moons and a far-away blob, in bounds of growing extent.

The paper fixes counts, noise, bounds and the blob's distance from the corner; the seed of the
points is ours and public.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from lumberjack.schema import FeatureSchema, NumericFeature
from lumberjack_bench.datasets.dataset import Dataset, DatasetError, DataSource

EXTENTS = (5, 50, 5000)
"""Upper bounds of the first feature in the paper; the second feature's is 0.8 of it."""
N_MOON_POINTS = (5500, 4000)
N_BLOB_POINTS = 500
MOON_NOISE = 0.125
MOON_SHIFT = (1.75, 1.25)
BLOB_DEVIATION = 0.175
BLOB_DISTANCE = 1.0
"""Distance of the blob's centre from the upper bound of either feature."""


def toy_schema(extent: int) -> FeatureSchema:
    """Return the public bounds and classes; `extent` is the upper bound of the first feature."""
    if extent not in EXTENTS or isinstance(extent, bool):
        raise DatasetError(f"toy_moons: extent must be one of {list(EXTENTS)}, got {extent!r}.")
    return FeatureSchema(
        features=(
            NumericFeature("feature_1", 0.0, float(extent)),
            NumericFeature("feature_2", 0.0, extent * 4 / 5),
        ),
        classes=("outer moon", "inner moon", "blob"),
        label="shape",
        name="toy_moons",
        citation="Figure 1 of the Lumberjack paper; generated, no personal data",
    )


def load(config: Mapping[str, Any]) -> Dataset:
    """Generate the toy data; the config's own keys are ``extent`` and ``points_seed``."""
    # Seconds to import, which planning does not need.
    import pandas as pd
    from sklearn.datasets import make_blobs, make_moons

    schema = toy_schema(config.get("extent", EXTENTS[0]))
    points_seed = _points_seed(config)
    # scikit-learn's generators take integers, not numpy Generators.
    moon_seed, blob_seed = (int(s) for s in np.random.SeedSequence(points_seed).generate_state(2))
    moons, moon_labels = make_moons(N_MOON_POINTS, noise=MOON_NOISE, random_state=moon_seed)
    centre = schema.upper - BLOB_DISTANCE
    blob, _ = make_blobs(
        n_samples=N_BLOB_POINTS,
        centers=centre[np.newaxis, :],
        cluster_std=BLOB_DEVIATION,
        random_state=blob_seed,
    )
    points = np.vstack([moons + np.array(MOON_SHIFT), blob])
    y = np.concatenate([moon_labels, np.full(N_BLOB_POINTS, 2)]).astype(np.int8)
    X = pd.DataFrame(np.clip(points, schema.lower, schema.upper), columns=schema.feature_names)
    source = DataSource(
        kind="generated",
        description=f"two moons and a blob, generated with seed {points_seed}",
        file="",
        sha256=_recipe_digest(schema, points_seed),
        n_rows=len(y),
    )
    return Dataset(str(config["name"]), schema, X, y, source)


def identity(config: Mapping[str, Any]) -> str:
    """Return the checksum of the recipe."""
    schema = toy_schema(config.get("extent", EXTENTS[0]))
    return f"generated:{_recipe_digest(schema, _points_seed(config))}"


def _points_seed(config: Mapping[str, Any]) -> int:
    seed = config.get("points_seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise DatasetError(
            f"toy_moons: points_seed must be a non-negative whole number, got {seed!r}."
        )
    return seed


def _recipe_digest(schema: FeatureSchema, points_seed: int) -> str:
    recipe = [schema.digest(), points_seed, N_MOON_POINTS, N_BLOB_POINTS]
    recipe += [MOON_NOISE, MOON_SHIFT, BLOB_DEVIATION, BLOB_DISTANCE]
    return hashlib.sha256(json.dumps(recipe).encode()).hexdigest()
