"""Layer "claim": the likelihood ratio of whole fits, and how far it parts the two tables.

No statistic tells two tables apart better than the ratio itself (Neyman and Pearson). A few runs that are not
counted choose the table and the event; all others are counted, so nothing is to be corrected for.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lumberjack_bench.audit.bounds import Event, choose_event, estimate_limit
from lumberjack_bench.audit.findings import LARGEST_Z, Finding, Subject
from lumberjack_bench.audit.transcripts import (
    CrowdTable,
    crowds,
    fit_once,
    floors,
    look_at_ratios,
    watch,
)

PROFILE = (0.0, 0.01, 0.5, 1.0, 1.5)
"""Epsilons at which the privacy profile is measured."""

_LEAST_PILOT = 60
_LEAST_EPSILON = 0.004

Scores = tuple[NDArray[np.float64], NDArray[np.float64]]


class ProfilePoint(NamedTuple):
    """The privacy profile at one epsilon: what an event shows, and what the accounting allows.

    Attributes
    ----------
    epsilon : float
    measured : float
        ``Pr[event on one table] - exp(epsilon) Pr[event on the other]``; any event is a lower bound
        on delta.
    error : float
        Its standard deviation.
    allowed : float
        Delta of the accounting; 1 where it says nothing.
    """

    epsilon: float
    measured: float
    error: float
    allowed: float


def audit_claim(subject: Subject, *, n_runs: int, confidence: float) -> list[Finding]:
    """Bound epsilon from below by whole fits; the floor is looked at with a quarter of the runs.

    Parameters
    ----------
    subject : Subject
        Of a method with a transcript.
    n_runs : int
        Counted fits on each of the two tables.
    confidence : float
        In (0, 1); probability that all bounds together hold.
    """
    n_pilot = max(n_runs // 15, _LEAST_PILOT)
    few_rows = floors(subject)
    # Of what may go wrong, most is left to the bound that comes close.
    main = 1 - 0.8 * (1 - confidence) if few_rows else confidence
    other = 1 - 0.1 * (1 - confidence)
    tables = crowds(subject)
    trials = [
        _get_scores(subject, table, n_pilot // 3, stream=10 + i) for i, table in enumerate(tables)
    ]
    table = tables[int(np.argmax([_get_distance(*trial) for trial in trials]))]
    event = choose_event(
        *_get_scores(subject, table, n_pilot, stream=19),
        n_runs,
        subject.delta,
        main,
        are_ratios=True,
    )
    scores = _get_scores(subject, table, n_runs, stream=20)
    profile = measure_profile(subject, scores, is_added=event.is_above)
    findings = [
        _weigh(subject, table, event, scores, main),
        _weigh_profile(profile, table, n_runs),
    ]
    for i, table in enumerate(few_rows):
        pilot = _get_scores(subject, table, n_pilot, stream=30 + i, group="structure")
        n_few = max(n_runs // 4, _LEAST_PILOT)
        event = choose_event(*pilot, n_few, subject.delta, other, are_ratios=True)
        few = _get_scores(subject, table, n_few, stream=40 + i, group="structure")
        findings.append(_weigh(subject, table, event, few, other))
    return findings


def measure_profile(
    subject: Subject, scores: Scores, *, is_added: bool
) -> tuple[ProfilePoint, ...]:
    """Return the privacy profile that runs show, beside that of the accounting.

    Parameters
    ----------
    subject : Subject
    scores : pair of ndarray
        Log likelihood ratios of runs without the record, and with it.
    is_added : bool
        Whether the record's presence is the likelier side of the event, or its absence.
    """
    ledger = fit_once(subject).ledger_
    points = []
    for epsilon in PROFILE:
        more, less = (scores[1], scores[0]) if is_added else (-scores[0], -scores[1])
        p, q = float((more > epsilon).mean()), float((less > epsilon).mean())
        factor = math.exp(epsilon)
        variance = (p * (1 - p) + factor**2 * q * (1 - q)) / len(more)
        # The accounting takes no epsilon of 0; an event of probability 1 may owe it the difference.
        least = max(epsilon, _LEAST_EPSILON)
        allowed = min(1.0, ledger.get_delta(least) + math.exp(least) - factor)
        points.append(ProfilePoint(epsilon, p - factor * q, math.sqrt(variance), allowed))
    return tuple(points)


def _get_scores(
    subject: Subject, table: CrowdTable, n_runs: int, *, stream: int, group: str = ""
) -> Scores:
    """Return the log likelihood ratios of runs on both tables, of all groups or of one."""
    seen = watch(subject, table, n_runs, look_at_ratios, stream=stream)
    without, with_record = (
        np.array([ratios[group] if group else sum(ratios.values()) for ratios in side])
        for side in seen
    )
    return without, with_record


def _get_distance(without: NDArray[np.float64], with_record: NDArray[np.float64]) -> float:
    """Return how many standard deviations two sets of scores are apart; none if some are infinite."""
    spread = float(np.hypot(without.std(), with_record.std()))
    return abs(float(with_record.mean() - without.mean())) / spread if spread > 0 else 0.0


def _weigh(
    subject: Subject, table: CrowdTable, event: Event, scores: Scores, confidence: float
) -> Finding:
    bound = event.bound(*scores, subject.delta, confidence)
    distance = subject.epsilon - bound.epsilon
    return Finding(
        layer="claim",
        tried=table.name,
        n_runs=bound.n_runs,
        measured=bound.epsilon,
        allowed=subject.epsilon,
        unit="epsilon >=",
        limit=estimate_limit(*scores, subject.delta),
        within=f"{distance:.2f}" if bound.epsilon else "",
        details=f"an event in {bound.more:.1%} of runs on one table, {bound.less:.1%} on the other",
    )


def _weigh_profile(profile: tuple[ProfilePoint, ...], table: CrowdTable, n_runs: int) -> Finding:
    """Compare the profile with that of the accounting; the claim is refuted where it lies above it."""
    known = [point for point in profile if point.allowed < 1 and point.error > 0]
    points = "; ".join(
        f"delta({point.epsilon:g}) {point.measured:.4f} +- {point.error:.4f}"
        + (f" of {point.allowed:.4f}" if point.allowed < 1 else "")
        for point in profile
    )
    z = max(((p.measured - p.allowed) / p.error for p in known), default=-math.inf)
    near = [point.measured / point.allowed for point in known if point.epsilon <= 0.01]
    seen = [point for point in known if point.measured > LARGEST_Z * point.error]
    return Finding(
        layer="claim",
        tried=f"privacy profile on {table.name}",
        n_runs=n_runs,
        measured=z,
        allowed=LARGEST_Z,
        unit="z =",
        within=f"{abs(1 - near[-1]):.0%} at epsilon 0.01" if near and seen else "",
        details=points,
    )
