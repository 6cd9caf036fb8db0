"""The operating system's random bits as a generator of numpy, for noise that nobody can foresee.

Whoever knows the state of an ordinary generator knows its noise, and the state of PCG64 can be computed from some
of its draws. The system's source (``os.urandom``: ChaCha20 on Linux, ChaCha20 or AES-CTR elsewhere) has
no known way back. It is read in blocks, so that a draw costs tens of nanoseconds; a generator is for one
thread and one fit, and belongs to the process that made it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from typing import Any, NamedTuple

import numpy as np

from lumberjack.compiled import call_at, compiled, compiled_callback

_N_WORDS = 2048
_FIRST = 2
"""Before the words, a block holds how many are used and the address of the function that refills it."""


def _refill(address: int) -> None:
    """Put fresh words into the block at an address."""
    ctypes.memmove(address + 8 * _FIRST, os.urandom(8 * _N_WORDS), 8 * _N_WORDS)
    # Last, so that an interrupt before it leaves the block as empty as it was.
    ctypes.c_uint64.from_address(address).value = 0


_REFILL = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(_refill)


@compiled()
def _take_word(block: Any) -> Any:
    """Return a word that was not used before."""
    while block[0] >= np.uint64(_N_WORDS):
        call_at(block[1], block)
    position = block[0]
    block[0] = position + np.uint64(1)
    return block[np.int64(position) + _FIRST]


def _next_uint64(block: Any) -> Any:
    return _take_word(block)


def _next_uint32(block: Any) -> Any:
    return np.uint32(_take_word(block) >> np.uint64(32))


def _next_double(block: Any) -> Any:
    return (_take_word(block) >> np.uint64(11)) * 2.0**-53


@functools.cache
def _get_functions() -> tuple[Any, Any, Any]:
    """Return the C functions, compiled when they are first asked for."""
    return (
        compiled_callback("uint64(CPointer(uint64))")(_next_uint64),
        compiled_callback("uint32(CPointer(uint64))")(_next_uint32),
        compiled_callback("double(CPointer(uint64))")(_next_double),
    )


class _BitGenerator(ctypes.Structure):
    """numpy's ``bitgen_t``, documented with its C interface to random numbers."""

    _fields_ = (
        ("state", ctypes.c_void_p),
        ("next_uint64", ctypes.c_void_p),
        ("next_uint32", ctypes.c_void_p),
        ("next_double", ctypes.c_void_p),
        ("next_raw", ctypes.c_void_p),
    )


class _Interface(NamedTuple):
    """What compiled code takes from a bit generator's attribute ``ctypes``."""

    state_address: int
    state: ctypes.c_void_p
    next_uint64: Any
    next_uint32: Any
    next_double: Any
    bit_generator: ctypes.c_void_p


class SystemBits:
    """A bit generator, as :class:`numpy.random.Generator` and compiled code take it.

    Raises
    ------
    OSError, NotImplementedError
        If the system has no source of randomness.
    """

    def __init__(self) -> None:
        self._block = np.empty(_FIRST + _N_WORDS, dtype=np.uint64)
        address = self._block.ctypes.data
        self._block[1] = ctypes.cast(_REFILL, ctypes.c_void_p).value or 0
        # Called as a function of Python here, so that its errors are raised.
        self._block[_FIRST:] = np.frombuffer(os.urandom(8 * _N_WORDS), dtype=np.uint64)
        self._block[0] = 0
        words, halves, doubles = _get_functions()
        self._functions = _BitGenerator(
            address, words.address, halves.address, doubles.address, words.address
        )
        make_capsule = ctypes.pythonapi.PyCapsule_New
        make_capsule.restype = ctypes.py_object
        make_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        self.capsule = make_capsule(ctypes.addressof(self._functions), b"BitGenerator", None)
        self.lock = threading.Lock()
        self.ctypes = _Interface(
            address,
            ctypes.c_void_p(address),
            words.ctypes,
            halves.ctypes,
            doubles.ctypes,
            ctypes.c_void_p(ctypes.addressof(self._functions)),
        )


def make_system_generator() -> np.random.Generator:
    """Return a generator of the operating system's random bits."""
    return np.random.Generator(SystemBits())  # type: ignore[arg-type]
