"""The method that the README prints, as a newcomer would copy it."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
NAME = "my_stump"


def write_readme_method(folder: Path) -> None:
    """Write the module and the yaml of the README's section to the places it names."""
    section = README.read_text(encoding="utf-8").split("### Your own method")[1]
    blocks = dict(re.findall(r"```(python|yaml)\n(.*?)```", section, flags=re.DOTALL))
    for kind, place in (
        ("python", f"baselines/{NAME}.py"),
        ("yaml", f"conf/method/{NAME}.yaml"),
    ):
        assert f"`{place}`" in section
        path = folder / place
        path.parent.mkdir(parents=True)
        path.write_text(blocks[kind], encoding="utf-8")
