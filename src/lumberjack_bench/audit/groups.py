"""Layer "groups": what each group of releases tells by itself, and whether noise is used twice.

How far a group's best statistic moves with the record, in its own standard deviations, is held
against the group's share of the claim, never against the noise that a ledger admits to.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lumberjack.accounting import Ledger, Structure
from lumberjack.accounting.gaussian import get_mu
from lumberjack_bench.audit.findings import LARGEST_Z, Finding, Subject
from lumberjack_bench.audit.transcripts import (
    GroupLook,
    crowds,
    fit_once,
    look_at_groups,
    watch,
)

LAYER = "groups"

_FEW_COORDINATES = 24
_FEW_FITS = 100

_FEW_DRAWS = 1000
"""Of each group, from its first on: of very many draws some are neighbours on the grid by chance."""

_SAME = 2.0**-19
"""Draws closer than this may be one, beside rounding to a grid of 2^-20."""


def get_allowed_shifts(ledger: Ledger, epsilon: float, delta: float) -> dict[str, float]:
    """Return the largest mu of each group that the claim leaves room for.

    Parameters
    ----------
    ledger : Ledger
        Of which only shares, the groups' own guarantees and the way they add up are taken.
    epsilon, delta : float
        The claim.
    """
    allowed = {}
    weights = {}
    for release in ledger.releases:
        # An answer tells 2/pi of what the noisy count would, which only this accounting counts on.
        is_answers = ledger.accounting == "tight" and isinstance(release.group, Structure)
        weight = 2 / math.pi if is_answers else 1.0
        weights[release.name] = weight * (release.group.share or 1.0)
    for release in ledger.releases:
        if release.guarantee is not None:
            allowed[release.name] = get_mu(release.guarantee.epsilon, release.guarantee.delta)
            continue
        share = weights[release.name] / sum(weights.values())
        allowed[release.name] = get_mu(epsilon, delta) * math.sqrt(share)
    return allowed


def audit_groups(subject: Subject, *, n_runs: int = 1000) -> list[Finding]:
    """Hold each group against its share of the claim, on one tree of three levels.

    Parameters
    ----------
    subject : Subject
        Of a method with a transcript.
    n_runs : int
        Fits on each of the two tables.
    """
    subject = subject.with_params(n_estimators=1, max_depth=3)
    allowed = get_allowed_shifts(fit_once(subject).ledger_, subject.epsilon, subject.delta)
    seen = watch(subject, crowds(subject)[0], n_runs, look_at_groups, stream=60)
    findings = []
    for name in seen.without[0]:
        without, with_record = (np.array([fit[name].score for fit in side]) for side in seen)
        findings.append(_weigh_group(name, without, with_record, allowed.get(name, 0.0)))
    findings.extend(_look_for_reuse(seen.without))
    return findings


def _weigh_group(
    name: str, without: NDArray[np.float64], with_record: NDArray[np.float64], allowed: float
) -> Finding:
    n_runs = len(without)
    difference = float(with_record.mean() - without.mean())
    spread = math.sqrt((float(without.var()) + float(with_record.var())) / 2)
    shift = difference / spread if spread > 1e-9 else math.copysign(math.inf, difference)
    if abs(difference) < 1e-9:
        shift = 0.0
    error = math.sqrt(2 / n_runs + min(shift, 10.0) ** 2 / (4 * n_runs))
    return Finding(
        LAYER,
        f"{name}: moved by {shift:.3f} standard deviations, {allowed:.3f} is its share of the claim",
        n_runs,
        (shift - allowed) / error,
        LARGEST_Z,
        "z =",
        within=f"{abs(1 - shift / allowed):.0%}" if shift > LARGEST_Z * error else "",
    )


def _look_for_reuse(fits: list[dict[str, GroupLook]]) -> list[Finding]:
    """Look for noise that two releases share: by correlation, and by draws that come twice."""
    names = [name for name, look in fits[0].items() if len(look.noise)]
    if not names:
        return []
    columns = []
    for name in names:
        n_common = min(min(len(fit[name].noise) for fit in fits), _FEW_COORDINATES)
        columns.append(np.array([fit[name].noise[:n_common] for fit in fits]))
    noise = np.hstack(columns)
    noise = noise[:, noise.std(axis=0) > 1e-9]
    findings = []
    if noise.shape[1] > 1 and len(noise) > 2 * noise.shape[1]:
        least = float(np.linalg.eigvalsh(np.corrcoef(noise.T))[0])
        # Of independent noise it lies close to this (Marchenko and Pastur).
        due = (1 - math.sqrt(noise.shape[1] / len(noise))) ** 2
        findings.append(
            Finding(
                LAYER,
                f"noise of {', '.join(names)}: least eigenvalue of its correlation, {least:.3f} where "
                f"{due:.3f} is due",
                len(noise),
                due / max(least, 1e-12),
                2.0,
                "due over found =",
                within="half of the eigenvalue",
            )
        )
    n_same, expected = 0, 0.0
    for fit in fits[:_FEW_FITS]:
        draws = np.sort(np.concatenate([fit[name].noise[:_FEW_DRAWS] for name in names]))
        n_same += int((np.diff(draws) <= _SAME).sum())
        # The difference of two normals has density 1 / (2 sqrt(pi)) at 0.
        expected += len(draws) * (len(draws) - 1) / 2 * _SAME / math.sqrt(math.pi)
    findings.append(
        Finding(
            LAYER,
            f"noise of {', '.join(names)}: draws that come twice, {n_same} where {expected:.1f} are due",
            min(len(fits), _FEW_FITS),
            float(stats.norm.isf(stats.poisson.sf(n_same - 1, expected))),
            LARGEST_Z,
            "z =",
            within=f"{LARGEST_Z * math.sqrt(expected):.0f} draws",
        )
    )
    return findings
