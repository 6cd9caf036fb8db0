"""Draws from the discrete Gaussian distribution, without an error that arithmetic could make.

The discrete Gaussian has Pr[X = x] proportional to ``exp(-x^2 / (2 sigma^2))`` on the integers
(Canonne, Kamath and Steinke 2020). What guarantee it buys is computed in
:mod:`lumberjack.accounting.discrete_gaussian`, not here.

Method. Integers are parted into blocks of equal size. A block is drawn by inversion, from a table of
128-bit cumulative probabilities, each block weighted by its likeliest integer; then an integer of the
block, accepted with the probability that is left. Tables come from integer arithmetic of 320 bits.
Acceptance compares a uniform number with a probability in floating point only where the two are
further apart than rounding can reach, and in 100 decimal digits otherwise. So the law of each draw is
within 2^-100 of the named one in total variation, as far as the generator's bits are fair coins.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lumberjack.accounting.checks import check_positive
from lumberjack.compiled import compiled

_BITS = 320
"""Of the fixed-point weights; the recursion loses fewer than 80 of them."""

_REACH = 14.0
"""Standard deviations; a table ends where less than 2^-128 is left."""

_BLOCKS_PER_SIGMA = 64

_CLOSE = 2.0**-40
"""Probabilities computed in floating point here are right to 2^-48."""

_DIGITS = 100


class BlockTable(NamedTuple):
    """Cumulative probabilities of blocks of integers, as 128-bit fractions.

    Attributes
    ----------
    first : int
        Number of the first block; block j holds the integers from ``j size`` to ``(j + 1) size - 1``.
    size : int
        Integers per block.
    high, low : ndarray of uint64, shape (n_blocks - 1,)
        Both words of the probability of each block and all before it; the last one's is 1.
    """

    first: int
    size: int
    high: NDArray[np.uint64]
    low: NDArray[np.uint64]


NO_TABLE = BlockTable(0, 1, np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint64))
"""In place of a table where noise is continuous."""


def _get_weights(sigma: float, first: int, step: int, count: int) -> list[int]:
    """Return ``exp(-x^2 / (2 sigma^2))`` at x = first + j step, j = 0 .. count - 1, times 2^320."""

    def fixed(numerator: int) -> int:
        return int((-numerator / variance / 2).exp() * 2**_BITS)

    with localcontext() as context:
        context.prec = _DIGITS
        variance = Decimal(sigma) ** 2
        weight, ratio = fixed(first**2), fixed(step * (2 * first + step))
        ratio_of_ratios = fixed(2 * step * step)
    weights = []
    for _ in range(count):
        weights.append(weight)
        weight = (weight * ratio) >> _BITS
        ratio = (ratio * ratio_of_ratios) >> _BITS
    return weights


@functools.lru_cache(maxsize=64)
def get_block_table(sigma: float, size: int = 1) -> BlockTable:
    """Return the table of the discrete Gaussian's blocks, each weighted by its likeliest integer.

    Parameters
    ----------
    sigma : float
        Its parameter, positive; the standard deviation is close to it, and below it.
    size : int, default=1
        Integers per block; with blocks of one the table is the distribution function itself.
    """
    count = int(_REACH * sigma / size) + 2
    right = _get_weights(sigma, 0, size, count)
    # The block before 0 ends at -1.
    left = _get_weights(sigma, 1, size, count)[::-1]
    whole = sum(left) + sum(right)
    passed, words = 0, []
    for weight in (left + right)[:-1]:
        passed += weight
        words.append(min((passed << 128) // whole, 2**128 - 1))
    high = np.array([word >> 64 for word in words], dtype=np.uint64)
    low = np.array([word & (2**64 - 1) for word in words], dtype=np.uint64)
    return BlockTable(-count, size, high, low)


def draw_words(size: int, generator: np.random.Generator) -> NDArray[np.uint64]:
    """Return words of 64 fair bits each, shape (size,)."""
    return generator.integers(0, 2**64 - 1, size=size, dtype=np.uint64, endpoint=True)


@compiled(nogil=True)
def _draw_word(generator: np.random.Generator) -> np.uint64:
    return generator.integers(0, 2**64 - 1, dtype=np.uint64, endpoint=True)


@compiled(nogil=True)
def _get_mask(word: np.uint64) -> np.uint64:
    """Return ones in all places from the highest one of the word on."""
    for shift in (1, 2, 4, 8, 16, 32):
        word |= word >> np.uint64(shift)
    return word


@compiled(nogil=True)
def _get_rest(table: BlockTable, integer: int) -> tuple[np.uint64, np.uint64]:
    """Return both words of ``Pr[X >= integer]``, of a table with blocks of one."""
    position = integer - table.first - 1
    if position < 0:
        return ~np.uint64(0), ~np.uint64(0)
    position = min(position, table.high.shape[0] - 1)
    high, low = ~table.high[position], ~table.low[position] + np.uint64(1)
    return high + np.uint64(low == np.uint64(0)), low


@compiled(nogil=True)
def get_tail(table: BlockTable, integer: int) -> float:
    """Return ``Pr[X >= integer]`` of a table with blocks of one, to all digits of a double."""
    high, low = _get_rest(table, integer)
    return high * 2.0**-64 + low * 2.0**-128


@compiled(nogil=True)
def draw_at_least(table: BlockTable, least: int, generator: np.random.Generator) -> int:
    """Draw from the discrete Gaussian, conditioned on a least value.

    Parameters
    ----------
    table : BlockTable
        With blocks of one.
    least : int
        Anything at or below ``table.first`` is no condition.
    generator : numpy.random.Generator
        Source of the draw.
    """
    top_high, top_low = _get_rest(table, least)
    mask_high = _get_mask(top_high)
    mask_low = _get_mask(top_low) if top_high == np.uint64(0) else ~np.uint64(0)
    while True:
        # A uniform number below the conditional probability, counted from the upper end.
        high = _draw_word(generator) & mask_high if mask_high > np.uint64(0) else np.uint64(0)
        low = _draw_word(generator) & mask_low
        if high < top_high or (high == top_high and low < top_low):
            break
    high, low = ~high, ~low
    below, above = 0, table.high.shape[0]
    while below < above:
        middle = (below + above) // 2
        if table.high[middle] < high or (table.high[middle] == high and table.low[middle] <= low):
            below = middle + 1
        else:
            above = middle
    # Past the end of the table nothing but the least value is left.
    return max(below + table.first, least)


def _draw_blocks(
    table: BlockTable, count: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    words = draw_words(count, generator)
    blocks = np.searchsorted(table.high, words, side="right")
    first_tie = np.searchsorted(table.high, words, side="left")
    for i in np.flatnonzero(first_tie < blocks).tolist():
        # The upper words are equal, so the lower ones decide.
        tied = table.low[first_tie[i] : blocks[i]]
        blocks[i] = first_tie[i] + int((tied <= draw_words(1, generator)).sum())
    return blocks.astype(np.int64) + table.first


def flip_coins(
    probability: NDArray[np.float64],
    get_log_probability: Callable[[int], Decimal],
    generator: np.random.Generator,
    *,
    close: float = _CLOSE,
) -> NDArray[np.bool_]:
    """Return whether each of several coins shows heads.

    Parameters
    ----------
    probability : ndarray of float64, shape (n_coins,)
        Of heads, right to 2^-48.
    get_log_probability : callable
        Gives its logarithm for a coin's number, in a context of 100 digits.
    generator : numpy.random.Generator
        Source of the coins.
    close : float, default=2^-40
        Distance of the uniform number from the probability within which digits are added to both.
    """
    uniform = generator.random(len(probability))
    is_head = uniform < probability
    for i in np.flatnonzero(np.abs(uniform - probability) < close).tolist():
        with localcontext() as context:
            context.prec = _DIGITS
            high, low = draw_words(2, generator).tolist()
            rest = (Decimal(high) * 2**64 + low) / Decimal(2) ** (53 + 128)
            is_head[i] = Decimal(float(uniform[i])) + rest < get_log_probability(i).exp()
    return is_head


def sample_discrete_gaussian(
    sigma: float, size: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Draw from the discrete Gaussian distribution.

    Parameters
    ----------
    sigma : float
        Its parameter, positive and at most 2^57, so that every draw fits into 64 bits.
    size : int
        Number of draws.
    generator : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    ndarray of int64, shape (size,)
    """
    sigma = check_positive("sigma", sigma)
    if sigma > 2.0**57:
        raise ValueError(
            f"sigma must be at most 2^57, so that draws fit into 64 bits, got {sigma:g}."
        )
    block_size = max(int(sigma / _BLOCKS_PER_SIGMA), 1)
    table = get_block_table(sigma, block_size)
    if block_size == 1:
        return _draw_blocks(table, size, generator)
    drawn = np.empty(size, dtype=np.int64)
    waiting = np.arange(size)
    while waiting.size:
        block = _draw_blocks(table, waiting.size, generator)
        x = block * block_size + generator.integers(0, block_size, size=waiting.size)
        likeliest = np.where(block >= 0, block * block_size, (block + 1) * block_size - 1)
        # Both have one sign, so that neither factor of the difference of squares can overflow.
        difference, total = x - likeliest, x + likeliest
        exponent = difference / sigma * (total / sigma) / 2

        def get_log_probability(
            i: int,
            difference: NDArray[np.int64] = difference,
            total: NDArray[np.int64] = total,
        ) -> Decimal:
            square = Decimal(int(difference[i])) * int(total[i])
            return -square / (2 * Decimal(sigma) ** 2)

        is_kept = flip_coins(np.exp(-exponent), get_log_probability, generator)
        drawn[waiting[is_kept]] = x[is_kept]
        waiting = waiting[~is_kept]
    return drawn
