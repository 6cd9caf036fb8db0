"""Boosted trees of scikit-learn: what the best rivals reach without privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from baselines.one_hot_reference import OneHotReference, OneHotRegressor


@dataclass(kw_only=True, eq=False, repr=False)
class HistGradientBoostingReference(OneHotReference):
    """Histogram-based gradient boosting on one-hot input (not private).

    Parameters
    ----------
    learning_rate : float
        Share of each Newton step that is taken.
    max_iter : int
        Number of trees per class.

    References
    ----------
    Friedman: "Greedy function approximation: a gradient boosting machine", 2001.
    """

    display_name: ClassVar[str] = "Gradient boosting (non-private)"
    source: ClassVar[str] = "scikit-learn HistGradientBoostingClassifier"
    needs_two_classes: ClassVar[bool] = True
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {"max_iter": (25, 50, 100, 200)}

    learning_rate: float = 0.1
    max_iter: int = 100

    def _model(self, seed: int) -> HistGradientBoostingClassifier:
        return HistGradientBoostingClassifier(
            learning_rate=self.learning_rate,
            max_iter=self.max_iter,
            early_stopping=False,
            random_state=seed,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class HistGradientBoostingRegression(OneHotRegressor):
    """Histogram-based gradient boosting of a numeric target on one-hot input (not private).

    Parameters
    ----------
    learning_rate : float
        Share of each step that is taken.
    max_iter : int
        Number of trees.

    References
    ----------
    Friedman: "Greedy function approximation: a gradient boosting machine", 2001.
    """

    display_name: ClassVar[str] = "Gradient boosting regression (non-private)"
    source: ClassVar[str] = "scikit-learn HistGradientBoostingRegressor"
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {"max_iter": (50, 100, 200, 400)}

    learning_rate: float = 0.1
    max_iter: int = 100

    def _model(self, seed: int) -> HistGradientBoostingRegressor:
        return HistGradientBoostingRegressor(
            learning_rate=self.learning_rate,
            max_iter=self.max_iter,
            early_stopping=False,
            random_state=seed,
        )
