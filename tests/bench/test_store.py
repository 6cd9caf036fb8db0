from __future__ import annotations

import errno
import json
import math
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from whole_results import whole_result

from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.store import ResultStore, StoreError

MakeRun = Callable[..., RunConfig]


def start_holder(store: ResultStore, name: str) -> subprocess.Popen[str]:
    """Start a process that holds a lock until it is killed."""
    program = textwrap.dedent(
        f"""
        import time
        from pathlib import Path
        from lumberjack_bench.runs.store import ResultStore
        with ResultStore(Path({str(store.folder)!r})).lock({name!r}):
            print("held", flush=True)
            time.sleep(600)
        """
    )
    holder = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_a_result_comes_back_and_clears_an_earlier_reason(
    store: ResultStore, make_run: MakeRun
) -> None:
    run = make_run("Toy")
    store.write_reason(run.hash, {"run_hash": run.hash, "status": "failed"})
    assert (store.finished(run.hash), store.settled(run.hash)) == (None, None)
    store.write(run.hash, whole_result(run))
    assert store.finished(run.hash) == store.settled(run.hash) == whole_result(run)
    assert store.reason(run.hash) is None


SPOILED = {
    "is no whole JSON object": lambda result: '{"run": ',
    "is no result in format 1": lambda result: "{}",
    "is no result in format 1 ": lambda result: json.dumps(result | {"format": 2}),
    "lacks card": lambda result: json.dumps({k: v for k, v in result.items() if k != "card"}),
    "names no run of this version": lambda result: json.dumps(result | {"run": {"eps": 1}}),
    "holds the run ": lambda result: json.dumps(result | {"run": result["run"] | {"eps": 2.0}}),
    "has no repetitions": lambda result: json.dumps(result | {"repetitions": []}),
    "has a repetition without metrics": lambda result: json.dumps(result | {"repetitions": [{}]}),
    "has accuracy=nan, which is no finite number": lambda result: with_accuracy(result, math.nan),
    "has accuracy=1.5, outside [0, 1]": lambda result: with_accuracy(result, 1.5),
}


def with_accuracy(result: dict[str, Any], value: float) -> str:
    return json.dumps(result | {"repetitions": [{"repetition": 0, "metrics": {"accuracy": value}}]})


@pytest.mark.parametrize(("problem", "spoil"), SPOILED.items())
def test_what_is_no_result_of_its_run_is_named_and_does_not_count(
    problem: str, spoil: Callable[[dict[str, Any]], str], store: ResultStore, make_run: MakeRun
) -> None:
    run = make_run("Toy")
    store.write(run.hash, whole_result(run))
    assert store.finished(run.hash) is not None
    assert store.problems() == []
    path = store.folder / "runs" / f"{run.hash}.json"
    path.write_text(spoil(whole_result(run)))
    assert store.finished(run.hash) is None
    assert list(store.results()) == []
    (said,) = store.problems()
    assert said.startswith(f"{path} {problem.strip()}")
    assert said.endswith("left out.")


def test_a_copy_of_a_result_is_not_counted_twice(store: ResultStore, make_run: MakeRun) -> None:
    run = make_run("Toy")
    store.write(run.hash, whole_result(run))
    shutil.copy(store.folder / "runs" / f"{run.hash}.json", store.folder / "runs" / "copy.json")
    assert [result["run_hash"] for result in store.results()] == [run.hash]
    assert len(store.problems()) == 1


def test_a_full_folder_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError) as caught:
        ResultStore(tmp_path).prepare()
    assert str(caught.value) == (
        f"cannot write to the results folder {str(tmp_path)!r}: No space left on device. "
        "Choose another with results_dir=FOLDER."
    )
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    with pytest.raises(StoreError, match="cannot write to the results folder"):
        ResultStore(tmp_path / "results").prepare()


def test_a_lock_is_seen_by_other_processes_and_freed_when_its_holder_is_killed(
    store: ResultStore,
) -> None:
    holder = start_holder(store, "abc")
    try:
        assert store.is_locked("abc")
        assert not store.is_locked("other")
    finally:
        holder.kill()
        holder.wait()
    assert not store.is_locked("abc")
    with store.lock("abc"):
        assert store.is_locked("abc")
    assert not store.is_locked("abc")


def test_leftovers_of_killed_processes_are_removed_but_not_those_of_living_ones(
    store: ResultStore,
) -> None:
    dead = store.folder / "runs" / ".dead.1.tmp"
    alive = store.folder / "runs" / ".alive.1.tmp"
    dead.write_text("{")
    alive.write_text("{")
    with store.lock("alive"):
        store.prepare()
    assert not dead.exists()
    assert alive.exists()


def test_a_folder_keeps_its_identifier_and_two_folders_differ(
    store: ResultStore, tmp_path: Path
) -> None:
    other = ResultStore(tmp_path / "other")
    other.prepare()
    assert store.identifier() == ResultStore(store.folder).identifier()
    assert store.identifier() != other.identifier()
