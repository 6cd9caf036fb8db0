"""On ranks every split parts the rows as it does on the entries themselves."""

import numpy as np
import pytest

from lumberjack.ranks import part_rows, rank_table

RNG = np.random.default_rng(0)
N = 3000

COLUMNS = {
    "few whole numbers": RNG.integers(17, 91, N).astype(float),
    "categories, some unseen": RNG.integers(-1, 12, N).astype(float),
    "halves": RNG.integers(-9, 9, N) / 2,
    "many categories": RNG.integers(-1, 900, N).astype(float),
    "continuous": RNG.normal(size=N) * 1e-3,
    "mostly zero": np.where(RNG.random(N) < 0.9, 0.0, RNG.exponential(5000, N)),
    "few values, no grid": RNG.choice([0.1, 0.2, 0.7, 1e300], N),
    "constant": np.full(N, 3.3),
    "rare values that no sample holds": np.append(np.zeros(N - 2), [1e-9, 7.0]),
}


def thresholds_for(column):
    seen = RNG.choice(np.unique(column), 12)
    between = RNG.uniform(column.min() - 1, column.max() + 1, 12)
    return np.concatenate([seen, np.nextafter(seen, np.inf), np.nextafter(seen, -np.inf), between])


@pytest.mark.parametrize("is_category", [False, True], ids=["numeric", "categorical"])
@pytest.mark.parametrize("n_taken", [N, 200], ids=["most rows", "few rows"])
@pytest.mark.parametrize("name", COLUMNS)
def test_a_split_on_ranks_is_the_split_on_values(name, n_taken, is_category):
    column = COLUMNS[name]
    table = rank_table([RNG.normal(size=N), column])
    taken = np.sort(RNG.permutation(N)[:n_taken]).astype(np.uint32)
    for threshold in thresholds_for(column):
        rows, spare = np.append(taken, np.uint32(7)), np.empty(N, dtype=np.uint32)
        middle = part_rows(table, 1, threshold, is_category, rows, 0, n_taken, spare)
        values = column[taken]
        goes_left = values == threshold if is_category else values <= threshold
        expected = np.concatenate([taken[goes_left], taken[~goes_left], [7]])
        assert middle == goes_left.sum()
        assert np.array_equal(rows, expected)


def test_few_values_are_never_looked_up_and_many_rarely():
    column = COLUMNS["continuous"]
    table = rank_table([COLUMNS["halves"], column])
    assert table.is_single[0].all()
    shares = np.bincount(table.by_row.reshape(N, 2)[:, 1], minlength=256) / N
    assert shares.max() < 0.02
