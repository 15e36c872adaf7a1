"""What is said about a comparison of methods: the sentence, the cautions, and tables of texts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

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
)

CLEAR = 2.0
"""A difference of more than so many standard errors is called clear."""
HEADS = ("Method", "Columns", "RMSE", "R2", "cv_error", "Difference", "Train", "Shared", "CPU s", "Remarks")
_WIDTH = 110


def title_of(method: MethodResult) -> str:
    """What a method is called; a user's own name for it is made safe to show."""
    return clean(method.title)


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


def sentence(found: Comparison) -> str:
    """Who has the lowest error, where the reference stands, and which differences are clear."""
    finished = found.finished
    if not finished:
        return "No method has a result."
    best = min(finished, key=lambda method: method.cv_error)
    parts = [
        f"Lowest error on held-out rows: {title_of(best)} with {size_words(best)}, cv_error "
        f"{plus_minus(best.cv_error, best.cv_error_se)}; without columns it is {number(found.without)}."
    ]
    if found.reference:
        parts += _beside_reference(found, best)
    missing = [title_of(method) for method in found.methods if method not in finished]
    if missing:
        parts.append(f"Without a result: {', '.join(missing)}.")
    if found.interrupted:
        parts.append("The comparison was interrupted.")
    return " ".join(parts)


def _beside_reference(found: Comparison, best: MethodResult) -> list[str]:
    ours = found[found.reference]
    parts = []
    if best.name != ours.name:
        parts.append(f"{title_of(ours)}: {size_words(ours)}, cv_error {plus_minus(ours.cv_error, ours.cv_error_se)}.")
    others = [m for m in found.finished if m.name not in ("quick", "normal", "thorough")]
    better = [title_of(m) for m in others if m.difference < -CLEAR * m.difference_se]
    worse = [title_of(m) for m in others if m.difference > CLEAR * m.difference_se]
    if others:
        what = "by more than two standard errors of the difference, row by row"
        parts.append(
            f"Clearly lower than {title_of(ours)} ({what}): {', '.join(better)}."
            if better
            else f"None is clearly lower than {title_of(ours)} ({what})."
        )
        parts.append(f"Clearly higher: {', '.join(worse)}." if worse else "None is clearly higher.")
    return parts


def cautions(found: Comparison) -> list[str]:
    """What to keep in mind."""
    told = [
        "A method with sizes is shown at the size with its lowest error. The lowest of several errors is a little too "
        "good, for every such method alike; methods without sizes chose their penalty or components inside the folds, "
        "so theirs is not."
    ]
    if found.reference:
        told.append(
            "Two methods with different columns can predict equally well: shared columns say how much they resemble "
            "each other, not who is right."
        )
    return told


def method_rows(found: Comparison) -> list[tuple[str, ...]]:
    """One line for each method, at the size it would choose."""
    methods = found.methods
    errors = aligned_plus_minus([m.cv_error for m in methods], [m.cv_error_se for m in methods])
    rmse, r2 = ([found.rmse_and_r2(m.cv_error)[name] for m in methods] for name in ("rmse", "r2"))
    rmse_cells, beside = aligned(rmse), _differences(found)
    shown = [shown_row(method) for method in methods]
    train = aligned((np.nan if row is None else row.energy_per_row for row in shown), 3)
    seconds = [number(method.seconds, 2) for method in methods]
    return [
        (
            title_of(method),
            size_words(method).replace(" columns", "").replace(" column", "") if method in found.finished else NOTHING,
            rmse_cells[at],
            r2_text(r2[at]),
            errors[at],
            beside[at],
            train[at],
            _shared(found, method, shown[at]),
            seconds[at],
            clean(method.note) if method.note else _remark(method),
        )
        for at, method in enumerate(methods)
    ]


def _differences(found: Comparison) -> list[str]:
    """Differences from the reference with their sign."""
    cells = aligned_plus_minus([m.difference for m in found.methods], [m.difference_se for m in found.methods])
    return [
        NOTHING if method.name == found.reference else f"+{cell}" if method.difference > 0 else cell
        for method, cell in zip(found.methods, cells, strict=True)
    ]


def _shared(found: Comparison, method: MethodResult, row: MethodSize | None) -> str:
    if row is None or not np.isfinite(row.overlap) or method.name == found.reference:
        return NOTHING
    ours = found[found.reference]
    same = ours.at(row.size if row.size is not None else ours.chosen or 0)
    count = len(same.columns) if same is not None else 0
    return f"{round(row.overlap * count)} of {count}"


def _remark(method: MethodResult) -> str:
    lacking = [row.size for row in method.rows if row.note]
    if not lacking:
        return ""
    first = next(row.note for row in method.rows if row.note)
    return f"{plural(len(lacking), 'size')} without a result: {clean(first)}"


def matrix(found: Comparison, what: str) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of a table with a line for each size and a column for each method that has sizes.

    `what` is ``"cv_error"``, ``"energy"`` (over the lowest of all methods at that size) or ``"overlap"``.
    """
    methods = [method for method in found.finished if method.sized]
    columns = []
    for method in methods:
        rows = [method.at(size) for size in found.sizes]
        columns.append([np.nan if row is None else float(getattr(row, what)) for row in rows])
    values = np.array(columns).reshape(len(methods), len(found.sizes))
    if what == "energy":
        lowest = lowest_energies(found)
        values = np.where(lowest > 0, values / np.where(lowest > 0, lowest, 1.0), np.nan)
    cells = [
        [percent(value) for value in column] if what == "overlap"
        else [number(value, 4) if np.isfinite(value) else NOTHING for value in column]
        for column in values
    ]  # fmt: skip
    lines = [[str(size), *(column[at] for column in cells)] for at, size in enumerate(found.sizes)]
    return ["Size", *map(title_of, methods)], lines


def lowest_energies(found: Comparison) -> Floats:
    """The lowest training energy (S,) that any method found on all rows at each size."""
    rows = [[method.at(size) for size in found.sizes] for method in found.finished if method.sized]
    values = [[np.inf if row is None or np.isnan(row.energy) else row.energy for row in line] for line in rows]
    return np.asarray(np.min(np.array(values).reshape(-1, len(found.sizes)), axis=0, initial=np.inf))


def reference_title(found: Comparison) -> str:
    """What the method that others are compared with is called; where none of ours was run, what it would be."""
    return title_of(found[found.reference]) if found.reference else "pairflip"


def explanation(found: Comparison) -> str:
    """What the columns of the table of methods mean."""
    reference = reference_title(found)
    return (
        "Columns: the size with the lowest cv_error (half the mean squared error of held-out rows, ± one standard "
        "error); methods without sizes: the columns they use. RMSE, R2: of held-out rows. "
        "Difference: how much higher the error is than that of "
        f"{reference}, rows compared with themselves. Train: training error per row in the folds. Shared: how many of "
        f"the columns of {reference}, on all rows, it chose, too. CPU s: the search in all folds and on all rows, all "
        "sizes, one thread."
    )


def summary(found: Comparison) -> str:
    """The sentence, then one line for each method."""
    lines = [tuple(lower_heads(HEADS)), *method_rows(found)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADS) - 1)]
    parts = [*textwrap.wrap(sentence(found), _WIDTH), ""]
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:-1], widths[1:], strict=True)]
        parts.append("  ".join([*cells, line[-1]]).rstrip())
    return "\n".join([*parts, "", *_wrapped([explanation(found), *cautions(found)])]).rstrip()


def _wrapped(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in (*textwrap.wrap(text, _WIDTH), "")]
