"""Boosting on MST's rows: what is released, and that nothing else is used."""

from __future__ import annotations

import numpy as np
import pytest

from baselines.synthetic_boosting import (
    SyntheticBoosting,
    choose_tree,
    pair_scores,
)
from lumberjack.schema import UNSEEN, CategoricalFeature, FeatureSchema, NumericFeature

SCHEMA = FeatureSchema(
    (
        NumericFeature("a", -1.0, 3.0),
        CategoricalFeature("b", (0, 1, 2)),
        NumericFeature("constant", 5.0, 5.0),
    ),
    (0, 1),
)


def test_cells_and_values_are_each_others_inverse() -> None:
    model = SyntheticBoosting(schema=SCHEMA, n_bins=4)
    table = np.array([[-1.0, 0, 5.0], [0.0, 2, 5.0], [2.9, UNSEEN, 5.0], [3.0, 1, 5.0]])
    cells = model._as_cells(table, np.array([0, 1, 0, 1]))
    assert cells.tolist() == [[0, 0, 0, 0], [1, 2, 0, 1], [3, 3, 0, 0], [3, 1, 0, 1]]
    again = model._as_table(cells[:, :-1], np.random.default_rng(0))
    assert np.isnan(again[2, 1])
    again[2, 1] = UNSEEN
    assert np.array_equal(model._as_cells(again, cells[:, -1]), cells)


def test_one_record_moves_a_score_by_at_most_one() -> None:
    rng = np.random.default_rng(0)
    cells = rng.integers(0, [2, 3, 4], size=(200, 3))
    released = [np.bincount(column).astype(float) for column in cells.T]
    before = pair_scores(cells, released, 200.0)
    for extra in rng.integers(0, [2, 3, 4], size=(20, 3)):
        after = pair_scores(np.vstack([cells, extra]), released, 200.0)
        assert max(abs(after[pair] - before[pair]) for pair in before) <= 1 + 1e-9


def test_without_noise_the_tree_is_the_maximum_spanning_tree() -> None:
    # 0-3 (9), 2-3 (8) and 1-2 (6); 0-2 (7) would close a circle.
    scores = {(0, 1): 1.0, (0, 2): 7.0, (0, 3): 9.0, (1, 2): 6.0, (1, 3): 2.0, (2, 3): 8.0}
    assert choose_tree(scores, 1e-9, np.random.default_rng(0)) == [(0, 3), (3, 2), (2, 1)]


def test_an_edge_is_chosen_as_often_as_the_exponential_mechanism_says() -> None:
    # Two of three edges; the first is drawn in proportion to exp(score / scale).
    scores = {(0, 1): 1.0, (0, 2): 0.0, (1, 2): 0.0}
    rng = np.random.default_rng(0)
    without = sum((0, 1) not in choose_tree(scores, 1.0, rng) for _ in range(4000)) / 4000
    # Neither first nor second: 2/(e + 2), then 1/(e + 1).
    assert without == pytest.approx(2 / (np.e + 2) / (np.e + 1), abs=0.02)


def test_too_many_pairs_of_values_are_skipped_with_their_number() -> None:
    # Cells: 32, 4, 1 and 2 give 32*4 + 32 + 64 + 4 + 8 + 2 = 238 pairs.
    reason = SyntheticBoosting(schema=SCHEMA, max_pair_cells=237).skip(1)
    assert reason is not None
    assert "have 238 cells" in reason
    assert SyntheticBoosting(schema=SCHEMA, max_pair_cells=238).skip(1) is None
