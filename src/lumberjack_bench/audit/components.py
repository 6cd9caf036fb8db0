"""Layer "components": what one record touches, and the noise of each group, one by one.

A forgotten query is found here with certainty; whole fits cannot see one among many. What a record
touches is read off the transcript and held against the ledger; the noise is what is left of a release when what
the rows add up to is taken away.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy import stats

from lumberjack_bench.audit.findings import LARGEST_Z, Finding, Subject
from lumberjack_bench.audit.transcripts import (
    GroupLook,
    crowds,
    fit_once,
    look_at_groups,
    watch_one,
)

LAYER = "components"


def audit_components(subject: Subject, *, n_runs: int = 200) -> list[Finding]:
    """Hold what a record touches, and all noise, against the ledger.

    Parameters
    ----------
    subject : Subject
        Of a method with a transcript.
    n_runs : int
        Fits on each of the tables, all without the record.
    """
    ledger = fit_once(subject).ledger_
    declared = {release.name: release.group for release in ledger.releases}
    seen = [
        watch_one(subject, table, n_runs, look_at_groups, stream=50 + i)
        for i, table in enumerate(crowds(subject))
    ]
    findings: list[Finding] = []
    for name in seen[0][0]:
        looks = [fit[name] for fits in seen for fit in fits]
        if name not in declared:
            findings.append(
                Finding(LAYER, f"{name}: queries a record", len(looks), math.inf, 0.0, "found")
            )
            continue
        group = declared[name]
        is_gaussian = bool(len(looks[0].noise))
        largest = max(look.shift for look in looks)
        n_queries = (largest * group.sigma) ** 2 if is_gaussian else largest
        findings.append(
            Finding(
                LAYER,
                f"{name}: queries of unit sensitivity that count one record",
                len(looks),
                n_queries,
                group.count * (1 + 1e-9),
                "found",
                within=f"{max(1 - n_queries / group.count, 0):.0%}",
                details=f"{group.count} declared",
            )
        )
        if is_gaussian:
            findings.extend(_weigh_noise(name, looks))
            continue
        largest_ratio = math.exp(2 / group.sigma) if group.is_vote else 1.0
        by_table = [[fit[name].score for fit in fits] for fits in seen]
        findings.append(_weigh_answers(name, by_table, largest_ratio))
    return findings


def _weigh_noise(name: str, looks: list[GroupLook]) -> Iterator[Finding]:
    """Refuse noise whose variance is too small, and releases that are no sum of rows plus noise."""
    noise = np.concatenate([look.noise for look in looks])
    variance = float(np.mean(noise**2))
    error = math.sqrt(2 / len(noise))
    yield Finding(
        LAYER,
        f"{name}: standard deviation of the noise, {math.sqrt(variance):.4f} of what the ledger says",
        len(noise),
        (1 - variance) / error,
        LARGEST_Z,
        "z =",
        within=f"{LARGEST_Z * error / 2:.1%} of the noise",
    )
    n_common = min(len(look.noise) for look in looks)
    mean = np.mean([look.noise[:n_common] for look in looks], axis=0)
    # Its tail is that of a chi-squared variable; this spells it in standard deviations.
    tail = stats.chi2.sf(len(looks) * float(mean @ mean), n_common)
    yield Finding(
        LAYER,
        f"{name}: what was released less what the rows add up to, mean over fits",
        len(looks),
        float(stats.norm.isf(tail)),
        LARGEST_Z,
        "z =",
        within=f"{LARGEST_Z / math.sqrt(len(looks)):.2f} of the noise",
    )


def _weigh_answers(name: str, by_table: list[list[float]], largest_ratio: float) -> Finding:
    """Refuse answers that do not have the law that their likelihood ratio is computed from.

    Without the record the mean of the likelihood ratio is 1, whatever the law, if it is the right one.
    """
    found = []
    for scores in by_table:
        ratios = np.exp(scores)
        n_runs = len(ratios)
        # Answers too rare to be seen in so few runs may make up for a few in n_runs.
        error = math.hypot(float(ratios.std()) / math.sqrt(n_runs), 2.5 * largest_ratio / n_runs)
        mean = float(ratios.mean())
        found.append((abs(mean - 1) / error, mean, error))
    z, mean, error = max(found)
    return Finding(
        LAYER,
        f"{name}: law of the answers, mean likelihood ratio {mean:.4f} where 1 is due",
        sum(map(len, by_table)),
        z,
        LARGEST_Z,
        "z =",
        within=f"{LARGEST_Z * error:.1%} of the ratio",
    )
