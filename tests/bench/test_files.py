"""Files seen whole or not at all, and locks."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lumberjack_bench.files import locked, open_atomically, project_folder, write_atomically


def test_a_file_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.csv"

    def interrupted() -> None:
        with open_atomically(path) as handle:
            handle.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(path.parent.iterdir()) == []
    with open_atomically(path) as handle:
        handle.write(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    write_atomically(path, "größer")
    assert path.read_text(encoding="utf-8") == "größer"
    assert [p.name for p in path.parent.iterdir()] == ["file.csv"]


def test_a_file_is_as_open_as_others_of_the_process(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    write_atomically(tmp_path / "whole", b"")
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_one_at_a_time_works_under_a_lock_and_the_others_say_that_they_wait(tmp_path: Path) -> None:
    inside, most, waiting = [], [], []

    def work() -> None:
        with locked(tmp_path / "folder" / ".lock", on_wait=lambda: waiting.append(1)):
            inside.append(1)
            most.append(len(inside))
            threading.Event().wait(0.05)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 4
    assert len(waiting) == 3


def test_the_project_is_found_from_its_source_tree() -> None:
    assert project_folder() == Path(__file__).parents[2]
