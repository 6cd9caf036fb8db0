"""Extremely randomised trees of scikit-learn: what random splits reach without privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.utils.validation import check_is_fitted

from baselines.one_hot_reference import OneHotReference, OneHotRegressor


@dataclass(kw_only=True, eq=False, repr=False)
class ExtraTreesReference(OneHotReference):
    """Extra Trees on one-hot input, a random column at each split (not private).

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    max_depth : int
        Largest depth.
    min_samples_split : int
        A node with fewer records is a leaf.
    max_features : int
        Columns drawn at each split, of which the best is taken.

    References
    ----------
    Geurts, Ernst, Wehenkel: "Extremely randomized trees", 2006. The defaults are the settings
    published with the Lumberjack paper; the search varies `min_samples_split`, which decides.
    """

    display_name: ClassVar[str] = "Extra Trees (non-private)"
    source: ClassVar[str] = "scikit-learn ExtraTreesClassifier"
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {
        "min_samples_split": (5, 10, 20, 50, 100, 500),
    }

    n_estimators: int = 50
    max_depth: int = 60
    min_samples_split: int = 500
    max_features: int = 1

    def fit_report(self) -> dict[str, float]:
        """Return the mean number of nodes of a tree."""
        check_is_fitted(self)
        nodes = [tree.tree_.node_count for tree in self.model_.estimators_]
        return {"mean_nodes_per_tree": float(np.mean(nodes))}

    def _model(self, seed: int) -> ExtraTreesClassifier:
        return ExtraTreesClassifier(
            n_estimators=self.n_estimators,
            max_depth=self.max_depth,
            min_samples_split=self.min_samples_split,
            max_features=self.max_features,
            random_state=seed,
            n_jobs=self.n_jobs,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class ExtraTreesRegression(OneHotRegressor):
    """Extra Trees for a numeric target on one-hot input, the best of a threshold of each column (not private).

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    min_samples_leaf : int
        Records of a leaf, at least.

    References
    ----------
    Geurts, Ernst, Wehenkel: "Extremely randomized trees", 2006.
    """

    display_name: ClassVar[str] = "Extra Trees regression (non-private)"
    source: ClassVar[str] = "scikit-learn ExtraTreesRegressor"
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {"min_samples_leaf": (1, 5, 20)}

    n_estimators: int = 100
    min_samples_leaf: int = 1

    def _model(self, seed: int) -> ExtraTreesRegressor:
        return ExtraTreesRegressor(
            n_estimators=self.n_estimators,
            min_samples_leaf=self.min_samples_leaf,
            random_state=seed,
            n_jobs=self.n_jobs,
        )
