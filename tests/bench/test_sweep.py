from __future__ import annotations

import os
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from lumberjack_bench.callbacks import _concurrency, _divide_threads
from lumberjack_bench.runs.provenance import available_cores, commit, machine, versions
from lumberjack_bench.runs.sweep import (
    THREAD_VARIABLES,
    THREADS_PER_RUN,
    limit_threads,
    threads_per_run,
)


@pytest.fixture(autouse=True)
def no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*THREAD_VARIABLES, THREADS_PER_RUN):
        # Set first, so that whatever the code under test puts there is taken away afterwards.
        monkeypatch.setenv(name, "0")
        monkeypatch.delenv(name)


def launcher(kind: str, **settings: object) -> object:
    target = f"somewhere.{kind}"
    return OmegaConf.create({"hydra": {"launcher": {"_target_": target, **settings}}})


def test_a_run_may_use_every_core_unless_told_otherwise() -> None:
    assert threads_per_run() == available_cores()
    limit_threads(3)
    assert threads_per_run() == 3
    assert {os.environ[name] for name in THREAD_VARIABLES} == {"3"}


def test_limits_that_a_user_set_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    limit_threads(4)
    assert os.environ["OMP_NUM_THREADS"] == "1"
    assert os.environ["NUMBA_NUM_THREADS"] == "4"


@pytest.mark.parametrize(
    ("kind", "settings", "n_workers", "threads"),
    [
        ("JoblibLauncher", {"n_jobs": 2}, 2, "4"),
        ("JoblibLauncher", {"n_jobs": 3}, 3, "2"),
        ("JoblibLauncher", {"n_jobs": -1}, 8, "1"),
        ("JoblibLauncher", {"n_jobs": 16}, 16, "1"),
        ("SlurmLauncher", {"array_parallelism": 64, "cpus_per_task": 2}, 64, "2"),
        ("LocalLauncher", {"cpus_per_task": 2}, 4, "2"),
        ("BasicLauncher", {}, 1, None),
    ],
)
def test_threads_times_workers_stay_within_eight_cores(
    kind: str,
    settings: dict[str, object],
    n_workers: int,
    threads: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lumberjack_bench.callbacks.available_cores", lambda: 8)
    config = launcher(kind, **settings)
    assert _concurrency(config) == n_workers  # type: ignore[arg-type]
    _divide_threads(config, n_workers)  # type: ignore[arg-type]
    assert os.environ.get("NUMBA_NUM_THREADS") == threads


def test_circumstances_are_recorded_without_the_name_of_the_machine() -> None:
    assert versions()["numpy"]
    assert f"{available_cores()} cores" in machine()
    assert os.uname().nodename not in machine()


def test_the_commit_is_that_of_the_source_tree_if_it_has_one() -> None:
    root = Path(__file__).parents[2]
    assert (commit() == "unknown") is not (root / ".git").exists()
