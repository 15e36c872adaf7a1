"""What a device is asked, batch by batch, and what its answers mean: folds of one row as whole arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines import WalkPlan
from pairflip.engines.base import is_lower
from pairflip.engines.blas import one_blas_thread
from pairflip.engines.together import Forms, ManyWalked, ManyWalks
from pairflip.gram import Gram
from pairflip.least_squares import Floats
from pairflip.losses.held_out import HeldOutErrors
from pairflip.moments import OneRowOut, leaves_one_out
from pairflip.philox import address_keys
from pairflip.selection.many_folds import AnyOutcome, FoldsOutcome
from pairflip.selection.tasks import ALL_ROWS, Job, Task, Tasks, Work
from pairflip.selection.walks import gram_of, outcome, plans, temperatures

Numbers = NDArray[np.int64]
Batch = list[tuple[int, Numbers]]
"""Of some jobs, by their numbers, tasks as rows (size, fold, first, last)."""

_FIRST_NS = 3e11  # of one CPU core: a device waits for the first batch to be prepared
_BATCH_NS = 3e12  # some seconds of a device, so that its last chains, which do not fill it, matter little


def run_seconds(work: Work) -> float:
    """What all chains of a grid take on one core, by the cost model."""
    return 1e-9 * len(work.folds) * sum(work.nanoseconds(size, work.chains) for size in work.sizes)


def launches(jobs: Sequence[Job]) -> Iterator[Batch]:
    """All tasks, in batches that keep a device busy for some seconds."""
    batch: Batch = []
    filled, target = 0.0, _FIRST_NS
    for job, (work, tasks) in enumerate(jobs):
        table = Tasks.of(tasks).table
        each = np.array([work.nanoseconds(size, 1) for size in work.sizes])
        upto = np.cumsum(each[np.searchsorted(work.sizes, table[:, 0])] * (table[:, 3] - table[:, 2]))
        first, done = 0, 0.0
        while first < len(table):
            last = min(int(np.searchsorted(upto, done + target - filled)) + 1, len(table))
            batch.append((job, table[first:last]))
            filled += float(upto[last - 1]) - done
            first, done = last, float(upto[last - 1])
            if filled >= target:
                yield batch
                batch, filled, target = [], 0.0, _BATCH_NS
    if batch:
        yield batch


@dataclass(frozen=True, eq=False)
class Planned:
    """Walks of one job: chains of one size in `folds` that leave out single rows, or of one task on its own `gram`."""

    job: int
    walks: ManyWalks
    folds: Numbers
    first: int
    gram: Gram | None = None

    @property
    def tasks(self) -> list[Task]:
        """What it does, fold by fold."""
        last = self.first + self.walks.chains
        return [Task(self.walks.k, fold, self.first, last) for fold in self.folds.tolist()]


def refusals(engine: Any, work: Work) -> dict[int, str]:
    """Why a device cannot hold chains of a size, for each size of which that is so."""
    gram = work.problem.gram
    no_chains = np.zeros(0), work.flips, np.zeros((0, 2), np.uint32)
    reasons = {size: engine.refuses(gram, WalkPlan(size, *no_chains)) for size in work.sizes if size < gram.n_columns}
    return {size: str(reason) for size, reason in reasons.items() if reason is not None}


def prepare(
    jobs: Sequence[Job], refused: Sequence[dict[int, str]], batch: Batch
) -> tuple[list[Planned], list[tuple[int, list[Task]]]]:
    """What the device is asked, and the tasks that it cannot do: refused sizes, and those of all columns."""
    planned, on_cpu = [], []
    for job, table in batch:
        work = jobs[job][0]
        here = np.isin(table[:, 0], list(refused[job])) | (table[:, 0] >= work.problem.gram.n_columns)
        together, alone = _together(job, work, table[~here])
        one_by_one, others = _one_by_one(job, work, alone)
        planned += together + one_by_one
        on_cpu.append((job, list(Tasks(table[here])) + others))
    return planned, on_cpu


def _together(job: int, work: Work, table: Numbers) -> tuple[list[Planned], Numbers]:
    """Folds that leave out one row, size by size, and the tasks that are left."""
    problem = work.problem
    row = np.array([rows[0] if rows.size == 1 else -1 for rows in work.folds.left_out], dtype=np.int64)
    single = (table[:, 1] != ALL_ROWS) & (row[table[:, 1]] >= 0)
    if work.sparing or not leaves_one_out(problem) or problem.rows_present < 3 or not single.any():
        return [], table
    folds = np.unique(table[single, 1])
    without = OneRowOut.of(problem, row[folds])
    if problem.gram.dense:
        _ = problem.gram.matrix  # formed here, where no device waits for it
    at = np.minimum(np.searchsorted(folds, table[:, 1]), folds.size - 1)
    mine = single & without.trusted[at]
    alone, table, at = table[~mine], table[mine], at[mine]
    forms, betas, planned = Forms.without_rows(without), _temperatures(work, without), []
    for size, first, last in np.unique(table[:, [0, 2, 3]], axis=0).tolist():
        own = at[(table[:, [0, 2, 3]] == (size, first, last)).all(axis=1)]
        chains = np.broadcast_arrays(size, work.first_address + folds[own][:, None], np.arange(first, last))
        keys = address_keys(work.selection.seed, *(each.ravel() for each in chains)).reshape(own.size, -1, 2)
        own_betas = betas[size] if betas[size].ndim == 1 else betas[size][own]
        planned.append(Planned(job, ManyWalks(forms, own, size, own_betas, work.flips, keys), folds[own], first))
    return planned, alone


def _temperatures(work: Work, without: OneRowOut) -> dict[int, Floats]:
    """The betas (steps,) of each size, or (F, steps) where every fold has a unit of its own."""
    if work.schedule.unit != "greedy":
        return temperatures(work, work.problem.gram, work.sizes)
    of_folds = [temperatures(work, without.gram(at), work.sizes) for at in range(without.rows.size)]
    return {size: np.stack([betas[size] for betas in of_folds]) for size in work.sizes}


def _one_by_one(job: int, work: Work, table: Numbers) -> tuple[list[Planned], list[Task]]:
    """Final fits and folds of several rows, each on a problem of its own; and tasks of all columns of a fold."""
    planned, everything = [], []
    for fold, own in groupby(sorted(Tasks(table), key=lambda task: task.fold), key=lambda task: task.fold):
        gram, tasks = gram_of(work, fold), list(own)
        forms, only = Forms.of(gram), np.zeros(1, np.int64)
        for task, plan in zip(tasks, plans(work, tasks, gram), strict=True):
            if task.size >= gram.n_columns:
                everything.append(task)
                continue
            chains = plan.betas, plan.flips, plan.keys[None]
            walks = ManyWalks(forms, only, task.size, *chains, course=fold == ALL_ROWS)
            planned.append(Planned(job, walks, np.array([fold]), task.first, gram))
    return planned, everything


@one_blas_thread()
def judge(work: Work, planned: Planned, walked: ManyWalked) -> list[AnyOutcome]:
    """What was found: the better of each chain's last and best support, judged by QR on the columns."""
    if planned.gram is not None:
        return [outcome(work, planned.tasks[0], planned.gram, walked.result(0))]
    (n_folds, chains, k), problem = walked.support.shape, work.problem
    errors = HeldOutErrors(problem, work.folds)
    fold = np.repeat(planned.folds, chains)
    yy = np.repeat(planned.walks.forms.yy[planned.walks.which], chains)
    last, best = (problem.candidates[each.reshape(-1, k)] for each in (walked.support, walked.best_support))
    energies = errors.energies(np.tile(fold, 2), np.vstack([last, best])).reshape(2, -1)
    better = is_lower(energies[1], energies[0], yy)
    supports = np.where(better[:, None], best, last).reshape(n_folds, chains, k)
    lower = np.where(better, energies[1], energies[0]).reshape(n_folds, chains)
    return [FoldsOutcome(k, planned.folds, planned.first, planned.first + chains, supports, lower)]
