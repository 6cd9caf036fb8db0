"""Schemas as files: the ones that come with the package, and the user's own.

A schema file is YAML in the form of :meth:`lumberjack.schema.FeatureSchema.to_dict`. Plain words
stay words: ``yes``, ``no``, ``on``, ``off``, dates and times are text here, because they are
categories of somebody's table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lumberjack.schema import FeatureSchema, SchemaError
from lumberjack_bench.datasets.dataset import DatasetError

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
    """Return the names of the schemas that come with the package.

    Returns
    -------
    list of str
    """
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def read_schema(source: str | Path) -> FeatureSchema:
    """Read a schema file.

    Parameters
    ----------
    source : str or Path
        A file, or the name of a schema that comes with the package.

    Returns
    -------
    FeatureSchema

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
        data: Any = yaml.load(path.read_text(encoding="utf-8"), Loader=_PlainLoader)
    except (FileNotFoundError, IsADirectoryError):
        raise DatasetError(
            f"schema: no file {path}. Give a schema file, or one of {built_in_schemas()}."
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise DatasetError(f"schema {path}: not a YAML file: {reason}") from None
    if not isinstance(data, Mapping):
        raise DatasetError(f"schema {path}: expected keys such as 'features' and 'classes'.")
    try:
        return FeatureSchema.from_dict(data)
    except (SchemaError, TypeError) as error:
        raise DatasetError(f"schema {path}: {error}") from None
