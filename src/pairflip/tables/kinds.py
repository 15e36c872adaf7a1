"""What a column holds: numbers and how they are written, true and false, dates, text."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.least_squares import Floats

if TYPE_CHECKING:
    import pandas as pd

DIGITS = re.compile(r"\s*[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?\s*")
KINDS = ("text", "dates", "decimal commas", "commas in numbers", "decimal points", "points in numbers")
DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
FEW = 50  # values that say what a column of words holds; only numbers are looked at to the last one
_MARK = {",": "commas", ".": "points"}
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_INFINITE = r"[iI][nN][fF](?:[iI][nN][iI][tT][yY])?"
_CLOCK = r"(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d(?:[.,]\d+)?))?\s?(?P<half>[AaPp][Mm])?.*)?"
_YEAR_FIRST = re.compile(rf"\s*(?P<a>\d{{4}})[-/.](?P<b>\d{{1,2}})[-/.](?P<c>\d{{1,2}}){_CLOCK}\s*")
_YEAR_LAST = re.compile(rf"\s*(?P<a>\d{{1,2}})[-/.](?P<b>\d{{1,2}})[-/.](?P<c>\d{{4}}|\d{{2}}){_CLOCK}\s*")
_MONTH = re.compile(r"\s*(?P<year>\d{4})[-/](?P<month>0?[1-9]|1[0-2])\s*")
_QUARTER = re.compile(r"\s*(?P<year>\d{4})[-/. ]?[Qq](?P<month>[1-4])\s*")
_YEAR = re.compile(r"\s*(?P<year>(1[5-9]|20|21)\d\d)\s*")
_CALLED = re.compile(r"date|time|year|month|quarter|day\b", re.IGNORECASE)


@dataclass(frozen=True)
class Marks:
    """How numbers are written."""

    decimal: str = "."  # or a comma: before the fraction
    thousands: str | None = None  # a point or a comma: between groups of three digits

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


def readings(words: Iterable[str]) -> list[Marks]:
    """Marks with which every word is a number."""
    possible = list(READINGS)
    for word in words:
        possible = [marks for marks in possible if marks.number(word) is not None]
        if not possible:
            break
    return possible


def simplest(possible: Sequence[Marks]) -> list[Marks]:
    """Leave out marks that only add a thousands mark to others, which makes no difference where there is none."""
    return [marks for marks in possible if marks.thousands is None or Marks(marks.decimal) not in possible]


def both_readings(word: str, possible: Sequence[Marks], given: Marks) -> str:
    """What a reader has to decide: ``'1,499' reads as 1499 with --thousands , or as 1.499 with --decimal ,``."""
    ways = [f"as {marks.number(word):.15g} {marks.instead_of(given)}" for marks in possible]
    return f"{word.strip()!r} reads {' or '.join(ways)}"


def is_plain(dtype: Any) -> bool:
    """Whether a column is an ordinary NumPy array of integers or floats."""
    return isinstance(dtype, np.dtype) and dtype.kind in "iuf"


def is_boolean(column: pd.Series[Any]) -> bool:
    """Whether a column holds only true and false, and perhaps missing values."""
    from pandas.api.types import infer_dtype

    return infer_dtype(column) == "boolean"


def as_numbers(column: pd.Series[Any]) -> Floats | None:
    """A column as float64, true and false as 1 and 0, missing as NaN; None when it holds anything else."""
    from pandas.api.types import infer_dtype

    if column.dtype.name == "category":
        column = column.astype(column.cat.categories.dtype)
    if infer_dtype(column) in ("boolean", "integer", "floating", "mixed-integer-float", "decimal"):
        return column.to_numpy(np.float64, na_value=np.nan)
    return np.full(len(column), np.nan) if column.dtype.kind == "O" and column.isna().all() else None


def written_numbers(column: pd.Series[Any], marks: Marks) -> Floats | None:
    """A column of words as the numbers they are with these marks, missing as NaN; None where one is not a number."""
    values = np.full(len(column), np.nan)
    words = column.to_numpy(object)
    for at in np.flatnonzero(column.notna().to_numpy()).tolist():
        number = marks.number(words[at]) if isinstance(words[at], str) else None
        if number is None:
            return None
        values[at] = number
    return values


def possible_marks(column: pd.Series[Any]) -> list[Marks]:
    """Marks with which every word of the column is a number; none for text and dates."""
    present = column[column.notna()]
    if not readings(word for word in present.iloc[:FEW] if isinstance(word, str)):
        return []
    words = [value for value in present if isinstance(value, str)]
    others = (value for value in present if not isinstance(value, str))
    if not words or not all(is_number(value) and not isinstance(value, bool) for value in others):
        return []
    return readings(words)


def describe(column: pd.Series[Any], marks: Marks = READINGS[0]) -> str:
    """What a column that does not hold numbers with these marks holds, in one word of `KINDS`."""
    if column.dtype.kind in "mM":
        return "dates"
    some = column[column.notna()].iloc[:FEW]
    if len(some) and all(isinstance(value, DATES) for value in some):
        return "dates"
    words = [value for value in some if isinstance(value, str)]
    if words and all(map(is_date, words)):
        return "dates"
    possible = possible_marks(column)
    if possible and marks not in possible:
        _, word = first_odd(column, marks)
        mark = next(each for each in ",." if each in word and (each != marks.decimal or word.count(each) > 1))
        return (
            f"{_MARK[mark]} in numbers" if any(each.decimal != mark for each in possible) else f"decimal {_MARK[mark]}"
        )
    grouped = marks.thousands is not None and any(marks.thousands in word for word in words)
    if grouped and all(DIGITS.fullmatch(word) for word in words):
        return f"{_MARK[str(marks.thousands)]} in numbers"
    return "text"


def first_odd(column: pd.Series[Any], marks: Marks = READINGS[0]) -> tuple[int, str]:
    """Position and text of the first value that is neither a number nor missing."""
    for at, value in enumerate(column.to_numpy(object)):
        missing = value is None or value != value or str(value) in ("NaT", "<NA>")
        if not missing and not (is_number(value, marks) and not isinstance(value, bool)):
            return at, str(value)
    return 0, str(column.iloc[0])


def is_number(value: Any, marks: Marks = READINGS[0]) -> bool:
    """Whether one value is a number, or is written as one."""
    if isinstance(value, str):
        return marks.number(value) is not None
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, DATES)


def is_date(text: str) -> bool:
    """Whether a text reads as a day, with or without the time of day."""
    return _YEAR_FIRST.fullmatch(text) is not None or _YEAR_LAST.fullmatch(text) is not None


def in_order(names: Sequence[str], called: str = "") -> bool:
    """Whether all names of rows are dates, the earliest or the latest one first.

    Days, months (``2020-01``) and quarters (``2020Q1``) are dates; whole numbers like 1998 are years only if the column
    is `called` so, since otherwise they might number the rows. Several rows may have the same date.
    """
    ways = [(_YEAR_FIRST, "abc"), (_YEAR_LAST, "cba"), (_YEAR_LAST, "cab"), (_QUARTER, ""), (_MONTH, "")]
    if _CALLED.search(called):
        ways.append((_YEAR, ""))
    for pattern, order in ways:
        times: list[Any] = list(takewhile(bool, (_time(name, pattern, order) for name in names)))
        if len(times) == len(names) > 1 and times[0] != times[-1]:
            steps = list(pairwise(times))
            if all(a <= b for a, b in steps) or all(a >= b for a, b in steps):
                return True
    return False


def _time(text: str, pattern: re.Pattern[str], order: str) -> tuple[float, ...] | None:
    """The numbers of a date, year first; `order` names the groups of a day that are year, month and day."""
    match = pattern.fullmatch(text)
    if match is None:
        return None
    if not order:
        return tuple(int(match[group]) for group in ("year", "month") if group in match.re.groupindex)
    year, month, day = (int(match[group]) for group in order)
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    if len(match[order[0]]) == 2:  # as in spreadsheets: 68 is 2068, 69 is 1969
        year += 2000 if year < 69 else 1900
    hour = int(match["hour"] or 0)
    if match["half"]:
        hour = hour % 12 + 12 * (match["half"].lower() == "pm")
    return (year, month, day, hour, int(match["minute"] or 0), float((match["second"] or "0").replace(",", ".")))
