"""SNR: a forest of random multiway trees with noisy leaf counts, pruned by signal-to-noise ratio.

After Fletcher and Islam, "A differentially private random decision forest using reliable
signal-to-noise ratios" (2015). Features are categorical, numeric ones are cut into bins of equal
width. Every tree sees all rows and spends epsilon / T on Laplace noise in its leaf counts; what
inner nodes count is the sum of their leaves. Each row is classified at the node of its path whose
noisy majority is the largest, and the forest goes with the most confident tree.

How many trees there are and how large they get depends on the schema, n and epsilon only: it is
planned here, and its memory estimated, before anything is built in :mod:`baselines.pruned_trees`.

Symbols: n number of rows the forest is planned for, k number of features, v_a number of values of
feature a, C number of classes, T number of trees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from baselines.coded_classifier import COUNT, FRACTION, CodedClassifier, draw_generators
from baselines.keyed_trees import draw_keys
from baselines.pruned_trees import (
    ReleasedTree,
    count_in_leaves,
    decide,
    forest_votes,
    grow_tree,
    prune_tree,
)
from lumberjack.accounting.guarantee import PrivacyCard
from lumberjack.schema import FeatureSchema

N_ESTIMATION_WALKS = 2000
LARGEST_COUNT = 2**40
MAX_PLANNED_TREES = 2**40
BYTES_PER_TREE = 4000


@dataclass(frozen=True, slots=True)
class ForestPlan:
    """How many trees there are and what each may do.

    Attributes
    ----------
    n_trees : int
        T.
    epsilon_per_tree : float
        Budget of each tree, epsilon / T.
    min_support : float
        Estimated number of rows at or below which a node is not split: C sqrt(2) T / epsilon,
        where noise and signal are alike.
    root_features : tuple of int
        Features the first roots are drawn from; all features once these are used up.
    """

    n_trees: int
    epsilon_per_tree: float
    min_support: float
    root_features: tuple[int, ...]


def plan_forest(n_rows: int, domain_sizes: ArrayLike, n_classes: int, epsilon: float) -> ForestPlan:
    """Choose the number of trees so that the trees' shallowest and deepest paths make sense.

    Starting from one tree per feature, trees are added while a path over half of the features
    still ends above the minimum support; then, while a path of two splits already ends below it,
    a tree is taken away together with the feature of the largest domain as a root.

    Parameters
    ----------
    n_rows : int
        Number of rows to plan for.
    domain_sizes : array-like of shape (n_features,)
        Number of values of each feature.
    n_classes : int
        Number of classes.
    epsilon : float
        Budget of the whole forest, finite.

    Raises
    ------
    MemoryError
        When the number of trees is beyond counting.
    """
    sizes = np.asarray(domain_sizes, dtype=np.float64)
    support_per_tree = n_classes * math.sqrt(2) / epsilon
    mean_size = sizes.mean()
    shallow = n_rows / mean_size**2
    deep = n_rows / mean_size ** (len(sizes) / 2)

    n_trees = len(sizes)
    if deep > MAX_PLANNED_TREES * support_per_tree:
        raise MemoryError(
            f"SNR would grow more than {MAX_PLANNED_TREES:.3g} trees at epsilon={epsilon:g} on "
            f"{n_rows} rows. Lower epsilon."
        )
    if deep > n_trees * support_per_tree:
        # A jump to the end of the authors' loop, which adds one tree at a time.
        n_trees = max(n_trees, math.ceil(deep / support_per_tree) - 1)
        while deep > n_trees * support_per_tree:
            n_trees += 1

    valid = list(range(len(sizes)))
    while n_trees * support_per_tree > shallow and n_trees > 1:
        n_trees -= 1
        if len(valid) > 1:
            mean_before = sizes[valid].mean()
            valid.remove(max(valid, key=lambda feature: sizes[feature]))
            shallow = n_rows / (mean_before * sizes[valid].mean())
        else:
            # The last feature stays: the authors' loop would divide by the mean of nothing.
            shallow = n_rows / sizes[valid[0]] ** 2
            n_trees = max(1, min(n_trees, math.floor(shallow / support_per_tree) + 1))
    return ForestPlan(n_trees, epsilon / n_trees, n_trees * support_per_tree, tuple(valid))


def draw_root_features(
    plan: ForestPlan, n_features: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the feature of each tree's root, without replacement as long as possible.

    Parameters
    ----------
    plan : ForestPlan
        The forest's plan.
    n_features : int
        Number of features.
    rng : numpy.random.Generator
        Source of the draw.

    Returns
    -------
    ndarray of shape (n_trees,), int64
        The first pool is ``plan.root_features``; every later one holds all features.
    """
    pools = [rng.permutation(np.array(plan.root_features))]
    n_drawn = len(plan.root_features)
    while n_drawn < plan.n_trees:
        pools.append(rng.permutation(n_features))
        n_drawn += n_features
    return np.concatenate(pools)[: plan.n_trees]


def estimate_nodes_per_tree(
    plan: ForestPlan, domain_sizes: NDArray[np.int64], n_rows: float
) -> float:
    """Estimate the mean number of nodes of a tree without building one.

    Each random walk from root to leaf contributes the product of the domain sizes it passes,
    which is unbiased (Knuth 1975). The walks have a fixed seed: the estimate is a function of
    the plan alone.

    Parameters
    ----------
    plan : ForestPlan
        The forest's plan.
    domain_sizes : ndarray of shape (n_features,), int64
        Number of values of each feature.
    n_rows : float
        Number of rows the forest is planned for.
    """
    rng = np.random.default_rng(0)
    total = 0.0
    for walk in range(N_ESTIMATION_WALKS):
        root = plan.root_features[walk % len(plan.root_features)]
        others = rng.permutation(len(domain_sizes))
        path = [root, *others[others != root]]
        width, nodes = 1.0, 1.0
        for step, feature in enumerate(path):
            if step > 0 and n_rows / width <= plan.min_support:
                break
            width *= float(domain_sizes[feature])
            nodes += width
        total += nodes
    return total / N_ESTIMATION_WALKS


def noisy_counts(counts: ArrayLike, noise: ArrayLike) -> NDArray[np.int64]:
    """Return max(0, trunc(count + noise)).

    Counts are whole, so cutting the noise down to whole numbers first gives the same, and the
    last bits of a floating-point sum cannot tell the count. Results above ``LARGEST_COUNT`` are
    set to it, so that sums over leaves stay whole numbers at any budget.

    Parameters
    ----------
    counts : array-like of int
        True counts.
    noise : array-like of float, same shape
        Laplace noise.
    """
    whole = np.floor(np.asarray(noise, dtype=np.float64)).clip(-(2.0**60), 2.0**60)
    sums = np.asarray(counts, dtype=np.int64) + whole.astype(np.int64)
    return sums.clip(0, LARGEST_COUNT)


def domain_sizes(schema: FeatureSchema, n_bins: int) -> NDArray[np.int64]:
    """Return the number of values of each feature once numeric ones are cut into bins.

    Parameters
    ----------
    schema : FeatureSchema
        Schema of the coded table.
    n_bins : int
        Bins per numeric feature; a feature whose bounds coincide has one.
    """
    n_cut = np.where(schema.upper > schema.lower, n_bins, 1)
    return np.where(schema.n_categories == 0, n_cut, schema.n_categories)


def cut_into_bins(
    table: NDArray[np.float64], schema: FeatureSchema, n_bins: int
) -> NDArray[np.int32]:
    """Replace numeric values by the number of their bin, of equal width on the public bounds.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_features), float64
        Coded rows. Categorical features are as they were.
    schema : FeatureSchema
        Schema of the coded table.
    n_bins : int
        Bins per numeric feature; a feature whose bounds coincide has one.
    """
    bins = np.zeros(table.shape, dtype=np.int32)
    lower, upper = schema.lower, schema.upper
    for j, n_categories in enumerate(schema.n_categories):
        width = (upper[j] - lower[j]) / n_bins
        if n_categories:
            bins[:, j] = table[:, j]
        elif width > 0:
            bins[:, j] = np.floor((table[:, j] - lower[j]) / width).clip(0, n_bins - 1)
    return bins


@dataclass(kw_only=True, eq=False, repr=False)
class SnrClassifier(CodedClassifier):
    """Random forest of Fletcher and Islam (2015) with signal-to-noise pruning.

    `epsilon` is finite, and the trees share it.

    Parameters
    ----------
    mode : {"paper", "corrected"}
        Both run the same algorithm on public domains and bins. "paper" plans the forest with the
        exact number of training rows. "corrected" plans it with `public_n_rows`, or with a noisy
        number of rows that is paid for; epsilon-differentially private under adding or removing a
        row.
    n_bins : int
        Bins of equal width per numeric feature; 5 in the Lumberjack paper.
    public_n_rows : int or None
        A number of rows to plan for that does not come from the table, with
        ``mode="corrected"``; None buys one.
    size_share : float
        Share of the budget that buys the number of rows, in (0, 1), when none is given.
    memory_limit_gb : float
        A forest that is estimated to need more is refused.

    Attributes
    ----------
    plan_ : ForestPlan
        Number of trees, budget of each and minimum support.
    trees_ : list of ReleasedTree
        The forest.

    Notes
    -----
    The authors' program reads the values of features and classes off the training rows; here they
    are those of the schema. A value that it does not list ends a row's way at an inner node: a
    training row is then counted nowhere in that tree, a test row is classified from that node
    upwards.
    """

    display_name: ClassVar[str] = "SNR"
    is_private: ClassVar[bool] = True

    mode: str = "paper"
    n_bins: int = 5
    public_n_rows: int | None = None
    size_share: float = 0.01
    memory_limit_gb: float = 4.0

    _parameter_constraints = CodedClassifier._parameter_constraints | {
        # The trees are grown until noise and signal are alike: no end without noise.
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "n_bins": COUNT,
        "public_n_rows": [Interval(Integral, 1, None, closed="left"), None],
        "size_share": FRACTION,
        "memory_limit_gb": [Interval(Real, 0, None, closed="neither")],
    }

    def skip(self, n_rows: int) -> str | None:
        """Return why the forest would need too much memory, or None if it would not.

        A number of rows that has yet to be bought is taken to be the true one.

        Parameters
        ----------
        n_rows : int
            Number of training rows.
        """
        share = 1.0 if self._plans_for_free() else 1 - self.size_share
        try:
            self._plan(self.public_n_rows or n_rows, share * self.epsilon)
        except MemoryError as error:
            return str(error)
        return None

    def fit_report(self) -> dict[str, float]:
        """Return figures about the fitted forest that the model itself shows."""
        check_is_fitted(self)
        return {
            "n_trees": float(self.plan_.n_trees),
            "min_support": self.plan_.min_support,
            "mean_nodes_per_tree": float(np.mean([len(tree.feature) for tree in self.trees_])),
        }

    def privacy_card(self) -> PrivacyCard:
        """Return what is claimed about privacy and what is known against it."""
        rounding = (
            "Laplace noise comes from an ordinary, not a cryptographic, generator; it is cut down "
            "to whole numbers before it meets a count, so the last bits of a sum tell nothing"
        )
        if self.mode == "paper":
            return self._card(
                status="doubted",
                source="Fletcher and Islam 2015: Laplace mechanism on leaf counts, epsilon / T per tree",
                concerns=(
                    "number of trees, budget per tree and depth are functions of the exact number of rows, "
                    "which the authors take to be public; when a row is added or removed it changes (own "
                    "analysis)",
                    rounding,
                ),
                public_inputs=("number of bins", "number of rows"),
            )
        public = ["number of bins"]
        if self.public_n_rows is not None:
            public.append(f"number of rows planned for ({self.public_n_rows})")
            source = "Laplace mechanism on disjoint leaf counts, epsilon / T per tree"
        else:
            source = (
                f"Laplace mechanism: {self.size_share:g} epsilon on the number of rows, the "
                "rest in equal parts on the disjoint leaf counts of each tree"
            )
        return self._card(status="holds", source=source, concerns=(rounding,), public_inputs=public)

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.public_n_rows is not None and self.mode == "paper":
            raise ValueError(
                "public_n_rows needs mode='corrected'; mode='paper' plans with the exact "
                "number of training rows."
            )

    def _fit(self, table: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
        n_classes = self.schema.n_classes
        sizes = domain_sizes(self.schema, self.n_bins)
        noise = self._noise_generator()
        n_rows, counting_epsilon = self._rows_to_plan_for(len(table), noise)
        plan = self._plan(n_rows, counting_epsilon)

        # There may be far fewer different rows than rows.
        bins, kind = np.unique(
            cut_into_bins(table, self.schema, self.n_bins), axis=0, return_inverse=True
        )
        class_counts = np.zeros((len(bins), n_classes), dtype=np.int64)
        np.add.at(class_counts, (kind.ravel(), labels), 1)

        structure = self._structure_generator()
        roots = draw_root_features(plan, len(sizes), structure)
        keys = draw_keys(structure, plan.n_trees)
        count_noise = draw_generators(noise, plan.n_trees)

        def fit_tree(tree: int) -> ReleasedTree:
            full = grow_tree(keys[tree], roots[tree], sizes, float(n_rows), plan.min_support)
            counts = count_in_leaves(bins, class_counts, full)
            is_leaf = full.feature < 0
            laplace = count_noise[tree].laplace(
                scale=1 / plan.epsilon_per_tree, size=(int(is_leaf.sum()), n_classes)
            )
            counts[is_leaf] = noisy_counts(counts[is_leaf], laplace)
            return prune_tree(full, counts, sizes, plan.epsilon_per_tree)

        self.plan_ = plan
        self.trees_ = self._for_each_tree(fit_tree, plan.n_trees)

    def _probabilities(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest fraction of each class over the trees, normalised.

        Where largest fractions tie, the winner is lifted above the others by a part in 10^9, so that
        the largest score is the decision.
        """
        bins = cut_into_bins(table, self.schema, self.n_bins)
        largest, total = forest_votes(self.trees_, bins)
        largest[np.arange(len(largest)), decide(largest, total)] *= 1 + 1e-9
        return largest / largest.sum(axis=1, keepdims=True)

    def _plans_for_free(self) -> bool:
        return self.mode == "paper" or self.public_n_rows is not None

    def _rows_to_plan_for(self, n_rows: int, noise: np.random.Generator) -> tuple[int, float]:
        """Return the number of rows to plan for and the budget that is left for counting."""
        if self._plans_for_free():
            return self.public_n_rows or n_rows, self.epsilon
        size_epsilon = self.size_share * self.epsilon
        bought = noisy_counts(n_rows, noise.laplace(scale=1 / size_epsilon))
        return max(1, int(bought)), self.epsilon - size_epsilon

    def _plan(self, n_rows: int, epsilon: float) -> ForestPlan:
        """Plan the forest, and refuse it if it would not fit into memory."""
        n_classes = self.schema.n_classes
        sizes = domain_sizes(self.schema, self.n_bins)
        plan = plan_forest(n_rows, sizes, n_classes, epsilon)
        nodes = estimate_nodes_per_tree(plan, sizes, float(n_rows))
        # While a tree is built: its structure twice as arrays double, then counts, noise, sums.
        while_built = 2 * 40 + n_classes * (8 + 8 + 8 + 8) + 40
        when_kept = 4 + 8 + 8 + 8 * n_classes
        n_threads = min(effective_n_jobs(self.n_jobs), plan.n_trees)
        n_bytes = nodes * (n_threads * while_built + plan.n_trees * when_kept)
        gigabytes = (n_bytes + plan.n_trees * BYTES_PER_TREE) / 1e9
        if gigabytes > self.memory_limit_gb:
            raise MemoryError(
                f"SNR would grow {plan.n_trees} trees of about {nodes:.3g} nodes, an estimated "
                f"{gigabytes:.3g} GB, more than memory_limit_gb={self.memory_limit_gb:g}. "
                "Lower epsilon or n_bins, or raise the limit."
            )
        return plan
