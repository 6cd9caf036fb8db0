"""What a result file must hold to count: checked whenever one is read back."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any

from lumberjack_bench.metrics import main_metric, metric_of
from lumberjack_bench.runs.identity import FORMAT, RunConfig

_NEEDED = (
    *("sweep_id", "started", "seconds", "card", "data_source", "versions", "commit", "machine"),
)


def problem_of(content: Any, name: str) -> str:
    """Say why what a file holds (None when it is no JSON) is not the result of the run in its name.

    Empty for a whole result.
    """
    if not isinstance(content, Mapping):
        return "is no whole JSON object"
    if content.get("format") != FORMAT or content.get("status") != "ok":
        return f"is no result in format {FORMAT}"
    missing = [key for key in _NEEDED if key not in content]
    if missing:
        return f"lacks {', '.join(missing)}"
    try:
        own = RunConfig.from_dict(content["run"]).hash
    except (KeyError, TypeError):
        return "names no run of this version"
    if own != name:
        return f"holds the run {own}"
    repetitions = content.get("repetitions")
    if not isinstance(repetitions, list) or not repetitions:
        return "has no repetitions"
    for repetition in repetitions:
        metrics = repetition.get("metrics") if isinstance(repetition, Mapping) else None
        if not isinstance(metrics, Mapping) or main_metric(metrics) not in metrics:
            return "has a repetition without metrics"
        for metric, value in metrics.items():
            if problem := _problem_of_metric(metric, value):
                return problem
    return ""


def _problem_of_metric(metric: str, value: Any) -> str:
    least, largest = metric_of(metric).bounds
    if not isinstance(value, numbers.Real) or not math.isfinite(value):
        return f"has {metric}={value!r}, which is no finite number"
    if not least <= float(value) <= largest:
        return f"has {metric}={value!r}, outside [{least:g}, {largest:g}]"
    return ""
