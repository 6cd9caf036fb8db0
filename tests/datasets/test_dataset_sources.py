from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from lumberjack_bench.datasets.dataset import DatasetError
from lumberjack_bench.datasets.sources import (
    Source,
    SourceFailure,
    atomic_file,
    data_folder,
    download,
    first_that_works,
    folder_lock,
    pip_download,
    project_root,
    remembered_sha256,
    sha256_of,
)


def fail(reason: str) -> None:
    raise SourceFailure(reason)


def test_config_wins_over_environment_wins_over_project_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LUMBERJACK_DATA", str(tmp_path / "environment"))
    assert data_folder({"data_dir": str(tmp_path / "config")}) == tmp_path / "config"
    assert data_folder({"data_dir": None}) == tmp_path / "environment"
    monkeypatch.delenv("LUMBERJACK_DATA")
    assert data_folder({}) == project_root() / "data"


def test_sha256_is_that_of_the_standard(tmp_path):
    # FIPS 180-2, example "abc".
    (tmp_path / "abc").write_bytes(b"abc")
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256_of(tmp_path / "abc") == expected
    assert remembered_sha256(tmp_path / "abc", tmp_path / "memory") == expected


def test_remembered_checksum_follows_a_change_of_a_large_file(tmp_path, monkeypatch):
    monkeypatch.setattr("lumberjack_bench.datasets.sources._REMEMBER_ABOVE_BYTES", 0)
    monkeypatch.setattr("lumberjack_bench.datasets.sources._RACY_SECONDS", -1.0)
    path, memory = tmp_path / "large.csv", tmp_path / "memory"
    path.write_bytes(b"abc")
    first = remembered_sha256(path, memory)
    read_again = []
    monkeypatch.setattr(
        "lumberjack_bench.datasets.sources.sha256_of",
        lambda p: read_again.append(p) or "read again",
    )
    assert remembered_sha256(path, memory) == first
    assert not read_again
    path.write_bytes(b"abcd")
    assert remembered_sha256(path, memory) == "read again"


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    path = tmp_path / "new" / "file.csv"

    def interrupted() -> None:
        with atomic_file(path) as handle:
            handle.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(path.parent.iterdir()) == []
    with atomic_file(path) as handle:
        handle.write(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    assert [p.name for p in path.parent.iterdir()] == ["file.csv"]


def test_download_brings_the_bytes(server, tmp_path):
    server.files["/a"] = bytes(range(256)) * 20_000
    download(f"{server.url}/a", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == server.files["/a"]


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("cut_off", "cut off after 1,000 of 2,000 bytes"),
        ("refused", "HTTP 403 Forbidden"),
        ("silent", "no answer within 0.2 s"),
        (None, "HTTP 404 Not Found"),
    ],
)
def test_a_download_that_fails_says_why_and_leaves_nothing(server, tmp_path, trouble, message):
    if trouble:
        server.files["/a"] = b"x" * 2000
        getattr(server, trouble).add("/a")
    with pytest.raises(SourceFailure, match=message):
        download(f"{server.url}/a", tmp_path / "a", silence_seconds=0.2)
    assert list(tmp_path.iterdir()) == []


def test_an_unreachable_host_is_a_source_that_failed(tmp_path):
    with pytest.raises(SourceFailure, match="refused"):
        download("http://127.0.0.1:9/a", tmp_path / "a")


def test_a_python_without_pip_says_so(tmp_path, monkeypatch):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho '{python}: No module named pip' >&2\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(SourceFailure, match="has no pip"):
        pip_download("nothing==1", tmp_path)


def test_the_last_word_of_pip_is_the_reason(tmp_path, monkeypatch):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'WARNING: x\nERROR: no matching distribution' >&2\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(SourceFailure, match="pip download failed: ERROR: no matching"):
        pip_download("nothing==1", tmp_path)


def test_a_pip_that_hangs_is_given_up(tmp_path, monkeypatch):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 30\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(SourceFailure, match=r"did not finish within 0\.2 s"):
        pip_download("nothing==1", tmp_path, seconds=0.2)


def test_sources_are_tried_in_order_and_the_first_that_works_wins():
    tried = []
    sources = [
        Source("first", lambda: (tried.append("first"), fail("is down"))),
        Source("second", lambda: tried.append("second")),
        Source("third", lambda: tried.append("third")),
    ]
    assert first_that_works("data", sources, by_hand="") == "second"
    assert tried == ["first", "second"]


def test_the_error_lists_every_source_with_its_reason_and_the_way_by_hand():
    sources = [Source("first", lambda: fail("is down")), Source("second", lambda: fail("is gone"))]
    with pytest.raises(DatasetError) as caught:
        first_that_works("data", sources, by_hand="Put x into y.")
    assert str(caught.value).splitlines() == [
        "data: no source worked. Tried in this order:",
        "  - first: is down",
        "  - second: is gone",
        "Put x into y.",
    ]


def test_one_at_a_time_works_in_a_locked_folder(tmp_path):
    inside, most = [], []

    def work() -> None:
        with folder_lock(tmp_path, "test"):
            inside.append(1)
            most.append(len(inside))
            threading.Event().wait(0.02)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 5


def test_a_folder_that_cannot_be_locked_does_not_stop_the_work(tmp_path):
    (tmp_path / "file").write_text("in the way")
    entered = False
    with folder_lock(Path(tmp_path / "file" / "sub"), "test"):
        entered = True
    assert entered
