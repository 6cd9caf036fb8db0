"""One command from its plan to its summary: what is said, what is made ready, how it ends.

Hydra starts the jobs in between; see :mod:`lumberjack_bench.callbacks`.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import shlex
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from lumberjack_bench.config import ConfigError, Settings, dataset_identity
from lumberjack_bench.results import accuracy_table, data_version, write_table
from lumberjack_bench.runs.execute import Outcome, execute, load_rows
from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.plan import Plan, PlannedRun, format_seconds, seconds_left
from lumberjack_bench.runs.progress import Progress
from lumberjack_bench.runs.provenance import available_cores
from lumberjack_bench.runs.store import ResultStore
from lumberjack_bench.tracking import make_tracker

THREAD_VARIABLES = (
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
THREADS_PER_RUN = "LUMBERJACK_THREADS"

SURVIVOR_GRACE_SECONDS = 3.0
"""How long no run may be at work before a sweep whose launcher gave up is closed."""

STATUSES = ("ok", "skipped", "failed", "timed out", "lost", "not started")


class Sweep:
    """The runs of one command.

    Parameters
    ----------
    plan : Plan
        What is asked for.
    settings : Settings
        Where and how.
    n_workers : int
        Runs at a time.
    """

    def __init__(self, plan: Plan, settings: Settings, n_workers: int) -> None:
        self.plan = plan
        self.settings = settings
        self.n_workers = n_workers
        self.store = ResultStore(settings.results_dir)
        self.pending: tuple[PlannedRun, ...] = ()
        self._tracker = make_tracker(settings)
        self._outcomes: dict[str, Outcome] = {}
        self._launcher_problem = ""
        self._held = ExitStack()
        self._progress: Progress | None = None

    def open(self) -> None:
        """Say what is planned and make everything ready for workers.

        Raises
        ------
        ConfigError, StoreError, TrackingError
            When nothing can be run; nothing has been started then.
        """
        self.store.prepare()
        runs = [planned.run for planned in self.plan.runs]
        self.store.note_asked({run.dataset["name"]: data_version(run.to_dict()) for run in runs})
        self.pending = self.plan.pending(self.store, self.settings.is_forced)
        self._held.enter_context(self.store.lock(f"sweep-{self.settings.sweep_id}"))
        try:
            self._announce()
            self._load_data()
            self._tracker.open_sweep(self._description() if self.pending else None)
        except BaseException:
            self._held.close()
            raise
        if self.pending:
            self._progress = Progress(
                self.store,
                [planned.run for planned in self.pending],
                n_done=len(self.plan.runs) - len(self.pending),
                history=list(self.store.results()),
                n_workers=self.n_workers,
                sweep_id=self.settings.sweep_id,
                write=_say,
            )
            self._progress.__enter__()

    def record(self, outcomes: Iterable[Outcome]) -> None:
        """Note how jobs ended.

        Parameters
        ----------
        outcomes : iterable of Outcome
            What they returned.
        """
        self._outcomes.update({outcome.run_hash: outcome for outcome in outcomes})

    def with_traceback(self, error: Exception, run: RunConfig) -> Exception:
        """Give an exception that lost its traceback on the way from a worker the stored one.

        Parameters
        ----------
        error : Exception
            What a job raised.
        run : RunConfig
            Its run.

        Returns
        -------
        Exception
            The same.
        """
        failure = self.store.read_failure(run.hash)
        if failure is not None and "execute.py" not in "".join(traceback.format_exception(error)):
            error.add_note(failure["traceback"])
        return error

    def record_launcher_problem(self, error: BaseException) -> None:
        """Note that the launcher gave up, so some jobs returned nothing.

        Parameters
        ----------
        error : BaseException
            What it raised.
        """
        lines = str(error).strip().splitlines() or [""]
        self._launcher_problem = f"{type(error).__name__}: {lines[0]}"

    def wait_for_survivors(self) -> None:
        """Wait for runs that other processes are still doing.

        submitit gives up at the first job that died, while its other jobs go on.
        """
        quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < SURVIVOR_GRACE_SECONDS:
            unsettled = (p.run.hash for p in self.pending if not self._is_settled(p.run))
            if any(self.store.is_locked(run_hash) for run_hash in unsettled):
                quiet_since = time.monotonic()
            time.sleep(0.2)

    def _is_settled(self, run: RunConfig) -> bool:
        record = self.store.read(run.hash) or self.store.read_failure(run.hash)
        return record is not None and record["sweep_id"] == self.settings.sweep_id

    def close(self, is_interrupted: bool = False) -> int:
        """Write the table, complete the tracking store and say how everything went.

        Parameters
        ----------
        is_interrupted : bool
            Whether the command was asked to stop.

        Returns
        -------
        int
            The exit code: 0 when every run has a result and is shown.

        Raises
        ------
        StoreError
            When the table cannot be written.
        """
        with self._held:
            if self._progress is not None:
                self._progress.__exit__()
                self._progress = None
            outcomes = [self._outcome(planned.run) for planned in self.plan.runs]
            results = [
                result
                for planned in self.plan.runs
                if (result := self.store.read(planned.run.hash)) is not None
            ]
            is_good = all(outcome.is_good for outcome in outcomes)
            ending = "KILLED" if is_interrupted else "FINISHED" if is_good else "FAILED"
            problem = self._tracker.close_sweep(ending, results)
            # Said before the table is written, so that a full disk does not hide what happened.
            self._summarise(outcomes, problem)
            if results:
                _say("\n" + accuracy_table(results))
            table = write_table(self.store)
            _say(f"\nTable of all runs: {_relative(table)}")
            is_drawn = self._draw() if is_good and self.settings.figure else True
        return 0 if is_good and is_drawn and not problem else 1

    def _announce(self) -> None:
        n_all, n_left = len(self.plan.runs), len(self.pending)
        served = (
            f" ({self.plan.n_served} more combinations are the same)" if self.plan.n_served else ""
        )
        done = "none done yet" if n_left == n_all else f"{n_all - n_left} done"
        _say(f"Plan: {n_all} run{'s' * (n_all != 1)}{served}, {done}.")
        if self.pending:
            left = seconds_left(
                [planned.run for planned in self.pending], self.store.results(), self.n_workers
            )
            guess = f", about {format_seconds(left)}" if left else ""
            _say(
                f"Doing {n_left} with {self.n_workers} at a time{guess}. "
                f"Logs: {_relative(self.settings.sweep_dir)}"
            )

    def _description(self) -> str:
        datasets = ", ".join(dict.fromkeys(p.run.dataset["name"] for p in self.pending))
        methods = ", ".join(dict.fromkeys(p.run.method["name"] for p in self.pending))
        return f"{len(self.pending)} runs: {methods} on {datasets}"

    def _load_data(self) -> None:
        """Load each data set once here, so that workers find it in the cache and errors come early.

        When some can be had, their runs go on and the others fail one by one.
        """
        configs = {json.dumps(p.run.dataset, sort_keys=True) for p in self.pending}
        problems = []
        for config in sorted(configs):
            try:
                load_rows(config)
            except Exception as error:
                problems.append(str(error) or type(error).__name__)
        if problems and len(problems) == len(configs):
            raise ConfigError("\n".join(problems))
        for problem in problems:
            _say(f"warning: {problem}")

    def _draw(self) -> bool:
        """Draw what the experiment is for, from the table; return whether that worked."""
        try:
            figures = importlib.import_module("lumberjack_bench.figures")
            for path in figures.draw(self.settings.figure, self.store.folder):
                _say(f"Drawn: {_relative(path)}")
        except Exception as error:
            _say(
                f"warning: {self.settings.figure} was not drawn: {type(error).__name__}: {error}. "
                f"The results are safe; try python scripts/make_figures.py {self.settings.figure}"
            )
            return False
        return True

    def _outcome(self, run: RunConfig) -> Outcome:
        if (known := self._outcomes.get(run.hash)) is not None:
            return known
        is_pending = any(planned.run.hash == run.hash for planned in self.pending)
        result = self.store.read(run.hash)
        if result is not None and not (self.settings.is_forced and is_pending):
            return Outcome(run.hash, str(run), "ok" if is_pending else "skipped")
        if result is not None and result["sweep_id"] == self.settings.sweep_id:
            return Outcome(run.hash, str(run), "ok")
        failure = self.store.read_failure(run.hash)
        if failure is not None and failure["sweep_id"] == self.settings.sweep_id:
            return Outcome(
                run.hash, str(run), failure["status"], failure["reason"], failure["log_file"]
            )
        if self._launcher_problem:
            return Outcome(run.hash, str(run), "lost", self._launcher_problem)
        return Outcome(run.hash, str(run), "not started")

    def _summarise(self, outcomes: list[Outcome], tracking_problem: str) -> None:
        counts = Counter(outcome.status for outcome in outcomes)
        names = {"skipped": "done before"}
        shown = [f"{counts[s]} {names.get(s, s)}" for s in STATUSES if counts[s]]
        _say(f"\nRuns: {', '.join(shown)}.")
        for outcome in outcomes:
            if outcome.is_good or outcome.status == "not started":
                continue
            _say(f"  {outcome.status.upper()} {outcome.title}: {outcome.reason}")
            if outcome.log_file:
                _say(f"    log: {_relative(Path(outcome.log_file))}")
        if not all(outcome.is_good for outcome in outcomes):
            _say("  The same command again does what is missing or failed, and nothing else.")
        if tracking_problem:
            _say(f"warning: {tracking_problem}")
            again = shlex.join(
                ["python", "scripts/log_results.py", f"results_dir={self.settings.results_dir}"]
            )
            _say(f"  To show them later: {again}")


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
    pending = {planned.run.hash for planned in plan.pending(store)}
    lines, counts = [], Counter[str]()
    for planned in plan.runs:
        run = planned.run
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
    left = seconds_left(
        [p.run for p in plan.runs if p.run.hash in pending], store.results(), n_workers
    )
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


def redo(run_hash: str, plan: Plan, settings: Settings) -> int:
    """Do one run again, here and now, whether or not it has a result.

    Parameters
    ----------
    run_hash : str
        Hash of the run, or its first digits.
    plan : Plan
        Where to look for it first; then the results folder is searched.
    settings : Settings
        Where and how.

    Returns
    -------
    int
        The exit code.

    Raises
    ------
    ConfigError
        When there is no such run, or it can no longer be done as it was.
    """
    store = ResultStore(settings.results_dir)
    known = {planned.run.hash: planned.run for planned in plan.runs}
    for record in (*store.results(), *store.failures()):
        known.setdefault(record["run_hash"], RunConfig(**record["run"]))
    found = [run for name, run in known.items() if name.startswith(run_hash)]
    if len(found) != 1:
        raise ConfigError(
            f"{len(found) or 'no'} runs have a hash that starts with {run_hash!r}. --status and "
            f"{settings.results_dir / 'results.csv'} list the hashes."
        )
    run = found[0]
    now = RunConfig(**{**run.to_dict(), "dataset_identity": dataset_identity(run.dataset)})
    if now.hash != run_hash and not now.hash.startswith(run_hash):
        raise ConfigError(
            f"the data of run {run.hash} ({run}) changed since, or the format of results did; it "
            "cannot be done again as it was. Run it anew with its settings."
        )
    forced = replace(settings, is_forced=True)
    sweep = Sweep(Plan((PlannedRun(run),)), forced, n_workers=1)
    sweep.open()
    try:
        log_file = settings.sweep_dir / f"redo-{run.hash}" / "run.log"
        log_file.parent.mkdir(parents=True, exist_ok=True)
        logging.basicConfig(filename=log_file, level=logging.INFO, force=True)
        tracker = make_tracker(forced)
        sweep.record(
            [execute(run, forced, tracker, n_jobs=threads_per_run(), log_file=str(log_file))]
        )
    except BaseException:
        sweep.close(is_interrupted=True)
        raise
    return sweep.close()


def limit_threads(threads: int) -> None:
    """Let processes that start from now on use so many threads each; a user's own limits stay.

    Parameters
    ----------
    threads : int
        Threads per run.
    """
    for name in (*THREAD_VARIABLES, THREADS_PER_RUN):
        os.environ.setdefault(name, str(threads))


def threads_per_run() -> int:
    """Return how many threads a run in this process may use.

    Returns
    -------
    int
    """
    text = os.environ.get(THREADS_PER_RUN, "")
    return int(text) if text.isdigit() and int(text) > 0 else available_cores()


def _say(line: str) -> None:
    print(line, flush=True)


def _relative(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
