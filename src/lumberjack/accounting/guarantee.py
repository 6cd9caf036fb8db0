"""What is promised about privacy: a guarantee, and the card of a method.

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
        """Return the card as plain data."""
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
