"""Composing the many configurations of a sweep without reading the same files for each.

Hydra takes a tenth of a second to compose one. Most combinations of a sweep choose the same files
and differ in plain values only, which Hydra sets after composing; so what they have in common is
composed once per process.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import ConfigCompositionException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

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
            plain = copy.deepcopy(self._composed(master_config, files))
            with open_dict(plain):
                del plain["hydra"]
            _PLAIN[key] = plain
        config = copy.deepcopy(_PLAIN[key])
        _set(config, values)
        return config

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
