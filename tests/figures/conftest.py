from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from synthetic_results import write_table

from lumberjack_bench.results import read_table


@pytest.fixture
def write_results(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes runs, each a list of rows, as a results table."""
    return functools.partial(write_table, tmp_path)


@pytest.fixture
def table_of(write_results: Callable[..., Path]) -> Callable[..., pd.DataFrame]:
    """Return a function that makes a results table of runs, read as figures read it."""
    return lambda *runs: read_table(write_results(*runs))
