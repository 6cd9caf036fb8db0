"""Table 1 of the paper, made again from the loaded data sets, with what differs.

The paper's values are constants here; ours are counted. Stand-ins are said to be such, and a data
set that could not be had keeps its row, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from lumberjack_bench.datasets import Dataset, DatasetError, Summary, load
from lumberjack_bench.datasets.named import named_config
from lumberjack_bench.figures.request import FigureError, Request
from lumberjack_bench.figures.style import write_whole
from lumberjack_bench.results import read_table

PAPER = {
    "adult": Summary(48_842, 14, 8, 2, 0.761),
    "acs_income": Summary(195_665, 10, 4, 2, 0.589),
    "acs_employment": Summary(378_817, 16, 10, 2, 0.544),
    "acs_public_coverage": Summary(138_554, 19, 10, 2, 0.631),
    "acs_travel_time": Summary(172_508, 16, 7, 2, 0.515),
}
"""The paper's Table 1; shares are given there in percent with one decimal."""

TITLES = {
    "adult": "Adult",
    "acs_income": "ACSIncome (CA)",
    "acs_employment": "ACSEmployment (CA)",
    "acs_public_coverage": "ACSPublicCoverage (CA)",
    "acs_travel_time": "ACSTravelTime (CA)",
}


@dataclass(frozen=True, slots=True)
class _Quantity:
    """A column of Table 1: its name in the data, its heading, and how it is written."""

    name: str
    heading: str
    form: str
    difference_form: str


_QUANTITIES = (
    _Quantity("n_features", "features", "{:.0f}", "{:+.0f}"),
    _Quantity("n_categorical", "categorical", "{:.0f}", "{:+.0f}"),
    _Quantity("n_classes", "classes", "{:.0f}", "{:+.0f}"),
    _Quantity("majority_percent", "majority (%)", "{:.1f}", "{:+.1f}"),
    _Quantity("n_rows", "rows", "{:,.0f}", "{:+,.0f}"),
)


def make(request: Request) -> list[Path]:
    """Load the data sets and write the comparison.

    Parameters
    ----------
    request : Request
        Where to, and settings of the data sets. A data set that is in the results table is loaded as
        its runs had it, unless a setting says otherwise.

    Returns
    -------
    list of Path
        Markdown and csv.

    Raises
    ------
    FigureError
        When a setting is known to none of the data sets.
    """
    for text in request.overrides:
        key = _key(text)
        if not any(key in _known_settings(name) for name in PAPER):
            known = sorted({setting for name in PAPER for setting in _known_settings(name)})
            raise FigureError(f"table1: no data set has a setting {key!r}; there are {known}.")
    used = {}
    if request.results.is_file():
        rows = read_table(request.results)
        used = dict(zip(rows["dataset"], map(json.loads, rows["dataset_config"]), strict=True))
    table = table1(load_table1(request.overrides, used))
    return [
        write_whole(request.out / "table1.md", to_markdown(table)),
        write_whole(request.out / "table1.csv", to_csv(table)),
    ]


def load_table1(
    overrides: Sequence[str] = (), used: Mapping[str, Mapping[str, Any]] | None = None
) -> list[Dataset | DatasetError]:
    """Load the data sets of Table 1.

    Parameters
    ----------
    overrides : sequence of str
        Settings such as ``stand_in_dir=DIR`` or ``data_dir=DIR``; each goes to the data sets
        that have it.
    used : mapping of str to mapping, optional
        Configs that replace those of the project, by name.

    Returns
    -------
    list of Dataset or DatasetError
        In the paper's order; an error in place of a data set that cannot be had.
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
    row: dict[str, object] = {"dataset": name, "title": TITLES.get(name, name)}
    paper = _numbers(PAPER.get(name))
    ours = _numbers(dataset.summary() if dataset is not None else None)
    for quantity in _QUANTITIES:
        row[f"{quantity.name}_paper"] = paper[quantity.name]
        row[f"{quantity.name}_ours"] = ours[quantity.name]
        row[f"{quantity.name}_difference"] = ours[quantity.name] - paper[quantity.name]
    row["is_stand_in"] = dataset is not None and dataset.source.is_stand_in
    row["source"] = dataset.source.label if dataset is not None else "not available"
    row["note"] = dataset.source.stand_in_note if dataset is not None else (error or "not loaded")
    return row


def _numbers(summary: Summary | None) -> dict[str, float]:
    if summary is None:
        return dict.fromkeys((q.name for q in _QUANTITIES), float("nan"))
    numbers = {key: float(value) for key, value in asdict(summary).items()}
    numbers["majority_percent"] = round(100 * numbers.pop("majority"), 1)
    return numbers


def to_markdown(table: pd.DataFrame) -> str:
    """Write the comparison as a Markdown table with its notes below.

    Parameters
    ----------
    table : DataFrame
        As :func:`table1` gives it.

    Returns
    -------
    str
        Cells read "paper / ours (difference)"; the difference is left out where it is nil.
    """
    headings = ["data set", *(q.heading for q in _QUANTITIES), "our rows come from"]
    lines = [_line(headings), _line(["---", *["---:"] * len(_QUANTITIES), "---"])]
    for row in table.to_dict("records"):
        cells = [_cell(row, quantity) for quantity in _QUANTITIES]
        lines.append(_line([str(row["title"]), *cells, str(row["source"])]))
    notes = [
        f"- {row['title']}: {' '.join(str(row['note']).split())}"
        for row in table.to_dict("records")
        if row["note"]
    ]
    legend = "Each cell: the paper's value / ours (difference where there is one)."
    return "\n".join([*lines, "", legend, *(["", *notes] if notes else [])]) + "\n"


def to_csv(table: pd.DataFrame) -> str:
    """Write the comparison as csv, a line per data set.

    Parameters
    ----------
    table : DataFrame
        As :func:`table1` gives it.

    Returns
    -------
    str
    """
    flat = table.assign(note=[" ".join(str(note).split()) for note in table["note"]])
    text: str = flat.to_csv(index=False, lineterminator="\n", float_format="%.10g")
    return text


def _cell(row: dict[str, object], quantity: _Quantity) -> str:
    paper, ours, difference = (
        float(str(row[f"{quantity.name}_{column}"])) for column in ("paper", "ours", "difference")
    )
    shown = [quantity.form.format(x) if x == x else "n/a" for x in (paper, ours)]
    text = " / ".join(shown)
    # Differences of one-decimal percentages carry rounding errors far below 0.05.
    return (
        f"{text} ({quantity.difference_form.format(difference)})"
        if abs(difference) > 1e-9
        else text
    )


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
