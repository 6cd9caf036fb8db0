"""What starts the runs of a sweep: this process, this machine's cores, submitit (SLURM), or Dask.

A backend takes jobs and yields their outcomes as they come. The method itself always runs in a
process of its own (:mod:`lumberjack_bench.runs.isolation`), wherever the job is done.
"""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lumberjack_bench.config import ConfigError, Settings
from lumberjack_bench.runs.execute import Outcome, execute
from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.provenance import available_cores

Job = tuple[RunConfig, Settings, int, str]
"""The arguments of :func:`lumberjack_bench.runs.execute.execute`."""

POLL_SECONDS = 0.3
CONNECT_SECONDS = 10


def concurrency(settings: Settings) -> tuple[int, int]:
    """Return how many runs are done at a time, and how many threads each may use."""
    launcher, cores = settings.launcher, available_cores()
    kind = _kind(launcher)
    if kind == "serial":
        return 1, cores
    if kind == "joblib":
        n_workers = settings.n_workers if settings.n_workers > 0 else cores
        return n_workers, max(1, cores // n_workers)
    if kind == "submitit":
        n_threads = int(launcher.get("cpus_per_task") or 1)
        at_once = launcher.get("slurm_array_parallelism") or max(1, cores // n_threads)
        return int(at_once), n_threads
    with _client(launcher) as client:
        n_workers = sum(client.nthreads().values())
    return max(1, n_workers), int(launcher.get("threads_per_run") or 1)


def launch(jobs: Sequence[Job], settings: Settings, n_workers: int) -> Iterator[Outcome]:
    """Do jobs and yield how each ended.

    Parameters
    ----------
    jobs : sequence of Job
        At least one.
    settings : Settings
        With the launcher.
    n_workers : int
        Jobs at a time, where that is ours to say.

    Yields
    ------
    Outcome
        In the order in which they end; "lost" where the worker of a job died with it.
    """
    yield from _BACKENDS[_kind(settings.launcher)](jobs, settings, n_workers)


def _kind(launcher: Mapping[str, Any]) -> str:
    kind = str(launcher.get("kind"))
    if kind not in _BACKENDS:
        raise ConfigError(f"launcher.kind must be one of {', '.join(_BACKENDS)}, got {kind!r}.")
    return kind


def _one_by_one(jobs: Sequence[Job], settings: Settings, n_workers: int) -> Iterator[Outcome]:
    for job in jobs:
        yield execute(*job)


def _on_cores(jobs: Sequence[Job], settings: Settings, n_workers: int) -> Iterator[Outcome]:
    from joblib import Parallel, delayed

    # It warns of tasks that a stopped sweep leaves; the summary names them.
    warnings.filterwarnings("ignore", category=UserWarning, module="joblib.parallel")
    # Threads are enough: each waits for the process of its run.
    parallel = Parallel(n_jobs=n_workers, prefer="threads", return_as="generator_unordered")
    yield from parallel(delayed(execute)(*job) for job in jobs)


def _by_submitit(jobs: Sequence[Job], settings: Settings, n_workers: int) -> Iterator[Outcome]:
    submitit = _needed("submitit", "slurm")
    options = {k: v for k, v in settings.launcher.items() if k not in ("kind", "cluster")}
    folder = settings.sweep_dir / "submitit" / "%j"
    executor = submitit.AutoExecutor(folder=folder, cluster=settings.launcher["cluster"])
    try:
        executor.update_parameters(**options)
    except (NameError, TypeError) as error:
        raise ConfigError(f"launcher: {' '.join(str(error).split())}") from error
    # A cluster has its own queue; the local executor would start all at once.
    at_once = n_workers if settings.launcher["cluster"] == "local" else len(jobs)
    waiting: list[Job] = list(jobs)
    submitted: dict[Any, Job] = {}
    try:
        while waiting or submitted:
            n_fresh = max(0, at_once - len(submitted))
            fresh, waiting = waiting[:n_fresh], waiting[n_fresh:]
            if fresh:
                try:
                    handles = executor.map_array(execute, *zip(*fresh, strict=True))
                except submitit.core.utils.FailedJobError as error:
                    reason = str(error).strip().splitlines()[-1]
                    raise ConfigError(
                        f"SLURM took no jobs: {reason}. Does sinfo answer? Here: launcher=joblib."
                    ) from error
                submitted |= dict(zip(handles, fresh, strict=True))
            for handle in [handle for handle in submitted if handle.done()]:
                yield _outcome(submitted.pop(handle), handle.result)
            time.sleep(POLL_SECONDS)
    finally:
        for handle in submitted:
            handle.cancel()


def _on_dask(jobs: Sequence[Job], settings: Settings, n_workers: int) -> Iterator[Outcome]:
    distributed = _needed("distributed", "dask")
    with _client(settings.launcher) as client:
        waiting = {client.submit(execute, *job, pure=False): job for job in jobs}
        for future in distributed.as_completed(list(waiting), loop=client.loop):
            yield _outcome(waiting[future], future.result)


def _outcome(job: Job, result: Callable[[], Outcome]) -> Outcome:
    """Return how a job ended; where its worker died there is no result, but an error to say so."""
    run, settings, _, log_file = job
    try:
        return result()
    except Exception as error:
        if settings.is_raising:
            raise
        lines = str(error).strip().splitlines() or [""]
        return Outcome(run.hash, str(run), "lost", f"{type(error).__name__}: {lines[0]}", log_file)


def _client(launcher: Mapping[str, Any]) -> Any:
    distributed = _needed("distributed", "dask")
    if not launcher.get("address"):
        raise ConfigError("launcher=dask needs launcher.address=tcp://HOST:PORT of the scheduler.")
    try:
        return distributed.Client(
            launcher["address"], timeout=CONNECT_SECONDS, set_as_default=False
        )
    except (OSError, ValueError) as error:
        raise ConfigError(f"no Dask scheduler at {launcher['address']}: {error}") from error


def _needed(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"this launcher needs {module}: pip install -c constraints.txt -e '.[bench,{extra}]'"
        ) from error


_BACKENDS: dict[str, Callable[[Sequence[Job], Settings, int], Iterator[Outcome]]] = {
    "serial": _one_by_one,
    "joblib": _on_cores,
    "submitit": _by_submitit,
    "dask": _on_dask,
}
