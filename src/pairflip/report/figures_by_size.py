"""Errors and coefficients against size: of held-out rows, also for every ridge; coefficients of the final fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.report.answer import answer_of
from pairflip.report.registry import (
    BELOW,
    LABEL,
    FigureLimits,
    FigureTable,
    FigureWords,
    Ints,
    PageFigure,
    aligned_rows,
    part_of,
)
from pairflip.report.style import COLOURS, INK, MARKERS, QUIET, figure_of, legend_above, plain_log, size_axis, tell
from pairflip.report.vocabulary import vocabulary, what_is_counted
from pairflip.selection.decide import baseline
from pairflip.text import column_labels, number, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.least_squares import Floats
    from pairflip.selection.curve import SizeCurve

_CHOSEN = 1  # place of the chosen ridge among the colours
_OTHERS = (0, 2, 3, 4, 5)
_UNLIKE_UNITS = 1000.0  # columns whose coefficients differ by more are drawn relative to their own largest one
_UNLIKE_ERRORS = 20.0  # squared errors and deviances that differ by more need a logarithmic axis


def plot_size_curve(curve: SizeCurve, ax: Axes | None = None) -> Axes:
    """Draw the error of held-out rows against size; mark the recommended size and a second one worth knowing.

    The error is the RMSE (for classes the log loss, for counts and times the mean deviance) with its standard error.
    The line across is the error without any columns (the mean alone, or the forced columns alone). The dashed line is
    the lowest error plus its standard error; the dotted one is the training error, which falls with every column and
    chooses nothing. The axis is logarithmic where cv_error differs more than twentyfold.
    """
    return SIZE_CURVE.plot(ErrorBars(curve), ax)


def plot_ridge_surface(curve: SizeCurve, ax: Axes | None = None) -> Axes:
    """Draw the error of held-out rows against size for every ridge that was tried; the chosen one stands out."""
    return RIDGE_SURFACE.plot(RidgeLines(curve), ax)


def plot_paths(curve: SizeCurve, ax: Axes | None = None, relative: bool | None = None) -> Axes:
    """Draw the coefficient of each column against size, where the final fit has the column.

    The seven columns that matter most have colours, markers and names; the others are grey.

    Parameters
    ----------
    curve
        What `select_size` returned.
    ax
        Where to draw; a new figure if absent.
    relative
        Whether to divide each column by its largest coefficient; None: if their units differ too much for one axis.
    """
    return PATHS.plot(CoefficientPaths(curve, relative), ax)


def by_size(curve: SizeCurve) -> Ints:
    """Places of the sizes above 0, the smallest first."""
    order = np.argsort(curve.sizes, kind="stable")
    return order[curve.sizes[order] > 0]


def needs_log(errors: Floats) -> bool:
    """Whether errors span too much for a straight axis."""
    errors = errors[np.isfinite(errors) & (errors > 0)]
    return bool(errors.size and errors.max() > _UNLIKE_ERRORS * errors.min())


@dataclass(frozen=True)
class Mark:
    """A size that a figure points at, why, and whether it is the recommended one."""

    size: int
    text: str
    recommended: bool


def marks(curve: SizeCurve) -> list[Mark]:
    """Sizes to point at: the recommended one and a second one worth knowing; where nothing predicts, the one shown."""
    answer = answer_of(curve)
    if not answer.predicts:
        return [Mark(curve.answer.shown, "lowest with columns", False)]
    pointed, second = [Mark(answer.size, "recommended", True)], answer.other_size
    if second is not None:
        pointed.append(Mark(second, "lowest error" if second == curve.best_size else "one-SE size", False))
    return sorted(pointed, key=lambda mark: mark.size)


class ErrorBars:
    """Errors of held-out rows (RMSE, or a deviance) against size, for the sizes (S,) above 0, by one standard error."""

    def __init__(self, curve: SizeCurve) -> None:
        order, words = by_size(curve), vocabulary(curve)
        spread = np.where(np.isfinite(curve.cv_error_se), curve.cv_error_se, 0.0)
        best = curve.at(curve.best_size)
        self.sizes, self.marks = curve.sizes[order], marks(curve)
        self.low, self.error, self.high = (
            words.shown((curve.cv_error + side * spread)[order]) for side in (-1.0, 0.0, 1.0)
        )
        self.training = words.shown(curve.energy_per_row[order])
        self.name, self.unit = words.minimized, words.unit
        self.without, self.without_text = float(words.shown(curve.cv_error[curve.at(0)])), baseline(curve)
        self.limit = float(words.shown(curve.cv_error[best] + spread[best]))
        heads, cells = zip(*words.error_columns(self.sizes.tolist()), strict=True)
        names = [head.removesuffix(" ± SE") for head in heads]
        self.texts = [", ".join(map(" ".join, zip(names, each, strict=True))) for each in zip(*cells, strict=True)]
        self.log = needs_log(curve.cv_error)
        errors = np.append(self.error, self.without)
        shown = np.concatenate([errors, [self.limit], self.low, self.high, self.training])
        shown = shown[np.isfinite(shown)]
        if self.log:  # what is far below all errors would push them together again
            shown = shown[shown > np.min(errors[errors > 0]) / 3]
        self.ends = (float(shown.min()), float(shown.max())) if shown.size else (0.0, 1.0)  # what the axis must hold


def draw_size_curve(bars: ErrorBars, ax: Axes) -> None:
    """Errors with bars, two sizes marked, lines for the error without columns, the limit and the training error."""
    low, high = bars.ends[0] / 1.2, bars.ends[1] * 1.2
    if bars.log:
        plain_log(ax, "y", low, high)
        ax.set_ylim(low, high)
    known = np.isfinite(bars.error)
    sizes, error = bars.sizes[known], bars.error[known]
    least, most = (np.maximum(end[known], low) if bars.log else end[known] for end in (bars.low, bars.high))
    ax.vlines(sizes, least, most, color=COLOURS[0], linewidth=1.1)
    (line,) = ax.plot(sizes, error, color=COLOURS[0], marker="o", markersize=5, linewidth=1.6, label="error ± 1 SE")
    tell(
        line,
        "{0}: {1}, training error {2}",
        [plural(int(k), bars.unit) for k in sizes],
        [text for text, is_known in zip(bars.texts, known, strict=True) if is_known],
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
    ax.axhline(bars.without, color=INK, linewidth=1, zorder=1, label=bars.without_text)
    ax.axhline(bars.limit, color=QUIET, linewidth=1, linestyle="--", zorder=1, label="lowest + 1 SE")
    ax.plot(bars.sizes, bars.training, color=QUIET, linewidth=1.3, linestyle=":", zorder=1, label="training error")
    size_axis(ax, bars.unit, f"{bars.name} (logarithmic)" if bars.log else bars.name)
    legend_above(ax)


def _size_curve_words(curve: SizeCurve, bars: ErrorBars, limits: FigureLimits) -> FigureWords:
    ends = f"{bars.sizes[0]} to {bars.sizes[-1]} {bars.unit}s"
    if bars.sizes.size < 2:
        ends = plural(int(bars.sizes[0]), bars.unit)
    marks = "".join(f"{mark.text.capitalize()}: {plural(mark.size, bars.unit)}. " for mark in bars.marks)
    shrunken = curve.settings.get("ridge") if curve.ridge_surface is None else curve.ridge_surface.ridge
    ridge = " with the ridge term" if shrunken else ""
    label = (
        f"Line chart of {bars.name} against size, {ends}. {marks}The error with the {bars.without_text} is "
        f"{number(bars.without, 3)}. {BELOW}"
    )
    caption = (
        f"{bars.name[0].upper()}{bars.name[1:]} of held-out rows (dots, ± one standard error) against the number of "
        f"{bars.unit}s. The line across is the error without columns ({bars.without_text}): sizes that are not clearly "
        "below it predict nothing. Dashed: the lowest error plus its standard error; the smallest size below it is the "
        f"one-SE size. Dotted: the training error{ridge}, which falls with every column and chooses nothing."
    )
    return FigureWords([label], caption)


class RidgeLines:
    """Errors (R, S) of R ridge terms at the sizes (S,) above 0; `chosen` is the place of the chosen ridge."""

    def __init__(self, curve: SizeCurve) -> None:
        surface = curve.ridge_surface
        if surface is None:
            raise ValueError(
                "no ridge was chosen with the size of this curve; expected select_size(..., ridge='auto')."
            )
        order, words = by_size(curve), vocabulary(curve)
        self.sizes, self.best_size = curve.sizes[order], curve.best_size
        self.ridges, self.errors = surface.ridges, words.shown(surface.errors[:, order])
        self.name, self.chosen = words.minimized, int(np.flatnonzero(surface.ridges == surface.ridge)[0])


def draw_ridge_surface(lines: RidgeLines, ax: Axes) -> None:
    """A line for each ridge, the chosen one thick."""
    log = needs_log(lines.errors)
    if log:
        low, high = float(lines.errors.min()) / 1.2, float(lines.errors.max()) * 1.2
        plain_log(ax, "y", low, high)
        ax.set_ylim(low, high)
    free = iter(_OTHERS)
    for r, (ridge, error) in enumerate(zip(lines.ridges, lines.errors, strict=True)):
        chosen = r == lines.chosen
        place = _CHOSEN if chosen else next(free, None)
        (line,) = ax.plot(
            lines.sizes,
            error,
            color=QUIET if place is None else COLOURS[place],
            marker="o" if place is None else MARKERS[place],
            markersize=6 if chosen else 3.5,
            linewidth=2.2 if chosen else 1.0,
            zorder=3 if chosen else 2,
            label=f"ridge {ridge:g}{' (chosen)' if chosen else ''}",
        )
        sizes = [plural(int(k), "column") for k in lines.sizes]
        tell(line, "{0}, ridge {1}: {2} {3}", sizes, f"{ridge:g}", lines.name, [number(e, 3) for e in error])
    size_axis(ax, "column", f"{lines.name} (logarithmic)" if log else lines.name)
    legend_above(ax)


def _ridge_words(curve: SizeCurve, lines: RidgeLines, limits: FigureLimits) -> FigureWords:
    chosen = f"{lines.ridges[lines.chosen]:g}"
    label = (
        f"Line chart of {lines.name} against size, one line for each of {plural(lines.ridges.size, 'ridge term')}. "
        f"Chosen: {chosen}. {BELOW}"
    )
    caption = (
        "Error on held-out rows against the number of columns, for every ridge term: a penalty on the squares of the "
        "coefficients, in units of the scaled columns, by which they are shrunk (0: least squares). Each was searched "
        "by itself in the same folds, and the one with the lowest error at any size was chosen "
        f"({chosen}, at {plural(lines.best_size, 'column')}); all other figures and tables are "
        "those of that ridge. The lowest of so many errors is low by luck, too."
    )
    ridges = [f"{ridge:g}" for ridge in lines.ridges]
    about = f"{lines.name} of held-out rows, by ridge and size"
    table = _table("Table: error by ridge and size", "Ridge", lines.sizes, ridges, lines.errors, about)
    return FigureWords([label], caption, table)


class CoefficientPaths:
    """Coefficients (S, R) of R columns, NaN where a size does not have the column; the first ones matter most.

    `values` are drawn: `relative` to the largest coefficient of each column, by default where units differ too much.
    """

    def __init__(self, curve: SizeCurve, relative: bool | None = None, limit: int = 60) -> None:
        if curve.outputs is not None:
            raise ValueError("coefficients against size are drawn for one target, and this result has several.")
        order = by_size(curve)
        used, times = np.unique(np.concatenate([curve.supports[s] for s in order]), return_counts=True)
        chosen = np.isin(used, curve.supports[curve.at(curve.answer.shown)])
        self.columns = used[np.lexsort((used, -times, ~chosen))][:limit].astype(np.int64)
        columns = self.columns.tolist()
        self.coefs = np.full((order.size, len(columns)), np.nan)
        for row, s in enumerate(order):
            of_column = dict(zip(curve.supports[s].tolist(), curve.coefs[s].tolist(), strict=True))
            self.coefs[row] = [of_column.get(j, np.nan) for j in columns]
        largest = np.array([np.max(np.abs(c[np.isfinite(c)]), initial=0.0) for c in self.coefs.T])
        nonzero = largest[: len(COLOURS)][largest[: len(COLOURS)] > 0]
        if relative is None:
            relative = bool(nonzero.size and nonzero.max() > _UNLIKE_UNITS * nonzero.min())
        self.relative = relative
        self.values = self.coefs / np.where(largest > 0, largest, 1.0) if relative else self.coefs
        self.sizes, self.unit = curve.sizes[order], what_is_counted(curve)
        self.labels, self.cut = column_labels(curve.names, columns, LABEL), part_of(len(columns), used.size, "column")


def draw_paths(paths: CoefficientPaths, ax: Axes) -> None:
    """A line for each column; names stand beside it, the first column first, or above a narrow figure."""
    ax.axhline(0, color=QUIET, linewidth=0.8)
    for i, values in reversed(list(enumerate(paths.values.T))):
        named = i < len(COLOURS)
        (line,) = ax.plot(
            paths.sizes,
            values,
            color=COLOURS[i] if named else QUIET,
            marker=MARKERS[i] if named else "o",
            markersize=5 if named else 2,
            linewidth=1.6 if named else 0.8,
            label=paths.labels[i] if named else None,
        )
        has = np.isfinite(values)
        coefs = [number(c) for c in paths.coefs[has, i]]
        tell(line, "{0}, {1}: {2}", paths.labels[i], [plural(int(k), paths.unit) for k in paths.sizes[has]], coefs)
    size_axis(ax, paths.unit, "coefficient / its largest" if paths.relative else "coefficient")
    legend_above(ax, backwards=True, beside=figure_of(ax).get_figwidth() >= 5)


def _paths_words(curve: SizeCurve, paths: CoefficientPaths, limits: FigureLimits) -> FigureWords:
    told, divided = "Coefficients", ""
    if paths.relative:
        told = "Coefficients, each divided by its largest value,"
        divided = (
            ", each divided by its largest value because the columns' units differ too much for one axis (the table "
            "has the coefficients themselves)"
        )
    grey = f"; those beyond the first {len(COLOURS)} are grey" if len(paths.labels) > len(COLOURS) else ""
    label = f"Line chart: {told} of the final fits against size, {paths.cut}. {BELOW}"
    caption = (
        f"Coefficients of the final fits{divided}: {paths.cut}{grey}. A coefficient that jumps or changes sign when "
        "another column enters shares its information with that column."
    )
    names = column_labels(curve.names, paths.columns.tolist(), 80)
    about = "Coefficients of the final fits, by size; – where the size does not have the column"
    table = _table("Table: coefficients by size", "Column", paths.sizes, names, paths.coefs.T, about)
    return FigureWords([label], caption, table)


def _table(summary: str, head: str, sizes: Any, names: list[str], values: Floats, caption: str) -> FigureTable:
    """A row for each name, a column for each size."""
    rows = [[name, *line] for name, line in zip(names, aligned_rows(values, least=3), strict=True)]
    return FigureTable(summary, [head, *(str(k) for k in sizes)], rows, caption)


SIZE_CURVE = PageFigure(
    "size_curve",
    "How many columns",
    lambda curve, size, limits: ErrorBars(curve),
    (draw_size_curve,),
    words=_size_curve_words,
    place="sizes",
)
RIDGE_SURFACE = PageFigure(
    "ridge_surface",
    "How much shrinkage",
    lambda curve, size, limits: RidgeLines(curve),
    (draw_ridge_surface,),
    words=_ridge_words,
    applies=lambda curve: curve.ridge_surface is not None and curve.ridge_surface.ridges.size > 1,
)
PATHS = PageFigure(
    "paths",
    "How coefficients change with size",
    lambda curve, size, limits: CoefficientPaths(curve, limit=limits.paths),
    (draw_paths,),
    words=_paths_words,
    titles=lambda paths: [f"{paths.cut}, {len(COLOURS)} of them named" if len(paths.labels) > len(COLOURS) else ""],
    shape=lambda paths, wide: (820.0, 360.0) if wide else (350.0, 280.0 + 17 * min(len(paths.labels), 7)),
    applies=lambda curve: curve.outputs is None,
)
