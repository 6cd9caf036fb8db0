"""The four Folktables tasks on the American Community Survey (ACS PUMS, person file).

Folktables defines the tasks: their features, filters and label. Its own reader loads all of the
file's nearly 300 columns and its own download may leave half a file, so both are done here; a test
holds the equality of what is read. Folktables turns missing codes (not applicable) into 0.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import folktables
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from folktables.load_acs import _STATE_CODES as STATE_CODES
from numpy.typing import NDArray

from lumberjack.schema import CategoricalFeature, FeatureSchema
from lumberjack_bench.datasets.cache import cached
from lumberjack_bench.datasets.compact import compact_rows, named_columns
from lumberjack_bench.datasets.csv_files import (
    has_whole_last_line,
    read_header,
    read_text_columns,
)
from lumberjack_bench.datasets.dataset import Dataset, DatasetError, DataSource
from lumberjack_bench.datasets.schema_files import read_schema
from lumberjack_bench.datasets.sources import (
    STAND_IN_VARIABLE,
    Source,
    SourceFailure,
    atomic_file,
    data_folder,
    download,
    first_that_works,
    folder_lock,
    remembered_sha256,
    sha256_of,
)
from lumberjack_bench.datasets.table import column_names, read_columns

logger = logging.getLogger(__name__)

CENSUS = "https://www2.census.gov/programs-surveys/acs/data/pums"


@dataclass(frozen=True, slots=True)
class Task:
    """A prediction task of Folktables.

    Parameters
    ----------
    problem : str
        Its name in folktables.
    filter_columns : tuple of str
        Columns its filter reads besides features and target.
    """

    problem: str
    filter_columns: tuple[str, ...] = ()


TASKS = {
    "acs_income": Task("ACSIncome", ("PWGTP",)),
    "acs_employment": Task("ACSEmployment"),
    "acs_public_coverage": Task("ACSPublicCoverage"),
    "acs_travel_time": Task("ACSTravelTime", ("PWGTP", "ESR")),
}

LATER_NAMES = {
    "RELP": "RELSHIPP, its name and coding since 2019",
    "JWTR": "JWTRNS, its name and coding since 2019",
    "ST": "STATE, its name since 2023",
}
"""Columns of the tasks that later survey years call otherwise."""

PUBLISHED_PERSONS: dict[tuple[int, str, tuple[str, ...]], int] = {
    (2018, "1-Year", ("CA",)): 378_817
}
"""Rows of the published person file, where known; a file with fewer is only a part."""


@dataclass(frozen=True, slots=True)
class Survey:
    """Which part of the survey a config asks for.

    Parameters
    ----------
    states : tuple of str
        Two-letter codes, sorted.
    year : int
        Survey year.
    horizon : str
        ``1-Year`` or ``5-Year``.
    """

    states: tuple[str, ...]
    year: int
    horizon: str

    @property
    def description(self) -> str:
        """The survey in words."""
        return f"ACS PUMS {self.year} {self.horizon} person file, {'+'.join(self.states)}"

    def file_name(self, state: str) -> str:
        """Return the name of a state's person file."""
        if self.year >= 2017:
            return f"psam_p{STATE_CODES[state]}.csv"
        return f"ss{self.year % 100:02d}p{state.lower()}.csv"

    def folder(self, data_dir: Path) -> Path:
        """Return the folder of the survey's files, the one folktables uses."""
        return data_dir / str(self.year) / self.horizon


def load(config: Mapping[str, Any]) -> Dataset:
    """Load a task.

    Parameters
    ----------
    config : mapping
        ``name``; ``task``, a key of :data:`TASKS`; ``states``, ``year``, ``horizon`` and
        ``survey`` as folktables knows them; ``stand_in_dir``, a folder whose ``<task>*.parquet``
        is used in place of the survey's file (also by the environment variable
        ``LUMBERJACK_STAND_IN_DIR``); ``data_dir``.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetError
        When the config is wrong, the file cannot be had, is damaged, or belongs to another year.
    """
    name = str(config["name"])
    task_name, survey = _task(config), _survey(config)
    schema = task_schema(task_name, survey.states)
    data_dir = data_folder(config)
    stand_in, why_not = find_stand_in(config, task_name)
    if stand_in is not None:
        return _load_stand_in(name, task_name, schema, stand_in, data_dir / "cache")
    paths = _survey_files(name, task_name, survey, data_dir, why_not)
    checksums = [remembered_sha256(path, data_dir / "cache") for path in paths]
    digest = (
        checksums[0]
        if len(checksums) == 1
        else hashlib.sha256("".join(checksums).encode()).hexdigest()
    )
    files = " + ".join(path.name for path in paths)
    key = {"source": digest, "file": files, "task": task_name, "survey": survey.description}

    def build() -> Dataset:
        tables = [
            _read_survey_file(path, task_name, survey, state, what=name)
            for path, state in zip(paths, survey.states, strict=True)
        ]
        rows = pd.concat(tables, ignore_index=True)
        values, target = apply_task(rows, task_name)
        if not len(target):
            raise DatasetError(
                f"{name}: none of the {len(rows):,} persons in {files} passes the task's filter."
            )
        columns = dict(zip(schema.feature_names, values.T, strict=True))
        table = named_columns({**columns, schema.label: target.astype(np.int8)})
        X, y, counts = compact_rows(table, schema, what=name, is_strict=False)
        published = PUBLISHED_PERSONS.get((survey.year, survey.horizon, survey.states))
        is_part = published is not None and len(rows) != published
        source = DataSource(
            kind="acs",
            description=f"{survey.description}, folktables {TASKS[task_name].problem}",
            file=files,
            sha256=digest,
            n_rows=len(y),
            is_stand_in=is_part,
            stand_in_note=(
                f"{files} holds {len(rows):,} persons, the published file {published:,}"
                if is_part
                else ""
            ),
        )
        return Dataset(name, schema, X, y, source, counts)

    return cached(data_dir / "cache", name, schema, key, build)


def identity(config: Mapping[str, Any]) -> str:
    """Return what determines the rows: task, schema and survey, or the checksum of other rows.

    The survey's published file does not change, so it need not be there yet. A file that is there
    and is not the published one, such as a part of it, counts by its checksum.

    Parameters
    ----------
    config : mapping
        As :func:`load` takes it.

    Returns
    -------
    str
    """
    task_name, survey = _task(config), _survey(config)
    schema = task_schema(task_name, survey.states).digest()
    stand_in, _ = find_stand_in(config, task_name)
    data_dir = data_folder(config)
    if stand_in is not None:
        digest = remembered_sha256(stand_in, data_dir / "cache")
        return f"stand-in:{task_name}:{stand_in.name}:{digest}:{schema}"
    paths = [(state, survey.folder(data_dir) / survey.file_name(state)) for state in survey.states]
    others = [
        f"{path.name}={digest}"
        for state, path in paths
        if path.is_file()
        and (digest := remembered_sha256(path, data_dir / "cache"))
        and not _is_published(path, digest, survey, state)
    ]
    return ":".join(["acs", task_name, survey.description, *others, schema])


def _published_mark(path: Path) -> Path:
    """Return the file that holds the checksum of a survey file as it was downloaded."""
    return path.with_name(f"{path.name}.sha256")


def _is_published(path: Path, digest: str, survey: Survey, state: str) -> bool:
    """Whether a survey file is as it was published: downloaded here, or of the known length."""
    with contextlib.suppress(OSError):
        if _published_mark(path).read_text(encoding="utf-8").strip() == digest:
            return True
    n_persons = PUBLISHED_PERSONS.get((survey.year, survey.horizon, (state,)))
    if n_persons is None:
        return False
    with path.open("rb") as handle:
        n_lines = sum(chunk.count(b"\n") for chunk in iter(lambda: handle.read(1 << 20), b""))
    return n_lines == n_persons + 1


def task_schema(task_name: str, states: tuple[str, ...]) -> FeatureSchema:
    """Return the schema of a task for some states.

    Parameters
    ----------
    task_name : str
        A key of :data:`TASKS`.
    states : tuple of str
        The states of the table; they are the categories of ST.

    Returns
    -------
    FeatureSchema
    """
    schema = read_schema(task_name)
    codes = tuple(int(STATE_CODES[state]) for state in states)
    features = tuple(
        CategoricalFeature("ST", codes) if feature.name == "ST" else feature
        for feature in schema.features
    )
    return replace(schema, features=features)


def apply_task(rows: pd.DataFrame, task_name: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Apply a task's filter, features and label to persons.

    Parameters
    ----------
    rows : DataFrame
        Persons, with the survey's columns as numbers and NaN for "not applicable".
    task_name : str
        A key of :data:`TASKS`.

    Returns
    -------
    values : ndarray of shape (n_rows, n_features), float64
        Features, with 0 for "not applicable".
    target : ndarray of shape (n_rows,), bool
        The label.
    """
    values, target, _ = _problem(task_name).df_to_numpy(rows)
    return values.astype(np.float64, copy=False), target


def find_stand_in(config: Mapping[str, Any], task_name: str) -> tuple[Path | None, str]:
    """Find the table that stands in for a task's survey file.

    Parameters
    ----------
    config : mapping
        ``stand_in_dir``, else the environment variable ``LUMBERJACK_STAND_IN_DIR``.
    task_name : str
        A key of :data:`TASKS`.

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
    found = sorted(folder.glob(f"{task_name}*.parquet"))
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
    what = f"{name} (stand-in {path.name})"

    def build() -> Dataset:
        extra = set(column_names(path, what=what)) - {*schema.feature_names, schema.label}
        if extra:
            logger.info("%s: left out columns that the task does not have: %s", what, sorted(extra))
        columns = (*schema.feature_names, schema.label)
        table = read_columns(path, columns, schema, what=f"{name}: stand-in table")
        table = _with_binary_label(table, task_name, schema.label)
        X, y, counts = compact_rows(table, schema, what=what, is_strict=True)
        source = DataSource(
            kind="table",
            description=f"table {path.name} in place of the ACS PUMS person file",
            file=path.name,
            sha256=digest,
            n_rows=len(y),
            is_stand_in=True,
            stand_in_note=f"{path.name} with {len(y):,} rows stands in for the survey's file",
        )
        return Dataset(name, schema, X, y, source, counts)

    key = {"source": digest, "file": path.name, "task": task_name, "stand_in": True}
    return cached(cache_folder, name, schema, key, build)


def _with_binary_label(table: pa.Table, task_name: str, label: str) -> pa.Table:
    """Turn survey values of the label into 0 and 1, where 0 and 1 themselves would stay as they are.

    Where they would not (dollars, minutes) the label must be 0 or 1: to tell by the rows which it is
    would let one row decide how all others are read.
    """
    transform = _problem(task_name).target_transform
    values = table.column(label).to_pandas()
    if not pd.api.types.is_numeric_dtype(values) or list(transform(pd.Series([0, 1]))) != [0, 1]:
        return table
    target = transform(values).to_numpy().astype(np.int8)
    return table.set_column(table.column_names.index(label), label, pa.array(target))


def _problem(task_name: str) -> Any:
    return getattr(folktables, TASKS[task_name].problem)


def _task(config: Mapping[str, Any]) -> str:
    task_name = str(config.get("task") or config["name"])
    if task_name not in TASKS:
        raise DatasetError(
            f"{config['name']}: task must be one of {list(TASKS)}, got {task_name!r}."
        )
    return task_name


def _survey(config: Mapping[str, Any]) -> Survey:
    name = config["name"]
    chosen = config.get("states") or ["CA"]
    states = [str(state) for state in (chosen if isinstance(chosen, list | tuple) else [chosen])]
    unknown = [state for state in states if state not in STATE_CODES]
    if unknown:
        raise DatasetError(
            f"{name}: unknown states {unknown}. States are two capital letters: "
            f"{', '.join(sorted(STATE_CODES))}."
        )
    if len(set(states)) != len(states):
        raise DatasetError(f"{name}: a state is listed twice in {states}.")
    year = config.get("year", 2018)
    if not re.fullmatch(r"20[0-9]{2}", str(year)) or int(year) < 2014:
        raise DatasetError(f"{name}: year must be 2014 or later, got {year!r}.")
    horizon = str(config.get("horizon", "1-Year"))
    if horizon not in ("1-Year", "5-Year"):
        raise DatasetError(f"{name}: horizon must be '1-Year' or '5-Year', got {horizon!r}.")
    if config.get("survey", "person") != "person":
        raise DatasetError(
            f"{name}: survey must be 'person' (the tasks are about persons), "
            f"got {config.get('survey')!r}."
        )
    return Survey(tuple(sorted(states, key=STATE_CODES.__getitem__)), int(year), horizon)


def _survey_files(
    name: str, task_name: str, survey: Survey, data_dir: Path, why_no_stand_in: str
) -> list[Path]:
    """Return the survey's files, fetching those that are not there."""
    folder = survey.folder(data_dir)
    paths = []
    for state in survey.states:
        path = folder / survey.file_name(state)
        if not path.is_file():
            _fetch_survey_file(name, task_name, survey, state, path, why_no_stand_in)
        paths.append(path)
    return paths


def _fetch_survey_file(
    name: str, task_name: str, survey: Survey, state: str, path: Path, why_no_stand_in: str
) -> None:
    archive_name = f"csv_p{state.lower()}.zip"
    url = f"{CENSUS}/{survey.year}/{survey.horizon}/{archive_name}"

    def is_there() -> None:
        if not path.is_file():
            raise SourceFailure("not there")

    def stand_in() -> None:
        raise SourceFailure(why_no_stand_in)

    def from_census() -> None:
        logger.info("%s: downloading %s (tens of MB)", name, url)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".download-") as scratch:
            archive = Path(scratch) / archive_name
            download(url, archive)
            try:
                with (
                    zipfile.ZipFile(archive) as members,
                    members.open(path.name) as member,
                    atomic_file(path) as handle,
                ):
                    while chunk := member.read(1 << 20):
                        handle.write(chunk)
            except KeyError:
                raise SourceFailure(f"{archive_name} holds no {path.name}") from None
            except (zipfile.BadZipFile, EOFError) as error:
                raise SourceFailure(f"{archive_name} is damaged ({error})") from None
        with atomic_file(_published_mark(path)) as handle:
            handle.write(f"{sha256_of(path)}\n".encode())

    try:
        with folder_lock(path.parent, f"{name}: fetching {path.name}"):
            first_that_works(
                f"{name} ({survey.year} {survey.horizon} person file of {state})",
                [
                    Source("stand-in table", stand_in),
                    Source(f"file {path}", is_there),
                    Source(f"US Census Bureau ({url})", from_census),
                ],
                by_hand=(
                    f"Download {archive_name} (ACS PUMS, year {survey.year}, horizon "
                    f"{survey.horizon}, person, state {state}) from {url} in a browser and unpack "
                    f"{path.name} into {path.parent}; or name a folder that holds "
                    f"{task_name}*.parquet by dataset.stand_in_dir=DIR."
                ),
            )
    except OSError as error:
        raise DatasetError(
            f"{name}: cannot write to {path.parent} ({error.strerror or error}). Make it writable, "
            "or set data_dir or LUMBERJACK_DATA to a folder that is."
        ) from None


def _read_survey_file(
    path: Path, task_name: str, survey: Survey, state: str, *, what: str
) -> pd.DataFrame:
    """Read the task's columns of a person file as numbers, NaN for an empty field."""
    where = f"{what}: {path}"
    again = f"Delete it and get the {survey.year} {survey.horizon} person file of {state} again."
    present = read_header(path, what=what).names
    problem = _problem(task_name)
    needed = dict.fromkeys([*problem.features, problem.target, problem.group])
    needed |= dict.fromkeys(TASKS[task_name].filter_columns)
    absent = [column for column in needed if column not in present]
    if absent:
        renamed = [
            f"{column} ({LATER_NAMES[column]})"
            if LATER_NAMES.get(column, "?").split(",")[0] in present
            else column
            for column in absent
        ]
        raise DatasetError(
            f"{where} lacks the columns {', '.join(renamed)}. Is it the person file of "
            f"{survey.year} {survey.horizon}? {again}"
        )
    repeated = [column for column in needed if present.count(column) > 1]
    if repeated:
        raise DatasetError(f"{where} has duplicate columns {repeated}. {again}")
    if not has_whole_last_line(path):
        raise DatasetError(f"{where} breaks off in its last line: it is truncated. {again}")
    marks = [column for column in ("SERIALNO", "ST") if column in present and column not in needed]
    table = read_text_columns(path, [*needed, *marks], what=what)
    if not table.num_rows:
        raise DatasetError(f"{where} holds no persons: it is truncated. {again}")
    if "SERIALNO" in table.column_names and survey.horizon == "1-Year":
        _check_year(table.column("SERIALNO"), survey.year, where, again)
    rows = pd.DataFrame({column: _codes(table, column, where, again) for column in needed})
    states = rows["ST"] if "ST" in rows else _codes(table, "ST", where, again)
    if states is not None:
        elsewhere = np.asarray(states) != int(STATE_CODES[state])
        if elsewhere.any():
            raise DatasetError(
                f"{where}: ST is {np.asarray(states)[elsewhere][0]:g} in {int(elsewhere.sum()):,} of "
                f"{len(rows):,} rows, but {state} is {int(STATE_CODES[state])}. {again}"
            )
    return rows


def _codes(table: pa.Table, column: str, where: str, again: str) -> NDArray[np.float64] | None:
    if column not in table.column_names:
        return None
    # Some early files pad their fields with blanks.
    text = pc.utf8_trim_whitespace(table.column(column))
    text = pc.if_else(pc.equal(text, ""), None, text)
    try:
        return np.array(text.cast(pa.float64()).to_numpy(), dtype=np.float64)
    except pa.ArrowInvalid:
        numbers = pd.to_numeric(text.to_pandas(), errors="coerce").to_numpy(dtype=np.float64)
        bad = np.isnan(numbers) & np.asarray(pc.is_valid(text))
        example = text.filter(pa.array(bad))[0].as_py() if bad.any() else "?"
        raise DatasetError(
            f"{where}: column {column!r} holds {example!r} in {int(bad.sum()):,} of {len(text):,} "
            f"rows, which is no number. {again}"
        ) from None


def _check_year(serials: pa.ChunkedArray, year: int, where: str, again: str) -> None:
    """Refuse a file whose serial numbers, which start with the year since 2017, name another."""
    first = serials[0].as_py().strip('"')
    seen = re.match(r"(20[0-9]{2})(?:GQ|HU|[0-9]{6,})", first)
    if year >= 2017 and seen and int(seen[1]) != year:
        raise DatasetError(
            f"{where} is the file of {seen[1]} (serial number {first}), not of {year}. {again}"
        )
