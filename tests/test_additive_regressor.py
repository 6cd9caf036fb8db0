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
from lumberjack.additive_regressor import _columns_of
from lumberjack.residual_descent import (
    clip_residuals,
    draw_tree,
    feature_blocks,
    get_way,
    scale_blocks,
    sum_residuals,
    weigh_features,
)
from lumberjack.target_guide import (
    N_LEVELS,
    TargetScale,
    find_cells,
    release_cells,
    release_scale,
    sum_cells,
)


def model(**parameters):
    defaults = {"epsilon": 2.0, "schema": SCHEMA, "random_state": 1, "noise_seed": 2, "n_steps": 50}
    return AdditiveForestRegressor(**(defaults | {"n_estimators": 5} | parameters))


class NoNoise:
    """A generator that keeps what it is asked for and adds nothing."""

    def __init__(self):
        self.asked = []

    def normal(self, *, scale, size):
        self.asked.append((scale, size))
        return np.zeros(size)


# Noise is seeded because several checks fit twice and compare. No check is expected to fail.
@pytest.mark.filterwarnings("ignore::lumberjack.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore::lumberjack.DataOutsideSchemaWarning")
@parametrize_with_checks(
    [AdditiveForestRegressor(noise_seed=0, random_state=0, n_estimators=3, n_steps=20)]
)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def test_it_learns_what_the_forest_learns_and_more():
    X, y = table()
    X_test, y_test = table(seed=1)
    forest = LumberjackRegressor(2.0, schema=SCHEMA, noise_seed=2, random_state=1).fit(X, y)
    own = model(n_steps=200, n_estimators=30).fit(X, y).score(X_test, y_test)
    assert own > 0.9
    assert own > forest.score(X_test, y_test)


def test_a_product_of_two_features_is_found_by_the_trees():
    rng = np.random.default_rng(5)
    schema = FeatureSchema(
        (NumericFeature("a", 0, 1), NumericFeature("b", 0, 1)), target_bounds=(0, 1)
    )
    X = rng.uniform(size=(20_000, 2))
    y = ((X[:, 0] > 0.5) != (X[:, 1] > 0.5)).astype(float)
    found = model(schema=schema, epsilon=8.0, n_estimators=30, n_steps=200).fit(X, y)
    assert found.score(X, y) > 0.6


def coded(n_rows=61, odd=(2.0, -1.0)):
    """Encoded rows, the last one odd, and shares of targets."""
    rng = np.random.default_rng(3)
    values = np.column_stack([rng.uniform(size=n_rows), rng.integers(3, size=n_rows)])
    values[-1] = np.clip(odd[0], 0, 1), odd[1]
    return values, rng.uniform(size=n_rows)


SCALE = TargetScale(60.0, 0.4, 0.2, 0.3)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.4, 0.43, 0.7, 1.0])
@pytest.mark.parametrize("odd", [(0.0, 0.0), (1.0, 2.0), (0.3, -1.0)])
def test_a_record_changes_one_cell_per_feature_by_at_most_one(share, odd):
    values, shares = coded(odd=odd)
    shares[-1] = share
    sizes = np.array([16, 3])
    cells = find_cells(values, SCHEMA, sizes)
    with_it, without = (
        sum_cells(cells, shares, SCALE, sizes),
        sum_cells(cells[:-1], shares[:-1], SCALE, sizes),
    )
    for column, one, other in zip(cells[-1], with_it, without, strict=True):
        change = one - other
        # (1 - u, u) has norm^2 1 - 2 u (1 - u), and 1 where the target is clipped; an unseen one has no cell.
        u = (min(max((share - 0.4) / 0.3, -1), 1) + 1) / 2
        expected = math.sqrt(1 - 2 * u * (1 - u)) if column >= 0 else 0.0
        assert np.linalg.norm(change) == pytest.approx(expected, abs=1e-12)
        assert np.linalg.norm(change) <= 1 + 1e-12


def design(values, schema=SCHEMA, n_trees=4, seed=0):
    """Blocks, scales and columns of rows, made of noisy cells."""
    rng = np.random.default_rng(seed)
    fit_values, shares = coded(500)
    cells = release_cells(fit_values, shares, schema, SCALE, 2.0, rng)
    blocks, trees = feature_blocks(cells), []
    for number in range(n_trees):
        tree, masses = draw_tree(
            3, weigh_features(cells), np.array([c.level_masses for c in cells]), rng
        )
        trees.append(tree)
        blocks.append(type(blocks[0])(masses, np.empty(0, dtype=np.int64), number))
    scales = scale_blocks(blocks, n_trees, weigh_features(cells))
    own = find_cells(values, schema, np.array([len(c.masses) for c in cells]))
    return blocks, scales, _columns_of(own, cells, blocks, trees)


# Whatever the model is and wherever the record stands, its entries are at most 1 long and its residual at most c.
@pytest.mark.parametrize("odd", [(0.0, 0.0), (1.0, 2.0), (0.3, -1.0)])
@pytest.mark.parametrize("target", [0.0, 0.45, 1.0])
@pytest.mark.parametrize("state", ["zero", "random", "huge"])
def test_a_record_changes_the_sums_of_a_step_by_at_most_the_clip(odd, target, state):
    values, shares = coded(odd=odd)
    shares[-1] = target
    blocks, scales, columns = design(values)
    n_columns = sum(len(block.masses) for block in blocks)
    factor = {"zero": 0.0, "random": 1.0, "huge": 1e6}[state]
    weights = factor * np.random.default_rng(1).normal(size=n_columns)
    found = []
    for rows in (slice(None), slice(-1)):
        residuals, sums = np.empty(len(columns[rows])), np.zeros(n_columns)
        clip_residuals(columns[rows], scales, weights, 0.4, shares[rows], 0.3, residuals)
        sum_residuals(columns[rows], scales, residuals, sums)
        found.append(sums)
    change = np.linalg.norm(found[0] - found[1])
    assert change <= 0.3 * (1 + 1e-9)
    if state == "huge" and odd[1] >= 0:
        # The bound is reached.
        assert change == pytest.approx(0.3)


def test_all_releases_together_spend_the_budget_and_no_more(monkeypatch):
    noise, epsilon, delta = NoNoise(), 0.7, 1e-5
    monkeypatch.setattr(
        "lumberjack.additive_regressor.make_generator", lambda seed: _Both(noise, seed)
    )
    X, y = table(500)
    fitted = model(epsilon=epsilon, delta=delta).fit(X, y)
    sigma = fitted.ledger_.releases[0].group.sigma
    width = release_scale(fitted._read_labels(y, SCHEMA), sigma, NoNoise()).width
    # By hand: the histogram changes by 1, the cells of two features by 1 each, each of 50 steps by c.
    changes = [1.0, 1.0, 1.0, *[width] * 50]
    scales = [scale for scale, _ in noise.asked]
    assert len(scales) == len(changes)
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


def test_trees_and_blocks_have_masses_of_sum_one_and_rows_a_norm_of_one():
    values, _ = coded()
    blocks, scales, columns = design(values)
    for block in blocks:
        assert block.masses.sum() == pytest.approx(1.0)
    # Rounded down, so that it is never more.
    assert 1 - 1e-9 < scales @ scales <= 1.0
    assert (columns[:-1] >= 0).all()
    assert (columns[-1] < 0).sum() >= 1
    ends = np.cumsum([len(block.masses) for block in blocks])
    assert (columns < ends).all()


def test_masses_of_leaves_are_those_of_independent_features():
    rng = np.random.default_rng(2)
    level_masses = rng.dirichlet(np.ones(N_LEVELS), size=3)
    tree, masses = draw_tree(4, np.full(3, 1 / 3), level_masses, rng)
    levels = np.column_stack([rng.choice(N_LEVELS, size=200_000, p=p) for p in level_masses])
    leaves = tree.apply(levels.astype(float), np.zeros(3, dtype=bool)) - 15
    assert np.bincount(leaves, minlength=16) / 200_000 == pytest.approx(masses, abs=0.005)


def test_the_way_is_short_where_the_noise_is_large_and_stable_where_it_is_not():
    values, _ = coded()
    blocks, scales, _ = design(values)
    quiet, loud = (get_way(blocks, scales, SCALE, 100, sigma) for sigma in (1e-6, 50.0))
    curvature = scales**2 @ [block.masses.max() for block in blocks] + 0.1
    assert quiet == pytest.approx(100 / (60 * curvature))
    # Noise of a prediction: tau times that of the sum of 100 steps over their number.
    assert loud * SCALE.width * 50.0 / 10 == pytest.approx(0.25 * SCALE.spread)


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
        "schema_", "intercept_", "shapes_", "cells_", "estimators_", "ledger_", "guarantee_",
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
