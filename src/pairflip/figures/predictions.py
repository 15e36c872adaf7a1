"""Held-out predictions against the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pairflip.figures.numbers import held_out
from pairflip.figures.style import COLOURS, QUIET, label_axes, new_axes
from pairflip.labels import number, percent, plural

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

    `size` None is the best size. On the line the prediction is right.
    """
    if quantity not in ("prediction", "residual"):
        raise ValueError(f"quantity is {quantity!r}; expected 'prediction' or 'residual'.")
    ax = new_axes(ax, width=4.2, height=4.0)
    points = held_out(curve, size)
    dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4, "alpha": 0.6, "markeredgewidth": 0}
    what = f"{plural(points.size, 'column')}, {points.cut}"
    if quantity == "prediction":
        ax.axline((points.observed.mean(), points.observed.mean()), slope=1, color=QUIET, linewidth=1)
        ax.plot(points.observed, points.predicted, color=COLOURS[0], **dots)
        fit = f"explained: {percent(points.share_explained)}, root mean square error {number(points.rmse, 3)}"
        label_axes(ax, "observed", "predicted (held out)", f"{what}\n{fit}")
    else:
        ax.axhline(0, color=QUIET, linewidth=1)
        ax.plot(points.predicted, points.residual, color=COLOURS[0], **dots)
        label_axes(ax, "predicted (held out)", "observed - predicted", what)
    return ax
