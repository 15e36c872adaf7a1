"""A curve as plain text: the answer, then one line for each size."""

from __future__ import annotations

import textwrap

from pairflip.report.answer import answer_of
from pairflip.report.group_words import groups_shown, what_is_counted
from pairflip.report.scores import error_cells, heads, share_cells
from pairflip.report.size_tables import correction_note
from pairflip.selection.curve import SizeCurve
from pairflip.selection.verdict import baseline, held_out, least_agreement, uncertain
from pairflip.text import aligned, aligned_plus_minus, clean, percent

_SHOWN_NAMES = 6
_WIDTH = 110


def names(curve: SizeCurve, size: int) -> str:
    """Names of the columns of a size, the first few."""
    if curve.groups is not None and size:
        return groups_shown(curve, size)
    chosen = [clean(name) for name in curve.columns(size)]
    more = f" and {len(chosen) - _SHOWN_NAMES} more" if len(chosen) > _SHOWN_NAMES else ""
    return ", ".join(chosen[:_SHOWN_NAMES]) + more if chosen else f"({baseline(curve)})"


def header(curve: SizeCurve) -> tuple[str, ...]:
    """Headings of `rows`."""
    return ("size", *heads(curve), "cv_error", "train", "agree", "BIC", f"{what_is_counted(curve)}s")


def legend(curve: SizeCurve) -> str:
    """What the columns of the table mean."""
    (error, share), limit = heads(curve), least_agreement(curve)
    return (
        f"* lowest cv_error ({curve.loss.words.cv_error}), + smallest size within one standard error of "
        f"it; {share} and {error} on held-out rows; agree: chains that reached the best set of their fold"
        f"{f' (? below {percent(limit)}: search uncertain)' if limit else ''}."
        f"{correction_note(curve)}"
    )


def rows(curve: SizeCurve) -> list[tuple[str, ...]]:
    """The table of sizes as texts; the size with the lowest error is marked *, the one-standard-error size +."""
    lines: list[tuple[str, ...]] = []
    sizes = curve.sizes.tolist()
    errors, train = error_cells(curve, sizes), aligned(curve.energy_per_row, 3)
    error = aligned_plus_minus(curve.cv_error.tolist(), curve.cv_error_se.tolist())
    for at, size in enumerate(sizes):
        mark = "*" if size == curve.best_size else "+" if size == curve.one_se_size else " "
        lines.append(
            (
                f"{size}{mark}",
                errors[at],
                _share(curve, size),
                error[at],
                train[at],
                f"{curve.agreement[at]:.0%}{'?' if uncertain(curve, size) else ' '}",
                f"{curve.bic[at]:.1f}",
                names(curve, size),
            )
        )
    return lines


def _share(curve: SizeCurve, size: int) -> str:
    if curve.ranked is not None:
        return share_cells(curve, [size])[0]
    return f"{held_out(curve, size).r2:.2f}".replace("-0.00", "0.00")


def summary(curve: SizeCurve) -> str:
    """The answer, then one line for each size."""
    answer = answer_of(curve)
    parts = [*textwrap.wrap(answer.text, _WIDTH), ""]
    for caution in answer.cautions:
        parts += [*textwrap.wrap(caution, _WIDTH), ""]
    table = [header(curve), *rows(curve)]
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]) - 1)]
    for line in table:
        cells = [cell.rjust(width) for cell, width in zip(line, widths, strict=False)]
        parts.append("  ".join([*cells, line[-1]]))
    parts += ["", *textwrap.wrap(legend(curve), _WIDTH), "", *(f"Note: {note}." for note in curve.notes)]
    return "\n".join(parts).rstrip()
