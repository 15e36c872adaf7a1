"""The answer for two classes and for counts: what is said where an answer about numbers says RMSE and R2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairflip.selection.verdict import baseline, held_out
from pairflip.text import number, percent, plural

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve


_CHOOSE = "with --ridge auto (in Python ridge='auto') held-out rows choose a larger ridge"


def how_well(curve: SizeCurve, size: int, explains: str) -> str:
    """How well the chosen columns predict rows that were held out, allowing for the choice of their number.

    Parameters
    ----------
    curve, size
        What is told.
    explains : str
        ``"it explains"`` or ``"they explain"``.
    """
    at, chosen = curve.at(size), curve.chosen
    share = f"{percent(held_out(curve, size).r2)} of the deviance on rows that were held out"
    allowed = " That is somewhat too good, because the number of columns was chosen by it."
    if chosen is not None:
        middle, low, high = chosen.r2
        low = max(low, min(0.0, middle))
        share = f"about {percent(middle)} of the deviance on new rows ({percent(low)} to {percent(high)})"
        what = "number of columns and the ridge" if curve.ridge_predictions is not None else "number of columns"
        allowed = f" The deviance allows for the {what} having been chosen, with a {percent(chosen.level)} interval."
    return f"{_told(curve, at)} On the whole, {explains} {share}.{allowed}"


def _told(curve: SizeCurve, at: int) -> str:
    """The errors in words that need no explanation, beside those without columns."""
    classes = curve.classes
    if classes is None:
        now, nothing = held_out(curve, int(curve.sizes[at])).rmse, held_out(curve, 0).rmse
        return (
            f"On rows that were held out, the error of the predicted counts (RMSE) is {number(now, 3)}, and "
            f"{number(nothing, 3)} with the {baseline(curve)}."
        )
    common = classes.labels[int(classes.share > 0.5)]
    beside = f"{percent(classes.majority)} if all are called {common!r}"
    if curve.always.size:
        beside = f"{percent(float(classes.misclassified[curve.at(0)]))} with the {baseline(curve)}, {beside}"
    return (
        f"On rows that were held out, {percent(float(classes.misclassified[at]))} are put into the wrong class "
        f"({beside}), and AUC is {classes.auc[at]:.2f} (0.5 is chance)."
    )


def short(curve: SizeCurve, size: int) -> str:
    """The errors of one size, for a comparison: ``12 % wrong, log loss 0.31``."""
    at = curve.at(size)
    if curve.classes is None:
        return f"deviance {number(2.0 * curve.cv_error[at], 3)}"
    return f"{percent(float(curve.classes.misclassified[at]))} wrong, log loss {number(curve.cv_error[at], 3)}"


def separated(curve: SizeCurve, size: int) -> list[str]:
    """The doubt where columns separate the classes completely; without a size, where any number of them does."""
    apart = curve.facts.get("separated", [])
    if not apart or curve.ridge_surface is not None:
        return []
    if not size:
        return [
            f"From {plural(min(apart), 'column')} on, the classes of this table are separated completely, so that "
            f"predicted probabilities are too sure and the log loss of held-out rows is high: {_CHOOSE}."
        ]
    if size not in apart:
        return []
    return [
        "The columns separate the classes of this table completely: only the ridge keeps the coefficients finite, so "
        f"do not read their sizes or standard errors, and expect some rows of a new table to be wrong; {_CHOOSE}."
    ]
