"""Tables of scikit-learn: small ones that it ships, and California housing, which it downloads."""

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
    "california_housing": "aaa5c9a6afe2225cc2aed2723682ae403280c4a3695a2ddda4ffb5d8215ea681",
    "diabetes": "f9481a0aaf503dbf46e3faa55bb06750e7f0c645a2b348bd367fdd3f65f7cf63",
    "breast_cancer": "25e2eb7b7a8745b1bde5ba18bc4969983d2e2f403291ecd5bde4a29ef30c3859",
    "digits": "f6d9e39f37dc45d327f6db33428ee58970ccceabb2535a5c179de35886b70443",
    "wine": "3a28849ef2366c4b9d4e382b3fa5624a66f693c04d7fdcf43c529bbb0bb338d7",
}
"""SHA-256 of the rows: features as float64, then class codes as int64 or targets as float64, row by row.

That of California housing is the one of the archive, which scikit-learn checks.
"""

DOWNLOADED = "california_housing"


def load(config: Mapping[str, Any]) -> Dataset:
    """Load the table that the config's ``name`` says."""
    # Seconds to import, which planning does not need.
    import sklearn.datasets

    name, schema = _known(config)
    data_dir = data_folder(config)
    function = f"{'fetch' if name == DOWNLOADED else 'load'}_{name}"
    settings: dict[str, Any] = {"scaled": False} if name == "diabetes" else {}
    if name == DOWNLOADED:
        settings = {"data_home": data_dir / "sklearn"}
    try:
        rows = getattr(sklearn.datasets, function)(**settings)
    except OSError as error:
        raise DatasetError(
            f"{name}: scikit-learn's {function} could not fetch it ({error}). Run it where its server can be "
            f"reached and copy its file into {data_dir / 'sklearn'}."
        ) from None
    X = np.asarray(rows.data, dtype="<f8")
    y = np.asarray(rows.target, dtype="<i8" if schema.classes else "<f8")
    seen = hashlib.sha256(X.tobytes() + y.tobytes()).hexdigest()
    if seen != CHECKSUMS[name] and name != DOWNLOADED:
        raise DatasetError(
            f"{name}: scikit-learn {sklearn.__version__} ships other rows (sha256 {seen[:12]}..., "
            f"expected {CHECKSUMS[name][:12]}...). Install another version."
        )
    columns = dict(zip(schema.feature_names, X.T, strict=True))
    labels = np.asarray(schema.classes)[y] if schema.classes else y
    table = pa.table({**columns, schema.label: labels})
    source = DataSource("sklearn", schema.citation, function, seen)
    folder = data_dir / "cache"
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
