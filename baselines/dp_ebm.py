"""Differentially private explainable boosting machine: a sum of one noisy step function per feature.

Method of Nori et al. 2021, as the package interpret-core has it. Types and bounds of the features
come from the schema. What the package would still read off the rows, namely which categories and
classes there are, it finds in public rows of next to no weight that are added to the private ones.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from baselines.coded_classifier import COUNT, FRACTION, CodedClassifier, CodedMethod
from baselines.coded_regressor import CodedRegressor
from lumberjack.accounting.guarantee import PrivacyCard

PUBLIC_WEIGHT = 1e-9
"""Weight of a public row, where a private one has 1; the package refuses 0."""


@dataclass(kw_only=True, eq=False, repr=False)
class ExplainableBoosting(CodedMethod):
    """What both DP-EBMs of interpret-core have in common, with the package's defaults.

    Parameters
    ----------
    max_bins : int
        Most bins of a feature.
    max_rounds : int
        Passes over all features.
    max_leaves : int
        Leaves of the tree that a feature gets in each pass; its splits are random.
    learning_rate : float
        Factor of each step.
    bin_budget_fraction : float
        Share of epsilon that the bins get; of delta they get half.

    Attributes
    ----------
    model_ : interpret.privacy.DPExplainableBoostingClassifier or DPExplainableBoostingRegressor
        The fitted model.

    Notes
    -----
    The package draws everything from one seed, made of `random_state` and `noise_seed`.

    References
    ----------
    Nori, Caruana, Bu, Shen, Kulkarni: "Accuracy, interpretability, and differential privacy via
    explainable boosting", 2021.
    """

    is_private: ClassVar[bool] = True

    max_bins: int = 32
    max_rounds: int = 300
    max_leaves: int = 3
    learning_rate: float = 0.01
    bin_budget_fraction: float = 0.1

    _parameter_constraints = CodedMethod._parameter_constraints | {
        # The package's accounting takes neither infinity nor zero.
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "delta": FRACTION,
        "max_bins": COUNT,
        "max_rounds": COUNT,
        "max_leaves": COUNT,
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "bin_budget_fraction": FRACTION,
    }

    def privacy_card(self) -> PrivacyCard:
        """Return the card of the package's accounting."""
        return self._card(
            status="doubted",
            source="interpret-core 0.7.8: Gaussian differential privacy (Nori et al. 2021), bins and "
            "boosting with half of delta each",
            delta=float(self.delta),
            concerns=(
                "the bins are merged up to a share of the exact number of rows, which add/remove does "
                "not protect",
                "the noise level comes from a root search that may end on either side of the root, and "
                "loses its digits above an epsilon of about 10 (several times delta was seen at 20)",
                "floating-point noise from a non-cryptographic generator",
            ),
            public_inputs=("number of rows",),
        )

    def _fit_package(
        self, name: str, table: NDArray[np.float64], labels: NDArray[Any], **options: Any
    ) -> None:
        package = import_package(name)
        schema = self.schema
        public, numbers = self._public_rows()
        weights = np.append(np.ones(len(table)), np.full(len(public), PUBLIC_WEIGHT))
        model = package(
            feature_names=[f"feature_{j}" for j in range(schema.n_features)],
            feature_types=["nominal" if k else "continuous" for k in schema.n_categories],
            max_bins=self.max_bins,
            learning_rate=self.learning_rate,
            max_rounds=self.max_rounds,
            max_leaves=self.max_leaves,
            n_jobs=1,
            random_state=self._package_seed(),
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            bin_budget_frac=self.bin_budget_fraction,
            privacy_bounds=np.column_stack([schema.lower, schema.upper]),
            **options,
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "Possible privacy violation")
            # That the noise is seeded is said on the card.
            warnings.filterwarnings("ignore", "Privacy violation: using a fixed random_state")
            model.fit(
                np.vstack([self._with_unseen_category(table), public]),
                np.append(labels, numbers),
                sample_weight=weights,
            )
        # It holds the number of rows, which predictions do not need.
        del model.bag_weights_
        self.model_: Any = model

    def _public_rows(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return rows in which every category, the unseen one too, and the labels 0 and 1 occur."""
        sizes = self.schema.n_categories + 1
        numbers = np.arange(max(2, int(sizes.max())))
        rows = np.where(self.schema.n_categories, numbers[:, None] % sizes, self.schema.lower)
        return rows.astype(np.float64), numbers % 2

    def _with_unseen_category(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the table with the unseen category as one more code, so that it has a bin."""
        is_unseen = (self.schema.n_categories > 0) & (table < 0)
        return np.where(is_unseen, self.schema.n_categories.astype(np.float64), table)


@dataclass(kw_only=True, eq=False, repr=False)
class DPExplainableBoosting(ExplainableBoosting, CodedClassifier):
    """DP-EBM for two classes."""

    display_name: ClassVar[str] = "DP-EBM"

    def skip(self, n_rows: int) -> str | None:
        """Return why the package cannot fit, which is for two classes only.

        Parameters
        ----------
        n_rows : int
            Not used.
        """
        if self.schema.n_classes == 2:
            return None
        return (
            f"DP-EBM of interpret-core is for two classes, but there are {self.schema.n_classes}."
        )

    def _fit(self, table: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
        reason = self.skip(len(table))
        if reason:
            raise ValueError(reason)
        self._fit_package("DPExplainableBoostingClassifier", table, labels)

    def _probabilities(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        if not len(table):
            return np.empty((0, self.schema.n_classes))
        probabilities = self.model_.predict_proba(self._with_unseen_category(table))
        return np.asarray(probabilities, dtype=np.float64)


@dataclass(kw_only=True, eq=False, repr=False)
class DPExplainableBoostingRegression(ExplainableBoosting, CodedRegressor):
    """DP-EBM for a numeric target between public bounds."""

    display_name: ClassVar[str] = "DP-EBM regression"

    def _fit(self, table: NDArray[np.float64], labels: NDArray[np.float64]) -> None:
        self._fit_package(
            "DPExplainableBoostingRegressor",
            table,
            labels,
            privacy_target_min=-1.0,
            privacy_target_max=1.0,
        )

    def _values(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        predicted = self.model_.predict(self._with_unseen_category(table))
        return np.asarray(predicted, dtype=np.float64)


def import_package(name: str) -> Any:
    """Import one of the package's two models, or say how to install it."""
    try:
        from interpret import privacy
    except ImportError as error:
        raise ImportError(
            "dp_ebm needs interpret-core. Install it: pip install -c constraints.txt -e '.[bench,rivals]'"
        ) from error
    return getattr(privacy, name)
