from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from whole_results import made_up_run, whole_result

from lumberjack_bench.command import compose_one
from lumberjack_bench.config import ConfigError
from lumberjack_bench.methods import MethodError, check_target
from lumberjack_bench.own_methods import source_version
from lumberjack_bench.results import current_rows, read_table, write_table
from lumberjack_bench.runs.store import ResultStore

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of modules, from which Python is far away."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    folder = tmp_path / "of my own"
    folder.mkdir()
    return folder


def write_method(yaml: Path, target: str) -> None:
    yaml.parent.mkdir(parents=True, exist_ok=True)
    yaml.write_text(f"name: mine\ntarget: {target}\nlabel: Mine\n")


def composed(*words: str) -> Any:
    return compose_one([*words, "sweep_id=x"], PROJECT / "conf")


def test_a_module_in_the_working_folder_is_a_method_by_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "own_one.py").write_text("raise AssertionError('was imported')\n")
    write_method(folder / "own_one.yaml", "own_one.Mine")
    monkeypatch.chdir(folder)
    config = composed("method=own_one", "dataset=toy_moons")
    assert config.method.target == "own_one.Mine"
    check_target(config.method.target, config.allow_targets)
    with pytest.raises(MethodError, match="allow_targets"):
        check_target("other.Mine", config.allow_targets)


def test_a_module_of_a_package_is_a_method_by_its_dotted_path(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "own_ideas" / "deep").mkdir(parents=True)
    (folder / "own_ideas" / "deep" / "forest.py").touch()
    write_method(folder / "own_ideas" / "deep" / "forest.yaml", "own_ideas.parts.Mine")
    monkeypatch.syspath_prepend(str(folder))
    config = composed("method=own_ideas.deep.forest")
    assert config.method.name == "mine"
    check_target(config.method.target, config.allow_targets)


@pytest.mark.parametrize("yaml", ["method/own_two.yaml", "own_two.yaml"])
def test_a_folder_for_configurations_brings_its_modules(folder: Path, yaml: str) -> None:
    (folder / "own_two.py").touch()
    write_method(folder / yaml, "own_two.Mine")
    config = composed(f"hydra.searchpath=['file://{folder}']", "method=own_two")
    check_target(config.method.target, config.allow_targets)


def test_a_module_without_its_yaml_is_refused(folder: Path, monkeypatch: Any) -> None:
    (folder / "own_three.py").touch()
    monkeypatch.chdir(folder)
    with pytest.raises(ConfigError, match=r"beside its module there is no '.*own_three\.yaml'"):
        composed("method=own_three")


def test_the_version_of_a_method_is_that_of_all_its_own_source(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    package = folder / "own_four"
    package.mkdir()
    (folder / "own_trees.py").write_text("import numpy\n")
    (folder / "unrelated.py").touch()
    (package / "__init__.py").touch()
    (package / "noise.py").touch()
    (package / "forest.py").write_text("import own_trees\nfrom . import noise\nimport baselines\n")
    seen = [source_version("own_four.forest.Mine")]
    (folder / "unrelated.py").write_text("changed = 1\n")
    assert source_version("own_four.forest.Mine") == seen[0]
    for changed in (
        "own_four/forest.py",
        "own_four/noise.py",
        "own_four/__init__.py",
        "own_trees.py",
    ):
        with (folder / changed).open("a") as file:
            file.write("changed = 1\n")
        seen.append(source_version("own_four.forest.Mine"))
    assert len({*seen}) == len(seen)
    assert all(len(version) == 8 for version in seen)


def test_methods_of_ours_have_the_identity_that_they_had_before() -> None:
    assert source_version("lumberjack.LumberjackClassifier") == ""
    assert "method_version" not in made_up_run().identity
    assert made_up_run(method_version="12345678").hash != made_up_run().hash


def test_results_of_an_earlier_version_are_left_out_and_said_to_be(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.prepare()
    first, second = (made_up_run("mine", method_version=version) for version in ("1", "2"))
    for day, run in enumerate((first, second, made_up_run("other")), start=1):
        store.write(run.hash, whole_result(run, started=f"2026-01-0{day}"))
        store.note_asked(run.versions)

    def shown() -> tuple[set[str], list[str]]:
        table, left_out = current_rows(read_table(write_table(store)))
        return {*table["run_hash"]} - {made_up_run("other").hash}, left_out

    line = "mine: 1 run of another version of its module left out (version {})."
    assert shown() == ({second.hash}, [line.format(1)])
    store.note_asked(first.versions)
    assert shown() == ({first.hash}, [line.format(2)])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Forest", "small letters"),
        ("lumberjack", "there is 'lumberjack' already"),
        ("json", "there is 'json' already"),
        ("mine", "is there already"),
    ],
)
def test_a_new_method_takes_no_name_and_no_file_that_is_taken(
    tmp_path: Path, name: str, why: str
) -> None:
    (tmp_path / "mine.yaml").write_text("kept")
    script = PROJECT / "scripts" / "new_method.py"
    ended = subprocess.run(
        [sys.executable, script, name, "--out", tmp_path], capture_output=True, text=True
    )
    assert ended.returncode == 2
    assert why in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]
