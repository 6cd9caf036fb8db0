from __future__ import annotations

from pathlib import Path

import pytest
from real_command import Bench


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("LUMBERJACK_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    return Bench(tmp_path)
