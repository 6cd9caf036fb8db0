from __future__ import annotations

import csv
import math
import runpy
from pathlib import Path

import numpy as np
import pytest
from synthetic_results import result_rows

from lumberjack_bench.figures.comparison import compare, read_selector
from lumberjack_bench.figures.request import FigureError

compare_script = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "compare.py"))["main"]


A = [0.80, 0.82, 0.84, 0.86, 0.88]
B = [0.79, 0.80, 0.81, 0.82, 0.83]


def test_differences_are_paired_by_split(table_of):
    # Differences 0.01 to 0.05: mean 0.03, s = 0.01581139, t(4, 0.975) = 2.776445, half width
    # 0.01963243. On [-1, 1] the mean is the share 0.515, of log-odds 0.0600180, and the half width
    # 0.00981622 / (0.515 * 0.485) = 0.0393002. Shares 0.505179 and 0.524809: -1 + 2 * share.
    # Wilcoxon, five positive differences: p = 2 / 2^5 = 0.0625.
    table = table_of(result_rows("a", A), result_rows("b", B))
    (only,) = compare(table, "a", "b").comparisons
    assert (only.mean_a, only.mean_b) == pytest.approx((0.84, 0.81))
    assert only.difference.mean == pytest.approx(0.03)
    assert only.difference.lower == pytest.approx(0.010359, abs=2e-6)
    assert only.difference.upper == pytest.approx(0.049618, abs=2e-6)
    assert only.p_value == pytest.approx(0.0625)
    assert (only.n_pairs, only.wins, only.ties, only.losses, only.winner) == (5, 5, 0, 0, "a")
    (back,) = compare(table, "b", "a").comparisons
    assert back.difference.lower == pytest.approx(-only.difference.upper)
    assert (back.wins, back.losses, back.winner) == (0, 5, "b")


def test_only_common_splits_count(table_of):
    table = table_of(result_rows("a", A), result_rows("b", B[:3]), result_rows("b", B, seed=1))
    (only,) = compare(table, "a", "b").comparisons
    assert only.n_pairs == 3
    assert only.mean_a == pytest.approx(0.82)


def test_a_reference_serves_every_eps(table_of):
    table = table_of(
        result_rows("a", A, eps=1.0),
        result_rows("a", A, eps=2.0),
        result_rows("trees", B, eps=math.inf),
    )
    comparisons = compare(table, "a", "trees").comparisons
    assert [item.eps for item in comparisons] == [1.0, 2.0, None]


def test_over_all_eps_each_split_is_averaged_first(table_of):
    # Differences per split: eps 1: 0.01, 0.03; eps 2: 0.03, 0.05; averaged: 0.02, 0.04.
    # s = 0.01414214, t(1, 0.975) = 12.706205, half width 12.706205 * 0.01 = 0.12706205.
    table = table_of(
        result_rows("a", [0.51, 0.63], eps=1.0),
        result_rows("b", [0.50, 0.60], eps=1.0),
        result_rows("a", [0.53, 0.65], eps=2.0),
        result_rows("b", [0.50, 0.60], eps=2.0),
    )
    *_, over_all = compare(table, "a", "b").comparisons
    assert over_all.eps is None
    assert over_all.n_pairs == 2
    assert over_all.difference.mean == pytest.approx(0.03)
    assert over_all.difference.upper == pytest.approx(0.155904, abs=1e-6)


def test_equal_methods_tie_and_have_no_winner(table_of):
    table = table_of(result_rows("a", A), result_rows("b", A))
    for interval in ("t", "bootstrap"):
        (only,) = compare(table, "a", "b", interval=interval).comparisons
        assert (only.wins, only.ties, only.losses) == (0, 5, 0)
        assert (only.difference.lower, only.difference.upper, only.p_value) == (0.0, 0.0, 1.0)
        assert only.winner == ""


def test_the_bootstrap_interval_is_near_the_normal_one_for_many_pairs(table_of):
    # 100 differences with standard deviation 0.01: half width near 1.96 * 0.01 / 10 = 0.00196.
    generator = np.random.default_rng(0)
    noise = generator.normal(0, 1, 100)
    values = 0.803 + 0.01 * (noise - noise.mean()) / noise.std()
    table = table_of(result_rows("a", list(values)), result_rows("b", [0.8] * 100))
    first, again = (compare(table, "a", "b", interval="bootstrap") for _ in range(2))
    assert first == again
    (only,) = first.comparisons
    assert only.difference.lower == pytest.approx(0.003 - 0.00196, abs=0.0003)
    assert only.difference.upper == pytest.approx(0.003 + 0.00196, abs=0.0003)


def test_results_of_another_schema_are_named_and_left_out(table_of):
    newer = {"data_version": "2", "run_hash": "new"}
    table = table_of(
        result_rows("a", A, is_current=False),
        result_rows("b", B, is_current=False),
        result_rows("a", B, **newer),
        result_rows("b", A, **newer | {"run_hash": "newer"}),
    )
    result = compare(table, "a", "b")
    (only,) = result.comparisons
    assert only.difference.mean == pytest.approx(-0.03)
    (line,) = result.skipped
    assert "adult: 2 runs of another version left out" in line


def test_rows_of_different_sources_are_never_compared(table_of):
    table = table_of(
        result_rows("a", A, data_source="part, 10 rows", is_current=False),
        result_rows("b", B, data_source="whole, 20 rows", data_version="2"),
    )
    with pytest.raises(FigureError, match=r"no finished rows.*left out \(part, 10 rows"):
        compare(table, "a", "b")


def test_too_few_pairs_are_refused_with_their_number_and_do_not_hide_the_others(table_of):
    too_few = [result_rows("a", A, eps=2.0), result_rows("b", B[:1], eps=2.0)]
    with pytest.raises(FigureError, match=r"adult at eps=2: too few common repetitions \(1, at"):
        compare(table_of(*too_few), "a", "b")
    result = compare(table_of(result_rows("a", A), result_rows("b", B), *too_few), "a", "b")
    assert [item.eps for item in result.comparisons] == [1.0]
    (line,) = result.skipped
    assert "adult at eps=2" in line


def test_over_data_sets_each_counts_once_by_its_mean(table_of):
    # Differences .02, .04 (mean of .03 and .05 at two eps) and -.03: mean .01, s = .0360555,
    # t(2, 0.975) = 4.302653, half width .0895671; on [-1, 1] the share .505, so nearly Student's own.
    def runs(method, *means):
        one, first, second, three = ([mean - 0.1, mean + 0.1] for mean in means)
        yield result_rows(method, one, dataset="one")
        yield result_rows(method, first, dataset="two", eps=1.0)
        yield result_rows(method, second, dataset="two", eps=4.0)
        yield result_rows(method, three, dataset="three")

    table = table_of(*runs("a", 0.52, 0.53, 0.55, 0.47), *runs("b", 0.5, 0.5, 0.5, 0.5))
    over = compare(table, "a", "b").over_datasets
    assert (over.dataset, over.eps, over.wins, over.losses) == ("3 data sets", None, 2, 1)
    assert over.difference.mean == pytest.approx(0.01)
    assert over.difference.upper == pytest.approx(0.01 + 0.0895671, abs=5e-4)
    assert compare(table, "a", "b", datasets=["one"]).over_datasets is None


def test_of_a_loss_the_smaller_mean_wins_and_the_interval_is_students(table_of):
    # Half width 0.01963243, as in the first test.
    runs = (result_rows(name, values, metric="log_loss") for name, values in (("a", A), ("b", B)))
    (only,) = compare(table_of(*runs), "a", "b", metric="log_loss").comparisons
    assert only.difference.mean == pytest.approx(0.03)
    assert only.difference.upper == pytest.approx(0.03 + 0.01963243)
    assert (only.wins, only.losses, only.winner) == (0, 5, "b")


def test_variants_must_be_told_apart_and_can_be(table_of):
    table = table_of(
        result_rows("a", A, params='{"depth": 3}'),
        result_rows("a", B, params='{"depth": 5}'),
        result_rows("b", B),
        result_rows("b", A, mode="corrected"),
    )
    with pytest.raises(FigureError, match=r"'a' means 2 variants on adult.*depth \(3, 5\)"):
        compare(table, "a", "b:paper")
    with pytest.raises(FigureError, match=r"mode \(corrected, paper\)"):
        compare(table, "a,depth=3", "b")
    (only,) = compare(table, "a,depth=3", "b:paper").comparisons
    assert only.difference.mean == pytest.approx(0.03)
    with pytest.raises(FigureError, match="hold: 3, 5"):
        compare(table, "a,depth=4", "b:paper")


def test_selectors_are_read_and_bad_ones_refused():
    found = read_selector("snr:corrected,n_bins=5")
    assert found == ("snr", {"mode": "corrected", "n_bins": "5"})
    with pytest.raises(FigureError, match="n_bins"):
        read_selector("snr,n_bins")


def test_the_script_prints_a_table_and_writes_a_csv(write_results, capsys, tmp_path):
    path = write_results(result_rows("a", A), result_rows("b", B))
    target = tmp_path / "wins.csv"
    assert compare_script(["a", "b", "--results", str(path), "--csv", str(target)]) == 0
    printed = capsys.readouterr().out
    assert "a has the better mean in 1 of 1 rows (interval without 0 in 1)" in printed
    assert "5-0-0" in printed
    assert "cannot fall below 0.0625" in printed
    (row,) = csv.DictReader(target.read_text().splitlines())
    assert (row["eps"], row["n_pairs"], row["wins"]) == ("1", "5", "5")
    assert float(row["difference"]) == pytest.approx(0.03)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", "nosuch"], "'nosuch'. They hold: a, b"),
        (["a", "b", "--datasets", "nosuch"], "'nosuch'. They hold: adult"),
        (["a", "b", "--metric", "nosuch"], "'nosuch'. They hold: accuracy"),
        (["a", "b", "--results", "no.csv"], "python run.py -m method=a,b"),
    ],
)
def test_the_script_refuses_in_one_line(write_results, capsys, arguments, message):
    path = write_results(result_rows("a", A), result_rows("b", B))
    assert compare_script(["--results", str(path), *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1
