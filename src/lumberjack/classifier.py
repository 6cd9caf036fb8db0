"""The estimators: LumberjackClassifier, the paper's forest, and GuidedLumberjackClassifier, ours.

Each says which budget buys which noise and what a leaf releases. The mathematics of privacy is in
:mod:`lumberjack.accounting`, what the forests share in :mod:`lumberjack.forest`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lumberjack.accounting import (
    Group,
    Guarantee,
    JointNoise,
    Ledger,
    PrivacyCard,
    Release,
    Structure,
    calibrate_joint,
    calibrate_separately,
    get_n_queries_per_record,
)
from lumberjack.accounting.tight import calibrate_tight
from lumberjack.forest import ForestClassifier, ForestNoise, GrownTree, TrainingRows, check_real
from lumberjack.guide import Guide, release_guide
from lumberjack.leaves import class_shares, release_counts, release_labels
from lumberjack.schema import FeatureSchema
from lumberjack.stacking import add_left_out_shares, predict_stacked, release_stack

_SAFE_THEOREM = "adaptive Gaussian composition and a union bound over empty queries"
_TIGHT_THEOREM = "backward recursion over the strongest adaptive adversary, rounded up"


class LumberjackClassifier(ForestClassifier):
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
    structure_fraction : float, default=0.75
        Share of the budget that goes to the trees' structure; the rest goes to the leaves.
    leaf_mechanism : {"exponential", "gaussian"}, default="exponential"
        Release a label per leaf and take the majority vote of trees, or release noisy class
        counts and average the class shares.
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
    drop_first_category : bool, default=True
        Whether the first category of each feature is no candidate for a split, as in the paper's
        one-hot coding with k - 1 columns.
    missing : {"raise", "fill"}, default="raise"
        What to do with missing or infinite entries: raise, or use the schema's fill values. Whether
        fit raises is the data holder's own check and is not covered by the guarantee.
    unknown_labels : {"raise", "drop"}, default="raise"
        What to do with rows whose label is not among the classes.
    random_state : int, RandomState, SeedSequence or None, default=None
        Seed of the splits only. Splits carry no private information.
    noise_seed : int, SeedSequence or None, default=None
        Seed of the privacy noise. None draws it from the operating system's entropy; a fixed
        value is for experiments, is flagged in the ledger and is not private in deployment.
    n_jobs : int or None, default=None
        Number of threads that grow trees. It never changes the result.

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

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        n_estimators: int = 30,
        max_depth: int = 100,
        structure_fraction: float = 0.75,
        leaf_mechanism: str = "exponential",
        accounting: str = "safe",
        schema: FeatureSchema | None = None,
        bounds: Any = None,
        categories: Mapping[Any, Any] | None = None,
        classes: ArrayLike | None = None,
        drop_first_category: bool = True,
        missing: str = "raise",
        unknown_labels: str = "raise",
        random_state: Any = None,
        noise_seed: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.structure_fraction = structure_fraction
        self.leaf_mechanism = leaf_mechanism
        self.accounting = accounting
        self.schema = schema
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.drop_first_category = drop_first_category
        self.missing = missing
        self.unknown_labels = unknown_labels
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.n_jobs = n_jobs

    def privacy_card(self) -> PrivacyCard:
        """Return what this estimator claims about privacy; it need not be fitted.

        Returns
        -------
        PrivacyCard
        """
        if self.accounting == "paper":
            source = "Theorem 6 and Lemma 9 with basic composition (Lemma 10)"
            concerns = [
                "Theorem 6 is proved for queries fixed in advance; for adaptive ones in general it is a "
                "little too small. No search of a tree was found to exceed it, and at the paper's own "
                "settings no adversary does; accounting='safe' is proved for any order."
            ]
        else:
            source = _TIGHT_THEOREM if self.accounting == "tight" else _SAFE_THEOREM
            concerns = []
        return PrivacyCard(
            method=self.display_name,
            mode=self.accounting,
            claimed=Guarantee(self.epsilon, self.delta),
            source=source,
            status="holds",
            concerns=(*concerns, *_shared_concerns(self)),
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("structure_fraction", self.structure_fraction, 0, 1)

    def _own_choices(self) -> tuple[tuple[str, tuple[Any, ...]], ...]:
        return (
            ("leaf_mechanism", ("exponential", "gaussian")),
            ("accounting", ("safe", "paper", "tight")),
        )

    def _calibrate(self, schema: FeatureSchema) -> tuple[Ledger, ForestNoise]:
        """Return the ledger and the noise of all releases."""
        structure = _get_structure(self.n_estimators, self.max_depth, self.structure_fraction)
        leaves = Group(
            "leaves",
            self.n_estimators,
            1.0 - self.structure_fraction,
            mechanism=self.leaf_mechanism,  # type: ignore[arg-type]
        )
        if self.accounting == "tight":
            noise = calibrate_tight(self.epsilon, self.delta, structure, [leaves])
            return _get_ledger(self, noise, _TIGHT_THEOREM), ForestNoise.of(noise)
        if self.accounting == "safe" and not leaves.is_vote:
            noise = calibrate_joint(self.epsilon, self.delta, structure, [leaves])
            return _get_ledger(self, noise, _SAFE_THEOREM), ForestNoise.of(noise)
        is_paper = self.accounting == "paper"
        fraction = self.structure_fraction
        own = Guarantee(fraction * self.epsilon, fraction * self.delta)
        guarantees = own, Guarantee(self.epsilon - own.epsilon, self.delta - own.delta)
        noise = calibrate_separately(structure, [leaves], guarantees, is_paper=is_paper)
        theorem = "Theorem 6" if is_paper else _SAFE_THEOREM
        return _get_ledger(self, noise, theorem, guarantees), ForestNoise.of(noise)

    def _release_leaves(
        self, counts: NDArray[np.int64], scale: float, generator: np.random.Generator
    ) -> NDArray[np.float64]:
        if self.leaf_mechanism == "exponential":
            return release_labels(counts, scale, generator)
        return release_counts(counts, scale, generator)

    def _score_leaves(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        return released if self.leaf_mechanism == "exponential" else class_shares(released)


class GuidedLumberjackClassifier(ForestClassifier):
    """Lumberjack with joint accounting, a soft vote, guided splits and stacking.

    The guarantee is of the same kind as that of :class:`LumberjackClassifier`, the accuracy at the same budget
    higher. Four groups of queries compose as one Gaussian-type release: histograms of each feature
    by class (the guide), the threshold queries of the trees' structure, the class counts of the leaves, and
    two sums that fit a logistic model over the forest and the guide's evidence (stacking). Splits are
    functions of the released guide and of coins.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of the whole fit; positive and finite.
    delta : float, default=1e-6
        Failure probability of the whole fit, in (0, 1).
    n_estimators : int, default=20
        Number of trees.
    max_depth : int, default=63
        Number of levels that are searched for heavy nodes.
    structure_share, guide_share, leaf_share, stack_share : float, default=0.45, 0.28, 0.22, 0.05
        Shares of the squared Gaussian parameter of the whole fit (of epsilon and delta under
        ``accounting="separate"``); they add up to 1.
        Shares of what is not released are not used (and may be 0): the others are scaled up.
    accounting : {"safe", "tight", "separate"}, default="safe"
        "safe" is the closed form for adaptive queries; "tight" follows the strongest adaptive adversary
        against yes/no answers, which takes seconds and saves about a tenth of the noise; "separate" gives
        each group its own guarantee and adds them up (Lemma 10).
    vote : {"soft", "hard"}, default="soft"
        Average the class shares of the leaves, or the votes for the largest released count.
    is_guided : bool, default=True
        Whether splits follow the guide; otherwise they are uniform.
    is_stacked : bool, default=True
        Whether a logistic model weighs the forest against the evidence of single features; otherwise the
        mean of the trees decides. The guide is released if splits or stacking need it.
    n_candidates : int, default=3
        Random cuts that each feature tries at a node.
    sharpness : float, default=2.0
        A feature is drawn with probability proportional to its Gini gain to this power.
    exploration : float, default=0.1
        Probability of drawing the feature uniformly instead, in [0, 1].
    path_weight : float, default=0.5
        How far what a path says of the classes through other features weighs at a node, from 0
        (not at all) to 1 (as if features were independent given the class).
    schema, bounds, categories, classes, missing, unknown_labels, random_state, noise_seed, n_jobs
        As for :class:`LumberjackClassifier`.
    drop_first_category : bool, default=False
        Whether the first category of each feature is no candidate for a uniform split. Guided splits cut
        categories in the order of their released class shares instead.

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
    guide_ : Guide or None
        The released histograms.
    stack_weights_ : ndarray of shape (n_classes + n_features,) or None
        Weights of the logistic model: intercept contrasts, forest, features.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Column names, when fitted on a DataFrame.

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

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        n_estimators: int = 20,
        max_depth: int = 63,
        structure_share: float = 0.45,
        guide_share: float = 0.28,
        leaf_share: float = 0.22,
        stack_share: float = 0.05,
        accounting: str = "safe",
        vote: str = "soft",
        is_guided: bool = True,
        is_stacked: bool = True,
        n_candidates: int = 3,
        sharpness: float = 2.0,
        exploration: float = 0.1,
        path_weight: float = 0.5,
        schema: FeatureSchema | None = None,
        bounds: Any = None,
        categories: Mapping[Any, Any] | None = None,
        classes: ArrayLike | None = None,
        drop_first_category: bool = False,
        missing: str = "raise",
        unknown_labels: str = "raise",
        random_state: Any = None,
        noise_seed: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.structure_share = structure_share
        self.guide_share = guide_share
        self.leaf_share = leaf_share
        self.stack_share = stack_share
        self.accounting = accounting
        self.vote = vote
        self.is_guided = is_guided
        self.is_stacked = is_stacked
        self.n_candidates = n_candidates
        self.sharpness = sharpness
        self.exploration = exploration
        self.path_weight = path_weight
        self.schema = schema
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.drop_first_category = drop_first_category
        self.missing = missing
        self.unknown_labels = unknown_labels
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.n_jobs = n_jobs

    @property
    def _has_guide(self) -> bool:
        """Whether splits or stacking need the guide."""
        return bool(self.is_guided or self.is_stacked)

    def privacy_card(self) -> PrivacyCard:
        """Return what this estimator claims about privacy; it need not be fitted.

        Returns
        -------
        PrivacyCard
        """
        source = {
            "safe": _SAFE_THEOREM,
            "tight": _TIGHT_THEOREM,
            "separate": f"{_SAFE_THEOREM} for the structure, Lemma 9 for the other groups, Lemma 10",
        }[self.accounting]
        return PrivacyCard(
            method=self.display_name,
            mode=self.accounting,
            claimed=Guarantee(self.epsilon, self.delta),
            source=source,
            status="holds",
            concerns=(
                "The default settings were chosen on validation rows of benchmark data (Adult, ACS), "
                "without privacy cost.",
                *_shared_concerns(self),
            ),
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        names = ("structure_share", "guide_share", "leaf_share", "stack_share")
        shares = [getattr(self, name) for name in names]
        is_used = (True, self._has_guide, True, self.is_stacked)
        for name, share, used in zip(names, shares, is_used, strict=True):
            if used or share != 0:
                check_real(name, share, 0, 1)
        if abs(sum(shares) - 1.0) > 1e-9:
            raise ValueError(
                f"{', '.join(names[:-1])} and {names[-1]} must add up to 1, got "
                f"{' + '.join(str(share) for share in shares)}."
            )
        if not isinstance(self.n_candidates, int | np.integer) or self.n_candidates < 1:
            raise ValueError(
                f"n_candidates must be an integer of at least 1, got {self.n_candidates!r}."
            )
        check_real("sharpness", self.sharpness, 0, np.inf)
        for name in ("exploration", "path_weight"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise ValueError(f"{name} must lie in [0, 1], got {value!r}.")

    def _own_choices(self) -> tuple[tuple[str, tuple[Any, ...]], ...]:
        return (
            ("accounting", ("safe", "tight", "separate")),
            ("vote", ("soft", "hard")),
            ("is_guided", (True, False)),
            ("is_stacked", (True, False)),
        )

    def _calibrate(self, schema: FeatureSchema) -> tuple[Ledger, ForestNoise]:
        # The last digits of sums of shares, and of the noise, depend on this order.
        structure = _get_structure(self.n_estimators, self.max_depth, self.structure_share)
        others = [Group("leaves", self.n_estimators, self.leaf_share)]
        if self._has_guide:
            others.append(Group("guide", schema.n_features, self.guide_share, is_first=True))
        if self.is_stacked:
            others.append(Group("stack", 1, self.stack_share))
        shares = np.array([group.share for group in (structure, *others)])
        shares /= shares.sum()
        structure = replace(structure, share=float(shares[0]))
        others = [
            replace(group, share=share)
            for group, share in zip(others, shares[1:].tolist(), strict=True)
        ]
        if self.accounting == "separate":
            guarantees = [
                Guarantee(share * self.epsilon, share * self.delta) for share in shares.tolist()
            ]
            noise = calibrate_separately(structure, others, guarantees)
            return _get_ledger(self, noise, _SAFE_THEOREM, guarantees), ForestNoise.of(noise)
        calibrate = calibrate_tight if self.accounting == "tight" else calibrate_joint
        noise = calibrate(self.epsilon, self.delta, structure, others)
        return _get_ledger(self, noise, self.privacy_card().source), ForestNoise.of(noise)

    def _release_guide(
        self,
        values: NDArray[np.float64],
        labels: NDArray[np.int64],
        schema: FeatureSchema,
        noise: ForestNoise,
        generator: np.random.Generator,
    ) -> Guide | None:
        if not self._has_guide:
            return None
        return release_guide(values, labels, schema, noise.scales["guide"], generator)

    def _get_training_rows(
        self,
        values: NDArray[np.float64],
        labels: NDArray[np.int64],
        schema: FeatureSchema,
        guide: Guide | None,
    ) -> TrainingRows:
        if guide is None or not self.is_guided:
            return super()._get_training_rows(values, labels, schema, guide)
        return TrainingRows(
            guide.place(values),
            labels,
            schema.n_classes,
            np.zeros(schema.n_features, dtype=np.int64),
            guide.lower,
            guide.upper,
            (
                guide.cumulative,
                guide.first,
                guide.n_bins,
                guide.lower,
                guide.upper,
                guide.is_category,
                int(self.n_candidates),
                float(self.sharpness),
                float(self.exploration),
                float(self.path_weight),
            ),
        )

    def _release_rest(
        self,
        rows: TrainingRows,
        guide: Guide | None,
        grown: list[GrownTree],
        noise: ForestNoise,
        generator: np.random.Generator,
    ) -> dict[str, Any]:
        weights = None
        if guide is not None and self.is_stacked:
            total = np.zeros((len(rows.labels), rows.n_classes))
            for one in grown:
                add_left_out_shares(
                    total, one.released, one.leaf_of_row, rows.labels, self.vote == "hard"
                )
            weights = release_stack(
                # Guided trees are grown on placed rows already.
                rows.values if self.is_guided else guide.place(rows.values),
                rows.labels,
                self._soften(total / len(grown)),
                guide,
                noise.scales["stack"],
                generator,
            )
        return {"guide_": guide, "stack_weights_": weights}

    def _as_trees_see(
        self, values: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        if not self.is_guided:
            return super()._as_trees_see(values)
        return self.guide_.place(values), np.zeros(values.shape[1], dtype=np.bool_)

    def _get_probabilities(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        seen, is_categorical = self._as_trees_see(values)
        shares = self._get_mean_scores(seen, is_categorical)
        if self.guide_ is None or self.stack_weights_ is None:
            return shares
        placed = seen if self.is_guided else self.guide_.place(values)
        return predict_stacked(placed, self._soften(shares), self.guide_, self.stack_weights_)

    def _soften(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Move vote shares halfway to uniform: trees that agree are no near-certainty."""
        return shares if self.vote == "soft" else (shares + 1.0 / shares.shape[1]) / 2.0

    def _release_leaves(
        self, counts: NDArray[np.int64], scale: float, generator: np.random.Generator
    ) -> NDArray[np.float64]:
        return release_counts(counts, scale, generator)

    def _score_leaves(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.vote == "soft":
            return class_shares(released)
        return np.eye(released.shape[1])[released.argmax(axis=1)]


def _shared_concerns(forest: ForestClassifier) -> tuple[str, ...]:
    concerns = [
        "Noise is sampled in floating point, from a generator that is not cryptographic (PCG64).",
        "Each fit spends its budget again; a person with several records is protected less.",
    ]
    if forest.noise_seed is not None:
        concerns.append("Seeded noise: not private in deployment.")
    if hasattr(forest, "ledger_"):
        concerns += [caveat for caveat in forest.ledger_.caveats if "read off" in caveat]
    elif forest.schema is None:
        concerns.append("Bounds, categories and classes that are not given are read off the rows.")
    return tuple(concerns)


_DESCRIPTIONS = {
    "structure": (
        "Gaussian sparse threshold (Algorithm 2) in Algorithm 1",
        "one record changes each of its counts by 1",
    ),
    "leaves": (
        "{} mechanism on class counts",
        "one record changes one class count of one leaf per tree by 1",
    ),
    "guide": (
        "{} mechanism on one class-by-value histogram per feature",
        "one record changes one cell per feature by 1",
    ),
    "stack": (
        "{} mechanism on gradient and Hessian of a clipped logistic model",
        "one record changes the scaled sums by 1 in L2 norm",
    ),
}
"""Mechanism and sensitivity of each group that a forest can release."""


def _get_structure(n_trees: int, max_depth: int, share: float) -> Structure:
    return Structure("structure", n_trees * get_n_queries_per_record(max_depth), share)


def _get_ledger(
    forest: ForestClassifier,
    noise: JointNoise,
    theorem: str,
    guarantees: Sequence[Guarantee] | None = None,
) -> Ledger:
    """Return the ledger of a forest's releases, in their order.

    Where groups have guarantees of their own, the theorem is that of the structure.
    """
    groups = (noise.structure, *noise.others)
    owns: Sequence[Guarantee | None] = guarantees or (None,) * len(groups)
    releases = []
    for group, own in zip(groups, owns, strict=True):
        mechanism, sensitivity = _DESCRIPTIONS[group.name]
        is_covered = own is None or group is noise.structure
        source = theorem if is_covered else "Lemma 9 and Lemma 11"
        mechanism = mechanism.format(group.mechanism)
        releases.append(Release(group, mechanism, source, sensitivity, own))
    releases.sort(key=lambda release: not release.group.is_first)
    total = Guarantee(forest.epsilon, forest.delta)
    return Ledger(tuple(releases), forest.accounting, total)
