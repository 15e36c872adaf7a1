"""Texts and tables that follow the slider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pairflip.present.numbers import size_words
from pairflip.present.stand_ins import STRONG, stand_ins
from pairflip.selection.verdict import baseline, held_out, uncertain
from pairflip.text import NOTHING, aligned, column_labels, explained, number, plural

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve

Rows = list[list[str]]

_ROWS = 150  # rows of a table that follows the slider


def of_size(curve: SizeCurve, size: int) -> dict[str, Any]:
    """Texts and rows of tables about the columns of a size."""
    at = curve.at(size)
    counts = curve.selection_counts[at]
    support = curve.supports[at].tolist()
    by_count = sorted(range(len(support)), key=lambda i: -int(counts[support[i]]))[:_ROWS]
    columns = [support[i] for i in by_count]
    replacing = _stand_in_rows(curve, size, columns)
    return {
        "name": size_name(curve, size),
        "summary": _summary(curve, size, len(support)),
        "columns": _column_rows(curve, size, columns, by_count),
        "stand_ins": replacing,
        "no_stand_ins": _no_stand_ins(size, replacing),
    }


def size_name(curve: SizeCurve, size: int) -> str:
    """``4 columns (recommended, lowest error)``, ``0 columns (mean alone)``."""
    words = [word for word in size_words(curve, size) if word != "one-SE size" or size != curve.best_size]
    if not size:
        words = [baseline(curve)]
    return plural(size, "column") + (f" ({', '.join(words)})" if words else "")


def _summary(curve: SizeCurve, size: int, n_columns: int) -> str:
    at, now = curve.at(size), held_out(curve, size)
    # The mean itself (of the other rows) is not compared with the mean.
    much = f", {explained(now.r2)}" if size or curve.always.size else ""
    error = f"Root mean square error {number(now.rmse, 3)} on held-out rows{much}."
    if not size:
        return f"No columns ({baseline(curve)}). {error}"
    same = round(curve.stability[at] * curve.n_folds)
    doubt = " The search is uncertain at this size." if uncertain(curve, size) else ""
    return f"{error} {same:,} of {plural(curve.n_folds, 'fold')} selected exactly these columns.{doubt}" + (
        f" The {_ROWS} columns selected most often are listed." if n_columns > _ROWS else ""
    )


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
