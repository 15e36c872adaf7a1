"""Ours, at each effort: the search of `select_size`, timed alone, then its curve."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache, partial
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pairflip.comparison.registry import Peer
from pairflip.problem import SubsetProblem
from pairflip.selection import Selection, SizeCurve, run_shard, select_size

ALONE: dict[str, Any] = {"engine": "numba", "n_jobs": 1, "progress": False}


def search(
    effort: str, problem: SubsetProblem, selection: Selection, groups: ArrayLike | None
) -> tuple[SizeCurve, float]:
    """What `select_size` returns, and the CPU seconds in which its folds and final fits were searched.

    The search is done into a journal first, so that scoring and facts about the table are not in the time.
    """
    compile_first(effort)
    chosen = replace(selection, effort=effort)  # type: ignore[arg-type]
    with TemporaryDirectory() as folder:
        began = time.process_time()
        run_shard(problem, chosen, journal=folder, shard=(1, 1), groups=groups, **ALONE)
        seconds = time.process_time() - began
        return select_size(problem, chosen, journal=folder, groups=groups, **ALONE), seconds


@cache
def compile_first(effort: str) -> None:
    """Have the kernels compiled, or loaded, before anything is timed."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(16, 8)), rng.normal(size=16)
    for columns in (X, X[:, :1] + 1e-4 * X):  # the second has kernels for nearly dependent columns at work
        select_size(SubsetProblem(columns, y), [1, 2], 4, effort=effort, prove=False, **ALONE)


def _peer(effort: str, about: str) -> Peer:
    return Peer(effort, f"pairflip, {effort}", about, search=partial(search, effort))


QUICK = _peer("quick", "A path over all sizes with a descent at each.")
NORMAL = _peer("normal", "The path, descents and kicks.")
THOROUGH = _peer("thorough", "More chains, more kicks.")
