from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import hydra
import pytest
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from lumberjack_bench.command import one_line
from lumberjack_bench.config import (
    ConfigError,
    MethodConfig,
    read_run,
    read_settings,
    register_schema,
)

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.filterwarnings("ignore:\\s*'hydra/launcher/.*' is validated against")


@pytest.fixture(autouse=True, scope="module")
def composing() -> Iterator[None]:
    register_schema()
    with hydra.initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        yield


def compose(*overrides: str) -> DictConfig:
    return hydra.compose("config", ["dataset=toy_moons", *overrides])


def read_all(*overrides: str) -> None:
    config = compose(*overrides)
    read_settings(config)
    read_run(config)


def complaint(*overrides: str) -> str:
    with pytest.raises((ConfigError, HydraException, OmegaConfBaseException)) as caught:
        read_all(*overrides)
    return one_line(caught.value)


def test_the_default_is_lumberjack_on_adult_at_eps_one() -> None:
    run = read_run(hydra.compose("config"))
    assert (run.dataset["name"], run.method["name"], run.eps) == ("adult", "lumberjack", 1.0)
    assert (run.delta, run.n_repeats, run.method["params"]["n_estimators"]) == (1e-6, 5, 30)


def test_whole_and_decimal_numbers_give_the_same_run() -> None:
    assert read_run(compose("eps=1")).hash == read_run(compose("eps=1.0")).hash


def test_output_workers_tracking_and_verbosity_do_not_change_the_run() -> None:
    other = compose(
        "results_dir=/elsewhere",
        "n_workers=7",
        "tracking=none",
        "timeout=3",
        "force=true",
        "on_error=raise",
        "sweep_id=x",
        "data_dir=/elsewhere",
    )
    assert read_run(other).hash == read_run(compose()).hash


def test_a_method_that_is_not_private_is_the_same_run_at_every_eps_and_delta() -> None:
    runs = [
        read_run(compose("method=majority", f"eps={eps}", f"delta={delta}"))
        for eps, delta in ((0.5, 1e-6), (8, 1e-5), ("inf", 0))
    ]
    assert len({run.hash for run in runs}) == 1
    assert (runs[0].eps, runs[0].delta) == (math.inf, 0.0)


def test_a_data_folder_at_the_top_reaches_the_loader() -> None:
    assert read_run(compose("data_dir=/here")).dataset["data_dir"] == "/here"
    assert read_run(compose()).dataset.get("data_dir") is None


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("eps=abc", "eps must be a number, got 'abc'."),
        ("eps=null", "eps must have a value, got null."),
        ("eps=0", "eps must be positive and finite, got 0. For a non-private baseline use"),
        ("eps=-1", "eps must be positive and finite, got -1."),
        ("eps=nan", "eps must be positive and finite, got nan."),
        ("eps=inf", "eps must be positive and finite, got inf."),
        ("delta=1", "delta must lie in [0, 1), got 1."),
        ("delta=-0.1", "delta must lie in [0, 1), got -0.1."),
        ("delta=nan", "delta must lie in [0, 1), got nan."),
        ("n_repeats=0", "n_repeats must be at least 1, got 0."),
        ("n_repeats=1.5", "n_repeats must be a whole number, got '1.5'."),
        ("seed=-1", "seed must be a non-negative whole number, got -1."),
        ("force=maybe", "force must be true or false, got 'maybe'."),
        ("timeout=0", "timeout must be a positive number of seconds or null, got 0."),
        ("timeout=nan", "timeout must be a positive number of seconds or null, got nan."),
        ("n_workers=0", "n_workers must be positive, or -1 for one per core, got 0."),
        ("on_error=ignore", "on_error must be continue or raise, got 'ignore'."),
        ("tracking.kind=other", "tracking.kind must be sqlite, server or none, got 'other'."),
        ("epsilon=1", "there is no setting 'epsilon'; did you mean 'eps'? Settings: dataset,"),
        ("+epsilon=1", "there is no setting 'epsilon'; did you mean 'eps'?"),
        ("n_repeat=1", "there is no setting 'n_repeat'; did you mean 'n_repeats'?"),
        ("method.params.foo=1", "the method has no parameter 'foo'."),
        ("method.foo=1", "there is no setting 'foo' in 'method'"),
        ("method=nosuch", "there is no method 'nosuch'. There are: "),
        ("method=majorty", "there is no method 'majorty'; did you mean 'majority'?"),
        ("tracking=nosuch", "there is no tracking 'nosuch'. There are: none, server, sqlite."),
        ("experiment=figure3", "'experiment' is not chosen by default; write +experiment=NAME."),
        ("+experiment=figure33", "there is no experiment 'figure33'; did you mean 'figure3'?"),
        ("eps=1,2", "'eps=1,2' lists several values; add -m to sweep over them."),
        ("eps", "'eps' is not of the form NAME=VALUE."),
        ("~method", "method.name must have a value, and nothing gives it one."),
        ("~eps", "eps must have a value; it was deleted with ~eps."),
        ("dataset.name=a/b", "dataset.name must be a name without '/', got 'a/b'."),
        ("dataset.name=[a]", "dataset.name must be a name without '/'"),
        ("sweep_id=a/b", "sweep_id must be a name without '/', got 'a/b'."),
        ("results_dir=", "results_dir must name a folder, without '${', got ''."),
        ("method={a:1}", "there is no setting 'a' in 'method'"),
        ("data_dir=${nope}", "write \\${nope} for the characters themselves."),
        ("eps=[1,2", """write 'eps="[1,2"' (the outer quotes are the shell's)."""),
        ("results_dir=a,b", """write 'results_dir="a,b"' (the outer quotes are the shell's)."""),
        ("dataset=table", "table"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_line(override: str, message: str) -> None:
    said = complaint(override)
    assert message in said
    assert "\n" not in said


def test_the_list_of_methods_names_every_file() -> None:
    said = complaint("method=nosuch")
    for path in (ROOT / "conf" / "method").glob("*.yaml"):
        assert path.stem in said


def method_files() -> list[Path]:
    return sorted((ROOT / "conf" / "method").glob("*.yaml"))


@pytest.mark.parametrize("path", method_files(), ids=lambda path: path.stem)
def test_a_method_file_has_what_is_needed_and_nothing_unknown(path: Path) -> None:
    import yaml

    content: dict[str, Any] = yaml.safe_load(path.read_text())
    known = {field.name for field in fields(MethodConfig)}
    assert {"name", "target", "label", "is_private", "params"} <= set(content) <= known
    assert content["name"] == path.stem


@pytest.mark.parametrize(
    "path", sorted((ROOT / "conf" / "experiment").glob("*.yaml")), ids=lambda path: path.stem
)
def test_every_experiment_opens_with_its_command_and_leaves_the_launcher_alone(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert lines[0] == "# @package _global_"
    assert lines[1] == f"# python run.py -m +experiment={path.stem}"
    assert "launcher" not in path.read_text()


@pytest.mark.parametrize(
    ("dataset", "n_estimators"), [("adult", 30), ("acs_income", 50), ("acs_travel_time", 50)]
)
def test_lumberjack_has_the_papers_settings(dataset: str, n_estimators: int) -> None:
    params = read_run(hydra.compose("config", [f"dataset={dataset}"])).method["params"]
    assert (params["n_estimators"], params["max_depth"]) == (n_estimators, 100)
    assert (params["structure_share"], params["accounting"]) == (0.75, "paper")
