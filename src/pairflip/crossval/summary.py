"""A curve as plain text: the answer, then one line for each size."""

from __future__ import annotations

import textwrap

from pairflip.crossval.answer import answer_of
from pairflip.crossval.curve import SizeCurve
from pairflip.crossval.verdict import held_out, uncertain
from pairflip.labels import clean, number, plus_minus

_SHOWN_NAMES = 6
_WIDTH = 110


def names(curve: SizeCurve, size: int) -> str:
    """Names of the columns of a size, the first few."""
    chosen = [clean(name) for name in curve.columns(size)]
    more = f" and {len(chosen) - _SHOWN_NAMES} more" if len(chosen) > _SHOWN_NAMES else ""
    return ", ".join(chosen[:_SHOWN_NAMES]) + more if chosen else nothing_chosen(curve)


def nothing_chosen(curve: SizeCurve) -> str:
    """What predicts at size 0."""
    return "(what is always in alone)" if curve.always.size else "(the mean alone)"


HEADER = ("size", "RMSE", "R2", "cv_error", "train", "agree", "BIC", "columns")
LEGEND = (
    "* lowest cv_error (half the mean squared error of held-out rows), + smallest size within one standard error of "
    "it; R2 and RMSE on held-out rows; agree: chains that reached the best set of their fold (? below 30 %: search "
    "uncertain)."
)


def rows(curve: SizeCurve) -> list[tuple[str, ...]]:
    """The table of sizes as texts; the size with the lowest error is marked *, the one-standard-error size +."""
    lines: list[tuple[str, ...]] = []
    for at, size in enumerate(curve.sizes.tolist()):
        mark = "*" if size == curve.best_size else "+" if size == curve.one_se_size else " "
        now = held_out(curve, size)
        lines.append(
            (
                f"{size}{mark}",
                number(now.rmse, 4),
                f"{now.r2:.2f}",
                plus_minus(curve.cv_error[at], curve.cv_error_se[at]),
                number(curve.energy_per_row[at], 3),
                f"{curve.agreement[at]:.0%}{'?' if uncertain(curve, size) else ' '}",
                f"{curve.bic[at]:.1f}",
                names(curve, size),
            )
        )
    return lines


def summary(curve: SizeCurve) -> str:
    """The answer, then one line for each size."""
    answer = answer_of(curve)
    parts = [*textwrap.wrap(answer.text, _WIDTH), ""]
    for caution in answer.cautions:
        parts += [*textwrap.wrap(caution, _WIDTH), ""]
    table = [HEADER, *rows(curve)]
    widths = [max(len(line[i]) for line in table) for i in range(len(HEADER) - 1)]
    for line in table:
        cells = [cell.rjust(width) for cell, width in zip(line, widths, strict=False)]
        parts.append("  ".join([*cells, line[-1]]))
    parts += ["", *textwrap.wrap(LEGEND, _WIDTH), "", *(f"Note: {note}." for note in curve.notes)]
    return "\n".join(parts).rstrip()
