"""The one look of all figures: colours, markers, sizes, and how files are written.

Colours are those of Okabe and Ito, told apart with every common colour blindness; markers and the
names beside the lines tell them apart in grey. Dashes are kept for doubted guarantees.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

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
    """How the curve of a method is drawn.

    Attributes
    ----------
    colour : str
        Of line and marker.
    marker : str
        Matplotlib's name of it; empty for horizontal lines.
    width : float
        Of the line, in points.
    """

    colour: str
    marker: str = ""
    width: float = 1.5


LOOKS = {
    "lumberjack": Look(BLUE, "o", 2.2),
    "guided_lumberjack": Look(VERMILION, "D", 2.2),
    "snr": Look(ORANGE, "s"),
    "smooth_sensitivity": Look(GREEN, "^"),
    "suihkonen": Look(PURPLE, "v"),
    "diffprivlib": Look(SKY, "P"),
    "diffprivlib_tuned": Look(OLIVE, "X"),
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
    """Give every curve of a figure its look.

    Parameters
    ----------
    keys : iterable of (str, str)
        Method and variant of each curve. The first variant of a known method has the method's
        own look, everything else a spare one.

    Returns
    -------
    dict
        The same curve looks the same in all panels of a figure.
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


def as_bytes(figure: Figure, kind: str) -> bytes:
    """Return a figure as the content of a file, the same each time.

    Parameters
    ----------
    figure : Figure
        Drawn under :func:`our_look`.
    kind : {"pdf", "png", "svg"}
        Format.

    Returns
    -------
    bytes
    """
    no_dates: dict[str, dict[str, None]] = {
        "pdf": {"CreationDate": None, "ModDate": None},
        "png": {"Software": None},
        "svg": {"Date": None},
    }
    buffer = io.BytesIO()
    with our_look():
        figure.savefig(buffer, format=kind, metadata=no_dates[kind])
    return buffer.getvalue()


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as vector PDF and as PNG.

    Parameters
    ----------
    figure : Figure
        Drawn under :func:`our_look`.
    folder : Path
        Where to; it is created.
    name : str
        File name without ending.

    Returns
    -------
    list of Path
        The two files.
    """
    return [
        write_whole(folder / f"{name}.{kind}", as_bytes(figure, kind)) for kind in ("pdf", "png")
    ]


def write_whole(path: Path, content: bytes | str) -> Path:
    """Write a file so that a reader never sees a part of it.

    Parameters
    ----------
    path : Path
        The file; its folder is created.
    content : bytes or str
        All of it.

    Returns
    -------
    Path
        The file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path
