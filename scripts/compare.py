"""Compare two methods split by split: wins, mean difference with its interval, Wilcoxon test.

All methods of a repetition see the same split, so differences are paired. From the results table
alone. Examples:

    python scripts/compare.py lumberjack snr
    python scripts/compare.py guided_lumberjack lumberjack --datasets adult --csv wins.csv
    python scripts/compare.py smooth_sensitivity:paper smooth_sensitivity:corrected
    python scripts/compare.py lumberjack,n_estimators=30 extra_trees --interval bootstrap
    python scripts/compare.py guided_lumberjack dp_ebm --metric roc_auc
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lumberjack_bench.figures.comparison import (
    FEWEST_FOR_WILCOXON,
    Comparison,
    Result,
    compare,
)
from lumberjack_bench.figures.request import METRIC, FigureError, csv_text, read_results
from lumberjack_bench.files import write_atomically
from lumberjack_bench.metrics import METRICS, metric_of

INTERVAL_NAMES = {
    "t": "Student's t, for a bounded metric on the log-odds scale of what a difference can be",
    "bootstrap": "BCa bootstrap",
}

HEADER = (
    *("data set", "eps", "pairs", "a", "b", "a - b", "95 % interval", "won-tied-lost", "p"),
    "better",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the comparison asked for on the command line; return 2 when there is none."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("a", help="METHOD[:MODE][,KEY=VALUE...]")
    parser.add_argument("b", help="the same form")
    parser.add_argument("--results", type=Path, default=Path("results/results.csv"))
    parser.add_argument(
        "--metric",
        default=METRIC,
        help=f"{', '.join(METRICS)}, or what methods report themselves (larger counts as better)",
    )
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
            rows = csv_rows(result, given.a, given.b, given.interval, given.metric)
            write_atomically(given.csv, csv_text(rows))
    except FigureError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        where = str(error.filename or given.csv)
        print(f"error: cannot write {where!r}: {error.strerror or error}", file=sys.stderr)
        return 2
    print(as_text(result, given.a, given.b, given.interval, given.metric))
    return 0


def as_text(result: Result, a: str, b: str, interval: str, metric: str = METRIC) -> str:
    """Write a comparison of `a` and `b` as a table for a person."""
    rows: list[Sequence[str]] = [HEADER]
    previous = None
    for item in result.comparisons:
        place = (item.dataset, item.data_source)
        rows.append([item.dataset if place != previous else "", *_cells(item)])
        previous = place
    over = result.over_datasets
    rows += [[over.dataset, *_cells(over)]] if over else []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    ]
    lines.insert(1, "-" * len(lines[0]))
    cells = [item for item in result.comparisons if item.eps is not None]
    n_a = sum(item.advantage > 0 for item in cells)
    n_b = sum(item.advantage < 0 for item in cells)
    sure_a, sure_b = (sum(item.winner == side for item in cells) for side in "ab")
    fewest = min(item.n_pairs for item in (*result.comparisons, *([over] if over else [])))
    p_value = "p: two-sided Wilcoxon signed-rank, not corrected for several rows."
    if fewest < FEWEST_FOR_WILCOXON:
        p_value = (
            f"p: two-sided Wilcoxon signed-rank; with {fewest} pairs it cannot fall below "
            f"{2.0 ** (1 - fewest):.4g}. More repetitions: n_repeats=10."
        )
    return "\n".join(
        [
            f"a = {a}, b = {b}; {metric_of(metric).axis_title}",
            *dict.fromkeys(f"{c.dataset}: {c.data_source}" for c in result.comparisons),
            "",
            *lines,
            "",
            f"{a} has the better mean in {n_a} of {len(cells)} rows (interval without 0 in {sure_a}), "
            f"{b} in {n_b} (interval without 0 in {sure_b}).",
            *(
                [
                    f"Last row, over data sets: a better on {over.wins}, equal on {over.ties}, worse on "
                    f"{over.losses}; each data set counts once, by its mean over splits and eps, and the "
                    "interval says how far the mean difference may move with other such data sets."
                ]
                if over
                else []
            ),
            f"Intervals: {INTERVAL_NAMES[interval]}, of the mean paired "
            "difference. Splits share rows, so intervals and p are somewhat optimistic.",
            p_value,
            *(f"skipped: {line}" for line in result.skipped),
        ]
    )


def csv_rows(
    result: Result, a: str, b: str, interval: str, metric: str = METRIC
) -> list[dict[str, Any]]:
    """Return a row for each comparison.

    ``eps`` is "all" in rows that average each split over eps, "inf" for two references. The row over
    data sets, last where there are several, has these for pairs.
    """
    return [
        {
            "dataset": item.dataset,
            "data_source": item.data_source,
            "metric": metric,
            "a": a,
            "b": b,
            "eps": _eps(item),
            "n_pairs": item.n_pairs,
            "mean_a": item.mean_a,
            "mean_b": item.mean_b,
            "difference": item.difference.mean,
            "lower": item.difference.lower,
            "upper": item.difference.upper,
            "interval": interval,
            "wilcoxon_p": f"{item.p_value:.6g}",
            "wins": item.wins,
            "ties": item.ties,
            "losses": item.losses,
        }
        for item in (*result.comparisons, *([result.over_datasets] if result.over_datasets else []))
    ]


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
    return "all" if item.eps is None else f"{item.eps:g}"


if __name__ == "__main__":
    sys.exit(main())
