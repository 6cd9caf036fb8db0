"""What a command line asks for: flags of our own, Hydra's flags, and overrides, in any order."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from hydra._internal.utils import get_args_parser

from lumberjack_bench.config import ConfigError, suggest
from lumberjack_bench.overrides import take_plain_words

OWN_INTENTS = ("status", "redo", "cards")
RUNS = ("run", "multirun")
VIEWS = ("cfg", "info", "shell_completion")

_WHERE_FLAGS_ARE = "`python run.py --help` and --hydra-help list the flags."


@dataclass(frozen=True, slots=True)
class Arguments:
    """A command line, sorted.

    Attributes
    ----------
    intent : {"run", "status", "redo", "cards", "show"}
        What the command is for; "show" leaves it to Hydra, as with ``--cfg`` or ``--help``.
    redo : str or None
        Hash of the run to be done again.
    flags : tuple of str
        For Hydra.
    overrides : tuple of str
        ``NAME=VALUE``, in words that Hydra reads.
    """

    intent: str
    redo: str | None
    flags: tuple[str, ...]
    overrides: tuple[str, ...]


def read_arguments(arguments: Sequence[str]) -> Arguments:
    """Sort a command line.

    Parameters
    ----------
    arguments : sequence of str
        As given to ``run.py``.

    Returns
    -------
    Arguments

    Raises
    ------
    ConfigError
        When a flag is unknown, lacks its value, or does not go with another.
    """
    own_flags = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    own_flags.add_argument("--status", action="store_const", const="")
    own_flags.add_argument("--redo", nargs="?", const="", metavar="HASH")
    own_flags.add_argument("--cards", action="store_const", const="")
    hydras_flags = get_args_parser()
    for parser in (own_flags, hydras_flags):
        parser.error = _refuse  # type: ignore[method-assign, assignment]
    own, rest = own_flags.parse_known_args(arguments)
    # By itself Hydra wants all overrides side by side; people write -m between them.
    given, unknown = hydras_flags.parse_known_intermixed_args(rest)
    if unknown:
        # What follows an unknown flag is listed as well.
        flag = next((word for word in unknown if word.startswith("-")), unknown[0])
        known = [f"--{name.replace('_', '-')}" for name in (*OWN_INTENTS, *vars(given))]
        raise ConfigError(f"there is no flag {flag}{suggest(flag, known)} {_WHERE_FLAGS_ARE}")

    intents = [name for name in OWN_INTENTS if getattr(own, name) is not None]
    commands = [name for name in (*RUNS, *VIEWS) if getattr(given, name)]
    if intents:
        commands = [name for name in commands if name != "multirun"]
        given.multirun = True
    if len(intents + commands) > 1:
        flags = [f"--{name.replace('_', '-')}" for name in intents + commands]
        raise ConfigError(f"give only one of {' and '.join(flags)}.")
    if given.resolve and not (given.cfg or given.help):
        raise ConfigError("--resolve goes with --cfg or --help only.")
    if own.redo is not None and not re.fullmatch(r"[0-9a-f]{4,}", own.redo):
        raise ConfigError(
            f"--redo needs the hash of a run (at least 4 digits), got {own.redo!r}. "
            "--status and results.csv list the hashes."
        )
    is_view = given.help or given.hydra_help or bool({*VIEWS} & {*commands})
    overrides = take_plain_words(given.overrides)
    del given.overrides
    return Arguments(
        intent=intents[0] if intents else "show" if is_view else "run",
        redo=own.redo,
        flags=tuple(_as_words(given)),
        overrides=tuple(overrides),
    )


def _as_words(given: argparse.Namespace) -> list[str]:
    words = []
    for name, value in vars(given).items():
        flag = f"--{name.replace('_', '-')}"
        if value is not None and value is not False:
            words.append(flag if value is True else f"{flag}={value}")
    return words


def _refuse(message: str) -> NoReturn:
    raise ConfigError(f"{message}. {_WHERE_FLAGS_ARE}")
