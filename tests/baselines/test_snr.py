"""SNR: the plan, the trees, the counts and the vote, against values worked out by hand."""

import math

import numpy as np
import pytest
import scipy.stats
from mixed_rows import mixed_schema, mixed_table
from sklearn.base import clone

from baselines.pruned_trees import (
    FullTree,
    decide,
    forest_votes,
    grow_tree,
    prune_tree,
    signal_to_noise,
    sum_upwards,
)
from baselines.snr import (
    SnrClassifier,
    cut_into_bins,
    domain_sizes,
    draw_root_features,
    estimate_nodes_per_tree,
    noisy_counts,
    plan_forest,
)
from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature

ADULT = (5, 5, 5, 5, 5, 5, 8, 16, 7, 14, 6, 5, 2, 41)
ACS_INCOME = (5, 5, 5, 5, 5, 5, 5, 18, 2, 9)


def categorical_schema(sizes, n_classes=2):
    features = [CategoricalFeature(f"f{j}", tuple(range(size))) for j, size in enumerate(sizes)]
    return FeatureSchema(tuple(features), tuple(range(n_classes)))


def full_tree(feature, first_child, parent, level):
    return FullTree(
        np.array(feature, dtype=np.int32),
        np.array(first_child),
        np.array(parent),
        np.array(level, dtype=np.int32),
    )


def hand_made_tree(*leaf_counts, epsilon_per_tree=1.0):
    """One split on feature 0 with one leaf per value."""
    n, n_classes = len(leaf_counts), len(leaf_counts[0])
    structure = full_tree([0] + [-1] * n, [1] + [-1] * n, [-1] + [0] * n, [0] + [1] * n)
    counts = np.array([[0] * n_classes, *leaf_counts])
    return prune_tree(structure, counts, np.array([n]), epsilon_per_tree)


def two_level_tree(leaf_counts, epsilon_per_tree=0.5):
    """Build root -> two inner nodes (feature 1) -> two leaves each; `leaf_counts` has 4 rows."""
    structure = full_tree(
        [0, 1, 1, -1, -1, -1, -1],
        [1, 3, 5, -1, -1, -1, -1],
        [-1, 0, 0, 1, 1, 2, 2],
        [0, 1, 1, 2, 2, 2, 2],
    )
    counts = np.array([[0, 0], [0, 0], [0, 0], *leaf_counts])
    return prune_tree(structure, counts, np.array([2, 2]), epsilon_per_tree)


def prediction(trees, *values):
    return decide(*forest_votes(trees, np.array(values, dtype=np.int32)[:, np.newaxis])).tolist()


# ---- the plan: T, epsilon / T and the minimum support, from the authors' program


@pytest.mark.parametrize(
    ("n_rows", "sizes", "epsilon", "n_trees", "epsilon_per_tree", "min_support"),
    [
        (39074, (5,) * 14, 1, 14, 0.0714286, 39.59798),
        (39074, ADULT, 0.5, 14, 0.035714, 79.196),
        (39074, ADULT, 1, 14, 0.071429, 39.598),
        (39074, ADULT, 2, 14, 0.142857, 19.799),
        (39074, ADULT, 4, 14, 0.285714, 9.8995),
        (39074, ADULT, 8, 14, 0.571429, 4.9497),
        (39074, (2,) * 6, 1, 1727, 0.000579039, 4884.694),
        (1000, (2,) * 4, 1, 88, 0.0113636, 248.9016),
        (1000, (2,) * 4, 4, 353, 0.01133144, 249.6087),
        (1000, (3, 3, 4, 5), 1, 25, 0.04, 70.71068),
        (100, (5, 5, 9), 0.5, 1, 0.5, 5.656854),
        (200, (2, 3, 4), 1, 12, 0.0833333, 33.94113),
        (156532, ACS_INCOME, 0.5, 10, 0.05, 56.569),
        (156532, ACS_INCOME, 1, 10, 0.1, 28.284),
        (156532, ACS_INCOME, 2, 11, 0.1818, 15.556),
        (156532, ACS_INCOME, 4, 21, 0.1905, 14.849),
        (156532, ACS_INCOME, 8, 42, 0.1905, 14.849),
    ],
)
def test_the_plan_is_the_one_of_the_authors_program(
    n_rows, sizes, epsilon, n_trees, epsilon_per_tree, min_support
):
    plan = plan_forest(n_rows, sizes, 2, epsilon)
    assert plan.n_trees == n_trees
    assert plan.epsilon_per_tree == pytest.approx(epsilon_per_tree, rel=3e-4)
    assert plan.min_support == pytest.approx(min_support, rel=3e-5)


def test_the_largest_domains_are_no_roots_when_two_splits_end_below_the_support():
    # n=200, sizes 2, 3, 4, eps=1: T rises to 14 (39.6 >= 200 / 3^1.5 = 38.5). Then 39.6 > 200/9:
    # T=13, drop size 4, 36.8 > 200 / (3 * 2.5) = 26.7: T=12, drop size 3, 33.9 < 200 / (2.5 * 2).
    assert plan_forest(200, (2, 3, 4), 2, 1).root_features == (0,)
    assert plan_forest(39074, ADULT, 2, 1).root_features == tuple(range(14))


def test_of_equal_largest_domains_the_first_is_dropped():
    # n=300, eps=1: shallow = deep = 300 / 5.5^2 = 9.9 < 11.3 = support of 4 trees: T=3, drop the
    # first 9, 8.5 < 300 / (5.5 * 13/3) = 12.6.
    plan = plan_forest(300, (9, 9, 2, 2), 2, 1)
    assert (plan.n_trees, plan.root_features) == (3, (1, 2, 3))
    # n=180: 8.5 > 180 / (5.5 * 13/3) = 7.6 (though 180 / (13/3)^2 = 9.6), so T=2, drop the other 9.
    plan = plan_forest(180, (9, 9, 2, 2), 2, 1)
    assert (plan.n_trees, plan.root_features) == (2, (2, 3))


def test_the_last_root_feature_is_never_dropped():
    # One feature of 41 values, 1000 rows, eps=1: T rises to 56 (158.4 >= 1000 / 41^0.5 = 156.2);
    # 1000 / 41^2 = 0.59 lies below 2.83, the support of a single tree.
    plan = plan_forest(1000, (41,), 2, 1)
    assert (plan.n_trees, plan.root_features) == (1, (0,))


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e6])
def test_a_feature_of_one_value_plans_like_one_tree_at_a_time(epsilon):
    # deep = shallow = n: the smallest T with C sqrt(2) T / eps >= n, found by counting here.
    n_rows, support_per_tree = 50, 2 * math.sqrt(2) / epsilon
    expected = 1 if n_rows <= support_per_tree else math.ceil(n_rows / support_per_tree)
    planned = plan_forest(n_rows, (1,), 2, epsilon).n_trees
    # Step 3 takes trees away again until the support is no more than n.
    assert planned == max(1, expected - 1)


def test_roots_are_drawn_without_replacement_and_the_second_pool_holds_every_feature():
    plan = plan_forest(200, (2, 3, 4), 2, 1)
    rng = np.random.default_rng(0)
    roots = np.array([draw_root_features(plan, 3, rng) for _ in range(2000)])
    assert roots.shape == (2000, 12)
    assert set(roots[:, 0]) == {0}
    for start in (1, 4, 7):
        assert (np.sort(roots[:, start : start + 3], axis=1) == [0, 1, 2]).all()
    # Each feature leads the second pool in a third of the draws; 5 standard deviations are 105.
    assert np.abs(np.bincount(roots[:, 1]) - 2000 / 3).max() < 105


# ---- the structure


def grown(sizes, n_rows, min_support, *, key=1, root=0):
    return grow_tree(np.uint64(key), root, np.array(sizes), float(n_rows), min_support)


@pytest.mark.parametrize(
    ("sizes", "min_support", "depth", "n_leaves"),
    [
        ((5,) * 14, 79.196, 4, 625),  # eps=0.5 in 14 trees
        ((5,) * 14, 39.598, 5, 3125),  # eps=1
        ((5,) * 14, 4.9497, 6, 15625),  # eps=8
        ((5,) * 14, 2.828, 6, 15625),  # eps=1 for each tree
        ((2,) * 20, 2.828, 14, 2**14),
    ],
)
def test_equal_domains_give_a_complete_tree_of_the_known_depth(sizes, min_support, depth, n_leaves):
    feature, _, _, level = grown(sizes, 39074, min_support)
    is_leaf = feature < 0
    assert set(level[is_leaf]) == {depth}
    assert is_leaf.sum() == n_leaves


@pytest.mark.parametrize(
    ("min_support", "levels", "fewest", "most"),
    # 39074 / 39.598 = 987: three splits reach it with 41*16*14, two do not with 41*16; five are
    # needed for 2*5*5*5*5. 39074 / 4.95 = 7894: 41*16*14 still does, 2*5^5 takes seven.
    [(39.598, (3, 5), 2200, 4856), (4.9497, (3, 7), 26_000, 40_000)],
)
def test_trees_on_adult_domains_have_the_sizes_seen_in_the_authors_program(
    min_support, levels, fewest, most
):
    n_leaves = []
    for tree in range(28):
        feature, _, _, level = grown(ADULT, 39074, min_support, key=tree + 1, root=tree % 14)
        leaf_levels = level[feature < 0]
        assert levels[0] <= leaf_levels.min() <= leaf_levels.max() <= levels[1]
        n_leaves.append((feature < 0).sum())
    assert fewest < np.mean(n_leaves) < most


def test_a_path_uses_each_feature_once_and_the_root_always_splits():
    feature, first_child, parent, level = grown((3, 2, 4, 2), 10, 1e-9, root=2)
    assert feature[0] == 2
    # Every path splits on all four: 3 * 2 * 4 * 2 leaves at level 4.
    assert ((feature < 0) == (level == 4)).all()
    assert (feature < 0).sum() == 48
    for leaf in np.flatnonzero(feature < 0):
        used, node = [], parent[leaf]
        while node >= 0:
            used.append(feature[node])
            node = parent[node]
        assert sorted(used) == [0, 1, 2, 3]
    assert (parent[first_child[feature >= 0]] == np.flatnonzero(feature >= 0)).all()
    feature, *_ = grown((3, 2), 1, 100.0)
    assert feature.tolist() == [0, -1, -1, -1]
    # A share of exactly the minimum support is a leaf: 30 / 3 = 10.
    assert grown((3, 2), 30, 10.0)[0].tolist() == [0, -1, -1, -1]
    assert grown((3, 2), 30, 9.99)[0].tolist() == [0, 1, 1, 1, *[-1] * 6]


def test_inner_features_are_uniform_among_the_unused():
    drawn = np.zeros(5)
    for tree in range(200):
        feature, _, _, level = grown((8, 2, 3, 4, 5), 1000, 20.0, key=tree + 1)
        drawn += np.bincount(feature[level == 1], minlength=5)
    assert drawn[0] == 0
    assert scipy.stats.chisquare(drawn[1:]).pvalue > 1e-4


def test_a_tree_planned_with_more_budget_extends_the_same_tree():
    small, _, _, small_level = grown(ADULT, 39074, 79.2, key=9)
    large, _, _, large_level = grown(ADULT, 39074, 4.95, key=9)
    for level in (0, 1, 2):
        shallow = small[small_level == level]
        assert (large[large_level == level][: len(shallow)] == shallow).all()
    assert len(large) > 5 * len(small)


@pytest.mark.parametrize(
    ("sizes", "n_rows", "epsilon"), [(ADULT, 39074, 1), (ADULT, 39074, 8), (ACS_INCOME, 80000, 2)]
)
def test_the_number_of_nodes_is_estimated_before_anything_grows(sizes, n_rows, epsilon):
    sizes = np.array(sizes)
    plan = plan_forest(n_rows, sizes, 2, epsilon)
    n_nodes = [
        len(grown(sizes, n_rows, plan.min_support, key=tree + 1, root=tree % len(sizes))[0])
        for tree in range(2 * len(sizes))
    ]
    assert estimate_nodes_per_tree(plan, sizes, n_rows) == pytest.approx(np.mean(n_nodes), rel=0.1)


# ---- counts, noise and pruning


def test_noise_moves_a_count_by_its_whole_part_and_never_below_zero():
    # trunc(30.7) = 30 and trunc(10.7) = 10; 2 - 3.2 and 0 - 3.2 are below zero.
    assert noisy_counts([30, 10], [0.7, 0.7]).tolist() == [30, 10]
    assert noisy_counts([2, 0], [-3.2, -3.2]).tolist() == [0, 0]
    noise = np.random.default_rng(0).laplace(scale=10, size=1000)
    counts = np.arange(1000) % 25
    assert (noisy_counts(counts, noise) == np.maximum(0, np.trunc(counts + noise))).all()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_one_row_more_changes_the_law_of_a_noisy_count_by_at_most_epsilon(epsilon):
    def law(count):
        # 0 stands for everything below 1; the tail function keeps its digits far out.
        above = scipy.stats.laplace.sf(np.arange(1, 13) - count, scale=1 / epsilon)
        return np.append(1 - above[0], above[:-1] - above[1:])

    for count in range(5):
        assert np.abs(np.log(law(count + 1) / law(count))).max() <= epsilon + 1e-9
        drawn = noisy_counts(count, np.random.default_rng(count).laplace(0, 1 / epsilon, 20_000))
        observed = np.bincount(drawn.clip(0, 5), minlength=6)
        expected = np.append(law(count)[:5], 1 - law(count)[:5].sum()) * 20_000
        is_common = expected > 5
        z = (observed - expected)[is_common] / np.sqrt(expected[is_common])
        assert np.abs(z).max() < 5


def test_signal_to_noise_has_the_authors_values():
    # Leaf: 0.5 * 40 / (sqrt(2) * 2).
    assert signal_to_noise([40], [1], 0.5, 2)[0] == pytest.approx(7.0710678)
    assert signal_to_noise([0], [1], 0.5, 2)[0] == 0
    # Inner node over {30, 10}, {5, 0}, {0, 0}: 0.1 * 3 * 45 / (sqrt(6) * 2).
    structure = full_tree([0, -1, -1, -1], [1, -1, -1, -1], [-1, 0, 0, 0], [0, 1, 1, 1])
    counts, n_leaves = sum_upwards(np.array([[0, 0], [30, 10], [5, 0], [0, 0]]), structure)
    assert counts[0].tolist() == [35, 10]
    assert n_leaves.tolist() == [3, 1, 1, 1]
    assert signal_to_noise([45], n_leaves[:1], 0.1, 2)[0] == pytest.approx(2.7556760)


def test_nodes_from_level_two_on_go_when_their_signal_is_not_above_the_noise():
    # eps_t = 0.5: a leaf needs N > 2 sqrt(2) / 0.5 = 5.66, so 5 goes and 6 stays.
    tree = two_level_tree([[3, 2], [6, 0], [0, 0], [1, 4]])
    # Root, both level-1 nodes, one leaf; the second level-1 node lost all children.
    assert len(tree.feature) == 4
    assert tree.feature.tolist() == [0, 1, -1, -1]
    assert tree.children.tolist() == [1, 2, -1, 3]
    # Root {10, 6}: 0.625. Node {9, 2}: 9/11. Node {1, 4}: 0.8. Leaf {6, 0}: 1.
    np.testing.assert_allclose(
        tree.votes, [[10 / 16, 6 / 16], [9 / 11, 2 / 11], [0.2, 0.8], [1.0, 0.0]]
    )


def test_a_ratio_of_exactly_one_is_pruned():
    # eps_t = 2 sqrt(2) / 8, so that N = 8 has the ratio 1.
    epsilon_per_tree = math.sqrt(2) * 2 / 8
    assert signal_to_noise([8], [1], epsilon_per_tree, 2)[0] == 1
    tree = two_level_tree([[8, 0], [9, 0], [9, 0], [0, 8]], epsilon_per_tree)
    assert tree.children.tolist() == [1, 2, -1, 3, 4, -1]


def test_level_one_stays_however_small_but_does_not_vote_when_it_counts_nothing():
    tree = two_level_tree([[30, 10], [5, 40], [0, 0], [0, 0]])
    assert len(tree.feature) == 5
    # Level-1 node {0, 0} votes as the root {35, 50}.
    np.testing.assert_allclose(tree.votes[2], [35 / 85, 50 / 85])
    # Level-1 node {35, 50} ties with the root; leaves {30, 10} and {5, 40} are better.
    np.testing.assert_allclose(tree.votes[3:], [[0.75, 0.25], [5 / 45, 40 / 45]])


def test_a_pruned_inner_node_takes_its_subtree_along():
    # root -> a (level 1) -> b (level 2), c; b -> two leaves. b counts 4: 0.1 * 2 * 4 / 4 = 0.2 <= 1
    # goes, although its leaf would also have to pass on its own.
    structure = full_tree(
        [0, 1, 2, -1, -1, -1], [1, 2, 4, -1, -1, -1], [-1, 0, 1, 1, 2, 2], [0, 1, 2, 2, 3, 3]
    )
    counts = np.array([[0, 0], [0, 0], [0, 0], [80, 20], [4, 0], [0, 0]])
    tree = prune_tree(structure, counts, np.array([1, 2, 2]), 0.1)
    assert tree.feature.tolist() == [0, 1, -1]
    assert tree.children.tolist() == [1, -1, 2]


# ---- prediction


def test_a_leaf_wins_ties_with_its_root_and_the_most_confident_tree_decides():
    # Tree 1: root {60, 40}, leaf a {20, 30}: both 0.6, the leaf is deeper. Tree 2: leaf a {10, 30}.
    tree_1 = hand_made_tree([20, 30], [40, 10])
    tree_2 = hand_made_tree([10, 30], [40, 20])
    assert prediction([tree_1, tree_2], 0) == [1]
    assert forest_votes([tree_1], np.array([[0]], dtype=np.int32))[0].tolist() == [[0.4, 0.6]]
    # Three trees of four say 1 with 0.6, one says 0 with 0.9.
    tree_4 = hand_made_tree([9, 1], [10, 20])
    assert prediction([tree_1, tree_1, tree_1, tree_4], 0) == [0]
    # The mean is for 1 by now: 5 * 0.6 + 0.1 = 3.1 against 5 * 0.4 + 0.9 = 2.9.
    assert prediction([tree_1] * 5 + [tree_4], 0) == [0]


def test_an_unseen_value_stays_at_the_root_and_an_empty_leaf_climbs():
    tree_1 = hand_made_tree([20, 30], [40, 10])
    largest, _ = forest_votes([tree_1], np.array([[-1]], dtype=np.int32))
    np.testing.assert_allclose(largest, [[0.6, 0.4]])
    largest, _ = forest_votes(
        [hand_made_tree([0, 0], [3, 7])], np.array([[0], [1]], dtype=np.int32)
    )
    np.testing.assert_allclose(largest, [[0.3, 0.7], [0.3, 0.7]])


def test_exact_ties_of_the_largest_fraction_go_to_the_larger_mean_then_to_the_first_class():
    for_0, for_1 = hand_made_tree([8, 0]), hand_made_tree([0, 5])
    assert prediction([for_0, for_1], 0) == [0]
    assert prediction([for_0, for_1, hand_made_tree([1, 3])], 0) == [1]


def test_a_forest_that_counts_nothing_says_so_and_does_not_crash():
    largest, total = forest_votes(
        [hand_made_tree([0, 0, 0], [0, 0, 0])], np.array([[0]], dtype=np.int32)
    )
    np.testing.assert_allclose(largest, np.full((1, 3), 1 / 3))
    assert decide(largest, total).tolist() == [0]


# ---- bins


def test_bins_have_equal_width_on_the_public_bounds():
    schema = FeatureSchema((NumericFeature("a", 0, 10), NumericFeature("b", 2, 2)), (0, 1))
    rows = np.array([[0, 2], [1.99, 2], [2, 2], [9.99, 2], [10, 2]], dtype=float)
    assert cut_into_bins(rows, schema, 5)[:, 0].tolist() == [0, 0, 1, 4, 4]
    assert (cut_into_bins(rows, schema, 5)[:, 1] == 0).all()
    assert domain_sizes(schema, 5).tolist() == [5, 1]
    assert domain_sizes(mixed_schema(), 5).tolist() == [5, 41, 1, 1]
    wide = FeatureSchema((NumericFeature("a", -1e300, 1e300),), (0, 1))
    assert cut_into_bins(np.array([[-1e300], [1e12], [1e300]]), wide, 4)[:, 0].tolist() == [0, 2, 3]


# ---- the classifier


def test_unseen_training_values_are_counted_nowhere_and_unseen_test_values_use_the_root():
    schema = categorical_schema((3,))
    X = np.array([[0.0]] * 500 + [[1.0]] * 400 + [[-1.0]] * 5000)
    y = np.array([0] * 500 + [1] * 400 + [1] * 5000)
    model = SnrClassifier(
        schema=schema, epsilon=100.0, mode="corrected", public_n_rows=1, noise_seed=0
    ).fit(X, y)
    # Root {500, 400}: had the 5000 been counted, class 1 would win.
    assert model.predict([[-1.0], [0.0], [1.0]]).tolist() == [0, 0, 1]


def test_every_empty_leaf_of_every_tree_carries_its_share_of_noise():
    # Two features of 300 values, planned for 286,000 rows at eps = 4: deep = shallow = 3.18, which
    # T = 5 exceeds (5 * 0.707), so T = 4 with eps_t = 1. Depth 2: 90,000 leaves a tree, and ten rows.
    X, y = np.zeros((10, 2)), np.zeros(10)
    model = SnrClassifier(
        schema=categorical_schema((300, 300)),
        epsilon=4.0,
        mode="corrected",
        public_n_rows=286_000,
        noise_seed=0,
    ).fit(X, y)
    assert (model.plan_.n_trees, model.plan_.epsilon_per_tree) == (4, 1.0)
    # An empty leaf stays when N > 2 sqrt(2), so N >= 3, the sum over two classes of
    # max(0, floor(Lap(1))): P(0) = 1 - e^-1 / 2, P(j) = (e^-j - e^-(j+1)) / 2.
    p = np.append(1 - math.exp(-1) / 2, (np.exp(-np.arange(1, 3)) - np.exp(-np.arange(2, 4))) / 2)
    share = 1 - np.convolve(p, p)[:3].sum()
    # Root and level 1 stay. 5 standard deviations of 360,000 leaves: 0.0022.
    kept = sum(len(tree.feature) - 301 for tree in model.trees_) / 360_000
    assert kept == pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) / 360_000))


def test_the_corrected_plan_does_not_know_the_number_of_rows():
    X, y = mixed_table(2000)
    model = SnrClassifier(
        schema=mixed_schema(), mode="corrected", public_n_rows=10_000, epsilon=2.0, noise_seed=0
    )
    plan = model.fit(X, y).plan_
    assert plan == clone(model).fit(X[1:], y[1:]).plan_
    assert plan == plan_forest(10_000, (5, 41, 1, 1), 2, 2.0)
    paper = SnrClassifier(schema=mixed_schema(), epsilon=2.0, noise_seed=0)
    assert paper.fit(X, y).plan_ != clone(paper).fit(X[:1500], y[:1500]).plan_


def test_a_bought_number_of_rows_is_paid_for():
    X, y = mixed_table(2000)
    model = SnrClassifier(schema=mixed_schema(), mode="corrected", epsilon=2.0, size_share=0.01)
    # n + Lap(1 / 0.02), and one tree more per 103 rows; the other 99 % are shared by the trees.
    planned = set()
    for seed in range(8):
        plan = model.set_params(noise_seed=seed).fit(X, y).plan_
        assert plan.n_trees * plan.epsilon_per_tree == pytest.approx(1.98)
        n_rows = [n for n in range(1500, 2500) if plan == plan_forest(n, (5, 41, 1, 1), 2, 1.98)]
        assert n_rows
        planned.add(plan)
    assert len(planned) > 1


def test_a_released_forest_holds_neither_counts_nor_rows():
    X, y = mixed_table()
    model = SnrClassifier(schema=mixed_schema(), epsilon=4.0, random_state=3, noise_seed=4)
    fitted = {k: v for k, v in vars(model.fit(X, y)).items() if k.endswith("_")}
    assert set(fitted) == {"classes_", "n_features_in_", "plan_", "trees_"}
    # 3000 rows: nothing fitted has one entry per row, and no array holds whole counts.
    for tree in model.trees_:
        assert tree.votes.max() <= 1
        assert 3000 not in (len(tree.feature), len(tree.children))


@pytest.mark.parametrize("epsilon", [1e-300, 1e-12, 1e-3])
@pytest.mark.parametrize("mode", ["paper", "corrected"])
def test_a_budget_next_to_nothing_gives_a_useless_forest_but_no_trouble(epsilon, mode):
    X, y = mixed_table(300)
    model = SnrClassifier(schema=mixed_schema(), epsilon=epsilon, mode=mode, noise_seed=0)
    shares = model.fit(X, y).predict_proba(X)
    assert np.isfinite(shares).all()
    assert shares.min() >= 0


def test_probabilities_agree_with_decisions_also_where_fractions_tie():
    X, y = mixed_table(n_classes=5)
    model = SnrClassifier(schema=mixed_schema(5), epsilon=1000.0, random_state=0, noise_seed=0)
    model.fit(X, y)
    assert model.score(X, y) > 0.9
    largest, total = forest_votes(model.trees_, cut_into_bins(X, model.schema, 5))
    assert (decide(largest, total) == model.predict(X)).all()
    assert ((largest == largest.max(axis=1, keepdims=True)).sum(axis=1) > 1).any()


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"epsilon": float("inf")}, "'epsilon'"),
        ({"size_share": 1.0}, "'size_share'"),
        ({"memory_limit_gb": 0}, "'memory_limit_gb'"),
        ({"public_n_rows": 100}, "mode='corrected'"),
    ],
)
def test_what_only_this_method_asks_of_parameters(parameters, named):
    with pytest.raises(ValueError, match=named):
        SnrClassifier(schema=mixed_schema(), **parameters).fit(*mixed_table(100))


@pytest.mark.parametrize(
    ("sizes", "parameters", "n_rows", "reason"),
    [
        # Support below 1e-7, so every path uses up to nine of twelve features, 1e9 leaves.
        ((10,) * 12, {"epsilon": 1e9}, 100, "more than memory_limit_gb=4"),
        ((5, 41), {"memory_limit_gb": 1e-6}, 100, "more than memory_limit_gb=1e-06"),
        # deep = n / 2, and so 1e10 * n / (4 sqrt(2)) = 5e12 trees.
        ((2, 2), {"epsilon": 1e10}, 3000, "more than 1.1e+12 trees"),
        ((2, 2), {"epsilon": 1e10, "mode": "corrected"}, 3000, "more than 1.1e+12 trees"),
    ],
)
def test_a_forest_too_large_for_memory_is_known_beforehand(sizes, parameters, n_rows, reason):
    model = SnrClassifier(schema=categorical_schema(sizes), **parameters)
    assert reason in model.skip(n_rows)
    assert model.set_params(epsilon=1.0, memory_limit_gb=4.0).skip(n_rows) is None
    with pytest.raises(MemoryError):
        model.set_params(**parameters).fit(np.zeros((n_rows, len(sizes))), np.arange(n_rows) % 2)


def test_the_cards_say_that_the_number_of_rows_leaks_is_bought_or_is_public():
    card = SnrClassifier(schema=mixed_schema()).privacy_card()
    assert card.status == "doubted"
    assert any("exact number of rows" in concern for concern in card.concerns)
    assert "number of rows" in card.public_inputs
    model = SnrClassifier(schema=mixed_schema(), mode="corrected")
    card = model.privacy_card()
    assert card.status == "holds"
    assert "0.01 epsilon on the number of rows" in card.source
    assert "number of rows" not in card.public_inputs
    card = model.set_params(public_n_rows=5000).privacy_card()
    assert "number of rows planned for (5000)" in card.public_inputs
