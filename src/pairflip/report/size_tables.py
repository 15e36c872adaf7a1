"""The tables with one line for each size, as texts: the main one with few columns, and two that are closed at first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pairflip.least_squares import Floats
from pairflip.report.group_words import counted
from pairflip.report.scores import error_cells, heads, share_cells, what_errors_are
from pairflip.selection.verdict import baseline, held_out, least_agreement, recommended_size, single_rows, uncertain
from pairflip.text import NOTHING, aligned, aligned_plus_minus, number, percent

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve

SEARCH_HEADS = ("Size", "Chains agree: folds", "Chains agree: final fit", "Run-to-run SD of cv_error", "Energy")


def size_heads(curve: SizeCurve) -> tuple[str, ...]:
    """Headings of the main table."""
    return ("Size", *heads(curve), "cv_error ± SE", "Unchanged", "Chains agree", "Remarks")


def left_out(curve: SizeCurve) -> str:
    """What a fold leaves out."""
    return "one row is left out" if single_rows(curve) else "a fold is left out"


def size_words(curve: SizeCurve, size: int) -> list[str]:
    """Remarks on a size: recommended, lowest error, one-SE size."""
    recommended = size > 0 and size == recommended_size(curve)
    words = (("recommended", recommended), ("lowest error", size == curve.best_size))
    return [word for word, holds in (*words, ("one-SE size", size == curve.one_se_size)) if holds]


@dataclass(frozen=True)
class SizeRow:
    """One line: its cells, which of them are the lowest of their column, and whether the size is recommended."""

    size: int
    cells: tuple[str, ...]
    lowest: tuple[bool, ...]
    marked: bool


def explanation(curve: SizeCurve) -> str:
    """What the columns of the main table mean."""
    limit = least_agreement(curve)
    doubt = f"; below {percent(limit)}, better columns may have been missed, and the remark says “search uncertain”"
    doubt = doubt if limit else ""
    return (
        f"Errors on held-out rows by size: {what_errors_are(curve)}. Unchanged: fraction of the folds "
        f"that selected exactly the columns of the final fit, so unchanged when {left_out(curve)} (noise can pass "
        f"this, too). Chains agree: fraction of the searches that reached the best set of their fold{doubt}."
        f"{correction_note(curve)}"
    )


def correction_note(curve: SizeCurve) -> str:
    """Why the answer's numbers differ from those of the table of sizes; empty where they do not."""
    if curve.chosen is None:
        return ""
    size, told = curve.chosen.size, curve.chosen
    here = held_out(curve, size)
    if curve.survival is not None and told.ranked is not None:
        return (
            " The answer's concordance is corrected for the size having been chosen, that of this table is not: at "
            f"{counted(curve, size)}, {told.ranked[0]:.2f} and {curve.survival.concordance[curve.at(size)]:.2f}."
        )
    rmse = f", the RMSE {number(told.rmse[0], 3)} and {number(here.rmse, 3)}" if curve.loss.squared else ""
    return (
        " The answer's numbers are corrected for the size having been chosen, those of this table are not: at "
        f"{counted(curve, size)}, the explained part of the {curve.loss.words.explained} is {percent(told.r2[0])} in "
        f"the answer and {percent(here.r2)} in this table{rmse}."
    )


def size_rows(curve: SizeCurve) -> list[SizeRow]:
    """The main table."""
    order = _order(curve)
    sizes = [int(k) for k in curve.sizes[order]]
    columns = [
        [str(k) if k else f"0 ({baseline(curve)})" for k in sizes],
        error_cells(curve, sizes),
        share_cells(curve, sizes),
        aligned_plus_minus(curve.cv_error[order].tolist(), curve.cv_error_se[order].tolist()),
        [percent(curve.unchanged[s]) if curve.sizes[s] else NOTHING for s in order],
        [percent(curve.agreement[s]) if curve.sizes[s] else NOTHING for s in order],
        ["; ".join(_remarks(curve, k)) for k in sizes],
    ]
    marked = ["recommended" in size_words(curve, k) for k in sizes]
    return _rows(sizes, columns, {}, marked)


def _remarks(curve: SizeCurve, size: int) -> list[str]:
    return size_words(curve, size) + (["search uncertain"] if size and uncertain(curve, size) else [])


def criteria_heads(curve: SizeCurve) -> tuple[str, ...]:
    """Headings of `criteria_rows`."""
    return "Size", "Training error", *(name.upper() for name in curve.criteria)


def criteria_rows(curve: SizeCurve) -> list[SizeRow]:
    """Training error and information criteria, the lowest of each marked."""
    order = _order(curve)
    sizes = [int(k) for k in curve.sizes[order]]
    criteria = [values[order] for values in curve.criteria.values()]
    columns = [
        [str(k) for k in sizes],
        aligned(curve.energy_per_row[order], 3),
        *([f"{v:.1f}" if np.isfinite(v) else NOTHING for v in values] for values in criteria),
    ]
    return _rows(sizes, columns, {2 + i: values for i, values in enumerate(criteria)}, [False] * len(sizes))


def search_rows(curve: SizeCurve) -> list[SizeRow]:
    """How well the search went at each size that was searched."""
    order = _order(curve)
    order = order[curve.sizes[order] > 0]
    sizes = [int(k) for k in curve.sizes[order]]
    columns = [
        [str(k) for k in sizes],
        [percent(v) for v in curve.agreement[order]],
        [percent(v) for v in curve.final_agreement[order]],
        aligned((_spread(curve.chain_cv_error[s]) for s in order), 2),
        aligned(curve.energies[order], least=3),
    ]
    return _rows(sizes, columns, {}, [False] * len(sizes))


def _order(curve: SizeCurve) -> np.ndarray:
    return np.argsort(curve.sizes, kind="stable")


def _rows(sizes: list[int], columns: list[list[str]], lowest: dict[int, Floats], marked: list[bool]) -> list[SizeRow]:
    """Columns of texts become rows; of the columns in `lowest`, the smallest finite value is pointed out."""
    least = {i: int(np.nanargmin(v)) for i, v in lowest.items() if np.isfinite(v).any()}
    return [
        SizeRow(size, tuple(c[at] for c in columns), tuple(least.get(i) == at for i in range(len(columns))), marked[at])
        for at, size in enumerate(sizes)
    ]


def _spread(values: Floats) -> float:
    """Standard deviation; that of rounding errors is zero."""
    spread = float(np.std(values))
    return 0.0 if spread < 1e-12 * float(np.max(np.abs(values))) else spread
