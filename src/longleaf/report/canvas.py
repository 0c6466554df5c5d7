"""Figures in one style, saved as files or as inline SVG in the colours of the page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

INK, MUTED, GRID, PAPER = "#1a2421", "#5d6b66", "#dfe5e2", "#fffffe"
BLUE, ORANGE, GREEN, PURPLE = "#2a66ad", "#c8610f", "#2b7d4b", "#7a4fa3"
VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    PAPER: "paper",
    BLUE: "blue",
    ORANGE: "orange",
    GREEN: "green",
    PURPLE: "purple",
}
"""The CSS variable of each colour; its value differs between light and dark mode."""

SIZE = (4.7, 3.25)
PIXELS_PER_INCH = 200
STYLE: Any = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 24,
    "axes.labelsize": 9,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "axes.unicode_minus": True,
    "figure.facecolor": PAPER,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.labelcolor": MUTED,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
}


def new_axes(title: str, x: str, y: str) -> Axes:
    """Return the axes of a new figure, with a title and axis labels."""
    with matplotlib.rc_context(STYLE):
        axes: Axes = Figure(figsize=SIZE, layout="constrained").add_subplot()
        axes.set_title(title)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
    return axes


def retitle(axes: Axes, title: str) -> None:
    """Change the title and set its style again."""
    with matplotlib.rc_context(STYLE):
        axes.set_title(title)


def add_legend(axes: Axes, columns: int = 3) -> None:
    """Put the legend between the title and the plot, where it covers nothing."""
    with matplotlib.rc_context(STYLE):
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(-0.02, 0.98),
            ncols=columns,
            columnspacing=1.2,
            handlelength=1.4,
            handletextpad=0.5,
            borderaxespad=0.2,
        )


def share_limits(many: Sequence[Axes]) -> None:
    """Give the plots of several models the same axis limits, so that they can be compared by eye."""
    for which in ("x", "y"):
        limits = [getattr(axes, f"get_{which}lim")() for axes in many]
        low, high = min(one[0] for one in limits), max(one[1] for one in limits)
        for axes in many:
            getattr(axes, f"set_{which}lim")(low, high)
            if getattr(axes, f"get_{which}scale")() == "log":
                plain_log_ticks(axes, which)  # the ticks that fit depend on the limits


def plain_log_ticks(axes: Axes, which: str) -> None:
    """Label ticks 100 instead of 10 to the power of 2, with ticks at 2 and 5 if they fit."""
    for name in which:
        low, high = getattr(axes, f"get_{name}lim")()
        axis = getattr(axes, f"{name}axis")
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 200 * max(low, 1e-9) else (1,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(NullFormatter())


def as_file(axes: Axes, form: str) -> bytes:
    """Return a figure as the bytes of an SVG or PNG file with a white background."""
    return _saved(axes, form, transparent=False)


def as_inline(axes: Axes, name: str, about: str) -> str:
    """Return a figure as inline SVG in the page's colours and font, without external references."""
    svg = _saved(axes, "svg", transparent=True, salt=name).decode()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", svg)
    svg = svg.replace("xlink:href", "href")
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r"font-family: [^;\"]*; ?", "", svg)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    opening = re.compile(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', re.DOTALL)
    return opening.sub(rf'<svg \1 role="img" aria-label="{about}">', svg, count=1).strip()


def _saved(axes: Axes, form: str, *, transparent: bool, salt: str = "longleaf") -> bytes:
    figure = axes.figure
    assert isinstance(figure, Figure)
    file = io.BytesIO()
    metadata = {"Date": None} if form == "svg" else {}  # the same data give the same file
    with matplotlib.rc_context(STYLE | {"svg.hashsalt": salt}):  # ids must differ between the plots of a page
        figure.savefig(
            file, format=form, dpi=PIXELS_PER_INCH if form == "png" else 72, transparent=transparent,
            metadata=metadata,
        )  # fmt: skip
    figure.set_layout_engine("none")  # the layout is computed once; later saves are faster
    return file.getvalue()


def percent_ticks(axes: Axes, which: Iterable[str] = ("x", "y")) -> None:
    """Set axes to run from 0 to 1, with ticks in percent."""
    for name in which:
        axis = getattr(axes, f"{name}axis")
        axis.set_ticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
