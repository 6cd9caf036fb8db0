"""Hooks of the documentation's build: published pictures, formulas as MathML, names in docstrings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

PUBLISHED = Path(__file__).resolve().parents[1] / "results" / "published"
PICTURES = ("rivals.png", "suite.png", "figure3.png")


def on_files(files: Files, config: Any) -> Files:
    """Take the pictures from where they are published, so that there is one of each."""
    for name in PICTURES:
        files.append(File.generated(config, f"pictures/{name}", abs_src_path=str(PUBLISHED / name)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Turn blocks of language ``math`` into MathML, which needs no script in the browser."""
    return re.sub(
        r"^```math\n(.*?)^```$",
        lambda found: f"<div>{convert(found[1], display='block')}</div>",
        markdown,
        flags=re.DOTALL | re.MULTILINE,
    )


def on_page_content(html: str, **_: Any) -> str:
    """Leave out the roles that docstrings give to names, as in :class:`Name`."""
    return re.sub(r":(?:attr|class|data|exc|func|meth|mod):(?=<code>)", "", html)
