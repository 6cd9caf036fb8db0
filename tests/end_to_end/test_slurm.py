"""A sweep on a real SLURM of one node, started and stopped by the test."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_command import Bench, wait_until

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "scontrol", "munged")
MISSING = [
    name for name in PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None
]

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(
        bool(MISSING),
        reason=f"no SLURM on this machine: {', '.join(MISSING)} not found "
        "(Debian packages slurmctld slurmd slurm-client munge)",
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can start slurmd"),
]

CONFIGURATION = """
    ClusterName=test
    SlurmctldHost=localhost
    SlurmctldPort={port}
    SlurmdPort={next_port}
    SlurmUser=root
    SlurmdUser=root
    AuthType=auth/munge
    ProctrackType=proctrack/linuxproc
    TaskPlugin=task/none
    SelectType=select/cons_tres
    SelectTypeParameters=CR_Core
    ReturnToService=2
    MinJobAge=86400
    KillWait=2
    MpiDefault=none
    StateSaveLocation={folder}/state
    SlurmdSpoolDir={folder}/spool
    SlurmctldPidFile={folder}/slurmctld.pid
    SlurmdPidFile={folder}/slurmd.pid
    SlurmctldLogFile={folder}/slurmctld.log
    SlurmdLogFile={folder}/slurmd.log
    NodeName=localhost CPUs=2 RealMemory=4000 State=UNKNOWN
    PartitionName=main Nodes=localhost Default=YES MaxTime=INFINITE State=UP
"""

# Without an accounting database sacct fails, and submitit would wait for ever for a job that was
# killed. scontrol knows as much.
SACCT = r"""#!/bin/sh
    echo "JobID|State|NodeList|"
    scontrol -o show job 2>/dev/null | sed -nE \
        's/^JobId=([0-9]+) ArrayJobId=([0-9]+) ArrayTaskId=([0-9]+) .*JobState=([A-Z]+) .*/\2_\3|\4|localhost|/p;
         t; s/^JobId=([0-9]+) .*JobState=([A-Z]+) .*/\1|\2|localhost|/p'
"""


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Start the daemons; give the environment under which their clients work."""
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("state", "spool", "bin"):
        (folder / name).mkdir()
    ports = {"port": free_port(), "next_port": free_port()}
    configuration = folder / "slurm.conf"
    configuration.write_text(textwrap.dedent(CONFIGURATION.format(folder=folder, **ports)))
    sacct = folder / "bin" / "sacct"
    sacct.write_text(textwrap.dedent(SACCT))
    sacct.chmod(0o755)
    environment = os.environ | {
        "SLURM_CONF": str(configuration),
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}:/usr/sbin",
    }
    started = []
    if subprocess.run(["munge", "-n"], capture_output=True).returncode != 0:
        Path("/run/munge").mkdir(exist_ok=True)
        shutil.chown("/run/munge", "munge", "munge")
        munged = ["runuser", "-u", "munge", "--", "munged", "--foreground"]
        started.append(subprocess.Popen(munged, start_new_session=True, env=environment))
        wait_until(lambda: subprocess.run(["munge", "-n"], capture_output=True).returncode == 0)
    for daemon in (["slurmctld", "-D"], ["slurmd", "-D", "-N", "localhost"]):
        with (folder / f"{daemon[0]}.out").open("w") as log:
            process = subprocess.Popen(
                daemon, start_new_session=True, env=environment, stdout=log, stderr=log
            )
        started.append(process)
    try:
        wait_until(lambda: is_idle(environment))
        yield environment
    finally:
        for process in reversed(started):
            os.killpg(process.pid, signal.SIGTERM)
        for process in started:
            process.wait(timeout=30)


def is_idle(environment: dict[str, str]) -> bool:
    answer = subprocess.run(
        ["sinfo", "-h", "-o", "%T"], env=environment, capture_output=True, text=True
    )
    return answer.stdout.strip() == "idle"


@pytest.fixture
def cluster(bench: Bench, slurm: dict[str, str]) -> Bench:
    for name in ("PATH", "SLURM_CONF"):
        bench.environment[name] = slurm[name]
    return bench


SLURM = (
    "hydra/launcher=submitit_slurm",
    "hydra.launcher.cpus_per_task=1",
    "hydra.launcher.mem_gb=1",
    "hydra.launcher.timeout_min=10",
)


def test_a_sweep_on_slurm_gives_the_table_of_a_local_one(cluster: Bench) -> None:
    sweep = ("-m", "method=seeded,failing", "eps=1,2")
    done = cluster.run(*sweep, *SLURM)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Runs: 3 ok, 1 failed." in done.stdout
    assert "FAILED toy_moons_5 failing eps=2: RuntimeError: injected failure" in done.stdout
    remote = cluster.accuracies()
    cluster.results = cluster.folder / "local"
    cluster.run(*sweep)
    assert cluster.accuracies() == remote


def test_a_job_that_is_killed_costs_no_other_and_is_done_by_the_same_command(
    cluster: Bench,
) -> None:
    marker = cluster.folder / "marker"
    marker.write_text("")
    sweep = ("-m", "method=dying", f"method.params.while_file={marker}", "eps=1,2,4")
    first = cluster.run(*sweep, *SLURM)
    assert first.returncode == 1, first.stdout + first.stderr
    assert "Runs: 2 ok, 1 lost." in first.stdout
    marker.unlink()
    second = cluster.run(*sweep, *SLURM)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "Runs: 1 ok, 2 done before." in second.stdout
    assert {e for _, e, _ in cluster.accuracies()} == {"1.0", "2.0", "4.0"}
