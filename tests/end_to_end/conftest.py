from __future__ import annotations

from pathlib import Path

import pytest
from real_command import HERE, Bench


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("LUMBERJACK_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["run.py"])
    return Bench(tmp_path)
