"""Fully random trees without privacy: what data-independent splits can do at best.

The upper row of the Lumberjack paper's figure 1: trees of a fixed depth whose splits do not look at
the data, exact class counts of all records in every leaf, a majority vote of the trees. As in
diffprivlib at an infinite budget, a leaf's tie and the label of an empty leaf are decided by chance;
unlike there, every tree counts every record.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from baselines.coded_classifier import CodedClassifier
from baselines.coded_input import (
    Seed,
    check_count,
    check_labels,
    check_mode,
    check_privacy_parameters,
    check_table,
)
from baselines.multiway_trees import NOISE_STREAM, STRUCTURE_STREAM, draw_keys, generator
from baselines.random_trees import SplitSpace, grow
from lumberjack.accounting.guarantee import PrivacyCard
from lumberjack.schema import FeatureSchema


class FullyRandomClassifier(CodedClassifier):
    """Forest of fully random binary trees with exact leaf counts (not private).

    Parameters
    ----------
    schema : FeatureSchema
        Coded schema: bounds, numbers of categories and classes.
    epsilon, delta : float
        Not used; part of the contract of all methods.
    mode : {"paper"}
        There is one variant.
    random_state : int, SeedSequence or None
        Seed of the splits.
    noise_seed : int, SeedSequence or None
        Seed of the labels of leaves with a tie.
    n_jobs : int
        Not used: a fit takes a fraction of a second.
    n_estimators : int
        Number of trees.
    max_depth : int
        Depth of the leaves.

    Attributes
    ----------
    forest_ : RandomTrees
        The trees with their labels.

    Notes
    -----
    A numeric feature is split at a threshold uniform in the node's interval, a categorical one into
    one category, uniform among those that no ancestor used, and the rest.

    References
    ----------
    The Lumberjack paper, figure 1 and appendix C (25 trees, depth 10).
    """

    display_name: ClassVar[str] = "Fully random trees (non-private)"
    is_private: ClassVar[bool] = False

    def __init__(
        self,
        *,
        schema: FeatureSchema,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        mode: str = "paper",
        random_state: Seed = None,
        noise_seed: Seed = None,
        n_jobs: int | None = 1,
        n_estimators: int = 25,
        max_depth: int = 10,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.mode = mode
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.n_jobs = n_jobs
        self.n_estimators = n_estimators
        self.max_depth = max_depth

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Count the classes of all records in the leaves of each tree.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Coded table.
        y : array-like of shape (n_rows,)
            Class codes.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            When a parameter or the data is unusable.
        """
        check_privacy_parameters(self.epsilon, self.delta)
        check_mode(self.mode, ("paper",))
        check_count("n_estimators", self.n_estimators)
        check_count("max_depth", self.max_depth)
        schema = self.schema
        table = check_table(X, schema)
        labels = check_labels(y, len(table), schema.n_classes)
        self.classes_ = np.arange(schema.n_classes)
        self.forest_ = grow(
            table,
            labels,
            schema.n_classes,
            SplitSpace(schema.lower, schema.upper, schema.n_categories),
            draw_keys(generator(self.random_state, STRUCTURE_STREAM), self.n_estimators),
            self.max_depth,
            np.inf,
            generator(self.noise_seed, NOISE_STREAM),
        )
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the share of trees that vote for each class.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Coded table.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        check_is_fitted(self, "forest_")
        return self.forest_.votes(check_table(X, self.schema)) / self.n_estimators

    def fit_report(self) -> dict[str, float]:
        """Return the mean number of leaves that a record reached.

        Returns
        -------
        dict of str to float
        """
        check_is_fitted(self, "forest_")
        n_leaves = [len(keys) for keys in self.forest_.leaf_keys]
        return {"mean_reached_leaves_per_tree": float(np.mean(n_leaves))}

    def privacy_card(self) -> PrivacyCard:
        """Return the card of a method that promises nothing.

        Returns
        -------
        PrivacyCard
        """
        return PrivacyCard(
            method=self.display_name,
            mode=self.mode,
            claimed=None,
            source="the Lumberjack paper, figure 1: infinite budget",
            status="not private",
            concerns=("leaf labels are exact majorities",),
        )
