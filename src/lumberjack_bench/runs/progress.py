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
from lumberjack_bench.runs.execute import Outcome, run_title
from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.plan import Plan, format_seconds, seconds_left
from lumberjack_bench.runs.store import ResultStore

MOST_ALIKE = 5
"""How many runs that failed for the same reason are named."""

STATUSES = ("ok", "skipped", "failed", "timed out", "lost", "not started")


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
    """

    def __init__(
        self, plan: Plan, pending: Sequence[RunConfig], store: ResultStore, n_workers: int
    ) -> None:
        self._store = store
        self._n_all, self._n_served = len(plan.runs), plan.n_served
        self._left = {run.hash: run for run in pending}
        # Of each result only what durations are estimated from, so that a long sweep stays small.
        self._history = [_duration(result) for result in store.results()] if pending else []
        self._n_workers = n_workers

    def announce(self, sweep_dir: Path) -> None:
        """Say what is planned, and how long it may take."""
        for problem in self._store.problems():
            say(f"warning: {problem}")
        n_all, n_left = self._n_all, len(self._left)
        served = f" ({self._n_served} more combinations are the same)" if self._n_served else ""
        done = "none done yet" if n_left == n_all else f"{n_all - n_left} done"
        say(f"Plan: {n_all} run{'s' * (n_all != 1)}{served}, {done}.")
        if n_left:
            left = seconds_left(list(self._left.values()), self._history, self._n_workers)
            guess = f", about {format_seconds(left)}" if left else ""
            say(
                f"Doing {n_left} with {self._n_workers} at a time{guess}. Logs: {relative(sweep_dir)}"
            )

    def report(self, outcome: Outcome, result: dict[str, Any] | None) -> None:
        """Say how a run ended."""
        run = self._left.pop(outcome.run_hash)
        line = f"{run}: {outcome.status.upper()}: {outcome.reason}"
        if outcome.is_good and result is not None:
            self._history.append(_duration(result))
            accuracy = fmean(r["metrics"]["accuracy"] for r in result["repetitions"])
            title = run_title(run, result["data_source"])
            by = " by another command" if outcome.status == "skipped" else ""
            line = f"{title}: accuracy {accuracy:.4f} in {format_seconds(result['seconds'])}{by}"
        left = seconds_left(
            list(self._left.values()), self._history, self._n_workers, is_rough=True
        )
        rest = f"; about {format_seconds(left)} left" if left and self._left else ""
        n_done = self._n_all - len(self._left)
        say(f"[{n_done:>{len(str(self._n_all))}}/{self._n_all}] {line}{rest}")


def _duration(result: dict[str, Any]) -> dict[str, Any]:
    run = result["run"]
    names = {part: {"name": run[part]["name"]} for part in ("dataset", "method")}
    return {"run": {**names, "n_repeats": run["n_repeats"]}, "seconds": result["seconds"]}


def summarise(outcomes: Sequence[Outcome], tracking_problem: str, settings: Settings) -> None:
    """Say how all runs ended, and what to do about those that have no result."""
    counts = Counter(outcome.status for outcome in outcomes)
    names = {"skipped": "done before"}
    shown = [f"{counts[s]} {names.get(s, s)}" for s in STATUSES if counts[s]]
    say(f"\nRuns: {', '.join(shown)}.")
    alike: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if not outcome.is_good and outcome.status != "not started":
            alike.setdefault(outcome.reason, []).append(outcome)
    for reason, group in alike.items():
        for outcome in group[:MOST_ALIKE]:
            say(f"  {outcome.status.upper()} {outcome.title}: {reason}")
            if outcome.log_file:
                say(f"    log: {relative(Path(outcome.log_file))}")
        if len(group) > MOST_ALIKE:
            say(f"  and {len(group) - MOST_ALIKE} more for the same reason; --status lists them.")
    if not all(outcome.is_good for outcome in outcomes):
        say("  The same command again does what is missing or failed, and nothing else.")
    if tracking_problem:
        say(f"warning: {tracking_problem}")
        again = ["python", "scripts/log_results.py", f"results_dir={settings.results_dir}"]
        say(f"  To show them later: {shlex.join(again)}")


def status_text(plan: Plan, settings: Settings, n_workers: int) -> str:
    """Return what is done, failed and missing of a plan, and how long the rest may take.

    Parameters
    ----------
    plan : Plan
        What is asked for.
    settings : Settings
        Where results are.
    n_workers : int
        Runs at a time.

    Returns
    -------
    str
    """
    store = ResultStore(settings.results_dir)
    pending = {run.hash: run for run in plan.pending(store)}
    lines, counts = [], Counter[str]()
    for run in plan.runs:
        reason = ""
        if run.hash not in pending:
            status = "done"
        elif store.is_locked(run.hash):
            status = "running"
        elif (failure := store.read_failure(run.hash)) is not None:
            status, reason = failure["status"], f": {failure['reason']}"
        else:
            status = "missing"
        counts[status] += 1
        lines.append(f"{run.hash}  {status:<9}  {run}{reason}")
    left = seconds_left(list(pending.values()), store.results(), n_workers)
    total = ", ".join(f"{n} {status}" for status, n in counts.items())
    time_left = (
        "nothing left to do"
        if not pending
        else "time left unknown (some method has no finished run yet)"
        if left is None
        else f"about {format_seconds(left)} left with {n_workers} at a time"
    )
    lines.append(f"{len(plan.runs)} runs: {total}; {time_left}.")
    return "\n".join(lines)
