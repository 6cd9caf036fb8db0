from __future__ import annotations

import math

import pytest
from synthetic_results import result_rows

from lumberjack_bench.figures.curves import csv_rows, power_of_ten, read_panels
from lumberjack_bench.figures.request import FigureError


@pytest.fixture
def panels_of(table_of):
    return lambda *runs, **choices: read_panels(table_of(*runs), **choices)


def test_a_point_is_the_mean_of_its_repetitions_with_its_interval(panels_of):
    # Values 0.81 to 0.85: mean 0.83, s = 0.01 sqrt(2.5) = 0.01581139, t(4, 0.975) = 2.776445,
    # half width 2.776445 * 0.01581139 / sqrt(5) = 0.01963243, over 0.83 * 0.17 = 0.1391385 in log-odds,
    # where 0.83 is 1.585627: 1 / (1 + exp(-1.446489)) = 0.809457, 1 / (1 + exp(-1.724766)) = 0.848742.
    (panel,) = panels_of(result_rows("forest", [0.81, 0.82, 0.83, 0.84, 0.85], eps=2.0))
    (row,) = csv_rows("figure3", [panel])
    assert row["eps"] == 2.0
    assert row["mean"] == pytest.approx(0.83)
    assert row["lower"] == pytest.approx(0.809457, abs=1e-6)
    assert row["upper"] == pytest.approx(0.848742, abs=1e-6)
    assert row["n_repetitions"] == 5


def test_a_single_repetition_has_no_interval(panels_of):
    (panel,) = panels_of(result_rows("forest", [0.81]))
    (row,) = csv_rows("figure3", [panel])
    assert row["mean"] == 0.81
    assert math.isnan(row["lower"])
    assert math.isnan(row["upper"])


def test_a_repetition_that_two_runs_hold_counts_once_and_the_longer_run_wins(panels_of):
    short = result_rows("forest", [0.1, 0.2])
    long = result_rows("forest", [0.6, 0.7, 0.8])
    other_seed = result_rows("forest", [0.9], seed=1)
    for runs in ((short, long, other_seed), (other_seed, long, short)):
        (panel,) = panels_of(*runs)
        (point,) = panel.curves[0].points
        assert point.values == {(0, 0): 0.6, (0, 1): 0.7, (0, 2): 0.8, (1, 0): 0.9}


def test_curves_are_told_apart_and_ordered_by_their_last_value(panels_of):
    (panel,) = panels_of(
        result_rows("falls", [0.9], eps=1.0),
        result_rows("falls", [0.7], eps=8.0),
        result_rows("rises", [0.6], eps=1.0),
        result_rows("rises", [0.8], eps=8.0),
        result_rows("extra_trees", [0.75], eps=math.inf),
        result_rows("majority", [0.5], eps=math.inf),
    )
    assert [(curve.method, curve.kind) for curve in panel.curves] == [
        ("rises", "private"),
        ("extra_trees", "reference"),
        ("falls", "private"),
        ("majority", "majority"),
    ]
    assert [point.eps for point in panel.curves[0].points] == [1.0, 8.0]


def test_data_sets_come_in_the_paper_s_order_and_own_ones_last(panels_of):
    runs = [
        result_rows("forest", [0.8], dataset=name)
        for name in ("mine", "acs_travel_time", "adult", "acs_income")
    ]
    shown = [panel.dataset for panel in panels_of(*runs)]
    assert shown == ["adult", "acs_income", "acs_travel_time", "mine"]


def test_rows_of_a_stand_in_and_of_the_real_file_never_meet_in_a_curve(panels_of):
    stand_in = {"data_source": "stand-in part.parquet, 10 rows", "is_stand_in": True}
    stand_in["data_version"] = "2"
    panels = panels_of(
        result_rows("forest", [0.8], dataset="acs_income", data_source="psam_p06.csv, 20 rows"),
        result_rows("forest", [0.7], dataset="acs_income", run_hash="b", **stand_in),
    )
    assert [(p.data_source, p.is_stand_in, p.curves[0].last) for p in panels] == [
        ("psam_p06.csv, 20 rows", False, 0.8),
        ("stand-in part.parquet, 10 rows", True, 0.7),
    ]


def test_results_of_another_schema_are_left_out_and_the_panel_says_so(panels_of):
    mine = {"dataset": "mine", "data_source": "mine.csv, 20 rows"}
    (panel,) = panels_of(
        result_rows("forest", [0.8, 0.9], is_current=False, **mine),
        result_rows("forest", [0.7], data_version="2", **mine),
    )
    (curve,) = panel.curves
    assert (curve.last, curve.points[0].interval.n) == (0.7, 1)
    (line,) = panel.left_out
    assert "mine: 1 run of another version left out (mine.csv, 20 rows; version 11111111)" in line


@pytest.mark.parametrize(
    ("variants", "labels"),
    [
        (
            [{"params": '{"depth": 3, "trees": 10}'}, {"params": '{"depth": 5, "trees": 10}'}],
            ["Forest (depth=3)", "Forest (depth=5)"],
        ),
        ([{}, {"delta": 1e-5}], ["Forest (δ=10⁻⁶)", "Forest (δ=10⁻⁵)"]),
        ([{}, {"mode": "corrected"}], ["Forest (paper)", "Forest (corrected)"]),
        # The corrected variant is named also where it is alone.
        ([{"mode": "corrected"}], ["Forest (corrected)"]),
    ],
)
def test_variants_of_a_method_are_named_by_what_differs(panels_of, variants, labels):
    (panel,) = panels_of(
        *(
            result_rows("forest", [0.9 - 0.1 * i], run_hash=str(i), **changes)
            for i, changes in enumerate(variants)
        )
    )
    assert [curve.label for curve in panel.curves] == labels


def test_failed_runs_and_other_metrics_are_left_out(panels_of):
    runs = (
        result_rows("forest", [0.8]),
        result_rows("forest", [12.0], metric="fit_seconds"),
        result_rows("broken", [""], metric="failure", status="failed"),
    )
    for metric, value in (("accuracy", 0.8), ("fit_seconds", 12.0)):
        (panel,) = panels_of(*runs, metric=metric)
        assert [(c.method, c.last) for c in panel.curves] == [("forest", value)]
        assert panel.metric.name == metric


def test_a_wanted_method_without_rows_is_refused_with_those_that_there_are(panels_of):
    with pytest.raises(FigureError, match=r"'nosuch'.*forest, snr"):
        panels_of(result_rows("forest", [0.8]), result_rows("snr", [0.8]), methods=["nosuch"])


@pytest.mark.parametrize(
    ("number", "text"),
    [(1e-6, "10⁻⁶"), (2.5e-7, "2.5\N{MULTIPLICATION SIGN}10⁻⁷"), (0.01, "0.01"), (0.0, "0")],
)
def test_small_numbers_are_written_as_a_person_does(number, text):
    assert power_of_ten(number) == text
