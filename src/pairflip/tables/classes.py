"""A target of classes: words, numbers, or true and false, as labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.least_squares import Floats
from pairflip.tables.errors import TableError
from pairflip.tables.kinds import as_numbers
from pairflip.text import label_text, listed, quoted

if TYPE_CHECKING:
    import pandas as pd


def column_labels(column: pd.Series[Any]) -> list[str | None]:
    """The label of each row as text, None where there is none: numbers in their shortest form, words without spaces."""
    numbers = None if column.dtype.kind == "b" else as_numbers(column)
    if numbers is not None and column.dtype != object:
        return [label_text(value) if np.isfinite(value) else None for value in numbers.tolist()]
    gone = column.isna().tolist()
    return [None if lost else label_text(value).strip() for value, lost in zip(column.tolist(), gone, strict=True)]


def sorted_labels(labels: set[str]) -> list[str]:
    """Labels sorted: as numbers if all of them are numbers, else as words."""
    try:
        return sorted(labels, key=float)
    except ValueError:
        return sorted(labels)


def as_classes(labels: list[str | None], target: str) -> tuple[Floats, list[str]]:
    """Numbers of the classes (M,), from 0, NaN where a label is missing; and the labels, two or more."""
    found = sorted_labels({label for label in labels if label is not None})
    if len(found) < 2:
        what = f"one class only ({listed(found)})" if found else "no values"
        raise TableError(f"The target {quoted(target)} has {what}; expected classes: choose another --target.")
    return np.array([np.nan if label is None else float(found.index(label)) for label in labels]), found
