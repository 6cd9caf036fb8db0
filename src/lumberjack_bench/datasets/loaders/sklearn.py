"""Small tables that scikit-learn ships; nothing is downloaded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from lumberjack.schema import FeatureSchema
from lumberjack_bench.datasets.cache import cached
from lumberjack_bench.datasets.dataset import Dataset, DatasetError, DataSource
from lumberjack_bench.datasets.schema_files import read_schema
from lumberjack_bench.datasets.sources import data_folder

CHECKSUMS = {
    "breast_cancer": "25e2eb7b7a8745b1bde5ba18bc4969983d2e2f403291ecd5bde4a29ef30c3859",
    "digits": "f6d9e39f37dc45d327f6db33428ee58970ccceabb2535a5c179de35886b70443",
    "wine": "3a28849ef2366c4b9d4e382b3fa5624a66f693c04d7fdcf43c529bbb0bb338d7",
}
"""SHA-256 of the rows: features as float64, then class codes as int64, row by row."""


def load(config: Mapping[str, Any]) -> Dataset:
    """Load the table that the config's ``name`` says."""
    # Seconds to import, which planning does not need.
    import sklearn.datasets

    name, schema = _known(config)
    rows = getattr(sklearn.datasets, f"load_{name}")()
    X, y = np.asarray(rows.data, dtype="<f8"), np.asarray(rows.target, dtype="<i8")
    seen = hashlib.sha256(X.tobytes() + y.tobytes()).hexdigest()
    if seen != CHECKSUMS[name]:
        raise DatasetError(
            f"{name}: scikit-learn {sklearn.__version__} ships other rows (sha256 {seen[:12]}..., "
            f"expected {CHECKSUMS[name][:12]}...). Install another version."
        )
    columns = dict(zip(schema.feature_names, X.T, strict=True))
    table = pa.table({**columns, schema.label: np.asarray(schema.classes)[y]})
    source = DataSource("sklearn", schema.citation, f"load_{name}", seen)
    folder = data_folder(config) / "cache"
    key = {"source": seen, "citation": schema.citation}
    return cached(folder, name, schema, key, lambda: (table, source), is_strict=True)


def identity(config: Mapping[str, Any]) -> str:
    """Return the checksum of the rows and of the schema."""
    name, schema = _known(config)
    return f"sklearn:{CHECKSUMS[name]}:{schema.digest()}"


def _known(config: Mapping[str, Any]) -> tuple[str, FeatureSchema]:
    name = str(config["name"])
    if name not in CHECKSUMS:
        raise DatasetError(
            f"sklearn: there is no table {name!r}. Name one with dataset.name=TABLE: "
            f"{', '.join(CHECKSUMS)}."
        )
    return name, read_schema(f"sklearn_{name}")
