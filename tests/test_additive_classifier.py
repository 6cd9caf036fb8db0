"""AdditiveForestClassifier: its releases, their sensitivities, and what it finds."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.utils.estimator_checks import parametrize_with_checks

import lumberjack.additive_classifier as module
import lumberjack.additive_terms
import lumberjack.descent
from lumberjack import AdditiveForestClassifier, CategoricalFeature, FeatureSchema, NumericFeature
from lumberjack.accounting import gaussian
from lumberjack.additive_cells import find_cells, make_bins
from lumberjack.additive_start import BOUND, GRADIENT_SCALE, HESSIAN_SCALE
from lumberjack.additive_terms import (
    get_design,
    get_intercept_length,
    get_row_factors,
    group_bins,
    make_terms,
    weigh_evidence,
)
from lumberjack.descent import sensitivity, to_gradient
from lumberjack.schema import UNSEEN

COLOURS = tuple(f"c{i}" for i in range(300))


def schema(n_classes=2, n_colours=5):
    features = (
        NumericFeature("x", 0, 1),
        NumericFeature("z", -5, 5),
        NumericFeature("fixed", 3, 3),
        CategoricalFeature("colour", COLOURS[:n_colours]),
    )
    return FeatureSchema(features, tuple(range(n_classes)))


def table(n_rows=3000, n_classes=2, n_colours=5, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.uniform(size=n_rows), "z": rng.uniform(-5, 5, n_rows), "fixed": 3.0})
    colour = rng.integers(n_colours, size=n_rows)
    X["colour"] = np.array(COLOURS)[colour]
    score = X.x * n_classes + 0.3 * rng.normal(size=n_rows) + 0.3 * (colour % 2)
    return X, np.clip(score.astype(int), 0, n_classes - 1)


def forest(epsilon=4.0, n_classes=2, n_colours=5, **parameters):
    seeds = {"random_state": 1, "noise_seed": 1}
    facts = schema(n_classes, n_colours)
    return AdditiveForestClassifier(epsilon, schema=facts, **(seeds | parameters))


def watched(model, X, y):
    """Return all releases of a fit: name, noisy vector and function of rows, in units of noise."""
    seen = []
    coded = model._read_training_rows(X, y)
    model._learn(coded, lambda *release: seen.append(release))
    return coded, seen


@pytest.mark.filterwarnings("ignore::lumberjack.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore::lumberjack.DataOutsideSchemaWarning")
@parametrize_with_checks([AdditiveForestClassifier(noise_seed=0, random_state=0)])
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_no_record_adds_more_than_the_budget_and_some_nearly_all_of_it(n_classes):
    X, y = table(2000, n_classes)
    coded, releases = watched(forest(8.0, n_classes), X, y)
    mu = gaussian.get_mu(8.0, 1e-6)
    groups = AdditiveForestClassifier.budget
    # Rows, and rows of other classes, codes of unseen categories among them.
    values = np.asfortranarray(np.vstack([coded.values[:40], coded.values[:40]]))
    values[60:, 3] = UNSEEN
    labels = np.concatenate([coded.labels[:40], (coded.labels[:40] + 1) % n_classes])
    largest = 0.0
    for i in range(len(values)):
        spent = dict.fromkeys(groups, 0.0)
        for name, _, add_up in releases:
            own = add_up(values[i : i + 1], labels[i : i + 1])
            spent[name] += float(own @ own)
        for name, square in spent.items():
            assert square <= groups[name] * mu**2 * (1 + 1e-9)
        assert spent["counts"] == pytest.approx(groups["counts"] * mu**2)
        largest = max(largest, spent["descent"] / (groups["descent"] * mu**2))
    # A class that the model excludes drives the residual to its bound.
    assert largest > 0.5


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sums_differ_by_the_record_wherever_it_stands_and_at_any_number_of_threads(n_classes):
    X, y = table(3000, n_classes)
    coded, releases = watched(forest(2.0, n_classes), X, y)
    record = (coded.values[:1], (coded.labels[:1] + 1) % n_classes)
    for name, _, add_up in (*releases[:5], releases[-1]):
        own = add_up(*record)
        whole = add_up(coded.values, coded.labels)
        for place in (0, 1500, 3000):
            more = [
                np.insert(part, place, new, axis=0)
                for part, new in zip((coded.values, coded.labels), record, strict=True)
            ]
            difference = add_up(np.asfortranarray(more[0]), more[1]) - whole
            # Gradients are rounded once more, to 2^-36 of an entry.
            np.testing.assert_allclose(difference, own, atol=1e-8 if name == "descent" else 1e-10)


def test_the_start_has_the_constant_of_its_proof_and_no_larger_one():
    phi5 = ((1 + math.sqrt(5)) / 2) ** 5
    r = np.linspace(0, 1, 100_001)
    assert (r**2 + phi5 * r**2 * (1 - r) ** 2).max() <= 1 + 1e-12
    assert (r**2 + 3.34**2 * r**2 * (1 - r) ** 2).max() > 1
    assert pytest.approx(BOUND * math.sqrt(2), rel=1e-8) == GRADIENT_SCALE
    assert pytest.approx(2 * BOUND**2 / math.sqrt(phi5), rel=1e-8) == HESSIAN_SCALE


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_no_record_of_the_start_is_longer_than_one_under_optimisation(n_classes):
    def length(free):
        phi, logits = free[: 2 * n_classes].reshape(n_classes, 2), free[2 * n_classes :]
        phi = phi * BOUND / max(np.linalg.norm(phi), 1e-9)
        q = np.exp(logits - logits.max())
        q /= q.sum()
        gradient = phi.T @ (np.eye(n_classes)[0] - q) / GRADIENT_SCALE
        hessian = phi.T @ (np.diag(q) - np.outer(q, q)) @ phi / HESSIAN_SCALE
        return -math.hypot(np.linalg.norm(gradient), np.linalg.norm(hessian))

    rng = np.random.default_rng(0)
    found = [
        -minimize(length, 2 * rng.normal(size=3 * n_classes), method="BFGS").fun for _ in range(20)
    ]
    assert 0.999 < max(found) <= 1.0


def test_a_record_of_a_gradient_is_no_longer_than_its_sensitivity():
    # |e_y - q|^2 over the simplex: largest where q is another class for certain.
    for n_classes in (2, 3, 6):
        q = np.random.default_rng(0).dirichlet(np.full(n_classes, 0.3), size=10_000)
        residual = np.eye(n_classes)[0] - q
        lengths = np.linalg.norm(residual[:, 1:] if n_classes == 2 else residual, axis=1)
        assert lengths.max() <= sensitivity(n_classes)
        assert lengths.max() > 0.99 * sensitivity(n_classes)


def terms_of(counts, ratio, features=None):
    """Return terms from histograms that hold `counts` in the first group of each feature alone."""
    facts = schema() if features is None else FeatureSchema(features, (0, 1))
    bins = make_bins(facts)
    groups = group_bins(np.zeros(bins.size), bins, 8, 100.0, 1.0)
    noisy = [np.zeros((int(groups[bins.block(f)].max()) + 1, 2)) for f in range(facts.n_features)]
    for histogram in noisy:
        histogram[0] = counts
    evidence = weigh_evidence(noisy, groups, bins, np.array([0.5, 0.5]), 1.0)
    return make_terms(bins, evidence, get_design(ratio), np.random.default_rng(0))


@pytest.mark.parametrize("counts", [(1e9, 0), (1e9, 1e9), (0, 0), (3, -1)])
@pytest.mark.parametrize("ratio", [1e-5, 30, 1e4])
def test_no_vector_is_longer_than_1_whatever_was_released(counts, ratio):
    terms = terms_of(counts, ratio)
    values = np.array([[0, -5, 3, UNSEEN], [0, -5, 3, 0], [1, 5, 3, 4]], dtype=np.float64)
    cells = find_cells(np.asfortranarray(values), terms.cells)
    factors = get_row_factors(cells, terms)
    # Sums of scaled rows stay as far from the ends of 64 bits as there are rows.
    assert factors.max() <= 1
    for own, factor in zip(cells, factors.tolist(), strict=True):
        sums = np.zeros((len(terms.is_seen), 1), dtype=np.int64)
        sums[terms.cells.first + own] = 2**36
        vector = factor * terms.to_slots(sums) / 2**36
        assert np.linalg.norm([*vector[:, 0], get_intercept_length()]) <= 1
    assert (terms.squared_norm >= 0).all()


def test_a_table_without_differences_is_not_scaled_up_without_end():
    terms = terms_of((1e9, 0), 1e-5, (CategoricalFeature("only", ("a",)),))
    cells = find_cells(np.zeros((1, 1)), terms.cells)
    assert get_row_factors(cells, terms) == pytest.approx(1, abs=1e-5)
    assert terms.scale.max() <= 8


def test_a_record_moves_a_gradient_alike_on_top_of_as_many_rows_as_are_allowed():
    terms = terms_of((1e3, 1e3), 1e3)
    own = np.zeros((len(terms.is_seen) + 1, 1), dtype=np.int64)
    own[terms.cells.first + 1] = 2**36
    many = np.zeros_like(own)
    many[terms.cells.first] = 2**59 + 12_345
    many[terms.cells.first + 1] = 2**59 + 54_321
    difference = to_gradient(many + own, terms) - to_gradient(many, terms) - to_gradient(own, terms)
    assert np.linalg.norm(difference) < 1e-6 * 2**36


def test_more_rows_than_64_bits_hold_sums_of_are_refused(monkeypatch):
    monkeypatch.setattr(lumberjack.descent, "_TOO_MANY_ROWS", 100)
    with pytest.raises(ValueError, match="fit fewer than 2\\^26 rows"):
        forest().fit(*table(100))


def test_more_categories_than_16_bits_hold_keep_cells_of_their_own():
    n_categories = 70_000
    colour = CategoricalFeature("colour", tuple(range(n_categories)))
    terms = terms_of((5, 5), 100, (colour,))
    codes = np.array([[0.0], [65_536.0], [n_categories - 1.0], [UNSEEN]])
    assert find_cells(codes, terms.cells)[:, 0].tolist() == [0, 65_536, 69_999, n_categories]


def test_the_noise_that_is_drawn_adds_up_to_the_budget(monkeypatch):
    X, y = table(500, 3)
    drawn = []

    def spy(function):
        def spied(sums, sigma, generator, **options):
            drawn.append(sigma)
            return function(sums, sigma, generator, **options)

        return spied

    for name in ("add_noise_to_counts", "add_noise_to_sums"):
        monkeypatch.setattr(module, name, spy(getattr(module, name)))
    monkeypatch.setattr(
        lumberjack.descent, "add_noise_to_sums", spy(lumberjack.descent.add_noise_to_sums)
    )
    model = forest(1.5, 3).fit(X, y)
    counts, values, histograms, start, *steps = drawn
    assert len(steps) == model.way_.n_steps
    squares = [1 / counts**2, 3 / values**2, len(X.columns) / histograms**2, 1 / start**2]
    mu = math.sqrt(sum(squares) + sum(2 / sigma**2 for sigma in steps))
    assert 0.999e-6 < gaussian.get_delta(1.5, mu) <= 1e-6
    assert model.ledger_.get_delta(1.5) <= 1e-6
    assert model.ledger_.get_epsilon(1e-6) == pytest.approx(1.5, rel=1e-6)


@pytest.mark.parametrize(("n_classes", "n_colours"), [(2, 5), (3, 300)])
def test_it_learns_and_the_same_at_any_number_of_threads(n_classes, n_colours):
    X, y = table(4000, n_classes, n_colours)
    one = forest(8.0, n_classes, n_colours).fit(X, y)
    two = forest(8.0, n_classes, n_colours, n_jobs=2).fit(X, y)
    expected = one.predict_proba(X)
    np.testing.assert_array_equal(two.predict_proba(X), expected)
    majority = np.bincount(y).max() / len(y)
    assert (one.predict(X) == y).mean() > majority + 0.2
    X.loc[:, "colour"] = "infrared"
    with pytest.warns(UserWarning, match="no entry of"):
        assert np.isfinite(one.predict_proba(X)).all()


def test_random_trees_find_what_no_single_feature_shows():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(20_000, 2))
    y = ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)).astype(int)
    model = AdditiveForestClassifier(
        8.0, bounds=(0, 1), classes=[0, 1], random_state=0, noise_seed=0
    )
    assert model.fit(X, y).score(X, y) > 0.8


def test_a_fitted_model_holds_nothing_of_the_rows():
    for n_rows in (1000, 4000):
        X, y = table(n_rows)
        model = forest().fit(X, y)
        parts = [*model.terms_, *model.terms_.cells, *model.terms_.cells.bins, *model.model_]
        arrays = [part for part in parts if hasattr(part, "shape")]
        assert len(arrays) > 15
        assert all(n_rows not in array.shape for array in arrays)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_curves_and_importances_show_what_a_feature_does():
    X, y = table(20_000)
    model = forest(8.0).fit(X, y)
    curve = model.get_curve("x")
    assert curve.scores.shape == (len(curve.values), 2)
    np.testing.assert_allclose(curve.scores.sum(axis=1), 0, atol=1e-9)
    high, low = curve.scores[curve.values > 0.8, 1].min(), curve.scores[curve.values < 0.2, 1].max()
    assert high > low + 4 * curve.noise.max()
    assert list(model.get_curve("colour").values) == list(COLOURS[:5])
    importances = model.feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert importances.argmax() == 0
    assert importances[2] < 0.01
    with pytest.raises(ValueError, match="there is no feature 'weight'; the features are"):
        model.get_curve("weight")


def test_curves_of_many_classes_are_centred_also_where_evidence_is_clipped(monkeypatch):
    monkeypatch.setattr(lumberjack.additive_terms, "_LARGEST_EVIDENCE", 0.2)
    X, y = table(1000, 5)
    model = forest(50.0, 5).fit(X, y)
    assert abs(model.terms_.evidence.sum(axis=1)).max() > 1e-3
    np.testing.assert_allclose(model.get_curve("x").scores.sum(axis=1), 0, atol=1e-9)


def test_bounds_far_wider_than_the_rows_cost_little():
    X, y = table(20_000)
    scores = []
    for upper in (1, 50):
        facts = {"bounds": {"x": (0, upper), "z": (-5, 5), "fixed": (3, 3)}, "classes": [0, 1]}
        model = AdditiveForestClassifier(
            1.0, **facts, categories={"colour": COLOURS[:5]}, random_state=0, noise_seed=0
        )
        scores.append(model.fit(X, y).score(X, y))
    assert scores[1] > scores[0] - 0.02


def test_a_table_without_numbers_pays_nothing_for_where_they_lie():
    X, y = table(3000)
    facts = {"categories": {"colour": COLOURS[:5]}, "classes": [0, 1]}
    model = AdditiveForestClassifier(4.0, **facts, random_state=0, noise_seed=0)
    model.fit(X[["colour"]], y)
    assert "values" not in [release.name for release in model.ledger_.releases]
    assert 0.999e-6 < model.ledger_.get_delta(4.0) <= 1e-6


def test_an_epsilon_too_small_for_its_noise_is_refused():
    X, y = table(100)
    with pytest.raises(ValueError, match="epsilon=1e-09 needs more noise"):
        forest(1e-9).fit(X, y)
