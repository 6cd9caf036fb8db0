"""A picture in which a reader picks data set, metric and methods: data, markup and script in one text.

What is drawn is gathered here; ``explorer.html`` lays it out and ``explorer.js`` draws it, without
a server or anything from elsewhere. Colours, dashes and markers are those of the figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path as Outline

from lumberjack_bench.figures import style
from lumberjack_bench.figures.curves import Curve, Panel, read_panels, shared_keys
from lumberjack_bench.figures.panels import is_ours, marks_of
from lumberjack_bench.figures.request import METRIC, FigureError
from lumberjack_bench.metrics import METRICS

if TYPE_CHECKING:
    import pandas as pd

_SVG_COMMANDS = {
    Outline.MOVETO: "M",
    Outline.LINETO: "L",
    Outline.CURVE3: "Q",
    Outline.CURVE4: "C",
    Outline.CLOSEPOLY: "Z",
}

_FRAME_HEIGHT = 760
"""Of a notebook's frame around it, in pixels."""


@dataclass(frozen=True)
class Explorer:
    """All metrics of a results table to look around in.

    A notebook shows it as the value of a cell; :attr:`html` is a part for a page.

    Parameters
    ----------
    table : DataFrame
        The results table.
    datasets, methods : sequence of str
        Names to offer; empty for all.
    metric : str
        The one to begin with.
    """

    table: pd.DataFrame
    datasets: Sequence[str] = ()
    methods: Sequence[str] = ()
    metric: str = METRIC

    @cached_property
    def data(self) -> dict[str, Any]:
        """What is drawn, in numbers, texts and lists.

        Raises
        ------
        FigureError
            When there is no finished run with any metric of the harness.
        """
        panels = [
            panel
            for metric in METRICS
            for panel in read_panels(self.table, self.datasets, self.methods, metric)
        ]
        if not panels:
            raise FigureError("the results table has no finished run to look at.")
        keys = shared_keys(panels)
        looks = style.looks_of(keys.values())
        names: dict[tuple[str, str], str] = {}
        for method, variant in looks:
            # A variant is spelled by all its settings; in an address a number is enough.
            n_before = sum(known == method for known, _ in names)
            names[method, variant] = f"{method}.{n_before + 1}" if n_before else method
        methods: dict[str, dict[str, Any]] = {}
        for curve in (curve for panel in panels for curve in panel.curves):
            key = keys[curve.method, curve.variant]
            methods.setdefault(names[key], _as_method(curve, looks[key]))
        return {
            "metric": self.metric,
            "metrics": {
                panel.metric.name: {
                    "title": panel.metric.heading,
                    "sign": panel.metric.sign,
                    "interval": panel.metric.interval_name,
                }
                for panel in panels
            },
            "datasets": {
                _name(panel): {
                    "title": panel.title + " (stand-in)" * panel.is_stand_in,
                    "source": panel.data_source,
                }
                for panel in panels
            },
            "methods": dict(sorted(methods.items(), key=_place)),
            "curves": [
                {
                    "dataset": _name(panel),
                    "metric": panel.metric.name,
                    "method": names[keys[curve.method, curve.variant]],
                    "points": [
                        [
                            *map(_number, (point.eps, found.mean, found.lower, found.upper)),
                            found.n,
                        ]
                        for point in curve.points
                        for found in [point.interval]
                    ],
                }
                for panel in panels
                for curve in panel.curves
            ],
        }

    @cached_property
    def html(self) -> Markup:
        """Controls, picture, table and script, to stand once in a page."""
        folder = Path(__file__).parent
        templates = Environment(
            loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined
        )
        templates.policies["json.dumps_kwargs"] = {"sort_keys": False}
        script = Markup((folder / "explorer.js").read_text(encoding="utf-8"))
        page = templates.get_template("explorer.html")
        return Markup(page.render(data=self.data, script=script))

    def _repr_html_(self) -> str:
        # A frame of its own, so that several in a notebook do not get in each other's way.
        page = f'<!DOCTYPE html><meta charset="utf-8"><title>Results</title>{self.html}'
        look = f"width: 100%; height: {_FRAME_HEIGHT}px; border: 0"
        return f'<iframe title="Results" style="{look}" srcdoc="{escape(str(page))}"></iframe>'


def marker_outline(marker: str) -> str:
    """Return the outline of one of matplotlib's markers as an SVG path, about one unit wide."""
    shape = MarkerStyle(marker)
    outline = shape.get_path().transformed(shape.get_transform())
    steps = []
    for ends, code in outline.iter_segments():
        # In SVG y grows downwards, and closing has no numbers.
        numbers = (ends.reshape(-1, 2) * (1, -1)).ravel()
        shown = (
            []
            if code == Outline.CLOSEPOLY
            else [f"{round(number, 3) + 0.0:g}" for number in numbers]
        )
        steps.append(_SVG_COMMANDS[Outline.code_type(code)] + " ".join(shown))
    return "".join(steps)


def _as_method(curve: Curve, look: style.Look) -> dict[str, Any]:
    return {
        "label": curve.label + marks_of(curve),
        "kind": curve.kind,
        "isDoubted": curve.is_doubted,
        "isOurs": is_ours(curve),
        "colour": look.colour,
        "width": look.width,
        "marker": marker_outline(look.marker) if look.marker else "",
    }


def _place(method: tuple[str, dict[str, Any]]) -> tuple[bool, int, str]:
    """Sort ours first, then private ones by label, then references."""
    _, known = method
    return (
        not known["isOurs"],
        ["private", "reference", "majority"].index(known["kind"]),
        known["label"],
    )


def _name(panel: Panel) -> str:
    return panel.dataset + ".stand_in" * panel.is_stand_in


def _number(number: float) -> float | None:
    """Round to six digits; JSON has no infinite and no missing number."""
    return float(f"{number:.6g}") if math.isfinite(number) else None
