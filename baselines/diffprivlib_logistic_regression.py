"""DiffPrivLib's logistic regression: a random linear term in the objective, which is then minimised.

Objective perturbation of Chaudhuri, Monteleoni and Sarwate 2011, as the library diffprivlib has it.
Its proof needs rows of norm at most 1, a penalty on every coefficient and both classes in the rows.
The library checks none of the three, and this wrapper sees to them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from baselines.coded_classifier import COUNT, CodedClassifier
from baselines.one_hot_cells import scaled
from lumberjack.accounting.guarantee import PrivacyCard
from lumberjack.schema import FeatureSchema


def unit_rows(table: NDArray[np.float64], schema: FeatureSchema) -> NDArray[np.float64]:
    """Return rows of norm at most 1, whatever the table holds.

    One cell per category, which is 1 or 0; one column per numeric feature, scaled to [-1, 1] by
    its public bounds; a constant. Each feature and the constant add at most 1 to the squared norm, so
    that all is divided by the root of their number. An unseen category is all zeros.

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
            columns.append((table[:, [j]] == np.arange(n_categories)).astype(np.float64))
        else:
            # A feature of one value is the constant -1.
            columns.append(numbers[:, [j]])
    return np.hstack(columns) / np.sqrt(schema.n_features + 1)


@dataclass(kw_only=True, eq=False, repr=False)
class DiffPrivLibLogisticRegression(CodedClassifier):
    """Differentially private logistic regression of diffprivlib, one class against the rest.

    Parameters
    ----------
    C : float
        Inverse strength of the penalty, in units of rows that are not divided by their norm: the
        library's default of 1 then means what it means there.
    max_iter : int
        Most iterations of the solver.
    tol : float
        Largest entry of the mean gradient at which the solver stops. Smaller than the library's
        1e-4, as the guarantee is that of the exact minimum.

    Attributes
    ----------
    model_ : diffprivlib.models.LogisticRegression
        The fitted model.

    Notes
    -----
    The constant is a column of its own: the library's intercept has no penalty, so that the
    objective is not strongly convex, which the proof needs. The library takes the norm itself where
    the second derivative has its square; at norm 1 they agree. One row of zeros for each class is
    added. Its gradient is zero, and the library then finds all public classes whatever the rows.

    References
    ----------
    Chaudhuri, Monteleoni, Sarwate: "Differentially private empirical risk minimization", 2011.
    Holohan, Braghin, Mac Aonghusa, Levacher: "Diffprivlib: the IBM differential privacy library",
    2019.
    """

    display_name: ClassVar[str] = "DiffPrivLib logistic regression"
    is_private: ClassVar[bool] = True

    C: float = 1.0
    max_iter: int = 1000
    tol: float = 1e-6

    _parameter_constraints = CodedClassifier._parameter_constraints | {
        "C": [Interval(Real, 0, None, closed="neither")],
        "max_iter": COUNT,
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def privacy_card(self) -> PrivacyCard:
        """Return the card of a pure epsilon claim, for rows in the bounds of the schema."""
        concerns: tuple[str, ...] = (
            "the proof is about the exact minimum; the solver stops near it, and what it leaves over "
            "is not accounted for (Iyengar et al. 2019 show how it could be)",
            "the noise is drawn in floating point, whose gaps can tell neighbouring tables apart",
        )
        if self.schema.n_classes > 2:
            concerns += (
                f"epsilon is split over {self.schema.n_classes} fits of one class against the rest, by "
                "basic composition",
            )
        return self._card(
            status="doubted",
            source="diffprivlib 0.6.6: objective perturbation (Chaudhuri et al. 2011)",
            concerns=concerns,
        )

    def _fit(self, table: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
        from diffprivlib import BudgetAccountant
        from diffprivlib.models import LogisticRegression
        from diffprivlib.utils import PrivacyLeakWarning

        rows = unit_rows(table, self.schema)
        classes = np.arange(self.schema.n_classes)
        zeros = np.zeros((len(classes), rows.shape[1]))
        model = LogisticRegression(
            epsilon=float(self.epsilon),
            data_norm=1.0,
            C=float(self.C) * (self.schema.n_features + 1),
            fit_intercept=False,
            max_iter=self.max_iter,
            tol=self.tol,
            n_jobs=1,
            random_state=self._package_seed(),
            accountant=BudgetAccountant(),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error", PrivacyLeakWarning)
            # The solver's option that the library sets has no effect any more.
            warnings.filterwarnings("ignore", "(?s).*iprint", DeprecationWarning)
            model.fit(np.vstack([rows, zeros]), np.append(labels, classes))
        # How long the solver took is not what the proof covers.
        del model.n_iter_
        self.model_: Any = model

    def _probabilities(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        if not len(table):
            return np.empty((0, self.schema.n_classes))
        probabilities = self.model_.predict_proba(unit_rows(table, self.schema))
        return np.asarray(probabilities, dtype=np.float64)
