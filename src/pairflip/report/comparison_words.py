"""What is said about a comparison of methods: the sentence, the cautions, and tables of texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairflip.comparison.record import Comparison, MethodResult, MethodSize
from pairflip.least_squares import Floats
from pairflip.text import (
    NOTHING,
    aligned,
    aligned_plus_minus,
    clean,
    lower_heads,
    number,
    percent,
    plural,
    plus_minus,
    r2_text,
    table_lines,
    text_width,
    wrapped,
)

CLEAR = 2.0
"""A difference of more than so many standard errors is called clear."""
HEADS = ("Method", "Columns", "RMSE ± SE", "R2", "Difference", "Train", "Shared", "CPU s", "Remarks")


def rmse(cv_error: Any) -> Any:
    """Root mean square errors of values of cv_error, numbers or arrays."""
    return np.sqrt(2.0 * np.maximum(cv_error, 0.0))


def rmse_se(cv_error: Any, spread: Any, other: Any = None) -> Any:
    """A standard error of cv_error as one of the RMSE; with `other`, of the difference from that of another method."""
    # Half the difference of two squares is that of their roots times the mean of these.
    middle = (rmse(cv_error) + rmse(cv_error if other is None else other)) / 2.0
    return spread / np.maximum(middle, 1e-300)


def _error_text(method: MethodResult) -> str:
    return f"RMSE {plus_minus(rmse(method.cv_error), rmse_se(method.cv_error, method.cv_error_se))}"


def size_words(method: MethodResult) -> str:
    """``5 columns``, ``no columns``, ``all columns``."""
    if method.chosen is not None:
        return plural(method.chosen, "column") if method.chosen else "no columns"
    used = len(method.rows[0].columns) if method.rows else 0
    return plural(used, "column") if used else "all columns"


def shown_row(method: MethodResult) -> MethodSize | None:
    """The row of the size that a method would choose, or its only one."""
    if not method.rows or method.note:
        return None
    return method.rows[0] if not method.sized else method.at(method.chosen or 0)


def sentence(comparison: Comparison) -> str:
    """Who has the lowest error, where the reference stands, and which differences are clear."""
    finished = comparison.finished
    if not finished:
        return "No method has a result."
    best = min(finished, key=lambda method: method.cv_error)
    parts = [
        f"Lowest error on held-out rows: {clean(best.title)} with {size_words(best)}, "
        f"{_error_text(best)}; without columns it is {number(rmse(comparison.without))}."
    ]
    if comparison.reference:
        ours, name = comparison[comparison.reference], reference_title(comparison)
        if best.name != ours.name:
            parts.append(f"{name}: {size_words(ours)}, {_error_text(ours)}.")
        others = [m for m in finished if m.name not in ("quick", "normal", "thorough")]
        better = ", ".join(clean(m.title) for m in others if m.difference < -CLEAR * m.difference_se)
        worse = ", ".join(clean(m.title) for m in others if m.difference > CLEAR * m.difference_se)
        if others:
            how = "by more than two standard errors of the difference, row by row"
            than = f"lower than {name} ({how})"
            parts.append(f"Clearly {than}: {better}." if better else f"None is clearly {than}.")
            parts.append(f"Clearly higher: {worse}." if worse else "None is clearly higher.")
    missing = [clean(method.title) for method in comparison.methods if method not in finished]
    if missing:
        parts.append(f"Without a result: {', '.join(missing)}.")
    if comparison.interrupted:
        parts.append("The comparison was interrupted.")
    return " ".join(parts)


def cautions(comparison: Comparison) -> list[str]:
    """What to keep in mind."""
    texts = [
        "A method with sizes is shown at the size with its lowest error. The lowest of several errors is a little too "
        "good, for every such method alike; methods without sizes chose their penalty or components inside the folds, "
        "so theirs is not."
    ]
    if comparison.reference:
        texts.append(
            "Two methods with different columns can predict equally well: shared columns say how much they resemble "
            "each other, not who is right."
        )
    return texts


def method_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """One line for each method, at the size it would choose, in the order of `HEADS`."""
    methods = comparison.methods
    shown = [shown_row(method) for method in methods]
    error, spread = (np.array([getattr(m, of) for m in methods]) for of in ("cv_error", "cv_error_se"))
    ours = comparison[comparison.reference].cv_error if comparison.reference else np.nan
    apart = rmse_se(error, np.array([m.difference_se for m in methods]), ours)
    beside = aligned_plus_minus((rmse(error) - rmse(ours)).tolist(), apart.tolist())
    remarks = [clean(method.note) if method.note else "" for method in methods]
    for at, method in enumerate(methods):
        notes = [row.note for row in method.rows if row.note]
        if notes and not remarks[at]:
            remarks[at] = f"{plural(len(notes), 'size')} without a result: {clean(notes[0])}"
        remarks[at] = remarks[at] or "; ".join(row.detail for row in method.rows if row.detail)
    columns = (
        [clean(method.title) for method in methods],
        [size_words(m).partition(" column")[0] if m in comparison.finished else NOTHING for m in methods],
        aligned_plus_minus(rmse(error).tolist(), rmse_se(error, spread).tolist()),
        [r2_text(comparison.rmse_and_r2(method.cv_error)["r2"]) for method in methods],
        [
            NOTHING if method.name == comparison.reference else f"+{cell}" if method.difference > 0 else cell
            for method, cell in zip(methods, beside, strict=True)
        ],
        aligned((np.nan if row is None else float(rmse(row.energy_per_row)) for row in shown), 3),
        [_shared(comparison, method, row) for method, row in zip(methods, shown, strict=True)],
        [number(method.seconds, 2) for method in methods],
        remarks,
    )
    return list(zip(*columns, strict=True))


def _shared(comparison: Comparison, method: MethodResult, row: MethodSize | None) -> str:
    if row is None or not np.isfinite(row.overlap) or method.name == comparison.reference:
        return NOTHING
    ours = comparison[comparison.reference]
    same = ours.at(row.size if row.size is not None else ours.chosen or 0)
    count = len(same.columns) if same is not None else 0
    return f"{round(row.overlap * count)} of {count}"


def matrix(comparison: Comparison, what: str) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of a table with a line for each size and a column for each method that has sizes.

    `what` is ``"cv_error"`` (as RMSE), ``"energy"`` (over the lowest of all methods at that size) or ``"overlap"``.
    """
    methods = [method for method in comparison.finished if method.sized]
    rows = [[method.at(size) for method in methods] for size in comparison.sizes]
    values = np.array([[np.nan if row is None else float(getattr(row, what)) for row in line] for line in rows])
    if what == "energy":
        lowest = lowest_energies(comparison)[:, None]
        values = np.where(lowest > 0, values / np.where(lowest > 0, lowest, 1.0), np.nan)
    values = rmse(values) if what == "cv_error" else values
    text = percent if what == "overlap" else number
    lines = [[str(size), *map(text, line)] for size, line in zip(comparison.sizes, values.tolist(), strict=True)]
    return ["Size", *(clean(method.title) for method in methods)], lines


def lowest_energies(comparison: Comparison) -> Floats:
    """The lowest training energy (S,) that any method found on all rows at each size."""
    rows = [[method.at(size) for size in comparison.sizes] for method in comparison.finished if method.sized]
    values = [[np.inf if row is None or np.isnan(row.energy) else row.energy for row in line] for line in rows]
    return np.asarray(np.min(np.array(values).reshape(-1, len(comparison.sizes)), axis=0, initial=np.inf))


def reference_title(comparison: Comparison) -> str:
    """What the method that others are compared with is called; where none of ours was run, what it would be."""
    return clean(comparison[comparison.reference].title) if comparison.reference else "pairflip"


def explanation(comparison: Comparison) -> str:
    """What the columns of the table of methods mean."""
    reference = reference_title(comparison)
    return (
        "Columns: the size with the lowest error; methods without sizes: the columns they use. RMSE (root mean square "
        "error ± one standard error), R2: of held-out rows. Difference: how much higher the RMSE is than that of "
        f"{reference}, rows compared with themselves. Train: RMSE of the training rows of the folds. Shared: how many "
        f"of the columns of {reference}, on all rows, it chose, too. CPU s: the search in all folds and on all rows, "
        "all sizes, one thread."
    )


def summary(comparison: Comparison) -> str:
    """The sentence, then one line for each method."""
    width = text_width()
    parts = [*wrapped(sentence(comparison), width), ""]
    parts += table_lines([lower_heads(HEADS), *method_rows(comparison)], names=1, width=width)
    for text in (explanation(comparison), *cautions(comparison)):
        parts += ["", *wrapped(text, width)]
    return "\n".join(parts)
