from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from lumberjack_bench.command import one_line
from lumberjack_bench.config import ConfigError, MethodChoice, read_settings
from lumberjack_bench.overrides import take_plain_words
from lumberjack_bench.runs.compose import Composer, composer
from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.plan import plan_runs

ROOT = Path(__file__).parents[2]

Plan = Callable[..., RunConfig]


@pytest.fixture(scope="module")
def hydras() -> Iterator[Composer]:
    with composer(ROOT / "conf") as ready:
        yield ready


@pytest.fixture
def run_of(hydras: Composer) -> Callable[..., RunConfig]:
    """Return the one run of a command; on the toy data unless told otherwise."""

    def plan(*words: str) -> RunConfig:
        own = [] if any(word.startswith("dataset=") for word in words) else ["dataset=toy_moons"]
        (run,) = plan_runs(hydras, take_plain_words([*own, *words]), is_sweep=False)[0].runs
        return run

    return plan


def test_whole_and_decimal_numbers_give_the_same_run(run_of: Plan) -> None:
    assert run_of("eps=1").hash == run_of("eps=1.0").hash


def test_output_workers_tracking_and_verbosity_do_not_change_the_run(run_of: Plan) -> None:
    other = run_of(
        "results_dir=/elsewhere",
        "n_workers=7",
        "tracking=none",
        "timeout=3",
        "force=true",
        "on_error=raise",
        "sweep_id=x",
        "data_dir=/elsewhere",
    )
    assert other.hash == run_of().hash
    assert other.dataset["data_dir"] == "/elsewhere"


def test_a_method_that_is_not_private_is_the_same_run_at_every_eps_and_delta(run_of: Plan) -> None:
    runs = [
        run_of("method=majority", f"eps={eps}", f"delta={delta}")
        for eps, delta in ((0.5, 1e-6), (8, 1e-5), ("inf", 0))
    ]
    assert len({run.hash for run in runs}) == 1
    assert (runs[0].eps, runs[0].delta) == (math.inf, 0.0)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("eps=abc", "eps must be a number, got 'abc'."),
        ("eps=null", "eps must be a number, got 'null'."),
        ("eps=0", "eps must be positive and finite, got 0. For a non-private baseline use"),
        ("eps=nan", "eps must be positive and finite, got nan."),
        ("eps=inf", "eps must be positive and finite, got inf."),
        ("delta=1", "delta must lie in [0, 1), got 1."),
        ("delta=nan", "delta must lie in [0, 1), got nan."),
        ("n_repeats=0", "n_repeats must be at least 1"),
        ("n_repeats=1.5", "n_repeats must be a whole number, got '1.5'."),
        ("seed=-1", "seed must be a non-negative whole number"),
        ("force=maybe", "force must be true or false, got 'maybe'."),
        ("timeout=nan", "timeout must be a positive number of seconds or null"),
        ("n_workers=0", "n_workers must be positive, or -1"),
        ("on_error=ignore", "on_error must be continue or raise"),
        ("tracking.kind=other", "tracking.kind must be sqlite, server or none"),
        ("epsilon=1", "there is no setting 'epsilon'; did you mean 'eps'? Settings: dataset,"),
        ("+epsilon=1", "there is no setting 'epsilon'; did you mean 'eps'?"),
        ("+method.depth=1", "there is no setting 'depth' in 'method'"),
        ("method.params.foo=1", "the method has no parameter 'foo'."),
        ("method.is_tuned=perhaps", "method.is_tuned=perhaps: "),
        ("method=majorty", "there is no method 'majorty'; did you mean 'majority'? There are: "),
        ("method=null", "method=null: "),
        ("experiment=figure3", "use +experiment=figure3"),
        ("+experiment=figure33", "there is no experiment 'figure33'; did you mean 'figure3'?"),
        ("eps=1,2", "'eps=1,2' lists several values; add -m to sweep over them."),
        ("eps", "'eps' is not of the form NAME=VALUE."),
        ("~method", "method must have a value, and nothing gives it one."),
        ("~eps", "eps must have a value; it was deleted with ~eps."),
        ("dataset.name=a/b", "name 'a/b' cannot be part of a file's name."),
        ("sweep_id=a/b", "sweep_id must be a name without '/'"),
        ("results_dir=", "results_dir must name a folder"),
        ("data_dir=${nope}", "'nope' not found"),
        ("eps=[1,2", """write 'eps="[1,2"' (the outer quotes are the shell's)."""),
        ("results_dir=a,b", """write 'results_dir="a,b"' (the outer quotes are the shell's)."""),
        ("dataset=table", "dataset.path=FILE"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_line(override: str, message: str, run_of: Plan) -> None:
    with pytest.raises((ConfigError, HydraException, OmegaConfBaseException)) as caught:
        run_of(override)
    said = one_line(caught.value)
    assert message in said
    assert "\n" not in said


@pytest.mark.parametrize(
    "path", sorted((ROOT / "conf" / "method").glob("*.yaml")), ids=lambda path: path.stem
)
def test_a_method_file_has_what_is_needed_and_nothing_unknown(path: Path) -> None:
    content: dict[str, Any] = yaml.safe_load(path.read_text())
    known = {field.name for field in fields(MethodChoice)}
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
def test_the_default_is_lumberjack_with_the_papers_settings(
    dataset: str, n_estimators: int, hydras: Composer
) -> None:
    config = hydras.config([f"dataset={dataset}"])
    assert (config.method.name, config.eps, config.delta) == ("lumberjack", 1.0, 1e-6)
    params = config.method.params
    assert (params.n_estimators, params.max_depth) == (n_estimators, 100)
    assert (params.structure_share, params.accounting) == (0.75, "paper")
    assert hydras.config([]).dataset.name == "adult"
    assert read_settings(config).results_dir == Path.cwd() / "results"
