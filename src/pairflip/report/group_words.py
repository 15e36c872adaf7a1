"""What sizes count: columns, or groups of columns where these are chosen as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pairflip.text import clean, column_labels, plural, shorten

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve

_SHOWN = 6  # groups that a line of a table names


def what_is_counted(curve: SizeCurve) -> str:
    """``column`` or ``group``."""
    return "column" if curve.groups is None else "group"


def counted(curve: SizeCurve, size: int) -> str:
    """``3 columns``, or ``3 groups``."""
    return plural(size, what_is_counted(curve))


def kept(curve: SizeCurve, size: int) -> str:
    """``3 columns``, or ``3 groups (7 columns)`` where a group of several columns is among them."""
    columns = plural(curve.supports[curve.at(size)].size, "column")
    return columns if columns == plural(size, "column") else f"{counted(curve, size)} ({columns})"


def units_of(curve: SizeCurve, size: int) -> list[int]:
    """What was chosen at a size: columns, or groups, each by its first column."""
    support = curve.supports[curve.at(size)]
    return [int(j) for j in (support if curve.units is None else curve.units.units_of(support))]


def members(curve: SizeCurve, unit: int) -> list[int]:
    """Columns of a group, by its first column; none where that is a column by itself."""
    own = [] if curve.units is None else [c for c in curve.units.groups.values() if c[0] == unit]
    return own[0].tolist() if own else []


def unit_labels(curve: SizeCurve, units: Sequence[int], length: int | None = None) -> list[str]:
    """Labels of columns, or of groups by their first columns, that tell them apart."""
    labels = column_labels(curve.names, units, length)
    for at, unit in enumerate(units):
        if members(curve, unit):
            assert curve.units is not None
            name = clean(curve.units.name(unit, curve.names))
            labels[at] = shorten(name, length) if length else name
    return labels


def group_of(curve: SizeCurve, column: int) -> str:
    """The group of a column, as a cell of a table; empty for a column of no group."""
    if curve.units is None or column < 0:
        return ""
    unit = int(curve.units.first[column])
    return clean(curve.units.name(unit, curve.names)) if members(curve, unit) else ""


def how_many(curve: SizeCurve) -> int:
    """How many columns, or groups, the table has, forced columns among them."""
    return len(curve.names) if curve.units is None else int(np.unique(curve.units.first).size)


def groups_shown(curve: SizeCurve, size: int) -> str:
    """Groups of a size with their numbers of columns, the first few, for a line of a table."""
    units = units_of(curve, size)
    own = [
        label + (f" ({plural(len(members(curve, unit)), 'column')})" if members(curve, unit) else "")
        for label, unit in zip(unit_labels(curve, units), units, strict=True)
    ]
    more = f" and {len(own) - _SHOWN} more" if len(own) > _SHOWN else ""
    return ", ".join(own[:_SHOWN]) + more
