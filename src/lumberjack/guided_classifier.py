"""GuidedLumberjackClassifier, our forest: four groups of queries under one guarantee.

The mathematics of privacy is in :mod:`lumberjack.accounting`, what the forests share in
:mod:`lumberjack.forest`.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from lumberjack.accounting import (
    Group,
    Guarantee,
    Ledger,
    PrivacyCard,
    Structure,
    get_n_queries_per_record,
)
from lumberjack.estimator import CodedRows
from lumberjack.forest import GrownTree, PrivateForestClassifier, Released
from lumberjack.growth import TrainingRows
from lumberjack.guide import Guide, release_cells
from lumberjack.leaves import class_shares, release_counts
from lumberjack.noise import Noise
from lumberjack.ranks import rank_table
from lumberjack.releases import SAFE_THEOREM, TIGHT_THEOREM, ForestNoise, calibrate_together
from lumberjack.schema import FeatureSchema
from lumberjack.splits import PublicFacts, SplitRule
from lumberjack.stacking import (
    Block,
    StackSums,
    fit_weights,
    predict_stacked,
    release_stack,
)

PUBLISHED_BUDGET = {"structure": 0.45, "guide": 0.28, "leaves": 0.22, "stack": 0.05}
"""Shares of the squared Gaussian parameter of the whole fit."""


class GuidedLumberjackClassifier(PrivateForestClassifier):
    """Lumberjack with joint accounting, a soft vote, guided splits and stacking.

    The guarantee is of the same kind as that of :class:`LumberjackClassifier`, the accuracy at the
    same budget higher. Four groups of queries compose as one Gaussian-type release: histograms of
    each feature by class (the guide), the threshold queries of the trees' structure, the class
    counts of the leaves (Gaussian mechanism; trees average class shares), and two sums that fit a
    logistic model over the forest and the guide's evidence (stacking). Splits are functions of the
    released guide and of coins.

    Parameters
    ----------
    epsilon, delta : float, default=1.0, 1e-6
        As for :class:`LumberjackClassifier`.
    n_estimators : int, default=20
        Number of trees.
    max_depth : int, default=63
        Number of levels that are searched for heavy nodes.
    budget : mapping of str to float or None, default=None
        Shares of the squared Gaussian parameter of the whole fit for "structure", "guide",
        "leaves" and "stack"; they add up to 1. If None, 0.45, 0.28, 0.22 and 0.05.
    accounting : {"tight", "safe"}, default="tight"
        "tight" follows the strongest adaptive adversary against yes/no answers, which takes seconds
        and saves about a tenth of the noise; "safe" is the closed form for adaptive queries.
    schema, bounds, categories, classes, missing, unknown_labels, noise, random_state, noise_seed, n_jobs
        As for :class:`LumberjackClassifier`.

    Attributes
    ----------
    classes_, schema_, estimators_, guarantee_, ledger_, n_features_in_, feature_names_in_
        As for :class:`LumberjackClassifier`.
    guide_ : Guide
        The released histograms.
    stack_weights_ : ndarray of shape (n_classes + n_features,)
        Weights of the logistic model: intercept contrasts, forest, features.
    feature_importances_ : ndarray of shape (n_features,)
        How much each feature says of the class by itself, from the released guide.

    Examples
    --------
    >>> import numpy as np
    >>> from lumberjack import GuidedLumberjackClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(5000, 2))
    >>> y = (X[:, 0] > 0.5).astype(int)
    >>> forest = GuidedLumberjackClassifier(epsilon=2, bounds=(0, 1), classes=[0, 1]).fit(X, y)
    >>> [release.name for release in forest.ledger_.releases]
    ['guide', 'structure', 'leaves', 'stack']
    """

    display_name: ClassVar[str] = "Guided Lumberjack"
    looks_back: ClassVar[bool] = True

    split_rule: SplitRule = SplitRule()
    """How splits follow the guide."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateForestClassifier._parameter_constraints,
        "budget": [Mapping, None],
        "accounting": [StrOptions({"safe", "tight"})],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        n_estimators: int = 20,
        max_depth: int = 63,
        budget: Mapping[str, float] | None = None,
        accounting: Literal["tight", "safe"] = "tight",
        schema: FeatureSchema | None = None,
        bounds: Any = None,
        categories: Mapping[Any, Any] | None = None,
        classes: ArrayLike | None = None,
        missing: Literal["raise", "fill"] = "raise",
        unknown_labels: Literal["raise", "drop"] = "raise",
        noise: Literal["continuous", "discrete"] = "continuous",
        random_state: Any = None,
        noise_seed: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.budget = budget
        self.accounting = accounting
        self.schema = schema
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.missing = missing
        self.unknown_labels = unknown_labels
        self.noise: Noise = noise
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.n_jobs = n_jobs

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Mutual information of each feature with the class, shape (n_features,); they sum to 1.

        It is read off the released, denoised histograms, so it costs no privacy. It says what a
        feature tells by itself, not together with others; all are 0 where none tells anything.
        """
        check_is_fitted(self)
        information: NDArray[np.float64] = self.guide_.mutual_information()
        total = float(information.sum())
        return information / total if total > 0 else information

    def privacy_card(self) -> PrivacyCard:
        """Return what this estimator claims about privacy; it need not be fitted."""
        return PrivacyCard(
            method=self.display_name,
            mode=self.accounting,
            claimed=Guarantee(self.epsilon, self.delta),
            source=self._theorem(),
            status="holds",
            concerns=(
                "The default settings were chosen on validation rows of benchmark data (Adult, ACS), "
                "without privacy cost.",
                *self._concerns(),
            ),
        )

    def _theorem(self) -> str:
        return TIGHT_THEOREM if self.accounting == "tight" else SAFE_THEOREM

    def _group_names(self) -> tuple[str, ...]:
        """Return the groups of queries that are asked, the structure first."""
        # The last digits of sums of shares, and of the noise, depend on this order.
        return ("structure", "leaves", "guide", "stack")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        names = self._group_names()
        if self.budget is None:
            return
        if set(self.budget) != set(names):
            raise ValueError(
                f"budget must have a share for each of {', '.join(names)} and for nothing else, got "
                f"{', '.join(map(str, self.budget)) or 'no share'}."
            )
        for name, share in self.budget.items():
            if not isinstance(share, Real) or not 0 < share <= 1:
                raise ValueError(f"the budget of {name} must lie in (0, 1], got {share!r}.")
        if abs(sum(self.budget.values()) - 1.0) > 1e-9:
            shares = " + ".join(map(str, self.budget.values()))
            raise ValueError(f"the shares of the budget must add up to 1, got {shares}.")

    def _get_groups(self, schema: FeatureSchema) -> tuple[Structure, list[Group]]:
        """Return the groups that are asked, with shares that add up to 1."""
        budget = PUBLISHED_BUDGET if self.budget is None else self.budget
        n_trees = int(self.n_estimators)
        counts = {
            "structure": n_trees * get_n_queries_per_record(self.max_depth),
            "leaves": n_trees,
            "guide": schema.n_features,
            "stack": 1,
        }
        names = self._group_names()
        shares = np.array([budget[name] for name in names])
        own, *rest = (shares / shares.sum()).tolist()
        others = [
            Group(
                name,
                counts[name],
                share,
                is_first=name == "guide",
                step=self._sum_step if name == "stack" else self._count_step,
            )
            for name, share in zip(names[1:], rest, strict=True)
        ]
        return Structure("structure", counts["structure"], own, step=self._count_step), others

    def _calibrate(self, schema: FeatureSchema) -> tuple[Ledger, ForestNoise]:
        structure, others = self._get_groups(schema)
        return calibrate_together(self.epsilon, self.delta, self.accounting, structure, others)

    def _release_cells(
        self, rows: CodedRows, noise: ForestNoise, generator: np.random.Generator
    ) -> list[NDArray[np.float64]] | None:
        return release_cells(
            rows.columns,
            rows.labels,
            rows.schema,
            noise.scales["guide"],
            generator,
            noise=self.noise,
        )

    def _get_training_rows(self, rows: CodedRows, guide: Guide | None) -> TrainingRows:
        assert guide is not None
        # On the guide's scale a category is a number like any other.
        n_categories = np.zeros(rows.schema.n_features, dtype=np.int64)
        public = PublicFacts(rows.schema.n_classes, n_categories, guide.lower, guide.upper, 0)
        ranked = rank_table(guide.scale_columns(rows.columns))
        return TrainingRows(ranked, rows.labels, public, guide, self.split_rule)

    def _release_stack(
        self,
        rows: CodedRows,
        guide: Guide | None,
        grown: list[GrownTree],
        noise: ForestNoise,
        generator: np.random.Generator,
    ) -> StackSums | None:
        assert guide is not None
        shares = self._left_out_shares(rows.labels, grown)
        blocks = (
            Block(guide.to_guide_scale(values), rows.labels[which], shares[which])
            for which, values in rows.blocks()
        )
        return release_stack(blocks, guide, noise.scales["stack"], generator, noise=self.noise)

    def _get_fitted(self, released: Released) -> dict[str, Any]:
        weights = None
        if released.stack is not None:
            n_classes = released.rows.public.n_classes
            weights = fit_weights(released.stack, n_classes, released.noise.scales["stack"])
        fitted = {"guide_": released.guide, "stack_weights_": weights}
        return super()._get_fitted(released) | fitted

    def _to_tree_scale(
        self, values: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        return self.guide_.to_guide_scale(values), np.zeros(values.shape[1], dtype=np.bool_)

    def _get_scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        shares = super()._get_scores(values)
        scaled = self.guide_.to_guide_scale(values)
        return predict_stacked(scaled, shares, self.guide_, self.stack_weights_)

    def _release_leaves(
        self, counts: NDArray[np.int64], scale: float, generator: np.random.Generator
    ) -> NDArray[np.float64]:
        return release_counts(counts, scale, generator, noise=self.noise)

    def _score_leaves(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        return class_shares(released)
