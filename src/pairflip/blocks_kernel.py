"""Which random block a row belongs to, and the rows of a part of a table put in the order of their blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_njit: Any = njit


@_njit(cache=True, nogil=True)
def block_of(key: Any, row: Any, n_blocks: Any) -> Any:
    """The block of a row: a hash (SplitMix64) of its number under a key, as uint64."""
    z = key + (row + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    # The upper half times the number of blocks, of which the upper half is uniform below it.
    return ((z >> np.uint64(32)) * n_blocks) >> np.uint64(32)


@_njit(cache=True, nogil=True)
def arrange(key: Any, first: Any, n_blocks: Any, use: Any, order: Any, start: Any) -> None:
    """Fill in the rows in use in the order of their blocks, and where each block begins (n_blocks + 1,)."""
    m = use.size
    block = np.empty(m, np.int64)
    start[:] = 0
    for i in range(m):
        block[i] = block_of(key, first + np.uint64(i), n_blocks)
        if use[i]:
            start[block[i] + 1] += 1
    for b in range(start.size - 1):
        start[b + 1] += start[b]
    place = start[:-1].copy()
    for i in range(m):
        if use[i]:
            order[place[block[i]]] = i
            place[block[i]] += 1


@_njit(cache=True, nogil=True)
def gather(values: Any, order: Any, shift: Any, root: Any, out: Any) -> Any:
    """Fill in values less a shift in this order, times the root of the weights where there are any; the sum of all.

    The sum is not finite where a value is not.
    """
    total = 0.0
    for i in range(order.size):
        out[i] = np.float64(values[order[i]]) - shift
        total += out[i]
    if root.size:
        for i in range(order.size):
            out[i] *= root[order[i]]
    return total
