"""One sweep on several launchers: the numbers are the same, and so is what happens when runs fail."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import distributed
import pytest
from dask import config
from real_command import Bench, wait_until
from slurm_node import SlurmNode, slurm_node, why_not

SWEEP = ("-m", "method=seeded,majority", "eps=1,2")

# What no launcher may change. Times differ, and the commit may while somebody works here.
DECIDED_BY_SEEDS = (
    *("dataset", "method", "label", "mode", "params", "eps", "delta", "seed", "repetition"),
    *("metric", "value", "status", "data_source", "card_claim", "run_hash"),
)


def numbers(bench: Bench) -> list[tuple[str, ...]]:
    """The text of the table, row by row, where the seeds decide it."""
    rows = [row for row in bench.table() if not row["metric"].endswith(("_seconds", "_mb"))]
    return [tuple(row[column] for column in DECIDED_BY_SEEDS) for row in rows]


def numbers_of_the_basic_launcher(bench: Bench, *sweep: str) -> list[tuple[str, ...]]:
    beside = Bench(bench.folder)
    beside.results = bench.folder / "basic"
    done = beside(*sweep, "hydra/launcher=basic")
    assert done.returncode == 0, done.stderr
    return numbers(beside)


def check_that_nothing_is_repeated(bench: Bench, *command: str, n_runs: int) -> None:
    files, table = bench.result_files(), (bench.results / "results.csv").read_bytes()
    jobs = set(bench.results.glob("logs/*/*"))
    again = bench(*command)
    assert again.returncode == 0, again.stderr
    assert f"Runs: {n_runs} done before." in again.stdout
    assert bench.result_files() == files
    assert (bench.results / "results.csv").read_bytes() == table
    assert set(bench.results.glob("logs/*/*")) == jobs, "a job was started"


# submitit's local executor goes the same way as to SLURM, without a cluster.


def test_basic_joblib_and_submitit_give_the_same_table_and_do_nothing_twice(bench: Bench) -> None:
    expected = numbers_of_the_basic_launcher(bench, *SWEEP)
    # Two repetitions of three runs, since the majority class ignores eps.
    assert len([row for row in expected if "accuracy" in row]) == 6

    bench.results = bench.folder / "joblib"
    joblib = bench(*SWEEP, "hydra/launcher=joblib", "n_workers=2")
    assert joblib.returncode == 0, joblib.stderr
    assert "Doing 3 with 2 at a time" in joblib.stdout
    assert numbers(bench) == expected

    bench.results = bench.folder / "submitit"
    submitit = bench(*SWEEP, "hydra/launcher=submitit_local")
    assert submitit.returncode == 0, submitit.stderr
    assert submitit.stderr == ""
    assert "Runs: 3 ok." in submitit.stdout
    assert numbers(bench) == expected
    assert len(list(bench.results.glob("logs/*/submitit/*/*_result.pkl"))) == 3
    check_that_nothing_is_repeated(bench, *SWEEP, "hydra/launcher=submitit_local", n_runs=3)
    check_that_nothing_is_repeated(bench, *SWEEP, "hydra/launcher=basic", n_runs=3)


# A real Dask cluster of two processes on this machine.


@pytest.fixture
def dask(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[distributed.LocalCluster]:
    for name, value in bench.environment.items():
        monkeypatch.setenv(name, value)
    with (
        config.set({"distributed.worker.daemon": False}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
    ):
        yield cluster


def test_dask_gives_the_same_table_though_a_worker_is_killed(
    bench: Bench, dask: distributed.LocalCluster
) -> None:
    sweep = ("-m", "method=slow", "method.params.seconds=0.5", "eps=0.5,1,2,4")
    expected = numbers_of_the_basic_launcher(bench, *sweep)
    process = bench.start(*sweep, "launcher=dask", f"launcher.address={dask.scheduler_address}")
    wait_until(lambda: len(bench.result_files()) >= 1)
    with distributed.Client(dask.scheduler_address) as client:
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
    assert "Doing 4 with 2 at a time" in out
    assert "Runs: 4 ok." in out
    assert numbers(bench) == expected


def test_a_dask_cluster_that_is_not_there_is_refused_in_one_line(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumberjack_bench.runs.launch.CONNECT_SECONDS", 1)
    said = bench.refused("launcher=dask", "launcher.address=tcp://127.0.0.1:9")
    assert "no Dask scheduler at tcp://127.0.0.1:9" in said


# A real SLURM. Its node has two cores and 4 GB, so the requests are smaller than our own defaults.

ON_SLURM = (
    "hydra/launcher=submitit_slurm",
    "hydra.launcher.cpus_per_task=1",
    "hydra.launcher.mem_gb=1",
)


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmNode]:
    if reason := why_not():
        pytest.skip(reason)
    with slurm_node() as node:
        yield node


@pytest.fixture
def cluster(bench: Bench, slurm: SlurmNode) -> Bench:
    """A bench whose commands find the SLURM, and none that may be here besides."""
    ours = ("PYTHONPATH", "LUMBERJACK_DATA")
    bench.environment = slurm.environment | {name: bench.environment[name] for name in ours}
    return bench


@pytest.mark.slurm
def test_a_sweep_through_slurm_gives_the_same_table_and_does_nothing_twice(
    cluster: Bench, slurm: SlurmNode
) -> None:
    n_before = len(slurm.jobs())
    done = cluster(*SWEEP, *ON_SLURM)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "Runs: 3 ok." in done.stdout
    assert numbers(cluster) == numbers_of_the_basic_launcher(cluster, *SWEEP)
    asked = ("JobState", "JobName", "NumCPUs", "MinMemoryNode", "TimeLimit")
    # The name and the four hours are those of conf/launcher/submitit_slurm.yaml.
    assert [tuple(job[name] for name in asked) for job in slurm.jobs()[n_before:]] == [
        ("COMPLETED", "lumberjack", "1", "1G", "04:00:00")
    ] * 3
    check_that_nothing_is_repeated(cluster, *SWEEP, *ON_SLURM, n_runs=3)


@pytest.mark.slurm
def test_under_slurm_a_killed_run_leaves_the_others_done_and_is_tried_again(
    cluster: Bench, slurm: SlurmNode
) -> None:
    n_before = len(slurm.jobs())
    marker = cluster.folder / "marker"
    marker.write_text("")
    # Two at a time: eps=4 starts after eps=2 has died.
    sweep = ("-m", "method=dying", f"method.params.while_file={marker}", "eps=1,2,4", *ON_SLURM)
    killed = cluster(*sweep)
    assert killed.returncode == 1, killed.stdout + killed.stderr
    assert "Runs: 2 ok, 1 failed." in killed.stdout
    assert "FAILED toy_moons_5 dying eps=2: its process was ended by SIGKILL" in killed.stdout
    assert {eps for _, eps, _ in cluster.accuracies()} == {"1.0", "4.0"}
    assert {job["JobState"] for job in slurm.jobs()[n_before:]} == {"COMPLETED"}
    before = cluster.result_files()
    marker.unlink()
    again = cluster(*sweep)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "Runs: 1 ok, 2 done before." in again.stdout
    assert before.items() <= cluster.result_files().items()
