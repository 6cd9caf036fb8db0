"""Telling a person how a sweep gets on: a line per finished run, with the time left.

It watches the result files, so it works the same for every launcher.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import Any

from lumberjack_bench.runs.execute import run_title
from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.plan import format_seconds, seconds_left
from lumberjack_bench.runs.store import ResultStore

POLL_SECONDS = 0.5
FEWEST_RUNS_TO_JUDGE = 5


class Progress:
    """Reports runs as their results appear.

    Parameters
    ----------
    store : ResultStore
        Where results appear.
    pending : sequence of RunConfig
        Runs to wait for.
    n_done : int
        How many runs of the plan were finished before.
    history : iterable of dict
        Earlier results, to estimate durations from.
    n_workers : int
        Runs at a time.
    sweep_id : str
        Failures of other sweeps are not reported.
    write : callable
        Takes a line.
    clock : callable
        Gives the time in seconds.
    """

    def __init__(
        self,
        store: ResultStore,
        pending: Sequence[RunConfig],
        *,
        n_done: int,
        history: Iterable[dict[str, Any]],
        n_workers: int,
        sweep_id: str,
        write: Callable[[str], None] = print,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._left = {run.hash: run for run in pending}
        self._n_reported = n_done
        self._n_all = n_done + len(pending)
        self._history = list(history)
        self._finished_before = {result["run_hash"] for result in self._history}
        self._n_workers = n_workers
        self._sweep_id = sweep_id
        self._write = write
        self._clock = clock
        self._first_end: float | None = None
        self._n_since_first = 0
        self._seconds_since_first = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        """Start to watch."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Report what is still unreported, and stop."""
        self._stop.set()
        self._thread.join()
        self.report()

    def report(self) -> None:
        """Report every run that ended since the last look."""
        for run in list(self._left.values()):
            line = self._line(run)
            if line is None:
                continue
            del self._left[run.hash]
            self._n_reported += 1
            self._write(
                f"[{self._n_reported:>{len(str(self._n_all))}}/{self._n_all}] {line}{self._rest()}"
            )

    def _line(self, run: RunConfig) -> str | None:
        result = self._store.read(run.hash)
        # A forced run has an old result until the new one replaces it.
        if result is not None and (
            result["sweep_id"] == self._sweep_id or run.hash not in self._finished_before
        ):
            self._history.append(result)
            self._count(result["seconds"])
            accuracy = fmean(r["metrics"]["accuracy"] for r in result["repetitions"])
            title = run_title(run, result["data_source"])
            return f"{title}: accuracy {accuracy:.4f} in {format_seconds(result['seconds'])}"
        failure = self._store.read_failure(run.hash)
        if failure is not None and failure["sweep_id"] == self._sweep_id:
            return f"{run}: {failure['status'].upper()}: {failure['reason']}"
        return None

    def _count(self, seconds: float) -> None:
        if self._first_end is None:
            self._first_end = self._clock()
        else:
            self._n_since_first += 1
            self._seconds_since_first += seconds

    def _overhead(self) -> float:
        """Seconds of a worker per run that no run accounts for; starting workers is not counted."""
        if self._first_end is None or self._n_since_first < FEWEST_RUNS_TO_JUDGE:
            return 0.0
        worked = (self._clock() - self._first_end) * self._n_workers
        return max(0.0, worked - self._seconds_since_first) / self._n_since_first

    def _rest(self) -> str:
        runs = list(self._left.values())
        left = seconds_left(runs, self._history, self._n_workers, is_rough=True)
        if not left or not runs:
            return ""
        left += self._overhead() * len(runs) / self._n_workers
        return f"; about {format_seconds(left)} left"

    def _watch(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            started = time.monotonic()
            self.report()
            # Never spend more than a tenth of the time looking, however many runs there are.
            self._stop.wait(9 * (time.monotonic() - started))
