"""The estimators: LumberjackClassifier, the paper's forest, and GuidedLumberjackClassifier, ours.

Each says which budget buys which noise and what a leaf releases. The mathematics of privacy is in
:mod:`lumberjack.accounting`, what the forests share in :mod:`lumberjack.forest`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lumberjack.accounting import (
    Guarantee,
    Ledger,
    PrivacyCard,
    Release,
    calibrate_joint,
    calibrate_paper,
    calibrate_safe,
    get_touches_per_tree,
    zcdp,
)
from lumberjack.forest import ForestClassifier, ForestNoise, check_real
from lumberjack.leaves import class_shares, release_counts, release_labels
from lumberjack.schema import FeatureSchema

_SAFE_THEOREM = "adaptive Gaussian composition and a union bound over empty queries"


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
    accounting : {"safe", "paper"}, default="safe"
        "safe" is proved for adaptively chosen queries; "paper" is Theorem 6, for reproducing the
        paper's numbers.
    schema : FeatureSchema or None, default=None
        Public facts about the table. If None, `bounds`, `categories` and `classes` are used.
    bounds : tuple (lower, upper) or mapping of feature to (lower, upper), default=None
        Public bounds of the numeric features, as scalars or arrays of shape (n_features,).
        Read off the rows, with a :class:`PrivacyLeakWarning`, where they are missing.
    categories : mapping of feature to list, default=None
        Public categories of the categorical features, keyed by column name or position.
    classes : array-like of shape (n_classes,), default=None
        Public class labels. Read off `y`, with a :class:`PrivacyLeakWarning`, if None.
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
        Class labels.
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
                "Theorem 6 is exact for queries fixed in advance; for adaptive ones it is a little "
                "too small in general, though not at the paper's own settings. accounting='safe' is "
                "proved for any order."
            ]
        else:
            source = "adaptive Gaussian composition plus the chance of any yes from an empty query"
            concerns = []
        concerns.append("Noise is sampled in floating point.")
        if self.noise_seed is not None:
            concerns.append("Seeded noise: not private in deployment.")
        return PrivacyCard(
            method=self.display_name,
            mode=self.accounting,
            claimed=Guarantee(self.epsilon, self.delta),
            source=source,
            status="holds",
            concerns=tuple(concerns),
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("structure_fraction", self.structure_fraction, 0, 1)

    def _own_choices(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return (
            ("leaf_mechanism", ("exponential", "gaussian")),
            ("accounting", ("safe", "paper")),
        )

    def _calibrate(self) -> tuple[Ledger, ForestNoise]:
        """Return the ledger and the noise of all releases."""
        n_trees = self.n_estimators
        n_touches = n_trees * get_touches_per_tree(self.max_depth)
        total = Guarantee(self.epsilon, self.delta)
        if self.accounting == "safe" and self.leaf_mechanism == "gaussian":
            joint = calibrate_joint(
                self.epsilon,
                self.delta,
                structure_touches=n_touches,
                leaf_touches=n_trees,
                structure_share=self.structure_fraction,
                leaf_share=1.0 - self.structure_fraction,
            )
            releases = (
                _structure_release(n_touches, joint, _SAFE_THEOREM),
                _leaf_release("gaussian", n_trees, joint.sigma_leaf, _SAFE_THEOREM),
            )
            noise = ForestNoise(joint.sigma, joint.margin, joint.sigma_leaf)
            return Ledger(releases, "safe", total), noise
        epsilon_1 = self.structure_fraction * self.epsilon
        delta_1 = self.structure_fraction * self.delta
        calibrate, theorem = {
            "paper": (calibrate_paper, "Theorem 6"),
            "safe": (calibrate_safe, _SAFE_THEOREM),
        }[self.accounting]
        structure = calibrate(epsilon_1, delta_1, n_touches)
        epsilon_2, delta_2 = self.epsilon - epsilon_1, self.delta - delta_1
        rho_per_tree = zcdp.get_rho(epsilon_2, delta_2) / n_trees
        if self.leaf_mechanism == "exponential":
            leaf_scale = zcdp.get_gumbel_scale(rho_per_tree)
        else:
            leaf_scale = zcdp.get_gaussian_sigma(rho_per_tree)
        releases = (
            _structure_release(n_touches, structure, theorem, Guarantee(epsilon_1, delta_1)),
            _leaf_release(
                self.leaf_mechanism,
                n_trees,
                leaf_scale,
                "Lemma 9 and Lemma 11",
                Guarantee(epsilon_2, delta_2),
            ),
        )
        noise = ForestNoise(structure.sigma, structure.margin, leaf_scale)
        return Ledger(releases, self.accounting, total), noise

    def _release_leaves(
        self, counts: NDArray[np.int64], scale: float, generator: np.random.Generator
    ) -> NDArray[np.float64]:
        if self.leaf_mechanism == "exponential":
            return release_labels(counts, scale, generator)
        return class_shares(release_counts(counts, scale, generator))


def _structure_release(
    n_touches: int, noise: Any, theorem: str, guarantee: Guarantee | None = None
) -> Release:
    return Release(
        name="structure",
        mechanism="Gaussian sparse threshold (Algorithm 2) in Algorithm 1",
        theorem=theorem,
        sensitivity="one record changes each of its counts by 1",
        n_touches=n_touches,
        parameters={"sigma": noise.sigma, "margin": noise.margin, "tau": 1.0 + noise.margin},
        guarantee=guarantee,
    )


def _leaf_release(
    mechanism: str, n_trees: int, scale: float, theorem: str, guarantee: Guarantee | None = None
) -> Release:
    return Release(
        name="leaves",
        mechanism=f"{mechanism} mechanism on class counts",
        theorem=theorem,
        sensitivity="one record changes one class count of one leaf per tree by 1",
        n_touches=n_trees,
        parameters={"gumbel_scale" if mechanism == "exponential" else "sigma_leaf": scale},
        guarantee=guarantee,
    )
