from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lumberjack_bench import datasets
from lumberjack_bench.datasets import DatasetError
from lumberjack_bench.datasets.draft import MARK, draft_schema
from lumberjack_bench.datasets.schema_files import read_schema

ROWS = (
    '''\
age,income,zip,height,town,note,label
34,1000.5,01234,1.8,Zürich,"a, ""b""",yes
21,-20,99999,,Bern,1e5,no
50,3e3,00001,1.6,,null?,yes
'''
    + "34,0,01234,1.7,Bern,1e5,no\n" * 7
)

DRAFT = """\
name: "menschen"
citation: "" # where the public facts below come from
label: "label"
classes:
  - "no" # check: read from data
  - "yes" # check: read from data
features:
  - name: "age"
    numeric: [21, 50] # check: read from data
  - name: "income"
    numeric: [-20, 3000] # check: read from data
  - name: "zip"
    categories:
      - "00001" # check: read from data
      - "01234" # check: read from data
      - "99999" # check: read from data
  - name: "height"
    numeric: [1.6, 1.8] # check: read from data
    fill: 1.6 # check: read from data, some rows have no value here
  - name: "town"
    categories:
      - "Bern" # check: read from data
      - "Zürich" # check: read from data
    fill: "Bern" # check: read from data, some rows have no value here
  - name: "note"
    categories:
      - "1e5" # check: read from data
      - "a, \\"b\\"" # check: read from data
      - "null?" # check: read from data
"""


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "menschen.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


def script(name: str):
    path = Path(__file__).resolve().parents[2] / "scripts" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_value_read_from_the_rows_is_marked(people):
    draft = draft_schema(people, "label").text
    comment, _, body = draft.partition("name:")
    assert "name:" + body == DRAFT
    assert all(line.startswith("#") for line in comment.splitlines())


def test_a_draft_fits_the_table_it_was_drawn_from(people):
    schema = people.with_suffix(".yaml")
    schema.write_text(draft_schema(people, "label").text, encoding="utf-8")
    loaded = datasets.load(
        {"name": "people", "kind": "table", "path": str(people), "schema": str(schema)}
    )
    assert loaded.y[:4].tolist() == [1, 0, 1, 0]
    values, counts = loaded.encoded()
    # age, income, zip (of 3), height (filled by 1.6), town (filled by Bern), note (of 3)
    np.testing.assert_array_equal(
        values[:3],
        [[34, 1000.5, 1, 1.8, 1, 1], [21, -20, 2, 1.6, 0, 0], [50, 3000, 0, 1.6, 0, 2]],
    )
    assert (counts.n_clipped, counts.n_unseen, counts.n_filled) == (0, 0, 2)


def test_a_parquet_table_gives_numbers_texts_and_truth_values(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame(
        {
            "x": [1, 2, 3] * 4,
            "c": pd.Categorical(["b", "a", "b"] * 4),
            "t": [True, False, True] * 4,
            "y": [0, 1, 1] * 4,
        }
    ).to_parquet(path)
    (tmp_path / "s.yaml").write_text(draft_schema(path, "y").text, encoding="utf-8")
    schema = read_schema(tmp_path / "s.yaml")
    assert schema.classes == (0, 1)
    assert [getattr(f, "categories", None) for f in schema.features] == [
        None,
        ("a", "b"),
        (False, True),
    ]
    loaded = datasets.load(
        {"name": "t", "kind": "table", "path": str(path), "schema": str(tmp_path / "s.yaml")}
    )
    np.testing.assert_array_equal(loaded.encoded()[0][:3], [[1, 1, 1], [2, 0, 0], [3, 1, 1]])


def test_a_column_of_very_many_texts_is_pointed_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,y\n" + "".join(f"p{i},{i % 2}\np{i},1\n" for i in range(150)))
    assert "150 different texts; leave it out if they identify rows" in draft_schema(path, "y").text


@pytest.mark.parametrize(
    ("rows", "label", "message"),
    [
        ("a,y\n1,0\n", "z", r"no label column 'z'; the table has \['a', 'y'\]"),
        ("a,a,y\n" + "1,1,0\n1,1,1\n" * 5, "y", "'a' is named more than once"),
        ("a,y,y\n1,0,1\n", "y", "label column 'y' appears more than once"),
        ("y\n1\n", "y", "no column besides the label"),
        ("a,y\n", "y", "no rows"),
        ("a,y\n" + "".join(f"1,{i}\n" for i in range(150)), "y", "150 different values"),
    ],
)
def test_a_table_that_gives_no_draft_is_refused(tmp_path, rows, label, message):
    (tmp_path / "t.csv").write_text(rows)
    with pytest.raises(DatasetError, match=message):
        draft_schema(tmp_path / "t.csv", label)


def test_the_command_prints_the_draft_and_counts_the_marks(people, capfdbinary):
    assert script("draft_schema").main([str(people), "--label", "label"]) == 0
    sys.stdout.flush()
    out, err = capfdbinary.readouterr()
    assert out.decode("utf-8") == draft_schema(people, "label").text
    # 2 classes, 3 ranges, 3 + 2 + 3 categories, 2 fills
    assert b"15 values are marked" in err
    assert DRAFT.count(MARK) == 15


def test_the_command_fails_with_one_line(tmp_path, capsys):
    assert script("draft_schema").main([str(tmp_path / "no.csv"), "--label", "y"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_fetching_says_where_how_many_and_the_majority(capsys, data_dir):
    fetch = script("fetch_data")
    assert fetch.main(["toy_moons", "extent=50"]) == 0
    out = capsys.readouterr().out
    assert "toy_moons_50: 10,000 rows, 2 features (0 categorical), 3 classes" in out
    assert "majority 55.0%" in out
    assert str(data_dir) in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nosuch"], "no data set 'nosuch'; there are"),
        (["toy_moons", "extnt=5"], r"no settings ['extnt']"),
        (["table"], "dataset.path=FILE"),
        (["acs_income", "states=[XX]"], "unknown states ['XX']"),
    ],
)
def test_fetching_fails_with_one_line(words, message, capsys):
    assert script("fetch_data").main(words) == 1
    assert message in capsys.readouterr().err
