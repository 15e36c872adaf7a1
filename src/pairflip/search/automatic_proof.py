"""Proofs that nobody asked for, where they are cheap: of what a search found, or by every support instead of a search.

Both are decided by cost models alone, never by the clock, so that the same table gives the same result everywhere.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import reaches
from pairflip.moments import Form
from pairflip.problem import SubsetProblem
from pairflip.search.branch_and_bound import branch_seconds, can_branch
from pairflip.search.effort import Effort
from pairflip.search.exhaustive import Question, enumeration_cost
from pairflip.search.prove import Proof, as_proof, search_all

RUNNERS_UP = 5
"""How many of the best supports a proof of a search's answer names."""
_SECONDS = {"quick": 0.05, "normal": 0.5, "thorough": 5.0}
_AT_LEAST_NS = {"quick": 2e5}
_ANYWAY_NS = 5e6  # what solving one fold may take in any case, unless its search is to be quick


def proof_seconds(effort: Effort | str | None) -> float:
    """What proving the answer of a search may take on one core, by the cost models.

    Half a second; a tenth of that where the search is to be quick, ten times as much where it is to be thorough.
    """
    if isinstance(effort, Effort) and effort.clock:
        return min(effort.seconds, _SECONDS["normal"])
    return _SECONDS[effort.name if isinstance(effort, Effort) else effort or "normal"]


def proof_of(problem: SubsetProblem, k: int, support: NDArray[np.int64], seconds: float) -> Proof | None:
    """A proof of the best support, or of a better one, if it takes no more than so many seconds; otherwise None.

    `support`, the best columns known, is named first among equals.
    """
    form, began = problem.form, time.perf_counter()
    n = form.n_columns
    if k >= n or (enumeration_cost(form, k) > seconds and not can_branch(form)):
        return None
    first = np.sort(problem.slots(support))
    # Not on a device: the same table must give the same answer where there is none.
    question = Question(form, k, RUNNERS_UP, most=seconds / branch_seconds(n), engine="numba")
    lowest, method = search_all(question, first, np.zeros(0), seconds)
    if not lowest.complete:
        return None
    equal = np.flatnonzero(np.all(lowest.supports == first, axis=1))
    if equal.size and reaches(lowest.doubled[equal[0]], lowest.doubled[0], form.yy):
        order = np.concatenate([equal, np.setdiff1d(np.arange(len(lowest.supports)), equal)])
        lowest = replace(lowest, supports=lowest.supports[order], doubled=lowest.doubled[order])
    return as_proof(problem, lowest, method, time.perf_counter() - began, RUNNERS_UP)


def solved(problem: SubsetProblem, k: int, effort: Effort) -> Proof | None:
    """A proof by looking at every support, if that takes no longer than proving the answer of a search may."""
    form, seconds = problem.form, proof_seconds(effort)
    first = np.arange(k)
    if k >= form.n_columns or enumeration_cost(form, k) > seconds or not np.isfinite(form.energy(first)):
        return None
    return proof_of(problem, k, problem.columns_of(form.candidates[first]), seconds)


def is_solved(form: Form, k: int, effort: str, nanoseconds: float) -> bool:
    """Whether a fold is solved instead of searched: every support takes no longer than the search, or than 5 ms."""
    return k < form.n_columns and 1e9 * enumeration_cost(form, k) <= max(
        nanoseconds, _AT_LEAST_NS.get(effort, _ANYWAY_NS)
    )
