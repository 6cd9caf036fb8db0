"""GuidedLumberjackClassifier: its releases, its guidance and its switches."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.utils.estimator_checks import parametrize_with_checks

from lumberjack import (
    CategoricalFeature,
    FeatureSchema,
    GuidedLumberjackClassifier,
    NumericFeature,
)
from lumberjack.accounting import Group, Structure, calibrate_joint
from lumberjack.guide import NO_GUIDE
from lumberjack.keyed_draws import keyed_bits
from lumberjack.splits import (
    NO_SPLIT,
    SplitRule,
    draw_guided_split,
    make_guided_scratch,
    make_path,
)
from lumberjack_bench.ablation import AblatedLumberjackClassifier

SCHEMA = FeatureSchema(
    (
        NumericFeature("x", 0, 1),
        CategoricalFeature("colour", ("red", "green", "blue")),
        NumericFeature("noise", 0, 1),
    ),
    classes=("no", "yes"),
)


def table(n_rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "x": rng.uniform(size=n_rows),
            "colour": rng.choice(["red", "green", "blue"], n_rows),
            "noise": rng.uniform(size=n_rows),
        }
    )
    y = np.where((X.x > 0.6) | (X.colour == "red"), "yes", "no")
    return X, y


def forest(cls=GuidedLumberjackClassifier, **parameters):
    # The closed form, for speed.
    defaults = {"epsilon": 2.0, "schema": SCHEMA, "n_estimators": 8, "accounting": "safe"}
    return cls(**(defaults | {"random_state": 1, "noise_seed": 2} | parameters))


def ablated(**parameters):
    return forest(AblatedLumberjackClassifier, **parameters)


@pytest.mark.filterwarnings("ignore::lumberjack.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore::lumberjack.DataOutsideSchemaWarning")
@parametrize_with_checks(
    [GuidedLumberjackClassifier(noise_seed=0, random_state=0, n_estimators=3, accounting="safe")]
)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("accounting", ["safe", "separate"])
@pytest.mark.parametrize("vote", ["soft", "hard"])
@pytest.mark.parametrize("is_guided", [True, False])
@pytest.mark.parametrize("is_stacked", [True, False])
def test_every_combination_of_switches_learns(accounting, vote, is_guided, is_stacked):
    X, y = table()
    model = ablated(
        accounting=accounting, vote=vote, is_guided=is_guided, is_stacked=is_stacked, epsilon=4.0
    ).fit(X, y)
    assert (model.predict(X) == y).mean() > 0.8
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1)
    released = ["structure", "leaves"] + ["stack"] * is_stacked
    if is_guided or is_stacked:
        released.insert(0, "guide")
    assert [release.name for release in model.ledger_.releases] == released
    assert (model.guide_ is None) == ("guide" not in released)
    assert (model.stack_weights_ is None) == (not is_stacked)
    assert hasattr(model, "feature_importances_") == ("guide" in released)
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (4.0, 1e-6)


def test_three_classes_are_learned():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(6000, 2))
    y = (3 * X[:, 0]).astype(int)
    model = GuidedLumberjackClassifier(
        epsilon=4, bounds=(0, 1), classes=[0, 1, 2], accounting="safe", random_state=0, noise_seed=0
    ).fit(X, y)
    assert (model.predict(X) == y).mean() > 0.9


def test_the_ledger_lists_four_releases_with_the_noise_of_the_joint_calibration():
    X, y = table(300)
    model = forest(max_depth=100).fit(X, y)
    trees, others = Structure("structure", 8 * 7, 0.45), [
        Group("leaves", 8, 0.22),
        Group("guide", 3, 0.28, is_first=True),
        Group("stack", 1, 0.05),
    ]  # fmt: skip
    expected = calibrate_joint(2.0, 1e-6, trees, others)
    found = [release.group for release in model.ledger_.releases]
    assert [group.name for group in found] == ["guide", "structure", "leaves", "stack"]
    for group in found:
        assert group.scale == pytest.approx(expected[group.name].scale)
        assert (group.count, group.is_first) == (expected[group.name].count, group.name == "guide")


def test_without_guide_and_stack_their_shares_go_to_the_others():
    X, y = table(300)
    model = ablated(is_guided=False, is_stacked=False, max_depth=100).fit(X, y)
    given = ablated(
        is_guided=False, is_stacked=False, max_depth=100,
        budget={"structure": 0.45 / 0.67, "leaves": 0.22 / 0.67},
    ).fit(X, y)  # fmt: skip
    for first, second in zip(model.ledger_.releases, given.ledger_.releases, strict=True):
        assert first.group.scale == pytest.approx(second.group.scale)


def test_separate_guarantees_add_up():
    X, y = table(300)
    model = ablated(accounting="separate").fit(X, y)
    parts = [release.guarantee for release in model.ledger_.releases]
    assert sum(part.epsilon for part in parts) == pytest.approx(2.0)
    assert sum(part.delta for part in parts) == pytest.approx(1e-6)


@pytest.mark.slow
def test_tight_accounting_needs_less_noise_than_safe():
    X, y = table(300)
    safe, tight = (
        forest(accounting=name, epsilon=1.0).fit(X, y).ledger_.releases
        for name in ("safe", "tight")
    )
    for theirs, ours in zip(safe, tight, strict=True):
        assert 0.8 < ours.group.scale / theirs.group.scale < 0.95


def test_the_fitted_forest_keeps_what_was_released_and_no_rows_at_any_number_of_threads():
    X, y = table(1000)
    model = forest().fit(X, y)
    threaded = forest(n_jobs=3).fit(X, y)
    assert np.array_equal(model.predict_proba(X), threaded.predict_proba(X))
    assert set(vars(model)) == set(model.get_params()) | {
        "schema_", "estimators_", "ledger_", "guarantee_", "classes_",
        "n_features_in_", "feature_names_in_", "guide_", "stack_weights_",
    }  # fmt: skip
    sizes = [array.size for array in (model.guide_.cumulative, model.guide_.evidence)]
    assert sizes == [2 * (257 + 4 + 257), 2 * (256 + 3 + 256)]
    assert model.stack_weights_.shape == (2 + 3,)


def test_a_fit_that_fails_leaves_the_former_model_as_it_was():
    X, y = table(1000)
    model = forest().fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="not among the classes"):
        model.fit(X, np.where(y == "no", "maybe", y))
    assert np.array_equal(model.predict_proba(X), before)


def test_categories_of_many_kinds_are_cut_by_their_class_shares():
    # Half of 60 categories speak for one class: a tree that isolates them one by one needs 30 cuts.
    rng = np.random.default_rng(0)
    schema = FeatureSchema((CategoricalFeature("c", tuple(range(60))),), (0, 1))
    codes = rng.integers(0, 60, 20_000)
    y = (np.isin(codes, rng.permutation(60)[:30]) ^ (rng.random(20_000) < 0.1)).astype(int)
    model = ablated(
        epsilon=1.0, schema=schema, n_estimators=5, max_depth=7, is_stacked=False, random_state=0
    ).fit(codes[:, None], y)
    assert model.score(codes[:, None], y) > 0.85


def test_categories_that_the_schema_does_not_list_say_nothing():
    X, y = table()
    model = forest(epsilon=8.0).fit(X, y)
    strange = X.assign(colour="violet")
    with_strange = model.predict_proba(strange)
    by_x = np.corrcoef(with_strange[:, 1], X.x)[0, 1]
    assert by_x > 0.7
    assert np.isfinite(with_strange).all()


# Two features of one class-by-value table each; the first tells the classes apart at 0.5, the
# second says nothing: Gini gains 1/2 (at the best cut) and 0.
def two_feature_guide():
    edges = np.linspace(0, 1, 5)
    telling = np.column_stack([np.minimum(edges, 0.5), np.maximum(edges - 0.5, 0)]) * 2000
    silent = np.column_stack([edges, edges]) * 1000
    return NO_GUIDE._replace(
        cumulative=np.vstack([telling, silent]),
        first=np.array([0, 5]),
        n_bins=np.array([4, 4]),
        lower=np.zeros(2),
        upper=np.ones(2),
        is_category=np.zeros(2, dtype=bool),
    )


def guided_splits(guide, n_candidates=1, exploration=0.0, n_draws=3000, bounds=None):
    path, scratch = make_path(np.zeros(2, dtype=np.int64)), make_guided_scratch(2, 2)
    path.lower[:], path.upper[:] = (guide.lower, guide.upper) if bounds is None else bounds
    rule = SplitRule(n_candidates, 1.0, exploration, 0.0)
    keys = [np.uint64(keyed_bits(np.uint64(seed), 0)) for seed in range(n_draws)]
    return [draw_guided_split(key, path, guide, rule, scratch) for key in keys]


def test_a_feature_that_tells_the_classes_apart_is_always_drawn():
    assert {feature for feature, _ in guided_splits(two_feature_guide())} == {0}


def test_categories_are_cut_between_two_of_them():
    guide = two_feature_guide()._replace(
        lower=np.full(2, -0.5), upper=np.full(2, 3.5), is_category=np.ones(2, dtype=bool)
    )
    assert {cut for _, cut in guided_splits(guide, exploration=0.5)} == {0.5, 1.5, 2.5}
    # With one category left there is nothing to cut.
    one_left = ([0.5, 2.5], [1.5, 3.5])
    assert guided_splits(guide, n_draws=1, bounds=one_left)[0][0] == NO_SPLIT


def test_exploration_draws_features_uniformly():
    drawn = [feature for feature, _ in guided_splits(two_feature_guide(), exploration=1.0)]
    assert stats.binomtest(drawn.count(0), len(drawn)).pvalue > 1e-4


def test_more_candidates_give_better_cuts():
    distance = [
        np.mean([abs(cut - 0.5) for _, cut in guided_splits(two_feature_guide(), n)])
        for n in (1, 8)
    ]
    # One uniform cut is 1/4 away on average; the nearest of 8 is 1/18 away.
    assert distance[0] == pytest.approx(1 / 4, abs=0.02)
    assert distance[1] == pytest.approx(1 / 18, abs=0.01)


def test_importances_come_from_the_released_guide():
    X, y = table()
    model = forest(epsilon=8.0).fit(X, y)
    importances = model.feature_importances_
    assert importances.sum() == pytest.approx(1.0)
    assert importances.argmin() == 2
    information = model.guide_.mutual_information()
    assert importances == pytest.approx(information / information.sum())
    assert not hasattr(GuidedLumberjackClassifier(), "feature_importances_")


def test_guided_splits_prefer_the_informative_features():
    X, y = table()
    roots = forest(n_estimators=60, epsilon=8.0).fit(X, y).estimators_
    features = np.array([tree.feature[0] for tree in roots])
    # Feature 2 is noise: it is drawn when exploring, one time in thirty.
    assert np.mean(features == 2) < 0.15


BUDGET = {"structure": 0.45, "guide": 0.28, "leaves": 0.22, "stack": 0.05}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"budget": BUDGET | {"leaves": 0.5}}, "must add up to 1, got 0.45 + 0.28 + 0.5 + 0.05"),
        ({"budget": BUDGET | {"guide": 0.0}}, "the budget of guide must lie in (0, 1], got 0.0"),
        ({"budget": {"structure": 0.5, "leaves": 0.5}}, "a share for each of structure, leaves"),
        ({"budget": BUDGET | {"trees": 0.1}}, "and for nothing else"),
        ({"budget": 0.5}, "budget"),
        ({"accounting": "paper"}, "accounting"),
        ({"accounting": "separate"}, "accounting"),
        ({"epsilon": 0}, "epsilon"),
    ],
)
def test_bad_parameters_are_refused_in_one_line(parameters, message):
    X, y = table(50)
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared below
        forest(**parameters).fit(X, y)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_no_event_betrays_a_record_more_than_promised():
    # Neighbours: t records of class 1 against one more, with t where the root's query is most
    # uncertain. Everything a model says is reduced to (nodes, sign of the
    # intercept, leanings of the leaves), the
    # worst event is chosen on one half of the runs and measured on the other.
    epsilon, delta, runs = 1.0, 0.05, 1000
    schema = FeatureSchema((NumericFeature("x", 0, 1),), classes=(0, 1))

    def model(n_rows, seed):
        return GuidedLumberjackClassifier(
            epsilon, delta, n_estimators=1, max_depth=1, schema=schema, accounting="safe",
            noise_seed=seed, random_state=0,
        ).fit(np.full((n_rows, 1), 0.7), np.ones(n_rows, dtype=int))  # fmt: skip

    threshold = 1 + model(3, 0).ledger_.releases[1].parameters["margin"]
    n_rows = round(threshold)

    def outcomes(count, first_seed):
        result = []
        for seed in range(first_seed, first_seed + runs):
            fitted = model(count, seed)
            tree = fitted.estimators_[0]
            share = tree.value[tree.children_left < 0][:, 1]
            intercept = bool(fitted.stack_weights_[0] > 0)
            result.append((tree.n_nodes, intercept, *np.round(4 * share).astype(int)))
        return result

    fewer, more = outcomes(n_rows, 0), outcomes(n_rows + 1, 10**6)
    half = runs // 2
    for first, second in ((fewer, more), (more, fewer)):
        seen = set(first) | set(second)
        event = {
            value
            for value in seen
            if first[:half].count(value) > np.exp(epsilon) * second[:half].count(value)
        }
        p = np.mean([value in event for value in first[half:]])
        q = np.mean([value in event for value in second[half:]])
        spread = 3 * np.sqrt((p * (1 - p) + np.exp(2 * epsilon) * q * (1 - q)) / half)
        assert p - np.exp(epsilon) * q <= delta + spread
