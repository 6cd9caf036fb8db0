"""Compare two methods split by split: wins, mean difference with its interval, Wilcoxon test.

All methods of a repetition see the same split, so differences are paired. From the results table
alone. Examples:

    python scripts/compare.py lumberjack snr
    python scripts/compare.py guided_lumberjack lumberjack --datasets adult --csv wins.csv
    python scripts/compare.py smooth_sensitivity:paper smooth_sensitivity:corrected
    python scripts/compare.py lumberjack,n_estimators=30 extra_trees --interval bootstrap
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from lumberjack_bench.figures.comparison import (
    FEWEST_FOR_WILCOXON,
    Comparison,
    Result,
    compare,
)
from lumberjack_bench.figures.request import FigureError, read_results
from lumberjack_bench.figures.style import write_whole

INTERVAL_NAMES = {
    "t": "Student's t, for a bounded metric on the log-odds scale of what a difference can be",
    "bootstrap": "BCa bootstrap",
}

CSV_COLUMNS = (
    "dataset",
    "data_source",
    "a",
    "b",
    "eps",
    "n_pairs",
    "mean_a",
    "mean_b",
    "difference",
    "lower",
    "upper",
    "interval",
    "wilcoxon_p",
    "wins",
    "ties",
    "losses",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the comparison asked for on the command line.

    Parameters
    ----------
    arguments : sequence of str or None
        Command line; None takes the process's own.

    Returns
    -------
    int
        Exit code.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("a", help="METHOD[:MODE][,KEY=VALUE...]")
    parser.add_argument("b", help="the same form")
    parser.add_argument("--results", type=Path, default=Path("results/results.csv"))
    parser.add_argument("--metric", default="accuracy", help="larger counts as better")
    parser.add_argument("--datasets", default="", metavar="NAME,NAME", help="default: all")
    parser.add_argument(
        "--interval",
        choices=("t", "bootstrap"),
        default="t",
        help="Student's t (default), or BCa bootstrap of the pairs, which is narrow for few pairs",
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the table there too")
    given = parser.parse_args(arguments)
    try:
        table = read_results(given.results, f"python run.py -m method={given.a},{given.b}")
        result = compare(
            table,
            given.a,
            given.b,
            metric=given.metric,
            datasets=[name for name in given.datasets.split(",") if name],
            interval=given.interval,
        )
        if given.csv is not None:
            write_whole(given.csv, as_csv(result, given.a, given.b, given.interval))
    except FigureError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        where = str(error.filename or given.csv)
        print(f"error: cannot write {where!r}: {error.strerror or error}", file=sys.stderr)
        return 2
    print(as_text(result, given.a, given.b, given.interval))
    return 0


def as_text(result: Result, a: str, b: str, interval: str) -> str:
    """Write a comparison as a table for a person.

    Parameters
    ----------
    result : Result
        What was compared.
    a, b : str
        Names of the two methods.
    interval : {"t", "bootstrap"}
        Kind of the intervals.

    Returns
    -------
    str
    """
    header = [
        "data set", "eps", "pairs", "a", "b", "a - b", "95 % interval", "won-tied-lost",
        "p", "better",
    ]  # fmt: skip
    rows = [header]
    previous = None
    for item in result.comparisons:
        place = (item.dataset, item.data_source)
        rows.append([item.dataset if place != previous else "", *_cells(item)])
        previous = place
    widths = [max(len(row[j]) for row in rows) for j in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(width) if j == 0 else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "-" * len(lines[0]))
    cells = [item for item in result.comparisons if item.eps is not None]
    n_a = sum(item.difference.mean > 0 for item in cells)
    n_b = sum(item.difference.mean < 0 for item in cells)
    sure_a, sure_b = (sum(item.winner == side for item in cells) for side in "ab")
    summary = [
        f"a = {a}, b = {b}",
        *dict.fromkeys(f"{c.dataset}: {c.data_source}" for c in result.comparisons),
        "",
        *lines,
        "",
        f"{a} has the higher mean in {n_a} of {len(cells)} rows (interval above 0 in {sure_a}), "
        f"{b} in {n_b} (interval below 0 in {sure_b}).",
        f"Intervals: {INTERVAL_NAMES[interval]}, of the mean paired "
        "difference. Splits share rows, so intervals and p are somewhat optimistic.",
    ]
    fewest = min(item.n_pairs for item in result.comparisons)
    if fewest < FEWEST_FOR_WILCOXON:
        summary.append(
            f"p: two-sided Wilcoxon signed-rank; with {fewest} pairs it cannot fall below "
            f"{2.0 ** (1 - fewest):.4g}. More repetitions: n_repeats=10."
        )
    else:
        summary.append("p: two-sided Wilcoxon signed-rank, not corrected for several rows.")
    return "\n".join([*summary, *(f"skipped: {line}" for line in result.skipped)])


def as_csv(result: Result, a: str, b: str, interval: str) -> str:
    """Write a comparison as csv.

    Parameters
    ----------
    result : Result
        What was compared.
    a, b : str
        Names of the two methods.
    interval : {"t", "bootstrap"}
        Kind of the intervals.

    Returns
    -------
    str
        ``eps`` is "all" in rows that average each split over eps, "inf" for two references.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for item in result.comparisons:
        numbers = (
            item.mean_a,
            item.mean_b,
            item.difference.mean,
            item.difference.lower,
            item.difference.upper,
        )
        shown = [f"{number:.10g}" for number in numbers]
        place = (item.dataset, item.data_source, a, b, _eps(item), item.n_pairs)
        counts = (item.wins, item.ties, item.losses)
        writer.writerow([*place, *shown, interval, f"{item.p_value:.6g}", *counts])
    return text.getvalue()


def _cells(item: Comparison) -> list[str]:
    return [
        _eps(item),
        str(item.n_pairs),
        f"{item.mean_a:.4f}",
        f"{item.mean_b:.4f}",
        f"{item.difference.mean:+.4f}",
        f"[{item.difference.lower:+.4f}, {item.difference.upper:+.4f}]",
        f"{item.wins}-{item.ties}-{item.losses}",
        f"{item.p_value:.3g}",
        item.winner or "open",
    ]


def _eps(item: Comparison) -> str:
    if item.eps is None:
        return "all"
    return "inf" if math.isinf(item.eps) else f"{item.eps:g}"


if __name__ == "__main__":
    sys.exit(main())
