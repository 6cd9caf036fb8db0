"""One greedy decision tree of scikit-learn: the simplest method without privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from sklearn.tree import DecisionTreeClassifier

from baselines.coded_input import Seed, check_count
from baselines.one_hot import OneHotReference
from lumberjack.schema import FeatureSchema


class DecisionTreeReference(OneHotReference):
    """Greedy tree with the Gini criterion on one-hot input (not private).

    Parameters
    ----------
    schema : FeatureSchema
        Coded schema.
    epsilon, delta : float
        Not used; part of the contract of all methods.
    mode : {"paper"}
        There is one variant.
    random_state : int, SeedSequence or None
        Seed of the order in which equally good splits are tried.
    noise_seed : int, SeedSequence or None
        Not used; there is no noise.
    n_jobs : int
        Not used; one tree is grown by one thread.
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
        max_depth: int = 15,
        min_samples_leaf: int = 1,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.mode = mode
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.n_jobs = n_jobs
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf

    def fit_report(self) -> dict[str, float]:
        """Return the number of nodes of the tree.

        Returns
        -------
        dict of str to float
        """
        return {"mean_nodes_per_tree": float(self.model_.tree_.node_count)}

    def _model(self, seed: int) -> DecisionTreeClassifier:
        return DecisionTreeClassifier(
            criterion="gini",
            max_depth=check_count("max_depth", self.max_depth),
            min_samples_leaf=check_count("min_samples_leaf", self.min_samples_leaf),
            random_state=seed,
        )
