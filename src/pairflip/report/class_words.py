"""The answer for classes, counts and survival times: what is said where one about numbers says RMSE and R2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairflip.selection.verdict import baseline, held_out
from pairflip.text import number, percent, plural

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve


_CHOOSE = "with --ridge auto (in Python ridge='auto') held-out rows choose a larger ridge"


def how_well(curve: SizeCurve, size: int, explains: str) -> str:
    """How well the chosen columns predict rows that were held out, allowing for the choice of their number."""
    at, chosen = curve.at(size), curve.chosen
    if curve.survival is not None:
        return _concordance(curve, at)
    share = f"{percent(held_out(curve, size).r2)} of the deviance on rows that were held out"
    allowed = " That is somewhat too good, because the number of columns was chosen by it."
    if chosen is not None:
        than = "the mean" if curve.classes is None else "the class frequencies"
        share = share_words(chosen.r2, "of the deviance on new rows", than)
        what = "number of columns and the ridge" if curve.ridge_predictions is not None else "number of columns"
        told, verb = ("The deviance", "allows") if chosen.auc is None else ("AUC and deviance", "allow")
        allowed = f" {told} {verb} for the {what} having been chosen; ranges are {percent(chosen.level)} intervals."
    return f"{_told(curve, at)} On the whole, {explains} {share}.{allowed}"


def share_words(shares: tuple[float, float, float], of: str, than: str = "the mean") -> str:
    """``about 36 % of the variance (12 % to 57 %)``: what is explained, and its interval as computed.

    An interval that reaches below zero begins with "worse than the mean", or what else explains nothing.
    """
    middle, low, high = (percent(share) for share in shares)
    about = {">": f"more than {middle[1:]}", "<": f"less than {middle[1:]}"}.get(middle[0], f"about {middle}")
    within = f"{low} to {high}" if shares[1] >= 0 else f"between worse than {than} and {high}"
    return f"{about} {of}" + (f" ({within})" if len({middle, low, high}) > 1 else "")


def _told(curve: SizeCurve, at: int) -> str:
    """The errors in words that need no explanation, beside those without columns."""
    classes = curve.classes
    if classes is None:
        now, nothing = held_out(curve, int(curve.sizes[at])).rmse, held_out(curve, 0).rmse
        what = "predicted counts" if curve.loss.name == "poisson" else "predictions"
        return (
            f"On rows that were held out, the error of the {what} (RMSE) is {number(now, 3)}, and "
            f"{number(nothing, 3)} with the {baseline(curve)}."
        )
    common = classes.labels[int(classes.shares.argmax())]
    beside = f"{percent(classes.majority)} if all are called {common!r}"
    if curve.always.size:
        beside = f"{percent(float(classes.misclassified[curve.at(0)]))} with the {baseline(curve)}, {beside}"
    area = "" if classes.auc is None else f"; AUC is {classes.auc[at]:.2f} (0.5 is chance)"
    chosen = curve.chosen
    if chosen is not None and chosen.auc is not None and chosen.size == curve.sizes[at]:
        middle, low, high = (f"{value:.2f}" for value in chosen.auc)
        area = f"; AUC on new rows is about {middle} ({low} to {high}; 0.5 is chance)"
    return (
        f"On rows that were held out, {percent(float(classes.misclassified[at]))} are put into the wrong class "
        f"({beside}){area}."
    )


def _concordance(curve: SizeCurve, at: int) -> str:
    """How well survival times are ranked, allowing for the choice of the size where that is known."""
    assert curve.survival is not None
    chosen, told = curve.chosen, f"is {curve.survival.concordance[at]:.2f} (0.5 is chance)"
    where = "On rows that were held out, the concordance"
    allowed = " That is somewhat too good, because the number of columns was chosen by these rows."
    if chosen is not None and chosen.ranked is not None and chosen.size == curve.sizes[at]:
        middle, low, high = (f"{value:.2f}" for value in chosen.ranked)
        where, told = "On new rows, the concordance", f"is about {middle} ({low} to {high}; 0.5 is chance)"
        allowed = f" This allows for the choice of the size; the range is a {percent(chosen.level)} interval."
    if curve.always.size:
        told += f", and {curve.survival.concordance[curve.at(0)]:.2f} with the {baseline(curve)}"
    return (
        f"{where} {told}: of two rows whose order is known, so often the one with the higher risk has the event first."
        f"{allowed}"
    )


def short(curve: SizeCurve, size: int) -> str:
    """The errors of one size, for a comparison: ``12 % wrong, log loss 0.31``."""
    at = curve.at(size)
    if curve.survival is not None:
        return f"concordance {curve.survival.concordance[at]:.2f}, deviance {number(2.0 * curve.cv_error[at], 3)}"
    if curve.classes is None:
        return f"deviance {number(2.0 * curve.cv_error[at], 3)}"
    return f"{percent(float(curve.classes.misclassified[at]))} wrong, log loss {number(curve.cv_error[at], 3)}"


def separated(curve: SizeCurve, size: int) -> list[str]:
    """The doubt where the fitted columns separate the classes completely, in the whole table or in folds."""
    apart = curve.facts.get("separated", [])
    if not size and apart and curve.ridge_surface is None:
        return [
            f"From {plural(min(apart), 'column')} on, the classes of this table are separated completely, so that "
            f"predicted probabilities are too sure and the log loss of held-out rows is high: {_CHOOSE}."
        ]
    folds = curve.facts.get("separated_folds", {}).get(str(size), 0)
    if not size or not (size in apart or folds):
        return []
    where = "this table" if size in apart else f"the training rows of {folds} of {plural(curve.n_folds, 'fold')}"
    more = f"; {_CHOOSE}" if curve.ridge_surface is None else ""
    return [
        f"The columns separate the classes of {where} completely: only the ridge keeps the coefficients finite, so "
        f"do not read their sizes or standard errors, and expect some rows of a new table to be wrong{more}."
    ]
