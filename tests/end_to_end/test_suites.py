"""A sweep over a named list of data sets, by the command that users give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from real_command import Bench

from lumberjack.schema import CategoricalFeature
from lumberjack_bench.datasets.schema_files import read_schema

ROWS = {
    "adult": 300, "acs_income": 300, "acs_employment": 300, "german": 300, "letter": 300,
    "digits": 300, "car-good": 1728, "flare-F": 1066, "yeast4": 1484,
    "adult_500": 500, "adult_1000": 1000, "adult_2000": 2000,
}  # fmt: skip


@pytest.fixture
def stand_ins(tmp_path: Path) -> Path:
    """A folder of tables that fit the schemas of ACS tasks, whose survey is large."""
    generator = np.random.default_rng(0)
    for task in ("acs_income", "acs_employment"):
        schema = read_schema(task)
        columns = {schema.label: generator.choice(np.array(schema.classes), 400)}
        for feature in schema.features:
            is_categorical = isinstance(feature, CategoricalFeature)
            values = feature.categories if is_categorical else (feature.lower, feature.upper)
            columns[feature.name] = generator.choice(np.array(values), 400)
        pd.DataFrame(columns).to_parquet(tmp_path / f"{task}.parquet")
    return tmp_path


@pytest.mark.network
def test_a_suite_runs_on_all_its_tables_and_they_count_as_done(
    bench: Bench, stand_ins: Path
) -> None:
    bench.environment["LUMBERJACK_STAND_IN_DIR"] = str(stand_ins)
    words = ["-m", "+suite=few", "method=majority", "n_repeats=1"]
    ended = bench(*words)
    assert ended.returncode == 0, ended.stderr
    results = bench.stored()
    assert {r["run"]["dataset"]["name"]: r["data_source"]["n_rows"] for r in results} == ROWS
    described = {r["run"]["dataset"]["name"]: r["data_source"]["description"] for r in results}
    assert "smallest and largest values of the published table" in described["german"]
    assert "300 of 20,000 rows, the first after a shuffle" in described["letter"]
    assert f"{len(ROWS)} done" in bench(*words, "--status").stdout
