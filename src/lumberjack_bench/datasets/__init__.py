"""Data sets of the benchmark: one call loads any of them by its config."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping
from typing import Any

from lumberjack_bench.datasets.dataset import (
    Dataset,
    DatasetError,
    DataSource,
    RowCounts,
    Summary,
)

__all__ = ["DataSource", "Dataset", "DatasetError", "RowCounts", "Summary", "load"]

logger = logging.getLogger(__name__)

KINDS = ("acs", "adult", "table", "toy")


def load(config: Mapping[str, Any]) -> Dataset:
    """Load the data set that a config describes.

    Parameters
    ----------
    config : mapping
        ``name``, ``kind`` (one of ``acs``, ``adult``, ``table``, ``toy``) and the loader's own
        keys; see ``conf/dataset/*.yaml``.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetError
        When the config is wrong, the data cannot be had, or the rows do not fit the schema.
    """
    kind = config.get("kind")
    if kind not in KINDS:
        raise DatasetError(f"dataset: kind must be one of {list(KINDS)}, got {kind!r}.")
    if not config.get("name"):
        raise DatasetError("dataset: the config needs a name.")
    # One module per kind, imported when used: folktables and scikit-learn take seconds.
    loader = importlib.import_module(f"{__name__}.{kind}")
    dataset: Dataset = loader.load(config)
    logger.info("%s: loaded (%s)", dataset.name, dataset.source.label)
    for verb, counts in dataset.counts.to_dict().items():
        if counts:
            listed = ", ".join(f"{column} {count:,}" for column, count in counts.items())
            logger.info("%s (%s): entries %s: %s", dataset.name, dataset.source.label, verb, listed)
    return dataset
