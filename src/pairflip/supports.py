"""Arrays of many supports: equal ones among them, and rows of different lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
ABSENT = -1
"""Fills up rows of columns that are shorter than others; it comes first, so that rows stay sorted."""
_BITS = 62  # of a word, which has a sign


class Distinct(NamedTuple):
    """D different ones of n supports."""

    supports: Ints  # (D, k), in ascending order, column by column
    first: Ints  # (D,): where each stands for the first time
    which: Ints  # (n,): which of them each of the n is
    counts: Ints  # (D,): how often each occurs


def distinct_supports(supports: Ints) -> Distinct:
    """The different ones of supports (n, k), numbers from -1 on: `numpy.unique` along the first axis, but faster.

    As many columns as fit are the digits of one whole number, so that few numbers tell a support.
    """
    base = int(supports.max(initial=0)) + 2
    digits = max(1, int(_BITS / np.log2(base)))
    parts = [supports[:, first : first + digits] for first in range(0, supports.shape[1], digits)]
    numbers = [(part + 1) @ base ** np.arange(part.shape[1] - 1, -1, -1) for part in parts]
    words = np.array(numbers, dtype=np.int64).reshape(len(parts), len(supports))
    order = np.lexsort(words[::-1]) if len(words) else np.arange(len(supports))
    ordered = words[:, order]
    new = np.ones(order.size, dtype=bool)
    np.any(ordered[:, 1:] != ordered[:, :-1], axis=0, out=new[1:])
    number = np.cumsum(new) - 1
    which = np.empty(order.size, dtype=np.int64)
    which[order] = number
    first = order[new]
    return Distinct(supports[first], first, which, np.bincount(number, minlength=first.size))


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
