"""How far a plan is: what is done, at work, failed and missing, once or again and again."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from lumberjack_bench.config import Settings
from lumberjack_bench.results import accuracy_table, shown_metric
from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.plan import Durations, Plan, format_seconds
from lumberjack_bench.runs.store import ResultStore

MOST_LISTED = 12
"""How many runs are listed one by one unless all are asked for."""

MOST_ALIKE = 3
"""How many runs without a result are then named for each reason."""

WATCH_SECONDS = 2.0

_CLEAR_SCREEN = "\x1b[H\x1b[2J"


@dataclass(frozen=True, slots=True)
class Standing:
    """How far one run is."""

    run: RunConfig
    status: str
    """done, running, missing, skipped, or how its last attempt ended."""
    reason: str = ""

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.run.hash}  {self.status:<9}  {self.run}{reason}"


@dataclass(frozen=True, slots=True)
class Status:
    """How far a plan is.

    Attributes
    ----------
    standings : tuple of Standing
        In the order of the plan.
    time_left : str
        For a person.
    is_over : bool
        Whether nothing will happen any more unless a sweep is started.
    """

    standings: tuple[Standing, ...]
    time_left: str
    is_over: bool

    def text(self, *, is_long: bool) -> str:
        """Say it: all runs one by one if asked to, or few; else sums, and what is not as it should be."""
        n_all = len(self.standings)
        counts = Counter(standing.status for standing in self.standings)
        if is_long or n_all <= MOST_LISTED:
            lines = [str(standing) for standing in self.standings]
        else:
            lines = [*self._sums(), *self._unusual()]
        hint = "" if is_long or n_all <= MOST_LISTED else " --all lists each run with its hash."
        total = ", ".join(f"{n} {status}" for status, n in counts.items())
        return "\n".join([*lines, f"{n_all} runs: {total}; {self.time_left}.{hint}"])

    def _sums(self) -> list[str]:
        """Return how many runs are done by data set and by method, if some are."""
        if all(standing.status == "missing" for standing in self.standings):
            return []
        lines = []
        for names in (
            [standing.run.dataset["name"] for standing in self.standings],
            [standing.run.method.name for standing in self.standings],
        ):
            n_runs = Counter(names)
            n_done = Counter(
                name
                for name, standing in zip(names, self.standings, strict=True)
                if standing.status in ("done", "skipped")
            )
            width = max(map(len, n_runs))
            if len(n_runs) > 1:
                lines += [f"{name:<{width}}  {n_done[name]}/{n}" for name, n in n_runs.items()]
                lines.append("")
        return lines

    def _unusual(self) -> list[str]:
        lines = [str(standing) for standing in self.standings if standing.status == "running"]
        alike: dict[tuple[str, str], list[Standing]] = {}
        for standing in self.standings:
            if standing.reason:
                alike.setdefault((standing.status, standing.reason), []).append(standing)
        for (status, _), group in alike.items():
            lines += map(str, group[:MOST_ALIKE])
            if len(group) > MOST_ALIKE:
                lines.append(f"  and {len(group) - MOST_ALIKE} more {status} for the same reason")
        return [*lines, ""] if lines else []


def status_of(plan: Plan, settings: Settings, n_workers: int) -> Status:
    """Look up how far a plan is, and how long the rest may take with so many runs at a time."""
    store = _store(settings)
    pending = {run.hash: run for run in plan.pending(store)}
    standings = tuple(_standing(run, run.hash in pending, store) for run in plan.runs)
    left = Durations(store.results()).seconds_left(pending.values(), n_workers)
    time_left = (
        "nothing left to do"
        if not pending
        else "time left unknown (some method has no finished run yet)"
        if left is None
        else f"about {format_seconds(left)} left with {n_workers} at a time"
    )
    is_waiting = any(standing.status in ("missing", "running") for standing in standings)
    return Status(standings, time_left, not pending or not (is_waiting or store.is_in_use()))


def watch(
    plan: Plan,
    settings: Settings,
    n_workers: int,
    *,
    is_long: bool,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Show how far a plan is, and its results so far, whenever that changes and until it is over.

    A terminal is written over; anything else gets one text after the other.
    """
    shown = ""
    while True:
        status = status_of(plan, settings, n_workers)
        store = _store(settings)
        results = [r for run in plan.runs if (r := store.finished(run.hash)) is not None]
        text = status.text(is_long=is_long)
        if results:
            text = f"{accuracy_table(results, shown_metric(results, settings.metric))}\n\n{text}"
        if text != shown:
            is_screen = sys.stdout.isatty()
            print(f"{_CLEAR_SCREEN if is_screen else ''}{text}\n", flush=True)
            shown = text
        if status.is_over:
            return
        pause(WATCH_SECONDS)


def _store(settings: Settings) -> ResultStore:
    return ResultStore(settings.results_dir, needs_predictions=settings.keeps_predictions)


def _standing(run: RunConfig, is_pending: bool, store: ResultStore) -> Standing:
    if is_pending and store.is_locked(run.hash):
        return Standing(run, "running")
    record = store.settled(run.hash) or store.reason(run.hash) or {"status": "missing"}
    status = "done" if record["status"] == "ok" else record["status"]
    return Standing(run, status, record.get("reason", ""))
