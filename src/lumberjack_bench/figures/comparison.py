"""Two methods compared on the splits that both have seen.

All methods of a repetition see the same split, so differences are taken split by split: most of
what varies between splits cancels. Tests and resampling are SciPy's.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import stats

from lumberjack_bench.figures.curves import (
    check_metric,
    differing,
    finished_rows,
    settings_of,
    split_values,
)
from lumberjack_bench.figures.request import METRIC, FigureError, check_known
from lumberjack_bench.metrics import Metric, metric_of
from lumberjack_bench.results import CONFIDENCE, Interval, current_rows, mean_interval

if TYPE_CHECKING:
    import pandas as pd

FEWEST_PAIRS = 2
"""A single pair has no spread."""

FEWEST_FOR_WILCOXON = 6
"""With fewer pairs the two-sided Wilcoxon test cannot fall below 0.05: 2 / 2^5 = 0.0625."""

N_RESAMPLES = 9999
BOOTSTRAP_SEED = 0
"""Fixed, so that a table is the same each time it is made."""

IntervalKind = Literal["t", "bootstrap"]

Pairs = dict[tuple[int, int], tuple[float, float]]
"""Values of both methods by (seed, repetition)."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Method a against method b on one data set, at one eps or over all."""

    dataset: str
    data_source: str
    eps: float | None
    """None for the mean over all that both have."""
    mean_a: float
    mean_b: float
    difference: Interval
    """Mean of a - b over the common splits with its 95 % interval."""
    p_value: float
    """Of the two-sided Wilcoxon signed-rank test."""
    wins: int
    ties: int
    losses: int
    """Splits on which a is better, equal, worse."""
    sign: int
    """-1 where less is better."""

    @property
    def n_pairs(self) -> int:
        """Number of common splits."""
        return self.difference.n

    @property
    def winner(self) -> Literal["a", "b", ""]:
        """The better one when the interval leaves out 0, else nobody.

        Differences that are all equal, as on a few test rows, tell nothing of their spread.
        """
        lower, upper = self.difference.lower, self.difference.upper
        if lower <= 0 <= upper or lower == upper:
            return ""
        return "a" if self.advantage > 0 else "b"

    @property
    def advantage(self) -> float:
        """Mean by which a is better; negative where it is worse."""
        return self.sign * self.difference.mean


@dataclass(frozen=True, slots=True)
class Result:
    """All comparisons of two methods, and what could not be compared."""

    comparisons: tuple[Comparison, ...]
    """By data set, then eps; the row over all eps last where there are several."""
    over_datasets: Comparison | None
    """Over the data sets in place of splits: the means of each, over all its eps; None for a single one."""
    skipped: tuple[str, ...]
    """A line for each data set and eps with too few pairs, and for other versions of a data set."""

    @property
    def by_dataset(self) -> list[Comparison]:
        """The comparison of each data set over all eps, or at the only one that both have."""
        last = {(item.dataset, item.data_source): item for item in self.comparisons}
        return list(last.values())


def read_selector(text: str) -> tuple[str, dict[str, str]]:
    """Read ``METHOD[:MODE][,KEY=VALUE...]`` into the method and the settings that its rows must have.

    The mode is one of them: ``snr:corrected,n_bins=5`` asks for mode and n_bins.

    Raises
    ------
    FigureError
        When it is not of that form.
    """
    head, *settings = text.split(",")
    method, _, mode = head.partition(":")
    asked = {"mode": mode} if mode else {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not (key and equals):
            raise FigureError(
                f"{text!r} is not of the form METHOD[:MODE][,KEY=VALUE...]: {setting!r} has no '='."
            )
        asked[key] = value
    return method, asked


def compare(
    table: pd.DataFrame,
    a: str,
    b: str,
    *,
    metric: str = METRIC,
    datasets: Sequence[str] = (),
    interval: IntervalKind = "t",
) -> Result:
    """Compare two methods split by split.

    Parameters
    ----------
    table : DataFrame
        The results table.
    a, b : str
        As :func:`read_selector` takes them.
    metric : str
        Name of the metric; of one that the harness does not know, larger counts as better.
    datasets : sequence of str
        Data sets; empty for all.
    interval : {"t", "bootstrap"}
        Interval of the mean difference as :func:`lumberjack_bench.results.mean_interval` gives it, or
        SciPy's BCa bootstrap of the pairs.

    Raises
    ------
    FigureError
        When a name is unknown or ambiguous, or no data set has enough common splits.
    """
    check_known("data set", datasets, sorted(table["dataset"].unique()))
    check_metric(table, metric)
    known = metric_of(metric)
    if datasets:
        table = table[table["dataset"].isin(datasets)]
    current, skipped = current_rows(table)
    rows = finished_rows(current, metric)
    rows_a, rows_b = (_select(rows, table, text, skipped) for text in (a, b))
    comparisons: list[Comparison] = []
    versions_of_b = dict(iter(rows_b.groupby(["dataset", "data_version"])))
    for version, of_a in rows_a.groupby(["dataset", "data_version"], sort=True):
        if version not in versions_of_b:
            continue
        dataset = version[0]
        values_a, values_b = _by_eps(of_a), _by_eps(versions_of_b[version])
        per_eps: dict[float | None, Pairs] = {}
        for eps in _common_budgets(values_a, values_b):
            at_a = values_a.get(eps) or values_a[math.inf]
            at_b = values_b.get(eps) or values_b[math.inf]
            pairs = {split: (at_a[split], at_b[split]) for split in sorted(at_a.keys() & at_b)}
            if len(pairs) < FEWEST_PAIRS:
                where = "" if math.isinf(eps) else f" at eps={eps:g}"
                skipped.append(
                    f"{dataset}{where}: too few common repetitions "
                    f"({len(pairs)}, at least {FEWEST_PAIRS} are needed)"
                )
            else:
                per_eps[eps] = pairs
        if len(per_eps) > 1 and len(averaged := _average(list(per_eps.values()))) >= FEWEST_PAIRS:
            per_eps[None] = averaged
        source = str(of_a["data_source"].iloc[0])
        comparisons += [
            _compare_pairs(dataset, source, eps, pairs, interval, known)
            for eps, pairs in per_eps.items()
        ]
    if not comparisons:
        raise FigureError(_nothing_in_common(a, b, skipped))
    result = Result(tuple(comparisons), None, tuple(skipped))
    each = result.by_dataset
    if len(each) < FEWEST_PAIRS:
        return result
    means = {(0, number): (item.mean_a, item.mean_b) for number, item in enumerate(each)}
    shared = each[0].eps if len({item.eps for item in each}) == 1 else None
    over = _compare_pairs(f"{len(each)} data sets", "", shared, means, interval, known)
    return replace(result, over_datasets=over)


def _select(
    rows: pd.DataFrame, table: pd.DataFrame, text: str, skipped: Sequence[str]
) -> pd.DataFrame:
    method, asked = read_selector(text)
    check_known("method", [method], sorted(table["method"].unique()))
    chosen = rows[rows["method"] == method]
    if chosen.empty:
        raise FigureError(
            f"{text!r} has no finished rows of this metric on the data sets asked for. "
            f"{' '.join(skipped)}".rstrip()
        )
    columns = ["mode", "params", "delta"]
    for key, value in asked.items():
        found = [
            _setting(settings_of(*own), key) for own in chosen[columns].itertuples(index=False)
        ]
        check_known(f"{method} with {key} =", [value], sorted(set(found)))
        chosen = chosen[[own == value for own in found]]
    for dataset, part in chosen.groupby("dataset"):
        variants = [
            settings_of(*own) for own in part[columns].drop_duplicates().itertuples(index=False)
        ]
        if len(variants) > 1:
            differences = [
                f"{name} ({', '.join(sorted({_setting(own, name) for own in variants}))})"
                for name in differing(variants)
            ]
            raise FigureError(
                f"{text!r} means {len(variants)} variants on {dataset}; name one as "
                f"METHOD:MODE,KEY=VALUE. They differ in: {'; '.join(differences)}."
            )
    return chosen


def _setting(settings: Mapping[str, Any], name: str) -> str:
    value = settings.get(name)
    return value if isinstance(value, str) else json.dumps(value)


def _by_eps(rows: pd.DataFrame) -> dict[float, dict[tuple[int, int], float]]:
    return {float(eps): split_values(at) for eps, at in rows.groupby("eps")}


def _common_budgets(a: Mapping[float, object], b: Mapping[float, object]) -> list[float]:
    """Return the eps at which both can be looked up; a reference serves every eps."""
    if math.inf in a and math.inf in b:
        return [math.inf]
    if math.inf in a:
        return sorted(b)
    if math.inf in b:
        return sorted(a)
    return sorted(a.keys() & b.keys())


def _average(per_eps: Sequence[Pairs]) -> Pairs:
    """Average each split over eps: values of one split are not independent of each other."""
    return {
        split: (
            fmean(pairs[split][0] for pairs in per_eps),
            fmean(pairs[split][1] for pairs in per_eps),
        )
        for split in sorted(set.intersection(*map(set, per_eps)))
    }


def _compare_pairs(
    dataset: str,
    source: str,
    eps: float | None,
    pairs: Pairs,
    interval: IntervalKind,
    metric: Metric,
) -> Comparison:
    values = np.array(list(pairs.values()))
    # Accuracies are shares of some thousand rows: what is below 1e-12 is rounding, not a win.
    differences = np.round(values[:, 0] - values[:, 1], 12)
    width = metric.largest - metric.least
    difference = mean_interval([float(d) for d in differences], (-width, width))
    if interval == "bootstrap":
        difference = Interval(difference.mean, *_bootstrap(differences), difference.n)
    return Comparison(
        dataset=dataset,
        data_source=source,
        eps=eps,
        mean_a=float(values[:, 0].mean()),
        mean_b=float(values[:, 1].mean()),
        difference=difference,
        p_value=float(stats.wilcoxon(differences).pvalue) if differences.any() else 1.0,
        wins=int((metric.sign * differences > 0).sum()),
        ties=int((differences == 0).sum()),
        losses=int((metric.sign * differences < 0).sum()),
        sign=metric.sign,
    )


def _bootstrap(differences: np.ndarray) -> tuple[float, float]:
    if np.ptp(differences) == 0:
        return float(differences[0]), float(differences[0])
    found = stats.bootstrap(
        (differences,),
        np.mean,
        n_resamples=N_RESAMPLES,
        confidence_level=CONFIDENCE,
        method="BCa",
        random_state=np.random.default_rng(BOOTSTRAP_SEED),
    ).confidence_interval
    return float(found.low), float(found.high)


def _nothing_in_common(a: str, b: str, skipped: Sequence[str]) -> str:
    if skipped:
        return (
            f"{a!r} and {b!r} cannot be compared. {'; '.join(skipped)}. "
            "Run both with the same seed and n_repeats=5 or more."
        )
    names = ",".join(read_selector(text)[0] for text in (a, b))
    return (
        f"{a!r} and {b!r} have no data set, data source and eps in common. Run both in one sweep: "
        f"python run.py -m method={names}"
    )
