"""Gradient boosting on private synthetic rows: what a release of data, not of a model, is worth.

The rows come from MST (McKenna, Miklau, Sheldon 2021): noisy counts of every attribute, a spanning
tree of pairs chosen by the exponential mechanism, noisy counts of these pairs, and rows drawn from the
tree-shaped distribution that fits them best (:mod:`baselines.marginal_tree`). The label is an attribute
like the others.

Symbols: ``rho`` is zCDP, a third for each of the three steps; one record changes one cell of each
marginal by 1, whatever is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils._param_validation import Interval

from baselines.coded_classifier import COUNT, FRACTION, CodedClassifier
from baselines.marginal_tree import NoisyCounts, fit_tree
from lumberjack.accounting.guarantee import PrivacyCard
from lumberjack.accounting.zcdp import get_gaussian_sigma, get_rho

MOST_CATEGORIES = 254
"""More categories than the boosting's bins are codes in order to it."""


@dataclass(kw_only=True, eq=False, repr=False)
class SyntheticBoosting(CodedClassifier):
    """scikit-learn's HistGradientBoosting, trained on rows that MST synthesised.

    Parameters
    ----------
    n_bins : int
        Equal bins of the public range of a numeric feature; a value is drawn uniformly in its bin.
    max_pair_cells : int
        A table whose pairs of attributes have more cells in all is skipped.

    Attributes
    ----------
    model_ : scikit-learn classifier
        Trained on synthetic rows only.

    Notes
    -----
    Unlike the paper, rare values are not merged before the pairs are counted: with bins of a public
    range it cost accuracy (Adult at eps = 1, two splits: 0.778 with it, 0.811 without). The independent
    model that pairs are compared with is made of the noisy counts at once, without an optimiser: it is
    post-processing either way. ``mbi``, the package of the authors, finds the same distribution; it
    compiles each new tree, which takes longer than the rest.

    References
    ----------
    McKenna, Miklau, Sheldon: "Winning the NIST contest: a scalable and general approach to
    differentially private synthetic data", 2021.
    """

    display_name: ClassVar[str] = "Boosting on synthetic rows (MST)"
    is_private: ClassVar[bool] = True

    n_bins: int = 32
    max_pair_cells: int = 10_000_000

    _parameter_constraints = CodedClassifier._parameter_constraints | {
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "delta": FRACTION,
        "n_bins": COUNT,
        "max_pair_cells": COUNT,
    }

    def skip(self, n_rows: int) -> str | None:
        """Return why the attributes have too many pairs of values, or None if they do not.

        Parameters
        ----------
        n_rows : int
            Not used.
        """
        sizes = self._sizes()
        n_cells = (int(sizes.sum()) ** 2 - int((sizes**2).sum())) // 2
        if n_cells <= self.max_pair_cells:
            return None
        return (
            f"the pairs of {len(sizes)} attributes have {n_cells} cells, more than "
            f"max_pair_cells={self.max_pair_cells}. Lower n_bins or raise the limit."
        )

    def privacy_card(self) -> PrivacyCard:
        """Return the card of three zCDP releases."""
        return self._card(
            status="holds",
            source="MST (McKenna et al. 2021): zCDP, a third each for single counts, choice of pairs and "
            "counts of pairs",
            delta=float(self.delta),
            concerns=("floating-point noise from a non-cryptographic generator",),
            chosen_on="Adult",
        )

    def _fit(self, table: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
        reason = self.skip(len(table))
        if reason:
            raise ValueError(reason)
        draws = self._structure_generator()
        cells = self._synthesise(self._as_cells(table, labels), draws)
        rows, synthetic_labels = self._as_table(cells[:, :-1], draws), cells[:, -1]
        self.model_: Any = self._model(synthetic_labels).fit(rows, synthetic_labels)

    def _probabilities(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        # A class that no synthetic row has is unknown to the model.
        probabilities = np.zeros((len(table), self.schema.n_classes))
        if len(table):
            is_unseen = (self.schema.n_categories > 0) & (table < 0)
            known = self.model_.predict_proba(np.where(is_unseen, np.nan, table))
            probabilities[:, self.model_.classes_] = known
        return probabilities

    def _model(self, labels: NDArray[np.int64]) -> Any:
        if (labels == labels[0]).all():
            return DummyClassifier()
        n_categories = self.schema.n_categories
        return HistGradientBoostingClassifier(
            categorical_features=(n_categories > 0) & (n_categories <= MOST_CATEGORIES),
            # Which would need several rows of each class.
            early_stopping=False,
            random_state=int(self._structure_generator().integers(2**31)),
        )

    def _sizes(self) -> NDArray[np.int64]:
        """Return the number of cells of each attribute: unseen is a category, the label comes last."""
        is_constant = self.schema.lower == self.schema.upper
        n_bins = np.where(is_constant, 1, self.n_bins)
        n_categories = self.schema.n_categories
        return np.append(
            np.where(n_categories > 0, n_categories + 1, n_bins), self.schema.n_classes
        )

    def _widths(self) -> NDArray[np.float64]:
        """Return the width of a bin of each feature; 1 for a category."""
        width = (self.schema.upper - self.schema.lower) / self._sizes()[:-1]
        return np.where(self.schema.n_categories > 0, 1.0, width)

    def _as_cells(self, table: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
        width = self._widths()
        bins = (table - self.schema.lower) // np.where(width > 0, width, 1.0)
        bins = np.minimum(bins, self._sizes()[:-1] - 1)
        is_unseen = (self.schema.n_categories > 0) & (table < 0)
        cells = np.where(is_unseen, self.schema.n_categories, bins)
        return np.column_stack([cells.astype(np.int64), labels])

    def _as_table(self, cells: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Return rows as the boosting takes them: numbers, codes, and nothing where unseen."""
        inside = np.where(self.schema.n_categories > 0, 0.0, rng.random(cells.shape))
        table = self.schema.lower + (cells + inside) * self._widths()
        is_unseen = (self.schema.n_categories > 0) & (cells == self.schema.n_categories)
        return np.where(is_unseen, np.nan, table)

    def _synthesise(
        self, cells: NDArray[np.int64], draws: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return synthetic cells of about as many rows."""
        noise = self._noise_generator()
        rho = get_rho(self.epsilon, self.delta) * (1 - 1e-12) / 3
        sizes = self._sizes()
        n_attributes = len(sizes)

        sigma = get_gaussian_sigma(rho / n_attributes)
        single = [
            NoisyCounts(
                np.bincount(cells[:, j], minlength=size) + noise.normal(0, sigma, size), sigma**2
            )
            for j, size in enumerate(sizes)
        ]
        sums = [one.counts.sum() for one in single]
        total = max(1.0, float(np.average(sums, weights=1 / sizes)))
        edges = choose_tree(
            pair_scores(cells, [one.counts for one in single], total),
            1 / np.sqrt(2 * rho / (n_attributes - 1)),
            noise,
        )
        sigma = get_gaussian_sigma(rho / len(edges))
        paired = []
        for parent, child in edges:
            shape = (len(single[parent].counts), len(single[child].counts))
            exact = pair_counts(cells[:, parent], cells[:, child], shape)
            paired.append(NoisyCounts(exact + noise.normal(0, sigma, shape), sigma**2))

        return fit_tree(edges, single, paired, total).draw(round(total), draws)


def pair_counts(
    first: NDArray[np.int64], second: NDArray[np.int64], shape: tuple[int, int]
) -> NDArray[np.int64]:
    """Count the records in each pair of cells."""
    return np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1]).reshape(shape)


def pair_scores(
    cells: NDArray[np.int64], counts: Sequence[NDArray[np.float64]], total: float
) -> dict[tuple[int, int], float]:
    """Return how far each pair of attributes is from independent: L1 distance of counts.

    One record changes a score by at most 1.

    Parameters
    ----------
    cells : ndarray of shape (n_rows, n_attributes)
        Private.
    counts : sequence of ndarray
        Released counts of each attribute.
    total : float
        Released number of records.
    """
    shares = [np.maximum(c, 0) for c in counts]
    shares = [s / s.sum() if s.sum() else np.full(len(s), 1 / len(s)) for s in shares]
    scores = {}
    for second in range(len(shares)):
        for first in range(second):
            expected = total * np.outer(shares[first], shares[second])
            exact = pair_counts(cells[:, first], cells[:, second], expected.shape)
            scores[first, second] = float(np.abs(exact - expected).sum())
    return scores


def choose_tree(
    scores: dict[tuple[int, int], float], gumbel_scale: float, noise: np.random.Generator
) -> list[tuple[int, int]]:
    """Choose a spanning tree, each edge by the exponential mechanism.

    Parameters
    ----------
    scores : dict of (int, int) to float
        What an edge is worth, of sensitivity 1.
    gumbel_scale : float
        1 / sqrt(2 rho) makes each edge rho-zCDP: with scores that move by 1 in either direction,
        ``argmax(score + noise)`` is the exponential mechanism of epsilon 2/scale, and that is
        epsilon^2/8-zCDP.
    noise : numpy.random.Generator
        Source of the noise.

    Returns
    -------
    list of (int, int)
        Parent and child, a parent before its children; attribute 0 is the root.
    """
    component = {j: j for pair in scores for j in pair}
    chosen: list[tuple[int, int]] = []
    while len(chosen) < len(component) - 1:
        open_pairs = [(i, j) for i, j in scores if component[i] != component[j]]
        values = np.array([scores[pair] for pair in open_pairs])
        first, second = open_pairs[
            int(np.argmax(values + noise.gumbel(0, gumbel_scale, len(values))))
        ]
        old, new = component[second], component[first]
        component = {j: new if c == old else c for j, c in component.items()}
        chosen.append((first, second))
    reached, edges = [0], []
    for parent in reached:
        for pair in chosen:
            child = sum(pair) - parent
            if parent in pair and child not in reached:
                edges.append((parent, child))
                reached.append(child)
    return edges
