from __future__ import annotations

import csv
import io
import math

import numpy as np
import pandas as pd
import pytest

from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature
from lumberjack_bench.datasets import Dataset, DatasetError, DataSource
from lumberjack_bench.figures import table1 as module
from lumberjack_bench.figures.request import csv_text
from lumberjack_bench.figures.table1 import PAPER, load_table1, table1, to_markdown


def small(name: str, n_ones: int, *, is_stand_in: bool = False) -> Dataset:
    """A thousand rows, one categorical and one numeric feature."""
    schema = FeatureSchema(
        (NumericFeature("x", 0, 1), CategoricalFeature("c", ("a", "b"))), (0, 1), "y"
    )
    X = pd.DataFrame({"x": np.zeros(1000), "c": pd.Categorical(["a"] * 1000, ["a", "b"])})
    y = (np.arange(1000) < n_ones).astype(np.int8)
    note = "part.parquet stands in" if is_stand_in else ""
    source = DataSource("table", "", "part.parquet", "", 1000, is_stand_in, note)
    return Dataset(name, schema, X, y, source)


def error(name: str, text: str) -> DatasetError:
    trouble = DatasetError(text)
    trouble.dataset_name = name
    return trouble


@pytest.fixture
def compared() -> pd.DataFrame:
    return table1(
        [
            small("acs_income", 411, is_stand_in=True),
            error(
                "acs_travel_time", "acs_travel_time: no source worked. Tried in this order:\n- x"
            ),
            small("adult", 250),
        ]
    )


def test_rows_stand_in_the_paper_s_order_and_each_has_one(compared):
    assert compared["dataset"].tolist() == list(PAPER)


def test_the_paper_s_values_are_those_of_its_table_1():
    assert {name: (s.n_rows, s.majority) for name, s in PAPER.items()} == {
        "adult": (48_842, 0.761),
        "acs_income": (195_665, 0.589),
        "acs_employment": (378_817, 0.544),
        "acs_public_coverage": (138_554, 0.631),
        "acs_travel_time": (172_508, 0.515),
    }


def test_differences_are_ours_minus_the_paper_s(compared):
    income = compared.set_index("dataset").loc["acs_income"]
    assert income["n_rows_difference"] == 1000 - 195_665
    assert income["n_features_difference"] == 2 - 10
    assert income["n_categorical_difference"] == 1 - 4
    # 589 of 1000 rows are of class 0: the paper's 58.9 %.
    assert income["majority_percent_difference"] == 0
    adult = compared.set_index("dataset").loc["adult"]
    assert adult["majority_percent_ours"] == 75.0
    assert math.isclose(adult["majority_percent_difference"], -1.1)


def test_stand_ins_and_what_could_not_be_had_are_said_to_be_such(compared):
    rows = compared.set_index("dataset")
    assert rows["is_stand_in"].tolist() == [False, True, False, False, False]
    assert rows.loc["acs_income", "note"] == "part.parquet stands in"
    assert rows.loc["acs_travel_time", "note"] == "acs_travel_time: no source worked."
    assert rows.loc["acs_employment", "note"] == "not loaded"
    assert math.isnan(rows.loc["acs_travel_time", "n_rows_ours"])


def test_the_markdown_table_shows_paper_ours_and_difference(compared):
    text = to_markdown(compared)
    (income,) = (line for line in text.splitlines() if line.startswith("| ACSIncome"))
    assert income == (
        "| ACSIncome (CA) | 10 / 2 (-8) | 4 / 1 (-3) | 2 / 2 | 58.9 / 58.9 | "
        "195,665 / 1,000 (-194,665) | stand-in part.parquet, 1,000 rows |"
    )
    assert "| ACSTravelTime (CA) | 16 / n/a | 7 / n/a |" in text
    assert "- ACSIncome (CA): part.parquet stands in" in text


def test_the_csv_form_has_a_line_per_data_set(compared):
    lines = list(csv.DictReader(io.StringIO(csv_text(compared))))
    assert [line["dataset"] for line in lines] == list(PAPER)
    assert lines[0]["n_rows_ours"] == "1000"
    assert lines[4]["n_rows_ours"] == ""


def test_loading_keeps_errors_in_their_place_and_gives_settings_to_those_that_have_them(
    monkeypatch, tmp_path
):
    asked = []

    def load(config):
        asked.append(config)
        if config["kind"] == "acs":
            raise error(config["name"], "not to be had")
        return small(config["name"], 1)

    monkeypatch.setattr(module, "load", load)
    loaded = load_table1([f"stand_in_dir={tmp_path}", "data_dir=d"])
    assert [config["name"] for config in asked] == list(PAPER)
    assert "points_seed" not in asked[0]
    assert asked[1]["stand_in_dir"] == str(tmp_path)
    assert [config["data_dir"] for config in asked] == ["d"] * 5
    assert isinstance(loaded[0], Dataset)
    assert all(isinstance(item, DatasetError) for item in loaded[1:])
