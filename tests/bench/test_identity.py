from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from lumberjack_bench.runs.identity import MethodConfig, RunConfig

METHOD = MethodConfig(
    "forest", "baselines.forest.Classifier", "Forest", mode="paper", params={"n_estimators": 30}
)

RUN = RunConfig(
    dataset={"name": "adult", "kind": "adult", "data_dir": None},
    dataset_identity="uci:1234",
    method=METHOD,
    eps=1.0,
    delta=1e-6,
    seed=0,
    n_repeats=5,
)


@pytest.mark.parametrize(
    "change",
    [
        {"eps": 2.0},
        {"delta": 1e-5},
        {"seed": 1},
        {"n_repeats": 4},
        {"dataset_identity": "uci:5678"},
        {"dataset": {"name": "other", "kind": "adult"}},
        {"method": replace(METHOD, mode="corrected")},
        {"method": replace(METHOD, params={"n_estimators": 31})},
        {"method": replace(METHOD, is_tuned=True)},
    ],
)
def test_whatever_changes_numbers_changes_the_hash(change: dict[str, object]) -> None:
    assert replace(RUN, **change).hash != RUN.hash  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"method": replace(METHOD, label="Another legend")},
        {"dataset": {"name": "adult", "kind": "adult", "data_dir": "/elsewhere"}},
    ],
)
def test_legends_and_places_do_not_change_the_hash(change: dict[str, object]) -> None:
    assert replace(RUN, **change).hash == RUN.hash  # type: ignore[arg-type]


def test_the_hash_of_a_known_run_never_changes() -> None:
    # Pinned: a change here makes every stored result of every user unfindable. Raise FORMAT for it.
    assert RUN.identity == (
        '{"dataset":"adult","dataset_identity":"uci:1234","delta":1e-06,"eps":1.0,"format":1,'
        '"method":{"is_private":true,"is_tuned":false,"mode":"paper","name":"forest",'
        '"params":{"n_estimators":30},"target":"baselines.forest.Classifier"},"n_repeats":5,"seed":0}'
    )


def test_a_run_comes_back_from_its_plain_form_which_tells_no_place() -> None:
    run = replace(RUN, eps=math.inf, dataset={**RUN.dataset, "data_dir": "/home/someone"})
    assert RunConfig.from_dict(run.to_dict()).hash == run.hash
    assert "data_dir" not in run.to_dict()["dataset"]


def state(seed: np.random.SeedSequence) -> list[int]:
    return [int(word) for word in seed.generate_state(4)]


def test_all_methods_and_budgets_see_the_same_split() -> None:
    other = replace(RUN, method=replace(METHOD, name="other"), eps=8.0)
    assert state(other.split_seed(2)) == state(RUN.split_seed(2))


def test_repetitions_seeds_and_data_sets_split_differently() -> None:
    splits = [
        RUN.split_seed(0),
        RUN.split_seed(1),
        replace(RUN, seed=1).split_seed(0),
        replace(RUN, dataset={"name": "other"}).split_seed(0),
    ]
    assert len({tuple(state(seed)) for seed in splits}) == 4


def test_structure_noise_and_tuning_are_drawn_independently() -> None:
    purposes = ("structure", "noise", "tuning")
    assert len({tuple(state(RUN.method_seed(p, 0))) for p in purposes}) == 3


def test_a_method_keeps_its_seeds_whatever_its_settings() -> None:
    changed = replace(RUN, method=replace(METHOD, params={"n_estimators": 31}), eps=2.0)
    assert state(changed.method_seed("noise", 0)) == state(RUN.method_seed("noise", 0))
    other = replace(RUN, method=replace(METHOD, name="other"))
    assert state(other.method_seed("noise", 0)) != state(RUN.method_seed("noise", 0))
