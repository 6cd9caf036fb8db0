"""A table of one's own, from the file to the page and back to the commands on it."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from real_command import ROOT, Bench

SCHEMA = """\
name: mine
label: outcome
classes: ["no", "yes"]
features:
  - name: size
    numeric: [0, {upper}]
  - name: colour
    categories: [red, blue]
"""


@pytest.fixture
def own_table(tmp_path: Path) -> Path:
    """A csv in a folder whose name needs quoting, and two schemas for it."""
    folder = tmp_path / "my tables"
    folder.mkdir()
    generator = np.random.default_rng(0)
    size = generator.integers(0, 100, 400)
    lines = [f"{s},{'red' if s % 2 else 'blue'},{'yes' if s > 50 else 'no'}" for s in size]
    (folder / "mine.csv").write_text("\n".join(["size,colour,outcome", *lines]) + "\n")
    for name, upper in (("mine", 100), ("wide", 1e6)):
        (folder / f"{name}.yaml").write_text(SCHEMA.format(upper=upper))
    return folder


def script(bench: Bench, *words: str) -> str:
    done = bench.program(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commands_of(page: Path) -> list[str]:
    section = page.read_text(encoding="utf-8").partition('id="commands"')[2]
    text = html.unescape(re.findall(r"<pre>(.*?)</pre>", section, re.DOTALL)[0])
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_a_corrected_schema_makes_new_results_and_the_page_s_commands_run_as_printed(
    bench: Bench, own_table: Path
) -> None:
    (bench.folder / "run.py").symlink_to(ROOT / "run.py")
    (bench.folder / "scripts").symlink_to(ROOT / "scripts")

    def sweep(schema: str) -> None:
        ended = bench(
            "-m",
            "dataset=table",
            "dataset.name=mine",
            "dataset.path='my tables/mine.csv'",
            f"dataset.schema='my tables/{schema}.yaml'",
            "method=fully_random,majority",
        )
        assert ended.returncode == 0, ended.stderr

    sweep("wide")
    sweep("mine")
    assert len(bench.result_files()) == 4
    before = bench.result_files()
    script(bench, "scripts/make_figures.py", "report", "--results", "results/results.csv")
    page = bench.results / "report.html"
    assert "mine: 2 runs of another version left out (mine.csv, 400 rows; " in page.read_text(
        encoding="utf-8"
    )
    first, *others = commands_of(page)
    assert "'dataset.path=my tables/mine.csv'" in first
    said = script(bench, *shlex.split(first)[1:], "tracking=none")
    assert "Plan: 2 runs, 2 done before." in said
    for command in others:
        script(bench, *shlex.split(command)[1:])
    assert bench.result_files() == before
