"""The guide: one noisy label-by-value histogram per feature, released before any tree is grown.

A record is counted in one cell of each histogram, so d features make d queries of sensitivity 1.
All that is done after the noise is post-processing: numeric histograms are denoised, categories put in
the order of their released class shares, and each cell gets its evidence, how far its class shares
lie from those of the whole table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from lumberjack.noise import Noise, add_noise_to_counts
from lumberjack.schema import FeatureSchema, as_matrix

N_BINS = 256
"""Equal bins of a numeric feature; a power of two, for the Haar transform."""

_N_SHIFTS = 16
_LARGEST_EVIDENCE = 1.5
"""In nats; a cell may say of two classes that one is exp(3) = 20 times as likely as usual."""

_THRESHOLD = 2.0
"""Standard deviations below which a detail of a histogram is dropped."""

_SHRINKAGE = 2.0
"""Standard deviations of noise that a category's count is weighed against."""


class Guide(NamedTuple):
    """Released histograms, and the scale on which each feature is cut; the builder takes it as it is.

    The scale of a numeric feature is its own. Categories lie at 0, 1, 2, ... in the order of their
    released class shares, so that a threshold parts those that speak for a class from the others.

    Attributes
    ----------
    cumulative : ndarray of float64, shape (n_cells + n_features, n_classes)
        Per feature a block of ``n_bins + 1`` rows: the class masses below each edge of its cells.
    positions : ndarray of float64, shape (n_cells + n_features,)
        Per categorical feature a block of as many entries: where each category lies, and at last
        where unseen ones do, between two of the others. Zero for a numeric feature.
    first : ndarray of int64, shape (n_features,)
        Where each feature's block starts.
    n_bins : ndarray of int64, shape (n_features,)
        Cells of each feature: bins, or categories.
    lower, upper : ndarray of float64, shape (n_features,)
        The outer edges of its cells, which have equal width.
    is_category : ndarray of bool, shape (n_features,)
        Whether its cells are categories.
    evidence : ndarray of float64, shape (n_cells, n_classes)
        Log class shares of each cell less those of the whole table, centred over classes, so that
        a cell that says nothing has zeros.
    class_shares : ndarray of float64, shape (n_classes,)
        Class shares of the whole table.
    """

    cumulative: NDArray[np.float64]
    positions: NDArray[np.float64]
    first: NDArray[np.int64]
    n_bins: NDArray[np.int64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    is_category: NDArray[np.bool_]
    evidence: NDArray[np.float64]
    class_shares: NDArray[np.float64]

    def block(self, feature: int) -> slice:
        """Return where a feature's rows of `cumulative` and entries of `positions` are."""
        first = int(self.first[feature])
        return slice(first, first + int(self.n_bins[feature]) + 1)

    def to_guide_scale(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return encoded rows with category codes replaced by positions, column-major."""
        return as_matrix(self.scale_columns(list(values.T)))

    def scale_columns(self, columns: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return columns of encoded rows on this scale; those of numeric features as they are."""
        # Positions are whole numbers or halves, exact in float32; the code of unseen categories, -1,
        # takes the last entry.
        return [
            self.positions[self.block(j)].astype(np.float32)[column.astype(np.int64)]
            if is_category
            else column
            for j, (column, is_category) in enumerate(zip(columns, self.is_category, strict=True))
        ]

    def mutual_information(self) -> NDArray[np.float64]:
        """Return each feature's mutual information with the class under its histogram, in nats."""
        information = np.zeros(len(self.first))
        for j in range(len(self.first)):
            masses = np.diff(self.cumulative[self.block(j)], axis=0)
            if masses.sum() > 0:
                joint = masses / masses.sum()
                apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
                information[j] = rel_entr(joint, apart).sum()
        return np.maximum(information, 0.0)


NO_GUIDE = Guide(
    cumulative=np.empty((0, 0)),
    positions=np.empty(0),
    first=np.empty(0, dtype=np.int64),
    n_bins=np.empty(0, dtype=np.int64),
    lower=np.empty(0),
    upper=np.empty(0),
    is_category=np.empty(0, dtype=np.bool_),
    evidence=np.empty((0, 0)),
    class_shares=np.empty(0),
)
"""In place of released histograms: splits are uniform, as in the paper."""


def count_cells(
    columns: Iterable[NDArray[Any]], labels: NDArray[Any], schema: FeatureSchema
) -> list[NDArray[np.float64]]:
    """Count records by feature value and class.

    Parameters
    ----------
    columns, labels, schema
        As for :func:`release_cells`. An unseen category is counted in no cell.

    Returns
    -------
    list of ndarray, shape (n_cells, n_classes)
        One table per feature. NOT private.
    """
    n_classes = schema.n_classes
    tables = []
    facts = zip(columns, schema.n_categories, schema.lower, schema.upper, strict=True)
    for column, n_categories, lower, upper in facts:
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


def _haar_threshold(noisy: NDArray[np.float64], cutoff: float) -> NDArray[np.float64]:
    details = []
    smooth = noisy
    while len(smooth) > 1:
        even, odd = smooth[0::2], smooth[1::2]
        detail = (even - odd) / np.sqrt(2.0)
        details.append(np.where(np.abs(detail) > cutoff, detail, 0.0))
        smooth = (even + odd) / np.sqrt(2.0)
    for detail in reversed(details):
        restored = np.empty((2 * len(smooth), noisy.shape[1]))
        restored[0::2] = (smooth + detail) / np.sqrt(2.0)
        restored[1::2] = (smooth - detail) / np.sqrt(2.0)
        smooth = restored
    return smooth


def haar_denoise(noisy: NDArray[np.float64], sigma: float, threshold: float) -> NDArray[np.float64]:
    """Remove noise from a histogram by thresholding its Haar wavelet coefficients.

    The transform is orthonormal, so every coefficient has the noise of a cell; details that do not
    stand out are set to zero, which pools neighbouring cells where they do not differ. The result is
    averaged over shifts of the histogram, so that no place of a boundary is favoured (cycle
    spinning; Coifman and Donoho 1995).

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
    shifts = range(min(_N_SHIFTS, len(noisy)))
    shifted = np.hstack([np.roll(noisy, -shift, axis=0) for shift in shifts])
    parts = np.split(_haar_threshold(shifted, threshold * sigma), len(shifts), axis=1)
    restored = [np.roll(part, shift, axis=0) for shift, part in zip(shifts, parts, strict=True)]
    denoised: NDArray[np.float64] = np.maximum(np.mean(restored, axis=0), 0.0)
    return denoised


def order_categories(
    noisy: NDArray[np.float64], class_shares: NDArray[np.float64], sigma: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Put categories in the order of their class shares.

    Shares are shrunk towards those of the whole table where a category's count is not large against
    the noise. With more than two classes the order is that along the first principal component of the
    shares, which is close to the best for a split in two (Coppersmith, Hong and Hosking 1999).

    Parameters
    ----------
    noisy : ndarray of float64, shape (n_categories, n_classes)
        Noisy counts.
    class_shares : ndarray of float64, shape (n_classes,)
        Class shares of the whole table.
    sigma : float
        Standard deviation of the noise.

    Returns
    -------
    masses : ndarray of float64, shape (n_categories, n_classes)
        Class masses in that order, not negative.
    positions : ndarray of float64, shape (n_categories + 1,)
        Place of each category in it; the last entry is for unseen ones, between the categories with
        less and those with more of what the order goes by than the whole table.
    """
    totals = noisy.sum(axis=1, keepdims=True)
    masses = np.maximum(totals, 0.0)
    deviation = (noisy - class_shares * totals) / (masses + _SHRINKAGE * sigma)
    _, directions = np.linalg.eigh((deviation * masses).T @ deviation)
    direction = directions[:, -1] * np.sign(directions[-1, -1] or 1.0)
    score = deviation @ direction
    order = np.argsort(score, kind="stable")
    shares = np.maximum(class_shares + deviation, 0.0)
    masses = masses * shares / shares.sum(axis=1, keepdims=True)
    positions = np.empty(len(noisy) + 1)
    positions[order] = np.arange(len(noisy))
    positions[-1] = np.searchsorted(score[order], 0.0) - 0.5
    return masses[order], positions


def _weigh_evidence(
    masses: NDArray[np.float64], class_shares: NDArray[np.float64], sigma: float
) -> NDArray[np.float64]:
    totals = masses.sum(axis=1, keepdims=True)
    shares = (masses + sigma * class_shares) / (totals + sigma)
    evidence: NDArray[np.float64] = np.log(shares) - np.log(class_shares)
    evidence -= evidence.mean(axis=1, keepdims=True)
    return evidence.clip(-_LARGEST_EVIDENCE, _LARGEST_EVIDENCE)


def release_cells(
    columns: Iterable[NDArray[Any]],
    labels: NDArray[Any],
    schema: FeatureSchema,
    sigma: float,
    generator: np.random.Generator,
    *,
    noise: Noise = "continuous",
) -> list[NDArray[np.float64]]:
    """Release the histograms of all features by the (discrete) Gaussian mechanism (Lemma 14).

    Parameters
    ----------
    columns : iterable of ndarray, each of shape (n_rows,)
        Those of encoded rows.
    labels : ndarray of whole numbers, shape (n_rows,)
        Class codes.
    schema : FeatureSchema
        Public facts.
    sigma : float
        Standard deviation of the noise of each cell, in records.
    generator : numpy.random.Generator
        Source of noise.
    noise : {"continuous", "discrete"}, default="continuous"

    Returns
    -------
    list of ndarray, shape (n_cells, n_classes)
        Noisy counts, one table per feature.
    """
    return [
        add_noise_to_counts(table.astype(np.int64), sigma, generator, noise=noise)
        for table in count_cells(columns, labels, schema)
    ]


def make_guide(released: list[NDArray[np.float64]], schema: FeatureSchema, sigma: float) -> Guide:
    """Make a guide of released histograms.

    Parameters
    ----------
    released : list of ndarray, shape (n_cells, n_classes)
        As :func:`release_cells` gives them.
    schema, sigma
        As there.
    """
    # Each histogram counts the classes once more; the median forgives one with many unseen entries.
    totals = np.maximum(np.median([noisy.sum(axis=0) for noisy in released], axis=0), 1.0)
    class_shares = totals / totals.sum()
    is_category = schema.n_categories > 0
    lower, upper = schema.lower.astype(np.float64), schema.upper.astype(np.float64)
    cumulative, positions, evidence = [], [], []
    for j, noisy in enumerate(released):
        if is_category[j]:
            masses, position = order_categories(noisy, class_shares, sigma)
            lower[j], upper[j] = -0.5, len(noisy) - 0.5
        else:
            masses, position = haar_denoise(noisy, sigma, _THRESHOLD), np.zeros(len(noisy) + 1)
        cumulative.append(np.vstack([np.zeros(schema.n_classes), masses.cumsum(axis=0)]))
        positions.append(position)
        evidence.append(_weigh_evidence(masses, class_shares, sigma))
    sizes = np.array([len(block) for block in cumulative], dtype=np.int64)
    return Guide(
        cumulative=np.vstack(cumulative),
        positions=np.concatenate(positions),
        first=np.cumsum(sizes) - sizes,
        n_bins=sizes - 1,
        lower=lower,
        upper=upper,
        is_category=is_category,
        evidence=np.vstack(evidence),
        class_shares=class_shares,
    )
