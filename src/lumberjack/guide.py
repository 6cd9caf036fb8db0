"""The guide: one noisy label-by-value histogram per feature, released before any tree is grown.

A record is counted in one cell of each histogram, so d features make d touches of sensitivity 1.
All that is done after the noise is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lumberjack.schema import FeatureSchema

N_BINS = 256
"""Equal bins of a numeric feature; a power of two, for the Haar transform."""


@dataclass(frozen=True, slots=True)
class Guide:
    """Released class masses per feature value.

    Attributes
    ----------
    cumulative : ndarray of float64, shape (n_rows, n_classes)
        Per feature a block of rows: for a numeric one ``n_bins + 1`` cumulated class masses, for a
        categorical one the class masses of each category.
    first : ndarray of int64, shape (n_features,)
        Where each feature's block starts.
    n_bins : ndarray of int64, shape (n_features,)
        Bins of each numeric feature, 0 for a categorical one.
    """

    cumulative: NDArray[np.float64]
    first: NDArray[np.int64]
    n_bins: NDArray[np.int64]


def count_cells(
    values: NDArray[np.float64], labels: NDArray[np.int64], schema: FeatureSchema
) -> list[NDArray[np.float64]]:
    """Count records by feature value and class.

    Parameters
    ----------
    values : ndarray of float64, shape (n_rows, n_features)
        Encoded rows. An unseen category is counted in no cell.
    labels : ndarray of int64, shape (n_rows,)
        Class codes.
    schema : FeatureSchema
        Public facts.

    Returns
    -------
    list of ndarray, shape (n_cells, n_classes)
        One table per feature. NOT private.
    """
    n_classes = schema.n_classes
    tables = []
    for j, n_categories in enumerate(schema.n_categories):
        lower, upper = schema.lower[j], schema.upper[j]
        column = values[:, j]
        if n_categories:
            n_cells = int(n_categories)
            cell = column.astype(np.int64)
        else:
            n_cells = N_BINS
            width = upper - lower
            scaled = (column - lower) * (n_cells / width) if width > 0 else np.zeros(len(column))
            cell = np.clip(scaled.astype(np.int64), 0, n_cells - 1)
        seen = cell >= 0
        flat = np.bincount(cell[seen] * n_classes + labels[seen], minlength=n_cells * n_classes)
        tables.append(flat.reshape(n_cells, n_classes).astype(np.float64))
    return tables


def haar_denoise(noisy: NDArray[np.float64], sigma: float, threshold: float) -> NDArray[np.float64]:
    """Remove noise from a histogram by thresholding its Haar wavelet coefficients.

    The transform is orthonormal, so every coefficient has the noise of a cell; details that do not
    stand out are set to zero, which pools neighbouring cells where they do not differ.

    Parameters
    ----------
    noisy : ndarray of float64, shape (n_cells, n_classes)
        Noisy counts; `n_cells` is a power of two.
    sigma : float
        Standard deviation of the noise.
    threshold : float
        Details below this many standard deviations are dropped.

    Returns
    -------
    ndarray of float64, shape (n_cells, n_classes)
        Non-negative.
    """
    details = []
    smooth = noisy
    while len(smooth) > 1:
        even, odd = smooth[0::2], smooth[1::2]
        detail = (even - odd) / np.sqrt(2.0)
        details.append(np.where(np.abs(detail) > threshold * sigma, detail, 0.0))
        smooth = (even + odd) / np.sqrt(2.0)
    for detail in reversed(details):
        restored = np.empty((2 * len(smooth), noisy.shape[1]))
        restored[0::2] = (smooth + detail) / np.sqrt(2.0)
        restored[1::2] = (smooth - detail) / np.sqrt(2.0)
        smooth = restored
    return np.maximum(smooth, 0.0)


def release_guide(
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    schema: FeatureSchema,
    sigma: float,
    generator: np.random.Generator,
    *,
    threshold: float = 2.0,
) -> Guide:
    """Release the histograms of all features by the Gaussian mechanism (Lemma 14).

    Parameters
    ----------
    values : ndarray of float64, shape (n_rows, n_features)
        Encoded rows.
    labels : ndarray of int64, shape (n_rows,)
        Class codes.
    schema : FeatureSchema
        Public facts.
    sigma : float
        Standard deviation of the noise of each cell, in records.
    generator : numpy.random.Generator
        Source of noise.
    threshold : float
        See :func:`haar_denoise`.

    Returns
    -------
    Guide
    """
    blocks, first, n_bins = [], [], []
    start = 0
    for j, table in enumerate(count_cells(values, labels, schema)):
        noisy = table + generator.normal(scale=sigma, size=table.shape)
        if schema.n_categories[j]:
            block = np.maximum(noisy, 0.0)
            n_bins.append(0)
        else:
            masses = haar_denoise(noisy, sigma, threshold)
            block = np.vstack([np.zeros(schema.n_classes), masses.cumsum(axis=0)])
            n_bins.append(len(table))
        blocks.append(block)
        first.append(start)
        start += len(block)
    return Guide(
        cumulative=np.vstack(blocks),
        first=np.array(first, dtype=np.int64),
        n_bins=np.array(n_bins, dtype=np.int64),
    )
