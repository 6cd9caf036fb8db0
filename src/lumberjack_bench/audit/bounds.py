"""From runs on two neighbouring tables to a lower bound on epsilon that holds with confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.tree import DecisionTreeClassifier


@dataclass(frozen=True, slots=True)
class LowerBound:
    """What one event says about epsilon."""

    epsilon: float
    """Lower bound, at least 0."""
    more: float
    less: float
    """Share of runs that showed the event on the table where it is likelier, and on the other."""
    n_runs: int
    """Runs on each table that were counted."""


def bound_from_counts(
    n_more: int, n_less: int, n_runs: int, delta: float, confidence: float
) -> LowerBound:
    """Return the lower bound that counts of one fixed event give.

    An (epsilon, delta)-private method has ``p <= exp(epsilon) q + delta`` for the probabilities
    of any event on neighbouring tables. Clopper-Pearson limits, each with half of what may go
    wrong, replace them.

    Parameters
    ----------
    n_more, n_less : int
        Runs that showed the event, on the table where it is likelier and on the other.
    n_runs : int
        Runs on each table.
    delta : float
        In [0, 1).
    confidence : float
        In (0, 1); probability that the bound holds.
    """
    half = (1.0 - confidence) / 2.0
    least = stats.beta.ppf(half, n_more, n_runs - n_more + 1) if n_more else 0.0
    most = stats.beta.ppf(1.0 - half, n_less + 1, n_runs - n_less) if n_less < n_runs else 1.0
    epsilon = math.log((least - delta) / most) if least > delta else 0.0
    return LowerBound(max(epsilon, 0.0), n_more / n_runs, n_less / n_runs, n_runs)


@dataclass(frozen=True, slots=True)
class Event:
    """A score above a cut, for the record's presence, or at most a cut, for its absence."""

    cut: float
    is_above: bool
    expected: float = 0.0
    """The bound that it is expected to give."""

    def count(
        self,
        without: NDArray[np.float64],
        with_record: NDArray[np.float64],
        delta: float,
        confidence: float,
    ) -> LowerBound:
        """Return the bound that scores of runs on both tables give."""
        more, less = (with_record, without) if self.is_above else (without, with_record)
        n_more, n_less = (
            int((side >= self.cut if self.is_above else side <= self.cut).sum())
            for side in (more, less)
        )
        return bound_from_counts(n_more, n_less, len(more), delta, confidence)


def choose_event(
    without: NDArray[np.float64],
    with_record: NDArray[np.float64],
    n_runs: int,
    delta: float,
    confidence: float,
    *,
    n_cuts: int = 60,
) -> Event:
    """Return the event that is expected to give the largest bound in runs still to come.

    Parameters
    ----------
    without, with_record : ndarray of float64, shape (n_pilot,)
        Scores of runs that will not be counted.
    n_runs : int
        Runs on each table that will be.
    delta, confidence : float
        As for :func:`bound_from_counts`.
    n_cuts : int
        How many cuts are tried.
    """
    cuts = np.unique(np.concatenate([without, with_record]))
    cuts = cuts[np.unique(np.linspace(0, len(cuts) - 1, n_cuts).astype(np.int64))]
    events = []
    for is_above in (True, False):
        for cut in cuts.tolist():
            found = Event(cut, is_above).count(without, with_record, delta, confidence)
            # Shares of few runs are drawn towards each other: chance alone finds large ratios.
            more, less = (
                round((share * len(without) + 1) / (len(without) + 2) * n_runs)
                for share in (found.more, found.less)
            )
            bound = bound_from_counts(more, less, n_runs, delta, confidence)
            events.append(Event(cut, is_above, bound.epsilon))
    return max(events, key=lambda event: event.expected)


def estimate_limit(
    without: NDArray[np.float64], with_record: NDArray[np.float64], delta: float
) -> float:
    """Return about what infinitely many runs would bound epsilon by, from log likelihood ratios.

    Probabilities on either table are the mean of what its own runs say and of what those of the
    other say, each weighed by the ratio; that holds if the ratios are right, as for a sound method.

    Parameters
    ----------
    without, with_record : ndarray of float64, shape (n_runs,)
        Log likelihood ratios of runs on both tables.
    delta : float
        In [0, 1).
    """
    limit = 0.0
    for more, less in ((with_record, without), (-without, -with_record)):
        is_certain = np.isinf(more) & (more > 0)
        if is_certain.mean() > delta:
            return math.inf
        more, less = np.sort(more), np.sort(less)
        for cut in np.quantile(more[np.isfinite(more)], np.linspace(0.02, 0.99, 98)):
            # Rare events are left out: few runs say little of them.
            above, above_less = more[more >= cut], less[less >= cut]
            if len(above_less) < 30:
                continue
            p = (len(above) + np.exp(above_less).sum()) / 2 / len(more)
            q = (np.exp(-above).sum() + len(above_less)) / 2 / len(less)
            if p > delta:
                limit = max(limit, math.log((p - delta) / q))
    return limit


def find_lower_bound(
    without: NDArray[np.float64], with_record: NDArray[np.float64], delta: float, confidence: float
) -> LowerBound:
    """Look for an event that tells two tables apart, and bound epsilon by it.

    A third of the runs teaches a small tree to tell the tables apart, a third chooses the event
    among its scores, the last third counts it: so the choice costs no confidence.

    Parameters
    ----------
    without, with_record : ndarray of float64, shape (n_runs, n_observations)
        What was seen of the models that were fitted on either table, in any but a telling order.
    delta : float
        In [0, 1).
    confidence : float
        In (0, 1).
    """
    third = len(without) // 3
    learner = DecisionTreeClassifier(
        max_leaf_nodes=16, min_samples_leaf=max(1, third // 100), random_state=0
    ).fit(
        np.vstack([without[:third], with_record[:third]]),
        np.repeat([0, 1], third),
    )

    def scores(start: int, stop: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        low, high = (
            learner.predict_proba(rows[start:stop])[:, 1] for rows in (without, with_record)
        )
        return low, high

    low, high = scores(third, 2 * third)
    events = [
        Event(float(cut), is_above)
        for cut in np.unique(np.concatenate([low, high]))
        for is_above in (True, False)
    ]
    chosen = max(events, key=lambda event: event.count(low, high, delta, confidence).epsilon)
    return chosen.count(*scores(2 * third, 3 * third), delta, confidence)
