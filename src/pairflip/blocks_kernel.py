"""Rows of a part of a table, put in the order of their random blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairflip.compiled import entry


@entry
def scatter(values: Any, place: Any, shift: Any, factor: Any, root: Any, out: Any) -> Any:
    """Put values where they go (nowhere if below 0), less a shift, times a factor and the root of their weights.

    Returns their sum, which is not finite where a value is not.
    """
    total = 0.0
    for i in range(place.size):
        if place[i] >= 0:
            value = (np.float64(values[i]) - shift) * factor
            total += value
            out[place[i]] = value * root[i]
    return total
