"""The numbers behind each figure, as pure functions of a `SizeCurve`: drawing never computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.report.vocabulary import counted, error_texts, unit_labels, units_of, what_is_counted
from pairflip.selection.stability import THRESHOLD
from pairflip.selection.verdict import baseline, size_to_show
from pairflip.text import column_labels, plural

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_UNLIKE_UNITS = 1000.0  # columns whose coefficients differ by more are drawn relative to their own largest one
_NAMED = 7  # columns that a figure has colours for
_TOO_UNLIKE = 20.0  # errors that differ by more need a logarithmic axis


@dataclass(frozen=True)
class Mark:
    """A size that a figure points at, why, and whether it is the recommended one."""

    size: int
    text: str
    recommended: bool


@dataclass(frozen=True)
class ErrorBars:
    """cv_error against size: `error`, `low`, `high`, `training` (S,), for sizes above 0; `told`, other errors in words.

    `without` is the error of size 0, drawn as a line across all sizes and named by `without_text` (NaN: not known);
    `limit` is the lowest error plus its standard error; `log`: errors span too much for a straight axis, and `axis`
    is what it must hold.
    """

    sizes: Ints
    error: Floats
    low: Floats
    high: Floats
    training: Floats
    told: list[str]
    without: float
    without_text: str
    marks: list[Mark]
    limit: float
    log: bool
    axis: tuple[float, float]
    what: str = "column"


@dataclass(frozen=True)
class FrequencyBars:
    """Selection frequencies (R,) in `halves` half-samples at one size, the highest first, and who was `chosen`.

    `low` and `high` (R,) are quantiles of the coefficients; `shuffled` is the highest frequency that shuffled targets
    gave (NaN: not known).
    """

    size: int
    labels: list[str]
    frequency: Floats
    chosen: Bools
    low: Floats
    high: Floats
    halves: int
    threshold: float
    shuffled: float
    cut: str
    what: str = "column"


@dataclass(frozen=True)
class CountMap:
    """Selection counts (S, R) of R columns, `fraction` of the folds, and whether the `final` fit has the column."""

    sizes: Ints
    columns: Ints
    labels: list[str]
    counts: Ints
    fraction: Floats
    final: Bools
    n_folds: int
    marks: list[Mark]
    cut: str
    what: str = "column"


@dataclass(frozen=True)
class Paths:
    """Coefficients (S, R) of R columns, NaN where a size does not have the column; the first ones matter most.

    `relative`: each column is divided by its largest coefficient, since the units differ too much for one axis.
    """

    sizes: Ints
    columns: Ints
    labels: list[str]
    coefs: Floats
    values: Floats
    relative: bool
    cut: str
    what: str = "column"


def frequency_bars(curve: SizeCurve, size: int, limit: int = 30) -> FrequencyBars:
    """Selection frequencies in half-samples; the chosen columns are among those shown whatever their frequency."""
    halves = curve.stability
    if halves is None:
        raise ValueError("the curve has no half-samples; expected one of select_size(..., stability=50).")
    frequency = halves.frequencies[halves.at(size)]
    chosen = np.isin(halves.columns, halves.chosen[halves.at(size)])
    ranked = np.lexsort((halves.columns, ~chosen, -frequency))
    ranked = ranked[(frequency[ranked] > 0) | chosen[ranked]]
    first = np.lexsort((np.arange(ranked.size), ~chosen[ranked]))[:limit]
    at = ranked[np.sort(first)]
    columns = halves.columns[at].tolist()
    ends = np.array([halves.spread(j, size) for j in columns]).reshape(-1, 2)
    some = at.size < ranked.size
    return FrequencyBars(
        size=size,
        labels=unit_labels(curve, columns, 28),
        frequency=frequency[at],
        chosen=chosen[at],
        low=ends[:, 0],
        high=ends[:, 1],
        halves=2 * halves.pairs,
        threshold=THRESHOLD,
        shuffled=float("nan") if curve.null is None else float(np.max(curve.null.highest)),
        cut=f"{at.size} of {counted(curve, ranked.size)}" if some else f"all {counted(curve, ranked.size)}",
        what=what_is_counted(curve),
    )


def marks(curve: SizeCurve) -> list[Mark]:
    """Sizes to point at: the recommended one and a second one worth knowing; where nothing predicts, the one shown."""
    from pairflip.report.answer import answer_of

    answer = answer_of(curve)
    if not answer.predicts:
        return [Mark(size_to_show(curve), "lowest with columns", False)]
    second = answer.other_size
    found = [Mark(answer.size, "recommended", True)]
    if second is not None:
        found.append(Mark(second, "lowest error" if second == curve.best_size else "one-SE size", False))
    return sorted(found, key=lambda mark: mark.size)


def error_bars(curve: SizeCurve) -> ErrorBars:
    """cv_error with one standard error to either side, by size; size 0 is kept apart."""
    order = by_size(curve)
    known = np.where(np.isfinite(curve.cv_error_se), curve.cv_error_se, 0.0)
    error, half, training = curve.cv_error[order], known[order], curve.energy_per_row[order]
    best = curve.at(curve.best_size)
    without = float(curve.cv_error[curve.at(0)]) if 0 in curve.sizes else float("nan")
    limit = float(curve.cv_error[best] + known[best])
    errors = np.append(error, without)
    errors = errors[np.isfinite(errors) & (errors > 0)]
    log = bool(errors.size and errors.max() > _TOO_UNLIKE * errors.min())
    shown = np.concatenate([error, [without, limit], error - half, error + half, training])
    shown = shown[np.isfinite(shown)]
    if log:  # what is far below all errors would push them together again
        shown = shown[shown > errors.min() / 3]
    return ErrorBars(
        sizes=curve.sizes[order],
        error=error,
        low=error - half,
        high=error + half,
        training=training,
        told=[f"{curve.loss.words.error} {cell}" for cell in error_texts(curve, curve.sizes[order].tolist())],
        without=without,
        without_text=baseline(curve),
        marks=marks(curve),
        limit=limit,
        log=log,
        axis=(float(shown.min()), float(shown.max())) if shown.size else (0.0, 1.0),
        what=what_is_counted(curve),
    )


def by_size(curve: SizeCurve) -> Ints:
    """Places of the sizes above 0, the smallest first."""
    order = np.argsort(curve.sizes, kind="stable")
    return order[curve.sizes[order] > 0]


def count_map(curve: SizeCurve, limit: int = 40, length: int = 28) -> CountMap:
    """Columns selected in at least one fold, the most selected first.

    The columns of the final fits of the sizes that figures point at are among them whatever their counts.
    """
    order = by_size(curve)
    total = curve.selection_counts.sum(axis=0)
    total = total if curve.units is None else curve.units.once(total)
    ranked = np.argsort(-total, kind="stable")
    ranked = ranked[: int(np.count_nonzero(total))]
    ever = ranked.size
    pointed = marks(curve)
    chosen = np.unique([unit for mark in pointed for unit in units_of(curve, mark.size)]).astype(np.int64)
    top = ranked[:limit]
    missing = chosen[~np.isin(chosen, top)]
    spare = top[~np.isin(top, chosen)]
    dropped = spare[::-1][: max(0, top.size + missing.size - limit)] if missing.size else spare[:0]
    shown = np.concatenate([top[~np.isin(top, dropped)], missing])
    shown = shown[np.argsort(-total[shown], kind="stable")][:limit].astype(np.int64)
    n_missing = int(np.count_nonzero(np.isin(missing, shown)))
    counts = curve.selection_counts[order][:, shown]
    final = np.array([np.isin(shown, curve.supports[s]) for s in order])
    return CountMap(
        sizes=curve.sizes[order],
        columns=shown,
        labels=unit_labels(curve, shown.tolist(), length),
        counts=counts,
        fraction=counts / max(1, curve.n_folds),
        final=final.reshape(counts.shape),
        n_folds=curve.n_folds,
        marks=pointed,
        cut=_cut_of_counts(shown.size, n_missing, counted(curve, ever), ever),
        what=what_is_counted(curve),
    )


def _cut_of_counts(shown: int, missing: int, many: str, ever: int) -> str:
    """Which of the columns are shown."""
    if shown - missing >= ever:
        return f"all {many} selected in any fold"
    if missing:
        return f"{shown - missing} most selected of {many} and {missing} more of the final fits"
    return f"{shown} most selected of {many}"


def coefficient_paths(
    curve: SizeCurve, relative: bool | None = None, limit: int = 60, length: int = 28, first: int | None = None
) -> Paths:
    """Coefficients of the final fits against size."""
    if curve.outputs is not None:
        raise ValueError("coefficients against size are drawn for one target, and this result has several.")
    order = by_size(curve)
    used, times = np.unique(np.concatenate([curve.supports[s] for s in order]), return_counts=True)
    here = np.isin(used, curve.supports[curve.at(size_to_show(curve) if first is None else first)])
    ranked = np.lexsort((used, -times, ~here))
    shown = used[ranked][:limit].astype(np.int64)
    coefs = np.full((order.size, shown.size), np.nan)
    for row, s in enumerate(order):
        known = dict(zip(curve.supports[s].tolist(), curve.coefs[s].tolist(), strict=True))
        coefs[row] = [known.get(j, np.nan) for j in shown.tolist()]
    largest = np.array([np.max(np.abs(c[np.isfinite(c)]), initial=0.0) for c in coefs.T])
    nonzero = largest[:_NAMED][largest[:_NAMED] > 0]
    if relative is None:
        relative = bool(nonzero.size and nonzero.max() > _UNLIKE_UNITS * nonzero.min())
    values = coefs / np.where(largest > 0, largest, 1.0) if relative else coefs
    some = shown.size < used.size
    return Paths(
        sizes=curve.sizes[order],
        columns=shown,
        labels=column_labels(curve.names, shown.tolist(), length),
        coefs=coefs,
        values=values,
        relative=relative,
        cut=f"{shown.size} of {plural(used.size, 'column')}" if some else f"all {plural(used.size, 'column')}",
        what=what_is_counted(curve),
    )
