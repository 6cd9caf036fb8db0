"""Pairs of tables that differ by one record, on which methods are known to give themselves away."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature

SCHEMA = FeatureSchema((NumericFeature("x", 0, 1), CategoricalFeature("c", (0, 1))), classes=(0, 1))
"""Public facts of all pairs; rows are coded already."""

QUERIES = np.asfortranarray([[0.3, 0.0], [0.9, 1.0]])
"""Rows whose predictions an adversary asks for."""


@dataclass(frozen=True, slots=True)
class NeighbouringTables:
    """A table and one record more."""

    name: str
    """What sets the record apart."""
    X: NDArray[np.float64]
    """Coded rows, shape (n_rows + 1, 2); the record is the last."""
    y: NDArray[np.int64]
    """Class codes, shape (n_rows + 1,)."""

    def rows(
        self, *, has_record: bool, generator: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the table with or without the record, in random order, so that it says nothing.

        Returns
        -------
        X : ndarray of float64, shape (n_rows, 2), column-major
        y : ndarray of int64, shape (n_rows,)
        """
        order = generator.permutation(len(self.y) if has_record else len(self.y) - 1)
        return np.asfortranarray(self.X[order]), self.y[order]


def _in_one_place(name: str, n_zero: int, n_one: int, label: int) -> NeighbouringTables:
    y = np.repeat([0, 1, label], [n_zero, n_one, 1])
    return NeighbouringTables(name, np.tile(QUERIES[0], (len(y), 1)), y)


def _alone() -> NeighbouringTables:
    x = np.linspace(0.05, 0.45, 60)
    X = np.vstack([np.column_stack([x, np.zeros(60)]), QUERIES[1]])
    return NeighbouringTables("a record far from all others", X, np.repeat([0, 1], [60, 1]))


PAIRS = (
    _in_one_place("10 against 7, and one more of the 10", 10, 7, 0),
    _in_one_place("4 against 0, and one more of the 4", 4, 0, 0),
    _in_one_place("100 against 100, and one more", 100, 100, 1),
    _in_one_place("500 of one class, and one more", 500, 0, 0),
    _alone(),
)
"""A leaf near a tie, a leaf almost pure, a crowd at a tie, a crowd near the threshold, an outlier."""
