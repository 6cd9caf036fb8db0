"""A real SLURM with this machine as its only node, for the tests that need one.

All its files are in one temporary folder, it listens on ports that were free, and its munge has a
key and a socket of its own: nothing of a SLURM that may run here already is used or changed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from real_command import wait_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "scontrol", "sinfo")
PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
SECONDS_TO_STOP = 30

# Without RealMemory every request for memory is refused. MinJobAge keeps finished jobs in what
# scontrol shows, for the stand-in of sacct below.
CONFIGURATION = """\
ClusterName=lumberjack
SlurmctldHost=localhost
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MinJobAge=86400
KillWait=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
NodeName=localhost CPUs=2 RealMemory=4000
PartitionName=main Nodes=localhost Default=YES
"""

# submitit asks sacct how a job ended that left no result, and waits for ever when sacct fails, as
# it does without an accounting database. Tasks of an array that wait come as one line, "7_[2-5]".
SACCT = """\
#!/bin/sh
echo 'JobID|State|NodeList'
scontrol --oneliner show job | awk '{
    split("", field)
    for (i = 1; i <= NF; i++) {
        cut = index($i, "=")
        name = substr($i, 1, cut - 1)
        if (!(name in field)) field[name] = substr($i, cut + 1)
    }
    task = field["ArrayTaskId"]
    if (task ~ /[^0-9]/) task = "[" task "]"
    id = ("ArrayJobId" in field) ? field["ArrayJobId"] "_" task : field["JobId"]
    print id "|" field["JobState"] "|" field["NodeList"]
}'
"""


def why_not() -> str:
    """Say why no SLURM can be started here; nothing when one can."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    if missing:
        return (
            f"no SLURM on this machine: {', '.join(missing)} not found "
            "(Debian packages slurmctld, slurmd, slurm-client, munge)"
        )
    if os.geteuid() != 0:
        return "SLURM is installed, but only root can start slurmd"
    return ""


@dataclass(frozen=True)
class SlurmNode:
    folder: Path

    @property
    def configuration(self) -> Path:
        return self.folder / "slurm.conf"

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to use this SLURM and no other."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM_", "SBATCH_", "SRUN_"))
        }
        path = os.pathsep.join([str(self.folder / "bin"), PATH])
        return inherited | {"SLURM_CONF": str(self.configuration), "PATH": path}

    def ask(self, *command: str) -> str:
        done = subprocess.run(
            command,
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def jobs(self) -> list[dict[str, str]]:
        """Everything SLURM knows of every job, in the order of submission."""
        lines = self.ask("scontrol", "--oneliner", "show", "job").splitlines()
        found = [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in lines if "JobId=" in line]
        return sorted(found, key=lambda job: int(job["JobId"]))

    def processes(self) -> list[int]:
        """Processes that were told of this SLURM: its daemons, its jobs, and who submits."""
        mark = f"SLURM_CONF={self.configuration}".encode()
        found = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if mark in environment.read_bytes().split(b"\0"):
                    found.append(int(environment.parent.name))
        return found

    def log(self) -> str:
        return "\n".join(
            f"--- {path.stem}\n" + "\n".join(path.read_text().splitlines()[-20:])
            for path in sorted(self.folder.glob("*.log"))
        )


@contextmanager
def slurm_node() -> Iterator[SlurmNode]:
    """Start SLURM; afterwards no process and no file of it is left, whatever happened."""
    with ExitStack() as cleanup:
        node = SlurmNode(Path(cleanup.enter_context(_folder())))
        cleanup.callback(_kill_left_over, node)
        try:
            _write_files(node)
            daemons = [cleanup.enter_context(_daemon(node, "munged", *_munge_options(node)))]
            wait_until(lambda: _are_alive(daemons) and (node.folder / "munge.socket").exists())
            daemons.append(cleanup.enter_context(_daemon(node, "slurmctld", "-D")))
            daemons.append(cleanup.enter_context(_daemon(node, "slurmd", "-D", "-N", "localhost")))
            wait_until(lambda: _are_alive(daemons) and _is_idle(node))
        except BaseException as error:
            error.add_note(node.log())
            raise
        cleanup.callback(_cancel_jobs, node)
        yield node


@contextmanager
def _folder() -> Iterator[str]:
    # Not pytest's: munge refuses a socket in a folder that others cannot enter.
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield folder


def _write_files(node: SlurmNode) -> None:
    for name in ("state", "spool", "bin"):
        (node.folder / name).mkdir()
    key = node.folder / "munge.key"
    key.touch(0o600)
    key.write_bytes(os.urandom(128))
    controller_port, node_port = _free_ports()
    node.configuration.write_text(
        CONFIGURATION.format(
            folder=node.folder, controller_port=controller_port, node_port=node_port
        )
    )
    sacct = node.folder / "bin" / "sacct"
    sacct.write_text(SACCT)
    sacct.chmod(0o755)


def _free_ports() -> tuple[int, int]:
    with closing(socket.socket()) as one, closing(socket.socket()) as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def _munge_options(node: SlurmNode) -> list[str]:
    names = {"socket": "munge.socket", "key-file": "munge.key", "pid-file": "munge.pid"}
    names |= {"seed-file": "munge.seed", "log-file": "munge.out"}
    return ["--foreground", *(f"--{option}={node.folder / name}" for option, name in names.items())]


@contextmanager
def _daemon(node: SlurmNode, name: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    program = shutil.which(name, path=PATH)
    assert program is not None
    with (node.folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [program, *options],
            env=node.environment,
            cwd=node.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _are_alive(daemons: list[subprocess.Popen[bytes]]) -> bool:
    for daemon in daemons:
        assert daemon.poll() is None, f"{daemon.args!r} ended with {daemon.returncode}"
    return True


def _is_idle(node: SlurmNode) -> bool:
    done = subprocess.run(
        ["sinfo", "--noheader", "--format=%T"],
        env=node.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.strip() == "idle"


def _cancel_jobs(node: SlurmNode) -> None:
    """End all jobs while slurmd is there to end them."""
    with suppress(AssertionError, subprocess.TimeoutExpired):
        node.ask("scancel", "--user=root")
        active = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED"}
        wait_until(lambda: not active & {job["JobState"] for job in node.jobs()})


def _kill_left_over(node: SlurmNode) -> None:
    for process in node.processes():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    wait_until(lambda: not node.processes())
