"""Smooth Sensitivity: depth, structure, leaf labels and vote, against values worked out by hand."""

import math

import numpy as np
import pytest
import scipy.stats
from mixed_rows import mixed_schema, mixed_table
from sklearn.base import clone

from baselines.keyed_trees import STOPPED, SplitSpace, draw_keys
from baselines.smooth_sensitivity import (
    SmoothSensitivityClassifier,
    deal_equal_parts,
    deal_independently,
    draw_smooth_sensitivity_labels,
    leaves_of_rows,
    smooth_sensitivity_probabilities,
    tree_depth,
)
from lumberjack.schema import CategoricalFeature, FeatureSchema


def share_of_trees_that_separate(rows, lower, upper, n_categories, depth, n_trees=4000):
    """Return how often the two rows end in different leaves."""
    rows = np.array(rows, dtype=float)
    space = SplitSpace(np.array(lower, float), np.array(upper, float), np.array(n_categories))
    keys = draw_keys(np.random.default_rng(0), n_trees)
    reached = np.array([leaves_of_rows(rows, space, key, depth) for key in keys])
    return (reached[:, 0] != reached[:, 1]).mean()


# ---- depth


@pytest.mark.parametrize(
    ("n_numeric", "n_categorical", "depth"),
    [
        (14, 0, 11),
        (6, 8, 9),  # Adult
        (0, 14, 7),
        (0, 8, 4),
        (10, 0, 8),
        (6, 4, 7),  # ACSIncome
        (6, 10, 10),  # ACSEmployment
        (9, 10, 12),  # ACSPublicCoverage
        (9, 7, 10),  # ACSTravelTime
        (16, 0, 12),
        (19, 0, 14),
        (1, 0, 2),
        (1, 1, 2),
        (2, 0, 2),
        (3, 0, 3),
        (4, 0, 4),
        (5, 0, 5),
        (8, 0, 7),
        (20, 0, 15),
        (50, 3, 15),
        (0, 40, 20),
    ],
)
def test_depth_is_the_one_of_the_authors_program(n_numeric, n_categorical, depth):
    assert tree_depth(n_numeric, n_categorical) == depth


# ---- parts


@pytest.mark.parametrize(("n_rows", "size", "left_out"), [(39074, 1302, 14), (43957, 1465, 7)])
def test_the_paper_mode_leaves_out_what_does_not_fill_a_part(n_rows, size, left_out):
    parts = deal_equal_parts(n_rows, 30, np.random.default_rng(0))
    assert [len(part) for part in parts] == [size] * 30
    dealt = np.concatenate(parts)
    assert len(np.unique(dealt)) == len(dealt) == n_rows - left_out
    assert (dealt[:1000] != np.arange(1000)).any()


def test_the_corrected_mode_deals_every_row_to_a_tree_of_its_own_choice():
    parts = deal_independently(30_000, 30, np.random.default_rng(0))
    assert sorted(np.concatenate(parts).tolist()) == list(range(30_000))
    # Neither too uneven for independent choices nor too even.
    assert 1e-4 < scipy.stats.chisquare([len(part) for part in parts]).pvalue < 1 - 1e-4
    again = deal_independently(30_000, 30, np.random.default_rng(1))
    assert not np.isin(again[0], parts[0]).all()
    assert deal_independently(0, 3, np.random.default_rng(0))[2].size == 0


# ---- structure


def test_a_threshold_separates_two_values_in_proportion_to_their_distance():
    # One numeric feature on [0, 10], one split: P = (7 - 4) / 10; 5 deviations of 4000 draws: 0.036.
    share = share_of_trees_that_separate([[4], [7]], [0], [10], [0], depth=1)
    assert share == pytest.approx(0.3, abs=0.036)


def test_the_second_threshold_is_uniform_in_what_the_first_left():
    # 0.25 and 0.75 on [0, 1]: the first separates with 1/2. After t < 1/4 the interval is [t, 1]:
    # 2 * integral over t in [0, 1/4] of 0.5 / (1 - t) = ln(4/3) = 0.288. Together 0.788; it would be
    # 0.769 if one side kept the whole interval. 5 deviations of 20,000 draws: 0.0145.
    share = share_of_trees_that_separate([[0.25], [0.75]], [0], [1], [0], depth=2, n_trees=20_000)
    assert share == pytest.approx(0.5 + math.log(4 / 3), abs=0.0145)


def test_a_value_at_the_threshold_of_a_constant_feature_goes_right_and_nothing_is_lost():
    share = share_of_trees_that_separate([[3], [3]], [3], [3], [0], depth=4, n_trees=100)
    assert share == 0


def test_a_category_has_a_child_of_its_own_and_is_used_once_on_a_path():
    # Rows differ in one of four categorical features, two splits: without replacement 2/4 (with
    # replacement it would be 7/16 = 0.4375); 5 deviations: 0.040.
    rows = [[0, 1, 2, 0], [0, 1, 2, 4]]
    share = share_of_trees_that_separate(rows, [0] * 4, [2, 2, 2, 4], [3, 3, 3, 5], depth=2)
    assert share == pytest.approx(0.5, abs=0.04)
    share = share_of_trees_that_separate(rows, [0] * 4, [2, 2, 2, 4], [3, 3, 3, 5], depth=4)
    assert share == 1


def test_features_of_both_kinds_are_equally_likely_candidates():
    # Numeric 0 and 10 of [0, 10] always separate when drawn, the category too: rows that differ in
    # the number only are separated by one split with 1/3 (three candidates), by two with
    # 1 - P(category, category) = 1 - 2/3 * 1/2 = 2/3.
    rows = [[0, 1, 1], [10, 1, 1]]
    domains = ([0, 0, 0], [10, 1, 1], [0, 2, 2])
    assert share_of_trees_that_separate(rows, *domains, depth=1) == pytest.approx(1 / 3, abs=0.038)
    assert share_of_trees_that_separate(rows, *domains, depth=2) == pytest.approx(2 / 3, abs=0.038)


def test_the_root_splits_even_where_the_depth_rule_gives_zero():
    # One categorical feature: depth floor(1/2) = 0.
    assert share_of_trees_that_separate([[0], [1]], [0], [1], [2], depth=0, n_trees=50) == 1


def test_a_path_ends_where_no_candidate_is_left():
    space = SplitSpace(np.zeros(2), np.ones(2), np.array([2, 2]))
    rows = np.array([[0.0, 1.0], [1.0, 1.0]])
    key = np.uint64(5)
    reached = [leaves_of_rows(rows, space, key, depth) for depth in (2, 50)]
    assert (reached[0] == reached[1]).all()


def test_a_category_outside_the_domain_stops_a_row_only_where_it_matters():
    space = SplitSpace(np.zeros(2), np.ones(2), np.array([2, 2]))
    rows = np.array([[-1.0, 1.0]])
    keys = draw_keys(np.random.default_rng(0), 2000)
    stopped = np.mean([leaves_of_rows(rows, space, key, 1)[0] == STOPPED for key in keys])
    assert stopped == pytest.approx(0.5, abs=0.056)


# ---- labels


@pytest.mark.parametrize(
    ("counts", "epsilon", "probabilities"),
    [
        ((10, 7), 0.5, (0.7540670, 0.2459330)),
        ((10, 7), 1.0, (0.9999565, 4.3497e-05)),
        ((12, 7), 0.5, (0.9545932, 0.0454068)),
        ((1, 0), 0.5, (0.6016106, 0.3983894)),
        ((1, 0), 1.0, (0.7956200, 0.2043800)),
        ((2, 1), 0.1, (0.5138111, 0.4861889)),
        ((5, 5), 0.5, (0.5, 0.5)),
        ((5, 5), 8.0, (0.5, 0.5)),
        ((3, 2, 2), 1.0, (0.6606055, 0.1696972, 0.1696972)),
        ((4, 4, 1), 1.0, (0.3836517, 0.3836517, 0.2326965)),
        ((100, 0), 1.0, (1.0, 1.93e-22)),
        ((3, 0), 8.0, (1.0, 1.93e-22)),
        ((0, 0, 0), 1.0, (1 / 3, 1 / 3, 1 / 3)),
        ((2, 0), math.inf, (1.0, 1.93e-22)),
    ],
)
def test_the_paper_modes_label_law_is_the_one_of_the_authors_program(
    counts, epsilon, probabilities
):
    law = smooth_sensitivity_probabilities(counts, epsilon)
    np.testing.assert_allclose(
        law, probabilities, rtol=2e-3 if min(probabilities) < 1e-20 else 2e-5
    )
    draws = draw_smooth_sensitivity_labels(
        np.tile(np.array(counts), (100_000, 1)), epsilon, np.random.default_rng(0)
    )
    shares = np.bincount(draws, minlength=len(counts)) / 100_000
    deviation = np.sqrt(law * (1 - law) / 100_000)
    assert (np.abs(shares - law) <= 5 * deviation + 1e-9).all()


def loss(counts, neighbour, epsilon):
    laws = (smooth_sensitivity_probabilities(c, epsilon) for c in (counts, neighbour))
    return np.abs(np.subtract(*map(np.log, laws))).max()


@pytest.mark.parametrize(
    ("epsilon", "counts", "neighbour", "expected"),
    [
        (0.5, (10, 7), (11, 7), 0.591),
        (0.5, (9, 0), (10, 0), 14.6),
        (1.0, (10, 7), (11, 7), 17.26),
        (1.0, (4, 0), (5, 0), 22.7),
        (2.0, (1, 0), (2, 0), 42.6),
        (4.0, (0, 0), (1, 0), 49.3),
        (8.0, (0, 0), (1, 0), 49.3),
    ],
)
def test_one_row_more_costs_the_paper_mode_more_than_epsilon(epsilon, counts, neighbour, expected):
    assert loss(counts, neighbour, epsilon) == pytest.approx(expected, rel=3e-3)
    assert loss(counts, neighbour, epsilon) > epsilon


def test_the_worst_loss_of_the_paper_mode_lies_far_above_any_small_epsilon():
    # eps = 0.1: 4.72 over all binary leaves with counts below 100 and one row more.
    worst = max(loss((a, b), (a + 1, b), 0.1) for a in range(100) for b in range(100))
    assert worst == pytest.approx(4.72, abs=0.01)


# ---- the classifier


@pytest.mark.parametrize(
    ("mode", "share"),
    [
        # One row in every leaf: the law of (1, 0) at eps = 0.5.
        ("paper", 0.6016106),
        # Poisson(1) rows in a leaf: 1 - E[exp(-c / 2)] / 2 = 1 - exp(exp(-1/2) - 1) / 2.
        ("corrected", 1 - math.exp(math.exp(-0.5) - 1) / 2),
    ],
)
def test_each_mode_deals_and_labels_in_its_own_way(mode, share):
    schema = FeatureSchema((CategoricalFeature("a", (0,)),), (0, 1))
    model = SmoothSensitivityClassifier(
        schema=schema, epsilon=0.5, mode=mode, n_estimators=8000, noise_seed=0
    ).fit(np.zeros((8000, 1)), np.zeros(8000))
    # 5 standard deviations of 8000 labels.
    assert model.predict_proba([[0]])[0, 0] == pytest.approx(share, abs=0.0265)


@pytest.mark.parametrize("mode", ["paper", "corrected"])
def test_five_classes_are_learnt_and_vote_shares_agree_with_predictions(mode):
    X, y = mixed_table(20_000, n_classes=5)
    model = SmoothSensitivityClassifier(
        schema=mixed_schema(5), epsilon=20.0, mode=mode, random_state=0, noise_seed=0
    ).fit(X, y)
    assert model.score(X, y) > 0.75
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (shares.argmax(axis=1) == model.predict(X)).all()


def test_a_leaf_that_no_training_row_reached_has_one_uniform_label_for_good():
    # 12 categorical features of 4 values, depth 6: 4096 leaves, the training rows reach one.
    schema = FeatureSchema(
        tuple(CategoricalFeature(f"f{j}", (0, 1, 2, 3)) for j in range(12)), (0, 1, 2)
    )
    model = SmoothSensitivityClassifier(
        schema=schema, epsilon=50.0, n_estimators=1, random_state=0, noise_seed=0
    ).fit(np.zeros((50, 12)), np.full(50, 2))
    rows = np.random.default_rng(0).integers(0, 4, size=(20_000, 12)).astype(float)
    predicted = model.predict(rows)
    space = SplitSpace.of(schema)
    keys = leaves_of_rows(rows, space, model.tree_keys_[0], model.depth_)
    _, first, leaf = np.unique(keys, return_index=True, return_inverse=True)
    assert (predicted == predicted[first][leaf]).all()
    assert len(first) > 3900
    assert scipy.stats.chisquare(np.bincount(predicted[first], minlength=3)).pvalue > 1e-4
    assert (model.predict(np.zeros((1, 12))) == 2).all()
    assert (model.set_params(n_jobs=2).predict(rows) == predicted).all()
    # Another noise seed, other labels: they are part of the noise, not of the structure.
    other = clone(model).set_params(noise_seed=1).fit(np.zeros((50, 12)), np.full(50, 2))
    assert (other.predict(rows) != predicted).any()
    assert (other.tree_keys_ == model.tree_keys_).all()


def test_unseen_categories_are_counted_nowhere_and_get_no_vote():
    schema = FeatureSchema((CategoricalFeature("a", (0, 1)),), (0, 1))
    X = np.array([[0.0]] * 300 + [[1.0]] * 300 + [[-1.0]] * 3000)
    y = np.array([0] * 300 + [1] * 300 + [1] * 3000)
    model = SmoothSensitivityClassifier(schema=schema, epsilon=20.0, n_estimators=5, noise_seed=0)
    model.fit(X, y)
    assert [len(known) for known in model.known_leaves_] == [2] * 5
    assert model.predict([[0.0], [1.0], [-1.0]]).tolist() == [0, 1, 0]
    np.testing.assert_allclose(model.predict_proba([[-1.0]]), [[0.5, 0.5]])


def test_a_tied_vote_goes_to_the_lowest_class():
    # Two trees with one leaf each, one saying 2 and one saying 1, whichever part it got.
    schema = FeatureSchema((CategoricalFeature("a", (0,)),), (0, 1, 2))
    for seed in range(50):
        model = SmoothSensitivityClassifier(
            schema=schema, epsilon=50.0, n_estimators=2, noise_seed=seed
        ).fit([[0], [0]], [2, 1])
        if model.predict_proba([[0]])[0].tolist() == [0, 0.5, 0.5]:
            assert model.predict([[0]]).tolist() == [1]
            return
    pytest.fail("no forest had a tie")


def test_structure_does_not_move_when_a_row_with_extreme_values_is_added():
    X, y = mixed_table(200)
    model = SmoothSensitivityClassifier(schema=mixed_schema(), mode="corrected", random_state=3)
    keys = model.fit(X, y).tree_keys_
    more = clone(model).fit(np.vstack([X, [[1e9, -1, 3, 0]]]), np.append(y, 1))
    assert (more.tree_keys_ == keys).all()
    assert more.depth_ == model.depth_


def test_only_the_paper_mode_refuses_fewer_rows_than_trees():
    X, y = mixed_table(5)
    model = SmoothSensitivityClassifier(schema=mixed_schema(), mode="corrected", noise_seed=0)
    assert model.fit(X, y).predict(X).shape == (5,)
    with pytest.raises(ValueError, match="need at least 30 rows, got 5"):
        model.set_params(mode="paper").fit(X, y)


def test_the_card_says_that_the_paper_modes_claim_is_broken_and_who_found_it():
    card = SmoothSensitivityClassifier(schema=mixed_schema()).privacy_card()
    assert card.status == "broken"
    assert any("Holohan" in concern for concern in card.concerns)
    assert any("left out" in concern for concern in card.concerns)
    card = SmoothSensitivityClassifier(schema=mixed_schema(), mode="corrected").privacy_card()
    assert card.status == "holds"
    assert any("about its predictions" in concern for concern in card.concerns)
