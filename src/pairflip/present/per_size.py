"""Texts and tables that follow the slider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.crossval.verdict import baseline, uncertain
from pairflip.present.cooling_numbers import Cooling
from pairflip.present.numbers import Scatter, size_words
from pairflip.present.stand_ins import STRONG, stand_ins
from pairflip.text import NOTHING, aligned, column_labels, explained, number, percent, plural

if TYPE_CHECKING:
    from pairflip.crossval.curve import SizeCurve

Rows = list[list[str]]

_ROWS = 150  # rows of a table that follows the slider
_RESIDUALS = 25
_COLD_ROWS = 12


def of_size(curve: SizeCurve, size: int, points: Scatter, cold: Cooling, row_labels: Sequence[str]) -> dict[str, Any]:
    """Everything that changes with the size shown."""
    at = curve.at(size)
    counts = curve.selection_counts[at]
    support = curve.supports[at].tolist()
    by_count = sorted(range(len(support)), key=lambda i: -int(counts[support[i]]))[:_ROWS]
    columns = [support[i] for i in by_count]
    replacing = _stand_in_rows(curve, size, columns)
    return {
        "name": size_name(curve, size),
        "summary": _summary(curve, size, points, len(support)),
        "columns": _column_rows(curve, size, columns, by_count),
        "stand_ins": replacing,
        "no_stand_ins": _no_stand_ins(size, replacing),
        "fit": f"Root mean square error {number(points.rmse, 3)}{_explained(curve, points)}.{_beyond(points)}",
        "residuals": _residual_rows(curve, size, row_labels),
        "chains": cold.cut,
        "cooling": _cooling_rows(cold),
    }


def size_name(curve: SizeCurve, size: int) -> str:
    """``4 columns (recommended, lowest error)``, ``0 columns (mean alone)``."""
    words = [word for word in size_words(curve, size) if word != "one-SE size" or size != curve.best_size]
    if not size:
        words = [baseline(curve)]
    return plural(size, "column") + (f" ({', '.join(words)})" if words else "")


def _summary(curve: SizeCurve, size: int, points: Scatter, n_columns: int) -> str:
    at = curve.at(size)
    error = f"Root mean square error {number(points.rmse, 3)} on held-out rows{_explained(curve, points)}."
    if not size:
        return f"No columns ({baseline(curve)}). {error}"
    same = round(curve.stability[at] * curve.n_folds)
    doubt = " The search is uncertain at this size." if uncertain(curve, size) else ""
    return f"{error} {same:,} of {plural(curve.n_folds, 'fold')} selected exactly these columns.{doubt}" + (
        f" The {_ROWS} columns selected most often are listed." if n_columns > _ROWS else ""
    )


def _explained(curve: SizeCurve, points: Scatter) -> str:
    """How much is explained; the mean itself (of the other rows) is not compared with the mean."""
    return f", {explained(points.r2)}" if points.size or curve.always.size else ""


def _column_rows(curve: SizeCurve, size: int, columns: Sequence[int], places: Sequence[int]) -> Rows:
    """Selected columns, the most often selected first, then forced ones and the constant."""
    at = curve.at(size)
    counts = curve.selection_counts[at]
    labels = column_labels(curve.names, columns) + column_labels(curve.names, curve.always.tolist())
    folds = [f"{counts[j]:,} of {curve.n_folds:,}" for j in columns] + ["always in"] * curve.always.size
    values = [*(curve.coefs[at][i] for i in places), *curve.always_coefs[at], curve.intercepts[at]]
    texts = aligned(values, least=4)
    return [list(row) for row in zip([*labels, "(constant)"], texts, [*folds, NOTHING], strict=True)]


def _stand_in_rows(curve: SizeCurve, size: int, columns: Sequence[int]) -> Rows:
    labels = dict(zip(columns, column_labels(curve.names, columns, 80), strict=True))
    return [
        [
            labels[found.chosen],
            found.text + (" (also chosen)" if found.also_chosen else ""),
            _correlation(found.correlation),
            f"{found.folds:,} of {curve.n_folds:,}",
        ]
        for found in stand_ins(curve, size, columns)
    ][: 2 * _ROWS]


def _correlation(r: float) -> str:
    """Three decimals; 1 only if it is exactly that."""
    if 0.9995 <= abs(r) < 1:
        return ">0.999" if r > 0 else "<-0.999"
    return f"{r:.3f}"


def _no_stand_ins(size: int, rows: Rows) -> str:
    if rows or not size:
        return "" if rows else "No columns are chosen at this size."
    return f"None: no other column has a correlation above {STRONG} or below -{STRONG} with a chosen one."


def _beyond(points: Scatter) -> str:
    if not points.beyond:
        return ""
    return f" {plural(points.beyond, 'prediction')} far outside the observed values: hollow, at the edge of the figure."


def _residual_rows(curve: SizeCurve, size: int, row_labels: Sequence[str]) -> Rows:
    """Rows with the largest residuals, each once: where a row was predicted several times, the mean prediction."""
    n = len(row_labels)
    times = np.bincount(curve.held_out_rows, minlength=n)
    total = np.bincount(curve.held_out_rows, curve.predictions[curve.at(size)], n)
    target = np.zeros(n)
    target[curve.held_out_rows] = curve.observed
    rows = np.flatnonzero(times)
    predicted, observed = total[rows] / times[rows], target[rows]
    largest = np.argsort(-np.abs(observed - predicted), kind="stable")[:_RESIDUALS]
    values = np.column_stack([observed, predicted, observed - predicted])[largest]
    texts = iter(aligned(values.ravel()))
    return [[row_labels[rows[p]], next(texts), next(texts), next(texts)] for p in largest]


def _cooling_rows(cold: Cooling) -> Rows:
    steps = cold.temperature.size
    if not steps:
        return []
    at = np.unique(np.linspace(0, steps - 1, _COLD_ROWS).round().astype(np.int64))
    energy = cold.energy[:, at]
    texts = iter(
        aligned(np.column_stack([energy.min(axis=0), np.median(energy, axis=0), energy.max(axis=0)]).ravel(), 5)
    )
    return [
        [temperature, next(texts), next(texts), next(texts), percent(float(np.median(cold.acceptance[:, t])))]
        for t, temperature in zip(at, aligned(cold.temperature[at], 3), strict=True)
    ]
