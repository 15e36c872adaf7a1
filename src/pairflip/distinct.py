"""Equal supports among very many, found by sorting a few whole numbers for each instead of its columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
_BITS = 62
"""Of a word, which has a sign."""


class Distinct(NamedTuple):
    """D different ones of n supports.

    Attributes
    ----------
    supports : (D, k)
        They, in ascending order, column by column.
    first : (D,)
        Where each stands for the first time.
    which : (n,)
        Which of them each of the n is.
    counts : (D,)
        How often each occurs.
    """

    supports: Numbers
    first: Numbers
    which: Numbers
    counts: Numbers


def distinct_supports(supports: Numbers) -> Distinct:
    """The different ones of supports (n, k), numbers from -1 on: `numpy.unique` along the first axis, but faster.

    As many columns as fit are the digits of one whole number, so that few of these tell a support.
    """
    words = _words(supports)
    order = np.lexsort(words[::-1]) if len(words) else np.arange(len(supports))
    ordered = words[:, order]
    new = np.ones(order.size, dtype=bool)
    np.any(ordered[:, 1:] != ordered[:, :-1], axis=0, out=new[1:])
    number = np.cumsum(new) - 1
    which = np.empty(order.size, dtype=np.int64)
    which[order] = number
    first = order[new]
    return Distinct(supports[first], first, which, np.bincount(number, minlength=first.size))


def _words(supports: Numbers) -> Numbers:
    r"""Whole numbers (W, n): d columns of a support are the digits of :math:`\sum_{m=1}^d (j_m + 1) b^{d - m}`."""
    base = int(supports.max(initial=0)) + 2
    digits = max(1, int(_BITS / np.log2(base)))
    parts = [supports[:, first : first + digits] for first in range(0, supports.shape[1], digits)]
    words = [(part + 1) @ base ** np.arange(part.shape[1] - 1, -1, -1) for part in parts]
    return np.array(words, dtype=np.int64).reshape(len(parts), len(supports))
