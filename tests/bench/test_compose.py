from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import hydra
import pytest
from hydra.errors import MissingConfigException
from omegaconf import OmegaConf

from lumberjack_bench.config import ConfigError
from lumberjack_bench.runs.compose import Composer, composer
from lumberjack_bench.runs.plan import plan_runs

CONF = Path(__file__).parents[2] / "conf"


def names(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


@pytest.fixture(scope="module")
def hydras() -> Iterator[Composer]:
    with composer(CONF) as ready:
        yield ready


def combinations() -> list[tuple[str, ...]]:
    # These take parameters by data set, and files from elsewhere.
    chosen = ("lumberjack", "guided_lumberjack", "diffprivlib_tuned", "majority")
    methods = [(f"method={name}", "dataset=acs_income", "eps=2") for name in chosen]
    datasets = [("method=snr", f"dataset={name}", "seed=3") for name in names("dataset")]
    others = [
        ("+experiment=figure1", "method=majority", "dataset=toy_moons", "dataset.extent=50"),
        ("tracking=none", "method=majority", "n_repeats=1"),
        ("method=snr", "+method.params.extra=1"),
        ("~tracking", "method=snr"),
        ("launcher=serial", "method=snr", "dataset=adult"),
    ]
    return [*methods, *datasets, *others]


def test_composing_apart_gives_what_hydra_gives(hydras: Composer) -> None:
    for words in combinations():
        expected = OmegaConf.to_container(hydra.compose("config", list(words)), resolve=False)
        assert OmegaConf.to_container(hydras.config(words), resolve=False) == expected, words


def test_a_large_sweep_composes_each_choice_once(
    hydras: Composer, monkeypatch: pytest.MonkeyPatch
) -> None:
    composed = []
    compose = hydra.compose
    monkeypatch.setattr(hydra, "compose", lambda *a, **k: composed.append(a) or compose(*a, **k))
    hydras = Composer()
    for method in names("method"):
        for dataset in names("dataset"):
            hydras.config((f"method={method}", f"dataset={dataset}", "eps=2"))
    assert len(composed) == 1 + len(names("method")) + len(names("dataset"))


def test_what_an_overlay_says_about_a_method_is_kept(hydras: Composer, tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    overlay = "# @package _global_\nmethod:\n  params:\n    n_estimators: 7\n"
    (tmp_path / "experiment" / "seven.yaml").write_text(overlay)
    words = (f"hydra.searchpath=[file://{tmp_path}]", "+experiment=seven", "dataset=adult")
    assert hydras.config((*words, "method=lumberjack")).method.params.n_estimators == 7


def test_one_combination_does_not_leak_into_the_next(hydras: Composer) -> None:
    changed = hydras.config(("method=lumberjack", "method.params.max_depth=3"))
    plain = hydras.config(("method=lumberjack",))
    assert (changed.method.params.max_depth, plain.method.params.max_depth) == (3, 100)


def test_a_plan_lists_each_run_once(hydras: Composer) -> None:
    words = ["method=majority,lumberjack", "dataset=toy_moons", "eps=0.5,1,2,4,8"]
    plan, settings = plan_runs(hydras, [*words, "sweep_id=x"], is_sweep=True)
    assert [(run.method.name, run.eps) for run in plan.runs] == [
        ("majority", float("inf")),
        *(("lumberjack", eps) for eps in (0.5, 1.0, 2.0, 4.0, 8.0)),
    ]
    assert (plan.n_served, settings.sweep_id) == (4, "x")


def test_an_experiment_lists_values_and_the_command_has_the_last_word(hydras: Composer) -> None:
    words = ["+experiment=figure3", "dataset=adult", "eps=1,2"]
    found = hydras.combinations(words, is_sweep=True)
    methods = {word for words in found for word in words if word.startswith("method=")}
    assert len(found) == 2 * len(methods) == 20
    assert all("dataset=adult" in words for words in found)
    with pytest.raises(ConfigError, match="this experiment is a sweep; add -m"):
        hydras.combinations(words[:2], is_sweep=False)
    with pytest.raises(ConfigError, match="If the comma belongs to the path, write"):
        hydras.combinations(["dataset=table", "dataset.path=a,b.csv"], is_sweep=False)


TABULAR = {
    *("german", "segment", "satimage", "optdigits", "penbased", "letter", "spambase", "splice"),
    *("magic", "marketing", "chess", "page-blocks0", "phoneme", "ring", "twonorm", "texture"),
    *("mushroom", "titanic", "digits", "breast_cancer"),
}


def test_a_suite_is_the_list_of_its_data_sets(hydras: Composer) -> None:
    planned = {}
    for suite in names("suite"):
        words = [f"+suite={suite}", "method=snr,majority", "eps=1,4", "sweep_id=x"]
        plan, _ = plan_runs(hydras, words, is_sweep=True)
        found = [run.dataset["name"] for run in plan.runs]
        # Two budgets of the private method, one run of the other.
        assert all(found.count(name) == 3 for name in found)
        planned[suite] = list(dict.fromkeys(found))
    assert planned["census"] == [
        "adult", "acs_income", "acs_employment", "acs_public_coverage", "acs_travel_time",
    ]  # fmt: skip
    assert set(planned["tabular"]) == TABULAR
    assert len(planned["tabular"]) == 20
    assert len(planned["rare"]) == 8
    assert planned["small"] == ["adult_500", "adult_1000", "adult_2000"]


def test_a_suite_takes_the_place_of_the_data_sets_of_an_experiment(hydras: Composer) -> None:
    words = ["+suite=small", "+experiment=figure1", "method=majority", "sweep_id=x"]
    plan, settings = plan_runs(hydras, words, is_sweep=True)
    assert [run.dataset["n_rows"] for run in plan.runs] == [500, 1000, 2000]
    assert (settings.figure, plan.runs[0].n_repeats) == ("figure1", 3)


def test_settings_of_a_command_go_to_every_data_set_of_a_suite_but_not_against_it(
    hydras: Composer,
) -> None:
    found = hydras.combinations(["+suite=rare", "dataset.n_rows=100"], is_sweep=True)
    assert {hydras.config(words).dataset.n_rows for words in found} == {100}
    with pytest.raises(ConfigError, match=r"suite says dataset\.n_rows itself; leave out"):
        hydras.combinations(["+suite=small", "dataset.n_rows=1,2"], is_sweep=True)
    with pytest.raises(ConfigError, match="suite says dataset itself"):
        hydras.combinations(["+suite=small", "dataset=adult"], is_sweep=True)
    with pytest.raises(ConfigError, match="this suite is a sweep; add -m"):
        hydras.combinations(["+suite=small"], is_sweep=False)
    with pytest.raises(MissingConfigException, match="Could not find 'suite/nosuch'"):
        hydras.combinations(["+suite=nosuch"], is_sweep=True)
