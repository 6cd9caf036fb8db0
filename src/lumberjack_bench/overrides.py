"""The NAME=VALUE words of a command, and which values Hydra's grammar takes as they stand."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from lumberjack_bench.config import ConfigError
from lumberjack_bench.spelling import quoted as _quoted_value

PATH_SETTINGS = (
    "results_dir",
    "data_dir",
    "dataset.path",
    "dataset.schema",
    "dataset.stand_in_dir",
)

_SHELLS_QUOTES = " (the outer quotes are the shell's)"
_STRUCTURE = frozenset("[]{}()'\"\\")


def take_plain_words(overrides: Iterable[str]) -> list[str]:
    """Quote the values that Hydra's grammar refuses and that can only be meant as they stand.

    ``results_dir=~/a[1]`` and ``dataset.name=Käse`` need no quotes then. Brackets, braces, quotes
    and backslashes are left for Hydra to refuse outside paths, as they may be a slip in a list.

    Raises
    ------
    ConfigError
        When a word has no name, or a path is a list.
    """
    return [_plain_word(override) for override in overrides]


def quoted(override: str) -> str:
    """Write an override so that Hydra takes its value as it stands, and the shell too."""
    name, _, value = override.partition("=")
    return shlex.quote(f"{name}={_quoted_value(value)}")


def several_values(override: str) -> str:
    """Say that a setting takes one value, and how to write one that holds a comma."""
    name = override.partition("=")[0].lstrip("+")
    text = f"{name} takes one value, got several: {override!r}."
    if name not in PATH_SETTINGS:
        return text
    return f"{text} If the comma belongs to the path, write {quoted(override)}{_SHELLS_QUOTES}."


def several_without_sweep(override: str) -> str:
    """Say that several values need a sweep, or, for a path, how to write one that holds a comma."""
    if override.partition("=")[0].lstrip("+") in PATH_SETTINGS:
        return several_values(override)
    return f"'{override}' lists several values; add -m to sweep over them."


def unreadable(override: str) -> str:
    """Say that Hydra's grammar does not take an override, and how to write what may be meant."""
    if "=" not in override:
        return f"{override!r} is not of the form NAME=VALUE."
    return (
        f"{override!r} cannot be read: [ ] {{ }} ( ) , ' \" and \\ have a meaning of their own. "
        f"For a value that is meant as it stands write {quoted(override)}{_SHELLS_QUOTES}."
    )


def _plain_word(override: str) -> str:
    name, equals, value = override.partition("=")
    is_path = name.lstrip("+") in PATH_SETTINGS
    if not name.strip():
        raise ConfigError(f"{override!r} is not of the form NAME=VALUE.")
    parsed = _parsed(override)
    if parsed is not None:
        if is_path and isinstance(parsed.value(), list | dict):
            raise ConfigError(unreadable(override))
        return override
    if is_path and not value.startswith(("'", '"')):
        return f"{name}={_quoted_value(value)}"
    if not equals or _STRUCTURE & set(value):
        return override
    # A list of values stays one.
    parts = [part.strip() for part in value.split(",")]
    values = [_quoted_value(part) if _parsed(f"{name}={part}") is None else part for part in parts]
    return f"{name}={','.join(values)}"


def _parsed(override: str) -> Override | None:
    try:
        return OverridesParser.create().parse_override(override)
    except HydraException:
        return None
