"""cv_error against size."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.report.numbers import ErrorBars, error_bars
from pairflip.report.registry import PageFigure, Room
from pairflip.report.style import (
    COLOURS,
    INK,
    QUIET,
    grid,
    label_axes,
    legend_above,
    new_axes,
    plain_log,
    tell,
    whole_ticks,
)
from pairflip.text import number, plural, plus_minus

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.selection.curve import SizeCurve


def plot_size_curve(curve: SizeCurve, ax: Axes | None = None) -> Axes:
    """Draw cv_error with its standard errors against size; mark the recommended size and a second one worth knowing.

    The line across is the error without any columns (the mean alone, or the forced columns alone). The dashed line is
    the lowest cv_error plus its standard error; the dotted one is the training error, which falls with every column and
    chooses nothing. The axis is logarithmic where errors differ more than twentyfold.
    """
    ax = new_axes(ax)
    draw_size_curve(error_bars(curve), ax)
    return ax


def draw_size_curve(bars: ErrorBars, ax: Axes) -> None:
    """The drawing of `error_bars`."""
    low, high = bars.axis[0] / 1.2, bars.axis[1] * 1.2
    if bars.log:
        plain_log(ax, "y", low, high)
        ax.set_ylim(low, high)
    grid(ax)
    known = np.isfinite(bars.error)
    sizes, error = bars.sizes[known], bars.error[known]
    least, most = (np.maximum(end[known], low) if bars.log else end[known] for end in (bars.low, bars.high))
    ax.vlines(sizes, least, most, color=COLOURS[0], linewidth=1.1)
    (line,) = ax.plot(sizes, error, color=COLOURS[0], marker="o", markersize=5, linewidth=1.6, label="error ± 1 SE")
    tell(
        line,
        "{0}: cv_error {1}, {2}, training error {3}",
        [plural(int(k), bars.what) for k in sizes],
        [plus_minus(e, h - e) for e, h in zip(error, bars.high[known], strict=True)],
        [text for text, is_known in zip(bars.told, known, strict=True) if is_known],
        [number(e, 3) for e in bars.training[known]],
    )
    at = {int(k): float(e) for k, e in zip(sizes, error, strict=True)}
    ring: dict[str, Any] = {"linestyle": "none", "markerfacecolor": "none", "markeredgewidth": 1.8}
    for mark in bars.marks:
        if mark.size in at:
            look: dict[str, Any] = {"marker": "o", "markersize": 11, "color": COLOURS[1]}
            if not mark.recommended:
                look = {"marker": "s", "markersize": 10, "color": COLOURS[2]}
            ax.plot([mark.size], [at[mark.size]], label=f"{mark.text}: {mark.size}", **look, **ring)
    if isfinite(bars.without):
        ax.axhline(bars.without, color=INK, linewidth=1, zorder=1, label=bars.without_text)
    ax.axhline(bars.limit, color=QUIET, linewidth=1, linestyle="--", zorder=1, label="lowest + 1 SE")
    ax.plot(bars.sizes, bars.training, color=QUIET, linewidth=1.3, linestyle=":", zorder=1, label="training error")
    label_axes(ax, f"size (number of {bars.what}s)", "cv_error (logarithmic)" if bars.log else "cv_error")
    whole_ticks(ax)
    legend_above(ax)


def _labels(bars: ErrorBars) -> list[str]:
    few = bars.sizes.size < 2
    ends = plural(int(bars.sizes[0]), bars.what) if few else f"{bars.sizes[0]} to {bars.sizes[-1]} {bars.what}s"
    marks = "".join(f"{mark.text.capitalize()}: {plural(mark.size, bars.what)}. " for mark in bars.marks)
    without = f"The error with the {bars.without_text} is {number(bars.without, 3)}. " if isfinite(bars.without) else ""
    return [f"Line chart of cv_error against size, {ends}. {marks}{without}The table below the figure has the numbers."]


def _caption(curve: SizeCurve, bars: ErrorBars) -> str:
    across = (
        f" The line across is the error without columns ({bars.without_text}): sizes that are not clearly below it "
        "predict nothing."
        if isfinite(bars.without)
        else ""
    )
    return (
        f"Error on held-out rows (dots, ± one standard error) against the number of {bars.what}s.{across} Dashed: the "
        "lowest error plus its standard error; the smallest size below it is the one-SE size. Dotted: the training "
        "error, which falls with every column and chooses nothing. cv_error is "
        f"{curve.loss.words.cv_error.removesuffix(' of held-out rows')}."
    )


def _numbers(curve: SizeCurve, size: int, room: Room) -> ErrorBars:
    return error_bars(curve)


SIZE_CURVE = PageFigure(
    "size_curve", "How many columns", _numbers, (draw_size_curve,), labels=_labels, caption=_caption, place="sizes"
)
