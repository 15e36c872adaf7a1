"""What errors are called and how they are written: RMSE and R2, misclassification and AUC, deviance, concordance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairflip.selection.verdict import HeldOut, held_out
from pairflip.text import aligned, explained, number, percent, r2_text

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve


def heads(curve: SizeCurve) -> tuple[str, str]:
    """Headings of the two columns of errors beside cv_error."""
    return curve.loss.words.error, curve.loss.words.share


def error_cells(curve: SizeCurve, sizes: list[int]) -> list[str]:
    """The first of them at some sizes."""
    if curve.classes is not None:
        return [f"{100 * curve.classes.misclassified[curve.at(size)]:.1f} %" for size in sizes]
    return aligned([error_of(curve, size) for size in sizes])


def error_of(curve: SizeCurve, size: int) -> float:
    """The root mean square error at a size; for survival times, the mean deviance."""
    return held_out(curve, size).rmse if curve.survival is None else 2.0 * float(curve.cv_error[curve.at(size)])


def error_texts(curve: SizeCurve, sizes: list[int]) -> list[str]:
    """The same, each with three digits."""
    if curve.classes is not None:
        return error_cells(curve, sizes)
    return [number(error_of(curve, size), 3) for size in sizes]


def share_cells(curve: SizeCurve, sizes: list[int]) -> list[str]:
    """The second of them at some sizes."""
    if curve.ranked is not None:
        return [f"{curve.ranked[curve.at(size)]:.3f}" for size in sizes]
    return [r2_text(held_out(curve, size).r2) for size in sizes]


def told(curve: SizeCurve, size: int, *, compared: bool = True) -> str:
    """``Root mean square error 0.42, explained 87 % of the variance``: the errors of held-out rows at a size."""
    return f"{curve.loss.words.long_error} {how_good(curve, size, compared=compared)}"


def how_good(curve: SizeCurve, size: int, *, compared: bool = True) -> str:
    """The same without its first words."""
    at, now = curve.at(size), held_out(curve, size)
    wrong = number(error_of(curve, size), 3)
    if curve.classes is not None:
        wrong = percent(float(curve.classes.misclassified[at]))
    much = explained_words(curve, now) if curve.ranked is None else f"{heads(curve)[1]} {curve.ranked[at]:.3f}"
    return wrong + (f", {much}" if compared else "")


def explained_words(curve: SizeCurve, now: HeldOut) -> str:
    """Which part of the variance, or of the deviance, is explained."""
    return explained(now.r2).replace("variance", curve.loss.words.explained)


def what_errors_are(curve: SizeCurve) -> str:
    """What the two columns and cv_error mean, for the table of sizes."""
    words = curve.loss.words
    return f"{words.meaning}; cv_error, {words.cv_error.removesuffix(' of held-out rows')}, and its standard error"
