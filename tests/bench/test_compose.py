from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import hydra
import pytest
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict

from lumberjack_bench.config import register_schema
from lumberjack_bench.runs import compose
from lumberjack_bench.runs.compose import Composer

CONF = Path(__file__).parents[2] / "conf"

pytestmark = pytest.mark.filterwarnings("ignore:\\s*'hydra/launcher/.*' is validated against")


def names(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


@pytest.fixture
def loader() -> Iterator[ConfigLoader]:
    register_schema()
    compose._COMPOSED.clear()
    compose._PLAIN.clear()
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        yield GlobalHydra.instance().config_loader()


def master(loader: ConfigLoader, *overrides: str) -> DictConfig:
    return loader.load_configuration("config", list(overrides), RunMode.MULTIRUN)


def without_hydra(config: DictConfig) -> object:
    with open_dict(config):
        config.pop("hydra", None)
    return OmegaConf.to_container(config, resolve=False)


def combinations() -> list[tuple[str, ...]]:
    methods = [(f"method={name}", "dataset=acs_income", "eps=2") for name in names("method")]
    datasets = [("method=snr", f"dataset={name}", "seed=3") for name in names("dataset")]
    others = [
        ("+experiment=figure1", "method=majority", "dataset=toy_moons", "dataset.extent=50"),
        ("tracking=none", "method=majority", "n_repeats=1"),
        ("method=snr", "+method.params.extra=1"),
        ("~tracking", "method=snr"),
    ]
    return [*methods, *datasets, *others]


def test_shared_composing_gives_what_hydra_gives(loader: ConfigLoader) -> None:
    sweep = master(loader, "method=lumberjack", "dataset=adult")
    composer = Composer(loader)
    for combination in combinations():
        expected = without_hydra(loader.load_sweep_config(sweep, list(combination)))
        assert without_hydra(composer.compose_run(sweep, combination)) == expected, combination
        job = composer.load_sweep_config(sweep, list(combination))
        assert job.hydra.overrides.task == list(combination)
        assert without_hydra(job) == expected, combination


def test_most_methods_and_data_sets_of_a_sweep_share_one_composition(loader: ConfigLoader) -> None:
    sweep = master(loader)
    composer = Composer(loader)
    for method in names("method"):
        for dataset in ("adult", "acs_income"):
            composer.compose_run(sweep, (f"method={method}", f"dataset={dataset}", "eps=2"))
    assert len(compose._COMPOSED) == 1


def test_what_an_overlay_says_about_a_method_is_kept(loader: ConfigLoader, tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    overlay = "# @package _global_\nmethod:\n  params:\n    n_estimators: 7\n"
    (tmp_path / "experiment" / "seven.yaml").write_text(overlay)
    sweep = master(loader, f"hydra.searchpath=[file://{tmp_path}]")
    config = Composer(loader).compose_run(sweep, ("+experiment=seven", "method=lumberjack"))
    assert config.method.params.n_estimators == 7


def test_the_types_of_settings_are_still_checked(loader: ConfigLoader) -> None:
    sweep = master(loader)
    composer = Composer(loader)
    for wrong in ("eps=abc", "method.is_tuned=perhaps", "method.nosuch=1", "nosuch=1"):
        with pytest.raises(HydraException):
            composer.compose_run(sweep, ("method=snr", wrong))
    with pytest.raises(HydraException, match="Could not find 'method/nosuch'"):
        composer.compose_run(sweep, ("method=nosuch",))


def test_one_combination_does_not_leak_into_the_next(loader: ConfigLoader) -> None:
    sweep = master(loader)
    composer = Composer(loader)
    changed = composer.compose_run(sweep, ("method=lumberjack", "method.params.max_depth=3"))
    plain = composer.compose_run(sweep, ("method=lumberjack",))
    assert (changed.method.params.max_depth, plain.method.params.max_depth) == (3, 100)
