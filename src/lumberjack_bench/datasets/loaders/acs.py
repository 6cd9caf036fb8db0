"""The four Folktables tasks on the American Community Survey (ACS PUMS, person file), and income in dollars.

Folktables defines the tasks: their features, filters and label; it turns missing codes (not
applicable) into 0. The fifth is its ACSIncome without the threshold. An extracted table can stand in for the survey's files.
"""

from __future__ import annotations

import copy
import hashlib
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import folktables
import numpy as np
import pandas as pd
import pyarrow as pa

from lumberjack.schema import CategoricalFeature, FeatureSchema
from lumberjack_bench.datasets.acs_survey import (
    STATE_CODES,
    ensure_person_files,
    other_files,
    read_persons,
    read_survey,
)
from lumberjack_bench.datasets.cache import cached
from lumberjack_bench.datasets.checksums import remembered_sha256
from lumberjack_bench.datasets.dataset import Dataset, DatasetError, DataSource
from lumberjack_bench.datasets.schema_files import read_schema
from lumberjack_bench.datasets.sources import STAND_IN_VARIABLE, data_folder
from lumberjack_bench.datasets.table_files import column_names, read_columns

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Task:
    """A task: its name in folktables, and what its filter reads besides features and target."""

    problem: str
    filter_columns: tuple[str, ...] = ()
    is_in_dollars: bool = False

    @property
    def definition(self) -> folktables.BasicProblem:
        """The task as folktables has it, but for a target that stays the number it is."""
        problem = getattr(folktables, self.problem)
        if self.is_in_dollars:
            problem = copy.copy(problem)
            problem._target_transform = None
        return problem

    @property
    def columns(self) -> list[str]:
        """The survey's columns that the task needs."""
        known = self.definition
        return list(
            dict.fromkeys([*known.features, known.target, known.group, *self.filter_columns])
        )


TASKS = {
    "acs_income": Task("ACSIncome", ("PWGTP",)),
    "acs_income_dollars": Task("ACSIncome", ("PWGTP",), is_in_dollars=True),
    "acs_employment": Task("ACSEmployment"),
    "acs_public_coverage": Task("ACSPublicCoverage"),
    "acs_travel_time": Task("ACSTravelTime", ("PWGTP", "ESR")),
}


def load(config: Mapping[str, Any]) -> Dataset:
    """Load a task.

    Parameters
    ----------
    config : mapping
        ``name``; ``task``, a key of :data:`TASKS`; ``states``, ``year``, ``horizon`` and
        ``survey`` as folktables knows them; ``stand_in_dir``, a folder whose ``<task>*.parquet``
        is used in place of the survey's file (also by the environment variable
        ``LUMBERJACK_STAND_IN_DIR``); ``data_dir``.

    Raises
    ------
    DatasetError
        When the config is wrong, the file cannot be had, is damaged, or belongs to another year.
    """
    name = str(config["name"])
    task_name, survey = _task_name(config), read_survey(config)
    schema = task_schema(task_name, survey.states)
    data_dir = data_folder(config)
    stand_in, why_not = find_stand_in(config, task_name)
    if stand_in is not None:
        return _load_stand_in(name, task_name, schema, stand_in, data_dir / "cache")
    paths = ensure_person_files(
        name, survey, data_dir, stand_ins=f"{task_name}*.parquet", why_no_stand_in=why_not
    )
    checksums = [remembered_sha256(path, data_dir / "cache") for path in paths]
    digest = checksums[0]
    if len(checksums) > 1:
        digest = hashlib.sha256("".join(checksums).encode()).hexdigest()
    files = " + ".join(path.name for path in paths)
    task = TASKS[task_name]

    def read() -> tuple[pa.Table, DataSource]:
        rows = pd.concat(
            [
                read_persons(path, task.columns, survey, state, table_name=name)
                for path, state in zip(paths, survey.states, strict=True)
            ],
            ignore_index=True,
        )
        values, target, _ = task.definition.df_to_numpy(rows)
        if not len(target):
            raise DatasetError(
                f"{name}: none of the {len(rows):,} persons in {files} passes the task's filter."
            )
        columns = dict(zip(schema.feature_names, values.T, strict=True))
        table = pa.table(
            {**columns, schema.label: target.astype(np.int8 if schema.classes else np.float64)}
        )
        description = f"{survey.description}, folktables {task.problem}"
        source = DataSource("acs", description, files, digest)
        published = survey.n_published
        if published is not None and len(rows) != published:
            note = f"{files} holds {len(rows):,} persons, the published file {published:,}"
            source = replace(source, is_stand_in=True, stand_in_note=note)
        return table, source

    key = {"source": digest, "file": files, "task": task_name, "survey": survey.description}
    return cached(data_dir / "cache", name, schema, key, read, is_strict=False)


def identity(config: Mapping[str, Any]) -> str:
    """Return task, schema and survey, or the checksum of other rows.

    The survey's published file does not change, so it need not be there yet. A file that is there
    and is not the published one, such as a part of it, counts by its checksum.
    """
    task_name, survey = _task_name(config), read_survey(config)
    schema = task_schema(task_name, survey.states).digest()
    stand_in, _ = find_stand_in(config, task_name)
    data_dir = data_folder(config)
    if stand_in is not None:
        digest = remembered_sha256(stand_in, data_dir / "cache")
        return f"stand-in:{task_name}:{stand_in.name}:{digest}:{schema}"
    others = other_files(survey, data_dir)
    return ":".join(["acs", task_name, survey.description, *others, schema])


def task_schema(task_name: str, states: tuple[str, ...]) -> FeatureSchema:
    """Return the schema of a task, where the categories of ST are the states of the table."""
    schema = read_schema(task_name)
    codes = tuple(int(STATE_CODES[state]) for state in states)
    features = tuple(
        CategoricalFeature("ST", codes) if feature.name == "ST" else feature
        for feature in schema.features
    )
    return replace(schema, features=features)


def find_stand_in(config: Mapping[str, Any], task_name: str) -> tuple[Path | None, str]:
    """Find the table that stands in for a task's survey file.

    Returns
    -------
    path : Path or None
        The table, if a folder is named and holds one.
    why_not : str
        Why there is none.

    Raises
    ------
    DatasetError
        When the folder does not exist or holds several.
    """
    chosen = config.get("stand_in_dir") or os.environ.get(STAND_IN_VARIABLE)
    if not chosen:
        return None, f"no folder named (dataset.stand_in_dir=DIR or {STAND_IN_VARIABLE})"
    folder = Path(str(chosen)).expanduser()
    if not folder.is_dir():
        raise DatasetError(
            f"{config['name']}: stand_in_dir {folder} is not a folder (from {Path.cwd()})."
        )
    # A task's name may begin with that of another.
    others = [name for name in TASKS if name.startswith(f"{task_name}_")]
    found = sorted(
        path
        for path in folder.glob(f"{task_name}*.parquet")
        if not path.name.startswith(tuple(others))
    )
    if len(found) > 1:
        raise DatasetError(
            f"{config['name']}: {folder} holds several {task_name}*.parquet: "
            f"{[path.name for path in found]}. Leave one."
        )
    return (found[0], "") if found else (None, f"{folder} holds no {task_name}*.parquet")


def _load_stand_in(
    name: str, task_name: str, schema: FeatureSchema, path: Path, cache_folder: Path
) -> Dataset:
    digest = remembered_sha256(path, cache_folder)

    def read() -> tuple[pa.Table, DataSource]:
        table_name = f"{name}: stand-in"
        extra = set(column_names(path, table_name=table_name))
        extra -= {*schema.feature_names, schema.label}
        if extra:
            logger.info(
                "%s: left out columns that the task does not have: %s", table_name, sorted(extra)
            )
        table = read_columns(path, schema, table_name=table_name)
        source = DataSource(
            kind="table",
            description=f"table {path.name} in place of the ACS PUMS person file",
            file=path.name,
            sha256=digest,
            is_stand_in=True,
            stand_in_note=f"{path.name} with {table.num_rows:,} rows stands in for the survey's file",
        )
        is_binary = bool(schema.classes)
        return _with_binary_label(table, task_name, schema.label) if is_binary else table, source

    key = {"source": digest, "file": path.name, "task": task_name, "stand_in": True}
    return cached(cache_folder, name, schema, key, read, is_strict=True)


def _with_binary_label(table: pa.Table, task_name: str, label: str) -> pa.Table:
    """Turn survey values of the label into 0 and 1, where 0 and 1 themselves would stay as they are.

    Where they would not (dollars, minutes) the label must be 0 or 1: to tell by the rows which it is
    would let one row decide how all others are read.
    """
    transform = TASKS[task_name].definition.target_transform
    values = table.column(label).to_pandas()
    if not pd.api.types.is_numeric_dtype(values) or list(transform(pd.Series([0, 1]))) != [0, 1]:
        return table
    target = transform(values).to_numpy().astype(np.int8)
    return table.set_column(table.column_names.index(label), label, pa.array(target))


def _task_name(config: Mapping[str, Any]) -> str:
    task_name = str(config.get("task") or config["name"])
    if task_name not in TASKS:
        raise DatasetError(
            f"{config['name']}: task must be one of {list(TASKS)}, got {task_name!r}."
        )
    return task_name
