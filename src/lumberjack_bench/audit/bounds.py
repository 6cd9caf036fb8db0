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

    def bound(
        low: NDArray[np.float64], high: NDArray[np.float64], cut: float, is_above: bool
    ) -> LowerBound:
        # Above the cut for the record's presence, at or below it for its absence.
        more, less = (high >= cut, low >= cut) if is_above else (low <= cut, high <= cut)
        return bound_from_counts(int(more.sum()), int(less.sum()), third, delta, confidence)

    low, high = scores(third, 2 * third)
    events = [
        (float(cut), is_above)
        for cut in np.unique(np.concatenate([low, high]))
        for is_above in (True, False)
    ]
    chosen = max(events, key=lambda event: bound(low, high, *event).epsilon)
    return bound(*scores(2 * third, 3 * third), *chosen)
