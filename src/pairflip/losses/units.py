"""What is chosen as a whole: groups of columns, and every column of no group by itself.

A unit is known by the first of its columns. Supports inside searches, journals and half-samples are sorted first
columns, k of them; `columns_of` leads from there to all columns, and is the only place that does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
ABSENT = -1
"""Fills up rows of columns that are shorter than others; it comes first, so that rows stay sorted."""


@dataclass(frozen=True, eq=False)
class Units:
    """Groups of the columns of a table that vary.

    Attributes
    ----------
    groups : dict of columns (n,) by name
        Disjoint groups, as the user named them; those of which no column varies are not among them.
    first : (N,)
        The first column of the unit that each column belongs to.
    """

    groups: Mapping[str, Ints]
    first: Ints

    @classmethod
    def of(cls, groups: Mapping[str, Ints], n_columns: int, varying: Ints | None = None) -> Units:
        """Units of a table with so many columns, of which only some may vary."""
        first, found = np.arange(n_columns), dict[str, Ints]()
        for name, columns in groups.items():
            own = np.sort(columns) if varying is None else np.intersect1d(columns, varying)
            if own.size:
                found[name], first[own] = own, own[0]
        return cls(found, first)

    def columns_of(self, units: Sequence[int] | Ints) -> Ints:
        """All columns of some units, sorted."""
        return np.flatnonzero(np.isin(self.first, np.asarray(units, dtype=np.int64)))

    def units_of(self, columns: Sequence[int] | Ints) -> Ints:
        """The units that some columns belong to, sorted."""
        return np.unique(self.first[np.asarray(columns, dtype=np.int64)])

    def name(self, unit: int, names: Sequence[str]) -> str:
        """What a unit is called: its group, or its one column, of these `names`."""
        return next((group for group, columns in self.groups.items() if columns[0] == unit), names[unit])

    def names_of(self, columns: Sequence[int] | Ints, names: Sequence[str]) -> list[str]:
        """What the units of some columns are called."""
        return [self.name(unit, names) for unit in self.units_of(columns).tolist()]

    def labels(self, names: Sequence[str]) -> list[str]:
        """The names of all columns, with that of a group at its first column."""
        first = {int(columns[0]): group for group, columns in self.groups.items()}
        return [first.get(j, name) for j, name in enumerate(names)]

    def once(self, counts: Ints) -> Ints:
        """Counts (N,) of columns as those of units: zero but for the first column of each."""
        return np.where(self.first == np.arange(counts.size), counts, 0)


def filled_up(rows: Sequence[Ints]) -> Ints:
    """Sorted columns of different numbers as one array, `ABSENT` in front of the shorter ones."""
    width = max((row.size for row in rows), default=0)
    table = np.full((len(rows), width), ABSENT, dtype=np.int64)
    for at, row in enumerate(rows):
        table[at, width - row.size :] = row
    return table


def unchanged_in(fold_supports: Ints, support: Ints) -> float:
    """Fraction of the folds (F, n) that selected exactly `support`; each is sorted, and may be filled up."""
    width = fold_supports.shape[1]
    if width < support.size:
        return 0.0
    return float(np.mean(np.all(fold_supports == np.append([ABSENT] * (width - support.size), support), axis=1)))
