"""DiffPrivLib's random forest: complete random trees, each record in one of them.

Method of Holohan et al. 2019 (the library diffprivlib, after Fletcher & Islam 2017): trees of a
fixed depth whose splits do not look at the data, a partition of the records over the trees, and a
leaf label chosen by Permute-and-Flip. Two engines:

* ``library`` wraps the library and guards against the ways in which it fails silently: labels other
  than 0..K-1, sorted rows without shuffling, bounds and classes read from the rows, a budget
  accountant shared between fits, trees too large for memory.
* ``fast`` follows the same law without building the trees (:mod:`baselines.random_binary_trees`), in
  tenths of a second where the library takes minutes. It makes tuning possible, and it has a
  corrected mode: each record draws its tree by itself.
"""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from baselines.coded_classifier import COUNT, CodedClassifier
from baselines.keyed_trees import SplitSpace, draw_keys
from baselines.random_binary_trees import Rows, grow, votes_at_every_depth
from lumberjack.accounting.guarantee import PrivacyCard

logger = logging.getLogger(__name__)

BYTES_PER_STORED_NODE = 80
"""What a fitted tree of the library keeps per node (measured, exact)."""

BYTES_PER_GROWING_NODE = 450
"""What the library needs per node of the one tree it is growing (measured, rounded up)."""

TUNED_N_ESTIMATORS = (5, 10, 15, 20, 25, 30)
TUNED_MAX_DEPTH = 19
"""The paper's search: trees in steps of five, every depth up to this one (appendix C)."""


@dataclass(kw_only=True, eq=False, repr=False)
class DiffPrivLibClassifier(CodedClassifier):
    """Differentially private random decision forest of diffprivlib.

    Parameters
    ----------
    mode : {"paper", "corrected"}
        What the library does, or, with the fast engine, a tree for each record that is drawn
        uniformly and independently of all other records, which makes the claim exact.
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
    forest_ : diffprivlib.models.RandomForestClassifier or RandomBinaryTrees
        The fitted forest of the engine.

    Notes
    -----
    Every feature is a number to the library. Categorical features are passed as their codes; a
    category that the schema does not list is passed as code 0, the first category (which is where
    the library itself sends the code -1: below every threshold).

    The library draws splits and noise from one seed, made of `random_state` and `noise_seed`; they
    are repeatable together or not at all. `n_jobs` is not used: the library's threads do not run
    side by side (measured 15.5 s with one and 15.1 s with two). Run several fits in processes.

    References
    ----------
    Holohan, Braghin, Mac Aonghusa, Levacher: "Diffprivlib: the IBM differential privacy library",
    2019. Fletcher, Islam: "Differentially private random decision forests using smooth
    sensitivity", 2017. McKenna, Sheldon: "Permute-and-Flip", 2020.
    """

    display_name: ClassVar[str] = "DiffPrivLib"
    is_private: ClassVar[bool] = True

    mode: str = "paper"
    n_estimators: int = 15
    max_depth: int = 13
    engine: str = "library"
    memory_limit_gb: float = 4.0
    is_tuned_on_validation: bool = False
    n_tuning_forests: int = 5

    _parameter_constraints = CodedClassifier._parameter_constraints | {
        "engine": [StrOptions({"library", "fast"})],
        "memory_limit_gb": [Interval(Real, 0, None, closed="neither")],
        "n_tuning_forests": COUNT,
    }

    def skip(self, n_rows: int) -> str | None:
        """Return why the library would need too much memory, or None if it would not.

        Parameters
        ----------
        n_rows : int
            Not used: the trees are complete, whatever the rows.
        """
        nodes_per_tree = 2 ** (self.max_depth + 1) - 1
        estimate = nodes_per_tree * (
            BYTES_PER_STORED_NODE * self.n_estimators + BYTES_PER_GROWING_NODE
        )
        gigabytes = estimate / 1e9
        if self.engine == "fast" or gigabytes <= self.memory_limit_gb:
            return None
        return (
            f"{self.n_estimators} trees of depth {self.max_depth} have {nodes_per_tree} nodes each and "
            f"need about {gigabytes:.3g} GB, more than memory_limit_gb={self.memory_limit_gb:g}. "
            "Lower max_depth or raise the limit."
        )

    def fit_report(self) -> dict[str, float]:
        """Return the size of the fitted model.

        Returns
        -------
        dict of str to float
            Nodes per tree, the same whatever the data; for the fast engine also the mean number of
            leaves that a record reached, which its forest holds.
        """
        check_is_fitted(self)
        report = {"mean_nodes_per_tree": float(2 ** (self.max_depth + 1) - 1)}
        if self.engine == "fast":
            report["mean_reached_leaves_per_tree"] = float(
                np.mean([len(keys) for keys in self.forest_.leaf_keys])
            )
        return report

    def tune(
        self, X: ArrayLike, y: ArrayLike, X_validation: ArrayLike, y_validation: ArrayLike
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
        table, labels = self._checked(X, y)
        validation, validation_labels = self._checked(X_validation, y_validation)
        table, validation = self._as_numbers(table), self._as_numbers(validation)
        structure, noise = self._tuning_generators()
        n_correct = np.zeros((len(TUNED_N_ESTIMATORS), TUNED_MAX_DEPTH), dtype=np.int64)
        for _ in range(self.n_tuning_forests):
            for setting, n_trees in enumerate(TUNED_N_ESTIMATORS):
                keys = draw_keys(structure, n_trees)
                rows = self._deal(table, labels, n_trees, noise)
                votes = votes_at_every_depth(
                    rows, validation, self._space(), keys, TUNED_MAX_DEPTH, self.epsilon, noise
                )
                n_correct[setting] += (votes.argmax(axis=2) == validation_labels).sum(axis=1)
        best_setting, best_depth = np.unravel_index(n_correct.argmax(), n_correct.shape)
        return {
            "n_estimators": TUNED_N_ESTIMATORS[best_setting],
            "max_depth": int(best_depth) + 1,
            "is_tuned_on_validation": True,
        }

    def privacy_card(self) -> PrivacyCard:
        """Return what is claimed about privacy and what is known against it."""
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
        return self._card(
            status="holds" if is_believed else "doubted",
            source=(
                "Permute-and-Flip (McKenna & Sheldon 2020) on disjoint rows: parallel composition"
                if self.mode == "corrected"
                else "diffprivlib 0.6.6, Holohan et al. 2019, after Fletcher & Islam 2017"
            ),
            concerns=concerns,
        )

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.engine == "library" and self.mode != "paper":
            raise ValueError(
                "the library has no corrected mode. Use engine=fast with mode=corrected."
            )

    def _fit(self, table: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
        table = self._as_numbers(table)
        if self.engine == "library":
            reason = self.skip(len(table))
            if reason:
                raise MemoryError(reason)
            self.forest_ = self._fit_library(table, labels)
        else:
            noise = self._noise_generator()
            keys = draw_keys(self._structure_generator(), self.n_estimators)
            rows = self._deal(table, labels, self.n_estimators, noise)
            self.forest_ = grow(rows, self._space(), keys, self.max_depth, self.epsilon, noise)

    def _probabilities(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        if not len(table):
            return np.empty((0, self.schema.n_classes))
        if self.engine == "library":
            shares = self.forest_.predict_proba(self._as_numbers(table))
            return np.asarray(shares, dtype=np.float64)
        return self.forest_.votes(self._as_numbers(table)) / self.n_estimators

    def _as_numbers(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.clip(table, self.schema.lower, self.schema.upper)

    def _space(self) -> SplitSpace:
        n_categories = np.zeros_like(self.schema.n_categories)
        return SplitSpace.of(self.schema)._replace(n_categories=n_categories)

    def _deal(
        self,
        table: NDArray[np.float64],
        labels: NDArray[np.int64],
        n_trees: int,
        noise: np.random.Generator,
    ) -> Rows:
        tree_of_row = draw_tree_of_row(len(table), n_trees, self.mode, noise)
        return Rows(table, labels, self.schema.n_classes, tree_of_row)

    def _fit_library(self, table: NDArray[np.float64], labels: NDArray[np.int64]) -> Any:
        forest_class, accountant_class, leak_warning = import_library()
        logger.info("diffprivlib grows %d trees of depth %d", self.n_estimators, self.max_depth)
        accountant = accountant_class()
        classes = list(range(self.schema.n_classes))
        forest = forest_class(
            n_estimators=self.n_estimators,
            epsilon=float(self.epsilon),
            bounds=(self.schema.lower, self.schema.upper),
            classes=classes,
            n_jobs=1,
            accountant=accountant,
            random_state=self._mixed_seed(),
            max_depth=self.max_depth,
            shuffle=True,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error", leak_warning)
            forest.fit(table, labels)
        if not np.array_equal(forest.classes_, classes):
            raise RuntimeError(
                f"diffprivlib used the classes {forest.classes_!r} instead of 0..{len(classes) - 1}; "
                "its leaf counts would be wrong."
            )
        if accountant.total() != (self.epsilon, 0):
            raise RuntimeError(
                f"diffprivlib's accountant reports {accountant.total()} after a fit at "
                f"epsilon={self.epsilon}."
            )
        return forest


def draw_tree_of_row(
    n_rows: int, n_trees: int, mode: str, noise: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the tree that counts each row, shape (n_rows,).

    Parameters
    ----------
    n_rows, n_trees : int
        Sizes.
    mode : {"paper", "corrected"}
        The library's rule floor(i / (n/T)) on a random permutation of the rows, or an independent
        uniform tree for each row.
    noise : numpy.random.Generator
        Source of the partition, which must stay secret.
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
