"""Private heavy hitters in a hierarchy: Algorithms 1 to 3 and the top-down baseline.

This is the readable reference, for any explicit hierarchy: any branching, paths of any length.
The forest searches its trees with a compiled version that never builds them whole. What noise a
guarantee needs is computed in :mod:`lumberjack.accounting`, not here.

Symbols: ``h`` is the height, the number of nodes on the longest root-to-leaf path; ``tau`` the
threshold; ``margin`` the paper's Delta; ``sigma`` the standard deviation of the noise; ``m`` the
number of threshold queries in which one record can be counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lumberjack.accounting import (
    Guarantee,
    Ledger,
    Release,
    Structure,
    ThresholdNoise,
    calibrate_paper,
    calibrate_safe,
    get_error_bound,
    get_n_queries_per_record,
)
from lumberjack.accounting.checks import check_count, check_non_negative, check_positive
from lumberjack.entropy import make_system_generator

CheckThreshold = Callable[[NDArray[np.intp]], NDArray[np.bool_]]
"""Answers, for each node of an array, whether its count passes the threshold."""

_UNMARKED, _LIGHT, _HEAVY = 0, 1, 2


class Hierarchy:
    """A rooted tree given by the parent of each node.

    Parameters
    ----------
    parent : array_like of int, shape (n_nodes,)
        ``parent[i]`` is the node above node ``i``, and -1 for the root. Nodes may come in any
        order, have any number of children and end at any level.

    Attributes
    ----------
    parent : ndarray of int, shape (n_nodes,)
    level : ndarray of int, shape (n_nodes,)
        Distance from the root.
    root : int
    height : int
        Number of levels.

    Raises
    ------
    ValueError
        If the parents do not form one rooted tree.
    """

    def __init__(self, parent: ArrayLike) -> None:
        given = np.asarray(parent)
        if given.ndim != 1 or given.size == 0:
            raise ValueError(
                f"parent must be a non-empty one-dimensional array, got shape {given.shape}."
            )
        if not np.issubdtype(given.dtype, np.integer):
            raise ValueError(f"parent must hold integers, got {given.dtype}.")
        self.parent: NDArray[np.intp] = given.astype(np.intp)
        n_nodes = self.parent.size
        outside = np.flatnonzero((self.parent < -1) | (self.parent >= n_nodes))
        if outside.size:
            node = int(outside[0])
            raise ValueError(
                f"parent of node {node} must be -1 (the root) or a node from 0 to {n_nodes - 1},"
                f" got {self.parent[node]}."
            )
        roots = np.flatnonzero(self.parent == -1)
        if roots.size != 1:
            raise ValueError(
                f"a hierarchy has one root (parent -1), got {roots.size}."
                " Put a node above several roots."
            )
        self.root = int(roots[0])

        # Children of node i are _child[_first[i] : _first[i + 1]], in ascending order.
        below = np.flatnonzero(self.parent >= 0)
        self._child: NDArray[np.intp] = below[np.argsort(self.parent[below], kind="stable")]
        self._first: NDArray[np.intp] = np.zeros(n_nodes + 1, dtype=np.intp)
        np.cumsum(np.bincount(self.parent[below], minlength=n_nodes), out=self._first[1:])

        self.level: NDArray[np.intp] = np.full(n_nodes, -1, dtype=np.intp)
        nodes, depth = roots, 0
        while nodes.size:
            self.level[nodes] = depth
            nodes, depth = self.children(nodes), depth + 1
        unreached = np.flatnonzero(self.level < 0)
        if unreached.size:
            raise ValueError(
                f"node {unreached[0]} is not below the root: its parents form a cycle."
            )
        self.height = depth

    def __len__(self) -> int:
        return self.parent.size

    def children(self, nodes: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the children of all given nodes (without repetition), in the order of these."""
        starts, ends = self._first[nodes], self._first[nodes + 1]
        sizes = ends - starts
        shift = np.repeat(starts - np.concatenate(([0], np.cumsum(sizes)[:-1])), sizes)
        found: NDArray[np.intp] = self._child[shift + np.arange(shift.size)]
        return found

    def check_counts(self, counts: ArrayLike) -> NDArray[np.int64]:
        """Return the counts as integers if records can have caused them.

        Parameters
        ----------
        counts : array_like of shape (n_nodes,)
            Number of records at or below each node. A record may end at an inner node.

        Returns
        -------
        ndarray of int64, shape (n_nodes,)

        Raises
        ------
        ValueError
            If counts are negative or broken, or a node has fewer records than its children hold
            together.
        """
        given = np.asarray(counts)
        if given.shape != (len(self),):
            raise ValueError(
                f"counts must have shape ({len(self)},), one per node, got {given.shape}."
            )
        if not np.issubdtype(given.dtype, np.integer):
            values = np.asarray(given, dtype=np.float64)
            broken = np.flatnonzero(~(np.abs(values) < 2.0**53) | (values != np.floor(values)))
            if broken.size:
                raise ValueError(
                    f"counts must be whole numbers, got {values[broken[0]]:g} at node {broken[0]}."
                )
        whole = given.astype(np.int64)
        negative = np.flatnonzero(whole < 0)
        if negative.size:
            raise ValueError(
                f"counts must not be negative, got {whole[negative[0]]} at node {negative[0]}."
            )
        below = self.parent >= 0
        held = np.zeros(len(self), dtype=np.int64)
        np.add.at(held, self.parent[below], whole[below])
        short = np.flatnonzero(held > whole)
        if short.size:
            node = int(short[0])
            raise ValueError(
                f"node {node} counts {whole[node]} records but its children count {held[node]}"
                " together: each record must be counted once on every level of its path."
            )
        return whole


class GaussianSparseThreshold:
    """The threshold query of Algorithm 2: yes if a count passes the floor and, with noise, tau.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise, positive.
    tau : float
        Threshold. At ``1 + margin`` exactly the empty nodes are rejected without noise.
    margin : float
        Counts up to ``tau - margin - 1`` are rejected without noise; not negative. It is the
        quantity that privacy depends on: raise floor and threshold together or not at all.
    generator : numpy.random.Generator
        Source of the noise.
    """

    def __init__(
        self, sigma: float, tau: float, margin: float, generator: np.random.Generator
    ) -> None:
        self.sigma = check_positive("sigma", sigma)
        self.tau = check_positive("tau", tau)
        self.margin = check_non_negative("margin", margin)
        self._floor = _whole_if_close(self.tau - self.margin - 1)
        self._ceiling = _whole_if_close(self.tau + self.margin + 1)
        self._generator = generator

    def __call__(self, counts: ArrayLike) -> NDArray[np.bool_]:
        """Answer one query for the count of each node, each with fresh noise."""
        q = np.asarray(counts, dtype=np.float64)
        noisy = q + self._generator.normal(0.0, self.sigma, q.shape)
        return (q > self._floor) & (noisy > self.tau)


class GaussianSparseThresholdTwoSided(GaussianSparseThreshold):
    """The threshold query of Algorithm 3, which also accepts large counts without noise.

    Its error is at most ``1 + margin`` with certainty. Parameters as in
    :class:`GaussianSparseThreshold`.
    """

    def __call__(self, counts: ArrayLike) -> NDArray[np.bool_]:
        """Answer one query for each count, each with fresh noise."""
        q = np.asarray(counts, dtype=np.float64)
        return (q >= self._ceiling) | super().__call__(q)


def _whole_if_close(bound: float) -> float:
    """Return a bound on counts without the rounding error of ``(1 + margin) - margin - 1``.

    An error of -1e-14 there would let empty nodes past the floor.
    """
    whole = round(bound)
    return float(whole) if abs(bound - whole) <= 1e-9 else bound


def mark_heavy_hitters(
    hierarchy: Hierarchy, check_threshold: CheckThreshold, *, height: int | None = None
) -> NDArray[np.bool_]:
    """Mark the nodes of a hierarchy Heavy or Light (Algorithm 1).

    Every record is counted in at most ``1 + floor(log2(height))`` queried nodes (Lemma 3) and no
    node is queried twice, whatever the answers are. If the answers are right for all counts
    outside some interval, so are the marks (Lemma 4).

    Parameters
    ----------
    hierarchy : Hierarchy
        The tree to search; it must be public.
    check_threshold : callable
        Given an array of nodes, answers for each whether its count passes the threshold. This is
        the only way in which the search learns of the data.
    height : int or None, default=None
        Number of levels that the search plans for, at least ``hierarchy.height``, which is the
        default. State the public height of a hierarchy of which only some nodes are listed.

    Returns
    -------
    ndarray of bool, shape (n_nodes,)
        True for Heavy. With a node, all nodes above it are Heavy.
    """
    height = _check_height(hierarchy, height)
    mark = np.full(len(hierarchy), _UNMARKED, dtype=np.int8)
    _mark(hierarchy, mark, check_threshold, np.array([hierarchy.root]), height)
    is_heavy: NDArray[np.bool_] = mark == _HEAVY
    return is_heavy


def _mark(
    hierarchy: Hierarchy,
    mark: NDArray[np.int8],
    check_threshold: CheckThreshold,
    roots: NDArray[np.intp],
    height: int,
) -> None:
    """Mark levels 0 .. height-1 of the disjoint subtrees below the given roots.

    The subtrees of one recursive step have the same height and share no record, so they are
    searched side by side. Levels that a short path does not reach are simply missing: its last
    nodes lie above the middle and are left to phase 3.
    """
    middle = height // 2

    # Phase 1. Light nodes are not entered: what lies below them is Light already.
    nodes = roots[mark[roots] != _LIGHT]
    for _ in range(middle):
        nodes = hierarchy.children(nodes)
        nodes = nodes[mark[nodes] != _LIGHT]
    queried = nodes[mark[nodes] == _UNMARKED]
    if queried.size:
        is_yes = np.asarray(check_threshold(queried), dtype=bool)
        _mark_upwards(hierarchy, mark, queried[is_yes])
        _mark_downwards(hierarchy, mark, queried[~is_yes])

    # Phase 2: below the middle, only where it is not Light.
    if height >= 3:
        below = hierarchy.children(nodes[mark[nodes] != _LIGHT])
        if below.size:
            _mark(hierarchy, mark, check_threshold, below, height - middle - 1)

    # Phase 3: above the middle; what is Heavy already is not asked again.
    if height >= 2:
        _mark(hierarchy, mark, check_threshold, roots, middle)


def _mark_upwards(hierarchy: Hierarchy, mark: NDArray[np.int8], nodes: NDArray[np.intp]) -> None:
    """Mark nodes and all nodes above them Heavy; above a Heavy node they are so already."""
    while nodes.size:
        mark[nodes] = _HEAVY
        above = np.unique(hierarchy.parent[nodes])
        above = above[above >= 0]
        nodes = above[mark[above] != _HEAVY]


def _mark_downwards(hierarchy: Hierarchy, mark: NDArray[np.int8], nodes: NDArray[np.intp]) -> None:
    """Mark nodes and all nodes below them Light; below a Light node they are so already."""
    while nodes.size:
        mark[nodes] = _LIGHT
        below = hierarchy.children(nodes)
        nodes = below[mark[below] != _LIGHT]


def mark_top_down(hierarchy: Hierarchy, check_threshold: CheckThreshold) -> NDArray[np.bool_]:
    """Mark the nodes of a hierarchy by the baseline: from the root into Heavy children.

    A record is counted in up to ``hierarchy.height`` queried nodes, where Algorithm 1 needs
    ``1 + floor(log2(height))``.

    Parameters and result are as for :func:`mark_heavy_hitters`.
    """
    is_heavy = np.zeros(len(hierarchy), dtype=bool)
    nodes = np.array([hierarchy.root])
    while nodes.size:
        nodes = nodes[np.asarray(check_threshold(nodes), dtype=bool)]
        is_heavy[nodes] = True
        nodes = hierarchy.children(nodes)
    return is_heavy


@dataclass(frozen=True, slots=True, eq=False)
class HeavyHitters:
    """Which nodes are heavy, and what is promised about it.

    Parameters
    ----------
    is_heavy : ndarray of bool, shape (n_nodes,)
        The private answer.
    noise : ThresholdNoise
        Standard deviation and margin of the threshold queries.
    threshold : float
        What noisy counts were compared with.
    n_queries_per_record : int
        Number of threshold queries in which one record can be counted.
    guarantee : Guarantee
        What ``is_heavy`` satisfies.
    ledger : Ledger
        What was released, and how the guarantee follows.
    mechanism : {"sparse", "two_sided"}
        The threshold query that was used.
    """

    is_heavy: NDArray[np.bool_]
    noise: ThresholdNoise
    threshold: float
    n_queries_per_record: int
    guarantee: Guarantee
    ledger: Ledger
    mechanism: Literal["sparse", "two_sided"]

    @property
    def heavy_nodes(self) -> NDArray[np.intp]:
        """The heavy nodes in ascending order."""
        return np.flatnonzero(self.is_heavy)

    def get_error_bound(self, *, n_records: int, beta: float = 0.05) -> float:
        """Return how far from the threshold a misjudged count can lie (Lemma 5, Corollary 18).

        Parameters
        ----------
        n_records : int
            Number of records, at least 1. Use a public number for a public statement.
        beta : float, default=0.05
            Probability that the bound fails, in (0, 1).

        Returns
        -------
        float
            In records. The two-sided query never errs by more than ``1 + margin``.
        """
        bound = get_error_bound(
            self.noise.sigma,
            beta=beta,
            n_records=n_records,
            n_queries_per_record=self.n_queries_per_record,
        )
        return min(bound, 1 + self.noise.margin) if self.mechanism == "two_sided" else bound


def find_heavy_hitters(
    parent: ArrayLike,
    counts: ArrayLike,
    *,
    epsilon: float,
    delta: float,
    mechanism: Literal["sparse", "two_sided"] = "sparse",
    method: Literal["binary_search", "top_down"] = "binary_search",
    accounting: Literal["safe", "paper"] = "safe",
    threshold: float | None = None,
    height: int | None = None,
    generator: np.random.Generator | None = None,
) -> HeavyHitters:
    """Find the nodes of a hierarchy that hold many records, with differential privacy.

    Parameters
    ----------
    parent : array_like of int, shape (n_nodes,)
        The node above each node; -1 for the root. The hierarchy must be public: fixed without a
        look at the records.
    counts : array_like of int, shape (n_nodes,)
        Number of records at or below each node; a record adds 1 to each node of one path that
        starts at the root.
    epsilon : float
        Positive.
    delta : float
        In (0, 1).
    mechanism : {"sparse", "two_sided"}, default="sparse"
        Algorithm 2, or Algorithm 3 whose error is bounded with certainty.
    method : {"binary_search", "top_down"}, default="binary_search"
        Algorithm 1, or the baseline that queries every level.
    accounting : {"safe", "paper"}, default="safe"
        ``safe`` holds whatever order the queries come in; ``paper`` is Theorem 6. Both are
        Lemma 16 for the two-sided mechanism.
    threshold : float or None, default=None
        Above which count a node is heavy; at least ``1 + margin``, which is the default and the
        least at which empty nodes are never reported.
    height : int or None, default=None
        Public number of levels, at least that of the hierarchy, which is the default.
    generator : numpy.random.Generator or None, default=None
        Source of the noise. None takes the operating system's cryptographic one; anything whose seed
        others may know voids the guarantee.

    Raises
    ------
    ValueError
        If the hierarchy is not a rooted tree, the counts do not fit it, the threshold is too low
        for the noise, or another argument is out of range.

    Notes
    -----
    Neighbouring data sets differ by one added or removed record. Empty nodes, which are always
    Light, may be left out of ``parent`` and ``counts``; the hierarchy that is then public is the
    whole one, so state its ``height`` and pass on the heavy nodes only.

    Examples
    --------
    >>> import numpy as np
    >>> found = find_heavy_hitters(
    ...     [-1, 0, 0, 1, 1], [9000, 8900, 20, 8890, 10], epsilon=1.0, delta=1e-6,
    ...     generator=np.random.default_rng(0),
    ... )
    >>> found.heavy_nodes.tolist()
    [0, 1, 3]
    >>> str(found.guarantee)
    '(1, 1e-06)-DP, add or remove one record'
    """
    _check_choice("mechanism", mechanism, ("sparse", "two_sided"))
    _check_choice("method", method, ("binary_search", "top_down"))
    _check_choice("accounting", accounting, ("safe", "paper"))
    hierarchy = Hierarchy(parent)
    whole_counts = hierarchy.check_counts(counts)
    height = _check_height(hierarchy, height)
    m = get_n_queries_per_record(height) if method == "binary_search" else height

    if mechanism == "two_sided":
        noise, theorem = calibrate_safe(epsilon, delta, m), "Lemma 16"
    elif accounting == "paper":
        noise, theorem = calibrate_paper(epsilon, delta, m), "Theorem 6"
    else:
        noise, theorem = calibrate_safe(epsilon, delta, m), "Lemma 16, one-sided"
    tau = noise.threshold if threshold is None else check_positive("threshold", threshold)
    if tau < noise.threshold:
        raise ValueError(
            f"threshold must be at least 1 + margin = {noise.threshold:.6g} for this guarantee,"
            f" got {tau:g}. Raise it, or allow a larger epsilon or delta."
        )
    if generator is None:
        generator = make_system_generator()
    query_type = (
        GaussianSparseThresholdTwoSided if mechanism == "two_sided" else GaussianSparseThreshold
    )
    query = query_type(noise.sigma, tau, noise.margin, generator)

    def check_threshold(nodes: NDArray[np.intp]) -> NDArray[np.bool_]:
        return query(whole_counts[nodes])

    if method == "binary_search":
        is_heavy = mark_heavy_hitters(hierarchy, check_threshold, height=height)
    else:
        is_heavy = mark_top_down(hierarchy, check_threshold)

    guarantee = Guarantee(epsilon, delta)
    release = Release(
        Structure("heavy hitters", m, scale=noise.sigma, margin=noise.margin),
        mechanism=(
            "two-sided Gaussian sparse threshold"
            if mechanism == "two_sided"
            else "Gaussian sparse threshold"
        ),
        theorem=theorem,
        sensitivity="1 in each query that counts the record",
        guarantee=guarantee,
    )
    return HeavyHitters(
        is_heavy=is_heavy,
        noise=noise,
        threshold=tau,
        n_queries_per_record=m,
        guarantee=guarantee,
        ledger=Ledger(releases=(release,), accounting=accounting, total=guarantee),
        mechanism=mechanism,
    )


def _check_height(hierarchy: Hierarchy, height: int | None) -> int:
    if height is None:
        return hierarchy.height
    height = check_count("height", height)
    if height < hierarchy.height:
        raise ValueError(
            f"height must be at least that of the hierarchy, {hierarchy.height}, got {height}."
        )
    return height


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}.")
