"""Fully random trees without privacy: what data-independent splits can do at best.

The upper row of the Lumberjack paper's figure 1: trees of a fixed depth whose splits do not look at
the data, exact class counts of all records in every leaf, a majority vote of the trees. As in
diffprivlib at an infinite budget, a leaf's tie and the label of an empty leaf are decided by chance;
unlike there, every tree counts every record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from baselines.coded_classifier import CodedClassifier
from baselines.keyed_trees import SplitSpace, draw_keys
from baselines.random_binary_trees import Rows, grow
from lumberjack.accounting.guarantee import PrivacyCard


@dataclass(kw_only=True, eq=False, repr=False)
class FullyRandomClassifier(CodedClassifier):
    """Forest of fully random binary trees with exact leaf counts (not private).

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    max_depth : int
        Depth of the leaves.

    Attributes
    ----------
    forest_ : RandomBinaryTrees
        The trees with their labels.

    Notes
    -----
    A numeric feature is split at a threshold uniform in the node's interval, a categorical one into
    one category, uniform among those that no ancestor used, and the rest. `noise_seed` decides the
    labels of leaves with a tie.

    References
    ----------
    The Lumberjack paper, figure 1 and appendix C (25 trees, depth 10).
    """

    display_name: ClassVar[str] = "Fully random trees (non-private)"
    is_private: ClassVar[bool] = False

    n_estimators: int = 25
    max_depth: int = 10

    def fit_report(self) -> dict[str, float]:
        """Return the mean number of leaves that a record reached."""
        check_is_fitted(self)
        n_leaves = [len(keys) for keys in self.forest_.leaf_keys]
        return {"mean_reached_leaves_per_tree": float(np.mean(n_leaves))}

    def privacy_card(self) -> PrivacyCard:
        """Return the card of a method that promises nothing."""
        return self._card(
            status="not private",
            source="the Lumberjack paper, figure 1: infinite budget",
            concerns=("leaf labels are exact majorities",),
        )

    def _fit(self, table: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
        self.forest_ = grow(
            Rows(table, labels, self.schema.n_classes),
            SplitSpace.of(self.schema),
            draw_keys(self._structure_generator(), self.n_estimators),
            self.max_depth,
            np.inf,
            self._noise_generator(),
        )

    def _probabilities(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.forest_.votes(table) / self.n_estimators
