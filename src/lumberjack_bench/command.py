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
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from lumberjack_bench.arguments import Arguments, read_arguments
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
from lumberjack_bench.overrides import PATH_SETTINGS, several_values, take_plain_words, unreadable
from lumberjack_bench.runs.execute import Interrupted, Outcome, execute
from lumberjack_bench.runs.plan import values_of
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
        given = read_arguments(arguments)
        if given.intent == "cards":
            return _print_cards(given, conf_dir)
        sys.argv[1:] = _words_for_hydra(given)
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


def compose_one(overrides: Sequence[str], conf_dir: Path) -> DictConfig:
    """Compose the configuration of a command that does one thing and sweeps over nothing.

    Parameters
    ----------
    overrides : sequence of str
        As given on the command line.
    conf_dir : Path
        Folder of the configurations.

    Returns
    -------
    DictConfig
        Without the ``hydra`` node.

    Raises
    ------
    ConfigError
        When an override has several values.
    """
    register_schema()
    words = take_plain_words(overrides)
    with hydra.initialize_config_dir(str(conf_dir), version_base="1.3"):
        for override in OverridesParser.create().parse_overrides(words):
            if override.is_sweep_override():
                raise ConfigError(several_values(str(override.input_line)))
        return hydra.compose("config", words)


def check_writable(flag: str, path: Path | None) -> None:
    """Refuse a file for the findings of a long computation before it starts.

    Parameters
    ----------
    flag : str
        Flag that names the file.
    path : Path or None
        The file; missing folders are made.

    Raises
    ------
    ConfigError
        When it cannot be written.
    """
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
    if isinstance(error, OverrideParseException) and "while evaluating" not in str(error):
        return unreadable(error.override)
    text = str(error)
    cause = str(error.__cause__) if error.__cause__ is not None else ""
    for pattern, say in _HYDRA_MESSAGES:
        if match := re.search(pattern, f"{text}\n{cause}", flags=re.DOTALL):
            return say(match)
    # Their messages end with lines about types and addresses.
    parts = [text, "" if cause in text else cause]
    parts = [re.split(r"\n\s*full_key:|See https://", part)[0] for part in parts]
    return " ".join(" ".join(parts).split())


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


def _words_for_hydra(given: Arguments) -> list[str]:
    """Turn flags of our own into overrides, and name the sweep."""
    words = [*given.flags, *given.overrides]
    if given.intent == "show":
        return words
    if given.intent != "run":
        words.append(f"hydra.callbacks.lifecycle.intent={given.intent}")
    if given.redo is not None:
        words.append(f"hydra.callbacks.lifecycle.redo='{given.redo}'")
    if not any(text.lstrip("+").startswith("sweep_id=") for text in given.overrides):
        now = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        words.append(f"sweep_id={now}_{os.getpid()}")
    return words


def _print_cards(given: Arguments, conf_dir: Path) -> int:
    """Print the card of every method, at the given eps and delta; return the exit code."""
    others = [flag for flag in given.flags if flag != "--multirun"]
    if others:
        raise ConfigError(f"--cards goes with NAME=VALUE only, got {' '.join(others)}.")
    problems = []
    with hydra.initialize_config_dir(str(conf_dir), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        names, rest = None, []
        for override in OverridesParser.create(config_loader=loader).parse_overrides(
            list(given.overrides)
        ):
            text = str(override.input_line)
            if override.key_or_group == "method":
                names = values_of(override)
            elif override.is_sweep_override():
                raise ConfigError(several_values(text))
            else:
                rest.append(text)
        names = names or [
            f"method={name}"
            for name in loader.get_group_options("method", config_name="config", overrides=rest)
        ]
        cards = []
        for choice in names:
            config = hydra.compose("config", [choice, *rest])
            method: Any = OmegaConf.to_container(config.method, resolve=True)
            allowed = list(config.allow_targets)
            name = choice.partition("=")[2]
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
        error, (*OUR_ERRORS, HydraException, OmegaConfBaseException)
    ) or _is_raised_by_hydra(error)
    if wants_traceback or not is_expected:
        traceback.print_exception(error)
    if is_expected:
        print(f"error: {one_line(error)}", file=sys.stderr)
    return 2 if is_expected else 1


def _is_raised_by_hydra(error: Exception) -> bool:
    """Whether Hydra refused something by a plain ValueError, as it does a choice that is null."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    module = str(frames[-1].f_globals.get("__name__")) if frames else ""
    return isinstance(error, ValueError) and module.startswith("hydra.")


def _several(match: re.Match[str]) -> str:
    override = match["override"]
    if override.partition("=")[0].lstrip("+") in PATH_SETTINGS:
        return several_values(override)
    return f"'{override}' lists several values; add -m to sweep over them."


def _unknown_setting(match: re.Match[str]) -> str:
    name, key = match["name"], match.groupdict().get("key")
    if key and name.rpartition(".")[2] != key:
        name = f"{name}.{key}"
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
    (r"Ambiguous value for argument '(?P<override>.*?)'\n", _several),
    (
        r"Config group override must be a string or a list",
        lambda m: "a choice must be a name, as in method=lumberjack or dataset=adult.",
    ),
    (
        r"Missing mandatory value: .*?full_key: (?P<key>[\w.]+)",
        lambda m: f"{m['key']} must have a value, and nothing gives it one.",
    ),
    (
        r"Interpolation key '(?P<key>[^']*)' not found",
        lambda m: (
            f"${{{m['key']}}} stands for a setting, and there is none of that name; write "
            f"\\${{{m['key']}}} for the characters themselves."
        ),
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
        r"Could not find '(?P<group>[^']+)/(?P<name>[^/']*)'(?P<rest>.*)",
        _missing_option,
    ),
    (
        r"Could not override '(?P<group>[\w/]+)'.*No match in the defaults list",
        lambda m: f"'{m['group']}' is not chosen by default; write +{m['group']}=NAME.",
    ),
    (r"Could not override '(?P<name>[\w.]+)'.*?(?:Key '(?P<key>[^']*)'|$)", _unknown_setting),
    (
        r"merging override \+*(?P<name>[\w.]+)=.*Key '(?P<key>[^']*)' (?:not in|is not in struct)",
        _unknown_setting,
    ),
)
