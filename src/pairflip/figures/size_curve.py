"""cv_error against size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pairflip.figures.numbers import error_bars
from pairflip.figures.style import COLOURS, QUIET, TEXT, label_axes, new_axes, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.crossval.curve import SizeCurve


def plot_size_curve(curve: SizeCurve, ax: Axes | None = None) -> Axes:
    """Draw cv_error with its standard errors against size; mark the best and the one-standard-error size.

    The dashed line is the lowest cv_error plus its standard error; the grey one is the training error, which falls with
    every column and chooses nothing.
    """
    ax = new_axes(ax)
    bars = error_bars(curve)
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
    same = bars.best_size == bars.one_se_size
    ring: dict[str, Any] = {"linestyle": "none", "markerfacecolor": "none", "markeredgewidth": 1.8}
    best = f"best{' and one-standard-error' if same else ''} size: {bars.best_size}"
    ax.plot([bars.best_size], [at[bars.best_size]], marker="o", markersize=11, color=COLOURS[1], label=best, **ring)
    if not same:
        text = f"one-standard-error size: {bars.one_se_size}"
        ax.plot(
            [bars.one_se_size], [at[bars.one_se_size]], marker="s", markersize=10, color=COLOURS[2], label=text, **ring
        )
    label_axes(ax, "size (number of columns)", "cv_error")
    whole_ticks(ax)
    ax.legend(fontsize=TEXT, frameon=False)
    return ax
