"""Table 1 of the paper, made again from the loaded data sets, with what differs.

The paper's values are constants here; ours are counted. Stand-ins are said to be such, and a data
set that could not be had keeps its row, with the reason.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from lumberjack_bench.datasets import Dataset, DatasetError, Summary, load
from lumberjack_bench.datasets.named import named_config, title_of
from lumberjack_bench.figures.request import FigureError, Request, csv_text, read_results
from lumberjack_bench.results import current_rows

PAPER = {
    "adult": Summary(48_842, 14, 8, 2, 0.761),
    "acs_income": Summary(195_665, 10, 4, 2, 0.589),
    "acs_employment": Summary(378_817, 16, 10, 2, 0.544),
    "acs_public_coverage": Summary(138_554, 19, 10, 2, 0.631),
    "acs_travel_time": Summary(172_508, 16, 7, 2, 0.515),
}
"""The paper's Table 1; shares are given there in percent with one decimal."""

_QUANTITIES = {
    "n_features": ("features", ".0f"),
    "n_categorical": ("categorical", ".0f"),
    "n_classes": ("classes", ".0f"),
    "majority_percent": ("majority (%)", ".1f"),
    "n_rows": ("rows", ",.0f"),
}
"""Headings and formats of the columns."""


def make(request: Request) -> list[Path]:
    """Load the data sets and write the comparison as Markdown and csv.

    A data set is loaded as the runs of the results table had it, unless a setting says otherwise.

    Raises
    ------
    FigureError
        When a setting is known to none of the data sets.
    """
    known = sorted({setting for name in PAPER for setting in _known_settings(name)})
    for text in request.overrides:
        if (key := _key(text)) not in known:
            raise FigureError(f"table1: no data set has a setting {key!r}; there are {known}.")
    used: dict[str, dict[str, Any]] = {}
    if request.results.is_file():
        rows, _ = current_rows(read_results(request.results, ""))
        # Of a stand-in and the rows that it stands for, the latter.
        rows = rows.sort_values("is_stand_in", kind="stable").drop_duplicates("dataset")
        used = {
            name: json.loads(config)
            for name, config in zip(rows["dataset"], rows["dataset_config"], strict=True)
        }
    table = table1(load_table1(request.overrides, used))
    return [request.write(".md", to_markdown(table)), request.write(".csv", csv_text(table))]


def load_table1(
    overrides: Sequence[str] = (), used: Mapping[str, Mapping[str, Any]] | None = None
) -> list[Dataset | DatasetError]:
    """Load the data sets of Table 1.

    Each override, such as ``stand_in_dir=DIR``, goes to the data sets that have it; `used` are
    configs that replace those of the project, by name. An error stands in place of a data set that
    cannot be had.
    """
    loaded: list[Dataset | DatasetError] = []
    for name in PAPER:
        chosen = [text for text in overrides if _key(text) in _known_settings(name)]
        config = {**named_config(name), **((used or {}).get(name, {}))}
        changes = named_config(name, chosen)
        config |= {_key(text): changes[_key(text)] for text in chosen}
        try:
            loaded.append(load(config))
        except DatasetError as error:
            loaded.append(error)
    return loaded


def table1(datasets: Iterable[Dataset | BaseException]) -> pd.DataFrame:
    """Compare data sets with the paper's Table 1.

    Parameters
    ----------
    datasets : iterable of Dataset or exception
        Loaded data sets, and errors in place of others; :func:`lumberjack_bench.datasets.load`
        writes the data set's name into its errors.

    Returns
    -------
    DataFrame
        A row per data set of the paper, in its order, then others given. Each of ``n_features``,
        ``n_categorical``, ``n_classes``, ``majority_percent`` and ``n_rows`` has columns ending
        in ``_paper``, ``_ours`` and ``_difference`` (ours minus paper's, the majority's after
        rounding to the paper's one decimal); further ``dataset``, ``title``, ``is_stand_in``,
        ``source`` and ``note``. Missing numbers are NaN.
    """
    found: dict[str, Dataset] = {}
    errors: dict[str, str] = {}
    for item in datasets:
        if isinstance(item, Dataset):
            found[item.name] = item
        else:
            # The first line says what is wrong; the others name folders of this machine.
            reason = (str(item).splitlines() or [type(item).__name__])[0]
            errors[str(getattr(item, "dataset_name", ""))] = reason.partition(" Tried in ")[0]
    names = list(dict.fromkeys([*PAPER, *found, *filter(None, errors)]))
    return pd.DataFrame([_row(name, found.get(name), errors.get(name)) for name in names])


def _key(override: str) -> str:
    """Return the setting that ``[dataset.]key[.part]=value`` changes."""
    return override.removeprefix("dataset.").partition("=")[0].split(".")[0]


def _known_settings(name: str) -> set[str]:
    return {"data_dir", *named_config(name)}


def _row(name: str, dataset: Dataset | None, error: str | None) -> dict[str, object]:
    where = " (CA)" if name.startswith("acs_") else ""
    row: dict[str, object] = {"dataset": name, "title": title_of(name) + where}
    paper = _numbers(PAPER.get(name))
    ours = _numbers(dataset.summary() if dataset is not None else None)
    for quantity in _QUANTITIES:
        row[f"{quantity}_paper"] = paper[quantity]
        row[f"{quantity}_ours"] = ours[quantity]
        row[f"{quantity}_difference"] = ours[quantity] - paper[quantity]
    row["is_stand_in"] = dataset is not None and dataset.source.is_stand_in
    row["source"] = dataset.source.label if dataset is not None else "not available"
    note = dataset.source.stand_in_note if dataset is not None else (error or "not loaded")
    row["note"] = " ".join(note.split())
    return row


def _numbers(summary: Summary | None) -> dict[str, float]:
    if summary is None:
        return dict.fromkeys(_QUANTITIES, math.nan)
    numbers = {key: float(value) for key, value in asdict(summary).items()}
    numbers["majority_percent"] = round(100 * numbers.pop("majority"), 1)
    return numbers


def to_markdown(table: pd.DataFrame) -> str:
    """Write the comparison as a Markdown table with its notes below.

    Cells read "paper / ours (difference)"; the difference is left out where it is nil.
    """
    rows = table.to_dict("records")
    headings = [heading for heading, _ in _QUANTITIES.values()]
    lines = [
        _line(["data set", *headings, "our rows come from"]),
        _line(["---", *["---:"] * len(headings), "---"]),
        *(
            _line([row["title"], *(_cell(row, name) for name in _QUANTITIES), row["source"]])
            for row in rows
        ),
        "",
        "Each cell: the paper's value / ours (difference where there is one).",
    ]
    notes = [f"- {row['title']}: {row['note']}" for row in rows if row["note"]]
    return "\n".join([*lines, *(["", *notes] if notes else [])]) + "\n"


def _cell(row: Mapping[str, Any], name: str) -> str:
    form = _QUANTITIES[name][1]
    paper, ours, difference = (row[f"{name}_{c}"] for c in ("paper", "ours", "difference"))
    text = " / ".join("n/a" if math.isnan(x) else f"{x:{form}}" for x in (paper, ours))
    # Differences of one-decimal percentages carry rounding errors far below 0.05.
    return f"{text} ({difference:+{form}})" if abs(difference) > 1e-9 else text


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
