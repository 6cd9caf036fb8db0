"""Prepare data sets: fetch what is missing, check it, fill the cache, and say what is there.

A run does the same by itself. Examples:

    python scripts/fetch_data.py adult
    python scripts/fetch_data.py acs_income acs_public_coverage states=[CA,TX]
    python scripts/fetch_data.py table path=mine.csv schema=mine.yaml
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

import yaml

from lumberjack_bench.configured import choices
from lumberjack_bench.datasets import Dataset, DatasetError, load
from lumberjack_bench.datasets.named import named_config
from lumberjack_bench.datasets.sources import data_folder


def describe(dataset: Dataset, folder: str) -> str:
    """Say in two lines what a data set holds, where it comes from, and in which data folder it is."""
    summary, source = dataset.summary(), dataset.source
    note = f" -- STAND-IN: {source.stand_in_note}" if source.is_stand_in else ""
    return (
        f"{dataset.name}: {summary.n_rows:,} rows, {summary.n_features} features "
        f"({summary.n_categorical} categorical), {summary.n_classes} classes, "
        f"majority {summary.majority:.1%}\n"
        f"    {source.description}{f' ({source.file})' if source.file else ''}; "
        f"data folder {folder}{note}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Prepare the data sets named on the command line; exit code 1 when one could not be had."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names",
        nargs="+",
        metavar="NAME|KEY=VALUE",
        help=f"data sets ({', '.join(choices('dataset'))}) and settings for all of them",
    )
    words = parser.parse_args(arguments).names
    names = [word for word in words if "=" not in word]
    if not names:
        parser.error(f"name a data set: {', '.join(choices('dataset'))}")
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    n_failed = 0
    for name in names:
        try:
            config = named_config(name, [word for word in words if "=" in word])
            print(describe(load(config), str(data_folder(config))), flush=True)
        except DatasetError as error:
            n_failed += 1
            print(f"error: {error}", file=sys.stderr)
        except yaml.YAMLError as error:
            n_failed += 1
            reason = " ".join(str(error).split())
            print(f"error: {name}: a KEY=VALUE is not YAML: {reason}", file=sys.stderr)
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
