"""Texts and tables that follow the slider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pairflip.report.group_words import group_of, kept
from pairflip.report.scores import how_good
from pairflip.report.size_tables import left_out, size_words
from pairflip.report.stand_ins import STRONG, stand_ins
from pairflip.selection.coefficients import coefficient_rows, target_coefficients
from pairflip.selection.verdict import baseline, uncertain
from pairflip.text import NOTHING, aligned, clean, column_labels, number, percent, plural, r2_text

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve
    from pairflip.selection.stability import Stability

Rows = list[list[str]]

_ROWS = 150  # rows of a table that follows the slider


def of_size(curve: SizeCurve, size: int) -> dict[str, Any]:
    """Texts and rows of tables about the columns of a size."""
    at = curve.at(size)
    counts = curve.selection_counts[at]
    support = curve.supports[at].tolist()
    unit = range(len(counts)) if curve.units is None else curve.units.first  # columns of a group stay together
    by_count = sorted(range(len(support)), key=lambda i: (-int(counts[support[i]]), int(unit[support[i]])))[:_ROWS]
    columns = [support[i] for i in by_count]
    replacing = _stand_in_rows(curve, size, columns)
    return {
        "name": size_name(curve, size),
        "summary": _summary(curve, size, len(support)),
        "columns": _column_rows(curve, size, columns),
        "stand_ins": replacing,
        "no_stand_ins": _no_stand_ins(size, replacing),
    }


def size_name(curve: SizeCurve, size: int) -> str:
    """``4 columns (recommended, lowest error)``, ``0 columns (mean alone)``, ``2 groups (5 columns; recommended)``."""
    words = [word for word in size_words(curve, size) if word != "one-SE size" or size != curve.best_size]
    if not size:
        words = [baseline(curve)]
    name = kept(curve, size) if size else plural(size, "column")
    if not words:
        return name
    return f"{name} ({', '.join(words)})" if not name.endswith(")") else f"{name[:-1]}; {', '.join(words)})"


def _summary(curve: SizeCurve, size: int, n_columns: int) -> str:
    at = curve.at(size)
    # The mean itself (of the other rows) is not compared with the mean.
    words = how_good(curve, size, compared=bool(size or curve.always.size)).partition(", ")
    error = f"{curve.loss.words.long_error} {words[0]} on held-out rows{''.join(words[1:])}."
    if curve.chosen is not None and curve.chosen.size == size and curve.loss.squared:
        rmse = [number(value, 3) for value in curve.chosen.rmse]
        error += f" Corrected for having chosen this size: {rmse[0]} ({rmse[1]} to {rmse[2]})."
    if curve.targets is not None and size:
        own = zip(curve.targets.names, curve.targets.r2[at].tolist(), strict=True)
        error += f" R2 of each target: {', '.join(f'{clean(name)} {r2_text(r2)}' for name, r2 in own)}."
    if not size:
        return f"No columns ({baseline(curve)}). {error}"
    same = round(curve.unchanged[at] * curve.n_folds)
    doubt = " The search is uncertain at this size." if uncertain(curve, size) else ""
    more = f" The {_ROWS} columns selected most often are listed." if n_columns > _ROWS else ""
    return (
        f"{error} Unchanged in {same:,} of {plural(curve.n_folds, 'fold')}, when {left_out(curve)} (noise can pass "
        f"this, too).{doubt}{more}"
    )


def column_heads(curve: SizeCurve) -> list[str]:
    """Headings of the table of columns: what is known of this curve."""
    if curve.outputs is not None:
        seen = ["Selected in halves"] if curve.stability is not None else []
        return ["Column", *map(clean, curve.outputs), *seen, "Selected in folds"]
    halves = ["In halves: 5 %", "95 %", "Selected in halves"] if curve.stability is not None else []
    errors = ["Standard error"] if curve.standard_errors is not None else []
    group = ["Group"] if curve.groups is not None else []
    return ["Column", *group, "Coefficient", *errors, *halves, "Selected in folds"]


def column_about(curve: SizeCurve) -> str:
    """What the columns of that table mean."""
    text = "Columns and coefficients of the final fit on all rows, in the units of the table."
    if curve.groups is not None:
        text += (
            " Groups enter as a whole; where columns of a group depend on each other (dummies of one category do), "
            "coefficients are the smallest that fit alike."
        )
    if curve.outputs is not None:
        text = text.replace("coefficients", f"coefficients for each {'class' if curve.targets is None else 'target'}")
    if curve.standard_errors is not None:
        text += (
            " Standard errors are those of columns that were fixed beforehand; these were chosen because they fit, so "
            "coefficients tend to be too large and these errors too small."
        )
    if curve.stability is not None and curve.outputs is not None:
        text += f" Selected in halves: how many of {2 * curve.stability.pairs} {curve.stability.how} did."
    elif curve.stability is not None:
        text += (
            f" In halves: quantiles of the coefficient over those of {2 * curve.stability.pairs} "
            f"{curve.stability.how} that selected the column (where at least ten did), and how many did."
        )
    return text


def _column_rows(curve: SizeCurve, size: int, columns: Sequence[int]) -> Rows:
    """Selected columns, the most often selected first, then forced ones and the constant."""
    counts = curve.selection_counts[curve.at(size)]
    order = (*columns, *curve.always.tolist(), -1)
    labels = [*column_labels(curve.names, columns), *column_labels(curve.names, curve.always.tolist()), "(constant)"]
    kinds = {"selected": "", "always": "always in", "intercept": NOTHING}
    if curve.outputs is not None:
        several = {row.place: row for row in target_coefficients(curve, size)}
        values = zip(*(several[j].coefficients for j in order), strict=True)
        kept = [kinds[several[j].kind] or f"{counts[j]:,} of {curve.n_folds:,}" for j in order]
        own = [aligned(list(of_target), least=4) for of_target in values]
        if curve.stability is not None:
            own.append([percent(_frequency(curve.stability, j, size)) for j in order])
        return [list(row) for row in zip(labels, *own, kept, strict=True)]
    every = {row.place: row for row in coefficient_rows(curve, size)}
    shown = [every[j] for j in order]
    folds = [kinds[row.kind] or f"{counts[row.place]:,} of {curve.n_folds:,}" for row in shown]
    cells = [labels, aligned([row.coefficient for row in shown], least=4)]
    if curve.groups is not None:
        cells.insert(1, [group_of(curve, row.place) or NOTHING for row in shown])
    if curve.standard_errors is not None:
        cells.append(aligned([row.standard_error for row in shown], 3))
    if curve.stability is not None:
        cells += [aligned([row.coef_5 for row in shown], 3), aligned([row.coef_95 for row in shown], 3)]
        cells.append([percent(row.frequency) for row in shown])
    return [list(row) for row in zip(*cells, folds, strict=True)]


def _frequency(halves: Stability, column: int, size: int) -> float:
    """Fraction of the half-samples that selected a chosen column; not-a-number for others, and where none are known."""
    known = size in halves.sizes and column in halves.chosen[halves.at(size)]
    return halves.frequency(column, size) if known else float("nan")


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
