"""Suihkonen (re-derived): worked values, laws by draws, the violations of one mode and not the other."""

import numpy as np
import pytest

from baselines.greedy_trees import (
    NO_FEATURE,
    Budgets,
    Rules,
    _count_between_thresholds,
    _draw_subset,
    grow_tree,
    lay_out,
    split_score,
)
from baselines.private_median import draw_private_median
from baselines.suihkonen import SuihkonenClassifier, exponents, plan_budget
from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature


def counts(*values):
    return np.array(values, dtype=np.int64)


def binary_features(*left_and_right):
    """Return a table of two-category features, each given as ((left counts), (right counts))."""
    columns = []
    for left, right in left_and_right:
        columns.append(np.repeat([0.0, 1, 0, 1], [left[0], right[0], left[1], right[1]]))
    n_zero = left_and_right[0][0][0] + left_and_right[0][1][0]
    table = np.column_stack(columns)
    labels = np.repeat([0, 1], [n_zero, len(table) - n_zero])
    return table, labels


def grow_stumps(table, labels, n_categories, budgets, n_trees):
    features = tuple(
        CategoricalFeature(f"f{j}", tuple(range(n))) for j, n in enumerate(n_categories)
    )
    columns = lay_out(table, labels, FeatureSchema(features, (0, 1)))
    noise = np.random.default_rng(0)
    rules = Rules(1, 3, False, False, 1)
    return [grow_tree(columns, rules, budgets, noise, noise) for _ in range(n_trees)]


@pytest.mark.parametrize(
    ("epsilon", "level", "leaf"),
    [(0.5, 0.0023810, 0.0166667), (1, 0.0047619, 0.0333333), (8, 0.0380952, 0.266667)],
)
def test_the_budget_is_divided_over_trees_levels_and_leaves(epsilon, level, leaf):
    # eps / 15; half of it over 7 levels; the other half for the leaves.
    assert plan_budget(epsilon, 15, 7, 0.5) == pytest.approx((level, leaf), rel=1e-4)


@pytest.mark.parametrize(
    ("epsilon", "law"),
    [
        (1.0, [0.031878, 0.086654, 0.471098, 0.346614, 0.063756]),
        (0.5, [0.059951, 0.098843, 0.325930, 0.395373, 0.119903]),
    ],
)
def test_the_private_median_weighs_intervals_by_width_and_balance(epsilon, law):
    # x = 1, 2, 4, 8 in [0, 10]: widths 1, 1, 2, 4, 2; |N_left - N_right| = 4, 2, 0, 2, 4;
    # weights width * exp(-epsilon |.| / 2).
    edges = np.array([0.0, 1, 2, 4, 8, 10])
    weights = np.diff(edges) * np.exp(-epsilon * np.array([4, 2, 0, 2, 4]) / 2)
    assert weights / weights.sum() == pytest.approx(law, abs=1e-6)
    generator = np.random.default_rng(0)
    scratch = np.empty(5)
    given = (edges[1:-1], counts(1, 1, 1, 1), 0.0, 10.0, epsilon / 2)
    drawn = np.array([draw_private_median(*given, scratch, generator) for _ in range(100_000)])
    # Four standard deviations of a share of 1e5 draws are at most 0.0063.
    assert np.bincount(drawn[:, 1].astype(int)) / 1e5 == pytest.approx(law, abs=0.0065)
    assert np.array_equal(np.searchsorted(edges, drawn[:, 0], side="right") - 1, drawn[:, 1])
    inside = drawn[drawn[:, 1] == 3, 0]
    # Uniform in [4, 8]: mean 6, standard deviation 4 / sqrt(12 * 35000) = 0.006.
    assert inside.mean() == pytest.approx(6, abs=0.03)


def test_repeated_values_make_intervals_without_width_and_a_constant_column_is_no_obstacle():
    generator, scratch = np.random.default_rng(0), np.empty(3)
    # 0, 0, 0, 10 in [0, 10]: only the interval between the zeros and the ten has width.
    ends = (np.array([0.0, 10]), counts(3, 1), 0.0, 10.0, 0.5)
    assert {draw_private_median(*ends, scratch, generator)[1] for _ in range(100)} == {1}
    constant = (np.zeros(1), counts(5), 0.0, 0.0, 0.5)
    assert draw_private_median(*constant, scratch, generator) == (0.0, 1)


def test_the_score_of_a_split_is_the_worked_impurity():
    # L = (30, 5), R = (10, 25): impurity 35 - 925/35 + 35 - 725/35 = 22.857143.
    assert split_score(counts(30, 5), counts(40, 30)) == pytest.approx(-22.857143, abs=1e-6)
    assert split_score(counts(0, 0), counts(0, 0)) == 0


@pytest.mark.parametrize(
    ("mode", "n_numeric", "expected"),
    [
        # Level budget 1 and leaf budget 1; an impurity moves by up to 2.
        ("corrected", 4, Budgets(0.5, 0.5, 1)),
        ("paper", 0, Budgets(0.5, 1, 0.5)),
        # Half a level for each of four medians and a split, and for the split twice what it allows.
        ("paper", 4, Budgets(0.25, 0.5, 0.5)),
    ],
)
def test_exponents_spend_the_level_once_only_in_corrected_mode(mode, n_numeric, expected):
    plan = plan_budget(2.0, 1, 1, 0.5)
    assert plan == (1, 1)
    assert exponents(plan, mode, n_numeric) == pytest.approx(expected)


def test_counts_between_thresholds_agree_with_what_prediction_does():
    # Integers on thresholds, values a rounding error away, and intervals of awkward ends.
    generator = np.random.default_rng(0)
    for lower, upper, values in (
        (0.0, 11.0, generator.integers(0, 12, 500).astype(float)),
        (-1 / 3, 0.7, generator.uniform(-1 / 3, 0.7, 500)),
        (0.1, 0.1, np.full(5, 0.1)),
    ):
        labels = generator.integers(0, 2, len(values))
        schema = FeatureSchema((NumericFeature("a", lower, upper),), (0, 1))
        columns = lay_out(values[:, np.newaxis], labels, schema)
        thresholds, cells = np.empty(10), np.ones((12, 2), dtype=np.int64)
        rows = np.arange(len(values))
        _count_between_thresholds(columns, rows, labels, 0, lower, upper, thresholds, cells)
        assert thresholds == pytest.approx(np.linspace(lower, upper, 12)[1:-1])
        for t in range(10):
            left = np.bincount(labels[values <= thresholds[t]], minlength=2)
            assert np.array_equal(cells[: t + 1].sum(axis=0), left)


def test_a_record_more_moves_the_impurity_by_less_than_two_and_never_down():
    # Brute force over the counts below 300 of a binary side: 0 to 1.9933 = 2 * 299 / 300.
    a, b = np.meshgrid(np.arange(300.0), np.arange(300.0))

    def impurity(a, b):
        return 2 * a * b / np.maximum(a + b, 1)

    step = impurity(a + 1, b) - impurity(a, b)
    assert step.min() == 0
    assert step.max() == pytest.approx(2 * 299 / 300)
    for left in ((3, 0), (0, 7), (299, 1)):
        expected = impurity(*map(float, left))
        assert -split_score(counts(*left), counts(*left)) == pytest.approx(expected)


@pytest.mark.parametrize(("exponent", "share"), [(0.05, 0.639093), (0.1, 0.758204)])
def test_a_split_is_drawn_by_the_exponential_mechanism(exponent, share):
    # Impurities 22.857143 and, of all on one side, 70 - 2500/70 = 34.285714: 11.428571 apart.
    table, labels = binary_features(((30, 5), (10, 25)), ((40, 30), (0, 0)))
    trees = grow_stumps(table, labels, [2, 2], Budgets(1, exponent, 1), 4000)
    # Four standard deviations: 4 * sqrt(0.68 * 0.32 / 4000) = 0.03.
    assert np.mean([tree.feature[0] == 0 for tree in trees]) == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize(
    ("leaf", "exponent", "share"),
    [
        ((10, 7), 0.25, 0.679179),
        ((10, 7), 0.5, 0.817574),
        ((10, 0), 0.05, 0.622459),
        ((10, 0), 0.1, 0.731059),
        ((0, 0), 1.0, 0.5),
    ],
)
def test_a_leaf_is_labelled_by_the_exponential_mechanism(leaf, exponent, share):
    # One feature of a single category has no split: the root is a leaf with all records.
    table, labels = np.zeros((sum(leaf), 1)), np.repeat([0, 1], leaf)
    trees = grow_stumps(table, labels, [1], Budgets(1, 1, exponent), 4000)
    assert all(tree.feature[0] == NO_FEATURE for tree in trees)
    assert np.mean([tree.label[0] == 0 for tree in trees]) == pytest.approx(share, abs=0.032)


def two_level_schema():
    return FeatureSchema(
        (
            NumericFeature("a", 0, 1),
            CategoricalFeature("c", tuple(range(6))),
            CategoricalFeature("d", tuple(range(41))),
            NumericFeature("constant", 2, 2),
            CategoricalFeature("one", (0,)),
        ),
        (0, 1, 2),
    )


def mixed_table(n_rows, seed):
    generator = np.random.default_rng(seed)
    X = np.column_stack(
        [
            generator.random(n_rows),
            generator.integers(0, 6, n_rows),
            generator.integers(-1, 41, n_rows),
            np.full(n_rows, 2.0),
            np.zeros(n_rows),
        ]
    )
    return X, np.where(X[:, 1] == 3, 2, X[:, 0] > 0.4).astype(int)


def test_the_corrected_mode_never_stops_early_and_the_paper_mode_does():
    X, _ = mixed_table(2000, 0)
    y = np.zeros(2000, dtype=int)
    settings = {"schema": two_level_schema(), "n_estimators": 3, "max_depth": 4}
    corrected = SuihkonenClassifier(mode="corrected", noise_seed=0, **settings).fit(X, y)
    assert corrected.fit_report() == {"mean_nodes_per_tree": 31}
    assert all((tree.feature[:15] != NO_FEATURE).all() for tree in corrected.trees_)
    empty_branches = SuihkonenClassifier(mode="corrected", noise_seed=0, **settings).fit(
        X[:1], y[:1]
    )
    assert empty_branches.fit_report() == {"mean_nodes_per_tree": 31}
    paper = SuihkonenClassifier(mode="paper", noise_seed=0, **settings).fit(X, y)
    assert paper.fit_report() == {"mean_nodes_per_tree": 1}


def test_a_pure_leaf_gives_its_records_away_in_paper_mode_only():
    # Neighbours: nine records of class 0, and one of class 1 more. In paper mode the first is never
    # labelled 1, the second in about half of the forests: no finite epsilon covers that.
    schema = FeatureSchema((NumericFeature("a", 0, 1),), (0, 1))
    X = np.linspace(0, 1, 10)[:, np.newaxis]
    y = np.repeat([0, 1], [9, 1])
    shares = {}
    for mode in ("paper", "corrected"):
        for n_rows in (9, 10):
            model = SuihkonenClassifier(
                schema=schema,
                mode=mode,
                epsilon=0.01,
                n_estimators=1000,
                smallest_node=20,
                max_depth=1,
                noise_seed=1,
            ).fit(X[:n_rows], y[:n_rows])
            shares[mode, n_rows] = model.predict_proba(X[:1])[0, 1]
    assert shares["paper", 9] == 0
    assert shares["paper", 10] == pytest.approx(0.5, abs=0.07)
    assert shares["corrected", 9] == pytest.approx(0.5, abs=0.07)
    assert shares["corrected", 10] == pytest.approx(0.5, abs=0.07)


def test_one_record_changes_the_law_of_a_corrected_stump_by_at_most_its_budget():
    # Exact: every split (three thresholds, two one-vs-rest sets count as one for two categories)
    # and every pair of leaf labels, for random small tables and each way to drop a record.
    def law(table, labels, budgets):
        scores, sides = [], []
        for threshold in (0.25, 0.5, 0.75):
            sides.append(table[:, 0] <= threshold)
        sides.append(table[:, 1] == 0)
        total = np.bincount(labels, minlength=2)
        leaves = [np.bincount(labels[side], minlength=2) for side in sides]
        scores = np.array([split_score(left, total) for left in leaves])
        split = np.exp(budgets.split * (scores - scores.max()))
        outcomes = []
        for probability, left in zip(split / split.sum(), leaves, strict=True):
            laws = []
            for leaf in (left, total - left):
                weights = np.exp(budgets.leaf * (leaf - leaf.max()))
                laws.append(weights / weights.sum())
            outcomes.append(probability * np.outer(*laws))
        return np.array(outcomes)

    budgets = exponents(plan_budget(1.0, 1, 1, 0.5), "corrected", 1)
    generator = np.random.default_rng(0)
    losses = []
    for _ in range(60):
        n_rows = int(generator.integers(2, 31))
        table = np.column_stack([generator.random(n_rows), generator.integers(0, 2, n_rows)])
        labels = (generator.random(n_rows) < generator.random() ** 3).astype(np.int64)
        whole = law(table, labels, budgets)
        for i in range(n_rows):
            part = law(np.delete(table, i, 0), np.delete(labels, i), budgets)
            losses.append(np.abs(np.log(whole / part)).max())
    assert max(losses) <= 1.0 + 1e-12
    # Near enough to the budget of 1 that twice the exponents would exceed it.
    assert max(losses) > 0.51
    # The compiled tree follows this law.
    schema = FeatureSchema((NumericFeature("a", 0, 1), CategoricalFeature("c", (0, 1))), (0, 1))
    columns = lay_out(table, labels, schema)
    noise = np.random.default_rng(1)
    seen = np.zeros((4, 2, 2))
    for _ in range(8000):
        tree = grow_tree(columns, Rules(1, 3, False, False, 1), budgets, noise, noise)
        place = 3 if tree.feature[0] == 1 else round(4 * tree.threshold[0]) - 1
        seen[place, tree.label[1], tree.label[2]] += 1
    # Four standard deviations of a share of 8000 draws are at most 0.022.
    assert seen / 8000 == pytest.approx(whole, abs=0.022)


@pytest.mark.parametrize("mode", ["paper", "corrected"])
@pytest.mark.parametrize("category_sets", ["one_vs_rest", "sampled_subsets"])
@pytest.mark.parametrize("epsilon", [50, np.inf])
def test_it_learns_in_every_way_of_splitting_categories(mode, category_sets, epsilon):
    X, y = mixed_table(4000, 1)
    model = SuihkonenClassifier(
        schema=two_level_schema(),
        epsilon=epsilon,
        mode=mode,
        category_sets=category_sets,
        noise_seed=2,
        random_state=2,
        n_estimators=7,
        max_depth=4,
    )
    assert model.fit(X, y).score(*mixed_table(1000, 2)) > 0.9


def test_sampled_subsets_have_uniform_sizes_up_to_eight_and_leave_a_category_out():
    generator = np.random.default_rng(0)
    for n_categories, largest in ((3, 2), (8, 7), (41, 8)):
        members = np.zeros((4000, n_categories), dtype=bool)
        for row in members:
            _draw_subset(n_categories, row, np.empty(n_categories, dtype=np.int64), generator)
        sizes = np.bincount(members.sum(axis=1), minlength=largest + 1)
        assert len(sizes) == largest + 1
        assert sizes[0] == 0
        # Four standard deviations of a share of 4000 draws are at most 0.032.
        assert sizes[1:] / 4000 == pytest.approx(np.full(largest, 1 / largest), abs=0.032)
        average_size = (largest + 1) / 2
        assert members.mean(axis=0) == pytest.approx(
            np.full(n_categories, average_size / n_categories), abs=0.035
        )


def test_the_cards_name_the_violations_and_the_re_derivation():
    paper = SuihkonenClassifier(schema=two_level_schema(), noise_seed=None).privacy_card()
    assert paper.method == "Suihkonen (re-derived)"
    assert paper.status == "broken"
    for word in ("re-derived", "line 496", "line 492", "line 242", "DiPriMe"):
        assert any(word in concern for concern in paper.concerns)
    corrected = SuihkonenClassifier(schema=two_level_schema(), mode="corrected").privacy_card()
    assert corrected.status == "holds"
    assert not any("line" in concern for concern in corrected.concerns)
    assert any("re-derived" in concern for concern in corrected.concerns)


def test_a_depth_that_memory_does_not_allow_is_refused():
    with pytest.raises(ValueError, match="'max_depth'"):
        SuihkonenClassifier(schema=two_level_schema(), max_depth=17).fit(*mixed_table(20, 0))
