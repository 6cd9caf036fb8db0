"""What every forest here does: resolve public facts, grow trees with their noise, vote.

Which budget buys which noise, and what a leaf says, is decided by the estimators of
:mod:`lumberjack.classifier`.
"""

from __future__ import annotations

import datetime
import math
import numbers
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from lumberjack.accounting import Ledger
from lumberjack.growth import NO_GUIDE, grow_tree
from lumberjack.guide import Guide
from lumberjack.reading import (
    MISSING_READING,
    Column,
    is_frame,
    read_column,
    read_entry,
    read_table,
    rows_apart,
    shown,
)
from lumberjack.schema import (
    UNSEEN,
    CategoricalFeature,
    EncodedTable,
    Feature,
    FeatureSchema,
    NumericFeature,
    SchemaError,
)
from lumberjack.seeds import seed_sequence
from lumberjack.tree import ReleasedTree


class PrivacyLeakWarning(RuntimeWarning):
    """Something was read off the rows that the guarantee takes to be public."""


class DataOutsideSchemaWarning(UserWarning):
    """Entries were clipped, treated as unseen or filled; meant for the data holder only."""


FEWEST_TO_WARN = 10
"""A few rows to predict may all lie outside the schema by chance."""


@dataclass(frozen=True, slots=True)
class ForestNoise:
    """Noise scales of all releases of a forest, in records."""

    sigma: float
    margin: float
    leaf_scale: float
    sigma_guide: float = math.inf
    sigma_stack: float = math.inf


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Rows as the trees see them, and the public or released facts that trees are grown with.

    NOT private: it lives during fit only.
    """

    values: NDArray[np.float64]
    labels: NDArray[np.int64]
    n_classes: int
    n_categories: NDArray[np.int64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    guide: tuple[Any, ...] = NO_GUIDE
    """As :func:`lumberjack.growth.grow_tree` takes it."""


@dataclass(frozen=True, slots=True)
class GrownTree:
    """A tree, what its leaves released, and the leaf of each training row (NOT private)."""

    tree: ReleasedTree
    released: NDArray[np.float64]
    leaf_of_row: NDArray[np.int32]


def _generator(seeds: np.random.SeedSequence) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seeds))


class ForestClassifier(ClassifierMixin, BaseEstimator):
    """Base of the private forests; not to be used by itself.

    A subclass stores its parameters in its constructor, ``epsilon``, ``delta``, ``n_estimators``,
    ``max_depth``, ``schema``, ``bounds``, ``categories``, ``classes``, ``drop_first_category``,
    ``missing``, ``unknown_labels``, ``random_state``, ``noise_seed`` and ``n_jobs`` among them.
    """

    display_name: ClassVar[str]
    is_private: ClassVar[bool] = True

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
        self,
        values: NDArray[np.float64],
        labels: NDArray[np.int64],
        schema: FeatureSchema,
        noise: ForestNoise,
        generator: np.random.Generator,
    ) -> Guide | None:
        """Return what is released before the trees; nothing, unless a subclass does."""
        return None

    def _get_training_rows(
        self,
        values: NDArray[np.float64],
        labels: NDArray[np.int64],
        schema: FeatureSchema,
        guide: Guide | None,
    ) -> TrainingRows:
        """Return what the trees are grown on."""
        return TrainingRows(
            values, labels, schema.n_classes, schema.n_categories, schema.lower, schema.upper
        )

    def _release_rest(
        self,
        rows: TrainingRows,
        guide: Guide | None,
        grown: list[GrownTree],
        noise: ForestNoise,
        generator: np.random.Generator,
    ) -> dict[str, Any]:
        """Return the fitted attributes of the subclass, released after the trees."""
        return {}

    def _as_trees_see(
        self, values: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return encoded rows on the scale of the trees' cuts, and which features hold codes."""
        return values, self.schema_.n_categories > 0

    def _own_choices(self) -> tuple[tuple[str, tuple[Any, ...]], ...]:
        """Return the parameters of the subclass that take one of a few names."""
        return ()

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the forest, spending the whole budget once.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_features)
            Training rows, in the schema's own values.
        y : array-like of shape (n_rows,)
            Class labels.

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
        self._check_parameters()
        X = self._checked_rows(X)
        y = _checked_labels(y)
        schema, names, caveats = self._resolve_schema(X, y)
        table, labels = self._encode_rows(X, y, schema)
        self._announce_unusual(table, labels)
        _warn_of_other_types(y, labels, schema)
        known = labels != UNSEEN
        values = table.values
        if not known.all():
            values = np.asfortranarray(values[known])
            labels = labels[known]

        ledger, noise = self._calibrate(schema)
        if self.noise_seed is not None:
            caveats.append("the noise is seeded: not private in deployment")
        n_trees = self.n_estimators
        split_seed, noise_seed = seed_sequence(self.random_state), seed_sequence(self.noise_seed)
        if (split_seed.entropy, split_seed.spawn_key[:-1]) == (
            noise_seed.entropy,
            noise_seed.spawn_key,
        ) and split_seed.spawn_key:
            # Splits are published and would give away the state that noise is drawn from.
            raise ValueError(
                "random_state was spawned from noise_seed, so that splits and noise would share random"
                f" numbers; spawn both from one parent (got spawn keys {split_seed.spawn_key} and"
                f" {noise_seed.spawn_key})."
            )
        tree_keys = split_seed.generate_state(n_trees, dtype=np.uint64)
        *tree_noise, guide_noise, stack_noise = noise_seed.spawn(n_trees + 2)
        guide = self._release_guide(values, labels, schema, noise, _generator(guide_noise))
        rows = self._get_training_rows(values, labels, schema, guide)
        grown = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(self._grow)(rows, key, _generator(seeds), noise)
            for key, seeds in zip(tree_keys, tree_noise, strict=True)
        )
        rest = self._release_rest(rows, guide, grown, noise, _generator(stack_noise))
        # Only now, so that a fit that fails leaves nothing of the rows behind.
        for name, value in rest.items():
            setattr(self, name, value)
        self.estimators_ = [one.tree for one in grown]
        self.schema_ = schema
        self.n_features_in_ = schema.n_features
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.ledger_ = Ledger(ledger.releases, ledger.accounting, ledger.total, tuple(caveats))
        self.guarantee_ = self.ledger_.total
        self.classes_ = _as_array(schema.classes)
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
            Vote shares (leaves that vote), mean class shares (leaves with noisy counts), or those of the
            logistic model (stacking).
        """
        return self._get_probabilities(self._encode_queries(X))

    def _get_probabilities(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what :meth:`predict_proba` gives for encoded rows."""
        return self._get_mean_scores(*self._as_trees_see(values))

    def _get_mean_scores(
        self, seen: NDArray[np.float64], is_categorical: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Average the trees' scores for what :meth:`_as_trees_see` returns."""
        total = np.zeros((len(seen), self.schema_.n_classes))
        for tree in self.estimators_:
            total += tree.scores[tree.apply(seen, is_categorical)]
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
        values, is_categorical = self._as_trees_see(self._encode_queries(X))
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

    def _check_parameters(self) -> None:
        check_real("epsilon", self.epsilon, 0, math.inf)
        check_real("delta", self.delta, 0, 1)
        for name in ("n_estimators", "max_depth"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.")
        for name, allowed in (
            *self._own_choices(),
            ("missing", ("raise", "fill")),
            ("unknown_labels", ("raise", "drop")),
        ):
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {value!r}.")

    def _grow(
        self,
        rows: TrainingRows,
        tree_key: np.uint64,
        generator: np.random.Generator,
        noise: ForestNoise,
    ) -> GrownTree:
        feature, cut, left, counts, leaf_of_row = grow_tree(
            rows.values,
            rows.labels,
            rows.n_classes,
            rows.n_categories,
            rows.lower,
            rows.upper,
            int(self.drop_first_category),
            int(self.max_depth),
            noise.sigma,
            1.0 + noise.margin,
            0,
            tree_key,
            generator,
            True,
            np.empty(0, dtype=np.int64),
            rows.guide,
        )
        is_leaf = left < 0
        released = np.zeros(counts.shape)
        released[is_leaf] = self._release_leaves(counts[is_leaf], noise.leaf_scale, generator)
        scores = np.zeros(counts.shape)
        scores[is_leaf] = self._score_leaves(released[is_leaf])
        return GrownTree(ReleasedTree(feature, cut, left, scores), released, leaf_of_row)

    def _checked_rows(self, X: Any) -> Any:
        """Return a frame as it is, and anything else as an array with entries of their own types."""
        if is_frame(X):
            return X
        # Sparse matrices and the like are left for the check to refuse.
        X = rows_apart(X) if isinstance(X, list | tuple | np.ma.MaskedArray) else X
        return check_array(X, dtype=None, ensure_all_finite=False, estimator=self)

    def _resolve_schema(
        self, X: Any, y: Any
    ) -> tuple[FeatureSchema, tuple[str, ...] | None, list[str]]:
        """Return the public facts, the frame's column names, and what had to be read off the rows."""
        table = read_table(X)
        if table.n_rows == 0:
            raise ValueError("Found array with 0 sample(s): the table has no rows to fit.")
        names = table.names or tuple(f"x{j}" for j in range(len(table.columns)))
        leaks: list[str] = []
        if self.schema is not None:
            given = [k for k in ("bounds", "categories", "classes") if getattr(self, k) is not None]
            if given:
                raise ValueError(f"give either schema or {', '.join(given)}, not both.")
            if not isinstance(self.schema, FeatureSchema):
                raise ValueError(
                    f"schema must be a FeatureSchema, got {type(self.schema).__name__}."
                )
            schema = self.schema
        else:
            features = _features_from(table.columns, names, self.bounds, self.categories, leaks)
            schema = FeatureSchema(tuple(features), self._resolve_classes(y, leaks), "<label>")
        # As scikit-learn's metrics expect the columns of predict_proba.
        schema = replace(schema, classes=_sorted(schema.classes))
        if schema.n_classes < 2:
            raise ValueError(
                f"a classifier needs at least two classes, got one class: {list(schema.classes)}."
            )
        if self.missing == "fill":
            lacking = [feature.name for feature in schema.features if feature.fill is None]
            if lacking:
                raise ValueError(
                    f"missing='fill' needs a public fill value for every feature; {lacking} have none. Give "
                    "a schema whose features have one, as in schema=FeatureSchema((NumericFeature('age', 0, "
                    "99, fill=40), CategoricalFeature('work', ('yes', 'no'), fill='no')), classes)."
                )
        if leaks:
            warnings.warn(
                f"{' and '.join(leaks)} were read off the rows, which the guarantee does not cover. "
                "Give them as public facts (bounds, categories, classes or schema).",
                PrivacyLeakWarning,
                stacklevel=3,
            )
        caveats = [f"{leak} were read off the rows: not covered by the guarantee" for leak in leaks]
        return schema, table.names if table.has_text_names else None, caveats

    def _resolve_classes(self, y: Any, leaks: list[str]) -> tuple[Any, ...]:
        if self.classes is not None:
            return _listed(self.classes)
        labels = y
        if labels.dtype.kind == "O":
            labels = np.array(labels.tolist())
        check_classification_targets(labels)
        leaks.append("classes")
        return tuple(np.unique(labels).tolist())

    def _encode_rows(
        self, X: Any, y: Any, schema: FeatureSchema
    ) -> tuple[EncodedTable, NDArray[np.int64]]:
        table = schema.encode(X, missing=self.missing)  # type: ignore[arg-type]
        try:
            labels = schema.encode_labels(y, unknown=self.unknown_labels)  # type: ignore[arg-type]
        except SchemaError as error:
            raise SchemaError(f"{error}{_hint_at_codes(y, schema)}") from None
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
        if table.wholly_outside:
            found.append(f"no entry of {list(table.wholly_outside)} fits the schema")
        if (labels == UNSEEN).all():
            found.append("so that no row is left to learn from")
        if found:
            warnings.warn(
                f"training rows: {', '.join(found)}. For the data holder only: do not publish.",
                DataOutsideSchemaWarning,
                stacklevel=3,
            )

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


def _checked_labels(y: Any) -> NDArray[Any]:
    """Return labels as one column in which each keeps its own type."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    if isinstance(y, list | tuple) and y and all(isinstance(v, list | tuple) for v in y):
        raise ValueError("y must have one dimension, got a list of lists.")
    column = read_column(y)
    if column.values.ndim == 1 and column.values.dtype.kind != "V":
        return column.entries()
    return column_or_1d(y, warn=True)


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
                stacklevel=3,
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


def _listed(values: Any) -> tuple[Any, ...]:
    if isinstance(values, str):
        raise ValueError(f"a list of values is needed, got the text {shown(values)}.")
    return tuple(values)


def _sorted(classes: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(classes))
    except TypeError:  # numbers first, then the rest as text sorts
        return tuple(
            sorted(
                classes, key=lambda c: (0, c, "") if isinstance(c, numbers.Real) else (1, 0, str(c))
            )
        )


def _as_array(classes: tuple[Any, ...]) -> NDArray[Any]:
    """Return classes as an array that does not turn numbers among text into text."""
    is_plain = all(isinstance(label, str) for label in classes) or all(
        isinstance(label, numbers.Real) for label in classes
    )
    return np.array(classes) if is_plain else np.fromiter(classes, dtype=object)


def check_real(name: str, value: Any, low: float, high: float) -> None:
    """Refuse what is not a number strictly between two bounds.

    Parameters
    ----------
    name : str
        Name of the parameter, for the message.
    value : object
        What was given.
    low, high : float
        The bounds; `high` may be infinite.

    Raises
    ------
    ValueError
        One line.
    """
    if (
        not isinstance(value, numbers.Real)
        or isinstance(value, bool)
        or not (low < float(value) < high)
    ):
        upper = "" if math.isinf(high) else f" and below {high:g}"
        raise ValueError(f"{name} must be a finite number above {low:g}{upper}, got {value!r}.")


def _features_from(
    columns: Sequence[Column],
    names: Sequence[str],
    bounds: Any,
    categories: Any,
    leaks: list[str],
) -> list[Feature]:
    """Build features from public facts, reading off the rows only what is missing.

    Listed categories, or else public bounds, say what a feature is, whatever single rows hold.
    """
    listed = _by_feature("categories", categories, names)
    is_mapping = isinstance(bounds, Mapping)
    bounded = _by_feature("bounds", bounds if is_mapping else None, names)
    shared = None if bounds is None or is_mapping else _pair("bounds", bounds)
    features: list[Feature] = []
    for name, column in zip(names, columns, strict=True):
        if name in listed and name in bounded:
            raise ValueError(f"feature {name!r} has both bounds and categories; give one of them.")
        if name in listed:
            features.append(CategoricalFeature(name, _listed(listed[name])))
        elif name in bounded:
            features.append(
                NumericFeature(name, *_pair(f"bounds of feature {name!r}", bounded[name]))
            )
        elif shared is not None:
            features.append(NumericFeature(name, *shared))
        else:
            features.append(_feature_off(column, name, leaks))
    return features


def _by_feature(what: str, given: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return a mapping of features to public facts, where a position names a feature too."""
    if given is not None and not isinstance(given, Mapping):
        raise ValueError(f"{what} must be a mapping of feature to values, got {shown(given)}.")
    found: dict[str, Any] = {}
    for key, value in (given or {}).items():
        is_position = isinstance(key, int | np.integer) and 0 <= key < len(names)
        name = names[int(key)] if is_position and str(key) not in names else str(key)
        if name not in names:
            raise ValueError(
                f"{what} name unknown features {[key]}; the table has {list(names)}. Positions name features too."
            )
        if name in found:
            raise ValueError(f"{what} name feature {name!r} twice, by name and by position.")
        found[name] = value
    return found


def _pair(what: str, given: Any) -> tuple[float, float]:
    try:
        lower, upper = (float(bound) for bound in given)
    except (TypeError, ValueError):
        raise ValueError(
            f"{what} must be two numbers (lower, upper), got {shown(given)}. For a pair per feature give a "
            "mapping of name or position to (lower, upper)."
        ) from None
    return lower, upper


def _feature_off(column: Column, name: str, leaks: list[str]) -> Feature:
    """Read a feature off the rows: a number if all its entries are, else a category."""
    values = column.numbers()
    is_finite = np.isfinite(values)
    others = {
        reading: entry
        for entry in map(column.entry, np.flatnonzero(~is_finite).tolist())
        if not isinstance(reading := read_entry(entry), int | float) and reading != MISSING_READING
    }
    if not others and not column.is_categorical:
        finite = values[is_finite]
        lower, upper = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
        _note(leaks, "bounds")
        return NumericFeature(name, float(lower), float(upper))
    odd = [entry for reading, entry in others.items() if not isinstance(reading, str)]
    if odd and not column.is_categorical:
        raise TypeError(
            f"each entry of X as an argument must be a string or a number, got {type(odd[0]).__name__}."
        )
    dates = [entry for entry in others.values() if isinstance(entry, datetime.date | np.datetime64)]
    if dates:
        raise ValueError(
            f"feature {name!r} holds dates, e.g. {shown(dates[0])}; turn it into a number with a unit of "
            "your choice, or list its categories."
        )
    _note(leaks, "categories")
    if column.is_categorical and column.codes is not None:
        return CategoricalFeature(name, tuple(column.values.tolist()))
    present = {
        reading: entry
        for entry in map(column.entry, range(len(column)))
        if (reading := read_entry(entry)) != MISSING_READING
    }
    return CategoricalFeature(
        name,
        tuple(sorted(present.values(), key=lambda value: (isinstance(value, str), value))),
    )


def _note(leaks: list[str], what: str) -> None:
    if what not in leaks:
        leaks.append(what)
