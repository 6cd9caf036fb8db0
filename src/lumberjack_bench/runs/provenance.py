"""Under which circumstances a result came about: library versions, commit, machine."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

from lumberjack_bench.files import project_folder

LIBRARIES = ("lumberjack-dp", "numpy", "scipy", "scikit-learn", "numba", "pandas", "diffprivlib")


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that numbers depend on."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@functools.cache
def commit() -> str:
    """Return the commit of the source tree, with ``-dirty`` when files differ; "unknown" without git."""
    root = project_folder()
    if root is None or not (root / ".git").exists():
        return "unknown"
    try:
        head = _git(root, "rev-parse", "--short=12", "HEAD")
        is_dirty = _git(root, "status", "--porcelain", "--untracked-files=no") != ""
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return head + ("-dirty" if is_dirty else "")


@functools.cache
def machine() -> str:
    """Return what kind of machine this is (not its name)."""
    return f"{platform.system()} {platform.machine()}, {available_cores()} cores, {_processor()}"


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=10
    ).stdout.strip()
