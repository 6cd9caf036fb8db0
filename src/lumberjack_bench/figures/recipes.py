"""The commands that make the results behind a page again, as one would type them."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.errors import HydraException
from omegaconf import OmegaConf

from lumberjack_bench.datasets.named import config_folder
from lumberjack_bench.datasets.sources import STAND_IN_VARIABLE
from lumberjack_bench.figures.curves import Curve, Panel


def run_commands(panels: Sequence[Panel]) -> list[str]:
    """Return the commands that make the rows of panels.

    Parameters
    ----------
    panels : sequence of Panel
        What a page shows.

    Returns
    -------
    list of str
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
    folder = config_folder()
    kind = str(config.get("kind", name))
    candidates = [name, kind, *sorted(path.stem for path in folder.glob("*.yaml"))]
    for choice in candidates:
        path = folder / f"{choice}.yaml"
        usual: Any = OmegaConf.to_container(OmegaConf.load(path)) if path.is_file() else {}
        if usual.get("kind") == kind and ("task" not in config or config["task"] == usual["task"]):
            changes = {
                key: value
                for key, value in config.items()
                # A name that is put together of other settings follows from them.
                if value != usual.get(key) and not (key == "name" and "${" in str(usual["name"]))
            }
            return [f"dataset={choice}", *_overrides("dataset", changes, usual)]
    return [f"dataset={name}"]


def _method_overrides(curve: Curve, dataset: str) -> list[str]:
    """Return where a method departs from its configuration."""
    path = config_folder().parent / "method" / f"{curve.method}.yaml"
    if not path.is_file():
        return []
    both = OmegaConf.create({"method": OmegaConf.load(path), "dataset": {"name": dataset}})
    usual: Any = OmegaConf.to_container(both.method, resolve=True)
    params, own = usual["params"], json.loads(curve.params)
    changes = {key: value for key, value in own.items() if value != params.get(key)}
    found = _overrides("method.params", changes, params)
    if usual.get("mode") and curve.mode != usual["mode"]:
        found.append(f"method.mode={curve.mode}")
    return found


def _run_overrides(curve: Curve) -> list[str]:
    """Return where delta, seeds and repetitions depart from the usual ones."""
    usual = OmegaConf.load(config_folder().parent / "config.yaml")
    found = []
    if curve.kind == "private" and curve.delta != usual.delta:
        found.append(f"delta={_number(curve.delta)}")
    splits = [split for point in curve.points for split in point.values]
    seeds = sorted({seed for seed, _ in splits})
    if seeds != [usual.seed]:
        found.append(f"seed={','.join(map(str, seeds))}")
    n_repeats = 1 + max(repetition for _, repetition in splits)
    if n_repeats != usual.n_repeats:
        found.append(f"n_repeats={n_repeats}")
    return found


def _overrides(prefix: str, changes: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    return [
        f"{'' if key in known else '+'}{prefix}.{key}={_value(value)}"
        for key, value in sorted(changes.items())
    ]


def _number(number: float) -> str:
    """Spell a number in full."""
    return f"{number:g}" if float(f"{number:g}") == number else repr(number)


def _value(value: Any) -> str:
    """Spell a value so that the grammar of overrides gives it back."""
    if isinstance(value, str):
        return value if _reads_as(value, value) else QuotedString(value, Quote.single).with_quotes()
    if isinstance(value, list):
        return f"[{','.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{key}:{_value(item)}' for key, item in value.items())}}}"
    return "null" if value is None else repr(value).lower()


def _reads_as(text: str, value: str) -> bool:
    try:
        override = OverridesParser.create().parse_override(f"x={text}")
    except HydraException:
        return False
    return not override.is_sweep_override() and override.value() == value
