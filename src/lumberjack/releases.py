"""What a forest releases: its noise, and the lines of its ledger."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

from lumberjack.accounting import (
    Group,
    Guarantee,
    JointNoise,
    Ledger,
    Release,
    Structure,
    calibrate_joint,
    gaussian,
)
from lumberjack.accounting.tight import calibrate_tight

SAFE_THEOREM = "adaptive Gaussian composition and a union bound over empty queries"
TIGHT_THEOREM = "backward recursion over the strongest adaptive adversary, rounded up"
GAUSSIAN_THEOREM = (
    "exact law of Gaussian releases under fully adaptive composition (Smith and Thakurta 2022)"
)

_LARGEST_SIGMA = 2.0**16

_DESCRIPTIONS = {
    "structure": (
        "{} sparse threshold (Algorithm 2) in Algorithm 1",
        "one record changes each of its counts by 1",
    ),
    "leaves": (
        "{} mechanism on class counts",
        "one record changes one class count of one leaf per tree by 1",
    ),
    "sums": (
        "{} mechanism on sums of the scaled target t and of 1 - t",
        "one record changes the two sums of one leaf per tree by at most 1 in L2 norm",
    ),
    "guide": (
        "{} mechanism on one class-by-value histogram per feature",
        "one record changes one cell per feature by 1",
    ),
    "stack": (
        "{} mechanism on gradient and Hessian of a clipped logistic model",
        "one record changes the scaled sums by 1 in L2 norm",
    ),
}
"""Mechanism and sensitivity of each group of queries."""


@dataclass(frozen=True, slots=True)
class ForestNoise:
    """Noise of all releases of a forest, in records: scales of the other groups by their name."""

    sigma: float
    margin: float
    scales: Mapping[str, float]

    @classmethod
    def of(cls, noise: JointNoise) -> Self:
        """Return what growing and releasing needs of calibrated groups."""
        scales = {group.name: group.scale for group in noise.others if group.scale is not None}
        assert noise.structure.scale is not None
        return cls(noise.structure.scale, noise.structure.margin, scales)


def calibrate_together(
    epsilon: float,
    delta: float,
    accounting: Literal["safe", "tight"],
    structure: Structure,
    others: Sequence[Group],
) -> tuple[Ledger, ForestNoise]:
    """Return ledger and noise of groups that are accounted for as one release."""
    is_tight = accounting == "tight"
    calibrate = calibrate_tight if is_tight else calibrate_joint
    noise = calibrate(epsilon, delta, structure, others)
    theorem = TIGHT_THEOREM if is_tight else SAFE_THEOREM
    ledger = list_releases(noise, theorem, accounting, Guarantee(epsilon, delta))
    return ledger, ForestNoise.of(noise)


def list_releases(
    noise: JointNoise,
    theorem: str,
    accounting: Literal["safe", "tight", "separate", "paper"],
    total: Guarantee,
    guarantees: Sequence[Guarantee] | None = None,
) -> Ledger:
    """Return the ledger of a forest's releases, in their order.

    Where groups have guarantees of their own, the theorem is that of the structure.
    """
    groups = (noise.structure, *noise.others)
    owns: Sequence[Guarantee | None] = guarantees or (None,) * len(groups)
    releases = []
    for group, own in zip(groups, owns, strict=True):
        mechanism, sensitivity = _DESCRIPTIONS[group.name]
        is_covered = own is None or group is noise.structure
        source = theorem if is_covered else "Lemma 9 and Lemma 11"
        kind = f"discrete {group.mechanism}" if group.is_discrete else group.mechanism
        mechanism = mechanism.format(kind)
        if group.is_discrete:
            source += ", for the continuous noise that discrete noise is dominated by"
        releases.append(Release(group, mechanism, source, sensitivity, own))
    releases.sort(key=lambda release: not release.group.is_first)
    return Ledger(tuple(releases), accounting, total)


def share_out(
    epsilon: float, delta: float, shares: Mapping[str, float], counts: Mapping[str, int]
) -> dict[str, Group]:
    """Return Gaussian groups that make one guarantee exactly: the squares of their mu add up.

    Parameters
    ----------
    epsilon, delta : float
        Of all groups together.
    shares : mapping of str to float
        Parts of the squared mu; they sum to 1.
    counts : mapping of str to int
        Numbers of queries of a group that count one record, where it is not 1.

    Raises
    ------
    ValueError
        If the noise would leave no room for sums in 64 bits.
    """
    # What is cut up is rounded in its last digits; a trifle less covers that.
    mu = gaussian.get_mu(epsilon, delta) * (1 - 1e-12)
    groups = {}
    for name, share in shares.items():
        count = counts.get(name, 1)
        groups[name] = Group(name, count, share, math.sqrt(count / share) / mu)
    if max(group.sigma for group in groups.values()) > _LARGEST_SIGMA:
        raise ValueError(
            f"epsilon={epsilon:g} needs more noise than fits into 64 bits, and nothing could be "
            "learnt with it; raise epsilon."
        )
    return groups


def repeat(group: Group, count: int) -> Group:
    """Return `count` queries that together tell as much as the one query of a group."""
    return replace(group, count=count, scale=group.sigma * math.sqrt(count))


def list_gaussian_releases(
    groups: Iterable[Group], descriptions: Mapping[str, tuple[str, str]], total: Guarantee
) -> Ledger:
    """Return the ledger of groups from :func:`share_out`, with mechanism and sensitivity of each in words."""
    releases = []
    for group in groups:
        mechanism, sensitivity = descriptions[group.name]
        releases.append(Release(group, mechanism, GAUSSIAN_THEOREM, sensitivity))
    return Ledger(tuple(releases), "safe", total)
