"""How a split is drawn: which feature, and where it is cut.

A split is a function of the node's path, public facts and, for guided splits, released
histograms; it never looks at records. Every node has a 64-bit key derived from the tree's seed and the
left/right turns that lead to it, so a node's split does not depend on when it is asked for.

A node sends a record left when ``x <= cut`` (numeric feature) or ``x == cut`` (categorical
feature, `cut` being a category code); all else, unseen categories included, goes right.
"""

from __future__ import annotations

import math

import numpy as np

from lumberjack.compiled import compiled
from lumberjack.keyed_draws import keyed_uniform

NO_SPLIT = -1
"""Feature of a node that has no candidate split left; a fact of its path alone."""

# A node's stream: the keys of its left and right child, then its own draws.
LEFT, RIGHT = 0, 1
_FEATURE_DRAW, _CUT_DRAW = 2, 3


@compiled(nogil=True)
def walk_ancestors(node, nodes, n_categories, lower, upper, n_used, is_used, category_offset):
    """Fill in what the path to `node` leaves open.

    Narrows `lower` and `upper` (shape (n_features,)), which hold the public bounds on entry, and
    marks categories already used by an ancestor in `is_used` (flat, feature f starting at
    ``category_offset[f]``), counting them in `n_used`. A categorical feature whose path took
    "equals c" is settled, which is recorded as ``upper[f] = -1 - c``.
    """
    child = node
    above = nodes[node].parent
    while above >= 0:
        f = nodes[above].feature
        cut = nodes[above].cut
        went_left = nodes[above].left == child
        if n_categories[f] == 0:
            if went_left:
                upper[f] = min(upper[f], cut)
            else:
                lower[f] = max(lower[f], cut)
        else:
            slot = category_offset[f] + int(cut)
            if not is_used[slot]:
                is_used[slot] = True
                n_used[f] += 1
            if went_left:
                upper[f] = -1.0 - cut
        child = above
        above = nodes[above].parent


@compiled(nogil=True)
def nth_unused(is_used, start, stop, position):
    """Category code of the unused category number `position` in ``start <= slot < stop``."""
    for slot in range(start, stop):
        if not is_used[slot]:
            if position == 0:
                return slot
            position -= 1
    return -1


@compiled(nogil=True)
def draw_uniform_split(
    key, n_categories, lower, upper, n_used, is_used, category_offset, n_dropped
):
    """Draw a split as the paper does: a feature uniformly, then a cut uniformly (section 5).

    Parameters
    ----------
    key : uint64
        The node's key.
    n_categories : ndarray of int64, shape (n_features,)
        Zero marks a numeric feature.
    lower, upper, n_used, is_used, category_offset
        As :func:`walk_ancestors` leaves them.
    n_dropped : int
        How many leading categories of each feature are no candidates (1 for the usual one-hot
        coding with k - 1 columns, 0 to allow all).

    Returns
    -------
    feature : int
        :data:`NO_SPLIT` when no feature has a candidate left.
    cut : float
        Threshold or category code.
    """
    n_features = n_categories.shape[0]
    n_candidates = 0
    for f in range(n_features):
        if n_categories[f] == 0:
            if lower[f] < upper[f]:
                n_candidates += 1
        elif n_used[f] < n_categories[f] - n_dropped:
            n_candidates += 1
    if n_candidates == 0:
        return NO_SPLIT, 0.0
    position = int(keyed_uniform(key, _FEATURE_DRAW) * n_candidates)
    for f in range(n_features):
        if n_categories[f] == 0:
            is_candidate = lower[f] < upper[f]
        else:
            is_candidate = n_used[f] < n_categories[f] - n_dropped
        if is_candidate:
            if position == 0:
                draw = keyed_uniform(key, _CUT_DRAW)
                if n_categories[f] == 0:
                    return f, lower[f] + (upper[f] - lower[f]) * draw
                n_unused = n_categories[f] - n_dropped - n_used[f]
                start = category_offset[f]
                slot = nth_unused(
                    is_used, start + n_dropped, start + n_categories[f], int(draw * n_unused)
                )
                return f, float(slot - start)
            position -= 1
    return NO_SPLIT, 0.0


@compiled(nogil=True)
def _mass_below(cumulative, first, n_bins, position, k):
    """Released mass of class `k` below a position measured in bins, interpolated within a bin."""
    if not position > 0.0:
        return 0.0
    if position >= n_bins:
        return cumulative[first + n_bins, k]
    whole = int(position)
    low = cumulative[first + whole, k]
    return low + (position - whole) * (cumulative[first + whole + 1, k] - low)


@compiled(nogil=True)
def draw_guided_split(key, lower, upper, guide, scratch):
    """Draw a split that released histograms favour.

    Each feature that is still open proposes the best of a few random cuts by their decrease of Gini impurity (the gain);
    the feature is then drawn with probability proportional to its gain to the power `sharpness`,
    or uniformly with probability `exploration` or where no gain is positive. The class masses of
    a feature inside the node are those of its own histogram restricted to what the path left
    open, reweighted by what the path says about the classes through the other features (as if
    features were independent given the class, to the power `path_weight`).

    Parameters
    ----------
    key : uint64
        The node's key.
    lower, upper : ndarray of float64, shape (n_features,)
        What the path leaves open, on the scale of the guide (:meth:`lumberjack.guide.Guide.place`).
    guide : tuple
        ``(cumulative, first, n_bins, grid_lower, grid_upper, is_category, n_candidates, sharpness,
        exploration, path_weight)``; the first six are those of :class:`lumberjack.guide.Guide`.
    scratch : tuple of ndarray
        Room to work in (:func:`guided_scratch`).

    Returns
    -------
    feature : int
        :data:`NO_SPLIT` when no feature has a candidate left.
    cut : float
        Threshold, between two cells where the cells are categories.
    """
    (cumulative, first, n_bins, grid_lower, grid_upper, is_category, n_candidates, sharpness,
     exploration, path_weight) = guide  # fmt: skip
    mass, weight_of, gains, cuts, weight, whole, below = scratch
    n_features, n_classes = mass.shape
    weight[:] = 1.0
    for f in range(n_features):
        start, end = first[f], first[f] + n_bins[f]
        if lower[f] == grid_lower[f] and upper[f] == grid_upper[f]:
            for k in range(n_classes):
                mass[f, k] = cumulative[end, k]
                weight_of[f, k] = 1.0
            continue
        scale = n_bins[f] / (grid_upper[f] - grid_lower[f])
        low = (lower[f] - grid_lower[f]) * scale
        high = (upper[f] - grid_lower[f]) * scale
        heaviest = 0.0
        for k in range(n_classes):
            mass[f, k] = _mass_below(cumulative, start, n_bins[f], high, k) - _mass_below(
                cumulative, start, n_bins[f], low, k
            )
            weight_of[f, k] = ((mass[f, k] + 1.0) / (cumulative[end, k] + 1.0)) ** path_weight
            weight[k] *= weight_of[f, k]
            heaviest = max(heaviest, weight[k])
        for k in range(n_classes):
            # Only ratios count; many features would make the product too small for a float.
            weight[k] /= heaviest

    n_open = 0
    total_gain = 0.0
    position = _CUT_DRAW + 1
    for f in range(n_features):
        gains[f] = -1.0
        if not lower[f] < upper[f]:
            continue
        start = first[f]
        scale = n_bins[f] / (grid_upper[f] - grid_lower[f])
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
            below[k] = _mass_below(cumulative, start, n_bins[f], low, k)
            total += whole[k]
            squares += whole[k] * whole[k]
        for _ in range(n_candidates):
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
                    part = _mass_below(cumulative, start, n_bins[f], middle, k) - below[k]
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
        gains[f] = gains[f] ** sharpness
        total_gain += gains[f]
    if n_open == 0:
        return NO_SPLIT, 0.0
    if total_gain <= 0.0 or keyed_uniform(key, _FEATURE_DRAW) < exploration:
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


@compiled(nogil=True)
def guided_scratch(n_features, n_classes):
    """Return the arrays that :func:`draw_guided_split` works in."""
    return (
        np.empty((n_features, n_classes)),
        np.empty((n_features, n_classes)),
        np.empty(n_features),
        np.empty(n_features),
        np.empty(n_classes),
        np.empty(n_classes),
        np.empty(n_classes),
    )
