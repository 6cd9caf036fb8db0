from __future__ import annotations

import datetime
import decimal
import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lumberjack.schema import NumericFeature
from lumberjack_bench import datasets
from lumberjack_bench.datasets import DatasetError, RowCounts
from lumberjack_bench.datasets.draft import FEWEST_ROWS, MARK, Draft, draft_schema
from lumberjack_bench.runs import holdout

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
    loaded = load_with(draft_schema(people, "label"), people)
    assert loaded.y[:4].tolist() == [1, 0, 1, 0]
    values, counts = loaded.encoded()
    # age, income, zip (of 3), height (filled by 1.6), town (filled by Bern), note (of 3)
    np.testing.assert_array_equal(
        values[:3],
        [[34, 1000.5, 1, 1.8, 1, 1], [21, -20, 2, 1.6, 0, 0], [50, 3000, 0, 1.6, 0, 2]],
    )
    assert counts == RowCounts({}, {}, {"height": 1, "town": 1})


def test_a_parquet_table_gives_numbers_texts_and_truth_values(tmp_path):
    columns = {"x": [1, 2, 3] * 4, "t": [True, False, True] * 4, "y": [0, 1, 1] * 4}
    path = write(tmp_path, {**columns, "c": pa.array(["b", "a", "b"] * 4).dictionary_encode()})
    loaded = load_with(draft_schema(path, "y"), path)
    assert loaded.schema.classes == (0, 1)
    categories = {f.name: getattr(f, "categories", None) for f in loaded.schema.features}
    assert categories == {"x": None, "t": (False, True), "c": ("a", "b")}


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
        ("a,y\n" + "1,yes\n" * 20, "y", "has one class only: all 20 rows are 'yes'"),
        ("a,y\n" + "1,TRUE\n2,True\n" * 9, "y", "label column 'y' has one class only"),
        ("a,y\n" + "1,\n2,NA\n" * 9, "y", "label column 'y' has no value in any row"),
        ("a,y\n" + "1,p\n2,q\n" * 4, "y", "8 rows with a label; a run needs at least 10"),
        ("a|y\n" + "1|p\n2|q\n" * 9, "y", "Columns must be separated by commas"),
        ("a,y\n" + "1,p\n2,\xe9\n" * 9, "y", "not text in UTF-8"),
        ("y\n1\n", "y", "no column besides the label"),
        ("a,y\n", "y", "no rows"),
        ("a,y\n" + "".join(f"1,{i}\n" for i in range(150)), "y", "150 different values"),
    ],
)
def test_a_table_that_gives_no_draft_is_refused(tmp_path, rows, label, message):
    (tmp_path / "t.csv").write_text(rows, encoding="latin-1")
    with pytest.raises(DatasetError, match=message) as caught:
        draft_schema(tmp_path / "t.csv", label)
    assert "\n" not in str(caught.value)


N = 12
LABELS = ["yes", "no", "no"] * 4


def write(folder: Path, columns: dict[str, object], name: str = "t.parquet") -> Path:
    """Write a table with a label y of twelve rows unless one is given."""
    path = folder / name
    frame = pa.table({"y": LABELS, **columns})
    if name.endswith("parquet"):
        pq.write_table(frame, path)
    else:
        frame.to_pandas().to_csv(path, index=False, sep="\t" if "tsv" in name else ";")
    return path


def drafted(path: Path, sign: str = ".") -> Draft | str:
    """Return the draft, or why there is none."""
    try:
        return draft_schema(path, "y", decimal=sign)
    except DatasetError as error:
        return str(error)


def load_with(draft: Draft, path: Path) -> datasets.Dataset:
    schema = path.with_name("draft.yaml")
    schema.write_text(draft.text, encoding="utf-8")
    return datasets.load({"name": "t", "kind": "table", "path": str(path), "schema": str(schema)})


AWKWARD = {
    "no value": [None] * N,
    "empty text": ["", None, " "] * 4,
    "no number": [math.nan] * N,
    "infinite": [1.0, math.inf, -math.inf] * 4,
    "only infinite": ["inf", "-inf"] * 6,
    "too wide": [1.7e308, -1.7e308] * 6,
    "too narrow": [0.0, 5e-324] * 6,
    "large whole numbers": [2**53, 2**53 + 1] * 6,
    "beyond the floats": ["1e400", "9" * 500, "5"] * 4,
    "more digits than Python takes": ["9" * 5000, "8" * 5000] * 6,
    "large floats": [1e300, 1e17, 0.1] * 4,
    "decimals": [decimal.Decimal("1.50"), None] * 6,
    "dates": [datetime.date(2020, 1, 1), None] * 6,
    "times": pa.array([1, 2] * 6, pa.time32("s")),
    "moments beyond Python's": pa.array([2**50] * N, pa.timestamp("s")),
    "durations": pa.array([1, 2] * 6, pa.duration("s")),
    "lists": [["a"], None] * 6,
    "records": [{"a": 1}] * N,
    "bytes": [b"\xff", b"a"] * 6,
    "texts in bytes": [b"b", b"a"] * 6,
    "truth values": [True, None, False] * 4,
    "truth in many ways": ["true", "TRUE", "False", "0"] * 3,
    "numbers in many ways": ["1", "01", "1.0", "2"] * 3,
    "markers": ["?", "NA", "n/a", "NULL"] * 3,
    "markers among numbers": ["1", "-", "None", "2"] * 3,
    "markers among words": ["a", "-", "None", "b"] * 3,
    "texts that YAML reads as something else": ["null", "~", "yes", "1e3", "- a", "# b"] * 2,
    "characters that YAML refuses": ["\x7f", "a\nb", 'c"d', "\u2028", "\ufeffx", "x\\"] * 2,
    "dictionary": pa.array([1, 2, None] * 4).dictionary_encode(),
    "row numbers": list(range(N)),
    "keys": [f"key {i}" for i in range(N)],
    "like the label": LABELS,
}


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.tsv.gz"])
@pytest.mark.parametrize("values", AWKWARD.values(), ids=AWKWARD)
def test_a_draft_of_any_readable_table_can_be_loaded(tmp_path, values, name):
    path = write(tmp_path, {"x\n#": values, "plain": [1, 2, 2, 3] * 3}, name)
    loaded = load_with(draft_schema(path, "y"), path)
    assert loaded.n_rows == N
    assert (loaded.counts.unseen, loaded.counts.clipped) == ({}, {})


@pytest.mark.parametrize("values", AWKWARD.values(), ids=AWKWARD)
def test_any_label_gives_a_draft_that_can_be_loaded_or_one_line(tmp_path, values):
    rows = pa.table({"x": [1, 2, 2] * (4 * N), "y": pa.chunked_array([pa.array(values)] * N)})
    pq.write_table(rows, tmp_path / "t.parquet")
    draft = drafted(tmp_path / "t.parquet")
    if isinstance(draft, str):
        assert "label column 'y'" in draft
        assert "\n" not in draft
    else:
        loaded = load_with(draft, tmp_path / "t.parquet")
        assert len(np.unique(loaded.y)) == loaded.schema.n_classes


ENTRIES = ["1", "01", " 2", "1,5", "1.5", "true", "TRUE", "?", "na", "", "-", "none", "a"]
ENTRIES += ["2020-01-01"]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    columns=st.lists(
        st.lists(st.sampled_from(ENTRIES), min_size=N, max_size=N), min_size=2, max_size=4
    ),
    sign=st.sampled_from([".", ","]),
    name=st.sampled_from(["t.csv", "t.parquet"]),
)
def test_a_draft_of_random_texts_can_be_loaded_or_is_refused_in_one_line(
    tmp_path, columns, sign, name
):
    named = {"y" if j == 0 else f"x{j}": column for j, column in enumerate(columns)}
    path = write(tmp_path, named, name)
    draft = drafted(path, sign)
    if isinstance(draft, str):
        assert "no draft fits" not in draft
        assert "\n" not in draft
    else:
        assert load_with(draft, path).n_rows >= FEWEST_ROWS


def test_a_draft_needs_as_many_rows_as_a_run():
    assert FEWEST_ROWS == holdout.FEWEST_ROWS


def test_markers_are_taken_for_missing_and_said(tmp_path):
    path = write(tmp_path, {"x": ["?", "2", "none"] * 4, "c": ["a", "n/a", "none"] * 4}, "t.csv")
    draft = draft_schema(path, "y")
    assert '# taken for a missing value: "?" in "x"; "none" in "x"; "n/a" in "c"' in draft.text
    assert 'missing_texts: ["?", "none", "n/a"]' in draft.text
    assert any('"?" in "x" (4 of 12 rows)' in note for note in draft.notes)
    # What it says of the rows is for the data holder: no counts in the file.
    assert "12" not in draft.text
    loaded = load_with(draft, path)
    assert loaded.schema.features[0] == NumericFeature("x", 2, 2, fill=2)
    assert dict(loaded.counts.filled) == {"x": 8, "c": 8}


def test_a_dash_among_words_is_a_word(tmp_path):
    draft = draft_schema(write(tmp_path, {"x": ["a", "-", "none"] * 4}), "y")
    assert "missing" not in draft.text
    assert '- "-"' in draft.text


@pytest.mark.parametrize(
    ("column", "values", "reason"),
    [
        ("x", [None] * N, "has no value in any row"),
        ("x", list(range(5, 5 + N)), "numbers the rows"),
        ("x", [f"key {i}" for i in range(N)], "holds another text in every row"),
        ("x", ["2020-01-01", "3.4.2021", "2020-01-01 10:00"] * 4, "holds dates or times"),
        ("x", ["10:30", "23:59"] * 6, "holds dates or times"),
        ("x", [["a"]] * N, "holds lists or records"),
        ("", [1, 2] * 6, "has no name, like the index that DataFrame.to_csv writes"),
        ("Unnamed: 0", [1, 2] * 6, "has no name"),
    ],
)
def test_a_column_of_no_use_is_left_out_with_a_comment(tmp_path, column, values, reason):
    draft = draft_schema(write(tmp_path, {column: values, "z": [1, 2, 2, 3] * 3}), "y")
    assert f'  # left out: "{column}" {reason}' in draft.text
    assert sum(f'column "{column}" is left out: it {reason}' in note for note in draft.notes) == 1
    assert draft.text.count("- name:") == 1


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        (["p" if label == "yes" else "q" for label in LABELS], "repeats the label"),
        ([None if label == "yes" else 3 for label in LABELS], "repeats the label"),
        (["1", "2", "3", "many"] * 3, 'would be numeric without "many"'),
        ([i * i for i in range(N)], "grows from row to row"),
        (["1,5", "2", "3,25"] * 4, "looks like numbers with decimal commas"),
    ],
)
def test_an_odd_column_is_flagged_and_kept(tmp_path, values, hint):
    draft = draft_schema(write(tmp_path, {"x": values}), "y")
    assert f"    # check: {hint}" in draft.text
    assert any(note.startswith(f'column "x" {hint}') for note in draft.notes)


def test_an_ordinary_table_is_not_flagged(tmp_path):
    path = write(tmp_path, {"x": [1, 2, 2, 3] * 3, "c": ["a", "b"] * 6})
    assert draft_schema(path, "y").notes == ()


def test_values_with_one_reading_become_one_with_a_comment(tmp_path):
    columns = {"x": ["1", "01", "2"] * 4, "y": ["True", "TRUE", "false"] * 4}
    draft = draft_schema(write(tmp_path, columns), "y")
    assert f'- "True" {MARK}; also written "TRUE"' in draft.text
    assert f'- "1" {MARK}; also written "01"' in draft.text
    assert draft.text.count("- ") == 2 + 1 + 2


def test_rows_without_a_label_are_dropped_by_the_draft_and_still_numbered(tmp_path):
    labels = ["yes", "no", "no"] * 4 + ["NA", "", "?"]
    columns = {"id": range(15), "x": [1, 2, 3] * 5, "y": [*labels[7:], *labels[:7]]}
    path = write(tmp_path, columns)
    draft = draft_schema(path, "y")
    assert "unlabelled: drop" in draft.text
    assert any("3 of 15 rows have no label" in note for note in draft.notes)
    assert '# left out: "id" numbers the rows' in draft.text
    assert load_with(draft, path).n_rows == 12


def test_decimal_commas_are_numbers_when_asked(tmp_path):
    path = write(tmp_path, {"x": ["1,5", "2", "3,25"] * 4}, "t.csv")
    draft = draft_schema(path, "y", decimal=",")
    assert "numeric: [1.5, 3.25]" in draft.text
    assert load_with(draft, path).encoded()[0][:3, 0].tolist() == [1.5, 2, 3.25]


@pytest.mark.parametrize(
    ("separator", "name"), [(",", "commas"), (";", "semicolons"), ("\t", "tabs")]
)
def test_the_separator_is_said(people, separator, name):
    people.write_text(ROWS.replace('"a, ""b"""', "a").replace(",", separator), encoding="utf-8")
    assert (
        f"menschen.csv: read as columns separated by {name}" in draft_schema(people, "label").notes
    )


def test_copies_of_a_name_are_left_out(tmp_path):
    (tmp_path / "t.csv").write_text("a,a,b,y\n" + "1,1,3,0\n2,1,4,1\n2,2,4,1\n" * 4)
    draft = draft_schema(tmp_path / "t.csv", "y")
    assert '# left out: "a" is named more than once' in draft.text
    assert load_with(draft, tmp_path / "t.csv").schema.feature_names == ("b",)


def test_the_command_prints_the_draft_and_counts_the_marks(people, capfdbinary):
    assert script("draft_schema").main([str(people), "--label", "label"]) == 0
    sys.stdout.flush()
    out, err = capfdbinary.readouterr()
    assert out.decode("utf-8") == draft_schema(people, "label").text
    # 2 classes, 3 ranges, 3 + 2 + 3 categories, 2 fills
    assert b"15 values are marked" in err
    assert b"menschen.csv: read as columns separated by commas" in err
    assert DRAFT.count(MARK) == 15


def test_the_command_fails_with_one_line(tmp_path, capsys):
    assert script("draft_schema").main([str(tmp_path / "no.csv"), "--label", "y"]) == 2
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
