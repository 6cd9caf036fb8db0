from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lumberjack_bench.config import Settings
from lumberjack_bench.runs.execute import Interrupted, execute
from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.store import ResultStore
from lumberjack_bench.tracking import NoTracker

MakeRun = Callable[..., RunConfig]


class Recorder(NoTracker):
    """A tracker that remembers what it was told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, ...]] = []

    def begin(self, run: RunConfig) -> str:
        self.events.append(("begin", run.hash))
        return "entry"

    def complete(self, entry: str | None, result: dict[str, Any]) -> str:
        self.events.append(("complete", str(entry)))
        return ""

    def abandon(self, entry: str | None, status: str, reason: str) -> str:
        self.events.append(("abandon", str(entry), status, reason))
        return ""


@pytest.fixture
def store(settings: Settings) -> ResultStore:
    store = ResultStore(settings.results_dir)
    store.prepare()
    return store


def test_a_finished_run_leaves_a_whole_result(
    store: ResultStore, settings: Settings, make_run: MakeRun
) -> None:
    run = make_run("Toy", n_repeats=2)
    outcome = execute(run, settings, NoTracker())
    assert (outcome.status, outcome.is_good) == ("ok", True)
    result = store.read(run.hash)
    assert result is not None
    assert RunConfig(**result["run"]).hash == result["run_hash"] == run.hash
    assert [r["repetition"] for r in result["repetitions"]] == [0, 1]
    # 5,500 of 10,000 points are of the largest class, and the split is stratified.
    assert [r["metrics"]["accuracy"] for r in result["repetitions"]] == [0.55, 0.55]
    assert set(result["repetitions"][0]["metrics"]) == {
        "accuracy",
        "fit_seconds",
        "predict_seconds",
    }
    assert result["data_source"]["n_rows"] == 10_000
    assert result["card"]["claimed"] == {
        "epsilon": 1.0,
        "delta": 1e-6,
        "relation": "add or remove one record",
    }
    assert result["versions"]["python"]


def test_the_card_is_that_of_a_release_and_the_fixed_noise_is_noted(
    store: ResultStore, settings: Settings, make_run: MakeRun
) -> None:
    run = make_run("Toy")
    execute(run, settings, NoTracker())
    result = store.read(run.hash)
    assert result is not None
    assert result["card"]["concerns"] == []
    assert "not private releases" in result["notes"][0]


def test_a_run_with_a_result_is_skipped_without_loading_data(
    store: ResultStore, settings: Settings, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run("Toy")
    execute(run, settings, NoTracker())

    def refuse(*_: object) -> None:
        raise AssertionError("data was loaded")

    monkeypatch.setattr("lumberjack_bench.runs.execute.load_rows", refuse)
    tracker = Recorder()
    assert execute(run, settings, tracker).status == "skipped"
    assert tracker.events == []


def test_force_does_a_run_again_but_once_per_sweep(
    store: ResultStore, settings: Settings, make_run: MakeRun
) -> None:
    run = make_run("Toy")
    execute(run, settings, NoTracker())
    forced = replace(settings, is_forced=True, sweep_id="next-sweep")
    assert execute(run, forced, NoTracker()).status == "ok"
    assert execute(run, forced, NoTracker()).status == "skipped"


def test_a_failure_is_recorded_returned_and_not_taken_for_a_result(
    store: ResultStore, settings: Settings, make_run: MakeRun
) -> None:
    run = make_run("Failing", at_eps=1.0)
    tracker = Recorder()
    outcome = execute(run, settings, tracker, log_file="here.log")
    assert outcome.status == "failed"
    assert outcome.reason == "RuntimeError: injected failure at eps=1"
    assert outcome.log_file == "here.log"
    assert store.read(run.hash) is None
    failure = store.read_failure(run.hash)
    assert failure is not None
    assert "Traceback" in failure["traceback"]
    assert tracker.events[1] == ("abandon", "entry", "FAILED", outcome.reason)
    assert not store.is_locked(run.hash)
    assert execute(run, settings, NoTracker()).status == "failed"


def test_on_error_raise_raises_and_still_records(
    store: ResultStore, settings: Settings, make_run: MakeRun
) -> None:
    run = make_run("Failing", at_eps=1.0)
    with pytest.raises(RuntimeError, match="injected failure"):
        execute(run, replace(settings, is_raising=True), NoTracker())
    assert store.read_failure(run.hash) is not None


def test_a_run_that_takes_too_long_is_ended(
    store: ResultStore, settings: Settings, make_run: MakeRun
) -> None:
    run = make_run("Slow", seconds=600)
    outcome = execute(run, replace(settings, timeout=0.2), NoTracker())
    assert outcome.status == "timed out"
    assert outcome.reason == "took longer than timeout=0.2 seconds"
    assert store.read(run.hash) is None


def test_a_method_that_catches_everything_and_leaves_a_process_behind_is_ended_with_it(
    store: ResultStore, settings: Settings, make_run: MakeRun, tmp_path: Path
) -> None:
    noted = tmp_path / "process"
    run = make_run("Stubborn", note=str(noted))
    outcome = execute(run, replace(settings, timeout=3), NoTracker())
    assert outcome.status == "timed out"
    deadline = time.monotonic() + 10
    while Path(f"/proc/{noted.read_text()}").exists():
        assert time.monotonic() < deadline, "a process was left behind"
        time.sleep(0.05)


def test_a_termination_leaves_nothing_behind_and_closes_the_entry(
    store: ResultStore, settings: Settings, make_run: MakeRun
) -> None:
    run = make_run("Slow", seconds=600)

    class Terminating(Recorder):
        def begin(self, run: RunConfig) -> str:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            return super().begin(run)

    before = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    tracker = Terminating()
    try:
        with pytest.raises(Interrupted):
            execute(run, settings, tracker)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert tracker.events[-1] == ("abandon", "entry", "KILLED", "interrupted")
    assert store.read(run.hash) is None
    assert store.read_failure(run.hash) is None
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
    outcome = execute(make_run(toy), settings, NoTracker())
    assert outcome.status == "failed"
    assert outcome.reason.startswith(reason)


def test_a_leak_is_an_error_every_time_not_only_the_first(
    store: ResultStore, settings: Settings, make_run: MakeRun
) -> None:
    for _ in range(2):
        assert execute(make_run("Leaking"), settings, NoTracker()).status == "failed"


def test_tuning_sees_train_and_validation_and_the_fit_both_together(
    store: ResultStore, settings: Settings, make_run: MakeRun
) -> None:
    run = make_run("Tuned", is_tuned=True)
    outcome = execute(run, settings, NoTracker(), n_jobs=2)
    assert outcome.status == "ok", outcome.reason
    result = store.read(run.hash)
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
        execute(run, replace(settings, is_forced=True, sweep_id=sweep_id), NoTracker())
        result = store.read(run.hash)
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
    outcome = execute(make_run("Toy"), settings, NoTracker())
    assert outcome.status == "failed"
    assert "No space left on device" in outcome.reason
