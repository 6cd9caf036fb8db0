"""From the words of a command to configurations, with Hydra's public functions alone.

Hydra takes a tenth of a second to compose one configuration. Most combinations of a sweep choose
the same files and differ in plain values, which are set afterwards; and where a method and a data
set each change nothing but their own part, they are composed apart and put together.
"""

from __future__ import annotations

import copy
import itertools
import pickle
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from lumberjack_bench.config import (
    RUN_SETTINGS,
    BenchConfig,
    ConfigError,
    register_schema,
    unknown_setting,
)
from lumberjack_bench.overrides import several_values, several_without_sweep
from lumberjack_bench.own_methods import find_modules_in, modules_in, yaml_beside

_KINDS = {"float": "a number", "int": "a whole number", "bool": "true or false"}

PARTS = ("dataset", "method")
"""Choices of files that are composed apart where they can be."""


@contextmanager
def composer(conf_dir: Path, config_name: str = "config") -> Iterator[Composer]:
    """Make Hydra ready to compose from a folder, whose primary configuration has some name."""
    register_schema()
    with hydra.initialize_config_dir(str(conf_dir), version_base="1.3"):
        yield Composer(config_name)


class Composer:
    """Composes configurations; each choice of files once."""

    def __init__(self, config_name: str = "config") -> None:
        self._name = config_name
        self._loader = GlobalHydra.instance().config_loader()
        self._groups = set(self._loader.list_groups(""))
        self._composed: dict[tuple[str, ...], DictConfig] = {}
        self._together: dict[tuple[str, ...], bytes] = {}
        self._parsed: dict[str, Override] = {}
        self._own_packages: set[str] = set()
        self.import_folders: tuple[str, ...] = ()
        self._find_methods_in(Path.cwd())

    def parse(self, words: Sequence[str]) -> list[Override]:
        """Read words in Hydra's grammar; a glob stands for the files that there are."""
        new = [word for word in words if word not in self._parsed]
        parser = OverridesParser.create(config_loader=self._loader)
        self._parsed |= dict(zip(new, parser.parse_overrides(new), strict=True))
        found = [self._parsed[word] for word in words]
        for override in found:
            if override.key_or_group == "hydra.searchpath":
                places: Any = override.value()
                for place in map(str, places):
                    if place.startswith("file://"):
                        folder = Path(place.removeprefix("file://"))
                        self._find_methods_in(folder)
                        self._own_packages |= set(modules_in(folder))
        for word, override in zip(words, found, strict=True):
            if override.key_or_group == "method" and word in new:
                self._know_own_methods(override, words)
        return found

    def _find_methods_in(self, folder: Path) -> None:
        if str(folder) not in self.import_folders:
            self.import_folders += (str(folder),)
            find_modules_in([folder])

    def _know_own_methods(self, override: Override, words: Sequence[str]) -> None:
        """Take what is no file of a configuration for a module with its yaml beside it."""
        places = [word for word in words if word.startswith("hydra.searchpath=")]
        names = {word.partition("=")[2] for word in values_of(override)}
        for name in names - set(self.options("method", places)):
            path = yaml_beside(name)
            if path is None:
                continue
            if not path.is_file():
                raise ConfigError(
                    f"method={name} names no file in conf/method, and beside its module there is no {str(path)!r}."
                )
            self._own_packages.add(name.partition(".")[0])
            ConfigStore.instance().store(group="method", name=name, node=OmegaConf.load(path))

    def options(self, group: str, words: Sequence[str]) -> list[str]:
        """Return the names of a group of configurations."""
        found = self._loader.get_group_options(group, config_name=self._name, overrides=[*words])
        return list(found)

    def combinations(self, words: Sequence[str], *, is_sweep: bool) -> list[tuple[str, ...]]:
        """Return the words of every run that a command asks for.

        What an experiment sweeps over gives way to the words of the command, and its data sets to
        those of a suite.

        Raises
        ------
        ConfigError
            When there are several values and this is no sweep, or of a setting that all runs share;
            or when a suite says itself what the command says.
        """
        fixed, choices = self._sorted_out(words)
        # Plain values are checked with the method of each combination, not with the default one.
        files = [word for word in fixed if self._chooses_files(word)]
        config = self._compose(files, return_hydra_config=True)
        swept = dict(config.hydra.sweeper.get("params") or {})
        if not is_sweep:
            if choices:
                _, override = next(iter(choices.values()))
                raise ConfigError(several_without_sweep(str(override.input_line)))
            if swept or config.suite:
                what = "suite" if config.suite else "experiment"
                raise ConfigError(f"this {what} is a sweep; add -m to the command.")
            return [tuple(fixed)]
        given = {override.get_key_element() for override in self.parse(fixed)}
        tables: list[tuple[str, ...]] = [()]
        if config.suite:
            tables = self._tables(config.suite, {*given, *choices})
            swept = {key: value for key, value in swept.items() if key.split(".")[0] != "dataset"}
        own, own_choices = self._sorted_out([f"{key}={value}" for key, value in swept.items()])
        choices = {k: v for k, v in own_choices.items() if k not in given} | choices
        fixed = [w for w in own if w.partition("=")[0] not in {*given, *choices}] + fixed
        return [
            (*table, *fixed, *combination)
            for table in tables
            for combination in itertools.product(*(values for values, _ in choices.values()))
        ]

    def _tables(self, suite: Sequence[str], given: Collection[str]) -> list[tuple[str, ...]]:
        """Return the words of every data set of a suite, each of whose lines is a sweep over some."""
        tables = []
        for line in suite:
            fixed, choices = self._sorted_out(shlex.split(line))
            both = sorted({"dataset", *choices, *(w.partition("=")[0] for w in fixed)} & {*given})
            if both:
                raise ConfigError(f"the suite says {both[0]} itself; leave out {both[0]}=VALUE.")
            combinations = itertools.product(*(values for values, _ in choices.values()))
            tables += [(*fixed, *combination) for combination in combinations]
        return tables

    def _sorted_out(
        self, words: Sequence[str]
    ) -> tuple[list[str], dict[str, tuple[list[str], Override]]]:
        """Tell words with one value from those with several."""
        fixed, choices = [], {}
        for override in self.parse(words):
            if not override.is_sweep_override():
                fixed.append(str(override.input_line))
                continue
            head = re.split(r"[./]", override.key_or_group)[0]
            if head in BenchConfig.__dataclass_fields__ and head not in RUN_SETTINGS:
                raise ConfigError(several_values(str(override.input_line)))
            choices[override.get_key_element()] = (values_of(override), override)
        return fixed, choices

    def config(self, words: Sequence[str]) -> DictConfig:
        """Return the configuration, without the ``hydra`` node, that words with one value each make.

        Raises
        ------
        ConfigError, hydra.errors.HydraException
            When a word fits no setting.
        """
        files = tuple(word for word in words if self._chooses_files(word))
        if files not in self._together:
            self._together[files] = pickle.dumps(self._of_files(files))
        # A third of the time of a deep copy.
        config: DictConfig = pickle.loads(self._together[files])
        for override in self.parse([word for word in words if not self._chooses_files(word)]):
            name = override.key_or_group
            try:
                OmegaConf.update(config, name, override.value(), merge=True)
            except (ConfigAttributeError, ConfigKeyError) as error:
                raise ConfigError(unknown_setting(name)) from error
            except OmegaConfBaseException as error:
                kind = _KINDS.get(BenchConfig.__annotations__.get(name, ""))
                given = override.get_value_element_as_str()
                raise ConfigError(
                    f"{name} must be {kind}, got {given!r}."
                    if kind
                    else f"{override.input_line}: {_first_line(error)}"
                ) from error
        if self._own_packages and "allow_targets" in config:
            config.allow_targets = sorted({*config.allow_targets, *self._own_packages})
        return config

    def _chooses_files(self, word: str) -> bool:
        """Whether a word chooses files or changes which keys there are, instead of a plain value."""
        key = word.partition("=")[0]
        return (
            key[0] in "+~" or bool({"@", "/"} & set(key)) or key in self._groups
        ) or key.startswith("hydra.")

    def _of_files(self, files: Sequence[str]) -> DictConfig:
        parts = {name: word for word in files if (name := word.partition("=")[0]) in PARTS}
        rest = [word for word in files if word not in parts.values()]
        if len(parts) < len(PARTS):
            return self._compose(files)
        base = self._compose(rest)
        apart = {name: self._compose([*rest, word]) for name, word in parts.items()}
        if any(_others(config, name) != _others(base, name) for name, config in apart.items()):
            return self._compose(files)
        together = copy.deepcopy(base)
        for name, config in apart.items():
            together[name] = config[name]
        return together

    def _compose(self, files: Sequence[str], *, return_hydra_config: bool = False) -> DictConfig:
        key = (*files, str(return_hydra_config))
        if key not in self._composed:
            try:
                self._composed[key] = hydra.compose(
                    self._name, list(files), return_hydra_config=return_hydra_config
                )
            except ValueError as error:
                # As for a choice that is null.
                raise ConfigError(f"{' '.join(files)}: {_first_line(error)}.") from error
        return self._composed[key]


def values_of(override: Override) -> list[str]:
    """Return a word for each value of one; a ConfigError when they cannot be listed or there are none."""
    key = override.get_key_element()
    if not override.is_sweep_override():
        return [f"{key}={override.get_value_element_as_str()}"]
    if not override.is_discrete_sweep():
        raise ConfigError(
            f"{override.input_line!r} is not a list of values; sweep over a list or a range."
        )
    values = list(override.sweep_string_iterator())
    if not values:
        raise ConfigError(f"{override.input_line!r} stands for no value at all.")
    return [f"{key}={value}" for value in values]


def _others(config: DictConfig, name: str) -> object:
    plain = OmegaConf.to_container(config, resolve=False)
    assert isinstance(plain, dict)
    return {key: value for key, value in plain.items() if key != name}


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
