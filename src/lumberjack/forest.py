"""What every forest here does: resolve public facts, grow trees with their noise, vote.

Which budget buys which noise, and what a leaf says, is decided by the estimators:
:mod:`lumberjack.classifier` and :mod:`lumberjack.guided_classifier`.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lumberjack.accounting import Ledger
from lumberjack.growth import Search, TrainingRows, grow_tree
from lumberjack.guide import NO_GUIDE, Guide
from lumberjack.public_facts import (
    GivenFacts,
    PrivacyLeakWarning,
    check_fill_values,
    classes_as_array,
    resolve_schema,
)
from lumberjack.ranks import rank_table
from lumberjack.reading import is_frame, read_column, read_entry, read_table, rows_apart, shown
from lumberjack.releases import ForestNoise
from lumberjack.schema import UNSEEN, EncodedTable, FeatureSchema, SchemaError
from lumberjack.seeds import seed_sequence
from lumberjack.splits import PublicFacts, SplitRule
from lumberjack.tree import ReleasedTree


class DataOutsideSchemaWarning(UserWarning):
    """Entries were clipped, treated as unseen or filled; meant for the data holder only."""


FEWEST_TO_WARN = 10
"""A few rows to predict may all lie outside the schema by chance."""


_ROWS_AT_A_TIME = 8192
"""Rows that are predicted together, few enough to stay in a processor's own cache."""


class CodedRows(NamedTuple):
    """Training rows as numbers (NOT private), and what is public about them."""

    values: NDArray[np.float64]
    labels: NDArray[np.int64]
    schema: FeatureSchema
    names: tuple[str, ...] | None
    caveats: tuple[str, ...]


class GrownTree(NamedTuple):
    """A tree, what its leaves released, and the leaf of each training row (NOT private), if asked for."""

    tree: ReleasedTree
    released: NDArray[np.float64]
    leaf_of_row: NDArray[np.int32] | None


def _generator(seeds: np.random.SeedSequence) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seeds))


class PrivateForestClassifier(ClassifierMixin, BaseEstimator):
    """What the private forests have in common; not to be used by itself.

    A subclass stores its parameters in its constructor, ``epsilon``, ``delta``, ``n_estimators``,
    ``max_depth``, ``schema``, ``bounds``, ``categories``, ``classes``, ``missing``,
    ``unknown_labels``, ``random_state``, ``noise_seed`` and ``n_jobs`` among them.
    """

    display_name: ClassVar[str]
    is_private: ClassVar[bool] = True

    drop_first_category: bool = True
    """Whether the first category of each feature is no candidate for a uniform split, as in the
    paper's one-hot coding with k - 1 columns."""

    looks_back: ClassVar[bool] = False
    """Whether the leaf of each training row in each tree is kept until the trees are grown."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_depth": [Interval(Integral, 1, None, closed="left")],
        "schema": [FeatureSchema, None],
        "categories": [Mapping, None],
        "missing": [StrOptions({"raise", "fill"})],
        "unknown_labels": [StrOptions({"raise", "drop"})],
        "n_jobs": [Integral, None],
    }

    @abstractmethod
    def _calibrate(self, schema: FeatureSchema) -> tuple[Ledger, ForestNoise]:
        """Return the ledger and the noise of all releases."""

    @abstractmethod
    def _release_leaves(
        self, counts: NDArray[np.int64], scale: float, generator: np.random.Generator
    ) -> NDArray[np.float64]:
        """Turn the leaves' class counts into what is released of them."""

    def _score_leaves(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn what is released of the leaves into class scores."""
        return released

    def _release_guide(
        self, rows: CodedRows, noise: ForestNoise, generator: np.random.Generator
    ) -> Guide | None:
        """Return what is released before the trees; nothing, unless a subclass does."""
        return None

    def _get_training_rows(self, rows: CodedRows, guide: Guide | None) -> TrainingRows:
        """Return what the trees are grown on."""
        facts = rows.schema
        n_dropped = int(self.drop_first_category)
        public = PublicFacts(
            facts.n_classes, facts.n_categories, facts.lower, facts.upper, n_dropped
        )
        return TrainingRows(rank_table(rows.values), rows.labels, public, NO_GUIDE, SplitRule())

    def _release_stack(
        self,
        rows: TrainingRows,
        guide: Guide | None,
        grown: list[GrownTree],
        noise: ForestNoise,
        generator: np.random.Generator,
    ) -> dict[str, Any]:
        """Return the fitted attributes of the subclass, released after the trees."""
        return {}

    def _to_tree_scale(
        self, values: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return encoded rows on the scale of the trees, and which features hold codes on it."""
        return values, self.schema_.n_categories > 0

    def fit(self, X: Any, y: ArrayLike, **unsupported: Any) -> Self:
        """Fit the forest, spending the whole budget once.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_features)
            Training rows, in the schema's own values.
        y : array-like of shape (n_rows,)
            Class labels.
        **unsupported
            Nothing; ``sample_weight`` is refused with its reason.

        Returns
        -------
        Self
            The fitted estimator.

        Raises
        ------
        ValueError
            For parameters out of range, rows that do not fit the schema, missing entries or unknown
            labels (unless asked to route them), or an empty table.
        """
        _refuse_fit_parameters(unsupported)
        self._check_parameters()
        coded = self._read_training_rows(X, y)
        ledger, noise = self._calibrate(coded.schema)
        caveats = [*coded.caveats]
        if self.noise_seed is not None:
            caveats.append("the noise is seeded: not private in deployment")
        n_trees = int(self.n_estimators)
        split_seed, noise_seed = seed_sequence(self.random_state), seed_sequence(self.noise_seed)
        tree_keys = split_seed.generate_state(n_trees, dtype=np.uint64)
        *tree_noise, guide_noise, stack_noise = noise_seeds = noise_seed.spawn(n_trees + 2)
        _check_unrelated(split_seed, noise_seeds)
        guide = self._release_guide(coded, noise, _generator(guide_noise))
        rows = self._get_training_rows(coded, guide)
        grown = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
            delayed(self._grow)(rows, key, _generator(seeds), noise)
            for key, seeds in zip(tree_keys, tree_noise, strict=True)
        )
        rest = self._release_stack(rows, guide, grown, noise, _generator(stack_noise))
        # Only now, so that a fit that fails leaves nothing of the rows behind.
        for name, value in rest.items():
            setattr(self, name, value)
        self.estimators_ = [one.tree for one in grown]
        self.schema_ = coded.schema
        self.n_features_in_ = coded.schema.n_features
        if coded.names is not None:
            self.feature_names_in_ = np.array(coded.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.ledger_ = replace(ledger, caveats=tuple(caveats))
        self.guarantee_ = self.ledger_.total
        self.classes_ = classes_as_array(coded.schema.classes)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return class probabilities, all of them functions of what was released.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_features)
            Rows, in the schema's own values.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_classes)
            Vote shares (leaves that vote), mean class shares (leaves with noisy counts), or those of
            the logistic model (stacking).
        """
        values = self._encode_queries(X)
        # A row's probabilities are its own, so blocks of rows change nothing.
        n_blocks = max(-(-len(values) // _ROWS_AT_A_TIME), 1)
        parts = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
            delayed(self._get_probabilities)(np.asfortranarray(block))
            for block in np.array_split(values, n_blocks)
        )
        return np.concatenate(parts)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithms of :meth:`predict_proba`, minus infinity for a share of 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _get_probabilities(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what :meth:`predict_proba` gives for encoded rows: the mean score of the trees."""
        scaled, is_categorical = self._to_tree_scale(values)
        scaled = np.ascontiguousarray(scaled)
        total = np.zeros((len(values), self.schema_.n_classes))
        for tree in self.estimators_:
            total += tree.value[tree.apply(scaled, is_categorical)]
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
        labels: NDArray[Any] = self.classes_[winners]
        return labels

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
        values, is_categorical = self._to_tree_scale(self._encode_queries(X))
        values = np.ascontiguousarray(values)
        return np.column_stack([tree.apply(values, is_categorical) for tree in self.estimators_])

    def fit_report(self) -> dict[str, float]:
        """Return mean nodes, leaves and depth of the trees, all functions of what was released."""
        check_is_fitted(self)
        trees = self.estimators_
        return {
            "mean_nodes_per_tree": float(np.mean([tree.n_nodes for tree in trees])),
            "mean_leaves_per_tree": float(np.mean([tree.n_leaves for tree in trees])),
            "mean_tree_depth": float(np.mean([tree.depth for tree in trees])),
        }

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as scikit-learn does; ``warm_start`` is refused with its reason."""
        if "warm_start" in params:
            raise ValueError(
                "warm_start is not supported: every fit spends the whole budget on the rows again. "
                "Fit once with as many trees as you want."
            )
        super().set_params(**params)
        return self

    def _check_parameters(self) -> None:
        self._validate_params()

    def _grow(
        self,
        rows: TrainingRows,
        tree_key: np.uint64,
        generator: np.random.Generator,
        noise: ForestNoise,
    ) -> GrownTree:
        search = Search(int(self.max_depth), noise.sigma, 1.0 + noise.margin)
        grown = grow_tree(rows, search, tree_key, generator)
        is_leaf = grown.children_left < 0
        released = np.zeros(grown.counts.shape)
        released[is_leaf] = self._release_leaves(
            grown.counts[is_leaf], noise.scales["leaves"], generator
        )
        value = np.zeros(grown.counts.shape)
        value[is_leaf] = self._score_leaves(released[is_leaf])
        tree = ReleasedTree(grown.feature, grown.threshold, grown.children_left, value)
        return GrownTree(tree, released, grown.leaf_of_row if self.looks_back else None)

    def _concerns(self) -> tuple[str, ...]:
        """Return what a privacy card of any forest has to say."""
        concerns = [
            "Noise is sampled in floating point, from a generator that is not cryptographic (PCG64).",
            "Each fit spends its budget again; a person with several records is protected less.",
        ]
        if self.noise_seed is not None:
            concerns.append("Seeded noise: not private in deployment.")
        if hasattr(self, "ledger_"):
            concerns += [caveat for caveat in self.ledger_.caveats if "read off" in caveat]
        elif self.schema is None:
            concerns.append(
                "Bounds, categories and classes that are not given are read off the rows."
            )
        return tuple(concerns)

    def _checked_rows(self, X: Any) -> Any:
        """Return a frame as it is, and anything else as an array with entries of their own types."""
        if is_frame(X):
            return X
        # Sparse matrices and the like are left for the check to refuse.
        X = rows_apart(X) if isinstance(X, list | tuple | np.ma.MaskedArray) else X
        return check_array(X, dtype=None, ensure_all_finite=False, estimator=self)

    def _read_training_rows(self, X: Any, y: Any) -> CodedRows:
        X = self._checked_rows(X)
        y = _checked_labels(y)
        given = GivenFacts(self.schema, self.bounds, self.categories, self.classes)
        schema, names, leaks = resolve_schema(given, X, y)
        if self.missing == "fill":
            check_fill_values(schema)
        if leaks:
            warnings.warn(
                f"{' and '.join(leaks)} were read off the rows, which the guarantee does not cover. "
                "Give them as public facts (bounds, categories, classes or schema).",
                PrivacyLeakWarning,
                stacklevel=3,
            )
        caveats = [f"{leak} were read off the rows: not covered by the guarantee" for leak in leaks]
        table = schema.encode(X, missing=self.missing)
        try:
            labels = schema.encode_labels(y, unknown=self.unknown_labels)
        except SchemaError as error:
            raise SchemaError(f"{error}{_hint_at_codes(y, schema)}") from None
        if len(labels) != len(table.values):
            raise ValueError(
                f"X and y have inconsistent numbers of rows: {len(table.values)} and {len(labels)}."
            )
        _warn_of_unusual_entries(table, labels)
        _warn_of_other_types(y, labels, schema)
        known = labels != UNSEEN
        values = table.values
        if not known.all():
            values = np.asfortranarray(values[known])
            labels = labels[known]
        return CodedRows(values, labels, schema, names, tuple(caveats))

    def _encode_queries(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        X = self._checked_rows(X)
        own_name = type(self).__name__
        is_named = is_frame(X)
        if is_named and self.schema is None and not hasattr(self, "feature_names_in_"):
            # By position, as scikit-learn does.
            table = read_table(X)
            if table.has_text_names:
                warnings.warn(
                    f"X has feature names, but {own_name} was fitted without feature names",
                    UserWarning,
                    stacklevel=4,
                )
            X = np.column_stack([column.entries().astype(object) for column in table.columns])
            is_named = False
        if not is_named and X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {own_name} is expecting "
                f"{self.n_features_in_} features as input."
            )
        if not is_named and hasattr(self, "feature_names_in_"):
            warnings.warn(
                f"X does not have valid feature names, but {own_name} was fitted with feature names",
                UserWarning,
                stacklevel=4,
            )
        encoded = self.schema_.encode(X, missing=self.missing)  # type: ignore[arg-type]
        if encoded.wholly_outside and len(encoded.values) >= FEWEST_TO_WARN:
            warnings.warn(
                f"no entry of {list(encoded.wholly_outside)} fits the schema: all {len(encoded.values)} are "
                "clipped, unlisted or missing. Are these the values that the forest was fitted on?",
                DataOutsideSchemaWarning,
                stacklevel=4,
            )
        return encoded.values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Noise of a sensible budget hides the small tables of generic checks.
        tags.classifier_tags.poor_score = True
        tags.input_tags.categorical = True
        return tags


def _refuse_fit_parameters(unsupported: Mapping[str, Any]) -> None:
    if "sample_weight" in unsupported:
        raise TypeError(
            "sample_weight is not supported: the noise is calibrated to records of weight one, and a "
            "heavier one would be protected less. Fit without weights."
        )
    if unsupported:
        raise TypeError(f"fit takes X and y only, got {', '.join(map(repr, unsupported))} as well.")


def _check_unrelated(
    split_seed: np.random.SeedSequence, noise_children: Sequence[np.random.SeedSequence]
) -> None:
    """Refuse splits that would give away the noise: they are published, and so is their state."""
    state = split_seed.generate_state(4).tolist()
    if any(state == child.generate_state(4).tolist() for child in noise_children):
        raise ValueError(
            "random_state was spawned from noise_seed, so that splits and noise would share random"
            f" numbers; spawn both from one parent (got random_state={split_seed})."
        )


def _checked_labels(y: Any) -> NDArray[Any]:
    """Return labels as one column in which each keeps its own type."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    if isinstance(y, list | tuple) and y and all(isinstance(v, list | tuple) for v in y):
        raise ValueError("y must have one dimension, got a list of lists.")
    column = read_column(y)
    if column.values.ndim == 1 and column.values.dtype.kind != "V":
        return column.entries()
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    return labels


def _warn_of_unusual_entries(table: EncodedTable, labels: NDArray[np.int64]) -> None:
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
    if table.wholly_outside:
        found.append(f"no entry of {list(table.wholly_outside)} fits the schema")
    if (labels == UNSEEN).all():
        found.append("so that no row is left to learn from")
    if found:
        warnings.warn(
            f"training rows: {', '.join(found)}. For the data holder only: do not publish.",
            DataOutsideSchemaWarning,
            stacklevel=4,
        )


def _warn_of_other_types(y: NDArray[Any], labels: NDArray[np.int64], schema: FeatureSchema) -> None:
    """Warn where labels are read like the classes and yet are not equal to what predict returns."""
    for label, code in zip(y[:1000].tolist(), labels[:1000].tolist(), strict=True):
        own = schema.classes[code]
        if code != UNSEEN and isinstance(label, str) != isinstance(own, str):
            warnings.warn(
                f"label {shown(label)} is read as class {shown(own)}, which is what predict returns: metrics "
                "that compare them, or rely on the order of the classes, will be wrong. Give classes in "
                "the labels' own type.",
                UserWarning,
                stacklevel=4,
            )
            return


def _hint_at_codes(y: NDArray[Any], schema: FeatureSchema) -> str:
    """Say what to do where a meta-estimator has turned labels into codes."""
    codes = range(schema.n_classes)
    if not all(read_entry(label) in codes for label in y[:1000].tolist()):
        return ""
    return (
        f" Codes in place of labels come from meta-estimators (voting, stacking, one against the rest, "
        f"cross_val_predict of probabilities): encode the labels yourself and give classes={list(codes)}."
    )
