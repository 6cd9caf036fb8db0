"""Noisy gradient descent of an additive model, all rows in every step: on log likelihood or squared error.

A row is a list of cells, one per group (:mod:`lumberjack.additive_cells`), and its score the sum of
what the cells say, times a factor that bounds its norm. One step releases one noisy gradient.

Sensitivity under adding or removing a record, given the scores before the step: with x the row's
vector, |x| <= 1, q its class probabilities and e_y the unit vector of its label, the record adds the
matrix x (e_y - q) of norm at most ``|e_y - q| <= sqrt(2)``, and with two classes the vector
``x (y - q)`` of norm at most 1. A numeric target less the score is clipped to [-1, 1], so that ``x``
times it has norm at most 1 too. Everything the step depends on was released before, so that the steps
compose adaptively by adding the squares of their mu (Dong, Roth and Su 2022).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from scipy.special import softmax

from lumberjack.additive_cells import CellCodes
from lumberjack.additive_terms import Terms, get_intercept_length
from lumberjack.compiled import compiled
from lumberjack.noise import add_noise_to_sums, to_fixed_point

_LARGEST_SCORE = 30.0
"""Of a class, in nats."""

_MOMENTUM = 0.9
"""Share of the last step that the next one repeats; post-processing, and steadier than longer steps."""

LONGEST_WAY = 12_000.0
"""Of all steps together, in mean gradients: on most tables the descent has converged by then."""

_NOISE_IN_SCORES = 0.85
"""Standard deviation that the noise of all steps together may give a score, in nats."""


class DescentRows(NamedTuple):
    """Training rows of the descent (NOT private).

    Attributes
    ----------
    cells : ndarray of uint8, uint16 or uint32, shape (n_rows, n_groups)
        The cell of each group that the row lies in.
    factor : ndarray of float32, shape (n_rows,)
        What the row's vector is scaled by.
    start : ndarray of float32, shape (n_rows, n_scores)
        Scores before the descent.
    labels : ndarray of int64 or float64, shape (n_rows,)
        Class codes; or numbers, of which the descent fits the mean.
    """

    cells: CellCodes
    factor: NDArray[np.float32]
    start: NDArray[np.float32]
    labels: NDArray[np.int64] | NDArray[np.float64]


_TOO_MANY_ROWS = 2**26


def check_row_count(n_rows: int) -> None:
    """Refuse more rows than 64 bits hold fixed-point sums of, with room for noise."""
    if n_rows >= _TOO_MANY_ROWS:
        raise ValueError(
            f"sums of {n_rows} rows do not fit into 64 bits; fit fewer than 2^26 rows."
        )


def sensitivity(n_classes: int) -> float:
    """Return the largest norm of what a record adds to a gradient."""
    return 1.0 if n_classes == 2 else math.sqrt(2.0)


@compiled(nogil=True)
def _sum_two_classes(
    rows: DescentRows,
    first_row: int,
    end_row: int,
    first_cell: NDArray[np.uint64],
    says: NDArray[np.float64],
    intercept: float,
    sums: NDArray[np.int64],
) -> None:
    cells, factor, start, labels = rows
    n_groups = cells.shape[1]
    n_fours = n_groups // 4 * 4
    total = 0
    for i in range(first_row, end_row):
        # Four sums at once, as each addition waits for the one before.
        a = b = c = d = 0.0
        for g in range(0, n_fours, 4):
            a += says[first_cell[g] + cells[i, g]]
            b += says[first_cell[g + 1] + cells[i, g + 1]]
            c += says[first_cell[g + 2] + cells[i, g + 2]]
            d += says[first_cell[g + 3] + cells[i, g + 3]]
        for g in range(n_fours, n_groups):
            a += says[first_cell[g] + cells[i, g]]
        score = start[i, 0] + intercept + factor[i] * ((a + b) + (c + d))
        score = min(max(score, -_LARGEST_SCORE), _LARGEST_SCORE)
        residual = labels[i] - 1.0 / (1.0 + math.exp(-score))
        total += to_fixed_point(residual)
        part = to_fixed_point(factor[i] * residual)
        for g in range(n_groups):
            sums[first_cell[g] + cells[i, g]] += part
    sums[-1] += total


@compiled(nogil=True)
def _sum_numbers(
    rows: DescentRows,
    first_row: int,
    end_row: int,
    first_cell: NDArray[np.uint64],
    says: NDArray[np.float64],
    intercept: float,
    sums: NDArray[np.int64],
) -> None:
    cells, factor, start, labels = rows
    n_groups = cells.shape[1]
    total = 0
    for i in range(first_row, end_row):
        score = 0.0
        for g in range(n_groups):
            score += says[first_cell[g] + cells[i, g]]
        residual = labels[i] - (start[i, 0] + intercept + factor[i] * score)
        residual = min(max(residual, -1.0), 1.0)
        total += to_fixed_point(residual)
        part = to_fixed_point(factor[i] * residual)
        for g in range(n_groups):
            sums[first_cell[g] + cells[i, g]] += part
    sums[-1] += total


@compiled(nogil=True)
def _sum_classes(
    rows: DescentRows,
    first_row: int,
    end_row: int,
    first_cell: NDArray[np.uint64],
    says: NDArray[np.float64],
    intercept: NDArray[np.float64],
    sums: NDArray[np.int64],
) -> None:
    cells, factor, start, labels = rows
    n_groups = cells.shape[1]
    n_classes = says.shape[1]
    score = np.empty(n_classes)
    part = np.empty(n_classes, dtype=np.int64)
    for i in range(first_row, end_row):
        score[:] = 0.0
        for g in range(n_groups):
            cell = first_cell[g] + cells[i, g]
            for k in range(n_classes):
                score[k] += says[cell, k]
        largest = -np.inf
        for k in range(n_classes):
            score[k] = start[i, k] + intercept[k] + factor[i] * score[k]
            score[k] = min(max(score[k], -_LARGEST_SCORE), _LARGEST_SCORE)
            largest = max(largest, score[k])
        whole = 0.0
        for k in range(n_classes):
            score[k] = math.exp(score[k] - largest)
            whole += score[k]
        for k in range(n_classes):
            residual = (1.0 if labels[i] == k else 0.0) - score[k] / whole
            sums[-1, k] += to_fixed_point(residual)
            part[k] = to_fixed_point(factor[i] * residual)
        for g in range(n_groups):
            cell = first_cell[g] + cells[i, g]
            for k in range(n_classes):
                sums[cell, k] += part[k]


def sum_gradient(
    rows: DescentRows,
    first_cell: NDArray[np.int64],
    says: NDArray[np.float64],
    intercept: NDArray[np.float64],
    n_jobs: int | None = None,
) -> NDArray[np.int64]:
    """Sum the residuals of all rows by cell: NOT private.

    Parameters
    ----------
    rows : DescentRows
    first_cell : ndarray of int64, shape (n_groups,)
        Where a group's cells start.
    says : ndarray of float64, shape (n_cells, n_scores)
        What each cell adds to the score, before the row's factor.
    intercept : ndarray of float64, shape (n_scores,)
    n_jobs : int or None
        Threads; sums of whole numbers do not depend on how rows are shared out.

    Returns
    -------
    ndarray of int64, shape (n_cells + 1, n_scores)
        Fixed-point sums of the row's factor times its residual; the last row is that of the
        intercept, without the factor.
    """
    n_rows = len(rows.labels)
    n_blocks = max(min(effective_n_jobs(n_jobs), n_rows // 1000), 1)
    # Numbers without a sign spare the compiled loops the look for negative ones.
    unsigned = first_cell.astype(np.uint64)
    edges = [n_rows * b // n_blocks for b in range(n_blocks + 1)]

    def sum_block(first_row: int, end_row: int) -> NDArray[np.int64]:
        sums = np.zeros((len(says) + 1, says.shape[1]), dtype=np.int64)
        where = (rows, first_row, end_row, unsigned)
        if rows.labels.dtype.kind == "f":
            _sum_numbers(*where, says[:, 0], float(intercept[0]), sums[:, 0])
        elif says.shape[1] == 1:
            _sum_two_classes(*where, says[:, 0], float(intercept[0]), sums[:, 0])
        else:
            _sum_classes(*where, says, intercept, sums)
        return sums

    if n_blocks == 1:
        return sum_block(0, n_rows)
    parts = Parallel(n_jobs=n_blocks, require="sharedmem")(
        delayed(sum_block)(*block) for block in itertools.pairwise(edges)
    )
    total: NDArray[np.int64] = np.sum(parts, axis=0)
    return total


class Way(NamedTuple):
    """How the descent goes: all of it follows from released numbers.

    Attributes
    ----------
    n_steps : int
    sigma : float
        Standard deviation of the noise of each entry of each gradient.
    length : float
        Of all steps together, per unit of a sum of gradients.
    """

    n_steps: int
    sigma: float
    length: float

    @property
    def noise(self) -> float:
        """Standard deviation of a score whose row is 1 long, from the noise of the mean iterate."""
        # Each step counts whole in the first half, and less from step to step in the second.
        return self.length * self.sigma / math.sqrt(self.n_steps) * math.sqrt(2 / 3)


def get_n_steps(n_rows: float) -> int:
    """Return the number of steps; many small ones are a little better than few, and cost time with the rows."""
    return round(min(max(1.25e6 / n_rows, 50), 100))


def get_way(mu: float, n_rows: float, n_classes: int) -> Way:
    """Return how to go: only so far that the noise on the way stays small against scores.

    Where descent has not converged, noise adds up over the steps like the gradients do, to the
    length of the way times the noise of the sum of all gradients, however many they are.

    Parameters
    ----------
    mu : float
        Budget of all steps.
    n_rows : float
        Released number of rows, positive.
    n_classes : int
    """
    n_steps = get_n_steps(n_rows)
    noise_of_sum = sensitivity(n_classes) / mu
    length = min(LONGEST_WAY / n_rows, _NOISE_IN_SCORES / noise_of_sum)
    return Way(n_steps, noise_of_sum * math.sqrt(n_steps), length)


class Model(NamedTuple):
    """What the descent finds.

    Attributes
    ----------
    says : ndarray of float64, shape (n_cells, n_scores)
        What a cell adds to the score, before the row's factor.
    intercept : ndarray of float64, shape (n_scores,)
    """

    says: NDArray[np.float64]
    intercept: NDArray[np.float64]


def to_gradient(sums: NDArray[np.int64], terms: Terms) -> NDArray[np.int64]:
    """Return the gradient by slot, and of the intercept at last, from sums by cell; in fixed point.

    Rounding changes it by less than the factors of rows stay below their bound: five times by 2^-53 of
    sums of fewer than 2^26 rows, times scales whose squares sum to 64 at most, and by 2^-37 an entry.
    """
    by_slot = terms.to_slots(sums[:-1])
    entries = np.vstack([by_slot, get_intercept_length() * sums[-1:]])
    gradient: NDArray[np.int64] = np.rint(entries).astype(np.int64)
    return gradient


def descend(
    rows: DescentRows,
    terms: Terms,
    way: Way,
    generator: np.random.Generator,
    *,
    n_jobs: int | None = None,
    watch: Callable[[NDArray[np.float64], Model], None] | None = None,
) -> Model:
    """Return the mean model of the second half of the steps.

    Parameters
    ----------
    rows : DescentRows
    terms : Terms
    way : Way
    generator : numpy.random.Generator
        Source of noise.
    n_jobs : int or None
        Threads.
    watch : callable or None
        Takes each noisy gradient and the model at which it was taken.
    """
    n_slots, n_scores = terms.slots.shape[0], rows.start.shape[1]
    weights = np.zeros((n_slots + 1, n_scores))
    velocity, total = np.zeros_like(weights), np.zeros_like(weights)
    step = way.length / way.n_steps * (1 - _MOMENTUM)
    first_kept = way.n_steps // 2
    for t in range(way.n_steps):
        model = _to_model(weights, terms)
        sums = sum_gradient(rows, terms.cells.first, *model, n_jobs)
        noisy = add_noise_to_sums(to_gradient(sums, terms), way.sigma, generator)
        if watch is not None:
            watch(noisy, model)
        if n_scores > 1:
            # No sum over classes is of use, and so the noise of it is not.
            noisy -= noisy.mean(axis=1, keepdims=True)
        velocity = _MOMENTUM * velocity + step * noisy
        weights = weights + velocity
        if t >= first_kept:
            total += weights
    return _to_model(total / (way.n_steps - first_kept), terms)


def _to_model(weights: NDArray[np.float64], terms: Terms) -> Model:
    says = np.ascontiguousarray(terms.to_cells(weights[:-1]))
    return Model(says, weights[-1] * get_intercept_length())


@compiled(nogil=True)
def add_scores(
    scores: NDArray[np.float64],
    cells: CellCodes,
    factor: NDArray[np.float32],
    first_cell: NDArray[np.int64],
    says: NDArray[np.float64],
    intercept: NDArray[np.float64],
) -> None:
    """Add what a model says to the scores of rows, shape (n_rows, n_scores)."""
    n_rows, n_scores = scores.shape
    own = np.empty(n_scores)
    for i in range(n_rows):
        own[:] = 0.0
        for g in range(cells.shape[1]):
            cell = first_cell[g] + cells[i, g]
            for k in range(n_scores):
                own[k] += says[cell, k]
        for k in range(n_scores):
            scores[i, k] += intercept[k] + factor[i] * own[k]


def predict_probabilities(
    cells: CellCodes,
    factor: NDArray[np.float32],
    start: NDArray[np.float32],
    first_cell: NDArray[np.int64],
    model: Model,
) -> NDArray[np.float64]:
    """Return class probabilities, shape (n_rows, n_classes); arguments as in :class:`DescentRows`."""
    scores = start.astype(np.float64)
    add_scores(scores, cells, factor, first_cell, *model)
    if scores.shape[1] == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    probabilities: NDArray[np.float64] = softmax(
        scores.clip(-_LARGEST_SCORE, _LARGEST_SCORE), axis=1
    )
    return probabilities
