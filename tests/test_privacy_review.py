"""What an attacker would try: laws with a closed form, and rows that speak for other rows."""

import math
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from released_guide import release_guide
from scipy import stats
from scipy.special import ndtr

from lumberjack import (
    CategoricalFeature,
    FeatureSchema,
    GuidedLumberjackClassifier,
    LumberjackClassifier,
    NumericFeature,
)
from lumberjack.growth import Search, TrainingRows, grow_tree
from lumberjack.guide import NO_GUIDE
from lumberjack.ranks import rank_table
from lumberjack.seeds import seed_sequence
from lumberjack.splits import PublicFacts, SplitRule

TWO_NUMBERS = (np.zeros(2, dtype=np.int64), np.zeros(2), np.ones(2))
THREE_CATEGORIES = (np.array([3], dtype=np.int64), np.zeros(1), np.array([2.0]))


def grow(X, public, *, height, sigma, tau, tree, noise, guide=NO_GUIDE):
    labels = np.zeros(len(X), dtype=np.int8)
    facts = PublicFacts(1, *public, 0)
    table = TrainingRows(rank_table(X.T), labels, facts, guide, SplitRule())
    return grow_tree(table, Search(height, sigma, tau), np.uint64(tree), noise)


def node_paths(tree):
    """The turns that lead to each node."""
    paths = {0: ()}
    for node in np.flatnonzero(tree.children_left >= 0):
        for side in (0, 1):
            paths[tree.children_left[node] + side] = (*paths[node], side)
    return paths


def heavy_paths(tree):
    """The paths of the split nodes."""
    paths = node_paths(tree)
    return frozenset(paths[node] for node in np.flatnonzero(tree.children_left >= 0))


def p_value_of_law(shapes, law):
    """Chi-square test of observed shapes against their law, rare ones pooled."""
    seen = Counter(shapes)
    assert set(seen) <= set(law)
    expected = np.array([len(shapes) * law[shape] for shape in law])
    observed = np.array([seen[shape] for shape in law])
    rare = expected < 8
    pooled = [np.append(values[~rare], values[rare].sum()) for values in (observed, expected)]
    if pooled[1][-1] < 1e-9:
        pooled = [values[:-1] for values in pooled]
    return stats.chisquare(*pooled).pvalue


def deepest_heavy_levels(X, public, n_runs, **options):
    """One more than the level of the deepest split, for many runs; all rows share one path."""
    noise = np.random.default_rng(5)
    return np.array(
        [
            (grow(X, public, tree=run, noise=noise, **options).feature >= 0).sum()
            for run in range(n_runs)
        ]
    )


# All rows are equal and go left at every node, so every level of the path has the same count and
# Algorithm 1 is a plain binary search: with h = 2^b - 1 levels the number of Heavy ones is a binary
# number whose b digits are the b answers, the first the most significant. The digits must be
# independent Bernoulli(p), p = Phi((count - tau) / sigma). Noise that is used twice, a coin tossed
# too often or a middle that is one level off shows in them.
@pytest.mark.parametrize(
    ("n_rows", "sigma", "tau"), [(3, 1.5, 4.0), (40, 6.0, 41.5), (9, 2.0, 8.0)]
)
def test_on_a_single_path_the_answers_are_independent_digits(n_rows, sigma, tau):
    n_runs = 5000
    found = deepest_heavy_levels(
        np.zeros((n_rows, 2)), TWO_NUMBERS, n_runs, height=127, sigma=sigma, tau=tau
    )
    p = ndtr((n_rows - tau) / sigma)
    digits = (found[:, None] >> np.arange(7)) & 1
    for digit in digits.T:
        assert stats.binomtest(int(digit.sum()), n_runs, p).pvalue > 1e-5
    law = dict(enumerate(stats.binom(7, p).pmf(np.arange(8))))
    assert p_value_of_law(digits.sum(axis=1).tolist(), law) > 1e-5
    correlations = np.corrcoef(digits.T)[np.triu_indices(7, 1)]
    assert np.abs(correlations).max() < 5 / math.sqrt(n_runs)


def exact_law(count, height, sigma, tau):
    """Probability of each set of Heavy paths, by Algorithm 1 with every run of answers tried.

    Returns the most answers of any run, too.

    `count` maps the paths of all non-empty nodes on levels 0 .. height - 1 to their counts.
    """

    def run(answers):
        """Follow the answers given; return what is Heavy, and the count that lacks an answer."""
        answers, heavy, light = list(answers), set(), set()

        def mark(root, levels):
            middle = len(root) + levels // 2
            below = [p for p in count if len(p) == middle and p[: len(root)] == root]
            for path in sorted(below):
                if path in heavy or path in light:
                    continue
                if not answers:
                    raise LookupError(count[path])
                if answers.pop(0):
                    heavy.update(path[:depth] for depth in range(len(path) + 1))
                else:
                    light.update(p for p in count if p[: len(path)] == path)
            if levels >= 3:
                for path in sorted(count):
                    if len(path) == middle + 1 and path[: len(root)] == root and path not in light:
                        mark(path, levels - levels // 2 - 1)
            if levels >= 2:
                mark(root, levels // 2)

        mark((), height)
        return frozenset(heavy)

    law, waiting, most = {}, [((), 1.0)], 0
    while waiting:
        answers, probability = waiting.pop()
        try:
            heavy = run(answers)
        except LookupError as question:
            p = ndtr((question.args[0] - tau) / sigma)
            waiting += [((*answers, True), probability * p)]
            waiting += [((*answers, False), probability * (1 - p))]
        else:
            law[heavy] = law.get(heavy, 0.0) + probability
            most = max(most, len(answers))
    return law, most


# One path again, of any height: the law has that of at most 1 + floor(log2 height) answers about
# each record (Lemma 3), and the builder has this law.
@pytest.mark.parametrize("height", [1, 2, 3, 6, 63, 64, 100])
def test_each_record_is_part_of_at_most_one_plus_log2_height_queries(height):
    n_rows, sigma, tau = 12, 3.0, 13.0
    paths = [(0,) * level for level in range(height)]
    law, most = exact_law(dict.fromkeys(paths, n_rows), height, sigma, tau)
    assert most == 1 + math.floor(math.log2(height))
    noise = np.random.default_rng(7)
    X = np.zeros((n_rows, 2))
    options = {"height": height, "sigma": sigma, "tau": tau, "noise": noise}
    shapes = [heavy_paths(grow(X, TWO_NUMBERS, tree=run, **options)) for run in range(4000)]
    assert p_value_of_law(shapes, law) > 1e-5


# Here nodes have several non-empty descendants, so it shows whether a skipped subtree stands for
# the right number of queries and whether each query gets a draw of its own. Counts stay far below
# tau in all subtrees of the first case; each yes comes from a coin that failed.
@pytest.mark.parametrize(
    ("n_rows", "height", "sigma", "tau"), [(6, 2, 3.0, 7.0), (6, 4, 3.0, 7.0), (8, 5, 2.0, 5.0)]
)
def test_the_builder_has_the_exact_law_of_algorithm_1(n_rows, height, sigma, tau):
    n_runs = 4000
    noise = np.random.default_rng(11)
    X = np.random.default_rng(4).uniform(size=(n_rows, 2))
    for tree in (1, 2, 3):
        full = grow(X, TWO_NUMBERS, height=height, sigma=1e-9, tau=0.5, tree=tree, noise=noise)
        paths, count = node_paths(full), Counter()
        for node in np.flatnonzero(full.children_left < 0):
            for depth in range(min(len(paths[node]) + 1, height)):
                count[paths[node][:depth]] += int(full.counts[node].sum())
        law, _ = exact_law({path: n for path, n in count.items() if n > 0}, height, sigma, tau)
        assert math.isclose(sum(law.values()), 1.0)
        options = {"height": height, "sigma": sigma, "tau": tau, "noise": noise}
        shapes = [heavy_paths(grow(X, TWO_NUMBERS, tree=tree, **options)) for _ in range(n_runs)]
        assert p_value_of_law(shapes, law) > 1e-5


@pytest.mark.parametrize("height", [7, 127])
def test_a_path_that_ends_early_is_searched_like_a_tree_of_that_height(height):
    # Unseen categories go right three times, then nothing is left to split on. Level 3 is the last;
    # it is asked first, then level 1, then 2 or 0: the number of splits (at most 3) has this law.
    n_rows, sigma, tau, n_runs = 6, 2.0, 6.5, 5000
    found = deepest_heavy_levels(
        np.full((n_rows, 1), -1.0), THREE_CATEGORIES, n_runs, height=height, sigma=sigma, tau=tau
    )
    p = ndtr((n_rows - tau) / sigma)
    no = 1 - p
    law = np.array([no**3, no**2 * p, no * p * no, p + no * p * p])
    assert stats.chisquare(np.bincount(found, minlength=4), n_runs * law).pvalue > 1e-5


@pytest.mark.parametrize("height", [1, 2, 3, 63, 64, 100, 127])
def test_without_noise_a_smaller_height_cuts_the_same_tree(height):
    rng = np.random.default_rng(3)
    X = np.vstack([rng.uniform(size=(300, 2)) ** 3, np.full((40, 2), 0.3)])
    for tree in range(6):
        small, large = (
            grow(X, TWO_NUMBERS, height=levels, sigma=1e-9, tau=12.5, tree=tree, noise=rng)
            for levels in (height, 127)
        )
        assert heavy_paths(small) == {path for path in heavy_paths(large) if len(path) < height}
        for node, path in node_paths(small).items():
            if small.children_left[node] < 0 and len(path) < height:
                assert small.counts[node].sum() <= 12


def test_a_record_in_an_empty_region_shows_with_the_probability_that_is_paid_for():
    # One record more where there was none: 0 is never Heavy, 1 is with probability 1 - Phi(margin /
    # sigma) at each of at most 3 queries of a tree of 7 levels.
    sigma, margin, n_runs = 2.0, 2.5, 8000
    found = deepest_heavy_levels(
        np.zeros((1, 2)), TWO_NUMBERS, n_runs, height=7, sigma=sigma, tau=1 + margin
    )
    none = ndtr(margin / sigma) ** 3
    assert stats.binomtest(int((found == 0).sum()), n_runs, none).pvalue > 1e-5
    empty = deepest_heavy_levels(
        np.zeros((0, 2)), TWO_NUMBERS, 2000, height=7, sigma=sigma, tau=1 + margin
    )
    assert not empty.any()


def test_guided_splits_depend_on_rows_through_the_released_guide_only():
    schema = FeatureSchema(
        (NumericFeature("x", -3, 5), CategoricalFeature("c", ("a", "b", "d")), NumericFeature("z", 0, 1)),
        (0, 1),
    )  # fmt: skip
    rng = np.random.default_rng(0)

    def table(n_rows, power):
        return np.column_stack(
            [
                8 * rng.uniform(size=n_rows) ** power - 3,
                rng.integers(-1, 3, n_rows),
                rng.uniform(size=n_rows),
            ]
        )

    first, second = table(900, 1), table(1400, 3)
    released = release_guide(first, (first[:, 0] > 0).astype(int), schema, 5.0, rng)
    public = (np.zeros(3, dtype=np.int64), released.lower, released.upper)
    n_shared = 0
    for tree in range(20):
        splits = []
        for X in (first, second):
            grown = grow(
                released.to_guide_scale(X), public, height=20, sigma=2.0, tau=20.0, tree=tree,
                noise=np.random.default_rng(tree), guide=released,
            )  # fmt: skip
            paths = node_paths(grown)
            inner = np.flatnonzero(grown.children_left >= 0)
            splits.append({paths[i]: (grown.feature[i], grown.threshold[i]) for i in inner})
        shared = set(splits[0]) & set(splits[1])
        n_shared += len(shared)
        assert all(splits[0][path] == splits[1][path] for path in shared)
    assert n_shared > 200


@pytest.mark.parametrize("leaves", ["labels", "noisy_counts"])
def test_empty_leaves_are_noised_like_any_other(leaves):
    schema = FeatureSchema((NumericFeature("x", 0, 1),), (0, 1))
    X = np.zeros((400, 1))  # all in the leftmost leaf: every right child is empty
    scores = []
    for seed in range(20):
        model = LumberjackClassifier(
            20.0, 1e-2, n_estimators=2, max_depth=15, schema=schema, noise_seed=seed,
            random_state=seed, leaves=leaves,
        ).fit(X, np.ones(400, dtype=int))  # fmt: skip
        for tree in model.estimators_:
            right_children = tree.children_left[tree.children_left >= 0] + 1
            assert (tree.children_left[right_children] < 0).all()
            scores.append(tree.value[right_children])
    scores = np.vstack(scores)
    assert len(scores) > 200
    # Both classes have count 0, so each wins half of the time.
    won = int((scores[:, 1] > scores[:, 0]).sum())
    decided = int((scores[:, 1] != scores[:, 0]).sum())
    assert stats.binomtest(won, decided, 0.5).pvalue > 1e-5


def test_noise_has_fresh_entropy_whatever_random_state_is_and_no_words_in_common_with_it():
    X = np.random.default_rng(0).uniform(size=(2000, 1))
    y = (X[:, 0] > 0.5).astype(int)
    schema = FeatureSchema((NumericFeature("x", 0, 1),), (0, 1))
    first, second = (
        LumberjackClassifier(
            4.0, n_estimators=3, schema=schema, random_state=7, leaves="noisy_counts"
        ).fit(X, y)
        for _ in range(2)
    )
    for a, b in zip(first.estimators_, second.estimators_, strict=True):
        assert a.threshold[0] == b.threshold[0]
        size = min(len(a.children_left), len(b.children_left))
        leaves = (a.children_left[:size] < 0) & (b.children_left[:size] < 0)
        assert not np.isin(a.value[:size][leaves], [0.0, 1.0]).all()
        assert (a.value[:size][leaves] != b.value[:size][leaves]).any()
    keys = set(seed_sequence(7).generate_state(1000, dtype=np.uint64).tolist())
    for child in seed_sequence(7).spawn(100):
        assert not keys & set(child.generate_state(8, dtype=np.uint64).tolist())
    assert seed_sequence(None).entropy.bit_length() > 96


def test_splits_and_noise_may_have_a_parent_in_common_but_not_one_come_from_the_other():
    schema = FeatureSchema((NumericFeature("x", 0, 1),), (0, 1))
    X, y = np.full((20, 1), 0.5), np.ones(20, dtype=int)
    root = np.random.SeedSequence(5)
    first, second = root.spawn(2)
    for estimator in (LumberjackClassifier, GuidedLumberjackClassifier):
        options = {"schema": schema, "n_estimators": 2, "max_depth": 3, "accounting": "safe"}
        with pytest.raises(ValueError, match="random_state was spawned from noise_seed"):
            estimator(random_state=first, noise_seed=root, **options).fit(X, y)
        estimator(random_state=first, noise_seed=second, **options).fit(X, y)
        estimator(random_state=root, noise_seed=first, **options).fit(X, y)
        estimator(random_state=5, noise_seed=5, **options).fit(X, y)


@pytest.mark.parametrize("estimator", [LumberjackClassifier, GuidedLumberjackClassifier])
def test_whole_numbers_of_eight_bits_buy_the_same_noise(estimator):
    schema = FeatureSchema((NumericFeature("x", 0, 1),), (0, 1))
    X, y = np.linspace(0, 1, 50)[:, np.newaxis], np.arange(50) % 2
    options = {"schema": schema, "accounting": "safe", "random_state": 1, "noise_seed": 2}
    usual = estimator(n_estimators=37, max_depth=100, **options).fit(X, y)
    narrow = estimator(n_estimators=np.uint8(37), max_depth=np.int8(100), **options).fit(X, y)
    assert narrow.ledger_ == usual.ledger_
    assert (narrow.predict_proba(X) == usual.predict_proba(X)).all()


def test_a_table_whose_labels_are_all_unknown_is_an_empty_table_and_no_event():
    schema = FeatureSchema((NumericFeature("x", 0, 1),), (0, 1))
    for estimator in (LumberjackClassifier, GuidedLumberjackClassifier):
        model = estimator(
            schema=schema,
            unknown_labels="drop",
            noise_seed=0,
            n_estimators=2,
            max_depth=3,
            accounting="safe",
        )
        with pytest.warns(UserWarning, match="dropped"):
            model.fit(np.zeros((5, 1)), np.full(5, 9))
        assert all(tree.n_nodes == 1 for tree in model.estimators_)


ROUTED = FeatureSchema(
    (NumericFeature("x", 0, 1, fill=0.5), CategoricalFeature("c", (1, 2, 3), fill=1)), (0, 1)
)


def routed_rows(n_rows=400):
    rng = np.random.default_rng(2)
    rows = [[float(x), int(c)] for x, c in zip(rng.uniform(size=n_rows), rng.integers(1, 4, n_rows), strict=True)]  # fmt: skip
    return rows, [int(row[1] == 2) for row in rows]


def accuracy_after_fit(rows, labels):
    """Accuracy on the ordinary rows of a nearly noiseless forest; one record moves it a little."""
    model = LumberjackClassifier(
        200.0, 0.1, n_estimators=5, max_depth=15, schema=ROUTED, missing="fill",
        unknown_labels="drop", random_state=0, noise_seed=0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows, labels)
    ordinary, wanted = routed_rows()
    return (model.predict(np.array(ordinary)) == wanted).mean()


def as_frame(rows, labels):
    return pd.DataFrame(rows, columns=["x", "c"]), pd.Series(labels)


@pytest.mark.parametrize("to_container", [lambda *both: both, as_frame], ids=["list", "frame"])
@pytest.mark.parametrize(
    ("odd_row", "odd_label"),
    [
        ([0.5, 1], "odd"),
        ([0.5, "odd"], 0),
        ([None, 1], 0),
        ([0.5, 1], None),
        ([7.0, 4], 1),
    ],
)
def test_one_odd_record_does_not_change_how_others_are_read(odd_row, odd_label, to_container):
    rows, labels = routed_rows()
    assert accuracy_after_fit(*to_container(rows, labels)) > 0.98
    assert accuracy_after_fit(*to_container([*rows, odd_row], [*labels, odd_label])) > 0.98


def test_whether_fill_values_are_lacking_is_found_without_a_look_at_the_rows():
    schema = FeatureSchema((NumericFeature("x", 0, 1),), (0, 1))
    with pytest.raises(ValueError, match=r"\['x'\] have none.*schema=FeatureSchema"):
        LumberjackClassifier(schema=schema, missing="fill", noise_seed=0).fit(
            np.zeros((5, 1)), np.zeros(5, dtype=int)
        )
