"""DiffPrivLib's linear regression: Laplace noise on each coefficient of the sum of squares.

Functional mechanism of Zhang et al. 2012, as the library diffprivlib has it. The library's way of
centring rows would understate one sensitivity (it squares the lower bound of a column where the larger
of both bounds is meant), so every column here lies in [-1, 1], and the constant is one of them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from baselines.coded_regressor import CodedRegressor
from baselines.one_hot_cells import scaled
from lumberjack.accounting.guarantee import PrivacyCard
from lumberjack.schema import FeatureSchema


def bounded_columns(table: NDArray[np.float64], schema: FeatureSchema) -> NDArray[np.float64]:
    """Return a constant, numeric features scaled to [-1, 1] and an indicator of each category but the first.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_features)
        Coded table.
    schema : FeatureSchema
        Coded schema.
    """
    columns = [np.ones((len(table), 1))]
    numbers = 2 * scaled(table, schema) - 1
    for j, n_categories in enumerate(schema.n_categories):
        if n_categories:
            columns.append((table[:, [j]] == np.arange(1, n_categories)).astype(np.float64))
        else:
            columns.append(numbers[:, [j]])
    return np.hstack(columns)


@dataclass(kw_only=True, eq=False, repr=False)
class DiffPrivLibLinearRegression(CodedRegressor):
    """Differentially private linear regression of diffprivlib.

    Attributes
    ----------
    model_ : diffprivlib.models.LinearRegression
        The fitted model.

    Notes
    -----
    A noisy sum of squares need not have a minimum; the library's solver then stops where it stops, and
    what is predicted is clipped to the target's bounds.

    References
    ----------
    Zhang, Zhang, Xiao, Yang, Winslett: "Functional mechanism: regression analysis under differential
    privacy", 2012. Holohan, Braghin, Mac Aonghusa, Levacher: "Diffprivlib: the IBM differential privacy
    library", 2019.
    """

    display_name: ClassVar[str] = "DiffPrivLib linear regression"
    is_private: ClassVar[bool] = True

    _parameter_constraints = CodedRegressor._parameter_constraints | {
        "epsilon": [Interval(Real, 0, None, closed="neither")],
    }

    def privacy_card(self) -> PrivacyCard:
        """Return the card of a pure epsilon claim, for rows in the bounds of the schema."""
        return self._card(
            status="holds",
            source="diffprivlib 0.6.6: Laplace mechanism on each coefficient of the sum of squares, by basic "
            "composition (Zhang et al. 2012)",
            concerns=("the sums are computed in floating point, whose rounding is not covered",),
        )

    def _fit(self, table: NDArray[np.float64], labels: NDArray[np.float64]) -> None:
        from diffprivlib import BudgetAccountant
        from diffprivlib.models import LinearRegression
        from diffprivlib.utils import PrivacyLeakWarning

        columns = bounded_columns(table, self.schema)
        model = LinearRegression(
            epsilon=float(self.epsilon),
            bounds_X=(-1.0, 1.0),
            bounds_y=(-1.0, 1.0),
            fit_intercept=False,
            random_state=self._package_seed(),
            accountant=BudgetAccountant(),
        )
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error", PrivacyLeakWarning)
            model.fit(columns, labels)
        self.model_: Any = model

    def _values(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        # Without a minimum, weights may be as large as numbers get.
        weights = np.nan_to_num(np.ravel(self.model_.coef_)).clip(-1e6, 1e6)
        values: NDArray[np.float64] = bounded_columns(table, self.schema) @ weights
        return values
