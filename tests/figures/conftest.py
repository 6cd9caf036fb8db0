from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lumberjack_bench.results import COLUMNS, read_table


@pytest.fixture
def write_results(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes runs, each a list of rows, as a results table."""

    def write(*runs: Iterable[dict[str, Any]]) -> Path:
        path = tmp_path / "results.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            for rows in runs:
                writer.writerows(rows)
        return path

    return write


@pytest.fixture
def table_of(write_results: Callable[..., Path]) -> Callable[..., pd.DataFrame]:
    """Return a function that makes a results table of runs, read as figures read it."""
    return lambda *runs: read_table(write_results(*runs))
