"""How far a sweep is, once and live."""

from __future__ import annotations

import re

import pytest
from whole_results import made_up_run, whole_result

from lumberjack_bench.config import Settings
from lumberjack_bench.runs.plan import Plan
from lumberjack_bench.runs.status import status_of, watch
from lumberjack_bench.runs.store import ResultStore

EPS = (0.5, 1.0, 2.0, 4.0)
PLAN = Plan(
    tuple(
        made_up_run(method, dataset, eps)
        for dataset in ("adult", "magic")
        for method in ("forest", "linear")
        for eps in EPS
    )
)


def finish(store: ResultStore, n_runs: int, sweep_id: str = "some") -> None:
    for run in PLAN.runs[:n_runs]:
        store.write(run.hash, whole_result(run, sweep_id=sweep_id))


def fail(store: ResultStore, n_runs: int) -> None:
    """Let the last runs fail."""
    for run in PLAN.runs[-n_runs:]:
        record = {"run_hash": run.hash, "status": "failed", "reason": "no luck", "sweep_id": "some"}
        store.write_reason(run.hash, record)


def told(settings: Settings, *, is_long: bool = False) -> list[str]:
    return status_of(PLAN, settings, 1).text(is_long=is_long).splitlines()


def test_a_plan_of_which_nothing_is_done_is_told_in_one_line(
    settings: Settings, store: ResultStore
) -> None:
    assert told(settings) == [
        "16 runs: 16 missing; time left unknown (some method has no finished run yet). "
        "--all lists each run with its hash."
    ]


def test_many_runs_are_summed_up_and_what_is_at_work_or_failed_is_named(
    settings: Settings, store: ResultStore
) -> None:
    finish(store, 5)
    fail(store, 4)
    with store.lock(PLAN.runs[5].hash):
        lines = told(settings)
    assert lines[:6] == ["adult  5/8", "magic  0/8", "", "forest  4/8", "linear  1/8", ""]
    assert lines[6] == f"{PLAN.runs[5].hash}  running    adult linear eps=1"
    failed = [f"{run.hash}  failed     {run}: no luck" for run in PLAN.runs[-4:]]
    assert lines[7:11] == [*failed[:3], "  and 1 more failed for the same reason"]
    assert lines[-1].startswith("16 runs: 5 done, 1 running, 6 missing, 4 failed; about ")


def test_all_runs_are_listed_when_asked_for(settings: Settings, store: ResultStore) -> None:
    finish(store, 1)
    lines = told(settings, is_long=True)
    assert [line.split()[0] for line in lines[:-1]] == [run.hash for run in PLAN.runs]
    assert "--all" not in lines[-1]


def test_watching_shows_each_change_with_the_results_so_far_and_ends_with_the_last_run(
    settings: Settings, store: ResultStore, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = iter((0, 4, 4, 16))

    def pause(seconds: float) -> None:
        finish(store, next(steps))

    watch(PLAN, settings, 1, is_long=False, pause=pause)
    assert next(steps, None) is None
    text = capsys.readouterr().out
    # Twice nothing had changed.
    assert re.findall(r"16 runs: (.*?);", text) == ["16 missing", "4 done, 12 missing", "16 done"]
    assert text.count("accuracy, adult") == 2
    assert "\x1b" not in text


def test_watching_goes_on_while_a_sweep_may_try_failures_again(
    settings: Settings, store: ResultStore
) -> None:
    finish(store, 15)
    fail(store, 1)
    with store.lock("sweep-other"):
        assert not status_of(PLAN, settings, 1).is_over
    assert status_of(PLAN, settings, 1).is_over
