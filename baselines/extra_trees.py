"""Extremely randomised trees of scikit-learn: what random splits reach without privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from baselines.coded_input import Seed, check_count
from baselines.one_hot import OneHotReference
from lumberjack.schema import FeatureSchema


class ExtraTreesReference(OneHotReference):
    """Extra Trees on one-hot input, a random column at each split (not private).

    Parameters
    ----------
    schema : FeatureSchema
        Coded schema.
    epsilon, delta : float
        Not used; part of the contract of all methods.
    mode : {"paper"}
        There is one variant.
    random_state : int, SeedSequence or None
        Seed of the trees.
    noise_seed : int, SeedSequence or None
        Not used; there is no noise.
    n_jobs : int
        Threads.
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
        n_estimators: int = 50,
        max_depth: int = 60,
        min_samples_split: int = 500,
        max_features: int = 1,
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
        self.min_samples_split = min_samples_split
        self.max_features = max_features

    def fit_report(self) -> dict[str, float]:
        """Return the mean number of nodes of a tree.

        Returns
        -------
        dict of str to float
        """
        nodes = [tree.tree_.node_count for tree in self.model_.estimators_]
        return {"mean_nodes_per_tree": float(np.mean(nodes))}

    def _model(self, seed: int) -> ExtraTreesClassifier:
        return ExtraTreesClassifier(
            n_estimators=check_count("n_estimators", self.n_estimators),
            max_depth=check_count("max_depth", self.max_depth),
            min_samples_split=check_count("min_samples_split", self.min_samples_split, 2),
            max_features=check_count("max_features", self.max_features),
            random_state=seed,
            n_jobs=self.n_jobs,
        )
