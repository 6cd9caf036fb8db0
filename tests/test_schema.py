"""A schema refuses what contradicts itself and encodes by fixed public rules."""

import numpy as np
import pandas as pd
import pytest

from lumberjack.schema import (
    UNSEEN,
    CategoricalFeature,
    FeatureSchema,
    NumericFeature,
    SchemaError,
)

SCHEMA = FeatureSchema(
    (
        NumericFeature("age", 17, 90, fill=40),
        CategoricalFeature("work", ("Private", "State", "None"), fill="Private"),
    ),
    classes=("<=50K", ">50K"),
    label="income",
)


def frame(**columns):
    return pd.DataFrame({"age": [20.0, 50.0], "work": ["State", "None"]} | columns)


def test_values_are_clipped_and_categories_become_positions():
    table = SCHEMA.encode(frame(age=[10.0, 95.0], work=["None", "Martian"]))
    assert table.values.tolist() == [[17.0, 2.0], [90.0, UNSEEN]]
    assert (table.n_clipped, table.n_unseen, table.n_filled) == (2, 1, 0)


def test_a_frame_is_matched_by_name_and_an_array_by_position():
    shuffled = frame()[["work", "age"]]
    assert SCHEMA.encode(shuffled).values.tolist() == [[20, 1], [50, 2]]
    array = np.array([[20, "State"], [50, "None"]], dtype=object)
    assert SCHEMA.encode(array).values.tolist() == [[20, 1], [50, 2]]


def test_categorical_columns_are_coded_by_their_values_not_by_their_own_codes():
    work = pd.Categorical(["State", "None"], categories=["None", "State", "Martian"])
    assert SCHEMA.encode(frame(work=work)).values[:, 1].tolist() == [1, 2]


def test_numbers_that_name_categories_are_found_exactly():
    schema = FeatureSchema((CategoricalFeature("code", (9, 1, 5)),), (0, 1))
    values = schema.encode(np.array([[1.0], [5.0], [9.0], [4.0], [10.0]])).values
    assert values[:, 0].tolist() == [1, 2, 0, UNSEEN, UNSEEN]


@pytest.mark.parametrize("missing", [np.nan, np.inf, -np.inf])
def test_missing_numbers_raise_or_take_the_fill_value(missing):
    X = frame(age=[missing, 50.0])
    with pytest.raises(SchemaError, match="feature 'age' has 1 missing or infinite"):
        SCHEMA.encode(X)
    table = SCHEMA.encode(X, missing="fill")
    assert table.values[:, 0].tolist() == [40, 50]
    assert table.n_filled == 1


@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_categories_raise_or_take_the_fill_value(missing):
    X = frame(work=["State", missing])
    with pytest.raises(SchemaError, match="feature 'work' has 1 missing"):
        SCHEMA.encode(X)
    assert SCHEMA.encode(X, missing="fill").values[:, 1].tolist() == [1, 0]


def test_labels_are_positions_and_unknown_ones_raise_or_are_marked():
    assert SCHEMA.encode_labels([">50K", "<=50K"]).tolist() == [1, 0]
    with pytest.raises(SchemaError, match="1 labels that are not among the classes"):
        SCHEMA.encode_labels([">50K", "?"])
    assert SCHEMA.encode_labels([">50K", "?"], unknown="drop").tolist() == [1, UNSEEN]


def test_the_coded_schema_reads_what_the_schema_wrote():
    coded = SCHEMA.coded()
    values = SCHEMA.encode(frame()).values
    assert coded.encode(values).values.tolist() == values.tolist()
    assert coded.classes == (0, 1)
    assert coded.features[1] == CategoricalFeature("work", (0, 1, 2), 0)


def test_a_schema_survives_the_trip_to_plain_data():
    again = FeatureSchema.from_dict(SCHEMA.to_dict())
    assert again == SCHEMA
    assert again.digest() == SCHEMA.digest()
    other = FeatureSchema(SCHEMA.features, SCHEMA.classes, label="other")
    assert other.digest() != SCHEMA.digest()


def test_a_schema_of_a_numeric_target_has_bounds_in_place_of_classes():
    schema = FeatureSchema(SCHEMA.features, label="income", target_bounds=(0, 1e5))
    assert FeatureSchema.from_dict(schema.to_dict()) == schema
    assert schema.coded().target_bounds == (0.0, 1e5)
    assert "classes" not in schema.to_dict()
    assert schema.encode_target([-1, "20", 2e5]).tolist() == [0.0, 20.0, 1e5]
    with pytest.raises(SchemaError, match=r"2 entries that are missing.* e.g. 'much'"):
        schema.encode_target([1.0, "much", None])
    with pytest.raises(SchemaError, match="no target_bounds: its label is a class"):
        SCHEMA.encode_target([1.0])


def test_encoding_a_row_does_not_depend_on_the_other_rows():
    alone = SCHEMA.encode(frame().iloc[:1]).values
    beside = SCHEMA.encode(frame(age=[20.0, 1e9], work=["State", "Martian"])).values[:1]
    assert alone.tolist() == beside.tolist()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: NumericFeature("x", 2, 1), "bounds are reversed, lower=2 > upper=1"),
        (lambda: NumericFeature("x", 0, np.inf), "upper bound must be a finite number, got inf"),
        (lambda: NumericFeature("x", "a", 1), "lower bound must be a finite number, got 'a'"),
        (lambda: NumericFeature("x", 0, 1, fill=2), "fill value 2 lies outside"),
        (lambda: CategoricalFeature("x", ()), "needs categories"),
        (lambda: CategoricalFeature("x", ("a", " a")), "'a' and ' a' are read alike"),
        *(
            (lambda values=values: CategoricalFeature("x", values), "are read alike")
            for values in ((1, "1.0"), (True, 1), ("01", "1"), ("true", "TRUE"), ("", "nan"))
        ),
        (lambda: CategoricalFeature("x", ("a",), fill="b"), "fill value 'b' is not one of"),
        (lambda: FeatureSchema((), (0, 1)), "at least one feature"),
        (lambda: FeatureSchema((NumericFeature("x", 0, 1),) * 2, (0, 1)), "names repeat"),
        (lambda: FeatureSchema((NumericFeature("x", 0, 1),), (0, 0)), "0 and 0 are read alike"),
        (lambda: FeatureSchema((NumericFeature("x", 0, 1),), (0, "")), "hold a missing entry"),
        (lambda: FeatureSchema((NumericFeature("x", 0, 1),), (0, 1), "x"), "also a feature"),
        (lambda: FeatureSchema(SCHEMA.features), "at least one class, or target_bounds"),
        (lambda: FeatureSchema(SCHEMA.features, (0,), target_bounds=(0, 1)), "not both"),
        (lambda: FeatureSchema(SCHEMA.features, target_bounds=(1,)), "must be (lower, upper)"),
        (
            lambda: FeatureSchema(SCHEMA.features, target_bounds=(2, 1)),
            "target 'label': bounds are",
        ),
        (lambda: FeatureSchema(SCHEMA.features, target_bounds=(2, 2)), "must be less than upper=2"),
        (lambda: FeatureSchema.from_dict({"classes": [0, 1]}), "'features' must be a list"),
        (
            lambda: FeatureSchema.from_dict(
                {"classes": [0], "features": [{"name": "x", "numeric": [0, 1], "unit": "m"}]}
            ),
            "unknown keys ['unit']",
        ),
        (
            lambda: FeatureSchema.from_dict({"classes": [0], "features": [{"name": "x"}]}),
            "give either 'numeric",
        ),
    ],
)
def test_contradictions_are_refused_in_one_line(build, message):
    with pytest.raises(SchemaError) as error:
        build()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (frame(extra=[1, 2]), "unexpected columns ['extra']"),
        (frame()[["age"]], "missing columns ['work']"),
        (pd.concat([frame(), frame()[["age"]]], axis=1), "duplicate columns: ['age']"),
        (
            frame(age=["old", "young"]),
            "feature 'age' is numeric, but 2 of 2 entries are no numbers, e.g. 'old'",
        ),
        (np.zeros((2, 3)), "X has 3 features, but the schema lists 2"),
        (np.zeros(2), "must be a table"),
    ],
)
def test_tables_that_do_not_fit_are_refused_by_name(X, message):
    with pytest.raises(SchemaError) as error:
        SCHEMA.encode(X)
    assert message in str(error.value)


def test_what_fits_is_not_copied_and_narrow_numbers_are_compared_with_the_bounds_themselves():
    schema = FeatureSchema(
        (NumericFeature("x", 0.9, 2), CategoricalFeature("c", tuple("ab"))), (0,)
    )
    X = np.array([[1.5, 0.9], [1.0, 2.0]]).T
    wide = FeatureSchema((NumericFeature("x", 0, 2), NumericFeature("z", 0, 2)), (0,)).encode(X)
    assert all(np.shares_memory(column, X) for column in wide.columns)
    table = schema.encode(pd.DataFrame({"x": np.array([0.9, 1.5], np.float32), "c": ["b", "z"]}))
    assert table.values.tolist() == [[0.9, 1], [1.5, UNSEEN]]
    assert (table.n_clipped, table.columns[1].dtype) == (1, np.int8)
