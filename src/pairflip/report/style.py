"""One look for all figures: print-ready, readable without colour, no state shared with other users of matplotlib.

Colours are named by what they are for (`ROLES`): in a file they are what stands here, on a page what the style sheet
says for light and for dark.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from pairflip.text import number, shorten

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe & Ito's palette, which colour-blind readers can tell apart, without its yellow (too faint on paper).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
INK, QUIET, FAINT, BACK = "#000000", "#8a8a8a", "#e6e8eb", "#ffffff"
ROLES = {INK: "ink", QUIET: "quiet", FAINT: "faint", BACK: "back"} | {c: f"c{i}" for i, c in enumerate(COLOURS[:6])}
TEXT = 9.0
_PIXELS = 100.0  # per inch, on a page


@dataclass(frozen=True)
class Tips:
    """What the pointer shows at a mark: `form` with {0}, ... replaced from `columns` (one text, or one a mark)."""

    form: str
    columns: tuple[str | tuple[str, ...], ...]

    def text(self, mark: int) -> str:
        """The text at one mark."""
        text = ""
        for piece in self.form.split("{"):  # names may hold braces, so nothing is replaced twice
            place, end, rest = piece.partition("}")
            column = self.columns[int(place)] if end else ""
            text += (column if isinstance(column, str) else column[mark]) + (rest if end else piece)
        return text


@dataclass
class TipBook:
    """Texts under the pointer, each list once: the page's script puts them together."""

    forms: list[tuple[str, list[int]]] = field(default_factory=list)
    columns: list[str | tuple[str, ...]] = field(default_factory=list)
    _places: dict[Any, int] = field(default_factory=dict)  # of forms and of columns

    def place(self, tips: Tips) -> int:
        """Where these texts are."""
        if tips not in self._places:
            for column in tips.columns:
                if column not in self._places:
                    self._places[column] = len(self.columns)
                    self.columns.append(column)
            self._places[tips] = len(self.forms)
            self.forms.append((tips.form, [self._places[column] for column in tips.columns]))
        return self._places[tips]


TIPS: WeakKeyDictionary[Artist, Tips] = WeakKeyDictionary()
LEGEND_LINES: WeakKeyDictionary[Axes, int] = WeakKeyDictionary()  # a title must stand above them


def tell(artist: Artist, form: str, *columns: str | list[str]) -> None:
    """Give the marks of an artist texts that a page shows under the pointer (files and windows ignore them)."""
    TIPS[artist] = Tips(form, tuple(c if isinstance(c, str) else tuple(c) for c in columns))


@contextmanager
def any_glyph() -> Iterator[None]:
    """No warnings of names whose characters the font lacks, such as emoji."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def new_axes(ax: Axes | None, width: float = 6.0, height: float = 3.6) -> Axes:
    """The given axes, or those of a new figure that no window or notebook knows of (``ax.figure`` has it)."""
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(width, height), layout="constrained").add_subplot()
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=TEXT)
    return ax


def page_axes(width: float, height: float, fixed: bool) -> Axes:
    """Axes for a page, in its pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / _PIXELS, height / _PIXELS), dpi=_PIXELS, layout=None if fixed else "constrained")
    FigureCanvasAgg(figure)  # measures texts
    if fixed:
        figure.subplots_adjust(left=82 / width, right=1 - 12 / width, bottom=48 / height, top=1 - 14 / height)
    figure.patch.set_visible(False)
    ax = new_axes(figure.add_subplot())
    ax.patch.set_visible(False)
    return ax


def figure_of(ax: Axes) -> Figure:
    """The whole figure that the axes are part of."""
    figure = ax.get_figure(root=True)
    assert figure is not None, "these axes were removed from their figure"
    return figure


def inches(ax: Axes) -> float:
    """Width of the axes."""
    return float(figure_of(ax).get_figwidth() * ax.get_position().width)


def label_axes(ax: Axes, x: str, y: str) -> None:
    """Labels, and faint lines behind everything at the ticks of a y axis that has one; names are never formulas."""
    if y:
        ax.set_axisbelow(True)
        ax.grid(axis="y", color=FAINT, linewidth=0.7)
    plain: dict[str, Any] = {"parse_math": False, "fontsize": TEXT + 0.5}
    ax.set_xlabel(x, **plain)
    ax.set_ylabel(y, **plain)


def legend_above(ax: Axes, more: Sequence[Artist] = (), backwards: bool = False, beside: bool = False) -> None:
    """What the lines mean, above the axes in as many columns as there is room for, or beside them."""
    handles, labels = ax.get_legend_handles_labels()
    if backwards:
        handles, labels = handles[::-1], labels[::-1]
    handles, labels = [*handles, *more], [*labels, *(str(artist.get_label()) for artist in more)]
    widest = max((len(text) for text in labels), default=1)
    columns = max(1, min(int(inches(ax) / (0.085 * widest + 0.5)), len(labels)))
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.3, "ncols": columns}
    place |= {"columnspacing": 1.4, "handletextpad": 0.6}
    if beside:
        place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    legend = ax.legend(handles, labels, fontsize=TEXT, frameon=False, **place)
    for text in legend.get_texts():
        text.set_parse_math(False)
    if beside:
        return
    rows = LEGEND_LINES[ax] = -(-len(labels) // columns)
    figure = figure_of(ax)
    if figure.get_layout_engine() is None:  # margins are fixed: more than one line of the legend needs more room
        figure.subplots_adjust(top=1.0 - (14.0 + 22.0 * (rows - 1)) / (figure.get_figheight() * _PIXELS))


def boxes(ax: Axes, left: Any, right: Any, bottom: Any, top: Any, colours: Any) -> Artist:
    """Filled rectangles without edges; ends are arrays or numbers."""
    from matplotlib.collections import PolyCollection

    a, b, c, d = np.broadcast_arrays(left, right, bottom, top)
    corners = np.stack([np.stack([a, b, b, a]), np.stack([c, c, d, d])]).T
    return ax.add_collection(PolyCollection(list(corners), facecolors=colours, linewidths=0))


def tinted(alpha: float) -> tuple[float, float, float, float]:
    """The first colour, the fainter the lower `alpha`."""
    from matplotlib.colors import to_rgb

    return (*to_rgb(COLOURS[0]), alpha)


def size_axis(ax: Axes, unit: str, y: str) -> None:
    """Labels, and ticks of the x axis at whole numbers only: sizes are counts."""
    from matplotlib.ticker import MaxNLocator

    label_axes(ax, f"size (number of {unit}s)", y)
    few = 10 if inches(ax) > 4 else 6
    ax.xaxis.set_major_locator(MaxNLocator(nbins=few, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))


def name_rows(ax: Axes, labels: Sequence[str]) -> None:
    """A name for each row of a figure of columns, shorter where the figure is narrow."""
    texts = [shorten(text, 17) if inches(ax) < 4 else text for text in labels]
    ax.set_yticks(range(len(texts)), labels=texts, fontsize=TEXT, parse_math=False)
    ax.tick_params(axis="y", length=0)


def plain_log(ax: Axes, name: Literal["x", "y"], low: float, high: float) -> None:
    """A logarithmic axis with round ticks, written as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    ax.set(**{f"{name}scale": "log"})
    axis: Axis = getattr(ax, f"{name}axis")
    subs = (1.0,) if high > 500 * low else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=subs, numticks=7))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axis.set_minor_locator(NullLocator())
