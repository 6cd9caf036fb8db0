"""Time one fit of each method, side by side in one process.

Usage
-----
::

    python scripts/benchmark_speed.py --quick              Lumberjack against ExtraTrees on Adult
    python scripts/benchmark_speed.py                      and every method on 350,000 x 16 rows
    python scripts/benchmark_speed.py --json FILE          also write the table as JSON

Timings are noisy; compare rows of one table, never numbers of two runs. Each method is fitted once
to warm up (compilation), then `--repeats` times in alternation; the median is shown.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import platform
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.preprocessing import OneHotEncoder

from lumberjack import GuidedLumberjackClassifier, LumberjackClassifier
from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature
from lumberjack_bench.command import check_writable, fails_in_one_line
from lumberjack_bench.config import ConfigError
from lumberjack_bench.configured import choices, configured
from lumberjack_bench.datasets import DatasetError, load
from lumberjack_bench.methods import build_method

N_LARGE = 350_000
N_CATEGORIES = (5, 18, 2, 5, 4, 2, 2, 2, 2, 9)
"""The ten categorical features of a table the size and shape of ACSEmployment; six are numeric."""


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


def median_seconds(fits: dict[str, Callable[[int], Any]], repeats: int) -> dict[str, float]:
    """Time each fit in alternation after one that warms up; the median of `repeats`."""
    for fit in fits.values():
        fit(0)
    seconds: dict[str, list[float]] = {name: [] for name in fits}
    for repeat in range(repeats):
        for name, fit in fits.items():
            start = time.perf_counter()
            fit(repeat + 1)
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def against_extra_trees(repeats: int, n_jobs: int) -> list[dict[str, Any]]:
    """Time Lumberjack and the non-private forest on the same rows of Adult."""
    adult = load({"name": "adult", "kind": "adult"})
    X, y = np.asfortranarray(adult.encoded()[0]), np.asarray(adult.y, dtype=np.int64)
    schema = adult.schema.coded()
    rows = np.random.default_rng(0).permutation(len(y))[: round(0.9 * len(y))]
    X, y = np.asfortranarray(X[rows]), y[rows]
    hot = one_hot(X, schema)

    def lumberjack(epsilon: float, n_trees: int = 30) -> Callable[[int], Any]:
        return lambda seed: LumberjackClassifier(
            epsilon,
            n_estimators=n_trees,
            schema=schema,
            accounting="paper",
            random_state=seed,
            noise_seed=seed,
            n_jobs=n_jobs,
        ).fit(X, y)

    def guided(
        seed: int, noise: Literal["continuous", "discrete"] = "continuous", is_seeded: bool = True
    ) -> GuidedLumberjackClassifier:
        return GuidedLumberjackClassifier(
            1.0,
            n_estimators=20,
            accounting="safe",
            schema=schema,
            noise=noise,
            random_state=seed,
            noise_seed=seed if is_seeded else None,
            n_jobs=n_jobs,
        ).fit(X, y)

    reference = "ExtraTrees (30 trees, max_features=1, min_samples_split=10, one-hot)"
    fits = {f"Lumberjack (30 trees, eps={eps:g})": lumberjack(eps) for eps in (1.0, 8.0)}
    fits["Lumberjack (20 trees, eps=1)"] = lumberjack(1.0, 20)
    fits["Guided Lumberjack (20 trees, eps=1)"] = guided
    for noise, seeding in (
        ("continuous", "system"),
        ("discrete", "seeded"),
        ("discrete", "system"),
    ):
        name = f"Guided Lumberjack (20 trees, eps=1, {noise} noise, {seeding})"
        fits[name] = functools.partial(guided, noise=noise, is_seeded=seeding == "seeded")
    fits[reference] = lambda seed: ExtraTreesClassifier(
        30, max_features=1, min_samples_split=10, random_state=seed, n_jobs=n_jobs
    ).fit(hot, y)
    seconds = median_seconds(fits, repeats)
    return [
        {
            "table": f"adult, {len(y):,} rows",
            "method": name,
            "seconds": value,
            "relative": value / seconds[reference],
        }
        for name, value in seconds.items()
    ]


def on_a_large_table(n_rows: int, n_jobs: int) -> list[dict[str, Any]]:
    """Time one fit of every configured method on a table of the size of ACSEmployment."""
    X, y, schema = synthetic_table(n_rows)
    table = []
    for name in choices("method"):
        if name.startswith("ablation_"):
            continue
        config = configured(f"method/{name}", dataset="large")
        label, is_private = config["label"], config["is_private"]
        if name == "diffprivlib":
            # The library itself takes minutes here; the engine of the same law is what scales.
            config["params"] |= {"engine": "fast", "n_estimators": 20, "max_depth": 17}
            label += " (fast engine, 20 trees, depth 17)"
        build = functools.partial(
            build_method,
            config,
            schema=schema,
            epsilon=1.0 if is_private else float("inf"),
            delta=1e-6 if is_private else 0.0,
            random_state=0,
            noise_seed=0,
            n_jobs=n_jobs,
        )
        build().fit(np.asfortranarray(X[:2000]), y[:2000])
        start = time.perf_counter()
        build().fit(X, y)
        seconds = time.perf_counter() - start
        size = f"synthetic, {n_rows:,} x {X.shape[1]}"
        table.append({"table": size, "method": label, "seconds": seconds, "relative": float("nan")})
        print(f"  {label}: {seconds:.2f} s", file=sys.stderr, flush=True)
    return table


@fails_in_one_line
def main(arguments: Sequence[str]) -> int:
    """Print the table; write it as JSON on request."""
    parser = argparse.ArgumentParser(description="Time one fit of each method, side by side.")
    parser.add_argument("--quick", action="store_true", help="Adult only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the table as JSON")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="timed fits on Adult")
    parser.add_argument(
        "--rows", type=int, default=N_LARGE, metavar="N", help="rows of the large table"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="threads a fit may use")
    given = parser.parse_args(arguments)
    for name, least in (("repeats", 1), ("rows", 2000)):
        if (value := getattr(given, name)) < least:
            raise ConfigError(f"--{name} must be at least {least}, got {value}.")
    if given.jobs < -1 or given.jobs == 0:
        raise ConfigError(f"--jobs must be positive, or -1 for one per core, got {given.jobs}.")
    check_writable("--json", given.json)
    try:
        table = against_extra_trees(given.repeats, given.jobs)
    except DatasetError as error:
        raise ConfigError(str(error)) from error
    if not given.quick:
        table += on_a_large_table(given.rows, given.jobs)
    width = max(len(row["method"]) for row in table)
    print(f"{'table':26} {'method':{width}} {'seconds':>9} {'relative':>9}")
    for row in table:
        relative = "" if np.isnan(row["relative"]) else f"{row['relative']:9.2f}"
        print(f"{row['table']:26} {row['method']:{width}} {row['seconds']:9.3f} {relative}")
    if given.json:
        document = {
            "command": "python scripts/benchmark_speed.py " + shlex.join(arguments),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
            "rows": [{k: (None if v != v else v) for k, v in row.items()} for row in table],
        }
        given.json.write_text(json.dumps(document, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
