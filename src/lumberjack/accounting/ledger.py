"""The ledger of a fit: what was released with which noise, and what it all gives together.

A ledger answers what a privacy accountant is asked: :meth:`Ledger.get_delta`,
:meth:`Ledger.get_epsilon`, and the sum of two ledgers for two fits on the same rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from lumberjack.accounting.checks import check_choice, check_delta, check_epsilon
from lumberjack.accounting.groups import Group, Structure
from lumberjack.accounting.guarantee import Guarantee, NeighbouringRelation
from lumberjack.accounting.joint import get_delta_joint
from lumberjack.accounting.roots import smallest_within


@dataclass(frozen=True, slots=True)
class Release:
    """One group of private queries that a fit answered.

    Parameters
    ----------
    group : Group or Structure
        Name, number of queries, noise and order; all that the accounting needs.
    mechanism : str
        What was done, in words.
    theorem : str
        Where its guarantee is proved.
    sensitivity : str
        What one record can change.
    guarantee : Guarantee or None
        What the group satisfies by itself, where that is how the total is composed.
    """

    group: Group
    mechanism: str
    theorem: str
    sensitivity: str
    guarantee: Guarantee | None = None

    @property
    def name(self) -> str:
        """Name of the group."""
        return self.group.name

    @property
    def n_queries_per_record(self) -> int:
        """Number of the group's queries that one record is counted in."""
        return self.group.count

    @property
    def parameters(self) -> dict[str, float]:
        """Noise scales and thresholds, in records, and the share of the budget."""
        group = self.group
        # The scale of discrete noise is what was drawn with, its sigma what the accounting makes of it.
        sigma = group.scale if group.is_discrete and group.scale is not None else group.sigma
        values = {"gumbel_scale": sigma / 2} if group.is_vote else {"sigma": sigma}
        if isinstance(group, Structure):
            values |= {"margin": group.margin}
        return values if group.share is None else values | {"share": group.share}


@dataclass(frozen=True, slots=True)
class Ledger:
    """Everything that was released and the guarantee of it all together.

    Two fits on the same rows, also where the second depends on the first, have the sum of their
    ledgers. Under ``paper`` guarantees are added (basic composition, Lemma 10). Otherwise the sum is
    ``safe``: a union bound over the floors of both structures and one adaptive composition of all
    noise (:func:`lumberjack.accounting.joint.get_delta_joint_parts`), at the sum of both deltas. Neither
    covers a second fit whose epsilon or delta was chosen after a look at the first.

    Parameters
    ----------
    releases : tuple of Release
        In the order of release: what stands before threshold queries may be what they depend on.
    accounting : {"safe", "tight", "separate", "paper"}
        How releases add up. ``tight`` follows the strongest adversary; ``separate`` and ``paper`` add
        the guarantees that each release has by itself.
    total : Guarantee
        What all releases satisfy together.
    caveats : tuple of str
        Facts that weaken it, e.g. fixed noise seeds or bounds read from the rows.

    Raises
    ------
    ValueError
        If the total, or what a release has by itself, promises more than the noise gives, or if a
        guarantee is not for add/remove neighbours.
    """

    releases: tuple[Release, ...]
    accounting: Literal["safe", "tight", "separate", "paper"]
    total: Guarantee
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice("accounting", self.accounting, ("safe", "tight", "separate", "paper"))
        if not self.releases:
            raise ValueError("a ledger needs at least one release.")
        for one in (self.total, *(release.guarantee for release in self.releases)):
            if one is not None and one.relation is not NeighbouringRelation.ADD_OR_REMOVE_ONE:
                raise ValueError(
                    f"the noise is accounted for add/remove neighbours, got a guarantee for {one.relation.value!r}."
                )
        if self.accounting != "paper":
            for release in self.releases:
                self._check_own(release)
        slack = 1 + 1e-12  # parts of a budget are rounded when it is cut up
        epsilon, delta = self.total.epsilon, self.total.delta * slack
        own = self._sum_of_guarantees()
        is_kept = own is not None and own.epsilon <= epsilon * slack and own.delta <= delta
        if math.isinf(epsilon) or is_kept:
            return
        reached = self.get_delta(epsilon)
        if reached > delta:
            raise ValueError(
                f"the releases give delta = {reached:g} at epsilon = {epsilon:g}, which is more"
                f" than the {self.total.delta:g} of the total. Raise the noise or the total."
            )

    def get_delta(self, epsilon: float) -> float:
        """Return a delta at which all releases together satisfy epsilon, from their noise alone.

        Parameters
        ----------
        epsilon : float
            Positive.

        Returns
        -------
        float
            Rounded up; exact where all noise is Gaussian and nothing has a threshold.
        """
        epsilon = check_epsilon(epsilon)
        found = [1.0]
        own = self._sum_of_guarantees()
        if own is not None and own.epsilon <= epsilon:
            found.append(own.delta)
        if self.accounting == "paper":
            # The parts of a budget that is cut up may miss the whole by the last digit.
            if self.total.epsilon <= epsilon:
                found.append(self.total.delta)
            return min(found)
        structures, others = self._groups()
        if self.accounting == "tight" and len(structures) == 1:
            # Imported here, as it loads a compiler.
            from lumberjack.accounting.tight import get_delta_tight

            found.append(get_delta_tight(epsilon, structures[0], others))
        else:
            found.append(get_delta_joint(epsilon, structures, others))
        return min(found)

    def get_epsilon(self, delta: float) -> float:
        """Return the smallest epsilon that all releases together satisfy at delta.

        Parameters
        ----------
        delta : float
            In (0, 1).

        Returns
        -------
        float
            Rounded up, at least 1e-9; infinite where no epsilon keeps delta.
        """
        delta = check_delta(delta)
        structures, others = self._groups()
        if self.accounting == "tight" and len(structures) == 1:
            from lumberjack.accounting.tight import get_epsilon_tight

            return get_epsilon_tight(delta, structures[0], others)
        least, most = 1e-9, 1e6
        if self.get_delta(least) <= delta:
            return least
        return smallest_within(self.get_delta, delta) if self.get_delta(most) <= delta else math.inf

    def __add__(self, other: Ledger) -> Ledger:
        """Return the ledger of two fits on the same rows."""
        if not isinstance(other, Ledger):
            return NotImplemented
        delta = self.total.delta + other.total.delta
        if delta >= 1:
            raise ValueError(
                f"two ledgers add up at the sum of their deltas, which is {delta:g} here; it must stay below 1."
            )
        is_paper = self.accounting == other.accounting == "paper"
        epsilon = self.total.epsilon + other.total.epsilon if is_paper else math.inf
        releases = self.releases + other.releases
        if not is_paper and "paper" in (self.accounting, other.accounting):
            # A sum that claims to be safe takes nothing from Theorem 6.
            releases = tuple(replace(release, guarantee=None) for release in releases)
        both = Ledger(
            releases,
            "paper" if is_paper else "safe",
            Guarantee(epsilon, delta),
            tuple(dict.fromkeys(self.caveats + other.caveats)),
        )
        if is_paper:
            return both
        return replace(both, total=Guarantee(both.get_epsilon(both.total.delta), both.total.delta))

    def __radd__(self, other: object) -> Ledger:
        """Return the ledger itself where ``sum`` starts with 0."""
        return self if other == 0 else NotImplemented

    @staticmethod
    def _check_own(release: Release) -> None:
        """Refuse what a release promises by itself if its noise does not give it."""
        own, group = release.guarantee, release.group
        if own is None:
            return
        queries = ([group], []) if isinstance(group, Structure) else ([], [group])
        reached = get_delta_joint(own.epsilon, *queries)
        if reached > own.delta * (1 + 1e-12):
            raise ValueError(
                f"the noise of {group.name} gives delta = {reached:g} at epsilon = {own.epsilon:g}, which is more"
                f" than the {own.delta:g} that it promises."
            )

    def _sum_of_guarantees(self) -> Guarantee | None:
        """Return what basic composition (Lemma 10) gives, if each release has a guarantee."""
        own = [release.guarantee for release in self.releases if release.guarantee]
        if len(own) < len(self.releases):
            return None
        delta = math.fsum(one.delta for one in own)
        return Guarantee(math.fsum(one.epsilon for one in own), delta) if delta < 1 else None

    def _groups(self) -> tuple[list[Structure], list[Group]]:
        """Return the threshold queries and the other groups."""
        groups = [release.group for release in self.releases]
        last = max((i for i, one in enumerate(groups) if isinstance(one, Structure)), default=0)
        groups[:last] = [replace(group, is_first=True) for group in groups[:last]]
        structures = [group for group in groups if isinstance(group, Structure)]
        return structures, [group for group in groups if not isinstance(group, Structure)]

    def __str__(self) -> str:
        lines = [f"{self.total} (accounting: {self.accounting})"]
        for release in self.releases:
            values = ", ".join(f"{k}={v:.6g}" for k, v in release.parameters.items())
            own = f" {release.guarantee}" if release.guarantee else ""
            lines.append(
                f"- {release.name}: {release.mechanism}, {release.n_queries_per_record} queries a"
                f" record, {values}; {release.theorem}{own}"
            )
        lines += [f"! {caveat}" for caveat in self.caveats]
        return "\n".join(lines)
