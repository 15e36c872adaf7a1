"""Dates as people write them, and whether rows follow each other in time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

_CLOCK = r"(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d(?:[.,]\d+)?))?\s?(?P<half>[AaPp][Mm])?.*)?"
_YEAR_FIRST = re.compile(rf"\s*(?P<a>\d{{4}})[-/.](?P<b>\d{{1,2}})[-/.](?P<c>\d{{1,2}}){_CLOCK}\s*")
_YEAR_LAST = re.compile(rf"\s*(?P<a>\d{{1,2}})[-/.](?P<b>\d{{1,2}})[-/.](?P<c>\d{{4}}|\d{{2}}){_CLOCK}\s*")
_MONTH = re.compile(r"\s*(?P<year>\d{4})[-/](?P<month>\d{1,2})\s*")
_QUARTER = re.compile(r"\s*(?P<year>\d{4})[-/. ]?[Qq](?P<quarter>[1-4])\s*")
_YEAR = re.compile(r"\s*(1[5-9]|20|21)\d\d\s*")
_CALLED = re.compile(r"date|time|year|month|quarter|day\b", re.IGNORECASE)

Key = tuple[float, ...]


def is_date(text: str) -> bool:
    """Whether a text reads as a day, with or without the time of day."""
    return _YEAR_FIRST.fullmatch(text) is not None or _YEAR_LAST.fullmatch(text) is not None


def in_order(names: Sequence[str], called: str = "") -> bool:
    """Whether all names of rows are dates, the earliest or the latest one first.

    Days, months (``2020-01``) and quarters (``2020Q1``) are dates; whole numbers like 1998 are years only if the column
    is `called` so, since otherwise they might number the rows. Several rows may have the same date.
    """
    ways: list[Callable[[str], Key | None]] = [_year_month_day, _day_month_year, _month_day_year, _part_of_year]
    if _CALLED.search(called):
        ways.append(_year)
    return len(names) > 1 and any(_follow(names, way) for way in ways)


def _follow(names: Sequence[str], way: Callable[[str], Key | None]) -> bool:
    keys: list[Key] = []
    for name in names:
        key = way(name)
        if key is None:
            return False
        keys.append(key)
    steps = list(pairwise(keys))
    return keys[0] != keys[-1] and (all(a <= b for a, b in steps) or all(a >= b for a, b in steps))


def _key(found: re.Match[str], year: str, month: str, day: str) -> Key | None:
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return None
    full = int(year)
    if len(year) == 2:  # as in spreadsheets: 68 is 2068, 69 is 1969
        full += 2000 if full < 69 else 1900
    hour = int(found["hour"] or 0)
    if found["half"]:
        hour = hour % 12 + 12 * (found["half"].lower() == "pm")
    second = float((found["second"] or "0").replace(",", "."))
    return (full, int(month), int(day), hour, int(found["minute"] or 0), second)


def _year_month_day(text: str) -> Key | None:
    found = _YEAR_FIRST.fullmatch(text)
    return found and _key(found, found["a"], found["b"], found["c"])


def _day_month_year(text: str) -> Key | None:
    found = _YEAR_LAST.fullmatch(text)
    return found and _key(found, found["c"], found["b"], found["a"])


def _month_day_year(text: str) -> Key | None:
    found = _YEAR_LAST.fullmatch(text)
    return found and _key(found, found["c"], found["a"], found["b"])


def _part_of_year(text: str) -> Key | None:
    if found := _QUARTER.fullmatch(text):
        return (int(found["year"]), int(found["quarter"]))
    found = _MONTH.fullmatch(text)
    return (int(found["year"]), int(found["month"])) if found and 1 <= int(found["month"]) <= 12 else None


def _year(text: str) -> Key | None:
    return (int(text),) if _YEAR.fullmatch(text) else None
