"""What is released: sdist and wheel are sound, and the wheel works alone, on each Python there is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
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
EXAMPLE = """
import numpy as np
import pandas as pd

generator = np.random.default_rng(0)
age, hours = generator.integers(17, 91, 2000), generator.integers(1, 100, 2000)
work = generator.choice(["private", "state", "none"], 2000)
X = X_new = pd.DataFrame({"age": age, "hours": hours, "work": work})
y = np.where(age > 50, ">50K", "<=50K")
"""
PYTHONS = os.environ.get("LUMBERJACK_PYTHONS", "3.13").split(",")

pytestmark = pytest.mark.network


def run(*words: str, cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def readme_example() -> str:
    section = (
        (PROJECT / "README.md").read_text(encoding="utf-8").partition("Use it as a library")[2]
    )
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    return EXAMPLE + code[1] + "\nprint(forest.score(X, y))"


def fresh_environment(python: str, folder: Path, *packages: str) -> str:
    """Make an environment with some packages, and return its Python."""
    run(python, "-m", "venv", "alone", cwd=folder)
    own = str(folder / "alone" / "bin" / "python")
    constraints = str(PROJECT / "constraints.txt")
    run(own, "-m", "pip", "install", "-q", "-c", constraints, *packages, cwd=folder)
    return own


def python_of(version: str) -> str | None:
    """Return the interpreter of a version, if there is one that runs."""
    known = [shutil.which(f"python{version}")]
    known += map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    code = f"import sys; assert sys.version.startswith('{version}.')"
    for python in filter(None, known):
        if subprocess.run([python, "-c", code], capture_output=True).returncode == 0:
            return python
    return None


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what ``python -m build`` makes: an sdist, and a wheel from that."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "-o", str(folder), str(PROJECT), cwd=folder)
    return folder


def wheel_of(released: Path) -> Path:
    (wheel,) = released.glob("*.whl")
    return wheel


def test_sdist_and_wheel_hold_what_they_should_and_nothing_else(released: Path) -> None:
    (sdist,) = released.glob("*.tar.gz")
    run(
        sys.executable,
        "-m",
        "twine",
        "check",
        "--strict",
        str(sdist),
        str(wheel_of(released)),
        cwd=released,
    )
    check = str(Path(sys.executable).with_name("check-wheel-contents"))
    run(check, str(wheel_of(released)), cwd=released)
    names = zipfile.ZipFile(wheel_of(released)).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"lumberjack"}
    assert "lumberjack/py.typed" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "run.py",
        "LICENSE",
        "CHANGELOG.md",
        "conf/config.yaml",
        "tests/test_wheel.py",
    } <= inside
    assert not [name for name in inside if name.startswith("results/") and "published" not in name]


def test_the_wheel_works_with_what_it_asks_for_and_no_more(released: Path, tmp_path: Path) -> None:
    python = fresh_environment(sys.executable, tmp_path, str(wheel_of(released)))
    listed = run(python, "-m", "pip", "list", "--format=freeze", cwd=tmp_path)
    installed = {line.split("==")[0].lower() for line in listed.split()}
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    bench = extras["optional-dependencies"]["bench"]
    # What scikit-learn brings is no extra.
    assert not installed & {re.split("[<>=]", line)[0] for line in bench} - {"threadpoolctl"}
    run(python, "-m", "pip", "check", cwd=tmp_path)
    run(python, "-c", USE, cwd=tmp_path)

    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src")}
    started = subprocess.run(
        [python, str(PROJECT / "run.py")], env=environment, capture_output=True, text=True
    )
    assert started.returncode == 1
    assert "pip install -c constraints.txt -e '.[bench]'" in started.stderr
    assert "Traceback" not in started.stderr

    # Besides it, as the example hands in a frame.
    constraints = str(PROJECT / "constraints.txt")
    run(python, "-m", "pip", "install", "-q", "-c", constraints, "pandas", cwd=tmp_path)
    printed = run(python, "-c", readme_example(), cwd=tmp_path)
    assert "add or remove one record" in printed
    assert float(printed.split()[-1]) > 0.6


@pytest.mark.nightly
@pytest.mark.parametrize("version", PYTHONS)
def test_the_wheel_works_on_other_pythons(version: str, released: Path, tmp_path: Path) -> None:
    if sys.version.startswith(f"{version}."):
        pytest.skip("that is the Python of all other tests")
    other = python_of(version)
    if other is None:
        pytest.skip(f"there is no Python {version} here")
    python = fresh_environment(other, tmp_path, str(wheel_of(released)), "pandas")
    run(python, "-m", "pip", "check", cwd=tmp_path)
    assert float(run(python, "-c", readme_example(), cwd=tmp_path).split()[-1]) > 0.6
