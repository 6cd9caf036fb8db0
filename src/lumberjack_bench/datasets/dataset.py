"""What a loaded data set is: compact rows, their public schema, and where they came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lumberjack.schema import CategoricalFeature, FeatureSchema

if TYPE_CHECKING:
    import pandas as pd


class DatasetError(RuntimeError):
    """A data set that cannot be had, or a table that does not fit its schema.

    The message stands on its own: what was wrong, what was seen, what to do. ``dataset_name`` says
    which data set was wanted, once it is known.
    """

    dataset_name: str = ""


@dataclass(frozen=True, slots=True)
class DataSource:
    """Where the rows of a data set came from; it travels with every result.

    Parameters
    ----------
    kind : str
        ``uci``, ``acs``, ``keel``, ``wheel``, ``sklearn``, ``openml``, ``table`` or ``generated``.
    description : str
        One line for a reader.
    file : str
        Name of the file the rows were read from, without its folder; empty when generated.
    sha256 : str
        Checksum of the source: of the file, of the list of checksums of several files, or of
        the recipe when the rows are generated.
    n_rows : int
        Number of rows after the task's filters.
    is_stand_in : bool
        True when these are not the rows the paper used but others in their place.
    stand_in_note : str
        Why they are a stand-in; empty otherwise.
    """

    kind: str
    description: str
    file: str
    sha256: str
    n_rows: int = 0
    is_stand_in: bool = False
    stand_in_note: str = ""

    @property
    def label(self) -> str:
        """Short text for log lines, table cells and figure legends."""
        if self.is_stand_in:
            return f"stand-in {self.file}, {self.n_rows:,} rows"
        return f"{self.file or 'generated'}, {self.n_rows:,} rows"


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many entries of each column did not fit the public schema.

    These are facts about the rows, for the data holder's eyes: they must never reach a model.

    Parameters
    ----------
    clipped, unseen, filled : mapping of str to int
        Per column, only where positive: values outside the bounds, values that the schema does
        not list, missing entries that the public fill value replaces.
    """

    clipped: Mapping[str, int] = field(default_factory=dict)
    unseen: Mapping[str, int] = field(default_factory=dict)
    filled: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Summary:
    """The row of a data set in a table like the paper's Table 1.

    ``majority`` is the share of the most frequent class, in [0, 1]; 1 where the label is a number.
    """

    n_rows: int
    n_features: int
    n_categorical: int
    n_classes: int
    majority: float


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Rows with a public schema.

    Parameters
    ----------
    name : str
    schema : FeatureSchema
        Public facts, in the original values (not codes).
    X : DataFrame of shape (n_rows, n_features)
        Columns in the schema's order. Numeric: the smallest integer or float type that holds
        them, already clipped to the bounds. Categorical: pandas categoricals with the schema's
        categories, plus one last level where rows hold unlisted values. NaN is a missing entry.
    y : ndarray of shape (n_rows,), int8 or int16, or float64
        Class codes, positions in ``schema.classes``; or numbers within ``schema.target_bounds``.
    source : DataSource
    counts : RowCounts
    """

    name: str
    schema: FeatureSchema
    X: pd.DataFrame
    y: NDArray[Any]
    source: DataSource
    counts: RowCounts = field(default_factory=RowCounts)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.y)

    def encoded(self) -> tuple[NDArray[np.float64], RowCounts]:
        """Return the rows in the numeric form that methods take.

        Returns
        -------
        values : ndarray of shape (n_rows, n_features), float64, column-major
            As :meth:`lumberjack.schema.FeatureSchema.encode` gives it, missing entries replaced
            by the schema's public fill values. Each row depends on itself alone.
        counts : RowCounts
        """
        return self.schema.encode(self.X, missing="fill").values, self.counts

    def summary(self) -> Summary:
        """Return sizes and the share of the most frequent class."""
        codes = self.y if self.schema.classes else np.zeros(self.n_rows, dtype=np.int64)
        frequencies = np.bincount(codes, minlength=self.schema.n_classes)
        return Summary(
            n_rows=self.n_rows,
            n_features=self.schema.n_features,
            n_categorical=sum(isinstance(f, CategoricalFeature) for f in self.schema.features),
            n_classes=self.schema.n_classes,
            majority=float(frequencies.max() / self.n_rows),
        )
