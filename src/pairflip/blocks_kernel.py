"""Which random block a row belongs to, and the rows of a part of a table put in the order of their blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairflip.compiled import entry


@entry
def block_of(key: Any, row: Any, n_blocks: Any) -> Any:
    """The block of a row: a hash (SplitMix64) of its number under a key, as uint64."""
    z = key + (row + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    # The upper half times the number of blocks, of which the upper half is uniform below it.
    return ((z >> np.uint64(32)) * n_blocks) >> np.uint64(32)


@entry
def arrange(key: Any, first: Any, n_blocks: Any, use: Any, place: Any, start: Any) -> None:
    """Fill in where rows go when they are put in the order of their blocks, and where blocks begin (n_blocks + 1,).

    Rows that are not used have the place -1.
    """
    m = use.size
    start[:] = 0
    for i in range(m):
        place[i] = block_of(key, first + np.uint64(i), n_blocks)
        if use[i]:
            start[place[i] + 1] += 1
    for b in range(start.size - 1):
        start[b + 1] += start[b]
    following = start[:-1].copy()
    for i in range(m):
        b = place[i]
        place[i] = -1
        if use[i]:
            place[i] = following[b]
            following[b] += 1


@entry
def scatter(values: Any, place: Any, shift: Any, unit: Any, root: Any, out: Any) -> Any:
    """Put values where they go, less a shift, over a unit, times the root of their weights if they have some; the sum.

    The sum is not finite where a value is not.
    """
    total, factor = 0.0, 1.0 / unit
    for i in range(place.size):
        at = place[i]
        if at >= 0:
            value = (np.float64(values[i]) - shift) * factor
            total += value
            out[at] = value if root.size == 0 else value * root[i]
    return total
