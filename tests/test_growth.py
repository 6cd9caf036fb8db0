"""The compiled builder has the law of the plain algorithm, whatever its short cuts."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from lumberjack.discrete_gaussian import get_block_table
from lumberjack.growth import Search, TrainingRows, grow_tree
from lumberjack.guide import NO_GUIDE
from lumberjack.keyed_draws import keyed_bits
from lumberjack.ranks import rank_table
from lumberjack.splits import NO_SPLIT, PublicFacts, SplitRule, draw_uniform_split, make_path

MIXED = (np.array([0, 5, 0], dtype=np.int64), np.zeros(3), np.array([1.0, 4.0, 1.0]))
NUMERIC = (np.zeros(2, dtype=np.int64), np.zeros(2), np.ones(2))


def rows_for(public, n_rows, seed):
    n_categories, lower, upper = public
    rng = np.random.default_rng(seed)
    columns = [
        rng.integers(0, k, n_rows) if k else rng.uniform(lo, hi, n_rows) ** 2
        for k, lo, hi in zip(n_categories, lower, upper, strict=True)
    ]
    return np.asfortranarray(np.column_stack(columns).astype(float))


def grow(X, y, public, *, height, sigma, tau, tree=1, noise=1, is_discrete=False):
    table = TrainingRows(
        rank_table(X.T), y.astype(np.int8), PublicFacts(2, *public, 1), NO_GUIDE, SplitRule()
    )
    search = Search(height, sigma, tau)
    if is_discrete:
        search = Search(height, 1.0, tau, get_block_table(sigma))
    return grow_tree(table, search, np.uint64(tree), np.random.default_rng(noise))


class PlainTree:
    """Sections 1 to 3 word for word: every node is made first, then Algorithm 1 runs on it."""

    def __init__(self, X, public, height, key):
        self.public, self.height = PublicFacts(2, *public, 1), height
        self.children, self.count = {}, {}
        state = (np.array(self.public.lower), np.array(self.public.upper), frozenset())
        self._make(X, (), key, state)

    def _make(self, X, path, key, state):
        self.count[path] = len(X)
        if len(path) >= self.height or len(X) == 0:
            return
        lower, upper, used = state
        left_open = make_path(self.public.n_categories)
        left_open.lower[:], left_open.upper[:] = lower, upper
        for feature, category in used:
            left_open.is_used[left_open.first_category[feature] + category] = True
            left_open.n_used[feature] += 1
        feature, cut = draw_uniform_split(np.uint64(key), self.public, left_open)
        if feature == NO_SPLIT:
            return
        self.children[path] = ((*path, 0), (*path, 1))
        if self.public.n_categories[feature]:
            goes_left = X[:, feature] == cut
            narrowed = [(lower, upper, used | {(feature, int(cut))})] * 2
        else:
            goes_left = X[:, feature] <= cut
            left_upper, right_lower = upper.copy(), lower.copy()
            left_upper[feature] = right_lower[feature] = cut
            narrowed = [(lower, left_upper, used), (right_lower, upper, used)]
        for side, keep in enumerate((goes_left, ~goes_left)):
            self._make(X[keep], (*path, side), keyed_bits(np.uint64(key), side), narrowed[side])

    def heavy(self, check):
        """Algorithm 1."""
        marked = {}

        def below(path):
            yield path
            for child in self.children.get(path, ()):
                yield from below(child)

        def mark(root, height):
            middle = len(root) + height // 2
            at_middle = [p for p in below(root) if len(p) == middle]
            for path in at_middle:
                if path in marked:
                    continue
                if check(self.count[path]):
                    for depth in range(len(path) + 1):
                        marked[path[:depth]] = True
                else:
                    for descendant in below(path):
                        marked[descendant] = False
            if height >= 3:
                for path in at_middle:
                    for child in self.children.get(path, ()):
                        if marked.get(child) is not False:
                            mark(child, height - height // 2 - 1)
            if height >= 2:
                mark(root, height // 2)

        mark((), self.height)
        return {path for path, is_heavy in marked.items() if is_heavy}


def gaussian_check(sigma, tau, rng):
    return lambda count: count > 0 and count + sigma * rng.standard_normal() > tau


def discrete_check(sigma, tau, rng):
    integers = np.arange(-int(10 * sigma), int(10 * sigma) + 1)
    weights = np.exp(-(integers**2) / (2 * sigma**2))
    above = np.cumsum((weights / weights.sum())[::-1])[::-1]
    chance = dict(zip(integers.tolist(), above.tolist(), strict=True))

    def check(count):
        least = int(tau) + 1 - count
        probability = chance.get(least, float(least < 0))
        return count > 0 and rng.random() < probability

    return check


def statistics_of_plain(X, public, height, sigma, tau, n_runs, tree_of, make_check):
    result = []
    for run in range(n_runs):
        tree = PlainTree(X, public, height, np.uint64(tree_of(run)))
        heavy = tree.heavy(make_check(sigma, tau, np.random.default_rng([7, run])))
        # A terminal node stays a leaf even where it is Heavy.
        inner = [p for p in heavy if p in tree.children]
        leaves = [c for p in inner for c in tree.children[p] if c not in inner] or [()]
        result.append(
            (
                len(inner),
                max((len(p) for p in inner), default=-1),
                max(tree.count[p] for p in leaves),
            )
        )
    return np.array(result)


def statistics_of_builder(X, y, public, height, sigma, tau, n_runs, tree_of, is_discrete):
    result = []
    for run in range(n_runs):
        tree = grow(
            X,
            y,
            public,
            height=height,
            sigma=sigma,
            tau=tau,
            tree=tree_of(run),
            noise=[8, run],
            is_discrete=is_discrete,
        )
        left = tree.children_left
        depth = np.zeros(len(left), dtype=int)
        for node in np.flatnonzero(left >= 0):
            depth[left[node] : left[node] + 2] = depth[node] + 1
        inner = left >= 0
        deepest = depth[inner].max() if inner.any() else -1
        result.append((inner.sum(), deepest, tree.counts[~inner].sum(axis=1).max()))
    return np.array(result)


def p_value_of_same_law(first, second):
    """Chi-square test of two samples of small integers, rare values pooled."""
    n_first, n_second = Counter(first.tolist()), Counter(second.tolist())
    table, pool = [], np.zeros(2)
    for value in sorted(set(n_first) | set(n_second)):
        pool += (n_first[value], n_second[value])
        if pool.sum() >= 20:
            table.append(pool)
            pool = np.zeros(2)
    table[-1] = table[-1] + pool
    return stats.chi2_contingency(np.array(table).T).pvalue if len(table) > 1 else 1.0


@pytest.mark.parametrize("public", [NUMERIC, MIXED], ids=["numeric", "mixed"])
@pytest.mark.parametrize("is_discrete", [False, True], ids=["continuous", "discrete"])
@pytest.mark.parametrize(
    ("n_rows", "height", "sigma", "tau"),
    [(14, 8, 1.5, 4.0), (30, 5, 2.0, 6.0), (60, 12, 6.0, 20.0)],
)
def test_lazy_builder_has_the_law_of_the_plain_algorithm(
    public, n_rows, height, sigma, tau, is_discrete
):
    X = rows_for(public, n_rows, seed=3)
    y = np.zeros(n_rows, dtype=np.int64)
    runs = 1500
    check = discrete_check if is_discrete else gaussian_check
    setting = (height, sigma, tau)
    plain = statistics_of_plain(X, public, *setting, runs, lambda run: run % 50, check)
    lazy = statistics_of_builder(
        X, y, public, *setting, 4 * runs, lambda run: run % 50, is_discrete
    )
    for column in range(3):
        assert p_value_of_same_law(plain[:, column], lazy[:, column]) > 1e-4


def test_without_noise_the_inner_nodes_are_those_above_the_threshold():
    X = rows_for(NUMERIC, 300, seed=2)
    y = np.zeros(300, dtype=np.int64)
    for tree in range(10):
        grown = grow(X, y, NUMERIC, height=9, sigma=1e-9, tau=12.5, tree=tree)
        plain = PlainTree(X, NUMERIC, 9, np.uint64(tree))
        expected = sum(count > 12.5 for path, count in plain.count.items() if len(path) < 9)
        assert (grown.feature >= 0).sum() == expected


def test_every_record_is_counted_in_one_leaf_and_nodes_are_numbered_breadth_first():
    X = rows_for(MIXED, 500, seed=4)
    y = np.random.default_rng(4).integers(0, 2, 500)
    tree = grow(X, y, MIXED, height=20, sigma=2.0, tau=10.0)
    is_inner = tree.children_left >= 0
    assert tree.counts.sum(axis=0).tolist() == np.bincount(y).tolist()
    assert tree.counts[is_inner].sum() == 0
    assert np.array_equal(
        tree.counts.sum(axis=1), np.bincount(tree.leaf_of_row, minlength=len(is_inner))
    )
    assert np.array_equal(tree.feature >= 0, is_inner)
    n_inner = is_inner.sum()
    assert len(is_inner) == 2 * n_inner + 1
    assert tree.children_left[is_inner].tolist() == list(range(1, 2 * n_inner, 2))


def test_a_light_root_makes_one_leaf():
    X = rows_for(NUMERIC, 20, seed=4)
    tree = grow(X, np.zeros(20, dtype=np.int64), NUMERIC, height=20, sigma=1e-9, tau=1000.0)
    assert tree.feature.tolist() == [NO_SPLIT]
    assert tree.children_left.tolist() == [-1]
    assert tree.counts.tolist() == [[20, 0]]


def test_a_table_of_constants_makes_one_leaf_whatever_its_counts():
    public = (np.array([0, 1], dtype=np.int64), np.array([3.0, 0.0]), np.array([3.0, 0.0]))
    X = np.asfortranarray(np.tile([3.0, 0.0], (1000, 1)))
    tree = grow(X, np.zeros(1000, dtype=np.int64), public, height=8, sigma=1.0, tau=5.0)
    assert tree.feature.tolist() == [NO_SPLIT]


def test_no_category_is_used_twice_on_a_path_and_the_first_is_no_candidate():
    public = (np.array([4, 3], dtype=np.int64), np.zeros(2), np.array([3.0, 2.0]))
    X = rows_for(public, 400, seed=6)
    tree = grow(X, np.zeros(400, dtype=np.int64), public, height=30, sigma=1e-9, tau=0.5)
    paths = {0: ()}
    for node in np.flatnonzero(tree.children_left >= 0):
        split = (int(tree.feature[node]), int(tree.threshold[node]))
        assert split not in paths[node]
        assert split[1] >= 1
        for side in (0, 1):
            paths[tree.children_left[node] + side] = (*paths[node], split)
    # 3 + 2 candidates, so a path is settled after at most 5 splits.
    assert max(map(len, paths.values())) <= 5


def test_features_are_drawn_uniformly_however_many_categories_they_have():
    n_categories = np.array([0, 41, 2, 0], dtype=np.int64)
    public = PublicFacts(2, n_categories, np.zeros(4), np.array([1.0, 40.0, 1.0, 1.0]), 1)
    path = make_path(n_categories)
    path.lower[:], path.upper[:] = public.lower, public.upper
    drawn = [
        draw_uniform_split(np.uint64(keyed_bits(np.uint64(seed), 0)), public, path)
        for seed in range(8000)
    ]
    features = np.array([feature for feature, _ in drawn])
    assert stats.chisquare(np.bincount(features, minlength=4)).pvalue > 1e-4
    thresholds = np.array([cut for feature, cut in drawn if feature == 0])
    assert stats.kstest(thresholds, "uniform").pvalue > 1e-4
    categories = np.array([cut for feature, cut in drawn if feature == 1]).astype(int)
    assert stats.chisquare(np.bincount(categories, minlength=41)[1:]).pvalue > 1e-4


def test_splits_do_not_depend_on_the_rows():
    X = rows_for(NUMERIC, 500, seed=4)
    other = rows_for(NUMERIC, 900, seed=9)
    trees = [
        grow(table, np.zeros(len(table), dtype=np.int64), NUMERIC, height=8, sigma=1e-9, tau=40.0)
        for table in (X, other)
    ]
    # The root exists in both; beyond that only the shape may differ.
    assert trees[0].feature[0] == trees[1].feature[0]
    assert trees[0].threshold[0] == trees[1].threshold[0]


def test_unseen_categories_go_right():
    public = (np.array([3], dtype=np.int64), np.zeros(1), np.array([2.0]))
    X = np.asfortranarray(np.full((50, 1), -1.0))
    tree = grow(X, np.zeros(50, dtype=np.int64), public, height=4, sigma=1e-9, tau=10.0)
    node = 0
    while tree.children_left[node] >= 0:
        node = tree.children_left[node] + 1
    assert tree.counts[node].sum() == 50
