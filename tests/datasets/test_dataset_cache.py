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
WIDER = FeatureSchema(
    (NumericFeature("count", 0, 200, fill=1), *SCHEMA.features[1:]), SCHEMA.classes, "y"
)


class Reader:
    """Reads a table and counts how often."""

    def __init__(self, n_rows: int = 8) -> None:
        self.n_read = 0
        i = np.arange(n_rows)
        self.table = pa.table(
            {
                "count": pa.array([None, *i[1:].tolist()], pa.int64()),
                "word": pa.array([None, *["ab"[k % 2] for k in i[1:]]]),
                "code": pa.array((1 + i % 4).tolist()),
                "share": pa.array(i / 10),
                "y": pa.array([["no", "yes"][k % 2] for k in i]),
            }
        )

    def __call__(self) -> tuple[pa.Table, DataSource]:
        self.n_read += 1
        source = DataSource("table", "a table", "t.csv", "0" * 64, 0, True, "a part")
        return self.table, source


def load(
    folder: Path, read, *, schema: FeatureSchema = SCHEMA, source: str = "s", is_strict=False
) -> Dataset:
    return cached(folder, "t", schema, {"source": source}, read, is_strict=is_strict)


def assert_same(first: Dataset, second: Dataset) -> None:
    pd.testing.assert_frame_equal(first.X, second.X)
    np.testing.assert_array_equal(first.y, second.y)
    assert first.y.dtype == second.y.dtype
    assert (first.source, first.counts) == (second.source, second.counts)
    np.testing.assert_array_equal(first.encoded()[0], second.encoded()[0])


def test_the_second_load_gives_the_same_without_reading(tmp_path):
    read = Reader()
    first, second = load(tmp_path, read), load(tmp_path, read)
    assert read.n_read == 1
    assert_same(first, second)
    # 4 is no listed code (2 of 8 rows); the first count and word are missing.
    assert second.counts.clipped == {}
    assert second.counts.unseen == {"code": 2}
    assert second.counts.filled == {"count": 1, "word": 1}
    assert second.source.n_rows == 8


@pytest.mark.parametrize("change", [{"source": "other"}, {"schema": WIDER}])
def test_another_source_or_schema_is_read_anew(tmp_path, change):
    load(tmp_path, Reader())
    read = Reader()
    load(tmp_path, read, **change)
    assert read.n_read == 1
    assert len(list(tmp_path.glob("*.parquet"))) == 2


@pytest.mark.parametrize("damage", ["truncated", "emptied", "flipped", "replaced", "foreign"])
def test_a_damaged_cache_file_is_made_anew(tmp_path, damage, caplog):
    read = Reader(500)
    first = load(tmp_path, read)
    (path,) = tmp_path.glob("*.parquet")
    content = bytearray(path.read_bytes())
    # The first pages hold the values of the first columns.
    content[60] ^= 0xFF
    damaged = {
        "truncated": content[: len(content) // 2],
        "emptied": b"",
        "replaced": b"something else",
    }
    path.write_bytes(bytes(damaged.get(damage, content)))
    if damage == "foreign":
        pd.DataFrame({"a": [1]}).to_parquet(path)
    with caplog.at_level(logging.WARNING):
        assert_same(first, load(tmp_path, read))
    assert read.n_read == 2
    assert "is damaged" in caplog.text
    load(tmp_path, read)
    assert read.n_read == 2


def test_a_read_that_fails_leaves_no_file(tmp_path):
    def read() -> tuple[pa.Table, DataSource]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(tmp_path, read)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    read = Reader()
    with caplog.at_level(logging.WARNING):
        assert load(tmp_path / "file" / "cache", read).n_rows == 8
    assert read.n_read == 1
    assert "cannot keep a cache" in caplog.text


def test_two_at_once_read_once(tmp_path):
    read = Reader()
    sizes = []
    threads = [
        threading.Thread(target=lambda: sizes.append(load(tmp_path, read).n_rows)) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sizes == [8, 8, 8]
    assert read.n_read == 1


def test_a_cached_data_set_may_be_changed_by_its_user(tmp_path):
    load(tmp_path, Reader())
    dataset = load(tmp_path, Reader())
    dataset.y[0] = 1
    dataset.X.loc[0, "share"] = 0.5
    assert dataset.X.loc[0, "share"] == 0.5


def test_memory_of_a_loaded_set_is_at_most_twice_its_compact_size(tmp_path):
    n_rows = 20_000
    load(tmp_path, Reader(n_rows))
    dataset = load(tmp_path, Reader(n_rows))
    # A row: count float32 (it has missing entries), word and code int8, share float64, y int8.
    compact = n_rows * (4 + 1 + 1 + 8 + 1)
    assert dataset.X.memory_usage(deep=True).sum() + dataset.y.nbytes < 2 * compact
