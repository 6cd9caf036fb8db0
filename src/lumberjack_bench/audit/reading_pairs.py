"""Layer "reading": one more record, however odd, leaves the codes of all others as they are.

No noise covers what a record does to the way in which other records are read. The check is exact.
"""

from __future__ import annotations

import datetime
import io
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature
from lumberjack_bench.audit.findings import Finding, Subject

LAYER = "reading"

SCHEMA = FeatureSchema(
    (
        NumericFeature("number", 0, 100, fill=50),
        CategoricalFeature("code", (3, 1, 2), fill=1),
        CategoricalFeature("word", ("no", "yes", "1"), fill="no"),
    ),
    classes=(0, 1),
)

ROWS = [[float(3 * i % 101), (3, 1, 2)[i % 3], ("no", "yes", "1")[i % 3]] for i in range(12)]
LABELS = [i % 2 for i in range(12)]

ODD = (
    "odd",
    "",
    None,
    float("nan"),
    float("inf"),
    1e9,
    10**400,
    2**60 + 1,
    "7",
    datetime.date(2020, 1, 1),
    True,
)
"""Entries that stand in the odd record, in each feature in turn."""


def _csv(rows: list[list[Any]], names: list[str]) -> Any:
    text = pd.DataFrame(rows, columns=names).to_csv(index=False)
    return pd.read_csv(io.StringIO(text))


def _parquet(rows: list[list[Any]], names: list[str]) -> Any:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(pd.DataFrame(rows, columns=names)), file)
    return pd.read_parquet(file)


CONTAINERS: Mapping[str, Callable[[list[list[Any]], list[str]], Any]] = MappingProxyType(
    {
        "list": lambda rows, names: rows,
        "array": lambda rows, names: np.array(rows, dtype=object),
        "frame": lambda rows, names: pd.DataFrame(rows, columns=names),
        "csv": _csv,
        "parquet": _parquet,
    }
)


def audit_reading(subject: Subject) -> list[Finding]:
    """Count the rows whose codes one more record changes, for each kind of container.

    A method that reads rows itself (a method ``_read_training_rows``) is asked how; any other gets
    them from the schema.

    Parameters
    ----------
    subject : Subject
    """
    model = subject.build(schema=SCHEMA)
    if hasattr(model, "_read_training_rows"):
        model.set_params(missing="fill", unknown_labels="drop")
    names = list(SCHEMA.feature_names)
    findings = []
    for container, build in CONTAINERS.items():
        n_pairs = n_changed = 0
        for entry in ODD:
            for j in range(len(names)):
                odd: list[Any] = list(ROWS[0])
                odd[j] = entry
                try:
                    table = build([*ROWS, odd], names)
                except (
                    pa.ArrowException,
                    OverflowError,
                ):  # the container itself takes no such entry
                    continue
                n_pairs += 1
                alone = _read(model, build(ROWS, names), LABELS)
                more = _read(model, table, [*LABELS, 1])
                n_changed += int((more[: len(ROWS)] != alone).any(axis=1).sum())
        findings.append(
            Finding(
                LAYER,
                f"one more odd record in a {container}",
                n_pairs,
                n_changed,
                0.0,
                "rows read otherwise =",
                within="0 rows",
            )
        )
    return findings


def _read(model: Any, X: Any, y: list[int]) -> NDArray[np.float64]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if hasattr(model, "_read_training_rows"):
            values: NDArray[np.float64] = model._read_training_rows(X, y).values
            return values
        return SCHEMA.encode(X, missing="fill").values
