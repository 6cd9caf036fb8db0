"""What a result file must hold to count: checked whenever one is read back."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any

from lumberjack_bench.runs.identity import FORMAT, RunConfig

RANGES = {"accuracy": (0.0, 1.0)}
"""What a metric can be; one that is not listed may be any finite number."""

_NEEDED = (
    *("sweep_id", "started", "seconds", "card", "data_source", "versions", "commit", "machine"),
)


def problem_of(content: Any, name: str) -> str:
    """Say why a file is no result of a run.

    Parameters
    ----------
    content : object
        What the file holds; None when it is no JSON.
    name : str
        The hash in the file's name.

    Returns
    -------
    str
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
        own = RunConfig(**content["run"]).hash
    except (KeyError, TypeError):
        return "names no run of this version"
    if own != name:
        return f"holds the run {own}"
    repetitions = content.get("repetitions")
    if not isinstance(repetitions, list) or not repetitions:
        return "has no repetitions"
    for repetition in repetitions:
        metrics = repetition.get("metrics") if isinstance(repetition, Mapping) else None
        if not isinstance(metrics, Mapping) or not {*RANGES} <= {*metrics}:
            return "has a repetition without metrics"
        for metric, value in metrics.items():
            if problem := problem_of_metric(metric, value):
                return problem
    return ""


def problem_of_metric(metric: str, value: Any) -> str:
    """Say why a number cannot be a value of a metric.

    Parameters
    ----------
    metric : str
        Its name.
    value : object
        Its value.

    Returns
    -------
    str
        Empty for a good one.
    """
    least, largest = RANGES.get(metric, (-math.inf, math.inf))
    if not isinstance(value, numbers.Real) or not math.isfinite(value):
        return f"has {metric}={value!r}, which is no finite number"
    if not least <= float(value) <= largest:
        return f"has {metric}={value!r}, outside [{least:g}, {largest:g}]"
    return ""
