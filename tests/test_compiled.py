"""Compiled functions, with and without a place where they are kept."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.caching import CacheImpl

from lumberjack import compiled as module
from lumberjack.compiled import compiled

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def nothing_said_yet() -> None:
    module._say_that_nothing_is_kept.cache_clear()


def double(x: int) -> int:
    return 2 * x


def test_a_compiled_function_is_kept_where_numba_finds_a_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = tmp_path / "source.py"
    source.write_text("def triple(x):\n    return 3 * x\n")
    names: dict = {}
    exec(compile(source.read_text(), str(source), "exec"), names)
    function = compiled(nogil=True)(names["triple"])
    assert function(2) == 6
    assert list((tmp_path / "__pycache__").glob("source.triple-*.nbi"))
    assert function.targetoptions["nogil"]
    assert caplog.text == ""


def test_without_a_place_functions_work_and_it_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    with caplog.at_level(logging.WARNING):
        first, second = compiled(nogil=True)(double), compiled(error_model="numpy")(double)
    assert (first(2), second(3)) == (4, 6)
    assert first.targetoptions["nogil"]
    (record,) = caplog.records
    assert "Set NUMBA_CACHE_DIR to a folder that can be written." in record.getMessage()


def test_what_is_kept_is_stale_after_a_change_to_a_file_that_it_calls_into(tmp_path: Path) -> None:
    callee = (
        "from lumberjack.compiled import compiled\n@compiled()\ndef inner(x):\n    return x + {}\n"
    )
    (tmp_path / "outer.py").write_text(
        "from lumberjack.compiled import compiled\nfrom inner import inner\n"
        "@compiled()\ndef outer(x):\n    return inner(x)\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(ROOT / "src")])
    program = "from outer import outer; print(outer(1), sum(outer.stats.cache_hits.values()))"
    said = []
    for added in (1, 1, 2):
        (tmp_path / "inner.py").write_text(callee.format(added))
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True
        )
        said.append(done.stdout.split())
    assert said == [["2", "0"], ["2", "1"], ["3", "0"]]


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="needs the superuser, and setpriv to give up her rights",
)
def test_a_read_only_installation_without_a_home_can_be_imported(tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.nb?")
    )
    rights = "-dac_override,-dac_read_search"
    command = ["setpriv", f"--bounding-set={rights},-fowner", f"--inh-caps={rights}"]
    command += [sys.executable, "-c", "from lumberjack import LumberjackClassifier"]
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(tmp_path / "src"), "HOME": str(tmp_path)}
    folders = [tmp_path, *(path for path in tmp_path.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        done = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("NUMBA_CACHE_DIR") == 1
