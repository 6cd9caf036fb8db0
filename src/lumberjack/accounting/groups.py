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

import numpy as np
from numpy.typing import NDArray

from lumberjack.accounting import discrete_gaussian
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
        In records: standard deviation of Gaussian noise, parameter of the discrete Gaussian, or scale of
        the Gumbel noise of a vote. None until it is calibrated.
    mechanism : {"gaussian", "exponential"}, default="gaussian"
        Noisy counts, or a vote for the largest count by the exponential mechanism.
    is_first : bool, default=False
        Whether threshold queries may depend on the group's answers. Other groups are released after
        the last threshold query.
    step : float or None, default=None
        None for continuous noise. Otherwise the noise is the discrete Gaussian on multiples of this, in
        the unit of the sensitivity; what is released without noise is made of such multiples.
    """

    name: str
    count: int
    share: float | None = None
    scale: float | None = None
    mechanism: Literal["gaussian", "exponential"] = "gaussian"
    is_first: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        # Kept as Python's own numbers: a count of eight bits would wrap in a product.
        self._keep("count", check_count(f"count of {self.name}", self.count))
        if self.share is not None:
            self._keep("share", check_positive(f"share of {self.name}", self.share))
        if self.scale is not None:
            self._keep("scale", check_positive(f"scale of {self.name}", self.scale))
        if self.step is not None:
            self._keep("step", check_positive(f"step of {self.name}", self.step))
        check_choice(f"mechanism of {self.name}", self.mechanism, ("gaussian", "exponential"))

    def _keep(self, name: str, value: float) -> None:
        object.__setattr__(self, name, value)

    @property
    def is_vote(self) -> bool:
        """Whether only the winner of noisy counts is released."""
        return self.mechanism == "exponential"

    @property
    def is_discrete(self) -> bool:
        """Whether the noise is the discrete Gaussian; a vote adds none."""
        return self.step is not None and not self.is_vote

    @property
    def sigma(self) -> float:
        """Standard deviation of continuous noise that tells no less than the group's queries do.

        For a vote it is twice its scale (equal zCDP); for discrete noise see
        :mod:`lumberjack.accounting.discrete_gaussian`.
        """
        if self.scale is None:
            raise ValueError(
                f"group {self.name!r} has no noise yet; calibrate it or give its scale."
            )
        if self.is_vote:
            return 2 * self.scale
        if self.step is not None:
            return self.step / discrete_gaussian.get_mu(self.scale / self.step)
        return self.scale

    @property
    def mu(self) -> float:
        """Sensitivity over standard deviation: ``sqrt(count) / sigma``."""
        return math.sqrt(self.count) / self.sigma

    def with_sigma(self, sigma: float) -> Self:
        """Return the group with the least noise whose ``sigma`` is at least this one."""
        if self.is_vote:
            return replace(self, scale=sigma / 2)
        if self.step is not None:
            return replace(self, scale=self.step * _get_scale(sigma / self.step))
        return replace(self, scale=sigma)


def _get_scale(sigma: float) -> float:
    """Return a discrete scale, also where a quotient or product of it rounds the wrong way."""
    return discrete_gaussian.get_scale((1 - 4e-15) / sigma)


@dataclass(frozen=True, slots=True)
class Structure(Group):
    """The threshold queries of a fit (Algorithm 2).

    Parameters
    ----------
    margin : float, default=0.0
        The paper's Delta, in records: the threshold is ``1 + margin`` above a whole floor, up to
        which counts are answered no without noise. With discrete noise it is whole, and ``step`` is 1.
    """

    margin: float = 0.0

    def __post_init__(self) -> None:
        # super() does not find its class where slots have made a new one of it.
        Group.__post_init__(self)
        self._keep("margin", check_non_negative(f"margin of {self.name}", self.margin))
        check_choice(f"mechanism of {self.name}", self.mechanism, ("gaussian",))
        if self.step is not None and (self.step != 1 or self.margin != int(self.margin)):
            raise ValueError(
                f"discrete noise of {self.name} needs a step of 1 and a whole margin, got "
                f"{self.step:g} and {self.margin:g}."
            )

    @property
    def margin_ratio(self) -> float:
        """Margin in standard deviations: ``Phi(-margin_ratio)`` is the chance of a yes at the floor."""
        if self.step is None:
            return self.margin / self.sigma
        assert self.scale is not None
        # The next count above the margin is the first that is answered yes.
        above = np.array([int(self.margin) + 1])
        return float(discrete_gaussian.get_z(self.scale, above)[0]) * (1 - 1e-12)

    def with_noise(self, sigma: float, margin: float) -> Self:
        """Return the structure with the least noise that tells no more than this continuous one."""
        if self.step is None:
            return replace(self, scale=sigma, margin=margin)
        scale = _get_scale(sigma)
        ratio = margin / sigma * (1 + 2e-12)
        return replace(self, scale=scale, margin=float(discrete_gaussian.get_margin(scale, ratio)))

    def answer_z(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``Phi^-1`` of the probability of a yes, for each count above the floor."""
        if self.step is None:
            z: NDArray[np.float64] = (counts - (1 + self.margin)) / self.sigma
            return z
        assert self.scale is not None
        # Yes is X >= margin + 2 - count.
        return -discrete_gaussian.get_z(self.scale, (self.margin + 2 - counts).astype(np.int64))


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
