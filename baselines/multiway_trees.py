"""What the two data-independent multiway forests share: keyed draws and domains.

A categorical split of these trees has one child per category. A node is identified by a 64-bit
key: the root's key is the tree's seed, a child's key is a hash of its parent's key and its number.
Every random choice at a node is a hash of the node's key, so a tree exists in full the moment its
seed is drawn, yet only the nodes that somebody visits cost anything, and the trees of two tables
are the same. The hash is SplitMix64 (Steele, Lea, Flood 2014): a node's choices and children
are successive outputs of a stream that starts at its key.

The methods themselves live in :mod:`baselines.snr` and :mod:`baselines.smooth_sensitivity`.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from baselines.coded_input import Seed, seed_sequence
from lumberjack.compiled import compiled
from lumberjack.schema import UNSEEN, FeatureSchema

Result = TypeVar("Result")

STRUCTURE_STREAM = 0
NOISE_STREAM = 1

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_30, _SHIFT_27, _SHIFT_31 = np.uint64(30), np.uint64(27), np.uint64(31)
_SHIFT_11 = np.uint64(11)

# Positions in a node's stream: its own choices first, then its children.
FEATURE_DRAW = 0
THRESHOLD_DRAW = 1
_FIRST_CHILD = 2


@compiled(nogil=True, inline="always")
def _output(key: np.uint64, position: int) -> np.uint64:
    """Return one 64-bit output of the stream that starts at `key`."""
    mixed = key + _GAMMA * np.uint64(position + 1)
    mixed = (mixed ^ (mixed >> _SHIFT_30)) * _MULTIPLIER_1
    mixed = (mixed ^ (mixed >> _SHIFT_27)) * _MULTIPLIER_2
    return mixed ^ (mixed >> _SHIFT_31)


@compiled(nogil=True)
def keyed_uniform(key: np.uint64, position: int) -> float:
    """Return the node's uniform number in [0, 1) for one of its choices.

    Parameters
    ----------
    key : uint64
        The node.
    position : int
        Which choice: ``FEATURE_DRAW`` or ``THRESHOLD_DRAW``.

    Returns
    -------
    float
    """
    return float(_output(key, position) >> _SHIFT_11) * 2.0**-53


@compiled(nogil=True)
def child_key(key: np.uint64, child: int) -> np.uint64:
    """Return the key of a node's child.

    Parameters
    ----------
    key : uint64
        The parent.
    child : int
        Number of the child, from 0.

    Returns
    -------
    uint64
    """
    return _output(key, _FIRST_CHILD + child)


def generator(seed: Seed, stream: int) -> np.random.Generator:
    """Return the generator of one stream of a seed, leaving the seed as it was.

    Parameters
    ----------
    seed : int, SeedSequence or None
        None takes fresh entropy from the operating system.
    stream : int
        ``STRUCTURE_STREAM`` or ``NOISE_STREAM``, so that equal seeds for both stay unrelated.

    Returns
    -------
    numpy.random.Generator
    """
    return np.random.default_rng(seed_sequence(seed).spawn(stream + 1)[stream])


def draw_keys(rng: np.random.Generator, n_keys: int) -> NDArray[np.uint64]:
    """Draw the root keys of trees.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where they come from.
    n_keys : int
        How many.

    Returns
    -------
    ndarray of shape (n_keys,), uint64
    """
    return rng.integers(0, 2**64, size=n_keys, dtype=np.uint64)


def draw_generators(rng: np.random.Generator, n_generators: int) -> list[np.random.Generator]:
    """Draw one generator per tree up front, so that the number of jobs changes nothing.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where their 128 bits of entropy come from.
    n_generators : int
        How many.

    Returns
    -------
    list of numpy.random.Generator
    """
    entropy = rng.integers(0, 2**32, size=(n_generators, 4), dtype=np.uint32)
    return [np.random.default_rng(np.random.SeedSequence(words.tolist())) for words in entropy]


def for_each_tree(work: Callable[[int], Result], n_trees: int, n_jobs: int | None) -> list[Result]:
    """Call `work` for each tree number and return the results in order.

    Parameters
    ----------
    work : callable
        Compiled work releases the interpreter lock, so threads suffice.
    n_trees : int
        The numbers are 0 to ``n_trees - 1``.
    n_jobs : int or None
        Threads; None means 1, -1 means one per processor.

    Returns
    -------
    list
    """
    n_threads = check_n_jobs(n_jobs)
    if n_threads == 1 or n_trees == 1:
        return [work(tree) for tree in range(n_trees)]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(work, range(n_trees)))


def check_n_jobs(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` asks for.

    Parameters
    ----------
    n_jobs : int or None
        None means 1, -1 means one per processor.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        When it is neither -1 nor a positive integer.
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool):
        if n_jobs == -1:
            return os.cpu_count() or 1
        if n_jobs >= 1:
            return int(n_jobs)
    raise ValueError(f"n_jobs must be -1, None or a positive integer, got {n_jobs!r}.")


@dataclass(frozen=True, slots=True)
class Domains:
    """The values that splits and labels range over.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_features,)
        Range of each numeric feature.
    n_categories : ndarray of shape (n_features,), int64
        Number of categories of each feature, 0 for a numeric one.
    code_of_category : tuple of ndarray
        For each feature the position of a schema code in the domain, :data:`UNSEEN` where it is
        not in it; empty for a numeric feature.
    classes : ndarray of shape (n_classes,), int64
        The class codes that labels range over.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    n_categories: NDArray[np.int64]
    code_of_category: tuple[NDArray[np.int64], ...]
    classes: NDArray[np.int64]

    def recode(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rows with category codes replaced by positions in the domain.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_features)
            As :func:`baselines.coded_input.check_table` gives them.

        Returns
        -------
        ndarray of shape (n_rows, n_features), float64
        """
        recoded = rows.copy()
        for j, table in enumerate(self.code_of_category):
            if table.size:
                # The appended entry is what code -1 finds.
                recoded[:, j] = np.append(table, UNSEEN)[rows[:, j].astype(np.int64)]
        return recoded


def find_domains(
    schema: FeatureSchema,
    source: Literal["schema", "training"],
    rows: NDArray[np.float64],
    labels: NDArray[np.int64],
) -> Domains:
    """Return the domains, public from the schema or, as the originals do, from the rows.

    Parameters
    ----------
    schema : FeatureSchema
        The schema of the coded table.
    source : {"schema", "training"}
        "training" reads ranges, categories and classes off the rows, which no budget pays for.
    rows : ndarray of shape (n_rows, n_features)
        Read only when the source is "training".
    labels : ndarray of shape (n_rows,)
        Likewise.

    Returns
    -------
    Domains
    """
    lower, upper, n_categories = schema.lower, schema.upper, schema.n_categories
    tables = [np.arange(n, dtype=np.int64) for n in n_categories]
    classes = np.arange(schema.n_classes, dtype=np.int64)
    if source == "training":
        for j in range(schema.n_features):
            if n_categories[j] == 0:
                lower[j], upper[j] = rows[:, j].min(), rows[:, j].max()
                continue
            is_seen = np.zeros(n_categories[j], dtype=bool)
            codes = rows[:, j].astype(np.int64)
            is_seen[codes[codes != UNSEEN]] = True
            tables[j] = np.where(is_seen, np.cumsum(is_seen) - 1, UNSEEN)
            # A column of unseen values only keeps one category that no row has.
            n_categories[j] = max(1, int(is_seen.sum()))
        classes = np.unique(labels)
    return Domains(lower, upper, n_categories, tuple(tables), classes)
