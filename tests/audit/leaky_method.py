"""A user's own method, as a template: it says what it released, and it claims too much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from baselines.coded_classifier import CodedClassifier


@dataclass(kw_only=True, eq=False, repr=False)
class NoisyCounts(CodedClassifier):
    """The class counts of the whole table with Laplace noise; the larger one wins everywhere."""

    display_name = "Noisy counts"
    is_private = True

    def _noise_scale(self):
        return 1 / self.epsilon

    def _fit(self, table, labels):
        counts = np.bincount(labels, minlength=self.schema.n_classes)
        noise = self._noise_generator().laplace(scale=self._noise_scale(), size=counts.shape)
        self.noisy_counts_ = counts + noise

    def _probabilities(self, table):
        winner = np.eye(len(self.noisy_counts_))[self.noisy_counts_.argmax()]
        return np.tile(winner, (len(table), 1))

    def get_released(self):
        return {"counts": self.noisy_counts_}

    def privacy_card(self):
        return self._card(status="holds", source="Laplace mechanism: a record changes one count")


@dataclass(kw_only=True, eq=False, repr=False)
class LeakyCounts(NoisyCounts):
    """The flaw: noise for three times the budget."""

    def _noise_scale(self):
        return 1 / (3 * self.epsilon)
