"""What the target, the errors and the units of a curve are called: nouns and short phrases for every kind of problem.

Sentences elsewhere are the same for all kinds; `vocabulary` is the one place that asks what was predicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from pairflip.selection.verdict import baseline, held_out
from pairflip.text import aligned, clean, column_labels, explained, number, percent, plural, r2_text, shorten

if TYPE_CHECKING:
    from pairflip.least_squares import Floats
    from pairflip.selection.curve import SizeCurve

Piece = tuple[str, bool]
"""A text, and whether it is a name: names are set apart, so that they are never read as markup."""
NAME_LENGTH = 48
"""Characters of a name in a sentence."""


class Vocabulary:
    """Words for a target of numbers; the classes below say where other targets differ."""

    predicted, mean = "target", "its mean"  # "No set of columns predicts the target better than its mean."
    target = output = "target"  # "of the variance of the target"; what has coefficients of its own
    mean_alone = "the mean"  # "between worse than the mean and 40 %"
    loss, loss_per_row = "squared error", "RMSE"  # "One row carries 40 % of the squared error; without it the RMSE ..."
    ranking = "AUC"

    def __init__(self, curve: SizeCurve) -> None:
        self.curve, self.words, self.unit = curve, curve.loss.words, what_is_counted(curve)
        self.choice = f"number of {self.unit}s" + ("" if curve.ridge_surface is None else " and the ridge")

    def error(self, size: int) -> float:
        """The error of held-out rows that people are shown first."""
        return held_out(self.curve, size).rmse

    def error_text(self, size: int) -> str:
        """That error in a sentence."""
        return number(self.error(size), 3)

    def error_cells(self, sizes: Sequence[int]) -> list[str]:
        """That error down a column of a table."""
        return aligned([self.error(size) for size in sizes])

    def share_cells(self, sizes: Sequence[int]) -> list[str]:
        """The second number down a column of a table: what is explained, or how well rows are ranked."""
        if self.curve.ranked is not None:
            return [f"{self.curve.ranked[self.curve.at(size)]:.3f}" for size in sizes]
        return [r2_text(held_out(self.curve, size).r2) for size in sizes]

    def share_text(self, size: int) -> str:
        """The second number in a sentence: ``explained 87 % of the variance``, ``AUC 0.912``."""
        if self.curve.ranked is not None:
            return f"{self.words.share} {self.share_cells([size])[0]}"
        return explained(held_out(self.curve, size).r2).replace("variance", self.words.explained)

    def short(self, size: int) -> str:
        """The errors of one size, for a comparison: ``12 % wrong, log loss 0.31``."""
        return f"RMSE {self.error_text(size)}"

    def without_columns(self) -> str:
        """The error without columns, with which every other error is to be compared."""
        if 0 not in self.curve.sizes:
            return " in the unit of the target"
        return f", and {self.error_text(0)} with the {baseline(self.curve)}".replace("the zero", "zero")

    def explains(self, size: int) -> str:
        """``it explains``, ``they explain``."""
        if self.curve.always.size:
            return "all these together explain"
        return "it explains" if self.curve.supports[self.curve.at(size)].size == 1 else "they explain"

    def how_well(self, size: int) -> str:
        """How well the chosen columns predict new rows, allowing for their number having been chosen."""
        chosen, of = self.curve.chosen, f"of the variance of the {self.target}"
        if chosen is None:
            return (
                f"On rows that were held out, {self.explains(size)} {percent(held_out(self.curve, size).r2)} {of}: the "
                f"error (RMSE) is {self.error_text(size)}{self.without_columns()}. That is somewhat too good, because "
                f"the number of {self.unit}s was chosen by it."
            )
        rmse = [number(value, 3) for value in chosen.rmse]
        return (
            f"On new rows, {self.explains(size)} {share_words(chosen.r2, of)}: the error (RMSE) is about {rmse[0]} "
            f"({rmse[1]} to {rmse[2]}){self.without_columns()}. This allows for the {self.choice} having "
            f"been chosen; the ranges are {percent(chosen.level)} intervals."
        )

    def record(self, size: int) -> dict[str, Any]:
        """Errors of held-out rows at a size, for machines."""
        errors = held_out(self.curve, size)
        return {"rmse": errors.rmse, "r2": errors.r2}


class _Targets(Vocabulary):
    """Words for several targets."""

    predicted, mean = "targets", "their means"
    target = "targets"

    def record(self, size: int) -> dict[str, Any]:
        targets, at = self.curve.targets, self.curve.at(size)
        assert targets is not None
        return super().record(size) | {"targets": target_record(targets.names, targets.r2[at], targets.rmse[at])}


class _Deviance(Vocabulary):
    """Words for counts, and for losses of a user's own."""

    loss, loss_per_row = "deviance", "mean deviance"

    def short(self, size: int) -> str:
        return f"deviance {number(2.0 * self.curve.cv_error[self.curve.at(size)], 3)}"

    def how_well(self, size: int) -> str:
        chosen = self.curve.chosen
        share = f"{percent(held_out(self.curve, size).r2)} of the deviance on rows that were held out"
        allowed = f"That is somewhat too good, because the number of {self.unit}s was chosen by it."
        if chosen is not None:
            share = share_words(chosen.r2, "of the deviance on new rows", self.mean_alone)
            errors = "The deviance allows" if chosen.auc is None else "AUC and deviance allow"
            allowed = (
                f"{errors} for the {self.choice} having been chosen; ranges are {percent(chosen.level)} intervals."
            )
        return f"{self.held_out_rows(size)} On the whole, {self.explains(size)} {share}. {allowed}"

    def held_out_rows(self, size: int) -> str:
        """The errors of held-out rows in words that need no explanation, beside those without columns."""
        predictions = "predicted counts" if self.curve.loss.name == "poisson" else "predictions"
        return (
            f"On rows that were held out, the error of the {predictions} (RMSE) is {self.error_text(size)}, and "
            f"{self.error_text(0)} with the {baseline(self.curve)}."
        )

    def record(self, size: int) -> dict[str, Any]:
        error = 2.0 * float(self.curve.cv_error[self.curve.at(size)])
        more = self.more_errors(size)
        if self.curve.ranked is not None:
            more[self.words.ranking] = float(self.curve.ranked[self.curve.at(size)])
        share = held_out(self.curve, size).r2
        return {"loss": self.curve.loss.name, "deviance": error, "explained_deviance": share, **more}

    def more_errors(self, size: int) -> dict[str, Any]:
        """What only this kind of target has, for machines."""
        return {"rmse": self.error(size)}


class _Classes(_Deviance):
    """Words for classes, whose error is the fraction that is put into the wrong one."""

    predicted = output = "class"
    mean = mean_alone = "the class frequencies"

    def error(self, size: int) -> float:
        assert self.curve.classes is not None
        return float(self.curve.classes.misclassified[self.curve.at(size)])

    def error_text(self, size: int) -> str:
        return percent(self.error(size))

    def error_cells(self, sizes: Sequence[int]) -> list[str]:
        return [f"{100 * self.error(size):.1f} %" for size in sizes]

    def short(self, size: int) -> str:
        return f"{self.error_text(size)} wrong, log loss {number(self.curve.cv_error[self.curve.at(size)], 3)}"

    def held_out_rows(self, size: int) -> str:
        curve, classes, chosen = self.curve, self.curve.classes, self.curve.chosen
        assert classes is not None
        beside = f"{percent(classes.majority)} if all are called {classes.labels[int(classes.shares.argmax())]!r}"
        if curve.always.size:
            beside = f"{self.error_text(0)} with the {baseline(curve)}, {beside}"
        area = "" if classes.auc is None else f"; AUC is {classes.auc[curve.at(size)]:.2f} (0.5 is chance)"
        if chosen is not None and chosen.auc is not None and chosen.size == size:
            middle, low, high = (f"{value:.2f}" for value in chosen.auc)
            area = f"; AUC on new rows is about {middle} ({low} to {high}; 0.5 is chance)"
        return f"On rows that were held out, {self.error_text(size)} are put into the wrong class ({beside}){area}."

    def more_errors(self, size: int) -> dict[str, Any]:
        classes = self.curve.classes
        assert classes is not None
        return {"classes": classes.labels, "misclassified": self.error(size), "majority": classes.majority}


class _Survival(_Deviance):
    """Words for survival times, of which the order of risks is predicted."""

    predicted, mean = "time", "the same risk for every row"
    ranking = "concordance"

    def error(self, size: int) -> float:
        return 2.0 * float(self.curve.cv_error[self.curve.at(size)])

    def short(self, size: int) -> str:
        return f"concordance {self.concordance(size)}, {super().short(size)}"

    def concordance(self, size: int) -> str:
        """How well held-out rows are ranked, with two decimals."""
        assert self.curve.survival is not None
        return f"{self.curve.survival.concordance[self.curve.at(size)]:.2f}"

    def how_well(self, size: int) -> str:
        chosen = self.curve.chosen
        where, how_high = "rows that were held out", f"is {self.concordance(size)} (0.5 is chance)"
        allowed = "That is somewhat too good, because the number of columns was chosen by these rows."
        if chosen is not None and chosen.ranked is not None and chosen.size == size:
            middle, low, high = (f"{value:.2f}" for value in chosen.ranked)
            where, how_high = "new rows", f"is about {middle} ({low} to {high}; 0.5 is chance)"
            allowed = f"This allows for the choice of the size; the range is a {percent(chosen.level)} interval."
        if self.curve.always.size:
            how_high += f", and {self.concordance(0)} with the {baseline(self.curve)}"
        return (
            f"On {where}, the concordance {how_high}: of two rows whose order is known, so often the one with the "
            f"higher risk has the event first. {allowed}"
        )

    def more_errors(self, size: int) -> dict[str, Any]:
        return {}


def vocabulary(curve: SizeCurve) -> Vocabulary:
    """The words for what was predicted."""
    if curve.classes is not None:
        return _Classes(curve)
    if curve.survival is not None:
        return _Survival(curve)
    if curve.targets is not None:
        return _Targets(curve)
    return Vocabulary(curve) if curve.loss.squared else _Deviance(curve)


def share_words(shares: tuple[float, float, float], of: str, than: str = "the mean") -> str:
    """``about 36 % of the variance (12 % to 57 %)``: what is explained, and its interval as computed.

    An interval that reaches below zero begins with "worse than the mean", or what else explains nothing.
    """
    middle, low, high = (percent(share) for share in shares)
    about = {">": f"more than {middle[1:]}", "<": f"less than {middle[1:]}"}.get(middle[0], f"about {middle}")
    within = f"{low} to {high}" if shares[1] >= 0 else f"between worse than {than} and {high}"
    return f"{about} {of}" + (f" ({within})" if len({middle, low, high}) > 1 else "")


def target_record(names: Sequence[str], r2: Floats, rmse: Floats) -> list[dict[str, Any]]:
    """R2 and RMSE of each of several targets, for machines."""
    errors = zip(names, r2.tolist(), rmse.tolist(), strict=True)
    return [{"target": name, "r2": share if isfinite(share) else None, "rmse": error} for name, share, error in errors]


def error_texts(curve: SizeCurve, sizes: Sequence[int]) -> list[str]:
    """The errors of some sizes as texts, each for itself."""
    words = vocabulary(curve)
    return words.error_cells(sizes) if curve.classes is not None else [words.error_text(size) for size in sizes]


# Units: columns, or groups of columns where these are chosen as a whole -----------------------------------------------


def what_is_counted(curve: SizeCurve) -> str:
    """``column`` or ``group``."""
    return "column" if curve.groups is None else "group"


def size_text(curve: SizeCurve, size: int) -> str:
    """``3 columns``, or ``3 groups (7 columns)`` where a group of several columns is among them."""
    columns = plural(curve.supports[curve.at(size)].size, "column")
    return columns if columns == plural(size, "column") else f"{plural(size, what_is_counted(curve))} ({columns})"


def units_of(curve: SizeCurve, size: int) -> list[int]:
    """What was chosen at a size: columns, or groups, each by its first column."""
    support = curve.supports[curve.at(size)]
    return [int(j) for j in (support if curve.units is None else curve.units.units_of(support))]


def members(curve: SizeCurve, unit: int) -> list[int]:
    """Columns of a group, by its first column; none where that is a column by itself."""
    groups = {} if curve.units is None else curve.units.groups
    return next((columns.tolist() for columns in groups.values() if columns[0] == unit), [])


def unit_labels(curve: SizeCurve, units: Sequence[int], length: int | None = None) -> list[str]:
    """Labels of columns, or of groups by their first columns, that tell them apart."""
    labels = column_labels(curve.names, units, length)
    if curve.units is not None:
        for at, unit in enumerate(units):
            if members(curve, unit):
                name = clean(curve.units.name(unit, curve.names))
                labels[at] = shorten(name, length) if length else name
    return labels


# Names in sentences ---------------------------------------------------------------------------------------------------


def joined(items: Sequence[list[Piece]]) -> list[Piece]:
    """Parts of a list in a sentence, with commas and "and"."""
    pieces: list[Piece] = []
    for i, item in enumerate(items):
        if i:
            pieces.append((" and " if i == len(items) - 1 else ", ", False))
        pieces += item
    return pieces


def named(labels: Iterable[str]) -> list[Piece]:
    """Names in a sentence: a, b and c."""
    return joined([[(label, True)] for label in labels])


def plain(pieces: Iterable[Piece]) -> str:
    """Pieces as plain text, names in quotes."""
    return "".join(f"“{text}”" if is_name else text for text, is_name in pieces)
