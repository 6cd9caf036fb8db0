"""Show stored results in an MLflow tracking store, again or for the first time.

Result files are the truth; this rebuilds the view of them. Entries that are there are left alone.

Examples
--------
::

    python scripts/log_results.py
    python scripts/log_results.py results_dir=results tracking=server tracking.uri=http://127.0.0.1:5000
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import hydra

from lumberjack_bench.command import fails_in_one_line
from lumberjack_bench.config import ConfigError, read_settings, register_schema
from lumberjack_bench.runs.store import ResultStore
from lumberjack_bench.tracking import MlflowTracker

CONF_DIR = Path(__file__).resolve().parents[1] / "conf"


@fails_in_one_line
def main(overrides: Sequence[str]) -> int:
    """Show every result of a folder.

    Parameters
    ----------
    overrides : sequence of str
        As for ``run.py``: ``results_dir``, ``tracking``.

    Returns
    -------
    int
        Exit code.
    """
    register_schema()
    with hydra.initialize_config_dir(str(CONF_DIR), version_base="1.3"):
        config = hydra.compose("config", [*overrides, "sweep_id=log_results"])
    settings = read_settings(config)
    if settings.tracking["kind"] == "none":
        raise ConfigError("tracking=none shows nothing; choose tracking=sqlite or tracking=server.")
    store = ResultStore(settings.results_dir)
    results = list(store.results())
    if not results:
        raise ConfigError(f"no results in {str(settings.results_dir)!r}; give results_dir=FOLDER.")
    store.prepare()
    tracker = MlflowTracker(settings)
    tracker.open_sweep(None)
    n_added = tracker.sync(results)
    print(f"{len(results)} results, {n_added} of them new in {tracker.uri}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
