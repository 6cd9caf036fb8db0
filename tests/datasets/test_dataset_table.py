from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lumberjack_bench import datasets
from lumberjack_bench.datasets import DatasetError

SCHEMA = """\
name: fruit
label: kind
classes: [apple, pear]
features:
  - {name: weight, numeric: [0, 500]}
  - {name: sugar, numeric: [0, 1]}
  - {name: colour, categories: [red, yes, no, grün, "01"]}
"""


def one_feature(feature: str, classes: str = "[a, b]") -> str:
    """A schema of a single feature x, and the label y."""
    return f"label: y\nclasses: {classes}\nfeatures: [{{name: x, {feature}}}]\n"


ROWS = """\
weight,note,colour,kind,sugar
100,a,red,apple,0.25
200,b,no,pear,0.5
900,c,grün,pear,0.1
50,d,01,apple,1
"""


@pytest.fixture
def write(tmp_path: Path):
    """Write a table and a schema into a folder with a non-ASCII name; return the config."""
    folder = tmp_path / "Daten äöü 数据"
    folder.mkdir()

    def config(
        rows: str | pd.DataFrame, text: str = SCHEMA, /, **changes: object
    ) -> dict[str, object]:
        (folder / "schéma.yaml").write_text(text, encoding="utf-8")
        if isinstance(rows, str):
            path = folder / "früchte.csv"
            path.write_text(rows, encoding="utf-8")
        else:
            path = folder / "früchte.parquet"
            rows.to_parquet(path)
        return {
            "name": "fruit",
            "kind": "table",
            "path": str(path),
            "schema": str(folder / "schéma.yaml"),
            **changes,
        }

    return config


def test_a_csv_is_checked_clipped_and_coded_by_its_schema_and_a_parquet_file_likewise(write):
    loaded = datasets.load(write(ROWS))
    assert list(loaded.X.columns) == ["weight", "sugar", "colour"]
    assert loaded.X["weight"].tolist() == [100, 200, 500, 50]
    assert loaded.y.tolist() == [0, 1, 1, 0]
    values, counts = loaded.encoded()
    # red 0, no 2, grün 3, 01 4
    expected = [[100, 0.25, 0], [200, 0.5, 2], [500, 0.1, 3], [50, 1, 4]]
    np.testing.assert_array_equal(values, expected)
    assert dict(counts.clipped) == {"weight": 1}
    assert loaded.source.file == "früchte.csv"
    frame = pd.read_csv(io.StringIO(ROWS), dtype={"colour": "category"})
    from_parquet = datasets.load(write(frame))
    pd.testing.assert_frame_equal(from_parquet.X, loaded.X)
    np.testing.assert_array_equal(from_parquet.y, loaded.y)


@pytest.mark.parametrize(
    ("bounds", "values", "dtype"),
    [
        ("[0, 100]", "1 2 3", np.int8),
        ("[0, 255]", "1 2 3", np.uint8),
        ("[-1, 255]", "1 2 3", np.int16),
        ("[0, 65535]", "1 2 3", np.uint16),
        ("[0, 100000]", "1 2 3", np.int32),
        ("[0, 3000000000]", "1 2 3", np.uint32),
        ("[-1, 3000000000]", "1 2 3", np.int64),
        ("[0, 1]", "0.5 0.25 0.75", np.float32),
        ("[0, 1]", "0.1 0.2 0.3", np.float64),
        ("[0.5, 100]", "0 2 3", np.float32),  # 0 is clipped to 0.5
    ],
)
def test_numbers_are_held_in_the_smallest_type_that_loses_nothing(write, bounds, values, dtype):
    schema = one_feature(f"numeric: {bounds}", "[0, 1]")
    rows = "x,y\n" + "".join(f"{x},{i % 2}\n" for i, x in enumerate(values.split()))
    loaded = datasets.load(write(rows, schema))
    assert loaded.X["x"].dtype == dtype
    given = np.array(values.split(), dtype=float)
    lower, upper = loaded.schema.lower[0], loaded.schema.upper[0]
    np.testing.assert_array_equal(loaded.encoded()[0][:, 0], np.clip(given, lower, upper))


@pytest.mark.parametrize(
    ("classes", "spelled"),
    [
        ("[0, 1]", "0 1 1"),
        ("[0, 1]", "0.0 1.0 1"),
        ("[false, true]", "False True true"),
        ("[no, yes]", "no yes yes"),
        ("['0', '1']", "0 1 1"),
        ("[0.5, 1.5]", "0.5 1.5 1.50"),
    ],
)
def test_text_in_a_csv_spells_numbers_and_truth_values(write, classes, spelled):
    schema = one_feature("numeric: [0, 9]", classes)
    rows = "x,y\n" + "".join(f"1,{label}\n" for label in spelled.split())
    assert datasets.load(write(rows, schema)).y.tolist() == [0, 1, 1]


def test_missing_entries_take_the_public_fill_value(write):
    schema = SCHEMA.replace("[0, 500]", "[0, 500], fill: 7").replace('"01"]', '"01"], fill: red')
    rows = ROWS.replace("100,", ",").replace("grün", "NA")
    loaded = datasets.load(write(rows, schema))
    assert loaded.X["weight"].isna().tolist() == [True, False, False, False]
    assert loaded.X["colour"].isna().tolist() == [False, False, True, False]
    values, counts = loaded.encoded()
    assert values[0, 0] == 7
    assert values[2, 2] == 0
    assert dict(counts.filled) == {"weight": 1, "colour": 1}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("200,", "heavy,", r"'weight' is numeric .* but holds 'heavy' in 1 of 4 rows"),
        ("200,", ",", r"'weight' has no value in 1 of 4 rows and the schema has no fill"),
        ("200,", "inf,", r"'weight' has no value in 1 of 4 rows"),
        ("grün", "blue", r"'colour' holds 'blue' in 1 of 4 rows, .* 5 categories"),
        ("pear", "plum", r"'kind' holds 'plum' in 2 of 4 rows, .* classes \['apple', 'pear'\]"),
        (",pear", ",", r"'kind' has no value in 2 of 4 rows"),
        ("pear", "apple", r"'kind' has only one class: all 4 rows are 'apple'"),
        ("sugar", "salt", r"missing columns \['sugar'\]"),
        ("0,", "9999,", r"'weight' lies outside .*\[0, 500\] in all 4 rows"),
        ("50,d", "2020-01-02,d", r"'weight' is numeric .* but holds '2020-01-02' in 1 of 4 rows"),
        ("note", "colour", r"columns appear more than once: \['colour'\]"),
        ("200,b,no,pear,0.5", "200,b,no", r"has 3 fields, but there are 5 columns"),
        ("200,b,no,pear,0.5", "200,b,no,pear,0.5,7", r"has 6 fields, but there are 5 columns"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_in_one_line(write, old, new, message):
    with pytest.raises(DatasetError, match=message) as caught:
        datasets.load(write(ROWS.replace(old, new)))
    assert "\n" not in str(caught.value)
    assert caught.value.dataset_name == "fruit"


def test_unlisted_categories_go_the_rest_way_when_asked(write):
    loaded = datasets.load(write(ROWS.replace("grün", "blue"), unlisted="rest"))
    assert dict(loaded.counts.unseen) == {"colour": 1}
    assert loaded.encoded()[0][:, 2].tolist() == [0, 2, -1, 4]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"path": None}, r"dataset\.path=FILE"),
        ({"path": "/no/such.csv"}, "no file /no/such.csv"),
        ({"schema": None}, r"dataset\.schema=FILE"),
        ({"schema": "nosuch"}, "no file nosuch.*adult"),
        ({"unlisted": "maybe"}, "unlisted must be 'error' or 'rest'"),
        ({"kind": "excel"}, "kind must be one of"),
        ({"name": ""}, "needs a name"),
        ({"name": ["a"]}, r"name must be a word or a number, got \['a'\]"),
        ({"name": "a/b"}, "cannot be part of a file's name"),
        ({"name": "a\0b"}, "cannot be part of a file's name"),
        ({"name": "é" * 51}, "is 102 bytes long"),
        ({"missing_texts": True}, "missing_texts must be texts .* got True"),
        ({"decimal": ";"}, r"decimal must be '\.' or ',', got ';'"),
        ({"unlabelled": "keep"}, "unlabelled must be 'error' or 'drop'"),
    ],
)
def test_a_wrong_setting_is_refused_in_one_line(write, changes, message):
    with pytest.raises(DatasetError, match=message) as caught:
        datasets.load(write(ROWS, **changes))
    assert "\n" not in str(caught.value)


def test_a_name_may_be_a_number(write):
    assert datasets.load(write(ROWS, name=2024)).name == "2024"
    assert datasets.identity(write(ROWS, name=2024)) == datasets.identity(write(ROWS))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xlsx", b"x", "must be a csv or parquet file"),
        ("a.parquet", b"PAR1 not really", "not a whole parquet file"),
        ("a.parquet", b"", "not a whole parquet file"),
        ("a.csv", b"", "is empty"),
        ("a.csv", b"weight,sugar,colour,kind\n", "no rows"),
        ("a.csv", "weight,sugar,colour,kind\n1,1,gr\xfcn,pear\n".encode("latin-1"), "UTF"),
        ("a.csv", "weight,sugar,colour,kind\n1,1,red,pear\n".encode("utf-16"), "UTF"),
        ("a.csv.gz", b"weight,sugar,colour,kind\n1,1,red,pear\n", "cannot read"),
        ("a.csv.gz", gzip.compress(ROWS.encode() * 50, mtime=0)[:60], "cannot read"),
        (
            "a.csv",
            b"weight,sugar,colour,kind\n" + b"1,1,red,pear\n" * 9999 + b"1,1,\xfc,pear\n",
            "UTF",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(write, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        datasets.load(write(ROWS, path=str(tmp_path / name)))


def test_an_entry_is_read_alike_in_a_csv_a_parquet_file_a_frame_and_a_list(write):
    schema = one_feature("categories: [true, 0, 2.5, 10]")
    texts = ["TRUE", " true", "True", "1", "1.0", "False", "00", "2.50", "1e1", "10"]
    values = [True, 1, 1.0, np.float32(1), "01", False, 0, "2.5", 10, 10.0]
    codes = [0, 0, 0, 0, 0, 1, 1, 2, 3, 3]
    labels = ["a", "b"] * 5
    rows = "x,y\n" + "".join(f"{x},{y}\n" for x, y in zip(texts, labels, strict=True))
    from_csv = datasets.load(write(rows, schema))
    from_parquet = datasets.load(write(pd.DataFrame({"x": texts, "y": labels}), schema))
    plain = from_csv.schema
    for given in (
        from_csv.encoded()[0],
        from_parquet.encoded()[0],
        plain.encode(pd.DataFrame({"x": values})).values,
        plain.encode([[text] for text in texts]).values,
    ):
        assert given[:, 0].tolist() == codes


def test_one_odd_entry_changes_no_other_one(write):
    schema = one_feature("categories: [1, 2]", "[1, 2]")
    plain = pd.DataFrame({"x": [1, 2, 1], "y": [1, 2, 2]})
    odd = pd.DataFrame({"x": ["1", "2", "1", "odd"], "y": ["1.0", "2", "2", "1"]})
    expected = datasets.load(write(plain, schema))
    loaded = datasets.load(write(odd, schema, unlisted="rest"))
    np.testing.assert_array_equal(loaded.encoded()[0][:3], expected.encoded()[0])
    np.testing.assert_array_equal(loaded.y[:3], expected.y)


def test_categories_beyond_the_floats_and_missing_ones_keep_their_codes(write):
    schema = one_feature("categories: [9007199254740993, 0.5, null, 9007199254740992]")
    rows = "x,y\n9007199254740992,a\n,b\n9007199254740993,b\n"
    loaded = datasets.load(write(rows, schema))
    assert loaded.encoded()[0][:, 0].tolist() == [3, 2, 0]
    assert dict(loaded.counts.filled) == {}


def test_one_text_that_means_missing_is_one_text_not_its_letters(write):
    schema = one_feature("categories: [n, none], fill: n")
    rows = "x,y\nn,a\nnone,b\n none ,b\n"
    config = write(rows, schema, missing_texts="none")
    assert dict(datasets.load(config).counts.filled) == {"x": 2}
    config = write(rows, schema, missing_texts=[])
    assert dict(datasets.load(config).counts.filled) == {}


@pytest.mark.parametrize("chosen", [-9, ["-9"], ["-9", -9.0]])
def test_a_number_that_means_missing_does_so_however_it_is_written(write, chosen):
    schema = one_feature("numeric: [0, 9], fill: 4")
    for values in ([1, -9, 3], ["1", "-9.0", "3"], [1.0, -9.0, np.nan]):
        rows = pd.DataFrame({"x": values, "y": ["a", "b", "a"]})
        loaded = datasets.load(write(rows, schema, missing_texts=chosen))
        assert loaded.encoded()[0][1, 0] == 4


def test_the_schema_file_may_say_how_entries_are_written_and_the_settings_win(write):
    # The third row has no label.
    schema = 'missing_texts: ["?"]\ndecimal: ","\nunlabelled: drop\n'
    schema += one_feature("numeric: [0, 9], fill: 4")
    rows = "x;y\n1,5;a\n?;b\n7;?\n2;a\n"
    loaded = datasets.load(write(rows, schema))
    assert loaded.encoded()[0][:, 0].tolist() == [1.5, 4, 2]
    assert loaded.y.tolist() == [0, 1, 0]
    assert loaded.source.n_rows == 3
    assert loaded.source.description.endswith("without 1 rows that have no label")
    with pytest.raises(DatasetError, match=r"label column 'y' has no value in 1 of 4 rows"):
        datasets.load(write(rows, schema, unlabelled="error"))
    with pytest.raises(DatasetError, match=r"holds '\?' in 1 of 4 rows"):
        datasets.load(write(rows, schema, missing_texts=["NA"]))
    with pytest.raises(DatasetError, match=r"holds '1,5' in 1 of 3 rows"):
        datasets.load(write(rows, schema, decimal="."))
    # Where commas stand before decimals, a point may group digits.
    with pytest.raises(DatasetError, match=r"holds '7\.234' in 1 of 3 rows"):
        datasets.load(write(rows.replace("2;", "7.234;"), schema))


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.csv.gz", "a.TSV.gz"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_is_the_one_that_fits_the_first_lines(write, tmp_path, name, separator):
    rows = ROWS.replace(",", separator)
    rows = rows.replace(f"{separator}a{separator}", f'{separator}"1,5;2\t3;"{separator}')
    content = ("\n" + rows).encode()
    (tmp_path / name).write_bytes(
        gzip.compress(content, mtime=0) if name.endswith("gz") else content
    )
    loaded = datasets.load(write("", path=str(tmp_path / name)))
    pd.testing.assert_frame_equal(loaded.X, datasets.load(write(ROWS)).X)


def test_columns_that_the_schema_does_not_use_may_be_anything(write, tmp_path):
    rows = ROWS.replace("note", "n") + "70,e,no,pear,1\n"
    twice = "".join(f"{line},{line.split(',')[1]}\n" for line in rows.splitlines())
    pd.testing.assert_frame_equal(datasets.load(write(twice)).X, datasets.load(write(rows)).X)
    schema = one_feature("numeric: [0, 9]")
    frame = pd.DataFrame({"x": [1, 2], "tags": [["p"], ["q", "r"]], "y": ["a", "b"]})
    assert datasets.load(write(frame, schema)).n_rows == 2
    with pytest.raises(DatasetError, match=r"column 'tags' holds lists or records \(list"):
        datasets.load(write(frame, schema.replace("name: x", "name: tags")))


def test_identity_follows_table_schema_and_settings_but_not_the_place(write, tmp_path):
    first = datasets.identity(write(ROWS))
    assert datasets.identity(write(ROWS)) == first
    (tmp_path / "elsewhere.csv").write_text(ROWS, encoding="utf-8")
    assert datasets.identity(write(ROWS, path=str(tmp_path / "elsewhere.csv"))) == first
    assert datasets.identity(write(ROWS.replace("100", "101"))) != first
    assert datasets.identity(write(ROWS, SCHEMA.replace("500", "501"))) != first
    assert datasets.identity(write(ROWS, unlisted="rest")) != first
