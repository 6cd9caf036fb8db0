"""Data sets of the benchmark: one call loads any of them by its config."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from lumberjack_bench.datasets.dataset import (
    Dataset,
    DatasetError,
    DataSource,
    RowCounts,
    Summary,
)
from lumberjack_bench.datasets.loaders import KINDS, Loader, loader

__all__ = [
    "DataSource",
    "Dataset",
    "DatasetError",
    "RowCounts",
    "Summary",
    "identity",
    "load",
    "name_of",
]

logger = logging.getLogger(__name__)

_LONGEST_NAME = 100
_PART_SEED = 0


def load(config: Mapping[str, Any]) -> Dataset:
    """Load the data set that a config describes.

    Parameters
    ----------
    config : mapping
        ``name``, ``kind`` (a module of :mod:`lumberjack_bench.datasets.loaders`), ``n_rows`` (how
        many rows to keep, the first after a shuffle that is the same for all; null for all rows)
        and the loader's own keys; see ``conf/dataset/*.yaml``.

    Raises
    ------
    DatasetError
        When the config is wrong, the data cannot be had, or the rows do not fit the schema.
    """
    try:
        n_rows = _n_rows(config)
        dataset = _loader(config).load({**config, "name": name_of(config)})
        if n_rows is not None:
            dataset = _part(dataset, n_rows)
    except DatasetError as error:
        error.dataset_name = str(config.get("name") or "")
        raise
    logger.info("%s: loaded (%s)", dataset.name, dataset.source.label)
    if dataset.source.is_stand_in:
        logger.warning("%s: stand-in: %s", dataset.name, dataset.source.stand_in_note)
    for verb, counts in asdict(dataset.counts).items():
        if counts:
            listed = ", ".join(f"{column} {count:,}" for column, count in counts.items())
            logger.info("%s (%s): entries %s: %s", dataset.name, dataset.source.label, verb, listed)
    return dataset


def identity(config: Mapping[str, Any]) -> str:
    """Return a text that differs whenever a config, as :func:`load` takes it, leads to different rows.

    It belongs into the identity of a run: folders and environment variables do not, but a table
    edited since, or a stand-in, must not pass for what was run before. Raises
    :class:`DatasetError` when the config is wrong, or a local table that it names is not there.
    """
    n_rows = _n_rows(config)
    whole = _loader(config).identity({**config, "name": name_of(config)})
    return whole if n_rows is None else f"{whole}:{n_rows} rows"


def name_of(config: Mapping[str, Any]) -> str:
    """Return the name of a data set, which results and files are called by."""
    name = config.get("name")
    if isinstance(name, bool) or not isinstance(name, str | int | float | None):
        raise DatasetError(f"dataset: name must be a word or a number, got {name!r}.")
    text = "" if name is None else str(name)
    if not text.strip():
        raise DatasetError("dataset: the config needs a name.")
    if not text.isprintable() or ".." in text or set(text) & {"/", "\\"}:
        raise DatasetError(
            f"dataset: name {text[:40]!r} cannot be part of a file's name. Leave out slashes, '..' and "
            "control characters."
        )
    if len(text.encode()) > _LONGEST_NAME:
        raise DatasetError(
            f"dataset: name {text[:40]!r}... is {len(text.encode())} bytes long. Use at most "
            f"{_LONGEST_NAME}."
        )
    return text


def _n_rows(config: Mapping[str, Any]) -> int | None:
    n_rows = config.get("n_rows")
    if n_rows is None:
        return None
    if isinstance(n_rows, bool) or not isinstance(n_rows, int) or n_rows < 1:
        raise DatasetError(
            f"dataset: n_rows must be a positive whole number or null, got {n_rows!r}."
        )
    return n_rows


def _part(dataset: Dataset, n_rows: int) -> Dataset:
    """Keep some rows by a public rule; what did not fit the schema is still counted in all rows."""
    if n_rows > dataset.n_rows:
        raise DatasetError(
            f"{dataset.name}: n_rows must be at most {dataset.n_rows:,}, the rows there are; got "
            f"{n_rows:,}."
        )
    kept = np.random.default_rng(_PART_SEED).permutation(dataset.n_rows)[:n_rows]
    note = (
        f"{n_rows:,} of {dataset.n_rows:,} rows, the first after a shuffle with seed {_PART_SEED}"
    )
    source = replace(
        dataset.source, n_rows=n_rows, description=f"{dataset.source.description}; {note}"
    )
    X = dataset.X.iloc[kept].reset_index(drop=True)
    return replace(dataset, X=X, y=dataset.y[kept], source=source)


def _loader(config: Mapping[str, Any]) -> Loader:
    kind = config.get("kind")
    if kind not in KINDS:
        raise DatasetError(f"dataset: kind must be one of {list(KINDS)}, got {kind!r}.")
    return loader(str(kind))
