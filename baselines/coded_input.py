"""Checks on what a baseline is given: coded tables, class codes, privacy parameters and seeds.

The coded form of a table is described in :mod:`lumberjack.schema`. Nothing here looks at the data
for anything but a refusal.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from lumberjack.schema import UNSEEN, FeatureSchema

Seed = int | np.random.SeedSequence | None
"""What the methods take as a seed; None stands for fresh entropy of the operating system."""


def check_privacy_parameters(epsilon: float, delta: float) -> tuple[float, float]:
    """Return (epsilon, delta) as floats, or raise when they are no privacy parameters.

    Parameters
    ----------
    epsilon : float
        Positive; infinity switches the noise off.
    delta : float
        In [0, 1).

    Returns
    -------
    tuple of float

    Raises
    ------
    ValueError
        When a value is out of range or not a number.
    """
    if isinstance(epsilon, bool) or not isinstance(epsilon, numbers.Real) or not epsilon > 0:
        raise ValueError(
            f"epsilon must be positive, got {epsilon!r}. "
            "For a non-private baseline use method=extra_trees."
        )
    if isinstance(delta, bool) or not isinstance(delta, numbers.Real) or not 0 <= delta < 1:
        raise ValueError(f"delta must lie in [0, 1), got {delta!r}.")
    return float(epsilon), float(delta)


def check_mode(mode: str, allowed: tuple[str, ...]) -> str:
    """Return `mode`, or raise when it is not one of the allowed variants.

    Parameters
    ----------
    mode : str
        Variant asked for.
    allowed : tuple of str
        Variants the method has.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        When the variant is unknown.
    """
    if mode not in allowed:
        raise ValueError(f"mode must be one of {', '.join(allowed)}, got {mode!r}.")
    return mode


def check_count(name: str, value: Any, minimum: int = 1) -> int:
    """Return a whole-number parameter, or raise when it is none or too small.

    Parameters
    ----------
    name : str
        Name of the parameter, for the message.
    value : int
        The value.
    minimum : int
        Smallest allowed value.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        When the value is no whole number or below `minimum`.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < minimum:
        raise ValueError(f"{name} must be a whole number, at least {minimum}, got {value!r}.")
    return int(value)


def check_table(X: Any, schema: FeatureSchema) -> NDArray[np.float64]:
    """Return `X` as a row-major float matrix that fits the coded schema.

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

    Raises
    ------
    ValueError
        When `X` is sparse, not a table, has another number of columns, or holds NaN or infinities.
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
    """Return `y` as class codes.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Class codes 0..n_classes-1; not every class need occur.
    n_rows : int
        Number of rows of the table the labels belong to.
    n_classes : int
        Number of classes of the schema.

    Returns
    -------
    ndarray of shape (n_rows,), int64

    Raises
    ------
    ValueError
        When there are no rows, the lengths differ, or a label is no class code.
    """
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must have one dimension, got shape {labels.shape}.")
    if len(labels) != n_rows:
        raise ValueError(f"X has {n_rows} rows, but y has {len(labels)} labels.")
    if n_rows == 0:
        raise ValueError("X has no rows. A fit needs at least one.")
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


def seed_sequence(seed: Any) -> np.random.SeedSequence:
    """Return a seed sequence of its own for what a method draws.

    Parameters
    ----------
    seed : int, SeedSequence or None
        None stands for fresh entropy of the operating system.

    Returns
    -------
    SeedSequence
        A fresh object, so that spawning from it leaves the caller's untouched.

    Raises
    ------
    ValueError
        When the seed is of another kind or negative.
    """
    if seed is None:
        return np.random.SeedSequence()
    if isinstance(seed, np.random.SeedSequence):
        return np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or seed < 0:
        raise ValueError(f"a seed must be a whole number, a SeedSequence or None, got {seed!r}.")
    return np.random.SeedSequence(int(seed))


def fixed_noise_concerns(noise_seed: Any) -> tuple[str, ...]:
    """Return what a fixed seed of the privacy noise costs, for a privacy card.

    Parameters
    ----------
    noise_seed : int, SeedSequence or None
        The seed of the noise.

    Returns
    -------
    tuple of str
        Empty when the noise comes from the operating system.
    """
    if noise_seed is None:
        return ()
    return (
        "the noise seed is fixed, for a repeatable experiment: whoever knows it can undo the noise",
    )


def describe_epsilon(epsilon: float) -> str:
    """Return epsilon as a reader writes it.

    Parameters
    ----------
    epsilon : float
        Positive, possibly infinite.

    Returns
    -------
    str
    """
    return "infinity" if math.isinf(epsilon) else f"{epsilon:g}"
