"""The majority class: what a method must beat to have learnt anything. Not private."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from baselines.coded_input import check_labels, check_mode, check_privacy_parameters, check_table
from lumberjack.accounting.guarantee import PrivacyCard
from lumberjack.schema import FeatureSchema


class MajorityClassifier(ClassifierMixin, BaseEstimator):
    """Predicts the most frequent class of the rows it was fitted on.

    Parameters
    ----------
    schema : FeatureSchema
        Coded schema.
    epsilon, delta : float
        Taken so that all methods are built alike; nothing here depends on them.
    mode : str
        Only ``"paper"``.
    random_state, noise_seed : int, SeedSequence or None
        Not used; nothing is drawn.
    n_jobs : int
        Not used.

    Attributes
    ----------
    class_ : int
        The predicted class code; the lowest of several equally frequent ones.
    classes_ : ndarray of shape (n_classes,)
        All class codes.
    """

    display_name: ClassVar[str] = "Majority class"
    is_private: ClassVar[bool] = False

    def __init__(
        self,
        *,
        schema: FeatureSchema,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        mode: str = "paper",
        random_state: Any = None,
        noise_seed: Any = None,
        n_jobs: int = 1,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.mode = mode
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike) -> MajorityClassifier:
        """Count the classes.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Checked, otherwise ignored.
        y : array-like of shape (n_rows,)
            Class codes.

        Returns
        -------
        MajorityClassifier
        """
        check_privacy_parameters(self.epsilon, self.delta)
        check_mode(self.mode, ("paper",))
        table = check_table(X, self.schema)
        labels = check_labels(y, len(table), self.schema.n_classes)
        self.classes_ = np.arange(self.schema.n_classes)
        self.class_ = int(np.bincount(labels, minlength=self.schema.n_classes).argmax())
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the majority class for every row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows,), int64
        """
        check_is_fitted(self)
        return np.full(len(check_table(X, self.schema)), self.class_, dtype=np.int64)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return probability one for the majority class.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        probabilities: NDArray[np.float64] = np.eye(self.schema.n_classes)[self.predict(X)]
        return probabilities

    def privacy_card(self) -> PrivacyCard:
        """Return a card that claims nothing.

        Returns
        -------
        PrivacyCard
        """
        return PrivacyCard(
            method=self.display_name,
            mode=self.mode,
            claimed=None,
            source="no claim: the class counts are used without noise",
            status="not private",
        )
