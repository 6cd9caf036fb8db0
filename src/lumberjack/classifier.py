"""LumberjackClassifier, the paper's forest: which budget buys which noise, and what a leaf releases.

The mathematics of privacy is in :mod:`lumberjack.accounting`, what the forests share in
:mod:`lumberjack.forest`.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from lumberjack.accounting import (
    Group,
    Guarantee,
    Ledger,
    PrivacyCard,
    Structure,
    calibrate_separately,
    get_n_queries_per_record,
)
from lumberjack.forest import PrivateForestClassifier
from lumberjack.leaves import class_shares, release_counts, release_labels
from lumberjack.noise import Noise
from lumberjack.releases import (
    SAFE_THEOREM,
    TIGHT_THEOREM,
    ForestNoise,
    calibrate_together,
    list_releases,
)
from lumberjack.schema import FeatureSchema


class LumberjackClassifier(PrivateForestClassifier):
    """Differentially private random forest of the Lumberjack paper (arXiv 2605.22756).

    Random trees are grown over public bounds and categories, cut back by a private
    heavy-hitter search (Algorithms 1 and 2), and their leaves labelled by a private
    mechanism. Neighbouring data sets differ by one record, added or removed.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of the whole fit; positive and finite.
    delta : float, default=1e-6
        Failure probability of the whole fit, in (0, 1); choose it well below one over the number
        of records.
    n_estimators : int, default=30
        Number of trees.
    max_depth : int, default=100
        Number of levels that are searched for heavy nodes. One record is part of
        ``1 + floor(log2(max_depth))`` queries per tree, so 64 to 127 cost the same.
    structure_share : float, default=0.75
        Share of the budget that goes to the trees' structure; the rest goes to the leaves.
    leaves : {"labels", "noisy_counts"}, default="labels"
        Release a label per leaf (exponential mechanism) and take the majority vote of trees, or
        release noisy class counts (Gaussian mechanism) and average the class shares.
    accounting : {"safe", "paper", "tight"}, default="safe"
        "safe" is proved for adaptively chosen queries; "paper" is Theorem 6, for reproducing the
        paper's numbers; "tight" follows the strongest adaptive adversary against structure and
        leaves together, which takes seconds and saves a quarter of the noise.
    schema : FeatureSchema or None, default=None
        Public facts about the table. If None, `bounds`, `categories` and `classes` are used.
    bounds : tuple (lower, upper) or mapping of feature to (lower, upper), default=None
        Public bounds of the numeric features: one pair of numbers for all, or a mapping keyed by
        column name or position. A feature with bounds and without categories is numeric, whatever
        its column holds. Read off the rows, with a :class:`PrivacyLeakWarning`, where missing.
    categories : mapping of feature to list, default=None
        Public categories of the categorical features, keyed by column name or position.
    classes : array-like of shape (n_classes,), default=None
        Public class labels, in any order. Read off `y`, with a :class:`PrivacyLeakWarning`, if None.
    missing : {"raise", "fill"}, default="raise"
        What to do with missing or infinite entries: raise, or use the schema's fill values. Whether
        fit raises is the data holder's own check and is not covered by the guarantee.
    unknown_labels : {"raise", "drop"}, default="raise"
        What to do with rows whose label is not among the classes.
    noise : {"continuous", "discrete"}, default="continuous"
        Gaussian noise in double precision, released on a grid, or the discrete Gaussian on whole
        numbers, drawn without rounding errors and accounted for as such (about 0.1 % more noise).
    random_state : int, RandomState, SeedSequence or None, default=None
        Seed of the splits only. Splits carry no private information.
    noise_seed : int, SeedSequence or None, default=None
        Seed of the privacy noise. None draws all of it from the operating system's cryptographic
        source; a fixed value is for experiments, is flagged in the ledger and is not private in
        deployment.
    n_jobs : int or None, default=None
        Number of threads that grow trees and predict. It never changes the result.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    schema_ : FeatureSchema
        The public facts in use.
    estimators_ : list of ReleasedTree
        The released trees.
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
    Heavy Hitter Detection in Trees. arXiv 2605.22756, 2026.

    Examples
    --------
    >>> import numpy as np
    >>> from lumberjack import LumberjackClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(5000, 2))
    >>> y = (X[:, 0] > 0.5).astype(int)
    >>> forest = LumberjackClassifier(epsilon=2, bounds=(0, 1), classes=[0, 1]).fit(X, y)
    >>> print(forest.guarantee_)
    (2, 1e-06)-DP, add or remove one record
    """

    display_name: ClassVar[str] = "Lumberjack"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateForestClassifier._parameter_constraints,
        "structure_share": [Interval(Real, 0, 1, closed="neither")],
        "leaves": [StrOptions({"labels", "noisy_counts"})],
        "accounting": [StrOptions({"safe", "paper", "tight"})],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        n_estimators: int = 30,
        max_depth: int = 100,
        structure_share: float = 0.75,
        leaves: Literal["labels", "noisy_counts"] = "labels",
        accounting: Literal["safe", "paper", "tight"] = "safe",
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
        self.structure_share = structure_share
        self.leaves = leaves
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

    def privacy_card(self) -> PrivacyCard:
        """Return what this estimator claims about privacy; it need not be fitted."""
        if self.accounting == "paper":
            source = "Theorem 6 and Lemma 9 with basic composition (Lemma 10)"
            concerns = [
                "Theorem 6 is proved for queries fixed in advance; for adaptive ones in general it is a "
                "little too small. No search of a tree was found to exceed it, and at the paper's own "
                "settings no adversary does; accounting='safe' is proved for any order."
            ]
        else:
            source = TIGHT_THEOREM if self.accounting == "tight" else SAFE_THEOREM
            concerns = []
        return PrivacyCard(
            method=self.display_name,
            mode=self.accounting,
            claimed=Guarantee(self.epsilon, self.delta),
            source=source,
            status="holds",
            concerns=(*concerns, *self._concerns()),
        )

    def _calibrate(self, schema: FeatureSchema) -> tuple[Ledger, ForestNoise]:
        """Return the ledger and the noise of all releases."""
        n_trees = int(self.n_estimators)
        count = n_trees * get_n_queries_per_record(self.max_depth)
        share = self.structure_share
        structure = Structure("structure", count, share, step=self._count_step)
        is_vote = self.leaves == "labels"
        mechanism: Literal["gaussian", "exponential"] = "exponential" if is_vote else "gaussian"
        leaves = Group("leaves", n_trees, 1.0 - share, mechanism=mechanism, step=self._count_step)
        total = Guarantee(self.epsilon, self.delta)
        if self.accounting == "tight" or (self.accounting == "safe" and not is_vote):
            return calibrate_together(
                self.epsilon, self.delta, self.accounting, structure, [leaves]
            )
        is_paper = self.accounting == "paper"
        own = Guarantee(share * self.epsilon, share * self.delta)
        rest = Guarantee(self.epsilon - own.epsilon, self.delta - own.delta)
        guarantees = (own, rest)
        noise = calibrate_separately(structure, [leaves], guarantees, is_paper=is_paper)
        theorem = "Theorem 6" if is_paper else SAFE_THEOREM
        ledger = list_releases(noise, theorem, self.accounting, total, guarantees)
        return ledger, ForestNoise.of(noise)

    def _release_leaves(
        self, counts: NDArray[np.int64], scale: float, generator: np.random.Generator
    ) -> NDArray[np.float64]:
        if self.leaves == "labels":
            return release_labels(counts, scale, generator, noise=self.noise)
        return release_counts(counts, scale, generator, noise=self.noise)

    def _score_leaves(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        return released if self.leaves == "labels" else class_shares(released)
