"""The benchmark harness: configs, runs, results, tracking and figures.

It knows a method only by the contract of :mod:`lumberjack_bench.methods`. Nothing is imported here,
so that commands which only look at results start at once.
"""

from importlib.util import find_spec

_missing = [
    name
    for name in ("diffprivlib", "folktables", "hydra", "matplotlib", "mlflow", "pandas", "pyarrow")
    if find_spec(name) is None
]
if _missing:
    # The library installs without them; whoever then starts the benchmark meets this line first.
    raise SystemExit(
        f"The benchmark needs {', '.join(_missing)}, not installed here. In the project's folder:\n"
        "    pip install -c constraints.txt -e '.[bench]'"
    )
