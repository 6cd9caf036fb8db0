"""How a split is drawn: which feature, and where it is cut.

A split is a function of the node's path, public facts and, for guided splits, released
histograms; it never looks at records. Its draws are those of the node's key
(:mod:`lumberjack.keyed_draws`), so it does not depend on when the node is asked for.

A node sends a record left when ``x <= threshold`` (numeric feature) or ``x == threshold``
(categorical feature, the threshold being a category code); all else, unseen categories included,
goes right.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lumberjack.compiled import compiled
from lumberjack.guide import Guide
from lumberjack.keyed_draws import keyed_uniform

NO_SPLIT = -1
"""Feature of a node that has no candidate split left; a fact of its path alone."""

# A node's stream: the keys of its left and right child, then its own draws.
LEFT, RIGHT = 0, 1
_FEATURE_DRAW, _CUT_DRAW = 2, 3


class PublicFacts(NamedTuple):
    """What is public about a table (see :class:`lumberjack.schema.FeatureSchema`).

    Attributes
    ----------
    n_classes : int
        Number of classes.
    n_categories : ndarray of int64, shape (n_features,)
        Zero marks a numeric feature.
    lower, upper : ndarray of float64, shape (n_features,)
        Bounds of the numeric features.
    n_dropped : int
        How many leading categories of each feature are no candidates (1 for the usual one-hot
        coding with k - 1 columns, 0 to allow all).
    """

    n_classes: int
    n_categories: NDArray[np.int64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    n_dropped: int


class SplitRule(NamedTuple):
    """How guided splits follow the guide; the defaults are the published ones.

    Attributes
    ----------
    n_candidates : int
        Random cuts that each feature tries at a node.
    gain_power : float
        A feature is drawn with probability proportional to its Gini gain to this power.
    exploration : float
        Probability of drawing the feature uniformly instead, in [0, 1].
    path_weight : float
        How far what a path says of the classes through other features weighs at a node, from 0
        (not at all) to 1 (as if features were independent given the class).
    """

    n_candidates: int = 3
    gain_power: float = 2.0
    exploration: float = 0.1
    path_weight: float = 0.5


class Path(NamedTuple):
    """What the way from the root to a node leaves open.

    Attributes
    ----------
    lower, upper : ndarray of float64, shape (n_features,)
        The open interval of a numeric feature.
    n_used : ndarray of int64, shape (n_features,)
        How many categories some ancestor used.
    is_used : ndarray of bool, shape (n_all_categories,)
        Which; those of feature f start at ``first_category[f]``.
    first_category : ndarray of int64, shape (n_features + 1,)
    end : ndarray of int64, shape (1,)
        The node.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    n_used: NDArray[np.int64]
    is_used: NDArray[np.bool_]
    first_category: NDArray[np.int64]
    end: NDArray[np.int64]


class GuidedScratch(NamedTuple):
    """Room for :func:`draw_guided_split` to work in."""

    mass: NDArray[np.float64]
    weight_of: NDArray[np.float64]
    gains: NDArray[np.float64]
    cuts: NDArray[np.float64]
    weight: NDArray[np.float64]
    whole: NDArray[np.float64]
    below: NDArray[np.float64]


@compiled(nogil=True)
def make_path(n_categories: NDArray[np.int64]) -> Path:
    """Return a path to the root, 0, for features with these numbers of categories; bounds are to be set."""
    n_features = n_categories.shape[0]
    first_category = np.zeros(n_features + 1, dtype=np.int64)
    first_category[1:] = np.cumsum(n_categories)
    return Path(
        np.empty(n_features),
        np.empty(n_features),
        np.zeros(n_features, dtype=np.int64),
        np.zeros(first_category[n_features], dtype=np.bool_),
        first_category,
        np.zeros(1, dtype=np.int64),
    )


@compiled(nogil=True)
def make_guided_scratch(n_features: int, n_classes: int) -> GuidedScratch:
    """Return the arrays that :func:`draw_guided_split` works in."""
    return GuidedScratch(
        np.empty((n_features, n_classes)),
        np.empty((n_features, n_classes)),
        np.empty(n_features),
        np.empty(n_features),
        np.empty(n_classes),
        np.empty(n_classes),
        np.empty(n_classes),
    )


@compiled(nogil=True, _nrt=False)
def follow_path(
    path: Path, nodes: NDArray[Any], node: int, n_categories: NDArray[np.int64]
) -> None:
    """Move the end of a path to `node`, by way of the last node that both have above them.

    Nodes are mostly asked for near the one before, so this is a few steps where the way from the
    root would be many. ``nodes[n].replaced`` is the bound that the split above `n` replaced.
    """
    lower, upper, n_used, is_used = path.lower, path.upper, path.n_used, path.is_used
    first_category = path.first_category
    back, common = path.end[0], node
    while back != common:
        if nodes[common].level > nodes[back].level:
            common = nodes[common].parent
            continue
        above = nodes[back].parent
        f = nodes[above].feature
        if n_categories[f] > 0:
            is_used[first_category[f] + int(nodes[above].threshold)] = False
            n_used[f] -= 1
        elif nodes[above].left == back:
            upper[f] = nodes[back].replaced
        else:
            lower[f] = nodes[back].replaced
        back = above
    ahead = node
    while ahead != common:
        above = nodes[ahead].parent
        f = nodes[above].feature
        threshold = nodes[above].threshold
        if n_categories[f] > 0:
            is_used[first_category[f] + int(threshold)] = True
            n_used[f] += 1
        elif nodes[above].left == ahead:
            upper[f] = min(upper[f], threshold)
        else:
            lower[f] = max(lower[f], threshold)
        ahead = above
    path.end[0] = node


@compiled(nogil=True, _nrt=False)
def _is_open(lower: float, upper: float, n_categories: int, n_closed: int) -> bool:
    return lower < upper if n_categories == 0 else n_closed < n_categories


@compiled(nogil=True, _nrt=False)
def _nth_unused(is_used: NDArray[np.bool_], start: int, stop: int, position: int) -> int:
    for slot in range(start, stop):
        if not is_used[slot]:
            if position == 0:
                return slot
            position -= 1
    return -1


@compiled(nogil=True, _nrt=False)
def draw_uniform_split(key: np.uint64, public: PublicFacts, path: Path) -> tuple[int, float]:
    """Draw a split as the paper does: a feature uniformly, then a cut uniformly (section 5).

    Parameters
    ----------
    key : uint64
        The node's key.
    public : PublicFacts
    path : Path
        As :func:`follow_path` leaves it.

    Returns
    -------
    feature : int
        :data:`NO_SPLIT` when no feature has a candidate left.
    threshold : float
        Or category code.
    """
    # Scalars and arrays into the calls: whole tuples would be copied for each feature.
    n_categories, n_dropped = public.n_categories, public.n_dropped
    lower, upper, n_used = path.lower, path.upper, path.n_used
    n_features = n_categories.shape[0]
    n_open = 0
    for f in range(n_features):
        if _is_open(lower[f], upper[f], n_categories[f], n_used[f] + n_dropped):
            n_open += 1
    if n_open == 0:
        return NO_SPLIT, 0.0
    position = int(keyed_uniform(key, _FEATURE_DRAW) * n_open)
    for f in range(n_features):
        if _is_open(lower[f], upper[f], n_categories[f], n_used[f] + n_dropped):
            if position == 0:
                draw = keyed_uniform(key, _CUT_DRAW)
                if n_categories[f] == 0:
                    return f, lower[f] + (upper[f] - lower[f]) * draw
                n_unused = n_categories[f] - n_dropped - n_used[f]
                first, stop = path.first_category[f], path.first_category[f + 1]
                slot = _nth_unused(path.is_used, first + n_dropped, stop, int(draw * n_unused))
                return f, float(slot - first)
            position -= 1
    return NO_SPLIT, 0.0


@compiled(nogil=True, _nrt=False)
def _mass_below(
    cumulative: NDArray[np.float64], first: int, n_bins: int, position: float, k: int
) -> float:
    """Released mass of class `k` below a position measured in bins, interpolated within a bin."""
    if not position > 0.0:
        return 0.0
    if position >= n_bins:
        return float(cumulative[first + n_bins, k])
    whole = int(position)
    low = float(cumulative[first + whole, k])
    return low + (position - whole) * (float(cumulative[first + whole + 1, k]) - low)


@compiled(nogil=True, _nrt=False)
def _weigh_classes(path: Path, guide: Guide, path_weight: float, scratch: GuidedScratch) -> None:
    """Fill each feature's class masses inside the node, and what the path says of the classes."""
    mass, weight_of, weight = scratch.mass, scratch.weight_of, scratch.weight
    cumulative, grid_lower, grid_upper = guide.cumulative, guide.lower, guide.upper
    lower, upper = path.lower, path.upper
    n_features, n_classes = mass.shape
    weight[:] = 1.0
    for f in range(n_features):
        first, n_bins = guide.first[f], guide.n_bins[f]
        end = first + n_bins
        if lower[f] == grid_lower[f] and upper[f] == grid_upper[f]:
            for k in range(n_classes):
                mass[f, k] = cumulative[end, k]
                weight_of[f, k] = 1.0
            continue
        scale = n_bins / (grid_upper[f] - grid_lower[f])
        low = (lower[f] - grid_lower[f]) * scale
        high = (upper[f] - grid_lower[f]) * scale
        heaviest = 0.0
        for k in range(n_classes):
            mass[f, k] = _mass_below(cumulative, first, n_bins, high, k) - _mass_below(
                cumulative, first, n_bins, low, k
            )
            share = (mass[f, k] + 1.0) / (cumulative[end, k] + 1.0)
            weight_of[f, k] = share**path_weight
            weight[k] *= weight_of[f, k]
            heaviest = max(heaviest, weight[k])
        for k in range(n_classes):
            # Only ratios count; many features would make the product too small for a float.
            weight[k] /= heaviest


@compiled(nogil=True, _nrt=False)
def draw_guided_split(
    key: np.uint64, path: Path, guide: Guide, rule: SplitRule, scratch: GuidedScratch
) -> tuple[int, float]:
    """Draw a split that released histograms favour.

    Each feature that is still open proposes the best of a few random cuts by their decrease of
    Gini impurity (the gain); the feature is then drawn with probability proportional to its gain to
    a power, or uniformly when exploring or where no gain is positive. The class masses of a feature
    inside the node are those of its own histogram restricted to what the path left open, reweighted
    by what the path says about the classes through the other features.

    Parameters
    ----------
    key : uint64
        The node's key.
    path : Path
        On the scale of the guide (:meth:`lumberjack.guide.Guide.to_guide_scale`).
    guide : Guide
    rule : SplitRule
    scratch : GuidedScratch

    Returns
    -------
    feature : int
        :data:`NO_SPLIT` when no feature has a candidate left.
    threshold : float
        Between two cells where the cells are categories.
    """
    _weigh_classes(path, guide, rule.path_weight, scratch)
    mass, weight_of, weight = scratch.mass, scratch.weight_of, scratch.weight
    gains, cuts, whole, below = scratch.gains, scratch.cuts, scratch.whole, scratch.below
    cumulative, grid_lower, grid_upper = guide.cumulative, guide.lower, guide.upper
    lower, upper, is_category = path.lower, path.upper, guide.is_category
    n_features, n_classes = mass.shape
    n_open = 0
    total_gain = 0.0
    position = _CUT_DRAW + 1
    for f in range(n_features):
        gains[f] = -1.0
        if not lower[f] < upper[f]:
            continue
        first, n_bins = guide.first[f], guide.n_bins[f]
        scale = n_bins / (grid_upper[f] - grid_lower[f])
        low = (lower[f] - grid_lower[f]) * scale
        high = (upper[f] - grid_lower[f]) * scale
        n_edges = round(high - low) - 1
        if is_category[f] and n_edges < 1:
            continue
        n_open += 1
        total = 0.0
        squares = 0.0
        for k in range(n_classes):
            # What this feature's own restriction says is in its masses already.
            per_record = weight[k] / weight_of[f, k]
            whole[k] = mass[f, k] * per_record
            below[k] = _mass_below(cumulative, first, n_bins, low, k)
            total += whole[k]
            squares += whole[k] * whole[k]
        for _ in range(rule.n_candidates):
            draw = keyed_uniform(key, position)
            position += 1
            if is_category[f]:
                middle = round(low) + 1.0 + math.floor(draw * n_edges)
                cut = grid_lower[f] + middle / scale
            else:
                cut = lower[f] + (upper[f] - lower[f]) * draw
                middle = (cut - grid_lower[f]) * scale
            inside = 0.0
            squares_inside = 0.0
            squares_outside = 0.0
            for k in range(n_classes):
                part = 0.0
                if mass[f, k] > 0.0:
                    part = _mass_below(cumulative, first, n_bins, middle, k) - below[k]
                    part *= whole[k] / mass[f, k]
                inside += part
                squares_inside += part * part
                squares_outside += (whole[k] - part) ** 2
            gain = 0.0
            if 0.0 < inside < total:
                gain = squares_inside / inside + squares_outside / (total - inside)
                gain = max((gain - squares / total) / total, 0.0)
            if gain > gains[f]:
                gains[f] = gain
                cuts[f] = cut
        gains[f] = gains[f] ** rule.gain_power
        total_gain += gains[f]
    if n_open == 0:
        return NO_SPLIT, 0.0
    if total_gain <= 0.0 or keyed_uniform(key, _FEATURE_DRAW) < rule.exploration:
        chosen = int(keyed_uniform(key, _CUT_DRAW) * n_open)
        for f in range(n_features):
            if gains[f] >= 0.0:
                if chosen == 0:
                    return f, cuts[f]
                chosen -= 1
    target = keyed_uniform(key, _CUT_DRAW) * total_gain
    last = NO_SPLIT
    for f in range(n_features):
        if gains[f] > 0.0:
            last = f
            target -= gains[f]
            if target < 0.0:
                break
    return last, cuts[last]
