"""Show stored results in an MLflow tracking store, again or for the first time.

Result files are the truth; this rebuilds the view of them. Entries that are there are left alone.

Examples
--------
::

    python scripts/log_results.py
    python scripts/log_results.py results_dir=results tracking=server tracking.uri=http://127.0.0.1:5000
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lumberjack_bench.command import compose_one, fails_in_one_line
from lumberjack_bench.config import ConfigError, read_settings
from lumberjack_bench.runs.store import ResultStore
from lumberjack_bench.tracking import MlflowView

CONF_DIR = Path(__file__).resolve().parents[1] / "conf"


@fails_in_one_line
def main(arguments: Sequence[str]) -> int:
    """Show every result of the folder asked for by overrides as for ``run.py``."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="results_dir=..., ...")
    given = parser.parse_args(arguments)
    settings = read_settings(compose_one([*given.overrides, "sweep_id=log_results"], CONF_DIR))
    if settings.tracking.kind == "none":
        raise ConfigError("tracking=none shows nothing; choose tracking=sqlite or tracking=server.")
    store = ResultStore(settings.results_dir)
    results = list(store.results())
    if not results:
        raise ConfigError(f"no results in {str(settings.results_dir)!r}; give results_dir=FOLDER.")
    store.prepare()
    view = MlflowView(settings)
    view.open(None)
    n_added = view.sync(results)
    print(f"{len(results)} results, {n_added} of them new in {view.uri}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
