"""What every private estimator here does: resolve public facts, read rows, keep what was released.

How an estimator learns is its own affair: the forests are in :mod:`lumberjack.forest`, the additive
model in :mod:`lumberjack.additive_regressor`.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lumberjack.accounting import Ledger
from lumberjack.entropy import make_system_generator
from lumberjack.noise import Noise
from lumberjack.public_facts import PrivacyLeakWarning, check_fill_values, classes_as_array
from lumberjack.reading import is_frame, read_column, read_table, rows_apart
from lumberjack.schema import UNSEEN, EncodedTable, FeatureSchema, as_matrix
from lumberjack.seeds import seed_sequence


class DataOutsideSchemaWarning(UserWarning):
    """Entries were clipped, treated as unseen or filled; meant for the data holder only."""


FEWEST_TO_WARN = 10
"""A few rows to predict may all lie outside the schema by chance."""

_ROWS_AT_A_TIME = 8192
"""Rows that are one matrix together, few enough to stay in a processor's own cache."""


class CodedRows(NamedTuple):
    """Training rows as numbers (NOT private), and what is public about them.

    Columns are those of an :class:`~lumberjack.schema.EncodedTable`: never written to. Labels are class
    codes, or numbers that are not negative where the target is one.
    """

    columns: tuple[NDArray[Any], ...]
    labels: NDArray[Any]
    schema: FeatureSchema
    names: tuple[str, ...] | None
    caveats: tuple[str, ...]

    @property
    def values(self) -> NDArray[np.float64]:
        """All columns in a new array of float64, shape (n_rows, n_features), column-major."""
        return as_matrix(self.columns)

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield a few thousand rows at a time, and their :attr:`values`; at least once."""
        for rows in _split(len(self.labels)):
            yield rows, as_matrix(self.columns, rows)


class PrivateEstimator(BaseEstimator):
    """What the private estimators have in common; not to be used by itself.

    A subclass stores its parameters in its constructor, ``epsilon``, ``delta``, ``schema``, ``bounds``,
    ``categories``, ``missing``, ``random_state``, ``noise_seed`` and ``n_jobs`` among them.
    """

    display_name: ClassVar[str]
    is_private: ClassVar[bool] = True
    noise: Noise = "continuous"
    _fact_names: ClassVar[str] = "bounds, categories, classes or schema"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "schema": [FeatureSchema, None],
        "categories": [Mapping, None],
        "missing": [StrOptions({"raise", "fill"})],
        "n_jobs": [Integral, None],
    }

    @abstractmethod
    def _resolve_schema(
        self, X: Any, y: NDArray[Any]
    ) -> tuple[FeatureSchema, tuple[str, ...] | None, list[str]]:
        """Return what :func:`lumberjack.public_facts.resolve_schema` does of the given facts."""

    @abstractmethod
    def _read_labels(self, y: NDArray[Any], schema: FeatureSchema) -> NDArray[Any]:
        """Return the labels as the forest learns them, :data:`UNSEEN` to drop a row."""

    @abstractmethod
    def _learn(self, coded: CodedRows) -> tuple[Ledger, dict[str, Any]]:
        """Return the ledger, and the fitted attributes that hold what was released."""

    @abstractmethod
    def _get_scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what is predicted for encoded rows, shape (n_rows, n_scores)."""

    def fit(self, X: Any, y: ArrayLike, **unsupported: Any) -> Self:
        """Fit the forest, spending the whole budget once.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_features)
            Training rows, in the schema's own values.
        y : array-like of shape (n_rows,)
            Class labels, or a regression's numbers.
        **unsupported
            Nothing; ``sample_weight`` is refused with its reason.

        Returns
        -------
        Self
            The fitted estimator.

        Raises
        ------
        ValueError
            For parameters out of range, rows that do not fit the schema, missing entries or unknown
            labels (unless asked to route them), or an empty table.
        """
        _refuse_fit_parameters(unsupported)
        self._check_parameters()
        coded = self._read_training_rows(X, y)
        self._keep(coded, *self._learn(coded))
        return self

    def _keep(self, coded: CodedRows, ledger: Ledger, fitted: Mapping[str, Any]) -> None:
        """Set all fitted attributes, at the end, so that a fit that fails leaves nothing of the rows behind."""
        caveats = [*coded.caveats]
        if self.noise_seed is not None:
            caveats.append("the noise is seeded: not private in deployment")
        for name, value in fitted.items():
            setattr(self, name, value)
        self.schema_ = coded.schema
        self.n_features_in_ = coded.schema.n_features
        if coded.names is not None:
            self.feature_names_in_ = np.array(coded.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.ledger_ = replace(ledger, caveats=tuple(caveats))
        self.guarantee_ = self.ledger_.total
        if coded.schema.classes:
            self.classes_ = classes_as_array(coded.schema.classes)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as scikit-learn does; ``warm_start`` is refused with its reason."""
        if "warm_start" in params:
            raise ValueError(
                "warm_start is not supported: every fit spends the whole budget on the rows again. "
                "Fit once with as many trees as you want."
            )
        super().set_params(**params)
        return self

    def _predict_scores(self, X: Any) -> NDArray[np.float64]:
        """Return :meth:`_get_scores` of rows in the schema's own values."""
        table = self._encode_queries(X)

        def score(rows: slice) -> NDArray[np.float64]:
            return self._get_scores(as_matrix(table.columns, rows))

        # A row's scores are its own, so blocks of rows change nothing.
        parts = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
            map(delayed(score), _split(table.n_rows))
        )
        return np.concatenate(parts)

    def _check_parameters(self) -> None:
        self._validate_params()

    def _spawn_seeds(
        self, n_noise: int
    ) -> tuple[np.random.SeedSequence, Sequence[np.random.SeedSequence | None]]:
        """Return the seed of the splits, and so many of the noise, which has nothing to do with it.

        Noise that nobody asked a seed for has none (see :func:`make_generator`).
        """
        split_seed = seed_sequence(self.random_state)
        if self.noise_seed is None:
            return split_seed, [None] * n_noise
        noise_seeds = seed_sequence(self.noise_seed).spawn(n_noise)
        _check_unrelated(split_seed, noise_seeds)
        return split_seed, noise_seeds

    def _concerns(self) -> tuple[str, ...]:
        """Return what a privacy card of any forest has to say."""
        concerns = [
            "Each fit spends its budget again; a person with several records is protected less.",
        ]
        if self.noise == "continuous":
            concerns.append(
                "Noise is drawn in double precision and released on a grid: its law is that of rounded "
                "Gaussian noise up to the rounding of the draws, which no theorem here covers."
            )
        if self.noise_seed is not None:
            concerns.append(
                "Seeded noise, from a generator that is not cryptographic (PCG64): not private in "
                "deployment."
            )
        if hasattr(self, "ledger_"):
            concerns += [caveat for caveat in self.ledger_.caveats if "read off" in caveat]
        elif self.schema is None:
            concerns.append(f"{self._fact_names}: what is not given is read off the rows.")
        return tuple(concerns)

    def _checked_rows(self, X: Any) -> Any:
        """Return a frame as it is, and anything else as an array with entries of their own types."""
        if is_frame(X):
            return X
        # Sparse matrices and the like are left for the check to refuse.
        X = rows_apart(X) if isinstance(X, list | tuple | np.ma.MaskedArray) else X
        return check_array(X, dtype=None, ensure_all_finite=False, estimator=self)

    def _read_training_rows(self, X: Any, y: Any) -> CodedRows:
        X = self._checked_rows(X)
        y = _checked_labels(y)
        schema, names, leaks = self._resolve_schema(X, y)
        if self.missing == "fill":
            check_fill_values(schema)
        if leaks:
            warnings.warn(
                f"{' and '.join(leaks)} were read off the rows, which the guarantee does not cover. "
                f"Give them as public facts ({self._fact_names}).",
                PrivacyLeakWarning,
                stacklevel=3,
            )
        caveats = [f"{leak} were read off the rows: not covered by the guarantee" for leak in leaks]
        table = schema.encode(X, missing=self.missing)
        labels = self._read_labels(y, schema)
        if len(labels) != table.n_rows:
            raise ValueError(
                f"X and y have inconsistent numbers of rows: {table.n_rows} and {len(labels)}."
            )
        _warn_of_unusual_entries(table, labels)
        known = labels != UNSEEN
        columns = table.columns
        if not known.all():
            columns = tuple(column[known] for column in columns)
            labels = labels[known]
        return CodedRows(columns, labels, schema, names, tuple(caveats))

    def _encode_queries(self, X: Any) -> EncodedTable:
        check_is_fitted(self)
        X = self._checked_rows(X)
        own_name = type(self).__name__
        is_named = is_frame(X)
        if is_named and self.schema is None and not hasattr(self, "feature_names_in_"):
            # By position, as scikit-learn does.
            table = read_table(X)
            if table.has_text_names:
                warnings.warn(
                    f"X has feature names, but {own_name} was fitted without feature names",
                    UserWarning,
                    stacklevel=5,
                )
            X = np.column_stack([column.entries().astype(object) for column in table.columns])
            is_named = False
        if not is_named and X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {own_name} is expecting "
                f"{self.n_features_in_} features as input."
            )
        if not is_named and hasattr(self, "feature_names_in_"):
            warnings.warn(
                f"X does not have valid feature names, but {own_name} was fitted with feature names",
                UserWarning,
                stacklevel=5,
            )
        encoded = self.schema_.encode(X, missing=self.missing)  # type: ignore[arg-type]
        if encoded.wholly_outside and encoded.n_rows >= FEWEST_TO_WARN:
            warnings.warn(
                f"no entry of {list(encoded.wholly_outside)} fits the schema: all {encoded.n_rows} are "
                "clipped, unlisted or missing. Are these the values that the forest was fitted on?",
                DataOutsideSchemaWarning,
                stacklevel=5,
            )
        return encoded

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


def _split(n_rows: int) -> list[slice]:
    """Return all rows as blocks, at least one."""
    starts = range(0, max(n_rows, 1), _ROWS_AT_A_TIME)
    return [slice(start, start + _ROWS_AT_A_TIME) for start in starts]


def make_generator(seeds: np.random.SeedSequence | None) -> np.random.Generator:
    """Return the generator of a seed; without one, that of the operating system's random bits."""
    if seeds is None:
        return make_system_generator()
    return np.random.Generator(np.random.PCG64(seeds))


def _refuse_fit_parameters(unsupported: Mapping[str, Any]) -> None:
    if "sample_weight" in unsupported:
        raise TypeError(
            "sample_weight is not supported: the noise is calibrated to records of weight one, and a "
            "heavier one would be protected less. Fit without weights."
        )
    if unsupported:
        raise TypeError(f"fit takes X and y only, got {', '.join(map(repr, unsupported))} as well.")


def _check_unrelated(
    split_seed: np.random.SeedSequence, noise_children: Sequence[np.random.SeedSequence]
) -> None:
    """Refuse splits that would give away the noise: they are published, and so is their state."""
    state = split_seed.generate_state(4).tolist()
    if any(state == child.generate_state(4).tolist() for child in noise_children):
        raise ValueError(
            "random_state was spawned from noise_seed, so that splits and noise would share random"
            f" numbers; spawn both from one parent (got random_state={split_seed})."
        )


def _checked_labels(y: Any) -> NDArray[Any]:
    """Return labels as one column in which each keeps its own type."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    if isinstance(y, list | tuple) and y and all(isinstance(v, list | tuple) for v in y):
        raise ValueError("y must have one dimension, got a list of lists.")
    column = read_column(y)
    if column.values.ndim == 1 and column.values.dtype.kind != "V":
        return column.entries()
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    return labels


def _warn_of_unusual_entries(table: EncodedTable, labels: NDArray[np.int64]) -> None:
    found = [
        f"{count} entries {what}"
        for count, what in (
            (table.n_clipped, "clipped to their bounds"),
            (table.n_unseen, "with categories the schema does not list"),
            (table.n_filled, "filled"),
            (int((labels == UNSEEN).sum()), "dropped for their unknown label"),
        )
        if count
    ]
    if table.wholly_outside:
        found.append(f"no entry of {list(table.wholly_outside)} fits the schema")
    if (labels == UNSEEN).all():
        found.append("so that no row is left to learn from")
    if found:
        warnings.warn(
            f"training rows: {', '.join(found)}. For the data holder only: do not publish.",
            DataOutsideSchemaWarning,
            stacklevel=4,
        )
