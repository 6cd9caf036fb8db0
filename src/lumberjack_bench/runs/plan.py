"""Which runs a command asks for, which of them are done, and how long the rest will take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lumberjack_bench.config import ConfigError, Settings, read_run, read_settings
from lumberjack_bench.methods import check_target
from lumberjack_bench.overrides import PATH_SETTINGS, several_values
from lumberjack_bench.runs.compose import Composer
from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.store import ResultStore


@dataclass(frozen=True, slots=True)
class Plan:
    """All runs of a command, each once.

    Attributes
    ----------
    runs : tuple of RunConfig
        In the order of the sweep.
    n_served : int
        How many combinations are served by a run that is listed anyway: a method without privacy
        parameters is the same at every eps.
    """

    runs: tuple[RunConfig, ...]
    n_served: int = 0

    def pending(self, store: ResultStore, since: str = "") -> tuple[RunConfig, ...]:
        """Return the runs that have no result yet.

        Parameters
        ----------
        store : ResultStore
            Where results are.
        since : str
            The sweep that a result must come from, where finished runs are to be done again.

        Returns
        -------
        tuple of RunConfig
        """
        return tuple(run for run in self.runs if store.finished(run.hash, since) is None)


def plan_runs(composer: Composer, words: Sequence[str], *, is_sweep: bool) -> tuple[Plan, Settings]:
    """Compose and check every run that a command asks for.

    Parameters
    ----------
    composer : Composer
        Turns words into configurations.
    words : sequence of str
        ``NAME=VALUE``, as given.
    is_sweep : bool
        Whether a value may be a list of values.

    Returns
    -------
    plan : Plan
        Each run once.
    settings : Settings
        What they share.

    Raises
    ------
    ConfigError
        When a combination is out of range.
    hydra.errors.HydraException
        When a combination cannot be composed.
    """
    combinations = composer.combinations(words, is_sweep=is_sweep)
    settings = read_settings(composer.config(combinations[0]))
    runs: dict[str, RunConfig] = {}
    targets: dict[str, str] = {}
    for combination in combinations:
        try:
            run = read_run(composer.config(combination))
        except ConfigError as error:
            # A list of values is split at a comma that may belong to a path.
            paths = [w for w in words if "," in w and w.partition("=")[0] in PATH_SETTINGS]
            if not (is_sweep and paths):
                raise
            raise ConfigError(f"{error} {several_values(paths[0])}") from error
        name, target = run.method["name"], run.method["target"]
        check_target(target, settings.allow_targets)
        if targets.setdefault(name, target) != target:
            raise ConfigError(
                f"two methods are called {name!r}: {targets[name]} and {target}. Give each a name of its own."
            )
        runs.setdefault(run.hash, run)
    return Plan(tuple(runs.values()), len(combinations) - len(runs)), settings


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
