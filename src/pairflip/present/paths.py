"""Coefficients of the final fits against size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairflip.present.numbers import coefficient_paths
from pairflip.present.style import COLOURS, MARKERS, QUIET, TEXT, label_axes, new_axes, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.crossval.curve import SizeCurve


def plot_paths(curve: SizeCurve, ax: Axes | None = None, relative: bool | None = None) -> Axes:
    """Draw the coefficient of each column against size, where the final fit has the column.

    The seven columns that matter most have colours, markers and names; the others are grey. `relative` None: divide
    each column by its largest coefficient if their units differ too much for one axis.
    """
    ax = new_axes(ax)
    paths = coefficient_paths(curve, relative)
    ax.axhline(0, color=QUIET, linewidth=0.8)
    for i, values in reversed(list(enumerate(paths.values.T))):
        named = i < len(COLOURS)
        (line,) = ax.plot(
            paths.sizes,
            values,
            color=COLOURS[i] if named else QUIET,
            marker=MARKERS[i] if named else ".",
            markersize=4.5 if named else 3,
            linewidth=1.5 if named else 0.8,
            label=paths.labels[i] if named else None,
        )
        line.set_gid(f"path-{i}")
    handles, labels = ax.get_legend_handles_labels()
    legend = ax.legend(
        handles[::-1], labels[::-1], fontsize=TEXT - 1, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0)
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    y = "coefficient / its largest" if paths.relative else "coefficient"
    more = "" if len(paths.labels) <= len(COLOURS) else f"{paths.cut}, {len(COLOURS)} of them named"
    label_axes(ax, "size (number of columns)", y, more)
    whole_ticks(ax)
    return ax
