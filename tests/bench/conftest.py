from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lumberjack_bench import config, datasets
from lumberjack_bench.runs.identity import MethodConfig, RunConfig
from lumberjack_bench.runs.store import ResultStore

TOY_METHODS = Path(__file__).parents[1] / "end_to_end"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> config.Settings:
    """Settings without tracking, under which the toy methods may be used."""
    monkeypatch.syspath_prepend(str(TOY_METHODS))
    monkeypatch.setenv("LUMBERJACK_DATA", str(tmp_path / "data"))
    return config.Settings(
        results_dir=tmp_path / "results",
        sweep_id="this-sweep",
        tracking=config.TrackingConfig("none"),
        allow_targets=("toy_methods",),
    )


@pytest.fixture
def store(settings: config.Settings) -> ResultStore:
    store = ResultStore(settings.results_dir)
    store.prepare()
    return store


@pytest.fixture
def make_run() -> Callable[..., RunConfig]:
    """Make a run of a toy method on the toy data."""

    def make(
        toy: str, *, eps: float = 1.0, n_repeats: int = 1, is_tuned: bool = False, **params: Any
    ) -> RunConfig:
        dataset = {"name": "toy", "kind": "toy", "extent": 5, "points_seed": 0}
        return RunConfig(
            dataset=dataset,
            dataset_identity=datasets.identity(dataset),
            method=MethodConfig(
                name=toy.lower(),
                target=f"toy_methods.{toy}",
                label=toy,
                is_tuned=is_tuned,
                params=params,
            ),
            eps=eps,
            delta=1e-6,
            seed=0,
            n_repeats=n_repeats,
        )

    return make
