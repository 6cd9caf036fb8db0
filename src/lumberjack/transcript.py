"""What a fit released, in a form in which an audit can weigh it against one record.

A transcript is a list of releases in their order. Each knows how likely it is, given all that was
released before it, when one more record is among the rows; so the likelihood ratio of a whole fit is
the sum of their log ratios, whatever the method (:func:`get_log_ratios`). There are two kinds:

* :class:`GaussianRelease`, a vector with independent Gaussian noise. It holds the noisy vector in
  units of the noise's standard deviation, and the function of rows that was released, without its noise;
* :class:`DiscreteRelease`, answers with known probabilities: those of threshold queries, or a vote.

An estimator offers its transcript by a method ``_fit_transcript(X, y)``, which fits it and returns the
list. Names of releases are those of the groups in its ledger; several releases may share one. A fitted
model keeps none of this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, log_softmax

from lumberjack.guide import count_cells
from lumberjack.stacking import Block, StackSums, sum_at_start, to_unit_vector

if TYPE_CHECKING:
    from lumberjack.forest import PrivateForestClassifier, Released
    from lumberjack.tree import ReleasedTree

Values = NDArray[np.float64]
Labels = NDArray[np.int64]


class GaussianRelease(NamedTuple):
    """A vector released by the Gaussian mechanism.

    Attributes
    ----------
    name : str
        Of its group in the ledger.
    noisy : ndarray of float64, shape (n,)
        What was released, each coordinate divided by the standard deviation of its noise.
    add_up : callable
        Takes encoded rows, shape (n_rows, n_features), and class codes; returns what these rows add
        up to without noise, shape (n,), in the same unit and given all that was released before. A
        record's own contribution is that of a table of one row.
    """

    name: str
    noisy: NDArray[np.float64]
    add_up: Callable[[Values, Labels], NDArray[np.float64]]


class DiscreteRelease(NamedTuple):
    """Answers whose probabilities are known.

    Attributes
    ----------
    name : str
        Of its group in the ledger.
    get_log_ratio : callable
        Takes encoded rows and class codes, of which the last is the record; returns the logarithm of
        how much more probable the record makes these answers. Infinite where they are impossible
        without it.
    n_queries : int
        In how many queries the record was counted.
    """

    name: str
    get_log_ratio: Callable[[Values, Labels], float]
    n_queries: int


Transcript = Sequence[GaussianRelease | DiscreteRelease]


_FEW = 4
"""Rows of which each is asked for by itself."""


def split_distinct(values: Values, labels: Labels) -> list[tuple[int, Values, Labels]]:
    """Return rows in parts, each with how often it is there: distinct rows one by one if they are few."""
    rows = np.column_stack([values, labels])
    first, counts = np.unique(rows, axis=0, return_index=True, return_counts=True)[1:]
    if len(first) > _FEW:
        return [(1, values, labels)]
    return [
        (int(count), values[i : i + 1], labels[i : i + 1])
        for i, count in zip(first.tolist(), counts.tolist(), strict=True)
    ]


def get_noise(
    release: GaussianRelease, parts: list[tuple[int, Values, Labels]]
) -> NDArray[np.float64]:
    """Return the noise of a release of the rows that :func:`split_distinct` gives."""
    noise = release.noisy.copy()
    for count, values, labels in parts:
        noise -= count * release.add_up(values, labels)
    return noise


def get_log_ratios(transcript: Transcript, values: Values, labels: Labels) -> dict[str, float]:
    """Return the log likelihood ratio of what was released, for each group and in natural logarithms.

    Parameters
    ----------
    transcript : sequence of GaussianRelease or DiscreteRelease
    values, labels : ndarray, shapes (n_rows + 1, n_features) and (n_rows + 1,)
        Encoded rows, the record last.

    Returns
    -------
    dict of str to float
        By the group's name; their sum is the ratio of the whole fit. Positive where the record's
        presence makes what was released more likely.
    """
    ratios: dict[str, float] = {}
    # Cut once: what a release makes of the same rows it may keep.
    record, others = (values[-1:], labels[-1:]), split_distinct(values[:-1], labels[:-1])
    for release in transcript:
        if isinstance(release, DiscreteRelease):
            ratio = release.get_log_ratio(values, labels)
        else:
            own = release.add_up(*record)
            noise = get_noise(release, others)
            ratio = float(own @ noise - own @ own / 2)
        ratios[release.name] = ratios.get(release.name, 0.0) + ratio
    return ratios


def get_threshold_log_ratio(n_rows: int, n_yes: int, n_no: int, sigma: float, tau: float) -> float:
    """Return the log ratio of threshold answers whose counts go from ``n_rows`` to one more.

    Parameters
    ----------
    n_rows : int
        The count without the record; nothing is said about an empty node (Algorithm 2).
    n_yes, n_no : int
        How often the answer was yes and no.
    sigma, tau : float
        Noise and threshold.
    """
    z, z_more = (n_rows - tau) / sigma, (n_rows + 1 - tau) / sigma
    yes, no = float(log_ndtr(z)), float(log_ndtr(-z))
    if n_rows == 0:
        yes, no = -math.inf, 0.0
    ratio = n_yes * (float(log_ndtr(z_more)) - yes) if n_yes else 0.0
    return ratio + n_no * (float(log_ndtr(-z_more)) - no)


def count_answers(n_heavy: int, height: int) -> tuple[int, int]:
    """Return how often Algorithm 1 was told yes and no on a path, from the number of Heavy nodes on it.

    The path is searched by itself: all records share it. Then the search is a binary one.
    """
    first, span = 0, height
    n_yes = n_no = 0
    while span > 0:
        middle = span // 2
        if first + middle < n_heavy:
            n_yes += 1
            first, span = first + middle + 1, span - middle - 1
        else:
            n_no += 1
            span = middle
    return n_yes, n_no


def list_forest_transcript(forest: PrivateForestClassifier, released: Released) -> Transcript:
    """Return the transcript of a forest that was just fitted.

    Parameters
    ----------
    forest : PrivateForestClassifier
        Fitted.
    released : Released
        What it released.

    Notes
    -----
    The answers of the search are known by the shape of the trees only where all rows are equal and
    some feature is numeric; the log ratio of "structure" refuses other tables.
    """
    if forest.noise == "discrete":
        raise ValueError(
            "a transcript knows the law of continuous noise only, got noise='discrete'. Ask for noise='continuous'."
        )
    noise = released.noise
    transcript: list[GaussianRelease | DiscreteRelease] = []
    if released.cells is not None:
        sigma = noise.scales["guide"]

        def add_up_cells(values: Values, labels: Labels) -> NDArray[np.float64]:
            return _in_one(count_cells(values.T, labels, released.coded.schema)) / sigma

        transcript.append(GaussianRelease("guide", _in_one(released.cells) / sigma, add_up_cells))
    groups = {release.name: release.group for release in forest.ledger_.releases}
    for one in released.grown:
        weigh = partial(_weigh_structure, forest, one.tree, noise.sigma, 1.0 + noise.margin)
        transcript.append(DiscreteRelease("structure", weigh, _most_queries(int(forest.max_depth))))
        scale = noise.scales["leaves"]
        if groups["leaves"].is_vote:
            vote = partial(_weigh_vote, forest, one.tree, one.released, scale)
            transcript.append(DiscreteRelease("leaves", vote, 1))
        else:
            count = partial(_count_leaves, forest, one.tree, scale)
            is_leaf = one.tree.children_left < 0
            noisy = one.released[is_leaf].ravel() / scale
            transcript.append(GaussianRelease("leaves", noisy, count))
    if released.stack is not None:
        vector = to_unit_vector(*released.stack) / noise.scales["stack"]
        transcript.append(GaussianRelease("stack", vector, partial(_sum_stack, forest, released)))
    return transcript


@cache
def _most_queries(height: int) -> int:
    return max(sum(count_answers(n_heavy, height)) for n_heavy in range(height + 1))


def _in_one(tables: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.concatenate([table.ravel() for table in tables])


def _leaves_of(
    forest: PrivateForestClassifier, tree: ReleasedTree, values: Values
) -> NDArray[np.int64]:
    scaled, is_categorical = forest._to_tree_scale(values)
    return tree.apply(np.ascontiguousarray(scaled), is_categorical)


def _count_leaves(
    forest: PrivateForestClassifier,
    tree: ReleasedTree,
    scale: float,
    values: Values,
    labels: Labels,
) -> NDArray[np.float64]:
    counts = np.zeros(tree.value.shape)
    np.add.at(counts, (_leaves_of(forest, tree, values), labels), 1.0)
    flat: NDArray[np.float64] = counts[tree.children_left < 0].ravel() / scale
    return flat


def _weigh_vote(
    forest: PrivateForestClassifier,
    tree: ReleasedTree,
    released: NDArray[np.float64],
    scale: float,
    values: Values,
    labels: Labels,
) -> float:
    """Return the log ratio of the label that the record's leaf released (exponential mechanism)."""
    leaves = _leaves_of(forest, tree, values)
    is_there = leaves == leaves[-1]
    more = np.bincount(labels[is_there], minlength=released.shape[1]) / scale
    less = more.copy()
    less[labels[-1]] -= 1 / scale
    winner = released[leaves[-1]].argmax()
    return float(log_softmax(more)[winner] - log_softmax(less)[winner])


def _weigh_structure(
    forest: PrivateForestClassifier,
    tree: ReleasedTree,
    sigma: float,
    tau: float,
    values: Values,
    labels: Labels,
) -> float:
    """Return the log ratio of the answers of the search, which the record's path tells."""
    if (values != values[-1]).any() or (forest.schema_.n_categories > 0).all():
        raise ValueError(
            "the answers of a search are known where all rows are equal and a feature is numeric; "
            "ask for the transcript of such a table."
        )
    # Only nodes of the one path can be Heavy, and all that are Heavy are split.
    answers = count_answers(tree.n_nodes // 2, int(forest.max_depth))
    return get_threshold_log_ratio(len(values) - 1, *answers, sigma, tau)


def _sum_stack(
    forest: PrivateForestClassifier, released: Released, values: Values, labels: Labels
) -> NDArray[np.float64]:
    scaled, is_categorical = forest._to_tree_scale(values)
    guide = released.guide
    assert guide is not None
    by_row = np.ascontiguousarray(scaled)
    grown = [
        one._replace(leaf_of_row=one.tree.apply(by_row, is_categorical).astype(np.int32))
        for one in released.grown
    ]
    shares = forest._left_out_shares(labels, grown)
    block = Block(guide.to_guide_scale(values), labels, shares)
    sums: StackSums = sum_at_start([block], guide)
    return to_unit_vector(*sums) / released.noise.scales["stack"]
