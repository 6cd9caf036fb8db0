"""What a fit tells an audit: the same fit as any, its noise, and how likely all of it is."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import stats

from lumberjack import (
    CategoricalFeature,
    FeatureSchema,
    GuidedLumberjackClassifier,
    LumberjackClassifier,
    NumericFeature,
)
from lumberjack.heavy_hitters import Hierarchy, mark_heavy_hitters
from lumberjack.transcript import (
    DiscreteRelease,
    GaussianRelease,
    count_answers,
    get_log_ratios,
    get_threshold_log_ratio,
)

SCHEMA = FeatureSchema((NumericFeature("x", 0, 1), CategoricalFeature("c", (0, 1))), (0, 1))
FORESTS = [
    LumberjackClassifier(schema=SCHEMA, n_estimators=3, accounting="paper"),
    LumberjackClassifier(schema=SCHEMA, n_estimators=3, leaves="noisy_counts"),
    GuidedLumberjackClassifier(schema=SCHEMA, n_estimators=3, accounting="safe"),
]


def seeded(forest):
    return type(forest)(**forest.get_params()).set_params(noise_seed=1, random_state=2)


def crowd(n_rows):
    return np.asfortranarray(np.tile([0.3, 0.0], (n_rows, 1))), np.arange(n_rows) % 3 // 2


@pytest.mark.parametrize("forest", FORESTS)
def test_the_fit_that_is_told_is_the_fit_of_all_and_keeps_no_more(forest):
    X, y = crowd(90)
    told, other = seeded(forest), seeded(forest)
    told._fit_transcript(X, y)
    other.fit(X, y)
    assert vars(told).keys() == vars(other).keys()
    assert pickle.dumps(told) == pickle.dumps(other)


@pytest.mark.parametrize("forest", FORESTS)
def test_releases_bear_the_names_and_the_counts_of_the_ledger(forest):
    told = seeded(forest)
    transcript = told._fit_transcript(*crowd(90))
    groups = {release.name: release.group for release in told.ledger_.releases}
    assert {release.name for release in transcript} == set(groups)
    n_queries = sum(one.n_queries for one in transcript if one.name == "structure")
    assert n_queries == groups["structure"].count


def test_the_ratio_of_a_vector_is_that_of_two_normal_densities():
    noisy = np.array([0.3, -1.2, 2.0])
    scale = np.array([1.0, 0.5, 0.25])
    release = GaussianRelease("a", noisy, lambda values, labels: values.sum(axis=0) * scale)
    values, labels = np.array([[1.0, 2, 0], [0, 1, 4], [2, 2, 2]]), np.zeros(3, dtype=np.int64)
    without, with_record = (
        stats.norm.logpdf(noisy, rows.sum(axis=0) * scale).sum() for rows in (values[:-1], values)
    )
    again = DiscreteRelease("a", lambda values, labels: 0.25, 1)
    found = get_log_ratios([release, again], values, labels)
    assert found == {"a": pytest.approx(with_record - without + 0.25)}


@pytest.mark.parametrize("height", [1, 2, 3, 6, 7, 63, 100])
def test_answers_on_a_path_are_those_of_the_reference_search(height):
    path = Hierarchy(np.arange(-1, height - 1))
    for n_heavy in range(height + 1):
        asked = []

        def is_heavy(nodes, asked=asked, n_heavy=n_heavy):
            asked.extend((nodes < n_heavy).tolist())
            return nodes < n_heavy

        mark_heavy_hitters(path, is_heavy)
        assert count_answers(n_heavy, height) == (sum(asked), len(asked) - sum(asked))


@pytest.mark.parametrize("n_rows", [0, 1, 30])
def test_the_ratio_of_answers_is_that_of_their_probabilities(n_rows):
    sigma, tau = 5.0, 25.0
    more, less = (
        stats.norm.cdf((count - tau) / sigma) * (count > 0) for count in (n_rows + 1, n_rows)
    )
    found = get_threshold_log_ratio(n_rows, 0, 3, sigma, tau)
    assert found == pytest.approx(3 * np.log((1 - more) / (1 - less)))
    found = get_threshold_log_ratio(n_rows, 2, 3, sigma, tau)
    if n_rows == 0:
        assert found == np.inf
    else:
        expected = 2 * np.log(more / less) + 3 * np.log((1 - more) / (1 - less))
        assert found == pytest.approx(expected)


def test_a_table_whose_answers_are_not_known_is_refused():
    X, y = crowd(90)
    transcript = seeded(FORESTS[0])._fit_transcript(X, y)
    X[3, 0] = 0.9
    with pytest.raises(ValueError, match="all rows are equal"):
        get_log_ratios(transcript, X, y)
