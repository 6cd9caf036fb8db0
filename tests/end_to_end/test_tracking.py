from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from real_command import ROOT, Bench, wait_until

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh MLflow database; making one takes seconds, so the tests copy it."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    from mlflow import MlflowClient

    logging.getLogger("alembic").setLevel(logging.WARNING)
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    MlflowClient(tracking_uri=f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def tracked(bench: Bench, empty_database: Path) -> Bench:
    """A bench whose results folder has an MLflow database."""
    bench.results.mkdir()
    shutil.copy(empty_database, bench.results / "mlflow.db")
    return bench


def entries(bench: Bench, kind: str = "run") -> list[Any]:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{bench.results / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("lumberjack")
    return list(client.search_runs([experiment.experiment_id], f"tags.kind = '{kind}'"))


def finished(bench: Bench) -> dict[str, Any]:
    found = [run for run in entries(bench) if run.data.tags["complete"] == "true"]
    assert {run.info.status for run in found} <= {"FINISHED"}
    by_hash = {run.data.tags["run_hash"]: run for run in found}
    assert len(by_hash) == len(found), "a run is shown twice"
    return by_hash


def check_agreement(bench: Bench) -> None:
    """Every run of the table is shown, with the table's accuracies."""
    values = defaultdict(list)
    for row in bench.table():
        if row["metric"] == "accuracy":
            values[row["run_hash"]].append(float(row["value"]))
    shown = finished(bench)
    assert set(shown) == set(values)
    for run_hash, run in shown.items():
        assert run.data.metrics["accuracy"] == pytest.approx(fmean(values[run_hash]), abs=1e-12)


def shown_by(bench: Bench) -> set[str]:
    """Ids of all entries."""
    return {run.info.run_id for kind in ("run", "sweep") for run in entries(bench, kind)}


def test_a_fresh_database_shows_what_the_table_says_and_follows_it(bench: Bench) -> None:
    sweep = ("-m", "method=seeded,odd,majority", "eps=1,2")
    bench.results.mkdir()
    (bench.results / ".mlflow.db.123.tmp").write_bytes(b"half made")
    done = bench(*sweep, "hydra/launcher=joblib", tracking="sqlite")
    assert (done.returncode, done.stderr) == (0, "")
    assert list(bench.results.glob(".mlflow*")) == []
    assert not (bench.folder / "mlruns").exists()
    check_agreement(bench)
    (parent,) = entries(bench, "sweep")
    assert parent.info.status == "FINISHED"
    stored = {result["run_hash"]: result for result in bench.stored()}
    for run_hash, run in finished(bench).items():
        assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert run.data.tags["sweep_id"] == parent.data.tags["sweep_id"]
        assert run.data.params["dataset"] == "toy_moons_5"
        assert run.data.params["eps"] == str(stored[run_hash]["run"]["eps"])
        artifact = Path(run.info.artifact_uri.removeprefix("file://")) / "result.json"
        assert json.loads(artifact.read_text())["run_hash"] == run_hash
    check_repetitions_are_steps(bench)
    # A name that MLflow refuses is mapped.
    odd = [run for run in finished(bench).values() if run.data.params["method"] == "odd"]
    assert [run.data.metrics["depth_ _of_ trees_"] for run in odd] == [3.0, 3.0]

    # The same command again adds nothing, and needs no MLflow to know that.
    before = shown_by(bench)
    broken = "import sys; sys.modules['mlflow'] = None"
    again = bench.after(broken, *sweep, tracking="sqlite")
    assert again.returncode == 0, again.stderr
    assert shown_by(bench) == before

    # A forced run replaces what was shown.
    assert bench("method=seeded", "force=true", tracking="sqlite").returncode == 0
    check_agreement(bench)
    tags = [run.data.tags["complete"] for run in entries(bench)]
    assert sorted(tags) == ["superseded", *["true"] * 5]

    # What is lost is made again.
    (bench.results / "mlflow.db").unlink()
    assert bench(*sweep, tracking="sqlite").returncode == 0
    check_agreement(bench)


def check_repetitions_are_steps(bench: Bench) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{bench.results / 'mlflow.db'}")
    result = next(r for r in bench.stored() if r["run"]["method"]["name"] == "seeded")
    shown = finished(bench)[result["run_hash"]].info.run_id
    history = client.get_metric_history(shown, "repetition.structure")
    assert {m.step: m.value for m in history} == {
        r["repetition"]: r["metrics"]["structure"] for r in result["repetitions"]
    }


def test_what_was_not_shown_or_not_ended_is_put_right_by_the_next_command(tracked: Bench) -> None:
    # Without tracking, MLflow is not imported.
    broken = "import sys; sys.modules['mlflow'] = None"
    assert tracked.after(broken, "-m", "method=seeded", "eps=1,2").returncode == 0
    assert tracked("-m", "method=seeded", "eps=1,2", tracking="sqlite").returncode == 0
    check_agreement(tracked)
    with closing(sqlite3.connect(tracked.results / "mlflow.db", timeout=30)) as connection:
        connection.execute("update runs set status = 'RUNNING'")
        connection.commit()
    assert tracked("-m", "method=seeded", "eps=4", tracking="sqlite").returncode == 0
    check_agreement(tracked)
    assert len(finished(tracked)) == 3


def test_a_failed_run_is_shown_as_failed(tracked: Bench) -> None:
    assert tracked("-m", "method=failing", "eps=1,2", tracking="sqlite").returncode == 1
    status = {run.data.tags["complete"]: run.info.status for run in entries(tracked)}
    assert status == {"true": "FINISHED", "false": "FAILED"}
    (reason,) = [run.data.tags["reason"] for run in entries(tracked) if "reason" in run.data.tags]
    assert reason == "RuntimeError: injected failure at eps=2"
    assert [run.info.status for run in entries(tracked, "sweep")] == ["FAILED"]


SLOW = ("-m", "method=slow", "method.params.seconds=600", "eps=1,2")


def test_entries_of_a_killed_sweep_are_closed_by_the_next_one_but_not_those_of_a_living_one(
    tracked: Bench,
) -> None:
    process = tracked.start(*SLOW, tracking="sqlite")
    try:
        wait_until(lambda: running(tracked) == ["sweep"])
        assert tracked("method=seeded", tracking="sqlite").returncode == 0
        assert running(tracked) == ["sweep"]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert running(tracked) == ["sweep"]
    assert tracked("method=seeded", "eps=2", tracking="sqlite").returncode == 0
    assert running(tracked) == []
    assert {run.info.status for run in entries(tracked, "sweep")} == {"KILLED", "FINISHED"}


def test_a_sweep_that_is_terminated_says_so_keeps_what_is_done_and_closes_its_entries(
    tracked: Bench,
) -> None:
    sweep = ("-m", "method=slow", "method.params.seconds=0.4", "eps=0.5,1,2,4,8")
    sweep = (*sweep, "n_workers=2", "hydra/launcher=joblib")
    process = tracked.start(*sweep, tracking="sqlite")
    wait_until(lambda: len(tracked.result_files()) >= 1)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert err == "Interrupted. The same command again does the rest.\n"
    assert "not started" in out
    assert len(tracked.accuracies()) >= 2
    assert list(tracked.results.glob("reasons/*")) == []
    assert running(tracked) == []
    check_agreement(tracked)


def running(bench: Bench) -> list[str]:
    """Kinds of the entries that say RUNNING, read without MLflow."""
    query = (
        "select tags.value from runs join tags on runs.run_uuid = tags.run_uuid "
        "where runs.status = 'RUNNING' and tags.key = 'kind' order by 1"
    )
    with closing(sqlite3.connect(bench.results / "mlflow.db", timeout=30)) as connection:
        return [kind for (kind,) in connection.execute(query)]


def test_a_damaged_or_locked_database_is_refused_before_anything_runs(
    tracked: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tracked.results / "mlflow.db"
    monkeypatch.setattr("lumberjack_bench.tracking.LOCK_TIMEOUT_SECONDS", 0.1)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        said = tracked.refused("method=seeded", tracking="sqlite")
    assert f"{database} is locked by another program. Close that program, or" in said
    database.write_bytes(b"this is no database" * 100)
    assert tracked.refused("-m", "method=seeded", "eps=1,2", tracking="sqlite") == (
        f"error: the MLflow store {database} is damaged. Move the file away to start a new one, or "
        "run with tracking=none. Results are safe in the result files.\n"
    )


BREAKS_AFTER_OPENING = """
from lumberjack_bench.tracking import MlflowView
prepare = MlflowView.open
def open_and_break(self, description):
    prepare(self, description)
    Path({database!r}).write_bytes(b"broken" * 1000)
MlflowView.open = open_and_break
"""


def test_a_database_that_breaks_in_the_middle_costs_no_result(tracked: Bench) -> None:
    breaking = BREAKS_AFTER_OPENING.format(database=str(tracked.results / "mlflow.db"))
    done = tracked.after(breaking, "-m", "method=seeded", "eps=1,2", tracking="sqlite")
    assert done.returncode == 1
    assert "Runs: 2 ok." in done.stdout
    assert "mlflow.db is damaged." in done.stdout
    assert "python scripts/log_results.py" in done.stdout
    assert len(tracked.accuracies()) == 4


def test_stored_results_go_into_any_store_by_one_command(
    tracked: Bench, empty_database: Path
) -> None:
    assert tracked("-m", "method=seeded", "eps=1,2").returncode == 0
    other = tracked.folder / "other.db"
    shutil.copy(empty_database, other)
    script = str(ROOT / "scripts" / "log_results.py")
    words = (f"results_dir={tracked.results}", f"tracking.uri=sqlite:///{other}")
    outputs = [tracked.program(script, *words).stdout for _ in range(2)]
    assert outputs[0].startswith("2 results, 2 of them new in ")
    assert outputs[1].startswith("2 results, 0 of them new in ")
    shutil.copy(other, tracked.results / "mlflow.db")
    check_agreement(tracked)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    import socket

    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    store = tmp_path / "server"
    store.mkdir()
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--workers", "1"]
    command += ["--port", str(port), "--backend-store-uri", f"sqlite:///{store / 'mlflow.db'}"]
    command += ["--artifacts-destination", str(store / "artifacts")]
    with (store / "log").open("w") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=store, start_new_session=True
        )
    try:
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/health"))
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def answers(address: str) -> bool:
    from urllib.error import URLError
    from urllib.request import urlopen

    try:
        with urlopen(address, timeout=2) as response:
            return bool(response.status == 200)
    except (URLError, OSError):
        return False


@pytest.mark.server
def test_a_real_server_shows_a_sweep(bench: Bench, server: str) -> None:
    from mlflow import MlflowClient

    sweep = ("-m", "method=seeded", "eps=1,2", f"tracking.uri={server}")
    done = bench(*sweep, tracking="server")
    assert done.returncode == 0, done.stdout + done.stderr
    client = MlflowClient(tracking_uri=server)
    experiment = client.get_experiment_by_name("lumberjack")
    runs = client.search_runs([experiment.experiment_id], "tags.complete = 'true'")
    shown = {run.data.tags["run_hash"]: run.data.metrics["accuracy"] for run in runs}
    assert shown == {r["run_hash"]: pytest.approx(0.55, abs=1e-12) for r in bench.stored()}


def test_a_server_that_does_not_answer_is_refused_in_one_line(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    said = bench.refused("method=seeded", "tracking.uri=http://127.0.0.1:9", tracking="server")
    assert "the MLflow store http://127.0.0.1:9 does not answer. Start it, or" in said
