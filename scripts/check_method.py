"""Test whether a method does what the harness asks of every method, wherever it lies.

    python scripts/check_method.py my_forest               a module in the working folder, or one that Python finds
    python scripts/check_method.py my_forest --folder DIR  its yaml or its module in another folder
    python scripts/check_method.py lumberjack snr          methods of ours
    python scripts/check_method.py my_forest -- -k card    words for pytest

Needs pytest: pip install -c constraints.txt -e '.[bench,test]'
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from sklearn.base import RegressorMixin

from lumberjack_bench.command import compose_one, fails_in_one_line
from lumberjack_bench.config import ConfigError
from lumberjack_bench.methods import method_class

PROJECT = Path(__file__).resolve().parents[1]


@fails_in_one_line
def main(arguments: Sequence[str]) -> int:
    """Run the contract's tests for the methods named; return the exit code of pytest."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("methods", nargs="+", metavar="METHOD")
    parser.add_argument("--folder", type=Path, default=Path(), metavar="DIR")
    end = [*arguments, "--"].index("--")
    given, words = parser.parse_args(arguments[:end]), arguments[end + 1 :]
    if importlib.util.find_spec("pytest") is None:
        raise ConfigError("this needs pytest: pip install -c constraints.txt -e '.[bench,test]'")
    folder = given.folder.expanduser().absolute()
    named: dict[str, list[str]] = {}
    for name in given.methods:
        place = f"hydra.searchpath=['file://{folder}']"
        composed = compose_one([place, f"method={name}", "sweep_id=check"], PROJECT / "conf")
        cls = method_class(composed.method.target, tuple(composed.allow_targets))
        kind = "regressor" if issubclass(cls, RegressorMixin) else "method"
        named.setdefault(kind, []).append(f"--method={name}")
    settings = ["-c", str(PROJECT / "pyproject.toml"), "-n0", "-q", "-rs"]
    codes = []
    for kind, options in named.items():
        file = PROJECT / "tests" / "contract" / f"test_{kind}_contract.py"
        command = [sys.executable, "-m", "pytest", str(file), *settings]
        command += [*options, f"--method-folder={folder}", *words]
        codes.append(subprocess.run(command, check=False).returncode)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
