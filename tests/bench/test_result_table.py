from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from whole_results import made_up_run, whole_result

from lumberjack_bench.results import (
    COLUMNS,
    accuracy_table,
    current_rows,
    mean_interval,
    read_table,
    write_table,
)
from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.store import ResultStore, StoreError


def record(
    method: str = "forest", eps: float = 1.0, accuracies: tuple[float, ...] = (0.8, 0.9), **run: Any
) -> dict[str, Any]:
    made = made_up_run(method, eps=eps, n_repeats=len(accuracies), **run)
    return whole_result(made, accuracies)


def without_result(method: str, status: str) -> dict[str, Any]:
    return record(method) | {"status": status, "reason": "some"}


def keep(store: ResultStore, *records: dict[str, Any]) -> None:
    for one in records:
        write = store.write if one["status"] == "ok" else store.write_reason
        write(one["run_hash"], one)


def table_of(store: ResultStore, *records: dict[str, Any]) -> pd.DataFrame:
    keep(store, *records)
    return read_table(write_table(store))


def test_without_bounds_the_interval_is_students() -> None:
    # Values 1, 2, 3, 4, 5: mean 3, s = sqrt(2.5) = 1.581139, t(4, 0.975) = 2.776445,
    # half width 2.776445 * 1.581139 / sqrt(5) = 1.963243.
    interval = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (interval.mean, interval.n) == (3.0, 5)
    assert interval.upper - 3.0 == pytest.approx(1.963243, abs=1e-6)
    assert 3.0 - interval.lower == pytest.approx(1.963243, abs=1e-6)


def test_the_interval_of_a_bounded_mean_is_taken_on_the_scale_of_log_odds() -> None:
    # 0.8 and 0.9: mean 0.85, s = 0.0707107, t(1, 0.975) = 12.706205, half width 0.6353102, over
    # 0.85 * 0.15 = 4.982825; log(0.85 / 0.15) = 1.734601; 1 / (1 + exp(3.248224)) = 0.037391,
    # 1 / (1 + exp(-6.717426)) = 0.998792.
    interval = mean_interval([0.8, 0.9], (0.0, 1.0))
    assert interval.lower == pytest.approx(0.037391, abs=1e-6)
    assert interval.upper == pytest.approx(0.998792, abs=1e-6)
    assert str(interval) == "0.8500 [0.0374, 0.9988]"


def test_the_interval_of_a_bounded_mean_is_students_where_that_is_narrow() -> None:
    values = [0.8489, 0.8512, 0.8471, 0.8503, 0.8495]
    ours, students = mean_interval(values, (0.0, 1.0)), mean_interval(values)
    assert ours.lower == pytest.approx(students.lower, abs=2e-5)
    assert ours.upper == pytest.approx(students.upper, abs=2e-5)
    assert str(ours) == str(students) == "0.8494 ± 0.0019"


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=6),
    st.sampled_from([(0.0, 1.0), (-1.0, 1.0)]),
)
@example([0.0, 5e-324], (0.0, 1.0))
def test_no_interval_leaves_what_the_values_can_be(values, bounds) -> None:
    interval = mean_interval(values, bounds)
    assert bounds[0] <= interval.lower <= interval.mean + 1e-12
    assert interval.mean - 1e-12 <= interval.upper <= bounds[1]


def test_a_single_value_has_no_interval() -> None:
    interval = mean_interval([0.8])
    assert math.isnan(interval.lower)
    assert str(interval) == "0.8000"


def test_the_version_of_a_data_set_that_was_asked_for_last_is_current(store: ResultStore) -> None:
    def version(identity: str, day: int) -> dict[str, Any]:
        one = record(dataset_identity=identity) | {"machine": identity}
        return one | {"started": f"2026-01-0{day}"}

    def ask(one: dict[str, Any]) -> None:
        store.note_asked({"adult": RunConfig.from_dict(one["run"]).data_version})

    def current() -> set[str]:
        return set(current_rows(table_of(store))[0]["machine"])

    first, second, third = version("first", 1), version("second", 2), version("third", 3)
    stand_in = {"label": "stand-in x.parquet, 10 rows", "is_stand_in": True}
    keep(store, first, second, version("other rows", 1) | {"data_source": stand_in})
    # As nobody is known to have asked, the one that was run last.
    assert current() == {"second", "other rows"}
    ask(second)
    ask(first)
    assert current() == {"first", "other rows"}
    (left_out,) = current_rows(table_of(store))[1]
    assert left_out.startswith("adult: 1 run of another version left out (adult.data, 48,842 rows;")
    # A version whose runs have failed is no reason to show another as if it were asked for.
    keep(store, third | {"status": "failed"})
    ask(third)
    assert current() == {"third", "other rows"}


def test_the_table_has_a_row_for_each_repetition_and_metric(store: ResultStore) -> None:
    table = table_of(store, record(eps=2.0), record(eps=0.5))
    assert tuple(table.columns) == COLUMNS
    assert table[["eps", "repetition", "metric", "value"]].to_numpy().tolist() == [
        [eps, repetition, metric, value]
        for eps in (0.5, 2.0)
        for repetition, accuracy in enumerate((0.8, 0.9))
        for metric, value in (("accuracy", accuracy), ("fit_seconds", 1.5))
    ]


def test_each_row_says_where_it_comes_from_and_what_is_claimed_and_tuned(
    store: ResultStore,
) -> None:
    one = record()
    one["repetitions"][0]["tuned"] = {"parameters": {"depth": 4}, "note": "at no cost"}
    row = table_of(store, one).iloc[0]
    assert row["data_source"] == "adult.data, 48,842 rows"
    assert row["card_status"] == "doubted"
    assert row["card_claim"] == "(1, 1e-06), add or remove one record"
    assert row["card_concerns"] == "first; second"
    assert row["versions"] == "python=3.11 numpy=2.4"
    assert row["tuned"] == '{"note": "at no cost", "parameters": {"depth": 4}}'
    assert row["run_hash"] == one["run_hash"]


def test_a_data_set_called_by_a_number_and_a_hash_of_digits_stay_text(store: ResultStore) -> None:
    one = record(dataset="2024") | {"machine": "0123456789012345"}
    row = table_of(store, one).iloc[0]
    assert (row["dataset"], row["machine"]) == ("2024", "0123456789012345")


def test_a_method_that_is_not_private_has_infinite_eps(store: ResultStore) -> None:
    table = table_of(store, record("trees", math.inf))
    assert np.isinf(table["eps"]).all()
    assert (table["card_claim"] == "none").all()


def test_a_run_without_a_result_has_one_row_without_value_until_it_has_one(
    store: ResultStore,
) -> None:
    broken = (without_result("broken", "failed"), without_result("unfit", "skipped"))
    table = table_of(store, *broken)
    assert table[["method", "status", "metric"]].to_numpy().tolist() == [
        ["broken", "failed", "failure"],
        ["unfit", "skipped", "skip"],
    ]
    assert table["value"].isna().all()
    assert set(table_of(store, record("broken"), record("unfit"))["status"]) == {"ok"}


def test_the_order_of_writing_does_not_show_in_the_table(tmp_path: Path) -> None:
    texts = []
    for order in (1, -1):
        store = ResultStore(tmp_path / str(order))
        store.prepare()
        keep(store, *[record(m, e) for m in ("a", "b") for e in (1.0, 10.0, 2.0)][::order])
        texts.append(write_table(store).read_bytes())
    assert texts[0] == texts[1]


def test_a_table_that_cannot_be_written_is_one_clear_line(store: ResultStore) -> None:
    (store.folder / "results.csv").mkdir()
    with pytest.raises(StoreError, match="The results themselves are in"):
        write_table(store)


def test_the_accuracy_table_has_methods_down_and_eps_across() -> None:
    # t(1, 0.975) = 12.706205, s = 0.0707107: half width 12.706205 * 0.0707107 / sqrt(2) = 0.63531.
    results = [
        record("forest", 0.5),
        record("forest", 2.0, (0.9, 0.9)),
        record("reference", math.inf, (0.7,)),
    ]
    assert accuracy_table(results) == (
        "accuracy, adult  eps=0.5                  eps=2\n"
        "forest           0.8500 [0.0374, 0.9988]  0.9000 ± 0.0000\n"
        "reference        0.7000                   0.7000"
    )


def test_many_data_sets_share_one_table_for_each_eps() -> None:
    results = [
        record(method, eps, (value,), dataset=dataset, dataset_identity=dataset)
        for dataset, shift in {"a": 0.0, "b": 0.1, "c": 0.2, "d": 0.0}.items()
        for method, eps, value in (
            ("forest", 1.0, 0.6 + shift),
            ("dp_boosted_random_trees", 1.0, 0.7),
            ("reference", math.inf, 0.9),
        )
    ]
    *table, note = accuracy_table(
        [*results, record("forest", 2.0, (0.5,), dataset="a", dataset_identity="a")]
    ).splitlines()
    assert table[:8] == [
        "accuracy, eps=1  forest   dp boosted  reference",
        "                          random",
        "                          trees",
        "a                0.6000   0.7000*     0.9000",
        "b                0.7000*  0.7000*     0.9000",
        "c                0.8000*  0.7000      0.9000",
        "d                0.6000   0.7000*     0.9000",
        "",
    ]
    assert table[8].startswith("accuracy, eps=2")
    assert table[11] == "a                0.5000*              0.9000"
    assert table[12] == "b                                     0.9000"
    assert note.endswith("python scripts/make_figures.py suite")


def test_the_accuracy_table_names_stand_ins_and_tells_versions_and_variants_apart() -> None:
    corrected = record(dataset_identity="y")
    text = accuracy_table([record(), corrected])
    assert text.count("accuracy, adult (version ") == 2
    other = record(accuracies=(0.5,), params={"depth": 4})
    source = {"label": "stand-in x.parquet, 10 rows", "is_stand_in": True}
    text = accuracy_table([one | {"data_source": source} for one in (record(), other)])
    assert "adult [stand-in x.parquet, 10 rows]" in text
    assert "forest [depth=3; seed 0; 2 repetitions]" in text
    assert "forest [depth=4; seed 0; 1 repetitions]" in text
