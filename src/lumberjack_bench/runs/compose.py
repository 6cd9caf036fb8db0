"""Composing the many configurations of a sweep without reading the same files for each.

Hydra takes a tenth of a second to compose one. Most combinations of a sweep choose the same files
and differ in plain values only, which Hydra sets after composing; so what they have in common is
composed once per process. For the plan, which must be quick, a method or data set is exchanged
without composing the rest again, where nothing else in the configuration touches it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import IConfigRepository
from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import ConfigCompositionException
from hydra.plugins.config_source import ConfigResult
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from lumberjack_bench.config import SCHEMA_NAME, BenchConfig

EXCHANGEABLE = ("dataset", "method")

_COMPOSED: dict[tuple[str, ...], DictConfig] = {}
_PLAIN: dict[tuple[str, ...], DictConfig] = {}


class Composer(ConfigLoaderImpl):
    """A loader that composes each choice of files once; launchers take it for Hydra's own.

    Parameters
    ----------
    loader : ConfigLoader
        Hydra's.
    """

    def __init__(self, loader: ConfigLoader) -> None:
        super().__init__(loader.get_search_path())
        self._groups = set(loader.list_groups(""))
        self._rests: dict[tuple[str, ...], tuple[IConfigRepository, set[str]]] = {}

    def load_sweep_config(
        self, master_config: DictConfig, sweep_overrides: list[str]
    ) -> DictConfig:
        """Compose the configuration of a job.

        Parameters
        ----------
        master_config : DictConfig
            The configuration of the sweep.
        sweep_overrides : list of str
            Overrides of the job.

        Returns
        -------
        DictConfig
            As Hydra would compose it.
        """
        files, values = self._divide(sweep_overrides)
        config = copy.deepcopy(self._composed(master_config, files))
        _set(config, values)
        OmegaConf.copy_cache(from_config=master_config, to_config=config)
        config.hydra.overrides.task = list(sweep_overrides)
        config.hydra.job.override_dirname = ",".join(sweep_overrides)
        return config

    def compose_run(self, master_config: DictConfig, sweep_overrides: Sequence[str]) -> DictConfig:
        """Compose the configuration of a job without its ``hydra`` node.

        Parameters
        ----------
        master_config : DictConfig
            The configuration of the sweep.
        sweep_overrides : sequence of str
            Overrides of the job.

        Returns
        -------
        DictConfig
        """
        files, values = self._divide(sweep_overrides)
        key = _key(master_config, files)
        if key not in _PLAIN:
            _PLAIN[key] = self._exchanged(master_config, files)
        config = copy.deepcopy(_PLAIN[key])
        _set(config, values)
        return config

    def _exchanged(self, master_config: DictConfig, files: list[str]) -> DictConfig:
        """Compose without the ``hydra`` node, exchanging what can be exchanged."""
        chosen = {
            group: text.partition("=")[2]
            for text in files
            if (group := text.partition("=")[0]) in EXCHANGEABLE
        }
        others = [text for text in files if text.partition("=")[0] not in chosen]
        repository, touched = self._rest(master_config, others)
        loaded = {g: repository.load_config(f"{g}/{name}") for g, name in chosen.items()}
        if touched & set(chosen) or any(map(_is_entangled, loaded.values())):
            loaded, others = {}, files
        key = _key(master_config, others)
        if key not in _PLAIN:
            plain = copy.deepcopy(self._composed(master_config, others))
            with open_dict(plain):
                del plain["hydra"]
            _PLAIN[key] = plain
        config = copy.deepcopy(_PLAIN[key])
        for group, file in loaded.items():
            assert file is not None
            config[group] = OmegaConf.merge(OmegaConf.structured(BenchConfig)[group], file.config)
        return config

    def _rest(
        self, master_config: DictConfig, others: list[str]
    ) -> tuple[IConfigRepository, set[str]]:
        """Return where files are read from, and what the rest of a configuration says things about."""
        key = _key(master_config, others)
        if key not in self._rests:
            overrides = [*master_config.hydra.overrides.hydra, *others]
            name = master_config.hydra.job.config_name
            _, repository = self._parse_overrides_and_create_caching_repo(name, overrides)
            touched = {text.lstrip("+~").partition("=")[0].partition(".")[0] for text in others}
            for default in self.compute_defaults_list(name, overrides, RunMode.RUN).defaults:
                path = default.config_path or ""
                if path != SCHEMA_NAME and path.partition("/")[0] not in EXCHANGEABLE:
                    file = repository.load_config(path)
                    touched |= set(map(str, file.config)) if file is not None else {path}
            self._rests[key] = repository, touched
        return self._rests[key]

    def _divide(self, overrides: Sequence[str]) -> tuple[list[str], list[Override]]:
        """Tell overrides that choose files, or change which keys there are, from plain values."""
        files: list[str] = []
        values: list[str] = []
        for text in overrides:
            key = text.split("=", 1)[0]
            is_value = key[0] not in "+~" and not {"@", "/"} & set(key) and key not in self._groups
            (values if is_value and not key.startswith("hydra.") else files).append(text)
        return files, OverridesParser.create(config_loader=self).parse_overrides(values)

    def _composed(self, master_config: DictConfig, files: list[str]) -> DictConfig:
        key = _key(master_config, files)
        if key not in _COMPOSED:
            _COMPOSED[key] = super().load_sweep_config(master_config, files)
        return _COMPOSED[key]


def _is_entangled(file: ConfigResult | None) -> bool:
    """Whether a file cannot be exchanged alone: it is not there, or speaks of other places."""
    return file is None or bool(file.header["package"] or file.defaults_list)


def _key(master_config: DictConfig, files: Sequence[str]) -> tuple[str, ...]:
    hydra = master_config.hydra
    sources = (f"{source.schema}://{source.path}" for source in hydra.runtime.config_sources)
    return (*sources, *hydra.overrides.hydra, *files)


def _set(config: DictConfig, values: Sequence[Override]) -> None:
    for override in values:
        try:
            OmegaConf.update(config, override.key_or_group, override.value(), merge=True)
        except OmegaConfBaseException as error:
            raise ConfigCompositionException(
                f"Error merging override {override.input_line}"
            ) from error
