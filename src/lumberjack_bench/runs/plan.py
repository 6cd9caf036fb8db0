"""Which runs a command asks for, which of them are done, and how long the rest will take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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
        """Return the runs that are to be done; see :meth:`ResultStore.settled` for `since`."""
        return tuple(run for run in self.runs if store.settled(run.hash, since) is None)


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
    ConfigError, hydra.errors.HydraException
        When a combination is out of range or cannot be composed.
    """
    combinations = composer.combinations(words, is_sweep=is_sweep)
    settings = read_settings(composer.config(combinations[0]))
    settings = replace(settings, import_folders=composer.import_folders)
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
        name, target = run.method.name, run.method.target
        check_target(target, settings.allow_targets)
        if targets.setdefault(name, target) != target:
            raise ConfigError(
                f"two methods are called {name!r}: {targets[name]} and {target}. Give each a name of its own."
            )
        runs.setdefault(run.hash, run)
    return Plan(tuple(runs.values()), len(combinations) - len(runs)), settings


class Durations:
    """How long runs took, to estimate how long others will.

    A run is taken to last as long as finished ones of its method on its data set did on average,
    else as those of its method.

    Parameters
    ----------
    results : iterable of dict
        Finished results; only their durations are kept.
    """

    def __init__(self, results: Iterable[dict[str, Any]] = ()) -> None:
        self._sums: dict[tuple[str, ...], tuple[float, int]] = {}
        for result in results:
            self.add(RunConfig.from_dict(result["run"]), result["seconds"])

    def add(self, run: RunConfig, seconds: float) -> None:
        """Note how long a run took."""
        for likeness in _likenesses(run):
            total, count = self._sums.get(likeness, (0.0, 0))
            self._sums[likeness] = (total + seconds, count + run.n_repeats)

    def seconds_left(
        self, pending: Iterable[RunConfig], n_workers: int, *, is_rough: bool = False
    ) -> float | None:
        """Estimate how long runs will take.

        Parameters
        ----------
        pending : iterable of RunConfig
            What is left.
        n_workers : int
            Runs at a time.
        is_rough : bool
            Whether a run of a method never seen may be taken to last as long as any other.

        Returns
        -------
        float or None
            None when there is nothing to go by.
        """
        left, longest = 0.0, 0.0
        for run in pending:
            known = [key for key in _likenesses(run) if key in self._sums and (key or is_rough)]
            if not known:
                return None
            total, count = self._sums[known[0]]
            seconds = total / count * run.n_repeats
            left, longest = left + seconds, max(longest, seconds)
        return max(left / n_workers, longest)


def format_seconds(seconds: float) -> str:
    """Return a duration as a person would say it."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(math.ceil(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _likenesses(run: RunConfig) -> tuple[tuple[str, ...], ...]:
    return (run.dataset["name"], run.method.name), (run.method.name,), ()
