"""The rivals with Gaussian noise: what one record changes, what the noise of all releases adds up to."""

import math

import numpy as np
import pytest
from mixed_rows import mixed_schema, mixed_table
from scipy.stats import norm
from sklearn.metrics import log_loss

from baselines.adassp import AdaSSPClassifier, _to_shares
from baselines.dp_boosted_random_trees import (
    DPBoostedRandomTrees,
    choose_depth,
    curvature_weight,
    draw_splits,
    find_leaves,
    sum_in_leaves,
)
from baselines.dp_logistic_regression import DPLogisticRegression, length_of_way
from baselines.dp_naive_bayes import DPNaiveBayes, choose_n_bins
from baselines.gaussian_classifier import GaussianClassifier
from baselines.logistic_regression import LogisticRegressionReference
from baselines.one_hot_cells import one_hot_cells, unit_rows
from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature

ROOT_2 = math.sqrt(2)
RIVALS = {
    "logistic regression": (DPLogisticRegression, {}),
    "naive Bayes": (DPNaiveBayes, {}),
    "boosted random trees": (DPBoostedRandomTrees, {"n_estimators": 50}),
    "AdaSSP": (AdaSSPClassifier, {}),
    "boosted AdaSSP": (AdaSSPClassifier, {"n_rounds": 5}),
}


@pytest.fixture(params=RIVALS)
def make(request):
    rival, settings = RIVALS[request.param]
    return lambda **more: rival(random_state=0, noise_seed=1, **(settings | more))


class NoNoise:
    """A generator that keeps what it is asked for and adds nothing."""

    def __init__(self):
        self.asked = []

    def normal(self, *, scale, size=None):
        self.asked.append((scale, size))
        return 0.0 if size is None else np.zeros(size)


def releases(rival, n_rows, n_classes, monkeypatch, **settings):
    noise = NoNoise()
    monkeypatch.setattr(GaussianClassifier, "_noise_generator", lambda self: noise)
    rival(schema=mixed_schema(n_classes), random_state=0, **settings).fit(
        *mixed_table(n_rows, n_classes)
    )
    return noise.asked


def sensitivities(rival, n_classes, settings):
    """What one record changes of each release, by hand; zero for what the one before counts in."""
    if rival is DPLogisticRegression:
        return [1, *[ROOT_2] * 100]
    if rival is DPNaiveBayes:
        return [1, math.sqrt(4)]
    if rival is DPBoostedRandomTrees:
        return [1, *[ROOT_2, 0] * settings["n_estimators"]]
    return [1, math.sqrt(1 - 1 / n_classes), *[ROOT_2] * (settings.get("n_rounds", 1) - 1)]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", RIVALS)
def test_all_releases_together_spend_the_budget_and_no_more(kind, n_classes, monkeypatch):
    rival, settings = RIVALS[kind]
    epsilon, delta = 0.7, 1e-5
    asked = releases(rival, 300, n_classes, monkeypatch, epsilon=epsilon, delta=delta, **settings)
    changes = sensitivities(rival, n_classes, settings)
    mu = math.sqrt(sum((c / scale) ** 2 for c, (scale, _) in zip(changes, asked, strict=True)))
    spent = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert spent == pytest.approx(delta, rel=1e-6)
    if rival is DPBoostedRandomTrees:
        gradient, curvature = asked[1][0], asked[2][0]
        assert gradient / curvature == pytest.approx(curvature_weight(n_classes))


@pytest.mark.parametrize("kind", RIVALS)
def test_nothing_but_the_released_number_of_rows_depends_on_it(kind, monkeypatch):
    rival, settings = RIVALS[kind]
    monkeypatch.setattr(GaussianClassifier, "_buy_size", lambda self, n_rows, noise: (200.0, 0.3))
    few, many = (releases(rival, n, 2, monkeypatch, **settings) for n in (100, 400))
    assert few == many


def test_cells_are_bins_between_the_bounds_and_categories_and_unseen_ones_are_in_none():
    schema = FeatureSchema(
        (NumericFeature("a", 0, 8), CategoricalFeature("c", (0, 1)), NumericFeature("k", 3, 3)),
        (0, 1),
    )
    table = np.array([[0.0, 0, 3], [5, 1, 3], [8, -1, 3]])
    expected = [[1, 0, 0, 0, 1, 0, 1, 0, 0, 0], [0, 0, 1, 0, 0, 1, 1, 0, 0, 0]]
    expected.append([0, 0, 0, 1, 0, 0, 1, 0, 0, 0])
    assert np.array_equal(one_hot_cells(table, schema, 4).toarray(), expected)
    # Three cells, two scaled numbers and the intercept: norm 1 where each is 1 or -1.
    rows = unit_rows(table, schema, 4).toarray()
    assert rows[:, 10:] * math.sqrt(6) == pytest.approx(
        np.array([[-1, -1, 1], [0.25, -1, 1], [1, -1, 1]])
    )
    assert np.linalg.norm(rows, axis=1) ** 2 == pytest.approx([1, (5 + 0.25**2) / 6, 5 / 6])


@pytest.mark.parametrize("n_classes", [2, 3, 4, 10])
def test_gradient_and_curvature_of_a_record_have_a_norm_of_at_most_root_two(n_classes):
    generator = np.random.default_rng(0)
    scores = np.exp(generator.uniform(-3, 4, (200_000, 1))) * generator.normal(
        size=(200_000, n_classes)
    )
    # The worst: one wrong class against the right one, and, of three classes, two that share all.
    scores[:1000] = -60
    scores[:1000, 1] = np.linspace(-62, -30, 1000)
    scores[1000, :] = -60
    scores[1000, 1:3] = 0
    labels = generator.integers(0, n_classes, len(scores))
    labels[:1001] = 0

    def largest(weight):
        gradient, curvature = sum_in_leaves(np.arange(len(scores)), labels, scores, len(scores))
        return np.linalg.norm(np.hstack([gradient, weight * curvature]), axis=1).max()

    weight = curvature_weight(n_classes)
    assert largest(weight) <= ROOT_2 * (1 + 1e-12)
    assert largest(1.005 * weight) > ROOT_2


def test_a_prediction_of_the_regression_is_a_distribution_wherever_its_scores_lie():
    shares = _to_shares(np.random.default_rng(0).normal(scale=5, size=(1000, 3)))
    assert shares.min() > 0
    assert shares.sum(axis=1) == pytest.approx(1)


def test_a_row_goes_left_up_to_the_threshold_or_with_its_category():
    schema = mixed_schema()
    X, _ = mixed_table(200)
    splits = draw_splits(schema, 3, np.random.default_rng(0))
    expected = []
    for row in X:
        node = 0
        for _ in range(3):
            x, cut = row[splits.feature[node]], splits.cut[node]
            is_left = x == cut if splits.feature[node] in (1, 3) else x <= cut
            node = 2 * node + 1 + (not is_left)
        expected.append(node - 7)
    assert find_leaves(X, splits).tolist() == expected
    assert len(set(expected)) > 1


def test_depth_number_of_bins_and_length_of_way_follow_the_noise():
    # 15 standard deviations in an average leaf: 15 * 2^4 * 10 = 2400 rows.
    assert [choose_depth(n, 10.0) for n in (1, 2399, 2401, 1e9)] == [1, 3, 4, 8]
    assert choose_depth(1, 0.0) == 8
    # 30 standard deviations in an average bin: 30 * 2^4 * 10 = 4800 rows.
    assert [choose_n_bins(n, 10.0) for n in (1, 4799, 4801, 1e9)] == [2, 8, 16, 256]
    assert choose_n_bins(1, 0.0) == 256
    # A step for a mean gradient of 1 is divided by n; noise sqrt(2) / mu: 0.7 nats at mu = 0.1.
    way = length_of_way(1000, 0.1)
    assert way / 1000 * ROOT_2 / 0.1 == pytest.approx(0.7)
    assert length_of_way(1e6, math.inf) == length_of_way(1e9, 1.0)


def test_more_budget_gives_more_accuracy_and_better_probabilities(make):
    X, y = mixed_table(3000, 3)
    X_test, y_test = mixed_table(1000, 3, seed=1)
    accuracy, loss = [], []
    for epsilon in (0.02, 2.0, math.inf):
        model = make(schema=mixed_schema(3), epsilon=epsilon).fit(X, y)
        accuracy.append(model.score(X_test, y_test))
        loss.append(log_loss(y_test, model.predict_proba(X_test)))
    assert accuracy[0] + 0.1 < accuracy[1] <= accuracy[2]
    assert loss[0] > loss[1] > loss[2]


def test_without_noise_the_private_regression_comes_near_its_ceiling():
    X, y = mixed_table(3000, 2)
    y = np.where(np.random.default_rng(0).random(3000) < 0.1, 1 - y, y)
    private, ceiling = (
        rival(schema=mixed_schema(), epsilon=math.inf, noise_seed=0).fit(X, y)
        for rival in (DPLogisticRegression, LogisticRegressionReference)
    )
    assert private.predict_proba(X) == pytest.approx(ceiling.predict_proba(X), abs=0.05)


def test_the_card_says_what_is_released_and_claims_both_parameters(make):
    card = make(schema=mixed_schema(), epsilon=2.0, delta=1e-5).privacy_card()
    assert (card.status, card.claimed.epsilon, card.claimed.delta) == ("holds", 2.0, 1e-5)
    assert "sensitivity" in card.source
    with pytest.raises(ValueError, match="'delta'"):
        make(schema=mixed_schema(), delta=0.0).privacy_card()
