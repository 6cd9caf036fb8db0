from __future__ import annotations

import io
import logging
from pathlib import Path

import folktables
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lumberjack_bench import datasets
from lumberjack_bench.datasets import DatasetError, acs_survey
from lumberjack_bench.datasets.loaders import acs
from lumberjack_bench.datasets.named import named_config
from lumberjack_bench.datasets.schema_files import read_schema

TASKS = sorted(acs.TASKS)

# One person a line; a dot is an empty field. The other columns are filled below.
PERSONS = """\
AGEP   PINCP WKHP PWGTP ESR PUBCOV JWMNP
  35   60000   40    10   1      2    30
  17     101    1     1   1      1    20
  16    5000   10     5   1      2    25
  40     100   40     5   1      1    21
  40   50000   40     5   1      2     .
  40   50001   40     5   2      2     .
  50   80000    .     5   6      1     .
  64   30000   20     3   1      1     5
  65   30000   20     3   1      1    60
  30   30001   20     3   1      1    60
   2       .    .     7   .      1     .
   0       .    .     7   .      2     .
  94   -5000    .     7   6      1     .
  25  -19998   40     0   1      2    45
  25   70000   40     0   1      2    45
  33   20000   99     4   4      2    15
  22   15000   30     2   3      1     .
  45 1200000   60     2   1      2   142
  29       0    .     6   6      2     .
  19     250    5     1   1      2    20
"""

# Which lines of PERSONS (from 0) pass each task's filter, and their labels, by hand:
# income: AGEP > 16, PINCP > 100, WKHP > 0, PWGTP >= 1; label PINCP > 50000
# employment: everybody; label ESR == 1
# income in dollars: as income; target PINCP, clipped to 200000
# public coverage: AGEP < 65, PINCP <= 30000 (an empty income is not); label PUBCOV == 1
# travel time: AGEP > 16, PWGTP >= 1, ESR == 1; label JWMNP > 20 (an empty time is not)
EXPECTED = {
    "acs_income": (
        [0, 1, 4, 5, 7, 8, 9, 15, 16, 17, 19],
        [1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0],
    ),
    "acs_income_dollars": (
        [0, 1, 4, 5, 7, 8, 9, 15, 16, 17, 19],
        [60000, 101, 50000, 50001, 30000, 30000, 30001, 20000, 15000, 200000, 250],
    ),
    "acs_employment": (
        list(range(20)),
        [1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1],
    ),
    "acs_public_coverage": (
        [1, 2, 3, 7, 13, 15, 16, 18, 19],
        [1, 0, 1, 1, 0, 0, 1, 0, 0],
    ),
    "acs_travel_time": (
        [0, 1, 3, 4, 7, 8, 9, 17, 19],
        [1, 0, 1, 0, 0, 1, 1, 1, 0],
    ),
}


def person_file(state_code: int = 6, year: int = 2018) -> pd.DataFrame:
    """The persons in the layout of a PUMS person file, as text; empty fields are empty."""
    written = pd.read_csv(io.StringIO(PERSONS), sep=r"\s+", dtype=str).replace(".", "")
    n = len(written)
    i = np.arange(n)
    is_child = written["AGEP"].astype(int).to_numpy() < 16
    layout = {
        "RT": ["P"] * n,
        "SERIALNO": [f"{year}{'GQ' if k % 2 else 'HU'}{k:07d}" for k in i],
        "DIVISION": ["9"] * n,
        "SPORDER": ["1"] * n,
        "PUMA": [f"{code:05d}" for code in np.where(i % 2, 3701, 11106)],
        "REGION": ["4"] * n,
        "ST": [f"{state_code:02d}"] * n,
        "ADJINC": ["1013097"] * n,
        "PWGTP": written["PWGTP"],
        "AGEP": written["AGEP"],
        "CIT": 1 + i % 5,
        "COW": np.where(is_child, "", (1 + i % 9).astype(str)),
        "DEAR": 1 + i % 2,
        "DEYE": 2 - i % 2,
        "DREM": np.where(i == 10, "", "2"),
        "FER": np.where(i % 3, "", "1"),
        "JWMNP": written["JWMNP"],
        "JWTR": np.where(written["JWMNP"] == "", "", "1"),
        "MAR": 1 + i % 5,
        "MIG": np.where(i == 11, "", "1"),
        "MIL": np.where(is_child, "", "4"),
        "RELP": [f"{code:02d}" for code in i % 18],
        "SCHL": np.where(np.isin(i, [10, 11]), "", "16"),
        "SEX": 1 + i % 2,
        "WKHP": written["WKHP"],
        "ANC": 1 + i % 4,
        "DIS": 1 + i % 2,
        "ESP": np.where(is_child, "1", ""),
        "ESR": written["ESR"],
        "NAICSP": ["611M1"] * n,
        "NATIVITY": 1 + i % 2,
        "OCCP": np.where(is_child, "", "0440"),
        "PINCP": written["PINCP"],
        "POBP": ["6"] * n,
        "POVPIP": np.where(i % 4, "501", ""),
        "POWPUMA": np.where(i % 2, "03700", ""),
        "PUBCOV": written["PUBCOV"],
        "RAC1P": 1 + i % 9,
        "SOCP": ["1110XX"] * n,
        "PWGTP80": ["17"] * n,
    }
    return pd.DataFrame(layout).astype(str)


def put(data_dir: Path, text: str, name: str = "psam_p06.csv", year: int = 2018) -> Path:
    path = data_dir / str(year) / "1-Year" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def persons(data_dir: Path) -> Path:
    return put(data_dir, person_file().to_csv(index=False))


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acs_survey, "CENSUS", "http://127.0.0.1:9")


def load(task: str, /, **changes: object) -> datasets.Dataset:
    return datasets.load({**named_config(task), **changes})


@pytest.mark.parametrize("task", TASKS)
def test_rows_and_labels_are_those_that_the_filters_let_through(persons, task):
    loaded = load(task)
    lines, labels = EXPECTED[task]
    assert loaded.y.tolist() == labels
    ages = person_file()["AGEP"].astype(int).to_numpy()[lines]
    assert loaded.X["AGEP"].tolist() == ages.tolist()
    assert loaded.X.dtypes["AGEP"] == np.int8
    clipped = {"PINCP": 1} if task == "acs_income_dollars" else {}
    assert loaded.counts == datasets.RowCounts(clipped, {}, {})


@pytest.mark.parametrize("task", TASKS)
def test_what_is_read_equals_what_folktables_reads(persons, data_dir, task):
    survey = folktables.ACSDataSource("2018", "1-Year", "person", root_dir=str(data_dir))
    problem = acs.TASKS[task].definition
    values, target, _ = problem.df_to_numpy(survey.get_data(states=["CA"], download=False))
    loaded = load(task)
    assert list(loaded.schema.feature_names) == problem.features
    ours = np.column_stack([loaded.X[name].astype(float) for name in problem.features])
    np.testing.assert_array_equal(ours, values.astype(float))
    bounds = loaded.schema.target_bounds
    np.testing.assert_array_equal(loaded.y, target if bounds is None else np.clip(target, *bounds))


def test_codes_outside_the_public_ranges_are_clipped_or_unseen_and_counted(data_dir, caplog):
    rows = person_file()
    rows.loc[0, "OCCP"] = "9999"  # bounds are 0 to 9920
    rows.loc[1, "MAR"] = "6"  # categories are 1 to 5
    put(data_dir, rows.to_csv(index=False))
    with caplog.at_level(logging.INFO):
        loaded = load("acs_income")
    assert dict(loaded.counts.clipped) == {"OCCP": 1}
    assert dict(loaded.counts.unseen) == {"MAR": 1}
    assert loaded.X.loc[0, "OCCP"] == 9920
    values, _ = loaded.encoded()
    assert values[1, loaded.schema.feature_names.index("MAR")] == -1
    assert "clipped: OCCP 1" in caplog.text
    assert "unseen: MAR 1" in caplog.text


def test_a_file_with_fewer_persons_than_published_is_a_stand_in(persons):
    source = load("acs_income").source
    assert source.is_stand_in
    assert source.stand_in_note == "psam_p06.csv holds 20 persons, the published file 378,817"
    assert source.n_rows == 11


def test_fields_padded_with_blanks_are_read_as_in_early_files(data_dir):
    rows = person_file()
    padded = rows.map(lambda text: f" {text} " if text else "  ")
    put(data_dir, rows.to_csv(index=False))
    expected = load("acs_travel_time")
    put(data_dir, padded.to_csv(index=False))
    loaded = load("acs_travel_time")
    pd.testing.assert_frame_equal(loaded.X, expected.X)


def test_states_are_read_in_the_order_of_their_codes_whatever_the_order_given(data_dir):
    put(data_dir, person_file().to_csv(index=False))
    put(data_dir, person_file(state_code=48).to_csv(index=False), "psam_p48.csv")
    loaded = load("acs_public_coverage", states=["TX", "CA"])
    assert loaded.X["ST"].tolist() == [6] * 9 + [48] * 9
    assert loaded.X["ST"].cat.categories.tolist() == [6, 48]
    assert loaded.source.file == "psam_p06.csv + psam_p48.csv"
    again = load("acs_public_coverage", states=["CA", "TX"])
    pd.testing.assert_frame_equal(again.X, loaded.X)


def test_early_years_have_their_own_file_names(data_dir):
    put(data_dir, person_file(year=2015).to_csv(index=False), "ss15pca.csv", year=2015)
    loaded = load("acs_income", year=2015)
    assert loaded.y.tolist() == EXPECTED["acs_income"][1]
    assert not loaded.source.is_stand_in


@pytest.mark.parametrize("task", TASKS[:2])
def test_without_network_and_file_the_error_says_what_to_download_and_where_to_put_it(
    data_dir, task
):
    with pytest.raises(DatasetError) as caught:
        load(task, states=["TX"], horizon="5-Year")
    folder = data_dir / "2018" / "5-Year"
    first, there, stand_in, census, by_hand = str(caught.value).splitlines()
    assert first.startswith(f"{task} (2018 5-Year person file of TX): no source worked")
    assert f"{folder}: psam_p48.csv not there" in there
    assert "stand-in table: no folder named" in stand_in
    assert "US Census Bureau (" in census
    assert "refused" in census
    for word in ("csv_ptx.zip", "year 2018", "horizon 5-Year", "state TX", "psam_p48.csv"):
        assert word in by_hand
    assert str(folder) in by_hand


def test_the_download_is_unpacked_into_the_folder_of_folktables(
    server, zipped, data_dir, monkeypatch
):
    monkeypatch.setattr(acs_survey, "CENSUS", server.url)
    server.files["/2018/1-Year/csv_pca.zip"] = zipped(
        {"psam_p06.csv": person_file().to_csv(index=False).encode(), "README.pdf": b"read me"}
    )
    before = datasets.identity(named_config("acs_income"))
    assert load("acs_income").n_rows == 11
    assert datasets.identity(named_config("acs_income")) == before
    folder = data_dir / "2018" / "1-Year"
    names = [".lock", "psam_p06.csv", "psam_p06.csv.sha256"]
    assert sorted(path.name for path in folder.iterdir()) == names
    load("acs_travel_time")
    assert server.requests == ["/2018/1-Year/csv_pca.zip"]


def change(column: str, rows: list[int] | slice, value: str) -> str:
    persons = person_file()
    persons.loc[rows, column] = value
    return persons.to_csv(index=False)


FILE = person_file().to_csv(index=False)
HEADER, *LINES = FILE.splitlines(keepends=True)
FIRST = "".join([HEADER, *LINES[:7]])

DAMAGED = {
    "empty": ("", "is empty"),
    "no person": (HEADER, "no persons"),
    "cut in a line": (f"{FIRST}{LINES[7][:40]}", "truncated"),
    "cut in a line that ends": (f"{FIRST}{LINES[7][:40]}\n", "fields, but there are 40 columns"),
    "cut in the last field": (FILE[:-2], "breaks off in its last line"),
    "no number": (change("AGEP", [3, 5], "forty"), r"'forty' in column 'AGEP'.* 2 such of 20"),
    "of another state": (person_file(state_code=48).to_csv(index=False), "ST is 48 in 20 of 20"),
    "duplicate column": (
        pd.concat([person_file(), person_file()[["SEX"]]], axis=1).to_csv(index=False),
        r"duplicate columns \['SEX'\]",
    ),
    "one class": (change("ESR", slice(None), "1"), "only one class: all 20 rows are 1"),
}


@pytest.mark.parametrize(("text", "message"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_or_wrong_file_is_refused_and_left_alone(data_dir, text, message):
    path = put(data_dir, text)
    with pytest.raises(DatasetError, match=rf"psam_p06\.csv.*{message}"):
        load("acs_employment")
    assert path.read_text() == text


def test_the_file_of_a_later_year_is_refused_with_the_missing_columns_named(data_dir):
    rows = person_file(year=2019).rename(columns={"RELP": "RELSHIPP", "JWTR": "JWTRNS"})
    put(data_dir, rows.to_csv(index=False))
    with pytest.raises(DatasetError, match=r"lacks the columns RELP \(since 2019 RELSHIPP,"):
        load("acs_income")
    with pytest.raises(DatasetError, match=r"RELP \(.*RELSHIPP.*JWTR \(.*JWTRNS"):
        load("acs_travel_time")
    # Public coverage needs neither; its rows give the year away.
    with pytest.raises(DatasetError, match=r"is the file of 2019 .*not of 2018"):
        load("acs_public_coverage")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"states": 6}, r"unknown states \['6'\]"),
        ({"states": ["XX"]}, r"unknown states \['XX'\].*CA, CO"),
        ({"states": ["California"]}, "two capital letters"),
        ({"states": ["CA", "CA"]}, "listed twice"),
        ({"year": 2013}, "year must be 2014 or later, got 2013"),
        ({"year": "soon"}, "year must be 2014 or later, got 'soon'"),
        ({"horizon": "3-Year"}, "horizon must be '1-Year' or '5-Year'"),
        ({"survey": "household"}, "survey must be 'person'"),
        ({"task": "acs_mobility"}, "task must be one of"),
        ({"stand_in_dir": "/no/such/folder"}, "is not a folder"),
    ],
)
def test_a_wrong_setting_is_refused_before_anything_is_fetched(data_dir, changes, message):
    with pytest.raises(DatasetError, match=message):
        load("acs_income", **changes)
    assert not data_dir.exists()


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """A folder with an extracted table: 11 rows of the income task, with a column too many."""
    folder = tmp_path / "stand ins"
    folder.mkdir()
    rows = person_file().iloc[EXPECTED["acs_income"][0]]
    names = read_schema("acs_income").feature_names
    table = rows[[*names]].astype("int16").assign(PINCP=EXPECTED["acs_income"][1], ca_row=range(11))
    table.to_parquet(folder / "acs_income_part.parquet")
    return folder


@pytest.mark.parametrize("by", ["setting", "environment"])
def test_a_stand_in_is_used_when_its_folder_is_named_and_is_said_to_be_one(
    stand_in, monkeypatch, caplog, by
):
    if by == "environment":
        monkeypatch.setenv("LUMBERJACK_STAND_IN_DIR", str(stand_in))
    with caplog.at_level(logging.INFO):
        loaded = load("acs_income", stand_in_dir=str(stand_in) if by == "setting" else None)
    assert loaded.y.tolist() == EXPECTED["acs_income"][1]
    assert "ca_row" not in loaded.X
    assert loaded.source.is_stand_in
    assert loaded.source.file == "acs_income_part.parquet"
    assert loaded.source.label == "stand-in acs_income_part.parquet, 11 rows"
    assert loaded.source.stand_in_note.startswith("acs_income_part.parquet with 11 rows")
    assert all("stand-in" in record.getMessage() for record in caplog.records)
    assert any("11 rows" in record.getMessage() for record in caplog.records)


def test_a_folder_without_a_stand_in_for_the_task_leads_to_the_survey_file(stand_in, persons):
    assert load("acs_employment", stand_in_dir=str(stand_in)).source.file == "psam_p06.csv"


def test_a_label_in_survey_codes_is_turned_into_the_task_s_label(tmp_path):
    rows = person_file()
    rows = rows[rows["ESR"] != ""]
    names = read_schema("acs_employment").feature_names
    table = rows[[*names, "ESR"]].replace("", "0").astype("int16")
    table.to_parquet(tmp_path / "acs_employment.parquet")
    loaded = load("acs_employment", stand_in_dir=str(tmp_path))
    assert loaded.y.tolist() == (rows["ESR"] == "1").astype(int).tolist()


def test_a_stand_in_that_does_not_fit_is_refused(stand_in):
    path = stand_in / "acs_income_part.parquet"
    table = pq.read_table(path)

    def refused(changed: pa.Table, message: str) -> None:
        pq.write_table(changed, path)
        with pytest.raises(DatasetError, match=message):
            load("acs_income", stand_in_dir=str(stand_in))

    lacking = table.drop_columns(["RELP", "WKHP"])
    refused(lacking, r"stand-in.*missing columns \['RELP', 'WKHP'\]")
    # One odd label does not change how the others are read.
    position = table.column_names.index("PINCP")
    labels = pa.array([60_000, *table.column("PINCP").to_pylist()[1:]])
    refused(table.set_column(position, "PINCP", labels), "holds 60000 in 1 of 11 rows")
    pq.write_table(table, stand_in / "acs_income_other.parquet")
    refused(table, "several acs_income")


def test_identity_tells_a_stand_in_from_the_survey(stand_in):
    config = named_config("acs_income")
    survey = datasets.identity(config)
    assert datasets.identity({**config, "stand_in_dir": str(stand_in)}) != survey
    assert datasets.identity({**config, "states": ["CA", "TX"]}) != survey


def test_a_part_of_the_survey_file_is_not_the_whole_one(data_dir, monkeypatch):
    # The published file has 378,817 persons.
    config = named_config("acs_income")
    published = datasets.identity(config)
    rows = person_file()
    put(data_dir, rows.to_csv(index=False))
    part = datasets.identity(config)
    assert part != published
    put(data_dir, rows[1:].to_csv(index=False))
    assert datasets.identity(config) not in (part, published)
    whole = {(2018, "1-Year", ("CA",)): len(rows) - 1}
    monkeypatch.setattr(acs_survey, "PUBLISHED_PERSONS", whole)
    assert datasets.identity(config) == published


@pytest.mark.parametrize(
    ("task", "rows", "majority"),
    [("acs_income", 89_958, 58.9), ("acs_public_coverage", 55_419, 63.1)],
)
def test_development_tables_fit_the_public_ranges(development_tables, task, rows, majority):
    loaded = load(task, stand_in_dir=str(development_tables))
    summary = loaded.summary()
    # Majorities as in Table 1 of the paper; row counts of the parts.
    assert (summary.n_rows, round(100 * summary.majority, 1)) == (rows, majority)
    assert loaded.counts == datasets.RowCounts({}, {}, {})


def test_income_in_dollars_is_the_income_task_without_its_threshold(data_dir):
    put(data_dir, person_file().to_csv(index=False))
    binary, dollars = load("acs_income"), load("acs_income_dollars")
    pd.testing.assert_frame_equal(dollars.X, binary.X)
    assert dollars.schema.target_bounds == (0, 200_000)
    assert (dollars.y > 50_000).astype(int).tolist() == binary.y.tolist()
    assert dollars.y.max() <= 200_000
    assert len(np.unique(dollars.y)) > 2
