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


def test_a_fresh_database_is_made_and_shows_what_the_table_says(bench: Bench) -> None:
    done = bench(
        "-m", "method=seeded,majority", "eps=1,2", "hydra/launcher=joblib", tracking="sqlite"
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    check_agreement(bench)
    (sweep,) = entries(bench, "sweep")
    assert sweep.info.status == "FINISHED"
    for run in finished(bench).values():
        assert run.data.tags["mlflow.parentRunId"] == sweep.info.run_id
        assert run.data.tags["sweep_id"] == sweep.data.tags["sweep_id"]
        assert run.data.params["dataset"] == "toy_moons_5"
        assert run.data.params["n_repeats"] == "2"
        artifact = Path(run.info.artifact_uri.removeprefix("file://")) / "result.json"
        assert json.loads(artifact.read_text())["run_hash"] == run.data.tags["run_hash"]
    assert sorted(run.data.params["eps"] for run in finished(bench).values()) == [
        "1.0",
        "2.0",
        "inf",
    ]
    assert not (bench.folder / "mlruns").exists()


def test_repetitions_are_steps_of_a_metric(tracked: Bench) -> None:
    from mlflow import MlflowClient

    assert tracked("method=seeded", tracking="sqlite").returncode == 0
    ((run_hash, run),) = finished(tracked).items()
    client = MlflowClient(tracking_uri=f"sqlite:///{tracked.results / 'mlflow.db'}")
    history = client.get_metric_history(run.info.run_id, "repetition.structure")
    (result,) = tracked.stored()
    assert run_hash == result["run_hash"]
    assert {m.step: m.value for m in history} == {
        r["repetition"]: r["metrics"]["structure"] for r in result["repetitions"]
    }


def test_the_same_command_again_adds_no_entry(tracked: Bench) -> None:
    sweep = ("-m", "method=seeded", "eps=1,2")
    assert tracked(*sweep, tracking="sqlite").returncode == 0
    before = {run.info.run_id for run in entries(tracked)} | {
        run.info.run_id for run in entries(tracked, "sweep")
    }
    assert tracked(*sweep, tracking="sqlite").returncode == 0
    after = {run.info.run_id for run in entries(tracked)} | {
        run.info.run_id for run in entries(tracked, "sweep")
    }
    assert after == before
    check_agreement(tracked)


def test_a_view_in_step_with_the_results_needs_no_mlflow_and_a_lost_one_is_made_again(
    tracked: Bench,
) -> None:
    sweep = ("-m", "method=seeded", "eps=1,2")
    assert tracked(*sweep, tracking="sqlite").returncode == 0
    broken = "import sys; sys.modules['mlflow'] = None"
    assert tracked.after(broken, *sweep, tracking="sqlite").returncode == 0
    (tracked.results / "mlflow.db").unlink()
    assert tracked(*sweep, tracking="sqlite").returncode == 0
    check_agreement(tracked)


def test_a_forced_run_replaces_what_was_shown(tracked: Bench) -> None:
    assert tracked("method=seeded", tracking="sqlite").returncode == 0
    assert tracked("method=seeded", "force=true", tracking="sqlite").returncode == 0
    check_agreement(tracked)
    tags = sorted(run.data.tags["complete"] for run in entries(tracked))
    assert tags == ["superseded", "true"]


def test_results_made_without_tracking_are_shown_by_the_next_command(tracked: Bench) -> None:
    assert tracked("-m", "method=seeded", "eps=1,2").returncode == 0
    assert tracked("-m", "method=seeded", "eps=1,2", tracking="sqlite").returncode == 0
    check_agreement(tracked)


def test_a_whole_entry_that_was_not_ended_is_put_right_by_the_next_command(
    tracked: Bench,
) -> None:
    assert tracked("method=seeded", tracking="sqlite").returncode == 0
    with closing(sqlite3.connect(tracked.results / "mlflow.db", timeout=30)) as connection:
        connection.execute("update runs set status = 'RUNNING'")
        connection.commit()
    assert tracked("-m", "method=seeded", "eps=2", tracking="sqlite").returncode == 0
    check_agreement(tracked)
    assert len(finished(tracked)) == 2


def test_names_that_mlflow_refuses_are_mapped_and_half_made_databases_removed(
    bench: Bench,
) -> None:
    bench.results.mkdir()
    (bench.results / ".mlflow.db.123.tmp").write_bytes(b"half")
    done = bench("method=odd", tracking="sqlite")
    assert done.returncode == 0, done.stdout + done.stderr
    check_agreement(bench)
    (run,) = finished(bench).values()
    assert run.data.metrics["depth_ _of_ trees_"] == 3.0
    assert list(bench.results.glob(".mlflow*")) == []


def test_a_failed_run_is_shown_as_failed(tracked: Bench) -> None:
    assert tracked("-m", "method=failing", "eps=1,2", tracking="sqlite").returncode == 1
    status = {run.data.tags["complete"]: run.info.status for run in entries(tracked)}
    assert status == {"true": "FINISHED", "false": "FAILED"}
    (reason,) = [run.data.tags["reason"] for run in entries(tracked) if "reason" in run.data.tags]
    assert reason == "RuntimeError: injected failure at eps=2"
    assert [run.info.status for run in entries(tracked, "sweep")] == ["FAILED"]


def test_entries_of_a_killed_sweep_are_closed_by_the_next_one(tracked: Bench) -> None:
    slow = ("-m", "method=slow", "method.params.seconds=600", "eps=1,2")
    process = tracked.start(*slow, tracking="sqlite")
    wait_until(lambda: running(tracked) == ["sweep"])
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert running(tracked) == ["sweep"]
    assert tracked("method=seeded", tracking="sqlite").returncode == 0
    assert running(tracked) == []
    assert {run.info.status for run in entries(tracked, "sweep")} == {"KILLED", "FINISHED"}


def test_a_terminated_sweep_closes_its_entries_itself(tracked: Bench) -> None:
    slow = ("-m", "method=slow", "method.params.seconds=600", "eps=1,2", "n_workers=2")
    process = tracked.start(*slow, "hydra/launcher=joblib", tracking="sqlite")
    wait_until(lambda: running(tracked) == ["sweep"])
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert running(tracked) == []


def test_another_sweeps_living_runs_are_left_alone(tracked: Bench) -> None:
    slow = ("-m", "method=slow", "method.params.seconds=600", "eps=1,2")
    process = tracked.start(*slow, tracking="sqlite")
    try:
        wait_until(lambda: running(tracked) == ["sweep"])
        assert tracked("method=seeded", tracking="sqlite").returncode == 0
        assert running(tracked) == ["sweep"]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def running(bench: Bench) -> list[str]:
    """Kinds of the entries that say RUNNING, read without MLflow."""
    query = (
        "select tags.value from runs join tags on runs.run_uuid = tags.run_uuid "
        "where runs.status = 'RUNNING' and tags.key = 'kind' order by 1"
    )
    with closing(sqlite3.connect(bench.results / "mlflow.db", timeout=30)) as connection:
        return [kind for (kind,) in connection.execute(query)]


def test_a_damaged_database_is_refused_before_anything_runs(bench: Bench) -> None:
    bench.results.mkdir()
    (bench.results / "mlflow.db").write_bytes(b"this is no database" * 100)
    refused = bench("-m", "method=seeded", "eps=1,2", tracking="sqlite")
    assert refused.returncode == 2
    assert refused.stderr == (
        f"error: the MLflow store {bench.results / 'mlflow.db'} is damaged. Move the file away to "
        "start a new one, or run with tracking=none. Results are safe in the result files.\n"
    )
    assert bench.stored() == []


def test_a_locked_database_is_refused_before_anything_runs(tracked: Bench) -> None:
    impatient = (
        "import lumberjack_bench.tracking; lumberjack_bench.tracking.LOCK_TIMEOUT_SECONDS = 0.1"
    )
    with closing(sqlite3.connect(tracked.results / "mlflow.db")) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        refused = tracked.after(impatient, "method=seeded", tracking="sqlite")
    assert refused.returncode == 2
    assert "mlflow.db is locked by another program. Close that program, or" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert tracked.stored() == []


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
    command = [
        sys.executable,
        str(ROOT / "scripts" / "log_results.py"),
        f"results_dir={tracked.results}",
        f"tracking.uri=sqlite:///{other}",
    ]
    outputs = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)
    ]
    assert outputs[0].startswith("2 results, 2 of them new in ")
    assert outputs[1].startswith("2 results, 0 of them new in ")
    shutil.copy(other, tracked.results / "mlflow.db")
    check_agreement(tracked)


def test_without_tracking_mlflow_is_not_imported(bench: Bench) -> None:
    program = (
        "import sys; from pathlib import Path; from lumberjack_bench.command import main; "
        f"code = main({bench.arguments('method=majority')!r}, Path({str(ROOT / 'conf')!r})); "
        "sys.exit(code or ('mlflow' in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=bench.folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Runs: 1 ok." in done.stdout


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


def test_a_server_that_does_not_answer_is_refused_in_one_line(bench: Bench) -> None:
    refused = bench.after(
        "import os; os.environ['MLFLOW_HTTP_REQUEST_MAX_RETRIES'] = '0'",
        "method=seeded",
        "tracking.uri=http://127.0.0.1:9",
        tracking="server",
    )
    assert refused.returncode == 2
    assert "the MLflow store http://127.0.0.1:9 does not answer. Start it, or" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert bench.stored() == []
