from __future__ import annotations

import pytest

from lumberjack.schema import CategoricalFeature, FeatureSchema
from lumberjack_bench.datasets import DatasetError
from lumberjack_bench.datasets.named import title_of
from lumberjack_bench.datasets.schema_files import built_in_schemas, read_schema
from lumberjack_bench.figures.table1 import PAPER


@pytest.mark.parametrize("name", built_in_schemas())
def test_a_schema_that_comes_with_the_package_says_what_it_is(name):
    schema = read_schema(name)
    assert schema.name == name
    assert schema.citation
    assert FeatureSchema.from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize("name", PAPER)
def test_the_schemas_of_the_paper_s_data_sets_have_its_counts(name):
    schema = read_schema(name)
    n_categorical = sum(isinstance(f, CategoricalFeature) for f in schema.features)
    assert (schema.n_features, n_categorical, schema.n_classes) == (
        PAPER[name].n_features,
        PAPER[name].n_categorical,
        PAPER[name].n_classes,
    )


def test_a_data_set_is_called_by_the_title_of_its_config_else_by_its_name():
    assert [title_of(name) for name in ("adult", "acs_travel_time", "mine", "toy_moons_5")] == [
        "Adult",
        "ACSTravelTime",
        "mine",
        "toy_moons_5",
    ]


def test_words_of_yaml_that_are_somebody_s_categories_stay_words(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(
        "label: y\n"
        "classes: [yes, no]\n"
        "features:\n"
        "  - {name: x, categories: [on, off, 2018-01-02, 12:30, 010, 1_000, 1e3, 7, true, N]}\n"
        "  - {name: z, numeric: [-1e-3, +2.5E2]}\n"
    )
    schema = read_schema(path)
    assert schema.classes == ("yes", "no")
    feature = schema.features[0]
    assert isinstance(feature, CategoricalFeature)
    assert feature.categories == (
        "on", "off", "2018-01-02", "12:30", "010", "1_000", 1000.0, 7, True, "N",
    )  # fmt: skip
    assert (schema.lower[1], schema.upper[1]) == (-0.001, 250.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "not a YAML file"),
        ("- a\n- b\n", "expected keys"),
        ("", "expected keys"),
        ("features: []\nclasses: [0, 1]\n", "at least one feature"),
        ("features: [{name: x, numeric: [2, 1]}]\nclasses: [0, 1]\n", "bounds are reversed"),
        ("features: [{name: x, numeric: [a, b]}]\nclasses: [0, 1]\n", "must be a finite number"),
        ("features: [{name: x, range: [1, 2]}]\nclasses: [0, 1]\n", "unknown keys"),
        ("features: [{name: x, categories: 3}]\nclasses: [0, 1]\n", "categories must be a list"),
        ("features: [{name: x, numeric: '19'}]\nclasses: [0, 1]\n", "numeric must be"),
        ("features: [{name: x, numeric: [0, 1], fill: a}]\nclasses: [0, 1]\n", "must be a number"),
        (
            "unlabeled: drop\nfeatures: [{name: x, numeric: [0, 1]}]\nclasses: [0, 1]\n",
            "unknown keys",
        ),
        ("features: [{name: x, categories: [[1]]}]\nclasses: [0, 1]\n", "schema"),
    ],
)
def test_a_wrong_schema_file_is_refused_with_its_name(tmp_path, text, message):
    path = tmp_path / "größe.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError, match=rf"größe\.yaml.*{message}|{message}.*größe"):
        read_schema(path)
