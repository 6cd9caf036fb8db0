"""List the licences of what the project needs, as the installed packages state them.

    python scripts/list_licences.py > THIRD_PARTY.md

What is needed is read from pyproject.toml and followed through what the packages need themselves, on
the machine and the Python this runs with.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, PathDistribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]

LONGEST = 60
"""A longer entry is the text of a licence; the classifiers name it then."""

PARTS = {
    "The library": ("`pip install .`", ()),
    "The benchmark": (
        "The extras `bench`, `rivals`, `slurm` and `dask`, besides the library",
        ("bench", "rivals", "slurm", "dask"),
    ),
}

HEAD = """\
# Licences of what this project needs

Nothing of these packages is part of this repository or of the wheel; pip installs them. Written by
`python scripts/list_licences.py > THIRD_PARTY.md`, from what the packages state themselves.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the list; return 2 when a package is not installed."""
    try:
        text = listing()
    except PackageNotFoundError as error:
        print(
            f"error: {error.name} is not installed, so its licence is not known. Install all: "
            "pip install -c constraints.txt -e '.[bench,test,rivals,slurm,dask]'",
            file=sys.stderr,
        )
        return 2
    print(text, end="")
    return 0


def listing() -> str:
    """Return the whole page."""
    known: set[str] = set()
    parts = [HEAD]
    for title, (how, extras) in PARTS.items():
        found = {name: text for name, text in licences(extras).items() if name not in known}
        known |= set(found)
        rows = [f"| {name} | {text} |" for name, text in sorted(found.items())]
        parts.append(
            "\n".join([f"## {title}\n\n{how}.\n", "| package | licence |", "|---|---|", *rows, ""])
        )
    return "\n".join(parts)


def licences(extras: Iterable[str] = ()) -> dict[str, str]:
    """Return the licence of each package that the library and some extras need, directly or not.

    Raises
    ------
    PackageNotFoundError
        When one is not installed.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    found: dict[str, str] = {}
    open_ends = [Requirement(text) for text in wanted]
    seen: set[tuple[str, frozenset[str]]] = set()
    while open_ends:
        needed = open_ends.pop()
        key = canonicalize_name(needed.name), frozenset(needed.extras)
        if key in seen:
            continue
        seen.add(key)
        package: Any = distribution(needed.name)
        found[key[0]] = licence_of(package)
        for text in package.requires or ():
            inner = Requirement(text)
            places = [{"extra": extra} for extra in ("", *needed.extras)]
            if inner.marker is None or any(inner.marker.evaluate(place) for place in places):
                open_ends.append(inner)
    return found


def licence_of(package: PathDistribution) -> str:
    """Return what a package says of its licence: an expression, a name, or classifiers."""
    stated = package.metadata
    for field in ("License-Expression", "License"):
        text = str(stated.get(field) or "").strip()
        if text and text.upper() != "UNKNOWN" and len(text) <= LONGEST and "\n" not in text:
            return text
    named = [
        text.rpartition(" :: ")[2]
        for text in stated.get_all("Classifier") or ()
        if text.startswith("License :: ") and text != "License :: OSI Approved"
    ]
    files = [f"see its {name}" for name in stated.get_all("License-File") or ()]
    return ", ".join(named or files[:1]) or "not stated"


if __name__ == "__main__":
    sys.exit(main())
