"""Results as runs leave them, made up."""

from __future__ import annotations

from typing import Any

from lumberjack_bench.runs.identity import FORMAT, RunConfig


def whole_result(run: RunConfig) -> dict[str, Any]:
    """A result of one repetition that counts."""
    return {
        "format": FORMAT,
        "status": "ok",
        "run_hash": run.hash,
        "identity": run.identity,
        "run": run.to_dict(),
        "repetitions": [{"repetition": 0, "metrics": {"accuracy": 0.5}}],
        "card": {},
        "data_source": {},
        "versions": {},
        "commit": "",
        "machine": "",
        "started": "2026-01-01",
        "seconds": 1.0,
        "sweep_id": "some",
    }
