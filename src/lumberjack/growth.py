"""The compiled tree builder: random tree and heavy-hitter search in one lazy, in-place pass.

The output has the law of: grow a full random tree (section 5), query Algorithm 1 with Algorithm 2
on its levels 0 .. height-1, keep what is Heavy. Three facts make it fast and change no probability:

- a node is split when the search first needs it, since splits do not look at records;
- a subtree too small to be likely to hold a yes is skipped by one coin that has the exact
  probability that none of its queries says yes; when the coin fails, the noise is drawn
  conditioned on that;
- the records are one permutation per tree and a node is a slice of it.

Symbols: ``tau`` the threshold, ``sigma`` the noise, ``floor`` the largest count that is rejected
without noise (tau - margin - 1; 0 in every setting of the paper).
Nothing returned here is private yet except the shape: leaf counts go to :mod:`lumberjack.leaves`.
"""

from __future__ import annotations

import math

import numpy as np

from lumberjack.compiled import compiled
from lumberjack.keyed_draws import keyed_bits
from lumberjack.splits import (
    LEFT,
    NO_SPLIT,
    RIGHT,
    draw_guided_split,
    draw_uniform_split,
    guided_scratch,
    walk_ancestors,
)

_NOT_SPLIT = -1
_TERMINAL = -2

NO_GUIDE = (
    np.empty((0, 0)),
    np.empty(0, dtype=np.int64),
    np.empty(0, dtype=np.int64),
    np.empty(0),
    np.empty(0),
    np.empty(0, dtype=np.bool_),
    0,
    0.0,
    0.0,
    0.0,
)
"""In place of released histograms: splits are uniform, as in the paper."""

_NODE = np.dtype(
    [
        ("start", np.int64),  # its records are rows[start:stop]
        ("stop", np.int64),
        ("key", np.uint64),
        ("cut", np.float64),
        ("feature", np.int32),
        ("level", np.int32),
        ("parent", np.int32),
        ("left", np.int32),  # the right child follows; or _NOT_SPLIT, or _TERMINAL
        ("is_heavy", np.bool_),
    ],
    align=True,
)


@compiled(nogil=True)
def _log_no_exceedance(tau, sigma, n_rows):
    """Table of log Pr[c + N(0, sigma^2) <= tau] for counts c = 0 .. min(ceil(tau), n_rows)."""
    size = min(max(math.ceil(tau), 0), n_rows) + 1
    table = np.empty(size)
    for count in range(size):
        x = (tau - count) / sigma
        table[count] = math.log1p(-0.5 * math.erfc(x / math.sqrt(2.0)))
    return table


@compiled(nogil=True)
def _normal_above(x, generator):
    """Draw a standard normal conditioned on being above x (exponential rejection for x > 0)."""
    if x <= 0.0:
        while True:
            z = generator.standard_normal()
            if z > x:
                return z
    rate = 0.5 * (x + math.sqrt(x * x + 4.0))
    while True:
        z = x + generator.standard_exponential() / rate
        if generator.random() <= math.exp(-0.5 * (z - rate) ** 2) and z > x:
            return z


@compiled(nogil=True)
def _draws_with_exceedance(n_draws, x, log_none, draws, generator):
    """Fill ``draws[:n_draws]`` with standard normals conditioned on at least one exceeding x.

    `log_none` is log Pr[one draw stays at or below x]. The index of the first exceedance is drawn
    first; draws before it stay below, it lies above, the later ones are free.
    """
    any_exceeds = -math.expm1(n_draws * log_none)
    first = int(math.log1p(-generator.random() * any_exceeds) / log_none)
    first = min(max(first, 0), n_draws - 1)
    for i in range(n_draws):
        if i < first:
            z = generator.standard_normal()
            while z > x:
                z = generator.standard_normal()
            draws[i] = z
        elif i == first:
            draws[i] = _normal_above(x, generator)
        else:
            draws[i] = generator.standard_normal()


@compiled(nogil=True)
def _partition(values, is_category, cut, rows, start, stop, spare):
    """Stable in-place partition of ``rows[start:stop]``; returns where the right side starts."""
    write = start
    n_right = 0
    if is_category:
        for i in range(start, stop):
            row = rows[i]
            if values[row] == cut:
                rows[write] = row
                write += 1
            else:
                spare[n_right] = row
                n_right += 1
    else:
        for i in range(start, stop):
            row = rows[i]
            if values[row] <= cut:
                rows[write] = row
                write += 1
            else:
                spare[n_right] = row
                n_right += 1
    for i in range(n_right):
        rows[write + i] = spare[i]
    return write


@compiled(nogil=True)
def _bounded_power_of_two(exponent, bound):
    """min(2 ** exponent, bound) without overflow."""
    if exponent >= 62:
        return bound
    return min(1 << exponent, bound)


@compiled(nogil=True)
def _with_room_for_two(nodes, n_nodes):
    if n_nodes + 2 <= nodes.shape[0]:
        return nodes
    larger = np.empty(2 * nodes.shape[0], dtype=nodes.dtype)
    larger[:n_nodes] = nodes[:n_nodes]
    return larger


@compiled(nogil=True)
def _start_node(nodes, node, start, stop, key, level, parent):
    nodes[node].start = start
    nodes[node].stop = stop
    nodes[node].key = key
    nodes[node].cut = 0.0
    nodes[node].feature = NO_SPLIT
    nodes[node].level = level
    nodes[node].parent = parent
    nodes[node].left = _NOT_SPLIT
    nodes[node].is_heavy = False


@compiled(nogil=True)
def _split_node(nodes, n_nodes, node, X, rows, spare, public, path, n_dropped, guide):
    """Draw the split of `node` and make its children, or mark it terminal; returns n_nodes."""
    n_categories, lower, upper, category_offset = public
    open_lower, open_upper, n_used, is_used, scratch = path
    open_lower[:] = lower
    open_upper[:] = upper
    n_used[:] = 0
    is_used[:] = False
    walk_ancestors(
        node, nodes, n_categories, open_lower, open_upper, n_used, is_used, category_offset
    )
    key = nodes[node].key
    if guide[0].shape[0] == 0:
        feature, cut = draw_uniform_split(
            key, n_categories, open_lower, open_upper, n_used, is_used, category_offset, n_dropped
        )
    else:
        feature, cut = draw_guided_split(key, open_lower, open_upper, guide, scratch)
    if feature == NO_SPLIT:
        nodes[node].left = _TERMINAL
        return n_nodes
    start = nodes[node].start
    stop = nodes[node].stop
    right_start = _partition(
        X[:, feature], n_categories[feature] > 0, cut, rows, start, stop, spare
    )
    level = nodes[node].level + 1
    nodes[node].feature = feature
    nodes[node].cut = cut
    nodes[node].left = n_nodes
    _start_node(nodes, n_nodes, start, right_start, keyed_bits(key, LEFT), level, node)
    _start_node(nodes, n_nodes + 1, right_start, stop, keyed_bits(key, RIGHT), level, node)
    return n_nodes + 2


@compiled(nogil=True)
def grow_tree(
    X,
    y,
    n_classes,
    n_categories,
    lower,
    upper,
    n_dropped,
    height,
    sigma,
    tau,
    floor,
    key,
    generator,
    is_lazy,
    touches,
    guide,
):
    """Grow one random tree, mark its heavy hitters and cut it back to them.

    Parameters
    ----------
    X : ndarray of float64, shape (n_rows, n_features), column-major
        Encoded rows (see :class:`lumberjack.schema.EncodedTable`).
    y : ndarray of int64, shape (n_rows,)
        Class codes.
    n_classes : int
        Number of classes.
    n_categories, lower, upper : ndarray, shape (n_features,)
        The schema's public facts.
    n_dropped : int
        Leading categories of each feature that are no candidates.
    height : int
        Number of levels that are queried, at least 1.
    sigma, tau : float
        Noise (positive) and threshold of the queries.
    floor : int
        Largest count rejected without noise, at least 0.
    key : uint64
        The tree's seed; it decides all splits.
    generator : numpy.random.Generator
        The source of noise, independent of `key`.
    is_lazy : bool
        Skip small subtrees by a coin. False grows every non-empty node down to the last level
        that is asked for: the same law, slowly; it is here for comparison.
    touches : ndarray of int64, shape (n_rows,) or (0,)
        If not empty, counts the noisy queries that each record is part of. NOT private.
    guide : tuple
        Released histograms that favour splits (:func:`lumberjack.splits.draw_guided_split`), or
        :data:`NO_GUIDE` for uniform splits.

    Returns
    -------
    feature : ndarray of int32, shape (n_nodes,)
        Split feature of each node of the cut-back tree, :data:`~lumberjack.splits.NO_SPLIT` for a
        leaf; nodes are numbered breadth first, so that numbers say nothing about the search.
    cut : ndarray of float64, shape (n_nodes,)
        Threshold or category code.
    left : ndarray of int32, shape (n_nodes,)
        Left child, the right one follows it; -1 for a leaf.
    counts : ndarray of int64, shape (n_nodes, n_classes)
        Records per class in each leaf, zero elsewhere. NOT private.
    leaf_of_row : ndarray of int32, shape (n_rows,)
        The leaf that each record ends in. NOT private.
    """
    n_rows, n_features = X.shape
    rows = np.arange(n_rows)
    spare = np.empty(n_rows, dtype=np.int64)
    category_offset = np.zeros(n_features + 1, dtype=np.int64)
    category_offset[1:] = np.cumsum(n_categories)
    public = (n_categories, lower, upper, category_offset)
    path = (
        np.empty(n_features),
        np.empty(n_features),
        np.empty(n_features, dtype=np.int64),
        np.empty(category_offset[n_features], dtype=np.bool_),
        guided_scratch(n_features, guide[0].shape[1]),
    )
    nodes = np.empty(1024, dtype=_NODE)
    _start_node(nodes, 0, 0, n_rows, key, 0, -1)
    n_nodes = 1

    log_none = _log_no_exceedance(tau, sigma, n_rows)
    draws = np.empty(log_none.shape[0])
    # Calls of Algorithm 1 that wait: node, height of its subtree.
    calls = [(0, height)]
    # Nodes to visit within one call: node, where its share of `draws` starts (-1: nothing is
    # drawn yet), how many draws it has.
    visits = [(0, -1, 0)]
    visits.pop()

    while len(calls) > 0:
        top, span = calls.pop()
        span_above = span // 2
        middle = nodes[top].level + span_above
        if span >= 2:
            calls.append((top, span_above))
        visits.append((top, -1, 0))
        while len(visits) > 0:
            node, first, n_draws = visits.pop()
            start = nodes[node].start
            stop = nodes[node].stop
            count = stop - start
            level = nodes[node].level
            if level == middle:
                if not nodes[node].is_heavy:
                    if count <= floor:
                        continue
                    _count_touches(touches, rows, start, stop)
                    z = draws[first] if first >= 0 else generator.standard_normal()
                    if count + sigma * z <= tau:
                        continue
                    above = node
                    while above >= 0 and not nodes[above].is_heavy:
                        nodes[above].is_heavy = True
                        above = nodes[above].parent
                if span >= 3:
                    if nodes[node].left == _NOT_SPLIT:
                        nodes = _with_room_for_two(nodes, n_nodes)
                        n_nodes = _split_node(
                            nodes, n_nodes, node, X, rows, spare, public, path, n_dropped, guide
                        )
                    left = nodes[node].left
                    if left >= 0:
                        calls.append((left, span - span_above - 1))
                        calls.append((left + 1, span - span_above - 1))
                continue
            if count <= floor or nodes[node].left == _TERMINAL:
                continue
            if first >= 0:
                # All noise below is drawn already: skip only where none of it can say yes.
                largest = -np.inf
                for i in range(first, first + n_draws):
                    largest = max(largest, draws[i])
                if count + sigma * largest <= tau:
                    _count_touches(touches, rows, start, stop)
                    continue
            elif is_lazy and count < tau and nodes[node].left == _NOT_SPLIT:
                n_draws = _bounded_power_of_two(middle - level, count)
                if generator.random() < math.exp(n_draws * log_none[count]):
                    _count_touches(touches, rows, start, stop)
                    continue
                _draws_with_exceedance(
                    n_draws, (tau - count) / sigma, log_none[count], draws, generator
                )
                first = 0
            if nodes[node].left == _NOT_SPLIT:
                nodes = _with_room_for_two(nodes, n_nodes)
                n_nodes = _split_node(
                    nodes, n_nodes, node, X, rows, spare, public, path, n_dropped, guide
                )
            left = nodes[node].left
            if left < 0:
                continue
            if first < 0:
                visits.append((left, -1, 0))
                visits.append((left + 1, -1, 0))
            else:
                # By position, whatever the draws are; each child gets as many as it can ask for.
                n_left = _bounded_power_of_two(
                    middle - level - 1, nodes[left].stop - nodes[left].start
                )
                n_right = _bounded_power_of_two(
                    middle - level - 1, nodes[left + 1].stop - nodes[left + 1].start
                )
                if n_left > 0:
                    visits.append((left, first, n_left))
                if n_right > 0:
                    visits.append((left + 1, first + n_left, n_right))

    return _cut_back(nodes, n_nodes, X, y, n_classes, rows, spare, public, path, n_dropped, guide)


@compiled(nogil=True)
def _count_touches(touches, rows, start, stop):
    if touches.shape[0] > 0:
        for i in range(start, stop):
            touches[rows[i]] += 1


@compiled(nogil=True)
def _cut_back(nodes, n_nodes, X, y, n_classes, rows, spare, public, path, n_dropped, guide):
    """Keep the Heavy nodes and their children, renumbered breadth first, and count the leaves."""
    order = [0]
    kept = 0
    while kept < len(order):
        node = order[kept]
        kept += 1
        if not nodes[node].is_heavy:
            continue
        if nodes[node].left == _NOT_SPLIT:
            nodes = _with_room_for_two(nodes, n_nodes)
            n_nodes = _split_node(
                nodes, n_nodes, node, X, rows, spare, public, path, n_dropped, guide
            )
        if nodes[node].left >= 0:
            order.append(nodes[node].left)
            order.append(nodes[node].left + 1)
    feature = np.full(kept, NO_SPLIT, dtype=np.int32)
    cut = np.zeros(kept)
    left = np.full(kept, -1, dtype=np.int32)
    counts = np.zeros((kept, n_classes), dtype=np.int64)
    leaf_of_row = np.empty(rows.shape[0], dtype=np.int32)
    n_numbered = 1
    for position in range(kept):
        node = order[position]
        if nodes[node].is_heavy and nodes[node].left >= 0:
            feature[position] = nodes[node].feature
            cut[position] = nodes[node].cut
            left[position] = n_numbered
            n_numbered += 2
        else:
            for i in range(nodes[node].start, nodes[node].stop):
                counts[position, y[rows[i]]] += 1
                leaf_of_row[rows[i]] = position
    return feature, cut, left, counts, leaf_of_row
