"""Fit a method many times on neighbouring tables and see how well they can be told apart.

Nothing here knows how a method works: what is seen of a model is what it offers by ``get_released()``, a
mapping of names to numbers or arrays of the same shapes at every fit; without that its predictions, its
probabilities and its report, as anyone sees them who is given the model.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from lumberjack_bench.audit.bounds import LowerBound, find_lower_bound
from lumberjack_bench.audit.findings import Finding, Subject
from lumberjack_bench.audit.neighbours import PAIRS, QUERIES, NeighbouringTables


def observe(model: Any) -> NDArray[np.float64]:
    """Return what an adversary sees of a fitted model, as numbers."""
    if hasattr(model, "get_released"):
        released = [np.ravel(value) for value in model.get_released().values()]
        # To the last digit, which may be what tells.
        return np.nan_to_num(np.concatenate(released).astype(np.float64))
    seen = [np.asarray(model.predict(QUERIES), dtype=np.float64)]
    if hasattr(model, "predict_proba"):
        seen.append(np.asarray(model.predict_proba(QUERIES), dtype=np.float64).ravel())
    if hasattr(model, "fit_report"):
        seen.append(np.array(list(model.fit_report().values()), dtype=np.float64))
    # A sum of many floats may end in digits that only tell the order of the rows.
    observations: NDArray[np.float64] = np.nan_to_num(np.concatenate(seen)).round(9)
    return observations


def _observe_runs(
    subject: Subject,
    pair: NeighbouringTables,
    has_record: bool,
    seeds: Sequence[np.random.SeedSequence],
) -> list[NDArray[np.float64]]:
    observations = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            order, both = seed.spawn(2)
            X, y = pair.rows(has_record=has_record, generator=np.random.default_rng(order))
            observations.append(observe(subject.build(both).fit(X, y)))
    return observations


def bound_by_attack(
    subject: Subject, pair: NeighbouringTables, *, n_runs: int, confidence: float
) -> LowerBound:
    """Return a lower bound on the epsilon of a method, from one pair of tables.

    Parameters
    ----------
    subject : Subject
    pair : NeighbouringTables
        The tables.
    n_runs : int
        Fits on each of the two tables, at least 30. The bound cannot exceed about
        ``log(n_runs / 12)``.
    confidence : float
        In (0, 1); probability that the bound holds.

    Raises
    ------
    ValueError
        For fewer than 30 runs, or parameters that the method refuses.
    """
    if n_runs < 30:
        raise ValueError(f"an audit needs at least 30 runs on each table, got {n_runs}.")
    sides = []
    roots = np.random.SeedSequence(subject.seed).spawn(2)
    for has_record, root in zip((False, True), roots, strict=True):
        seeds = root.spawn(n_runs)
        parts = [seeds[start : start + 100] for start in range(0, n_runs, 100)]
        batches = Parallel(n_jobs=subject.n_jobs)(
            delayed(_observe_runs)(subject, pair, has_record, part) for part in parts
        )
        sides.append(np.array([row for batch in batches for row in batch]))
    return find_lower_bound(sides[0], sides[1], subject.delta, confidence)


def audit_predictions(subject: Subject, *, n_runs: int, confidence: float) -> list[Finding]:
    """Bound epsilon from below by what a model shows, on all pairs of tables.

    Parameters
    ----------
    subject : Subject
        Its delta is that of the claim.
    n_runs : int
        Fits on each table.
    confidence : float
        In (0, 1); probability that all bounds together hold.
    """
    own = 1.0 - (1.0 - confidence) / len(PAIRS)
    findings = []
    for pair in PAIRS:
        bound = bound_by_attack(subject, pair, n_runs=n_runs, confidence=own)
        limit = 0.0
        if bound.more > subject.delta:
            ratio = (bound.more - subject.delta) / bound.less if bound.less else math.inf
            limit = max(math.log(ratio), 0.0)
        findings.append(
            Finding(
                layer="predictions",
                tried=pair.name,
                n_runs=bound.n_runs,
                measured=bound.epsilon,
                allowed=subject.epsilon,
                unit="epsilon >=",
                limit=limit,
                within=f"{subject.epsilon - bound.epsilon:.2f}" if bound.epsilon else "",
                details=f"an event in {bound.more:.1%} of runs on one table, {bound.less:.1%} on the other",
            )
        )
    return findings
