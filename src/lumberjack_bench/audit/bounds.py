"""From runs on two neighbouring tables to a lower bound on epsilon that holds with confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats
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
    of any event on neighbouring tables. The bound is the largest epsilon for which an exact
    test refuses that, to three decimals.

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
    wrong = 1.0 - confidence
    low, high = 0, 1000 * math.ceil(math.log(n_runs) + 1)
    while low < high:
        middle = (low + high) // 2
        is_refused = get_p_value(n_more, n_less, n_runs, middle / 1000, delta, wrong) <= wrong
        low, high = (middle + 1, high) if is_refused else (low, middle)
    epsilon = max(low - 1, 0) / 1000
    return LowerBound(epsilon, n_more / n_runs, n_less / n_runs, n_runs)


_SHARE_OUTSIDE = 0.02
"""Of what may go wrong, for a second probability that lies outside of its own limits."""
_N_NUISANCE = 50


def get_p_value(
    n_more: int, n_less: int, n_runs: int, epsilon: float, delta: float, wrong: float
) -> float:
    """Return how likely counts so far apart are at most under ``p <= exp(epsilon) q + delta``.

    The statistic is ``n_more - exp(epsilon) n_less``, its law that of two independent binomial counts. The
    unknown q is the worst one within its Clopper-Pearson limits, and what these may miss is added
    (Berger and Boos 1994, "P values maximized over a confidence set for the nuisance parameter").

    Parameters
    ----------
    n_more, n_less, n_runs, delta
        As for :func:`bound_from_counts`.
    epsilon : float
        At least 0.
    wrong : float
        In (0, 1); the probability at which the test is used.
    """
    outside = _SHARE_OUTSIDE * wrong
    least = stats.beta.ppf(outside / 2, n_less, n_runs - n_less + 1) if n_less else 0.0
    most = stats.beta.ppf(1 - outside / 2, n_less + 1, n_runs - n_less) if n_less < n_runs else 1.0
    # The law has a kink where p reaches 1.
    kink = min(max((1 - delta) * math.exp(-epsilon), least), most)
    q = np.append(np.linspace(least, most, _N_NUISANCE), kink)[:, None]
    p = np.minimum(math.exp(epsilon) * q + delta, 1.0)
    # Counts that no q within the limits makes likely are left out, and paid for.
    first, last = (
        int(stats.binom.ppf(tail, n_runs, limit))
        for tail, limit in ((outside * 1e-6, least), (1 - outside * 1e-6, most))
    )
    less = np.arange(max(first, 0), last + 1)
    needed = np.ceil(n_more + math.exp(epsilon) * (less - n_less) - 1e-9).clip(0, n_runs + 1)
    chances = stats.binom.pmf(less, n_runs, q) * special.bdtrc(needed - 1, n_runs, p)
    return min(1.0, float(chances.sum(axis=1).max()) + outside * (1 + 2e-6))


def _expect_bound(more: float, less: float, n_runs: int, delta: float, confidence: float) -> float:
    """Return about what bound shares of few runs promise for runs still to come."""
    if more <= delta:
        return 0.0
    spread = math.sqrt((more * (1 - more) / (more - delta) ** 2 + (1 - less) / less) / n_runs)
    return math.log((more - delta) / less) - float(special.ndtri(confidence)) * spread


@dataclass(frozen=True, slots=True)
class Event:
    """A score above a cut, for the record's presence, or at most a cut, for its absence."""

    cut: float
    is_above: bool

    def count(
        self, without: NDArray[np.float64], with_record: NDArray[np.float64]
    ) -> tuple[int, int]:
        """Return how many runs show the event, on the table where it is likelier and on the other."""
        more, less = (with_record, without) if self.is_above else (without, with_record)
        n_more, n_less = (
            int((side >= self.cut if self.is_above else side <= self.cut).sum())
            for side in (more, less)
        )
        return n_more, n_less

    def bound(
        self,
        without: NDArray[np.float64],
        with_record: NDArray[np.float64],
        delta: float,
        confidence: float,
    ) -> LowerBound:
        """Return the bound that scores of runs on both tables give."""
        counts = self.count(without, with_record)
        return bound_from_counts(*counts, len(without), delta, confidence)


def choose_event(
    without: NDArray[np.float64],
    with_record: NDArray[np.float64],
    n_runs: int,
    delta: float,
    confidence: float,
    *,
    are_ratios: bool = False,
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
    are_ratios : bool, default=False
        Whether scores are log likelihood ratios, of which few runs say more.
    n_cuts : int
        How many cuts are tried.
    """
    cuts = np.unique(np.concatenate([without, with_record]))
    cuts = cuts[np.unique(np.linspace(0, len(cuts) - 1, n_cuts).astype(np.int64))]
    events = [Event(cut, is_above) for is_above in (True, False) for cut in cuts.tolist()]
    n_pilot = len(without)

    def promise(event: Event) -> float:
        counts: tuple[float, float] = event.count(without, with_record)
        if are_ratios:
            sides = (with_record, without) if event.is_above else (-without, -with_record)
            counts = _weigh_counts(*sides, event.cut if event.is_above else -event.cut)
        # Shares of few runs are drawn towards each other: chance alone finds large ratios.
        more, less = ((min(count, n_pilot) + 1) / (n_pilot + 2) for count in counts)
        return _expect_bound(more, less, n_runs, delta, confidence)

    return max(events, key=promise)


def _weigh_counts(
    more: NDArray[np.float64], less: NDArray[np.float64], cut: float
) -> tuple[float, float]:
    """Return about how many log likelihood ratios of either table reach a cut.

    That is the mean of what a table's own runs say and of what those of the other say, each weighed by
    the ratio; it holds if the ratios are right, as for a sound method.
    """
    above, above_less = more[more >= cut], less[less >= cut]
    n_more = (len(above) + float(np.exp(above_less).sum())) / 2
    return n_more, (float(np.exp(-above).sum()) + len(above_less)) / 2


def estimate_limit(
    without: NDArray[np.float64], with_record: NDArray[np.float64], delta: float
) -> float:
    """Return about what infinitely many runs would bound epsilon by, from log likelihood ratios.

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
            if (less >= cut).sum() < 30:
                continue
            p, q = (count / len(more) for count in _weigh_counts(more, less, cut))
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

    chosen = choose_event(*scores(third, 2 * third), third, delta, confidence)
    return chosen.bound(*scores(2 * third, 3 * third), delta, confidence)
