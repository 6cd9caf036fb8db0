"""The command line: flags of our own, Hydra's entry, and errors as one clear line.

``HYDRA_FULL_ERROR=1`` keeps the tracebacks.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import hydra
import yaml
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from lumberjack_bench.arguments import Arguments, read_arguments
from lumberjack_bench.cards import card_of, cards_text
from lumberjack_bench.config import ConfigError, Settings
from lumberjack_bench.methods import MethodError
from lumberjack_bench.overrides import several_values, take_plain_words, unreadable
from lumberjack_bench.runs.compose import Composer, composer, values_of
from lumberjack_bench.runs.isolation import CallFailed
from lumberjack_bench.runs.launch import concurrency
from lumberjack_bench.runs.plan import Plan, plan_runs
from lumberjack_bench.runs.status import status_of, watch
from lumberjack_bench.runs.store import StoreError
from lumberjack_bench.runs.sweep import Interrupted, redo, sweep
from lumberjack_bench.spelling import suggest
from lumberjack_bench.tracking import TrackingError

OUR_ERRORS = (ConfigError, MethodError, StoreError, TrackingError)


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
        Exit code: 0 all well, 1 some run failed, 2 refused before anything was run; 130 and 143 when
        stopped by SIGINT and SIGTERM, 141 when nobody reads its output any more.
    """
    wants_traceback = os.environ.get("HYDRA_FULL_ERROR") == "1"
    signal.signal(signal.SIGTERM, _stop)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        _check_working_folder()
        given = read_arguments(arguments)
        if given.intent == "show":
            return _show(given, conf_dir)
        return _do(given, conf_dir)
    except BrokenPipeError:
        # Who reads along, such as head, has read enough; the rest goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (KeyboardInterrupt, Interrupted) as stopped:
        print("Interrupted. The same command again does the rest.", file=sys.stderr)
        return 128 + (signal.SIGTERM if isinstance(stopped, Interrupted) else signal.SIGINT)
    except CallFailed as error:
        traceback.print_exception(error)
        return 1
    except Exception as error:
        return _report(error, wants_traceback)


def _do(given: Arguments, conf_dir: Path) -> int:
    """Plan what is asked for, then do it or tell about it."""
    words = list(given.overrides)
    if given.config_dir:
        words.append(
            f"hydra.searchpath=['file://{Path(given.config_dir).expanduser().absolute()}']"
        )
    folder = (conf_dir.parent / given.config_path).resolve() if given.config_path else conf_dir
    with composer(folder, given.config_name or "config") as hydras:
        if given.intent == "cards":
            return _print_cards(given, hydras, words)
        if not any(text.lstrip("+").startswith("sweep_id=") for text in words):
            now = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
            words.append(f"sweep_id={now}_{os.getpid()}")
        plan, settings = plan_runs(hydras, words, is_sweep=given.is_sweep)
    if given.intent == "status":
        return _tell_status(given, plan, settings)
    if given.redo is not None:
        return redo(given.redo, plan, settings)
    return sweep(plan, settings)


def _tell_status(given: Arguments, plan: Plan, settings: Settings) -> int:
    n_workers = concurrency(settings)[0]
    if given.is_watching:
        with contextlib.suppress(KeyboardInterrupt):
            watch(plan, settings, n_workers, is_long=given.is_long)
    else:
        print(status_of(plan, settings, n_workers).text(is_long=given.is_long))
    return 0


def _show(given: Arguments, conf_dir: Path) -> int:
    """Leave to Hydra what only shows configurations."""
    with composer(conf_dir) as hydras:
        # Makes methods from outside known to Hydra.
        hydras.parse(given.overrides)
    sys.argv[1:] = [*given.flags, *given.overrides]
    before = os.environ.get("HYDRA_FULL_ERROR")
    # By itself Hydra prints its errors and exits; this makes it raise them.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        hydra.main(config_path=str(conf_dir), config_name="config", version_base="1.3")(id)()
    finally:
        os.environ.pop("HYDRA_FULL_ERROR")
        if before is not None:
            os.environ["HYDRA_FULL_ERROR"] = before
    return 0


def fails_in_one_line(command: Callable[[Sequence[str]], int]) -> Callable[[Sequence[str]], int]:
    """Make a command report what it refuses as one line and exit code 2."""

    @functools.wraps(command)
    def wrapped(arguments: Sequence[str]) -> int:
        try:
            return command(arguments)
        except Exception as error:
            return _report(error, os.environ.get("HYDRA_FULL_ERROR") == "1")

    return wrapped


def compose_one(overrides: Sequence[str], conf_dir: Path) -> DictConfig:
    """Compose the configuration, without the ``hydra`` node, of a command that sweeps over nothing.

    Parameters
    ----------
    overrides : sequence of str
        As given on the command line.
    conf_dir : Path
        Folder of the configurations.

    Raises
    ------
    ConfigError
        When an override has several values.
    """
    with composer(conf_dir) as hydras:
        words = take_plain_words(overrides)
        for override in hydras.parse(words):
            if override.is_sweep_override():
                raise ConfigError(several_values(str(override.input_line)))
        return hydras.config(words)


def check_writable(flag: str, path: Path | None) -> None:
    """Refuse a file, named by a flag, for the findings of a long computation before it starts."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a").close()
    except OSError as error:
        raise ConfigError(
            f"cannot write {str(path)!r}: {error.strerror}. Choose another file with {flag} FILE."
        ) from error


def one_line(error: BaseException) -> str:
    """Say what was wrong with a command in one line, for an error of ours, Hydra's or OmegaConf's."""
    if isinstance(error, OUR_ERRORS):
        return str(error)
    if isinstance(error, yaml.YAMLError):
        return f"a configuration is no YAML: {' '.join(str(error).split())}."
    if isinstance(error, OverrideParseException) and "while evaluating" not in str(error):
        return unreadable(error.override)
    if isinstance(error, MissingMandatoryValue):
        return f"{error.full_key} must have a value, and nothing gives it one."
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        group, _, name = error.missing_cfg_file.rpartition("/")
        hint = suggest(name, error.options)
        own = " Your own: the import path of a module with its yaml beside it." * (
            group == "method"
        )
        return f"there is no {group} '{name}'{hint} There are: {', '.join(error.options)}.{own}"
    cause = str(error.__cause__ or "")
    texts = [str(error), "" if cause in str(error) else cause]
    # Their messages end with lines about types and addresses.
    lines = [line.strip() for text in texts for line in text.splitlines()]
    endings = ("full_key:", "object_type=", "reference_type=", "See https://")
    return " ".join(line for line in lines if line and not line.startswith(endings))


def _check_working_folder() -> None:
    try:
        Path.cwd()
    except FileNotFoundError as error:
        raise ConfigError("the working folder is gone; go to one that is there.") from error


def _stop(*_: Any) -> None:
    raise Interrupted("terminated")


def _print_cards(given: Arguments, hydras: Composer, words: Sequence[str]) -> int:
    """Print the card of every method, at the given eps and delta; return the exit code."""
    others = [flag for flag in given.flags if not flag.startswith(("--multirun", "--config-"))]
    if others:
        raise ConfigError(f"--cards goes with NAME=VALUE only, got {' '.join(others)}.")
    problems, cards, names, rest = [], [], [], []
    for override in hydras.parse(words):
        if override.key_or_group == "method":
            names = values_of(override)
        elif override.is_sweep_override():
            raise ConfigError(several_values(str(override.input_line)))
        else:
            rest.append(str(override.input_line))
    for choice in names or [f"method={name}" for name in hydras.options("method", rest)]:
        config = hydras.config([choice, *rest])
        method: Any = OmegaConf.to_container(config.method, resolve=True)
        name, allowed = choice.partition("=")[2], list(config.allow_targets)
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
    is_expected = isinstance(
        error, (*OUR_ERRORS, HydraException, OmegaConfBaseException, yaml.YAMLError)
    )
    if wants_traceback or not is_expected:
        traceback.print_exception(error)
    if is_expected:
        print(f"error: {one_line(error)}", file=sys.stderr)
    return 2 if is_expected else 1
