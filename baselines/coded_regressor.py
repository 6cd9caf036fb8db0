"""What every baseline for a numeric target shares: the target on one scale, the way in and out."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from baselines.coded_classifier import CodedMethod
from baselines.coded_input import check_table, check_target


@dataclass(kw_only=True, eq=False, repr=False)
class CodedRegressor(RegressorMixin, CodedMethod):
    """A regressor that meets the contract of the harness; a baseline is a subclass of it.

    It is made as :class:`~baselines.coded_classifier.CodedMethod` says. ``_fit`` gets targets clipped
    to the public bounds and scaled to [-1, 1], and ``_values`` answers on that scale.
    """

    schema_input: ClassVar[str] = "schema (bounds, categories, target bounds)"

    @abstractmethod
    def _values(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what is predicted for each row; beyond [-1, 1] it is clipped."""

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict the target, in its own unit and within its bounds.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Coded table.
        """
        check_is_fitted(self)
        table = check_table(X, self.schema)
        lower, upper = self._bounds()
        values = np.clip(self._values(table), -1.0, 1.0) if len(table) else np.empty(0)
        predicted: NDArray[np.float64] = lower + (upper - lower) * (values + 1.0) / 2.0
        return predicted

    def _check_labels(self, y: ArrayLike, n_rows: int) -> NDArray[np.float64]:
        lower, upper = self._bounds()
        target = np.clip(check_target(y, n_rows), lower, upper)
        scaled: NDArray[np.float64] = 2.0 * (target - lower) / (upper - lower) - 1.0
        return scaled.clip(-1.0, 1.0)

    def _bounds(self) -> tuple[float, float]:
        if self.schema.target_bounds is None:
            raise ValueError(
                f"{self.display_name} predicts numbers, but the schema has classes. Give it target_bounds."
            )
        return self.schema.target_bounds
