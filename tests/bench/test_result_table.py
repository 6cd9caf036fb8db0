from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumberjack_bench.results import (
    COLUMNS,
    accuracy_table,
    current_rows,
    data_version,
    mean_interval,
    read_table,
    write_table,
)
from lumberjack_bench.runs.identity import FORMAT, RunConfig
from lumberjack_bench.runs.store import ResultStore, StoreError


def record(
    method: str = "forest",
    eps: float = 1.0,
    accuracies: tuple[float, ...] = (0.8, 0.9),
    **changes: Any,
) -> dict[str, Any]:
    is_private = math.isfinite(eps)
    claimed = {"epsilon": eps, "delta": 1e-6, "relation": "add or remove one record"}
    return {
        "format": FORMAT,
        "sweep_id": "some",
        "seconds": 1.0,
        "status": "ok",
        "run_hash": f"{method}-{eps:g}",
        "run": {
            "dataset": {"name": "adult", "kind": "adult"},
            "dataset_identity": "x",
            "method": {
                "name": method,
                "label": method.title(),
                "mode": "paper",
                "params": {"depth": 3},
                "is_private": is_private,
            },
            "eps": eps,
            "delta": 1e-6 if is_private else 0.0,
            "seed": 0,
            "n_repeats": len(accuracies),
        },
        "repetitions": [
            {"repetition": i, "metrics": {"fit_seconds": 1.5, "accuracy": a}}
            for i, a in enumerate(accuracies)
        ],
        "started": "2026-01-01T00:00:00.000+00:00",
        "card": {
            "mode": "paper",
            "status": "doubted" if is_private else "not private",
            "claimed": claimed if is_private else None,
            "concerns": ["first", "second"],
        },
        "data_source": {"label": "adult.data, 48,842 rows", "is_stand_in": False},
        "versions": {"python": "3.11", "numpy": "2.4"},
        "commit": "abc",
        "machine": "Linux, 2 cores",
    } | changes


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    store = ResultStore(tmp_path)
    store.prepare()
    return store


def keep(store: ResultStore, *records: dict[str, Any]) -> None:
    for one in records:
        one["run_hash"] = RunConfig(**one["run"]).hash
        store.write(one["run_hash"], one)


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
def test_no_interval_leaves_what_the_values_can_be(values, bounds) -> None:
    interval = mean_interval(values, bounds)
    assert bounds[0] <= interval.lower <= interval.mean + 1e-12
    assert interval.mean - 1e-12 <= interval.upper <= bounds[1]


def test_a_single_value_has_no_interval() -> None:
    interval = mean_interval([0.8])
    assert math.isnan(interval.lower)
    assert str(interval) == "0.8000"


def test_the_version_of_a_data_set_that_was_asked_for_last_is_current(store) -> None:
    stand_in = {"label": "stand-in x.parquet, 10 rows", "is_stand_in": True}

    def version(identity: str, started: str, **changes: Any) -> dict[str, Any]:
        one = record(machine=identity, started=started, **changes)
        one["run"]["dataset_identity"] = identity
        return one

    first, second = version("first", "2026-01-01"), version("second", "2026-01-02")
    keep(store, first, second, version("other rows", "2026-01-01", data_source=stand_in))

    def current() -> set[str]:
        return set(current_rows(read_table(write_table(store)))[0]["machine"])

    # As nobody is known to have asked, the one that was run last.
    assert current() == {"second", "other rows"}
    store.note_asked({"adult": data_version(second["run"])})
    store.note_asked({"adult": data_version(first["run"])})
    assert current() == {"first", "other rows"}
    (left_out,) = current_rows(read_table(write_table(store)))[1]
    assert left_out.startswith("adult: 1 run of another version left out (adult.data, 48,842 rows;")

    # A version whose runs have failed is no reason to show another as if it were asked for.
    third = version("third", "2026-01-03", status="failed", run_hash="3333")
    store.write_failure("3333", third)
    store.note_asked({"adult": data_version(third["run"])})
    assert current() == {"third", "other rows"}


def test_the_table_has_a_row_for_each_repetition_and_metric(store: ResultStore) -> None:
    keep(store, record(eps=2.0), record(eps=0.5))
    table = read_table(write_table(store))
    assert tuple(table.columns) == COLUMNS
    assert table[["eps", "repetition", "metric", "value"]].to_numpy().tolist() == [
        [0.5, 0, "accuracy", 0.8],
        [0.5, 0, "fit_seconds", 1.5],
        [0.5, 1, "accuracy", 0.9],
        [0.5, 1, "fit_seconds", 1.5],
        [2.0, 0, "accuracy", 0.8],
        [2.0, 0, "fit_seconds", 1.5],
        [2.0, 1, "accuracy", 0.9],
        [2.0, 1, "fit_seconds", 1.5],
    ]


def test_each_row_says_where_it_comes_from_and_what_is_claimed(store: ResultStore) -> None:
    one = record()
    keep(store, one)
    row = read_table(write_table(store)).iloc[0]
    assert row["data_source"] == "adult.data, 48,842 rows"
    assert row["card_status"] == "doubted"
    assert row["card_claim"] == "(1, 1e-06), add or remove one record"
    assert row["card_concerns"] == "first; second"
    assert row["versions"] == "python=3.11 numpy=2.4"
    assert row["run_hash"] == one["run_hash"]


def test_a_data_set_called_by_a_number_and_a_hash_of_digits_stay_text(store: ResultStore) -> None:
    one = record(machine="0123456789012345")
    one["run"]["dataset"]["name"] = "2024"
    keep(store, one)
    row = read_table(write_table(store)).iloc[0]
    assert (row["dataset"], row["machine"]) == ("2024", "0123456789012345")


def test_a_method_that_is_not_private_has_infinite_eps(store: ResultStore) -> None:
    keep(store, record("trees", math.inf))
    table = read_table(write_table(store))
    assert np.isinf(table["eps"]).all()
    assert (table["card_claim"] == "none").all()


def test_a_failed_run_has_one_row_without_value_until_it_succeeds(store: ResultStore) -> None:
    failed = record("broken", status="failed")
    failed["run_hash"] = RunConfig(**failed["run"]).hash
    store.write_failure(failed["run_hash"], failed)
    table = read_table(write_table(store))
    assert table[["method", "status", "metric"]].to_numpy().tolist() == [
        ["broken", "failed", "failure"]
    ]
    assert table["value"].isna().all()
    keep(store, record("broken"))
    table = read_table(write_table(store))
    assert set(table["status"]) == {"ok"}


def test_what_was_tuned_is_said_in_the_row(store: ResultStore) -> None:
    tuned = record()
    tuned["repetitions"][0]["tuned"] = {
        "parameters": {"depth": 4},
        "note": "tuned without privacy cost",
    }
    keep(store, tuned)
    table = read_table(write_table(store))
    assert table["tuned"].iloc[0] == (
        '{"note": "tuned without privacy cost", "parameters": {"depth": 4}}'
    )


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


def test_the_accuracy_table_tells_versions_of_a_data_set_apart() -> None:
    corrected = record()
    corrected["run"]["dataset_identity"] = "y"
    text = accuracy_table([record(), corrected])
    assert text.count("accuracy, adult (version ") == 2


def test_the_accuracy_table_names_stand_ins_and_tells_variants_apart() -> None:
    source = {"label": "stand-in x.parquet, 10 rows", "is_stand_in": True}
    first = record(data_source=source)
    second = record(accuracies=(0.5,), data_source=source)
    second["run"]["method"]["params"] = {"depth": 4}
    text = accuracy_table([first, second])
    assert "adult [stand-in x.parquet, 10 rows]" in text
    assert "forest [depth=3; seed 0; 2 repetitions]" in text
    assert "forest [depth=4; seed 0; 1 repetitions]" in text
