"""The scale of a numeric target, read off its released histogram.

Targets s are shares in [0, 1] of the way between their public bounds. The histogram changes by 1 in one cell
with a record. It gives a centre, a spread, and a width at which residuals are clipped from then on, so
that noise follows what targets do and not how wide their bounds are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lumberjack.guide import haar_denoise
from lumberjack.noise import add_noise_to_counts

N_CELLS = 64

_TAIL = 0.005
"""Share of the records whose targets may lie farther from the centre than residuals are clipped at."""

_THRESHOLD = 2.0
"""Standard deviations below which a detail of the histogram is dropped."""


class TargetScale(NamedTuple):
    """What is released of the target, as shares of its range.

    Attributes
    ----------
    n_rows : float
        Number of records, at least 10.
    centre, spread : float
        Mean and standard deviation.
    width : float
        Where residuals are clipped.
    """

    n_rows: float
    centre: float
    spread: float
    width: float


def release_scale(
    shares: NDArray[np.float64], sigma: float, generator: np.random.Generator
) -> TargetScale:
    """Release the target's histogram, and read its scale off it.

    Parameters
    ----------
    shares : ndarray of float64, shape (n_rows,)
        Targets in [0, 1].
    sigma : float
        Standard deviation of the noise of each cell, in records.
    generator : numpy.random.Generator
        Source of noise.
    """
    cells = np.minimum((shares * N_CELLS).astype(np.int64), N_CELLS - 1)
    noisy = add_noise_to_counts(np.bincount(cells, minlength=N_CELLS), sigma, generator)
    n_rows = max(float(noisy.sum()), 10.0)
    masses = haar_denoise(noisy[:, np.newaxis], sigma, _THRESHOLD)[:, 0]
    masses = masses / masses.sum() if masses.sum() > 0 else np.full(N_CELLS, 1 / N_CELLS)
    middles = (np.arange(N_CELLS) + 0.5) / N_CELLS
    centre = float(masses @ middles)
    spread = max(float(np.sqrt(masses @ (middles - centre) ** 2)), 0.5 / N_CELLS)
    distances = np.abs(middles - centre) + 0.5 / N_CELLS
    outermost_first = np.argsort(-distances, kind="stable")
    # What may lie in so many cells; noise counts against cutting them off.
    n_cells = np.arange(1, N_CELLS + 1)
    outside = noisy[outermost_first].cumsum() + sigma * np.sqrt(n_cells)
    n_cut = int(np.argmin(np.append(outside <= _TAIL * n_rows, False)))
    width = float(distances[outermost_first][min(n_cut, N_CELLS - 1)])
    return TargetScale(n_rows, centre, spread, min(width, 1.0))
