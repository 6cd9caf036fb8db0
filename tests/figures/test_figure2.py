from __future__ import annotations

import itertools

import numpy as np
import pytest

from lumberjack.accounting import calibrate_safe
from lumberjack.heavy_hitters import GaussianSparseThreshold, mark_heavy_hitters
from lumberjack_bench.figures import figure2
from lumberjack_bench.figures.figure2 import HEAVY, LIGHT, THRESHOLD, UNMARKED, record_search


@pytest.fixture(scope="module")
def tree():
    return figure2.binary_tree(figure2.LEAF_COUNTS)


@pytest.fixture(scope="module")
def noise():
    return calibrate_safe(figure2.EPSILON, figure2.DELTA, 3)


@pytest.fixture(scope="module")
def steps(tree, noise):
    """The search that is drawn."""
    return record_search(*tree, noise, np.random.default_rng(figure2.SEED))


def test_counts_add_up_the_tree():
    # Leaves 1, 2, 3, 4: above them 3 and 7, above those 10.
    hierarchy, counts = figure2.binary_tree((1, 2, 3, 4))
    assert counts.tolist() == [10, 3, 7, 1, 2, 3, 4]
    assert hierarchy.parent.tolist() == [-1, 0, 0, 1, 1, 2, 2]


def test_the_steps_end_where_the_algorithm_does(tree, noise):
    hierarchy, counts = tree
    for seed in range(30):
        steps = record_search(hierarchy, counts, noise, np.random.default_rng(seed))
        query = GaussianSparseThreshold(
            noise.sigma, THRESHOLD, noise.margin, np.random.default_rng(seed)
        )
        is_heavy = mark_heavy_hitters(hierarchy, lambda nodes, query=query: query(counts[nodes]))
        final = steps[-1].after
        assert ((final == HEAVY) == is_heavy).all()
        assert (final != UNMARKED).all()


def test_the_drawn_search_goes_through_all_three_phases(tree, steps):
    hierarchy, _ = tree
    levels = [np.unique(hierarchy.level[step.queried]).tolist() for step in steps]
    # Height 5: the middle is level 2, the subtrees of height 2 below it have theirs at level 4,
    # and the tree of height 2 above it at level 1.
    assert levels == [[2], [4], [3], [1]]
    asked = np.concatenate([step.queried for step in steps])
    assert len(set(asked.tolist())) == len(asked)


def test_each_step_keeps_the_marks_of_the_one_before(steps):
    for step, following in itertools.pairwise(steps):
        assert (step.after == following.before).all()
    for step in steps:
        was_marked = step.before != UNMARKED
        assert (step.before[was_marked] == step.after[was_marked]).all()
        assert (step.before[step.queried] == UNMARKED).all()
        assert (step.after[step.queried] == np.where(step.answers, HEAVY, LIGHT)).all()


def test_the_picture_has_the_counts_each_step_and_the_release(tree, noise, steps):
    hierarchy, counts = tree
    figure = figure2.draw_steps(hierarchy, counts, noise, steps)
    titles = [axes.texts[0].get_text() for axes in figure.axes]
    queries = [f"Step {i}: query level {level}" for i, level in enumerate((2, 4, 3, 1), start=1)]
    assert titles == ["The tree", *queries, "Released"]
    letters = [text.get_text() for text in figure.axes[-1].texts]
    # 9 Heavy nodes by count: 870, 720, 150, 600, 120, 460, 140, 300, 160.
    assert letters.count("H") == int((counts > THRESHOLD).sum()) == 9
    assert not {"?"} & set(letters)
