from __future__ import annotations

import pytest

from lumberjack_bench import datasets
from lumberjack_bench.datasets import DatasetError
from lumberjack_bench.datasets.loaders import sklearn

DIGITS = {"name": "digits", "kind": "sklearn"}


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("digits", (1797, 64, 10)),
        ("wine", (178, 13, 3)),
        ("breast_cancer", (569, 30, 2)),
    ],
)
def test_shipped_tables_have_their_sizes_and_fit_their_schemas(name, sizes):
    loaded = datasets.load({"name": name, "kind": "sklearn"})
    summary = loaded.summary()
    assert (summary.n_rows, summary.n_features, summary.n_classes) == sizes
    counts = loaded.counts
    assert (counts.clipped, counts.unseen, counts.filled) == ({}, {}, {})
    assert loaded.source.description == loaded.schema.citation


def test_other_rows_than_the_published_ones_and_unknown_tables_are_refused(monkeypatch):
    with pytest.raises(DatasetError, match=r"no table 'iris'.*breast_cancer, digits, wine\."):
        datasets.identity({"name": "iris", "kind": "sklearn"})
    monkeypatch.setitem(sklearn.CHECKSUMS, "digits", "0" * 64)
    with pytest.raises(DatasetError, match=r"digits: scikit-learn .* ships other rows"):
        datasets.load(DIGITS)


def test_a_part_of_the_rows_is_the_beginning_of_one_shuffle():
    whole = datasets.load(DIGITS)
    few, more = (datasets.load({**DIGITS, "n_rows": n_rows}) for n_rows in (50, 500))
    assert few.X.equals(more.X[:50])
    assert (few.y == more.y[:50]).all()
    assert len({tuple(row) for row in more.X.to_numpy()} & {*map(tuple, whole.X.to_numpy())}) == 500
    assert not more.X.equals(whole.X[:500])
    assert (few.n_rows, few.source.n_rows) == (50, 50)
    assert "50 of 1,797 rows, the first after a shuffle with seed 0" in few.source.description
    texts = {datasets.identity({**DIGITS, "n_rows": n_rows}) for n_rows in (None, 50, 500)}
    assert len(texts) == 3


@pytest.mark.parametrize(
    ("n_rows", "message"),
    [
        (0, "positive whole number or null, got 0"),
        ("x", "got 'x'"),
        (1798, "at most 1,797"),
    ],
)
def test_a_part_that_cannot_be_had_is_refused(n_rows, message):
    with pytest.raises(DatasetError, match=message):
        datasets.load({**DIGITS, "n_rows": n_rows})
