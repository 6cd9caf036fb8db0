"""AdditiveForestRegressor: the library's most accurate private method for numeric targets.

What it releases is told in :mod:`lumberjack.target_guide` and :mod:`lumberjack.residual_descent`; here is
which budget buys which noise, and what is kept of it all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from lumberjack.accounting import Group, Guarantee, Ledger, PrivacyCard, Release, gaussian
from lumberjack.estimator import CodedRows, make_generator
from lumberjack.regressor import PrivateRegressor
from lumberjack.residual_descent import (
    Block,
    descend,
    draw_tree,
    feature_blocks,
    scale_blocks,
    weigh_features,
)
from lumberjack.schema import FeatureSchema
from lumberjack.target_guide import FeatureCells, find_cells, release_cells, release_scale
from lumberjack.tree import ReleasedTree

BUDGET = {"target": 0.03, "cells": 0.2, "descent": 0.77}
"""Shares of the squared mu; they add up to 1."""

_THEOREM = "exact Gaussian mechanism, composed by its mu also adaptively (Dong, Roth and Su 2022)"

_DESCRIPTIONS = {
    "target": (
        "Gaussian mechanism on the histogram of the target",
        "one record changes one cell by 1",
    ),
    "cells": (
        "Gaussian mechanism on sums of the scaled target u and of 1 - u by value of each feature",
        "one record changes the two sums of one cell per feature by at most 1 in L2 norm",
    ),
    "descent": (
        "Gaussian mechanism on sums of clipped residuals, in units of the clip",
        "one record changes the sums of each step by at most 1 in L2 norm",
    ),
}


class AdditiveForestRegressor(PrivateRegressor):
    """Differentially private additive model of single features and random trees, for a numeric target.

    Noisy histograms say where targets lie and what single features tell of them. Then noisy gradient steps
    fit what quantile cells of features and leaves of random trees add, by squared loss. One setting for
    all tables and budgets. Neighbouring data sets differ by one record, added or removed.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of the whole fit; positive and finite.
    delta : float, default=1e-6
        Failure probability of the whole fit, in (0, 1); choose it well below one over the number
        of records.
    target_bounds : tuple (lower, upper) or None, default=None
        Public bounds of the target, in its own unit; values outside are clipped. Read off `y`, with a
        :class:`PrivacyLeakWarning`, if None.
    n_estimators : int, default=30
        Number of random trees.
    max_depth : int, default=6
        Splits on each path of a tree.
    n_steps : int, default=200
        Noisy gradient steps; more cost time and no privacy.
    schema : FeatureSchema or None, default=None
        Public facts about the table, the target's bounds among them. If None, `bounds`, `categories`
        and `target_bounds` are used.
    bounds : tuple (lower, upper) or mapping of feature to (lower, upper), default=None
        Public bounds of the numeric features, as for :class:`~lumberjack.LumberjackClassifier`.
    categories : mapping of feature to list, default=None
        Public categories of the categorical features, keyed by column name or position.
    missing : {"raise", "fill"}, default="raise"
        What to do with missing or infinite entries of `X`: raise, or use the schema's fill values.
        Those of `y` raise. Whether fit raises is not covered by the guarantee.
    random_state : int, SeedSequence, RandomState, Generator or None, default=None
        Seed of the trees only. Given what was released before, they carry no private information.
    noise_seed : int, SeedSequence or None, default=None
        Seed of the privacy noise. None draws it from the operating system's entropy; a fixed
        value is for experiments, is flagged in the ledger and is not private in deployment.
    n_jobs : int or None, default=None
        Number of threads that predict. It never changes the result.

    Attributes
    ----------
    schema_ : FeatureSchema
        The public facts in use.
    intercept_ : float
        What a row is predicted before anything is added, in the unit of the target.
    shapes_ : list of ndarray, shapes (n_cells + 1,)
        What each cell of a feature adds; the last entry is for unseen categories.
    cells_ : list of FeatureCells
        What was released of the features.
    estimators_ : list of ReleasedTree
        The random trees on quantile levels, with what their leaves add.
    guarantee_ : Guarantee
        What the whole fit satisfies.
    ledger_ : Ledger
        What was released and how it adds up.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Column names, when fitted on a DataFrame.

    Examples
    --------
    >>> import numpy as np
    >>> from lumberjack import AdditiveForestRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(5000, 2))
    >>> model = AdditiveForestRegressor(2, bounds=(0, 1), target_bounds=(0, 10)).fit(X, 10 * X[:, 0])
    >>> print(model.guarantee_)
    (2, 1e-06)-DP, add or remove one record
    """

    display_name: ClassVar[str] = "Additive forest regression"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateRegressor._parameter_constraints,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_depth": [Interval(Integral, 1, 12, closed="both")],
        "n_steps": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        target_bounds: tuple[float, float] | None = None,
        n_estimators: int = 30,
        max_depth: int = 6,
        n_steps: int = 200,
        schema: FeatureSchema | None = None,
        bounds: Any = None,
        categories: Mapping[Any, Any] | None = None,
        missing: Literal["raise", "fill"] = "raise",
        random_state: Any = None,
        noise_seed: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.target_bounds = target_bounds
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.n_steps = n_steps
        self.schema = schema
        self.bounds = bounds
        self.categories = categories
        self.missing = missing
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.n_jobs = n_jobs

    def privacy_card(self) -> PrivacyCard:
        """Return what this estimator claims about privacy; it need not be fitted."""
        return self._card("gaussian", _THEOREM)

    def _get_ledger(self, n_features: int) -> Ledger:
        """Return the ledger, which holds the noise of all releases."""
        # What is cut up is rounded in its last digits; a trifle less covers that.
        mu = gaussian.get_mu(self.epsilon, self.delta) * (1 - 1e-12)
        counts = {"target": 1, "cells": n_features, "descent": int(self.n_steps)}
        releases = []
        for name, share in BUDGET.items():
            sigma = math.sqrt(counts[name]) / (mu * math.sqrt(share))
            mechanism, sensitivity = _DESCRIPTIONS[name]
            group = Group(name, counts[name], share, sigma)
            releases.append(Release(group, mechanism, _THEOREM, sensitivity))
        return Ledger(tuple(releases), "safe", Guarantee(self.epsilon, self.delta))

    def _learn(self, coded: CodedRows) -> tuple[Ledger, dict[str, Any]]:
        schema, shares = coded.schema, coded.labels
        assert schema.target_bounds is not None
        ledger = self._get_ledger(schema.n_features)
        target_sigma, cells_sigma, sigma = (one.group.sigma for one in ledger.releases)
        split_seed, noise_seeds = self._spawn_seeds(3)
        target_noise, cells_noise, noise = (make_generator(seed) for seed in noise_seeds)
        scale = release_scale(shares, target_sigma, target_noise)
        cells = release_cells(coded.values, shares, schema, scale, cells_sigma, cells_noise)
        blocks = feature_blocks(cells)
        feature_shares = weigh_features(cells)
        level_masses = np.array([own.level_masses for own in cells])
        draws = make_generator(split_seed)
        trees = []
        for number in range(int(self.n_estimators)):
            tree, masses = draw_tree(int(self.max_depth), feature_shares, level_masses, draws)
            trees.append(tree)
            blocks.append(Block(masses, np.empty(0, dtype=np.int64), number))
        scales = scale_blocks(blocks, len(trees), feature_shares)
        cell_of_row = _cells_of(coded.values, schema, cells)
        columns = _columns_of(cell_of_row, cells, blocks, trees)
        intercept, values = descend(
            columns, shares, blocks, scales, scale, int(self.n_steps), sigma, noise
        )
        lower, upper = schema.target_bounds
        shapes = [np.zeros(len(own.masses) + 1) for own in cells]
        for block, added in zip(blocks[: -len(trees)], values, strict=False):
            # The last entry is for columns that are nobody's.
            known = np.append(added, 0.0)[np.minimum(block.column_of_cell, len(added))]
            shapes[block.source] += (upper - lower) * known
        n_inner = 2 ** int(self.max_depth) - 1
        for tree, added in zip(trees, values[-len(trees) :], strict=True):
            tree.value[n_inner:, 0] = (upper - lower) * added
        return ledger, {
            "intercept_": lower + (upper - lower) * intercept,
            "shapes_": shapes,
            "cells_": cells,
            "estimators_": trees,
        }

    def _get_scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        cells = _cells_of(values, self.schema_, self.cells_)
        predicted = np.full(len(values), self.intercept_)
        for shape, own in zip(self.shapes_, cells.T, strict=True):
            predicted += shape[own]
        levels, is_categorical = _levels_of(cells, self.cells_)
        for tree in self.estimators_:
            predicted += tree.value[tree.apply(levels, is_categorical), 0]
        return predicted.clip(*self.schema_.target_bounds)[:, np.newaxis]


def _cells_of(
    values: NDArray[np.float64], schema: FeatureSchema, cells: list[FeatureCells]
) -> NDArray[np.int64]:
    return find_cells(values, schema, np.array([len(own.masses) for own in cells]))


def _levels_of(
    cell_of_row: NDArray[np.int64], cells: list[FeatureCells]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return rows on the scale of the trees, where no feature holds codes."""
    # The cell of unseen categories, -1, takes the last entry.
    levels = [own.levels[column] for own, column in zip(cells, cell_of_row.T, strict=True)]
    return np.column_stack(levels), np.zeros(len(cells), dtype=np.bool_)


def _columns_of(
    cell_of_row: NDArray[np.int64],
    cells: list[FeatureCells],
    blocks: list[Block],
    trees: list[ReleasedTree],
) -> NDArray[np.int32]:
    """Return the column of each row in each block, numbered through; -1 for none."""
    levels, is_categorical = _levels_of(cell_of_row, cells)
    n_own = len(blocks) - len(trees)
    columns = np.empty((len(cell_of_row), len(blocks)), dtype=np.int32)
    first = 0
    for number, block in enumerate(blocks):
        if number < n_own:
            own = block.column_of_cell[cell_of_row[:, block.source]]
        else:
            tree = trees[block.source]
            own = tree.apply(levels, is_categorical) - (len(tree.feature) - len(block.masses))
        columns[:, number] = np.where(own < len(block.masses), first + own, -1)
        first += len(block.masses)
    return columns
