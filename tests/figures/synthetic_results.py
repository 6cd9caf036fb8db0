"""Rows as a results table has them, made up."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lumberjack_bench.results import COLUMNS

DELTA = 1e-6


def result_rows(
    method: str,
    values: Sequence[float],
    *,
    eps: float = 1.0,
    metric: str = "accuracy",
    **changes: Any,
) -> list[dict[str, Any]]:
    """Rows of one finished run, a repetition for each value."""
    is_private = math.isfinite(eps)
    row = {
        "dataset": "adult",
        "method": method,
        "label": method.replace("_", " ").title(),
        "mode": "paper",
        "params": '{"depth": 3}',
        "eps": eps,
        "delta": DELTA if is_private else 0.0,
        "seed": 0,
        "metric": metric,
        "status": "ok",
        "data_source": "adult.data, 48,842 rows",
        "is_stand_in": False,
        "data_version": "11111111",
        "is_current": True,
        "dataset_config": '{"kind": "adult", "name": "adult"}',
        "started": "2026-01-01T00:00:00.000+00:00",
        "card_status": "holds" if is_private else "not private",
        "card_claim": f"({eps:g}, 1e-06), add or remove one record" if is_private else "none",
        "card_concerns": "",
        "tuned": "",
        "versions": "python=3.11 numpy=2.4",
        "commit": "abc",
        "machine": "Linux, 2 cores",
    } | changes
    row.setdefault(
        "run_hash",
        f"{row['dataset']}-{method}-{row['mode']}-{eps:g}-{row['seed']}-{len(values)}-{row['params']}",
    )
    return [row | {"repetition": i, "value": value} for i, value in enumerate(values)]


def write_table(folder: Path, *runs: Iterable[dict[str, Any]]) -> Path:
    """Write runs, each a list of rows, as the results table of a folder."""
    path = folder / "results.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for rows in runs:
            writer.writerows(rows)
    return path
