"""What a forest releases: its noise, and the lines of its ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from lumberjack.accounting import (
    Group,
    Guarantee,
    JointNoise,
    Ledger,
    Release,
    Structure,
    calibrate_joint,
)
from lumberjack.accounting.tight import calibrate_tight

SAFE_THEOREM = "adaptive Gaussian composition and a union bound over empty queries"
TIGHT_THEOREM = "backward recursion over the strongest adaptive adversary, rounded up"

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
