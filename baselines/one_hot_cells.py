"""Rows as sparse vectors of public cells: what the rivals that are linear in such cells share.

A category is a cell; a numeric feature has equal bins between its public bounds. Nothing here looks at more
than one row at a time.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from lumberjack.schema import FeatureSchema


def one_hot_cells(
    table: NDArray[np.float64], schema: FeatureSchema, n_bins: int
) -> scipy.sparse.csr_array:
    """Return which cell of each feature a row lies in.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_features)
        Coded table, clipped to the public bounds.
    schema : FeatureSchema
        Coded schema.
    n_bins : int
        Cells of a numeric feature.

    Returns
    -------
    csr_array of shape (n_rows, n_cells)
        Per row and feature a one, or nothing where the schema does not list the category.
    """
    is_category = schema.n_categories > 0
    bins = np.minimum(scaled(table, schema) * n_bins, n_bins - 1)
    cells = np.where(is_category, table, bins).astype(np.int64)
    sizes = np.where(is_category, schema.n_categories, n_bins)
    columns = np.cumsum(sizes) - sizes + np.maximum(cells, 0)
    ends = np.arange(0, cells.size + 1, schema.n_features)
    is_seen = (cells >= 0).astype(np.float64)
    return scipy.sparse.csr_array(
        (is_seen.ravel(), columns.ravel(), ends), shape=(len(table), int(sizes.sum()))
    )


def unit_rows(
    table: NDArray[np.float64], schema: FeatureSchema, n_bins: int
) -> scipy.sparse.csr_array:
    """Return rows of L2 norm at most 1: the cells, numeric values scaled to [-1, 1] and an intercept.

    Parameters
    ----------
    table, schema, n_bins
        As for :func:`one_hot_cells`.

    Returns
    -------
    csr_array of shape (n_rows, n_cells + n_numeric + 1)
    """
    numbers = 2 * scaled(table, schema)[:, schema.n_categories == 0] - 1
    parts = [
        one_hot_cells(table, schema, n_bins),
        scipy.sparse.csr_array(numbers),
        scipy.sparse.csr_array(np.ones((len(table), 1))),
    ]
    # Each of so many entries is at most one.
    n_entries = schema.n_features + numbers.shape[1] + 1
    return scipy.sparse.hstack(parts, format="csr") / np.sqrt(n_entries)


def scaled(table: NDArray[np.float64], schema: FeatureSchema) -> NDArray[np.float64]:
    """Return numeric features as shares of their range, 0 where it is a point.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_features)
        Coded table, clipped to the public bounds; columns of categories come out meaningless.
    schema : FeatureSchema
        Coded schema.
    """
    width = schema.upper - schema.lower
    shares: NDArray[np.float64] = (table - schema.lower) / np.where(width > 0, width, 1.0)
    return shares
