"""Tables too wide for a matrix of all columns: the device holds a copy, and multiplies it by a few vectors.

A descent on such a table asks for rows of G, one pass over the table each, which is most of its time on a CPU. What is
decided with these rows is decided with the same bounds on rounding as before, so the results are the same.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.blocks import column_blocks
from pairflip.engines.cuda.device import failures, free_bytes
from pairflip.least_squares import Floats
from pairflip.losses.wide import WideGram

WORTH_ENTRIES = 50_000_000
"""From this many entries on, sending a table to a device takes less time than it saves."""


class DeviceTable:
    """A copy of a table on the device, in double precision, that multiplies vectors."""

    def __init__(self, table: NDArray[Any]) -> None:
        import cupy

        self._copy = cupy.empty(table.shape)
        for part in column_blocks(*table.shape):
            self._copy[:, part] = cupy.asarray(np.ascontiguousarray(table[:, part]))
        self._one_at_a_time = Lock()

    def __call__(self, vectors: Floats) -> Floats:
        """(p, M) times the table, on the host."""
        import cupy

        with self._one_at_a_time:
            return np.asarray((cupy.asarray(vectors) @ self._copy).get())


def lend_rows(gram: Any) -> bool:
    """Have the rows of a wide problem's matrix computed on the device; False where that cannot be done.

    Problems with a matrix of their own need no help. Where the device fails, the problem says so.
    """
    if not isinstance(gram, WideGram):
        return False
    gram.multiplier_failed = None
    try:
        if gram.multiplier is None and 8 * gram.table.size <= free_bytes() // 2:
            gram.multiplier = DeviceTable(gram.table)
    except failures() as error:
        gram.multiplier_failed = error
    return gram.multiplier is not None
