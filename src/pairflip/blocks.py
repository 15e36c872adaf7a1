"""Tables a few columns at a time, so that nothing needs a second copy of a wide one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats

BYTES = 4 * 2**20
"""Of a block in float64: small enough for the caches, large enough that Python's share does not count."""


def column_blocks(n_rows: int, n_columns: int) -> list[slice]:
    """All columns, as parts of neighbours."""
    step = max(16, BYTES // (8 * max(n_rows, 1)))
    return [slice(first, min(first + step, n_columns)) for first in range(0, n_columns, step)]


def row_blocks(X: NDArray[Any]) -> Iterator[Floats]:
    """The rows of X in order, as contiguous float64 parts."""
    step = max(1, BYTES // (8 * max(X.shape[1], 1)))
    if X.dtype == np.float64 and X.flags.c_contiguous:
        step = max(1, X.shape[0])
    for first in range(0, X.shape[0], step):
        yield np.ascontiguousarray(X[first : first + step], dtype=np.float64)


def row_slices(X: NDArray[Any]) -> list[slice]:
    """All rows, as parts of neighbours."""
    step = max(64, BYTES // (8 * max(X.shape[1], 1)))
    return [slice(first, min(first + step, X.shape[0])) for first in range(0, X.shape[0], step)]


def largest_values(X: NDArray[Any]) -> Floats:
    """The largest absolute value (N,) of each column."""
    largest = np.zeros(X.shape[1])
    if X.flags.c_contiguous:
        for part in row_slices(X):
            np.maximum(largest, X[part].max(axis=0, initial=0.0), out=largest)
            np.maximum(largest, -X[part].min(axis=0, initial=0.0), out=largest)
        return largest
    for part in column_blocks(*X.shape):
        block = X[:, part]
        largest[part] = np.maximum(block.max(axis=0, initial=0.0), -block.min(axis=0, initial=0.0))
    return largest
