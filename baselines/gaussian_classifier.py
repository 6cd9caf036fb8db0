"""What the rivals share that release nothing but sums with Gaussian noise: budget and card.

Symbols: ``mu`` is sensitivity over standard deviation. Releases compose, also adaptively, by adding the
squares of their ``mu``, so that a share of the budget is a share of ``mu`` squared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from baselines.coded_classifier import FRACTION, CodedClassifier, CodedMethod
from lumberjack.accounting.gaussian import get_mu
from lumberjack.accounting.guarantee import PrivacyCard

SIZE_SHARE = 0.01
"""Share of the budget that buys the number of rows, where a method plans with it."""


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianMethod(CodedMethod):
    """A private method whose guarantee is that of Gaussian noise; a rival is a subclass of it.

    Attributes
    ----------
    releases : str
        What it releases, with the sensitivity of each, for the card.
    chosen_on : str
        Tables on whose validation rows the default settings were chosen, for the card.
    """

    is_private: ClassVar[bool] = True
    releases: ClassVar[str]
    chosen_on: ClassVar[str] = "Adult, german, splice and optdigits"

    _parameter_constraints = CodedMethod._parameter_constraints | {"delta": FRACTION}

    def privacy_card(self) -> PrivacyCard:
        """Return what is claimed about privacy and what is known against it."""
        return self._card(
            status="holds",
            source=(
                f"exact Gaussian mechanism (Balle and Wang 2018), composed by its mu (Dong, Roth and Su "
                f"2022): {self.releases}"
            ),
            concerns=("floating-point sums and noise, from a non-cryptographic generator",),
            chosen_on=self.chosen_on,
            delta=float(self.delta),
        )

    def _mu(self) -> float:
        if math.isinf(self.epsilon):
            return math.inf
        # What is cut up is rounded in its last digits; a trifle less covers that.
        return get_mu(self.epsilon, self.delta) * (1 - 1e-12)

    def _buy_size(self, n_rows: int, noise: np.random.Generator) -> tuple[float, float]:
        """Return a noisy number of rows, at least 1, and the mu that is left."""
        mu = self._mu()
        bought = n_rows + noise.normal(scale=1 / (mu * math.sqrt(SIZE_SHARE)))
        return max(bought, 1.0), mu * math.sqrt(1 - SIZE_SHARE)


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianClassifier(GaussianMethod, CodedClassifier):
    """A classifier of this kind."""
