"""One command from its plan to its summary: the loop over runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lumberjack_bench import figures
from lumberjack_bench.config import ConfigError, Settings, dataset_identity
from lumberjack_bench.own_methods import source_version
from lumberjack_bench.results import accuracy_table, shown_metric, write_table
from lumberjack_bench.runs import progress
from lumberjack_bench.runs.execute import Outcome, load_rows, outcome_of
from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.isolation import stop_calls
from lumberjack_bench.runs.launch import Job, concurrency, launch
from lumberjack_bench.runs.plan import Plan
from lumberjack_bench.runs.progress import relative, say
from lumberjack_bench.runs.store import ResultStore
from lumberjack_bench.tracking import make_view

THREAD_VARIABLES = (
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


class Interrupted(BaseException):
    """The command was asked to stop."""


def sweep(plan: Plan, settings: Settings) -> int:
    """Do what is missing of a plan, and say how it went.

    Parameters
    ----------
    plan : Plan
        What is asked for.
    settings : Settings
        Where and how.

    Returns
    -------
    int
        The exit code: 0 when nothing is left to do and every result is shown.

    Raises
    ------
    ConfigError, StoreError, TrackingError
        When nothing can be run; nothing has been started then.
    BaseException
        The first failure of a run, if runs were asked to raise, and whatever stopped the command; what
        was done is kept and said before.
    """
    if settings.figure not in (None, *figures.FIGURES):
        listed = ", ".join(figures.FIGURES)
        raise ConfigError(f"there is no figure {settings.figure!r}; there are {listed}.")
    store, view = _store(settings), make_view(settings)
    n_workers, n_threads = concurrency(settings)
    store.prepare()
    store.note_asked({name: version for run in plan.runs for name, version in run.versions.items()})
    pending = plan.pending(store, settings.since)
    with store.lock(f"sweep-{settings.sweep_id}"):
        reporter = progress.Reporter(plan, pending, store, n_workers, settings.metric)
        reporter.announce(settings.sweep_dir)
        _load_data(pending)
        is_shown = not pending and view.is_in_step(_results(plan, store))
        if not is_shown:
            view.open(_description(pending) if pending else None)
        _limit_threads(n_threads)
        outcomes, ended_by = {}, None
        jobs = {
            run.hash: (run, settings, n_threads, str(settings.log_file(number, run)))
            for number, run in enumerate(pending)
        }
        try:
            for outcome in _ends_of(jobs, settings, n_workers):
                result = store.finished(outcome.run_hash)
                outcomes[outcome.run_hash] = outcome
                reporter.report(outcome, result)
                view.show(jobs[outcome.run_hash][0], outcome, result)
        except BaseException as error:
            stop_calls()
            ended_by = error
        ended = [
            outcomes[run.hash] if run.hash in outcomes else _end_of(run, run.hash in jobs, settings)
            for run in plan.runs
        ]
        results = _results(plan, store)
        is_good = all(outcome.is_good for outcome in ended)
        ending = "KILLED" if ended_by else "FINISHED" if is_good else "FAILED"
        problem = "" if is_shown else view.close(ending, results)
        # Said before the table is written, so that a full disk does not hide what happened.
        progress.summarise(ended, problem, settings)
        metric = shown_metric(results, settings.metric)
        if results:
            say("\n" + accuracy_table(results, metric))
        say(f"\nTable of all runs: {relative(write_table(store))}")
        is_drawn = _draw(plan, settings, store, metric) if is_good and settings.figure else True
    if ended_by is not None:
        raise ended_by
    return 0 if is_good and is_drawn and not problem else 1


def _ends_of(jobs: Mapping[str, Job], settings: Settings, n_workers: int) -> Iterator[Outcome]:
    """Launch jobs and yield how each ended; those lost with their worker are tried once more, alone."""
    lost = []
    if jobs:
        for outcome in launch(list(jobs.values()), settings, n_workers):
            if outcome.status == "lost":
                lost.append(jobs[outcome.run_hash])
            else:
                yield outcome
    for job in lost:
        yield from launch([job], settings, 1)


def _end_of(run: RunConfig, was_pending: bool, settings: Settings) -> Outcome:
    """Return how a run ended of which the launcher did not tell: done before, or stopped midway."""
    store = _store(settings)
    record = store.settled(run.hash, settings.since) or store.reason(run.hash)
    if record is None or (was_pending and record["sweep_id"] != settings.sweep_id):
        return Outcome(run.hash, str(run), "not started")
    log_file = record.get("log_file", "")
    return outcome_of(run, record, is_earlier=not was_pending, log_file=log_file)


def _store(settings: Settings) -> ResultStore:
    return ResultStore(settings.results_dir, needs_predictions=settings.keeps_predictions)


def _results(plan: Plan, store: ResultStore) -> list[dict[str, Any]]:
    return [r for run in plan.runs if (r := store.finished(run.hash)) is not None]


def _description(pending: tuple[RunConfig, ...]) -> str:
    datasets = ", ".join(dict.fromkeys(run.dataset["name"] for run in pending))
    methods = ", ".join(dict.fromkeys(run.method.name for run in pending))
    return f"{len(pending)} runs: {methods} on {datasets}"


def _load_data(pending: tuple[RunConfig, ...]) -> None:
    """Load each data set once here, so that runs find it in the cache and errors come early.

    When some can be had, their runs go on and the others fail one by one.
    """
    datasets = {run.dataset_identity: run.dataset for run in pending}
    problems = []
    for dataset in datasets.values():
        try:
            load_rows(dataset)
        except Exception as error:
            problems.append(str(error) or type(error).__name__)
    if problems and len(problems) == len(datasets):
        raise ConfigError("\n".join(problems))
    for problem in problems:
        say(f"warning: {problem}")


def _draw(plan: Plan, settings: Settings, store: ResultStore, metric: str) -> bool:
    """Draw what the experiment is for, from the table; return whether that worked."""
    figure = str(settings.figure)
    names = list(dict.fromkeys(run.dataset["name"] for run in plan.runs))
    try:
        for path in figures.draw(figure, store.folder, metric=metric, datasets=names):
            say(f"Drawn: {relative(path)}")
        methods = list(dict.fromkeys(run.method.name for run in plan.runs))
        if left_out := figures.not_in(figure, names, methods):
            say(
                f"Not in {figure}, which has data sets and methods of its own: {', '.join(left_out)}. "
                f"For all: figure=accuracy. For some: python scripts/make_figures.py {figure} "
                "--datasets NAME,NAME --methods NAME,NAME"
            )
    except Exception as error:
        say(
            f"warning: {figure} was not drawn: {type(error).__name__}: {error}. The results are "
            f"safe; try python scripts/make_figures.py {figure}"
        )
        return False
    return True


def redo(run_hash: str, plan: Plan, settings: Settings) -> int:
    """Do one run again, whether or not it has a result.

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
    known = {run.hash: run for run in plan.runs}
    for record in (*store.results(), *store.reasons()):
        known.setdefault(record["run_hash"], RunConfig.from_dict(record["run"]))
    found = [name for name in known if name.startswith(run_hash)]
    if len(found) != 1:
        raise ConfigError(
            f"{len(found) or 'no'} runs have a hash that starts with {run_hash!r}. --status --all and "
            f"{settings.results_dir / 'results.csv'} list the hashes."
        )
    run = known[found[0]]
    now = replace(
        run,
        dataset_identity=dataset_identity(run.dataset),
        method_version=source_version(run.method.target),
    )
    if now.hash != found[0]:
        raise ConfigError(
            f"the data or the method of run {found[0]} ({run}) changed since, or the format of results did; it "
            "cannot be done again as it was. Run it anew with its settings."
        )
    return sweep(Plan((run,)), replace(settings, is_forced=True, launcher={"kind": "serial"}))


def _limit_threads(threads: int) -> None:
    """Let processes that start from now on use so many threads each; a user's own limits stay."""
    for name in THREAD_VARIABLES:
        os.environ.setdefault(name, str(threads))
