"""The numbers behind each figure, as pure functions of a `SizeCurve`: drawing never computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairflip.crossval.verdict import r_squared
from pairflip.labels import column_labels, plural
from pairflip.least_squares import Floats

if TYPE_CHECKING:
    from pairflip.annealing import Trace
    from pairflip.crossval.curve import SizeCurve

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_LARGEST_KEPT = 20  # residuals that thinning never removes: outliers are what a reader looks for
_UNLIKE_UNITS = 1000.0  # columns whose coefficients differ by more are drawn relative to their own largest one
_NAMED = 7  # columns that a figure has colours for


@dataclass(frozen=True)
class ErrorBars:
    """cv_error against size: `error`, `low`, `high`, `training` (S,); `limit` is the lowest error plus its error."""

    sizes: Ints
    error: Floats
    low: Floats
    high: Floats
    training: Floats
    best_size: int
    one_se_size: int
    limit: float


@dataclass(frozen=True)
class CountMap:
    """Selection counts (S, R) of R columns, `share` of the folds, and whether the `final` fit has the column."""

    sizes: Ints
    columns: Ints
    labels: list[str]
    counts: Ints
    share: Floats
    final: Bools
    n_folds: int
    cut: str


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


@dataclass(frozen=True)
class Scatter:
    """Held-out rows of one size: `observed`, `predicted`, `residual` (observed - predicted) of the rows shown.

    `rmse` and `share_explained` are those of all rows, each by its weight.
    """

    size: int
    rows: Ints
    observed: Floats
    predicted: Floats
    residual: Floats
    rmse: float
    share_explained: float
    cut: str


@dataclass(frozen=True)
class Cooling:
    """Energy and acceptance (chains, steps) against `temperature` (steps,), hottest first; empty if not annealed."""

    size: int
    temperature: Floats
    energy: Floats
    acceptance: Floats
    cut: str


def error_bars(curve: SizeCurve) -> ErrorBars:
    """cv_error with one standard error to either side, by size."""
    order = np.argsort(curve.sizes, kind="stable")
    error = curve.cv_error[order]
    half = np.where(np.isfinite(curve.cv_error_se), curve.cv_error_se, 0.0)[order]
    at = int(np.flatnonzero(curve.sizes[order] == curve.best_size)[0])
    return ErrorBars(
        sizes=curve.sizes[order],
        error=error,
        low=error - half,
        high=error + half,
        training=curve.energy_per_row[order],
        best_size=curve.best_size,
        one_se_size=curve.one_se_size,
        limit=float(error[at] + half[at]),
    )


def count_map(curve: SizeCurve, limit: int = 40, length: int = 28) -> CountMap:
    """Columns selected in at least one fold, the most selected first, at most `limit` of them.

    The columns of the final fits of the best and the one-standard-error size are among them whatever their counts.
    """
    order = np.argsort(curve.sizes, kind="stable")
    total = curve.selection_counts.sum(axis=0)
    ranked = np.argsort(-total, kind="stable")
    ranked = ranked[: int(np.count_nonzero(total))]
    ever = ranked.size
    chosen = np.unique(np.concatenate([curve.supports[curve.at(k)] for k in (curve.best_size, curve.one_se_size)]))
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
        labels=column_labels(curve.names, shown.tolist(), length),
        counts=counts,
        share=counts / max(1, curve.n_folds),
        final=final.reshape(counts.shape),
        n_folds=curve.n_folds,
        cut=_cut_of_counts(shown.size, n_missing, ever),
    )


def _cut_of_counts(shown: int, missing: int, ever: int) -> str:
    """What part of the columns is shown; `missing` ones are not among the most selected but in a final fit."""
    if shown - missing >= ever:
        return f"all {plural(ever, 'column')} selected in any fold"
    if missing:
        return f"{shown - missing} most selected of {plural(ever, 'column')} and {missing} more of the final fits"
    return f"{shown} most selected of {plural(ever, 'column')}"


def coefficient_paths(
    curve: SizeCurve, relative: bool | None = None, limit: int = 60, length: int = 28, first: int | None = None
) -> Paths:
    """Coefficients of the final fits against size.

    Columns of the size `first` (None: the best one) come first, then those that are in the most sizes. `relative`
    None: divide each column by its largest coefficient if those of the first seven differ more than thousandfold.
    """
    order = np.argsort(curve.sizes, kind="stable")
    used, times = np.unique(np.concatenate([curve.supports[s] for s in order]), return_counts=True)
    here = np.isin(used, curve.supports[curve.at(curve.best_size if first is None else first)])
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
    )


def shown_rows(curve: SizeCurve, limit: int) -> Ints:
    """Places of at most `limit` held-out predictions: evenly spread over the observed values, outliers kept."""
    total = curve.observed.size
    if total <= limit:
        return np.arange(total)
    residual = np.abs(curve.observed - curve.predictions[curve.at(curve.best_size)])
    largest = np.argsort(-residual, kind="stable")[: min(_LARGEST_KEPT, limit // 2)]
    others = np.setdiff1d(np.argsort(curve.observed, kind="stable"), largest, assume_unique=True)
    others = others[np.argsort(curve.observed[others], kind="stable")]
    spread = np.linspace(0, others.size - 1, limit - largest.size).round().astype(np.int64)
    return np.sort(np.concatenate([largest, others[spread]]))


def held_out(curve: SizeCurve, size: int | None = None, limit: int = 5000) -> Scatter:
    """Held-out prediction against truth at a size (None: the best one), thinned to `limit` rows."""
    size = curve.best_size if size is None else int(size)
    predicted = curve.predictions[curve.at(size)]
    residual = curve.observed - predicted
    at = shown_rows(curve, limit)
    w = curve.weights
    total = curve.observed.size
    return Scatter(
        size=size,
        rows=curve.held_out_rows[at],
        observed=curve.observed[at],
        predicted=predicted[at],
        residual=residual[at],
        rmse=float(np.sqrt(np.average(residual**2, weights=w))) if w.sum() > 0 else float("nan"),
        share_explained=r_squared(curve, size),
        cut=f"{at.size:,} of {total:,} held-out predictions"
        if at.size < total
        else f"all {total:,} held-out predictions",
    )


def cooling(source: SizeCurve | Trace, size: int | None = None, chains: int = 64, steps: int | None = None) -> Cooling:
    """Energy and acceptance against temperature: of the final fit of a size (None: the best one), or of a `Trace`.

    At most `chains` chains, evenly spread from the lowest to the highest last energy, and `steps` temperatures.
    A start at (nearly) infinite temperature is left out, since no axis has room for it, and so is the end of a schedule
    where no chain accepts a flip any more, but for its first steps.
    """
    from pairflip.crossval.curve import SizeCurve

    if isinstance(source, SizeCurve):
        size = source.best_size if size is None else int(size)
        at = source.at(size)
        betas, energy, acceptance = (
            source.annealing.betas[at],
            source.annealing.energy[at],
            source.annealing.acceptance[at],
        )
    else:
        size, betas, energy, acceptance = source.k, source.betas, source.energy, source.acceptance
    step = np.flatnonzero(np.isfinite(betas) & (betas > 0))
    while step.size > 1 and betas[step[1]] > 100 * betas[step[0]]:
        step = step[1:]
    moving = np.flatnonzero(np.nan_to_num(acceptance[:, step]).any(axis=0))
    if moving.size:
        step = step[: moving[-1] + 4]
    if steps is not None and step.size > steps:
        step = step[np.unique(np.linspace(0, step.size - 1, steps).round().astype(np.int64))]
    alive = np.flatnonzero(np.isfinite(energy[:, step]).all(axis=1)) if step.size else np.arange(0)
    shown = alive
    if alive.size > chains:
        ranked = alive[np.argsort(energy[alive, step[-1]], kind="stable")]
        shown = np.sort(ranked[np.unique(np.linspace(0, alive.size - 1, chains).round().astype(np.int64))])
    if shown.size == 0:
        step = step[:0]
    part = f"{shown.size} of {plural(alive.size, 'chain')}" if shown.size < alive.size else plural(alive.size, "chain")
    return Cooling(
        size=size,
        temperature=1.0 / betas[step],
        energy=energy[np.ix_(shown, step)],
        acceptance=acceptance[np.ix_(shown, step)],
        cut=part if shown.size else "no annealing: nothing to choose at this size",
    )
