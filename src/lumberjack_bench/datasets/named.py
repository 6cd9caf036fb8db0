"""The data sets that have a config in ``conf/dataset``, by name: their settings and titles."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from lumberjack_bench.datasets.dataset import DatasetError
from lumberjack_bench.files import project_folder


def config_folder() -> Path:
    """Return the folder of the data sets' configs."""
    return (project_folder() or Path.cwd()) / "conf" / "dataset"


def configured_names() -> list[str]:
    """Return the names of the data sets that have a config."""
    return sorted(path.stem for path in config_folder().glob("*.yaml"))


@functools.cache
def title_of(name: str) -> str:
    """Return what figures and tables call a data set: the title in its config, else its name."""
    if name not in configured_names():
        return name
    return str(named_config(name).get("title", name))


def named_config(name: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return the config of a data set.

    Parameters
    ----------
    name : str
        Name of its config file.
    overrides : sequence of str
        ``key=value``, where the key may start with ``dataset.`` as on Hydra's command line;
        ``data_dir`` is known to all.

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
