"""What a column holds: numbers, yes or no, dates, text."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.least_squares import Floats
from pairflip.tables.dates import is_date
from pairflip.tables.marks import READINGS, Marks, readings

if TYPE_CHECKING:
    import pandas as pd

DIGITS = re.compile(r"\s*[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?\s*")
KINDS = ("text", "dates", "decimal commas", "commas in numbers", "decimal points", "points in numbers")
DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_MARK = {",": "commas", ".": "points"}
FEW = 50  # values that say what a column of words holds; only numbers are looked at to the last one


def is_plain(dtype: Any) -> bool:
    """Whether a column is an ordinary NumPy array of integers or floats."""
    return isinstance(dtype, np.dtype) and dtype.kind in "iuf"


def is_boolean(column: pd.Series[Any]) -> bool:
    """Whether a column holds only true and false, and perhaps missing values."""
    if column.dtype.kind == "b":
        return True
    return column.dtype == object and _all(column, (bool, np.bool_))


def as_numbers(column: pd.Series[Any]) -> Floats | None:
    """A column as float64, true and false as 1 and 0, missing as NaN; None when it holds anything else."""
    if column.dtype.name == "category":
        column = column.astype(column.cat.categories.dtype)
    if column.dtype.kind in "iufb" or is_boolean(column):
        return column.to_numpy(np.float64, na_value=np.nan)
    if column.dtype.kind == "O":
        if column.isna().all():
            return np.full(len(column), np.nan)
        if column.dtype == object and _all(column, (int, float, Decimal, np.number)):
            return column.to_numpy(np.float64, na_value=np.nan)
    return None


def _all(column: pd.Series[Any], types: tuple[type, ...]) -> bool:
    present = column[column.notna()]
    real = not any(isinstance(value, (bool, complex, np.complexfloating)) for value in present) or bool in types
    return len(present) > 0 and real and all(isinstance(value, types) for value in present)


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
