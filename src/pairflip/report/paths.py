"""Coefficients of the final fits against size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pairflip.report.numbers import Paths, by_size, coefficient_paths
from pairflip.report.registry import FigureTable, PageFigure, Room
from pairflip.report.style import (
    COLOURS,
    MARKERS,
    QUIET,
    TEXT,
    figure_of,
    grid,
    label_axes,
    legend_above,
    new_axes,
    set_title,
    tell,
    whole_ticks,
)
from pairflip.text import aligned, column_labels, number, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.selection.curve import SizeCurve


def plot_paths(curve: SizeCurve, ax: Axes | None = None, relative: bool | None = None) -> Axes:
    """Draw the coefficient of each column against size, where the final fit has the column.

    The seven columns that matter most have colours, markers and names; the others are grey.

    Parameters
    ----------
    curve
        What `select_size` returned.
    ax
        Where to draw; a new figure if absent.
    relative
        Whether to divide each column by its largest coefficient; None: if their units differ too much for one axis.
    """
    ax = new_axes(ax)
    paths = coefficient_paths(curve, relative)
    draw_paths(paths, ax)
    set_title(ax, _titles(paths)[0])
    return ax


def draw_paths(paths: Paths, ax: Axes) -> None:
    """The drawing of `coefficient_paths`."""
    grid(ax)
    ax.axhline(0, color=QUIET, linewidth=0.8)
    for i, values in reversed(list(enumerate(paths.values.T))):
        named = i < len(COLOURS)
        (line,) = ax.plot(
            paths.sizes,
            values,
            color=COLOURS[i] if named else QUIET,
            marker=MARKERS[i] if named else "o",
            markersize=5 if named else 2,
            linewidth=1.6 if named else 0.8,
            label=paths.labels[i] if named else None,
        )
        has = np.isfinite(values)
        coefs = [number(c) for c in paths.coefs[has, i]]
        tell(line, "{0}, {1}: {2}", paths.labels[i], [plural(int(k), paths.what) for k in paths.sizes[has]], coefs)
    label_axes(ax, f"size (number of {paths.what}s)", "coefficient / its largest" if paths.relative else "coefficient")
    whole_ticks(ax)
    _legend(ax)


def _legend(ax: Axes) -> None:
    """Names next to the figure, the first column first; above it where it is narrow."""
    if figure_of(ax).get_figwidth() < 5:
        legend_above(ax, backwards=True)
        return
    handles, labels = ax.get_legend_handles_labels()
    legend = ax.legend(
        handles[::-1], labels[::-1], fontsize=TEXT, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0)
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def _titles(paths: Paths) -> list[str]:
    more = len(paths.labels) > len(COLOURS)
    return [f"{paths.cut}, {len(COLOURS)} of them named" if more else ""]


def _labels(paths: Paths) -> list[str]:
    what = "Coefficients, each divided by its largest value," if paths.relative else "Coefficients"
    return [
        f"Line chart: {what} of the final fits against size, {paths.cut}. The table below the figure has the numbers."
    ]


def _caption(curve: SizeCurve, paths: Paths) -> str:
    divided = (
        ", each divided by its largest value because the columns' units differ too much for one axis (the table has "
        "the coefficients themselves)"
        if paths.relative
        else ""
    )
    grey = f"; those beyond the first {len(COLOURS)} are grey" if len(paths.labels) > len(COLOURS) else ""
    return (
        f"Coefficients of the final fits{divided}: {paths.cut}{grey}. A coefficient that jumps or changes sign when "
        "another column enters shares its information with that column."
    )


def _table(curve: SizeCurve, paths: Paths, room: Room) -> FigureTable:
    """Coefficients by column and size; the whole table has the same decimals or the same digits."""
    texts = np.array(aligned(paths.coefs.ravel(), least=3), dtype=object).reshape(paths.coefs.shape)
    names = column_labels(curve.names, paths.columns.tolist(), 80)
    heads = ["Column", *(str(k) for k in curve.sizes[by_size(curve)])]
    caption = "Coefficients of the final fits, by size; – where the size does not have the column"
    return FigureTable(
        "Table: coefficients by size", heads, [[name, *texts[:, i]] for i, name in enumerate(names)], caption
    )


PATHS = PageFigure(
    "paths",
    "How coefficients change with size",
    lambda curve, size, room: coefficient_paths(curve, limit=room.paths),
    (draw_paths,),
    labels=_labels,
    titles=_titles,
    caption=_caption,
    table=_table,
    shape=lambda paths, wide: (820.0, 360.0) if wide else (350.0, 280.0 + 17 * min(len(paths.labels), 7)),
    applies=lambda curve: curve.outputs is None,
)
