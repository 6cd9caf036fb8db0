"""Bring your own table: any csv or parquet file with a schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

from lumberjack.schema import FeatureSchema
from lumberjack_bench.datasets.cache import cached
from lumberjack_bench.datasets.checksums import remembered_sha256
from lumberjack_bench.datasets.dataset import Dataset, DatasetError, DataSource
from lumberjack_bench.datasets.entries import EntryOptions, entry_options
from lumberjack_bench.datasets.schema_files import read_schema_file
from lumberjack_bench.datasets.sources import data_folder
from lumberjack_bench.datasets.table_files import read_columns


def load(config: Mapping[str, Any]) -> Dataset:
    """Load a local table.

    Parameters
    ----------
    config : mapping
        ``name``; ``path`` of the table; ``schema``, a file or the name of a schema that comes
        with the package; ``unlisted``, ``error`` (default) or ``rest``, what becomes of
        categories that the schema does not list; ``missing_texts``, ``decimal`` and
        ``unlabelled``, how the table writes its entries, which the schema file may say as well.
        Columns that the schema does not name are left out.

    Raises
    ------
    DatasetError
        When the table cannot be read or does not fit the schema.
    """
    name = str(config["name"])
    path = _path(config)
    schema, options = _schema(config)
    unlisted = _unlisted(config)
    cache_folder = data_folder(config) / "cache"
    digest = remembered_sha256(path, cache_folder)

    return cached(
        cache_folder,
        name,
        schema,
        {"source": digest, "file": path.name, "unlisted": unlisted, "options": astuple(options)},
        lambda: (
            read_columns(path, schema, table_name=name),
            DataSource("table", f"local table {path.name}", path.name, digest),
        ),
        is_strict=unlisted == "error",
        options=options,
    )


def identity(config: Mapping[str, Any]) -> str:
    """Return the checksums of the table and of the schema, and the options."""
    digest = remembered_sha256(_path(config), data_folder(config) / "cache")
    schema, options = _schema(config)
    return f"table:{digest}:{schema.digest()}:{_unlisted(config)}:{astuple(options)}"


def _path(config: Mapping[str, Any]) -> Path:
    name = config["name"]
    if not config.get("path"):
        raise DatasetError(
            f"{name}: give the table's file with dataset.path=FILE (csv or parquet)."
        )
    path = Path(str(config["path"])).expanduser()
    if not path.is_file():
        raise DatasetError(f"{name}: no file {path} (from {Path.cwd()}). Check dataset.path.")
    return path


def _schema(config: Mapping[str, Any]) -> tuple[FeatureSchema, EntryOptions]:
    if not config.get("schema"):
        raise DatasetError(
            f"{config['name']}: give the table's schema with dataset.schema=FILE; "
            "python scripts/draft_schema.py TABLE --label COLUMN drafts one."
        )
    schema, in_file = read_schema_file(str(config["schema"]))
    return schema, entry_options(config, in_file, table_name=str(config["name"]))


def _unlisted(config: Mapping[str, Any]) -> str:
    unlisted = config.get("unlisted") or "error"
    if unlisted not in ("error", "rest"):
        raise DatasetError(
            f"{config['name']}: unlisted must be 'error' or 'rest', got {unlisted!r}."
        )
    return str(unlisted)
