"""The majority class: what a method must beat to have learnt anything. Not private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from baselines.coded_classifier import CodedClassifier
from lumberjack.accounting.guarantee import PrivacyCard


@dataclass(kw_only=True, eq=False, repr=False)
class MajorityClassifier(CodedClassifier):
    """Predicts the most frequent class of the rows it was fitted on.

    Attributes
    ----------
    shares_ : ndarray of shape (n_classes,)
        Share of each class in the training rows; of several largest ones the first is predicted.
    """

    display_name: ClassVar[str] = "Majority class"
    is_private: ClassVar[bool] = False

    def privacy_card(self) -> PrivacyCard:
        """Return a card that claims nothing."""
        return self._card(
            status="not private", source="no claim: the class counts are used without noise"
        )

    def _fit(self, table: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
        self.shares_ = np.bincount(labels, minlength=self.schema.n_classes) / len(labels)

    def _probabilities(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        shares: NDArray[np.float64] = np.tile(self.shares_, (len(table), 1))
        return shares
