"""What to doubt about an answer: the search, the range of sizes, and whether held-out rows stand for new ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pairflip.report.stability_words import cluster_word, known, steadier
from pairflip.report.vocabulary import n_candidates, vocabulary, what_is_counted
from pairflip.selection.curve import SizeCurve
from pairflip.selection.facts import copy_words, imputed_words
from pairflip.selection.verdict import recommended_size, uncertain
from pairflip.text import clean, number, numbered, percent, plural, quoted, shorten

_HEAVY = 0.25
_BY_CHANCE = 0.003
_ROUNDING = 1e-20  # of the square of the target: errors of columns that fit it exactly
_SHAKY_NAMES = 0.5
_CHOOSE = "let held-out rows choose a larger ridge (--ridge auto, in Python ridge='auto')"
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


def cautions_of(curve: SizeCurve, size: int, predicts: bool) -> Iterator[Caution]:
    """Reasons to doubt an answer that recommends a size, or that nothing predicts (then the best size tried)."""
    unit = what_is_counted(curve)
    if "separated" in curve.facts or "separated_folds" in curve.facts:
        yield from separated(curve, size if predicts else 0)
    if uncertain(curve, size):
        more = "search longer (--effort thorough, in Python effort='thorough')"
        if curve.settings.get("method", "anneal") == "anneal":
            more = "use more chains or a slower schedule"
        agree = percent(curve.agreement[curve.at(size)])
        yield Caution(
            f"The search is uncertain at {plural(size, unit)} ({agree} of the chains agree): {more}.",
            f"Only {agree} of the chains reached the best set of their fold, so better columns may have been "
            "missed, and the error may be too high.",
        )
    if predicts and curve.sizes.size > 2 and int(curve.sizes.max()) == curve.best_size < n_candidates(curve):
        largest = f"The lowest error is at the largest size tried ({curve.best_size})"
        yield Caution(f"{largest}, so more {unit}s may predict better: try larger sizes.")
    yield from _about_rows(curve)
    halves = known(curve, size) if predicts else None
    if halves is not None and halves.overlap[halves.at(size)] < _SHAKY_NAMES:
        again, wider = percent(float(halves.overlap[halves.at(size)])), steadier(curve, halves, size)
        advice, but = "do not read the names as a finding", ""
        if wider:
            advice, but = f"name {cluster_word(halves)}s rather than single {unit}s", f", but {wider}"
        yield Caution(
            f"Which {unit}s is not certain: {advice}.",
            f"On average, {halves.how} selected only {again} of these {unit}s again{but}; others may predict as well.",
        )


def separated(curve: SizeCurve, size: int) -> list[Caution]:
    """The doubt where the fitted columns separate the classes completely, in the whole table or in folds."""
    apart = curve.facts.get("separated", [])
    choose = "" if curve.ridge_surface is not None else f": {_CHOOSE}"
    if not size and apart and choose:
        return [
            Caution(
                f"From {plural(min(apart), 'column')} on, the classes of this table are separated completely{choose}.",
                "Predicted probabilities are then too sure, and the log loss of held-out rows is high.",
            )
        ]
    folds = curve.facts.get("separated_folds", {}).get(str(size), 0)
    if not size or not (size in apart or folds):
        return []
    where = "this table" if size in apart else f"the training rows of {folds} of {plural(curve.n_folds, 'fold')}"
    return [
        Caution(
            f"The columns separate the classes of {where} completely{choose}.",
            "Only the ridge keeps the coefficients finite, so do not read their sizes or standard errors, and expect "
            "some rows of a new table to be wrong.",
        )
    ]


def _about_rows(curve: SizeCurve) -> Iterator[Caution]:
    """Doubts about whether held-out rows stand for new ones."""
    facts, how = curve.facts, str(curve.settings.get("cv", ""))
    yield from map(Caution, copy_words(facts) + imputed_words(facts))
    in_blocks = "blocks" in how or "group" in how.lower() or "TimeSeriesSplit" in how
    if "alike_by" in facts and not in_blocks:
        column, many = quoted(clean(str(facts["alike_by"]))), plural(int(facts.get("alike_values", 0)), "value")
        yield Caution(
            f"Rows with the same {column} ({many}) have similar errors, correlation {facts['alike_rows']:.2f}: if they "
            f"belong together, leave them out together (--groups {column}).",
            _RELATIVES,
        )
    elif ("dates" in facts or "autocorrelation" in facts) and not in_blocks:
        why = "their names are dates"
        if "autocorrelation" in facts:
            why = f"the target of a row is like that of the row before, autocorrelation {facts['autocorrelation']:.2f}"
        yield Caution(
            f"The rows may not be independent ({why}): if they are in the order of time or place, leave out blocks "
            "(--cv blocks:5, in Python cv='blocks:5').",
            _RELATIVES,
        )
    if "identical_rows" in facts and "group" not in how.lower():
        copies = int(facts["identical_rows"])
        yield Caution(
            f"{plural(copies, 'row')} of the table {'is a copy' if copies == 1 else 'are copies'} of another row, "
            "so errors are too low: keep one of each, or give copies the same group (--groups).",
            "Target included: a held-out row is then predicted from its own copy.",
        )
    if "two_values" in facts:
        low, high = facts["two_values"]
        yield Caution(
            f"The target has two values only ({number(low)} and {number(high)}): --loss logistic (in Python "
            "loss='logistic') is for classes.",
            "It is treated as a number: errors and predictions are those of a number, not of a class.",
        )
    if (heavy := heavy_row(curve)) is not None:
        row, share, error, without = heavy
        name, words = facts.get("heavy_row"), vocabulary(curve)
        row_name = numbered("row", row) if name is None else f"row {quoted(shorten(clean(name), 60), 60)}"
        yield Caution(
            f"One row carries {percent(share)} of the {words.loss} of all held-out rows, {row_name}: look whether "
            "its values are right.",
            f"Without it the {words.loss_per_row} would be {number(without, 3)} instead of {number(error, 3)}.",
        )


def heavy_row(curve: SizeCurve) -> tuple[int, float, float, float] | None:
    """The row with more than a quarter of the held-out error, its share, and the errors with it and without."""
    from scipy.special import betaincinv

    size = recommended_size(curve)
    if size not in curve.sizes or not curve.single_rows:
        return None
    errors = curve.weights * curve.row_errors(curve.predictions[curve.at(size)])
    by_row, weight = np.bincount(curve.held_out_rows, errors), np.bincount(curve.held_out_rows, curve.weights)
    total, n = float(by_row.sum()), int(np.count_nonzero(weight))
    exact = _ROUNDING * float(weight.sum() * np.max(np.abs(curve.observed)) ** 2)
    if n < 3 or not exact < total < np.inf:
        return None
    row = int(np.argmax(by_row))
    share = float(by_row[row]) / total
    # Of few rows one carries more by chance: this the largest of n squared normal errors exceeds in 3 of 1000 tables.
    if share <= max(_HEAVY, float(betaincinv(0.5, (n - 1) / 2, 1.0 - _BY_CHANCE / n))):
        return None
    both = np.array([total / weight.sum(), (total - by_row[row]) / (weight.sum() - weight[row])])
    error, without = np.sqrt(both) if curve.loss.squared else both
    return row, share, float(error), float(without)


def named_heavy_row(curve: SizeCurve, names: Sequence[str]) -> dict[str, str]:
    """The fact that gives the name of that row, for a table whose rows have names."""
    heavy = heavy_row(curve)
    return {} if heavy is None else {"heavy_row": str(names[heavy[0]])}
