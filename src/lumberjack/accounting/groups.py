"""Groups of queries that a fit releases: what every accounting takes and gives back.

A fit asks threshold queries (the structure) and any number of other groups. An accounting knows of a
group how many of its queries count one record, which noise they have and whether threshold queries
may depend on their answers; what a group is for is the caller's business.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, Self

from lumberjack.accounting.checks import (
    check_choice,
    check_count,
    check_non_negative,
    check_positive,
)


@dataclass(frozen=True, slots=True)
class Group:
    """Queries with one scale of noise; a record changes each that counts it by at most 1 (L2 norm).

    Parameters
    ----------
    name : str
        What the caller calls it.
    count : int
        Number of the group's queries that one record is counted in, at least 1.
    share : float or None, default=None
        Part of the squared mu of a whole release, positive; a calibration needs it.
    scale : float or None, default=None
        In records: standard deviation of Gaussian noise, or scale of the Gumbel noise of a vote.
        None until it is calibrated.
    mechanism : {"gaussian", "exponential"}, default="gaussian"
        Noisy counts, or a vote for the largest count by the exponential mechanism.
    is_first : bool, default=False
        Whether threshold queries may depend on the group's answers. Other groups are released after
        the last threshold query.
    """

    name: str
    count: int
    share: float | None = None
    scale: float | None = None
    mechanism: Literal["gaussian", "exponential"] = "gaussian"
    is_first: bool = False

    def __post_init__(self) -> None:
        # Kept as Python's own numbers: a count of eight bits would wrap in a product.
        self._keep("count", check_count(f"count of {self.name}", self.count))
        if self.share is not None:
            self._keep("share", check_positive(f"share of {self.name}", self.share))
        if self.scale is not None:
            self._keep("scale", check_positive(f"scale of {self.name}", self.scale))
        check_choice(f"mechanism of {self.name}", self.mechanism, ("gaussian", "exponential"))

    def _keep(self, name: str, value: float) -> None:
        object.__setattr__(self, name, value)

    @property
    def is_vote(self) -> bool:
        """Whether only the winner of noisy counts is released."""
        return self.mechanism == "exponential"

    @property
    def sigma(self) -> float:
        """Standard deviation of Gaussian noise with the group's zCDP; for a vote, twice its scale."""
        if self.scale is None:
            raise ValueError(
                f"group {self.name!r} has no noise yet; calibrate it or give its scale."
            )
        return 2 * self.scale if self.is_vote else self.scale

    @property
    def mu(self) -> float:
        """Sensitivity over standard deviation: ``sqrt(count) / sigma``."""
        return math.sqrt(self.count) / self.sigma

    def with_sigma(self, sigma: float) -> Self:
        """Return the group with noise of the zCDP of this standard deviation."""
        return replace(self, scale=sigma / 2 if self.is_vote else sigma)


@dataclass(frozen=True, slots=True)
class Structure(Group):
    """The threshold queries of a fit (Algorithm 2).

    Parameters
    ----------
    margin : float, default=0.0
        The paper's Delta, in records: the threshold is ``1 + margin`` above a whole floor, up to
        which counts are answered no without noise.
    """

    margin: float = 0.0

    def __post_init__(self) -> None:
        # super() does not find its class where slots have made a new one of it.
        Group.__post_init__(self)
        self._keep("margin", check_non_negative(f"margin of {self.name}", self.margin))
        check_choice(f"mechanism of {self.name}", self.mechanism, ("gaussian",))


@dataclass(frozen=True, slots=True)
class JointNoise:
    """The groups of a release, with their noise.

    Parameters
    ----------
    mu_total : float
        mu of everything together, where a vote counts as Gaussian noise of the same zCDP.
    structure : Structure
        The threshold queries.
    others : tuple of Group
        The other groups, in the order in which they were given.
    """

    mu_total: float
    structure: Structure
    others: tuple[Group, ...]

    def __getitem__(self, name: str) -> Group:
        """Return the group of this name."""
        return next(group for group in (self.structure, *self.others) if group.name == name)


def get_mu(groups: Iterable[Group]) -> float:
    """Return mu of several groups together: their squares add up, also adaptively."""
    return math.hypot(*(group.mu for group in groups))
