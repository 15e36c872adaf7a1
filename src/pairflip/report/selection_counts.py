"""Selection counts as a heat map of size and column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.report.numbers import CountMap, by_size, count_map
from pairflip.report.registry import FigureTable, PageFigure, Room
from pairflip.report.style import (
    BACK,
    COLOURS,
    FAINT,
    TEXT,
    inches,
    label_axes,
    legend_above,
    new_axes,
    set_title,
    tell,
)
from pairflip.report.vocabulary import unit_labels
from pairflip.text import percent, plural, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.selection.curve import SizeCurve

_ROW = 0.19  # inches


def plot_selection_counts(curve: SizeCurve, ax: Axes | None = None, limit: int = 40) -> Axes:
    """Draw in what fraction of the folds each column was selected, by size; dots are the final fit on all rows.

    Parameters
    ----------
    curve
        What `select_size` returned.
    ax
        Where to draw; a new figure if absent.
    limit
        Largest number of columns; the most selected ones are shown, and the title says out of how many.
    """
    counts = count_map(curve, limit)
    width = min(12.0, 4.2 + 0.28 * counts.sizes.size)
    ax = new_axes(ax, width=width, height=1.5 + _ROW * counts.columns.size)
    draw_selection_counts(counts, ax)
    set_title(ax, counts.cut)
    return ax


def draw_selection_counts(counts: CountMap, ax: Axes) -> None:
    """The drawing of `count_map`: one row for each column, the fuller the colour the more folds."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch, Rectangle

    rows, n = counts.columns.size, counts.sizes.size
    narrow = inches(ax) < 4
    ax.set_xlim(-0.5, n - 0.5)
    ax.set_ylim(rows - 0.5, -1.35 if counts.marks else -0.5)  # a row for the flags
    ax.add_patch(Rectangle((-0.5, -0.5), n, rows, facecolor=FAINT, alpha=0.6, linewidth=0))
    at, row = np.nonzero((counts.counts > 0) | counts.final)
    corners = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
    opacity = 0.05 + 0.95 * counts.fraction[at, row]
    cells = PolyCollection(
        np.stack([at, row], axis=1)[:, None, :] + corners,
        facecolors=[(*to_rgb(COLOURS[0]), round(float(a), 2)) for a in opacity],
        linewidths=0,
    )
    ax.add_collection(cells)
    tell(
        cells,
        f"{{0}}, {{1}}: {{2}} of {plural(counts.n_folds, 'fold')}{{3}}",
        [counts.labels[r] for r in row],
        [plural(int(counts.sizes[s]), counts.what) for s in at],
        [f"{counts.counts[s, r]:,}" for s, r in zip(at, row, strict=True)],
        [", in the final fit" if counts.final[s, r] else "" for s, r in zip(at, row, strict=True)],
    )
    gap: dict[str, Any] = {"colors": BACK, "linewidths": 0.8}
    ax.hlines(np.arange(1, rows) - 0.5, -0.5, n - 0.5, **gap)
    if n <= 60:
        ax.vlines(np.arange(1, n) - 0.5, -0.5, rows - 0.5, **gap)
    dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": COLOURS[1], "markeredgecolor": BACK}
    ax.plot(*np.nonzero(counts.final), markersize=5 if n <= 40 else 3, markeredgewidth=0.7, label="final fit", **dots)
    places = {int(k): s for s, k in enumerate(counts.sizes)}
    for mark in counts.marks:
        flag: dict[str, Any] = {"marker": "v", "markersize": 6, "linestyle": "none"}
        colour = COLOURS[1] if mark.recommended else COLOURS[2]
        ax.plot([places[mark.size]], [-0.95], color=colour, label=f"{mark.text}: {mark.size}", **flag)
    every = -(-n // (8 if narrow else 20))
    ax.set_xticks(np.arange(0, n, every), labels=[str(k) for k in counts.sizes[::every]])
    texts = [shorten(text, 17) if narrow else text for text in counts.labels]
    ax.set_yticks(np.arange(rows), labels=texts, fontsize=TEXT, parse_math=False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    label_axes(ax, f"size (number of {counts.what}s)", "")
    scale = []
    for part in (0.25, 0.5, 1.0):
        text = f"{percent(part)} of the folds" if part < 1 else f"all {plural(counts.n_folds, 'fold')}"
        scale.append(Patch(facecolor=(*to_rgb(COLOURS[0]), 0.05 + 0.95 * part), linewidth=0, label=text))
    legend_above(ax, scale)


def _labels(counts: CountMap) -> list[str]:
    return [
        f"Heat map of how many of {plural(counts.n_folds, 'fold')} selected each {counts.what}, by size: {counts.cut}. "
        "The table below the figure has the numbers."
    ]


def _caption(curve: SizeCurve, counts: CountMap) -> str:
    return (
        f"How many of {counts.n_folds:,} folds selected a {counts.what} (the fuller the colour, the more), by size: "
        f"{counts.cut}. Dots mark the final fit on all rows. Folds have most of their rows in common, so a column of "
        "noise can be selected in every one of them, too: a full row says that the selection does not depend on a few "
        "rows, not that the column matters."
    )


def _table(curve: SizeCurve, counts: CountMap, room: Room) -> FigureTable:
    names = unit_labels(curve, counts.columns.tolist(), 80)
    rows = [[name, *(str(c) for c in counts.counts[:, i])] for i, name in enumerate(names)]
    heads = [counts.what.capitalize(), *(str(k) for k in curve.sizes[by_size(curve)])]
    caption = f"Folds that selected each {counts.what}, by size, of {counts.n_folds:,} folds"
    return FigureTable("Table: selection counts", heads, rows, caption)


def _shape(counts: CountMap, wide: bool) -> tuple[float, float]:
    height = 110.0 + 100 * _ROW * counts.columns.size
    return (820.0, height) if wide else (350.0, height + 50)


SELECTION_COUNTS = PageFigure(
    "selection_counts",
    "How often each column was selected",
    lambda curve, size, room: count_map(curve, room.columns, 30),
    (draw_selection_counts,),
    labels=_labels,
    titles=lambda counts: [counts.cut],
    caption=_caption,
    table=_table,
    shape=_shape,
)
