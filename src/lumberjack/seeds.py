"""What a caller may give as a seed, and the generators made of it."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

Seed = int | np.random.SeedSequence | np.random.RandomState | np.random.Generator | None
"""What methods take as a seed; None stands for fresh entropy of the operating system."""


def seed_sequence(seed: Any) -> np.random.SeedSequence:
    """Return a seed sequence of its own for what a method draws.

    Parameters
    ----------
    seed : int, SeedSequence, RandomState, Generator or None
        None stands for fresh entropy of the operating system. A sequence is copied, so that
        spawning leaves the caller's untouched and two fits spawn the same children; generators are
        drawn from, as scikit-learn does.

    Raises
    ------
    ValueError
        When the seed is of another kind or negative.
    """
    if seed is None:
        return np.random.SeedSequence()
    if isinstance(seed, np.random.SeedSequence):
        return np.random.SeedSequence(
            seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size
        )
    if isinstance(seed, np.random.RandomState):
        return np.random.SeedSequence(seed.randint(2**32, size=4, dtype=np.uint32).tolist())
    if isinstance(seed, np.random.Generator):
        return np.random.SeedSequence(seed.integers(2**32, size=4).tolist())
    if isinstance(seed, numbers.Integral) and not isinstance(seed, bool) and int(seed) >= 0:
        return np.random.SeedSequence(int(seed))
    raise ValueError(
        "a seed must be a non-negative whole number, a SeedSequence, a RandomState, a Generator or "
        f"None, got {seed!r}."
    )
