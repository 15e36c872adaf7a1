"""Arrays of many supports: equal ones among them, and rows of different lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
ABSENT = -1
"""Fills up rows of columns that are shorter than others; it comes first, so that rows stay sorted."""


class Distinct(NamedTuple):
    """D different ones of n supports."""

    supports: Ints  # (D, k), in ascending order, column by column
    first: Ints  # (D,): where each stands for the first time
    which: Ints  # (n,): which of them each of the n is
    counts: Ints  # (D,): how often each occurs


def distinct_supports(supports: Ints) -> Distinct:
    """The different ones of supports (n, k): `numpy.unique` along the first axis, several times faster."""
    order = np.lexsort(supports.T[::-1]) if supports.shape[1] else np.arange(len(supports))
    ordered = supports[order]
    new = np.ones(order.size, dtype=bool)
    np.any(ordered[1:] != ordered[:-1], axis=1, out=new[1:])
    which = np.empty(order.size, dtype=np.int64)
    which[order] = np.cumsum(new) - 1
    first = order[new]
    return Distinct(supports[first], first, which, np.bincount(which, minlength=first.size))


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
