"""Tasks on a device: it walks the chains of many folds, sizes and problems, and threads judge while it walks on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from pairflip.engines import Engine, Tick, WalkPlan, WalkResult, failure_note, failures_of, get_engine
from pairflip.engines.base import is_lower
from pairflip.engines.blas import one_blas_thread
from pairflip.jobs import threads_beside_a_device
from pairflip.moments import Form
from pairflip.selection.tasks import ALL_ROWS, Job, Task, Tasks, Work, batches
from pairflip.selection.walks import Halted, Outcome, keys_of, no_steps, outcome, plans, run_batch, training_form

_CPU_NS = 2e8  # what a thread takes at a time of what the device cannot hold
_FIRST_NS = 3e11  # of one CPU core: a device waits for the first batch to be prepared
_BATCH_NS = 3e12  # some seconds of a device, so that its last chains, which do not fill it, matter little


class Cell(NamedTuple):
    """A task of one job, the problem of its fold, and its chains."""

    job: int
    task: Task
    form: Form
    plan: WalkPlan


def run_seconds(work: Work) -> float:
    """What all chains of a grid take on one core, by the cost model."""
    return 1e-9 * len(work.folds) * sum(work.nanoseconds(size, work.chains) for size in work.sizes)


def launches(jobs: Sequence[Job]) -> Iterator[list[tuple[int, Tasks]]]:
    """All tasks, with the number of their job, in batches that keep a device busy for some seconds."""
    batch: list[tuple[int, Tasks]] = []
    filled, target = 0.0, _FIRST_NS
    for job, (work, tasks) in enumerate(jobs):
        table = Tasks.of(tasks).table
        each = np.array([work.nanoseconds(size, 1) for size in work.sizes])
        upto = np.cumsum(each[np.searchsorted(work.sizes, table[:, 0])] * (table[:, 3] - table[:, 2]))
        first, done = 0, 0.0
        while first < len(table):
            last = min(int(np.searchsorted(upto, done + target - filled)) + 1, len(table))
            batch.append((job, Tasks(table[first:last])))
            filled += float(upto[last - 1]) - done
            first, done = last, float(upto[last - 1])
            if filled >= target:
                yield batch
                batch, filled, target = [], 0.0, _BATCH_NS
    if batch:
        yield batch


def refusals(engine: Any, work: Work) -> dict[int, str]:
    """Why a device cannot hold chains of a size, for each size of which that is so."""
    form = work.problem.form
    no_chains = np.zeros(0), work.flips, np.zeros((0, 2), np.uint32)
    reasons = {size: engine.refuses(form, WalkPlan(size, *no_chains)) for size in work.sizes if size < form.n_columns}
    return {size: str(reason) for size, reason in reasons.items() if reason is not None}


def prepare(
    jobs: Sequence[Job], refused: Sequence[dict[int, str]], batch: Sequence[tuple[int, Tasks]]
) -> tuple[list[Cell], dict[int, list[Task]]]:
    """What the device is asked, and tasks of each job that it cannot do: refused sizes, and those of all columns."""
    cells, on_cpu = [], defaultdict[int, list[Task]](list)
    for job, tasks in batch:
        work, every, first = jobs[job][0], list(tasks), 0
        keys = keys_of(work, every)
        for fold, own in groupby(every, key=lambda task: task.fold):
            form, there = training_form(work, fold), list(own)
            last = first + len(there)
            for task, plan in zip(there, plans(work, there, form, keys[first:last]), strict=True):
                if task.size in refused[job] or task.size >= form.n_columns:
                    on_cpu[job].append(task)
                else:
                    cells.append(Cell(job, task, form, plan))
            first = last
    if cells and cells[0].form.dense:
        _ = jobs[cells[0].job][0].problem.form.matrix  # formed here, where no device waits for it
    return cells, on_cpu


@one_blas_thread()
def judge(work: Work, cells: Sequence[Cell], walked: Sequence[WalkResult]) -> list[Outcome]:
    """What was found in cells of one size: the better of each chain's last and best support, by QR on the columns."""
    if cells[0].task.fold == ALL_ROWS:
        return [outcome(work, cell.task, cell.form, each) for cell, each in zip(cells, walked, strict=True)]
    chains = [cell.plan.chains for cell in cells]
    fold = np.repeat([cell.task.fold for cell in cells], chains)
    yy = np.repeat([cell.form.yy for cell in cells], chains)
    last, best = (
        np.vstack([cell.form.candidates[getattr(each, name)] for cell, each in zip(cells, walked, strict=True)])
        for name in ("support", "best_support")
    )
    errors: Any = work.errors  # of squared error: a device walks on nothing else
    energies = errors.energies(np.tile(fold, 2), np.vstack([last, best]))
    at_end, lowest = energies.reshape(2, -1)
    better = is_lower(lowest, at_end, yy)
    supports, found = np.where(better[:, None], best, last), np.where(better, lowest, at_end)
    ends, nothing = np.cumsum(chains).tolist(), no_steps(work)
    parts = [slice(end - n, end) for n, end in zip(chains, ends, strict=True)]
    return [Outcome(c.task, supports[own], found[own], nothing) for c, own in zip(cells, parts, strict=True)]


def find_device(engine: str | Engine, works: Sequence[Work]) -> Engine | None:
    """The engine that takes whole batches, if that was asked for ("auto": if it is worth it), otherwise None."""
    if not works[0].selection.anneals or (engine == "auto" and not _worth_waking(works)):
        return None
    device = get_engine("cuda" if engine == "auto" else engine)
    return device if device.prefers_many else None


def _worth_waking(works: Sequence[Work]) -> bool:
    """Whether there is so much to do that a device, if there is one, is faster."""
    from pairflip.engines.cuda import WORTH_CHAINS, WORTH_SECONDS, why_unavailable

    chains = sum(work.chains * len(work.folds) * len(work.sizes) for work in works)
    return chains >= WORTH_CHAINS and sum(map(run_seconds, works)) >= WORTH_SECONDS and why_unavailable() is None


class Device:
    """A device that walks the chains of many folds, sizes and problems in shared launches.

    Where it fails in the middle (out of memory, or gone), the CPU does the rest, and the notes of the result say so.
    """

    n_jobs: int | None = 0

    def __init__(self, engine: Any, judges: int | None) -> None:
        self.name: str = engine.name
        self._engine, self._judges = engine, judges
        self._refused: dict[int, dict[int, str]] = {}
        self._rescued: dict[int, str] = {}
        self._lost: str | None = None

    def notes(self, work: Work) -> list[str]:
        """Sizes that the device cannot hold, and what it failed to do."""
        reasons = defaultdict[str, list[int]](list)
        for size, reason in self._refusals(work).items():
            reasons[reason.rstrip(".")].append(size)
        held = [f"walked on the CPU: sizes {', '.join(map(str, sizes))} ({why})" for why, sizes in reasons.items()]
        return [*held, *filter(None, [self._rescued.get(id(work))])]

    def _refusals(self, work: Work) -> dict[int, str]:
        """Why the device does not hold some sizes, asked once: it may be gone later."""
        if id(work) not in self._refused:
            self._refused[id(work)] = refusals(self._engine, work)
        return self._refused[id(work)]

    def outcomes(self, jobs: Sequence[Job], tick: Tick | None) -> Iterator[tuple[int, Sequence[Outcome]]]:
        """(job, outcomes) of all tasks: one thread prepares a batch, one has the device walk another, others judge."""
        refused = [self._refusals(work) for work, _ in jobs]
        finished: SimpleQueue[Future[Any]] = SimpleQueue()
        asked: dict[Future[Any], int] = {}
        few = threads_beside_a_device(self._judges, len(jobs))

        def ask(job: int, how: Callable[..., Any], *what: Any) -> None:
            future = judges.submit(how, jobs[job][0], *what)
            asked[future] = job
            future.add_done_callback(finished.put)

        def judged(until_all: bool = False) -> Iterator[tuple[int, Any]]:
            while asked and (until_all or not finished.empty()):
                future = finished.get()
                yield asked.pop(future), future.result()

        def go_on(flips: int) -> None:
            if jobs[0][0].stop.wanted:
                raise Halted
            if tick is not None:
                tick(flips)

        with (
            one_blas_thread(),
            ThreadPoolExecutor(1, thread_name_prefix="pairflip-ahead") as ahead,
            ThreadPoolExecutor(1, thread_name_prefix="pairflip-device") as walker,
            ThreadPoolExecutor(few, thread_name_prefix="pairflip-judge") as judges,
        ):
            try:
                prepared = (ahead.submit(prepare, jobs, refused, batch) for batch in launches(jobs))
                following, walking = next(prepared, None), None
                while following is not None or walking is not None:
                    before, walking = walking, None
                    if following is not None:
                        (cells, on_cpu), following = following.result(), next(prepared, None)
                        walking = cells, on_cpu, walker.submit(self._walk, cells, go_on)
                    if before is not None:
                        self._answered(jobs, *before, ask)
                    yield from judged()
                yield from judged(until_all=True)
            except BaseException:
                for work, _ in jobs:
                    work.stop.wanted = True
                for pool in (ahead, walker, judges):
                    pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _walk(self, cells: Sequence[Cell], tick: Tick) -> list[WalkResult]:
        """Where the chains of each cell went; nothing where the device fails."""
        if self._lost is None and cells:
            try:
                found: list[WalkResult] = self._engine.walk([(cell.form, cell.plan) for cell in cells], tick=tick)
                return found
            except failures_of(self._engine) as error:
                self._lost = failure_note(error)
        return []

    def _answered(
        self, jobs: Sequence[Job], cells: Sequence[Cell], on_cpu: dict[int, list[Task]],
        walking: Future[list[WalkResult]], ask: Callable[..., None],
    ) -> None:  # fmt: skip
        """Have what the device found judged, cells of one job and size together, and the rest done by the CPU."""
        walked = walking.result()

        def kind(at: int) -> tuple[int, int, bool]:
            task = cells[at].task
            return cells[at].job, task.size, task.fold == ALL_ROWS

        for (job, _, _), own in groupby(sorted(range(len(walked)), key=kind), key=kind):
            same = list(own)
            ask(job, judge, [cells[at] for at in same], [walked[at] for at in same])
        if len(walked) < len(cells):
            for cell in cells:
                on_cpu[cell.job].append(cell.task)
                self._rescued[id(jobs[cell.job][0])] = str(self._lost)
        for job, tasks in on_cpu.items():
            for piece in batches(jobs[job][0], tasks, _CPU_NS):
                ask(job, run_batch, piece, "numba")
