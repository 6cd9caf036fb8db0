"""Every command and code block of the README and the documentation, run as it is printed."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import pytest
from documentation_blocks import ROOT, Reader, blocks_of, commands_of, with_words

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    monkeypatch.chdir(tmp_path)
    return Reader(tmp_path)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


LONG = ("README.md", "figure3.md")
"""Pages whose commands take minutes."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(p, id=name_of(p), marks=[pytest.mark.nightly] if p.name in LONG else [])
        for p in PAGES
        if p.name != "own-method.md"
    ],
)
def test_what_a_page_shows_can_be_done(page: Path, reader: Reader) -> None:
    reader.read(page)


@pytest.mark.nightly
def test_a_method_from_anywhere_is_checked_run_audited_drawn_and_changed(reader: Reader) -> None:
    said = reader.read(ROOT / "docs" / "tutorials" / "own-method.md")

    def printed(start: str) -> list[str]:
        found = [text for command, text in said if command.startswith(f"python {start}")]
        assert found, start
        return found

    assert all(re.search(r"\d+ passed", text) for text in printed("scripts/check_method.py"))
    (audit,) = printed("scripts/audit_privacy.py method=flip_forest")
    assert "Not refuted" in audit
    first, flips, changed = printed("run.py")
    assert "Runs: 2 ok." in first
    assert "Runs: 1 ok, 2 done before." in flips
    # Its new text is a new method; all else is as it was.
    assert "Runs: 1 ok, 2 done before." in changed
    (figure,) = printed("scripts/make_figures.py figure3")
    drawn = {Path(line).suffix: reader.folder / line for line in figure.split()}
    assert drawn[".png"].stat().st_size > 10_000
    assert "flip_forest" in drawn[".csv"].read_text(encoding="utf-8")
    with (reader.folder / "results" / "results.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "flip_forest"]
    shown = {row["method_version"]: row["is_current"] for row in rows}
    assert sorted(shown.values()) == ["False", "True"]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_is_not_run_says_why(page: Path) -> None:
    for block in blocks_of(page):
        if block.not_run:
            assert len(block.not_run.split()) > 2, f"{page}, line {block.line}"


def test_words_of_a_test_take_the_place_of_those_of_the_page() -> None:
    def changed(line: str, *words: str) -> str:
        return " ".join(with_words(line.split(), words))

    assert changed("python run.py -m a=1 b=2", "a=3", "c=4") == "python run.py -m b=2 a=3 c=4"
    assert changed("python run.py +suite=x a=1", "+suite=") == "python run.py a=1"
    assert (
        changed("python x.py y --runs 9 --jobs 2", "--runs=3") == "python x.py y --jobs 2 --runs=3"
    )
    assert changed("python compare.py a b", "c", "d") == "python compare.py c d"


def test_commands_are_told_from_what_is_said_beside_them() -> None:
    (page,) = [page for page in PAGES if page.name == "README.md"]
    blocks = [block for block in blocks_of(page) if block.language == "bash"]
    commands = [" ".join(command) for block in blocks for command in commands_of(block)]
    assert "python run.py --cards" in commands
    assert all(c.startswith(("python ", "pip ")) for c in commands), os.linesep.join(commands)
