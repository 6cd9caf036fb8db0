"""The command that users give, run in this process or in one of its own."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lumberjack_bench.command import main

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PATIENCE_SECONDS = 240


@dataclass(frozen=True)
class Ended:
    returncode: int
    stdout: str
    stderr: str


class Bench:
    """The real command, with a results folder of its own and the toy methods at hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results"
        self.environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
            "LUMBERJACK_DATA": str(folder / "data"),
            "HYDRA_FULL_ERROR": "0",
        }

    def with_results_of(self, other: Bench) -> Bench:
        """Start from a copy of what is in another results folder."""
        shutil.copytree(other.results, self.results)
        return self

    def arguments(self, *arguments: str, tracking: str = "none") -> list[str]:
        own = [
            f"hydra.searchpath=[file://{HERE / 'conf'}]",
            "allow_targets=[toy_methods]",
            "dataset=toy_moons",
            "n_repeats=2",
            f"results_dir={self.results}",
            f"tracking={tracking}",
        ]
        if not any(a.startswith(("launcher=", "hydra/launcher=")) for a in arguments):
            own.append("launcher=serial")
        named = {argument.split("=")[0].replace("+suite", "dataset") for argument in arguments}
        own = [argument for argument in own if argument.split("=")[0] not in named]
        return [*arguments, *own]

    def start(self, *arguments: str, tracking: str = "none") -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(ROOT / "run.py"), *self.arguments(*arguments, tracking=tracking)],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __call__(self, *arguments: str, tracking: str = "none") -> Ended:
        """Run the command in a process of its own."""
        process = self.start(*arguments, tracking=tracking)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        return Ended(process.returncode, out, err)

    def after(self, changes: str, *arguments: str, tracking: str = "none") -> Ended:
        """Run the command in a process of its own in which `changes` were made to it first."""
        program = (
            "import sys; from pathlib import Path; from lumberjack_bench.command import main\n"
            f"{changes}\n"
            f"sys.exit(main({self.arguments(*arguments, tracking=tracking)!r}, "
            f"Path({str(ROOT / 'conf')!r})))"
        )
        return self.program("-c", program)

    def program(self, *words: str) -> Ended:
        """Run Python on a script or a text of its own."""
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def refused(self, *arguments: str, tracking: str = "none") -> str:
        """Run in this process what must be refused before anything is run; return what is said."""
        out, err = io.StringIO(), io.StringIO()
        handler, words = signal.getsignal(signal.SIGTERM), sys.argv[1:]
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main(self.arguments(*arguments, tracking=tracking), ROOT / "conf")
        finally:
            signal.signal(signal.SIGTERM, handler)
            sys.argv[1:] = words
        said = err.getvalue()
        assert code == 2, out.getvalue() + said
        assert said.startswith("error: ")
        assert said.count("\n") == 1
        assert self.stored() == []
        return said

    def table(self) -> list[dict[str, str]]:
        with (self.results / "results.csv").open() as file:
            return list(csv.DictReader(file))

    def accuracies(self) -> dict[tuple[str, str, str], str]:
        rows = [row for row in self.table() if row["metric"] == "accuracy"]
        found = {(r["method"], r["eps"], r["repetition"]): r["value"] for r in rows}
        assert len(found) == len(rows), "a row is there twice"
        return found

    def result_files(self) -> dict[str, int]:
        """Names of the results, with what changes when one is written again."""
        return {path.name: path.stat().st_mtime_ns for path in self.results.glob("runs/*.json")}

    def stored(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in self.results.glob("runs/*.json")]


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something that must come, and fail when it does not."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
