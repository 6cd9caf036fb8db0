"""Public facts about a table: its features, their bounds and categories, and its classes.

A schema is an input of every private method and is never computed from the rows. Reading
schemas from files, and drafting one from a table, are not done here.
"""

from __future__ import annotations

import hashlib
import json
import math
import numbers
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

UNSEEN = -1
"""Code of a category that the schema does not list; it goes the "rest" way at every split."""


class SchemaError(ValueError):
    """A schema that contradicts itself, or a table that does not fit its schema."""


def _plain(value: Any) -> Any:
    """Turn numpy scalars into the Python values they stand for."""
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True, slots=True)
class NumericFeature:
    """A feature with a public range.

    Parameters
    ----------
    name : str
        Column name.
    lower, upper : float
        Public bounds, ``lower <= upper``; values outside are clipped.
    fill : float or None
        Public value that stands for a missing entry, if there is one.
    """

    name: str
    lower: float
    upper: float
    fill: float | None = None

    def __post_init__(self) -> None:
        for label, bound in (("lower", self.lower), ("upper", self.upper)):
            if not isinstance(bound, numbers.Real) or not math.isfinite(bound):
                raise SchemaError(
                    f"feature {self.name!r}: the {label} bound must be a finite number, got {bound!r}."
                )
        if self.lower > self.upper:
            raise SchemaError(
                f"feature {self.name!r}: bounds are reversed, lower={self.lower} > upper={self.upper}. "
                "Swap them."
            )
        width = float(self.upper) - float(self.lower)
        if width > 0 and not (math.isfinite(width) and math.isfinite(1e6 / width)):
            raise SchemaError(
                f"feature {self.name!r}: the range [{self.lower}, {self.upper}] is too "
                f"{'wide' if width > 1 else 'narrow'} for floating-point arithmetic. Rescale it."
            )
        object.__setattr__(self, "lower", float(self.lower))
        object.__setattr__(self, "upper", float(self.upper))
        if self.fill is not None and not self.lower <= self.fill <= self.upper:
            raise SchemaError(
                f"feature {self.name!r}: fill value {self.fill} lies outside "
                f"[{self.lower}, {self.upper}]."
            )


@dataclass(frozen=True, slots=True)
class CategoricalFeature:
    """A feature with a public list of categories.

    Parameters
    ----------
    name : str
        Column name.
    categories : tuple of hashable
        The values, without repetition; the code of a value is its position.
    fill : hashable or None
        Public category that stands for a missing entry, if there is one.
    """

    name: str
    categories: tuple[Hashable, ...]
    fill: Hashable | None = None

    def __post_init__(self) -> None:
        categories = tuple(_plain(value) for value in self.categories)
        object.__setattr__(self, "categories", categories)
        if not categories:
            raise SchemaError(f"feature {self.name!r}: a categorical feature needs categories.")
        if len(set(categories)) != len(categories):
            raise SchemaError(f"feature {self.name!r}: categories repeat in {list(categories)!r}.")
        if self.fill is not None and self.fill not in categories:
            raise SchemaError(
                f"feature {self.name!r}: fill value {self.fill!r} is not one of its categories."
            )


Feature = NumericFeature | CategoricalFeature


@dataclass(frozen=True, slots=True)
class EncodedTable:
    """Rows in the numeric form that methods take.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_features), float64, column-major
        Numeric features clipped to their bounds; categorical features as codes, with
        :data:`UNSEEN` for a category that the schema does not list.
    n_clipped, n_unseen, n_filled : int
        How many entries were clipped, coded as unseen, or filled. For the data holder's eyes:
        these are facts about the rows and must never be stored on a released model.
    """

    values: NDArray[np.float64]
    n_clipped: int
    n_unseen: int
    n_filled: int


@dataclass(frozen=True, slots=True)
class FeatureSchema:
    """Ordered features and classes of a table, all public.

    Parameters
    ----------
    features : tuple of NumericFeature or CategoricalFeature
        In column order.
    classes : tuple of hashable
        The class labels; the code of a label is its position.
    label : str
        Name of the label column.
    name : str
        Name of the table, for messages and records.
    citation : str
        Where the public facts come from.
    """

    features: tuple[Feature, ...]
    classes: tuple[Hashable, ...]
    label: str = "label"
    name: str = ""
    citation: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        object.__setattr__(self, "classes", tuple(_plain(value) for value in self.classes))
        if not self.features:
            raise SchemaError("a schema needs at least one feature.")
        names = [feature.name for feature in self.features]
        repeated = sorted({name for name in names if names.count(name) > 1}, key=str)
        if repeated:
            raise SchemaError(f"feature names repeat: {repeated}.")
        if self.label in names:
            raise SchemaError(f"the label {self.label!r} is also a feature.")
        if len(set(self.classes)) != len(self.classes):
            raise SchemaError(f"classes repeat in {list(self.classes)!r}.")
        if not self.classes:
            raise SchemaError("a schema needs at least one class.")

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.features)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in column order."""
        return tuple(feature.name for feature in self.features)

    @property
    def n_categories(self) -> NDArray[np.int64]:
        """Number of categories of each feature, shape (n_features,); 0 marks a numeric one."""
        return np.array(
            [len(f.categories) if isinstance(f, CategoricalFeature) else 0 for f in self.features],
            dtype=np.int64,
        )

    @property
    def lower(self) -> NDArray[np.float64]:
        """Smallest value of each feature, shape (n_features,); 0 for a categorical one."""
        return np.array(
            [f.lower if isinstance(f, NumericFeature) else 0.0 for f in self.features], dtype=float
        )

    @property
    def upper(self) -> NDArray[np.float64]:
        """Largest value of each feature, shape (n_features,); the last code for a categorical one."""
        return np.array(
            [
                f.upper if isinstance(f, NumericFeature) else len(f.categories) - 1.0
                for f in self.features
            ],
            dtype=float,
        )

    def coded(self) -> FeatureSchema:
        """Return the same schema with categories and classes replaced by their codes.

        Returns
        -------
        FeatureSchema
            The schema of the table that :meth:`encode` and :meth:`encode_labels` give.
        """
        features: list[Feature] = []
        for feature in self.features:
            if isinstance(feature, CategoricalFeature):
                fill = None if feature.fill is None else feature.categories.index(feature.fill)
                features.append(
                    CategoricalFeature(feature.name, tuple(range(len(feature.categories))), fill)
                )
            else:
                features.append(feature)
        return replace(self, features=tuple(features), classes=tuple(range(self.n_classes)))

    def encode(self, X: Any, *, missing: Literal["raise", "fill"] = "raise") -> EncodedTable:
        """Encode rows as numbers, clipping and coding by fixed public rules.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_features)
            A DataFrame is matched by column name; anything else by position.
        missing : {"raise", "fill"}
            What to do with NaN (and infinities): raise, or use the feature's public fill value.

        Returns
        -------
        EncodedTable

        Raises
        ------
        SchemaError
            When columns are missing or too many, an entry is missing and may not be filled, or a
            numeric column holds what is not a number.
        """
        columns = self._columns(X)
        n_rows = len(columns[0])
        values = np.empty((n_rows, self.n_features), dtype=np.float64, order="F")
        n_clipped = n_unseen = n_filled = 0
        for j, (feature, column) in enumerate(zip(self.features, columns, strict=True)):
            coded, bad = self._encode_column(feature, column, missing)
            n_bad = int(bad.sum())
            if n_bad:
                if missing == "raise":
                    raise SchemaError(
                        f"feature {feature.name!r} has {n_bad} missing or infinite (NaN, inf) entries in "
                        f"{n_rows} rows. Fill them, or give the schema a fill value and ask for missing='fill'."
                    )
                if feature.fill is None:
                    raise SchemaError(
                        f"feature {feature.name!r} has {n_bad} missing entries but its schema has no "
                        "fill value. Add one."
                    )
                if isinstance(feature, CategoricalFeature):
                    coded[bad] = feature.categories.index(feature.fill)
                else:
                    coded[bad] = float(feature.fill)  # type: ignore[arg-type]
                n_filled += n_bad
            if isinstance(feature, NumericFeature):
                outside = (coded < feature.lower) | (coded > feature.upper)
                n_clipped += int(outside.sum())
                np.clip(coded, feature.lower, feature.upper, out=coded)
            else:
                n_unseen += int((coded == UNSEEN).sum())
            values[:, j] = coded
        return EncodedTable(values, n_clipped, n_unseen, n_filled)

    def encode_labels(
        self, y: ArrayLike, *, unknown: Literal["raise", "drop"] = "raise"
    ) -> NDArray[np.int64]:
        """Encode class labels as positions in :attr:`classes`.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
            Labels.
        unknown : {"raise", "drop"}
            What to do with a label the schema does not list: raise, or code it as :data:`UNSEEN`
            so that the caller can drop the row.

        Returns
        -------
        ndarray of shape (n_rows,), int64
        """
        labels = np.asarray(y, dtype=object if not hasattr(y, "dtype") else None)
        codes = _positions(labels, self.classes)
        is_unknown = codes == UNSEEN
        if unknown == "raise" and is_unknown.any():
            seen = sorted({repr(_plain(v)) for v in labels[is_unknown][:1000]})[:5]
            raise SchemaError(
                f"y has {int(is_unknown.sum())} labels that are not among the classes "
                f"{list(self.classes)!r}: {', '.join(seen)}. Add them to the schema's classes, or drop these rows."
            )
        return codes

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain data (the form of a schema file).

        Returns
        -------
        dict
        """
        features: list[dict[str, Any]] = []
        for feature in self.features:
            entry: dict[str, Any] = {"name": feature.name}
            if isinstance(feature, NumericFeature):
                entry["numeric"] = [feature.lower, feature.upper]
            else:
                entry["categories"] = list(feature.categories)
            if feature.fill is not None:
                entry["fill"] = feature.fill
            features.append(entry)
        return {
            "name": self.name,
            "citation": self.citation,
            "label": self.label,
            "classes": list(self.classes),
            "features": features,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FeatureSchema:
        """Build a schema from plain data.

        Parameters
        ----------
        data : mapping
            As :meth:`to_dict` gives it.

        Returns
        -------
        FeatureSchema

        Raises
        ------
        SchemaError
            When a key is missing, unknown or of the wrong kind.
        """
        allowed = {"name", "citation", "label", "classes", "features"}
        _refuse_unknown(data, allowed, "schema")
        for key in ("classes", "features"):
            if not isinstance(data.get(key), Sequence) or isinstance(data.get(key), str):
                raise SchemaError(f"schema: {key!r} must be a list, got {data.get(key)!r}.")
        features: list[Feature] = []
        for position, entry in enumerate(data["features"]):
            if not isinstance(entry, Mapping) or "name" not in entry:
                raise SchemaError(f"schema: feature {position} needs a name, got {entry!r}.")
            name = str(entry["name"])
            _refuse_unknown(entry, {"name", "numeric", "categories", "fill"}, f"feature {name!r}")
            if ("numeric" in entry) == ("categories" in entry):
                raise SchemaError(
                    f"feature {name!r}: give either 'numeric: [lower, upper]' or 'categories: [...]'."
                )
            if "numeric" in entry:
                bounds = entry["numeric"]
                if not isinstance(bounds, Sequence) or len(bounds) != 2:
                    raise SchemaError(
                        f"feature {name!r}: numeric must be [lower, upper], got {bounds!r}."
                    )
                features.append(NumericFeature(name, bounds[0], bounds[1], entry.get("fill")))
            else:
                features.append(
                    CategoricalFeature(name, tuple(entry["categories"]), entry.get("fill"))
                )
        return cls(
            features=tuple(features),
            classes=tuple(data["classes"]),
            label=str(data.get("label", "label")),
            name=str(data.get("name", "")),
            citation=str(data.get("citation", "")),
        )

    def digest(self) -> str:
        """Return the SHA-256 of the schema's canonical text.

        Returns
        -------
        str
            64 hexadecimal digits.
        """
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def _columns(self, X: Any) -> list[Any]:
        if is_frame(X):
            present = [str(column) for column in X.columns]
            repeated = sorted({name for name in present if present.count(name) > 1})
            if repeated:
                raise SchemaError(f"X has duplicate columns: {repeated}.")
            absent = [name for name in self.feature_names if name not in present]
            extra = [name for name in present if name not in self.feature_names]
            if absent or extra:
                raise SchemaError(
                    f"X does not fit the schema: missing columns {absent}, unexpected columns {extra}. "
                    f"The schema lists {list(self.feature_names)}."
                )
            position = {name: j for j, name in enumerate(present)}
            return [X.iloc[:, position[name]] for name in self.feature_names]
        # A list that mixes numbers and text must stay as it is: as one array of text, a single odd entry
        # would change how all the others are read.
        array = np.asarray(X, dtype=None if hasattr(X, "dtype") else object)
        if array.ndim != 2:
            raise SchemaError(f"X must be a table (2 dimensions), got {array.ndim}.")
        if array.shape[1] != self.n_features:
            raise SchemaError(
                f"X has {array.shape[1]} features, but the schema lists {self.n_features}: "
                f"{list(self.feature_names)}."
            )
        return [array[:, j] for j in range(self.n_features)]

    def _encode_column(
        self, feature: Feature, column: Any, missing: str
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        if isinstance(feature, NumericFeature):
            return self._encode_numeric(feature, column, missing)
        return self._encode_categorical(feature, column)

    @staticmethod
    def _encode_numeric(
        feature: NumericFeature, column: Any, missing: str
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        try:
            if hasattr(column, "to_numpy"):
                coded = column.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
            else:
                coded = np.array(column, dtype=np.float64)
        except (TypeError, ValueError) as error:
            if missing != "fill":
                raise SchemaError(
                    f"feature {feature.name!r} is numeric, but its column holds other values ({error})."
                ) from None
            # What is no number is missing: one odd entry must not be an event of its own.
            coded = np.array([_number_or_nan(value) for value in np.asarray(column, dtype=object)])
        return coded, ~np.isfinite(coded)

    @staticmethod
    def _encode_categorical(
        feature: CategoricalFeature, column: Any
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if hasattr(column, "cat"):
            levels = np.asarray(column.cat.categories, dtype=object)
            codes = np.asarray(column.cat.codes, dtype=np.int64)
            table = np.append(_positions(levels, feature.categories), UNSEEN)
            return table[codes], codes < 0
        array = np.asarray(column)
        return _positions(array, feature.categories), _is_missing(array)


def _refuse_unknown(data: Mapping[str, Any], allowed: set[str], where: str) -> None:
    unknown = sorted(set(map(str, data)) - allowed)
    if unknown:
        raise SchemaError(f"{where}: unknown keys {unknown}; known are {sorted(allowed)}.")


def _is_missing(array: NDArray[Any]) -> NDArray[np.bool_]:
    if array.dtype.kind == "f":
        return np.isnan(array)
    if array.dtype.kind == "O":
        return np.array([is_null(value) for value in array.tolist()], dtype=bool)
    return np.zeros(array.shape, dtype=bool)


def _positions(array: NDArray[Any], known: tuple[Hashable, ...]) -> NDArray[np.int64]:
    """Return the position of each value in `known`, :data:`UNSEEN` where it is absent."""
    all_numbers = all(isinstance(v, numbers.Real) for v in known)
    if array.dtype.kind in "biuf" and all_numbers:
        reference = np.array([float(v) for v in known])  # type: ignore[arg-type]
        order = np.argsort(reference, kind="stable")
        values = array.astype(np.float64)
        place = np.searchsorted(reference[order], values).clip(0, len(known) - 1)
        return np.where(reference[order][place] == values, order[place], UNSEEN).astype(np.int64)
    lookup = {value: code for code, value in enumerate(known)}

    def position(value: Any) -> int:
        try:
            return lookup.get(_plain(value), UNSEEN)
        except TypeError:  # not hashable, so no category
            return UNSEEN

    return np.array([position(value) for value in array.tolist()], dtype=np.int64)


def is_frame(X: Any) -> bool:
    """Whether a table has named columns, as a DataFrame has."""
    return hasattr(X, "columns") and hasattr(X, "iloc")


def is_null(value: Any) -> bool:
    """Whether a value stands for "missing": None, NaN, or a marker that has no truth value."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True


def _number_or_nan(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
