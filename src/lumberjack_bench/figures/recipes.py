"""The commands that make the results behind a page again, as one would type them."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from lumberjack_bench.configured import choices, configured
from lumberjack_bench.datasets.sources import STAND_IN_VARIABLE
from lumberjack_bench.figures.curves import Curve, Panel
from lumberjack_bench.spelling import spelled


def run_commands(panels: Sequence[Panel]) -> list[str]:
    """Return the commands that make the rows of panels.

    One for each data set, and for each method whose settings are not those of its configuration.
    """
    commands: dict[tuple[str, ...], tuple[list[str], list[float]]] = {}
    is_by_variable = False
    for panel in panels:
        dataset = json.loads(panel.dataset_config)
        chosen = _dataset_overrides(dataset, panel.dataset)
        is_by_variable |= panel.is_stand_in and not dataset.get("stand_in_dir")
        for curve in panel.curves:
            own = [*_method_overrides(curve, panel.dataset), *_run_overrides(curve)]
            # Methods in the settings of their configuration share one command.
            methods, budgets = commands.setdefault((*chosen, *own), ([], []))
            methods += [curve.method] * (curve.method not in methods)
            budgets += [point.eps for point in curve.points if math.isfinite(point.eps)]
    lines = [f"# with {STAND_IN_VARIABLE}=FOLDER for the stand-ins"] * is_by_variable
    for overrides, (methods, budgets) in commands.items():
        eps = [f"eps={','.join(map(_number, sorted(set(budgets))))}"] if budgets else []
        words = [*overrides, f"method={','.join(sorted(methods))}", *eps]
        lines.append(shlex.join(["python", "run.py", "-m", *words]))
    return lines


def _dataset_overrides(config: Mapping[str, Any], name: str) -> list[str]:
    """Return what chooses a data set: its configuration, and where it departs from it."""
    kind = str(config.get("kind", name))
    for choice in [name, kind, *choices("dataset")]:
        usual = configured(f"dataset/{choice}")
        if usual.get("kind") == kind and ("task" not in config or config["task"] == usual["task"]):
            # A name that is put together of other settings follows from them.
            follows = {"name"} if "${" in str(usual["name"]) else set()
            own = {key: value for key, value in config.items() if key not in follows}
            return [f"dataset={choice}", *_departures("dataset", own, usual)]
    return [f"dataset={name}"]


def _method_overrides(curve: Curve, dataset: str) -> list[str]:
    """Return where a method departs from its configuration."""
    usual = configured(f"method/{curve.method}", dataset=dataset)
    if not usual:
        return []
    found = _departures("method.params", json.loads(curve.params), usual["params"])
    if usual.get("mode") and curve.mode != usual["mode"]:
        found.append(f"method.mode={curve.mode}")
    return found


def _run_overrides(curve: Curve) -> list[str]:
    """Return where delta, seeds and repetitions depart from the usual ones."""
    usual = configured("config")
    found = []
    if curve.kind == "private" and curve.delta != usual["delta"]:
        found.append(f"delta={_number(curve.delta)}")
    splits = [split for point in curve.points for split in point.values]
    seeds = sorted({seed for seed, _ in splits})
    if seeds != [usual["seed"]]:
        found.append(f"seed={','.join(map(str, seeds))}")
    n_repeats = 1 + max(repetition for _, repetition in splits)
    if n_repeats != usual["n_repeats"]:
        found.append(f"n_repeats={n_repeats}")
    return found


def _departures(prefix: str, own: Mapping[str, Any], usual: Mapping[str, Any]) -> list[str]:
    return [
        f"{'' if key in usual else '+'}{prefix}.{key}={spelled(value)}"
        for key, value in sorted(own.items())
        if value != usual.get(key)
    ]


def _number(number: float) -> str:
    """Spell a number in full."""
    return f"{number:g}" if float(f"{number:g}") == number else repr(number)
