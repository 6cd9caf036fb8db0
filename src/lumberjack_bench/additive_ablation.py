"""The additive forest with a part left out, for the ablation: what each part brings."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from lumberjack import AdditiveForestClassifier, FeatureSchema
from lumberjack.additive_cells import Bins
from lumberjack.additive_start import take_step
from lumberjack.additive_terms import Evidence, Terms, get_design, make_terms
from lumberjack.descent import Way, get_way


class AblatedAdditiveForestClassifier(AdditiveForestClassifier):
    """The additive forest without one of its parts, whose share of the budget goes unused.

    Parameters
    ----------
    epsilon, delta, schema, random_state, noise_seed, n_jobs
        As for :class:`lumberjack.AdditiveForestClassifier`.
    without : {"descent", "trees", "start", "short_way", "design", "importance"}
        "descent": the evidence of single features is all there is. "trees": cells of single
        features alone. "start": the evidence of every feature has the same weight. "short_way": as long
        a way as the descent can use, whatever the noise. "design": the terms of a large table for
        all. "importance": every feature has the same share of the norm.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **AdditiveForestClassifier._parameter_constraints,
        "without": [StrOptions({"descent", "trees", "start", "short_way", "design", "importance"})],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        without: str = "trees",
        schema: FeatureSchema | None = None,
        random_state: Any = None,
        noise_seed: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            schema=schema,
            random_state=random_state,
            noise_seed=noise_seed,
            n_jobs=n_jobs,
        )
        self.without = without

    def _get_terms(
        self, bins: Bins, evidence: Evidence, ratio: float, generator: np.random.Generator
    ) -> Terms:
        design = get_design(_LARGE if self.without == "design" else ratio)
        if self.without == "trees":
            design = design._replace(leaf_share=0.0)
        if self.without == "importance":
            evidence = evidence._replace(importances=np.ones_like(evidence.importances))
        return make_terms(bins, evidence, design, generator)

    def _get_start_weights(
        self, weights: NDArray[np.float64], released: NDArray[np.float64], sigma: float
    ) -> NDArray[np.float64]:
        return weights if self.without == "start" else take_step(weights, released, sigma)

    def _get_way(self, mu: float, n_rows: float, n_classes: int) -> Way:
        way = get_way(mu, n_rows, n_classes)
        if self.without == "descent":
            return way._replace(length=0.0)
        if self.without == "short_way":
            # With a thousand times the budget noise stops no one.
            return way._replace(length=get_way(1000 * mu, n_rows, n_classes).length)
        return way


_LARGE = 1e4
"""Rows per class over noise, of Adult at eps 4."""
