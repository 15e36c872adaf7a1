"""Held-out predictions against the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pairflip.least_squares import Floats
from pairflip.present.numbers import held_out
from pairflip.present.style import COLOURS, QUIET, label_axes, new_axes
from pairflip.text import explained, number, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.crossval.curve import SizeCurve


def plot_predictions(
    curve: SizeCurve,
    ax: Axes | None = None,
    size: int | None = None,
    quantity: Literal["prediction", "residual"] = "prediction",
) -> Axes:
    """Draw held-out predictions against observed values, or residuals (observed - predicted) against predictions.

    `size` None is the recommended one. On the line the prediction is right. Predictions further outside the observed
    values than these are apart would squeeze all others: they are hollow, at the edge, and counted in the title.
    """
    if quantity not in ("prediction", "residual"):
        raise ValueError(f"quantity is {quantity!r}; expected 'prediction' or 'residual'.")
    ax = new_axes(ax, width=4.2, height=4.0)
    points = held_out(curve, size)
    what = f"{plural(points.size, 'column')}, {points.cut}" + (
        f", {points.beyond} beyond the axes (hollow)" if points.beyond else ""
    )
    if quantity == "prediction":
        ax.axline((points.observed.mean(), points.observed.mean()), slope=1, color=QUIET, linewidth=1)
        _points(ax, points.observed, points.predicted, points.axis, points.axis)
        fit = f"root mean square error {number(points.rmse, 3)}, {explained(points.r2)}"
        label_axes(ax, "observed", "predicted (held out)", f"{what}\n{fit}")
    else:
        ax.axhline(0, color=QUIET, linewidth=1)
        _points(ax, points.predicted, points.residual, points.axis, points.residual_axis)
        label_axes(ax, "predicted (held out)", "observed - predicted", what)
    return ax


def _points(ax: Axes, x: Floats, y: Floats, across: tuple[float, float], up: tuple[float, float]) -> None:
    """Dots; those outside the axes hollow at their edge."""
    dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4, "alpha": 0.6, "color": COLOURS[0]}
    (a, b), (c, d) = _room(across), _room(up)
    outside = (x < a) | (x > b) | (y < c) | (y > d)
    ax.plot(x[~outside], y[~outside], markeredgewidth=0, **dots)
    if outside.any():
        ax.plot(np.clip(x[outside], a, b), np.clip(y[outside], c, d), markerfacecolor="none", clip_on=False, **dots)
    ax.set_xlim(a, b)
    ax.set_ylim(c, d)


def _room(axis: tuple[float, float]) -> tuple[float, float]:
    """The axis with a margin, never empty."""
    margin = 0.05 * (axis[1] - axis[0]) or abs(axis[1]) * 0.1 or 1.0
    return axis[0] - margin, axis[1] + margin
