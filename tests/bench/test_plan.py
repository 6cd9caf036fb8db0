from __future__ import annotations

from dataclasses import replace

import pytest
from whole_results import made_up_run as run
from whole_results import whole_result

from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.plan import Durations, Plan, format_seconds
from lumberjack_bench.runs.store import ResultStore


def history(*results: tuple[RunConfig, float]) -> Durations:
    return Durations(whole_result(run) | {"seconds": seconds} for run, seconds in results)


def test_pending_are_the_runs_that_are_not_settled_and_all_when_forced(store: ResultStore) -> None:
    plan = Plan(tuple(run(eps=eps) for eps in (1.0, 2.0, 4.0)))
    done, failed, skipped = plan.runs
    store.write(done.hash, whole_result(done, sweep_id="earlier"))
    for one, status in ((failed, "failed"), (skipped, "skipped")):
        record = {"run_hash": one.hash, "status": status, "sweep_id": "earlier"}
        store.write_reason(one.hash, record)
    assert plan.pending(store) == plan.pending(store, since="earlier") == (failed,)
    assert plan.pending(store, since="this") == plan.runs


def test_time_left_goes_by_the_same_method_on_the_same_data() -> None:
    known = history((run(), 10.0), (run(eps=2.0), 20.0), (run("other"), 1000.0))
    # 15 s a run on average, four runs, two at a time.
    pending = [run(eps=eps) for eps in (3.0, 4.0, 5.0, 6.0)]
    assert known.seconds_left(pending, n_workers=2) == pytest.approx(30.0)


def test_time_left_counts_repetitions_and_is_at_least_that_of_the_longest_run() -> None:
    # 10 s for 2 repetitions is 5 s each, so a run of 20 takes 100 s, however many workers there are.
    pending = [replace(run(eps=2.0), n_repeats=20)]
    assert history((run(), 10.0)).seconds_left(pending, n_workers=8) == pytest.approx(100.0)


def test_time_left_falls_back_on_the_method_elsewhere_and_on_any_run_only_when_asked() -> None:
    known = history((run(dataset="other"), 10.0))
    assert known.seconds_left([run()], 1) == pytest.approx(10.0)
    assert known.seconds_left([run("new")], 1) is None
    assert known.seconds_left([run("new")], 1, is_rough=True) == pytest.approx(10.0)
    assert history().seconds_left([run()], 1, is_rough=True) is None
    assert history().seconds_left([], 1) == 0.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.04, "1.0 s"), (59.2, "1 min 0 s"), (12.3, "13 s"), (61, "1 min 1 s"), (7260, "2 h 1 min")],
)
def test_durations_are_said_as_a_person_would(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text
