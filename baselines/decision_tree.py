"""One greedy decision tree of scikit-learn: the simplest method without privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from baselines.one_hot_reference import OneHotReference


@dataclass(kw_only=True, eq=False, repr=False)
class DecisionTreeReference(OneHotReference):
    """Greedy tree with the Gini criterion on one-hot input (not private).

    Parameters
    ----------
    max_depth : int
        Largest depth.
    min_samples_leaf : int
        A split that leaves fewer records on a side is not made.

    References
    ----------
    Breiman, Friedman, Olshen, Stone: "Classification and Regression Trees", 1984. The defaults are
    the settings published with the Lumberjack paper.
    """

    display_name: ClassVar[str] = "Decision Tree (non-private)"
    source: ClassVar[str] = "scikit-learn DecisionTreeClassifier"
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {
        "max_depth": (5, 8, 10, 12, 15, 20),
        "min_samples_leaf": (1, 10, 50),
    }

    max_depth: int = 15
    min_samples_leaf: int = 1

    def fit_report(self) -> dict[str, float]:
        """Return the number of nodes of the tree."""
        check_is_fitted(self)
        return {"mean_nodes_per_tree": float(self.model_.tree_.node_count)}

    def _model(self, seed: int) -> DecisionTreeClassifier:
        return DecisionTreeClassifier(
            criterion="gini",
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            random_state=seed,
        )
