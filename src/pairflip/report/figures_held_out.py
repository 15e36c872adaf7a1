"""Predictions of held-out rows: against the truth, of classes, and of survival times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pairflip.report.numbers import (
    RISKS,
    ClassRates,
    RiskGroups,
    Scatter,
    class_rates,
    held_out,
    risk_groups,
    row_labels,
)
from pairflip.report.registry import FigureLimits, FigureTable, FigureWords, PageFigure
from pairflip.report.style import COLOURS, QUIET, label_axes, legend_above, tell
from pairflip.selection.criteria import HALF
from pairflip.text import aligned, number, percent, plural, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.least_squares import Floats
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
    return PREDICTIONS.plot(held_out(curve, size), ax, 4.2, 4.0, panel=int(quantity == "residual"))


def plot_roc(curve: SizeCurve, ax: Axes | None = None, size: int | None = None) -> Axes:
    """Draw the ROC curve of held-out predictions.

    Parameters
    ----------
    curve
        What `select_size` returned for classes.
    ax
        Where to draw; a new figure if absent.
    size
        Number of columns; None: the recommended one.
    """
    return CLASSES.plot(class_rates(curve, size), ax, 4.2, 4.0)


def plot_survival(curve: SizeCurve, ax: Axes | None = None, size: int | None = None) -> Axes:
    """Draw the fraction of held-out rows without the event against time, by thirds of the predicted risk.

    Parameters
    ----------
    curve
        What `select_size` returned for survival times.
    ax
        Where to draw; a new figure if absent.
    size
        Number of columns; None: the recommended one.
    """
    return SURVIVAL.plot(risk_groups(curve, size), ax, 5.0, 4.0)


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
    """Draw dots; those outside the axes, which have a margin, are hollow, at the edge."""
    from matplotlib.ticker import MaxNLocator

    look: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": COLOURS[0]}
    margins = [0.05 * (high - low) or abs(high) * 0.1 or 1.0 for low, high in (across, up)]
    (a, b), (c, d) = ((low - m, high + m) for (low, high), m in zip((across, up), margins, strict=True))
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


def _prediction_titles(points: Scatter) -> list[str]:
    beyond = f"\n{points.beyond} beyond the axes (hollow)" if points.beyond else ""
    title = f"{plural(points.size, points.unit)}, {points.cut}{beyond}"
    return [f"{title}\nRMSE {number(points.rmse, 3)}, {points.explained}", title]


def _prediction_words(curve: SizeCurve, points: Scatter, limits: FigureLimits) -> FigureWords:
    shown, rmse = f"{plural(points.size, points.unit)}, {points.cut}", number(points.rmse, 3)
    labels = [
        f"Scatter plot of held-out predictions against observed values: {shown}. Root mean square error {rmse}.",
        f"Scatter plot of residuals (observed minus predicted) against held-out predictions: {shown}.",
    ]
    targets = 1 if curve.targets is None else len(curve.targets.names)
    repeats = round(curve.held_out_rows.size / np.unique(curve.held_out_rows).size / targets)
    times = f", {repeats} times with other folds" if repeats > 1 else ""
    # Without columns, the mean (of the other rows) would be compared with the mean.
    compared = f", {points.explained}" if points.size or curve.always.size else ""
    beyond = units = ""
    if points.beyond:
        far = plural(points.beyond, "prediction")
        beyond = f" {far} far outside the observed values: hollow, at the edge of the figure."
    if curve.targets is not None:
        units = " All targets are shown, each from its mean in units of its spread."
    caption = (
        f"Each row was predicted by columns and coefficients chosen without it{times} ({points.cut}). On the diagonal "
        "the prediction is right; residuals should show no pattern. Axes fit the size shown. Root mean square error "
        f"{rmse}{compared}.{beyond}{units}"
    )
    # Of several targets, predictions.csv has the numbers.
    table = _largest_residuals(curve, points.size, repeats, limits) if curve.targets is None else None
    return FigureWords(labels, caption, table)


def _largest_residuals(curve: SizeCurve, size: int, repeats: int, limits: FigureLimits) -> FigureTable:
    """Rows with the largest residuals, each once: where a row was predicted several times, the mean prediction."""
    names = row_labels(curve, None) if limits.rows is None else limits.rows
    times = np.bincount(curve.held_out_rows, minlength=curve.n_rows)
    total = np.bincount(curve.held_out_rows, curve.predictions[curve.at(size)], curve.n_rows)
    target = np.zeros(curve.n_rows)
    target[curve.held_out_rows] = curve.observed
    rows = np.flatnonzero(times)
    predicted, observed = total[rows] / times[rows], target[rows]
    largest = np.argsort(-np.abs(observed - predicted), kind="stable")[:_RESIDUALS]
    values = np.column_stack([observed, predicted, observed - predicted])[largest]
    texts = np.array(aligned(values.ravel()), dtype=object).reshape(values.shape)
    mean = f" (mean of the {repeats} predictions of a row)" if repeats > 1 else ""
    return FigureTable(
        "Table: largest residuals",
        ["Row (from 1)" if limits.rows is None else "Row", "Observed", "Predicted", "Residual"],
        [[names[rows[p]], *line] for p, line in zip(largest, texts, strict=True)],
        f"Held-out rows with the largest residuals{mean}",
    )


def draw_roc(rates: ClassRates, ax: Axes) -> None:
    """True positive rate against false positive rate; on the diagonal, chance."""
    ax.axline((0.0, 0.0), slope=1, color=QUIET, linewidth=1)
    for at, (false, true) in enumerate(rates.lines):
        name = rates.labels[at] if rates.several else "the event"
        colour = COLOURS[at % len(COLOURS)]
        (line,) = ax.plot(false, true, color=colour, linewidth=1.6, marker="o", markersize=2, label=shorten(name, 20))
        tell(
            line,
            "{1} of {0} found, {2} of the others called so, too",
            [name] * true.size,
            [percent(t) for t in true],
            [percent(f) for f in false],
        )
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    label_axes(ax, "false positive rate", "true positive rate")
    if rates.several:
        legend_above(ax)


def draw_probabilities(rates: ClassRates, ax: Axes) -> None:
    """Fractions of each class by predicted probability."""
    for at, (label, shares) in enumerate(zip(rates.labels, rates.shares, strict=True)):
        ax.stairs(shares, rates.edges, color=COLOURS[at % len(COLOURS)], linewidth=1.6, label=shorten(label, 20))
    if not rates.several:
        ax.axvline(HALF, color=QUIET, linewidth=1, linestyle="--")
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(0.0, max(0.1, 1.08 * float(rates.shares.max())))
    name = "the own class" if rates.several else shorten(rates.labels[1], 20)
    label_axes(ax, f"probability of {name}", "fraction of the class")
    legend_above(ax)


def _class_titles(rates: ClassRates) -> list[str]:
    size = plural(rates.size, "column")
    area = "each class against all others" if rates.several else f"AUC {rates.areas[0]:.3f}"
    return [f"{size}, {area}", f"{size}, {percent(rates.wrong)} wrong"]


def _class_words(curve: SizeCurve, rates: ClassRates, limits: FigureLimits) -> FigureWords:
    assert curve.classes is not None
    event, wrong, majority = rates.labels[1], percent(rates.wrong), percent(curve.classes.majority)
    found, right, called, on_new_rows = f"“{event}”", f"“{event}” by class", "on the wrong side of one half", ""
    areas = ", ".join(f"{area:.3f}" for area in rates.areas)
    if rates.several:
        found, right, called = "each class", "the class that a row has", "put into another class"
        areas = ", ".join(f"“{label}” {area:.3f}" for label, area in zip(rates.labels, rates.areas, strict=True))
    labels = [
        f"ROC curve of held-out predictions with {plural(rates.size, 'column')}: area {areas}.",
        f"Predicted probabilities of held-out rows by class: {wrong} {called}.",
    ]
    if curve.chosen is not None and curve.chosen.auc is not None and curve.chosen.size == rates.size:
        area, low, high = (f"{value:.2f}" for value in curve.chosen.auc)
        on_new_rows = (
            f"On new rows, allowing for the number of columns having been chosen, it is about {area} ({low} to {high}, "
            f"a {percent(curve.chosen.level)} interval). "
        )
    caption = (
        f"Each row was predicted by columns and coefficients chosen without it. Left: the fraction of {found} that is "
        "found (true positive rate) against the fraction of the others that is called so, too (false positive rate), "
        f"as the threshold falls; the area is {areas}, on the diagonal it is 0.5. {on_new_rows}Right: predicted "
        f"probabilities of {right}; {wrong} of the rows are {called}, and {majority} if all are called the most "
        "frequent class."
    )
    total = rates.table.sum(axis=1, keepdims=True)
    shares = rates.table / np.where(total > 0, total, 1.0)
    counts = rates.table * (curve.held_out_rows.size / float(curve.weights.sum()))  # in rows
    rows = [
        [label, *(f"{number(n, 4)} ({percent(share)})" for n, share in zip(line, part, strict=True))]
        for label, line, part in zip(rates.labels, counts, shares, strict=True)
    ]
    heads = ["Observed", *(f"Called {label}" for label in rates.labels)]
    about = "Held-out predictions by observed and predicted class"
    return FigureWords(labels, caption, FigureTable("Table: who is called what", heads, rows, about))


def draw_survival(groups: RiskGroups, ax: Axes) -> None:
    """A step for each event, a line for each third."""
    for name, (time, survived), rows, colour in zip(RISKS, groups.lines, groups.rows, COLOURS, strict=False):
        if not rows:
            continue
        label = f"{name} ({plural(rows, 'row')})"
        (line,) = ax.plot(time, survived, color=colour, linewidth=1.6, drawstyle="steps-post", label=label)
        texts = [number(t, 3) for t in time], [percent(s) for s in survived]
        tell(line, "{0}: {2} without the event at {1}", [name] * time.size, *texts)
    ax.set_ylim(-0.02, 1.02)
    label_axes(ax, "time", "fraction without the event")
    legend_above(ax)


def _survival_words(curve: SizeCurve, groups: RiskGroups, limits: FigureLimits) -> FigureWords:
    label = (
        "Fraction of held-out rows without the event against time, by thirds of the predicted risk, with "
        f"{plural(groups.size, 'column')}: concordance {groups.concordance:.3f}."
    )
    caption = (
        "Each row was predicted by columns and coefficients chosen without it; rows are put into thirds by this risk. "
        "The lines are Kaplan and Meier's estimates from the observed times: the further apart, the better. The "
        f"concordance of held-out rows is {groups.concordance:.3f}; 0.5 is chance."
    )
    return FigureWords([label], caption)


PREDICTIONS = PageFigure(
    "predictions",
    "Held-out predictions",
    lambda curve, size, limits: held_out(curve, size, limits.points, limits.rows),
    (draw_predictions, draw_residuals),
    words=_prediction_words,
    titles=_prediction_titles,
    shape=lambda points, wide: (400.0, 330.0),
    follows=True,
    applies=lambda curve: curve.classes is None and curve.survival is None and curve.single_rows,
)
CLASSES = PageFigure(
    "classes",
    "Telling the classes apart",
    lambda curve, size, limits: class_rates(curve, size),
    (draw_roc, draw_probabilities),
    words=_class_words,
    titles=_class_titles,
    shape=lambda rates, wide: (400.0, 330.0),
    follows=True,
    applies=lambda curve: curve.classes is not None,
)
SURVIVAL = PageFigure(
    "survival",
    "Telling the times apart",
    lambda curve, size, limits: risk_groups(curve, size),
    (draw_survival,),
    words=_survival_words,
    titles=lambda groups: [f"{plural(groups.size, 'column')}, concordance {groups.concordance:.3f}"],
    shape=lambda groups, wide: (520.0, 340.0) if wide else (350.0, 320.0),
    follows=True,
    applies=lambda curve: curve.survival is not None,
)
