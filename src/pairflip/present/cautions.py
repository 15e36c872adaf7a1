"""What to doubt about an answer: the search, the range of sizes, and whether held-out rows stand for new ones."""

from __future__ import annotations

from pairflip.present.group_words import counted, how_many, what_is_counted
from pairflip.selection.curve import SizeCurve
from pairflip.selection.verdict import uncertain
from pairflip.text import number, percent, plural


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
    return found
