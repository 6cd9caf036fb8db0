"""What the non-private references share: one-hot input, a scikit-learn model, a search on validation.

The references themselves are :mod:`baselines.extra_trees`, :mod:`baselines.decision_tree`,
:mod:`baselines.hist_gradient_boosting` and :mod:`baselines.logistic_regression`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import ParameterGrid

from baselines.coded_classifier import CodedClassifier, CodedMethod
from baselines.coded_regressor import CodedRegressor
from lumberjack.accounting.guarantee import PrivacyCard
from lumberjack.schema import FeatureSchema
from lumberjack.seeds import seed_sequence


def one_hot(table: NDArray[np.float64], schema: FeatureSchema) -> NDArray[np.float32]:
    """Replace each categorical feature of k categories by k - 1 indicator columns.

    The first category has no column, as in the protocol of the Lumberjack paper; it, and a category
    that the schema does not list, is all zeros. (``OneHotEncoder`` warns of each such table.)

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_features)
        Coded table.
    schema : FeatureSchema
        Coded schema.

    Returns
    -------
    ndarray of shape (n_rows, n_columns), float32
        The type that scikit-learn's trees work in. A table of one-category features alone has one
        column of zeros.
    """
    columns: list[NDArray[np.float32]] = []
    for j, n_categories in enumerate(schema.n_categories):
        if n_categories == 0:
            columns.append(table[:, [j]].astype(np.float32))
        else:
            codes = np.arange(1, n_categories)
            columns.append((table[:, [j]] == codes).astype(np.float32))
    matrix = np.hstack(columns)
    return matrix if matrix.shape[1] else np.zeros((len(table), 1), dtype=np.float32)


@dataclass(kw_only=True, eq=False, repr=False)
class OneHotMethod(CodedMethod):
    """A scikit-learn model on one-hot input that meets the contract of all methods.

    A reference gives its model and the grid of its search; everything else is here.

    Attributes
    ----------
    grid : mapping of str to sequence
        Values of the parameters that :meth:`tune` tries.
    model_ : scikit-learn estimator
        The fitted model.
    """

    is_private: ClassVar[bool] = False
    grid: ClassVar[Mapping[str, Sequence[Any]]]
    source: ClassVar[str]

    @abstractmethod
    def _model(self, seed: int) -> Any:
        """Return the unfitted scikit-learn estimator for the current parameters."""

    @abstractmethod
    def _score(self, predicted: NDArray[Any], labels: NDArray[Any]) -> float:
        """Return how good predictions are on validation rows, larger being better."""

    def _columns(self, table: NDArray[np.float64]) -> Any:
        """Return the matrix that the model learns from."""
        return one_hot(table, self.schema)

    def tune(
        self, X: ArrayLike, y: ArrayLike, X_validation: ArrayLike, y_validation: ArrayLike
    ) -> dict[str, Any]:
        """Choose from :attr:`grid` by accuracy or squared error on validation rows, the first of equals.

        Parameters
        ----------
        X, X_validation : array-like of shape (n_rows, n_features)
            Coded tables.
        y, y_validation : array-like of shape (n_rows,)
            Class codes, or numbers.
        """
        table, labels = self._checked(X, y)
        validation, target = self._checked(X_validation, y_validation)
        columns, validation_columns = self._columns(table), self._columns(validation)
        best_score, best = -np.inf, {}
        for setting in ParameterGrid(dict(self.grid)):
            model = clone(self).set_params(**setting)._fitted_model(columns, labels)
            score = self._score(model.predict(validation_columns), target)
            if score > best_score:
                best_score, best = score, setting
        return best

    def privacy_card(self) -> PrivacyCard:
        """Return the card of a method that promises nothing."""
        return self._card(
            status="not private",
            source=self.source,
            concerns=("the model is computed from the exact records",),
        )

    def _fit(self, table: NDArray[np.float64], labels: NDArray[Any]) -> None:
        self.model_ = self._fitted_model(self._columns(table), labels)

    def _fitted_model(self, columns: Any, labels: NDArray[Any]) -> Any:
        seed = int(seed_sequence(self.random_state).generate_state(1)[0])
        return self._model(seed).fit(columns, labels)


@dataclass(kw_only=True, eq=False, repr=False)
class OneHotReference(OneHotMethod, CodedClassifier):
    """A classifier of this kind.

    Attributes
    ----------
    needs_two_classes : bool
        Whether the model refuses rows of a single class, so that a constant must stand in for it.
    """

    needs_two_classes: ClassVar[bool] = False

    def _score(self, predicted: NDArray[Any], labels: NDArray[Any]) -> float:
        return float((predicted == labels).mean())

    def _probabilities(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        # A class that no training record had is unknown to the model.
        probabilities = np.zeros((len(table), self.schema.n_classes))
        if len(table):
            known = self.model_.predict_proba(self._columns(table))
            probabilities[:, self.model_.classes_] = known
        return probabilities

    def _fitted_model(self, columns: Any, labels: NDArray[Any]) -> Any:
        if self.needs_two_classes and labels.min() == labels.max():
            return DummyClassifier().fit(columns, labels)
        return super()._fitted_model(columns, labels)


@dataclass(kw_only=True, eq=False, repr=False)
class OneHotRegressor(OneHotMethod, CodedRegressor):
    """A regressor of this kind."""

    def _score(self, predicted: NDArray[Any], labels: NDArray[Any]) -> float:
        return -float(((predicted - labels) ** 2).mean())

    def _values(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        values: NDArray[np.float64] = self.model_.predict(self._columns(table))
        return values
