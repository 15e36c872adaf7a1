"""How often random halves of the rows selected each column, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pairflip.report.numbers import FrequencyBars, frequency_bars
from pairflip.report.registry import FigureTable, PageFigure, Room
from pairflip.report.stability_words import bound_words, known, null_words
from pairflip.report.style import COLOURS, QUIET, TEXT, inches, label_axes, legend_above, new_axes, set_title, tell
from pairflip.selection.verdict import size_to_show
from pairflip.text import NOTHING, aligned, percent, plural, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.selection.curve import SizeCurve

_ROW = 0.19  # inches
_UNKNOWN = " What noise would give here is not known; --null 20 (in Python null=20) tells."


def plot_frequencies(curve: SizeCurve, ax: Axes | None = None, size: int | None = None, limit: int = 30) -> Axes:
    """Draw in what fraction of the half-samples each column was selected, the most selected first.

    Parameters
    ----------
    curve
        What `select_size` returned, with half-samples (``stability=50``).
    ax
        Where to draw; a new figure if absent.
    size
        Number of columns; None: the recommended one.
    limit
        Largest number of columns shown.
    """
    bars = frequency_bars(curve, size_to_show(curve) if size is None else size, limit)
    ax = new_axes(ax, width=6.0, height=1.3 + _ROW * len(bars.labels))
    draw_frequencies(bars, ax)
    set_title(ax, bars.cut)
    return ax


def draw_frequencies(bars: FrequencyBars, ax: Axes) -> None:
    """The drawing of `frequency_bars`: chosen columns in one colour, others in another, the threshold as a line."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch

    rows = len(bars.labels)
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(rows - 0.4, -0.6)
    place, chosen = np.arange(rows), bars.chosen
    for which, colour in ((chosen, COLOURS[0]), (~chosen, QUIET)):
        at, ends = place[which], bars.frequency[which]
        corners = [[(0, i - 0.35), (f, i - 0.35), (f, i + 0.35), (0, i + 0.35)] for i, f in zip(at, ends, strict=True)]
        if not corners:
            continue
        cells = PolyCollection(corners, facecolors=colour, linewidths=0)
        ax.add_collection(cells)
        tell(
            cells,
            f"{{0}}: {{1}} of {bars.halves} half-samples",
            [bars.labels[i] for i in at],
            [f"{round(f * bars.halves)}" for f in ends],
        )
    ax.axvline(bars.threshold, color=COLOURS[1], linewidth=1.1, linestyle="--", label=f"{percent(bars.threshold)}")
    if np.isfinite(bars.shuffled):
        ax.axvline(bars.shuffled, color=COLOURS[2], linewidth=1.3, linestyle=":", label="highest with shuffled targets")
    ticks = np.linspace(0, 1, 6)
    ax.set_xticks(ticks, labels=[percent(t) for t in ticks])
    narrow = inches(ax) < 4
    texts = [shorten(text, 17) if narrow else text for text in bars.labels]
    ax.set_yticks(place, labels=texts, fontsize=TEXT, parse_math=False)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    label_axes(ax, "selected in half-samples", "")
    legend_above(
        ax,
        [
            Patch(facecolor=COLOURS[0], linewidth=0, label="chosen on all rows"),
            Patch(facecolor=QUIET, linewidth=0, label="not chosen"),
        ],
    )


def _numbers(curve: SizeCurve, size: int, room: Room) -> FrequencyBars:
    return frequency_bars(curve, size_to_show(curve), min(room.columns, 30))


def _labels(bars: FrequencyBars) -> list[str]:
    return [
        f"Bar chart of how many of {bars.halves} half-samples selected each {bars.what} at "
        f"{plural(bars.size, bars.what)}: {bars.cut}. The table below the figure has the numbers."
    ]


def _caption(curve: SizeCurve, bars: FrequencyBars) -> str:
    halves = known(curve, bars.size)
    assert halves is not None
    rows = f"{halves.rows:,} rows each" if halves.how.endswith("rows") else f"at least {halves.rows:,} rows each"
    shared = percent(float(halves.pair_overlap[halves.at(bars.size)]))
    return (
        f"At {plural(bars.size, bars.what)}: in what fraction of {bars.halves} {halves.how} ({rows}) "
        f"a search of its own selected a {bars.what}; {bars.cut}. The two halves of a pair have no row in common; "
        f"on average they share {shared} of their {bars.what}s. {bound_words(curve, halves, bars.size)} "
        f"{bars.what.capitalize()}s that are alike "
        "share their frequency: each may be selected seldom although one of them is selected always."
        f"{null_words(curve) or (_UNKNOWN if curve.loss.squared else '')}"
    )


def _table(curve: SizeCurve, bars: FrequencyBars, room: Room) -> FigureTable:
    spread = [(_text(low), _text(high)) for low, high in zip(_column(bars.low), _column(bars.high), strict=True)]
    rows = [
        [label, "yes" if chosen else "no", f"{round(f * bars.halves):,} of {bars.halves:,}", *ends]
        for label, chosen, f, ends in zip(bars.labels, bars.chosen, bars.frequency, spread, strict=True)
    ]
    heads = [bars.what.capitalize(), "Chosen on all rows", "Selected in half-samples", "Coefficient, 5 %", "95 %"]
    caption = (
        "Selection frequencies, and quantiles of the coefficient over the half-samples that selected the column (where "
        "these are at least ten)"
    )
    return FigureTable("Table: selection in half-samples", heads, rows, caption)


def _column(values: np.ndarray) -> list[str]:
    return aligned(values.tolist())


def _text(value: str) -> str:
    return value or NOTHING


def _shape(bars: FrequencyBars, wide: bool) -> tuple[float, float]:
    height = 110.0 + 100 * _ROW * len(bars.labels)
    return (820.0, height) if wide else (350.0, height + 50)


FREQUENCIES = PageFigure(
    "half_samples",
    "How often halves of the rows select each column",
    _numbers,
    (draw_frequencies,),
    labels=_labels,
    titles=lambda bars: [bars.cut],
    caption=_caption,
    table=_table,
    shape=_shape,
    applies=lambda curve: known(curve, size_to_show(curve)) is not None,
)
