"""The data sets that have a config in ``conf/dataset``, by name: their settings and titles."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from lumberjack_bench.configured import choices, configured
from lumberjack_bench.datasets.dataset import DatasetError


@functools.cache
def title_of(name: str) -> str:
    """Return what figures and tables call a data set: the title in its config, else its name."""
    if name not in choices("dataset"):
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
    if name not in choices("dataset"):
        raise DatasetError(f"no data set {name!r}; there are {choices('dataset')}.")
    config = OmegaConf.create(configured(f"dataset/{name}"))
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
