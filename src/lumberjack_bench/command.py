"""The command line: flags of our own, Hydra's entry, and errors as one clear line.

``HYDRA_FULL_ERROR=1`` keeps the tracebacks.
"""

from __future__ import annotations

import datetime
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from lumberjack_bench.callbacks import Abort, close_interrupted
from lumberjack_bench.config import (
    ConfigError,
    known_settings,
    read_run,
    read_settings,
    register_schema,
    suggest,
)
from lumberjack_bench.methods import MethodError
from lumberjack_bench.runs.execute import Interrupted, Outcome, execute
from lumberjack_bench.runs.store import StoreError
from lumberjack_bench.runs.sweep import threads_per_run
from lumberjack_bench.tracking import Tracker, TrackingError, make_tracker

OUR_ERRORS = (ConfigError, MethodError, StoreError, TrackingError)

INTERRUPTED_EXIT_CODE = 130


def job(config: DictConfig) -> Outcome:
    """Do the run of one Hydra job.

    Parameters
    ----------
    config : DictConfig
        The composed configuration of the job.

    Returns
    -------
    Outcome
    """
    settings = read_settings(config)
    log_file = Path(HydraConfig.get().runtime.output_dir) / "run.log"
    return execute(
        read_run(config),
        settings,
        _tracker(settings),
        n_jobs=threads_per_run(),
        log_file=str(log_file),
    )


def main(arguments: Sequence[str], conf_dir: Path) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str
        As given to ``run.py``.
    conf_dir : Path
        Folder of the configurations.

    Returns
    -------
    int
        Exit code: 0 all well, 1 some run failed, 2 refused before anything was run.
    """
    wants_traceback = os.environ.get("HYDRA_FULL_ERROR") == "1"
    # Hydra prints its errors and exits, unless this makes it raise them.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    signal.signal(signal.SIGTERM, _stop)
    register_schema()
    try:
        sys.argv[1:] = _translate(arguments)
        hydra.main(config_path=str(conf_dir), config_name="config", version_base="1.3")(job)()
    except Abort as end:
        return _report(end.error, wants_traceback) if end.error else int(end.code or 0)
    except (KeyboardInterrupt, Interrupted):
        close_interrupted()
        print("Interrupted. The same command again does the rest.", file=sys.stderr)
        return INTERRUPTED_EXIT_CODE
    except Exception as error:
        close_interrupted()
        return _report(error, wants_traceback)
    return 0


def one_line(error: BaseException) -> str:
    """Say what was wrong with a command in one line.

    Parameters
    ----------
    error : BaseException
        One of ours, Hydra's or OmegaConf's.

    Returns
    -------
    str
    """
    if isinstance(error, OUR_ERRORS):
        return str(error)
    text = str(error)
    cause = str(error.__cause__) if error.__cause__ is not None else ""
    for pattern, say in _HYDRA_MESSAGES:
        if match := re.search(pattern, f"{text}\n{cause}", flags=re.DOTALL):
            return say(match)
    return " ".join(f"{text} {cause}".split())


def _tracker(settings: Any) -> Tracker:
    # One per process: opening a tracking store costs seconds.
    key = (str(settings.results_dir), settings.sweep_id, str(settings.tracking))
    if key not in _TRACKERS:
        _TRACKERS.clear()
        _TRACKERS[key] = make_tracker(settings)
    return _TRACKERS[key]


_TRACKERS: dict[tuple[str, ...], Tracker] = {}


def _stop(*_: Any) -> None:
    raise Interrupted("terminated")


def _translate(arguments: Sequence[str]) -> list[str]:
    """Turn our own flags into overrides, and name the sweep."""
    translated, flags = [], set()
    waiting = list(arguments)
    while waiting:
        argument = waiting.pop(0)
        if argument == "--status":
            flags.add("status")
            translated.append("hydra.callbacks.lifecycle.intent=status")
        else:
            translated.append(argument)
    if "status" in flags and not {"-m", "--multirun"} & set(translated):
        translated.insert(0, "-m")
    if not any(argument.startswith("sweep_id=") for argument in translated):
        now = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        translated.append(f"sweep_id={now}_{os.getpid()}")
    return translated


def _report(error: Exception, wants_traceback: bool) -> int:
    is_expected = isinstance(error, (*OUR_ERRORS, HydraException, OmegaConfBaseException))
    if wants_traceback or not is_expected:
        traceback.print_exception(error)
    if is_expected:
        print(f"error: {one_line(error)}", file=sys.stderr)
    return 2 if is_expected else 1


def _unknown_setting(match: re.Match[str]) -> str:
    name = match["name"]
    if name in known_settings():
        return f"'{name}' is there already; write {name}=VALUE without the +."
    head = name.rsplit(".", 1)
    if len(head) == 2 and head[0] == "method.params":
        return (
            f"the method has no parameter {head[1]!r}. Values that are not swept are checked against "
            f"the default method too: write +{name}=VALUE if another method has it."
        )
    if len(head) == 2:
        return (
            f"there is no setting '{head[1]}' in '{head[0]}'; `python run.py --cfg job` lists all."
        )
    return (
        f"there is no setting '{name}'{suggest(name, [*known_settings(), 'experiment'])} "
        f"Settings: {', '.join(known_settings())}."
    )


def _missing_option(match: re.Match[str]) -> str:
    group, name = match["group"], match["name"]
    options = re.findall(r"\t(\S+)", match["rest"])
    return (
        f"there is no {group} '{name}'{suggest(name, options)} "
        f"There are: {', '.join(options) or 'none'}."
    )


def _wrong_type(match: re.Match[str]) -> str:
    kinds = {"Float": "a number", "Integer": "a whole number", "Boolean": "true or false"}
    wanted = kinds.get(match["kind"], match["kind"])
    return f"{match['key']} must be {wanted}, got '{match['value']}'."


_HYDRA_MESSAGES: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (
        r"Ambiguous value for argument '(?P<override>[^']*)'",
        lambda m: f"'{m['override']}' lists several values; add -m to sweep over them.",
    ),
    (
        r"merging override \+*(?P<key>[\w.]+)=.*?[Vv]alue '(?P<value>[^']*)'.*?(?:converted to|type) "
        r"(?P<kind>Float|Integer|Boolean)",
        _wrong_type,
    ),
    (
        r"In '(?P<parent>[^']*)': Could not find '(?P<group>[^']+)/(?P<name>[^/']+)'(?P<rest>.*)",
        _missing_option,
    ),
    (r"Could not find '(?P<group>[^']+)/(?P<name>[^/']+)'(?P<rest>.*)", _missing_option),
    (
        r"Could not override '(?P<group>[\w/]+)'.*No match in the defaults list",
        lambda m: f"'{m['group']}' is not chosen by default; write +{m['group']}=NAME.",
    ),
    (r"Could not override '(?P<name>[\w.]+)'", _unknown_setting),
    (
        r"merging override \+*(?P<name>[\w.]+)=.*Key '[^']*' (?:not in|is not in struct)",
        _unknown_setting,
    ),
)

__all__ = ["OverrideParseException", "job", "main", "one_line"]
