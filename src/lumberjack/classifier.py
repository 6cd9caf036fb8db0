"""Scikit-learn estimators: LumberjackClassifier, the paper's forest.

They resolve the public facts, calibrate the noise, grow trees and vote. The mathematics of privacy
is in :mod:`lumberjack.accounting`, the growing in :mod:`lumberjack.growth`.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

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
from lumberjack.growth import NO_GUIDE, grow_tree
from lumberjack.leaves import class_shares, release_counts, release_labels
from lumberjack.schema import (
    UNSEEN,
    CategoricalFeature,
    EncodedTable,
    Feature,
    FeatureSchema,
    NumericFeature,
)
from lumberjack.tree import ReleasedTree


class PrivacyLeakWarning(RuntimeWarning):
    """Something was read off the rows that the guarantee takes to be public."""


class DataOutsideSchemaWarning(UserWarning):
    """Entries were clipped, treated as unseen or filled; meant for the data holder only."""


def _seed_sequence(seed: Any) -> np.random.SeedSequence:
    """Turn what scikit-learn accepts as a seed, or a SeedSequence, into a SeedSequence."""
    if isinstance(seed, np.random.SeedSequence):
        # A copy, so that spawning from it twice gives the same children.
        return np.random.SeedSequence(
            seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size
        )
    if isinstance(seed, np.random.RandomState):
        return np.random.SeedSequence(seed.randint(2**32, size=4, dtype=np.uint32).tolist())
    if isinstance(seed, np.random.Generator):
        return np.random.SeedSequence(seed.integers(2**32, size=4).tolist())
    if seed is None:
        return np.random.SeedSequence()
    if isinstance(seed, int | np.integer) and seed >= 0:
        return np.random.SeedSequence(int(seed))
    raise ValueError(f"a seed must be None, a non-negative integer or a generator, got {seed!r}.")


class LumberjackClassifier(ClassifierMixin, BaseEstimator):
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
    is_private: ClassVar[bool] = True

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

    def fit(self, X: Any, y: ArrayLike) -> LumberjackClassifier:
        """Fit the forest, spending the whole budget once.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_features)
            Training rows, in the schema's own values.
        y : array-like of shape (n_rows,)
            Class labels.

        Returns
        -------
        LumberjackClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            For parameters out of range, rows that do not fit the schema, missing entries or unknown
            labels (unless asked to route them), or an empty table.
        """
        self._check_parameters()
        caveats = self._resolve_schema(X, y)
        schema = self.schema_
        table, labels = self._encode_rows(X, y)
        self._announce_unusual(table, labels)
        known = labels != UNSEEN
        values = table.values
        if not known.all():
            values = np.asfortranarray(values[known])
            labels = labels[known]

        ledger, structure, leaf_scale = self._calibrate()
        if self.noise_seed is not None:
            caveats.append("the noise is seeded: not private in deployment")
        n_trees = self.n_estimators
        tree_keys = _seed_sequence(self.random_state).generate_state(n_trees, dtype=np.uint64)
        noise = _seed_sequence(self.noise_seed).spawn(n_trees)
        self.estimators_ = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(self._grow)(values, labels, tree_key, tree_noise, structure, leaf_scale)
            for tree_key, tree_noise in zip(tree_keys, noise, strict=True)
        )
        self.ledger_ = Ledger(ledger.releases, ledger.accounting, ledger.total, tuple(caveats))
        self.guarantee_ = self.ledger_.total
        self.classes_ = np.array(schema.classes)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Average the released class scores over trees.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_features)
            Rows, in the schema's own values.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_classes)
            Vote shares (exponential leaves) or mean class shares (Gaussian leaves).
        """
        values = self._encode_queries(X)
        is_categorical = self.schema_.n_categories > 0
        total = np.zeros((len(values), self.schema_.n_classes))
        for tree in self.estimators_:
            total += tree.scores[tree.apply(values, is_categorical)]
        return total / len(self.estimators_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class with the largest score; ties go to the first class.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_features)
            Rows, in the schema's own values.

        Returns
        -------
        ndarray of shape (n_rows,)
            Class labels.
        """
        winners = self.predict_proba(X).argmax(axis=1)
        return self.classes_[winners]

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Return the leaf that each row ends in, for every tree.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_features)
            Rows, in the schema's own values.

        Returns
        -------
        ndarray of int64, shape (n_rows, n_estimators)
            Node numbers.
        """
        values = self._encode_queries(X)
        is_categorical = self.schema_.n_categories > 0
        return np.column_stack([tree.apply(values, is_categorical) for tree in self.estimators_])

    def fit_report(self) -> dict[str, float]:
        """Return figures about the released forest, all functions of what was released.

        Returns
        -------
        dict of str to float
            Mean nodes and leaves per tree, and mean depth.
        """
        check_is_fitted(self)
        trees = self.estimators_
        return {
            "mean_nodes_per_tree": float(np.mean([tree.n_nodes for tree in trees])),
            "mean_leaves_per_tree": float(np.mean([tree.n_leaves for tree in trees])),
            "mean_tree_depth": float(np.mean([tree.depth for tree in trees])),
        }

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

    # What follows is shared with the guided forest.

    def _check_parameters(self) -> None:
        _check_real("epsilon", self.epsilon, 0, math.inf)
        _check_real("delta", self.delta, 0, 1)
        _check_real("structure_fraction", self.structure_fraction, 0, 1)
        for name in ("n_estimators", "max_depth"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.")
        for name, allowed in (
            ("leaf_mechanism", ("exponential", "gaussian")),
            ("accounting", ("safe", "paper")),
            ("missing", ("raise", "fill")),
            ("unknown_labels", ("raise", "drop")),
        ):
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {value!r}.")

    def _calibrate(self) -> tuple[Ledger, Any, float]:
        """Return the ledger, the noise of the structure queries and the scale of the leaves."""
        n_touches = self.n_estimators * get_touches_per_tree(self.max_depth)
        total = Guarantee(self.epsilon, self.delta)
        if self.accounting == "safe" and self.leaf_mechanism == "gaussian":
            noise = calibrate_joint(
                self.epsilon,
                self.delta,
                structure_touches=n_touches,
                leaf_touches=self.n_estimators,
                structure_share=self.structure_fraction,
                leaf_share=1.0 - self.structure_fraction,
            )
            releases = (
                _structure_release(n_touches, noise.sigma, noise.margin, "joint Gaussian release"),
                _leaf_release("gaussian", self.n_estimators, noise.sigma_leaf, "joint release"),
            )
            return Ledger(releases, "safe", total), noise, noise.sigma_leaf
        epsilon_1 = self.structure_fraction * self.epsilon
        delta_1 = self.structure_fraction * self.delta
        calibrate, theorem = {
            "paper": (calibrate_paper, "Theorem 6"),
            "safe": (calibrate_safe, "adaptive Gaussian composition"),
        }[self.accounting]
        structure = calibrate(epsilon_1, delta_1, n_touches)
        epsilon_2, delta_2 = self.epsilon - epsilon_1, self.delta - delta_1
        rho_per_tree = zcdp.get_rho(epsilon_2, delta_2) / self.n_estimators
        if self.leaf_mechanism == "exponential":
            leaf_scale = zcdp.get_gumbel_scale(rho_per_tree)
        else:
            leaf_scale = zcdp.get_gaussian_sigma(rho_per_tree)
        releases = (
            _structure_release(
                n_touches, structure.sigma, structure.margin, theorem, Guarantee(epsilon_1, delta_1)
            ),
            _leaf_release(
                self.leaf_mechanism,
                self.n_estimators,
                leaf_scale,
                "Lemma 9 and Lemma 11",
                Guarantee(epsilon_2, delta_2),
            ),
        )
        return Ledger(releases, self.accounting, total), structure, leaf_scale

    def _grow(
        self,
        values: NDArray[np.float64],
        labels: NDArray[np.int64],
        tree_key: np.uint64,
        tree_noise: np.random.SeedSequence,
        structure: Any,
        leaf_scale: float,
    ) -> ReleasedTree:
        schema = self.schema_
        generator = np.random.Generator(np.random.PCG64(tree_noise))
        feature, cut, left, counts = grow_tree(
            values,
            labels,
            schema.n_classes,
            schema.n_categories,
            schema.lower,
            schema.upper,
            int(self.drop_first_category),
            int(self.max_depth),
            structure.sigma,
            1.0 + structure.margin,
            0,
            tree_key,
            generator,
            True,
            np.empty(0, dtype=np.int64),
            NO_GUIDE,
        )
        is_leaf = left < 0
        scores = np.zeros(counts.shape)
        if self.leaf_mechanism == "exponential":
            scores[is_leaf] = release_labels(counts[is_leaf], leaf_scale, generator)
        else:
            scores[is_leaf] = class_shares(release_counts(counts[is_leaf], leaf_scale, generator))
        return ReleasedTree(feature, cut, left, scores)

    def _resolve_schema(self, X: Any, y: ArrayLike) -> list[str]:
        """Set `schema_` and the names scikit-learn expects; return what was read off the rows."""
        is_frame = hasattr(X, "columns") and hasattr(X, "iloc")
        if not is_frame:
            X = check_array(X, dtype=None, ensure_all_finite=False, estimator=self)
        elif len(X) == 0:
            raise ValueError("Found array with 0 sample(s): the table has no rows to fit.")
        names = list(X.columns) if is_frame else [f"x{j}" for j in range(X.shape[1])]
        leaks: list[str] = []
        if self.schema is not None:
            given = [k for k in ("bounds", "categories", "classes") if getattr(self, k) is not None]
            if given:
                raise ValueError(f"give either schema or {', '.join(given)}, not both.")
            if not isinstance(self.schema, FeatureSchema):
                raise ValueError(
                    f"schema must be a FeatureSchema, got {type(self.schema).__name__}."
                )
            self.schema_ = self.schema
        else:
            columns = [X[name] if is_frame else X[:, j] for j, name in enumerate(names)]
            features = _features_from(columns, names, self.bounds, self.categories, leaks)
            self.schema_ = FeatureSchema(
                tuple(features), self._resolve_classes(y, leaks), "<label>"
            )
        if self.schema_.n_classes < 2:
            raise ValueError(
                f"a classifier needs at least two classes, got one class: {list(self.schema_.classes)}."
            )
        self.n_features_in_ = len(names)
        if is_frame and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if leaks:
            warnings.warn(
                f"{' and '.join(leaks)} were read off the rows, which the guarantee does not cover. "
                "Give them as public facts (bounds, categories, classes or schema).",
                PrivacyLeakWarning,
                stacklevel=3,
            )
        return [f"{leak} were read off the rows: not covered by the guarantee" for leak in leaks]

    def _resolve_classes(self, y: ArrayLike, leaks: list[str]) -> tuple[Any, ...]:
        if self.classes is not None:
            return tuple(np.asarray(self.classes).tolist())
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None.")
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        leaks.append("classes")
        return tuple(np.unique(labels).tolist())

    def _encode_rows(self, X: Any, y: ArrayLike) -> tuple[EncodedTable, NDArray[np.int64]]:
        table = self.schema_.encode(X, missing=self.missing)  # type: ignore[arg-type]
        labels = self.schema_.encode_labels(
            column_or_1d(y, warn=True),
            unknown=self.unknown_labels,  # type: ignore[arg-type]
        )
        if len(labels) != len(table.values):
            raise ValueError(
                f"X and y have inconsistent numbers of rows: {len(table.values)} and {len(labels)}."
            )
        return table, labels

    def _announce_unusual(self, table: EncodedTable, labels: NDArray[np.int64]) -> None:
        found = [
            f"{count} entries {what}"
            for count, what in (
                (table.n_clipped, "clipped to their bounds"),
                (table.n_unseen, "with categories the schema does not list"),
                (table.n_filled, "filled"),
                (int((labels == UNSEEN).sum()), "dropped for their unknown label"),
            )
            if count
        ]
        if found:
            warnings.warn(
                f"training rows: {', '.join(found)}. For the data holder only: do not publish.",
                DataOutsideSchemaWarning,
                stacklevel=3,
            )

    def _encode_queries(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        is_frame = hasattr(X, "columns") and hasattr(X, "iloc")
        if not is_frame:
            X = check_array(X, dtype=None, ensure_all_finite=False, estimator=self)
            if X.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input."
                )
        return self.schema_.encode(X, missing=self.missing).values  # type: ignore[arg-type]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Noise of a sensible budget hides the small tables of generic checks.
        tags.classifier_tags.poor_score = True
        tags.input_tags.categorical = True
        return tags


def _check_real(name: str, value: Any, low: float, high: float) -> None:
    if (
        not isinstance(value, numbers.Real)
        or isinstance(value, bool)
        or not (low < float(value) < high)
    ):
        upper = "" if math.isinf(high) else f" and below {high:g}"
        raise ValueError(f"{name} must be a finite number above {low:g}{upper}, got {value!r}.")


def _structure_release(
    n_touches: int, sigma: float, margin: float, theorem: str, guarantee: Guarantee | None = None
) -> Release:
    return Release(
        name="structure",
        mechanism="Gaussian sparse threshold (Algorithm 2) in Algorithm 1",
        theorem=theorem,
        sensitivity="one record changes each of its counts by 1",
        n_touches=n_touches,
        parameters={"sigma": sigma, "margin": margin, "tau": 1.0 + margin},
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


def _features_from(
    columns: list[Any], names: list[Any], bounds: Any, categories: Any, leaks: list[str]
) -> list[Feature]:
    """Build features from public facts, reading off the rows only what is missing."""
    categories = dict(categories or {})
    by_position = {j: categories.pop(j) for j in range(len(names)) if j in categories}
    unknown = [key for key in categories if key not in names]
    if unknown:
        raise ValueError(f"categories name unknown features {unknown}; the table has {names}.")
    features: list[Feature] = []
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        listed = by_position.get(j, categories.get(name))
        values = np.asarray(column)
        if listed is None and hasattr(column, "cat"):
            listed = column.cat.categories.tolist()
            _note(leaks, "categories")
        elif listed is None and values.dtype.kind in "US":
            listed = np.unique(values).tolist()
            _note(leaks, "categories")
        elif listed is None and values.dtype.kind == "O":
            listed = _categories_of_objects(values, leaks)
        if listed is not None:
            features.append(CategoricalFeature(str(name), tuple(np.asarray(listed).tolist())))
            continue
        given = _bounds_of(bounds, j, name, len(names))
        if given is None:
            finite = np.asarray(values, dtype=np.float64)
            finite = finite[np.isfinite(finite)]
            given = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
            _note(leaks, "bounds")
        features.append(NumericFeature(str(name), float(given[0]), float(given[1])))
    return features


def _note(leaks: list[str], what: str) -> None:
    if what not in leaks:
        leaks.append(what)


def _categories_of_objects(values: NDArray[Any], leaks: list[str]) -> list[Any] | None:
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        present = [value for value in values.tolist() if value is not None and value == value]
        odd = [value for value in present if not isinstance(value, str | numbers.Number)]
        if odd:
            raise TypeError(
                f"each entry of X as an argument must be a string or a number, got {type(odd[0]).__name__}."
            ) from None
        _note(leaks, "categories")
        return sorted(set(present), key=lambda value: (isinstance(value, str), value))
    return None


def _bounds_of(bounds: Any, j: int, name: Any, n_features: int) -> tuple[float, float] | None:
    if bounds is None:
        return None
    if isinstance(bounds, Mapping):
        pair = bounds.get(name, bounds.get(j))
        return None if pair is None else (float(pair[0]), float(pair[1]))
    if len(bounds) != 2:
        raise ValueError(
            f"bounds must be (lower, upper) or a mapping of feature to (lower, upper), got {bounds!r}."
        )
    lower, upper = (np.asarray(bound, dtype=np.float64) for bound in bounds)
    for label, bound in (("lower", lower), ("upper", upper)):
        if bound.ndim > 1 or (bound.ndim == 1 and len(bound) != n_features):
            raise ValueError(
                f"the {label} bounds have shape {bound.shape}; give a number or {n_features} numbers."
            )
    return (
        float(np.broadcast_to(lower, n_features)[j]),
        float(np.broadcast_to(upper, n_features)[j]),
    )
