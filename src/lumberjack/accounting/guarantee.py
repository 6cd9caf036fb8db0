"""What is promised about privacy, and the ledger of what a fit released.

Symbols: ``epsilon`` and ``delta`` as in Definition 1 of the paper. Nothing is computed from data
here; the numbers come from the other modules of this package.
"""

from __future__ import annotations

import enum
import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal


class NeighbouringRelation(enum.Enum):
    """Which pairs of data sets must be hard to tell apart."""

    ADD_OR_REMOVE_ONE = "add or remove one record"
    REPLACE_ONE = "replace one record"


@dataclass(frozen=True, slots=True)
class Guarantee:
    """An (epsilon, delta) differential privacy guarantee.

    Parameters
    ----------
    epsilon : float
        Positive; infinite when nothing is promised.
    delta : float
        In [0, 1).
    relation : NeighbouringRelation
        The neighbouring relation under which it holds.
    """

    epsilon: float
    delta: float
    relation: NeighbouringRelation = NeighbouringRelation.ADD_OR_REMOVE_ONE

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise ValueError(f"epsilon must be positive, got {self.epsilon}.")
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must lie in [0, 1), got {self.delta}.")

    def __str__(self) -> str:
        if math.isinf(self.epsilon):
            return "not private"
        return f"({self.epsilon:g}, {self.delta:g})-DP, {self.relation.value}"


@dataclass(frozen=True, slots=True)
class Release:
    """One group of private queries that a fit answered.

    Parameters
    ----------
    name : str
        What was released, e.g. "structure".
    mechanism : str
        The mechanism, by name.
    theorem : str
        Where its guarantee is proved.
    sensitivity : str
        What one record can change.
    n_touches : int
        Number of the group's queries that one record can be counted in.
    parameters : dict of str to float
        Noise scales and thresholds.
    guarantee : Guarantee or None
        What the group satisfies by itself, where that is how the total is composed.
    """

    name: str
    mechanism: str
    theorem: str
    sensitivity: str
    n_touches: int
    parameters: dict[str, float]
    guarantee: Guarantee | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """Everything a fit released and the guarantee of it all together.

    Parameters
    ----------
    releases : tuple of Release
        In the order of release.
    accounting : str
        Name of the accounting that yields the total ("paper", "safe", "tight").
    total : Guarantee
        The guarantee of all releases together.
    caveats : tuple of str
        Facts that weaken it, e.g. fixed noise seeds or bounds read from the rows.
    """

    releases: tuple[Release, ...]
    accounting: str
    total: Guarantee
    caveats: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.total} (accounting: {self.accounting})"]
        for release in self.releases:
            values = ", ".join(f"{k}={v:.6g}" for k, v in release.parameters.items())
            own = f" {release.guarantee}" if release.guarantee else ""
            lines.append(
                f"- {release.name}: {release.mechanism}, {release.n_touches} touches, {values};"
                f" {release.theorem}{own}"
            )
        lines += [f"! {caveat}" for caveat in self.caveats]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class PrivacyCard:
    """What a method claims about privacy, where the claim comes from and what is known against it.

    Parameters
    ----------
    method : str
        Name that a person reads.
    mode : str
        Variant of the method, e.g. "paper" or "corrected".
    claimed : Guarantee or None
        What is claimed; None for a method that claims nothing.
    source : str
        Theorem, section or paper of the claim.
    status : {"holds", "doubted", "broken", "not private"}
        Whether the claim is believed here.
    concerns : tuple of str
        Known weaknesses, each with its source.
    public_inputs : tuple of str
        What the claim takes to be public.
    """

    method: str
    mode: str
    claimed: Guarantee | None
    source: str
    status: Literal["holds", "doubted", "broken", "not private"]
    concerns: tuple[str, ...] = ()
    public_inputs: tuple[str, ...] = field(default=("schema (bounds, categories, classes)",))

    @property
    def is_doubted(self) -> bool:
        """Whether a figure must mark the curve of this method."""
        return self.status in ("doubted", "broken")

    def to_dict(self) -> dict[str, Any]:
        """Return the card as plain data.

        Returns
        -------
        dict
        """
        data = asdict(self)
        if self.claimed is not None:
            data["claimed"] = {
                "epsilon": self.claimed.epsilon,
                "delta": self.claimed.delta,
                "relation": self.claimed.relation.value,
            }
        data["concerns"] = list(self.concerns)
        data["public_inputs"] = list(self.public_inputs)
        return data
