"""Hydra's life cycle: what happens before the first job and after the last.

Hydra turns an exception of a callback into a warning and goes on, so everything that must end the
command leaves here as an :class:`Abort`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from hydra.core.global_hydra import GlobalHydra
from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, open_dict

from lumberjack_bench.config import (
    ConfigError,
    prepare_composing,
    read_run,
    read_settings,
)
from lumberjack_bench.methods import check_target
from lumberjack_bench.runs.execute import Outcome
from lumberjack_bench.runs.plan import Plan, PlannedRun, expand_sweep, unique
from lumberjack_bench.runs.provenance import available_cores
from lumberjack_bench.runs.sweep import Sweep, limit_threads, redo, status_text

# Workers import this module before they compose anything, and nothing else of ours.
prepare_composing()


class Abort(SystemExit):
    """Ends the command from inside a callback.

    Parameters
    ----------
    code : int
        Exit code.
    error : Exception or None
        What went wrong, for the command to report.
    """

    def __init__(self, code: int, error: Exception | None = None) -> None:
        super().__init__(code)
        self.error = error


class RunLifecycle(Callback):
    """Plans, opens and closes a sweep around Hydra's jobs.

    Parameters
    ----------
    intent : {"run", "status", "redo"}
        What the command is for.
    redo : str or None
        Hash of the run to be done again.
    """

    current: ClassVar[Sweep | None] = None
    """The sweep that is open in this process."""

    def __init__(self, intent: str = "run", redo: str | None = None) -> None:
        self._intent = intent
        self._redo = redo

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Check and announce a single run."""
        _or_abort(lambda: self._start_single(config))

    def on_run_end(self, config: DictConfig, job_return: JobReturn | None = None, **_: Any) -> None:
        """Report a single run."""
        if job_return is not None and job_return.status == JobStatus.COMPLETED:
            _or_abort(lambda: self._end([job_return.return_value]))

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Check, plan and announce a sweep."""
        _or_abort(lambda: self._start_sweep(config))

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Report a sweep."""
        _or_abort(lambda: self._end([]))

    def _start_single(self, config: DictConfig) -> None:
        if config.hydra.sweeper.get("params"):
            raise ConfigError("this experiment is a sweep; add -m to the command.")
        settings = read_settings(_without_hydra(config))
        run = read_run(_without_hydra(config))
        check_target(run.method["target"], settings.allow_targets)
        self._open(Sweep(Plan((PlannedRun(run),)), settings, n_workers=1))

    def _start_sweep(self, config: DictConfig) -> None:
        settings = read_settings(_without_hydra(config))
        plan = unique(expand_sweep(GlobalHydra.instance().config_loader(), config))
        n_workers = _concurrency(config)
        if self._intent == "status":
            print(status_text(plan, settings, n_workers))
            raise Abort(0)
        if self._intent == "redo":
            raise Abort(redo(str(self._redo), plan, settings))
        _divide_threads(config, n_workers)
        self._open(Sweep(plan, settings, n_workers))

    def _open(self, sweep: Sweep) -> None:
        sweep.open()
        RunLifecycle.current = sweep

    def _end(self, outcomes: list[Outcome]) -> None:
        sweep, RunLifecycle.current = RunLifecycle.current, None
        if sweep is None:
            return
        sweep.record(outcomes)
        code = sweep.close()
        if code:
            raise Abort(code)


def close_open_sweep(*, is_interrupted: bool) -> bool:
    """Close the sweep that is open in this process, if any.

    Parameters
    ----------
    is_interrupted : bool
        Whether the command was asked to stop.

    Returns
    -------
    bool
        Whether there was one.
    """
    sweep, RunLifecycle.current = RunLifecycle.current, None
    if sweep is None:
        return False
    sweep.close(is_interrupted=is_interrupted)
    return True


def _or_abort(step: Callable[[], None]) -> None:
    try:
        step()
    except Exception as error:
        raise Abort(2, error) from error


def _without_hydra(config: DictConfig) -> DictConfig:
    plain = config.copy()
    with open_dict(plain):
        plain.pop("hydra", None)
    return plain


def _concurrency(config: DictConfig) -> int:
    """Return how many jobs the chosen launcher does at a time."""
    launcher = config.hydra.launcher
    kind = str(launcher.get("_target_", ""))
    if kind.endswith("JoblibLauncher"):
        n_jobs = int(launcher.n_jobs)
        return n_jobs if n_jobs > 0 else max(1, available_cores() + 1 + n_jobs)
    if kind.endswith("SlurmLauncher"):
        return int(launcher.array_parallelism)
    if kind.endswith("LocalLauncher"):
        # submitit's local executor starts all jobs of an array at once.
        return max(1, available_cores() // int(launcher.get("cpus_per_task") or 1))
    return 1


def _divide_threads(config: DictConfig, n_workers: int) -> None:
    """Keep threads times workers within the cores, before any worker exists."""
    launcher = config.hydra.launcher
    kind = str(launcher.get("_target_", ""))
    if kind.endswith("JoblibLauncher"):
        limit_threads(max(1, available_cores() // n_workers))
    elif kind.endswith(("SlurmLauncher", "LocalLauncher")):
        limit_threads(int(launcher.get("cpus_per_task") or 1))
