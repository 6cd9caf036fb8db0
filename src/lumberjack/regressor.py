"""LumberjackRegressor: the forest of the paper for a numeric target, with noisy sums in its leaves.

A target between public bounds is a share t of the way from the lower to the upper one. A leaf releases

    (sum of 1 - t, sum of t)

as one Gaussian vector. Their sum is the leaf's count, and the second over the count its mean. A record adds
(1 - t, t) to one leaf of each tree, a vector of L2 norm at most 1, which the bounds attain; so leaves are
accounted for as class counts of two classes are. Shares are rounded to whole multiples of
:data:`RESOLUTION`, of which sums are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from lumberjack.accounting import (
    Group,
    Guarantee,
    Ledger,
    PrivacyCard,
    Structure,
    get_n_queries_per_record,
)
from lumberjack.estimator import CodedRows, PrivateEstimator
from lumberjack.forest import PrivateForest
from lumberjack.growth import CountedTree, TrainingRows
from lumberjack.guide import NO_GUIDE, Guide
from lumberjack.noise import add_noise_to_counts
from lumberjack.public_facts import GivenFacts, resolve_schema
from lumberjack.ranks import rank_table
from lumberjack.releases import (
    SAFE_THEOREM,
    TIGHT_THEOREM,
    ForestNoise,
    calibrate_together,
)
from lumberjack.schema import FeatureSchema
from lumberjack.splits import PublicFacts, SplitRule

RESOLUTION = 2.0**-24
"""Of a target, as a share of the width of its bounds: sums of 2^29 records are whole numbers below 2^53."""


def sum_shares(
    leaf_of_row: NDArray[np.integer], shares: NDArray[np.float64], n_nodes: int
) -> NDArray[np.float64]:
    """Return the sums of 1 - t and of t over the records of each node.

    Parameters
    ----------
    leaf_of_row : ndarray of int, shape (n_rows,)
        Node of each record.
    shares : ndarray of float64, shape (n_rows,)
        Targets t in [0, 1], multiples of :data:`RESOLUTION`.
    n_nodes : int
        Number of nodes.

    Returns
    -------
    ndarray of float64, shape (n_nodes, 2)
        Exact, so that the order of the records changes nothing. NOT private.
    """
    return np.column_stack(
        [np.bincount(leaf_of_row, part, minlength=n_nodes) for part in (1.0 - shares, shares)]
    )


def mean_shares(released: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Turn released sums into means, drawn towards the mean of all where the noise is large.

    Parameters
    ----------
    released : ndarray of float64, shape (n_leaves, 2)
        Noisy sums of 1 - t and of t.
    scale : float
        Standard deviation of the noise of each; the mean of all weighs as that of a count.

    Returns
    -------
    ndarray of float64, shape (n_leaves,)
        Between 0 and 1.
    """
    totals = np.maximum(released.sum(axis=0), 0.0)
    overall = totals[1] / totals.sum() if totals.sum() > 0 else 0.5
    counts, weight = released.sum(axis=1), np.sqrt(2.0) * scale
    # What a leaf's sum is above that of as many records of the overall mean.
    excess = released[:, 1] - overall * counts
    means: NDArray[np.float64] = overall + excess / (np.maximum(counts, 0.0) + weight)
    return means.clip(0.0, 1.0)


class PrivateRegressor(RegressorMixin, PrivateEstimator):
    """What the private estimators of a numeric target have in common; not to be used by itself.

    Among a subclass's parameters is also ``target_bounds``.
    """

    _fact_names: ClassVar[str] = "bounds, categories, target_bounds or schema"

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the mean of the target, a function of what was released.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_features)
            Rows, in the schema's own values.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            Within the target's bounds, in its unit.
        """
        return self._predict_scores(X)[:, 0]

    def _resolve_schema(
        self, X: Any, y: NDArray[Any]
    ) -> tuple[FeatureSchema, tuple[str, ...] | None, list[str]]:
        given = GivenFacts(
            self.schema, self.bounds, self.categories, target_bounds=self.target_bounds
        )
        return resolve_schema(given, X, y, is_regression=True)

    def _read_labels(self, y: NDArray[Any], schema: FeatureSchema) -> NDArray[np.float64]:
        """Return the target as a share of the way from its lower to its upper bound."""
        assert schema.target_bounds is not None
        lower, upper = schema.target_bounds
        shares = (schema.encode_target(y) - lower) / (upper - lower)
        rounded: NDArray[np.float64] = np.rint(shares / RESOLUTION) * RESOLUTION
        return rounded.clip(0.0, 1.0)

    def _card(self, mode: str, source: str) -> PrivacyCard:
        return PrivacyCard(
            method=self.display_name,
            mode=mode,
            claimed=Guarantee(self.epsilon, self.delta),
            source=source,
            status="holds",
            concerns=self._concerns(),
            public_inputs=("schema (bounds, categories, target bounds)",),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Noise of a sensible budget hides the small tables of generic checks.
        tags.regressor_tags.poor_score = True
        return tags


class LumberjackRegressor(PrivateRegressor, PrivateForest):
    """Differentially private random forest for a numeric target.

    Trees are grown and cut back as by :class:`~lumberjack.LumberjackClassifier`, without a look at the
    target. Their leaves release noisy sums and counts of it, and predictions are the mean over trees of
    the leaves' means. Neighbouring data sets differ by one record, added or removed.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of the whole fit; positive and finite.
    delta : float, default=1e-6
        Failure probability of the whole fit, in (0, 1); choose it well below one over the number
        of records.
    target_bounds : tuple (lower, upper) or None, default=None
        Public bounds of the target, in its own unit; values outside are clipped. The noise grows with
        their distance, so narrow ones that clip a few records may predict better. Read off `y`, with a
        :class:`PrivacyLeakWarning`, if None.
    n_estimators : int, default=30
        Number of trees.
    max_depth : int, default=100
        Number of levels that are searched for heavy nodes. One record is part of
        ``1 + floor(log2(max_depth))`` queries per tree.
    structure_share : float, default=0.75
        Share of the budget that goes to the trees' structure; the rest goes to the leaves.
    accounting : {"safe", "tight"}, default="safe"
        Both are proved for adaptively chosen queries and account for structure and leaves together;
        "tight" follows the strongest adversary, which takes seconds and needs less noise.
    schema : FeatureSchema or None, default=None
        Public facts about the table, the target's bounds among them. If None, `bounds`, `categories`
        and `target_bounds` are used.
    bounds : tuple (lower, upper) or mapping of feature to (lower, upper), default=None
        Public bounds of the numeric features, as for :class:`~lumberjack.LumberjackClassifier`.
    categories : mapping of feature to list, default=None
        Public categories of the categorical features, keyed by column name or position.
    missing : {"raise", "fill"}, default="raise"
        What to do with missing or infinite entries of `X`: raise, or use the schema's fill values.
        Those of `y` raise. Whether fit raises is not covered by the guarantee.
    random_state : int, SeedSequence, RandomState, Generator or None, default=None
        Seed of the splits only. Splits carry no private information.
    noise_seed : int, SeedSequence or None, default=None
        Seed of the privacy noise. None draws it from the operating system's entropy; a fixed
        value is for experiments, is flagged in the ledger and is not private in deployment.
    n_jobs : int or None, default=None
        Number of threads that grow trees and predict. It never changes the result.

    Attributes
    ----------
    schema_ : FeatureSchema
        The public facts in use.
    estimators_ : list of ReleasedTree
        The released trees; the value of a leaf is in the unit of the target.
    guarantee_ : Guarantee
        What the whole fit satisfies.
    ledger_ : Ledger
        What was released and how it adds up.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Column names, when fitted on a DataFrame.

    References
    ----------
    Lebeda, Erb, Cebere and Bellet. Lumberjack: Better Differentially Private Random Forests through
    Heavy Hitter Detection in Trees. arXiv 2605.22756, 2026: the trees. It knows no numeric targets.

    Examples
    --------
    >>> import numpy as np
    >>> from lumberjack import LumberjackRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(5000, 2))
    >>> forest = LumberjackRegressor(epsilon=2, bounds=(0, 1), target_bounds=(0, 10)).fit(X, 10 * X[:, 0])
    >>> print(forest.guarantee_)
    (2, 1e-06)-DP, add or remove one record
    """

    display_name: ClassVar[str] = "Lumberjack regression"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateForest._parameter_constraints,
        "structure_share": [Interval(Real, 0, 1, closed="neither")],
        "accounting": [StrOptions({"safe", "tight"})],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        target_bounds: tuple[float, float] | None = None,
        n_estimators: int = 30,
        max_depth: int = 100,
        structure_share: float = 0.75,
        accounting: Literal["safe", "tight"] = "safe",
        schema: FeatureSchema | None = None,
        bounds: Any = None,
        categories: Mapping[Any, Any] | None = None,
        missing: Literal["raise", "fill"] = "raise",
        random_state: Any = None,
        noise_seed: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.target_bounds = target_bounds
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.structure_share = structure_share
        self.accounting = accounting
        self.schema = schema
        self.bounds = bounds
        self.categories = categories
        self.missing = missing
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.n_jobs = n_jobs

    def privacy_card(self) -> PrivacyCard:
        """Return what this estimator claims about privacy; it need not be fitted."""
        source = TIGHT_THEOREM if self.accounting == "tight" else SAFE_THEOREM
        return self._card(self.accounting, source)

    def _calibrate(self, schema: FeatureSchema) -> tuple[Ledger, ForestNoise]:
        n_trees = int(self.n_estimators)
        count = n_trees * get_n_queries_per_record(self.max_depth)
        structure = Structure("structure", count, self.structure_share)
        sums = Group("sums", n_trees, 1.0 - self.structure_share)
        return calibrate_together(self.epsilon, self.delta, self.accounting, structure, [sums])

    def _get_training_rows(self, rows: CodedRows, guide: Guide | None) -> TrainingRows:
        # To the builder all records are of one class.
        facts, n_dropped = rows.schema, int(self.drop_first_category)
        public = PublicFacts(1, facts.n_categories, facts.lower, facts.upper, n_dropped)
        labels = np.zeros(len(rows.labels), dtype=np.int8)
        return TrainingRows(rank_table(rows.columns), labels, public, NO_GUIDE, SplitRule())

    def _answer_leaves(
        self,
        grown: CountedTree,
        rows: CodedRows,
        noise: ForestNoise,
        generator: np.random.Generator,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        assert rows.schema.target_bounds is not None
        lower, upper = rows.schema.target_bounds
        scale = noise.scales["sums"]
        sums = sum_shares(grown.leaf_of_row, rows.labels, len(grown.feature))
        sums = sums[grown.children_left < 0]
        # Whole numbers of steps, whose noise lies on the same grid.
        steps = np.rint(sums / RESOLUTION).astype(np.int64)
        released = RESOLUTION * add_noise_to_counts(steps, scale / RESOLUTION, generator)
        means = lower + (upper - lower) * mean_shares(released, scale)
        return released, means[:, np.newaxis].clip(lower, upper)
