"""Loaded data sets kept in compact columnar files, so that reading and checking happen once.

A cache file is named by what it was made from: checksum and name of the source, the schema, and
the loader's own settings. It is written atomically, carries checksums of its pages, and is made
anew when it cannot be read.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from lumberjack.schema import CategoricalFeature, FeatureSchema
from lumberjack_bench.datasets.dataset import Dataset, DataSource, RowCounts
from lumberjack_bench.datasets.entries import EntryOptions
from lumberjack_bench.datasets.row_validation import categorical_column, validate_rows
from lumberjack_bench.datasets.sources import folder_lock
from lumberjack_bench.files import open_atomically

logger = logging.getLogger(__name__)

_FORMAT = 2
_METADATA = b"lumberjack"


def cached(
    folder: Path,
    name: str,
    schema: FeatureSchema,
    key: Mapping[str, Any],
    read: Callable[[], tuple[pa.Table, DataSource]],
    *,
    is_strict: bool,
    options: EntryOptions | None = None,
) -> Dataset:
    """Return a data set from the cache; if it is not there, read, validate and keep it.

    Parameters
    ----------
    folder : Path
        The cache folder; made if missing.
    name : str
    schema : FeatureSchema
        Part of the key.
    key : mapping
        What else the rows depend on: source checksum, file name, settings of the loader.
    read : callable
        Reads the table and says where it comes from; the number of rows is filled in here.
    is_strict, options
        As :func:`~lumberjack_bench.datasets.row_validation.validate_rows` takes them.
    """
    text = json.dumps({**key, "format": _FORMAT, "schema": schema.digest()}, sort_keys=True)
    path = folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:20]}.parquet"
    with folder_lock(folder, f"{name}: loading"):
        dataset = _read(path, name, schema)
        if dataset is not None:
            return dataset
        table, source = read()
        X, y, counts = validate_rows(
            table,
            schema,
            table_name=f"{name} ({source.file})",
            is_strict=is_strict,
            options=options,
        )
        if len(y) < table.num_rows:
            without = f"without {table.num_rows - len(y):,} rows that have no label"
            source = replace(source, description=f"{source.description}, {without}")
        dataset = Dataset(name, schema, X, y, replace(source, n_rows=len(y)), counts)
        try:
            _write(path, dataset)
        except OSError as error:
            reason = error.strerror or error
            logger.warning("%s: cannot keep a cache in %s (%s)", name, folder, reason)
    return dataset


def _write(path: Path, dataset: Dataset) -> None:
    arrays: dict[str, pa.Array] = {}
    for position, feature in enumerate(dataset.schema.features):
        column = dataset.X[feature.name]
        values = column.cat.codes if isinstance(feature, CategoricalFeature) else column
        arrays[str(position)] = pa.array(values.to_numpy(), from_pandas=False)
    arrays["y"] = pa.array(dataset.y)
    about = {"source": asdict(dataset.source), "counts": asdict(dataset.counts)}
    table = pa.table(arrays).replace_schema_metadata({_METADATA: json.dumps(about)})
    with open_atomically(path) as handle:
        pq.write_table(table, handle, write_page_checksum=True)


def _read(path: Path, name: str, schema: FeatureSchema) -> Dataset | None:
    if not path.exists():
        return None
    try:
        # Not by path: a folder called "year=2018" on the way would be read as a partition.
        with path.open("rb") as handle:
            table = pq.ParquetFile(handle, page_checksum_verification=True).read(use_threads=False)
        about = json.loads(table.schema.metadata[_METADATA])
        source = DataSource(**about["source"])
        counts = RowCounts(**about["counts"])
        columns: dict[str, Any] = {}
        for position, feature in enumerate(schema.features):
            values = np.array(table.column(str(position)).to_numpy())
            if isinstance(feature, CategoricalFeature):
                has_unlisted = feature.name in counts.unseen
                columns[feature.name] = categorical_column(
                    values, feature, has_unlisted=has_unlisted
                )
            else:
                columns[feature.name] = values
        y = np.array(table.column("y").to_numpy())
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        logger.warning("%s: cache file %s is damaged (%s), made anew", name, path.name, reason)
        return None
    return Dataset(name, schema, pd.DataFrame(columns, copy=False), y, source, counts)
