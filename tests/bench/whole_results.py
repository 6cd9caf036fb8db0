"""Runs, and results as they leave them, made up."""

from __future__ import annotations

import math
from typing import Any

from lumberjack_bench.runs.identity import FORMAT, MethodConfig, RunConfig


def made_up_run(
    method: str = "forest", dataset: str = "adult", eps: float = 1.0, **changes: Any
) -> RunConfig:
    params = changes.pop("params", {"depth": 3})
    is_private = math.isfinite(eps)
    content = {
        "dataset": {"name": dataset, "kind": "table"},
        "dataset_identity": dataset,
        "method": MethodConfig(
            method, "baselines.x.Y", method.title(), is_private, "paper", False, params
        ),
        "eps": eps,
        "delta": 1e-6 if is_private else 0.0,
        "seed": 0,
        "n_repeats": 2,
    }
    return RunConfig(**(content | changes))


def whole_result(
    run: RunConfig, accuracies: tuple[float, ...] = (0.8, 0.9), **changes: Any
) -> dict[str, Any]:
    """A result that counts."""
    claimed = {"epsilon": run.eps, "delta": 1e-6, "relation": "add or remove one record"}
    return {
        "format": FORMAT,
        "status": "ok",
        "run_hash": run.hash,
        "identity": run.identity,
        "run": run.to_dict(),
        "repetitions": [
            {"repetition": i, "metrics": {"fit_seconds": 1.5, "accuracy": accuracy}}
            for i, accuracy in enumerate(accuracies)
        ],
        "card": {
            "mode": "paper",
            "status": "doubted" if run.method.is_private else "not private",
            "claimed": claimed if run.method.is_private else None,
            "concerns": ["first", "second"],
        },
        "data_source": {"label": "adult.data, 48,842 rows", "is_stand_in": False},
        "versions": {"python": "3.11", "numpy": "2.4"},
        "commit": "abc",
        "machine": "Linux, 2 cores",
        "started": "2026-01-01T00:00:00.000+00:00",
        "seconds": 1.0,
        "sweep_id": "some",
    } | changes
