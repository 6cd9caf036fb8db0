"""Random numbers that are a hash of a node's key: drawn when asked for, the same whenever that is.

Every node of a random tree has a 64-bit key: the root's is the tree's seed, a child's is a draw of
its parent. So a tree exists in full the moment its seed is drawn, yet only the nodes that somebody
visits cost anything. Numbers of one key are successive outputs of SplitMix64 (Steele, Lea and Flood
2014) started at the key; which positions are choices and which are children is the caller's matter.
"""

from __future__ import annotations

import numpy as np

from lumberjack.compiled import compiled

_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_30, _SHIFT_27, _SHIFT_31 = np.uint64(30), np.uint64(27), np.uint64(31)
_SHIFT_11 = np.uint64(11)


@compiled(nogil=True)
def keyed_bits(key: np.uint64, position: int) -> np.uint64:
    """Return 64 random bits, as for the key of a child.

    Parameters
    ----------
    key : uint64
        The node.
    position : int
        Which draw of the node, from 0.
    """
    bits = key + _INCREMENT * np.uint64(position + 1)
    bits = (bits ^ (bits >> _SHIFT_30)) * _MULTIPLIER_1
    bits = (bits ^ (bits >> _SHIFT_27)) * _MULTIPLIER_2
    return bits ^ (bits >> _SHIFT_31)


@compiled(nogil=True)
def keyed_uniform(key: np.uint64, position: int) -> float:
    """Return a uniform number in [0, 1), for one choice at a node.

    Parameters
    ----------
    key : uint64
        The node.
    position : int
        Which draw of the node, from 0.
    """
    return float(keyed_bits(key, position) >> _SHIFT_11) * 2.0**-53
