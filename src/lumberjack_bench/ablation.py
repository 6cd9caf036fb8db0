"""The guided forest with switches, for the ablation: what each part of it brings by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from lumberjack import FeatureSchema, Guarantee, GuidedLumberjackClassifier, Ledger
from lumberjack.accounting import calibrate_separately
from lumberjack.estimator import CodedRows
from lumberjack.forest import GrownTree, PrivateForestClassifier
from lumberjack.growth import TrainingRows
from lumberjack.guide import Guide
from lumberjack.releases import SAFE_THEOREM, ForestNoise, list_releases
from lumberjack.stacking import StackSums, predict_stacked


class AblatedLumberjackClassifier(GuidedLumberjackClassifier):
    """Guided Lumberjack of which parts can be switched off.

    Parameters
    ----------
    epsilon, delta, n_estimators, max_depth, schema, random_state, noise_seed, n_jobs
        As for :class:`lumberjack.GuidedLumberjackClassifier`.
    budget : mapping of str to float or None, default=None
        As there, for what is released. If None, the published shares of that, scaled up.
    accounting : {"tight", "safe", "separate"}, default="tight"
        "separate" gives each group of queries its own guarantee, in which `budget` shares out epsilon
        and delta, and adds them up (Lemma 10).
    vote : {"soft", "hard"}, default="soft"
        Average the class shares of the leaves, or the votes for the largest released count.
    is_guided : bool, default=True
        Whether splits follow the guide; otherwise they are uniform.
    is_stacked : bool, default=True
        Whether a logistic model weighs the forest against the evidence of single features;
        otherwise the mean of the trees decides. The guide is released if splits or stacking need it.
    drop_first_category : bool, default=False
        Whether the first category of each feature is no candidate for a uniform split.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GuidedLumberjackClassifier._parameter_constraints,
        "accounting": [StrOptions({"safe", "tight", "separate"})],
        "vote": [StrOptions({"soft", "hard"})],
        "is_guided": ["boolean"],
        "is_stacked": ["boolean"],
        "drop_first_category": ["boolean"],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        n_estimators: int = 20,
        max_depth: int = 63,
        budget: Mapping[str, float] | None = None,
        accounting: Any = "tight",
        vote: str = "soft",
        is_guided: bool = True,
        is_stacked: bool = True,
        drop_first_category: bool = False,
        schema: FeatureSchema | None = None,
        random_state: Any = None,
        noise_seed: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            n_estimators=n_estimators,
            max_depth=max_depth,
            budget=budget,
            accounting=accounting,
            schema=schema,
            random_state=random_state,
            noise_seed=noise_seed,
            n_jobs=n_jobs,
        )
        self.vote = vote
        self.is_guided = is_guided
        self.is_stacked = is_stacked
        self.drop_first_category = drop_first_category

    def _theorem(self) -> str:
        if self.accounting != "separate":
            return super()._theorem()
        return f"{SAFE_THEOREM} for the structure, Lemma 9 for the other groups, Lemma 10"

    def _group_names(self) -> tuple[str, ...]:
        is_asked = {"guide": self.is_guided or self.is_stacked, "stack": self.is_stacked}
        return tuple(name for name in super()._group_names() if is_asked.get(name, True))

    def _calibrate(self, schema: FeatureSchema) -> tuple[Ledger, ForestNoise]:
        if self.accounting != "separate":
            return super()._calibrate(schema)
        structure, others = self._get_groups(schema)
        shares = [group.share or 0.0 for group in (structure, *others)]
        guarantees = [Guarantee(share * self.epsilon, share * self.delta) for share in shares]
        noise = calibrate_separately(structure, others, guarantees)
        total = Guarantee(self.epsilon, self.delta)
        ledger = list_releases(noise, SAFE_THEOREM, "separate", total, guarantees)
        return ledger, ForestNoise.of(noise)

    def _release_cells(
        self, rows: CodedRows, noise: ForestNoise, generator: np.random.Generator
    ) -> list[NDArray[np.float64]] | None:
        if not (self.is_guided or self.is_stacked):
            return None
        return super()._release_cells(rows, noise, generator)

    def _get_training_rows(self, rows: CodedRows, guide: Guide | None) -> TrainingRows:
        if self.is_guided:
            return super()._get_training_rows(rows, guide)
        return PrivateForestClassifier._get_training_rows(self, rows, guide)

    def _to_tree_scale(
        self, values: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        if self.is_guided:
            return super()._to_tree_scale(values)
        return PrivateForestClassifier._to_tree_scale(self, values)

    def _release_stack(
        self,
        rows: CodedRows,
        guide: Guide | None,
        grown: list[GrownTree],
        noise: ForestNoise,
        generator: np.random.Generator,
    ) -> StackSums | None:
        if guide is None or not self.is_stacked:
            return None
        return super()._release_stack(rows, guide, grown, noise, generator)

    def _left_out_shares(self, labels: NDArray[Any], grown: list[GrownTree]) -> NDArray[np.float64]:
        return self._soften(super()._left_out_shares(labels, grown))

    def _get_scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        shares = PrivateForestClassifier._get_scores(self, values)
        if not self.is_stacked:
            return shares
        scaled = self.guide_.to_guide_scale(values)
        return predict_stacked(scaled, self._soften(shares), self.guide_, self.stack_weights_)

    def _soften(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Move vote shares halfway to uniform: trees that agree are no near-certainty."""
        return shares if self.vote == "soft" else (shares + 1.0 / shares.shape[1]) / 2.0

    def _score_leaves(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.vote == "soft":
            return super()._score_leaves(released)
        return np.eye(released.shape[1])[released.argmax(axis=1)]
