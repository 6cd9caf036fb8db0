"""Schemas as files: the ones that come with the package, and the user's own.

A schema file is YAML in the form of :meth:`lumberjack.schema.FeatureSchema.to_dict`. Plain words
stay words: ``yes``, ``no``, ``on``, ``off``, dates and times are text here, because they are
categories of somebody's table. Beside the schema the file may say how a table writes its entries
(:mod:`lumberjack_bench.datasets.entries`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lumberjack.schema import FeatureSchema, SchemaError
from lumberjack_bench.datasets.dataset import DatasetError
from lumberjack_bench.datasets.entries import OPTION_NAMES

_FOLDER = Path(__file__).parent / "schemas"


class _PlainLoader(yaml.SafeLoader):
    """YAML with the scalars of its version 1.2: null, true and false, decimal numbers, text."""


_PlainLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"(?:~|null|Null|NULL|)$", [*"~nN", ""]),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)$", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$",
        list("-+.0123456789"),
    ),
):
    _PlainLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)


def _plain_float(loader: _PlainLoader, node: yaml.ScalarNode) -> float:
    return float(loader.construct_scalar(node))


_PlainLoader.add_constructor("tag:yaml.org,2002:float", _plain_float)


def built_in_schemas() -> list[str]:
    """Return the names of the schemas that come with the package."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def read_schema(source: str | Path) -> FeatureSchema:
    """Read the schema of a schema file, which :func:`read_schema_file` reads as a whole."""
    return read_schema_file(source)[0]


def read_schema_file(source: str | Path) -> tuple[FeatureSchema, dict[str, Any]]:
    """Read a schema file.

    Parameters
    ----------
    source : str or Path
        A file, or the name of a schema that comes with the package.

    Returns
    -------
    schema : FeatureSchema
        What the file says about the table's features and classes.
    options : dict
        What it says about how the table writes its entries, as it stands there.

    Raises
    ------
    DatasetError
        When there is no such file, it is not YAML, or its content is not a schema.
    """
    if isinstance(source, str) and source in built_in_schemas():
        path = _FOLDER / f"{source}.yaml"
    else:
        path = Path(source).expanduser()
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, IsADirectoryError):
        raise DatasetError(
            f"schema: no file {path}. Give a schema file, or one of {built_in_schemas()}."
        ) from None
    except OSError as error:
        raise DatasetError(f"schema: cannot read {path} ({error.strerror}).") from None
    except ValueError as error:  # not UTF-8, or no path at all
        raise DatasetError(f"schema {path}: not a YAML file: {error}") from None
    return parse_schema(text, where=f"schema {path}")


def parse_schema(text: str, *, where: str) -> tuple[FeatureSchema, dict[str, Any]]:
    """Read the content of a schema file, as :func:`read_schema_file` does; errors name `where`."""
    try:
        data: Any = yaml.load(text, Loader=_PlainLoader)
    except (yaml.YAMLError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise DatasetError(f"{where}: not a YAML file: {reason}") from None
    if not isinstance(data, Mapping):
        raise DatasetError(f"{where}: expected keys such as 'features' and 'classes'.")
    options = {name: data[name] for name in OPTION_NAMES if name in data}
    try:
        schema = FeatureSchema.from_dict({k: v for k, v in data.items() if k not in options})
    except (SchemaError, TypeError) as error:
        raise DatasetError(f"{where}: {error}") from None
    return schema, options
