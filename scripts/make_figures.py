"""Make figures and tables again, from the results table.

No method is trained for figures 3 and 4, accuracy, suite and report: they show what the table holds.
Figure 1 fits small forests on generated points, figure 2 and heavy_hitters_error run the search
itself, table1 loads the data sets. Examples:

    python scripts/make_figures.py figure3 --out DIR
    python scripts/make_figures.py figure3 --datasets adult --methods lumberjack,snr,majority
    python scripts/make_figures.py suite --metric roc_auc
    python scripts/make_figures.py table1 stand_in_dir=DIR
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from lumberjack_bench.datasets import DatasetError
from lumberjack_bench.figures import FIGURES, FigureError, Request, make
from lumberjack_bench.figures.request import METRIC
from lumberjack_bench.metrics import METRICS


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the figures named on the command line; return 2 when one could not be made."""
    listed = "\n".join(f"    {name:<20} {figure.about}" for name, figure in FIGURES.items())
    parser = argparse.ArgumentParser(
        description=f"{__doc__}\nfigures:\n{listed}\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names",
        nargs="+",
        metavar="FIGURE|KEY=VALUE",
        help="figures, and settings of data sets for table1",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="default: the folder of the results table"
    )
    parser.add_argument("--results", type=Path, default=Path("results/results.csv"), metavar="FILE")
    parser.add_argument("--datasets", default="", metavar="NAME,NAME", help="show only these")
    parser.add_argument("--methods", default="", metavar="NAME,NAME", help="show only these")
    parser.add_argument("--metric", default=METRIC, help=f"one of {', '.join(METRICS)}")
    given = parser.parse_intermixed_args(arguments)
    names = [word for word in given.names if "=" not in word]
    if not names:
        parser.error(f"name a figure: {', '.join(FIGURES)}")
    results = given.results / "results.csv" if given.results.is_dir() else given.results
    request = Request(
        results=results,
        out=given.out if given.out is not None else results.parent,
        datasets=_split(given.datasets),
        methods=_split(given.methods),
        metric=given.metric,
        overrides=tuple(word for word in given.names if "=" in word),
    )
    # One that does not exist stops all before anything is made.
    unknown = [name for name in names if name not in FIGURES]
    n_failed = 0
    for name in unknown[:1] or names:
        try:
            for path in make(name, request):
                print(path)
            continue
        except (FigureError, DatasetError) as error:
            problem = str(error)
        except yaml.YAMLError as error:
            problem = f"{name}: a KEY=VALUE is not YAML: {' '.join(str(error).split())}"
        except OSError as error:
            where = str(error.filename or request.out)
            problem = (
                f"{name}: cannot write {where!r}: {error.strerror or error}. "
                "Choose another folder with --out DIR."
            )
        n_failed += 1
        print(f"error: {problem}", file=sys.stderr)
    return 2 if n_failed else 0


def _split(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


if __name__ == "__main__":
    sys.exit(main())
