from __future__ import annotations

import numpy as np
import pytest

from lumberjack_bench.runs.holdout import n_training_rows, stratified_split


def seed(number: int = 0) -> np.random.SeedSequence:
    return np.random.SeedSequence(number)


def test_parts_are_eighty_ten_ten_and_cover_every_row_once() -> None:
    y = np.repeat([0, 1], [700, 300])
    split = stratified_split(y, seed())
    assert [len(split.train), len(split.validation), len(split.test)] == [800, 100, 100]
    together = np.concatenate([split.train, split.validation, split.test])
    assert sorted(together) == list(range(1000))
    assert len(split.train_and_validation) == n_training_rows(1000) == 900
    assert sorted(split.train_and_validation) == sorted(set(range(1000)) - set(split.test))


def test_each_part_keeps_the_share_of_each_class() -> None:
    # 1003 rows: 100 to test. 10 % of 601, 302, 100 are 60.1, 30.2, 10.0 scaled by 100/100.3:
    # 59.92, 30.11, 9.97, so floors 59, 30, 9 and the two left go to the largest remainders: 60, 30, 10.
    y = np.repeat([0, 1, 2], [601, 302, 100])
    split = stratified_split(y, seed())
    assert np.bincount(y[split.test]).tolist() == [60, 30, 10]
    # 541, 272, 90 left; 100/903 of them are 59.91, 30.12, 9.97: again 60, 30, 10.
    assert np.bincount(y[split.validation]).tolist() == [60, 30, 10]


def test_the_split_is_a_function_of_the_seed() -> None:
    y = np.arange(200) % 3
    first, again, other = (stratified_split(y, seed(n)) for n in (1, 1, 2))
    assert first.test.tolist() == again.test.tolist()
    assert first.test.tolist() != other.test.tolist()


def test_rows_are_drawn_at_random_within_a_class() -> None:
    # Each row is in the test part with probability 0.1: over 2000 seeds 200 times, deviation 13.4.
    y = np.repeat([0, 1], [30, 70])
    counts = np.zeros(100)
    for number in range(2000):
        counts[stratified_split(y, seed(number)).test] += 1
    assert counts.min() > 200 - 5 * 13.4
    assert counts.max() < 200 + 5 * 13.4


def test_a_class_that_the_data_lacks_is_no_problem() -> None:
    split = stratified_split(np.repeat([0, 2], [50, 50]), seed())
    assert len(split.test) == 10


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 10 rows, got 9"):
        stratified_split(np.zeros(9, dtype=np.int64), seed())
