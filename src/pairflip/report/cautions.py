"""What to doubt about an answer: the search, the range of sizes, and whether held-out rows stand for new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pairflip.report.group_words import counted, how_many, what_is_counted
from pairflip.selection.curve import SizeCurve
from pairflip.selection.facts import copy_words
from pairflip.selection.verdict import recommended_size, uncertain
from pairflip.text import clean, number, numbered, percent, plural, quoted, shorten

_HEAVY = 0.25
_BY_CHANCE = 0.003
_ROUNDING = 1e-20  # of the square of the target: errors of columns that fit it exactly


def _more_search(curve: SizeCurve) -> str:
    """What to do about a search that was too short."""
    if curve.settings.get("method", "anneal") == "anneal":
        return "Use more chains or a slower schedule."
    return "Search longer (--effort thorough, in Python effort='thorough')."


def search_doubts(curve: SizeCurve, size: int) -> list[str]:
    """Doubts about the search."""
    if not uncertain(curve, size):
        return []
    return [
        f"The search is uncertain at {counted(curve, size)}: only {percent(curve.agreement[curve.at(size)])} of the "
        "chains reached the best set of their fold, so better columns may have been missed and the error may be too "
        f"high. {_more_search(curve)}"
    ]


def size_doubts(curve: SizeCurve) -> list[str]:
    """Doubts about the range of sizes."""
    best = curve.best_size
    most = how_many(curve) - curve.always.size
    if best < int(curve.sizes.max()) or curve.sizes.size <= 2 or best >= most:
        return []
    return [
        f"The lowest error is at the largest size tried ({best}), so more {what_is_counted(curve)}s may predict "
        "better: try larger sizes."
    ]


def table_doubts(curve: SizeCurve) -> list[str]:
    """Doubts about whether held-out rows stand for new ones."""
    found = []
    facts, how = curve.facts, str(curve.settings.get("cv", ""))
    in_blocks = "blocks" in how or "group" in how.lower() or "TimeSeriesSplit" in how
    if ("dates" in facts or "autocorrelation" in facts) and not in_blocks:
        why = "the names of the rows are dates"
        if "autocorrelation" in facts:
            why = f"the target of a row is like that of the row before (autocorrelation {facts['autocorrelation']:.2f})"
        found.append(
            f"The rows may not be independent: {why}. If they are in the order of time or place, rows held out at "
            "random have near copies among the others, and all errors here are too low: leave out blocks of "
            "neighbouring rows instead (--cv blocks:5, in Python cv='blocks:5')."
        )
    if "identical_rows" in facts and "group" not in how.lower():
        copies = int(facts["identical_rows"])
        found.append(
            f"{plural(copies, 'row')} of the table {'is a copy' if copies == 1 else 'are copies'} of another row, "
            "target included: a held-out row is then predicted from its own copy, and all errors here are too low. "
            "Keep one of each, or give copies the same group (--groups)."
        )
    if "two_values" in facts:
        low, high = facts["two_values"]
        found.append(
            f"The target has two values only ({number(low)} and {number(high)}) and is treated as a number: errors and "
            "predictions are those of a number, not of a class (--loss logistic, in Python loss='logistic', is for "
            "classes)."
        )
    return [*copy_words(facts), *found, *_heavy_words(curve)]


class HeavyRow(NamedTuple):
    """A row that carries much of the held-out error: its index, its fraction, and errors with and without it.

    Errors are root mean squares; for classes and counts, mean deviances.
    """

    row: int
    share: float
    error: float
    without: float


def heavy_row(curve: SizeCurve) -> HeavyRow | None:
    """The row that carries more than a quarter of the held-out error of the recommended size, if there is one.

    A row that is held out several times counts with all its errors. Of few rows one may carry more by chance: the limit
    is then what the largest of n squared normal errors exceeds in three tables of a thousand.
    """
    from scipy.special import betaincinv

    size = recommended_size(curve)
    if size not in curve.sizes:
        return None
    errors = curve.weights * curve.row_errors(curve.predictions[curve.at(size)])
    by_row, weight = np.bincount(curve.held_out_rows, errors), np.bincount(curve.held_out_rows, curve.weights)
    total, n = float(by_row.sum()), int(np.count_nonzero(weight))
    exact = _ROUNDING * float(weight.sum() * np.max(np.abs(curve.observed)) ** 2)
    if n < 3 or not exact < total < np.inf:
        return None
    row = int(np.argmax(by_row))
    share = float(by_row[row]) / total
    if share <= max(_HEAVY, float(betaincinv(0.5, (n - 1) / 2, 1.0 - _BY_CHANCE / n))):
        return None
    both = np.array([total / weight.sum(), (total - by_row[row]) / (weight.sum() - weight[row])])
    error, without = np.sqrt(both) if curve.loss.squared else both
    return HeavyRow(row, share, float(error), float(without))


def named_heavy_row(curve: SizeCurve, names: Sequence[str]) -> dict[str, str]:
    """The fact that gives the name of that row, for a table whose rows have names."""
    heavy = heavy_row(curve)
    return {} if heavy is None else {"heavy_row": str(names[heavy.row])}


def _heavy_words(curve: SizeCurve) -> list[str]:
    heavy = heavy_row(curve)
    if heavy is None:
        return []
    name = curve.facts.get("heavy_row")
    which = numbered("row", heavy.row) if name is None else f"row {quoted(shorten(clean(name), 60), 60)}"
    what, error = ("squared error", "RMSE") if curve.loss.squared else ("deviance", "mean deviance")
    return [
        f"One row carries {percent(heavy.share)} of the {what} of all held-out rows: {which}. Without it the {error} "
        f"would be {number(heavy.without, 3)} instead of {number(heavy.error, 3)}. Look whether its values are right."
    ]
