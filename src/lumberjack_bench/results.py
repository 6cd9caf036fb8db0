"""The tidy table of all results, and what is said about a method over its repetitions.

A row per data set, method, eps, delta, seed, repetition and metric. Figures and tables read this
and nothing else. Built from the result files; see :mod:`lumberjack_bench.runs.store`.
"""

from __future__ import annotations

import csv
import io
import json
import math
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from lumberjack_bench.files import write_atomically
from lumberjack_bench.metrics import MAIN_METRICS, METRICS, main_metric, metric_of
from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.store import ResultStore, StoreError

if TYPE_CHECKING:
    import pandas as pd

TABLE_NAME = "results.csv"

COLUMNS = (
    "dataset",
    "method",
    "label",
    "mode",
    "params",
    "eps",
    "delta",
    "seed",
    "repetition",
    "metric",
    "value",
    "status",
    "data_source",
    "is_stand_in",
    "data_version",
    "method_version",
    "is_current",
    "dataset_config",
    "card_status",
    "card_claim",
    "card_concerns",
    "tuned",
    "run_hash",
    "started",
    "versions",
    "commit",
    "machine",
)

CONFIDENCE = 0.95

MOST_BLOCKS = 3
"""With more data sets a sweep ends with one table over all of them."""

NARROW = 10
"""Characters across of a column in it."""

ANY_NUMBER = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Interval:
    """Mean over repetitions with its 95 % interval.

    Attributes
    ----------
    mean : float
        Mean.
    lower, upper : float
        Ends of the interval; NaN for a single value.
    n : int
        Number of values.
    """

    mean: float
    lower: float
    upper: float
    n: int

    def __str__(self) -> str:
        if math.isnan(self.lower):
            return f"{self.mean:.4f}"
        above, below = self.upper - self.mean, self.mean - self.lower
        if abs(above - below) < 0.0005:
            return f"{self.mean:.4f} ± {max(above, below):.4f}"
        return f"{self.mean:.4f} [{self.lower:.4f}, {self.upper:.4f}]"


_RowName = tuple[str, str]
"""A method with its mode, and the variant of it."""

_Block = Mapping[_RowName, Mapping[float, Interval]]


def mean_interval(values: Sequence[float], bounds: tuple[float, float] = ANY_NUMBER) -> Interval:
    """Return the mean of values and a 95 % interval that bounded values cannot leave.

    Student's interval for the log-odds of the mean, by the delta method; for narrow intervals it
    equals Student's own, which a few repetitions can carry far beyond what an accuracy can be.

    Parameters
    ----------
    values : sequence of float
        At least one.
    bounds : tuple of float
        Least and largest possible value; infinite for Student's own interval.
    """
    from scipy.special import expit, logit, stdtrit

    n, mean = len(values), fmean(values)
    if n < 2:
        return Interval(mean, math.nan, math.nan, n)
    half = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * stdev(values) / math.sqrt(n)
    least, largest = bounds
    width = largest - least
    share = (mean - least) / width
    if half == 0 or math.isinf(width) or not 0 < share < 1:
        return Interval(mean, max(least, mean - half), min(largest, mean + half), n)
    half_odds = half / width / (share * (1 - share))
    lower, upper = (least + width * float(expit(logit(share) + s * half_odds)) for s in (-1, 1))
    return Interval(mean, lower, upper, n)


def rows_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the table rows of a run, one value per name in :data:`COLUMNS`.

    A run without a result has one row, without repetition and value.

    Parameters
    ----------
    record : dict
        A result, or why there is none, as stored.
    """
    run = RunConfig.from_dict(record["run"])
    common = dict.fromkeys(COLUMNS, "") | {
        "dataset": run.dataset["name"],
        "method": run.method.name,
        "label": run.method.label,
        # A failed run has no card; a configuration says nothing of the modes that a method names itself.
        "mode": run.method.mode or "",
        "params": json.dumps(run.method.params, sort_keys=True),
        "eps": run.eps,
        "delta": run.delta,
        "seed": run.seed,
        "status": record["status"],
        "run_hash": record["run_hash"],
        "is_stand_in": run.dataset_identity.startswith("stand-in:"),
        "data_version": run.data_version,
        "method_version": run.method_version,
        "dataset_config": json.dumps(run.dataset, sort_keys=True),
        "versions": " ".join(f"{k}={v}" for k, v in record["versions"].items()),
        "commit": record["commit"],
        "machine": record["machine"],
    }
    if record["status"] != "ok":
        return [common | {"metric": "skip" if record["status"] == "skipped" else "failure"}]
    card = record["card"]
    common |= {
        "data_source": record["data_source"]["label"],
        "is_stand_in": record["data_source"]["is_stand_in"],
        "mode": card["mode"],
        "started": record["started"],
        "card_status": card["status"],
        "card_claim": _claim(card),
        "card_concerns": "; ".join(card["concerns"]),
    }
    rows = []
    for repetition in record["repetitions"]:
        tuned = repetition.get("tuned")
        own = {"repetition": repetition["repetition"]}
        own["tuned"] = json.dumps(tuned, sort_keys=True) if tuned else ""
        for metric, value in sorted(repetition["metrics"].items()):
            rows.append(common | own | {"metric": metric, "value": value})
    return rows


def current_rows(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Keep what is current: results of changed rows, schemas or methods never mix.

    Parameters
    ----------
    table : DataFrame
        The results table.

    Returns
    -------
    current : DataFrame
        The rows of the version of each data set, of each of its stand-ins and of each method from
        outside the project, that a command asked for last.
    left_out : list of str
        A line for each other version that has results.
    """
    is_current = table["is_current"].astype(str).str.lower() == "true"
    others = table[~is_current & (table["status"] == "ok")]
    current = table[is_current]
    left_out = []
    data = ["dataset", "data_version"]
    has_current_data = others.set_index(data).index.isin(current.set_index(data).index)
    for (dataset, version), rows in others[~has_current_data].groupby(data, sort=True):
        left_out.append(
            f"{dataset}: {_n_runs(rows)} of another version left out "
            f"({rows['data_source'].iloc[0]}; version {version}): other rows or another schema than asked for last."
        )
    if has_current_data.any():
        methods = others[has_current_data].groupby(["method", "method_version"], sort=True)
        left_out += [
            f"{method}: {_n_runs(rows)} of another version of its module left out (version {version})."
            for (method, version), rows in methods
        ]
    return current, left_out


def _n_runs(rows: pd.DataFrame) -> str:
    n_runs = rows["run_hash"].nunique()
    return f"{n_runs} run{'s' * (n_runs != 1)}"


def _mark_current(rows: list[dict[str, Any]], asked: Mapping[str, Sequence[str]]) -> None:
    """Say of each row whether its versions are those that a command asked for last."""
    # A stand-in and the rows that it stands for are shown side by side.
    data = _last_versions(rows, ("dataset", "is_stand_in"), "data_version", asked)
    methods = _last_versions(rows, ("method",), "method_version", asked, prefix="method=")
    for row in rows:
        is_of_data = row["data_version"] == data[row["dataset"], row["is_stand_in"]]
        row["is_current"] = is_of_data and row["method_version"] == methods[(row["method"],)]


def _last_versions(
    rows: Iterable[Mapping[str, Any]],
    subject: Sequence[str],
    version: str,
    asked: Mapping[str, Sequence[str]],
    prefix: str = "",
) -> dict[tuple[Any, ...], str]:
    """Return the version of each subject, of some columns, that a command asked for last.

    Of versions that no command is known to have asked for, the one that was run last counts.
    """
    last: dict[tuple[Any, ...], tuple[int, str, str]] = {}
    for row in rows:
        key = tuple(row[name] for name in subject)
        order = list(asked.get(f"{prefix}{key[0]}", ()))
        place = order.index(row[version]) if row[version] in order else -1
        last[key] = max(last.get(key, (-1, "", "")), (place, str(row["started"]), row[version]))
    return {key: found for key, (_, _, found) in last.items()}


def write_table(store: ResultStore) -> Path:
    """Write the table of all runs of a results folder, in one step, and return its place."""
    path = store.folder / TABLE_NAME
    try:
        # Held, so that of two sweeps that end together the later writer has read both.
        with store.lock("results-table"):
            rows = [row for result in store.results() for row in rows_of(result)]
            done = {row["run_hash"] for row in rows}
            for record in store.reasons():
                if record["run_hash"] not in done:
                    rows += rows_of(record)
            _mark_current(rows, store.asked())
            rows.sort(key=_order)
            text = io.StringIO()
            writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
            write_atomically(path, text.getvalue())
    except OSError as error:
        raise StoreError(
            f"cannot write {str(path)!r}: {error.strerror or error}. The results themselves are in "
            f"{str(store.folder / 'runs')!r}; run the same command again to rebuild the table."
        ) from error
    return path


def read_table(path: Path) -> pd.DataFrame:
    """Read the table for figures and analysis.

    Parameters
    ----------
    path : Path
        A ``results.csv``.

    Returns
    -------
    DataFrame
        ``eps`` is infinite for a method that is not private; runs without a result have status
        "failed", "timed out" or "skipped" and no value.
    """
    import pandas as pd

    numbers = {"repetition": "Int64", "seed": "int64"}
    numbers |= dict.fromkeys(("value", "eps", "delta"), "float64")
    return pd.read_csv(
        path,
        # A hash of digits alone, and a data set called 2024, are no numbers.
        dtype=dict.fromkeys(COLUMNS, "str") | numbers,
        keep_default_na=False,
        na_values={"repetition": [""], "value": [""]},
    )


def shown_metric(results: Sequence[dict[str, Any]], asked: str) -> str:
    """Return the metric that a table of results shows: for numeric targets alone, theirs by default."""
    measured = {name for result in results for name in result["repetitions"][0]["metrics"]}
    return asked if asked in measured or asked != MAIN_METRICS[0] else main_metric(measured)


def accuracy_table(results: Iterable[dict[str, Any]], metric: str = "accuracy") -> str:
    """Return mean and interval of a metric of results as text, methods down and eps across.

    There is one block per data set, below a line on results without the metric; a method that is not private has one
    value for every eps. Many data sets make one table of means for each eps instead, data sets down and methods
    across, the best private one marked.
    """
    blocks: dict[tuple[str, str], dict[_RowName, dict[float, Interval]]] = {}
    lacking: dict[str, int] = {}
    measured: set[str] = set()
    private: set[str] = set()
    for result in results:
        run = RunConfig.from_dict(result["run"])
        values = [r["metrics"][metric] for r in result["repetitions"] if metric in r["metrics"]]
        if not values:
            lacking[run.method.name] = lacking.get(run.method.name, 0) + 1
            measured |= result["repetitions"][0]["metrics"].keys() & METRICS.keys()
        else:
            source = result["data_source"]
            dataset = run.dataset["name"] + (
                f" [{source['label']}]" if source["is_stand_in"] else ""
            )
            rows = blocks.setdefault((dataset, run.data_version), {})
            interval = mean_interval(values, metric_of(metric).bounds)
            name = _row_name(run, result["card"]["mode"])
            rows.setdefault(name, {})[run.eps] = interval
            if run.method.is_private:
                private.add(name[0])
    lines: list[str] = []
    if lacking:
        who = ", ".join(f"{method} ({n})" for method, n in lacking.items())
        lines += [f"Results without {metric}: {who}; they have {', '.join(sorted(measured))}.", ""]
    tables = {}
    for (dataset, version), rows in blocks.items():
        is_alone = sum(name == dataset for name, _ in blocks) == 1
        tables[dataset if is_alone else f"{dataset} (version {version})"] = rows
    are_simple = all(len({name for name, _ in rows}) == len(rows) for rows in tables.values())
    if len(tables) > MOST_BLOCKS and are_simple:
        return "\n".join([*lines, *_across_datasets(tables, metric, private)])
    for dataset, rows in tables.items():
        lines += [*_aligned(_block(f"{metric}, {dataset}", rows)), ""]
    return "\n".join(lines[:-1])


def _block(title: str, rows: _Block) -> list[list[str]]:
    """Return the table of one data set: methods down and eps across."""
    has_variants = len({name for name, _ in rows}) < len(rows)
    columns = sorted({eps for cells in rows.values() for eps in cells if math.isfinite(eps)})
    table = [[title, *([f"eps={eps:g}" for eps in columns] or [""])]]
    for (name, variant), cells in rows.items():
        shown = [str(cells.get(eps, cells.get(math.inf, ""))) for eps in columns]
        row = f"{name} {variant}" if has_variants else name
        table.append([row, *(shown or [str(cells[math.inf])])])
    return table


def _across_datasets(
    tables: Mapping[str, _Block], metric: str, private: Collection[str]
) -> list[str]:
    """Return the lines of one table for each eps: data sets down and methods across."""
    sign = metric_of(metric).sign
    cells = {
        (dataset, name): found
        for dataset, rows in tables.items()
        for (name, _), found in rows.items()
    }
    methods = list(dict.fromkeys(name for _, name in cells))
    budgets = sorted({eps for found in cells.values() for eps in found if math.isfinite(eps)})
    lines = []
    for eps in budgets or [math.inf]:
        at = "" if math.isinf(eps) else f", eps={eps:g}"
        body = []
        for dataset in tables:
            of_method = {name: cells.get((dataset, name), {}) for name in methods}
            means = {name: found.get(eps, found.get(math.inf)) for name, found in of_method.items()}
            best = max(
                (sign * one.mean for name, one in means.items() if one and name in private),
                default=math.nan,
            )
            body.append([dataset])
            for name, one in means.items():
                mark = "*" * (one is not None and name in private and sign * one.mean == best)
                body[-1].append(f"{one.mean:.4f}{mark}" if one else "")
        # Long names stand on several lines, so that the columns stay narrow.
        words = [textwrap.wrap(name.replace("_", " "), NARROW) for name in methods]
        height = max(map(len, words))
        titles = [[f"{metric}{at}", *[""] * (height - 1)], *words]
        header = [
            [column[i] if i < len(column) else "" for column in titles] for i in range(height)
        ]
        lines += [*_aligned([*header, *body]), ""]
    note = "Means; *: best private one. Intervals and ranks: python scripts/make_figures.py suite"
    return [*lines, note + f" --metric {metric}" * (metric != "accuracy")]


def _row_name(run: RunConfig, mode: str) -> tuple[str, str]:
    mode = "" if mode == "paper" else f" ({mode})"
    variant = ",".join(f"{k}={v}" for k, v in run.method.params.items())
    return (
        f"{run.method.name}{mode}",
        f"[{variant}; seed {run.seed}; {run.n_repeats} repetitions]",
    )


def _aligned(table: list[list[str]]) -> list[str]:
    widths = [max(len(row[j]) for row in table) for j in range(len(table[0]))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in table]
    return [line.rstrip() for line in lines]


def _claim(card: dict[str, Any]) -> str:
    claimed = card["claimed"]
    if claimed is None or math.isinf(claimed["epsilon"]):
        return "none"
    return f"({claimed['epsilon']:g}, {claimed['delta']:g}), {claimed['relation']}"


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    keys = ("dataset", "method", "mode", "params", "eps", "delta", "seed", "run_hash")
    repetition = -1 if row["repetition"] == "" else row["repetition"]
    return (*(row[key] for key in keys), repetition, row["metric"])
