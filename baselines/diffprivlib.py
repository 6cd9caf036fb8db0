"""DiffPrivLib's random forest: complete random trees, each record in one of them.

Method of Holohan et al. 2019 (the library diffprivlib, after Fletcher & Islam 2017): trees of a
fixed depth whose splits do not look at the data, a partition of the records over the trees, and a
leaf label chosen by Permute-and-Flip. Two engines:

* ``library`` wraps the library and guards against the ways in which it fails silently: labels other
  than 0..K-1, sorted rows without shuffling, bounds and classes read from the rows, a budget
  accountant shared between fits, trees too large for memory.
* ``fast`` follows the same law without building the trees (:mod:`baselines.random_trees`), in
  tenths of a second where the library takes minutes. It makes tuning possible, and it has a
  corrected mode: each record draws its tree by itself.
"""

from __future__ import annotations

import logging
import warnings
from typing import Any, ClassVar, Self

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from baselines.coded_classifier import CodedClassifier
from baselines.coded_input import (
    Seed,
    check_count,
    check_labels,
    check_mode,
    check_privacy_parameters,
    check_table,
    fixed_noise_concerns,
    seed_sequence,
)
from baselines.multiway_trees import NOISE_STREAM, STRUCTURE_STREAM, draw_keys, generator
from baselines.random_trees import SplitSpace, grow, votes_at_every_depth
from lumberjack.accounting.guarantee import Guarantee, PrivacyCard
from lumberjack.schema import FeatureSchema

logger = logging.getLogger(__name__)

BYTES_PER_STORED_NODE = 80
"""What a fitted tree of the library keeps per node (measured, exact)."""

BYTES_PER_GROWING_NODE = 450
"""What the library needs per node of the one tree it is growing (measured, rounded up)."""

TUNED_N_ESTIMATORS = (5, 10, 15, 20, 25, 30)
TUNED_MAX_DEPTH = 19
"""The paper's search: trees in steps of five, every depth up to this one (appendix C)."""

TUNING_STREAM = 2
"""Stream of the seeds that the search draws from, apart from those of the final fit."""


class DiffPrivLibClassifier(CodedClassifier):
    """Differentially private random decision forest of diffprivlib.

    Parameters
    ----------
    schema : FeatureSchema
        Coded schema: bounds, numbers of categories and classes, all public.
    epsilon : float
        Privacy budget; infinity switches the noise off.
    delta : float
        Not used; the method is purely epsilon-DP.
    mode : {"paper", "corrected"}
        What the library does, or, with the fast engine, a tree for each record that is drawn
        uniformly and independently of all other records, which makes the claim exact.
    random_state : int, SeedSequence or None
        Seed of the splits. The library draws splits and noise from one seed, made of this one and
        `noise_seed`; there they are repeatable together or not at all.
    noise_seed : int, SeedSequence or None
        Seed of the partition and of the leaf labels; None for fresh entropy.
    n_jobs : int
        Not used: the library's threads do not run side by side (measured 15.5 s with one and 15.1 s
        with two). Run several fits in processes instead.
    n_estimators : int
        Number of trees; each record is used by exactly one.
    max_depth : int
        Depth of every leaf.
    engine : {"library", "fast"}
        Who does the work.
    memory_limit_gb : float
        A forest of the library whose estimated size exceeds this many gigabytes is refused.
    is_tuned_on_validation : bool
        Says on the card that `n_estimators` and `max_depth` come from :meth:`tune`.
    n_tuning_forests : int
        Forests whose validation accuracies :meth:`tune` averages for each setting: between two of
        them the accuracy varies by 0.01 to 0.02.

    Attributes
    ----------
    forest_ : diffprivlib.models.RandomForestClassifier or RandomTrees
        The fitted forest of the engine.

    Notes
    -----
    Every feature is a number to the library. Categorical features are passed as their codes; a
    category that the schema does not list is passed as code 0, the first category (which is where
    the library itself sends the code -1: below every threshold).

    References
    ----------
    Holohan, Braghin, Mac Aonghusa, Levacher: "Diffprivlib: the IBM differential privacy library",
    2019. Fletcher, Islam: "Differentially private random decision forests using smooth
    sensitivity", 2017. McKenna, Sheldon: "Permute-and-Flip", 2020.
    """

    display_name: ClassVar[str] = "DiffPrivLib"
    is_private: ClassVar[bool] = True

    def __init__(
        self,
        *,
        schema: FeatureSchema,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        mode: str = "paper",
        random_state: Seed = None,
        noise_seed: Seed = None,
        n_jobs: int | None = 1,
        n_estimators: int = 15,
        max_depth: int = 13,
        engine: str = "library",
        memory_limit_gb: float = 4.0,
        is_tuned_on_validation: bool = False,
        n_tuning_forests: int = 5,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.mode = mode
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.n_jobs = n_jobs
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.engine = engine
        self.memory_limit_gb = memory_limit_gb
        self.is_tuned_on_validation = is_tuned_on_validation
        self.n_tuning_forests = n_tuning_forests

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the forest.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Coded table.
        y : array-like of shape (n_rows,)
            Class codes.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            When a parameter or the data is unusable.
        MemoryError
            When the forest would be larger than `memory_limit_gb`.
        ImportError
            When the library does not work with the installed scikit-learn.
        """
        epsilon, _ = self._check_parameters()
        table = self._ordinal_table(X)
        labels = check_labels(y, len(table), self.schema.n_classes)
        self.classes_ = np.arange(self.schema.n_classes)
        if self.engine == "library":
            self._check_memory()
            self.forest_ = self._fit_library(table, labels, epsilon)
        else:
            noise = generator(self.noise_seed, NOISE_STREAM)
            structure = generator(self.random_state, STRUCTURE_STREAM)
            self.forest_ = grow(
                table,
                labels,
                self.schema.n_classes,
                self._space(),
                draw_keys(structure, self.n_estimators),
                self.max_depth,
                epsilon,
                noise,
                draw_tree_of_row(len(table), self.n_estimators, self.mode, noise),
            )
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the share of trees that vote for each class.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Coded table.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Vote shares: post-processing of the private leaf labels, not class frequencies.
        """
        check_is_fitted(self, "forest_")
        table = self._ordinal_table(X)
        if not len(table):
            return np.empty((0, self.schema.n_classes))
        if self.engine == "library":
            return np.asarray(self.forest_.predict_proba(table), dtype=np.float64)
        return self.forest_.votes(table) / self.n_estimators

    def fit_report(self) -> dict[str, float]:
        """Return the size of the fitted model.

        Returns
        -------
        dict of str to float
            Nodes per tree, the same whatever the data; for the fast engine also the mean number of
            leaves that a record reached, which its forest holds.
        """
        check_is_fitted(self, "forest_")
        report = {"mean_nodes_per_tree": float(2 ** (self.max_depth + 1) - 1)}
        if self.engine == "fast":
            report["mean_reached_leaves_per_tree"] = float(
                np.mean([len(keys) for keys in self.forest_.leaf_keys])
            )
        return report

    def tune(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_validation: ArrayLike,
        y_validation: ArrayLike,
    ) -> dict[str, Any]:
        """Choose the number of trees and the depth by accuracy on validation rows.

        The search of the Lumberjack paper: 5 to 30 trees in steps of 5, every depth up to 19. It
        looks at the rows as often as it likes, at no privacy cost, and the card says so. The fast
        engine does it, whichever engine fits.

        Parameters
        ----------
        X, X_validation : array-like of shape (n_rows, n_features)
            Coded tables.
        y, y_validation : array-like of shape (n_rows,)
            Class codes.

        Returns
        -------
        dict
            `n_estimators` and `max_depth` of the highest mean accuracy, the smallest forest among
            equals, and `is_tuned_on_validation`.
        """
        epsilon, _ = self._check_parameters()
        check_count("n_tuning_forests", self.n_tuning_forests)
        training, validation = self._ordinal_table(X), self._ordinal_table(X_validation)
        n_classes = self.schema.n_classes
        labels = check_labels(y, len(training), n_classes)
        validation_labels = check_labels(y_validation, len(validation), n_classes)
        noise = generator(self.noise_seed, TUNING_STREAM)
        structure = generator(self.random_state, TUNING_STREAM)
        n_correct = np.zeros((len(TUNED_N_ESTIMATORS), TUNED_MAX_DEPTH), dtype=np.int64)
        for _ in range(self.n_tuning_forests):
            for setting, n_trees in enumerate(TUNED_N_ESTIMATORS):
                votes = votes_at_every_depth(
                    training,
                    labels,
                    validation,
                    n_classes,
                    self._space(),
                    draw_keys(structure, n_trees),
                    TUNED_MAX_DEPTH,
                    epsilon,
                    noise,
                    draw_tree_of_row(len(training), n_trees, self.mode, noise),
                )
                n_correct[setting] += (votes.argmax(axis=2) == validation_labels).sum(axis=1)
        best_setting, best_depth = np.unravel_index(n_correct.argmax(), n_correct.shape)
        return {
            "n_estimators": TUNED_N_ESTIMATORS[best_setting],
            "max_depth": int(best_depth) + 1,
            "is_tuned_on_validation": True,
        }

    def privacy_card(self) -> PrivacyCard:
        """Return what is claimed about privacy and what is known against it.

        Returns
        -------
        PrivacyCard
        """
        epsilon, _ = self._check_parameters()
        concerns: tuple[str, ...] = ()
        if self.mode == "paper":
            concerns += (
                "the tree of a record depends on the number of rows: one record more moves others to "
                "other trees, so epsilon holds for a fixed partition only; under add/remove the bound "
                "of the shuffled partition is at least 3 epsilon (own analysis: an upper bound, no "
                "measured loss; mode=corrected repairs it)",
            )
        if self.is_tuned_on_validation:
            concerns += ("tuned without privacy cost, on rows that the final fit uses again",)
        concerns += ("replacing one label costs 2 epsilon (exact, diffprivlib's leaf mechanism)",)
        if self.engine == "library":
            concerns += (
                "noise comes from a non-cryptographic generator that the library seeds with 31-bit "
                "numbers, in floating point (diffprivlib issues 27 and 94)",
            )
        else:
            concerns += (
                "the fitted object stores the leaves that a record reached and is an artefact of "
                "experiments; the claim is about the labels of all leaves",
                "floating-point noise from a non-cryptographic generator",
            )
        is_believed = self.mode == "corrected" and not self.is_tuned_on_validation
        return PrivacyCard(
            method=self.display_name,
            mode=self.mode,
            claimed=Guarantee(epsilon, 0.0),
            source=(
                "Permute-and-Flip (McKenna & Sheldon 2020) on disjoint rows: parallel composition"
                if self.mode == "corrected"
                else "diffprivlib 0.6.6, Holohan et al. 2019, after Fletcher & Islam 2017"
            ),
            status="holds" if is_believed else "doubted",
            concerns=concerns + fixed_noise_concerns(self.noise_seed),
        )

    def _check_parameters(self) -> tuple[float, float]:
        epsilon, delta = check_privacy_parameters(self.epsilon, self.delta)
        check_mode(self.mode, ("paper", "corrected"))
        if self.engine not in ("library", "fast"):
            raise ValueError(f"engine must be library or fast, got {self.engine!r}.")
        if self.engine == "library" and self.mode != "paper":
            raise ValueError(
                "the library has no corrected mode. Use engine=fast with mode=corrected."
            )
        check_count("n_estimators", self.n_estimators)
        check_count("max_depth", self.max_depth)
        return epsilon, delta

    def _ordinal_table(self, X: ArrayLike) -> NDArray[np.float64]:
        table = check_table(X, self.schema)
        return np.clip(table, self.schema.lower, self.schema.upper, out=table)

    def _space(self) -> SplitSpace:
        schema = self.schema
        return SplitSpace(schema.lower, schema.upper, np.zeros_like(schema.n_categories))

    def _check_memory(self) -> None:
        nodes_per_tree = 2 ** (self.max_depth + 1) - 1
        estimate = nodes_per_tree * (
            BYTES_PER_STORED_NODE * self.n_estimators + BYTES_PER_GROWING_NODE
        )
        gigabytes = estimate / 1e9
        if gigabytes > self.memory_limit_gb:
            raise MemoryError(
                f"{self.n_estimators} trees of depth {self.max_depth} have {nodes_per_tree} nodes each and "
                f"need about {gigabytes:.3g} GB, more than memory_limit_gb={self.memory_limit_gb:g}. "
                "Lower max_depth or raise the limit."
            )
        logger.info(
            "diffprivlib grows %d trees of %d nodes, about %.2g GB",
            self.n_estimators,
            nodes_per_tree,
            gigabytes,
        )

    def _fit_library(
        self, table: NDArray[np.float64], labels: NDArray[np.int64], epsilon: float
    ) -> Any:
        forest_class, accountant_class, leak_warning = import_library()
        accountant = accountant_class()
        forest = forest_class(
            n_estimators=self.n_estimators,
            epsilon=epsilon,
            bounds=(self.schema.lower, self.schema.upper),
            classes=self.classes_.tolist(),
            n_jobs=1,
            accountant=accountant,
            random_state=self._library_seed(),
            max_depth=self.max_depth,
            shuffle=True,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error", leak_warning)
            forest.fit(table, labels)
        if not np.array_equal(forest.classes_, self.classes_):
            raise RuntimeError(
                f"diffprivlib used the classes {forest.classes_!r} instead of 0..{len(self.classes_) - 1}; "
                "its leaf counts would be wrong."
            )
        if accountant.total() != (epsilon, 0):
            raise RuntimeError(
                f"diffprivlib's accountant reports {accountant.total()} after a fit at epsilon={epsilon}."
            )
        return forest

    def _library_seed(self) -> int:
        structure = seed_sequence(self.random_state).generate_state(4)
        noise = seed_sequence(self.noise_seed).generate_state(4)
        mixed = np.random.SeedSequence([*structure.tolist(), *noise.tolist()])
        return int(mixed.generate_state(1)[0])


def draw_tree_of_row(
    n_rows: int, n_trees: int, mode: str, noise: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the tree that counts each row.

    Parameters
    ----------
    n_rows, n_trees : int
        Sizes.
    mode : {"paper", "corrected"}
        The library's rule floor(i / (n/T)) on a random permutation of the rows, or an independent
        uniform tree for each row.
    noise : numpy.random.Generator
        Source of the partition, which must stay secret.

    Returns
    -------
    ndarray of shape (n_rows,), int64
    """
    if mode == "corrected":
        return noise.integers(0, n_trees, size=n_rows)
    return tree_of_position(n_rows, n_trees)[noise.permutation(n_rows)]


def tree_of_position(n_rows: int, n_trees: int) -> NDArray[np.int64]:
    """Return the tree that the library gives to each position of the shuffled rows.

    Parameters
    ----------
    n_rows, n_trees : int
        Sizes.

    Returns
    -------
    ndarray of shape (n_rows,), int64
        floor(i / (n/T)) in the library's floating-point arithmetic.
    """
    return (np.arange(n_rows) // (n_rows / n_trees)).astype(np.int64)


def import_library() -> tuple[Any, Any, type[Warning]]:
    """Import what is used of diffprivlib.

    Returns
    -------
    tuple
        Its forest, its budget accountant and its warning about privacy leaks.

    Raises
    ------
    ImportError
        With the reason, when the installed scikit-learn is too new for the library.
    """
    try:
        from diffprivlib import BudgetAccountant
        from diffprivlib.models import RandomForestClassifier
        from diffprivlib.utils import PrivacyLeakWarning
    except ImportError as error:
        major, minor = (int(part) for part in sklearn.__version__.split(".")[:2])
        if (major, minor) >= (1, 9):
            raise ImportError(
                f"diffprivlib 0.6.6 does not work with scikit-learn {sklearn.__version__}. "
                "Install scikit-learn>=1.5,<1.9."
            ) from error
        raise
    return RandomForestClassifier, BudgetAccountant, PrivacyLeakWarning
