"""From the results table to curves: which rows belong together, what they are called, mean and interval.

Nothing is drawn here. Rows of different data sources are never mixed, and a repetition that several
runs hold is counted once.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from lumberjack_bench.datasets.named import title_of
from lumberjack_bench.figures import FIGURES
from lumberjack_bench.figures.request import (
    METRIC,
    FigureError,
    Request,
    check_known,
    read_results,
)
from lumberjack_bench.metrics import METRICS, Metric, metric_of
from lumberjack_bench.results import Interval, current_rows, mean_interval

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[str, str]
"""What tells methods, and variants of one, apart: name, and where needed what differs."""

Kind = Literal["private", "reference", "majority"]


@dataclass(frozen=True, slots=True)
class Point:
    """The repetitions of a method at one eps."""

    eps: float
    """Infinite for a method that is not private."""
    values: Mapping[tuple[int, int], float]
    """Value by (seed, repetition), which name the split."""
    bounds: tuple[float, float]
    """Least and largest value that the metric can have."""

    @property
    def interval(self) -> Interval:
        """Mean and interval over the repetitions."""
        return mean_interval(list(self.values.values()), self.bounds)


@dataclass(frozen=True, slots=True)
class Curve:
    """A method on a data set; texts and delta as in the results table."""

    method: str
    mode: str
    params: str
    delta: float
    label: str
    """Name for a reader, unique within its panel."""
    kind: Kind
    """A curve over eps, a non-private reference, or the majority class."""
    points: tuple[Point, ...]
    """In order of eps."""
    card_status: str
    card_claim: str
    card_concerns: str
    is_tuned: bool
    """Whether hyper-parameters were chosen on validation rows."""

    @property
    def variant(self) -> str:
        """What tells curves of one method apart."""
        return f"{self.mode} {self.params} {self.delta:g}" if self.kind == "private" else ""

    @property
    def is_doubted(self) -> bool:
        """Whether the guarantee is not believed as claimed."""
        return self.card_status in ("doubted", "broken")

    @property
    def last(self) -> float:
        """Mean at the largest eps."""
        return self.points[-1].interval.mean


@dataclass(frozen=True, slots=True)
class Panel:
    """All curves on the same rows of a data set; texts as in the results table."""

    dataset: str
    data_source: str
    is_stand_in: bool
    curves: tuple[Curve, ...]
    """Ordered by last value, best first."""
    dataset_config: str
    left_out: tuple[str, ...]
    """A line for each other version of the data set, and each method without the metric, that has results."""
    metric: Metric

    @property
    def title(self) -> str:
        """Name for a reader."""
        return title_of(self.dataset)


def load_panels(
    request: Request,
    command: str,
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
) -> tuple[pd.DataFrame, list[Panel]]:
    """Read the results table and what is asked of it as panels.

    `command` makes the rows; `datasets` and `methods` (those there are) are shown unless the request
    names others, empty for all.

    Raises
    ------
    FigureError
        When there is nothing to draw.
    """
    table = read_results(request.results, command)
    check_metric(table, request.metric)
    present = sorted(table["dataset"].unique())
    check_known("data set", request.datasets, present)
    wanted = request.datasets or tuple(datasets)
    usual = [name for name in methods if name in set(table["method"])]
    panels = read_panels(table, wanted, request.methods or usual, request.metric)
    if not panels:
        no_result = table[(table["status"] != "ok") & table["dataset"].isin(wanted or present)]
        about = f" ({', '.join(wanted)})" if wanted else ""
        also = f" {len(no_result)} of its runs have no result." if len(no_result) else ""
        raise FigureError(
            f"the results table has no finished {request.metric} rows for {request.name}{about}; "
            f"it holds {', '.join(present) or 'no data set'}.{also} Make them with: {command}"
        )
    return table, panels


def read_panels(
    table: pd.DataFrame,
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    metric: str = METRIC,
) -> list[Panel]:
    """Sort the rows of a metric into panels and curves.

    One for each data set that has rows, in its current version; another for a stand-in.

    Parameters
    ----------
    table : DataFrame
        The results table.
    datasets : sequence of str
        Data sets in the order wanted, of which some may have no rows; empty takes all.
    methods : sequence of str
        Methods wanted, each with rows; empty takes all.
    metric : str
        Name of the metric.
    """
    check_known("method", methods, sorted(table["method"].unique()))
    table, left_out = current_rows(table)
    if methods:
        table = table[table["method"].isin(methods)]
    rows = finished_rows(table, metric)
    known = metric_of(metric)
    left_out += _lacking(table, metric)
    wanted = list(datasets) or sorted(rows["dataset"].unique(), key=_place)
    panels = []
    for dataset in wanted:
        of_dataset = rows[rows["dataset"] == dataset]
        for _, of_source in of_dataset.groupby(["is_stand_in", "data_version"], sort=True):
            variants = of_source.groupby(["method", "mode", "params", "delta"], sort=True)
            curves = _tell_apart([_curve(group, known.bounds) for _, group in variants])
            first = of_source.iloc[0]
            panels.append(
                Panel(
                    dataset,
                    str(first["data_source"]),
                    str(first["is_stand_in"]).lower() == "true",
                    tuple(sorted(curves, key=lambda c: (-known.sign * c.last, c.label))),
                    str(first["dataset_config"]),
                    tuple(line for line in left_out if line.startswith(f"{dataset}: ")),
                    known,
                )
            )
    return panels


def finished_rows(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the rows that hold a value of a metric."""
    return table[(table["metric"] == metric) & (table["status"] == "ok") & table["value"].notna()]


def check_metric(table: pd.DataFrame, metric: str) -> None:
    """Refuse a metric that no finished run has, and name those there are."""
    if known := sorted(set(table[table["status"] == "ok"]["metric"])):
        check_known("metric", [metric], known)


def _lacking(table: pd.DataFrame, metric: str) -> list[str]:
    """Return a line for each data set on which finished runs of some methods lack a metric."""
    finished = table[(table["status"] == "ok") & table["metric"].isin([*METRICS, metric])]
    without: dict[str, dict[str, set[str]]] = {}
    for (dataset, method, _), found in finished.groupby(["dataset", "method", "run_hash"])[
        "metric"
    ]:
        if metric not in set(found):
            without.setdefault(dataset, {}).setdefault(method, set()).update(found)
    return [
        f"{dataset}: runs without {metric} are left out ({', '.join(methods)}); they have "
        f"{', '.join(name for name in METRICS if name in set.union(*methods.values()))}."
        for dataset, methods in without.items()
    ]


def csv_rows(figure: str, panels: Sequence[Panel]) -> list[dict[str, Any]]:
    """Return what a figure plots, a row for each point; a single repetition has no interval."""
    return [
        {
            "figure": figure,
            "dataset": panel.dataset,
            "data_source": panel.data_source,
            "metric": panel.metric.name,
            "is_stand_in": panel.is_stand_in,
            "method": curve.method,
            "label": curve.label,
            "mode": curve.mode,
            "params": curve.params,
            "kind": curve.kind,
            "eps": point.eps,
            "delta": curve.delta,
            "mean": point.interval.mean,
            "lower": point.interval.lower,
            "upper": point.interval.upper,
            "n_repetitions": point.interval.n,
            "card_status": curve.card_status,
            "is_tuned": curve.is_tuned,
        }
        for panel in panels
        for curve in panel.curves
        for point in curve.points
    ]


def shared_keys(panels: Sequence[Panel]) -> dict[Key, Key]:
    """Return for each (method, variant) the key that it has in all panels.

    Settings that differ from panel to panel only make no difference.
    """
    crowded = {
        method
        for panel in panels
        for method, n_curves in Counter(curve.method for curve in panel.curves).items()
        if n_curves > 1
    }
    return {
        (curve.method, curve.variant): (
            curve.method,
            curve.variant if curve.method in crowded else "",
        )
        for panel in panels
        for curve in sorted(panel.curves, key=lambda c: (c.method, c.mode != "paper", c.variant))
    }


def power_of_ten(number: float) -> str:
    """Write a small number as a person does, for example 10⁻⁶; numbers from 0.001 as they are."""
    if number == 0 or number >= 1e-3:
        return f"{number:g}"
    digits, exponent = f"{number:e}".split("e")
    power = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if float(digits) == 1 else f"{float(digits):g}\N{MULTIPLICATION SIGN}{power}"


def split_values(rows: pd.DataFrame) -> dict[tuple[int, int], float]:
    """Return the value of each (seed, repetition), from the longest run that holds it.

    The rows are of one metric, data source, method variant and eps.
    """
    # A short run and a long one of the same seed share their first repetitions.
    columns = ("run_hash", "seed", "repetition", "value")
    records = list(zip(*(rows[name].tolist() for name in columns), strict=True))
    length = Counter(run_hash for run_hash, *_ in records)
    records.sort(key=lambda record: (record[1], record[2], -length[record[0]], record[0]))
    values: dict[tuple[int, int], float] = {}
    for _, seed, repetition, value in records:
        values.setdefault((int(seed), int(repetition)), float(value))
    return values


def settings_of(mode: str, params: str, delta: float) -> dict[str, Any]:
    """Return what tells variants of a method apart, by name."""
    return {"mode": mode, "delta": delta, **json.loads(params)}


def differing(variants: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the settings that are not the same in all variants."""
    return [
        name
        for name in sorted({name for variant in variants for name in variant})
        if len({json.dumps(variant.get(name)) for variant in variants}) > 1
    ]


def _curve(rows: pd.DataFrame, bounds: tuple[float, float]) -> Curve:
    first = rows.iloc[0]
    is_private = bool(rows["eps"].map(math.isfinite).all())
    kind: Kind = (
        "majority" if first["method"] == "majority" else "private" if is_private else "reference"
    )
    texts = ("method", "mode", "params", "card_status", "card_claim", "card_concerns")
    return Curve(
        **{name: str(first[name]) for name in texts},
        delta=float(first["delta"]),
        label=str(first["label"] or first["method"]),
        kind=kind,
        points=tuple(
            Point(float(eps), split_values(at), bounds) for eps, at in rows.groupby("eps")
        ),
        is_tuned=bool((rows["tuned"] != "").any()),
    )


def _tell_apart(curves: Sequence[Curve]) -> list[Curve]:
    """Add to equal labels what differs, and to corrected variants that they are."""
    named = []
    for curve in curves:
        group = [other for other in curves if other.label == curve.label]
        facts = _facts_that_differ(curve, group)
        if not facts and curve.mode == "corrected" and "corrected" not in curve.label.lower():
            facts = ["corrected"]
        named.append(
            replace(curve, label=f"{curve.label} ({', '.join(facts)})") if facts else curve
        )
    return named


def _facts_that_differ(curve: Curve, group: Sequence[Curve]) -> list[str]:
    own = settings_of(curve.mode, curve.params, curve.delta)
    names = differing([settings_of(other.mode, other.params, other.delta) for other in group])
    facts = [curve.method] * (len({other.method for other in group}) > 1)
    facts += [curve.mode] * ("mode" in names)
    facts += [f"δ={power_of_ten(curve.delta)}"] * ("delta" in names)
    return facts + [f"{name}={own.get(name)}" for name in names if name not in ("mode", "delta")]


def _place(dataset: str) -> tuple[int, str]:
    """Sort data sets as the figures name them, all others by name after them."""
    names = [name for figure in FIGURES.values() for name in figure.datasets]
    return (names.index(dataset) if dataset in names else len(names)), dataset
