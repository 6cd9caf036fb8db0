"""The ``tight`` accounting: the exact worst adaptive adversary against threshold answers.

What leaves a threshold query is one bit, which tells about 2/pi of what the noisy count would. This
module follows the strongest adversary step by step instead of granting it the noisy counts.

Method. Let P and Q be the output laws on two neighbours and x = log dP/dQ of everything seen so
far. U(x) is the largest possible contribution to

    delta = E_P max(0, 1 - exp(epsilon - x))

from what is still to come. Of Gaussian groups released after the last threshold query only their
common mu counts, so U(x) = G(epsilon - x, mu_after). (Votes by the exponential mechanism are steps
of their own, see ``get_votes``.) Going back over the m queries,

    U(x) <- max( U(x),  max over counts c of P(yes) U(x + l_yes) + P(no) U(x + l_no),  floor query )

where l is the log-likelihood ratio of an answer for counts c and c + 1, and the floor query asks
for a count that goes from the largest rejected one to the smallest not rejected: when the record is
added (P has it) it gives ``q + p U(x + log p)`` with q = 1 - p, when it is removed
``U(x - log p)``. Groups that are released first average U over N(mu_first^2/2, mu_first^2). The order
covers interleaved releases as long as no threshold query depends on a group that is not ``is_first``.
A vote may depend on noisy counts, so beside votes these are taken first, where they help most.
The steps themselves are in :mod:`lumberjack.accounting.grid_recursion`.

Rigour. In u = exp(-x), the likelihood ratio dQ/dP, U is convex and non-increasing with U = 1 at
u = 0: so it is for the last step, and each step scales u, averages and takes the larger. Hence the
chord between two grid points lies above U, the chord to u = 0 lies above it beyond the upper
end of the grid, and the value at the lower end lies above it below. All errors of the grid thus
count against the mechanism, and they shrink with the square of its interval. Counts far above the
threshold, rounding of probabilities and losses are covered by explicit additions.

Condition. Nothing of a threshold query but its answer may be kept or used, the threshold must be
1 + margin above a whole floor (as in the forest), and counts change by one.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import log_ndtr, ndtri

from lumberjack.accounting import gaussian
from lumberjack.accounting.checks import check_choice, check_count, check_delta, check_epsilon
from lumberjack.accounting.grid_recursion import (
    ROUNDING,
    ask_answers,
    ask_noisy_counts,
    extend,
    get_gaussian_kernel,
    get_threshold_queries,
    get_votes,
    place,
)
from lumberjack.accounting.groups import Group, JointNoise, Structure, get_mu
from lumberjack.accounting.joint import calibrate_joint
from lumberjack.accounting.sparse_threshold import get_delta_inf

Released = Literal["answers", "noisy counts"]

_LEAST_DELTA = 1e-15

_LEAST_FACTOR = 0.1
"""Part of the ``safe`` noise below which no calibration goes."""

_LARGEST_WORK = 4e11
"""Grid updates that are still attempted, were none of them skipped; a minute or so."""


@dataclass(frozen=True, slots=True)
class _Mechanism:
    """Everything that a delta depends on but epsilon; hashable, for the cache."""

    m: int
    structure: Structure  # its noise; count and share are left at one value
    votes: tuple[tuple[int, float], ...]  # number of votes and Gumbel scale
    n_after: int  # bound on the number of steps after the last threshold query
    mu_after: float  # of all Gaussian releases after it
    mu_first: float  # and of those before the first
    released: Released
    points_per_mu: int

    @property
    def mu_total(self) -> float:
        """Root of the summed squares of all mu; a vote counts as Gaussian noise of equal zCDP."""
        votes = sum(count / (2 * scale) ** 2 for count, scale in self.votes)
        return math.sqrt(
            self.m / self.structure.sigma**2 + self.mu_after**2 + votes + self.mu_first**2
        )


def _get_mechanism(
    structure: Structure,
    others: Sequence[Group],
    released: Released = "answers",
    points_per_mu: int = 200,
) -> _Mechanism:
    check_choice("released", released, ("answers", "noisy counts"))
    if any(group.is_vote and group.is_first for group in others):
        raise ValueError("the tight accounting covers votes after the last threshold query only.")
    votes = [group for group in others if group.is_vote]
    counts = [group for group in others if not group.is_vote]
    # A vote may depend on noisy counts released before it, so beside votes no count comes last.
    first = [group for group in counts if group.is_first or votes]
    after = [group for group in counts if not (group.is_first or votes)]
    # Gaussian groups are one step together, so any count will do. The last digits of the noise of
    # seeded fits depend on which.
    n_after = max(sum(one.count for one in votes), max((one.count for one in after), default=0))
    return _Mechanism(
        m=structure.count,
        structure=replace(structure, name="", count=1, share=None),
        votes=tuple((group.count, group.sigma / 2) for group in votes),
        n_after=n_after,
        mu_after=get_mu(after),
        mu_first=get_mu(first),
        released=released,
        points_per_mu=check_count("points_per_mu", points_per_mu, minimum=10),
    )


def _delta_in_one_direction(epsilon: float, mechanism: _Mechanism, *, is_added: bool) -> float:
    m, structure = mechanism.m, mechanism.structure
    sigma, ratio = structure.sigma, structure.margin_ratio
    mu_total = mechanism.mu_total
    # epsilon lies on the grid, where U may have its corner.
    interval = epsilon / math.ceil(epsilon * mechanism.points_per_mu / mu_total)
    n_below = math.ceil(8 * mu_total / interval)
    n_above = math.ceil((epsilon + 4 * mu_total) / interval)
    threshold = 1 + structure.margin
    log_p, log_q = float(log_ndtr(ratio)), float(log_ndtr(-ratio))
    floor_loss = log_p if is_added else -log_p
    certain = math.exp(log_q) * (1 + ROUNDING) if is_added else 0.0
    rest = math.exp(log_p) if is_added else 1.0
    (first,), (low,) = place(np.array([floor_loss]), interval)
    floor = first, np.array([rest * low, rest * (1 - low), certain])

    # Counts so far above the threshold that z > reach gain an adversary, a query, at most
    # P(no) + log(1 / P(yes)) <= 3 Phi(-reach), by the chord to u = 0.
    all_steps = -math.expm1(m * log_p)
    beyond = max(1e-6 * all_steps, 1e-19) / (3 * m)
    reach = -float(ndtri(beyond))
    # Of discrete noise, z lies up to half a count lower.
    more = 2 if structure.is_discrete else 0
    counts = np.arange(1.0, math.ceil(threshold + reach * sigma) + 1 + more)
    size = n_below + n_above + 1
    work = m * size * counts.size
    if mechanism.released == "answers" and work > _LARGEST_WORK:
        raise ValueError(
            f"the tight accounting of {m} queries at sigma={sigma:.4g} would take {work:.1e} steps,"
            f" more than {_LARGEST_WORK:.0e}. Use the safe accounting."
        )

    x = np.arange(-n_below, n_above + 1) * interval
    last = np.asarray(gaussian.get_delta(epsilon - x, mechanism.mu_after))
    values = np.minimum(1.0, last * (1 + 1e-11))
    for count, scale in mechanism.votes:
        values = ask_answers(values, count, get_votes(scale), interval)
    if mechanism.released == "answers":
        z_without, z_with = structure.answer_z(counts), structure.answer_z(counts + 1)
        z_p, z_q = (z_with, z_without) if is_added else (z_without, z_with)
        values = ask_answers(values, m, get_threshold_queries(z_p, z_q), interval, floor)
    else:
        kernel = get_gaussian_kernel(1 / sigma, interval)
        pad = int(max(kernel[1].size, abs(first))) + 2
        values = ask_noisy_counts(values, m, pad, interval, *kernel, *floor)

    if mechanism.mu_first > 0:
        offset, weights, certain = get_gaussian_kernel(mechanism.mu_first, interval)
        pad = weights.size + 2
        begin = pad + n_below + offset
        extended = extend(values, pad, interval)
        delta = float(certain + weights @ extended[begin : begin + weights.size])
    else:
        delta = float(values[n_below])
    n_operations = 8 * (m + mechanism.n_after + 2) + size
    return float(min(1.0, delta * (1 + n_operations * 2.3e-16) + 3 * m * beyond))


@functools.lru_cache(maxsize=512)
def _get_delta(epsilon: float, mechanism: _Mechanism, is_added: bool) -> float:
    return _delta_in_one_direction(epsilon, mechanism, is_added=is_added)


def _get_coarse(points_per_mu: int) -> int:
    """Return the fineness of a grid that is pessimistic too, at a fraction of the cost."""
    return max(10, points_per_mu // 4)


def _check_reach(delta: float) -> float:
    """Refuse a delta below what the recursion's own rounding can resolve."""
    delta = check_delta(delta)
    if delta < _LEAST_DELTA:
        raise ValueError(
            f"tight accounting resolves delta down to {_LEAST_DELTA:g}, got {delta!r}. "
            "Use the safe accounting."
        )
    return delta


def get_delta_tight(
    epsilon: float,
    structure: Structure,
    others: Sequence[Group] = (),
    *,
    released: Released = "answers",
    points_per_mu: int = 200,
) -> float:
    """Return the delta that the strongest adaptive adversary reaches, rounded up.

    Parameters
    ----------
    epsilon : float
        Positive.
    structure : Structure
        The threshold queries, with their noise.
    others : sequence of Group
        The other groups, with theirs; those that are not ``is_first``, and all votes, come after the
        last threshold query. Votes may depend on all other groups.
    released : {"answers", "noisy counts"}, default="answers"
        What leaves a threshold query: its answer, or with a yes the noisy count as well.
    points_per_mu : int, default=200
        Fineness of the grid. The result falls with it towards the exact value; at 200 the noise
        calibrated by it is within 0.1 % of the least.

    Returns
    -------
    float
        Takes a fraction of a second; results are remembered within the process.

    Raises
    ------
    ValueError
        If a vote comes first, an argument is out of range, or the computation would take too long.
    """
    mechanism = _get_mechanism(structure, others, released, points_per_mu)
    epsilon = check_epsilon(epsilon)
    added = _get_delta(epsilon, mechanism, True)
    # Removal seldom decides, and then a coarse grid says so.
    coarse = replace(mechanism, points_per_mu=_get_coarse(points_per_mu))
    if _get_delta(epsilon, coarse, False) <= added:
        return added
    return max(added, _get_delta(epsilon, mechanism, False))


def get_epsilon_tight(
    delta: float,
    structure: Structure,
    others: Sequence[Group] = (),
    *,
    released: Released = "answers",
    points_per_mu: int = 200,
) -> float:
    """Return the smallest epsilon that holds against the strongest adaptive adversary, rounded up.

    Parameters
    ----------
    delta : float
        In (0, 1).
    structure, others, released, points_per_mu
        As for :func:`get_delta_tight`.

    Returns
    -------
    float
        Within 0.01 % of what ``get_delta_tight`` allows, at least 0.001; infinite if steps over
        the floor alone exceed delta.
    """
    delta = _check_reach(delta)
    mechanism = _get_mechanism(structure, others, released, points_per_mu)
    if get_delta_inf(mechanism.m, structure.margin_ratio) * (1 + 1e-3) >= delta:
        return math.inf
    # What G says of all parts together is not far off.
    start = max(gaussian.get_epsilon(delta, mechanism.mu_total), 1e-3)
    return _smallest_within(
        lambda epsilon, fineness, is_added: _get_delta(
            epsilon, replace(mechanism, points_per_mu=fineness), is_added
        ),
        delta,
        start=start,
        least=1e-3,
        points_per_mu=points_per_mu,
    )


def calibrate_tight(
    epsilon: float,
    delta: float,
    structure: Structure,
    others: Sequence[Group] = (),
    *,
    points_per_mu: int = 200,
) -> JointNoise:
    """Return noise of a joint release that ``tight`` gives (epsilon, delta).

    It is the ``safe`` noise of :func:`lumberjack.accounting.joint.calibrate_joint` with one common
    factor on all its scales, the smallest (but not below a tenth) that stays within delta.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).
    structure : Structure
        The threshold queries, with their share.
    others : sequence of Group
        The other groups, with theirs; all shares add up to 1. A vote has the zCDP of noisy counts of
        the same share.
    points_per_mu : int, default=200
        Fineness of the grid.

    Returns
    -------
    JointNoise
        Takes a second or less; remembered within the process.

    Raises
    ------
    ValueError
        If the shares do not add up to 1, another argument is out of range, or the computation would
        take too long.
    """
    return _calibrate(
        check_epsilon(epsilon), _check_reach(delta), structure, tuple(others), points_per_mu
    )


@functools.lru_cache(maxsize=64)
def _calibrate(
    epsilon: float,
    delta: float,
    structure: Structure,
    others: tuple[Group, ...],
    points_per_mu: int,
) -> JointNoise:
    noisy = [replace(group, mechanism="gaussian", step=None) for group in others]
    safe = calibrate_joint(epsilon, delta, replace(structure, step=None), noisy)

    def scaled(factor: float) -> JointNoise:
        return JointNoise(
            mu_total=safe.mu_total / factor,
            structure=structure.with_noise(
                safe.structure.sigma * factor, safe.structure.margin * factor
            ),
            others=tuple(
                group.with_sigma(one.sigma * factor)
                for group, one in zip(others, safe.others, strict=True)
            ),
        )

    def delta_at(factor: float, fineness: int, is_added: bool) -> float:
        noise = scaled(factor)
        mechanism = _get_mechanism(noise.structure, noise.others, points_per_mu=fineness)
        return _get_delta(epsilon, mechanism, is_added)

    # With few queries and a large epsilon, addition alone may need no noise but the floor's: a yes
    # of probability above exp(-epsilon) tells less than epsilon. That search must end somewhere.
    factor = _smallest_within(
        delta_at, delta, start=0.88, least=_LEAST_FACTOR, points_per_mu=points_per_mu
    )
    return scaled(factor)


def _smallest_within(
    delta_at: Callable[[float, int, bool], float],
    delta: float,
    *,
    start: float,
    least: float,
    points_per_mu: int,
) -> float:
    """Return nearly the smallest argument, not below ``least``, that keeps delta both ways.

    ``delta_at`` takes the argument, the fineness of the grid and the direction. A coarse grid comes
    close at a fraction of the cost; removal seldom decides.
    """
    coarse = _get_coarse(points_per_mu)
    rough = _smallest_on_log_scale(
        lambda argument: delta_at(argument, coarse, True), delta, start=start, least=least
    )
    found = _smallest_on_log_scale(
        lambda argument: delta_at(argument, points_per_mu, True), delta, start=rough, least=least
    )
    if any(delta_at(found, fineness, False) <= delta for fineness in (coarse, points_per_mu)):
        return found
    return _smallest_on_log_scale(
        lambda argument: max(delta_at(argument, points_per_mu, way) for way in (True, False)),
        delta,
        start=found,
        least=least,
    )


def _smallest_on_log_scale(
    function: Callable[[float], float],
    limit: float,
    *,
    start: float,
    least: float,
    tolerance: float = 1e-4,
) -> float:
    """Return an argument within the limit, and close to the smallest, in few evaluations.

    The logarithm of delta is nearly linear in that of epsilon or of the noise over short distances,
    so secant steps aimed half a tolerance to the safe side end after about four evaluations.
    """

    def excess(position: float) -> float:
        return math.log(function(math.exp(position)) / limit)

    # -10 is a moderate guess of the slope: delta falls with the tenth power of the noise.
    slope, position = -10.0, math.log(start)
    inside, outside = math.inf, -math.inf  # logarithms; inside is within the limit
    height = excess(position)
    for step in itertools.count(1):
        if height <= 0:
            inside = min(inside, position)
        else:
            outside = max(outside, position)
        if inside - outside <= tolerance or inside <= math.log(least):
            return math.exp(inside)
        target = position - height / slope + tolerance / 2
        has_bracket = math.isfinite(inside) and math.isfinite(outside)
        if has_bracket and (step % 4 == 0 or not outside < target < inside):
            target = (outside + inside) / 2
        if not has_bracket:
            target = min(max(target, position - 0.7), position + 0.7)
        # Next to a known end the aim is across the root, so that the bracket closes.
        if target + tolerance / 4 >= inside:
            target = inside - 0.9 * tolerance
        elif target - tolerance / 4 <= outside:
            target = outside + 0.9 * tolerance
        target = max(target, math.log(least))
        new_height = excess(target)
        if new_height != height:
            measured = (new_height - height) / (target - position)
            slope = measured if measured < 0 else slope
        position, height = target, new_height
    raise AssertionError("the search above ends by returning")
