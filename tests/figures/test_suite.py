from __future__ import annotations

import csv
import math

import pytest
from synthetic_results import result_rows

from lumberjack_bench.figures import FigureError, Request, draw, make
from lumberjack_bench.figures.across import standings
from lumberjack_bench.figures.curves import read_panels

# Mean accuracies by data set. Ranks: a 1 1 2.5 1, b 2 2 1 2, c 3 3 2.5 3; a and c tie on "three".
A = {"one": 0.9, "two": 0.8, "three": 0.5, "four": 0.7}
B = {"one": 0.8, "two": 0.7, "three": 0.9, "four": 0.6}
C = {"one": 0.7, "two": 0.6, "three": 0.5, "four": 0.5}
CEILING = {"one": 0.95, "two": 0.85, "three": 0.95, "four": 0.75}


def runs_of(method, means, **changes):
    return [
        result_rows(method, [mean - 0.01, mean + 0.01], dataset=dataset, **changes)
        for dataset, mean in means.items()
    ]


@pytest.fixture
def four_data_sets():
    runs = [*runs_of("a", A), *runs_of("b", B), *runs_of("c", C, card_status="broken")]
    return [*runs, *runs_of("trees", CEILING, eps=math.inf)]


def of_table(table, metric="accuracy"):
    return standings(read_panels(table, metric=metric), table)


def test_ranks_win_rates_and_worst_losses_are_those_on_paper(table_of, four_data_sets):
    # Mean ranks 5.5 / 4, 7 / 4, 11.5 / 4. a against c: three wins and a tie, 3.5 / 4. Against the best
    # other, a: +.1 +.1 -.4 +.1. The reference, against the best private: .05 everywhere.
    (only,), missing = of_table(table_of(*four_data_sets))
    assert (only.eps, len(only.datasets), missing) == (1.0, 4, [])
    ranks = [(one.curve.method, one.mean_rank.mean) for one in only.private]
    assert ranks == [("a", 1.375), ("b", 1.75), ("c", 2.875)]
    a, b, c = only.private
    assert [a.win_rates["B"].mean, a.win_rates["C"].mean, c.win_rates["A"].mean] == [
        0.75,
        0.875,
        0.125,
    ]
    assert (a.worst, a.advantages["three"]) == ("three", pytest.approx(-0.4))
    assert a.mean_advantage == pytest.approx(-0.025)
    assert b.advantages == pytest.approx({"one": -0.1, "two": -0.1, "three": 0.4, "four": -0.1})
    (trees,) = only.others
    assert (trees.mean_rank, trees.mean_advantage) == (None, pytest.approx(0.05))


def test_the_bootstrap_draws_data_sets(table_of, four_data_sets):
    # b beats a on one of four. A resample of four holds it k times with probability Binomial(4, 1/4): never
    # .316, up to three times .996; so the middle 95 % of k / 4 reach from 0 to 3 / 4.
    (only,), _ = of_table(table_of(*four_data_sets))
    rate = only.private[1].win_rates["A"]
    assert (rate.mean, rate.lower, rate.upper, rate.n) == (0.25, 0.0, 0.75, 4)


def test_of_a_loss_less_is_better(table_of, four_data_sets):
    losses = [[row | {"metric": "log_loss"} for row in run] for run in four_data_sets]
    (only,), _ = of_table(table_of(*losses), "log_loss")
    assert [one.curve.method for one in only.private] == ["c", "b", "a"]
    assert only.private[2].advantages["one"] == pytest.approx(-0.2)


def test_data_sets_that_a_method_lacks_are_named_with_the_reason_and_left_out(
    table_of, four_data_sets
):
    skipped = {"status": "skipped", "metric": "skip", "dataset": "two", "run_hash": "skipped"}
    table = table_of(
        *four_data_sets,
        *runs_of("d", {"one": 0.5, "four": 0.5}),
        result_rows("d", [""], **skipped),
        result_rows("e", [""], **skipped | {"run_hash": "other"}),
    )
    (only,), missing = of_table(table)
    assert only.datasets == ("four", "one")
    assert missing == [
        "eps = 1: D has no value on three (not run), two (skipped).",
        "e has no value on any of the data sets.",
    ]
    with pytest.raises(FigureError, match=r"Choose with --m.*C has no value on four \(not run\)"):
        of_table(table_of(*runs_of("a", A), *runs_of("c", {"one": 0.5})))


def test_only_splits_that_all_methods_have_count(table_of):
    # On the first split alone, which b has too, a has .89, not .9.
    short = [run[:1] for run in runs_of("b", B)]
    (only,), _ = of_table(table_of(*runs_of("a", A), *short))
    assert only.private[0].advantages["one"] == pytest.approx(0.89 - 0.79)


def test_the_command_writes_a_picture_all_numbers_and_a_page_with_marks(
    write_results, four_data_sets, tmp_path
):
    path = write_results(*four_data_sets)
    request = Request(path, tmp_path / "out")
    written = make("suite", request)
    assert [file.name for file in written] == ["suite.pdf", "suite.png", "suite.csv", "suite.md"]
    page = (tmp_path / "out" / "suite.md").read_text()
    assert "| A | 1.38 [" in page
    assert "| -0.0250 | -0.4000 | three |" in page
    assert "| C † |" in page
    assert "Shown not to hold: C." in page
    with (tmp_path / "out" / "suite.csv").open() as file:
        rows = list(csv.DictReader(file))
    # Of each of 3 private methods a rank, 2 win rates, 4 data sets; of the reference 4 data sets.
    assert len(rows) == 3 * (1 + 2 + 4) + 4
    before = [file.read_bytes() for file in written]
    assert [file.read_bytes() for file in make("suite", request)] == before


def test_a_sweep_shows_its_own_data_sets(write_results, four_data_sets, tmp_path):
    write_results(*four_data_sets)
    draw("suite", tmp_path, datasets=["one", "two"])
    assert "Data sets: one, two." in (tmp_path / "suite.md").read_text()


def test_a_method_with_few_data_sets_is_left_out_unless_it_is_asked_for(table_of, four_data_sets):
    table = table_of(*four_data_sets, *runs_of("stranger", {"one": 0.99}))
    panels = read_panels(table)
    (only,), missing = standings(panels, table, are_all_asked=False)
    assert len(only.datasets) == 4
    assert "stranger" not in [one.curve.method for one in only.private]
    assert missing == [
        "eps = 1: Stranger is left out, as it has 1 of the data sets; --methods asks for it."
    ]
    with pytest.raises(FigureError, match="Stranger has no value on"):
        standings(panels, table)
