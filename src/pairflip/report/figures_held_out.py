"""Predictions of held-out rows: against the truth, of classes, and of survival times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pairflip.report.registry import FigureLimits, FigureTable, FigureWords, PageFigure, aligned_rows, evenly, part_of
from pairflip.report.style import COLOURS, QUIET, label_axes, legend_above, tell
from pairflip.report.vocabulary import what_is_counted
from pairflip.selection.criteria import HALF, auc, class_of, confusion, roc
from pairflip.selection.decide import held_out
from pairflip.text import clean, explained, number, percent, plural, row_numbers, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.least_squares import Floats
    from pairflip.selection.curve import SizeCurve

RISKS = ("lowest risk", "middle", "highest risk")
_RESIDUALS = 25  # rows of the table
_OUTLIERS = 20  # largest residuals, which thinning never removes: they are what a reader looks for
_POINTS = 150  # of a ROC or survival curve; more cannot be seen
_BINS = 10  # of predicted probabilities


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
    return PREDICTIONS.plot(HeldOutPoints(curve, size), ax, 4.2, 4.0, panel=int(quantity == "residual"))


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
    return CLASSES.plot(ClassRates(curve, size), ax, 4.2, 4.0)


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
    return SURVIVAL.plot(RiskGroups(curve, size), ax, 5.0, 4.0)


def row_labels(curve: SizeCurve, names: Sequence[object] | None) -> list[str]:
    """Names of the rows where they are given, otherwise numbers from 1."""
    if names is None:
        return row_numbers(curve.n_rows)
    labels = [shorten(clean(name), 60) for name in names]
    if len(labels) != curve.n_rows:
        raise ValueError(
            f"row_names has {len(labels)} names for a table of {curve.n_rows} rows; expected one for each row, in the "
            "order of the table."
        )
    return labels


class HeldOutPoints:
    """At most `limit` held-out predictions of a size (None: that to show), with the largest residuals among them."""

    def __init__(
        self, curve: SizeCurve, size: int | None = None, limit: int = 5000, names: Sequence[str] | None = None
    ) -> None:
        names = row_labels(curve, None) if names is None else names
        self.size = size = curve.answer.shown if size is None else int(size)
        errors, at, predictions = (
            held_out(curve, size),
            np.arange(curve.observed.size),
            curve.predictions[curve.at(size)],
        )
        if at.size > limit:
            residual = np.abs(curve.observed - curve.predictions[curve.at(curve.answer.shown)])
            largest = np.argsort(-residual, kind="stable")[: min(_OUTLIERS, limit // 2)]
            others = np.setdiff1d(at, largest, assume_unique=True)
            others = others[np.argsort(curve.observed[others], kind="stable")]
            at = np.sort(np.concatenate([largest, others[evenly(others.size, limit - largest.size)]]))
        self.names = [names[row] for row in curve.held_out_rows[at].tolist()]
        if curve.targets is not None:
            targets = [clean(curve.targets.names[t]) for t in (at % len(curve.targets.names)).tolist()]
            self.names = [f"{row} ({name})" for row, name in zip(self.names, targets, strict=True)]
        self.observed, self.predicted = x, y = curve.observed[at], predictions[at]
        self.residual = x - y
        # The errors of all rows, each by its weight.
        self.rmse = errors.rmse
        self.explained = explained(errors.r2).replace("variance", curve.loss.words.explained)
        # Axes hold the observed values, and predictions not further outside than their range is wide.
        low, high = float(curve.observed.min()), float(curve.observed.max())
        margin = high - low if high > low else np.inf
        inside = (y >= low - margin) & (y <= high + margin)
        self.axis = float(np.min(y[inside], initial=low)), float(np.max(y[inside], initial=high))
        residual = self.residual[inside]
        self.residual_axis = float(np.min(residual, initial=0.0)), float(np.max(residual, initial=0.0))
        self.beyond = int(np.count_nonzero(np.isfinite(y) & ~inside))
        self.cut = part_of(at.size, curve.observed.size, "held-out prediction")
        self.unit = what_is_counted(curve)


def draw_predictions(points: HeldOutPoints, ax: Axes) -> None:
    """Prediction against truth."""
    ax.axline((points.axis[0], points.axis[0]), slope=1, color=QUIET, linewidth=1)
    _dots(ax, points, points.observed, points.predicted, points.axis, points.axis)
    label_axes(ax, "observed", "predicted (held out)")


def draw_residuals(points: HeldOutPoints, ax: Axes) -> None:
    """Residual against prediction."""
    ax.axhline(0, color=QUIET, linewidth=1)
    _dots(ax, points, points.predicted, points.residual, points.axis, points.residual_axis)
    label_axes(ax, "predicted (held out)", "observed - predicted")


def _dots(
    ax: Axes, points: HeldOutPoints, x: Floats, y: Floats, across: tuple[float, float], up: tuple[float, float]
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


def _prediction_titles(points: HeldOutPoints) -> list[str]:
    beyond = f"\n{points.beyond} beyond the axes (hollow)" if points.beyond else ""
    title = f"{plural(points.size, points.unit)}, {points.cut}{beyond}"
    return [f"{title}\nRMSE {number(points.rmse, 3)}, {points.explained}", title]


def _prediction_words(curve: SizeCurve, points: HeldOutPoints, limits: FigureLimits) -> FigureWords:
    shown, rmse = f"{plural(points.size, points.unit)}, {points.cut}", number(points.rmse, 3)
    labels = [
        f"Scatter plot of held-out predictions against observed values: {shown}. Root mean square error {rmse}.",
        f"Scatter plot of residuals (observed minus predicted) against held-out predictions: {shown}.",
    ]
    repeats = _repeats(curve)
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


def _repeats(curve: SizeCurve) -> int:
    """How many times each row was predicted, with other folds each time."""
    return round(curve.held_out_rows.size / np.unique(curve.held_out_rows).size / curve.n_outputs)


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
    texts = aligned_rows(np.column_stack([observed, predicted, observed - predicted])[largest])
    mean = f" (mean of the {repeats} predictions of a row)" if repeats > 1 else ""
    return FigureTable(
        "Table: largest residuals",
        ["Row (from 1)" if limits.rows is None else "Row", "Observed", "Predicted", "Residual"],
        [[names[rows[p]], *line] for p, line in zip(largest, texts, strict=True)],
        f"Held-out rows with the largest residuals{mean}",
    )


class ClassRates:
    """ROC curves, predicted probabilities by class, and confusions of one size (None: that to show).

    Of two classes, `lines` and probabilities are those of the second, the event; of more, of each, and of the class
    that a row has. `shares` (c, B) are fractions of the rows of each class. `table` (c, c) has numbers of rows by
    observed and predicted class: the k predictions of a row count 1/k each.
    """

    def __init__(self, curve: SizeCurve, size: int | None = None) -> None:
        if curve.classes is None:
            raise ValueError(
                "the target of this curve has no classes; expected one with loss='logistic' or 'multinomial'."
            )
        self.size = size = curve.answer.shown if size is None else int(size)
        at, q, c = curve.at(size), curve.n_outputs, len(curve.classes.labels)
        observed, predicted = class_of(curve.observed, q), class_of(curve.predictions[at], q)
        y, p, w = curve.observed.reshape(-1, q), curve.predictions[at].reshape(-1, q), curve.weights[::q]
        self.labels, self.several = [clean(label) for label in curve.classes.labels], c > 2
        self.lines: list[tuple[Floats, Floats]] = []
        self.areas: list[float] = []
        for of_class, probability in zip(y.T, p.T, strict=True):
            (false, true), area = roc(of_class, probability, w), auc(of_class, probability, w)
            if size == 0 and curve.always.size == 0:  # class frequencies alone rank nothing
                false, true, area = np.array([0.0, 1.0]), np.array([0.0, 1.0]), 0.5
            points = evenly(false.size, _POINTS)
            self.lines.append((false[points], true[points]))
            self.areas.append(area)
        self.wrong = float(curve.classes.misclassified[at])
        _, row, times = np.unique(curve.held_out_rows[::q], return_inverse=True, return_counts=True)
        table = confusion(observed, predicted, w / times[row], c)
        self.table = table * (times.size / table.sum())
        self.edges = np.linspace(0.0, 1.0, _BINS + 1)
        binned = p[:, 0] if q == 1 else np.sum(p * y, axis=1)
        counts = [np.histogram(binned[observed == k], self.edges, weights=w[observed == k])[0] for k in range(c)]
        self.shares = np.stack([each / max(each.sum(), 1e-300) for each in counts])


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
    if curve.answer.error is not None and curve.answer.error.auc is not None and curve.answer.error.size == rates.size:
        area, low, high = (f"{value:.2f}" for value in curve.answer.error.auc)
        on_new_rows = (
            f"On new rows, allowing for the number of columns having been chosen, it is about {area} ({low} to {high}, "
            f"a {percent(curve.answer.error.level)} interval). "
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
    rows = [
        [label, *(f"{number(n, 4)} ({percent(share)})" for n, share in zip(line, part, strict=True))]
        for label, line, part in zip(rates.labels, rates.table, shares, strict=True)
    ]
    heads = ["Observed", *(f"Called {label}" for label in rates.labels)]
    about = "Held-out rows by observed and predicted class"
    if (repeats := _repeats(curve)) > 1:
        about += f"; numbers of rows are means over {repeats} predictions of each row"
    return FigureWords(labels, caption, FigureTable("Table: who is called what", heads, rows, about))


class RiskGroups:
    """Times (T,) and fractions (T,) without the event of held-out rows in thirds by risk (None: at the size to show).

    Rows that were predicted several times have their mean risk.
    """

    def __init__(self, curve: SizeCurve, size: int | None = None) -> None:
        if curve.survival is None:
            raise ValueError("the target of this curve is no survival time; expected a result with loss='cox'.")
        self.size = size = curve.answer.shown if size is None else int(size)
        at, row = curve.at(size), curve.held_out_rows
        times = np.bincount(row, minlength=curve.n_rows)
        risk = np.bincount(row, curve.survival.risks[at], curve.n_rows)[times > 0] / times[times > 0]
        first = np.unique(row, return_index=True)[1]
        time, event, weight = curve.survival.times[first], curve.observed[first], curve.weights[first]
        third = np.searchsorted(np.quantile(risk, [1 / 3, 2 / 3]), risk) if np.ptp(risk) else np.ones(risk.size)
        self.lines = []
        for group in (third == g for g in range(len(RISKS))):
            t, survived = kaplan_meier(time[group], event[group], weight[group])
            points = evenly(t.size, _POINTS)
            self.lines.append((t[points], survived[points]))
        self.rows = [int(np.count_nonzero(third == g)) for g in range(len(RISKS))]
        self.concordance = float(curve.survival.concordance[at])


def kaplan_meier(time: Floats, event: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Times (T,), from 0, and Kaplan and Meier's estimate (T,) of the fraction without the event after each."""
    at = np.unique(time[event > 0])
    happened = np.array([weight[(time == t) & (event > 0)].sum() for t in at])
    at_risk = np.array([weight[time >= t].sum() for t in at])
    last = time.max(initial=0.0)
    survived = np.cumprod(np.append(1.0, 1.0 - happened / np.maximum(at_risk, 1e-300)))
    return np.concatenate([[0.0], at, [last]]), np.append(survived, survived[-1])


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
    lambda curve, size, limits: HeldOutPoints(curve, size, limits.points, limits.rows),
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
    lambda curve, size, limits: ClassRates(curve, size),
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
    lambda curve, size, limits: RiskGroups(curve, size),
    (draw_survival,),
    words=_survival_words,
    titles=lambda groups: [f"{plural(groups.size, 'column')}, concordance {groups.concordance:.3f}"],
    shape=lambda groups, wide: (520.0, 340.0) if wide else (350.0, 320.0),
    follows=True,
    applies=lambda curve: curve.survival is not None,
)
