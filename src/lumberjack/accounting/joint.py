"""Structure, leaf counts, guide histograms and stacking as one Gaussian-type release.

Symbols as in :mod:`lumberjack.accounting.sparse_threshold`. A record touches ``structure_touches``
threshold queries, ``leaf_touches`` leaf counts (one a tree), ``guide_touches`` histogram cells
(one a feature) and ``stack_touches`` vectors of unit L2 sensitivity, released last. Their Gaussian
parts compose, also adaptively, to

    mu_total^2 = structure_touches/sigma^2 + leaf_touches/sigma_leaf^2
                 + guide_touches/sigma_guide^2 + stack_touches/sigma_stack^2

and each group owns a share of mu_total^2. The whole delta for the structure and for the composition
at once would not be sound: histograms that are released first let the structure queries adapt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lumberjack.accounting import gaussian
from lumberjack.accounting.checks import (
    check_count,
    check_delta,
    check_epsilon,
    check_non_negative,
    check_positive,
)
from lumberjack.accounting.sparse_threshold import (
    GAUSSIAN_SHARE,
    SummedDelta,
    _ratio_for_steps,
    get_delta_safe_parts,
)


@dataclass(frozen=True, slots=True)
class JointNoise:
    """Noise of the groups of a joint release.

    Parameters
    ----------
    mu_total : float
        mu of everything Gaussian together.
    sigma : float
        Standard deviation of the threshold queries' noise, in records.
    margin : float
        The paper's Delta, in records.
    sigma_leaf : float
        Standard deviation of the noise of leaf class counts; infinite without leaves.
    sigma_guide : float
        Standard deviation of the noise of guide histograms; infinite without a guide.
    gumbel_scale_leaf : float, default=inf
        Scale of the Gumbel noise of leaves that vote; finite only where the accounting covers
        them, and then in place of ``sigma_leaf``.
    sigma_stack : float, default=inf
        Standard deviation of the noise of the stacking vectors, per unit of L2 sensitivity; infinite
        without stacking.
    """

    mu_total: float
    sigma: float
    margin: float
    sigma_leaf: float
    sigma_guide: float
    gumbel_scale_leaf: float = math.inf
    sigma_stack: float = math.inf

    @property
    def threshold(self) -> float:
        """The threshold 1 + margin, at which exactly the empty nodes are rejected without noise."""
        return 1.0 + self.margin


def _check_group(name: str, touches: int, share: float) -> tuple[int, float]:
    """Return touches and share of an optional group that must be both zero or both positive."""
    touches = check_count(f"{name}_touches", touches, minimum=0)
    share = check_non_negative(f"{name}_share", share)
    if (touches > 0) != (share > 0):
        raise ValueError(
            f"{name}_touches and {name}_share must be both zero or both positive,"
            f" got {touches} and {share:g}."
        )
    return touches, share


def get_noise(
    mu_total: float,
    ratio: float,
    *,
    structure_touches: int,
    leaf_touches: int,
    guide_touches: int = 0,
    stack_touches: int = 0,
    structure_share: float,
    leaf_share: float,
    guide_share: float = 0.0,
    stack_share: float = 0.0,
) -> JointNoise:
    """Return the noise of each group from the total mu, the ratio margin/sigma and the shares.

    Parameters
    ----------
    mu_total : float
        mu of everything Gaussian together, positive.
    ratio : float
        margin/sigma of the threshold queries, not negative.
    structure_touches : int
        Threshold queries in which one record can be counted, at least 1.
    leaf_touches, guide_touches, stack_touches : int
        Leaf counts and histogram cells in which one record is counted, and stacking vectors; 0 where
        there is none.
    structure_share, leaf_share, guide_share, stack_share : float
        Parts of mu_total^2; they add up to 1.

    Returns
    -------
    JointNoise

    Raises
    ------
    ValueError
        If an argument is out of range or the shares do not add up to 1.
    """
    mu_total = check_positive("mu_total", mu_total)
    ratio = check_non_negative("ratio", ratio)
    m = check_count("structure_touches", structure_touches)
    structure_share = check_positive("structure_share", structure_share)
    k, leaf_share = _check_group("leaf", leaf_touches, leaf_share)
    d, guide_share = _check_group("guide", guide_touches, guide_share)
    n_stack, stack_share = _check_group("stack", stack_touches, stack_share)
    shares = (structure_share, leaf_share, guide_share, stack_share)
    total = sum(shares)
    if abs(total - 1) > 1e-9:
        raise ValueError(
            "structure_share, leaf_share, guide_share and stack_share must add up to 1,"
            f" got {' + '.join(f'{share:g}' for share in shares)} = {total:g}."
        )

    def sigma_of(touches: int, share: float) -> float:
        return math.sqrt(touches * total / share) / mu_total if touches else math.inf

    sigma = sigma_of(m, structure_share)
    return JointNoise(
        mu_total=mu_total,
        sigma=sigma,
        margin=sigma * ratio,
        sigma_leaf=sigma_of(k, leaf_share),
        sigma_guide=sigma_of(d, guide_share),
        sigma_stack=sigma_of(n_stack, stack_share),
    )


def get_delta_joint_safe_parts(
    epsilon: float,
    *,
    structure_touches: int,
    sigma: float,
    margin: float,
    leaf_touches: int = 0,
    sigma_leaf: float = math.inf,
    guide_touches: int = 0,
    sigma_guide: float = math.inf,
    stack_touches: int = 0,
    sigma_stack: float = math.inf,
) -> SummedDelta:
    """Return both parts of the ``safe`` delta of a joint release.

    Parameters
    ----------
    epsilon : float
        Positive.
    structure_touches : int
        Threshold queries in which one record can be counted, at least 1.
    sigma, margin : float
        Noise of the threshold queries.
    leaf_touches, guide_touches, stack_touches : int, default=0
        Leaf counts and histogram cells in which one record is counted, and stacking vectors.
    sigma_leaf, sigma_guide, sigma_stack : float, default=inf
        Standard deviations of their noise; infinite where nothing is released.

    Returns
    -------
    SummedDelta

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    mu_extra = math.hypot(
        _mu_of("leaf", leaf_touches, sigma_leaf),
        _mu_of("guide", guide_touches, sigma_guide),
        _mu_of("stack", stack_touches, sigma_stack),
    )
    return get_delta_safe_parts(epsilon, structure_touches, sigma, margin, mu_extra)


def get_delta_joint_safe(
    epsilon: float,
    *,
    structure_touches: int,
    sigma: float,
    margin: float,
    leaf_touches: int = 0,
    sigma_leaf: float = math.inf,
    guide_touches: int = 0,
    sigma_guide: float = math.inf,
    stack_touches: int = 0,
    sigma_stack: float = math.inf,
) -> float:
    """Return the ``safe`` delta of a joint release.

    Parameters
    ----------
    epsilon : float
        Positive.
    structure_touches : int
        Threshold queries in which one record can be counted, at least 1.
    sigma, margin : float
        Noise of the threshold queries.
    leaf_touches, guide_touches, stack_touches : int, default=0
        Leaf counts and histogram cells in which one record is counted, and stacking vectors.
    sigma_leaf, sigma_guide, sigma_stack : float, default=inf
        Standard deviations of their noise; infinite where nothing is released.

    Returns
    -------
    float
        At most 1.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    parts = get_delta_joint_safe_parts(
        epsilon,
        structure_touches=structure_touches,
        sigma=sigma,
        margin=margin,
        leaf_touches=leaf_touches,
        sigma_leaf=sigma_leaf,
        guide_touches=guide_touches,
        sigma_guide=sigma_guide,
        stack_touches=stack_touches,
        sigma_stack=sigma_stack,
    )
    return min(1.0, parts.delta)


def _mu_of(name: str, touches: int, sigma: float) -> float:
    """Return sqrt(touches)/sigma of an optional group."""
    touches = check_count(f"{name}_touches", touches, minimum=0)
    if touches == 0:
        return 0.0
    return math.sqrt(touches) / check_positive(f"sigma_{name}", sigma)


def calibrate_joint(
    epsilon: float,
    delta: float,
    *,
    structure_touches: int,
    leaf_touches: int,
    guide_touches: int = 0,
    stack_touches: int = 0,
    structure_share: float,
    leaf_share: float,
    guide_share: float = 0.0,
    stack_share: float = 0.0,
) -> JointNoise:
    """Return the noise of a joint release that ``safe`` gives (epsilon, delta).

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1); 0.6 of it covers the Gaussian part and 0.4 the steps over the floor.
    structure_touches : int
        Threshold queries in which one record can be counted, at least 1.
    leaf_touches, guide_touches, stack_touches : int
        Leaf counts and histogram cells in which one record is counted, and stacking vectors; 0 where
        there is none.
    structure_share, leaf_share, guide_share, stack_share : float
        Parts of mu_total^2; they add up to 1.

    Returns
    -------
    JointNoise
        ``get_delta_joint_safe`` at it is at most ``delta``.

    Raises
    ------
    ValueError
        If an argument is out of range or the shares do not add up to 1.
    """
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    m = check_count("structure_touches", structure_touches)
    mu_total = gaussian.get_mu(epsilon, GAUSSIAN_SHARE * delta)
    ratio = _ratio_for_steps((1 - GAUSSIAN_SHARE) * delta, m)
    while True:
        noise = get_noise(
            mu_total,
            ratio,
            structure_touches=structure_touches,
            leaf_touches=leaf_touches,
            guide_touches=guide_touches,
            stack_touches=stack_touches,
            structure_share=structure_share,
            leaf_share=leaf_share,
            guide_share=guide_share,
            stack_share=stack_share,
        )
        reached = get_delta_joint_safe(
            epsilon,
            structure_touches=structure_touches,
            sigma=noise.sigma,
            margin=noise.margin,
            leaf_touches=leaf_touches,
            sigma_leaf=noise.sigma_leaf,
            guide_touches=guide_touches,
            sigma_guide=noise.sigma_guide,
            stack_touches=stack_touches,
            sigma_stack=noise.sigma_stack,
        )
        if reached <= delta:
            return noise
        # Rounding only: each step takes a few units in the last place.
        mu_total *= 1 - 4e-16
        ratio *= 1 + 1e-15
