"""Where the descent starts: a logistic model of one weight per feature on the evidence of histograms.

A row is described by the matrix Phi (classes x features) of its features' evidence, scaled down to a
Frobenius norm of at most B, and has the scores ``log class shares + Phi w``. The weights take one
Newton step from ``1/sqrt(n_features)`` each, on two noisy sums over the training rows.

Sensitivity. With q the model's class probabilities and e_y the label's unit vector, one record adds
``Phi^T (e_y - q)`` to the gradient and ``Phi^T (diag q - q q^T) Phi`` to the Hessian. Divided by
``sqrt(2) B`` and by ``2 phi^(-5/2) B^2``, phi the golden ratio, both are one vector of norm at most
1: with S = Phi Phi^T the squared norm is convex in S, so S = B^2 u u^T with |u| = 1 is the worst case; of all q
with the same mean of u, the variance is largest, and so is ``(u_y - mean)^2``, where q lies on the least
and the largest entry of u, at most sqrt(2) apart; and for two such classes, with r the probability of
the wrong one, it is ``r^2 + phi^5 r^2 (1 - r)^2``, which is at most 1, with equality at r = 1 and at
r = 1/phi.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lumberjack.additive_cells import CellCodes
from lumberjack.compiled import compiled
from lumberjack.noise import to_fixed_point

BOUND = 2.5
"""Largest Frobenius norm of a row's matrix of evidence, in nats."""

_GOLDEN_RATIO = (1 + math.sqrt(5)) / 2

# The scaled term of a record is summed with rounding errors of its own.
GRADIENT_SCALE = math.sqrt(2.0) * BOUND * (1 + 1e-9)
HESSIAN_SCALE = 2 * _GOLDEN_RATIO**-2.5 * BOUND**2 * (1 + 1e-9)
_OFF_DIAGONAL = math.sqrt(2.0) / HESSIAN_SCALE


@compiled(nogil=True)
def _describe(
    phi: NDArray[np.float64],
    cells: CellCodes,
    first: NDArray[np.int64],
    evidence: NDArray[np.float64],
) -> None:
    """Fill Phi, shape (n_classes, n_features), of a row that lies in these cells."""
    n_classes, n_features = phi.shape
    square = 0.0
    for f in range(n_features):
        cell = first[f] + cells[f]
        for k in range(n_classes):
            phi[k, f] = evidence[cell, k]
            square += phi[k, f] * phi[k, f]
    if square > BOUND * BOUND:
        phi *= BOUND / math.sqrt(square)


@compiled(nogil=True)
def _score(
    score: NDArray[np.float64],
    phi: NDArray[np.float64],
    weights: NDArray[np.float64],
    log_shares: NDArray[np.float64],
) -> None:
    for k in range(phi.shape[0]):
        score[k] = log_shares[k]
        for f in range(phi.shape[1]):
            score[k] += phi[k, f] * weights[f]


@compiled(nogil=True)
def get_start_scores(
    cells: CellCodes,
    first: NDArray[np.int64],
    evidence: NDArray[np.float64],
    weights: NDArray[np.float64],
    log_shares: NDArray[np.float64],
) -> NDArray[np.float32]:
    """Return the scores that the descent starts from.

    Parameters
    ----------
    cells : ndarray of uint8, uint16 or uint32, shape (n_rows, n_groups)
        Groups of features come first.
    first : ndarray of int64, shape (n_groups,)
    evidence : ndarray of float64, shape (n_cells, n_classes)
    weights : ndarray of float64, shape (n_features,)
    log_shares : ndarray of float64, shape (n_classes,)
        Of the classes, centred.

    Returns
    -------
    ndarray of float32, shape (n_rows, n_classes)
        With two classes of shape (n_rows, 1): the second less the first.
    """
    n_rows, n_classes = cells.shape[0], evidence.shape[1]
    phi = np.empty((n_classes, len(weights)))
    score = np.empty(n_classes)
    scores = np.empty((n_rows, n_classes if n_classes > 2 else 1), dtype=np.float32)
    for i in range(n_rows):
        _describe(phi, cells[i], first, evidence)
        _score(score, phi, weights, log_shares)
        if n_classes == 2:
            scores[i, 0] = score[1] - score[0]
        else:
            for k in range(n_classes):
                scores[i, k] = score[k]
    return scores


@compiled(nogil=True)
def sum_derivatives(
    cells: CellCodes,
    labels: NDArray[np.int64],
    first: NDArray[np.int64],
    evidence: NDArray[np.float64],
    weights: NDArray[np.float64],
    log_shares: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Return gradient and Hessian at `weights` as one vector of fixed-point sums: NOT private.

    Parameters
    ----------
    cells, first, evidence, weights, log_shares
        As for :func:`get_start_scores`.
    labels : ndarray of int64, shape (n_rows,)

    Returns
    -------
    ndarray of int64, shape (n_features + n_features * (n_features + 1) / 2,)
        The gradient, then the rows of the upper triangle, what is off the diagonal times sqrt(2),
        so that the norm is the Frobenius norm; each divided by its scale.
    """
    n_features, n_classes = len(weights), evidence.shape[1]
    phi = np.empty((n_classes, n_features))
    q = np.empty(n_classes)
    entries = np.empty(n_features)
    sums = np.zeros(n_features + n_features * (n_features + 1) // 2, dtype=np.int64)
    for i in range(cells.shape[0]):
        _describe(phi, cells[i], first, evidence)
        _score(q, phi, weights, log_shares)
        largest = q.max()
        whole = 0.0
        for k in range(n_classes):
            q[k] = math.exp(q[k] - largest)
            whole += q[k]
        for f in range(n_features):
            mean = 0.0
            for k in range(n_classes):
                mean += q[k] / whole * phi[k, f]
            sums[f] += to_fixed_point((phi[labels[i], f] - mean) / GRADIENT_SCALE)
            # From here on phi is centred, and each row weighed by the root of its class's probability.
            for k in range(n_classes):
                phi[k, f] = math.sqrt(q[k] / whole) * (phi[k, f] - mean)
        place = n_features
        for f in range(n_features):
            entries[f:] = 0.0
            for k in range(n_classes):
                own = phi[k, f]
                for g in range(f, n_features):
                    entries[g] += own * phi[k, g]
            sums[place] += to_fixed_point(entries[f] / HESSIAN_SCALE)
            for g in range(f + 1, n_features):
                sums[place + g - f] += to_fixed_point(entries[g] * _OFF_DIAGONAL)
            place += n_features - f
    return sums


def take_step(
    weights: NDArray[np.float64], released: NDArray[np.float64], sigma: float
) -> NDArray[np.float64]:
    """Return weights after one Newton step.

    Parameters
    ----------
    weights : ndarray of float64, shape (n_features,)
        Where the derivatives were taken.
    released : ndarray of float64
        As :func:`sum_derivatives` gives it, with noise, as numbers.
    sigma : float
        Standard deviation of that noise.
    """
    n_features = len(weights)
    above = np.triu_indices(n_features)
    hessian = np.zeros((n_features, n_features))
    hessian[above] = released[n_features:] * HESSIAN_SCALE
    hessian[np.triu_indices(n_features, 1)] /= math.sqrt(2.0)
    hessian += np.triu(hessian, 1).T
    # Noise gives flat directions any curvature; the ridge, on its scale, keeps them near the start.
    ridge = math.sqrt(n_features) * HESSIAN_SCALE * sigma
    curvature, directions = np.linalg.eigh(hessian)
    slope = directions.T @ (released[:n_features] * GRADIENT_SCALE)
    stepped: NDArray[np.float64] = weights + directions @ (
        slope / (np.maximum(curvature, 0.0) + ridge)
    )
    return stepped
