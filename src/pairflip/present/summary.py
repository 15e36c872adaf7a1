"""A curve as plain text: the answer, then one line for each size."""

from __future__ import annotations

import textwrap

from pairflip.present.answer import answer_of
from pairflip.selection.curve import SizeCurve
from pairflip.selection.verdict import baseline, held_out, uncertain
from pairflip.text import aligned, aligned_plus_minus, clean

_SHOWN_NAMES = 6
_WIDTH = 110


def names(curve: SizeCurve, size: int) -> str:
    """Names of the columns of a size, the first few."""
    chosen = [clean(name) for name in curve.columns(size)]
    more = f" and {len(chosen) - _SHOWN_NAMES} more" if len(chosen) > _SHOWN_NAMES else ""
    return ", ".join(chosen[:_SHOWN_NAMES]) + more if chosen else f"({baseline(curve)})"


HEADER = ("size", "RMSE", "R2", "cv_error", "train", "agree", "BIC", "columns")
LEGEND = (
    "* lowest cv_error (half the mean squared error of held-out rows), + smallest size within one standard error of "
    "it; R2 and RMSE on held-out rows; agree: chains that reached the best set of their fold (? below 30 %: search "
    "uncertain)."
)


def rows(curve: SizeCurve) -> list[tuple[str, ...]]:
    """The table of sizes as texts; the size with the lowest error is marked *, the one-standard-error size +."""
    lines: list[tuple[str, ...]] = []
    every = [held_out(curve, size) for size in curve.sizes.tolist()]
    rmse, train = aligned([now.rmse for now in every]), aligned(curve.energy_per_row, 3)
    error = aligned_plus_minus(curve.cv_error.tolist(), curve.cv_error_se.tolist())
    for at, (size, now) in enumerate(zip(curve.sizes.tolist(), every, strict=True)):
        mark = "*" if size == curve.best_size else "+" if size == curve.one_se_size else " "
        lines.append(
            (
                f"{size}{mark}",
                rmse[at],
                f"{now.r2:.2f}".replace("-0.00", "0.00"),
                error[at],
                train[at],
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
