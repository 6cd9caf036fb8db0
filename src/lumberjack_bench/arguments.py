"""What a command line asks for: flags of our own, Hydra's flags, and overrides, in any order."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from hydra import __version__ as hydra_version

from lumberjack_bench.config import ConfigError
from lumberjack_bench.overrides import take_plain_words
from lumberjack_bench.spelling import suggest

OWN_INTENTS = ("status", "redo", "cards")
WITH_STATUS = ("watch", "all")
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
    is_watching : bool
        Whether the status is shown again whenever it changes.
    is_long : bool
        Whether the status names every run.
    is_sweep : bool
        Whether values may be lists of values.
    config_dir, config_path, config_name : str or None
        Where configurations are, besides or instead of ours.
    flags : tuple of str
        All flags of Hydra's, for what is left to it.
    overrides : tuple of str
        ``NAME=VALUE``, in words that Hydra reads.
    """

    intent: str
    redo: str | None
    is_watching: bool
    is_long: bool
    is_sweep: bool
    config_dir: str | None
    config_path: str | None
    config_name: str | None
    flags: tuple[str, ...]
    overrides: tuple[str, ...]


def read_arguments(arguments: Sequence[str]) -> Arguments:
    """Sort a command line, as given to ``run.py``.

    Raises
    ------
    ConfigError
        When a flag is unknown, lacks its value, or does not go with another.
    """
    own_flags = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    own_flags.add_argument("--status", action="store_const", const="")
    own_flags.add_argument("--redo", nargs="?", const="", metavar="HASH")
    own_flags.add_argument("--cards", action="store_const", const="")
    for flag in WITH_STATUS:
        own_flags.add_argument(f"--{flag}", action="store_true")
    hydras_flags = _hydras_flags()
    for parser in (own_flags, hydras_flags):
        parser.error = _refuse  # type: ignore[method-assign, assignment]
    own, rest = own_flags.parse_known_args(arguments)
    # By itself Hydra wants all overrides side by side; people write -m between them.
    given, unknown = hydras_flags.parse_known_intermixed_args(rest)
    if unknown:
        # What follows an unknown flag is listed as well.
        flag = next((word for word in unknown if word.startswith("-")), unknown[0])
        known = [
            f"--{name.replace('_', '-')}" for name in (*OWN_INTENTS, *WITH_STATUS, *vars(given))
        ]
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
    alone = [f"--{name}" for name in WITH_STATUS if getattr(own, name) and own.status is None]
    if alone:
        raise ConfigError(f"{' and '.join(alone)} goes with --status only.")
    if own.redo is not None and not re.fullmatch(r"[0-9a-f]{4,}", own.redo):
        raise ConfigError(
            f"--redo needs the hash of a run (at least 4 digits), got {own.redo!r}. "
            "--status --all and results.csv list the hashes."
        )
    is_view = given.help or given.hydra_help or bool({*VIEWS} & {*commands})
    overrides = take_plain_words(_translated(word) for word in given.overrides)
    del given.overrides
    return Arguments(
        intent=intents[0] if intents else "show" if is_view else "run",
        redo=own.redo,
        is_watching=own.watch,
        is_long=own.all,
        is_sweep=given.multirun,
        config_dir=given.config_dir,
        config_path=given.config_path,
        config_name=given.config_name,
        flags=tuple(_as_words(given)),
        overrides=tuple(overrides),
    )


def _hydras_flags() -> argparse.ArgumentParser:
    """Return a parser of the flags that ``hydra.main`` has."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("overrides", nargs="*")
    for flags in (
        ("--help", "-h"), ("--hydra-help",), ("--run", "-r"), ("--multirun", "-m"),
        ("--shell-completion", "-sc"),
    ):  # fmt: skip
        parser.add_argument(*flags, action="store_true")
    parser.add_argument("--version", action="version", version=f"Hydra {hydra_version}")
    parser.add_argument("--cfg", "-c", choices=["job", "hydra", "all"])
    parser.add_argument("--resolve", action="store_true")
    for flags in (
        ("--package", "-p"), ("--config-path", "-cp"), ("--config-name", "-cn"), ("--config-dir", "-cd"),
    ):  # fmt: skip
        parser.add_argument(*flags)
    views = ["all", "config", "defaults", "defaults-tree", "plugins", "searchpath"]
    parser.add_argument("--info", "-i", nargs="?", const="all", choices=views)
    return parser


_EARLIER_OPTIONS = {
    "partition": "slurm_partition",
    "account": "slurm_account",
    "array_parallelism": "slurm_array_parallelism",
}


def _translated(word: str) -> str:
    """Understand how launchers were chosen and set when they were Hydra's."""
    name, equals, value = word.partition("=")
    if name == "hydra/launcher":
        return f"launcher={'serial' if value == 'basic' else value}"
    plain = name.lstrip("+")
    if plain.startswith("hydra.launcher."):
        option = plain.removeprefix("hydra.launcher.")
        # With ++ an option is set whether or not the file has it.
        return f"++launcher.{_EARLIER_OPTIONS.get(option, option)}{equals}{value}"
    return word


def _as_words(given: argparse.Namespace) -> list[str]:
    words = []
    for name, value in vars(given).items():
        flag = f"--{name.replace('_', '-')}"
        if value is not None and value is not False:
            words.append(flag if value is True else f"{flag}={value}")
    return words


def _refuse(message: str) -> NoReturn:
    raise ConfigError(f"{message}. {_WHERE_FLAGS_ARE}")
