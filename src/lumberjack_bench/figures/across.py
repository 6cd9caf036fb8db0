"""Private methods across data sets, in numbers: mean ranks, win rates, how far from the best.

At each eps the methods are compared on the data sets, and there on the splits, that all of them
have. Intervals are of a bootstrap over data sets. Nothing is drawn here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

from lumberjack_bench.datasets.named import title_of
from lumberjack_bench.figures.comparison import BOOTSTRAP_SEED, FEWEST_PAIRS, N_RESAMPLES
from lumberjack_bench.figures.curves import Curve, Key, Panel, shared_keys
from lumberjack_bench.figures.request import FigureError
from lumberjack_bench.results import CONFIDENCE, Interval

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

Values = Mapping[tuple[int, int], float]


@dataclass(frozen=True, slots=True)
class Standing:
    """How a method stands at one eps."""

    curve: Curve
    """One of its curves, for its name and card."""
    key: Key
    advantages: Mapping[str, float]
    """By data set: how much better than the best (other) private method; negative where worse."""
    mean_rank: Interval | None = None
    """1 is best; None for what is not private, which has no rank."""
    win_rates: Mapping[str, Interval] | None = None
    """By the label of each other private method: the share of data sets won, a tie counting half."""

    @property
    def mean_advantage(self) -> float:
        """Over the data sets."""
        return fmean(self.advantages.values())

    @property
    def worst(self) -> str:
        """The data set on which it is furthest behind."""
        return min(self.advantages, key=self.advantages.__getitem__)


@dataclass(frozen=True, slots=True)
class Standings:
    """All methods at one eps."""

    eps: float
    datasets: tuple[str, ...]
    """Titles of the data sets that all private methods have."""
    private: tuple[Standing, ...]
    """By mean rank, best first."""
    others: tuple[Standing, ...]
    """References and the majority class, by mean advantage, on those of the data sets that they have."""


def standings(
    panels: Sequence[Panel], table: pd.DataFrame, *, are_all_asked: bool = True
) -> tuple[list[Standings], list[str]]:
    """Compare private methods across data sets at each eps.

    Parameters
    ----------
    panels : sequence of Panel
        The data sets.
    table : DataFrame
        The results they are from, which tells why a method has no value.
    are_all_asked : bool, default=True
        Whether every method has to be compared; else those that have less than half of the data sets
        that another has are left out, and named.

    Returns
    -------
    found : list of Standings
        In order of eps.
    missing : list of str
        A line for each method and eps at which it lacks data sets.

    Raises
    ------
    FigureError
        When there is no eps at which two private methods share two data sets.
    """
    keys = shared_keys(panels)
    curves: dict[Key, dict[str, Curve]] = {}
    for panel in panels:
        for curve in panel.curves:
            curves.setdefault(keys[curve.method, curve.variant], {})[_title(panel)] = curve
    examples = {key: next(iter(own.values())) for key, own in curves.items()}
    private = [key for key, curve in examples.items() if curve.kind == "private"]
    budgets = {p.eps for key in private for curve in curves[key].values() for p in curve.points}
    found, missing = [], []
    for eps in sorted(budgets):
        values = {key: _values_at(own, eps) for key, own in curves.items()}
        most = max(len(values[key]) for key in private)
        compared = []
        for key in filter(values.get, private):
            name = examples[key].label
            if not are_all_asked and 2 * len(values[key]) < most:
                missing.append(
                    f"eps = {eps:g}: {name} is left out, as it has {len(values[key])} of the data sets; "
                    "--methods asks for it."
                )
                continue
            compared.append(key)
            lacking = [
                f"{_title(panel)} ({_reason(table, panel, key[0], eps)})"
                for panel in panels
                if _title(panel) not in values[key]
            ]
            if len(lacking) > 3:
                lacking = [f"{len(lacking)} of {len(panels)} data sets, among them {lacking[0]}"]
            if lacking:
                missing.append(f"eps = {eps:g}: {name} has no value on {', '.join(lacking)}.")
        means = _means(values, compared, panels)
        shared = tuple(means[compared[0]])
        if len(compared) > 1 and len(shared) >= FEWEST_PAIRS:
            found.append(_rank(eps, shared, compared, means, examples))
        else:
            missing.append(
                f"eps = {eps:g} is left out: its {len(compared)} private methods share {len(shared)} "
                f"data sets, {FEWEST_PAIRS} methods and data sets are needed."
            )
    without = set(table[table["eps"].map(math.isfinite)]["method"]) - {key[0] for key in curves}
    missing += [f"{method} has no value on any of the data sets." for method in sorted(without)]
    if not found:
        raise FigureError(
            "there are no two private methods and two data sets that have all in common. Choose with "
            "--methods and --datasets, or run more: python run.py -m +suite=tabular method=A,B eps=1. "
            f"{' '.join(missing)}".rstrip()
        )
    return found, missing


def _means(
    values: Mapping[Key, Mapping[str, Values]], compared: Sequence[Key], panels: Sequence[Panel]
) -> dict[Key, dict[str, float]]:
    """Return, larger being better, means over the splits that all compared methods have.

    On the data sets where there are such splits; others only where they have all of these.
    """
    sign = panels[0].metric.sign
    means: dict[Key, dict[str, float]] = {key: {} for key in values}
    for title in map(_title, panels):
        splits = set.intersection(*(set(values[key].get(title, ())) for key in compared))
        for key, own in values.items():
            if splits and splits <= set(own.get(title, ())):
                means[key][title] = sign * fmean(own[title][split] for split in sorted(splits))
    return means


def _rank(
    eps: float,
    titles: tuple[str, ...],
    compared: Sequence[Key],
    means: Mapping[Key, Mapping[str, float]],
    curves: Mapping[Key, Curve],
) -> Standings:
    # What is below 1e-12 is rounding, not a win.
    table = np.round([[means[key][title] for key in compared] for title in titles], 12)
    ranks = rankdata(-table, axis=1)
    wins = (1 + np.sign(table[:, :, None] - table[:, None, :])) / 2
    rank_of, win_rate_of = _intervals(ranks), _intervals(wins)
    labels = [curves[key].label for key in compared]
    private = []
    for i, key in enumerate(compared):
        best_other = np.delete(table, i, axis=1).max(axis=1)
        ahead = dict(zip(titles, map(float, table[:, i] - best_other), strict=True))
        won = {label: win_rate_of[i, j] for j, label in enumerate(labels) if j != i}
        private.append(Standing(curves[key], key, ahead, rank_of[i], won))
    best = dict(zip(titles, map(float, table.max(axis=1)), strict=True))
    others = [
        Standing(curves[key], key, {title: mean - best[title] for title, mean in own.items()})
        for key, own in means.items()
        if own and curves[key].kind != "private"
    ]
    return Standings(
        eps,
        titles,
        tuple(sorted(private, key=lambda one: (ranks[:, compared.index(one.key)].mean(), one.key))),
        tuple(sorted(others, key=lambda one: -one.mean_advantage)),
    )


def _intervals(values: NDArray[np.float64]) -> NDArray[np.object_]:
    """Return the mean over the first axis, the data sets, with the interval of a bootstrap over them."""
    n = len(values)
    flat = values.reshape(n, -1)
    weights = np.random.default_rng(BOOTSTRAP_SEED).multinomial(n, [1 / n] * n, N_RESAMPLES) / n
    tails = (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2
    lower, upper = np.quantile(weights @ flat, tails, axis=0)
    found = np.empty(flat.shape[1], dtype=object)
    ends = zip(flat.mean(axis=0), lower, upper, strict=True)
    found[:] = [Interval(float(mean), float(low), float(high), n) for mean, low, high in ends]
    return found.reshape(values.shape[1:])


def _values_at(own: Mapping[str, Curve], eps: float) -> dict[str, Values]:
    """Return the values of each data set at an eps; a reference serves every eps."""
    return {
        title: point.values
        for title, curve in own.items()
        for point in curve.points
        if point.eps in (eps, math.inf)
    }


def _reason(table: pd.DataFrame, panel: Panel, method: str, eps: float) -> str:
    rows = table[
        (table["dataset"] == panel.dataset) & (table["method"] == method) & (table["eps"] == eps)
    ]
    if rows.empty:
        return "not run"
    status = str(rows["status"].iloc[0])
    return f"no {panel.metric.title}" if status == "ok" else status


def _title(panel: Panel) -> str:
    return title_of(panel.dataset) + " (stand-in)" * panel.is_stand_in
