"""Logistic regression of scikit-learn: what the private one would reach without noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from baselines.one_hot_cells import unit_rows
from baselines.one_hot_reference import OneHotReference


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticRegressionReference(OneHotReference):
    """Softmax regression on the cells of :mod:`baselines.dp_logistic_regression` (not private).

    Parameters
    ----------
    C : float
        Inverse of the ridge, for rows of norm at most 1.
    n_bins : int
        Cells of a numeric feature.
    """

    display_name: ClassVar[str] = "Logistic regression (non-private)"
    source: ClassVar[str] = "scikit-learn LogisticRegression"
    needs_two_classes: ClassVar[bool] = True
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {"C": (1.0, 10.0, 100.0, 1000.0)}

    C: float = 100.0
    n_bins: int = 16

    def _columns(self, table: NDArray[np.float64]) -> Any:
        return unit_rows(table, self.schema, self.n_bins)

    def _model(self, seed: int) -> LogisticRegression:
        return LogisticRegression(C=self.C, max_iter=1000, random_state=seed)
