"""What can be configured: the schema that Hydra checks, and the ranges it cannot check.

Turning a composed configuration into a run and the settings around it happens here; the values
themselves live in ``conf/``.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING, DictConfig, OmegaConf

from lumberjack_bench.metrics import METRICS
from lumberjack_bench.own_methods import source_version
from lumberjack_bench.runs.identity import MethodConfig, RunConfig
from lumberjack_bench.spelling import suggest

SCHEMA_NAME = "bench_schema"

LONGEST_NAME = 100

RUN_SETTINGS = ("dataset", "method", "eps", "delta", "seed", "n_repeats", "data_dir")
"""What may differ between the runs of a sweep; everything else is one for all of them."""


class ConfigError(ValueError):
    """A configuration that cannot be run; its message is one line for a person."""


@dataclass
class MethodChoice(MethodConfig):
    """A method whose parameters may depend on the data set."""

    by_dataset: dict[str, Any] = field(default_factory=dict)


@dataclass
class TrackingConfig:
    """Where runs are shown besides the result files."""

    kind: str
    uri: str | None = None
    experiment: str = "lumberjack"


# Hydra reads these annotations at run time.
@dataclass
class BenchConfig:
    """Everything that ``run.py`` understands."""

    dataset: dict[str, Any] = field(default_factory=dict)
    suite: list[str] = field(default_factory=list)
    method: MethodChoice = MISSING
    tracking: TrackingConfig = MISSING
    launcher: dict[str, Any] = field(default_factory=dict)
    eps: float = 1.0
    delta: float = 1e-6
    seed: int = 0
    n_repeats: int = 5
    results_dir: str = "results"
    data_dir: str | None = None
    n_workers: int = -1
    timeout: float | None = None
    force: bool = False
    on_error: str = "continue"
    allow_targets: list[str] = field(default_factory=list)
    sweep_id: str = MISSING
    figure: str | None = None
    metric: str = "accuracy"
    keep_predictions: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """What surrounds a run and does not change its numbers.

    Attributes
    ----------
    results_dir : Path
        Folder of the result files.
    sweep_id : str
        Name of the command that runs are part of; also the name of its log folder.
    tracking : TrackingConfig
        Where runs are shown.
    launcher : dict
        Kind and options of what starts runs.
    timeout : float or None
        Seconds a run may take.
    is_forced : bool
        Whether finished runs are done again.
    is_raising : bool
        Whether the first failure ends the sweep.
    n_workers : int
        Runs at a time.
    allow_targets : tuple of str
        Further packages that methods may come from.
    import_folders : tuple of str
        Where these are, besides where Python looks anyway.
    figure : str or None
        What to draw from the results at the end.
    metric : str
        What the table at the end and the figure show.
    keeps_predictions : bool
        Whether what runs predict is stored, and finished runs without it are done again.
    """

    results_dir: Path
    sweep_id: str
    tracking: TrackingConfig
    launcher: dict[str, Any] = field(default_factory=lambda: {"kind": "serial"})
    timeout: float | None = None
    is_forced: bool = False
    is_raising: bool = False
    n_workers: int = 1
    allow_targets: tuple[str, ...] = ()
    import_folders: tuple[str, ...] = ()
    figure: str | None = None
    metric: str = "accuracy"
    keeps_predictions: bool = False

    @property
    def since(self) -> str:
        """The sweep that a result must come from to count: this one, when runs are forced."""
        return self.sweep_id if self.is_forced else ""

    @property
    def sweep_dir(self) -> Path:
        """Folder of the logs of this command."""
        return self.results_dir / "logs" / self.sweep_id

    def log_file(self, number: int, run: RunConfig) -> Path:
        """Return the log of a run, the so-manieth of this command."""
        name = f"{number}-{run.dataset['name']}-{run.method.name}-eps{run.eps}"
        return self.sweep_dir / name / "run.log"


def register_schema() -> None:
    """Tell Hydra the schema of ``conf/config.yaml``."""
    ConfigStore.instance().store(name=SCHEMA_NAME, node=BenchConfig)


def unknown_setting(name: str) -> str:
    """Say that there is no such setting, and which there are."""
    path, _, key = name.rpartition(".")
    if path == "method.params":
        return (
            f"the method has no parameter {key!r}. {name}=VALUE goes with methods that have it; give the "
            "others a command of their own."
        )
    if path:
        return f"there is no setting '{key}' in '{path}'; `python run.py --cfg job` lists all."
    known = [f.name for f in fields(BenchConfig)]
    hint = suggest(name, [*known, "experiment"])
    return f"there is no setting '{name}'{hint} Settings: {', '.join(known)}."


def read_run(config: DictConfig) -> RunConfig:
    """Take the run out of a composed configuration, or say by a ConfigError what is out of range."""
    values = _typed(config)
    method = MethodConfig(**{f.name: getattr(values.method, f.name) for f in fields(MethodConfig)})
    _check_file_name("method.name", method.name)
    if not values.n_repeats >= 1:
        raise ConfigError(f"n_repeats must be at least 1, got {values.n_repeats}.")
    if not values.seed >= 0:
        raise ConfigError(f"seed must be a non-negative whole number, got {values.seed}.")
    if not values.eps > 0 or (method.is_private and math.isinf(values.eps)):
        raise ConfigError(
            f"eps must be positive and finite, got {values.eps:g}. "
            "For a non-private baseline use method=extra_trees."
        )
    if not 0 <= values.delta < 1:
        raise ConfigError(
            f"delta must lie in [0, 1), got {values.delta:g}. A common choice is 1e-6, below 1/rows."
        )
    dataset = values.dataset
    if values.data_dir is not None:
        dataset["data_dir"] = values.data_dir
    identity = dataset_identity(dataset)
    return RunConfig(
        dataset=dataset | {"name": str(dataset["name"])},
        dataset_identity=identity,
        method=method,
        eps=values.eps if method.is_private else math.inf,
        delta=values.delta if method.is_private else 0.0,
        seed=values.seed,
        n_repeats=values.n_repeats,
        method_version=source_version(method.target),
    )


def read_settings(config: DictConfig) -> Settings:
    """Take what is not the run out of a composed configuration, after checking the ranges likewise."""
    values = _typed(config)
    _check_file_name("sweep_id", values.sweep_id)
    if not values.results_dir:
        raise ConfigError("results_dir must name a folder, got nothing.")
    if values.tracking.kind not in ("sqlite", "server", "none"):
        raise ConfigError(
            f"tracking.kind must be sqlite, server or none, got {values.tracking.kind!r}."
        )
    if values.metric not in METRICS:
        raise ConfigError(
            f"there is no metric {values.metric!r}{suggest(values.metric, METRICS)} There are: "
            f"{', '.join(METRICS)}."
        )
    if values.on_error not in ("continue", "raise"):
        raise ConfigError(f"on_error must be continue or raise, got {values.on_error!r}.")
    if values.timeout is not None and not values.timeout > 0:
        raise ConfigError(
            f"timeout must be a positive number of seconds or null, got {values.timeout:g}."
        )
    if values.n_workers < -1 or values.n_workers == 0:
        raise ConfigError(
            f"n_workers must be positive, or -1 for one per core, got {values.n_workers}."
        )
    return Settings(
        results_dir=Path(values.results_dir).expanduser().absolute(),
        sweep_id=values.sweep_id,
        tracking=values.tracking,
        launcher=values.launcher,
        timeout=values.timeout,
        is_forced=values.force,
        is_raising=values.on_error == "raise",
        n_workers=values.n_workers,
        allow_targets=tuple(values.allow_targets),
        figure=values.figure,
        metric=values.metric,
        keeps_predictions=values.keep_predictions,
    )


def _typed(config: DictConfig) -> BenchConfig:
    """Return a configuration as an object, after refusing what + and ~ do without asking the schema."""
    for name in BenchConfig.__dataclass_fields__:
        if name not in config and not OmegaConf.is_missing(config, name):
            raise ConfigError(f"{name} must have a value; it was deleted with ~{name}.")
    parts: tuple[tuple[str, Any, DictConfig], ...] = (
        ("", BenchConfig, config),
        ("method.", MethodChoice, config.method),
        ("tracking.", TrackingConfig, config.tracking),
    )
    for prefix, schema, node in parts:
        for key in map(str, node):
            if key not in schema.__dataclass_fields__:
                raise ConfigError(unknown_setting(f"{prefix}{key}"))
    return cast(BenchConfig, OmegaConf.to_object(config))


def _check_file_name(setting: str, value: str) -> None:
    """Refuse a name that cannot be part of the name of a log folder."""
    if "/" in value or value in ("", ".", "..") or len(value.encode()) > LONGEST_NAME:
        raise ConfigError(
            f"{setting} must be a name without '/' of at most {LONGEST_NAME} bytes, got {value!r}."
        )


def dataset_identity(dataset: Mapping[str, Any]) -> str:
    """Return what determines the rows of a data set now; a ConfigError when it is described wrongly."""
    return _dataset_identity(json.dumps(dataset, sort_keys=True))


@functools.cache
def _dataset_identity(dataset: str) -> str:
    from lumberjack_bench import datasets

    try:
        return datasets.identity(json.loads(dataset))
    except datasets.DatasetError as error:
        raise ConfigError(str(error)) from error
