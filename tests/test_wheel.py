"""The library alone: what its wheel holds, and that it works with what its wheel asks for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
USE = """
import pickle, sys
import numpy as np
import lumberjack
from lumberjack import GuidedLumberjackClassifier, LumberjackClassifier
from lumberjack.accounting import gaussian
from lumberjack.heavy_hitters import find_heavy_hitters

generator = np.random.default_rng(0)
X = generator.uniform(size=(4000, 3))
y = np.where(X[:, 0] > 0.5, "yes", "no")
for Forest in (LumberjackClassifier, GuidedLumberjackClassifier):
    forest = Forest(epsilon=4, bounds=(0, 1), classes=["no", "yes"]).fit(X, y)
    again = pickle.loads(pickle.dumps(forest))
    assert (again.predict(X) == forest.predict(X)).all()
    assert forest.score(X, y) > 0.9, forest.score(X, y)
    assert forest.ledger_.total.epsilon == 4
assert abs(gaussian.get_delta(1.0, gaussian.get_mu(1.0, 1e-6)) - 1e-6) < 1e-12
found = find_heavy_hitters([-1, 0, 0], [9000, 8990, 10], epsilon=1, delta=1e-6)
assert found.is_heavy.tolist() == [True, True, False]
for name in ("pandas", "hydra", "mlflow", "matplotlib", "lumberjack_bench", "baselines"):
    assert name not in sys.modules, name
"""


def run(*words: str, cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.network
def test_the_wheel_holds_the_library_alone_and_works_alone(tmp_path: Path):
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "-w",
        ".",
        str(PROJECT),
        cwd=tmp_path,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"lumberjack"}
    assert "lumberjack/py.typed" in names

    run(sys.executable, "-m", "venv", "alone", cwd=tmp_path)
    python = str(tmp_path / "alone" / "bin" / "python")
    constraints = str(PROJECT / "constraints.txt")
    run(python, "-m", "pip", "install", "-q", "-c", constraints, str(wheel), cwd=tmp_path)
    listed = run(python, "-m", "pip", "list", "--format=freeze", cwd=tmp_path)
    installed = {line.split("==")[0].lower() for line in listed.split()}
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    bench = extras["optional-dependencies"]["bench"]
    assert not installed & {re.split("[<>=]", line)[0] for line in bench}
    run(python, "-c", USE, cwd=tmp_path)

    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src")}
    started = subprocess.run(
        [python, str(PROJECT / "run.py")], env=environment, capture_output=True, text=True
    )
    assert started.returncode == 1
    assert "pip install -c constraints.txt -e '.[bench]'" in started.stderr
    assert "Traceback" not in started.stderr
