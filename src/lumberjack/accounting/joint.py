"""Threshold queries and other groups of queries as one release, under the ``safe`` accounting.

Symbols as in :mod:`lumberjack.accounting.sparse_threshold`. The Gaussian parts of all groups compose,
also adaptively, to

    mu_total^2 = sum over groups of count/sigma^2

and each group owns a share of mu_total^2. The whole delta for the steps over the floor and for the
composition at once would not be sound: a group that is released first lets the structure adapt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from lumberjack.accounting import gaussian, zcdp
from lumberjack.accounting.checks import (
    check_delta,
    check_epsilon,
    check_non_negative,
    check_positive,
)
from lumberjack.accounting.groups import Group, JointNoise, Structure, get_mu
from lumberjack.accounting.guarantee import Guarantee
from lumberjack.accounting.sparse_threshold import (
    GAUSSIAN_SHARE,
    SafeDelta,
    calibrate_paper,
    calibrate_safe,
    get_delta_inf,
    get_margin_ratio,
)


def get_delta_joint_parts(
    epsilon: float, structures: Structure | Sequence[Structure], others: Sequence[Group] = ()
) -> SafeDelta:
    """Return both parts of the ``safe`` delta of one joint release, or of several together.

    The argument of :func:`lumberjack.accounting.sparse_threshold.get_delta_safe` takes any number of
    structures: no step over a floor shows in any of them but with the sum of their delta_inf (union
    bound), and everything else is one adaptive composition, of Gaussian releases (their squared mu
    add up) or, where leaves vote, of zCDP mechanisms (Lemmas 9 and 11).

    Parameters
    ----------
    epsilon : float
        Positive.
    structures : Structure or sequence of Structure
        Threshold queries with their noise, each with a floor of its own.
    others : sequence of Group
        The other groups with their noise, released in any order.
    """
    epsilon = check_epsilon(epsilon)
    structures = [structures] if isinstance(structures, Structure) else structures
    # Nested, as the noise of seeded fits depends on the last digit.
    mu = math.hypot(*(one.mu for one in structures), get_mu(others))
    has_votes = any(group.is_vote for group in others)
    return SafeDelta(
        delta_gauss=zcdp.get_delta(epsilon, mu * mu / 2)
        if has_votes
        else gaussian.get_delta(epsilon, mu),
        delta_inf=sum(get_delta_inf(one.count, one.margin_ratio) for one in structures),
    )


def get_delta_joint(
    epsilon: float, structures: Structure | Sequence[Structure], others: Sequence[Group] = ()
) -> float:
    """Return the ``safe`` delta, at most 1; arguments as for :func:`get_delta_joint_parts`."""
    return min(1.0, get_delta_joint_parts(epsilon, structures, others).delta)


def get_noise(
    mu_total: float, ratio: float, structure: Structure, others: Sequence[Group]
) -> JointNoise:
    """Return the noise of each group from the total mu, the ratio margin/sigma and the shares.

    Parameters
    ----------
    mu_total : float
        mu of everything together, positive.
    ratio : float
        margin/sigma of the threshold queries, not negative.
    structure : Structure
        The threshold queries, with their share.
    others : sequence of Group
        The other groups, with theirs; all shares add up to 1.
    """
    mu_total = check_positive("mu_total", mu_total)
    ratio = check_non_negative("ratio", ratio)
    groups = (structure, *others)
    shares = [group.share or 0.0 for group in groups]
    total = sum(shares)
    if 0.0 in shares or abs(total - 1) > 1e-9:
        raise ValueError(
            f"the shares of {', '.join(group.name for group in groups)} must be positive and add up to"
            f" 1, got {' + '.join(f'{share:g}' for share in shares)} = {total:g}."
        )
    sigmas = [
        math.sqrt(group.count * total / share) / mu_total
        for group, share in zip(groups, shares, strict=True)
    ]
    return JointNoise(
        mu_total=mu_total,
        structure=structure.with_noise(sigmas[0], sigmas[0] * ratio),
        others=tuple(
            group.with_sigma(sigma) for group, sigma in zip(others, sigmas[1:], strict=True)
        ),
    )


def calibrate_joint(
    epsilon: float, delta: float, structure: Structure, others: Sequence[Group] = ()
) -> JointNoise:
    """Return the noise of a joint release that ``safe`` gives (epsilon, delta).

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1); 0.6 of it covers the Gaussian part and 0.4 the steps over the floor.
    structure : Structure
        The threshold queries, with their share.
    others : sequence of Group
        The other groups, with theirs, none of them a vote; all shares add up to 1.

    Returns
    -------
    JointNoise
        ``get_delta_joint`` at it is at most ``delta``.

    Raises
    ------
    ValueError
        If a group votes (``calibrate_tight`` covers votes), the shares do not add up to 1 or another
        argument is out of range.
    """
    if any(group.is_vote for group in others):
        raise ValueError("the safe accounting calibrates no votes jointly; use calibrate_tight.")
    mu_total = gaussian.get_mu(check_epsilon(epsilon), GAUSSIAN_SHARE * check_delta(delta))
    ratio = get_margin_ratio((1 - GAUSSIAN_SHARE) * delta, structure.count)
    while True:
        noise = get_noise(mu_total, ratio, structure, others)
        if get_delta_joint(epsilon, noise.structure, noise.others) <= delta:
            return noise
        # Rounding only: each step takes a few units in the last place.
        mu_total *= 1 - 4e-16
        ratio *= 1 + 1e-15


def calibrate_separately(
    structure: Structure,
    others: Sequence[Group],
    guarantees: Sequence[Guarantee],
    *,
    is_paper: bool = False,
) -> JointNoise:
    """Return noise with which each group has a guarantee of its own; they add up (Lemma 10).

    Parameters
    ----------
    structure : Structure
        The threshold queries: Theorem 6 if ``is_paper``, else the ``safe`` accounting.
    others : sequence of Group
        The other groups: zCDP (Lemmas 9 and 11).
    guarantees : sequence of Guarantee
        Of the structure and of each other group.
    is_paper : bool, default=False
        Whether the structure's noise is the paper's.
    """
    own, *rest = guarantees
    calibrate = calibrate_paper if is_paper else calibrate_safe
    noise = calibrate(own.epsilon, own.delta, structure.count)
    scaled = []
    for group, guarantee in zip(others, rest, strict=True):
        rho = zcdp.get_rho(guarantee.epsilon, guarantee.delta) / group.count
        scale = zcdp.get_gumbel_scale(rho) if group.is_vote else zcdp.get_gaussian_sigma(rho)
        scaled.append(group.with_sigma(scale) if group.is_discrete else replace(group, scale=scale))
    structure = structure.with_noise(noise.sigma, noise.margin)
    return JointNoise(get_mu((structure, *scaled)), structure, tuple(scaled))
