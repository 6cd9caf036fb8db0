"""Draft a schema file for a table; print it.

    python scripts/draft_schema.py mine.csv --label outcome > mine.yaml

The draft fits the table as it stands; what was left out, taken for missing or looks odd is said
in its comments. Values that were read from the rows are marked "# check: read from data": replace
or confirm each by public knowledge before relying on a privacy guarantee.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lumberjack_bench.datasets import DatasetError
from lumberjack_bench.datasets.draft import MARK, draft_schema


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the draft for the table named on the command line; return 2 when it cannot be read."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="csv (or tsv, .csv.gz) or parquet file")
    parser.add_argument("--label", required=True, metavar="COLUMN", help="the column to predict")
    parser.add_argument(
        "--decimal", default=".", metavar="SIGN", help="decimal sign of numbers in text, . or ,"
    )
    given = parser.parse_args(arguments)
    try:
        draft = draft_schema(given.file, given.label, decimal=given.decimal)
    except DatasetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    sys.stdout.buffer.write(draft.text.encode("utf-8"))
    for note in draft.notes:
        print(note, file=sys.stderr)
    print(f"{draft.text.count(MARK) - 1} values are marked {MARK!r}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
