"""The answer in words: how many columns, which, how well they predict, and what to doubt.

It is written here and nowhere else: `print(curve)`, the command line, the page and result.json all show this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pairflip.least_squares import Floats
from pairflip.report.cautions import cautions_of
from pairflip.report.proof_words import proof_of, proof_pieces
from pairflip.report.stability_words import null_words, stability_words
from pairflip.report.vocabulary import (
    NAME_LENGTH,
    Piece,
    joined,
    members,
    named,
    plain,
    size_text,
    target_record,
    unit_labels,
    units_of,
    vocabulary,
)
from pairflip.rules import ALL_POSITIVE
from pairflip.selection.curve import SizeCurve
from pairflip.selection.verdict import (
    CHANCE,
    CLEAR,
    baseline,
    difference,
    predicts,
    size_to_show,
    sizes_by_repetition,
)
from pairflip.text import clean, column_labels, explained, number, percent, plural, r2_text, shorten

_LISTED = 6  # columns of a group that are named one by one


@dataclass(frozen=True)
class Answer:
    """What a reader is told; names stand apart in pieces (text, is a name), so that they are never read as markup."""

    predicts: bool  # whether some columns predict clearly better than the mean (or than the forced columns alone)
    size: int  # the recommended number of columns, 0 if nothing predicts
    other_size: int | None  # a second one that is worth knowing
    headline: tuple[Piece, ...]  # the recommendation in one sentence
    details: tuple[Piece, ...]  # how well it predicts, and the other size
    cautions: tuple[str, ...]  # reasons to doubt it, each with what to do

    @property
    def mood(self) -> Literal["fairly", "not", "nothing"]:
        """Fairly sure, not sure (there are cautions), or nothing predicts."""
        return "nothing" if not self.predicts else "not" if self.cautions else "fairly"

    @property
    def text(self) -> str:
        """Headline and details as plain text, names in quotes."""
        return f"{plain(self.headline)} {plain(self.details)}"

    def to_json(self, curve: SizeCurve) -> dict[str, Any]:
        """The verdict for machines."""
        words, units, squared = vocabulary(curve), curve.units, curve.loss.squared
        groups, without = {}, {}
        if units is not None:
            groups["groups"] = {
                units.name(unit, curve.names): [curve.names[j] for j in members(curve, unit) or [unit]]
                for unit in units_of(curve, self.size)
            }
        if squared:
            without["rmse_without_columns"] = words.error(0) if 0 in curve.sizes else None
        return {
            "predicts": self.predicts,
            "size": self.size,
            "other_size": self.other_size,
            "columns": [curve.names[j] for j in curve.supports[curve.at(self.size)].tolist()],
            **groups,
            "always": [curve.names[j] for j in curve.always.tolist()],
            **words.record(self.size),
            "p_value": curve.facts.get("p_value"),
            "outer": None if curve.outer is None else _outer_record(curve),
            "sizes_by_repetition": sizes_by_repetition(curve),
            "corrected": None if curve.chosen is None else curve.chosen.to_json(),
            **without,
            "headline": plain(self.headline),
            "details": plain(self.details),
            "cautions": list(self.cautions),
        }


def _outer_record(curve: SizeCurve) -> dict[str, Any]:
    outer, targets = curve.outer, curve.targets
    assert outer is not None
    if not curve.loss.squared:
        return {"deviance": 2.0 * outer.error, "explained_deviance": outer.r2}
    record: dict[str, Any] = {"rmse": outer.rmse, "r2": outer.r2}
    if targets is not None and outer.target_r2 is not None and outer.target_rmse is not None:
        record["targets"] = target_record(targets.names, outer.target_r2, outer.target_rmse)
    return record


def answer_of(curve: SizeCurve) -> Answer:
    """The answer that the curve supports."""
    clear, size, other = predicts(curve), size_to_show(curve), None
    settings, details = curve.settings, list[Piece]()
    if settings.get("one_per_group"):
        groups = plural(len(settings["column_groups"]), "group")
        details.append((f"At most one column is chosen of each of {groups}. ", False))
    if settings.get("min_distance"):
        by = "by the numbers in their names" if settings.get("distance_by") == "names" else "in places"
        details.append((f"No two columns are closer than {number(settings['min_distance'], 6)} ({by}). ", False))
    if settings.get("hierarchy"):
        details.append(("A product is chosen only together with its factors. ", False))
    headline, sentences = _recommendation(curve, size) if clear else _nothing(curve, size)
    details += sentences
    if curve.outer is not None:
        details += _outer_words(curve)
    if clear:
        other = next((k for k in (curve.best_size, curve.one_se_size) if k not in (size, 0)), None)
        if other is not None:
            details += _other(curve, size, other)
        if curve.ridge_surface is not None:
            details.append((shrinkage_words(curve), False))
    if settings.get("signs"):
        details += sign_words(curve, size)
    details += stability_words(curve, size)
    if curve.null is not None:
        details.append((null_words(curve), False))
    if clear and (proof := proof_of(curve, size)) is not None:
        details += [(" ", False), *proof_pieces(proof, chosen=curve.supports[curve.at(size)].tolist())]
    answered = size if clear or 0 not in curve.sizes else 0
    return Answer(clear, answered, other, tuple(headline), tuple(details), cautions_of(curve, size, clear))


def _recommendation(curve: SizeCurve, size: int) -> tuple[list[Piece], list[Piece]]:
    """Headline and first sentences where columns predict: what to keep, and how well that predicts."""
    headline: list[Piece] = [(f"Keep {size_text(curve, size)}", False)]
    if curve.always.size:
        those = "those that are" if curve.always.size > 1 else "the one that is"
        headline.append((f" in addition to {those} always in (", False))
        headline += [*named(column_labels(curve.names, curve.always.tolist(), NAME_LENGTH)), (")", False)]
    headline += [(": ", False), *_names(curve, size), (".", False)]
    words = vocabulary(curve)
    details: list[Piece] = [(words.how_well(size), False)]
    if curve.targets is not None:
        units = (
            " Errors are in units of each target's standard deviation;" if curve.settings.get("scale_targets") else ""
        )
        r2 = _r2_of_targets(curve.targets.names, curve.targets.r2[curve.at(size)])
        details += [(f"{units} R2 on held-out rows: ", False), *r2, (".", False)]
    if sizes := sizes_by_repetition(curve):
        *others, last = (str(k) for k in sorted(sizes))
        where, best = "In", f"{', '.join(others)} and {last} {words.unit}s have"
        if len(set(sizes)) == 1:
            where, best = "In each of", f"{plural(sizes[0], words.unit)} {'has' if sizes[0] == 1 else 'have'}"
        details.append((f" {where} {len(sizes)} repetitions of the folds, {best} the lowest error.", False))
    return headline, details


def _nothing(curve: SizeCurve, best: int) -> tuple[list[Piece], list[Piece]]:
    """Headline and first sentences where no set of columns predicts better than none; `best` is the best size tried."""
    words = vocabulary(curve)
    than = "the columns that are always in the model" if curve.always.size else words.mean
    headline: Piece = (f"No set of columns predicts the {words.predicted} better than {than}.", False)
    tried = [int(k) for k in curve.sizes if k > 0]
    lower = 0 in curve.sizes and curve.cv_error[curve.at(best)] < curve.cv_error[curve.at(0)]
    errors = f"{words.short(best)}, against {words.short(0)} with the {baseline(curve)}"
    if curve.loss.squared:
        errors = f"the RMSE is {words.error_text(best)}{words.without_columns()}"
    of = f"Of sizes {tried[0]} to {tried[-1]}, " if len(tried) > 1 else ""
    details: list[Piece] = [
        (f"{of}{size_text(curve, best)} did best on rows that were held out (", False),
        *_names(curve, best),
        (f"), but the error is {'hardly' if lower else 'no'} lower: {errors}{_chance(curve, best)}. ", False),
        (f"Do not rely on {'it' if best == 1 else 'them'}.", False),
    ]
    return [headline], details


def shrinkage_words(curve: SizeCurve) -> str:
    """One sentence of the answer: how much the coefficients are shrunk; "" where there was nothing to choose."""
    surface = curve.ridge_surface
    if surface is None or surface.ridges.size < 2:
        return ""
    values = ", ".join(f"{ridge:g}" for ridge in surface.ridges)
    if surface.ridge == 0:
        others = ", ".join(f"{ridge:g}" for ridge in surface.ridges if ridge > 0)
        return f" Shrinking the coefficients (by ridge terms of {others}) did not lower the error."
    text = f" Coefficients are shrunk by a ridge term of {surface.ridge:g}, chosen with the size from {values}"
    if 0 in surface.ridges:
        lowest = [float(surface.errors[surface.ridges == ridge].min()) for ridge in (0.0, surface.ridge)]
        if curve.loss.squared:
            lowest = [float(np.sqrt(2.0 * error)) for error in lowest]
        plain, shrunken = (number(error, 3) for error in lowest)
        error = "RMSE" if curve.loss.squared else "cv_error"
        text += f"; the lowest {error} on held-out rows was {shrunken} with it and {plain} without"
    return f"{text}."


def sign_words(curve: SizeCurve, size: int) -> list[Piece]:
    """That coefficients were kept to signs, and which columns carry no weight for that."""
    how = "positive" if curve.settings["signs"] == ALL_POSITIVE else "to the signs that were asked for"
    at = curve.at(size)
    idle = curve.supports[at][np.asarray(curve.coefs[at]) == 0].tolist()
    if not idle:
        return [(f" Coefficients were kept {how}.", False)]
    carry, zero = ("carries", "its coefficient is") if len(idle) == 1 else ("carry", "their coefficients are")
    return [
        (f" Coefficients were kept {how}; ", False),
        *named(column_labels(curve.names, idle, NAME_LENGTH)),
        (f" {carry} no weight in this fit: {zero} zero at the bound, so a smaller size does the same.", False),
    ]


def _r2_of_targets(names: list[str], shares: Floats) -> list[Piece]:
    """Targets, each with its R2."""
    pieces: list[Piece] = []
    for name, share in zip(names, shares.tolist(), strict=True):
        pieces += [(", " if pieces else "", False), (shorten(clean(name), 60), True), (f" {r2_text(share)}", False)]
    return pieces


def _outer_words(curve: SizeCurve) -> list[Piece]:
    """What the cross validation around the whole selection found."""
    outer = curve.outer
    assert outer is not None
    error = f"half the mean deviance is {number(outer.error, 3)}"
    if curve.loss.squared:
        error = f"the RMSE is {number(outer.rmse, 3)} ({explained(outer.r2)})"
    text = (
        f" In {outer.sizes.size} outer folds, where size and columns were chosen anew without the rows predicted, "
        f"{error}; sizes chosen there: {', '.join(str(size) for size in outer.sizes.tolist())}."
    )
    if curve.targets is None or outer.target_r2 is None:
        return [(text, False)]
    return [(f"{text} R2 there: ", False), *_r2_of_targets(curve.targets.names, outer.target_r2), (".", False)]


def _chance(curve: SizeCurve, best: int) -> str:
    """Why an error below that of the mean is not a finding."""
    gain, error = difference(curve, 0, best) if 0 in curve.sizes else (0.0, 0.0)
    if not gain > 0:
        return ""
    if curve.facts.get("p_value", 0.0) > CHANCE:
        return f"; but of shuffled targets, {percent(curve.facts['p_value'])} are fitted as well"
    if curve.corrected is not None and curve.corrected.ranked is not None:
        ranking = vocabulary(curve).ranking
        return f", and {ranking} is {curve.corrected.ranked[0]:.2f} once it is corrected for the choice of the size"
    if gain <= CLEAR * error:
        return f", a difference of {gain / error:.1f} standard errors"
    return ", and not lower once it is corrected for the choice of the size"


def _other(curve: SizeCurve, size: int, other: int) -> list[Piece]:
    """The other size: the one with the lowest error, or the smallest that is not clearly worse."""
    # Both without the correction, which is there for the chosen size only.
    words = vocabulary(curve)
    errors = f"{words.short(other)}, against {words.short(size)} on held-out rows"
    if curve.loss.squared:
        errors = f"{words.short(other)} against {words.error_text(size)} on held-out rows"
    if other > size:
        return [(f" {size_text(curve, other)} had the lowest error ({errors}), but not clearly.", False)]
    verb = "is" if other == 1 else "are"
    return [
        (f" {plural(other, words.unit)} (", False),
        *_names(curve, other),
        (f") {verb} not clearly worse ({errors}).", False),
    ]


def _names(curve: SizeCurve, size: int) -> list[Piece]:
    """The chosen columns; of groups, each with its columns, of many the first and the last."""
    units = units_of(curve, size)
    labels = unit_labels(curve, units, NAME_LENGTH)
    if curve.units is None:
        return named(labels)
    items = []
    for unit, label in zip(units, labels, strict=True):
        columns = members(curve, unit)
        item: list[Piece] = [(label, True)]
        if len(columns) > _LISTED:
            (first,), (last,) = (column_labels(curve.names, [j], NAME_LENGTH) for j in (columns[0], columns[-1]))
            item += [(f" ({plural(len(columns), 'column')}, ", False), (first, True), (" to ", False), (last, True)]
        elif columns:
            item += [(" (", False), *named(column_labels(curve.names, columns, NAME_LENGTH))]
        items.append([*item, (")", False)] if columns else item)
    return joined(items)
