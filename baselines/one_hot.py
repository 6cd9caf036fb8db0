"""What the non-private references share: one-hot input, a scikit-learn model, a search on validation.

The references themselves are :mod:`baselines.extra_trees` and :mod:`baselines.decision_tree`.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from baselines.coded_classifier import CodedClassifier
from baselines.coded_input import (
    Seed,
    check_labels,
    check_mode,
    check_privacy_parameters,
    check_table,
    seed_sequence,
)
from lumberjack.accounting.guarantee import PrivacyCard
from lumberjack.schema import FeatureSchema


def one_hot(table: NDArray[np.float64], schema: FeatureSchema) -> NDArray[np.float32]:
    """Replace each categorical feature of k categories by k - 1 indicator columns.

    The first category has no column, as in the protocol of the Lumberjack paper; it, and a category
    that the schema does not list, is all zeros.

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


class OneHotReference(CodedClassifier, abc.ABC):
    """A scikit-learn classifier on one-hot input that meets the contract of all methods.

    A reference gives its model and the grid of its search; everything else is here.

    Attributes
    ----------
    grid : mapping of str to sequence
        Values of the constructor's parameters that :meth:`tune` tries.
    model_ : scikit-learn classifier
        The fitted model.
    """

    display_name: ClassVar[str]
    is_private: ClassVar[bool] = False
    grid: ClassVar[Mapping[str, Sequence[Any]]]
    source: ClassVar[str]

    schema: FeatureSchema
    epsilon: float
    delta: float
    mode: str
    random_state: Seed
    n_jobs: int | None

    @abc.abstractmethod
    def _model(self, seed: int) -> Any:
        """Return the unfitted scikit-learn classifier for the current parameters."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Coded table.
        y : array-like of shape (n_rows,)
            Class codes.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            When a parameter or the data is unusable.
        """
        check_privacy_parameters(self.epsilon, self.delta)
        check_mode(self.mode, ("paper",))
        table = check_table(X, self.schema)
        labels = check_labels(y, len(table), self.schema.n_classes)
        self.classes_ = np.arange(self.schema.n_classes)
        self.model_ = self._model(self._model_seed()).fit(one_hot(table, self.schema), labels)
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the model's probability of each class of the schema.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Coded table.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Zero for a class that no training record had.
        """
        check_is_fitted(self, "model_")
        table = check_table(X, self.schema)
        probabilities = np.zeros((len(table), self.schema.n_classes))
        if len(table):
            known = self.model_.predict_proba(one_hot(table, self.schema))
            probabilities[:, self.model_.classes_] = known
        return probabilities

    def tune(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_validation: ArrayLike,
        y_validation: ArrayLike,
    ) -> dict[str, Any]:
        """Choose from :attr:`grid` by accuracy on validation rows.

        Parameters
        ----------
        X, X_validation : array-like of shape (n_rows, n_features)
            Coded tables.
        y, y_validation : array-like of shape (n_rows,)
            Class codes.

        Returns
        -------
        dict
            The first of the most accurate settings, in the order of the grid.
        """
        training, validation = check_table(X, self.schema), check_table(X_validation, self.schema)
        labels = check_labels(y, len(training), self.schema.n_classes)
        target = check_labels(y_validation, len(validation), self.schema.n_classes)
        columns, validation_columns = (
            one_hot(training, self.schema),
            one_hot(validation, self.schema),
        )
        best_accuracy, best = -1.0, {}
        for setting in ParameterGrid(dict(self.grid)):
            candidate = type(self)(**{**self.get_params(deep=False), **setting})
            model = candidate._model(candidate._model_seed()).fit(columns, labels)
            accuracy = float((model.predict(validation_columns) == target).mean())
            if accuracy > best_accuracy:
                best_accuracy, best = accuracy, setting
        return best

    def privacy_card(self) -> PrivacyCard:
        """Return the card of a method that promises nothing.

        Returns
        -------
        PrivacyCard
        """
        return PrivacyCard(
            method=self.display_name,
            mode=self.mode,
            claimed=None,
            source=self.source,
            status="not private",
            concerns=("splits and leaves are computed from the exact records",),
        )

    def _model_seed(self) -> int:
        return int(seed_sequence(self.random_state).generate_state(1)[0])
