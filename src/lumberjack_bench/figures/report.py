"""One HTML page that stands on its own: a picture to pick in, figures, tables, cards, commands.

It shows what the results table holds, and the files of other figures that lie beside it. What is
said is gathered here, how it is laid out stands in ``report.html``.
"""

from __future__ import annotations

import base64
import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lumberjack_bench.datasets.named import title_of
from lumberjack_bench.figures import FIGURES, style
from lumberjack_bench.figures.comparison import compare
from lumberjack_bench.figures.curves import Panel, finished_rows, load_panels
from lumberjack_bench.figures.explorer import Explorer
from lumberjack_bench.figures.means import means_table
from lumberjack_bench.figures.panels import DOUBTED, TUNED, draw_panels
from lumberjack_bench.figures.recipes import run_commands
from lumberjack_bench.figures.request import METRIC, FigureError, Request
from lumberjack_bench.results import current_rows

if TYPE_CHECKING:
    import pandas as pd

Row = list[str]

_OURS = ("additive_forest", "guided_lumberjack", "lumberjack")
_OF_CURVES = {n: figure for n, figure in FIGURES.items() if figure.title and figure.datasets}
_BESIDE = {n: figure for n, figure in FIGURES.items() if figure.title and not figure.datasets}


def make(request: Request) -> list[Path]:
    """Write ``report.html``.

    Raises
    ------
    FigureError
        When the table is missing or holds no finished run.
    """
    table, panels = load_panels(request, FIGURES[request.name].command)
    explorer = Explorer(table, request.datasets, request.methods, request.metric)
    table, _ = current_rows(table)
    table = table[
        table["dataset"].isin({panel.dataset for panel in panels})
        & table["method"].isin(set(request.methods or table["method"]))
    ]
    page = report_html(table, panels, explorer, request.out)
    return [request.write(".html", page)]


def report_html(
    table: pd.DataFrame, panels: Sequence[Panel], explorer: Explorer, folder: Path
) -> str:
    """Compose the page; no dates and no folders, so that equal results make equal pages.

    Parameters
    ----------
    table : DataFrame
        The rows that the report is about.
    panels : sequence of Panel
        The same rows as curves.
    explorer : Explorer
        Has other metrics and data sets too, if there are any.
    folder : Path
        Where files of other figures are looked for.
    """
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
    )
    is_finished = table["status"] == "ok"
    return templates.get_template("report.html").render(
        n_finished=table[is_finished]["run_hash"].nunique(),
        n_failed=table[~is_finished]["run_hash"].nunique(),
        metric=panels[0].metric,
        panels=panels,
        explorer=explorer.html,
        left_out=list(dict.fromkeys(line for panel in panels for line in panel.left_out)),
        curves=_curves(panels),
        numbers=[(panel, *_numbers(panel)) for panel in panels],
        interval_name=panels[0].metric.interval_name,
        doubted=DOUBTED,
        tuned=TUNED,
        comparisons=_comparisons(table, panels[0].metric.name),
        times=_times(table),
        cards=_cards(panels),
        pictures=[
            (figure, _base64(picture.read_bytes()))
            for name, figure in _BESIDE.items()
            if (picture := folder / f"{name}.png").is_file()
        ],
        tables=[
            (figure, list(csv.reader(file.read_text(encoding="utf-8").splitlines())))
            for name, figure in _BESIDE.items()
            if (file := folder / f"{name}.csv").is_file() and not (folder / f"{name}.png").is_file()
        ],
        failures=[
            [
                *(str(row[name]) for name in ("dataset", "method")),
                f"{row['eps']:g}",
                str(row["status"]),
                Markup("<code>{}</code>").format(row["run_hash"]),
            ]
            for row in table[~is_finished].drop_duplicates("run_hash").to_dict("records")
        ],
        circumstances=_circumstances(table[is_finished].drop_duplicates("run_hash")),
        commands=_commands(panels),
    )


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _curves(panels: Sequence[Panel]) -> list[tuple[str, str, str]]:
    """Return title, names of the data sets, and picture of each figure of curves."""
    grouped = {name for figure in _OF_CURVES.values() for name in figure.datasets}
    groups = {
        figure.title: [panel for panel in panels if panel.dataset in figure.datasets]
        for figure in _OF_CURVES.values()
    }
    groups["Other data sets"] = [panel for panel in panels if panel.dataset not in grouped]
    found = []
    for title, chosen in groups.items():
        if chosen:
            with style.our_look():
                picture = style.as_bytes(draw_panels(chosen), "svg")
            found.append((title, ", ".join(panel.title for panel in chosen), _base64(picture)))
    return found


def _numbers(panel: Panel) -> tuple[Row, list[Row]]:
    header, rows = means_table(panel)
    bold = Markup("<b>{}</b>").format
    return header, [[bold(text) if is_best else text for text, is_best in row] for row in rows]


def _comparisons(table: pd.DataFrame, metric: str) -> list[tuple[str, list[Row]]]:
    """Return for each of our methods how it does against every other."""
    methods = sorted(table["method"].unique())
    found = []
    for ours in [name for name in _OURS if name in methods]:
        rows = []
        for other in [name for name in methods if name not in (ours, "majority")]:
            try:
                result = compare(table, ours, other, metric=metric)
            except FigureError:
                # Several variants of a method, or nothing in common: compare.py names the choice.
                continue
            rows += [
                [
                    other,
                    title_of(item.dataset),
                    str(item.n_pairs),
                    f"{item.difference.mean:+.4f}",
                    f"[{item.difference.lower:+.4f}, {item.difference.upper:+.4f}]",
                    f"{item.wins} / {item.ties} / {item.losses}",
                    f"{item.p_value:.3g}",
                ]
                for item in result.by_dataset
            ]
        if rows:
            found.append((ours, rows))
    return found


def _times(table: pd.DataFrame) -> list[Row]:
    """Return mean fitting times, methods down and data sets across, below a header."""
    rows = finished_rows(table, "fit_seconds")
    if rows.empty:
        return []
    names = rows["label"].where(rows["label"] != "", rows["method"])
    means = rows.assign(name=names).pivot_table("value", ["name", "method"], "dataset", sort=True)
    means = means[list(dict.fromkeys(rows["dataset"]))]
    return [
        ["method", *map(title_of, means.columns)],
        *(
            [name, *("" if math.isnan(mean) else f"{mean:.2f}" for mean in row)]
            for (name, _), row in zip(means.index, means.to_numpy(), strict=True)
        ),
    ]


def _cards(panels: Sequence[Panel]) -> list[Row]:
    cards: dict[tuple[str, ...], Row] = {}
    for curve in (curve for panel in panels for curve in panel.curves):
        concerns = [curve.card_concerns] * bool(curve.card_concerns)
        if curve.is_tuned:
            concerns.append("Hyper-parameters chosen on validation rows without privacy cost.")
        status = curve.card_status
        row = [
            curve.label,
            curve.mode,
            Markup('<span class="alert">{}</span>').format(status) if curve.is_doubted else status,
            curve.card_claim,
            Markup("<br>").join(concerns),
        ]
        cards.setdefault((curve.method, curve.mode, status, curve.card_concerns), row)
    return sorted(cards.values())


def _circumstances(runs: pd.DataFrame) -> list[Row]:
    seeds = ", ".join(str(seed) for seed in sorted(runs["seed"].unique()))
    return [
        [name, str(value), str(count)]
        for name in ("versions", "commit", "machine")
        for value, count in sorted(runs[name].value_counts().items())
    ] + [["seed", seeds, str(len(runs))]]


def _commands(panels: Sequence[Panel]) -> list[str]:
    datasets = {panel.dataset for panel in panels}
    names = [name for name, figure in _OF_CURVES.items() if datasets & set(figure.datasets)]
    grouped = {name for figure in _OF_CURVES.values() for name in figure.datasets}
    names += ["accuracy"] * bool(datasets - grouped)
    metric = panels[0].metric.name
    chosen = "" if metric == METRIC else f" --metric {metric}"
    lines = [
        "# the results",
        *run_commands(panels),
        "# figures and this page, from the results table alone",
        f"python scripts/make_figures.py {' '.join([*names, 'report'])}{chosen}",
    ]
    for panel in panels:
        first, *others = dict.fromkeys(curve.method for curve in panel.curves)
        if others:
            compared = f"python scripts/compare.py {first} {others[0]}{chosen}"
            return [*lines, "# two methods, split by split", compared]
    return lines
