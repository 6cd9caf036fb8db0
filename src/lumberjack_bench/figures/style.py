"""The one look of all figures: colours, markers, sizes, and how files are written.

Colours are those of Okabe and Ito, told apart with every common colour blindness; markers and the
names beside the lines tell them apart in grey. Dashes are kept for doubted guarantees.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib.figure import Figure

from lumberjack_bench.figures.request import Request

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

BLACK = "#000000"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
OLIVE = "#8A7F00"
"""Okabe and Ito's yellow, darkened: the original is too pale for a line on white."""
INK = "#222222"
GREY = "#6E6E6E"
PALE = "#B8B8B8"

RESOLUTION = 200
"""Dots per inch of the PNG files and of what is rasterised inside the PDF."""

LABEL_SIZE = 8.0
"""Of the names beside lines, in points."""

_SETTINGS: Mapping[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that all machines draw the same
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.7,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "text.color": INK,
    "lines.solid_capstyle": "round",
    "lines.dash_capstyle": "butt",
    "figure.dpi": 100,
    "savefig.dpi": RESOLUTION,
    "pdf.fonttype": 42,  # text that can be searched and edited
    "svg.hashsalt": "lumberjack",  # else every file has other identifiers
    "mathtext.fontset": "dejavusans",
}


@dataclass(frozen=True, slots=True)
class Look:
    """How the curve of a method is drawn."""

    colour: str
    """Of line and marker."""
    marker: str = ""
    """Matplotlib's name of it; empty for horizontal lines."""
    width: float = 1.5
    """Of the line, in points."""


LOOKS = {
    "lumberjack": Look(BLUE, "o", 2.2),
    "additive_forest": Look(VERMILION, "D", 2.2),
    "guided_lumberjack": Look(SKY, ">", 2.2),
    "snr": Look(ORANGE, "s"),
    "smooth_sensitivity": Look(GREEN, "^"),
    "suihkonen": Look(PURPLE, "v"),
    "diffprivlib": Look(SKY, "P"),
    "diffprivlib_tuned": Look(OLIVE, "X"),
    "dp_logistic_regression": Look(BLACK, "d"),
    "dp_boosted_random_trees": Look(GREEN, "h"),
    "dp_naive_bayes": Look(OLIVE, "p"),
    "adassp": Look(PURPLE, "H"),
    "adassp_boosted": Look(PURPLE, "8"),
    "dp_ebm": Look(SKY, "<"),
    "diffprivlib_logistic_regression": Look(ORANGE, "*"),
    "synthetic_boosting": Look(GREY, "."),
    "hist_gradient_boosting": Look(BLACK, "", 1.3),
    "logistic_regression": Look(GREY, "", 1.3),
    "extra_trees": Look(BLACK, "", 1.3),
    "decision_tree": Look(GREY, "", 1.3),
    "majority": Look(GREY, "", 0.7),
}

_SPARE_LOOKS = tuple(
    Look(colour, marker)
    for marker, colours in (
        ("*", (OLIVE, PURPLE, BLACK, VERMILION)),
        ("p", (SKY, ORANGE, GREEN, BLUE)),
        ("<", (BLACK, VERMILION, BLUE, GREEN)),
        (">", (PURPLE, OLIVE, SKY, ORANGE)),
    )
    for colour in colours
)


def looks_of(keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Look]:
    """Give every curve (method, variant) of a figure its look, the same in all panels.

    The first variant of a known method has the method's own look, everything else a spare one.
    """
    looks: dict[tuple[str, str], Look] = {}
    taken: set[str] = set()
    spare = 0
    for method, variant in dict.fromkeys(keys):
        if method in LOOKS and method not in taken:
            looks[method, variant] = LOOKS[method]
            taken.add(method)
        else:
            looks[method, variant] = _SPARE_LOOKS[spare % len(_SPARE_LOOKS)]
            spare += 1
    return looks


@contextmanager
def our_look() -> Iterator[None]:
    """Draw in the look of this project, whatever the user's own matplotlib settings are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def add_axes(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Add axes at a place given in inches from the lower left corner of the figure."""
    across, up = figure.get_size_inches()
    return figure.add_axes((left / across, bottom / up, width / across, height / up))


def write_above(
    axes: Axes, text: str, points: float, *, at: float = 0.0, **look: Any
) -> Annotation:
    """Write a line that begins `points` above the axes, at a share of their width."""
    return axes.annotate(
        text,
        (at, 1),
        xycoords="axes fraction",
        xytext=(0, points),
        textcoords="offset points",
        **look,
    )


def as_bytes(figure: Figure, kind: str) -> bytes:
    """Return a figure drawn under :func:`our_look` as a "pdf", "png" or "svg", the same each time."""
    no_dates: dict[str, dict[str, None]] = {
        "pdf": {"CreationDate": None, "ModDate": None},
        "png": {"Software": None},
        "svg": {"Date": None},
    }
    buffer = io.BytesIO()
    with our_look():
        figure.savefig(buffer, format=kind, metadata=no_dates[kind])
    return buffer.getvalue()


def save(figure: Figure, request: Request) -> list[Path]:
    """Write a figure drawn under :func:`our_look` as vector PDF and as PNG."""
    return [request.write(f".{kind}", as_bytes(figure, kind)) for kind in ("pdf", "png")]
