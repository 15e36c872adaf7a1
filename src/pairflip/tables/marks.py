"""Decimal marks and thousands marks: which number a written value is, and which marks a column may be written with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

_EXPONENT = r"(?:[eE][+-]?\d+)?"
_INFINITE = r"[iI][nN][fF](?:[iI][nN][iI][tT][yY])?"


@dataclass(frozen=True)
class Marks:
    """How numbers are written.

    Attributes
    ----------
    decimal : {".", ","}
        What stands before the fraction.
    thousands : {".", ","} or None
        What stands between groups of three digits; None where digits are not grouped.
    """

    decimal: str = "."
    thousands: str | None = None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        whole = r"\d+"
        if self.thousands is not None:
            whole = rf"(?:[1-9]\d{{0,2}}(?:{re.escape(self.thousands)}\d{{3}})+|\d+)"
        point = re.escape(self.decimal)
        return re.compile(rf"[+-]?(?:{whole}(?:{point}\d*)?{_EXPONENT}|{point}\d+{_EXPONENT}|{_INFINITE})")

    def number(self, text: str) -> float | None:
        """The number that `text` is, exactly; None where it is not one, as ``1,49`` with thousands commas."""
        text = text.strip()
        if self._pattern.fullmatch(text) is None:
            return None
        if self.thousands is not None:
            text = text.replace(self.thousands, "")
        return float(text.replace(self.decimal, "."))

    @property
    def options(self) -> tuple[str, ...]:
        """What asks for these marks on the command line."""
        decimal = () if self.decimal == "." else ("--decimal ,",)
        thousands = {None: (), ",": ("--thousands ,",), ".": ("--thousands '.'",)}  # a full stop may follow
        return (*decimal, *thousands[self.thousands])

    def instead_of(self, given: Marks) -> str:
        """How to change the options from `given` to these: ``with --decimal , and without --thousands ,``."""
        more = [each for each in self.options if each not in given.options]
        less = [each for each in given.options if each not in self.options]
        parts = [f"with {' '.join(more)}"] * bool(more) + [f"without {' '.join(less)}"] * bool(less)
        return " and ".join(parts)


READINGS = (Marks(), Marks(thousands=","), Marks(decimal=","), Marks(decimal=",", thousands="."))


def readings(words: Iterable[str], among: Sequence[Marks] = READINGS) -> list[Marks]:
    """Marks with which every word is a number."""
    left = list(among)
    for word in words:
        left = [marks for marks in left if marks.number(word) is not None]
        if not left:
            break
    return left


def simplest(found: Iterable[Marks]) -> list[Marks]:
    """Leave out marks that only add a thousands mark to others, which makes no difference where there is none."""
    every = list(found)
    return [marks for marks in every if marks.thousands is None or Marks(marks.decimal) not in every]


def both_readings(word: str, found: Sequence[Marks], given: Marks) -> str:
    """What a reader has to decide: ``'1,499' reads as 1499 with --thousands , or as 1.499 with --decimal ,``."""
    ways = [f"as {marks.number(word):.15g} {marks.instead_of(given)}" for marks in found]
    return f"{word.strip()!r} reads {' or '.join(ways)}"
