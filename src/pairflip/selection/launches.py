"""What a device is asked, launch by launch, and what its answers mean: whole arrays for each problem and size.

Nothing is done here for a single chain: folds that leave out one row are walked and judged together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines import Tick, WalkPlan, get_engine
from pairflip.engines.base import is_lower
from pairflip.engines.blas import one_blas_thread
from pairflip.engines.together import Forms, ManyWalked, ManyWalks, completed_many
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

_LAUNCH_NS = 2e12  # of one CPU core: some seconds of a device, so that the last chains of a launch matter little
_LEAST_NS = 5e11  # below it a launch does not fill a device for long
_PARTS = 2  # of what is left, at least, where they are not too small: the lanes of a device end together
_FIRST_NS = 3e11  # a device waits for the first; each is twice the last, so that lanes do not pause together later on


def run_seconds(work: Work) -> float:
    """What all chains of a grid take on one core, by the cost model."""
    return 1e-9 * len(work.folds) * sum(work.nanoseconds(size, work.chains) for size in work.sizes)


def launches(jobs: Sequence[Job]) -> Iterator[Batch]:
    """All tasks, in parts that keep a device busy for some seconds."""
    tables = [Tasks.of(tasks).table for _, tasks in jobs]
    costs = [_costs(work, table) for (work, _), table in zip(jobs, tables, strict=True)]
    left = sum(float(upto[-1]) for upto in costs if upto.size)
    batch: Batch = []
    filled, growing = 0.0, _FIRST_NS
    target = _target(left, growing)
    for job, (table, upto) in enumerate(zip(tables, costs, strict=True)):
        first, done = 0, 0.0
        while first < len(table):
            last = min(int(np.searchsorted(upto, done + target - filled)) + 1, len(table))
            batch.append((job, table[first:last]))
            filled += float(upto[last - 1]) - done
            first, done = last, float(upto[last - 1])
            if filled >= target:
                yield batch
                batch, filled, left, growing = [], 0.0, left - filled, 2.0 * growing
                target = _target(left, growing)
    if batch:
        yield batch


def _costs(work: Work, table: Numbers) -> Floats:
    """Nanoseconds (n,) of the first of n tasks, the first two, and so on, by the cost model."""
    each = np.array([work.nanoseconds(size, 1) for size in work.sizes])
    return np.asarray(np.cumsum(each[np.searchsorted(work.sizes, table[:, 0])] * (table[:, 3] - table[:, 2])))


def _target(left: float, growing: float) -> float:
    """Nanoseconds of the next launch, of those that are left."""
    parts = max(1, min(_PARTS, int(left / _LEAST_NS)))
    return min(_LAUNCH_NS, growing, max(left / parts * (1 + 1e-9), _LEAST_NS))  # rounding leaves no task alone


@dataclass(frozen=True, eq=False)
class Planned:
    """Walks of one job: chains of one size in `folds` that leave out single rows, or of one task on its own `gram`."""

    job: int
    walks: ManyWalks
    folds: Numbers
    first: int
    task: Task | None = None
    gram: Gram | None = None

    @property
    def tasks(self) -> list[Task]:
        """What it does, fold by fold."""
        last = self.first + self.walks.chains
        return [Task(self.walks.k, fold, self.first, last) for fold in self.folds.tolist()]


def refusals(engine: Any, work: Work) -> dict[int, str]:
    """Why a device cannot hold chains of a size, for each size of which that is so."""
    gram, reasons = work.problem.gram, dict[int, str]()
    for size in work.sizes:
        no_chains = WalkPlan(size, np.zeros(0), work.flips, np.zeros((0, 2), np.uint32))
        reason = engine.refuses(gram, no_chains) if size < gram.n_columns else None
        if reason is not None:
            reasons[size] = str(reason)
    return reasons


def prepare(engine: Any, jobs: Sequence[Job], batch: Batch) -> tuple[list[Planned], list[tuple[int, list[Task]]]]:
    """What the device is asked, and the tasks of each job that it cannot do.

    Parameters
    ----------
    engine : Engine
        The engine of the device.
    jobs : sequence of (Work, tasks)
        All jobs.
    batch : Batch
        The tasks that are walked together, of sizes that it can hold.
    """
    planned: list[Planned] = []
    on_cpu: dict[int, list[Task]] = defaultdict(list)
    for job, table in batch:
        work = jobs[job][0]
        everything = table[:, 0] >= work.problem.gram.n_columns  # all columns are one support, and no walk
        on_cpu[job] += tasks_of(table[everything])
        mine, alone = _together(job, work, table[~everything])
        planned += mine
        mine, others = _one_by_one(engine, job, work, alone)
        planned += mine
        on_cpu[job] += others
    return planned, [(job, tasks) for job, tasks in on_cpu.items() if tasks]


def tasks_of(table: Numbers) -> list[Task]:
    """Rows (size, fold, first, last) as tasks."""
    return list(Tasks(table))


def _together(job: int, work: Work, table: Numbers) -> tuple[list[Planned], Numbers]:
    """Folds that leave out one row, size by size, and the tasks that are left."""
    problem = work.problem
    if work.sparing or not leaves_one_out(problem) or problem.rows_present < 3:
        return [], table
    row = np.array([rows[0] if rows.size == 1 else -1 for rows in work.folds.left_out], dtype=np.int64)
    of_fold = np.where(table[:, 1] == ALL_ROWS, -1, row[table[:, 1]])
    folds = np.unique(table[of_fold >= 0, 1])
    if folds.size == 0:
        return [], table
    without = OneRowOut.of(problem, row[folds])
    if problem.gram.dense:
        _ = problem.gram.matrix  # formed here, where no device waits for it
    at = np.searchsorted(folds, table[:, 1])
    mine = (of_fold >= 0) & without.trusted[np.minimum(at, folds.size - 1)]
    alone, table, at = table[~mine], table[mine], at[mine]
    beyond = int(table[:, 3].max(initial=0)) + 1
    # As one number each: rows of three take many times as long to sort.
    kind_of = (table[:, 0] * beyond + table[:, 2]) * beyond + table[:, 3]
    _, example, which = np.unique(kind_of, return_index=True, return_inverse=True)
    forms, flips, betas = Forms.without_rows(without), work.flips, _temperatures(work, without)
    keys, begins = _keys(work, table)
    planned, chosen = [], dict[bytes, Numbers]()
    for kind, (size, _, first, last) in enumerate(table[example].tolist()):
        here = np.flatnonzero(which == kind)
        own = chosen.setdefault(at[here].tobytes(), at[here])  # one array for all sizes: what they share is sent once
        own_betas = betas[size] if betas[size].ndim == 1 else betas[size][own]
        own_keys = keys[begins[here][:, None] + np.arange(last - first)]
        walks = ManyWalks(forms, own, size, own_betas, flips, own_keys)
        planned.append(Planned(job, walks, folds[own], first))
    return planned, alone


def _keys(work: Work, table: Numbers) -> tuple[NDArray[np.uint32], Numbers]:
    """The keys of all chains, task after task, by their addresses (seed, size, fold, chain), and where each begins."""
    count = table[:, 3] - table[:, 2]
    begins = np.cumsum(count) - count
    number = np.arange(count.sum()) + np.repeat(table[:, 2] - begins, count)
    sizes, folds = np.repeat(table[:, 0], count), np.repeat(work.first_address + table[:, 1], count)
    return address_keys(work.selection.seed, sizes, folds, number), begins


def _temperatures(work: Work, without: OneRowOut) -> dict[int, Floats]:
    """The betas (steps,) of each size, or (F, steps) where every fold has a unit of its own."""
    if work.schedule.unit != "greedy":
        return temperatures(work, work.problem.gram, work.sizes)
    of_folds = [temperatures(work, without.gram(at), work.sizes) for at in range(without.rows.size)]
    return {size: np.stack([betas[size] for betas in of_folds]) for size in work.sizes}


def _one_by_one(engine: Any, job: int, work: Work, table: Numbers) -> tuple[list[Planned], list[Task]]:
    """Final fits and folds of several rows, each on a problem of its own; and what the device cannot hold."""
    planned, refused = [], []
    ordered = sorted(tasks_of(table), key=lambda task: task.fold)
    for fold, own in groupby(ordered, key=lambda task: task.fold):
        gram, tasks = gram_of(work, fold), list(own)
        forms, only = Forms.of(gram), np.zeros(1, np.int64)
        for task, plan in zip(tasks, plans(work, tasks, gram), strict=True):
            if task.size >= gram.n_columns or engine.refuses(gram, plan) is not None:
                refused.append(task)
                continue
            chains = plan.betas, plan.flips, plan.keys[None]
            walks = ManyWalks(forms, only, task.size, *chains, course=fold == ALL_ROWS)
            planned.append(Planned(job, walks, np.array([fold]), task.first, task, gram))
    return planned, refused


def pack(engine: Any, jobs: Sequence[Job], planned: Sequence[Planned]) -> Any:
    """What an engine that walks all at once can do before it walks.

    Parameters
    ----------
    engine, jobs, planned
        As in `walk`.
    """
    return engine.get_walks_ready([each.walks for each in planned]) if hasattr(engine, "walk_many") else None


def walk(
    engine: Any, jobs: Sequence[Job], planned: Sequence[Planned], packed: Any,
    ready: Callable[[int, ManyWalked], None], tick: Tick, lane: int,
) -> None:  # fmt: skip
    """Have an engine walk, all at once if it can do that, else pair by pair.

    Parameters
    ----------
    engine : Engine
        What walks.
    jobs : sequence of (Work, tasks)
        All jobs.
    planned : sequence of Planned
        What is to be walked.
    packed
        As `pack` gives it.
    ready : callable
        Is given the number of each of them and where its chains went, as soon as that is known.
    tick : callable
        Hears of flips as they are done.
    lane : int
        Which of the engine's lanes is used.
    """
    if hasattr(engine, "walk_many"):
        engine.walk_many(packed, ready, tick=tick, lane=lane)
        return
    together = [each.walks for each in planned]
    results = iter(engine.walk([pair for walks in together for pair in walks.pairs()], tick=tick))
    for at, walks in enumerate(together):
        ready(at, ManyWalked.of([next(results) for _ in range(walks.which.size)]))


def is_complete(walked: ManyWalked) -> bool:
    """Whether the device gave up none of these chains."""
    return not (walked.refreshes < 0).any()


@one_blas_thread()
def judge(work: Work, planned: Planned, walked: ManyWalked) -> list[AnyOutcome]:
    """What was found: the better of each chain's last and best support, judged by QR on the columns.

    Parameters
    ----------
    work : Work
        The job.
    planned : Planned
        What was walked.
    walked : ManyWalked
        Where the chains went.
    """
    if not is_complete(walked):
        walked = completed_many(get_engine("numba"), planned.walks, walked)
    if planned.task is not None and planned.gram is not None:
        return [outcome(work, planned.task, planned.gram, walked.result(0))]
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
