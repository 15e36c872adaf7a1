"""Chains that the device gave up, walked by another engine.

Where rounding in the Gram matrix might decide a flip (decision 018), the kernel gives the chain up: an engine that can
look at the columns walks it from its beginning, with the same random numbers. So the results are those of the CPU on
every table; how many chains had to be handed over is a matter of time alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from pairflip.engines.base import Engine, Pair, WalkResult
from pairflip.jobs import local_threads


def completed(rest: Engine, pairs: Sequence[Pair], results: list[WalkResult]) -> list[WalkResult]:
    """The same results, with the chains that were given up walked by `rest`.

    Parameters
    ----------
    rest
        The engine that walks them.
    pairs, results
        What was asked, and what the device answered.
    """
    given_up = [np.flatnonzero(result.refreshes < 0) for result in results]
    which = [at for at, chains in enumerate(given_up) if chains.size]
    if not which:
        return results
    again = [(pairs[at][0], replace(pairs[at][1], keys=pairs[at][1].keys[given_up[at]])) for at in which]
    found = list(results)
    for at, walked in zip(which, rest.walk(again, n_jobs=local_threads(-1)), strict=True):
        found[at] = _merged(results[at], walked, given_up[at])
    return found


def _merged(result: WalkResult, walked: WalkResult, chains: np.ndarray) -> WalkResult:
    """The result with some chains replaced."""
    changed = {}
    for field in fields(WalkResult):
        old, new = getattr(result, field.name), getattr(walked, field.name)
        if old is not None and new is not None:
            changed[field.name] = old.copy()
            changed[field.name][chains] = new
    return replace(result, **changed)
