"""A Hydra sweeper that launches only what is missing.

Hydra finds plugins by the name of this package. The plan, with every combination composed and
checked, is made by :mod:`lumberjack_bench.callbacks` before.
"""

from __future__ import annotations

from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.types import HydraContext


class ResumingSweeper(BasicSweeper):
    """The basic sweeper, except that finished runs and repeated combinations start no job.

    A job that returned nothing because its worker died is noted, and the sweep still gets its
    summary.
    """

    def sweep(self, arguments: list[str]) -> Any:
        """Launch the runs of the plan that have no result.

        Parameters
        ----------
        arguments : list of str
            Overrides; the plan was made from the same.

        Returns
        -------
        list
            What the launcher returned.

        Raises
        ------
        Exception
            The first failure of a run, if runs were asked to raise.
        """
        # Hydra imports every plugin of every command, so what takes long waits until it is used.
        from lumberjack_bench.callbacks import RunLifecycle
        from lumberjack_bench.runs.compose import Composer

        sweep = RunLifecycle.current
        if sweep is None or not sweep.pending:
            return []
        assert self.launcher is not None
        assert self.hydra_context is not None
        self.launcher.hydra_context = HydraContext(  # type: ignore[attr-defined]
            config_loader=Composer(self.hydra_context.config_loader),
            callbacks=self.hydra_context.callbacks,
        )
        jobs = [list(planned.overrides) for planned in sweep.pending]
        try:
            returned = self.launcher.launch(jobs, initial_job_idx=0)
        except Exception as error:
            sweep.record_launcher_problem(error)
            sweep.wait_for_survivors()
            return []
        failures = []
        for planned, job in zip(sweep.pending, returned, strict=True):
            try:
                sweep.record([job.return_value])
            except Exception as error:
                failures.append(sweep.with_traceback(error, planned.run))
        if failures:
            raise failures[0]
        return [returned]
