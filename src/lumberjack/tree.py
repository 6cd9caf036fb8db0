"""A released tree: splits and leaf scores, and nothing that was not released.

Growing one is done elsewhere; this module only walks it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lumberjack.compiled import compiled


@compiled(nogil=True)
def _apply(
    values: NDArray[np.float64],
    feature: NDArray[np.int32],
    threshold: NDArray[np.float64],
    children_left: NDArray[np.int32],
    is_categorical: NDArray[np.bool_],
    leaves: NDArray[np.int64],
) -> None:
    """Take all rows one level down, then those that are not in a leaf yet, and so on.

    A row's next step needs its last one, another row's does not, so that steps overlap. No branch
    depends on a row, and unsigned numbers as indices need none either.
    """
    n_rows = values.shape[0]
    leaves[:] = 0
    on_the_way = np.arange(n_rows).astype(np.uint32)
    n_on_the_way = np.uint64(n_rows if children_left[0] >= 0 else 0)
    while n_on_the_way > np.uint64(0):
        n_kept = np.uint64(0)
        for i in range(n_on_the_way):
            row = np.uint64(on_the_way[i])
            node = np.uint64(leaves[row])
            f = np.uint64(feature[node])
            value, bound = values[row, f], threshold[node]
            goes_left = (value == bound) | ((value < bound) & (not is_categorical[f]))
            node = np.uint64(children_left[node]) + np.uint64(1) - np.uint64(goes_left)
            leaves[row] = node
            on_the_way[n_kept] = row
            n_kept += np.uint64(children_left[node] >= 0)
        n_on_the_way = n_kept


@dataclass(frozen=True, slots=True)
class ReleasedTree:
    """A decision tree whose every number was released by a private mechanism.

    Attributes
    ----------
    feature : ndarray of int32, shape (n_nodes,)
        Split feature; -1 for a leaf. Nodes are numbered breadth first from the root, 0.
    threshold : ndarray of float64, shape (n_nodes,)
        Left when ``x <= threshold`` (numeric feature) or ``x == threshold`` (a category code).
    children_left : ndarray of int32, shape (n_nodes,)
        Left child, the right one is the next number; -1 for a leaf.
    value : ndarray of float64, shape (n_nodes, n_classes)
        Released class scores of the leaves; zero for inner nodes.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    children_left: NDArray[np.int32]
    value: NDArray[np.float64]

    @property
    def children_right(self) -> NDArray[np.int32]:
        """Right child of each node, shape (n_nodes,); -1 for a leaf."""
        return np.where(self.children_left < 0, self.children_left, self.children_left + 1)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int((self.children_left < 0).sum())

    @property
    def depth(self) -> int:
        """Number of splits on the longest path."""
        depths = np.zeros(self.n_nodes, dtype=np.int64)
        # Children have larger numbers than their parent, so one pass in order is enough.
        for node in np.flatnonzero(self.children_left >= 0):
            depths[self.children_left[node] : self.children_left[node] + 2] = depths[node] + 1
        return int(depths.max())

    def apply(
        self, values: NDArray[np.float64], is_categorical: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Return the leaf that each row ends in.

        Parameters
        ----------
        values : ndarray of float64, shape (n_rows, n_features), row-major
            Rows on the scale of the thresholds; best a few thousand at a time.
        is_categorical : ndarray of bool, shape (n_features,)
            Which features hold category codes.

        Returns
        -------
        ndarray of int64, shape (n_rows,)
            Node numbers.
        """
        leaves = np.empty(len(values), dtype=np.int64)
        _apply(values, self.feature, self.threshold, self.children_left, is_categorical, leaves)
        return leaves
