"""The code blocks of a page of Markdown, and how a test runs them.

What a reader sees is what is run, in the order of the page and in one folder. A comment right before a
block says where a test departs from it:

    <!-- run with: NAME=VALUE ... -->   words put in place of those of the same name, as to run at a smaller size
    <!-- not run: reason -->

Blocks of ``python`` share their names. One with a title is a file: written, or equal to what an earlier
command wrote there. Of a line ``pip install ... && COMMAND`` the command is run; that what is installed
exists is looked up in pyproject.toml.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_SECONDS = 1500
LANGUAGES = ("bash", "python", "yaml", "text", "math")
SHOWN = ("yaml", "text", "math")
"""Languages that nothing runs."""


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    title: str
    line: int
    run_with: tuple[str, ...] = ()
    not_run: str = ""


def blocks_of(page: Path) -> Iterator[Block]:
    remark = ""
    for token in MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8")):
        if token.type == "html_block":
            remark = token.content.strip()
        elif token.type in ("fence", "code_block"):
            language, _, rest = token.info.partition(" ")
            title = re.fullmatch(r'title="(.+)"', rest.strip())
            said = re.fullmatch(r"<!-- (run with|not run): (.+) -->", remark, re.DOTALL)
            kind, words = said.groups() if said else ("", "")
            yield Block(
                # Only commands are indented.
                language if token.type == "fence" else "bash",
                token.content,
                title[1] if title else "",
                token.map[0] + 1 if token.map else 0,
                tuple(shlex.split(words)) if kind == "run with" else (),
                words if kind == "not run" else "",
            )
            remark = ""
        elif token.nesting >= 0:
            remark = ""


def commands_of(block: Block) -> Iterator[list[str]]:
    """The commands of a block, without what is said beside them."""
    for line in block.text.replace("\\\n", " ").splitlines():
        command = re.split(r"\s{3,}", line.strip())[0]
        for part in command.split(" && "):
            words = shlex.split(part, comments=True)
            if words:
                yield words


def with_words(command: list[str], words: tuple[str, ...]) -> list[str]:
    """A command with words in place of its own of the same name, and the others at its end.

    ``NAME=`` alone takes away; two plain words take the place of the plain ones.
    """
    plain = [word for word in words if "=" not in word]
    own: list[str] = []
    names = {word.partition("=")[0] for word in words}
    is_value = False
    for place, word in enumerate(command):
        name = word.partition("=")[0]
        if is_value or name in names:
            is_value = not is_value and word.startswith("--") and "=" not in word
            continue
        if plain and place > 1 and not word.startswith("-"):
            continue
        own.append(word)
    return [*own, *plain, *(word for word in words if "=" in word and not word.endswith("="))]


class Reader:
    """Somebody who does what a page says, in an empty folder with the checkout's commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "page"}
        for name in ("run.py", "scripts", "conf"):
            (folder / name).symlink_to(ROOT / name)
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        self.environment = os.environ | {
            "PYTHONPATH": path,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "LUMBERJACK_DATA": str(folder / "data"),
            "MPLBACKEND": "Agg",
        }

    def read(self, page: Path) -> list[tuple[str, str]]:
        """Do all of a page; return the commands with what they printed."""
        said = []
        for block in blocks_of(page):
            where = f"{page.name}, line {block.line}"
            assert block.language in LANGUAGES, f"{where}: what is {block.language!r}?"
            if block.title:
                self._write(block, where)
            elif block.language == "yaml":
                yaml.safe_load(block.text)
            elif block.language == "python" and not block.not_run:
                exec(compile(block.text, where, "exec"), self.names)
            elif block.language == "bash" and not block.not_run:
                said += [(shlex.join(c), self._run(c, block, where)) for c in commands_of(block)]
        return said

    def _write(self, block: Block, where: str) -> None:
        path = self.folder / block.title
        if path.exists() and path.suffix == ".py":
            assert path.read_text(encoding="utf-8") == block.text, f"{where}: is another text"
        path.write_text(block.text, encoding="utf-8")

    def _run(self, command: list[str], block: Block, where: str) -> str:
        if command[:2] == ["pip", "install"]:
            check_install(command)
            return ""
        if command[1:2] == ["run.py"]:
            # Pages are shorter without it, and MLflow has tests of its own.
            command = [*command, *(["tracking=none"] * ("--cards" not in command))]
        redirected = None
        if ">" in command:
            command, redirected = command[: command.index(">")], command[-1]
        if command[0] == "python":
            is_swept = "check_method.py" not in command[1] and "new_method.py" not in command[1]
            command = with_words(command, block.run_with) if is_swept else command
            command = [sys.executable, *command[1:]]
        ended = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert ended.returncode == 0, f"{where}: {command}\n{ended.stdout}\n{ended.stderr}"
        if redirected:
            (self.folder / redirected).write_text(ended.stdout, encoding="utf-8")
        return ended.stdout


def check_install(command: list[str]) -> None:
    """Look up what ``pip install`` is told to install, which tests of the wheel do."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name for word in command for name in re.findall(r"[a-z]+", word.partition("[")[2])}
    assert extras <= set(project["optional-dependencies"]), command
    if "-c" in command:
        assert (ROOT / command[command.index("-c") + 1]).is_file()
