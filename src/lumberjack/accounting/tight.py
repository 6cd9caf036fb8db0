"""The ``tight`` accounting: the exact worst adaptive adversary against threshold answers.

What leaves a threshold query is one bit, which tells about 2/pi of what the noisy count would. This
module follows the strongest adversary step by step instead of granting it the noisy counts.

Method. Let P and Q be the output laws on two neighbours and x = log dP/dQ of everything seen so
far. U(x) is the largest possible contribution to

    delta = E_P max(0, 1 - exp(epsilon - x))

from what is still to come. After the last threshold query only Gaussian leaf counts remain, so
U(x) = G(epsilon - x, mu_leaf). (Leaves of the exponential mechanism are steps of their own, see
``_leaf_votes``.) Going back over the m queries,

    U(x) <- max( U(x),  max over counts c of P(yes) U(x + l_yes) + P(no) U(x + l_no),  floor query )

where l is the log-likelihood ratio of an answer for counts c and c + 1, and the floor query asks
for a count that goes from the largest rejected one to the smallest not rejected: when the record is
added (P has it) it gives ``q + p U(x + log p)`` with q = 1 - p, when it is removed
``U(x - log p)``. Guide histograms, released first, average U over N(mu_guide^2/2, mu_guide^2). What
stacking releases at the very end may depend on the leaf counts and adds to the square of mu_leaf. The
order covers interleaved releases as long as no threshold query depends on a leaf count or on the stack.

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
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri

from lumberjack.accounting import gaussian
from lumberjack.accounting.checks import (
    check_count,
    check_delta,
    check_epsilon,
    check_non_negative,
    check_positive,
)
from lumberjack.accounting.joint import JointNoise, _mu_of, calibrate_joint
from lumberjack.compiled import compiled

Released = Literal["answers", "noisy counts"]

_LEAST_DELTA = 1e-15
_ROUNDING = 1e-13
"""Upper bound on the relative error of a probability above 1e-80 and on the error of a loss."""

_LEAST_FACTOR = 0.1
"""Part of the ``safe`` noise below which no calibration goes."""

_LARGEST_WORK = 4e11
"""Grid updates that are still attempted; at about two a nanosecond, some minutes."""


@compiled(error_model="numpy")
def _extended(values, pad, interval):
    """Return the values with upper bounds for arguments off either end of the grid."""
    n = values.size
    extended = np.empty(n + 2 * pad)
    extended[:pad] = values[0]
    extended[pad : pad + n] = values
    missing = 1.0 - values[n - 1]
    shrink = np.exp(-interval)
    for i in range(pad):
        missing *= shrink
        extended[pad + n + i] = 1.0 - missing
    return extended


@compiled(error_model="numpy")
def _ask_answers(values, n_queries, pad, interval, first, weights, floor_first, floor_weights):
    """Return U before ``n_queries`` queries of which only the answers are released.

    ``first[:, c]`` and ``weights[:, c]`` hold, for both answers of query c, the offset of the lower
    of two neighbouring grid points and the weights of both; ``floor_weights`` ends with the weight
    of certain distinction.
    """
    n = values.size
    block = 1024  # fits the first-level cache with all its shifted copies
    for _ in range(n_queries):
        extended = _extended(values, pad, interval)
        best = values.copy()
        for begin in range(0, n, block):
            end = min(n, begin + block)
            # Slices, not index sums: an index that might be negative forbids vectorisation.
            target = best[begin:end]
            low = extended[pad + floor_first + begin : pad + floor_first + end]
            high = extended[pad + floor_first + begin + 1 : pad + floor_first + end + 1]
            for i in range(end - begin):
                value = floor_weights[2] + floor_weights[0] * low[i] + floor_weights[1] * high[i]
                target[i] = value if value > target[i] else target[i]
            for c in range(first.shape[1]):
                yes, no = pad + first[0, c], pad + first[1, c]
                yes_low, yes_high = extended[yes + begin : yes + end], extended[yes + begin + 1 :]
                no_low, no_high = extended[no + begin : no + end], extended[no + begin + 1 :]
                w0, w1, w2, w3 = weights[0, c], weights[1, c], weights[2, c], weights[3, c]
                for i in range(end - begin):
                    value = w0 * yes_low[i] + w1 * yes_high[i] + w2 * no_low[i] + w3 * no_high[i]
                    target[i] = value if value > target[i] else target[i]
        values = best
    return values


@compiled(error_model="numpy")
def _ask_noisy_counts(
    values,
    n_queries,
    pad,
    interval,
    kernel_first,
    kernel,
    kernel_certain,
    floor_first,
    floor_weights,
):
    """Return U before ``n_queries`` queries whose noisy counts are released."""
    n = values.size
    for _ in range(n_queries):
        extended = _extended(values, pad, interval)
        best = np.full(n, kernel_certain)
        for tap in range(kernel.size):
            weight = kernel[tap]
            source = extended[pad + kernel_first + tap :]
            for i in range(n):
                best[i] += weight * source[i]
        low, high = extended[pad + floor_first :], extended[pad + floor_first + 1 :]
        for i in range(n):
            value = floor_weights[2] + floor_weights[0] * low[i] + floor_weights[1] * high[i]
            value = value if value > best[i] else best[i]
            best[i] = value if value > values[i] else values[i]
        values = best
    return values


def _placed(
    loss: NDArray[np.float64], interval: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the grid point below each loss and its weight on the chord in u (rounded up)."""
    raised = loss + _ROUNDING
    first = np.floor(raised / interval)
    beyond = raised - first * interval
    weight = (np.exp(-beyond) - np.exp(-interval)) / -np.expm1(-interval)
    return first.astype(np.int64), np.clip(weight - 1e-15 / interval, 0.0, 1.0)


def _gaussian_kernel(mu: float, interval: float) -> tuple[int, NDArray[np.float64], float]:
    """Return offset, weights and certain part of the loss N(mu^2/2, mu^2), rounded up to the grid.

    Between two grid points the chord in u needs only the masses that P and Q put there, as u turns
    one into the other. (Known as connecting the dots; Doroshenko et al. 2022.)
    """
    reach = mu * mu / 2 + 9 * mu
    size = math.ceil(reach / interval)
    points = np.arange(-size, size + 1)
    loss = points * interval

    def masses(mean: float) -> NDArray[np.float64]:
        # Below the grid, between its points, above it; each from the side where it is small.
        z = (loss - mean) / mu
        inner = np.where(z[:-1] > 0, ndtr(-z[:-1]) - ndtr(-z[1:]), ndtr(z[1:]) - ndtr(z[:-1]))
        return np.concatenate(([ndtr(z[0])], inner, [ndtr(-z[-1])]))

    p, q = masses(mu * mu / 2), masses(-mu * mu / 2)
    u = np.exp(-loss)
    left = np.clip((q[1:-1] - u[1:] * p[1:-1]) / (u[:-1] - u[1:]), 0.0, p[1:-1])
    # Differences of Phi are good to eleven digits; a smaller weight of the lower point is safe.
    left = np.clip(left - 1e-11 / interval * p[1:-1], 0.0, None)
    weights = np.zeros(points.size)
    weights[:-1] += left
    weights[1:] += p[1:-1] - left
    weights[0] += p[0]
    to_last = min(p[-1], q[-1] / u[-1]) * (1 - 1e-11)
    weights[-1] += to_last
    certain = p[-1] - to_last
    return -size, weights * (1 + 1e-11), certain * (1 + 1e-11)


def _log_ratio(z_p: NDArray[np.float64], z_q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log(Phi(z_p) / Phi(z_q)), raised by more than its rounding error."""
    log_p, log_q = log_ndtr(z_p), log_ndtr(z_q)
    return log_p - log_q - 2e-15 * (log_p + log_q)


def _leaf_votes(
    scale: float, interval: float, *, n_parts: int = 2048
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return offsets and weights of all queries that an exponential-mechanism leaf can be.

    One more record of class y multiplies the weight of y by exp(r), r = 1/scale, so only whether y
    wins matters, with losses r - a and -a, a in [0, r] depending on the other counts; a removed
    record gives the same pairs. For a between two neighbours of a partition, the pair with the
    larger spread of u (both ends widened, mean kept at 1) bounds the convex U from above.
    """
    r = 1 / scale
    a = np.linspace(0, r, n_parts + 1)
    won, lost = r - a[:-1], -a[1:]
    spread = np.exp(-won) * np.expm1(won - lost)
    p_won, p_lost = np.expm1(-lost) / spread, -np.expm1(-won) / spread
    return _two_outcomes(won, lost, p_won, p_lost, interval)


def _two_outcomes(
    loss_one: NDArray[np.float64],
    loss_two: NDArray[np.float64],
    p_one: NDArray[np.float64],
    p_two: NDArray[np.float64],
    interval: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return offsets and weights, as ``_ask_answers`` takes them, of queries with two outcomes."""
    first_one, low_one = _placed(loss_one, interval)
    first_two, low_two = _placed(loss_two, interval)
    p_one, p_two = p_one * (1 + _ROUNDING), p_two * (1 + _ROUNDING)
    weights = (p_one * low_one, p_one * (1 - low_one), p_two * low_two, p_two * (1 - low_two))
    return np.stack([first_one, first_two]), np.stack(weights)


@dataclass(frozen=True, slots=True)
class _Mechanism:
    """Everything that a delta depends on but epsilon; hashable, for the cache."""

    m: int
    sigma: float
    margin: float
    n_leaves: int
    mu_leaf: float  # of all Gaussian releases after the last threshold query
    gumbel_scale_leaf: float
    mu_guide: float
    released: Released
    points_per_mu: int

    @property
    def mu_total(self) -> float:
        """Root of the summed squares of all mu; a vote counts as Gaussian noise of equal zCDP."""
        votes = self.n_leaves / (2 * self.gumbel_scale_leaf) ** 2
        return math.sqrt(self.m / self.sigma**2 + self.mu_leaf**2 + votes + self.mu_guide**2)


def _delta_in_one_direction(epsilon: float, mechanism: _Mechanism, *, is_added: bool) -> float:
    m, sigma, margin = mechanism.m, mechanism.sigma, mechanism.margin
    mu_total = mechanism.mu_total
    # epsilon lies on the grid, where U may have its corner.
    interval = epsilon / math.ceil(epsilon * mechanism.points_per_mu / mu_total)
    n_below = math.ceil(8 * mu_total / interval)
    n_above = math.ceil((epsilon + 4 * mu_total) / interval)
    x = np.arange(-n_below, n_above + 1) * interval

    threshold = 1 + margin
    log_p, log_q = float(log_ndtr(margin / sigma)), float(log_ndtr(-margin / sigma))
    floor_loss = log_p if is_added else -log_p
    floor_certain = math.exp(log_q) * (1 + _ROUNDING) if is_added else 0.0
    floor_rest = math.exp(log_p) if is_added else 1.0
    floor_first, floor_low = _placed(np.array([floor_loss]), interval)
    floor_weights = np.array(
        [floor_rest * floor_low[0], floor_rest * (1 - floor_low[0]), floor_certain]
    )

    # Counts so far above the threshold that z > reach gain an adversary, a query, at most
    # P(no) + log(1 / P(yes)) <= 3 Phi(-reach), by the chord to u = 0.
    all_steps = -math.expm1(m * log_p)
    beyond = max(1e-6 * all_steps, 1e-19) / (3 * m)
    reach = -float(ndtri(beyond))
    counts = np.arange(1.0, math.ceil(threshold + reach * sigma) + 1)
    work = m * x.size * counts.size
    if mechanism.released == "answers" and work > _LARGEST_WORK:
        raise ValueError(
            f"the tight accounting of {m} queries at sigma={sigma:.4g} would take {work:.1e} steps,"
            f" more than {_LARGEST_WORK:.0e}. Use the safe accounting."
        )

    last = np.asarray(gaussian.get_delta(epsilon - x, mechanism.mu_leaf))
    values = np.minimum(1.0, last * (1 + 1e-11))
    if math.isfinite(mechanism.gumbel_scale_leaf):
        first, weights = _leaf_votes(mechanism.gumbel_scale_leaf, interval)
        pad = int(np.abs(first).max()) + 2
        values = _ask_answers(
            values, mechanism.n_leaves, pad, interval, first, weights, 0, np.zeros(3)
        )
    if mechanism.released == "answers":
        z_without, z_with = (counts - threshold) / sigma, (counts + 1 - threshold) / sigma
        z_p, z_q = (z_with, z_without) if is_added else (z_without, z_with)
        first, weights = _two_outcomes(
            _log_ratio(z_p, z_q), _log_ratio(-z_p, -z_q), ndtr(z_p), ndtr(-z_p), interval
        )
        pad = int(max(np.abs(first).max(), abs(floor_first[0]))) + 2
        values = _ask_answers(
            values, m, pad, interval, first, weights, floor_first[0], floor_weights
        )
    else:
        kernel_first, kernel, certain = _gaussian_kernel(1 / sigma, interval)
        pad = int(max(kernel.size, abs(floor_first[0]))) + 2
        values = _ask_noisy_counts(
            values, m, pad, interval, kernel_first, kernel, certain, floor_first[0], floor_weights
        )

    if mechanism.mu_guide > 0:
        kernel_first, kernel, certain = _gaussian_kernel(mechanism.mu_guide, interval)
        pad = kernel.size + 2
        begin = pad + n_below + kernel_first
        delta = certain + kernel @ _extended(values, pad, interval)[begin : begin + kernel.size]
    else:
        delta = values[n_below]
    n_operations = 8 * (m + mechanism.n_leaves + 2) + x.size
    return float(min(1.0, delta * (1 + n_operations * 2.3e-16) + 3 * m * beyond))


@functools.lru_cache(maxsize=512)
def _get_delta(epsilon: float, mechanism: _Mechanism, is_added: bool) -> float:
    return _delta_in_one_direction(epsilon, mechanism, is_added=is_added)


def _checked_mechanism(
    structure_touches: int,
    sigma: float,
    margin: float,
    leaf_touches: int,
    sigma_leaf: float,
    gumbel_scale_leaf: float,
    guide_touches: int,
    sigma_guide: float,
    stack_touches: int,
    sigma_stack: float,
    released: Released,
    points_per_mu: int,
) -> _Mechanism:
    if released not in ("answers", "noisy counts"):
        raise ValueError(f"released must be 'answers' or 'noisy counts', got {released!r}.")
    n_leaves = check_count("leaf_touches", leaf_touches, minimum=0)
    has_votes = n_leaves > 0 and gumbel_scale_leaf != math.inf
    if has_votes and sigma_leaf != math.inf:
        raise ValueError(
            "leaves have Gaussian or Gumbel noise, not both; got"
            f" sigma_leaf={sigma_leaf!r} and gumbel_scale_leaf={gumbel_scale_leaf!r}."
        )
    return _Mechanism(
        m=check_count("structure_touches", structure_touches),
        sigma=check_positive("sigma", sigma),
        margin=check_non_negative("margin", margin),
        n_leaves=n_leaves,
        mu_leaf=math.hypot(
            0.0 if has_votes else _mu_of("leaf", leaf_touches, sigma_leaf),
            _mu_of("stack", stack_touches, sigma_stack),
        ),
        gumbel_scale_leaf=(
            check_positive("gumbel_scale_leaf", gumbel_scale_leaf) if has_votes else math.inf
        ),
        mu_guide=_mu_of("guide", guide_touches, sigma_guide),
        released=released,
        points_per_mu=check_count("points_per_mu", points_per_mu, minimum=10),
    )


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
    *,
    structure_touches: int,
    sigma: float,
    margin: float,
    leaf_touches: int = 0,
    sigma_leaf: float = math.inf,
    gumbel_scale_leaf: float = math.inf,
    guide_touches: int = 0,
    sigma_guide: float = math.inf,
    stack_touches: int = 0,
    sigma_stack: float = math.inf,
    released: Released = "answers",
    points_per_mu: int = 200,
) -> float:
    """Return the delta that the strongest adaptive adversary reaches, rounded up.

    Parameters
    ----------
    epsilon : float
        Positive.
    structure_touches : int
        Threshold queries in which one record can be counted, at least 1.
    sigma, margin : float
        Noise of the threshold queries; the threshold is ``1 + margin`` above a whole floor.
    leaf_touches, guide_touches : int, default=0
        Leaves (released after all threshold queries) and histogram cells (before or after) in
        which one record is counted.
    stack_touches : int, default=0
        Vectors of unit L2 sensitivity that are released last.
    sigma_leaf, sigma_guide, sigma_stack : float, default=inf
        Standard deviations of their Gaussian noise; infinite where nothing is released.
    gumbel_scale_leaf : float, default=inf
        Scale of the Gumbel noise where a leaf releases a vote (exponential mechanism) instead of
        noisy counts; then ``sigma_leaf`` stays infinite.
    released : {"answers", "noisy counts"}, default="answers"
        What leaves a threshold query: its answer, or with a yes the noisy count as well.
    points_per_mu : int, default=200
        Fineness of the grid. The result falls with it towards the exact value; at 200 the noise
        calibrated by it is within 0.1 % of the least.

    Returns
    -------
    float
        Takes a second or a few; results are remembered within the process.

    Raises
    ------
    ValueError
        If an argument is out of range, or the computation would take too long.
    """
    mechanism = _checked_mechanism(
        structure_touches,
        sigma,
        margin,
        leaf_touches,
        sigma_leaf,
        gumbel_scale_leaf,
        guide_touches,
        sigma_guide,
        stack_touches,
        sigma_stack,
        released,
        points_per_mu,
    )
    epsilon = check_epsilon(epsilon)
    return max(_get_delta(epsilon, mechanism, is_added) for is_added in (True, False))


def get_epsilon_tight(
    delta: float,
    *,
    structure_touches: int,
    sigma: float,
    margin: float,
    leaf_touches: int = 0,
    sigma_leaf: float = math.inf,
    gumbel_scale_leaf: float = math.inf,
    guide_touches: int = 0,
    sigma_guide: float = math.inf,
    stack_touches: int = 0,
    sigma_stack: float = math.inf,
    released: Released = "answers",
    points_per_mu: int = 200,
) -> float:
    """Return the smallest epsilon that holds against the strongest adaptive adversary, rounded up.

    Parameters
    ----------
    delta : float
        In (0, 1).
    structure_touches : int
        Threshold queries in which one record can be counted, at least 1.
    sigma, margin : float
        Noise of the threshold queries.
    leaf_touches, guide_touches, stack_touches : int, default=0
        Leaves and histogram cells in which one record is counted, and stacking vectors.
    sigma_leaf, gumbel_scale_leaf, sigma_guide, sigma_stack : float, default=inf
        Their noise; infinite where nothing is released.
    released : {"answers", "noisy counts"}, default="answers"
        What leaves a threshold query.
    points_per_mu : int, default=200
        Fineness of the grid.

    Returns
    -------
    float
        Within 0.01 % of what ``get_delta_tight`` allows, at least 0.001; infinite if steps over
        the floor alone exceed delta.

    Raises
    ------
    ValueError
        If an argument is out of range, or the computation would take too long.
    """
    delta = _check_reach(delta)
    mechanism = _checked_mechanism(
        structure_touches,
        sigma,
        margin,
        leaf_touches,
        sigma_leaf,
        gumbel_scale_leaf,
        guide_touches,
        sigma_guide,
        stack_touches,
        sigma_stack,
        released,
        points_per_mu,
    )
    if -math.expm1(mechanism.m * float(log_ndtr(margin / sigma))) * (1 + 1e-3) >= delta:
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
    *,
    structure_touches: int,
    leaf_touches: int,
    guide_touches: int = 0,
    stack_touches: int = 0,
    structure_share: float,
    leaf_share: float,
    guide_share: float = 0.0,
    stack_share: float = 0.0,
    leaf_mechanism: Literal["gaussian", "exponential"] = "gaussian",
    points_per_mu: int = 200,
) -> JointNoise:
    """Return noise of a joint release that ``tight`` gives (epsilon, delta).

    It is the ``safe`` noise of :func:`lumberjack.accounting.calibrate_joint` with one common factor
    on all its scales, the smallest (but not below a tenth) that stays within delta.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).
    structure_touches : int
        Threshold queries in which one record can be counted, at least 1.
    leaf_touches, guide_touches, stack_touches : int
        Leaves and histogram cells in which one record is counted, and stacking vectors; 0 where there
        is none.
    structure_share, leaf_share, guide_share, stack_share : float
        Parts of mu_total^2; they add up to 1.
    leaf_mechanism : {"gaussian", "exponential"}, default="gaussian"
        Noisy class counts, or a vote by the exponential mechanism with the same zCDP.
    points_per_mu : int, default=200
        Fineness of the grid.

    Returns
    -------
    JointNoise
        With ``leaf_mechanism="exponential"``, ``gumbel_scale_leaf`` is finite instead of
        ``sigma_leaf``. Takes several seconds; remembered within the process.

    Raises
    ------
    ValueError
        If an argument is out of range, or the computation would take too long.
    """
    if leaf_mechanism not in ("gaussian", "exponential"):
        raise ValueError(
            f"leaf_mechanism must be 'gaussian' or 'exponential', got {leaf_mechanism!r}."
        )
    return _calibrate(
        check_epsilon(epsilon),
        _check_reach(delta),
        (structure_touches, leaf_touches, guide_touches, stack_touches),
        (structure_share, leaf_share, guide_share, stack_share),
        leaf_mechanism,
        check_count("points_per_mu", points_per_mu, minimum=10),
    )


@functools.lru_cache(maxsize=64)
def _calibrate(
    epsilon: float,
    delta: float,
    touches: tuple[int, int, int, int],
    shares: tuple[float, float, float, float],
    leaf_mechanism: str,
    points_per_mu: int,
) -> JointNoise:
    safe = calibrate_joint(
        epsilon,
        delta,
        structure_touches=touches[0],
        leaf_touches=touches[1],
        guide_touches=touches[2],
        stack_touches=touches[3],
        structure_share=shares[0],
        leaf_share=shares[1],
        guide_share=shares[2],
        stack_share=shares[3],
    )

    def scaled(factor: float) -> JointNoise:
        # Gumbel noise of scale s has the zCDP of Gaussian noise of standard deviation 2 s.
        is_gaussian = leaf_mechanism == "gaussian"
        return JointNoise(
            mu_total=safe.mu_total / factor,
            sigma=safe.sigma * factor,
            margin=safe.margin * factor,
            sigma_leaf=safe.sigma_leaf * factor if is_gaussian else math.inf,
            sigma_guide=safe.sigma_guide * factor,
            sigma_stack=safe.sigma_stack * factor,
            gumbel_scale_leaf=math.inf if is_gaussian else safe.sigma_leaf / 2 * factor,
        )

    def delta_at(factor: float, fineness: int, is_added: bool) -> float:
        noise = scaled(factor)
        mechanism = _checked_mechanism(
            touches[0],
            noise.sigma,
            noise.margin,
            touches[1],
            noise.sigma_leaf,
            noise.gumbel_scale_leaf,
            touches[2],
            noise.sigma_guide,
            touches[3],
            noise.sigma_stack,
            "answers",
            fineness,
        )
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

    ``delta_at`` takes the argument, the fineness of the grid and the direction. A coarse grid, which
    is pessimistic too, comes close at a fraction of the cost; removal seldom decides.
    """
    rough = _smallest_on_log_scale(
        lambda argument: delta_at(argument, max(10, points_per_mu // 4), True),
        delta,
        start=start,
        least=least,
    )
    found = _smallest_on_log_scale(
        lambda argument: delta_at(argument, points_per_mu, True),
        delta,
        start=rough,
        least=least,
    )
    if delta_at(found, points_per_mu, False) <= delta:
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
