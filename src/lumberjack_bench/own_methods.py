"""Methods from outside the project: a module that Python finds, with its yaml beside it.

Such a module is named by its import path, ``method=ideas.my_forest``, where a method of ours is named by its
file in ``conf/method``. Modules are looked for and read here, never imported: that is up to the run.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from lumberjack_bench.methods import ALLOWED_PACKAGES

_INSTALLED = ("site-packages", "dist-packages")


def find_modules_in(folders: Iterable[str | Path]) -> None:
    """Let Python find modules in folders too, after all others, so that they hide none."""
    for folder in map(str, folders):
        if folder not in sys.path:
            sys.path.append(folder)


def modules_in(folder: Path) -> list[str]:
    """Return the names of the modules and packages that lie in a folder."""
    return sorted(module.name for module in pkgutil.iter_modules([str(folder)]))


def yaml_beside(module: str) -> Path | None:
    """Return where the yaml of a module, named by its import path, must be; None without a module."""
    source = _source_file(module)
    return source.with_suffix(".yaml") if source else None


def source_version(target: str) -> str:
    """Name the source text of a method: eight digits, equal only for the same text.

    It covers the module of the method and what that imports, directly or not, from the same
    folder or package. Whatever else it imports counts as a library.

    Parameters
    ----------
    target : str
        Dotted path of the class.

    Returns
    -------
    str
        Empty for a method of the project, whose commit is recorded, and where there is no source.
    """
    module = target.rpartition(".")[0]
    if _is_ours(module) or (first := _source_file(module)) is None:
        return ""
    is_package = first.name == "__init__.py"
    home = first.parents[module.count(".") + is_package]
    if home.name in _INSTALLED:
        home = home / module.partition(".")[0]
    texts: dict[str, bytes] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _source_file(name)
        if name in texts or path is None or home not in path.parents or _is_ours(name):
            continue
        texts[name] = path.read_bytes()
        waiting += _imported(texts[name], name, is_package=path.name == "__init__.py")
    content = repr(sorted(texts.items())).encode()
    return hashlib.sha256(content).hexdigest()[:8]


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in ALLOWED_PACKAGES


def _source_file(module: str) -> Path | None:
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if not rest:
        origin = Path(spec.origin or "")
        return origin if origin.suffix == ".py" else None
    # The look-up of a submodule by importlib would import its package.
    for folder in spec.submodule_search_locations or ():
        base = Path(folder, *rest)
        for path in (base.with_name(f"{base.name}.py"), base / "__init__.py"):
            if path.is_file():
                return path
    return None


def _imported(source: bytes, module: str, *, is_package: bool) -> Iterator[str]:
    """Yield the modules that a source text imports; one that cannot be read imports nothing."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    parents = module.split(".") if is_package else module.split(".")[:-1]
    # Importing a submodule runs its packages.
    yield from (".".join(parents[: i + 1]) for i in range(len(parents)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = parents[: len(parents) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield origin
            # What is imported from a package may be a module.
            yield from (f"{origin}.{alias.name}" for alias in node.names)
