"""Two methods compared on the splits that both have seen.

All methods of a repetition see the same split, so differences are taken split by split: most of
what varies between splits cancels. Tests and resampling are SciPy's.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import stats

from lumberjack_bench.figures.curves import split_values
from lumberjack_bench.figures.request import FigureError, check_known
from lumberjack_bench.results import (
    ANY_NUMBER,
    CONFIDENCE,
    RANGES,
    Interval,
    current_rows,
    mean_interval,
)

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


@dataclass(frozen=True, slots=True)
class Selector:
    """Which rows of the results table are meant by the name of a method.

    Attributes
    ----------
    text : str
        As given.
    method : str
        Name.
    mode : str or None
        Mode, where given.
    params : mapping of str to str
        Hyper-parameters that are asked for, as text.
    """

    text: str
    method: str
    mode: str | None
    params: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Method a against method b on one data set, at one eps or over all.

    Attributes
    ----------
    dataset, data_source : str
        As in the results table.
    eps : float or None
        Privacy budget; None for the mean over all that both have.
    mean_a, mean_b : float
        Means over the common splits.
    difference : Interval
        Mean of a - b with its 95 % interval.
    p_value : float
        Of the two-sided Wilcoxon signed-rank test.
    wins, ties, losses : int
        Splits in which a is better, equal, worse.
    """

    dataset: str
    data_source: str
    eps: float | None
    mean_a: float
    mean_b: float
    difference: Interval
    p_value: float
    wins: int
    ties: int
    losses: int

    @property
    def n_pairs(self) -> int:
        """Number of common splits."""
        return self.difference.n

    @property
    def winner(self) -> Literal["a", "b", ""]:
        """The better one when the interval leaves out 0, else nobody."""
        return "a" if self.difference.lower > 0 else "b" if self.difference.upper < 0 else ""


@dataclass(frozen=True, slots=True)
class Result:
    """All comparisons of two methods, and what could not be compared.

    Attributes
    ----------
    comparisons : tuple of Comparison
        By data set, then eps; the row over all eps last where there are several.
    skipped : tuple of str
        One line for each data set and eps with too few pairs, and for other versions of a data set.
    """

    comparisons: tuple[Comparison, ...]
    skipped: tuple[str, ...]


def read_selector(text: str) -> Selector:
    """Read ``METHOD[:MODE][,KEY=VALUE...]``.

    Parameters
    ----------
    text : str
        For example ``snr``, ``snr:corrected`` or ``lumberjack,n_estimators=30``.

    Returns
    -------
    Selector

    Raises
    ------
    FigureError
        When it is not of that form.
    """
    head, *settings = text.split(",")
    method, _, mode = head.partition(":")
    params = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not (key and equals):
            raise FigureError(
                f"{text!r} is not of the form METHOD[:MODE][,KEY=VALUE...]: {setting!r} has no '='."
            )
        params[key] = value
    return Selector(text, method, mode or None, params)


def compare(
    table: pd.DataFrame,
    a: str,
    b: str,
    *,
    metric: str = "accuracy",
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
        Name of the metric; larger counts as better.
    datasets : sequence of str
        Data sets; empty for all.
    interval : {"t", "bootstrap"}
        Interval of the mean difference as :func:`lumberjack_bench.results.mean_interval` gives it, or
        SciPy's BCa bootstrap of the pairs.

    Returns
    -------
    Result

    Raises
    ------
    FigureError
        When a name is unknown or ambiguous, or no data set has enough common splits.
    """
    check_known("data set", datasets, sorted(table["dataset"].unique()))
    check_known("metric", [metric], sorted(set(table["metric"]) - {"failure"}))
    if datasets:
        table = table[table["dataset"].isin(datasets)]
    current, skipped = current_rows(table)
    rows = current[
        (current["metric"] == metric) & (current["status"] == "ok") & current["value"].notna()
    ]
    least, largest = RANGES.get(metric, ANY_NUMBER)
    bounds = (least - largest, largest - least)
    rows_a, rows_b = (_select(rows, table, read_selector(text), skipped) for text in (a, b))
    comparisons: list[Comparison] = []
    for dataset, version in sorted(
        set(zip(rows_a["dataset"], rows_a["data_version"], strict=True))
        & set(zip(rows_b["dataset"], rows_b["data_version"], strict=True))
    ):
        parts = [
            part[(part["dataset"] == dataset) & (part["data_version"] == version)]
            for part in (rows_a, rows_b)
        ]
        source = str(parts[0]["data_source"].iloc[0])
        values_a, values_b = map(_by_eps, parts)
        per_eps: dict[float, dict[tuple[int, int], tuple[float, float]]] = {}
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
                continue
            per_eps[eps] = pairs
            comparisons.append(_compare_pairs(dataset, source, eps, pairs, interval, bounds))
        if len(per_eps) > 1:
            averaged = _average(per_eps)
            if len(averaged) >= FEWEST_PAIRS:
                comparisons.append(
                    _compare_pairs(dataset, source, None, averaged, interval, bounds)
                )
    if not comparisons:
        raise FigureError(_nothing_in_common(a, b, skipped))
    return Result(tuple(comparisons), tuple(skipped))


def _select(
    rows: pd.DataFrame, table: pd.DataFrame, selector: Selector, skipped: Sequence[str]
) -> pd.DataFrame:
    check_known("method", [selector.method], sorted(table["method"].unique()))
    chosen = rows[rows["method"] == selector.method]
    if chosen.empty:
        raise FigureError(
            f"{selector.text!r} has no finished rows of this metric on the data sets asked for. "
            f"{' '.join(skipped)}".rstrip()
        )
    if selector.mode is not None:
        check_known(f"mode of {selector.method}", [selector.mode], sorted(chosen["mode"].unique()))
        chosen = chosen[chosen["mode"] == selector.mode]
    for key, value in selector.params.items():
        known = sorted({_parameter(text, key) for text in chosen["params"]})
        check_known(f"{selector.method} with {key} =", [value], known)
        chosen = chosen[[_parameter(text, key) == value for text in chosen["params"]]]
    for dataset, part in chosen.groupby("dataset"):
        variants = sorted(set(zip(part["mode"], part["params"], part["delta"], strict=True)))
        if len(variants) > 1:
            raise FigureError(
                f"{selector.text!r} means {len(variants)} variants on {dataset}; name one as "
                f"METHOD:MODE,KEY=VALUE. They differ in: {_differences(variants)}."
            )
    return chosen


def _parameter(params: str, key: str) -> str:
    value = json.loads(params).get(key)
    return value if isinstance(value, str) else json.dumps(value)


def _differences(variants: Sequence[tuple[str, str, float]]) -> str:
    found = []
    modes = sorted({mode for mode, _, _ in variants})
    if len(modes) > 1:
        found.append(f"mode ({', '.join(modes)})")
    keys = sorted({key for _, params, _ in variants for key in json.loads(params)})
    for key in keys:
        values = sorted({_parameter(params, key) for _, params, _ in variants})
        if len(values) > 1:
            found.append(f"{key} ({', '.join(values)})")
    deltas = sorted({delta for _, _, delta in variants})
    if len(deltas) > 1:
        found.append(f"delta ({', '.join(f'{delta:g}' for delta in deltas)})")
    return "; ".join(found)


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


def _average(
    per_eps: Mapping[float, Mapping[tuple[int, int], tuple[float, float]]],
) -> dict[tuple[int, int], tuple[float, float]]:
    """Average each split over eps: values of one split are not independent of each other."""
    splits = set.intersection(*(set(pairs) for pairs in per_eps.values()))
    return {
        split: (
            fmean(pairs[split][0] for pairs in per_eps.values()),
            fmean(pairs[split][1] for pairs in per_eps.values()),
        )
        for split in sorted(splits)
    }


def _compare_pairs(
    dataset: str,
    source: str,
    eps: float | None,
    pairs: Mapping[tuple[int, int], tuple[float, float]],
    interval: IntervalKind,
    bounds: tuple[float, float],
) -> Comparison:
    values = np.array(list(pairs.values()))
    # Accuracies are shares of some thousand rows: what is below 1e-12 is rounding, not a win.
    differences = np.round(values[:, 0] - values[:, 1], 12)
    difference = mean_interval([float(d) for d in differences], bounds)
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
        wins=int((differences > 0).sum()),
        ties=int((differences == 0).sum()),
        losses=int((differences < 0).sum()),
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
    return (
        f"{a!r} and {b!r} have no data set, data source and eps in common. Run both in one sweep: "
        f"python run.py -m method={a.split(':')[0].split(',')[0]},{b.split(':')[0].split(',')[0]}"
    )
