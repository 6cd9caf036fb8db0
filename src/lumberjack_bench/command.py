"""The command line: flags of our own, Hydra's entry, and errors as one clear line.

``HYDRA_FULL_ERROR=1`` keeps the tracebacks.
"""

from __future__ import annotations

import datetime
import functools
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from lumberjack_bench.callbacks import Abort, close_open_sweep
from lumberjack_bench.cards import card_of, cards_text
from lumberjack_bench.config import (
    ConfigError,
    read_run,
    read_settings,
    register_schema,
    suggest,
    unknown_setting,
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
    signal.signal(signal.SIGTERM, _stop)
    register_schema()
    try:
        if "--cards" in arguments:
            return _print_cards([text for text in arguments if text != "--cards"], conf_dir)
        sys.argv[1:] = _translate(arguments)
        with _raising_hydra():
            hydra.main(config_path=str(conf_dir), config_name="config", version_base="1.3")(job)()
    except Abort as end:
        return _report(end.error, wants_traceback) if end.error else int(end.code or 0)
    except (KeyboardInterrupt, Interrupted):
        close_open_sweep(is_interrupted=True)
        print("Interrupted. The same command again does the rest.", file=sys.stderr)
        return INTERRUPTED_EXIT_CODE
    except Exception as error:
        if close_open_sweep(is_interrupted=False):
            traceback.print_exception(error)
            return 1
        return _report(error, wants_traceback)
    return 0


@contextmanager
def _raising_hydra() -> Iterator[None]:
    """Make Hydra raise its errors; by itself it prints them and exits."""
    before = os.environ.get("HYDRA_FULL_ERROR")
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["HYDRA_FULL_ERROR"]
        else:
            os.environ["HYDRA_FULL_ERROR"] = before


def fails_in_one_line(command: Callable[[Sequence[str]], int]) -> Callable[[Sequence[str]], int]:
    """Make a command report what it refuses as one line and exit code 2.

    Parameters
    ----------
    command : callable
        Takes the arguments, returns the exit code.

    Returns
    -------
    callable
    """

    @functools.wraps(command)
    def wrapped(arguments: Sequence[str]) -> int:
        try:
            return command(arguments)
        except Exception as error:
            return _report(error, os.environ.get("HYDRA_FULL_ERROR") == "1")

    return wrapped


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
    return " ".join(f"{text} {cause}".partition("See https://")[0].split())


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
    translated: list[str] = []
    waiting = list(arguments)
    intents = []
    while waiting:
        argument = waiting.pop(0)
        if argument == "--status":
            intents.append("status")
        elif argument == "--redo" or argument.startswith("--redo="):
            intents.append("redo")
            run_hash = argument.partition("=")[2] or (waiting.pop(0) if waiting else "")
            if not re.fullmatch(r"[0-9a-f]{4,}", run_hash):
                raise ConfigError(
                    f"--redo needs the hash of a run (at least 4 digits), got {run_hash!r}. "
                    "--status and results.csv list the hashes."
                )
            translated.append(f"hydra.callbacks.lifecycle.redo='{run_hash}'")
        else:
            translated.append(argument)
    if len(intents) > 1:
        raise ConfigError("give only one of --status and --redo.")
    if intents:
        translated.append(f"hydra.callbacks.lifecycle.intent={intents[0]}")
        if not {"-m", "--multirun"} & set(translated):
            translated.insert(0, "-m")
    if not any(argument.startswith("sweep_id=") for argument in translated):
        now = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        translated.append(f"sweep_id={now}_{os.getpid()}")
    return translated


def _print_cards(overrides: Sequence[str], conf_dir: Path) -> int:
    """Print the card of every method, at the given eps and delta; return the exit code."""
    problems = []
    with hydra.initialize_config_dir(str(conf_dir), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        chosen = [text for text in overrides if text.startswith("method=")]
        names = chosen[0].partition("=")[2].split(",") if chosen else None
        rest = [text for text in overrides if text not in chosen]
        cards = []
        for name in names or loader.get_group_options("method"):
            config = hydra.compose("config", [f"method={name}", *rest])
            method: Any = OmegaConf.to_container(config.method, resolve=True)
            allowed = list(config.allow_targets)
            try:
                card = card_of(method, eps=config.eps, delta=config.delta, allow_targets=allowed)
            except Exception as error:
                problems.append(f"error: {name}: {error}")
            else:
                cards.append((name, card))
    print(cards_text(cards))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _report(error: Exception, wants_traceback: bool) -> int:
    is_expected = isinstance(error, (*OUR_ERRORS, HydraException, OmegaConfBaseException))
    if wants_traceback or not is_expected:
        traceback.print_exception(error)
    if is_expected:
        print(f"error: {one_line(error)}", file=sys.stderr)
    return 2 if is_expected else 1


def _unknown_setting(match: re.Match[str]) -> str:
    name = match["name"]
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
    return unknown_setting(name)


def _missing_option(match: re.Match[str]) -> str:
    group, name = match["group"], match["name"]
    options = re.findall(r"\t(\S+)", match["rest"].partition("search path")[0])
    return (
        f"there is no {group} '{name}'{suggest(name, options)} "
        f"There are: {', '.join(options) or 'none'}."
    )


def _wrong_type(match: re.Match[str]) -> str:
    return f"{match['key']} must be {_KINDS[match['kind'].lower()]}, got '{match['value']}'."


_KINDS = {"float": "a number", "integer": "a whole number", "bool": "true or false"}

_HYDRA_MESSAGES: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (
        r"Ambiguous value for argument '(?P<override>[^']*)'",
        lambda m: f"'{m['override']}' lists several values; add -m to sweep over them.",
    ),
    (
        r"merging override \+*(?P<key>[\w.]+)=.*?[Vv]alue '(?P<value>[^']*)'.*?"
        r"(?:converted to|not a valid) (?P<kind>Float|Integer|bool)",
        _wrong_type,
    ),
    (
        r"merging override \+*(?P<key>[\w.]+)=.*is not Optional",
        lambda m: f"{m['key']} must have a value, got null.",
    ),
    (
        r"Error parsing override '(?P<override>.*?)'\s+missing EQUAL",
        lambda m: f"{m['override']!r} is not of the form NAME=VALUE.",
    ),
    (
        r"Could not find '(?P<group>[^']+)/(?P<name>[^/']*)'(?P<rest>.*)",
        _missing_option,
    ),
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
