"""The additive regression: what each of its releases changes by a record, what they cost, what is kept."""

import math
import pickle

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_regressor import FEATURES, SCHEMA, table

from lumberjack import (
    AdditiveForestRegressor,
    CategoricalFeature,
    FeatureSchema,
    LumberjackRegressor,
    NumericFeature,
)
from lumberjack.accounting import gaussian
from lumberjack.additive_cells import find_cells, make_bins, sum_bins
from lumberjack.additive_regressor import _get_way
from lumberjack.additive_terms import (
    add_up_groups,
    get_design,
    get_row_factors,
    group_bins,
    join_groups,
    make_terms,
    weigh_evidence,
)
from lumberjack.descent import LONGEST_WAY, DescentRows, sum_gradient, to_gradient
from lumberjack.noise import FRACTION_BITS
from lumberjack.target_scale import release_scale

UNIT = 2.0**-FRACTION_BITS


def model(**parameters):
    defaults = {"epsilon": 2.0, "schema": SCHEMA, "random_state": 1, "noise_seed": 2}
    return AdditiveForestRegressor(**(defaults | parameters))


class NoNoise:
    """A generator that keeps what it is asked for and adds nothing."""

    def __init__(self):
        self.asked = []

    def normal(self, *, scale, size=None):
        self.asked.append((scale, size))
        return np.zeros(size)


# Noise is seeded because several checks fit twice and compare. No check is expected to fail.
@pytest.mark.filterwarnings("ignore::lumberjack.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore::lumberjack.DataOutsideSchemaWarning")
@parametrize_with_checks([AdditiveForestRegressor(noise_seed=0, random_state=0)])
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def test_it_learns_what_the_forest_learns_and_more():
    X, y = table()
    X_test, y_test = table(seed=1)
    forest = LumberjackRegressor(2.0, schema=SCHEMA, noise_seed=2, random_state=1).fit(X, y)
    own = model().fit(X, y).score(X_test, y_test)
    assert own > 0.9
    assert own > forest.score(X_test, y_test)


def test_a_product_of_two_features_is_found_by_the_trees():
    rng = np.random.default_rng(5)
    schema = FeatureSchema(
        (NumericFeature("a", 0, 1), NumericFeature("b", 0, 1)), target_bounds=(0, 1)
    )
    X = rng.uniform(size=(20_000, 2))
    y = ((X[:, 0] > 0.5) != (X[:, 1] > 0.5)).astype(float)
    found = model(schema=schema, epsilon=8.0).fit(X, y)
    assert found.score(X, y) > 0.6


def coded(n_rows=61, odd=(2.0, -1.0)):
    """Encoded rows, the last one odd, and shares of targets."""
    rng = np.random.default_rng(3)
    values = np.column_stack([rng.uniform(size=n_rows), rng.integers(3, size=n_rows)])
    values[-1] = np.clip(odd[0], 0, 1), odd[1]
    return np.asfortranarray(values), rng.uniform(size=n_rows)


# (1 - u, u) has norm^2 1 - 2 u (1 - u), at most 1; of an unseen category there is no bin.
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("odd", [(0.0, 0.0), (1.0, 2.0), (0.3, -1.0)])
def test_a_record_changes_one_bin_per_feature_by_at_most_one(share, odd):
    values, shares = coded(odd=odd)
    shares[-1] = share
    bins = make_bins(SCHEMA)
    change = UNIT * (sum_bins(values, shares, bins) - sum_bins(values[:-1], shares[:-1], bins))
    for f, is_seen in enumerate([True, odd[1] >= 0]):
        own = change[bins.block(f)]
        assert np.linalg.norm(own) <= 1.0
        expected = math.sqrt(1 - 2 * share * (1 - share)) if is_seen else 0.0
        assert np.linalg.norm(own) == pytest.approx(expected, abs=1e-9)
    assert (change.any(axis=1).sum()) == 1 + (odd[1] >= 0)


def design():
    values, shares = coded(500)
    rng = np.random.default_rng(0)
    bins = make_bins(SCHEMA)
    groups = group_bins(np.zeros(bins.size), bins, 64, 500.0, 1.0)
    first_group, places = join_groups(groups, bins)
    sums = UNIT * add_up_groups(sum_bins(values, shares, bins), places)
    noisy = np.split(sums + rng.normal(size=sums.shape), first_group)
    evidence = weigh_evidence(noisy, groups, bins, np.array([0.5, 0.5]), 1.0)
    return make_terms(bins, evidence, get_design(100.0), rng)


# Whatever the model is and wherever the record stands, its vector is at most 1 long and its residual at most 1.
@pytest.mark.parametrize("odd", [(0.0, 0.0), (1.0, 2.0), (0.3, -1.0)])
@pytest.mark.parametrize("target", [-40.0, -0.2, 0.0, 0.9, 1e6])
@pytest.mark.parametrize("state", ["zero", "random", "huge"])
def test_a_record_changes_a_gradient_by_at_most_one(odd, target, state):
    terms = design()
    values, labels = coded(odd=odd)
    labels[-1] = target
    factor = {"zero": 0.0, "random": 1.0, "huge": 1e6}[state]
    says = factor * np.random.default_rng(1).normal(size=(len(terms.squared_norm), 1))
    gradients = []
    for rows in (slice(None), slice(-1)):
        cells = find_cells(values[rows], terms.cells)
        start = np.zeros((len(cells), 1), dtype=np.float32)
        descent = DescentRows(cells, get_row_factors(cells, terms), start, labels[rows])
        sums = sum_gradient(descent, terms.cells.first, says, np.array([0.1]))
        gradients.append(UNIT * to_gradient(sums, terms))
    change = np.linalg.norm(gradients[0] - gradients[1])
    assert change <= 1.0
    if abs(target) > 1 and state == "zero" and odd[1] >= 0:
        # The residual is clipped; the record's vector may be shorter than 1.
        assert change > 0.5


def test_all_releases_together_spend_the_budget_and_no_more(monkeypatch):
    noise, epsilon, delta = NoNoise(), 0.7, 1e-5
    monkeypatch.setattr(
        "lumberjack.additive_regressor.make_generator", lambda seed: _Both(noise, seed)
    )
    X, y = table(500)
    fitted = model(epsilon=epsilon, delta=delta).fit(X, y)
    # By hand: the target's histogram and those of two features change by 1 each, every step by 1. Sums are in
    # fixed point, and so is their noise.
    scales = [np.unique(scale).item() for scale, _ in noise.asked]
    n_steps = fitted.ledger_.releases[2].group.count
    assert len(scales) == 2 + n_steps
    changes = [1.0, math.sqrt(2) / UNIT, *[1 / UNIT] * n_steps]
    mu = math.sqrt(
        sum((change / scale) ** 2 for change, scale in zip(changes, scales, strict=True))
    )
    assert gaussian.get_delta(epsilon, mu) <= delta
    assert gaussian.get_delta(epsilon, mu * 1.0001) > delta
    assert fitted.ledger_.get_delta(epsilon) == pytest.approx(gaussian.get_delta(epsilon, mu))


class _Both:
    """Structure from a real generator, noise from none."""

    def __init__(self, noise, seed):
        self.normal = noise.normal
        real = np.random.default_rng(seed)
        self.choice, self.integers = real.choice, real.integers


def test_the_clip_leaves_out_a_small_share_and_noise_makes_it_no_smaller():
    shares = np.clip(np.random.default_rng(0).normal(0.3, 0.05, size=50_000), 0, 1)
    exact = release_scale(shares, 1e-3, np.random.default_rng(1))
    assert exact.centre == pytest.approx(0.3, abs=0.002)
    assert exact.spread == pytest.approx(0.05, abs=0.003)
    is_clipped = np.abs(shares - exact.centre) > exact.width
    # Of a normal law 0.5 % lie farther than 2.8 deviations; cells are 1/64 wide.
    assert 0.05 * 2.8 - 1 / 64 < exact.width < 0.05 * 2.8 + 2 / 64
    assert is_clipped.mean() < 0.005
    noisy = release_scale(shares, 100.0, np.random.default_rng(1))
    assert noisy.width >= exact.width
    assert release_scale(shares[:20], 100.0, np.random.default_rng(1)).width > 0.5


def test_the_way_is_short_where_the_noise_is_large_and_ends_where_it_is_not():
    quiet, loud = _get_way(100.0, 1000.0, 0.3), _get_way(0.01, 1000.0, 0.3)
    assert quiet.length == pytest.approx(LONGEST_WAY / 4 / 1000)
    # Noise of a score where nothing has converged: the way times the noise of the mean of all gradients.
    assert loud.length * loud.sigma / math.sqrt(loud.n_steps) == pytest.approx(0.3 * 0.3)
    for way, mu in ((quiet, 100.0), (loud, 0.01)):
        assert math.sqrt(way.n_steps) / way.sigma == pytest.approx(mu)


def test_another_unit_of_the_target_gives_the_same_predictions_in_it():
    X, y = table()
    schema = FeatureSchema(FEATURES, label="price", target_bounds=(-1000, 3000))
    found = model(schema=schema).fit(X, 100 * y).predict(X)
    assert found == pytest.approx(100 * model().fit(X, y).predict(X), abs=0.05)


def test_the_same_seeds_give_the_same_model_at_any_number_of_threads_and_a_pickle_keeps_it():
    X, y = table(1001)
    first, second = (model(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 3))
    assert np.array_equal(first.predict(X), second.predict(X))
    again = pickle.loads(pickle.dumps(first))
    assert np.array_equal(again.predict(X), first.predict(X))
    assert set(vars(again)) == set(again.get_params()) | {
        "schema_", "scale_", "terms_", "model_", "ledger_", "guarantee_",
        "n_features_in_", "feature_names_in_",
    }  # fmt: skip


def test_unseen_categories_and_constant_features_are_no_event():
    schema = FeatureSchema(
        (NumericFeature("x", 1, 1), CategoricalFeature("c", ("a",)), NumericFeature("y", 0, 1)),
        target_bounds=(0, 1),
    )
    rng = np.random.default_rng(0)
    X = np.array(
        [[1, "a" if i % 3 else "?", v] for i, v in enumerate(rng.uniform(size=300))], dtype=object
    )
    with pytest.warns(UserWarning, match="categories the schema does not list"):
        fitted = model(schema=schema).fit(X, X[:, 2].astype(float))
    assert np.isfinite(fitted.predict(X)).all()
