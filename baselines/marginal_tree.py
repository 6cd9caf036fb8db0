"""The tree-shaped distribution that fits noisy marginals best, and rows drawn from it.

Inference of McKenna, Sheldon and Miklau 2019 ("Graphical-model based estimation and inference for
differential privacy", Algorithm 1) where the marginals form a tree: mirror descent on log-potentials,
with belief propagation in place of a general graphical model. It is exact and needs no compiler, which
would take longer than the work. Nothing here sees a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

TOLERANCE = 1e-5
"""The search ends with a step that lowers the sum of squares by less than this share of it."""


@dataclass(frozen=True)
class NoisyCounts:
    """Measured counts of cells, and the variance of each measurement (of one shape, or a scalar)."""

    counts: FloatArray
    variance: FloatArray | float


@dataclass(frozen=True)
class MarginalTree:
    """Expected counts of a distribution over attributes that form a tree.

    Attributes
    ----------
    edges : sequence of (int, int)
        Parent and child; a parent comes before its children, and the first one is the root.
    single : sequence of ndarray of shape (size,)
        Expected counts of the values of each attribute.
    paired : sequence of ndarray of shape (parent's size, child's size)
        Expected counts along each edge.
    """

    edges: Sequence[tuple[int, int]]
    single: Sequence[FloatArray]
    paired: Sequence[FloatArray]

    def draw(self, n_rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw rows, shape (n_rows, n_attributes), whose counts are as expected but for rounding."""
        rows = np.zeros((n_rows, len(self.single)), dtype=np.int64)
        root = self.edges[0][0]
        rows[:, root] = _spread(self.single[root], n_rows, rng)
        for (parent, child), counts in zip(self.edges, self.paired, strict=True):
            for value in np.unique(rows[:, parent]):
                members = np.flatnonzero(rows[:, parent] == value)
                rows[members, child] = _spread(counts[value], len(members), rng)
        return rows


def fit_tree(
    edges: Sequence[tuple[int, int]],
    single: Sequence[NoisyCounts],
    paired: Sequence[NoisyCounts],
    total: float,
    n_iterations: int = 1500,
) -> MarginalTree:
    """Find the tree whose expected counts are nearest to the measured ones.

    Nearest in squares, each divided by its variance; among such trees the one of largest entropy.

    Parameters
    ----------
    edges : sequence of (int, int)
        As for :class:`MarginalTree`.
    single, paired : sequence of NoisyCounts
        One for each attribute and one for each edge.
    total : float
        Number of records, positive.
    n_iterations : int
        Most steps, of a millisecond for a table as wide as Adult.
    """
    measured = [*single, *paired]
    n_attributes = len(single)
    weights = [1 / np.asarray(one.variance) for one in measured]

    def expected(potentials: list[FloatArray]) -> list[FloatArray]:
        return _expected_counts(edges, potentials[:n_attributes], potentials[n_attributes:], total)

    def loss_and_gradient(counts: list[FloatArray]) -> tuple[float, list[FloatArray]]:
        errors = [ours - theirs.counts for ours, theirs in zip(counts, measured, strict=True)]
        gradient = [weight * error for weight, error in zip(weights, errors, strict=True)]
        return _dot(errors, gradient) / 2, gradient

    # Not from uniform: the measured shares along the edges are nearly the answer.
    shares = [np.maximum(one.counts, 1.0) for one in paired]
    conditional = [np.log(one / one.sum(axis=1, keepdims=True)) for one in shares]
    potentials = [*(np.zeros(len(one.counts)) for one in single), *conditional]
    root = edges[0][0]
    potentials[root] = np.log(np.maximum(single[root].counts, 1.0))
    counts = expected(potentials)
    loss, gradient = loss_and_gradient(counts)
    step = 1 / (total * max(float(np.max(weight)) for weight in weights))
    for _ in range(n_iterations):
        tried = [p - step * slope for p, slope in zip(potentials, gradient, strict=True)]
        tried_counts = expected(tried)
        tried_loss, tried_gradient = loss_and_gradient(tried_counts)
        change = [before - after for before, after in zip(counts, tried_counts, strict=True)]
        if loss - tried_loss >= step * _dot(gradient, change) / 2:
            is_near = loss - tried_loss <= TOLERANCE * loss
            potentials, counts, loss, gradient = tried, tried_counts, tried_loss, tried_gradient
            if is_near:
                break
            step *= 1.1
        else:
            step /= 2
    return MarginalTree(edges, counts[:n_attributes], counts[n_attributes:])


def _expected_counts(
    edges: Sequence[tuple[int, int]],
    single: Sequence[FloatArray],
    paired: Sequence[FloatArray],
    total: float,
) -> list[FloatArray]:
    """Turn log-potentials into expected counts: messages to the root, then back to the leaves."""
    up = list(single)
    messages: list[FloatArray] = []
    for (parent, child), potential in zip(reversed(edges), reversed(paired), strict=True):
        message = np.logaddexp.reduce(potential + up[child], axis=1)
        up[parent] = up[parent] + message
        messages.append(message)
    logs = list(up)
    root = edges[0][0]
    logs[root] = up[root] - np.logaddexp.reduce(up[root]) + np.log(total)
    along_edges = []
    for (parent, child), potential, message in zip(edges, paired, reversed(messages), strict=True):
        joint = (logs[parent] - message)[:, None] + potential + up[child]
        logs[child] = np.logaddexp.reduce(joint, axis=0)
        along_edges.append(np.exp(joint))
    return [*(np.exp(one) for one in logs), *along_edges]


def _dot(left: Sequence[FloatArray], right: Sequence[FloatArray]) -> float:
    return sum(float((a * b).sum()) for a, b in zip(left, right, strict=True))


def _spread(weights: FloatArray, n_draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw values in proportion to weights, by one uniform for all draws, in random order."""
    shares = np.cumsum(weights) / weights.sum()
    points = (np.arange(n_draws) + rng.random()) / n_draws
    values = np.minimum(np.searchsorted(shares, points, side="right"), len(weights) - 1)
    return rng.permutation(values)
