"""Held-out predictions against the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pairflip.least_squares import Floats
from pairflip.report.held_out_numbers import Scatter, held_out, row_labels
from pairflip.report.registry import FigureTable, PageFigure, Room
from pairflip.report.style import COLOURS, QUIET, grid, label_axes, new_axes, set_title, tell
from pairflip.text import aligned, explained, number, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.selection.curve import SizeCurve

_RESIDUALS = 25  # rows of the table


def plot_predictions(
    curve: SizeCurve,
    ax: Axes | None = None,
    size: int | None = None,
    quantity: Literal["prediction", "residual"] = "prediction",
) -> Axes:
    """Draw held-out predictions against observed values, or residuals (observed - predicted) against predictions.

    On the line the prediction is right. Predictions that are further outside the observed values than the whole range
    of these would squeeze all others: they are hollow, at the edge, and counted in the title.

    Parameters
    ----------
    curve
        What `select_size` returned.
    ax
        Where to draw; a new figure if absent.
    size
        Number of columns; None is the recommended one.
    quantity
        ``"prediction"`` or ``"residual"``.
    """
    if quantity not in ("prediction", "residual"):
        raise ValueError(f"quantity is {quantity!r}; expected 'prediction' or 'residual'.")
    ax = new_axes(ax, width=4.2, height=4.0)
    points = held_out(curve, size)
    which = int(quantity == "residual")
    (draw_predictions, draw_residuals)[which](points, ax)
    set_title(ax, _titles(points)[which])
    return ax


def draw_predictions(points: Scatter, ax: Axes) -> None:
    """Prediction against truth."""
    ax.axline((points.axis[0], points.axis[0]), slope=1, color=QUIET, linewidth=1)
    _dots(ax, points, points.observed, points.predicted, points.axis, points.axis)
    label_axes(ax, "observed", "predicted (held out)")


def draw_residuals(points: Scatter, ax: Axes) -> None:
    """Residual against prediction."""
    ax.axhline(0, color=QUIET, linewidth=1)
    _dots(ax, points, points.predicted, points.residual, points.axis, points.residual_axis)
    label_axes(ax, "predicted (held out)", "observed - predicted")


def _dots(
    ax: Axes, points: Scatter, x: Floats, y: Floats, across: tuple[float, float], up: tuple[float, float]
) -> None:
    """Draw dots; those outside the axes are hollow, at the edge."""
    from matplotlib.ticker import MaxNLocator

    grid(ax)
    look: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": COLOURS[0]}
    (a, b), (c, d) = _room(across), _room(up)
    ax.set_xlim(a, b)
    ax.set_ylim(c, d)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
    known = np.isfinite(x) & np.isfinite(y)
    outside = (x < a) | (x > b) | (y < c) | (y > d)
    for these, kind in (
        (known & ~outside, {"markeredgewidth": 0, "markersize": 4.3, "alpha": 0.6}),
        (known & outside, {"markerfacecolor": "none", "markersize": 5, "clip_on": False}),
    ):
        if not these.any():
            continue
        (drawn,) = ax.plot(np.clip(x[these], a, b), np.clip(y[these], c, d), **look, **kind)
        tell(
            drawn,
            "row {0}: observed {1}, predicted {2}, residual {3}",
            [points.names[i] for i in np.flatnonzero(these)],
            [number(v) for v in points.observed[these]],
            [number(v) for v in points.predicted[these]],
            [number(v, 3) for v in points.residual[these]],
        )


def _room(axis: tuple[float, float]) -> tuple[float, float]:
    """The axis with a margin, never empty."""
    margin = 0.05 * (axis[1] - axis[0]) or abs(axis[1]) * 0.1 or 1.0
    return axis[0] - margin, axis[1] + margin


def _titles(points: Scatter) -> list[str]:
    what = f"{plural(points.size, points.what)}, {points.cut}"
    beyond = f"\n{points.beyond} beyond the axes (hollow)" if points.beyond else ""
    return [f"{what}{beyond}\nRMSE {number(points.rmse, 3)}, {_explained(points)}", f"{what}{beyond}"]


def how_good(curve: SizeCurve, points: Scatter) -> str:
    """``0.42, explained 87 % of the variance``; the mean itself (of the other rows) is not compared with the mean."""
    compared = points.size or curve.always.size
    return number(points.rmse, 3) + (f", {_explained(points)}" if compared else "")


def _explained(points: Scatter) -> str:
    return explained(points.r2).replace("variance", points.of)


def _labels(points: Scatter) -> list[str]:
    what = f"{plural(points.size, points.what)}, {points.cut}"
    return [
        f"Scatter plot of held-out predictions against observed values: {what}. "
        f"Root mean square error {number(points.rmse, 3)}.",
        f"Scatter plot of residuals (observed minus predicted) against held-out predictions: {what}.",
    ]


def _caption(curve: SizeCurve, points: Scatter) -> str:
    repeats = _repeats(curve)
    times = f", {repeats} times with other folds" if repeats > 1 else ""
    beyond = (
        f" {plural(points.beyond, 'prediction')} far outside the observed values: hollow, at the edge of the figure."
        if points.beyond
        else ""
    )
    return (
        f"Each row was predicted by columns and coefficients chosen without it{times} ({points.cut}). On the diagonal "
        "the prediction is right; residuals should show no pattern. Axes fit the size shown. Root mean square error "
        f"{how_good(curve, points)}.{beyond}{_units(curve)}"
    )


def _units(curve: SizeCurve) -> str:
    return "" if curve.targets is None else " All targets are shown, each from its mean in units of its spread."


def _repeats(curve: SizeCurve) -> int:
    if curve.targets is not None:
        return round(curve.held_out_rows.size / np.unique(curve.held_out_rows).size / len(curve.targets.names))
    return round(curve.held_out_rows.size / np.unique(curve.held_out_rows).size)


def _table(curve: SizeCurve, points: Scatter, room: Room) -> FigureTable | None:
    """Rows with the largest residuals, each once: where a row was predicted several times, the mean prediction.

    None for several targets, of which predictions.csv has the numbers.
    """
    if curve.targets is not None:
        return None
    names = row_labels(curve, None) if room.rows is None else room.rows
    times = np.bincount(curve.held_out_rows, minlength=curve.n_rows)
    total = np.bincount(curve.held_out_rows, curve.predictions[curve.at(points.size)], curve.n_rows)
    target = np.zeros(curve.n_rows)
    target[curve.held_out_rows] = curve.observed
    rows = np.flatnonzero(times)
    predicted, observed = total[rows] / times[rows], target[rows]
    largest = np.argsort(-np.abs(observed - predicted), kind="stable")[:_RESIDUALS]
    values = np.column_stack([observed, predicted, observed - predicted])[largest]
    texts = iter(aligned(values.ravel()))
    mean = f" (mean of the {_repeats(curve)} predictions of a row)" if _repeats(curve) > 1 else ""
    return FigureTable(
        "Table: largest residuals",
        ["Row (from 1)" if room.rows is None else "Row", "Observed", "Predicted", "Residual"],
        [[names[rows[p]], next(texts), next(texts), next(texts)] for p in largest],
        f"Held-out rows with the largest residuals{mean}",
    )


PREDICTIONS = PageFigure(
    "predictions",
    "Held-out predictions",
    lambda curve, size, room: held_out(curve, size, room.points, room.rows),
    (draw_predictions, draw_residuals),
    labels=_labels,
    titles=_titles,
    caption=_caption,
    table=_table,
    shape=lambda points, wide: (400.0, 330.0),
    follows=True,
    applies=lambda curve: curve.classes is None and curve.survival is None,
)
