"""The data sets that have a config, by name, for scripts that run without Hydra."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from lumberjack_bench.datasets.dataset import DatasetError
from lumberjack_bench.datasets.sources import project_root


def config_folder() -> Path:
    """Return the folder of the data sets' configs.

    Returns
    -------
    Path
    """
    return project_root() / "conf" / "dataset"


def configured_names() -> list[str]:
    """Return the names of the data sets that have a config.

    Returns
    -------
    list of str
    """
    return sorted(path.stem for path in config_folder().glob("*.yaml"))


def named_config(name: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return the config of a data set.

    Parameters
    ----------
    name : str
        Name of its config file.
    overrides : sequence of str
        ``key=value``, where the key may start with ``dataset.`` as on Hydra's command line;
        ``data_dir`` is known to all.

    Returns
    -------
    dict

    Raises
    ------
    DatasetError
        When there is no such config, or an override names a key that it does not have.
    """
    if name not in configured_names():
        raise DatasetError(f"no data set {name!r}; there are {configured_names()}.")
    config = OmegaConf.load(config_folder() / f"{name}.yaml")
    try:
        changes = OmegaConf.from_dotlist([text.removeprefix("dataset.") for text in overrides])
        known = sorted({"data_dir", *map(str, config)})
        unknown = [str(key) for key in changes if key not in known]
        if unknown:
            raise DatasetError(f"{name}: no settings {unknown}; there are {known}.")
        merged = OmegaConf.to_container(OmegaConf.merge(config, changes), resolve=True)
    except OmegaConfBaseException as error:
        raise DatasetError(f"{name}: {str(error).splitlines()[0]}") from None
    assert isinstance(merged, dict)
    return {str(key): value for key, value in merged.items()}
