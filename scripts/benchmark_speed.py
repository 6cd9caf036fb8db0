"""Time fits and predictions side by side in one process, and measure memory and threads.

Usage
-----
::

    python scripts/benchmark_speed.py --quick                      fits on Adult only
    python scripts/benchmark_speed.py --json FILE --figure FILE    everything, some 6 minutes

Ratios are of processor time and one thread: what is compared is run in turns, each after a
fit that warms up (compilation), and the least of `--repeats` counts. Only rows of one part and table
compare: of `fit` with ExtraTrees, of `boost` with gradient boosting, of `predict` with ExtraTrees.
Memory is the largest resident size of a fresh process (Linux) beyond what it has once the table is
loaded and a small fit has been made.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import itertools
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.preprocessing import OneHotEncoder
from threadpoolctl import threadpool_limits

from lumberjack import (
    AdditiveForestClassifier,
    GuidedLumberjackClassifier,
    LumberjackClassifier,
)
from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature
from lumberjack_bench.command import check_writable, fails_in_one_line
from lumberjack_bench.config import ConfigError
from lumberjack_bench.datasets import DatasetError, load

N_TREES = 20
LARGE, LARGEST = 350_000, 1_000_000
GROWTH = (200_000, 400_000, 800_000, 1_600_000)
N_CATEGORIES = (5, 18, 2, 5, 4, 2, 2, 2, 2, 9)
"""The ten categorical features of a table the size and shape of ACSEmployment; six are numeric."""

Table = tuple[NDArray[np.float64], NDArray[np.int64], FeatureSchema]


def one_hot(X: NDArray[np.float64], schema: FeatureSchema) -> NDArray[np.float32]:
    """Code categories as k - 1 columns each, as the reference forest takes them."""
    is_categorical = schema.n_categories > 0
    encoder = OneHotEncoder(
        categories=[np.arange(k) for k in schema.n_categories[is_categorical]],
        drop="first",
        handle_unknown="ignore",
        sparse_output=False,
        dtype=np.float32,
    )
    coded = encoder.fit_transform(X[:, is_categorical])
    return np.hstack([X[:, ~is_categorical].astype(np.float32), coded])


def synthetic_table(n_rows: int) -> tuple[NDArray[np.float64], NDArray[np.int64], FeatureSchema]:
    """Draw a table with 6 numeric and 10 categorical features and two classes."""
    rng = np.random.default_rng(0)
    numeric = rng.beta(2, 5, size=(n_rows, 6)) * 100
    codes = np.column_stack([rng.binomial(k - 1, 0.3, n_rows) for k in N_CATEGORIES])
    score = numeric[:, 0] / 30 - codes[:, 0] / 2 + rng.normal(size=n_rows)
    features = [NumericFeature(f"x{j}", 0, 100) for j in range(6)]
    features += [CategoricalFeature(f"c{j}", tuple(range(k))) for j, k in enumerate(N_CATEGORIES)]
    X = np.asfortranarray(np.hstack([numeric, codes]))
    return X, (score > 0).astype(np.int64), FeatureSchema(tuple(features), (0, 1))


def adult_table() -> Table:
    """Return nine tenths of Adult."""
    adult = load({"name": "adult", "kind": "adult"})
    X, y = np.asfortranarray(adult.encoded()[0]), np.asarray(adult.y, dtype=np.int64)
    rows = np.random.default_rng(0).permutation(len(y))[: round(0.9 * len(y))]
    return np.asfortranarray(X[rows]), y[rows], adult.schema.coded()


KINDS: dict[str, Any] = {
    "Lumberjack": LumberjackClassifier,
    "Guided Lumberjack": GuidedLumberjackClassifier,
    "Additive forest": AdditiveForestClassifier,
}


def build(
    kind: str,
    schema: FeatureSchema,
    seed: int,
    *,
    n_trees: int = N_TREES,
    n_jobs: int = 1,
    **others: Any,
) -> Any:
    """Return an unfitted model at epsilon 1, with the accounting that takes no time itself."""
    if kind != "Additive forest":
        others |= {
            "n_estimators": n_trees,
            "accounting": "paper" if kind == "Lumberjack" else "safe",
        }
    others = {"random_state": seed, "noise_seed": seed} | others
    return KINDS[kind](1.0, schema=schema, n_jobs=n_jobs, **others)


def least_seconds(calls: dict[str, Callable[[int], Any]], repeats: int) -> dict[str, float]:
    """Return the least processor time of each call, in alternation."""
    seconds = dict.fromkeys(calls, float("inf"))
    for repeat in range(repeats):
        for name, call in calls.items():
            start = time.process_time()
            call(repeat)
            seconds[name] = min(seconds[name], time.process_time() - start)
    return seconds


def fits(name: str, table: Table, repeats: int) -> list[dict[str, Any]]:
    """Time our fits, those of a non-private forest with as many trees and of gradient boosting."""
    X, y, schema = table
    hot = one_hot(X, schema)
    least = 10 if len(y) < 100_000 else 20
    makers: dict[str, Callable[..., Any]] = {
        kind: functools.partial(build, kind, schema) for kind in KINDS
    }
    for others, label in (
        ({"noise_seed": None}, "continuous noise, system"),
        ({"noise": "discrete"}, "discrete noise, seeded"),
        ({"noise": "discrete", "noise_seed": None}, "discrete noise, system"),
    ):
        kind = "Guided Lumberjack"
        makers[f"{kind}, {label}"] = functools.partial(build, kind, schema, **others)
    calls: dict[str, Callable[[int], Any]] = {
        label: functools.partial(lambda make, seed: make(seed).fit(X, y), make)
        for label, make in makers.items()
    }
    trees = f"ExtraTrees (max_features=1, min_samples_split={least}, one-hot)"
    calls[trees] = lambda seed: ExtraTreesClassifier(
        N_TREES, max_features=1, min_samples_split=least, random_state=seed, n_jobs=1
    ).fit(hot, y)
    boosting = "HistGradientBoosting (100 iterations)"
    calls[boosting] = lambda seed: HistGradientBoostingClassifier(
        max_iter=100, early_stopping=False, random_state=seed
    ).fit(X, y)
    for make in makers.values():
        make(0).fit(X[:2000], y[:2000])
    with threadpool_limits(1):
        seconds = least_seconds(calls, repeats)
    boosted = ("Additive forest", boosting)
    return [
        {"part": part, "table": name, "method": label, "seconds": seconds[label]}
        | {"relative": seconds[label] / seconds[reference]}
        for part, reference, labels in (
            ("fit", trees, [label for label in calls if label != boosting]),
            ("boost", boosting, boosted),
        )
        for label in labels
    ]


def predictions(table: Table, repeats: int, n_trees: int = 5) -> list[dict[str, Any]]:
    """Time predictions of all rows by a forest and by a non-private one with as many nodes."""
    X, y, schema = table
    hot = one_hot(X, schema)
    ours = build("Lumberjack", schema, 0, n_trees=n_trees).fit(X, y)
    n_leaves = round(ours.fit_report()["mean_leaves_per_tree"])
    other = ExtraTreesClassifier(
        n_trees, max_features=1, max_leaf_nodes=n_leaves, random_state=0, n_jobs=1
    ).fit(hot, y)
    ours.predict(X[:1000])
    reference = f"ExtraTrees ({n_trees} trees of {n_leaves:,} leaves)"
    calls = {"Lumberjack": lambda _: ours.predict(X), reference: lambda _: other.predict(hot)}
    seconds = least_seconds(calls, repeats)
    return [
        {"part": "predict", "table": f"generated, {len(y):,} x {X.shape[1]}", "method": label}
        | {"seconds": value, "relative": value / seconds[reference]}
        for label, value in seconds.items()
    ]


def in_fresh_process(
    kind: str, n_rows: int, n_jobs: int = 1, n_trees: int = N_TREES
) -> dict[str, Any]:
    """Fit once in a process of its own; return wall seconds, memory and a digest of the model."""
    command = [sys.executable, __file__, "--fit", f"{kind},{n_rows},{n_jobs},{n_trees}"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    size = f"generated, {n_rows:,} x {6 + len(N_CATEGORIES)}"
    trees = "" if kind == "Additive forest" else f", {n_trees} trees"
    label = f"{kind}{trees}, {n_jobs} thread{'s' * (n_jobs > 1)}"
    return {"part": "scaling", "table": size, "method": label, **found}


def fit_once(kind: str, n_rows: int, n_jobs: int, n_trees: int) -> None:
    """Print what :func:`in_fresh_process` returns."""
    X, y, schema = synthetic_table(n_rows)
    build(kind, schema, 0, n_trees=2, n_jobs=n_jobs).fit(X[:2000], y[:2000])
    status = Path("/proc/self/status")
    megabytes = {}

    def read_memory() -> None:
        lines = (line.split() for line in status.read_text().splitlines())
        megabytes.update({row[0]: int(row[1]) / 1024 for row in lines if row[0][:3] == "VmH"})

    if status.exists():
        Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
        read_memory()
    before = megabytes.get("VmHWM:")
    start = time.perf_counter()
    model = build(kind, schema, 0, n_trees=n_trees, n_jobs=n_jobs).fit(X, y)
    found: dict[str, Any] = {"seconds": time.perf_counter() - start}
    if before is not None:
        read_memory()
        found["megabytes"] = megabytes["VmHWM:"] - before
        found["bytes_per_row"] = found["megabytes"] * 2**20 / n_rows
    found["model"] = hash_model(model)
    print(json.dumps(found))


def hash_model(model: Any) -> str:
    """Return a digest of all that a model's trees or cells hold."""
    if isinstance(model, AdditiveForestClassifier):
        arrays = [model.start_weights_, *model.model_]
    else:
        names = ("feature", "threshold", "children_left", "value")
        arrays = [getattr(tree, name) for tree in model.estimators_ for name in names]
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]


def first_fit() -> dict[str, Any]:
    """Time import and first fit in a process that finds everything compiled."""
    program = (
        "import time; t = time.perf_counter(); import numpy as np; from lumberjack import *; "
        "LumberjackClassifier(schema=FeatureSchema((NumericFeature('x', 0, 1),), (0, 1)), n_estimators=5)"
        ".fit(np.linspace(0, 1, 2000)[:, None], np.arange(2000) % 2); print(time.perf_counter() - t)"
    )
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program], check=True, capture_output=True, text=True
        )
    return {
        "part": "start",
        "table": "2,000 x 1",
        "method": "import and first fit, all compiled",
    } | {"seconds": float(done.stdout)}


def show(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Print lines of the table, and return them."""
    for row in rows:
        relative = f"{row['relative']:9.3f}" if "relative" in row else " " * 9
        megabytes = f"{row['megabytes']:6.0f}" if "megabytes" in row else " " * 6
        per_row = f"{row['bytes_per_row']:6.0f}" if "bytes_per_row" in row else " " * 6
        end = f"{relative} {megabytes} {per_row}  {row.get('model', '')}".rstrip()
        line = f"{row['part']:8} {row['table']:26} {row['method']:70} {row['seconds']:9.3f} {end}"
        print(line, flush=True)
    return rows


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the ratios of fits, and seconds and memory against the number of rows."""
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained")
    references = {"fit": "ExtraTrees", "boost": "gradient boosting"}
    ratios: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["part"] in references and row["relative"] < 1 and "noise" not in row["method"]:
            label = f"{row['method']}\nto {references[row['part']]}"
            ratios.setdefault(row["table"], {})[label] = row["relative"]
    for i, (table, found) in enumerate(ratios.items()):
        places = [place + 0.25 * (i - 1) for place in range(len(found))]
        left.barh(places, list(found.values()), height=0.22, label=table)
        left.set_yticks(range(len(found)), list(found))
    left.invert_yaxis()
    left.set_xlabel("processor time of a fit / the reference's")
    left.legend(fontsize=7)
    growth = sorted(
        (int(row["table"].split()[1].replace(",", "")) / 1e6, row["seconds"], row["megabytes"])
        for row in rows
        if row["part"] == "scaling" and row["method"] == "Lumberjack, 20 trees, 1 thread"
    )
    sizes, seconds, megabytes = zip(*growth, strict=True)
    middle.plot(sizes, seconds, "o-")
    middle.set(xlabel="million rows", ylabel="seconds of a fit, 20 trees")
    right.plot(sizes, megabytes, "o-")
    right.set(xlabel="million rows", ylabel="megabytes beyond the loaded table")
    for axes in (middle, right):
        axes.set(xlim=(0, None), ylim=(0, None))
    figure.savefig(path, dpi=150)


@fails_in_one_line
def main(arguments: Sequence[str]) -> int:
    """Print the table; write it as JSON and as a figure on request."""
    parser = argparse.ArgumentParser(description="Time fits and predictions side by side.")
    parser.add_argument("--quick", action="store_true", help="Adult only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the table as JSON")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="also draw it")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="timed runs in turns")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.fit:
        kind, *sizes = given.fit.split(",")
        fit_once(kind, *map(int, sizes))
        return 0
    if given.repeats < 1:
        raise ConfigError(f"--repeats must be at least 1, got {given.repeats}.")
    check_writable("--json", given.json)
    check_writable("--figure", given.figure)
    try:
        adult = adult_table()
    except DatasetError as error:
        raise ConfigError(str(error)) from error
    heads = f"{'seconds':>9} {'relative':>9} {'MB':>6} {'B/row':>6}  model"
    print(f"{'part':8} {'table':26} {'method':70} {heads}")
    rows = show(fits(f"adult, {len(adult[1]):,} rows", adult, given.repeats))
    if not given.quick:
        for n_rows in (LARGE, LARGEST):
            table = synthetic_table(n_rows)
            name = f"generated, {n_rows:,} x {table[0].shape[1]}"
            rows += show(fits(name, table, min(given.repeats, 2)))
        rows += show(predictions(table, min(given.repeats, 2)))
        del table
        for n_rows in GROWTH:
            rows += show([in_fresh_process("Lumberjack", n_rows)])
        for kind, n_jobs in itertools.product(KINDS, (1, 2)):
            rows += show([in_fresh_process(kind, LARGEST, n_jobs)])
        rows += show([in_fresh_process("Lumberjack", 2 * LARGEST, 2, n_trees=50)])
        rows += show([first_fit()])
    if given.json:
        document = {
            "command": "python scripts/benchmark_speed.py " + shlex.join(arguments),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
            "rows": rows,
        }
        given.json.write_text(json.dumps(document, indent=2) + "\n")
    if given.figure:
        draw(rows, given.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
