"""How entries are read: each by itself, whatever its container and type."""

from __future__ import annotations

import csv
import datetime
import io
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lumberjack.reading import (
    MISSING,
    MISSING_READING,
    UNSEEN,
    PublicList,
    read_column,
    read_entry,
    read_number,
)
from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature

BIG = 2**60
HOUR_EAST = datetime.timezone(datetime.timedelta(hours=1))
NOON = datetime.datetime(2020, 1, 2, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("entries", "reading"),
    [
        ([1, 1.0, "1", " 1\t", "1.0", "+1", "01", "1e0", True, "True", "TRUE", b"1", 1 + 0j], 1),
        (
            [np.int8(1), np.float32(1), np.bool_(True), np.str_("1"), Decimal("1.00"), Fraction(1)],
            1,
        ),
        ([0, "0", -0.0, False, "false"], 0),
        ([0.5, "0.5", ".5", "5e-1", Decimal("0.5"), Fraction(1, 2), np.float16(0.5)], 0.5),
        ([BIG + 1, str(BIG + 1), np.int64(BIG + 1), Decimal(BIG + 1)], BIG + 1),
        ([None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT"), Decimal("sNaN")], MISSING_READING),
        (["", "  ", "nan", "NaN", float("nan")], MISSING_READING),
        (["red", " red ", b"red", np.str_("red")], "red"),
        (["1_000"], "1_000"),
        (["Nan"], "Nan"),
        ([datetime.date(2020, 1, 2), "2020-01-02", pd.Timestamp("2020-01-02")], "2020-01-02"),
        ([np.datetime64("2020-01-02"), np.datetime64("2020-01-02", "ns")], "2020-01-02"),
        (["2020-01-02T00:00", "2020-01-02 00:00:00", "2020-01-02 00:00:00.000"], "2020-01-02"),
        (
            [NOON, NOON.astimezone(HOUR_EAST), pd.Timestamp(NOON), "2020-01-02T13:00+01:00"],
            "2020-01-02 12:00:00+00:00",
        ),
        (["10:30", "10:30:00", datetime.time(10, 30)], "10:30:00"),
        ([np.ma.masked], MISSING_READING),
    ],
    ids=str,
)
def test_entries_that_are_read_alike(entries, reading):
    for entry in entries:
        assert read_entry(entry) == reading
        assert type(read_entry(entry)) is type(reading)


def test_a_large_floating_point_number_is_no_whole_number_for_it_may_be_a_rounded_one():
    known = PublicList((BIG, 2**53 - 1))
    assert known.codes(read_column([BIG, float(BIG), f"{BIG}.0", 2.0**53 - 1])).tolist() == [
        0,
        UNSEEN,
        UNSEEN,
        1,
    ]
    assert known.codes(read_column(np.array([float(BIG), 2.0**53 - 1]))).tolist() == [UNSEEN, 1]
    assert PublicList((1e300,)).codes(read_column([1e300, "1e300", 10**300])).tolist() == [0, 0, -1]


def test_numbers_beyond_all_bounds_are_infinite_and_what_is_none_is_nan():
    assert read_number(10**400) == read_number("1e400") == np.inf
    assert read_number(-(10**400)) == -np.inf
    for odd in (
        "old",
        [1],
        {"a": 1},
        1j,
        datetime.date(2020, 1, 1),
        pd.Timedelta("1h"),
        "1" * 5000,
    ):
        assert np.isnan(read_number(odd))


def test_equal_entries_of_different_readings_do_not_change_each_other():
    class Spelled:
        def __init__(self, text):
            self.text = text

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 0

    known = PublicList(("10:30:00", "a"))
    ends = [datetime.time(10, 30), datetime.time(10, 30, tzinfo=datetime.UTC), Spelled("a"), "a"]
    for entries in (ends, ends[::-1]):
        alone = [known.codes(read_column([entry]))[0] for entry in entries]
        assert known.codes(read_column(entries)).tolist() == alone


@pytest.mark.parametrize(
    "far", [np.datetime64(585000, "Y"), np.datetime64(2**60, "h"), np.timedelta64(2**62, "D")]
)
def test_dates_beyond_the_calendar_are_no_dates_of_ours(far):
    listed = ("1970-01-01", datetime.timedelta(0))
    assert PublicList(listed).codes(read_column(np.array([far]))).tolist() == [UNSEEN]


@pytest.mark.parametrize("fill_value", [None, 5, 999])
def test_masked_entries_are_missing_whatever_is_under_the_mask(fill_value):
    schema = FeatureSchema(
        (NumericFeature("a", 0, 10, fill=0), NumericFeature("b", 0, 10, fill=0)), "ny"
    )
    table = np.ma.array([[1, 5], [5, 2]], mask=[[0, 1], [1, 0]], fill_value=fill_value)
    for X in (table, list(table), [row.tolist() for row in table]):
        assert schema.encode(X, missing="fill").values.tolist() == [[1, 0], [0, 2]]
    dates = np.ma.array(["2020-01-01", "2020-01-02"], dtype="M8[ns]", mask=[1, 0])
    assert PublicList(("2020-01-02",)).codes(read_column(dates)).tolist() == [MISSING, 0]


def test_public_lists_may_hold_dates_of_numpy():
    days = np.array(["2020-01-01", "2020-01-02"], dtype="M8[ns]")
    feature = CategoricalFeature("a", days)
    schema = FeatureSchema((feature,), (0, 1))
    X = pd.DataFrame({"a": ["2020-01-02", datetime.date(2020, 1, 1)]})
    assert schema.encode(X).values.ravel().tolist() == [1, 0]


def test_a_list_may_say_that_a_missing_entry_is_a_value():
    assert PublicList(("a", "b")).codes(read_column([None, "", "nan"])).tolist() == [MISSING] * 3
    assert PublicList(("a", "")).codes(read_column([None, "", "nan"])).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "known", [(3, 1, 2), ("3", "1", "2"), (3.0, True, "2"), (2.5, "x", 1, "", BIG + 1)]
)
@pytest.mark.parametrize(
    "column",
    [
        np.array([1, 2, 7, 3], dtype=np.uint8),
        np.array([True, False]),
        np.array([1.0, np.nan, 2.5], dtype=np.float32),
        np.array([BIG, BIG + 1, -1]),
        np.array([2**64 - 1, 1], dtype=np.uint64),
        np.array(["1", "x", " 2 ", "nan"]),
        np.array([b"1", b"x"]),
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series([1, None, 3], dtype="int64[pyarrow]"),
        pd.Series(["x", None, "3"], dtype="string"),
        pd.Series(["x", None, "3"], dtype="category"),
        pd.Series(pd.arrays.SparseArray([1, 0, 3])),
        pl.Series([1, None, 3]),
        pl.Series([1.5, 3.0]),
        pl.Series(["x", None, "3"]),
        pl.Series(["x", None, "3"], dtype=pl.Categorical),
        pa.chunked_array([["x", None], ["3"]]),
        pa.chunked_array([], pa.string()),
        pa.array(["x", None, "3"]).dictionary_encode(),
        pl.Series(["x", None, "3"], dtype=pl.Categorical).to_arrow(),
        pl.Series([1, 3], dtype=pl.Int128),
        pd.Series(pd.to_timedelta(["1h", None])),
        pa.array([1, 3]),
        pa.array([True, None]),
        pa.array([Decimal("1.0"), Decimal("2.5")]),
    ],
    ids=lambda column: type(column).__name__,
)
def test_a_column_is_read_as_its_entries_are(column, known):
    listed = PublicList(known)
    entries = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    expected = [listed.code(entry) for entry in entries]
    assert listed.codes(read_column(column)).tolist() == expected
    numbers = [read_number(entry) for entry in entries]
    np.testing.assert_array_equal(read_column(column).numbers(), numbers)


# --- one more record does not change how another one is read -----------------------------------

LISTS = [
    (1, 2, 3),
    ("1", "2", "3"),
    ("01", "2", "x"),
    (True, False),
    ("true", "no"),
    ("red", "blue", "none"),
    (0.5, 2, "inf"),
    ("2020-01-01", "2020-01-02"),
    ("a", ""),
]

ODD = st.one_of(
    st.text(max_size=12),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.dates().map(str),
    st.sampled_from(
        [
            None,
            pd.NA,
            pd.NaT,
            "odd",
            "NA",
            "true",
            "1e400",
            "inf",
            10**400,
            -(2**70),
            1j,
            b"\xff",
            Decimal("sNaN"),
            Decimal("1.5"),
            datetime.date(2020, 1, 1),
            datetime.datetime(2020, 1, 1, 12, 30),
            pd.Timestamp("2020-01-01"),
            np.datetime64("2020-01-01", "ns"),
            [1, 2],
            (1, 2),
            {"a": 1},
            np.array([1, 2]),
            float,
        ]
    ),
)


def array_of(rows, _):
    return np.array(rows)


def frame_of(rows, names):
    return pd.DataFrame(rows, columns=names)


def arrow_backed(rows, names):
    return pd.DataFrame(rows, columns=names).convert_dtypes(dtype_backend="pyarrow")


def nullable(rows, names):
    return pd.DataFrame(rows, columns=names).convert_dtypes()


def polars_of(rows, names):
    columns = zip(*rows, strict=True)
    return pl.DataFrame({n: pl.Series(list(c)) for n, c in zip(names, columns, strict=True)})


def arrow_of(rows, names):
    return pa.table(dict(zip(names, map(pa.array, zip(*rows, strict=True)), strict=True)))


def parquet_of(rows, names):
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(frame_of(rows, names)), file)
    return pq.read_table(file)


def csv_of(rows, names):
    file = io.StringIO()
    csv.writer(file).writerows([names, *rows])
    file.seek(0)
    return pd.read_csv(file, float_precision="round_trip")


CONTAINERS = {
    "list": lambda rows, _: rows,
    "objects": lambda rows, names: frame_of(rows, names).astype(object).to_numpy(),
    "array": array_of,
    "frame": frame_of,
    "nullable frame": nullable,
    "arrow frame": arrow_backed,
    "csv": csv_of,
    "polars": polars_of,
    "arrow": arrow_of,
    "parquet": parquet_of,
}


@st.composite
def cases(draw):
    """A schema, rows that fit it, and one more row with an odd entry."""
    features, columns = [], []
    for name in ("a", "b"):
        listed = draw(st.sampled_from([None, *LISTS]))
        if listed is None:
            features.append(NumericFeature(name, -4, 4, fill=0))
            values = st.integers(-40, 40).map(lambda eighths: eighths / 8)
        else:
            features.append(CategoricalFeature(name, listed, fill=listed[0]))
            values = st.sampled_from(listed)
        columns.append(draw(st.lists(values, min_size=4, max_size=4)))
    rows = [list(row) for row in zip(*columns, strict=True)]
    odd = list(rows[0])
    odd[draw(st.integers(0, 1))] = draw(ODD)
    return FeatureSchema(tuple(features), (0, 1)), rows, odd


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
@settings(max_examples=60, deadline=None)
@given(case=cases())
@pytest.mark.filterwarnings("ignore")
def test_one_more_record_leaves_the_codes_of_all_others_as_they_are(container, case):
    schema, rows, odd = case
    codes = schema.encode(rows, missing="fill").values
    try:
        alone = container(rows, ["a", "b"])
        table = container([*rows, odd], ["a", "b"])
    except (Exception, pl.exceptions.PanicException):
        assume(False)  # the container itself takes no such entry
    if container is not csv_of:  # to which empty text, "none" and NaN are one
        np.testing.assert_array_equal(schema.encode(alone, missing="fill").values, codes)
    before = schema.encode(alone, missing="fill").values
    np.testing.assert_array_equal(schema.encode(table, missing="fill").values[: len(rows)], before)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([(0, 1), ("0", "1"), ("no", "yes"), (True, False)]), ODD)
def test_one_more_label_leaves_all_others_as_they_are(classes, odd):
    schema = FeatureSchema((NumericFeature("x", 0, 1),), classes)
    labels = [*classes, *classes]
    for container in (list, pd.Series, lambda y: np.fromiter(y, object, len(y))):
        try:
            longer = container([*labels, odd])
        except Exception:
            continue
        codes = schema.encode_labels(longer, unknown="drop")
        assert codes[:4].tolist() == [0, 1, 0, 1]
