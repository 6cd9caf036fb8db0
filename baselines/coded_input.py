"""Checks on the rows that a baseline is given: coded tables, and class codes or numeric targets.

The coded form of a table is described in :mod:`lumberjack.schema`. Nothing here looks at the data
for anything but a refusal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from lumberjack.schema import UNSEEN, FeatureSchema


def check_table(X: Any, schema: FeatureSchema) -> NDArray[np.float64]:
    """Return a row-major copy of a table that fits the coded schema, or say what is wrong with it.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        Numeric features as numbers, categorical features as codes.
    schema : FeatureSchema
        The coded schema.

    Returns
    -------
    ndarray of shape (n_rows, n_features), float64
        Numeric features clipped to the public bounds; a categorical code the schema does not list
        becomes :data:`~lumberjack.schema.UNSEEN`.
    """
    if scipy.sparse.issparse(X):
        raise ValueError("X is sparse, but a dense table is needed. Convert it with X.toarray().")
    try:
        table = np.array(X, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X must hold numbers only ({error}). Encode it with FeatureSchema.encode."
        ) from None
    if table.ndim != 2:
        raise ValueError(f"X must be a table (2 dimensions), got {table.ndim}.")
    if table.shape[1] != schema.n_features:
        raise ValueError(
            f"X has {table.shape[1]} features, but the schema lists {schema.n_features}: "
            f"{list(schema.feature_names)}."
        )
    n_bad = int((~np.isfinite(table)).sum())
    if n_bad:
        raise ValueError(
            f"X has {n_bad} NaN or infinite entries. Fill them with FeatureSchema.encode(missing='fill')."
        )
    n_categories = schema.n_categories
    lower, upper = schema.lower, schema.upper
    for j in range(schema.n_features):
        column = table[:, j]
        if n_categories[j]:
            is_known = (column >= 0) & (column < n_categories[j]) & (column == np.floor(column))
            column[~is_known] = UNSEEN
        else:
            np.clip(column, lower[j], upper[j], out=column)
    return table


def check_labels(y: ArrayLike, n_rows: int, n_classes: int) -> NDArray[np.int64]:
    """Return the class codes of rows, or say what is wrong with them.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Class codes 0..n_classes-1; not every class need occur.
    n_rows : int
        Number of rows of the table the labels belong to; at least one.
    n_classes : int
        Number of classes of the schema.
    """
    labels = _check_shape(y, n_rows)
    is_code = np.zeros(len(labels), dtype=bool)
    if labels.dtype.kind in "biuf":
        is_code = (labels >= 0) & (labels < n_classes) & (labels == np.floor(labels))
    if not is_code.all():
        seen = sorted({repr(v) for v in labels[~is_code][:1000].tolist()})[:5]
        raise ValueError(
            f"y must hold the class codes 0..{n_classes - 1}, got {', '.join(seen)}. "
            "Encode it with FeatureSchema.encode_labels."
        )
    return labels.astype(np.int64)


def check_target(y: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Return the numeric targets of rows, or say what is wrong with them.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Finite numbers.
    n_rows : int
        Number of rows of the table the targets belong to; at least one.
    """
    target = _check_shape(y, n_rows)
    is_number = target.dtype.kind in "biuf"
    n_bad = int((~np.isfinite(target)).sum()) if is_number else n_rows
    if n_bad:
        raise ValueError(f"y must hold finite numbers, but {n_bad} of {n_rows} are none.")
    return target.astype(np.float64)


def _check_shape(y: ArrayLike, n_rows: int) -> NDArray[Any]:
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must have one dimension, got shape {labels.shape}.")
    if len(labels) != n_rows:
        raise ValueError(f"X has {n_rows} rows, but y has {len(labels)} labels.")
    if n_rows == 0:
        raise ValueError("X has no rows. A fit needs at least one.")
    return labels
