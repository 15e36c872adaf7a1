"""Doing tasks: what a worker runs, be it a thread, another process or another machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairflip.crossval.tasks import ALL_ROWS, Task, Work
from pairflip.engines import RankTooSmall, WalkPlan, WalkResult, get_engine
from pairflip.engines.blas import one_blas_thread
from pairflip.gram import Gram
from pairflip.least_squares import Floats
from pairflip.philox import address_keys
from pairflip.settle import settle

SHOWN_CHAINS = 16
"""Chains of a final fit whose course is kept, for the figures."""


@dataclass(frozen=True)
class Outcome:
    """What a task found: supports (chains, k) as column indices of X, and their energies.

    `steps` (chains, 2, steps): energies and acceptances of the first chains of a final fit, else empty.
    """

    task: Task
    supports: NDArray[np.int64]
    energies: Floats
    steps: Floats


_halted: set[str] = set()


class Halted(Exception):
    """The run that a task belongs to was given up."""


def halt(work: Work) -> None:
    """Make the threads of a run that was interrupted stop within milliseconds."""
    _halted.add(work.token)


@one_blas_thread()  # more would round differently
def run_batch(work: Work, tasks: Sequence[Task], engine: str | None = None) -> list[Outcome]:
    """Walk the chains of all tasks; tasks of one fold that follow each other share its Gram matrix."""
    walker = get_engine(engine or work.engine)

    def go_on(_: int) -> None:
        if work.token in _halted:
            raise Halted

    outcomes = []
    fold, gram = ALL_ROWS, work.problem.gram
    for task, chains in zip(tasks, plans(work, tasks), strict=True):
        if task.fold != fold:
            fold, gram = task.fold, gram_of(work, task.fold)
        if task.size == gram.n_columns:
            outcomes.append(outcome(work, task, gram, None))
            continue
        try:
            walked = walker.walk(gram, chains, tick=go_on)
        except RankTooSmall as error:
            raise _too_large(work, task, error) from None
        outcomes.append(outcome(work, task, gram, walked))
    return outcomes


def gram_of(work: Work, fold: int) -> Gram:
    """The problem of one fold."""
    return work.problem.gram if fold == ALL_ROWS else work.problem.held_out(work.folds.left_out[fold])


def plans(work: Work, tasks: Sequence[Task]) -> list[WalkPlan]:
    """The chains of each task, with their addresses (seed, size, fold, chain)."""
    counts = [task.last - task.first for task in tasks]
    sizes = np.repeat([task.size for task in tasks], counts)
    folds = np.repeat([task.fold for task in tasks], counts)  # ALL_ROWS is -1, as in an address
    chains = np.concatenate([np.arange(task.first, task.last) for task in tasks])
    keys = np.split(address_keys(work.seed, sizes, folds, chains), np.cumsum(counts)[:-1])
    betas = {size: work.betas[place] for place, size in enumerate(work.sizes)}
    return [WalkPlan(t.size, betas[t.size], work.flips, own) for t, own in zip(tasks, keys, strict=True)]


def outcome(work: Work, task: Task, gram: Gram, walked: WalkResult | None) -> Outcome:
    """What was found, judged by QR; without a walk, the support of all columns."""
    nothing = np.empty((0, 2, work.flips.size))
    if walked is None:
        everything = np.arange(gram.n_columns)
        energy = gram.energy(everything)
        if not np.isfinite(energy):
            raise _too_large(work, task, RankTooSmall(task.size, int(np.linalg.matrix_rank(gram.columns))))
        chains = task.last - task.first
        supports, energies = np.tile(everything, (chains, 1)), np.full(chains, energy)
        return Outcome(task, work.problem.candidates[supports], energies, nothing)
    supports, energies = settle(gram, walked)
    steps = nothing
    if task.fold == ALL_ROWS:
        shown = max(0, min(task.last, SHOWN_CHAINS) - task.first)
        steps = np.stack([walked.energy[:shown], walked.accepted[:shown] / work.flips], axis=1)
    return Outcome(task, work.problem.candidates[supports], energies, steps)


def _too_large(work: Work, task: Task, error: RankTooSmall) -> ValueError:
    where = "the table" if task.fold == ALL_ROWS else f"fold {task.fold} (without its held-out rows)"
    return ValueError(
        f"size {task.size} was asked for, but {where} has only {error.rank} linearly independent candidate columns; "
        f"expected sizes up to {error.rank}."
    )
