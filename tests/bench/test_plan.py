from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from whole_results import whole_result

from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.plan import Plan, format_seconds, seconds_left
from lumberjack_bench.runs.store import ResultStore


def run(method: str = "forest", dataset: str = "adult", eps: float = 1.0) -> RunConfig:
    return RunConfig(
        dataset={"name": dataset, "kind": "table"},
        dataset_identity=dataset,
        method={
            "name": method,
            "target": "baselines.forest.Forest",
            "label": method,
            "is_private": math.isfinite(eps),
            "mode": "paper",
            "is_tuned": False,
            "params": {},
        },
        eps=eps,
        delta=1e-6,
        seed=0,
        n_repeats=5,
    )


def result(of: RunConfig, seconds: float) -> dict[str, object]:
    return {"run_hash": of.hash, "run": of.to_dict(), "seconds": seconds}


def test_pending_are_the_runs_without_a_result_and_all_when_forced(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.prepare()
    plan = Plan((run(eps=1.0), run(eps=2.0), run(eps=4.0)))
    store.write(plan.runs[0].hash, whole_result(plan.runs[0]) | {"sweep_id": "earlier"})
    store.write_failure(plan.runs[1].hash, {})
    assert [one.eps for one in plan.pending(store)] == [2.0, 4.0]
    assert [one.eps for one in plan.pending(store, since="this")] == [1.0, 2.0, 4.0]
    assert [one.eps for one in plan.pending(store, since="earlier")] == [2.0, 4.0]


def test_time_left_goes_by_the_same_method_on_the_same_data() -> None:
    history = [result(run(), 10.0), result(run(eps=2.0), 20.0), result(run("other"), 1000.0)]
    # 15 s a run on average, four runs, two at a time.
    pending = [run(eps=eps) for eps in (3.0, 4.0, 5.0, 6.0)]
    assert seconds_left(pending, history, n_workers=2) == pytest.approx(30.0)


def test_time_left_counts_repetitions_and_is_at_least_that_of_the_longest_run() -> None:
    # 10 s for 5 repetitions is 2 s each, so a run of 50 takes 100 s, however many workers there are.
    pending = [replace(run(eps=2.0), n_repeats=50)]
    assert seconds_left(pending, [result(run(), 10.0)], n_workers=8) == pytest.approx(100.0)


def test_time_left_falls_back_on_the_method_elsewhere_and_on_any_run_only_when_asked() -> None:
    history = [result(run(dataset="other"), 10.0)]
    assert seconds_left([run()], history, 1) == pytest.approx(10.0)
    assert seconds_left([run("new")], history, 1) is None
    assert seconds_left([run("new")], history, 1, is_rough=True) == pytest.approx(10.0)
    assert seconds_left([run()], [], 1, is_rough=True) is None
    assert seconds_left([], [], 1) == 0.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.04, "1.0 s"), (59.2, "1 min 0 s"), (12.3, "13 s"), (61, "1 min 1 s"), (7260, "2 h 1 min")],
)
def test_durations_are_said_as_a_person_would(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text
