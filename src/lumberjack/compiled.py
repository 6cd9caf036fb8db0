"""Compilation of inner loops: numba's ``njit``, kept on disk where a place for it can be written.

A compiled function holds what it calls, also from other files, and numba knows only of a change to its own.
So what is kept counts as stale after any change to a source file of the library or beside the function.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba import cfunc, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Compile a function at its first call, and keep the result for later processes.

    Where numba finds no folder that it can write, every process compiles anew, and says so once.

    Parameters
    ----------
    **options
        Of ``numba.njit``, without ``cache``. ``_nrt=False`` is for functions that allocate nothing and are
        called for each node: they count no references to the arrays they are given, which is
        slow, and slower where threads count the same ones.
    """

    def decorate(function: Function) -> Function:
        dispatcher: Function
        try:
            dispatcher = njit(cache=True, **options)(function)
            cache = getattr(dispatcher, "_cache", None)  # none under NUMBA_DISABLE_JIT
            if cache is not None:
                own = Path(inspect.getfile(function)).resolve().parent
                cache._cache_file._source_stamp = (_digest(_LIBRARY), _digest(own))
        except RuntimeError:
            # numba looks for the folder when it decorates, and by itself the import ends here.
            dispatcher = njit(**options)(function)
            _say_that_nothing_is_kept()
        return dispatcher

    return decorate


_LIBRARY = Path(__file__).resolve().parent


@functools.cache
def _digest(folder: Path) -> str:
    """Return a hash of the sources in a folder, and below it if that is the library."""
    found = sorted(folder.rglob("*.py") if folder == _LIBRARY else folder.glob("*.py"))
    digest = hashlib.sha256()
    for path in found:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def compiled_callback(signature: str) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that C code can call, and keep the result while its own file stays the same.

    Parameters
    ----------
    signature : str
        In numba's words, e.g. ``"double(CPointer(uint64))"``.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return cfunc(signature, cache=True)(function)
        except RuntimeError:
            _say_that_nothing_is_kept()
            return cfunc(signature)(function)

    return decorate


def _call_at(context: Any, address: Any, pointer: Any) -> Any:
    """Call the C function ``void f(uint64_t)`` at an address with a pointer (in compiled code)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = cgutils.ir.IntType(64)
        function = cgutils.ir.FunctionType(cgutils.ir.VoidType(), [word])
        target = builder.inttoptr(arguments[0], function.as_pointer())
        builder.call(target, [builder.ptrtoint(arguments[1], word)])
        return context.get_dummy_value()

    return types.void(types.uint64, pointer), generate


call_at: Callable[..., None] = intrinsic(_call_at)


@functools.cache
def _say_that_nothing_is_kept() -> None:
    logging.getLogger(__name__).warning(
        "numba finds no folder where it can keep compiled functions, so every process compiles "
        "anew (some 20 s). Set NUMBA_CACHE_DIR to a folder that can be written."
    )
