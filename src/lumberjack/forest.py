"""What every forest here does: grow trees with their noise, average their leaves.

Which budget buys which noise, and what a leaf says, is decided by the estimators:
:mod:`lumberjack.classifier`, :mod:`lumberjack.guided_classifier` and :mod:`lumberjack.regressor`.
"""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lumberjack.accounting import Ledger
from lumberjack.discrete_gaussian import NO_TABLE, get_block_table
from lumberjack.estimator import CodedRows, PrivateEstimator, make_generator
from lumberjack.growth import CountedTree, Search, TrainingRows, grow_tree
from lumberjack.guide import NO_GUIDE, Guide, make_guide
from lumberjack.noise import COUNT_STEP, SUM_STEP
from lumberjack.private_classifier import PrivateClassifier
from lumberjack.ranks import rank_table
from lumberjack.releases import ForestNoise
from lumberjack.schema import FeatureSchema
from lumberjack.splits import PublicFacts, SplitRule
from lumberjack.stacking import StackSums
from lumberjack.transcript import Transcript, list_forest_transcript
from lumberjack.tree import ReleasedTree


class GrownTree(NamedTuple):
    """A tree, what its leaves released, and the leaf of each training row (NOT private), if asked for."""

    tree: ReleasedTree
    released: NDArray[np.float64]
    leaf_of_row: NDArray[Any] | None


class Released(NamedTuple):
    """All that a fit releases, and the rows it was released of (NOT private).

    Attributes
    ----------
    coded : CodedRows
    noise : ForestNoise
    cells : list of ndarray or None
        Noisy histograms (:func:`lumberjack.guide.release_cells`), if there are any.
    guide : Guide or None
        Made of them.
    rows : TrainingRows
    grown : list of GrownTree
    stack : StackSums or None
        Noisy sums (:func:`lumberjack.stacking.release_stack`), if there are any.
    """

    coded: CodedRows
    noise: ForestNoise
    cells: list[NDArray[np.float64]] | None
    guide: Guide | None
    rows: TrainingRows
    grown: list[GrownTree]
    stack: StackSums | None


class PrivateForest(PrivateEstimator):
    """What the private forests have in common; not to be used by itself.

    Among a subclass's parameters are also ``n_estimators`` and ``max_depth``.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateEstimator._parameter_constraints,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_depth": [Interval(Integral, 1, None, closed="left")],
    }

    drop_first_category: bool = True
    """Whether the first category of each feature is no candidate for a uniform split, as in the
    paper's one-hot coding with k - 1 columns."""

    looks_back: ClassVar[bool] = False
    """Whether the leaf of each training row in each tree is kept until the trees are grown."""

    @abstractmethod
    def _calibrate(self, schema: FeatureSchema) -> tuple[Ledger, ForestNoise]:
        """Return the ledger and the noise of all releases."""

    @abstractmethod
    def _answer_leaves(
        self,
        grown: CountedTree,
        rows: CodedRows,
        noise: ForestNoise,
        generator: np.random.Generator,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what is released of each leaf, and its scores, both of shape (n_leaves, any)."""

    def _release_cells(
        self, rows: CodedRows, noise: ForestNoise, generator: np.random.Generator
    ) -> list[NDArray[np.float64]] | None:
        """Return the noisy histograms of the guide; none, unless a subclass releases them."""
        return None

    def _get_training_rows(self, rows: CodedRows, guide: Guide | None) -> TrainingRows:
        """Return what the trees are grown on."""
        facts = rows.schema
        n_dropped = int(self.drop_first_category)
        public = PublicFacts(
            facts.n_classes, facts.n_categories, facts.lower, facts.upper, n_dropped
        )
        return TrainingRows(rank_table(rows.columns), rows.labels, public, NO_GUIDE, SplitRule())

    def _release_stack(
        self,
        rows: CodedRows,
        guide: Guide | None,
        grown: list[GrownTree],
        noise: ForestNoise,
        generator: np.random.Generator,
    ) -> StackSums | None:
        """Return the noisy sums that are released after the trees; none, unless a subclass does."""
        return None

    def _get_fitted(self, released: Released) -> dict[str, Any]:
        """Return the fitted attributes that hold what was released."""
        return {"estimators_": [one.tree for one in released.grown]}

    def _to_tree_scale(
        self, values: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return encoded rows on the scale of the trees, and which features hold codes on it."""
        return values, self.schema_.n_categories > 0

    def _learn(self, coded: CodedRows) -> tuple[Ledger, dict[str, Any]]:
        ledger, released = self._release(coded)
        return ledger, self._get_fitted(released)

    def _release(self, coded: CodedRows) -> tuple[Ledger, Released]:
        """Return the ledger and all that is released of the rows."""
        ledger, noise = self._calibrate(coded.schema)
        n_trees = int(self.n_estimators)
        split_seed, noise_seeds = self._spawn_seeds(n_trees + 2)
        *tree_noise, guide_noise, stack_noise = noise_seeds
        tree_keys = split_seed.generate_state(n_trees, dtype=np.uint64)
        cells = self._release_cells(coded, noise, make_generator(guide_noise))
        guide = None if cells is None else make_guide(cells, coded.schema, noise.scales["guide"])
        rows = self._get_training_rows(coded, guide)
        grown = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
            delayed(self._grow)(rows, coded, key, make_generator(seeds), noise)
            for key, seeds in zip(tree_keys, tree_noise, strict=True)
        )
        stack = self._release_stack(coded, guide, grown, noise, make_generator(stack_noise))
        return ledger, Released(coded, noise, cells, guide, rows, grown, stack)

    def _get_scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean scores of the trees for encoded rows, shape (n_rows, n_scores)."""
        scaled, is_categorical = self._to_tree_scale(values)
        scaled = np.ascontiguousarray(scaled)
        total = np.zeros((len(values), self.estimators_[0].value.shape[1]))
        for tree in self.estimators_:
            total += tree.value[tree.apply(scaled, is_categorical)]
        return total / len(self.estimators_)

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Return the leaf that each row ends in, for every tree.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_features)
            Rows, in the schema's own values.

        Returns
        -------
        ndarray of int64, shape (n_rows, n_estimators)
            Node numbers.
        """
        values, is_categorical = self._to_tree_scale(self._encode_queries(X).values)
        values = np.ascontiguousarray(values)
        return np.column_stack([tree.apply(values, is_categorical) for tree in self.estimators_])

    def fit_report(self) -> dict[str, float]:
        """Return mean nodes, leaves and depth of the trees, all functions of what was released."""
        check_is_fitted(self)
        trees = self.estimators_
        return {
            "mean_nodes_per_tree": float(np.mean([tree.n_nodes for tree in trees])),
            "mean_leaves_per_tree": float(np.mean([tree.n_leaves for tree in trees])),
            "mean_tree_depth": float(np.mean([tree.depth for tree in trees])),
        }

    def _grow(
        self,
        rows: TrainingRows,
        coded: CodedRows,
        tree_key: np.uint64,
        generator: np.random.Generator,
        noise: ForestNoise,
    ) -> GrownTree:
        # Discrete noise is drawn in whole records, so that its comparisons are exact.
        is_discrete = self.noise == "discrete"
        search = Search(
            height=int(self.max_depth),
            sigma=1.0 if is_discrete else noise.sigma,
            tau=1.0 + noise.margin,
            table=get_block_table(noise.sigma) if is_discrete else NO_TABLE,
        )
        grown = grow_tree(rows, search, tree_key, generator)
        leaves = np.flatnonzero(grown.children_left < 0)
        answers = self._answer_leaves(grown, coded, noise, generator)
        released, value = (_at_nodes(answer, leaves, len(grown.feature)) for answer in answers)
        tree = ReleasedTree(grown.feature, grown.threshold, grown.children_left, value)
        if not self.looks_back:
            return GrownTree(tree, released, None)
        narrow = np.min_scalar_type(tree.n_nodes)
        return GrownTree(tree, released, grown.leaf_of_row.astype(narrow))


class PrivateForestClassifier(PrivateClassifier, PrivateForest):
    """What the private forests that classify have in common; not to be used by itself.

    Among a subclass's parameters is also ``noise``.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateForest._parameter_constraints,
        **PrivateClassifier._parameter_constraints,
        "noise": [StrOptions({"continuous", "discrete"})],
    }

    @property
    def _count_step(self) -> float | None:
        """What the noise of counts is a multiple of, as the accounting asks."""
        return COUNT_STEP if self.noise == "discrete" else None

    @property
    def _sum_step(self) -> float | None:
        """The same for real sums."""
        return SUM_STEP if self.noise == "discrete" else None

    @abstractmethod
    def _release_leaves(
        self, counts: NDArray[np.int64], scale: float, generator: np.random.Generator
    ) -> NDArray[np.float64]:
        """Turn the leaves' class counts into what is released of them."""

    def _score_leaves(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn what is released of the leaves into class scores."""
        return released

    def _fit_transcript(self, X: Any, y: ArrayLike) -> Transcript:
        """Fit, and return all that was released with its noise, for an audit.

        See :mod:`lumberjack.transcript`. The list also holds what only the data holder may know.
        """
        self._check_parameters()
        coded = self._read_training_rows(X, y)
        ledger, released = self._release(coded)
        self._keep(coded, ledger, self._get_fitted(released))
        return list_forest_transcript(self, released)

    def _left_out_shares(self, labels: NDArray[Any], grown: list[GrownTree]) -> NDArray[np.float64]:
        """Return the forest's class shares of each training row, its own count taken out."""
        n_classes = grown[0].released.shape[1]
        total = np.zeros((len(labels), n_classes))
        for one in grown:
            assert one.leaf_of_row is not None
            # What a leaf says without a record depends on the record's class alone.
            counts = one.released[:, np.newaxis, :] - np.eye(n_classes)
            scores = self._score_leaves(counts.reshape(-1, n_classes)).reshape(counts.shape)
            total += scores[one.leaf_of_row, labels]
        return total / len(grown)

    def _answer_leaves(
        self,
        grown: CountedTree,
        rows: CodedRows,
        noise: ForestNoise,
        generator: np.random.Generator,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        counts = grown.counts[grown.children_left < 0]
        released = self._release_leaves(counts, noise.scales["leaves"], generator)
        return released, self._score_leaves(released)


def _at_nodes(
    answers: NDArray[np.float64], leaves: NDArray[np.int64], n_nodes: int
) -> NDArray[np.float64]:
    """Return what leaves answer in rows of their nodes, zeros for inner nodes."""
    rows = np.zeros((n_nodes, answers.shape[1]))
    rows[leaves] = answers
    return rows
