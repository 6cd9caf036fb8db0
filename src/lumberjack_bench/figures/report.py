"""One HTML page that stands on its own: figures, tables, comparisons, cards, versions, commands.

It shows what the results table holds, and the files of other figures that lie beside it.
"""

from __future__ import annotations

import base64
import csv
import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from lumberjack_bench.figures import style
from lumberjack_bench.figures.comparison import compare
from lumberjack_bench.figures.curves import TITLES, Curve, Panel, read_panels, require_panels
from lumberjack_bench.figures.panels import DOUBTED, TUNED, draw_panels
from lumberjack_bench.figures.recipes import run_commands
from lumberjack_bench.figures.request import FigureError, Request, check_known, read_results
from lumberjack_bench.results import INTERVAL_NAME, current_rows

if TYPE_CHECKING:
    import pandas as pd

COMMAND = "python run.py -m +experiment=figure3"

_GROUPS = (
    ("figure3", "Figure 3", ("adult", "acs_income", "acs_employment")),
    ("figure4", "Figure 4", ("acs_public_coverage", "acs_travel_time")),
)

_PICTURES = (
    ("figure1", "Figure 1: decision regions on two moons", "python run.py -m +experiment=figure1"),
    ("figure2", "Figure 2: the search of Algorithm 1", "python scripts/make_figures.py figure2"),
    (
        "heavy_hitters_error",
        "Error of the heavy-hitter search against height",
        "python scripts/make_figures.py heavy_hitters_error",
    ),
)

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 76rem; margin: 2rem auto;
       padding: 0 1.2rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem } h2 { font-size: 1.2rem; margin-top: 2.4rem;
     border-bottom: 1px solid #ddd; padding-bottom: .2rem } h3 { font-size: 1rem }
table { border-collapse: collapse; margin: .6rem 0 1.2rem; font-size: .88rem }
th, td { padding: .28rem .7rem; text-align: right; border-bottom: 1px solid #e6e6e6;
         vertical-align: top; font-variant-numeric: tabular-nums }
th { border-bottom: 2px solid #bbb; white-space: nowrap }
th:first-child, td:first-child, .text td, .text th { text-align: left }
.scroll { overflow-x: auto } img { max-width: 100%; height: auto }
pre { background: #f5f5f5; padding: .7rem 1rem; overflow-x: auto; font-size: .85rem }
.note { color: #666; font-size: .88rem } .alert { color: #b34700 }
nav a { margin-right: 1.2rem }
"""


def make(request: Request) -> list[Path]:
    """Write the report.

    Parameters
    ----------
    request : Request
        What from, and where to.

    Returns
    -------
    list of Path
        ``report.html``.

    Raises
    ------
    FigureError
        When the table is missing or holds no finished run.
    """
    table = read_results(request.results, COMMAND)
    check_known("data set", request.datasets, sorted(table["dataset"].unique()))
    panels = read_panels(table, request.datasets, request.methods)
    require_panels(panels, table, "the report", request.datasets, COMMAND)
    shown = {panel.dataset for panel in panels}
    methods = set(request.methods or table["method"])
    table, _ = current_rows(table)
    table = table[table["dataset"].isin(shown) & table["method"].isin(methods)]
    return [style.write_whole(request.out / "report.html", report_html(table, panels, request.out))]


def report_html(table: pd.DataFrame, panels: Sequence[Panel], folder: Path) -> str:
    """Compose the page.

    Parameters
    ----------
    table : DataFrame
        The rows that the report is about.
    panels : sequence of Panel
        The same rows as curves.
    folder : Path
        Where files of other figures are looked for.

    Returns
    -------
    str
        No dates and no folders, so that equal results make equal pages.
    """
    sections = [
        ("figures", "Accuracy against privacy", _accuracy_figures(panels)),
        ("tables", "Accuracy in numbers", _accuracy_tables(panels)),
        ("comparisons", "Split by split", _comparisons(table)),
        ("time", "Time", _times(table)),
        ("cards", "Privacy cards", _cards(panels)),
        ("other", "Other figures and tables beside this page", _pictures(folder)),
        ("failures", "Runs without a result", _failures(table)),
        ("circumstances", "Made with", _circumstances(table)),
        ("commands", "Commands", _commands(panels)),
    ]
    filled = [section for section in sections if section[2]]
    links = "".join(f'<a href="#{name}">{escape(title)}</a>' for name, title, _ in filled)
    body = "".join(
        f'<h2 id="{name}">{escape(title)}</h2>\n{content}\n' for name, title, content in filled
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Lumberjack benchmark report</title><style>{_STYLE}</style></head>\n<body>"
        f"<h1>Lumberjack benchmark report</h1>\n<p>{_summary(table, panels)}</p>\n"
        f"<nav>{links}</nav>\n{body}</body></html>\n"
    )


def _summary(table: pd.DataFrame, panels: Sequence[Panel]) -> str:
    finished = table[table["status"] == "ok"]["run_hash"].nunique()
    failed = table[table["status"] != "ok"]["run_hash"].nunique()
    text = f"{finished} finished run{'s' * (finished != 1)}"
    if failed:
        text += f', <a class="alert" href="#failures">{failed} without a result</a>'
    sources = "; ".join(_source(panel) for panel in panels)
    left_out = dict.fromkeys(line for panel in panels for line in panel.left_out)
    notes = "".join(f'<br><span class="alert">{escape(line)}</span>' for line in left_out)
    return f"{text}. Rows: {sources}.{notes}"


def _source(panel: Panel) -> str:
    text = escape(f"{panel.title} ({panel.data_source})")
    return f'<span class="alert">{text}</span>' if panel.is_stand_in else text


def _accuracy_figures(panels: Sequence[Panel]) -> str:
    grouped = {name for _, _, names in _GROUPS for name in names}
    groups = [
        (title, [panel for panel in panels if panel.dataset in names])
        for _, title, names in _GROUPS
    ]
    groups.append(("Other data sets", [panel for panel in panels if panel.dataset not in grouped]))
    parts = []
    for title, chosen in groups:
        if chosen:
            with style.our_look():
                picture = style.as_bytes(draw_panels(chosen), "svg")
            names = ", ".join(panel.title for panel in chosen)
            parts.append(
                f"<h3>{escape(title)}</h3>\n"
                + _image("svg+xml", picture, f"{title}: accuracy against eps on {names}")
            )
    return "\n".join(parts)


def _image(kind: str, content: bytes, text: str) -> str:
    data = base64.b64encode(content).decode()
    return f'<img alt="{escape(text)}" src="data:image/{kind};base64,{data}">'


def _accuracy_tables(panels: Sequence[Panel]) -> str:
    parts = []
    for panel in panels:
        budgets = sorted(
            {point.eps for curve in panel.curves for point in curve.points} - {math.inf}
        )
        best = {
            eps: max(
                point.interval.mean
                for curve in panel.curves
                if curve.kind == "private"
                for point in curve.points
                if point.eps == eps
            )
            for eps in budgets
        }
        rows = [_accuracy_row(curve, budgets, best) for curve in panel.curves]
        header = ["method", *(f"eps = {eps:g}" for eps in budgets)] + ["value"] * (not budgets)
        parts.append(f"<h3>{_source(panel)}</h3>" + _table(header, rows))
    legend = (
        f"Mean over repetitions with its {INTERVAL_NAME}; bold: best private mean. "
        f"{DOUBTED} guarantee doubted or broken; {TUNED} tuned on validation rows without paying."
    )
    return "\n".join([*parts, f'<p class="note">{legend}</p>'])


def _accuracy_row(curve: Curve, budgets: Sequence[float], best: dict[float, float]) -> list[str]:
    name = escape(curve.label) + _marks(curve)
    by_eps = {point.eps: point.interval for point in curve.points}
    if curve.kind != "private":
        return [name, *([str(by_eps[math.inf])] * max(1, len(budgets)))]
    cells = []
    for eps in budgets:
        interval = by_eps.get(eps)
        text = "" if interval is None else str(interval)
        is_best = interval is not None and interval.mean == best[eps]
        cells.append(f"<b>{text}</b>" if is_best else text)
    return [name, *cells]


def _marks(curve: Curve) -> str:
    if curve.kind != "private":
        return ""
    return " " * (curve.is_doubted or curve.is_tuned) + (
        DOUBTED * curve.is_doubted + TUNED * curve.is_tuned
    )


def _comparisons(table: pd.DataFrame) -> str:
    methods = sorted(table["method"].unique())
    parts = []
    for ours in ("guided_lumberjack", "lumberjack"):
        if ours not in methods:
            continue
        rows = []
        for other in methods:
            if other in (ours, "majority"):
                continue
            try:
                result = compare(table, ours, other)
            except FigureError:
                # Several variants of a method, or nothing in common: compare.py names the choice.
                continue
            for item in result.comparisons:
                if (
                    item.eps is None
                    or sum(
                        c.dataset == item.dataset and c.data_source == item.data_source
                        for c in result.comparisons
                    )
                    == 1
                ):
                    rows.append(
                        [
                            escape(other),
                            escape(TITLES.get(item.dataset, item.dataset)),
                            str(item.n_pairs),
                            f"{item.difference.mean:+.4f}",
                            f"[{item.difference.lower:+.4f}, {item.difference.upper:+.4f}]",
                            f"{item.wins} / {item.ties} / {item.losses}",
                            f"{item.p_value:.3g}",
                        ]
                    )
        if rows:
            header = ["against", "data set", "splits", "mean difference", "95 % interval"]
            header += ["won / tied / lost", "Wilcoxon p"]
            parts.append(f"<h3>{escape(ours)}</h3>" + _table(header, rows))
    if not parts:
        return ""
    note = (
        "Differences in accuracy on the same split, each split averaged over the common eps. Splits "
        "share rows, so intervals and p are somewhat optimistic. By eps: "
        "<code>python scripts/compare.py A B</code>."
    )
    return "\n".join([*parts, f'<p class="note">{note}</p>'])


def _times(table: pd.DataFrame) -> str:
    rows_of_time = table[(table["metric"] == "fit_seconds") & table["value"].notna()]
    if rows_of_time.empty:
        return ""
    datasets = list(dict.fromkeys(rows_of_time["dataset"]))
    rows = []
    for (label, method), part in rows_of_time.groupby(["label", "method"]):
        cells = []
        for dataset in datasets:
            values = part[part["dataset"] == dataset]["value"]
            cells.append(f"{fmean(values):.2f}" if len(values) else "")
        rows.append([escape(str(label or method)), *cells])
    header = ["method", *(escape(TITLES.get(name, name)) for name in datasets)]
    note = "Mean seconds of one fit over repetitions and eps, while other runs may be under way."
    return _table(header, rows) + f'<p class="note">{note}</p>'


def _cards(panels: Sequence[Panel]) -> str:
    rows = []
    seen = set()
    for panel in panels:
        for curve in panel.curves:
            key = (curve.method, curve.mode, curve.card_status, curve.card_concerns)
            if key in seen:
                continue
            seen.add(key)
            # The table joins concerns by semicolons, which they contain too: kept as one text.
            concerns = [text for text in (curve.card_concerns,) if text]
            if curve.is_tuned:
                concerns.append("Hyper-parameters chosen on validation rows without privacy cost.")
            status = escape(curve.card_status)
            rows.append(
                [
                    escape(curve.label),
                    escape(curve.mode),
                    f'<span class="alert">{status}</span>' if curve.is_doubted else status,
                    escape(curve.card_claim),
                    "<br>".join(escape(text) for text in concerns),
                ]
            )
    rows.sort()
    header = [
        "method",
        "mode",
        "guarantee",
        "claimed (eps, delta), smallest eps",
        "known against it",
    ]
    return _table(header, rows, "text")


def _pictures(folder: Path) -> str:
    parts = []
    for name, title, command in _PICTURES:
        picture = folder / f"{name}.png"
        if picture.is_file():
            parts.append(
                f"<h3>{escape(title)}</h3>"
                + _image("png", picture.read_bytes(), title)
                + f"<pre>{escape(command)}</pre>"
            )
    comparison = folder / "table1.csv"
    if comparison.is_file():
        with comparison.open(encoding="utf-8", newline="") as file:
            header, *rows = list(csv.reader(file))
        shown = [[escape(cell) for cell in row] for row in rows]
        parts.append(
            "<h3>Table 1: the data sets, paper and ours</h3>"
            + _table([escape(cell) for cell in header], shown, "text")
            + "<pre>python scripts/make_figures.py table1</pre>"
        )
    return "\n".join(parts)


def _failures(table: pd.DataFrame) -> str:
    failed = table[table["status"] != "ok"].drop_duplicates("run_hash")
    if failed.empty:
        return ""
    rows = [
        [
            escape(str(row["dataset"])),
            escape(str(row["method"])),
            f"{row['eps']:g}",
            escape(str(row["status"])),
            f"<code>{escape(str(row['run_hash']))}</code>",
        ]
        for row in failed.to_dict("records")
    ]
    again = "<pre>python run.py --redo HASH</pre>"
    return _table(["data set", "method", "eps", "status", "hash"], rows, "text") + again


def _circumstances(table: pd.DataFrame) -> str:
    finished = table[table["status"] == "ok"].drop_duplicates("run_hash")
    rows = [
        [name, escape(str(value)), str(count)]
        for name, column in (("versions", "versions"), ("commit", "commit"), ("machine", "machine"))
        for value, count in sorted(finished[column].value_counts().items())
    ]
    seeds = sorted(finished["seed"].unique())
    rows.append(["seed", ", ".join(str(seed) for seed in seeds), str(len(finished))])
    return _table(["", "", "runs"], rows, "text")


def _commands(panels: Sequence[Panel]) -> str:
    datasets = {panel.dataset for panel in panels}
    grouped = {name for _, _, names in _GROUPS for name in names}
    names = [name for name, _, of_group in _GROUPS if datasets & set(of_group)]
    names += ["accuracy"] * bool(datasets - grouped)
    lines = [
        "# the results",
        *run_commands(panels),
        "# figures and this page, from the results table alone",
        f"python scripts/make_figures.py {' '.join([*names, 'report'])}",
        *_compare_command(panels),
    ]
    return f"<pre>{escape(chr(10).join(lines))}</pre>"


def _compare_command(panels: Sequence[Panel]) -> list[str]:
    for panel in panels:
        first, *others = dict.fromkeys(curve.method for curve in panel.curves)
        if others:
            command = f"python scripts/compare.py {first} {others[0]}"
            return ["# two methods, split by split", command]
    return []


def _table(header: Iterable[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "\n".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )
