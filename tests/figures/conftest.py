from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from lumberjack_bench.results import COLUMNS


@pytest.fixture
def write_results(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes runs, each a list of rows, as a results table."""

    def write(*runs: Iterable[dict[str, Any]], name: str = "results.csv") -> Path:
        path = tmp_path / name
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            for rows in runs:
                writer.writerows(rows)
        return path

    return write
