"""What the files in ``conf/`` say, for scripts and figures that run without Hydra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from lumberjack_bench.files import project_folder

_FOLDER = (project_folder() or Path.cwd()) / "conf"


def choices(group: str) -> list[str]:
    """Return the names of the configurations in a folder such as ``method``."""
    return sorted(path.stem for path in (_FOLDER / group).glob("*.yaml"))


def configured(choice: str, *, dataset: str | None = None) -> dict[str, Any]:
    """Return what a configuration says, before anything is chosen or changed.

    Parameters
    ----------
    choice : str
        For example ``config`` or ``method/lumberjack``.
    dataset : str, optional
        Data set for which the settings of a method that depend on it are looked up; without it
        references to other settings stay as they are written.

    Returns
    -------
    dict
        Empty when there is no such file.
    """
    path = _FOLDER / f"{choice}.yaml"
    content = OmegaConf.load(path) if path.is_file() else OmegaConf.create({})
    if dataset is not None:
        content = OmegaConf.create({"method": content, "dataset": {"name": dataset}})
        OmegaConf.resolve(content)
        content = content.method
    plain: Any = OmegaConf.to_container(content)
    return {str(key): value for key, value in plain.items()}
