"""What the baselines share as classifiers of coded tables: how scores become predictions."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin


class CodedClassifier(ClassifierMixin, BaseEstimator):
    """Base of methods that predict the class with the largest score; not to be used by itself."""

    @abstractmethod
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return a score of each class, shape (n_rows, n_classes)."""

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict the class with the largest score; a tie goes to the lowest code.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Coded table.

        Returns
        -------
        ndarray of shape (n_rows,), int64
        """
        return self.predict_proba(X).argmax(axis=1)
