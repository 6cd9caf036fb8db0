"""Stacking: its derivatives, what one record changes in them, and its noise."""

import numpy as np
import pytest
from released_guide import release_guide
from scipy import optimize, special

from lumberjack import CategoricalFeature, FeatureSchema, NumericFeature
from lumberjack.forest import GrownTree
from lumberjack.noise import from_fixed_point
from lumberjack.stacking import (
    Block,
    _contrasts,
    add_noise,
    fit_weights,
    get_scales,
    predict_stacked,
    release_stack,
    sum_derivatives,
    to_unit_vector,
)
from lumberjack_bench.ablation import AblatedLumberjackClassifier


def schema_of(n_classes):
    return FeatureSchema(
        (
            NumericFeature("x", -1, 3),
            CategoricalFeature("c", ("a", "b", "d", "e")),
            NumericFeature("constant", 5, 5),
        ),
        tuple(range(n_classes)),
    )


def rows_and_guide(n_classes, n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.uniform(-1, 3, n_rows), rng.integers(-1, 4, n_rows), np.full(n_rows, 5.0)]
    )
    y = rng.integers(0, n_classes, n_rows)
    y[X[:, 0] > 1] = 0
    y[X[:, 1] == 2] = n_classes - 1
    shares = rng.dirichlet(np.ones(n_classes), n_rows)
    guide = release_guide(np.asfortranarray(X), y, schema_of(n_classes), 2.0, rng)
    return guide.to_guide_scale(X), y, shares, guide


def log_likelihood(weights, scaled, y, shares, guide, bound=np.inf):
    """Sum over rows, from the definition: softmax of intercepts, forest and evidence."""
    n_classes = shares.shape[1]
    forest = np.log(np.maximum(shares, 0.02))
    columns = [np.tile(row, (len(y), 1)) for row in _contrasts(n_classes)]
    columns.append(forest - forest.mean(axis=1, keepdims=True))
    start = 0
    for j, n_cells in enumerate(guide.n_bins):
        width = guide.upper[j] - guide.lower[j]
        column = np.zeros((len(y), n_classes))
        for i, x in enumerate(scaled[:, j]):
            if guide.is_category[j] and x != round(x):
                continue  # a category that the schema does not list
            cell = min(int((x - guide.lower[j]) / width * n_cells), n_cells - 1) if width else 0
            column[i] = guide.evidence[start + cell]
        columns.append(column)
        start += n_cells
    phi = np.stack(columns, axis=2)
    norms = np.sqrt((phi**2).sum(axis=(1, 2)))
    scores = phi @ weights * np.minimum(1, bound / norms)[:, None]
    return special.log_softmax(scores, axis=1)[np.arange(len(y)), y].sum()


@pytest.mark.parametrize("bound", [np.inf, 1.0])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_derivatives_are_those_of_the_log_likelihood(n_classes, bound):
    scaled, y, shares, guide = rows_and_guide(n_classes, n_rows=60)
    weights = np.random.default_rng(1).normal(size=n_classes + 3)

    def derivatives(at):
        sums = sum_derivatives(scaled, y, shares, _contrasts(n_classes), guide, at, np.inf)
        return [from_fixed_point(one) for one in sums]

    gradient, hessian = derivatives(weights)
    numeric = optimize.approx_fprime(weights, log_likelihood, 1e-6, scaled, y, shares, guide)
    assert gradient == pytest.approx(numeric, abs=1e-3)
    for a in range(len(weights)):
        step = np.zeros(len(weights))
        step[a] = 1e-4
        slope = (derivatives(weights + step)[0] - derivatives(weights - step)[0]) / 2e-4
        assert -slope == pytest.approx(hessian[a], abs=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_one_record_changes_the_vector_by_no_more_than_one(n_classes):
    # Adding a record adds its own term (sums are over records), so single records are all cases.
    scaled, _, shares, guide = rows_and_guide(n_classes)
    rng = np.random.default_rng(2)
    largest = 0.0
    for i in range(len(scaled)):
        # Weights that make the model certain of a wrong class, or undecided between two.
        weights = rng.normal(scale=rng.choice([0.0, 0.3, 3.0]), size=n_classes + 3)
        for label in range(n_classes):
            sums = sum_derivatives(
                scaled[[i]], np.array([label]), shares[[i]], _contrasts(n_classes),
                guide, weights, 2.0,
            )  # fmt: skip
            largest = max(largest, np.linalg.norm(to_unit_vector(*map(from_fixed_point, sums))))
    assert 0.3 < largest <= 1


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_no_record_at_all_changes_it_by_more(n_classes):
    # Any matrix of norm B and any probabilities, by ascent from many starts: the proof is checked
    # without its argument. Rank two is enough for the search to disprove that rank one is worst.
    rng = np.random.default_rng(3)
    by_gradient, by_hessian = get_scales(2.0)

    def negative_norm(x):
        phi = x[n_classes:].reshape(n_classes, 2)
        phi = phi - phi.mean(axis=0)
        phi *= 2.0 / max(np.linalg.norm(phi), 1e-9)
        q = special.softmax(x[:n_classes])
        gradient = phi.T @ (np.eye(n_classes)[0] - q)
        hessian = phi.T @ (np.diag(q) - np.outer(q, q)) @ phi
        return -np.hypot(
            np.linalg.norm(gradient) / by_gradient, np.linalg.norm(hessian) / by_hessian
        )

    largest = max(
        -optimize.minimize(negative_norm, rng.normal(scale=2.0, size=3 * n_classes)).fun
        for _ in range(40)
    )
    assert 1 - 1e-6 < largest <= 1


def test_the_bound_is_reached_twice():
    # phi = B (1, -1)/sqrt(2): at p = 1/golden ratio, and where the model is certain of the wrong class.
    phi = 2.0 * np.array([[1.0], [-1.0]]) / np.sqrt(2)
    for p in ((np.sqrt(5) - 1) / 2, 1.0):
        q = np.array([1 - p, p])
        gradient = phi.T @ (np.array([1.0, 0.0]) - q)
        hessian = phi.T @ (np.diag(q) - np.outer(q, q)) @ phi
        assert np.linalg.norm(to_unit_vector(gradient, hessian)) == pytest.approx(1, abs=1e-11)


def test_sums_are_sums_over_records():
    scaled, y, shares, guide = rows_and_guide(3)
    arguments = (_contrasts(3), guide, np.full(6, 0.3), 2.0)
    whole = sum_derivatives(scaled, y, shares, *arguments)
    parts = [sum_derivatives(scaled[[i]], y[[i]], shares[[i]], *arguments) for i in range(len(y))]
    for position in (0, 1):
        assert np.array_equal(whole[position], sum(part[position] for part in parts))


@pytest.mark.parametrize("vote", ["soft", "hard"])
def test_a_row_is_judged_by_its_leaf_without_the_row(vote):
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, 200)
    leaf_of_row = rng.integers(0, 5, 200).astype(np.int32)
    noise = rng.normal(scale=4.0, size=(5, 3))
    counts = np.zeros((5, 3))
    np.add.at(counts, (leaf_of_row, labels), 1.0)
    grown = [GrownTree(None, counts + noise, leaf_of_row)]
    found = AblatedLumberjackClassifier(vote=vote)._left_out_shares(labels, grown)
    for row in range(200):
        without = np.zeros((5, 3))
        others = np.arange(200) != row
        np.add.at(without, (leaf_of_row[others], labels[others]), 1.0)
        left = (without + noise)[leaf_of_row[row]]
        if vote == "hard":  # moved halfway to uniform
            expected = (np.eye(3)[left.argmax()] + 1 / 3) / 2
        else:
            left = np.maximum(left, 0)
            expected = left / left.sum() if left.sum() > 0 else np.full(3, 1 / 3)
        assert found[row] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("noise", ["continuous", "discrete"])
def test_the_noise_has_the_scale_of_the_sensitivity(noise):
    rng = np.random.default_rng(4)
    size, sigma, bound = 4, 3.0, 2.0
    nothing = np.zeros(size, dtype=np.int64), np.zeros((size, size), dtype=np.int64)
    draws = [add_noise(*nothing, sigma, bound, rng, noise=noise) for _ in range(4000)]
    gradients = np.array([gradient for gradient, _ in draws])
    hessians = np.array([hessian for _, hessian in draws])
    assert np.array_equal(hessians, hessians.transpose(0, 2, 1))
    off_diagonal = ~np.eye(size, dtype=bool)
    golden = (1 + np.sqrt(5)) / 2
    assert gradients.std() == pytest.approx(sigma * np.sqrt(2) * bound, rel=0.03)
    diagonal = sigma * 2 * golden**-2.5 * bound**2
    assert hessians[:, ~off_diagonal].std() == pytest.approx(diagonal, rel=0.03)
    assert hessians[:, off_diagonal].std() == pytest.approx(diagonal / np.sqrt(2), rel=0.03)
    above = hessians[:, *np.triu_indices(size)]
    assert np.abs(np.corrcoef(above.T) - np.eye(above.shape[1])).max() < 0.08


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_noise_the_step_raises_the_likelihood(n_classes):
    scaled, y, shares, guide = rows_and_guide(n_classes, n_rows=3000)
    start = np.concatenate([np.zeros(n_classes - 1), [1.0], np.full(3, 0.2)])
    released = release_stack([Block(scaled, y, shares)], guide, 1e-6, np.random.default_rng(0))
    weights = fit_weights(released, n_classes, 1e-6)
    data = (scaled, y, shares, guide, 2.0)
    gained = log_likelihood(weights, *data)
    assert gained > log_likelihood(start, *data) + 100
    # Shares here are noise: the model stops listening to the forest and hears the features.
    assert 0 <= weights[n_classes - 1] < 0.3
    assert weights[n_classes] > 0.3
    probabilities = predict_stacked(scaled, shares, guide, weights)
    assert probabilities.sum(axis=1) == pytest.approx(1)
    assert np.log(probabilities[np.arange(len(y)), y]).sum() == pytest.approx(gained, rel=1e-9)


def unit_cube(n_features, n_classes):
    features = tuple(NumericFeature(f"x{j}", 0, 1) for j in range(n_features))
    return FeatureSchema(features, tuple(range(n_classes)))


def additive_table(n_rows, n_classes, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_rows, 24))
    scores = np.stack([(X * np.cos(np.arange(24) + k)).sum(axis=1) for k in range(n_classes)], 1)
    scores -= scores.mean(axis=0)
    return X, (2 * scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("vote", ["soft", "hard"])
def test_stacking_helps_where_many_features_speak_a_little(n_classes, vote):
    X, y = additive_table(40_000, n_classes, 0)
    new_X, new_y = additive_table(10_000, n_classes, 1)
    accuracies = {
        is_stacked: AblatedLumberjackClassifier(
            8.0, schema=unit_cube(24, n_classes), is_stacked=is_stacked, vote=vote,
            accounting="safe", random_state=0, noise_seed=0,
        ).fit(X, y).score(new_X, new_y)
        for is_stacked in (True, False)
    }  # fmt: skip
    assert accuracies[True] > accuracies[False] + 0.005


def test_stacking_does_no_harm_where_the_forest_knows_all():
    # A chess board: no feature says anything by itself.
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40_000, 2))
    y = ((2 * X).astype(int).sum(axis=1)) % 2
    stacked, plain = (
        AblatedLumberjackClassifier(
            4.0, schema=unit_cube(2, 2), is_stacked=is_stacked, accounting="safe",
            random_state=0, noise_seed=0,
        ).fit(X, y).score(X, y)
        for is_stacked in (True, False)
    )  # fmt: skip
    assert stacked > 0.9
    assert stacked > plain - 0.01
