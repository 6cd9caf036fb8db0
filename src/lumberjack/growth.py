"""The compiled tree builder: random tree and heavy-hitter search in one lazy, in-place pass.

The output has the law of: grow a full random tree (section 5), query Algorithm 1 with Algorithm 2
on its levels 0 .. height-1, keep what is Heavy. Three facts make it fast and change no probability:

- a node is split when the search first needs it, since splits do not look at records;
- a subtree too small to be likely to hold a yes is skipped by one coin that has the exact
  probability that none of its queries says yes; when the coin fails, the noise is drawn
  conditioned on that;
- the records are one permutation per tree and a node is a slice of it.

Discrete noise is drawn exactly; coins are flipped with all digits of a double, of small probabilities
too, which the accounting covers by more than a thousandfold
(:mod:`lumberjack.accounting.discrete_gaussian`).

Symbols: ``tau`` the threshold, ``sigma`` the noise. An empty node is rejected without noise.
Nothing returned here is private yet except the shape: leaf counts go to :mod:`lumberjack.leaves`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lumberjack.compiled import compiled
from lumberjack.discrete_gaussian import NO_TABLE, BlockTable, draw_at_least, get_tail
from lumberjack.guide import Guide
from lumberjack.keyed_draws import keyed_bits
from lumberjack.ranks import RankedTable, part_rows
from lumberjack.splits import (
    LEFT,
    NO_SPLIT,
    RIGHT,
    GuidedScratch,
    Path,
    PublicFacts,
    SplitRule,
    draw_guided_split,
    draw_uniform_split,
    follow_path,
    make_guided_scratch,
    make_path,
)

_NOT_SPLIT = -1
_TERMINAL = -2

_NODE = np.dtype(
    [
        ("start", np.int64),  # its records are rows[start:stop]
        ("stop", np.int64),
        ("key", np.uint64),
        ("threshold", np.float64),
        ("replaced", np.float64),  # the bound that the split above it replaced
        ("feature", np.int32),
        ("level", np.int32),
        ("parent", np.int32),
        ("left", np.int32),  # the right child follows; or _NOT_SPLIT, or _TERMINAL
        ("is_heavy", np.bool_),
    ],
    align=True,
)


class TrainingRows(NamedTuple):
    """Rows on the scale of the trees, and what the trees are grown with. NOT private.

    Attributes
    ----------
    ranked : RankedTable
        Encoded rows (see :class:`lumberjack.schema.EncodedTable`), or those on the guide's scale.
    labels : ndarray of whole numbers, shape (n_rows,)
        Class codes.
    public : PublicFacts
        On the same scale.
    guide : Guide
        Released histograms that splits follow, or :data:`lumberjack.guide.NO_GUIDE` for uniform
        splits.
    rule : SplitRule
        How they follow it.
    """

    ranked: RankedTable
    labels: NDArray[Any]
    public: PublicFacts
    guide: Guide
    rule: SplitRule


class Search(NamedTuple):
    """The heavy-hitter search of a tree.

    Attributes
    ----------
    height : int
        Number of levels that are queried, at least 1.
    sigma, tau : float
        Noise (positive) and threshold of the queries.
    table : BlockTable
        Empty for continuous noise. Otherwise that of the discrete Gaussian, of which all noise is drawn;
        then ``sigma`` is 1 and ``tau`` whole.
    """

    height: int
    sigma: float
    tau: float
    table: BlockTable = NO_TABLE


class CountedTree(NamedTuple):
    """A tree cut back to its Heavy nodes and their children, and the records in its leaves.

    Nodes are numbered breadth first, so that numbers say nothing about the search.

    Attributes
    ----------
    feature : ndarray of int32, shape (n_nodes,)
        Split feature, :data:`~lumberjack.splits.NO_SPLIT` for a leaf.
    threshold : ndarray of float64, shape (n_nodes,)
        Threshold or category code.
    children_left : ndarray of int32, shape (n_nodes,)
        Left child, the right one follows it; -1 for a leaf.
    counts : ndarray of int64, shape (n_nodes, n_classes)
        Records per class in each leaf, zero elsewhere. NOT private.
    leaf_of_row : ndarray of int32, shape (n_rows,)
        The leaf that each record ends in. NOT private.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    children_left: NDArray[np.int32]
    counts: NDArray[np.int64]
    leaf_of_row: NDArray[np.int32]


class _Room(NamedTuple):
    """What one tree is grown in."""

    rows: NDArray[np.uint32]
    spare: NDArray[np.uint32]
    scratch: GuidedScratch


@compiled(nogil=True)
def _log_no_exceedance(search: Search, n_rows: int) -> NDArray[np.float64]:
    """Table of log Pr[c + noise <= tau] for counts c = 0 .. min(ceil(tau), n_rows)."""
    size = min(max(math.ceil(search.tau), 0), n_rows) + 1
    table = np.empty(size)
    for count in range(size):
        x = (search.tau - count) / search.sigma
        if search.table.high.shape[0] > 0:
            table[count] = math.log1p(-get_tail(search.table, math.floor(x) + 1))
        else:
            table[count] = math.log1p(-0.5 * math.erfc(x / math.sqrt(2.0)))
    return table


@compiled(nogil=True)
def _draw_uniform(table: BlockTable, generator: np.random.Generator) -> float:
    """Draw a uniform number in [0, 1); beside discrete noise also small ones have all their digits."""
    if table.high.shape[0] > 0:
        return min(generator.random() + generator.random() * 2.0**-53, 1.0 - 2.0**-53)
    return generator.random()


@compiled(nogil=True)
def _no_draw_exceeds(
    n_draws: int, log_none: float, table: BlockTable, generator: np.random.Generator
) -> bool:
    """Flip the coin for whether all of several draws stay below, each with this log probability."""
    if table.high.shape[0] > 0:
        return _draw_uniform(table, generator) >= -math.expm1(n_draws * log_none)
    return generator.random() < math.exp(n_draws * log_none)


@compiled(nogil=True)
def _draw_noise(table: BlockTable, generator: np.random.Generator) -> float:
    """Draw noise in units of ``sigma``."""
    if table.high.shape[0] > 0:
        return float(draw_at_least(table, table.first, generator))
    return generator.standard_normal()


@compiled(nogil=True)
def _draw_noise_above(x: float, table: BlockTable, generator: np.random.Generator) -> float:
    """Draw noise conditioned on being above x (exponential rejection for x > 0)."""
    if table.high.shape[0] > 0:
        return float(draw_at_least(table, math.floor(x) + 1, generator))
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
def _draws_with_exceedance(
    n_draws: int,
    x: float,
    log_none: float,
    draws: NDArray[np.float64],
    table: BlockTable,
    generator: np.random.Generator,
) -> None:
    """Fill ``draws[:n_draws]`` with noise conditioned on at least one draw exceeding x.

    `log_none` is log Pr[one draw stays at or below x]. The index of the first exceedance is drawn
    first; draws before it stay below, it lies above, the later ones are free.
    """
    any_exceeds = -math.expm1(n_draws * log_none)
    first = int(math.log1p(-_draw_uniform(table, generator) * any_exceeds) / log_none)
    first = min(max(first, 0), n_draws - 1)
    for i in range(n_draws):
        if i < first:
            z = _draw_noise(table, generator)
            while z > x:
                z = _draw_noise(table, generator)
            draws[i] = z
        elif i == first:
            draws[i] = _draw_noise_above(x, table, generator)
        else:
            draws[i] = _draw_noise(table, generator)


@compiled(nogil=True)
def _bounded_power_of_two(exponent: int, bound: int) -> int:
    """min(2 ** exponent, bound) without overflow."""
    if exponent >= 62:
        return bound
    return min(1 << exponent, bound)


@compiled(nogil=True)
def _with_room_for_two(nodes: NDArray[Any], n_nodes: int) -> NDArray[Any]:
    if n_nodes + 2 <= nodes.shape[0]:
        return nodes
    larger = np.empty(2 * nodes.shape[0], dtype=nodes.dtype)
    larger[:n_nodes] = nodes[:n_nodes]
    return larger


@compiled(nogil=True, _nrt=False)
def _start_node(
    nodes: NDArray[Any],
    node: int,
    start: int,
    stop: int,
    key: np.uint64,
    level: int,
    parent: int,
    replaced: float,
) -> None:
    nodes[node].start = start
    nodes[node].stop = stop
    nodes[node].key = key
    nodes[node].threshold = 0.0
    nodes[node].replaced = replaced
    nodes[node].feature = NO_SPLIT
    nodes[node].level = level
    nodes[node].parent = parent
    nodes[node].left = _NOT_SPLIT
    nodes[node].is_heavy = False


@compiled(nogil=True, _nrt=False)
def _split_node(
    nodes: NDArray[Any],
    n_nodes: int,
    node: int,
    ranked: RankedTable,
    public: PublicFacts,
    guide: Guide,
    rule: SplitRule,
    room: _Room,
    path: Path,
) -> int:
    """Draw the split of `node` and make its children, or mark it terminal; return how many nodes are."""
    n_categories = public.n_categories
    follow_path(path, nodes, node, n_categories)
    key = nodes[node].key
    if guide.cumulative.shape[0] == 0:
        feature, threshold = draw_uniform_split(key, public, path)
    else:
        feature, threshold = draw_guided_split(key, path, guide, rule, room.scratch)
    if feature == NO_SPLIT:
        nodes[node].left = _TERMINAL
        return n_nodes
    start = nodes[node].start
    stop = nodes[node].stop
    is_category = n_categories[feature] > 0
    middle = part_rows(ranked, feature, threshold, is_category, room.rows, start, stop, room.spare)
    level = nodes[node].level + 1
    nodes[node].feature = feature
    nodes[node].threshold = threshold
    nodes[node].left = n_nodes
    lower, upper = path.lower[feature], path.upper[feature]
    _start_node(nodes, n_nodes, start, middle, keyed_bits(key, LEFT), level, node, upper)
    _start_node(nodes, n_nodes + 1, middle, stop, keyed_bits(key, RIGHT), level, node, lower)
    return n_nodes + 2


@compiled(nogil=True)
def grow_tree(
    table: TrainingRows, search: Search, key: np.uint64, generator: np.random.Generator
) -> CountedTree:
    """Grow one random tree, mark its heavy hitters and cut it back to them.

    Parameters
    ----------
    table : TrainingRows
    search : Search
    key : uint64
        The tree's seed; it decides all splits.
    generator : numpy.random.Generator
        The source of noise, independent of `key`.
    """
    ranked, public, guide, rule = table.ranked, table.public, table.guide, table.rule
    n_rows, n_features = len(table.labels), len(ranked.edges)
    sigma, tau, noise_table = search.sigma, search.tau, search.table
    room = _Room(
        np.arange(np.uint32(n_rows), dtype=np.uint32),
        np.empty(n_rows, dtype=np.uint32),
        make_guided_scratch(n_features, public.n_classes),
    )
    path = make_path(public.n_categories)
    path.lower[:] = public.lower
    path.upper[:] = public.upper
    nodes = np.empty(1024, dtype=_NODE)
    _start_node(nodes, 0, 0, n_rows, key, 0, -1, 0.0)
    n_nodes = 1

    log_none = _log_no_exceedance(search, n_rows)
    draws = np.empty(log_none.shape[0])
    # Calls of Algorithm 1 that wait: node, height of its subtree.
    calls = [(0, search.height)]
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
                    if count == 0:
                        continue
                    z = draws[first] if first >= 0 else _draw_noise(noise_table, generator)
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
                            nodes, n_nodes, node, ranked, public, guide, rule, room, path
                        )
                    left = nodes[node].left
                    if left >= 0:
                        calls.append((left, span - span_above - 1))
                        calls.append((left + 1, span - span_above - 1))
                continue
            if count == 0 or nodes[node].left == _TERMINAL:
                continue
            if first >= 0:
                # All noise below is drawn already: skip only where none of it can say yes.
                largest = -np.inf
                for i in range(first, first + n_draws):
                    largest = max(largest, draws[i])
                if count + sigma * largest <= tau:
                    continue
            elif count < tau and nodes[node].left == _NOT_SPLIT:
                n_draws = _bounded_power_of_two(middle - level, count)
                if _no_draw_exceeds(n_draws, log_none[count], noise_table, generator):
                    continue
                _draws_with_exceedance(
                    n_draws, (tau - count) / sigma, log_none[count], draws, noise_table, generator
                )
                first = 0
            if nodes[node].left == _NOT_SPLIT:
                nodes = _with_room_for_two(nodes, n_nodes)
                n_nodes = _split_node(nodes, n_nodes, node, ranked, public, guide, rule, room, path)
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

    return _cut_back(nodes, n_nodes, ranked, public, guide, rule, room, path, table.labels)


@compiled(nogil=True)
def _cut_back(
    nodes: NDArray[Any],
    n_nodes: int,
    ranked: RankedTable,
    public: PublicFacts,
    guide: Guide,
    rule: SplitRule,
    room: _Room,
    path: Path,
    labels: NDArray[Any],
) -> CountedTree:
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
            n_nodes = _split_node(nodes, n_nodes, node, ranked, public, guide, rule, room, path)
        if nodes[node].left >= 0:
            order.append(nodes[node].left)
            order.append(nodes[node].left + 1)
    feature = np.full(kept, NO_SPLIT, dtype=np.int32)
    threshold = np.zeros(kept)
    children_left = np.full(kept, -1, dtype=np.int32)
    counts = np.zeros((kept, public.n_classes), dtype=np.int64)
    rows = room.rows
    leaf_of_row = np.empty(rows.shape[0], dtype=np.int32)
    n_numbered = 1
    for position in range(kept):
        node = order[position]
        if nodes[node].is_heavy and nodes[node].left >= 0:
            feature[position] = nodes[node].feature
            threshold[position] = nodes[node].threshold
            children_left[position] = n_numbered
            n_numbered += 2
        else:
            for i in range(nodes[node].start, nodes[node].stop):
                row = np.uint64(rows[i])
                counts[position, labels[row]] += 1
                leaf_of_row[row] = position
    return CountedTree(feature, threshold, children_left, counts, leaf_of_row)
