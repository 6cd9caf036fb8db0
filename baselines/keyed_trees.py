"""Random trees that are a function of a key: what the data-independent forests share.

A tree exists in full the moment its key is drawn (:mod:`lumberjack.keyed_draws`), and only the
nodes on the way of a record are ever looked at. The fitted part of it is a label for each leaf that
some record reached; the label of any other leaf is uniform, drawn once and for all from the leaf's
key. The list of known leaves tells them from empty ones: it is an artefact of experiments and must
not be released.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lumberjack.compiled import compiled
from lumberjack.keyed_draws import keyed_bits, keyed_uniform
from lumberjack.schema import FeatureSchema

# Positions in a node's stream: its own choices first, then its children.
FEATURE_DRAW = 0
THRESHOLD_DRAW = 1
_FIRST_CHILD = 2
# A leaf draws no feature, so that number of its stream is free for the label of an empty leaf.
_EMPTY_LABEL_DRAW = FEATURE_DRAW

STOPPED = np.uint64(0)
"""Stands for the leaf of a row that met a category outside the domain and stopped above it."""


class SplitSpace(NamedTuple):
    """What random trees split.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_features,)
        Public bounds; of no meaning for a feature with categories.
    n_categories : ndarray of shape (n_features,), int64
        0 for a feature split by thresholds, else its number of categories.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    n_categories: NDArray[np.int64]

    @classmethod
    def of(cls, schema: FeatureSchema) -> SplitSpace:
        """Return the space of a coded schema."""
        return cls(schema.lower, schema.upper, schema.n_categories)


@compiled(nogil=True)
def child_key(key: np.uint64, child: int) -> np.uint64:
    """Return the key of a node's child, children being numbered from 0."""
    return keyed_bits(key, _FIRST_CHILD + child)


def draw_keys(rng: np.random.Generator, n_keys: int) -> NDArray[np.uint64]:
    """Draw the root keys of trees."""
    return rng.integers(0, 2**64, size=n_keys, dtype=np.uint64)


def count_classes(
    leaf_of_row: NDArray[np.uint64], labels: NDArray[np.int64], n_classes: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Count the rows of each class in each leaf that a row reached.

    Parameters
    ----------
    leaf_of_row : ndarray of shape (n_rows,), uint64
        Keys of leaves.
    labels : ndarray of shape (n_rows,), int64
        Class codes.
    n_classes : int
        Number of classes.

    Returns
    -------
    leaves : ndarray of shape (n_leaves,), uint64
        Keys, sorted.
    counts : ndarray of shape (n_leaves, n_classes), int64
    """
    leaves, leaf = np.unique(leaf_of_row, return_inverse=True)
    cells = np.bincount(leaf * n_classes + labels, minlength=len(leaves) * n_classes)
    return leaves, cells.reshape(-1, n_classes)


@compiled(nogil=True)
def add_votes(
    votes: NDArray[np.int64],
    leaf_of_row: NDArray[np.uint64],
    known_leaves: NDArray[np.uint64],
    known_labels: NDArray[np.int64],
    empty_key: np.uint64,
) -> None:
    """Add one tree's vote for each row.

    Parameters
    ----------
    votes : ndarray of shape (n_rows, n_classes), int64
        Changed in place.
    leaf_of_row : ndarray of shape (n_rows,), uint64
        Keys of leaves; a row that :data:`STOPPED` has no vote.
    known_leaves, known_labels : ndarray of shape (n_leaves,)
        Sorted keys and their labels.
    empty_key : uint64
        Combined with the keys of all other leaves, from which their labels are drawn.
    """
    places = np.searchsorted(known_leaves, leaf_of_row)
    for i in range(len(leaf_of_row)):
        if leaf_of_row[i] == STOPPED:
            continue
        place = places[i]
        if place < len(known_leaves) and known_leaves[place] == leaf_of_row[i]:
            label = known_labels[place]
        else:
            uniform = keyed_uniform(leaf_of_row[i] ^ empty_key, _EMPTY_LABEL_DRAW)
            label = int(uniform * votes.shape[1])
        votes[i, label] += 1
