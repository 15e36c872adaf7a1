"""What to doubt about an answer, in words: one function for each `decide.Reason`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pairflip.report.stability_words import cluster_word, known, steadier
from pairflip.report.vocabulary import joined, vocabulary, what_is_counted
from pairflip.selection.curve import SizeCurve
from pairflip.selection.decide import Reason
from pairflip.selection.facts import copy_words, imputed_words
from pairflip.text import clean, number, percent, plural, quoted, r2_text, shorten

_RELATIVES = (
    "Rows held out at random then have near copies among the others: errors here are too low, and their ranges and "
    "prediction intervals are too narrow."
)


class Caution(NamedTuple):
    """A reason to doubt an answer, with what to do about it, and the explanation."""

    short: str
    explanation: str = ""

    @property
    def text(self) -> str:
        """All of it."""
        return f"{self.short} {self.explanation}".rstrip()


def cautions_of(curve: SizeCurve) -> list[Caution]:
    """The doubts of the answer in words."""
    return [_WORDS[doubt.reason](curve, doubt.numbers) for doubt in curve.answer.doubts]


def _separated(curve: SizeCurve, numbers: Mapping[str, Any]) -> Caution:
    choose = "let held-out rows choose a larger ridge (--ridge auto, in Python ridge='auto')"
    choose = "" if curve.ridge_surface is not None else f": {choose}"
    if not curve.answer.predicts:
        return Caution(
            f"From {plural(numbers['size'], 'column')} on, the classes of this table are separated completely{choose}.",
            "Predicted probabilities are then too sure, and the log loss of held-out rows is high.",
        )
    where = "this table"
    if numbers["folds"]:
        where = f"the training rows of {numbers['folds']} of {plural(curve.n_folds, 'fold')}"
    return Caution(
        f"The columns separate the classes of {where} completely{choose}.",
        "Only the ridge keeps the coefficients finite, so do not read their sizes or standard errors, and expect "
        "some rows of a new table to be wrong.",
    )


def _search(curve: SizeCurve, numbers: Mapping[str, Any]) -> Caution:
    more, agree = "search longer (--effort thorough, in Python effort='thorough')", percent(numbers["agreement"])
    if curve.settings.get("method", "anneal") == "anneal":
        more = "use more chains or a slower schedule"
    size = plural(numbers["size"], what_is_counted(curve))
    return Caution(
        f"The search is uncertain at {size} ({agree} of the chains agree): {more}.",
        f"Only {agree} of the chains reached the best set of their fold, so better columns may have been "
        "missed, and the error may be too high.",
    )


def _largest_size(curve: SizeCurve, numbers: Mapping[str, Any]) -> Caution:
    largest = f"The lowest error is at the largest size tried ({numbers['size']})"
    return Caution(f"{largest}, so more {what_is_counted(curve)}s may predict better: try larger sizes.")


def _few_rows(curve: SizeCurve, numbers: Mapping[str, Any]) -> Caution:
    units = f"{numbers['few_rows']} rows" if "few_rows" in numbers else f"{numbers['few_groups']} groups of rows"
    if curve.answer.predicts:
        return Caution(
            f"There are only {units}: of so few, chance may look like a relation, so test the model on new rows."
        )
    return Caution(f"There are only {units}: too few to tell a weak relation from chance: measure more.")


def _alike_rows(curve: SizeCurve, numbers: Mapping[str, Any]) -> Caution:
    column, many = quoted(clean(str(numbers["by"]))), plural(int(numbers["values"]), "value")
    return Caution(
        f"Rows with the same {column} ({many}) have similar errors, correlation {numbers['rows']:.2f}: if they "
        f"belong together, leave them out together (--groups {column}).",
        _RELATIVES,
    )


def _ordered_rows(curve: SizeCurve, numbers: Mapping[str, Any]) -> Caution:
    why = "their names are dates"
    if numbers["autocorrelation"] is not None:
        why = f"the target of a row is like that of the row before, autocorrelation {numbers['autocorrelation']:.2f}"
    return Caution(
        f"The rows may not be independent ({why}): if they are in the order of time or place, leave out blocks "
        "(--cv blocks:5, in Python cv='blocks:5').",
        _RELATIVES,
    )


def _copied_rows(curve: SizeCurve, numbers: Mapping[str, Any]) -> Caution:
    copies = int(numbers["count"])
    return Caution(
        f"{plural(copies, 'row')} of the table {'is a copy' if copies == 1 else 'are copies'} of another row"
        f"{_copied(numbers['rows'], copies)}, so errors are too low: keep one of each, or give copies the same group "
        "(--groups).",
        "Target included: a held-out row is then predicted from its own copy.",
    )


def _two_values(curve: SizeCurve, numbers: Mapping[str, Any]) -> Caution:
    low, high = numbers["values"]
    return Caution(
        f"The target has two values only ({number(low)} and {number(high)}): --loss logistic (in Python "
        "loss='logistic') is for classes.",
        "It is treated as a number: errors and predictions are those of a number, not of a class.",
    )


def _influential_rows(curve: SizeCurve, numbers: Mapping[str, Any]) -> Caution:
    error, labels = curve.answer.error, [*map(_row_name, numbers["names"] or numbers["rows"])]
    these, they = ("row", "it") if len(labels) == 1 else ("rows", "them")
    kept = "nothing would predict"
    if numbers["size"]:
        stay = f"{numbers['stay']} of these {numbers['of']}"
        if numbers["of"] == 1:
            stay = "this one" if numbers["stay"] else "none of these"
        kept = f"{plural(numbers['size'], what_is_counted(curve))} would be kept, with {stay} among them"
        if numbers["r2"] is not None and error is not None:
            kept += f", and R2 would be {r2_text(numbers['r2'])} instead of {r2_text(error.r2[0])}"
    return Caution(
        f"Without {these} {joined(labels)}, whose target or error is far from all others, {kept}: look whether the "
        f"values are right, or leave {they} out (--leave-out)."
    )


def _heavy_row(curve: SizeCurve, numbers: Mapping[str, Any]) -> Caution:
    name, words = _row_name(numbers["name"] or numbers["row"]), vocabulary(curve)
    return Caution(
        f"One row carries {percent(numbers['share'])} of the {words.loss} of all held-out rows, row {name}: look "
        "whether its values are right.",
        f"Without it the {words.loss_per_row} would be {number(numbers['without'], 3)} instead of "
        f"{number(numbers['error'], 3)}.",
    )


def _names(curve: SizeCurve, numbers: Mapping[str, Any]) -> Caution:
    unit, halves = what_is_counted(curve), known(curve, numbers["size"])
    assert halves is not None
    again, wider = percent(numbers["overlap"]), steadier(curve, halves, numbers["size"])
    advice, but = "do not read the names as a finding", ""
    if wider:
        advice, but = f"name {cluster_word(halves)}s rather than single {unit}s", f", but {wider}"
    return Caution(
        f"Which {unit}s is not certain: {advice}.",
        f"On average, {halves.how} selected only {again} of these {unit}s again{but}; others may predict as well.",
    )


_WORDS: dict[Reason, Callable[[SizeCurve, Mapping[str, Any]], Caution]] = {
    Reason.SEPARATED: _separated,
    Reason.SEARCH: _search,
    Reason.LARGEST_SIZE: _largest_size,
    Reason.FEW_ROWS: _few_rows,
    Reason.TARGET_COPIES: lambda curve, _: Caution(*copy_words(curve.facts)),
    Reason.IMPUTED: lambda curve, _: Caution(*imputed_words(curve.facts)),
    Reason.ALIKE_ROWS: _alike_rows,
    Reason.ORDERED_ROWS: _ordered_rows,
    Reason.COPIED_ROWS: _copied_rows,
    Reason.TWO_VALUES: _two_values,
    Reason.INFLUENTIAL_ROWS: _influential_rows,
    Reason.HEAVY_ROW: _heavy_row,
    Reason.NAMES: _names,
}


def _copied(pairs: Sequence[Sequence[int | str]], count: int) -> str:
    """The first of so many rows that are copies, and of which row."""
    if not pairs:  # a result of an older version
        return ""
    some = ", ".join(" of ".join(map(_row_name, pair)) for pair in pairs)
    return f" (row {some}{f' and {count - len(pairs):,} more' if count > len(pairs) else ''})"


def _row_name(row: int | str) -> str:
    """A row by its name, or by its index as a number from 1."""
    return f"{row + 1:,}" if isinstance(row, int) else quoted(shorten(clean(row), 60), 60)


def named_rows(curve: SizeCurve, names: Sequence[str]) -> dict[str, Any]:
    """The facts that give the names of rows in doubts, for a table whose rows have names."""
    facts: dict[str, Any] = {}
    for doubt in curve.answer.doubts:
        if doubt.reason == Reason.INFLUENTIAL_ROWS:
            facts["influential_rows"] = [str(names[row]) for row in doubt.numbers["rows"]]
        elif doubt.reason == Reason.HEAVY_ROW:
            facts["heavy_row"] = str(names[doubt.numbers["row"]])
    if "copied_rows" in curve.facts:
        facts["copied_rows"] = [[str(names[row]) for row in pair] for pair in curve.facts["copied_rows"]]
    return facts
