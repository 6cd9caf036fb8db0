from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from lumberjack_bench.config import Settings
from lumberjack_bench.runs.launch import concurrency
from lumberjack_bench.runs.provenance import available_cores, commit, machine, versions
from lumberjack_bench.runs.sweep import THREAD_VARIABLES, _limit_threads


def test_limits_of_threads_that_a_user_set_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in THREAD_VARIABLES:
        # Set first, so that whatever the code under test puts there is taken away afterwards.
        monkeypatch.setenv(name, "0")
        monkeypatch.delenv(name)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    _limit_threads(4)
    assert os.environ["OMP_NUM_THREADS"] == "1"
    assert os.environ["NUMBA_NUM_THREADS"] == "4"


@pytest.mark.parametrize(
    ("launcher", "n_workers", "at_once", "threads"),
    [
        ({"kind": "serial"}, -1, 1, 8),
        ({"kind": "joblib"}, 2, 2, 4),
        ({"kind": "joblib"}, 3, 3, 2),
        ({"kind": "joblib"}, -1, 8, 1),
        ({"kind": "joblib"}, 16, 16, 1),
        ({"kind": "submitit", "slurm_array_parallelism": 64, "cpus_per_task": 2}, -1, 64, 2),
        ({"kind": "submitit", "cpus_per_task": 2}, -1, 4, 2),
    ],
)
def test_threads_times_workers_stay_within_eight_cores(
    launcher: dict[str, object],
    n_workers: int,
    at_once: int,
    threads: int,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lumberjack_bench.runs.launch.available_cores", lambda: 8)
    asked = replace(settings, launcher=launcher, n_workers=n_workers)
    assert concurrency(asked) == (at_once, threads)


def test_circumstances_are_recorded_without_the_name_of_the_machine() -> None:
    assert versions()["numpy"]
    assert f"{available_cores()} cores" in machine()
    assert os.uname().nodename not in machine()


def test_the_commit_is_that_of_the_source_tree_if_it_has_one() -> None:
    root = Path(__file__).parents[2]
    assert (commit() == "unknown") is not (root / ".git").exists()
