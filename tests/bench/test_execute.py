from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lumberjack_bench.config import Settings
from lumberjack_bench.metrics import METRICS
from lumberjack_bench.runs import isolation
from lumberjack_bench.runs.execute import execute
from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.store import ResultStore

MakeRun = Callable[..., RunConfig]


def test_a_finished_run_leaves_a_whole_result(
    store: ResultStore, settings: Settings, make_run: MakeRun
) -> None:
    run = make_run("Toy", n_repeats=2)
    outcome = execute(run, settings)
    assert (outcome.status, outcome.is_good) == ("ok", True)
    result = store.finished(run.hash)
    assert result is not None
    assert RunConfig.from_dict(result["run"]).hash == result["run_hash"] == run.hash
    assert [r["repetition"] for r in result["repetitions"]] == [0, 1]
    # 5,500 of 10,000 points are of the largest class, and the split is stratified.
    assert [r["metrics"]["accuracy"] for r in result["repetitions"]] == [0.55, 0.55]
    of_numbers = {"rmse", "mae", "r2", "pinball_loss"}
    assert set(result["repetitions"][0]["metrics"]) == {*METRICS} - of_numbers - {"tune_seconds"}
    assert result["data_source"]["n_rows"] == 10_000
    assert result["card"]["claimed"] == {
        "epsilon": 1.0,
        "delta": 1e-6,
        "relation": "add or remove one record",
    }
    # The card is that of a release; the fixed noise is noted beside it.
    assert result["card"]["concerns"] == []
    assert "not private releases" in result["notes"][0]
    assert result["versions"]["python"]


def test_a_run_is_done_once_and_again_when_forced_but_once_per_sweep(
    store: ResultStore, settings: Settings, make_run: MakeRun
) -> None:
    run = make_run("Toy")
    forced = replace(settings, is_forced=True, sweep_id="next-sweep")
    statuses = [execute(run, how).status for how in (settings, settings, forced, forced)]
    assert statuses == ["ok", "done before", "ok", "done before"]


def test_a_run_that_its_method_skips_is_settled_with_the_reason_and_is_no_failure(
    store: ResultStore, settings: Settings, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run("Skipping", eps=0.5)
    first = execute(run, settings)
    assert (first.status, first.is_good) == ("skipped", True)
    assert first.reason == "9000 rows need eps of at least 1"
    assert store.finished(run.hash) is None
    assert execute(make_run("Skipping", eps=1.0), settings).status == "ok"
    monkeypatch.setattr("lumberjack_bench.runs.execute.call_alone", None)
    assert execute(run, settings) == first


def test_a_failure_is_recorded_returned_and_not_taken_for_a_result(
    store: ResultStore, settings: Settings, make_run: MakeRun
) -> None:
    run = make_run("Failing", at_eps=1.0)
    log_file = settings.results_dir / "logs" / "run.log"
    outcome = execute(run, settings, log_file=str(log_file))
    assert outcome.status == "failed"
    assert outcome.reason == "RuntimeError: injected failure at eps=1"
    assert outcome.log_file == str(log_file)
    assert "Traceback (most recent call last)" in log_file.read_text()
    assert store.finished(run.hash) is None
    failure = store.reason(run.hash)
    assert failure is not None
    assert "Traceback" in failure["traceback"]
    assert not store.is_locked(run.hash)
    assert execute(run, settings).status == "failed"


def test_on_error_raise_raises_and_still_records(
    store: ResultStore, settings: Settings, make_run: MakeRun
) -> None:
    run = make_run("Failing", at_eps=1.0)
    with pytest.raises(RuntimeError, match="injected failure"):
        execute(run, replace(settings, is_raising=True))
    assert store.reason(run.hash) is not None


def test_a_run_that_takes_too_long_is_ended(
    store: ResultStore, settings: Settings, make_run: MakeRun
) -> None:
    run = make_run("Slow", seconds=600)
    outcome = execute(run, replace(settings, timeout=0.2))
    assert outcome.status == "timed out"
    assert outcome.reason == "took longer than timeout=0.2 seconds"
    assert store.finished(run.hash) is None


def test_a_method_that_catches_everything_and_leaves_a_process_behind_is_ended_with_it(
    store: ResultStore, settings: Settings, make_run: MakeRun, tmp_path: Path
) -> None:
    noted = tmp_path / "process"
    run = make_run("Stubborn", note=str(noted))
    outcome = execute(run, replace(settings, timeout=3))
    assert outcome.status == "timed out"
    deadline = time.monotonic() + 10
    while Path(f"/proc/{noted.read_text()}").exists():
        assert time.monotonic() < deadline, "a process was left behind"
        time.sleep(0.05)


def test_a_sweep_that_is_stopped_leaves_its_runs_undone(
    store: ResultStore, settings: Settings, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "_stopping", threading.Event())
    threading.Timer(0.5, isolation.stop_calls).start()
    run = make_run("Slow", seconds=600)
    with pytest.raises(isolation.Stopped):
        execute(run, settings)
    assert store.finished(run.hash) is None
    assert store.reason(run.hash) is None
    assert not store.is_locked(run.hash)


@pytest.mark.parametrize(
    ("toy", "reason"),
    [
        ("Leaking", "PrivacyLeak: bounds were read from the rows"),
        (
            "OutOfRange",
            "MethodError: method outofrange: predict must return codes 0 to 2, got 7 to 7.",
        ),
        ("Wordy", "MethodError: method wordy: predict must return 1000 whole numbers, got <U3"),
        ("Boasting", "MethodError: method boasting: fit_report may not give 'accuracy', which the"),
        ("Vague", "MethodError: method vague: fit_report must give finite numbers, got depth=nan."),
        ("Exiting", "SystemExit: 0"),
        ("Vanishing", "its process ended itself with exit code 0"),
        ("Crashing", "its process was ended by SIGSEGV"),
        ("Hungry", "MemoryError"),
        ("Missing", "MethodError: method target 'toy_methods.Missing' names no class."),
    ],
)
def test_a_method_that_breaks_its_contract_fails(
    toy: str, reason: str, store: ResultStore, settings: Settings, make_run: MakeRun
) -> None:
    outcome = execute(make_run(toy), settings)
    assert outcome.status == "failed"
    assert outcome.reason.startswith(reason)


def test_tuning_sees_train_and_validation_and_the_fit_both_together(
    store: ResultStore, settings: Settings, make_run: MakeRun
) -> None:
    run = make_run("Tuned", is_tuned=True)
    outcome = execute(run, settings, n_jobs=2)
    assert outcome.status == "ok", outcome.reason
    result = store.finished(run.hash)
    assert result is not None
    repetition = result["repetitions"][0]
    assert repetition["tuned"] == {
        "parameters": {"depth": 5},
        "note": "tuned without privacy cost",
    }
    metrics = repetition["metrics"]
    assert (metrics["depth"], metrics["n_rows"], metrics["n_jobs"]) == (5, 9000, 2)
    assert metrics["tune_seconds"] >= 0


def test_a_run_done_again_has_the_same_seeds_and_each_repetition_its_own(
    store: ResultStore, settings: Settings, make_run: MakeRun
) -> None:
    run = make_run("Seeded", n_repeats=2)
    seen = []
    for sweep_id in ("one", "two"):
        execute(run, replace(settings, is_forced=True, sweep_id=sweep_id))
        result = store.finished(run.hash)
        assert result is not None
        seen.append(
            [(r["metrics"]["structure"], r["metrics"]["noise"]) for r in result["repetitions"]]
        )
    assert seen[0] == seen[1]
    assert len({value for pair in seen[0] for value in pair}) == 4


def test_a_result_that_cannot_be_stored_is_a_failure_that_says_so(
    store: ResultStore, settings: Settings, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    outcome = execute(make_run("Toy"), settings)
    assert outcome.status == "failed"
    assert "No space left on device" in outcome.reason
