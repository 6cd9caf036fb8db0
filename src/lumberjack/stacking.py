"""Stacking: a multinomial logistic model over the forest and the evidence of single features.

What a forest of few noisy leaves cannot say, that many features each speak a little for a class, the
guide's evidence says already. The model has one weight for the forest's log class shares, one for the
evidence of each feature and an intercept per class; it is fitted by one Newton step from a fixed start, on
two noisy sums over the training rows (Wolpert 1992 for stacking).

Sensitivity. A record is described by a matrix Phi (classes x weights) whose columns are centred over
classes and which is scaled down to a Frobenius norm of at most B. It depends on this record alone and
on what was released: the record's own count is taken out of the noisy counts of its leaves, so that the forest is
judged as on a new record. With q the model's class probabilities and e_y the label's unit vector, one
record adds

- Phi^T (e_y - q) to the gradient, of L2 norm at most sqrt(2) B, as ``|e_y - q| <= sqrt(2)``;
- Phi^T (diag q - q q^T) Phi to the Hessian, of Frobenius norm at most B^2 / 2, as no eigenvalue of
  ``diag q - q q^T`` exceeds ``max_k 2 q_k (1 - q_k) <= 1/2`` (Gershgorin).

Each is divided by sqrt(2) times its bound, so that both together are one vector of unit sensitivity under
adding or removing a record, released by the Gaussian mechanism (Lemma 14). A symmetric matrix counts as the
vector of its diagonal and sqrt(2) times what is above it, whose norm is the Frobenius norm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from lumberjack.compiled import compiled
from lumberjack.guide import Guide
from lumberjack.noise import Noise, add_noise_to_sums, from_fixed_point, to_fixed_point

_BOUND = 2.0
"""Largest Frobenius norm of a record's matrix; typical ones on census tables lie between 1 and 3."""

_MOST_ROWS = 2**24
"""Of which the sums fit into the integers that they are added up in."""

_GOLDEN_RATIO = (1.0 + math.sqrt(5.0)) / 2.0

_LEAST_SHARE = 0.02
"""No forest of a few noisy trees is surer than this that a class is out of the question."""

_START_FOREST, _START_EVIDENCE = 1.0, 0.2
"""Weights before the step: the forest as it is, and features that repeat most of what it says."""

_RIDGE = 2.0
"""In units of the Hessian's noise times the root of the number of weights."""


@compiled(nogil=True)
def _describe(
    phi: NDArray[np.float64],
    values: NDArray[np.float64],
    shares: NDArray[np.float64],
    contrasts: NDArray[np.float64],
    guide: Guide,
    bound: float,
) -> None:
    """Fill Phi of one row: intercepts, log class shares of the forest, evidence of each feature.

    All of it is scaled down to the bound, intercepts included, so that the most likely class stays.
    """
    n_classes = phi.shape[0]
    n_intercepts = n_classes - 1
    mean = 0.0
    for k in range(n_classes):
        for j in range(n_intercepts):
            phi[k, j] = contrasts[j, k]
        phi[k, n_intercepts] = math.log(max(shares[k], _LEAST_SHARE))
        mean += phi[k, n_intercepts] / n_classes
    for k in range(n_classes):
        phi[k, n_intercepts] -= mean
    for f in range(guide.n_bins.shape[0]):
        x = values[f]
        width = guide.upper[f] - guide.lower[f]
        cell = int((x - guide.lower[f]) / width * guide.n_bins[f]) if width > 0.0 else 0
        cell = min(max(cell, 0), guide.n_bins[f] - 1)
        # Between two categories lie those that the schema does not list.
        is_seen = not guide.is_category[f] or x == math.floor(x)
        # Evidence has a row less per feature than the blocks of cumulative masses.
        slot = guide.first[f] - f + cell
        for k in range(n_classes):
            phi[k, n_intercepts + 1 + f] = guide.evidence[slot, k] if is_seen else 0.0
    square = 0.0
    for k in range(n_classes):
        for a in range(phi.shape[1]):
            square += phi[k, a] * phi[k, a]
    if square > bound * bound:
        factor = bound / math.sqrt(square)
        for k in range(n_classes):
            for a in range(phi.shape[1]):
                phi[k, a] *= factor


@compiled(nogil=True)
def _predict_row(
    phi: NDArray[np.float64], weights: NDArray[np.float64], q: NDArray[np.float64]
) -> None:
    """Fill q with the softmax of the scores of one row."""
    n_classes = phi.shape[0]
    for k in range(n_classes):
        q[k] = 0.0
        for a in range(weights.shape[0]):
            q[k] += phi[k, a] * weights[a]
    largest = q.max()
    whole = 0.0
    for k in range(n_classes):
        q[k] = math.exp(q[k] - largest)
        whole += q[k]
    for k in range(n_classes):
        q[k] /= whole


@compiled(nogil=True)
def _predict(
    scaled: NDArray[np.float64],
    shares: NDArray[np.float64],
    contrasts: NDArray[np.float64],
    guide: Guide,
    weights: NDArray[np.float64],
    bound: float,
) -> NDArray[np.float64]:
    n_rows, n_classes = shares.shape
    phi = np.empty((n_classes, weights.shape[0]))
    probabilities = np.empty((n_rows, n_classes))
    for i in range(n_rows):
        _describe(phi, scaled[i], shares[i], contrasts, guide, bound)
        _predict_row(phi, weights, probabilities[i])
    return probabilities


@compiled(nogil=True)
def sum_derivatives(
    scaled: NDArray[np.float64],
    labels: NDArray[np.int64],
    shares: NDArray[np.float64],
    contrasts: NDArray[np.float64],
    guide: Guide,
    weights: NDArray[np.float64],
    bound: float,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return gradient and Hessian of the log likelihood and its negative. NOT private.

    Each record's terms are truncated to fixed-point numbers (:func:`lumberjack.noise.to_fixed_point`),
    so that the sums are exact and do not depend on the order of the rows.

    Parameters
    ----------
    scaled, labels, shares
        As in :class:`Block`.
    guide : Guide
        Released histograms.
    contrasts : ndarray of float64, shape (n_classes - 1, n_classes)
        Columns of the intercepts.
    weights : ndarray of float64, shape (n_weights,)
        Where to take the derivatives.
    bound : float
        Largest Frobenius norm of a record's matrix.

    Returns
    -------
    gradient : ndarray of int64, shape (n_weights,)
    hessian : ndarray of int64, shape (n_weights, n_weights)
    """
    n_rows, n_classes = shares.shape
    n_weights = weights.shape[0]
    phi = np.empty((n_classes, n_weights))
    q = np.empty(n_classes)
    mean = np.empty(n_weights)
    own = np.empty(n_weights)
    gradient = np.zeros(n_weights, dtype=np.int64)
    hessian = np.zeros((n_weights, n_weights), dtype=np.int64)
    for i in range(n_rows):
        _describe(phi, scaled[i], shares[i], contrasts, guide, bound)
        _predict_row(phi, weights, q)
        mean[:] = 0.0
        for k in range(n_classes):
            for a in range(n_weights):
                mean[a] += q[k] * phi[k, a]
        for a in range(n_weights):
            gradient[a] += to_fixed_point(phi[labels[i], a] - mean[a])
        for a in range(n_weights):
            own[a:] = 0.0
            for k in range(n_classes):
                left = q[k] * (phi[k, a] - mean[a])
                for b in range(a, n_weights):
                    own[b] += left * (phi[k, b] - mean[b])
            for b in range(a, n_weights):
                hessian[a, b] += to_fixed_point(own[b])
    for a in range(n_weights):
        for b in range(a):
            hessian[a, b] = hessian[b, a]
    return gradient, hessian


def _contrasts(n_classes: int) -> NDArray[np.float64]:
    """Return orthogonal rows that span the differences between classes."""
    return np.ascontiguousarray(helmert(n_classes) / math.sqrt(2.0))


def get_scales(bound: float) -> tuple[float, float]:
    """Return what gradient and Hessian are divided by to make one vector of unit sensitivity.

    Parameters
    ----------
    bound : float
        Largest Frobenius norm of a record's matrix.
    """
    # Raised by more than the rounding of a record's term.
    bound = bound * (1 + 1e-12)
    return math.sqrt(2.0) * bound, 2.0 * _GOLDEN_RATIO**-2.5 * bound**2


def to_unit_vector(
    gradient: NDArray[np.float64], hessian: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return gradient and Hessian as the one vector that a record changes by at most 1.

    Parameters
    ----------
    gradient : ndarray of float64, shape (n_weights,)
    hessian : ndarray of float64, shape (n_weights, n_weights)
        Symmetric.

    Returns
    -------
    ndarray of float64, shape (n_weights * (n_weights + 3) / 2,)
        The gradient, the Hessian's diagonal, and sqrt(2) times what is above it, row by row.
    """
    by_gradient, by_hessian = get_scales(_BOUND)
    above = math.sqrt(2.0) * hessian[np.triu_indices(len(hessian), 1)]
    return np.concatenate(
        (gradient / by_gradient, np.diag(hessian) / by_hessian, above / by_hessian)
    )


def add_noise(
    gradient: NDArray[np.int64],
    hessian: NDArray[np.int64],
    sigma: float,
    bound: float,
    generator: np.random.Generator,
    *,
    noise: Noise = "continuous",
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Release gradient and Hessian by the (discrete) Gaussian mechanism, as one vector.

    Its sensitivity is 1 in units of :func:`get_scales`, also after each record's terms are truncated.

    Parameters
    ----------
    gradient : ndarray of int64, shape (n_weights,)
    hessian : ndarray of int64, shape (n_weights, n_weights)
        Symmetric; both in fixed point.
    sigma : float
        Standard deviation of the noise per unit of sensitivity.
    bound : float
        Largest Frobenius norm of a record's matrix.
    generator : numpy.random.Generator
        Source of noise.
    noise : {"continuous", "discrete"}, default="continuous"

    Returns
    -------
    gradient : ndarray of float64, shape (n_weights,)
    hessian : ndarray of float64, shape (n_weights, n_weights)
        Symmetric; what is off the diagonal has noise smaller by sqrt(2).
    """
    scale_gradient, scale_hessian = (sigma * scale for scale in get_scales(bound))
    scales = np.full(hessian.shape, scale_hessian / math.sqrt(2.0))
    np.fill_diagonal(scales, scale_hessian)
    # What is below the diagonal is dropped.
    upper = np.triu(add_noise_to_sums(hessian, scales, generator, noise=noise))
    return (
        add_noise_to_sums(gradient, scale_gradient, generator, noise=noise),
        upper + np.triu(upper, 1).T,
    )


class Block(NamedTuple):
    """Some rows (NOT private), as stacking takes them.

    Attributes
    ----------
    scaled : ndarray of float64, shape (n_rows, n_features)
        On the scale of the guide.
    labels : ndarray of whole numbers, shape (n_rows,)
        Class codes.
    shares : ndarray of float64, shape (n_rows, n_classes)
        Class shares of the forest, the row's own count taken out.
    """

    scaled: NDArray[np.float64]
    labels: NDArray[Any]
    shares: NDArray[np.float64]


class StackSums(NamedTuple):
    """Gradient and Hessian of the model at its start, over some rows.

    Attributes
    ----------
    gradient : ndarray of float64, shape (n_weights,)
    hessian : ndarray of float64, shape (n_weights, n_weights)
        Symmetric.
    """

    gradient: NDArray[np.float64]
    hessian: NDArray[np.float64]


def _start(n_classes: int, n_features: int) -> NDArray[np.float64]:
    """Return the weights before the step."""
    evidence = np.full(n_features, _START_EVIDENCE)
    return np.concatenate((np.zeros(n_classes - 1), [_START_FOREST], evidence))


def sum_at_start(blocks: Iterable[Block], guide: Guide) -> StackSums:
    """Return what rows add up to. NOT private; arguments as for :func:`release_stack`."""
    gradient, hessian = _sum_at_start(blocks, guide)
    return StackSums(from_fixed_point(gradient), from_fixed_point(hessian))


def _sum_at_start(
    blocks: Iterable[Block], guide: Guide
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    n_classes = len(guide.class_shares)
    weights = _start(n_classes, len(guide.n_bins))
    gradient, hessian = np.zeros(len(weights), np.int64), np.zeros((len(weights),) * 2, np.int64)
    contrasts, n_rows = _contrasts(n_classes), 0
    for scaled, labels, shares in blocks:
        n_rows += len(labels)
        if n_rows > _MOST_ROWS:
            raise ValueError(
                f"stacking adds up at most 2^24 rows in exact arithmetic, got {n_rows} and more. "
                "Take a sample."
            )
        sums = sum_derivatives(scaled, labels, shares, contrasts, guide, weights, _BOUND)
        gradient += sums[0]
        hessian += sums[1]
    return gradient, hessian


def release_stack(
    blocks: Iterable[Block],
    guide: Guide,
    sigma: float,
    generator: np.random.Generator,
    *,
    noise: Noise = "continuous",
) -> StackSums:
    """Release the sums that the stacking model is fitted on, by the (discrete) Gaussian mechanism.

    Parameters
    ----------
    blocks : iterable of Block
        All rows, in parts.
    guide : Guide
        Released histograms.
    sigma : float
        Standard deviation of the noise per unit of sensitivity.
    generator : numpy.random.Generator
        Source of noise.
    noise : {"continuous", "discrete"}, default="continuous"

    Raises
    ------
    ValueError
        For more rows than the sums have room for, or more noise.
    """
    gradient, hessian = _sum_at_start(blocks, guide)
    return StackSums(*add_noise(gradient, hessian, sigma, _BOUND, generator, noise=noise))


def fit_weights(released: StackSums, n_classes: int, sigma: float) -> NDArray[np.float64]:
    """Return the weights of the stacking model: one Newton step on released sums.

    Parameters
    ----------
    released : StackSums
        As :func:`release_stack` gives them.
    n_classes : int
    sigma : float
        As there.

    Returns
    -------
    ndarray of float64, shape (n_classes + n_features,)
        Intercept contrasts, the weight of the forest, a weight per feature.
    """
    size = len(released.gradient)
    # Noise gives flat directions any curvature; the ridge, on its scale, keeps them near the start.
    ridge = _RIDGE * math.sqrt(size) * get_scales(_BOUND)[1] * sigma
    curvature, directions = np.linalg.eigh(released.hessian)
    step = (directions.T @ released.gradient) / (np.maximum(curvature, 0.0) + ridge)
    weights: NDArray[np.float64] = _start(n_classes, size - n_classes) + directions @ step
    # A step that turns the forest around has overshot: its shares were far too sure of themselves.
    weights[n_classes - 1] = max(weights[n_classes - 1], 0.0)
    return weights


def predict_stacked(
    scaled: NDArray[np.float64],
    shares: NDArray[np.float64],
    guide: Guide,
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the class probabilities of the stacking model.

    Parameters
    ----------
    scaled, shares
        As in :class:`Block`, of the rows to predict.
    guide : Guide
        Released histograms.
    weights : ndarray of float64, shape (n_classes + n_features,)
        As :func:`fit_weights` gives them.

    Returns
    -------
    ndarray of float64, shape (n_rows, n_classes)
    """
    return _predict(scaled, shares, _contrasts(shares.shape[1]), guide, weights, _BOUND)
