"""One look for all figures: print-ready, readable without colour, no state shared with other users of matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito's palette, which colour-blind readers can tell apart, without its yellow (too faint on paper).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
QUIET = "#8a8a8a"
TEXT = 9.0


def new_axes(ax: Axes | None, width: float = 6.0, height: float = 3.6) -> Axes:
    """The given axes, or those of a new figure that no window or notebook knows of (``ax.figure`` has it)."""
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(width, height), layout="constrained").add_subplot()
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=TEXT)
    return ax


def figure_of(ax: Axes) -> Figure:
    """The whole figure that the axes are part of."""
    figure = ax.get_figure(root=True)
    assert figure is not None, "these axes were removed from their figure"
    return figure


def label_axes(ax: Axes, x: str, y: str, title: str = "") -> None:
    """Labels and title in the sizes of this style; names in them are text, never formulas."""
    plain: dict[str, Any] = {"parse_math": False}
    ax.set_xlabel(x, fontsize=TEXT + 1, **plain)
    ax.set_ylabel(y, fontsize=TEXT + 1, **plain)
    if title:
        ax.set_title(title, fontsize=TEXT + 1, loc="left", **plain)


def whole_ticks(ax: Axes) -> None:
    """Ticks of the x axis at whole numbers only: sizes are counts."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))


def plain_log(ax: Axes) -> None:
    """A logarithmic y axis with ticks at 1, 2 and 5 times powers of ten, written as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    from pairflip.text import number

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    ax.yaxis.set_minor_formatter(NullFormatter())
