"""The kinds of data sets, one module each: what a config says under ``kind`` is a module's name.

A new built-in data set is a module here and a config in ``conf/dataset``, which holds its name and
title. The module gets its files by :func:`~lumberjack_bench.datasets.sources.ensure_files` and hands
table and schema to :func:`~lumberjack_bench.datasets.cache.cached`, as ``adult`` does.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any, Protocol, cast

from lumberjack_bench.datasets.dataset import Dataset

KINDS = tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


class Loader(Protocol):
    """What each module of this folder offers.

    A config is that of ``conf/dataset/*.yaml``: a ``name``, the ``kind``, and keys of the module's
    own. Either function raises :class:`~lumberjack_bench.datasets.DatasetError` when it is wrong.
    """

    def load(self, config: Mapping[str, Any]) -> Dataset:
        """Return the rows, fetched and checked."""

    def identity(self, config: Mapping[str, Any]) -> str:
        """Return a text that differs whenever a config leads to different rows."""


def loader(kind: str) -> Loader:
    """Return the module of a kind of data sets, one of :data:`KINDS`."""
    # Not before it is asked for: folktables and scikit-learn take seconds to import.
    return cast(Loader, importlib.import_module(f"{__name__}.{kind}"))
