"""One sweep on several launchers: the numbers are the same, and so is what happens when runs fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from real_command import Bench, Ended, wait_until
from slurm_node import SlurmNode, slurm_node, why_not

SWEEP = ("-m", "method=seeded,majority", "eps=1,2")
FAILING_SWEEP = ("-m", "method=failing", "eps=1,2,4")

# What a launcher must not change. Times differ, and the commit may while somebody works here.
DECIDED = ("dataset", "method", "label", "mode", "params", "eps", "delta", "seed", "repetition")
DECIDED += ("metric", "value", "status", "data_source", "card_claim", "run_hash")


def numbers(bench: Bench) -> list[tuple[str, ...]]:
    """The table's text, row by row, where the seeds decide it."""
    rows = [row for row in bench.table() if not row["metric"].endswith("_seconds")]
    return [tuple(row[column] for column in DECIDED) for row in rows]


def numbers_of_the_basic_launcher(bench: Bench, *sweep: str) -> list[tuple[str, ...]]:
    beside = Bench(bench.folder)
    beside.results = bench.folder / "basic"
    done = beside(*sweep, "hydra/launcher=basic")
    assert done.returncode == 0, done.stderr
    return numbers(beside)


def check_that_nothing_is_repeated(bench: Bench, *command: str, n_runs: int) -> None:
    files, table = bench.result_files(), (bench.results / "results.csv").read_bytes()
    logs = set(bench.results.glob("logs/*/*"))
    again = bench.run(*command)
    assert again.returncode == 0, again.stderr
    assert f"Runs: {n_runs} done before." in again.stdout
    assert bench.result_files() == files
    assert (bench.results / "results.csv").read_bytes() == table
    assert set(bench.results.glob("logs/*/*")) == logs, "a job was started"


def check_one_failure(bench: Bench, first: Ended, log_of_failure: str) -> None:
    assert first.returncode == 1, first.stderr
    assert "Runs: 2 ok, 1 failed." in first.stdout
    reason = "RuntimeError: injected failure at eps=2"
    assert f"FAILED toy_moons_5 failing eps=2: {reason}" in first.stdout
    assert {eps for _, eps, _ in bench.accuracies()} == {"1.0", "4.0"}
    (log,) = bench.results.glob(f"logs/*/{log_of_failure}/run.log")
    assert "Traceback (most recent call last)" in log.read_text()


# submitit's local executor: the same path as to SLURM, without a cluster.


def test_basic_joblib_and_submitit_give_the_same_table_and_do_nothing_twice(bench: Bench) -> None:
    expected = numbers_of_the_basic_launcher(bench, *SWEEP)
    # Two repetitions of three runs: the majority class ignores eps.
    assert len({row for row in expected if "accuracy" in row}) == 6
    for launcher in ("joblib", "submitit_local"):
        bench.results = bench.folder / launcher
        command = (*SWEEP, f"hydra/launcher={launcher}", "n_workers=2")
        done = bench.run(*command)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        assert "Runs: 3 ok." in done.stdout
        assert numbers(bench) == expected
    check_that_nothing_is_repeated(bench, *command, n_runs=3)


def test_launchers_share_one_result_store(bench: Bench) -> None:
    assert bench("-m", "method=seeded", "eps=1", "hydra/launcher=basic").returncode == 0
    before = bench.result_files()
    more = bench.run(*SWEEP, "hydra/launcher=submitit_local")
    assert more.returncode == 0, more.stderr
    assert "Runs: 2 ok, 1 done before." in more.stdout
    assert before.items() <= bench.result_files().items()
    assert numbers(bench) == numbers_of_the_basic_launcher(bench, *SWEEP)


def test_under_submitit_one_failing_run_leaves_the_others_done(bench: Bench) -> None:
    first = bench.run(*FAILING_SWEEP, "hydra/launcher=submitit_local")
    check_one_failure(bench, first, "1-toy_moons_5-failing-eps2.0")


# A real SLURM.

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
    """A bench whose commands find the SLURM."""
    bench.environment = {
        name: value for name, value in bench.environment.items() if name not in slurm.environment
    } | slurm.environment
    return bench


@pytest.mark.slurm
def test_a_sweep_through_slurm_gives_the_same_table_and_does_nothing_twice(
    cluster: Bench, slurm: SlurmNode
) -> None:
    n_before = len(slurm.jobs())
    done = cluster.run(*SWEEP, *ON_SLURM)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "Runs: 3 ok." in done.stdout
    assert numbers(cluster) == numbers_of_the_basic_launcher(cluster, *SWEEP)
    jobs = slurm.jobs()[n_before:]
    asked = ("JobState", "JobName", "NumCPUs", "MinMemoryNode", "TimeLimit")
    # The name and the four hours are those of conf/hydra/launcher/submitit_slurm.yaml.
    assert [tuple(job[name] for name in asked) for job in jobs] == [
        ("COMPLETED", "lumberjack", "1", "1G", "04:00:00")
    ] * 3
    check_that_nothing_is_repeated(cluster, *SWEEP, *ON_SLURM, n_runs=3)
    assert len(slurm.jobs()) == n_before + 3


@pytest.mark.slurm
def test_under_slurm_one_failing_run_leaves_the_others_done(
    cluster: Bench, slurm: SlurmNode
) -> None:
    marker = cluster.folder / "marker"
    marker.write_text("")
    sweep = (*FAILING_SWEEP, f"method.params.while_file={marker}", *ON_SLURM)
    first = cluster.run(*sweep)
    check_one_failure(cluster, first, "1-toy_moons_5-failing-eps2.0")
    before = cluster.result_files()
    marker.unlink()
    second = cluster.run(*sweep)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "Runs: 1 ok, 2 done before." in second.stdout
    assert {eps for _, eps, _ in cluster.accuracies()} == {"1.0", "2.0", "4.0"}
    assert before.items() <= cluster.result_files().items()


@pytest.mark.slurm
def test_under_slurm_a_killed_job_is_reported_and_leaves_the_others_done(
    cluster: Bench, slurm: SlurmNode
) -> None:
    marker = cluster.folder / "marker"
    marker.write_text("")
    n_before = len(slurm.jobs())
    sweep = ("-m", "method=dying", f"method.params.while_file={marker}", "eps=1,2,4", *ON_SLURM)
    first = cluster.run(*sweep)
    assert first.returncode == 1
    assert "Runs: 2 ok, 1 lost." in first.stdout
    assert "LOST toy_moons_5 dying eps=2: UncompletedJobError" in first.stdout
    states = sorted(job["JobState"] for job in slurm.jobs()[n_before:])
    assert states == ["COMPLETED", "COMPLETED", "FAILED"]
    marker.unlink()
    second = cluster.run(*sweep)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "Runs: 1 ok, 2 done before." in second.stdout
    assert {eps for _, eps, _ in cluster.accuracies()} == {"1.0", "2.0", "4.0"}


@pytest.mark.slurm
def test_nothing_of_slurm_is_left_when_a_test_fails() -> None:
    if reason := why_not():
        pytest.skip(reason)

    def fail() -> None:
        with slurm_node() as node:
            seen.append(node)
            node.ask("sbatch", "--wrap", "sleep 600")
            wait_until(lambda: [job["JobState"] for job in node.jobs()] == ["RUNNING"])
            seen_processes.extend(node.processes())
            raise ValueError("as a failing test would")

    seen: list[SlurmNode] = []
    seen_processes: list[int] = []
    with pytest.raises(ValueError, match="as a failing test would"):
        fail()
    # munged, slurmctld, slurmd, and the job's own.
    assert len(seen_processes) >= 4
    assert not [process for process in seen_processes if Path(f"/proc/{process}").exists()]
    assert seen[0].processes() == []
    assert not seen[0].folder.exists()
