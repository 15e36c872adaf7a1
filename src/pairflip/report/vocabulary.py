"""What the target, the errors and the units of a curve are called: nouns and short phrases for every kind of problem.

Sentences elsewhere are the same for all kinds; `vocabulary` is the one place that asks what was predicted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from math import floor, isfinite, log10
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pairflip.selection.curve import ChosenError
from pairflip.selection.decide import baseline, held_out
from pairflip.text import (
    aligned,
    aligned_plus_minus,
    clean,
    column_labels,
    compared,
    decimals_apart,
    explained,
    number,
    percent,
    plural,
    r2_text,
    shorten,
)

if TYPE_CHECKING:
    from pairflip.least_squares import Floats
    from pairflip.selection.curve import SizeCurve

Paragraph = tuple[str, str]
"""A label, and sentences with names."""
NAME_LENGTH = 48
"""Characters of a name in a sentence."""
_LISTED = 6  # targets that a sentence names
_PRECISE = 0.005
"""Standard error of an error, as a fraction of it, below which more digits of it are told."""


class ToldNumber(NamedTuple):
    """One of the numbers that an answer tells, and what it is to be compared with."""

    name: str
    value: str
    note: str = ""  # its interval, and the number without columns

    @property
    def text(self) -> str:
        """``RMSE 54 (51 to 58; 77 with the mean alone)``."""
        return f"{self.name} {self.value}" + (f" ({self.note})" if self.note else "")


class Vocabulary:
    """Words for a target of numbers; the classes below say where other targets differ."""

    predicted, mean = "target", "its mean"  # "No set of columns predicts the target better than its mean."
    target = output = "target"  # what is shuffled; what has coefficients of its own
    loss, loss_per_row = "squared error", "RMSE"  # "Row 3 carries 40 % of the squared error; without it the RMSE ..."
    ranking = "AUC"
    minimized = "RMSE"  # by which figures and tables compare sizes
    explains = "R2"

    def __init__(self, curve: SizeCurve) -> None:
        self.curve, self.words, self.unit = curve, curve.loss.words, what_is_counted(curve)

    def shown(self, cv_error: Any) -> Floats:
        """Values of cv_error as what is `minimized`."""
        return np.asarray(np.sqrt(2.0 * np.maximum(cv_error, 0.0)))

    @cached_property
    def digits(self) -> int:
        """Of errors in sentences: three, more where so many rows were held out that errors are known better."""
        at = int(np.argmin(self.curve.cv_error))
        error, spread = float(self.curve.cv_error[at]), float(self.curve.cv_error_se[at])
        relative = spread / error if error > 0 else 1.0
        return 3 if not 0.0 < relative < _PRECISE else min(6, 2 - floor(log10(relative)))

    def error(self, size: int) -> float:
        """The error of held-out rows that people are shown first."""
        return held_out(self.curve, size).rmse

    def error_text(self, size: int) -> str:
        """That error in a sentence."""
        return self.text_beside(self.error(size), self.error(size))

    def text_beside(self, error: float, other: float) -> str:
        """Such an error in a sentence that compares it with another one."""
        return compared(error, other, self.digits)[0]

    def error_cells(self, sizes: Sequence[int]) -> list[str]:
        """That error down a column of a table."""
        return aligned([self.error(size) for size in sizes])

    def error_columns(self, sizes: Sequence[int]) -> list[tuple[str, list[str]]]:
        """Columns of a table of sizes with their heads: errors, then what is explained or how well rows are ranked."""
        places = [self.curve.at(size) for size in sizes]
        error, spread = self.curve.cv_error[places], self.curve.cv_error_se[places]
        half = (self.shown(error + spread) - self.shown(error - spread)) / 2.0
        cells = aligned_plus_minus(self.shown(error).tolist(), half.tolist())
        columns = [(f"{self.minimized} ± SE", cells), (self.words.share, self.share_cells(sizes))]
        other = [] if self.minimized == self.words.error else [(self.words.error, self.error_cells(sizes))]
        return other + columns

    def share_cells(self, sizes: Sequence[int]) -> list[str]:
        """What is explained, or how well rows are ranked, down a column of a table."""
        if self.curve.ranked is not None:
            return [f"{self.curve.ranked[self.curve.at(size)]:.3f}" for size in sizes]
        return [r2_text(held_out(self.curve, size).r2, self.digits - 1) for size in sizes]

    def share_text(self, size: int) -> str:
        """The same in a sentence: ``explained 87 % of the variance``, ``AUC 0.912``."""
        if self.curve.ranked is not None:
            return f"{self.words.share} {self.share_cells([size])[0]}"
        return explained(held_out(self.curve, size).r2).replace("variance", self.words.explained)

    def short(self, size: int, other: int) -> str:
        """The errors of a size, for a comparison with another one: ``12 % wrong, log loss 0.31``."""
        return f"{self.minimized} {self.text_beside(self.error(size), self.error(other))}"

    def compared(self, size: int, other: int) -> str:
        """The errors of two sizes: ``RMSE 57.1 against 55.7``."""
        return f"{self.short(size, other)} against {self.text_beside(self.error(other), self.error(size))}"

    def without_columns(self, error: float) -> str:
        """The error without columns, with which an error is to be compared."""
        text = self.text_beside(self.error(0), error)
        return f"{text} with the {baseline(self.curve)}".replace("the zero", "zero")

    def corrected(self, size: int) -> ChosenError | None:
        """The errors that allow for the size having been chosen, if this one was."""
        chosen = self.curve.answer.error
        return chosen if chosen is not None and chosen.size == size else None

    def numbers(self, size: int) -> list[ToldNumber]:
        """How well the chosen columns predict new rows: an error, then what is explained or how rows are ranked."""
        chosen, error, ends = self.corrected(size), self.error(size), ""
        if chosen is not None:
            error, low, high = chosen.rmse
            ends = f"{number(low, self.digits)} to {number(high, self.digits)}"
        value = self.text_beside(error, self.error(0))
        return [ToldNumber(self.minimized, value, _notes(ends, self.without_columns(error))), self.share(size)]

    def share(self, size: int) -> ToldNumber:
        """What is explained of the variance or of the deviance; an interval may begin below 0."""
        chosen = self.corrected(size)
        if chosen is None:
            return ToldNumber(self.explains, r2_text(held_out(self.curve, size).r2, self.digits - 1))
        value, low, high = (r2_text(each, self.digits - 1) for each in chosen.r2)
        return ToldNumber(self.explains, value, f"{'below 0' if chosen.r2[1] < 0 else low} to {high}")

    def how_well(self, size: int) -> str:
        """These numbers in a sentence."""
        where = "new rows"
        if self.corrected(size) is None:
            where = f"held-out rows: somewhat too good, because these chose the number of {self.unit}s"
        return f"{', '.join(each.text for each in self.numbers(size))} on {where}."

    def meaning(self, size: int) -> str:
        """What these numbers and their ranges are; empty where nothing is to be said."""
        chosen = self.corrected(size)
        if chosen is None:
            return ""
        choice = f"number of {self.unit}s" + ("" if self.curve.ridge_surface is None else " and the ridge")
        allow = "do not allow" if self.curve.answer.rule in self.curve.criteria else "allow"
        ranges = f"ranges are {percent(chosen.level)} intervals"
        return f"Those for new rows {allow} for the {choice} having been chosen; {ranges}."

    def record(self, size: int) -> dict[str, Any]:
        """Errors of held-out rows at a size, for machines."""
        errors = held_out(self.curve, size)
        return {"rmse": errors.rmse, "r2": errors.r2}


class _Targets(Vocabulary):
    """Words for several targets."""

    predicted, mean = "targets", "their means"
    target = "targets"

    def __init__(self, curve: SizeCurve) -> None:
        super().__init__(curve)
        self.minimized = self.loss_per_row = self.words.error

    def how_well(self, size: int) -> str:
        """Also the unit of the errors, and R2 of each target, of many the lowest and the highest."""
        targets = self.curve.targets
        assert targets is not None
        shares = targets.r2[self.curve.at(size)]
        many, order = shares.size > _LISTED, np.argsort(shares)
        each = target_shares(targets.names, shares, order[[0, -1]].tolist() if many else range(shares.size))
        unit = "SD is each target's standard deviation. " if self.curve.settings.get("scale_targets") else ""
        among = f"lowest and highest of {shares.size} targets, " if many else ""
        return f"{super().how_well(size)} {unit}R2 on held-out rows: {among}{each}."

    def record(self, size: int) -> dict[str, Any]:
        targets, at = self.curve.targets, self.curve.at(size)
        assert targets is not None
        unit = "standard deviation of each target" if self.words.error != "RMSE" else "target"
        each = target_record(targets.names, targets.r2[at], targets.rmse[at])
        return super().record(size) | {"rmse_unit": unit, "targets": each}


class _Deviance(Vocabulary):
    """Words for counts, and for losses of a user's own."""

    loss, loss_per_row = "deviance", "mean deviance"
    minimized = "deviance"
    explains = "D2"
    error_name = "RMSE"

    def shown(self, cv_error: Any) -> Floats:
        return np.asarray(2.0 * cv_error)

    def short(self, size: int, other: int) -> str:
        error, beside = (float(self.shown(self.curve.cv_error[self.curve.at(each)])) for each in (size, other))
        return f"{self.minimized} {compared(error, beside, 3)[0]}"

    def compared(self, size: int, other: int) -> str:
        return f"{self.short(size, other)}, against {self.short(other, size)}"

    def numbers(self, size: int) -> list[ToldNumber]:
        known = "" if self.corrected(size) is None else "held-out rows"
        value, error = self.text_beside(self.error(size), self.error(0)), self.error(size)
        told = ToldNumber(self.error_name, value, _notes(known, self.without_columns(error)))
        return [told, self.share(size) if self.curve.ranked is None else self.ranked(size)]

    def ranked(self, size: int) -> ToldNumber:
        """How well rows are ranked."""
        chosen, name = self.corrected(size), self.ranking[0].upper() + self.ranking[1:]
        if chosen is None or chosen.ranked is None:
            return ToldNumber(name, self.rank_text(size), "0.5 is chance")
        value, low, high = (f"{each:.2f}" for each in chosen.ranked)
        return ToldNumber(name, value, f"{low} to {high}; 0.5 is chance")

    def rank_text(self, size: int, other: int | None = None) -> str:
        """How well held-out rows are ranked, with two decimals or what a comparison with another size takes."""
        assert self.curve.ranked is not None
        value, beside = (self.curve.ranked[self.curve.at(each)] for each in (size, size if other is None else other))
        return f"{value:.{decimals_apart(value, beside, 2)}f}"

    def meaning(self, size: int) -> str:
        share = self.share(size)
        told = "" if self.curve.ranked is None else f": {share.value}" + (f" ({share.note})" if share.note else "")
        return f"D2 is the explained part of the deviance{told}. {super().meaning(size)}".rstrip()

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
    mean = "the class frequencies"
    minimized = "log loss"
    error_name = "Wrong class"

    def shown(self, cv_error: Any) -> Floats:
        return np.asarray(cv_error)

    def error(self, size: int) -> float:
        assert self.curve.classes is not None
        return float(self.curve.classes.misclassified[self.curve.at(size)])

    def text_beside(self, error: float, other: float) -> str:
        return percent(error, decimals_apart(100 * error, 100 * other, 0))

    def error_cells(self, sizes: Sequence[int]) -> list[str]:
        return [f"{100 * self.error(size):.1f} %" for size in sizes]

    def short(self, size: int, other: int) -> str:
        wrong = self.text_beside(self.error(size), self.error(other))
        return f"{wrong} wrong, {super().short(size, other)}"

    def without_columns(self, error: float) -> str:
        classes = self.curve.classes
        assert classes is not None
        label = classes.labels[int(classes.shares.argmax())]
        most = f"{self.text_beside(classes.majority, error)} if all are called {label!r}"
        return _notes(super().without_columns(error) if self.curve.always.size else "", most)

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

    def short(self, size: int, other: int) -> str:
        return f"concordance {self.rank_text(size, other)}, {super().short(size, other)}"

    def numbers(self, size: int) -> list[ToldNumber]:
        ranked = self.ranked(size)
        forced = f"{self.rank_text(0, size)} with the {baseline(self.curve)}" if self.curve.always.size else ""
        return [ranked._replace(note=_notes(ranked.note, forced))]

    def meaning(self, size: int) -> str:
        meaning = "Concordance: of two rows whose order is known, how often the one with the higher risk is the first."
        return f"{meaning} {Vocabulary.meaning(self, size)}".rstrip()

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


def _notes(*texts: str) -> str:
    """What stands in one parenthesis."""
    return "; ".join(text for text in texts if text)


def target_shares(names: Sequence[str], shares: Floats, places: Iterable[int]) -> str:
    """Some targets, each with its R2."""
    return ", ".join(f"{named([shorten(clean(names[at]), 60)])} {r2_text(shares[at])}" for at in places)


def target_record(names: Sequence[str], r2: Floats, rmse: Floats) -> list[dict[str, Any]]:
    """R2 and RMSE of each of several targets, for machines."""
    errors = zip(names, r2.tolist(), rmse.tolist(), strict=True)
    return [{"target": name, "r2": share if isfinite(share) else None, "rmse": error} for name, share, error in errors]


# Units: columns, or groups of columns where these are chosen as a whole -----------------------------------------------


def what_is_counted(curve: SizeCurve) -> str:
    """``column`` or ``group``."""
    return "column" if curve.groups is None else "group"


def n_candidates(curve: SizeCurve) -> int:
    """How many columns, or groups, there were to choose from."""
    units = len(curve.names) if curve.units is None else np.unique(curve.units.first).size
    return int(units - curve.always.size)


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


# A name stands between two control characters, which `clean` keeps out of labels: pages set it apart, texts quote it.
_BEGIN, _END = "\x02", "\x03"


def joined(items: Sequence[str], most: int | None = None) -> str:
    """A list in a sentence: a, b and c; at most so many items, and how many more there are."""
    if most is not None and len(items) > most:
        items = [*items[:most], f"{len(items) - most:,} more"]
    return f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else "".join(items)


def named(labels: Iterable[str]) -> str:
    """Labels of columns, rows or targets as names in a sentence: a, b and c."""
    return joined([f"{_BEGIN}{label}{_END}" for label in labels])


def named_columns(names: Sequence[str], columns: Iterable[int]) -> str:
    """Columns in a sentence, by labels that tell them apart: a, b and c."""
    return named(column_labels(names, [int(j) for j in columns], NAME_LENGTH))


def plain(sentence: str) -> str:
    """A sentence as plain text, names in quotes."""
    return sentence.replace(_BEGIN, "“").replace(_END, "”")


def pieces(sentence: str) -> list[tuple[str, bool]]:
    """A sentence as texts, and whether each is a name."""
    return [(text, at % 2 == 1) for at, text in enumerate(re.split(f"[{_BEGIN}{_END}]", sentence))]
