"""Answers of OpenML as scikit-learn recorded them for its own tests, served on loopback."""

from __future__ import annotations

import gzip
import json
from importlib.resources import files
from urllib.parse import urlparse
from urllib.request import Request, urlopen

import pytest
from sklearn.datasets import _openml

from lumberjack_bench import datasets
from lumberjack_bench.datasets import DatasetError
from lumberjack_bench.datasets.draft import PUBLISHED_FACTS
from lumberjack_bench.datasets.loaders import openml


def config(number: object) -> dict[str, object]:
    return {"name": f"openml_{number}", "kind": "openml", "id": number}


@pytest.fixture(autouse=True)
def recorded(monkeypatch, server):
    """Iris (61), ten rows of Adult (1590), a table with a number as label (561)."""
    package = "sklearn.datasets.tests.data.openml"
    pytest.importorskip(package)
    for number, arff in ((61, 61), (1590, 1595261), (561, 52739)):
        folder = files(f"{package}.id_{number}")

        def read(name, folder=folder):
            return gzip.decompress((folder / f"{name}.gz").read_bytes())

        about = read(f"api-v1-jd-{number}.json")
        place = f"/api/v1/json/data/{{}}{number}"
        server.files[place.format("")] = about
        server.files[place.format("features/")] = read(f"api-v1-jdf-{number}.json")
        server.files[place.format("qualities/")] = read(f"api-v1-jdq-{number}.json")
        address = urlparse(json.loads(about)["data_set_description"]["url"]).path
        server.files[address] = read(f"data-v1-dl-{arff}.arff")

    def to_loopback(request):
        return urlopen(Request(server.url + urlparse(request.full_url).path))

    monkeypatch.setattr(_openml, "urlopen", to_loopback)
    openml._fetched.cache_clear()


def test_a_table_is_fetched_once_and_its_schema_is_drafted(server, data_dir):
    iris = datasets.load(config(61))
    assert iris.schema.classes == ("Iris-setosa", "Iris-versicolor", "Iris-virginica")
    # The published ranges of Fisher's measurements.
    assert iris.schema.lower.tolist() == [4.3, 2.0, 1.0, 0.1]
    assert iris.schema.upper.tolist() == [7.9, 4.4, 6.9, 2.5]
    assert iris.source.description == f"OpenML 61, iris. {PUBLISHED_FACTS}"
    assert (data_dir / "openml").is_dir()
    asked = list(server.requests)
    openml._fetched.cache_clear()
    assert iris.source.sha256 in datasets.identity(config(61))
    assert datasets.load(config(61)).X.equals(iris.X)
    assert server.requests == asked


def test_nominal_columns_are_categorical_and_missing_entries_are_filled():
    adult = datasets.load(config(1590))
    summary = adult.summary()
    assert (summary.n_rows, summary.n_features, summary.n_categorical) == (10, 14, 8)
    assert adult.counts.filled
    assert adult.schema.classes == ("<=50K", ">50K")


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (561, "label column 'class' has 104 different values"),
        (99, r"table 99 cannot be had \(HTTP Error 404: Not Found\)"),
        (None, "dataset.id=NUMBER .*got None"),
        ("iris", "got 'iris'"),
    ],
)
def test_what_is_no_classification_table_is_refused(number, message, monkeypatch):
    monkeypatch.setattr(_openml.time, "sleep", lambda seconds: None)
    with pytest.raises(DatasetError, match=message):
        datasets.load(config(number))
