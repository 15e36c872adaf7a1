"""What is said about predictions of new rows: which rows, by what, how far off they may be."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.report.vocabulary import vocabulary
from pairflip.selection.decide import CLEARLY, Claim
from pairflip.selection.prediction import outside_words
from pairflip.text import compared, listed, number, percent, plural, quoted

if TYPE_CHECKING:
    from pairflip.least_squares import Floats
    from pairflip.selection.curve import SizeCurve
    from pairflip.selection.prediction import PredictionCheck
    from pairflip.tables.new_rows import NewRows

CHOSEN = (
    "{} chosen on the same rows, for which coverage is not proved (see 'Predicting new rows' in the documentation for "
    "how often it was true)."
)
"""What intervals are conditional on."""
BY_CHANCE = 0.01
"""A fraction of rows inside their intervals is remarked on where it, or a stranger one, is no more probable."""


def average_words(curve: SizeCurve) -> str:
    """What predicts new rows by default, and the errors of the average and of the recommended columns."""
    answer = curve.answer
    if answer.average is None or answer.gain is None or not answer.predicts:
        return ""
    words, subset = vocabulary(curve), answer.error
    which = "; pairflip predict uses it" if answer.predictor == "average" else ""
    if answer.claim == Claim.TOGETHER:
        alone = number(float(words.shown(answer.average.error)), words.digits)
        return f"A weighted average of models: {words.minimized} {alone}{which}."
    other = float(curve.cv_error[curve.at(answer.size)]) if subset is None else subset.error
    one, two = words.shown(np.array([answer.average.error, other])).tolist()
    both = f"{words.minimized} {' against '.join(compared(one, two, words.digits))}"
    if answer.average.ranked is not None and subset is not None and subset.ranked is not None:
        both += f", {words.ranking} {answer.average.ranked[0]:.2f} against {subset.ranked[0]:.2f}"
    these = f"{'this' if answer.size == 1 else 'these'} {plural(answer.size, words.unit)}"
    gain, error = answer.gain
    if abs(gain) <= CLEARLY * error:
        how = f"about as well as {these}"
    else:
        how = f"{'better' if gain > 0 else 'less well'} than {these}"
    return f"A weighted average of models predicts {how} ({both}){which}."


@dataclass(frozen=True, eq=False)
class PredictedRows:
    """Predictions of one file of new rows."""

    rows: NewRows
    size: int
    columns: list[str]
    always: list[str]
    target: str | None
    coverage: float | None
    prediction: Floats
    lower: Floats
    upper: Floats
    comparison: PredictionCheck | None
    why_not: str | None  # why there are no intervals
    given: bool  # whether the size was asked for
    classes: list[str] | None = None
    risks: bool = False  # whether predictions are relative risks
    outside: NDArray[np.bool_] | None = None  # rows outside the range of the training rows, where that is known
    known: int = 0  # how many of the rows are those that the result was made from
    averaged: bool = False  # whether the weighted average of models predicts, rather than one set of columns


def folds_need(absent: list[str]) -> str:
    """Why there are no intervals: columns that folds chose are missing."""
    return (
        f"intervals also need {plural(len(absent), 'column')} that folds chose and the table lacks, {listed(absent)}: "
        "add them, or give --no-interval"
    )


def remarks_of(predicted: PredictedRows) -> list[str]:
    """What a reader should know, each a sentence: what was done, what is missing, and how well it predicted."""
    remarks = [f"{note}." for note in predicted.rows.notes]
    if predicted.classes is not None:
        two = predicted.prediction.ndim == 1
        of, most = (quoted(predicted.classes[1]), "more") if two else ("the classes", "most")
        remarks.append(f"predictions are probabilities of {of}; the class is the {most} probable one.")
    if predicted.risks:
        remarks.append("predictions are risks (hazards), relative to that of a row with the means of the columns.")
    names = [*predicted.always, *predicted.columns]
    lost, bare = (
        ~np.isfinite(each.reshape(len(each), -1)).all(axis=1) for each in (predicted.prediction, predicted.lower)
    )
    how = f"with {plural(len(names), 'column')}, {listed(names)}"
    if predicted.averaged:
        how = f"by the weighted average of models {how}"
    if not names:
        how = "without columns: every row gets the same number"
        if not predicted.given:
            how += ", since nothing in the result predicts better (--size K takes K columns all the same)"
    covers = ""
    if predicted.coverage is not None:
        covers = f"; the intervals are made to cover {percent(predicted.coverage)} of new rows"
    remarks.append(f"{plural(int((~lost).sum()), 'row')} predicted {how}{covers}.")
    if predicted.coverage is not None and not predicted.given:
        remarks.append(CHOSEN.format("the weights of the average were" if predicted.averaged else "the size was"))
    if predicted.why_not is not None:
        remarks.append(f"there are no intervals: {predicted.why_not.rstrip('.')}.")
    for gone, what in ((lost, "prediction"), (~lost & bare, "interval")):
        if gone.any() and (what == "prediction" or predicted.coverage is not None):
            some = [predicted.rows.row_names[i] for i in np.flatnonzero(gone)]
            why = "values are missing in columns that it needs"
            remarks.append(f"{plural(len(some), 'row')} without {what}, since {why}: {listed(some)}.")
    if predicted.outside is not None and predicted.outside.any():
        remarks.append(outside_words(predicted.outside, predicted.rows.row_names))
    check = predicted.comparison
    if check is not None:
        errors = f"RMSE {number(check.rmse, 3)}, R2 {number(check.r2, 3)}"
        if check.inside is not None:
            errors += f"; {percent(check.inside)} are inside their intervals"
        if check.wrong is not None:
            errors = f"{percent(check.wrong)} wrong" + ("" if check.auc is None else f", AUC {number(check.auc, 3)}")
        if check.concordance is not None:
            errors = f"concordance {number(check.concordance, 3)}"
        remarks.append(f"compared with {quoted(predicted.target)} in {plural(check.n_rows, 'row')}: {errors}.")
        if predicted.known:
            rows = "these very rows"
            if predicted.known < check.n_rows:
                rows = f"{predicted.known:,} of these rows"
            remarks.append(f"the result was made from {rows}, so these errors are too low for new rows.")
        remarks += _coverage_words(check, predicted.coverage)
    return remarks


def _coverage_words(check: PredictionCheck, coverage: float | None) -> list[str]:
    """The sentence where clearly fewer or more rows are inside their intervals than was asked for, or none."""
    if coverage is None or check.inside is None or check.chance is None or check.chance > BY_CHANCE:
        return []
    if percent(check.inside) == percent(coverage):
        return []
    less = check.inside < coverage
    why = " They may be unlike the training rows, or training rows belong together (select with --groups)."
    return [
        f"{percent(check.inside)} inside is {'less' if less else 'more'} than the {percent(coverage)} asked for, by "
        f"more than chance (p = {number(check.chance, 2)}): the intervals are too {'narrow' if less else 'wide'} for "
        f"these rows."
        f"{why if less else ''}"
    ]


def predicted_record(predicted: PredictedRows, header: list[str], lines: list[Any]) -> dict[str, Any]:
    """Everything in plain values; what is not a number is null."""

    def plain(value: Any) -> Any:
        return None if isinstance(value, float) and not isfinite(value) else value

    check = None
    if predicted.comparison is not None:
        values = {k: plain(v) for k, v in asdict(predicted.comparison).items()}
        optional = ("wrong", "auc", "concordance", "chance")
        check = {k: v for k, v in values.items() if v is not None or k not in optional}
    return {
        "table": predicted.rows.source,
        "target": predicted.target,
        "size": predicted.size,
        "columns": predicted.columns,
        "always": predicted.always,
        "averaged": predicted.averaged,
        "interval": predicted.coverage,
        "rows": [dict(zip(header, map(plain, line), strict=True)) for line in lines],
        "comparison": check,
        "remarks": remarks_of(predicted),
    }
