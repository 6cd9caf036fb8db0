"""What every baseline shares: the parameters of all methods, checked once, and the way in and out.

A baseline learns from coded rows (:mod:`lumberjack.schema`) that are checked before it sees them
(:mod:`baselines.coded_input`), and says what it claims about privacy on a card.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from baselines.coded_input import check_labels, check_table
from lumberjack.accounting.guarantee import Guarantee, PrivacyCard
from lumberjack.schema import FeatureSchema
from lumberjack.seeds import Seed, seed_sequence

Result = TypeVar("Result")

COUNT = [Interval(Integral, 1, None, closed="left")]
"""Rows of the table of constraints: a number of things, at least one."""

FRACTION = [Interval(Real, 0, 1, closed="neither")]
"""Rows of the table of constraints: a share that leaves something for others."""

# Apart, so that equal seeds of structure and noise give unrelated numbers.
_STRUCTURE_STREAM, _NOISE_STREAM, _TUNING_STREAM = 0, 1, 2


@dataclass(kw_only=True, eq=False, repr=False)
class CodedMethod(BaseEstimator, ABC):
    """What the baselines that classify and those that regress have in common.

    A subclass is a dataclass too (with the same three options, which leave comparison and
    printing to scikit-learn). Its fields are its own hyper-parameters, and their checks are rows of
    scikit-learn's table ``_parameter_constraints``. It learns in ``_fit`` and writes its card with
    ``_card``. Where it has variants, ``mode`` is a field too.

    Parameters
    ----------
    schema : FeatureSchema
        Coded schema: bounds, numbers of categories and classes, all public.
    epsilon : float
        Privacy budget, without a meaning for a method that is not private; infinity switches the
        noise off.
    delta : float
        In [0, 1), without a meaning where the claim is pure epsilon-DP.
    random_state : int, SeedSequence, RandomState, Generator or None
        Seed of what is drawn without looking at the rows; None for fresh entropy.
    noise_seed : int, SeedSequence, RandomState, Generator or None
        Seed of what protects the rows; None for fresh entropy.
    n_jobs : int or None
        Threads, as joblib counts them; the result does not depend on it.
    """

    display_name: ClassVar[str]
    is_private: ClassVar[bool]
    schema_input: ClassVar[str] = "schema (bounds, categories, classes)"

    schema: FeatureSchema
    epsilon: float = 1.0
    delta: float = 1e-6
    random_state: Seed = None
    noise_seed: Seed = None
    n_jobs: int | None = 1

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "schema": [FeatureSchema],
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="left")],
        # Only where a method has them, but then they mean the same.
        "mode": [StrOptions({"paper", "corrected"})],
        "n_estimators": COUNT,
        "max_depth": COUNT,
        "n_jobs": [Integral, None],
    }

    @abstractmethod
    def _fit(self, table: NDArray[np.float64], labels: NDArray[Any]) -> None:
        """Learn from rows that have been checked, with parameters that have been checked."""

    @abstractmethod
    def _check_labels(self, y: ArrayLike, n_rows: int) -> NDArray[Any]:
        """Return the labels of rows as ``_fit`` takes them, or say what is wrong with them."""

    @abstractmethod
    def privacy_card(self) -> PrivacyCard:
        """Return what is claimed about privacy and what is known against it."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Coded table.
        y : array-like of shape (n_rows,)
            Class codes, some of which may be missing; or numbers for a regressor.

        Raises
        ------
        ValueError
            In one line, when a parameter or a row is unusable.
        """
        self._fit(*self._checked(X, y))
        if self.schema.n_classes:
            self.classes_ = np.arange(self.schema.n_classes)
        self.n_features_in_ = self.schema.n_features
        return self

    def _checked(self, X: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """Check the parameters and rows to learn from; return the rows and labels."""
        self._validate_params()
        self._refuse_narrow_numbers()
        table = check_table(X, self.schema)
        return table, self._check_labels(y, len(table))

    def _refuse_narrow_numbers(self) -> None:
        """Refuse numbers of which a product may wrap or be rounded: less noise than promised."""
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, np.number) and value.dtype not in (np.int64, np.float64):
                raise ValueError(
                    f"{name} must be a number of Python's own or of 64 bits, got {value!r}. Write "
                    f"{name}={value.item()!r}."
                )

    def _card(
        self,
        *,
        status: Literal["holds", "doubted", "broken", "not private"],
        source: str,
        concerns: Sequence[str] = (),
        delta: float = 0.0,
        chosen_on: str = "",
        public_inputs: Sequence[str] = (),
    ) -> PrivacyCard:
        """Complete a card with what follows from the parameters, which are checked."""
        self._validate_params()
        if chosen_on:
            # As the own forests say of themselves.
            concerns = (
                *concerns,
                f"the default settings were chosen on validation rows of {chosen_on}, without privacy cost",
            )
        if self.is_private and self.noise_seed is not None:
            concerns = (
                *concerns,
                "the noise seed is fixed, for a repeatable experiment: whoever knows it can undo the noise",
            )
        return PrivacyCard(
            method=self.display_name,
            mode=getattr(self, "mode", "paper"),
            claimed=Guarantee(float(self.epsilon), delta) if self.is_private else None,
            source=source,
            status=status,
            concerns=tuple(concerns),
            public_inputs=(self.schema_input, *public_inputs),
        )

    def _for_each_tree(self, work: Callable[[int], Result], n_trees: int) -> list[Result]:
        """Call `work` for each tree number; compiled work leaves the interpreter to other threads."""
        done: list[Result] = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
            delayed(work)(tree) for tree in range(n_trees)
        )
        return done

    def _structure_generator(self) -> np.random.Generator:
        return _generator(self.random_state, _STRUCTURE_STREAM)

    def _noise_generator(self) -> np.random.Generator:
        return _generator(self.noise_seed, _NOISE_STREAM)

    def _mixed_seed(self) -> int:
        """Return one seed made of both, for a package that draws all its numbers from one."""
        structure = seed_sequence(self.random_state).generate_state(4)
        noise = seed_sequence(self.noise_seed).generate_state(4)
        mixed = np.random.SeedSequence([*structure.tolist(), *noise.tolist()])
        return int(mixed.generate_state(1)[0])

    def _package_seed(self) -> int | None:
        """Return the seed of a package whose noise comes from the operating system without one."""
        return None if self.noise_seed is None else self._mixed_seed()

    def _tuning_generators(self) -> tuple[np.random.Generator, np.random.Generator]:
        """Return sources of structure and of noise for a search, apart from those of the final fit."""
        return (
            _generator(self.random_state, _TUNING_STREAM),
            _generator(self.noise_seed, _TUNING_STREAM),
        )


@dataclass(kw_only=True, eq=False, repr=False)
class CodedClassifier(ClassifierMixin, CodedMethod):
    """A classifier that meets the contract of the harness; a baseline is a subclass of it.

    It is made as :class:`CodedMethod` says, and answers in ``_probabilities``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        All class codes.
    """

    @abstractmethod
    def _probabilities(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a score of each class, shape (n_rows, n_classes), non-negative and of sum 1."""

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return how much speaks for each class, shape (n_rows, n_classes).

        As a rule the share of trees that vote for it: post-processing of what was released, not a
        calibrated probability.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Coded table.
        """
        check_is_fitted(self)
        return self._probabilities(check_table(X, self.schema))

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict the class with the largest score; a tie goes to the lowest code.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Coded table.
        """
        return self.predict_proba(X).argmax(axis=1)

    def _check_labels(self, y: ArrayLike, n_rows: int) -> NDArray[np.int64]:
        return check_labels(y, n_rows, self.schema.n_classes)


def _generator(seed: Seed, stream: int) -> np.random.Generator:
    return np.random.default_rng(seed_sequence(seed).spawn(stream + 1)[stream])


def draw_generators(rng: np.random.Generator, n_generators: int) -> list[np.random.Generator]:
    """Draw one generator per tree up front, so that the number of jobs changes nothing."""
    entropy = rng.integers(0, 2**32, size=(n_generators, 4), dtype=np.uint32)
    return [np.random.default_rng(np.random.SeedSequence(words.tolist())) for words in entropy]
