"""What can be configured: the schema that Hydra checks, and the ranges it cannot check.

Turning a composed configuration into a run and the settings around it happens here; the values
themselves live in ``conf/``.
"""

from __future__ import annotations

import difflib
import functools
import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING, DictConfig, OmegaConf

from lumberjack_bench.figures import FIGURES
from lumberjack_bench.runs.identity import RunConfig

SCHEMA_NAME = "bench_schema"


class ConfigError(ValueError):
    """A configuration that cannot be run; its message is one line for a person."""


# Hydra reads these annotations at run time and does not know the `X | None` form of all versions
# we support inside containers, so they stay with the plain builtins.
@dataclass
class MethodConfig:
    """One method, as ``conf/method/<name>.yaml`` describes it."""

    name: str = MISSING
    target: str = MISSING
    label: str = MISSING
    is_private: bool = True
    mode: str | None = None
    is_tuned: bool = False
    params: dict[str, Any] = field(default_factory=dict)
    by_dataset: dict[str, Any] = field(default_factory=dict)


@dataclass
class TrackingConfig:
    """Where runs are shown besides the result files."""

    kind: str = MISSING
    uri: str | None = None
    experiment: str = "lumberjack"


@dataclass
class BenchConfig:
    """Everything that ``run.py`` understands."""

    dataset: dict[str, Any] = field(default_factory=dict)
    method: MethodConfig = field(default_factory=MethodConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
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


LONGEST_NAME = 100

RUN_SETTINGS = ("dataset", "method", "eps", "delta", "seed", "n_repeats", "data_dir")
"""What may differ between the runs of a sweep; everything else is one for all of them."""

SYNONYMS = {
    "epsilon": "eps",
    "epsilons": "eps",
    "data": "dataset",
    "datasets": "dataset",
    "methods": "method",
    "repeats": "n_repeats",
    "repetitions": "n_repeats",
    "n_repetitions": "n_repeats",
    "random_state": "seed",
    "jobs": "n_workers",
    "n_jobs": "n_workers",
    "workers": "n_workers",
    "out": "results_dir",
    "output_dir": "results_dir",
    "results": "results_dir",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What surrounds a run and does not change its numbers.

    Attributes
    ----------
    results_dir : Path
        Folder of the result files.
    sweep_id : str
        Name of the command that runs are part of; also the name of its log folder.
    tracking : dict
        Kind, address and experiment of the tracking store.
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
    figure : str or None
        What to draw from the results at the end.
    """

    results_dir: Path
    sweep_id: str
    tracking: dict[str, Any]
    launcher: dict[str, Any] = field(default_factory=lambda: {"kind": "serial"})
    timeout: float | None = None
    is_forced: bool = False
    is_raising: bool = False
    n_workers: int = 1
    allow_targets: tuple[str, ...] = ()
    figure: str | None = None

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
        name = f"{number}-{run.dataset['name']}-{run.method['name']}-eps{run.eps}"
        return self.sweep_dir / name / "run.log"


def register_schema() -> None:
    """Tell Hydra the schema of ``conf/config.yaml``."""
    ConfigStore.instance().store(name=SCHEMA_NAME, node=BenchConfig)


def suggest(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence, with a hint at the known name that was probably meant.

    Parameters
    ----------
    word : str
        What was given.
    known : iterable of str
        What there is.

    Returns
    -------
    str
        ``"; did you mean 'x'?"``, or a full stop.
    """
    known = list(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    guess = SYNONYMS[word] if SYNONYMS.get(word) in known else next(iter(close), None)
    return f"; did you mean '{guess}'?" if guess else "."


def unknown_setting(name: str) -> str:
    """Say that there is no such setting, and which there are.

    Parameters
    ----------
    name : str
        What was given.

    Returns
    -------
    str
        One line.
    """
    known = [f.name for f in fields(BenchConfig)]
    hint = suggest(name, [*known, "experiment"])
    return f"there is no setting '{name}'{hint} Settings: {', '.join(known)}."


def read_run(config: DictConfig | Mapping[str, Any]) -> RunConfig:
    """Take the run out of a composed configuration, after checking its ranges.

    Parameters
    ----------
    config : DictConfig
        As Hydra composes it, without the ``hydra`` node.

    Returns
    -------
    RunConfig

    Raises
    ------
    ConfigError
        When a value is out of range.
    """
    _check_names(config)
    values = _plain(config, RUN_SETTINGS)
    method, dataset = dict(values["method"]), dict(values["dataset"])
    for key in ("name", "kind"):
        if dataset.get(key) in (None, ""):
            raise ConfigError(
                f"the data set has no {key!r}: every conf/dataset/*.yaml needs name and kind."
            )
    for part, name in (("method", method["name"]), ("dataset", dataset["name"])):
        _check_file_name(f"{part}.name", name)
    dataset["name"] = str(dataset["name"])
    if not values["n_repeats"] >= 1:
        raise ConfigError(f"n_repeats must be at least 1, got {values['n_repeats']}.")
    if not values["seed"] >= 0:
        raise ConfigError(f"seed must be a non-negative whole number, got {values['seed']}.")
    eps, delta = values["eps"], values["delta"]
    if not eps > 0 or (method["is_private"] and math.isinf(eps)):
        raise ConfigError(
            f"eps must be positive and finite, got {eps:g}. "
            "For a non-private baseline use method=extra_trees."
        )
    if not 0 <= delta < 1:
        raise ConfigError(
            f"delta must lie in [0, 1), got {delta:g}. A common choice is 1e-6, below 1/rows."
        )
    is_private = bool(method["is_private"])
    if values["data_dir"] is not None:
        dataset["data_dir"] = values["data_dir"]
    return RunConfig(
        dataset=dataset,
        dataset_identity=dataset_identity(dataset),
        method={k: v for k, v in method.items() if k != "by_dataset"},
        eps=float(eps) if is_private else math.inf,
        delta=float(delta) if is_private else 0.0,
        seed=int(values["seed"]),
        n_repeats=int(values["n_repeats"]),
    )


def read_settings(config: DictConfig | Mapping[str, Any]) -> Settings:
    """Take everything that is not the run out of a composed configuration.

    Parameters
    ----------
    config : DictConfig
        As Hydra composes it, without the ``hydra`` node.

    Returns
    -------
    Settings

    Raises
    ------
    ConfigError
        When a value is out of range.
    """
    _check_names(config)
    values = _plain(config, set(BenchConfig.__dataclass_fields__) - {"method", "dataset"})
    _check_file_name("sweep_id", values["sweep_id"])
    if not values["results_dir"] or "${" in values["results_dir"]:
        # Hydra would look for a setting of that name once more when it makes the log folder.
        raise ConfigError(
            f"results_dir must name a folder, without '${{', got {values['results_dir']!r}."
        )
    tracking = dict(values["tracking"])
    if tracking["kind"] not in ("sqlite", "server", "none"):
        raise ConfigError(
            f"tracking.kind must be sqlite, server or none, got {tracking['kind']!r}."
        )
    if values["on_error"] not in ("continue", "raise"):
        raise ConfigError(f"on_error must be continue or raise, got {values['on_error']!r}.")
    if values["timeout"] is not None and not values["timeout"] > 0:
        raise ConfigError(
            f"timeout must be a positive number of seconds or null, got {values['timeout']:g}."
        )
    if values["n_workers"] < -1 or values["n_workers"] == 0:
        raise ConfigError(
            f"n_workers must be positive, or -1 for one per core, got {values['n_workers']}."
        )
    if values["figure"] is not None and values["figure"] not in FIGURES:
        raise ConfigError(
            f"there is no figure {values['figure']!r}; there are {', '.join(FIGURES)}."
        )
    return Settings(
        results_dir=Path(values["results_dir"]).expanduser().absolute(),
        sweep_id=str(values["sweep_id"]),
        tracking=tracking,
        launcher=dict(values["launcher"]),
        timeout=values["timeout"],
        is_forced=bool(values["force"]),
        is_raising=values["on_error"] == "raise",
        n_workers=int(values["n_workers"]),
        allow_targets=tuple(values["allow_targets"]),
        figure=values["figure"],
    )


def _check_names(config: DictConfig | Mapping[str, Any]) -> None:
    """Refuse what a leading + or ~ on the command line does without asking the schema."""
    known = [f.name for f in fields(BenchConfig)]
    for name in config:
        if name != "hydra" and name not in known:
            raise ConfigError(unknown_setting(str(name)))
    for name in known:
        if name not in config:
            raise ConfigError(f"{name} must have a value; it was deleted with ~{name}.")


def _check_file_name(setting: str, value: Any) -> None:
    """Refuse a name that cannot be part of the name of a log folder."""
    text = str(value)
    if isinstance(value, list | dict) or "/" in text or text in ("", ".", ".."):
        raise ConfigError(f"{setting} must be a name without '/', got {text!r}.")
    if len(text.encode()) > LONGEST_NAME:
        raise ConfigError(
            f"{setting} must be a name of at most {LONGEST_NAME} bytes, got {len(text.encode())}."
        )


def dataset_identity(dataset: Mapping[str, Any]) -> str:
    """Return what determines the rows of a data set now.

    Parameters
    ----------
    dataset : mapping
        The ``dataset`` part of a configuration.

    Returns
    -------
    str

    Raises
    ------
    ConfigError
        When the data set's own configuration is wrong.
    """
    return _dataset_identity(json.dumps(dataset, sort_keys=True))


@functools.cache
def _dataset_identity(dataset: str) -> str:
    from lumberjack_bench import datasets

    try:
        return datasets.identity(json.loads(dataset))
    except datasets.DatasetError as error:
        raise ConfigError(str(error)) from error


def _plain(config: DictConfig | Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    if not isinstance(config, DictConfig):
        return dict(config)
    return {
        str(key): (
            OmegaConf.to_container(node, resolve=True, throw_on_missing=True)
            if OmegaConf.is_config(node := config[key])
            else node
        )
        for key in config
        if key in names
    }
