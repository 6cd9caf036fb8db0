"""A released tree: splits and leaf scores, and nothing that was not released.

Growing one is done elsewhere; this module only walks it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lumberjack.compiled import compiled


@compiled(nogil=True)
def _apply(X, feature, cut, left, is_categorical, leaves):
    for row in range(X.shape[0]):
        node = 0
        while left[node] >= 0:
            f = feature[node]
            value = X[row, f]
            goes_left = value == cut[node] if is_categorical[f] else value <= cut[node]
            node = left[node] if goes_left else left[node] + 1
        leaves[row] = node


@dataclass(frozen=True, slots=True)
class ReleasedTree:
    """A decision tree whose every number was released by a private mechanism.

    Attributes
    ----------
    feature : ndarray of int32, shape (n_nodes,)
        Split feature; -1 for a leaf. Nodes are numbered breadth first from the root, 0.
    cut : ndarray of float64, shape (n_nodes,)
        Threshold (numeric: left when ``x <= cut``) or category code (left when ``x == cut``).
    left : ndarray of int32, shape (n_nodes,)
        Left child, the right one is the next number; -1 for a leaf.
    scores : ndarray of float64, shape (n_nodes, n_classes)
        Released class scores of the leaves; zero for inner nodes.
    """

    feature: NDArray[np.int32]
    cut: NDArray[np.float64]
    left: NDArray[np.int32]
    scores: NDArray[np.float64]

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int((self.left < 0).sum())

    @property
    def depth(self) -> int:
        """Number of splits on the longest path."""
        depths = np.zeros(self.n_nodes, dtype=np.int64)
        # Children have larger numbers than their parent, so one pass in order is enough.
        for node in np.flatnonzero(self.left >= 0):
            depths[self.left[node] : self.left[node] + 2] = depths[node] + 1
        return int(depths.max())

    def apply(
        self, values: NDArray[np.float64], is_categorical: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Return the leaf that each row ends in.

        Parameters
        ----------
        values : ndarray of float64, shape (n_rows, n_features)
            Encoded rows.
        is_categorical : ndarray of bool, shape (n_features,)
            Which features hold category codes.

        Returns
        -------
        ndarray of int64, shape (n_rows,)
            Node numbers.
        """
        leaves = np.empty(len(values), dtype=np.int64)
        _apply(values, self.feature, self.cut, self.left, is_categorical, leaves)
        return leaves
