from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lumberjack_bench.results import (
    COLUMNS,
    accuracy_table,
    read_table,
    t_interval,
    write_table,
)
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
        "card": {
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
        store.write(one["run_hash"], one)


def test_the_interval_is_students() -> None:
    # Values 1, 2, 3, 4, 5: mean 3, s = sqrt(2.5) = 1.581139, t(4, 0.975) = 2.776445,
    # half width 2.776445 * 1.581139 / sqrt(5) = 1.963243.
    interval = t_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert interval.mean == 3.0
    assert interval.half_width == pytest.approx(1.963243, abs=1e-6)
    assert interval.n == 5


def test_a_single_value_has_no_interval() -> None:
    interval = t_interval([0.8])
    assert math.isnan(interval.half_width)
    assert str(interval) == "0.8000"


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
    keep(store, record())
    row = read_table(write_table(store)).iloc[0]
    assert row["data_source"] == "adult.data, 48,842 rows"
    assert row["card_status"] == "doubted"
    assert row["card_claim"] == "(1, 1e-06), add or remove one record"
    assert row["card_concerns"] == "first; second"
    assert row["versions"] == "python=3.11 numpy=2.4"
    assert row["run_hash"] == "forest-1"


def test_a_method_that_is_not_private_has_infinite_eps(store: ResultStore) -> None:
    keep(store, record("trees", math.inf))
    table = read_table(write_table(store))
    assert np.isinf(table["eps"]).all()
    assert (table["card_claim"] == "none").all()


def test_a_failed_run_has_one_row_without_value_until_it_succeeds(store: ResultStore) -> None:
    failed = record("broken", status="failed")
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
        "accuracy, adult  eps=0.5          eps=2\n"
        "forest           0.8500 ± 0.6353  0.9000 ± 0.0000\n"
        "reference        0.7000           0.7000"
    )


def test_the_accuracy_table_names_stand_ins_and_tells_variants_apart() -> None:
    source = {"label": "stand-in x.parquet, 10 rows", "is_stand_in": True}
    first = record(data_source=source)
    second = record(accuracies=(0.5,), data_source=source)
    second["run"]["method"]["params"] = {"depth": 4}
    text = accuracy_table([first, second])
    assert "adult [stand-in x.parquet, 10 rows]" in text
    assert "forest [depth=3; seed 0; 2 repetitions]" in text
    assert "forest [depth=4; seed 0; 1 repetitions]" in text
