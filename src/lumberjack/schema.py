"""Public facts about a table: its features, their bounds and categories, and its classes or target.

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

from lumberjack.reading import (
    MISSING,
    UNSEEN,
    Column,
    PublicList,
    read_column,
    read_entry,
    read_table,
    shown,
)

__all__ = [
    "UNSEEN",
    "CategoricalFeature",
    "EncodedTable",
    "FeatureSchema",
    "NumericFeature",
    "SchemaError",
]


class SchemaError(ValueError):
    """A schema that contradicts itself, or a table that does not fit its schema."""


def _plain(value: Any) -> Any:
    """Turn numpy scalars into the Python values they stand for, except dates, which item() makes numbers."""
    is_date = isinstance(value, np.datetime64 | np.timedelta64)
    return value.item() if isinstance(value, np.generic) and not is_date else value


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
        if self.fill is not None and not isinstance(self.fill, numbers.Real):
            raise SchemaError(
                f"feature {self.name!r}: the fill value must be a number, got {self.fill!r}."
            )
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
        The values; the code of a value is its position. No two may be read alike
        (:mod:`lumberjack.reading`): 1 and "1" are one value.
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
        listed = _public_list(categories, f"feature {self.name!r}: categories")
        if self.fill is not None:
            code = listed.code(self.fill)
            if code < 0:
                raise SchemaError(
                    f"feature {self.name!r}: fill value {self.fill!r} is not one of its categories."
                )
            object.__setattr__(self, "fill", categories[code])


Feature = NumericFeature | CategoricalFeature


def as_matrix(columns: Sequence[NDArray[Any]], rows: slice = slice(None)) -> NDArray[np.float64]:
    """Return rows of columns in a new array of float64, shape (n_rows, n_columns), column-major."""
    matrix = np.empty((len(columns[0][rows]), len(columns)), order="F")
    for j, column in enumerate(columns):
        matrix[:, j] = column[rows]
    return matrix


@dataclass(frozen=True, slots=True)
class EncodedTable:
    """Rows in the numeric form that methods take.

    Attributes
    ----------
    columns : tuple of ndarray, each of shape (n_rows,)
        Numeric features clipped to their bounds: where nothing had to change, the table's own entries,
        which are never written to. Categorical features as codes, in the narrowest whole numbers, with
        :data:`UNSEEN` for a category that the schema does not list.
    n_clipped, n_unseen, n_filled : int
        How many entries were clipped, coded as unseen, or filled.
    wholly_outside : tuple of str
        Features of which no entry at all was taken as it stands.

    Notes
    -----
    The counts are for the data holder's eyes: they are facts about the rows and must never be
    stored on a released model.
    """

    columns: tuple[NDArray[Any], ...]
    n_clipped: int
    n_unseen: int
    n_filled: int
    wholly_outside: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0])

    @property
    def values(self) -> NDArray[np.float64]:
        """All columns in a new array of float64, shape (n_rows, n_features), column-major."""
        return as_matrix(self.columns)


@dataclass(frozen=True, slots=True)
class FeatureSchema:
    """Ordered features and classes of a table, all public; of a regression table the target's bounds.

    Parameters
    ----------
    features : tuple of NumericFeature or CategoricalFeature
        In column order.
    classes : tuple of hashable, default=()
        The class labels; the code of a label is its position. None where the target is a number.
    label : str
        Name of the label column.
    name : str
        Name of the table, for messages and records.
    citation : str
        Where the public facts come from.
    target_bounds : tuple (lower, upper) or None, default=None
        Public bounds of a numeric target, in its own unit, ``lower < upper``; values outside are
        clipped.

    Notes
    -----
    The public lists alone decide how entries compare, in every container: an entry belongs to the
    category or class that is read like it. Text is read without blanks around it; text that spells
    a number is that number, true and false are 1 and 0. So 1, "1", 1.0, " 1", "01" and True are one
    value, and a list that holds two of them is refused. None, NaN, NaT, NA, empty text and "nan"
    are missing, unless they are listed. The whole rule is that of :mod:`lumberjack.reading`.
    """

    features: tuple[Feature, ...]
    classes: tuple[Hashable, ...] = ()
    label: str = "label"
    name: str = ""
    citation: str = ""
    target_bounds: tuple[float, float] | None = None

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
        if self.target_bounds is not None:
            self._check_target()
            return
        if not self.classes:
            raise SchemaError("a schema needs at least one class, or target_bounds for a number.")
        if _public_list(self.classes, "classes").code(None) >= 0:
            raise SchemaError(
                f"classes {list(self.classes)!r} hold a missing entry; rows without a label have no class."
            )

    def _check_target(self) -> None:
        if self.classes:
            raise SchemaError(
                f"a schema has classes or target_bounds, not both; got {list(self.classes)!r} and "
                f"{self.target_bounds!r}."
            )
        _check_list(self.target_bounds, "target_bounds must be (lower, upper)", length=2)
        lower, upper = self.target_bounds or (0.0, 0.0)
        try:
            target = NumericFeature(self.label, lower, upper)
        except SchemaError as error:
            raise SchemaError(str(error).replace("feature", "target", 1)) from None
        if target.lower == target.upper:
            raise SchemaError(
                f"target {self.label!r}: lower={target.lower:g} must be less than upper={target.upper:g}."
            )
        object.__setattr__(self, "target_bounds", (target.lower, target.upper))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.features)

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 where the target is a number."""
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
        """Encode rows as numbers, each entry by itself.

        An entry belongs to the category with the same reading (:mod:`lumberjack.reading`): the
        public list decides, never the type of the column. A numeric feature takes the number that an
        entry is read as.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)
            A frame (pandas, polars, Arrow) is matched by column name, anything else by position.
        missing : {"raise", "fill"}
            What to do with missing and infinite entries, and with entries of a numeric feature that
            are no numbers: raise, or use the feature's public fill value.

        Raises
        ------
        SchemaError
            When columns are missing or too many, or an entry is missing or no number and may not
            be filled.
        """
        columns = self._columns(X)
        n_rows = len(columns[0])
        encoded: list[NDArray[Any]] = []
        n_clipped = n_unseen = n_filled = 0
        wholly_outside = []
        for feature, column in zip(self.features, columns, strict=True):
            coded: NDArray[Any]
            if isinstance(feature, NumericFeature):
                is_plain = column.codes is None and np.can_cast(column.values.dtype, np.float64)
                coded = column.values if is_plain else column.numbers()
                bad = ~np.isfinite(coded)
            else:
                coded = _public_list(feature.categories, "categories").codes(column)
                bad = coded == MISSING
                coded = coded.astype(np.min_scalar_type(-len(feature.categories) - 1))
            n_bad = int(bad.sum())
            if n_bad:
                if isinstance(feature, NumericFeature):
                    coded = np.array(coded, dtype=np.float64)
                coded[bad] = self._filled(feature, column, bad, missing)
            if isinstance(feature, NumericFeature):
                # Arrays, or else a column of float32 is compared with bounds that are rounded to it.
                lower, upper = np.array([feature.lower]), np.array([feature.upper])
                n_outside = int(((coded < lower) | (coded > upper)).sum())
                n_clipped += n_outside
                if n_outside:
                    coded = np.clip(coded, lower, upper)
            else:
                n_outside = int((coded == UNSEEN).sum())
                n_unseen += n_outside
            n_filled += n_bad
            if n_rows and n_outside + n_bad == n_rows:
                wholly_outside.append(feature.name)
            encoded.append(coded)
        return EncodedTable(tuple(encoded), n_clipped, n_unseen, n_filled, tuple(wholly_outside))

    def encode_labels(
        self, y: ArrayLike, *, unknown: Literal["raise", "drop"] = "raise"
    ) -> NDArray[np.int64]:
        """Encode class labels as positions in :attr:`classes`.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
            Labels, read as the entries of a categorical feature are.
        unknown : {"raise", "drop"}
            What to do with a label the schema does not list: raise, or code it as :data:`UNSEEN`
            so that the caller can drop the row.

        Returns
        -------
        ndarray of shape (n_rows,), int64
        """
        column = read_column(y)
        codes = _public_list(self.classes, "classes").codes(column)
        codes[codes == MISSING] = UNSEEN
        if unknown == "raise":
            rows = np.flatnonzero(codes == UNSEEN)
            if len(rows):
                seen = sorted({shown(column.entry(row)) for row in rows[:1000]})[:5]
                raise SchemaError(
                    f"y has {len(rows)} labels that are not among the classes "
                    f"{list(self.classes)!r}: {', '.join(seen)}. Add them to the schema's classes, or drop these rows."
                )
        return codes

    def encode_target(self, y: ArrayLike) -> NDArray[np.float64]:
        """Return a numeric target, clipped to :attr:`target_bounds`.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
            Numbers, read as the entries of a numeric feature are.

        Returns
        -------
        ndarray of shape (n_rows,), float64

        Raises
        ------
        SchemaError
            When entries are missing, infinite or no numbers.
        """
        if self.target_bounds is None:
            raise SchemaError(
                "the schema has no target_bounds: its label is a class, not a number."
            )
        column = read_column(y)
        values = column.numbers()
        rows = np.flatnonzero(~np.isfinite(values))
        if len(rows):
            raise SchemaError(
                f"y has {len(rows)} entries that are missing, infinite (NaN, inf) or no numbers in "
                f"{len(values)} rows, e.g. {shown(column.entry(rows[0]))}. Drop these rows."
            )
        return np.clip(values, *self.target_bounds)

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain data (the form of a schema file)."""
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
        target: dict[str, Any] = {"classes": list(self.classes)}
        if self.target_bounds is not None:
            target = {"target_bounds": list(self.target_bounds)}
        return {
            "name": self.name,
            "citation": self.citation,
            "label": self.label,
            **target,
            "features": features,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FeatureSchema:
        """Build a schema from plain data.

        Parameters
        ----------
        data : mapping
            As :meth:`to_dict` gives it.

        Raises
        ------
        SchemaError
            When a key is missing, unknown or of the wrong kind.
        """
        allowed = {"name", "citation", "label", "classes", "target_bounds", "features"}
        _refuse_unknown(data, allowed, "schema")
        has_classes = "classes" in data or "target_bounds" not in data
        for key in ("classes", "features") if has_classes else ("features",):
            _check_list(data.get(key), f"schema: {key!r} must be a list")
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
                _check_list(bounds, f"feature {name!r}: numeric must be [lower, upper]", length=2)
                features.append(NumericFeature(name, bounds[0], bounds[1], entry.get("fill")))
            else:
                categories = entry["categories"]
                _check_list(categories, f"feature {name!r}: categories must be a list")
                features.append(CategoricalFeature(name, tuple(categories), entry.get("fill")))
        return cls(
            features=tuple(features),
            classes=tuple(data.get("classes", ())),
            label=str(data.get("label", "label")),
            name=str(data.get("name", "")),
            citation=str(data.get("citation", "")),
            target_bounds=data.get("target_bounds"),
        )

    def digest(self) -> str:
        """Return the SHA-256 of the facts that decide how rows are read.

        Name and citation do not count.

        Returns
        -------
        str
            64 hexadecimal digits.
        """
        facts = {k: v for k, v in self.to_dict().items() if k not in ("name", "citation")}
        text = json.dumps(facts, sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def _columns(self, X: Any) -> list[Column]:
        try:
            table = read_table(X)
        except ValueError as error:
            raise SchemaError(str(error)) from None
        if table.names is not None:
            present = table.names
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
            by_name = dict(zip(present, table.columns, strict=True))
            return [by_name[name] for name in self.feature_names]
        if len(table.columns) != self.n_features:
            raise SchemaError(
                f"X has {len(table.columns)} features, but the schema lists {self.n_features}: "
                f"{list(self.feature_names)}."
            )
        return list(table.columns)

    @staticmethod
    def _filled(feature: Feature, column: Column, bad: NDArray[np.bool_], missing: str) -> float:
        """Return what stands for the bad entries of a column, or say why they may not be filled."""
        if missing == "fill":
            if feature.fill is None:
                raise SchemaError(
                    f"feature {feature.name!r} has {int(bad.sum())} missing entries but its schema has "
                    "no fill value. Add one."
                )
            if isinstance(feature, CategoricalFeature):
                return feature.categories.index(feature.fill)
            return float(feature.fill)  # type: ignore[arg-type]
        rows = np.flatnonzero(bad)
        no_numbers = [
            entry
            for entry in map(column.entry, rows[:1000])
            if isinstance(feature, NumericFeature) and not _is_missing_or_infinite(entry)
        ]
        if no_numbers:
            raise SchemaError(
                f"feature {feature.name!r} is numeric, but {len(rows)} of {len(column)} entries are no "
                f"numbers, e.g. {shown(no_numbers[0])}. Correct them, list its values as categories, or give "
                "the schema a fill value and ask for missing='fill'."
            )
        raise SchemaError(
            f"feature {feature.name!r} has {len(rows)} missing or infinite (NaN, inf) entries in "
            f"{len(column)} rows. Fill them, or give the schema a fill value and ask for missing='fill'."
        )


def _is_missing_or_infinite(entry: Any) -> bool:
    reading = read_entry(entry)
    return reading == read_entry(None) or isinstance(reading, int | float)


def _public_list(values: Sequence[Hashable], what: str) -> PublicList:
    try:
        return PublicList(values)
    except ValueError as error:
        raise SchemaError(f"{what} {list(values)!r}: {error}. Keep one of them.") from None


def _check_list(value: Any, wanted: str, length: int | None = None) -> None:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    if not is_list or (length is not None and len(value) != length):
        raise SchemaError(f"{wanted}, got {value!r}.")


def _refuse_unknown(data: Mapping[str, Any], allowed: set[str], where: str) -> None:
    unknown = sorted(set(map(str, data)) - allowed)
    if unknown:
        raise SchemaError(f"{where}: unknown keys {unknown}; known are {sorted(allowed)}.")
