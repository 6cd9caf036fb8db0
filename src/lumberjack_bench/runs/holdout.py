"""The split of a repetition: 80 % to train, 10 % to tune on, 10 % to test, stratified by class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SHARES = (0.1, 0.1)
"""Shares of the rows for testing and for validation; the rest trains."""

FEWEST_ROWS = 10


@dataclass(frozen=True, slots=True)
class Split:
    """Row numbers of the three parts, each in increasing order.

    Attributes
    ----------
    train, validation, test : ndarray of int64
        Disjoint; together all rows.
    """

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]

    @property
    def train_and_validation(self) -> NDArray[np.int64]:
        """Rows of the final fit."""
        return np.sort(np.concatenate([self.train, self.validation]))


def n_training_rows(n_rows: int) -> int:
    """Return how many of so many rows the final fit sees."""
    return n_rows - round(SHARES[0] * n_rows)


def stratified_split(y: NDArray[np.integer], seed: np.random.SeedSequence) -> Split:
    """Split rows at random, keeping the share of each class in each part.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Class codes.
    seed : SeedSequence
        The split is a function of `y` and this.

    Returns
    -------
    Split

    Raises
    ------
    ValueError
        When there are too few rows for three parts.
    """
    n_rows = len(y)
    if n_rows < FEWEST_ROWS:
        raise ValueError(f"a split needs at least {FEWEST_ROWS} rows, got {n_rows}.")
    generator = np.random.default_rng(seed)
    classes, class_of = np.unique(y, return_inverse=True)
    sizes = np.bincount(class_of, minlength=len(classes))
    n_test = _apportion(sizes, round(SHARES[0] * n_rows))
    n_validation = _apportion(sizes - n_test, round(SHARES[1] * n_rows))
    parts: tuple[list[NDArray[np.int64]], ...] = ([], [], [])
    for code in range(len(classes)):
        rows = generator.permutation(np.flatnonzero(class_of == code))
        cuts = (n_test[code], n_test[code] + n_validation[code])
        for part, chosen in zip(parts, np.split(rows, cuts), strict=True):
            part.append(chosen)
    test, validation, train = (np.sort(np.concatenate(part)) for part in parts)
    return Split(train=train, validation=validation, test=test)


def _apportion(sizes: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Share `total` among classes in proportion to `sizes`, by largest remainders."""
    exact = sizes * (total / sizes.sum())
    shares = np.floor(exact).astype(np.int64)
    order = np.argsort(-(exact - shares), kind="stable")
    shares[order[: total - shares.sum()]] += 1
    return shares
