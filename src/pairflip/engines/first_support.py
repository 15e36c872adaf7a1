"""The first support of a chain, from the columns: the first k of a random order that may stand together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import RankTooSmall
from pairflip.moments import Form
from pairflip.philox import philox4x32, start_order
from pairflip.rules import packed

ATTEMPTS = 32
"""Random orders that are tried where rules keep columns apart: the first k that fit may leave no room for another."""
_OWN_WORD = 0x72756C65
Energy = Callable[[NDArray[np.int64]], float]


def first_order(form: Form, k: int, key: NDArray[np.uint32], energy: Energy | None = None) -> NDArray[np.int64]:
    """An order (N,) of all columns whose first k are a support: the first that stay independent, in random order.

    Rules (`Form.rules`) count as well. A column that needs another may come before it, so that those passed over
    are asked again while some enter; where too few do, another order is tried, and in the end one that looks ahead.
    """
    energy = form.energy if energy is None else energy
    rules = getattr(form, "rules", None)
    ruled, most = rules is not None and rules.any, 0
    for attempt in range(ATTEMPTS if ruled else 1):
        own = philox4x32(np.array([attempt, 0, 0, _OWN_WORD]), key)[:2] if attempt else key
        ones, zeros = _pass(energy, k, [], start_order(own, form.n_columns).tolist())
        entered = len(ones)
        while ruled and entered and len(ones) < k:
            before = len(ones)
            ones, zeros = _pass(energy, k, ones, zeros)
            entered = len(ones) - before
        if len(ones) == k:
            return np.array(ones + zeros)
        most = max(most, len(ones))
    found = packed(rules, k, start_order(key, form.n_columns)) if rules is not None and ruled else None
    if found is None or not np.isfinite(energy(found)):
        raise RankTooSmall(k, most, form.what)
    return np.concatenate([found, np.setdiff1d(np.arange(form.n_columns), found)])


def _pass(energy: Energy, k: int, ones: list[int], order: list[int]) -> tuple[list[int], list[int]]:
    """Columns of an order join those that are in, as long as they may and there are fewer than k; the others."""
    ones, zeros = list(ones), list[int]()
    for column in order:
        if len(ones) < k and np.isfinite(energy(np.array([*ones, column]))):
            ones.append(column)
        else:
            zeros.append(column)
    return ones, zeros
