from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.progress import Progress
from lumberjack_bench.runs.store import ResultStore

MakeRun = Callable[..., RunConfig]


def result(run: RunConfig, sweep_id: str = "now", seconds: float = 4.0) -> dict[str, Any]:
    return {
        "run_hash": run.hash,
        "run": run.to_dict(),
        "repetitions": [{"metrics": {"accuracy": 0.8}}, {"metrics": {"accuracy": 0.9}}],
        "seconds": seconds,
        "data_source": {"is_stand_in": False, "label": "generated"},
        "sweep_id": sweep_id,
    }


def test_each_run_is_reported_once_with_its_place_and_the_time_left(
    tmp_path: Path, make_run: MakeRun
) -> None:
    store = ResultStore(tmp_path)
    store.prepare()
    runs = [make_run("Toy", eps=eps) for eps in (1.0, 2.0, 4.0)]
    lines: list[str] = []
    progress = Progress(
        store, runs, n_done=7, history=[], n_workers=1, sweep_id="now", write=lines.append
    )
    progress.report()
    assert lines == []
    store.write(runs[0].hash, result(runs[0]))
    failure = {"status": "failed", "reason": "ValueError: boom", "sweep_id": "now"}
    store.write_failure(runs[1].hash, failure)
    progress.report()
    progress.report()
    assert lines == [
        "[ 8/10] toy toy eps=1: accuracy 0.8500 in 4.0 s; about 8.0 s left",
        "[ 9/10] toy toy eps=2: FAILED: ValueError: boom; about 4.0 s left",
    ]


def test_a_line_about_stand_in_data_says_so(tmp_path: Path, make_run: MakeRun) -> None:
    store = ResultStore(tmp_path)
    store.prepare()
    run = make_run("Toy")
    lines: list[str] = []
    progress = Progress(
        store, [run], n_done=0, history=[], n_workers=1, sweep_id="now", write=lines.append
    )
    source = {"is_stand_in": True, "label": "stand-in x.parquet, 10 rows"}
    store.write(run.hash, result(run) | {"data_source": source})
    progress.report()
    assert lines[0].startswith("[1/1] toy toy eps=1 [stand-in x.parquet, 10 rows]: accuracy")


def test_results_and_failures_of_before_are_not_news(tmp_path: Path, make_run: MakeRun) -> None:
    store = ResultStore(tmp_path)
    store.prepare()
    forced, failed = make_run("Toy", eps=1.0), make_run("Toy", eps=2.0)
    store.write(forced.hash, result(forced, "before"))
    store.write_failure(failed.hash, {"status": "failed", "reason": "old", "sweep_id": "before"})
    lines: list[str] = []
    progress = Progress(
        store,
        [forced, failed],
        n_done=0,
        history=[result(forced, "before")],
        n_workers=1,
        sweep_id="now",
        write=lines.append,
    )
    progress.report()
    assert lines == []
    store.write(forced.hash, result(forced, "now"))
    progress.report()
    assert len(lines) == 1


def test_what_runs_cost_besides_themselves_is_part_of_the_time_left(
    tmp_path: Path, make_run: MakeRun
) -> None:
    # Runs of 1 s end every 3 s on one worker: 2 s each are spent around them.
    store = ResultStore(tmp_path)
    store.prepare()
    runs = [make_run("Toy", eps=float(eps)) for eps in range(1, 11)]
    lines: list[str] = []
    now = [0.0]
    progress = Progress(
        store,
        runs,
        n_done=0,
        history=[],
        n_workers=1,
        sweep_id="now",
        write=lines.append,
        clock=lambda: now[0],
    )
    for number, run in enumerate(runs[:7]):
        now[0] = 100.0 + 3.0 * number
        store.write(run.hash, result(run, seconds=1.0))
        progress.report()
    # Five runs of 1 s are left when it is too early to judge, three runs of 1 + 2 s in the end.
    assert lines[4].endswith("about 5.0 s left")
    assert lines[6].endswith("about 9.0 s left")
