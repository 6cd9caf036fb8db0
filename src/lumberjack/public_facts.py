"""Public facts from what a caller gives: a schema, or bounds, categories and classes or a target's bounds.

What is missing is read off the rows, with a warning: no guarantee covers that.
"""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from lumberjack.reading import (
    MISSING_READING,
    Column,
    read_column,
    read_entry,
    read_table,
    shown,
)
from lumberjack.schema import CategoricalFeature, Feature, FeatureSchema, NumericFeature

MOST_NAMED = 5
"""How many features a warning names."""


class PrivacyLeakWarning(RuntimeWarning):
    """Something was read off the rows that the guarantee takes to be public."""


class GivenFacts(NamedTuple):
    """The parameters of an estimator that say what is public."""

    schema: FeatureSchema | None
    bounds: Any
    categories: Mapping[Any, Any] | None
    classes: Any = None
    target_bounds: Any = None


def resolve_schema(
    given: GivenFacts, X: Any, y: NDArray[Any], *, is_regression: bool = False
) -> tuple[FeatureSchema, tuple[str, ...] | None, list[str]]:
    """Return the public facts, reading off the rows only what is missing.

    Parameters
    ----------
    given : GivenFacts
    X : frame or array-like of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
        Class labels, or numbers for a regression.
    is_regression : bool, default=False
        Whether the schema is to have a numeric target.

    Returns
    -------
    schema : FeatureSchema
        Its classes are sorted, as scikit-learn's metrics expect the columns of ``predict_proba``.
    names : tuple of str or None
        The frame's column names, if they are text.
    leaks : list of str
        What was read off the rows.
    """
    table = read_table(X)
    if table.n_rows == 0:
        raise ValueError("Found array with 0 sample(s): the table has no rows to fit.")
    leaks: list[str] = []
    if given.schema is not None:
        others = [name for name in given._fields[1:] if getattr(given, name) is not None]
        if others:
            raise ValueError(f"give either schema or {', '.join(others)}, not both.")
        schema = given.schema
    else:
        names = table.names or tuple(f"x{j}" for j in range(len(table.columns)))
        features = _features_from(table.columns, names, given.bounds, given.categories, leaks)
        target: dict[str, Any] = (
            {"target_bounds": _target_bounds_from(given.target_bounds, y, leaks)}
            if is_regression
            else {"classes": _classes_from(given.classes, y, leaks)}
        )
        schema = FeatureSchema(tuple(features), label="<label>", **target)
    if is_regression != (schema.target_bounds is not None):
        own = "target_bounds" if schema.target_bounds else "classes"
        wanted = "target_bounds, for a regressor" if is_regression else "classes, for a classifier"
        raise ValueError(f"the schema has {own}, but needs {wanted}.")
    schema = replace(schema, classes=_sorted(schema.classes))
    if schema.n_classes < 2 and not is_regression:
        raise ValueError(
            f"a classifier needs at least two classes, got one class: {list(schema.classes)}."
        )
    return schema, table.names if table.has_text_names else None, leaks


def check_fill_values(schema: FeatureSchema) -> None:
    """Refuse to fill where a feature has no public fill value, without a look at the rows."""
    lacking = [feature.name for feature in schema.features if feature.fill is None]
    if lacking:
        raise ValueError(
            f"missing='fill' needs a public fill value for every feature; {lacking} have none. Give "
            "a schema whose features have one, as in schema=FeatureSchema((NumericFeature('age', 0, "
            "99, fill=40), CategoricalFeature('work', ('yes', 'no'), fill='no')), classes)."
        )


def classes_as_array(classes: tuple[Any, ...]) -> NDArray[Any]:
    """Return classes as an array that does not turn numbers among text into text."""
    is_plain = all(isinstance(label, str) for label in classes) or all(
        isinstance(label, numbers.Real) for label in classes
    )
    return np.array(classes) if is_plain else np.fromiter(classes, dtype=object)


def _classes_from(classes: Any, labels: NDArray[Any], leaks: list[str]) -> tuple[Any, ...]:
    if classes is not None:
        return _listed(classes)
    if labels.dtype.kind == "O":
        labels = np.array(labels.tolist())
    check_classification_targets(labels)
    leaks.append("classes")
    return tuple(np.unique(labels).tolist())


def _target_bounds_from(given: Any, y: NDArray[Any], leaks: list[str]) -> tuple[float, float]:
    if given is not None:
        return _pair("target_bounds", given)
    values = read_column(y).numbers()
    values = values[np.isfinite(values)]
    leaks.append("target_bounds")
    lower, upper = (values.min(), values.max()) if len(values) else (0.0, 0.0)
    # A constant target has to have a range too.
    return (float(lower), float(upper)) if lower < upper else (float(lower), float(lower) + 1.0)


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
    read: dict[str, list[str]] = {}
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
            features.append(_feature_off(column, name, read))
    leaks += [f"{what} of {_named(found)}" for what, found in read.items()]
    return features


def _named(features: Sequence[str]) -> str:
    shown_names = ", ".join(map(repr, features[:MOST_NAMED]))
    n_more = len(features) - MOST_NAMED
    return f"{shown_names} and {n_more} more" if n_more > 0 else shown_names


def _by_feature(what: str, given: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return a mapping of features to public facts, where a position names a feature too."""
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
    hint = " For a pair per feature give a mapping of name or position to (lower, upper)."
    hint = "" if what == "target_bounds" else hint
    try:
        lower, upper = (float(bound) for bound in given)
    except (TypeError, ValueError):
        raise ValueError(
            f"{what} must be two numbers (lower, upper), got {shown(given)}.{hint}"
        ) from None
    return lower, upper


def _feature_off(column: Column, name: str, read: dict[str, list[str]]) -> Feature:
    """Read a feature off the rows, and note it: a number if all its entries are, else a category."""
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
        read.setdefault("bounds", []).append(name)
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
    read.setdefault("categories", []).append(name)
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
