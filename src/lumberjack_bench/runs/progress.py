"""What a person is told of a sweep: what is planned, how each run ended, what is left, how it went."""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from lumberjack_bench.config import Settings
from lumberjack_bench.metrics import MAIN_METRICS, main_metric, metric_of
from lumberjack_bench.runs.execute import Outcome, run_title
from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.plan import Durations, Plan, format_seconds
from lumberjack_bench.runs.store import ResultStore

MOST_ALIKE = 5
"""How many runs that have no result for the same reason are named."""

STATUSES = ("ok", "done before", "skipped", "failed", "timed out", "lost", "not started")


def say(line: str) -> None:
    """Print a line at once; a sweep goes on though nobody listens any more."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def relative(path: Path) -> str:
    """Return a path as seen from the working folder, if that is there and holds it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


class Reporter:
    """Says what is planned, and a line about each run that ended, with the time left.

    Parameters
    ----------
    plan : Plan
        All runs.
    pending : sequence of RunConfig
        Those to be done.
    store : ResultStore
        Has earlier results, to estimate durations from.
    n_workers : int
        Runs at a time.
    metric : str
        What is said of a finished run, where it has it.
    """

    def __init__(
        self,
        plan: Plan,
        pending: Sequence[RunConfig],
        store: ResultStore,
        n_workers: int,
        metric: str,
    ) -> None:
        self._metric = metric
        self._plan, self._store, self._n_workers = plan, store, n_workers
        self._left = {run.hash: run for run in pending}
        self._durations = Durations(store.results() if pending else ())

    def announce(self, sweep_dir: Path) -> None:
        """Say what is planned, and how long it may take."""
        for problem in self._store.problems():
            say(f"warning: {problem}")
        n_all, n_left, n_served = len(self._plan.runs), len(self._left), self._plan.n_served
        n_missing = len(self._plan.pending(self._store))
        served = f" ({n_served} more combinations are the same)" if n_served else ""
        before = "none done yet" if n_missing == n_all else f"{n_all - n_missing} done before"
        again = f", {n_left - n_missing} to be done again" if n_left > n_missing else ""
        say(f"Plan: {n_all} run{'s' * (n_all != 1)}{served}, {before}{again}.")
        if n_left:
            left = self._durations.seconds_left(self._left.values(), self._n_workers)
            guess = f", about {format_seconds(left)}" if left else ""
            say(
                f"Doing {n_left} with {self._n_workers} at a time{guess}. Logs: {relative(sweep_dir)}"
            )

    def report(self, outcome: Outcome, result: dict[str, Any] | None) -> None:
        """Say how a run ended."""
        run = self._left.pop(outcome.run_hash)
        line = f"{run}: {outcome.status.upper()}: {outcome.reason}"
        if outcome.status in ("ok", "done before") and result is not None:
            self._durations.add(run, result["seconds"])
            measured = [r["metrics"] for r in result["repetitions"]]
            # A numeric target has no accuracy, which is what one is told unless one asks otherwise.
            is_asked = self._metric in measured[0] or self._metric != MAIN_METRICS[0]
            metric = self._metric if is_asked else main_metric(measured[0])
            values = [found[metric] for found in measured if metric in found]
            mean = f"{fmean(values):.4f}" if values else "not measured"
            title = run_title(run, result["data_source"])
            by = " by another command" if outcome.status == "done before" else ""
            line = f"{title}: {metric_of(metric).title} {mean} in {format_seconds(result['seconds'])}{by}"
        left = self._durations.seconds_left(self._left.values(), self._n_workers, is_rough=True)
        rest = f"; about {format_seconds(left)} left" if left else ""
        n_all = len(self._plan.runs)
        say(f"[{n_all - len(self._left):>{len(str(n_all))}}/{n_all}] {line}{rest}")


def summarise(outcomes: Sequence[Outcome], tracking_problem: str, settings: Settings) -> None:
    """Say how all runs ended, and what to do about those that have no result."""
    counts = Counter(outcome.status for outcome in outcomes)
    say(f"\nRuns: {', '.join(f'{counts[s]} {s}' for s in STATUSES if counts[s])}.")
    alike: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.reason:
            alike.setdefault(outcome.reason, []).append(outcome)
    for reason, group in alike.items():
        for outcome in group[:MOST_ALIKE]:
            say(f"  {outcome.status.upper()} {outcome.title}: {reason}")
            if outcome.log_file:
                say(f"    log: {relative(Path(outcome.log_file))}")
        if len(group) > MOST_ALIKE:
            say(
                f"  and {len(group) - MOST_ALIKE} more for the same reason; --status --all lists them."
            )
    if not all(outcome.is_good for outcome in outcomes):
        say("  The same command again does what is missing or failed, and nothing else.")
    if tracking_problem:
        say(f"warning: {tracking_problem}")
        again = ["python", "scripts/log_results.py", f"results_dir={settings.results_dir}"]
        say(f"  To show them later: {shlex.join(again)}")
