"""What a column holds: numbers, yes or no, dates, text."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.least_squares import Floats

if TYPE_CHECKING:
    import pandas as pd

COMMA = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*")
THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*")
DATE = re.compile(r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))([ T]\d{1,2}:\d\d.*)?\s*")
KINDS = ("text", "dates", "decimal commas", "commas in numbers")
DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


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


def describe(column: pd.Series[Any]) -> str:
    """In a word what a column that is not numbers holds; one of `KINDS`."""
    if column.dtype.kind in "mM":
        return "dates"
    some = column[column.notna()].iloc[:50]
    if len(some) and all(isinstance(value, DATES) for value in some):
        return "dates"
    words = [value for value in some if isinstance(value, str)]
    if words and all(DATE.fullmatch(value) for value in words):
        return "dates"
    odd = [value for value in words if not _is_number(value)]
    if odd and all(THOUSANDS.fullmatch(value) for value in odd):
        return "commas in numbers"  # 1,234 may be either
    if odd and all(COMMA.fullmatch(value) for value in odd):
        return "decimal commas"
    return "text"


def remedy(kind: str) -> str | None:
    """What to do about commas; None for the other kinds."""
    if kind == "commas in numbers":
        return "use --decimal , if they are decimal commas, or remove them from the file"
    return "read it with --decimal ," if kind == "decimal commas" else None


def first_odd(column: pd.Series[Any]) -> tuple[int, str]:
    """Position and text of the first value that is neither a number nor missing."""
    for at, value in enumerate(column.to_numpy(object)):
        missing = value is None or value != value or str(value) in ("NaT", "<NA>")
        if not missing and not (_is_number(value) and not isinstance(value, bool)):
            return at, str(value)
    return 0, str(column.iloc[0])


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, str) or "_" not in value
