"""Compilation of inner loops: numba's ``njit``, kept on disk where a place for it can be written."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
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
        Of ``numba.njit``, without ``cache``.
    """

    def decorate(function: Function) -> Function:
        dispatcher: Function
        try:
            dispatcher = njit(cache=True, **options)(function)
        except RuntimeError:
            # numba looks for the folder when it decorates, and by itself the import ends here.
            dispatcher = njit(**options)(function)
            _say_that_nothing_is_kept()
        return dispatcher

    return decorate


def compiled_callback(signature: str) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that C code can call, and keep the result as :func:`compiled` does.

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
