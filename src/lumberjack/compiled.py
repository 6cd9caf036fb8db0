"""Compilation of inner loops: numba's ``njit``, kept on disk where a place for it can be written."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

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


@functools.cache
def _say_that_nothing_is_kept() -> None:
    logging.getLogger(__name__).warning(
        "numba finds no folder where it can keep compiled functions, so every process compiles "
        "anew (some 20 s). Set NUMBA_CACHE_DIR to a folder that can be written."
    )
