"""The person files of the American Community Survey (ACS PUMS): which there are, fetching, reading.

Folktables knows these files too, but its reader loads all of nearly 300 columns and its download
may leave half a file, so both are done here; a test holds the equality of what is read.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from folktables.load_acs import _STATE_CODES as STATE_CODES
from numpy.typing import NDArray

from lumberjack.reading import read_column
from lumberjack_bench.datasets.checksums import remembered_sha256
from lumberjack_bench.datasets.csv_files import has_whole_last_line, read_header, read_text_columns
from lumberjack_bench.datasets.dataset import DatasetError
from lumberjack_bench.datasets.download import from_zip
from lumberjack_bench.datasets.sources import Source, ensure_files, no_source, published_mark

CENSUS = "https://www2.census.gov/programs-surveys/acs/data/pums"

LATER_NAMES = {
    "RELP": "since 2019 RELSHIPP, of another coding",
    "JWTR": "since 2019 JWTRNS, of another coding",
    "ST": "since 2023 STATE",
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
        Two-letter codes, sorted by the survey's numbers.
    year : int
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

    def path(self, state: str, data_dir: Path) -> Path:
        """Return the place of a state's person file, the one folktables uses."""
        name = f"psam_p{STATE_CODES[state]}.csv"
        if self.year < 2017:
            name = f"ss{self.year % 100:02d}p{state.lower()}.csv"
        return data_dir / str(self.year) / self.horizon / name

    @property
    def n_published(self) -> int | None:
        """Persons in the published files of all states, where known."""
        return PUBLISHED_PERSONS.get((self.year, self.horizon, self.states))


def read_survey(config: Mapping[str, Any]) -> Survey:
    """Return the survey that a config asks for, or say what is wrong with it."""
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


def ensure_person_files(
    name: str, survey: Survey, data_dir: Path, *, stand_ins: str, why_no_stand_in: str
) -> list[Path]:
    """Return the survey's files, fetching those that are not there.

    `stand_ins` names the tables that could stand in, and `why_no_stand_in` says why none does: for
    the error when a file cannot be had.
    """
    paths = []
    for state in survey.states:
        path = survey.path(state, data_dir)
        archive = f"csv_p{state.lower()}.zip"
        url = f"{CENSUS}/{survey.year}/{survey.horizon}/{archive}"
        ensure_files(
            f"{name} ({survey.year} {survey.horizon} person file of {state})",
            path.parent,
            {path.name: None},
            [
                no_source("stand-in table", why_no_stand_in),
                Source(f"US Census Bureau ({url}, tens of MB)", from_zip(url)),
            ],
            by_hand=(
                f"Download {archive} (ACS PUMS, year {survey.year}, horizon {survey.horizon}, person, "
                f"state {state}) from {url} in a browser and unpack {path.name} into {path.parent}; or "
                f"name a folder that holds {stand_ins} by dataset.stand_in_dir=DIR."
            ),
        )
        paths.append(path)
    return paths


def other_files(survey: Survey, data_dir: Path) -> list[str]:
    """Return name and checksum of each file that is there and is not the published one."""
    others = []
    for state in survey.states:
        path = survey.path(state, data_dir)
        if path.is_file():
            digest = remembered_sha256(path, data_dir / "cache")
            if not _is_published(path, digest, Survey((state,), survey.year, survey.horizon)):
                others.append(f"{path.name}={digest}")
    return others


def _is_published(path: Path, digest: str, survey: Survey) -> bool:
    """Whether a survey file is as it was published: downloaded here, or of the known length."""
    with contextlib.suppress(OSError):
        if published_mark(path).read_text(encoding="utf-8").strip() == digest:
            return True
    if survey.n_published is None:
        return False
    with path.open("rb") as handle:
        n_lines = sum(chunk.count(b"\n") for chunk in iter(lambda: handle.read(1 << 20), b""))
    return n_lines == survey.n_published + 1


def read_persons(
    path: Path, columns: Sequence[str], survey: Survey, state: str, *, table_name: str
) -> pd.DataFrame:
    """Read columns of a person file as numbers, NaN for an empty field.

    Raises
    ------
    DatasetError
        When the file is truncated or damaged, or that of another year or state.
    """
    file = _PersonFile(
        f"{table_name}: {path}",
        f"Delete it and get the {survey.year} {survey.horizon} person file of {state} again.",
    )
    present = read_header(path, table_name=table_name).names
    absent = [column for column in columns if column not in present]
    if absent:
        named = [
            f"{name} ({LATER_NAMES[name]})" if name in LATER_NAMES else name for name in absent
        ]
        raise file.error(
            f"lacks the columns {', '.join(named)}. Is it the person file of {survey.year} "
            f"{survey.horizon}?"
        )
    repeated = [column for column in columns if present.count(column) > 1]
    if repeated:
        raise file.error(f"has duplicate columns {repeated}.")
    if not has_whole_last_line(path):
        raise file.error("breaks off in its last line: it is truncated.")
    marks = [mark for mark in ("SERIALNO", "ST") if mark in present and mark not in columns]
    table = read_text_columns(path, [*columns, *marks], table_name=table_name)
    if not table.num_rows:
        raise file.error("holds no persons: it is truncated.")
    if "SERIALNO" in table.column_names and survey.horizon == "1-Year":
        file.check_year(table.column("SERIALNO")[0].as_py(), survey.year)
    rows = pd.DataFrame({column: file.numbers(table, column) for column in columns})
    if "ST" in table.column_names:
        file.check_state(file.numbers(table, "ST"), state)
    return rows


@dataclass(frozen=True, slots=True)
class _PersonFile:
    """Checks of a person file; its name and what to do about it go into every error."""

    where: str
    again: str

    def error(self, what_is_wrong: str) -> DatasetError:
        return DatasetError(f"{self.where} {what_is_wrong} {self.again}")

    def numbers(self, table: pa.Table, column: str) -> NDArray[np.float64]:
        entries = read_column(table.column(column))
        numbers = entries.numbers()
        # Some early files pad their fields with blanks.
        is_blank = np.array([not text.strip() for text in entries.values], dtype=bool)
        assert entries.codes is not None
        is_odd = np.isnan(numbers) & ~is_blank[entries.codes]
        if is_odd.any():
            raise self.error(
                f"holds {entries.entry(int(is_odd.argmax()))!r} in column {column!r}, which is no "
                f"number, and {int(is_odd.sum()):,} such of {len(numbers):,} rows."
            )
        return numbers

    def check_year(self, serial_number: str, year: int) -> None:
        """Refuse a file whose serial numbers, which start with the year since 2017, name another."""
        seen = re.match(r"(20[0-9]{2})(?:GQ|HU|[0-9]{6,})", serial_number.strip('"'))
        if year >= 2017 and seen and int(seen[1]) != year:
            raise self.error(
                f"is the file of {seen[1]} (serial number {serial_number}), not of {year}."
            )

    def check_state(self, states: NDArray[np.float64], state: str) -> None:
        is_elsewhere = states != int(STATE_CODES[state])
        if is_elsewhere.any():
            raise self.error(
                f"is not that of {state}, whose ST is {int(STATE_CODES[state])}: ST is "
                f"{states[is_elsewhere][0]:g} in {int(is_elsewhere.sum()):,} of {len(states):,} rows."
            )
