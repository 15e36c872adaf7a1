"""cv_error against size."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from pairflip.present.numbers import error_bars
from pairflip.present.style import COLOURS, QUIET, TEXT, label_axes, new_axes, plain_log, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.crossval.curve import SizeCurve


def plot_size_curve(curve: SizeCurve, ax: Axes | None = None) -> Axes:
    """Draw cv_error with its standard errors against size; mark the recommended size and a second one worth knowing.

    The line across is the error without any columns (the mean alone, or the forced columns alone). The dashed line is
    the lowest cv_error plus its standard error; the dotted one is the training error, which falls with every column and
    chooses nothing. The axis is logarithmic where errors differ more than twentyfold.
    """
    ax = new_axes(ax)
    bars = error_bars(curve)
    if isfinite(bars.without):
        ax.axhline(bars.without, color="black", linewidth=1, label=bars.without_text)
    ax.plot(bars.sizes, bars.training, color=QUIET, linewidth=1, linestyle=":", label="training error")
    ax.axhline(bars.limit, color=QUIET, linewidth=1, linestyle="--", label="lowest + 1 standard error")
    ax.errorbar(
        bars.sizes,
        bars.error,
        yerr=(bars.error - bars.low, bars.high - bars.error),
        color=COLOURS[0],
        marker="o",
        markersize=4,
        linewidth=1.5,
        elinewidth=1,
        capsize=2.5,
        label="cv_error ± 1 standard error",
    )
    at = {int(k): float(e) for k, e in zip(bars.sizes, bars.error, strict=True)}
    ring: dict[str, Any] = {"linestyle": "none", "markerfacecolor": "none", "markeredgewidth": 1.8}
    for mark in bars.marks:
        if mark.size in at:
            look: dict[str, Any] = {"marker": "o", "markersize": 11, "color": COLOURS[1]}
            if not mark.recommended:
                look = {"marker": "s", "markersize": 10, "color": COLOURS[2]}
            ax.plot([mark.size], [at[mark.size]], label=f"{mark.text}: {mark.size}", **look, **ring)
    if bars.log:
        plain_log(ax)
        ax.set_ylim(bars.axis[0] / 1.2, bars.axis[1] * 1.2)
    label_axes(ax, "size (number of columns)", "cv_error")
    whole_ticks(ax)
    ax.legend(fontsize=TEXT, frameon=False)
    return ax
