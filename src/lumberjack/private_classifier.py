"""What every private classifier here does: read labels, predict classes and their probabilities."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions

from lumberjack.estimator import PrivateEstimator
from lumberjack.public_facts import GivenFacts, resolve_schema
from lumberjack.reading import read_entry, shown
from lumberjack.schema import UNSEEN, FeatureSchema, SchemaError


class PrivateClassifier(ClassifierMixin, PrivateEstimator):
    """What the private classifiers have in common; not to be used by itself.

    Among a subclass's parameters are also ``classes`` and ``unknown_labels``.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        "unknown_labels": [StrOptions({"raise", "drop"})],
    }

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
            a logistic model.
        """
        return self._predict_scores(X)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithms of :meth:`predict_proba`, minus infinity for a share of 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

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

    def _resolve_schema(
        self, X: Any, y: NDArray[Any]
    ) -> tuple[FeatureSchema, tuple[str, ...] | None, list[str]]:
        given = GivenFacts(self.schema, self.bounds, self.categories, classes=self.classes)
        return resolve_schema(given, X, y)

    def _read_labels(self, y: NDArray[Any], schema: FeatureSchema) -> NDArray[Any]:
        try:
            labels = schema.encode_labels(y, unknown=self.unknown_labels)
        except SchemaError as error:
            raise SchemaError(f"{error}{_hint_at_codes(y, schema)}") from None
        _warn_of_other_types(y, labels, schema)
        return labels.astype(np.min_scalar_type(-schema.n_classes))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Noise of a sensible budget hides the small tables of generic checks.
        tags.classifier_tags.poor_score = True
        return tags


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
                stacklevel=5,
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
