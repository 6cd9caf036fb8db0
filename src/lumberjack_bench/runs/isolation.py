"""A call in a process of its own, so that whatever it does to its process costs that call alone.

Processes are forked from a server that has imported what runs need, which takes a hundredth of a
second each. A process that takes too long, and one whose starter is gone, is ended with all that it
has started.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

PRELOADED = (
    "__main__",
    "lumberjack_bench.runs.execute",
    "lumberjack_bench.datasets.loaders.toy",
    "lumberjack",
    "pandas",
    "sklearn.ensemble",
)
"""What the server imports; a process imports by itself whatever else it needs."""

GRACE_SECONDS = 2.0
"""How long a process that is asked to end may take."""

_LOOK_SECONDS = 0.25
LOG_FORMAT = "[%(asctime)s][%(name)s][%(levelname)s] %(message)s"


_stopping = threading.Event()
_calls: set[object] = set()


class Stopped(BaseException):
    """The call was given up because all are."""


class CallFailed(RuntimeError):
    """What a call raised in its process: type and first line, and the traceback as its details."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


class ProcessDied(CallFailed):
    """A process ended without an answer; the message says how."""


class OutOfTime(CallFailed):
    """A process took longer than it may and was ended."""


def call_alone(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    *,
    timeout: float | None = None,
    log_file: str = "",
) -> Any:
    """Call a function in a process of its own and return its value.

    Parameters
    ----------
    function : callable
        Named at the top of a module, as pickling asks.
    arguments : sequence
        What it takes.
    timeout : float or None
        Seconds it may take.
    log_file : str
        Where the process keeps its log.

    Raises
    ------
    CallFailed
        When it raised anything, an exit included.
    OutOfTime
        When it took longer than it may.
    ProcessDied
        When its process ended without an answer: killed, crashed, out of memory.
    Stopped
        When :func:`stop_calls` was called.
    """
    if multiprocessing.current_process().daemon:
        raise CallFailed(
            "a run needs a process of its own, which this worker may not start (Dask: start workers with "
            "DASK_DISTRIBUTED__WORKER__DAEMON=False)"
        )
    if _stopping.is_set():
        raise Stopped
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    answers, sender = context.Pipe(duplex=False)
    # Closed when this function is left or this process dies, however it does.
    lifeline, held = context.Pipe(duplex=False)
    process = context.Process(
        target=_answer, args=(sender, lifeline, function, arguments, log_file)
    )
    _calls.add(process)
    try:
        process.start()
        sender.close()
        lifeline.close()
        return _receive(answers, process, timeout)
    finally:
        _end(process)
        held.close()
        answers.close()
        _calls.discard(process)


def first_line(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    lines = str(error).strip().splitlines()
    name = type(error).__name__
    return f"{name}: {lines[0]}" if lines else name


def stop_calls() -> None:
    """End all calls of this process, for good, and wait until they are."""
    _stopping.set()
    while _calls:
        time.sleep(0.02)


def _receive(answers: Connection, process: Any, timeout: float | None) -> Any:
    deadline = None if timeout is None else time.monotonic() + timeout
    largest = ""
    while not (ready := wait([answers, process.sentinel], _LOOK_SECONDS)):
        if _stopping.is_set():
            raise Stopped
        largest = _peak_memory(process.pid) or largest
        if deadline is not None and time.monotonic() > deadline:
            raise OutOfTime(f"took longer than timeout={timeout:g} seconds")
    if answers in ready or answers.poll():
        with contextlib.suppress(EOFError):
            is_value, content, details = answers.recv()
            if is_value:
                return content
            raise CallFailed(content, details)
    process.join(GRACE_SECONDS)
    # A signal to all of a terminal's processes may reach this one first.
    if _stopping.wait(_LOOK_SECONDS):
        raise Stopped
    raise ProcessDied(_how_it_ended(process.exitcode, largest))


def _answer(
    sender: Connection,
    lifeline: Connection,
    function: Callable[..., Any],
    arguments: Sequence[Any],
    log_file: str,
) -> None:
    """Run in the new process: set a guard, call, and send what came of it."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if os.fork() == 0:
        sender.close()
        _guard(os.getppid(), lifeline)
    lifeline.close()
    if log_file:
        logging.basicConfig(filename=log_file, level=logging.INFO, format=LOG_FORMAT, force=True)
        faulthandler.enable(logging.getLogger().handlers[0].stream)  # type: ignore[attr-defined]
    try:
        answer = (True, function(*arguments), "")
        sender.send(answer)
    except BaseException as error:
        sender.send((False, first_line(error), traceback.format_exc()))
    sender.close()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    # No exit handlers, and no waiting for threads that were left behind.
    os._exit(0)


def _guard(process: int, lifeline: Connection) -> None:
    """Wait, beside a process, until its starter lets go; then end all that is left of it."""
    os.setsid()
    with contextlib.suppress(EOFError, OSError):
        lifeline.recv_bytes()
    _signal_group(process, signal.SIGKILL)
    os._exit(0)


def _end(process: Any) -> None:
    if process.pid is None:
        return
    for number, patience in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, None)):
        if process.is_alive():
            _signal_group(process.pid, number)
            # On a busy machine it may not yet have a group of its own.
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, number)
            process.join(patience)
    # What it started may have outlived it.
    _signal_group(process.pid, signal.SIGKILL)
    process.close()


def _signal_group(process: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, number)


def _peak_memory(process: int) -> str:
    """Return the largest memory of a process so far, where the system tells (Linux)."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
        kilobytes = int(status.partition("VmHWM:")[2].split()[0])
        return f"{kilobytes / 1e6:.2f} GB"
    return ""


def _how_it_ended(exit_code: int | None, largest: str) -> str:
    memory = f"; its memory was seen at {largest}" if largest else ""
    if exit_code is not None and exit_code < 0:
        name = signal.Signals(-exit_code).name
        hint = " (as the system does when memory is short)" if name == "SIGKILL" else ""
        return f"its process was ended by {name}{hint}{memory}"
    return f"its process ended itself with exit code {exit_code}{memory}"
