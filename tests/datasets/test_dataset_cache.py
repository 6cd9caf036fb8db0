from __future__ import annotations

import logging
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature
from lumberjack_bench.datasets import Dataset, DataSource
from lumberjack_bench.datasets.cache import cached
from lumberjack_bench.datasets.row_validation import validate_rows

SCHEMA = FeatureSchema(
    features=(
        NumericFeature("count", 0, 100, fill=1),
        CategoricalFeature("word", ("a", "b"), fill="a"),
        CategoricalFeature("code", (1, 2, 3)),
        NumericFeature("share", 0, 1),
    ),
    classes=("no", "yes"),
    label="y",
)


def rows(n: int = 8) -> pa.Table:
    i = np.arange(n)
    return pa.table(
        {
            "count": pa.array([None, *i[1:].tolist()], pa.int64()),
            "word": pa.array([None, *["ab"[k % 2] for k in i[1:]]]),
            "code": pa.array((1 + i % 4).tolist()),
            "share": pa.array(i / 10),
            "y": pa.array([["no", "yes"][k % 2] for k in i]),
        }
    )


class Builder:
    """Builds a data set and counts how often."""

    def __init__(self, schema: FeatureSchema = SCHEMA, n: int = 8) -> None:
        self.n_built = 0
        self.schema = schema
        self.table = rows(n)

    def __call__(self) -> Dataset:
        self.n_built += 1
        X, y, counts = validate_rows(self.table, self.schema, table_name="t", is_strict=False)
        source = DataSource("table", "a table", "t.csv", "0" * 64, len(y), True, "a part")
        return Dataset("t", self.schema, X, y, source, counts)


def assert_same(first: Dataset, second: Dataset) -> None:
    pd.testing.assert_frame_equal(first.X, second.X)
    np.testing.assert_array_equal(first.y, second.y)
    assert first.y.dtype == second.y.dtype
    assert first.source == second.source
    assert first.counts == second.counts.to_dict()
    np.testing.assert_array_equal(first.encoded()[0], second.encoded()[0])


def cache_file(folder: Path) -> Path:
    (path,) = folder.glob("*.parquet")
    return path


def test_the_second_load_gives_the_same_without_building(tmp_path):
    build = Builder()
    first = cached(tmp_path, "t", SCHEMA, {"source": "s"}, build)
    second = cached(tmp_path, "t", SCHEMA, {"source": "s"}, build)
    assert build.n_built == 1
    assert_same(first, second)
    # 4 is no listed code (2 of 8 rows); the first count and word are missing.
    assert second.counts == {
        "clipped": {},
        "unseen": {"code": 2},
        "filled": {"count": 1, "word": 1},
    }


@pytest.mark.parametrize("change", ["source", "schema"])
def test_another_source_or_schema_is_built_anew(tmp_path, change):
    cached(tmp_path, "t", SCHEMA, {"source": "s"}, Builder())
    wider = FeatureSchema(
        (NumericFeature("count", 0, 200, fill=1), *SCHEMA.features[1:]), ("no", "yes"), "y"
    )
    schema = wider if change == "schema" else SCHEMA
    build = Builder(schema)
    cached(tmp_path, "t", schema, {"source": "other" if change == "source" else "s"}, build)
    assert build.n_built == 1
    assert len(list(tmp_path.glob("*.parquet"))) == 2


@pytest.mark.parametrize("damage", ["truncated", "emptied", "flipped", "replaced", "foreign"])
def test_a_damaged_cache_file_is_made_anew(tmp_path, damage, caplog):
    build = Builder(n=500)
    first = cached(tmp_path, "t", SCHEMA, {}, build)
    path = cache_file(tmp_path)
    content = bytearray(path.read_bytes())
    if damage == "truncated":
        content = content[: len(content) // 2]
    elif damage == "emptied":
        content = bytearray()
    elif damage == "flipped":
        # The first pages hold the values of the first columns.
        content[60] ^= 0xFF
    elif damage == "replaced":
        content = bytearray(b"something else")
    path.write_bytes(bytes(content))
    if damage == "foreign":
        pd.DataFrame({"a": [1]}).to_parquet(path)
    with caplog.at_level(logging.WARNING):
        again = cached(tmp_path, "t", SCHEMA, {}, build)
    assert build.n_built == 2
    assert "is damaged" in caplog.text
    assert_same(first, again)
    cached(tmp_path, "t", SCHEMA, {}, build)
    assert build.n_built == 2


def test_a_build_that_fails_leaves_no_file(tmp_path):
    def build() -> Dataset:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached(tmp_path, "t", SCHEMA, {}, build)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    build = Builder()
    with caplog.at_level(logging.WARNING):
        dataset = cached(tmp_path / "file" / "cache", "t", SCHEMA, {}, build)
    assert dataset.n_rows == 8
    assert build.n_built == 1
    assert "cannot keep a cache" in caplog.text


def test_two_at_once_build_once(tmp_path):
    build = Builder()
    sizes = []
    threads = [
        threading.Thread(
            target=lambda: sizes.append(cached(tmp_path, "t", SCHEMA, {}, build).n_rows)
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sizes == [8, 8, 8]
    assert build.n_built == 1


def test_a_cached_data_set_may_be_changed_by_its_user(tmp_path):
    cached(tmp_path, "t", SCHEMA, {}, Builder())
    dataset = cached(tmp_path, "t", SCHEMA, {}, Builder())
    dataset.y[0] = 1
    dataset.X.loc[0, "share"] = 0.5
    assert dataset.X.loc[0, "share"] == 0.5


def test_memory_of_a_loaded_set_is_at_most_twice_its_compact_size(tmp_path):
    n = 20_000
    build = Builder(n=n)
    cached(tmp_path, "t", SCHEMA, {}, build)
    dataset = cached(tmp_path, "t", SCHEMA, {}, build)
    # A row: count float32 (it has missing entries), word and code int8, share float64, y int8.
    compact = n * (4 + 1 + 1 + 8 + 1)
    assert dataset.nbytes < 2 * compact
