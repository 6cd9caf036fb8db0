"""Fit a method many times on neighbouring tables and see how well they can be told apart.

Nothing here knows how a method works: what is seen of a model are its predictions, its
probabilities and its report, as anyone sees them who is given the model.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from lumberjack_bench.audit.bounds import LowerBound, find_lower_bound
from lumberjack_bench.audit.neighbours import QUERIES, SCHEMA, NeighbouringTables
from lumberjack_bench.methods import build_method


def observe(model: Any) -> NDArray[np.float64]:
    """Return what an adversary sees of a fitted model, as numbers."""
    seen = [np.asarray(model.predict(QUERIES), dtype=np.float64)]
    if hasattr(model, "predict_proba"):
        seen.append(np.asarray(model.predict_proba(QUERIES), dtype=np.float64).ravel())
    if hasattr(model, "fit_report"):
        seen.append(np.array(list(model.fit_report().values()), dtype=np.float64))
    # A sum of many floats may end in digits that only tell the order of the rows.
    observations: NDArray[np.float64] = np.nan_to_num(np.concatenate(seen)).round(9)
    return observations


def _observe_runs(
    config: Mapping[str, Any],
    epsilon: float,
    delta: float,
    pair: NeighbouringTables,
    has_record: bool,
    seeds: Sequence[np.random.SeedSequence],
    allow_targets: Sequence[str],
) -> list[NDArray[np.float64]]:
    observations = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            order, splits, noise = seed.spawn(3)
            X, y = pair.rows(has_record=has_record, generator=np.random.default_rng(order))
            model = build_method(
                config,
                schema=SCHEMA,
                epsilon=epsilon,
                delta=delta,
                random_state=splits,
                noise_seed=noise,
                allow_targets=allow_targets,
            )
            observations.append(observe(model.fit(X, y)))
    return observations


def audit(
    config: Mapping[str, Any],
    pair: NeighbouringTables,
    *,
    epsilon: float,
    delta: float,
    n_runs: int,
    confidence: float,
    seed: int,
    n_jobs: int = 1,
    allow_targets: Sequence[str] = (),
) -> LowerBound:
    """Return a lower bound on the epsilon of a method, from one pair of tables.

    Parameters
    ----------
    config : mapping
        The ``method`` part of a configuration.
    pair : NeighbouringTables
        The tables.
    epsilon, delta : float
        What the method is asked to keep.
    n_runs : int
        Fits on each of the two tables, at least 30. The bound cannot exceed about
        ``log(n_runs / 12)``.
    confidence : float
        In (0, 1); probability that the bound holds.
    seed : int
        Of splits, noise and order of rows. The result is the same for any `n_jobs`.
    n_jobs : int
        Processes.
    allow_targets : sequence of str
        Packages that methods may come from besides our own.

    Raises
    ------
    ValueError
        For fewer than 30 runs, or parameters that the method refuses.
    """
    if n_runs < 30:
        raise ValueError(f"an audit needs at least 30 runs on each table, got {n_runs}.")
    sides = []
    for has_record, root in zip((False, True), np.random.SeedSequence(seed).spawn(2), strict=True):
        seeds = root.spawn(n_runs)
        parts = [seeds[start : start + 100] for start in range(0, n_runs, 100)]
        batches = Parallel(n_jobs=n_jobs)(
            delayed(_observe_runs)(config, epsilon, delta, pair, has_record, part, allow_targets)
            for part in parts
        )
        sides.append(np.array([row for batch in batches for row in batch]))
    return find_lower_bound(sides[0], sides[1], delta, confidence)
