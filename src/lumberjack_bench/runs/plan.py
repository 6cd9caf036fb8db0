"""Which runs a command asks for, which of them are done, and how long the rest will take."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig

from lumberjack_bench.config import RUN_SETTINGS, BenchConfig, ConfigError, read_run
from lumberjack_bench.methods import check_target
from lumberjack_bench.overrides import PATH_SETTINGS, several_values
from lumberjack_bench.runs.compose import Composer
from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.store import ResultStore

_SETTINGS = {setting.name for setting in fields(BenchConfig)} - set(RUN_SETTINGS)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run and the command-line overrides that make it.

    Attributes
    ----------
    run : RunConfig
        What is to be done.
    overrides : tuple of str
        Overrides for Hydra.
    """

    run: RunConfig
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """All runs of a command, each once.

    Attributes
    ----------
    runs : tuple of PlannedRun
        In the order of the sweep.
    n_served : int
        How many combinations are served by a run that is listed anyway: a method without privacy
        parameters is the same at every eps.
    """

    runs: tuple[PlannedRun, ...]
    n_served: int = 0

    def pending(self, store: ResultStore, is_forced: bool = False) -> tuple[PlannedRun, ...]:
        """Return the runs that have no result yet.

        Parameters
        ----------
        store : ResultStore
            Where results are.
        is_forced : bool
            Whether finished runs count as pending.

        Returns
        -------
        tuple of PlannedRun
        """
        if is_forced:
            return self.runs
        return tuple(p for p in self.runs if store.read(p.run.hash) is None)


def unique(planned: Iterable[PlannedRun]) -> Plan:
    """Make a plan in which each run is listed once.

    Parameters
    ----------
    planned : iterable of PlannedRun
        Possibly with repetitions.

    Returns
    -------
    Plan
    """
    first: dict[str, PlannedRun] = {}
    n_all = 0
    for item in planned:
        n_all += 1
        first.setdefault(item.run.hash, item)
    return Plan(tuple(first.values()), n_all - len(first))


def expand_sweep(loader: ConfigLoader, master: DictConfig) -> list[PlannedRun]:
    """Compose and check every combination of a sweep.

    Parameters
    ----------
    loader : ConfigLoader
        Hydra's.
    master : DictConfig
        The configuration of the sweep, with its ``hydra`` node.

    Returns
    -------
    list of PlannedRun

    Raises
    ------
    ConfigError
        When a combination is out of range.
    hydra.errors.HydraException
        When a combination cannot be composed.
    """
    params = master.hydra.sweeper.get("params") or {}
    arguments = [f"{key}={value}" for key, value in params.items()]
    arguments += list(master.hydra.overrides.task)
    parser = OverridesParser.create(config_loader=loader)
    choices: dict[str, list[str]] = {}
    swept_paths = []
    for override in parser.parse_overrides(arguments):
        choices[override.get_key_element()] = values_of(override)
        if override.is_sweep_override():
            head = re.split(r"[./]", override.key_or_group)[0]
            if head in _SETTINGS:
                raise ConfigError(several_values(str(override.input_line)))
            if override.key_or_group in PATH_SETTINGS:
                swept_paths.append(str(override.input_line))
    composer = Composer(loader)
    planned = []
    for combination in itertools.product(*choices.values()):
        config = composer.compose_run(master, combination)
        allow_targets = config["allow_targets"]
        try:
            run = read_run(config)
        except ConfigError as error:
            if not swept_paths:
                raise
            # Hydra splits at a comma that may belong to the path.
            raise ConfigError(f"{error} {several_values(swept_paths[0])}") from error
        check_target(run.method["target"], list(allow_targets))
        planned.append(PlannedRun(run, combination))
    return planned


def values_of(override: Override) -> list[str]:
    """Return what an override stands for, one by one.

    Parameters
    ----------
    override : Override
        With one value or several.

    Returns
    -------
    list of str
        Overrides with one value each.

    Raises
    ------
    ConfigError
        When its values cannot be listed, or there are none.
    """
    key = override.get_key_element()
    if not override.is_sweep_override():
        return [f"{key}={override.get_value_element_as_str()}"]
    if not override.is_discrete_sweep():
        raise ConfigError(
            f"{override.input_line!r} is not a list of values; sweep over a list or a range."
        )
    values = [f"{key}={value}" for value in override.sweep_string_iterator()]
    if not values:
        raise ConfigError(f"{override.input_line!r} stands for no value at all.")
    return values


def seconds_left(
    pending: Sequence[RunConfig],
    history: Iterable[dict[str, Any]],
    n_workers: int,
    *,
    is_rough: bool = False,
) -> float | None:
    """Estimate how long runs will take, from results of runs like them.

    A run is taken to last as long as finished ones of its method on its data set did on average,
    else as those of its method.

    Parameters
    ----------
    pending : sequence of RunConfig
        What is left.
    history : iterable of dict
        Finished results.
    n_workers : int
        Runs at a time.
    is_rough : bool
        Whether a run of a method never seen may be taken to last as long as any other.

    Returns
    -------
    float or None
        None when there is nothing to go by.
    """
    sums: dict[tuple[str, ...], tuple[float, int]] = {}
    for result in history:
        run = result["run"]
        per_repeat = result["seconds"] / run["n_repeats"]
        for key in _likeness(run["dataset"]["name"], run["method"]["name"]):
            total, count = sums.get(key, (0.0, 0))
            sums[key] = (total + per_repeat, count + 1)
    left, longest = 0.0, 0.0
    for run in pending:
        keys = _likeness(run.dataset["name"], run.method["name"])
        total, count = next((sums[k] for k in keys if k in sums and (k or is_rough)), (0.0, 0))
        if not count:
            return None
        seconds = total / count * run.n_repeats
        left, longest = left + seconds, max(longest, seconds)
    return max(left / n_workers, longest)


def format_seconds(seconds: float) -> str:
    """Return a duration as a person would say it.

    Parameters
    ----------
    seconds : float
        Not negative.

    Returns
    -------
    str
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(math.ceil(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _likeness(dataset: str, method: str) -> tuple[tuple[str, ...], ...]:
    return (dataset, method), (method,), ()
