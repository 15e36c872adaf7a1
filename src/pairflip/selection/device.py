"""Tasks on a device: it walks the annealing chains of many folds, sizes and problems together, and threads judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from pairflip.blas import one_blas_thread
from pairflip.engines import Engine, RankTooSmall, Tick, WalkPlan, WalkResult, failure_note, failures_of, get_engine
from pairflip.engines.base import is_lower
from pairflip.jobs import local_threads
from pairflip.moments import Form
from pairflip.selection.tasks import ALL_ROWS, Grid, Outcome, Task, batches
from pairflip.selection.worker import NO_STEPS, Stop, annealed, annealing_plans, run_batch, training_form

Job = tuple[Grid, Sequence[Task]]
"""The tasks of one problem."""
_CPU_NS = 2e8  # what a thread takes at a time of what the device cannot hold
_BATCH_NS = 3e12  # of one CPU core: seconds of a device, so that its last chains, which do not fill it, matter little


class Cell(NamedTuple):
    """A task of one job, the problem of its fold, and its chains."""

    job: int
    task: Task
    form: Form
    plan: WalkPlan


def find_device(grids: Sequence[Grid]) -> Engine | None:
    """The engine that takes whole batches, if that was asked for ("auto": if it is worth it), otherwise None."""
    if not grids or grids[0].schedule is None:
        return None
    engine = grids[0].engine
    if engine == "auto":
        from pairflip.engines.cuda import WORTH_CHAINS, WORTH_SECONDS, why_unavailable

        chains = sum(grid.chains * len(grid.folds) * len(grid.sizes) for grid in grids)
        seconds = 1e-9 * sum(grid.chains * len(grid.folds) * sum(grid.chain_ns.values()) for grid in grids)
        if chains < WORTH_CHAINS or seconds < WORTH_SECONDS or why_unavailable() is not None:
            return None
        engine = "cuda"
    device = get_engine(engine)
    return device if device.prefers_many else None


class Device:
    """A device that walks chains of many problems in shared launches; where it fails, the CPU does the rest."""

    def __init__(self, engine: Any, jobs: Sequence[Job], n_jobs: int | None) -> None:
        self.name: str = engine.name
        self._engine, self._jobs = engine, jobs
        # Of many problems few threads judge: they keep the interpreter from those who feed the device.
        self._threads = -(-local_threads(n_jobs) // (1 if len(jobs) == 1 else 6))
        self._refused = [self._refusals(grid) for grid, _ in jobs]  # asked now: the device may be gone later
        self._rescued: set[int] = set()
        self._judges: dict[int, Any] = {}
        self._failure = ""

    def _refusals(self, grid: Grid) -> dict[int, str]:
        """Why the device cannot hold chains of a size, for each size of which that is so."""
        form, schedule = grid.problem.form, grid.schedule
        assert schedule is not None
        no_chains = np.zeros(0), schedule.flips(form.n_columns), np.zeros((0, 2), np.uint32)
        plans = [WalkPlan(size, *no_chains) for size in grid.sizes if size < form.n_columns]
        reasons = {plan.k: self._engine.refuses(form, plan) for plan in plans}
        return {size: str(reason) for size, reason in reasons.items() if reason is not None}

    def notes(self, job: int) -> list[str]:
        """Sizes that the device cannot hold, and what it failed to do."""
        reasons = defaultdict[str, list[int]](list)
        for size, reason in self._refused[job].items():
            reasons[reason.rstrip(".")].append(size)
        refused = [f"walked on the CPU: sizes {', '.join(map(str, sizes))} ({why})" for why, sizes in reasons.items()]
        return refused + [self._failure] * (job in self._rescued and bool(self._failure))

    def outcomes(self, tick: Tick | None) -> Generator[tuple[int, list[Outcome]], None, None]:
        """(job, outcomes) of all tasks: beside the device, threads judge the batch before and prepare the next one."""
        stop = Stop()

        def count(flips: int) -> None:
            stop.tick()
            if tick is not None:
                tick(flips)

        with (
            one_blas_thread(),
            ThreadPoolExecutor(1, thread_name_prefix="pairflip-ahead") as ahead,
            ThreadPoolExecutor(1, thread_name_prefix="pairflip-device") as walker,
            ThreadPoolExecutor(self._threads, thread_name_prefix="pairflip-judge") as judges,
        ):
            try:
                before: list[Future[tuple[int, list[Outcome]]]] = []
                prepared = (ahead.submit(self._prepare, batch) for batch in self._launches())
                following = next(prepared, None)
                while following is not None:
                    (cells, on_cpu), following = following.result(), next(prepared, None)
                    walking = walker.submit(self._walk, cells, count)
                    yield from (future.result() for future in as_completed(before))
                    walked = walking.result()
                    before = [judges.submit(self._judge, *group) for group in _alike(cells, walked)]
                    if len(walked) < len(cells):
                        for cell in cells:
                            on_cpu[cell.job].append(cell.task)
                            self._rescued.add(cell.job)
                    for job, tasks in on_cpu.items():
                        grid = self._jobs[job][0]
                        before += [judges.submit(_on_cpu, job, grid, b, stop) for b in batches(grid, tasks, _CPU_NS)]
                yield from (future.result() for future in as_completed(before))
            except BaseException:
                stop.wanted = True
                for pool in (ahead, walker, judges):
                    pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _launches(self) -> Iterator[list[tuple[int, Task]]]:
        """All tasks, with the number of their job, in batches that keep a device busy for some seconds."""
        batch: list[tuple[int, Task]] = []
        filled = 0.0
        for job, (grid, tasks) in enumerate(self._jobs):
            for task in tasks:
                batch.append((job, task))
                filled += grid.chain_ns[task.size] * (task.last - task.first)
                if filled >= _BATCH_NS:
                    yield batch
                    batch, filled = [], 0.0
        if batch:
            yield batch

    def _prepare(self, batch: Sequence[tuple[int, Task]]) -> tuple[list[Cell], dict[int, list[Task]]]:
        """What the device is asked, and tasks of each job that it cannot do: refused sizes, and all columns."""
        cells, on_cpu = [], defaultdict[int, list[Task]](list)
        for (job, fold), group in groupby(batch, key=lambda each: (each[0], each[1].fold)):
            grid, tasks = self._jobs[job][0], [task for _, task in group]
            form = training_form(grid, fold)
            for task, plan in zip(tasks, annealing_plans(grid, tasks, form), strict=True):
                if task.size in self._refused[job] or task.size >= form.n_columns:
                    on_cpu[job].append(task)
                else:
                    cells.append(Cell(job, task, form, plan))
        return cells, on_cpu

    def _walk(self, cells: Sequence[Cell], tick: Tick) -> list[WalkResult]:
        """Where the chains of each cell went; nothing where the device fails."""
        if cells and not self._failure:
            try:
                return list(self._engine.walk([(cell.form, cell.plan) for cell in cells], tick=tick))
            except RankTooSmall:  # of which fold, the CPU finds out
                return []
            except failures_of(self._engine) as error:
                self._failure = failure_note(error)
        return []

    @one_blas_thread()
    def _judge(self, cells: Sequence[Cell], walked: Sequence[WalkResult]) -> tuple[int, list[Outcome]]:
        """What chains of one size found: each one's better of last and best support, by the folds' inner products."""
        job, pairs = cells[0].job, list(zip(cells, walked, strict=True))
        if cells[0].task.fold == ALL_ROWS:
            return job, [annealed(cell.task, cell.form, cell.plan, result) for cell, result in pairs]
        counts = [cell.plan.chains for cell in cells]
        fold = np.repeat([cell.task.fold for cell in cells], counts)
        yy = np.repeat([cell.form.yy for cell in cells], counts)
        last = np.vstack([cell.form.candidates[result.support] for cell, result in pairs])
        best = np.vstack([cell.form.candidates[result.best_support] for cell, result in pairs])
        at_end, lowest = self._errors(job).energies(np.tile(fold, 2), np.vstack([last, best])).reshape(2, -1)
        better = is_lower(lowest, at_end, yy)
        supports, energies = np.where(better[:, None], best, last), np.where(better, lowest, at_end)
        ends = np.cumsum(counts)[:-1]
        parts = zip(cells, np.split(supports, ends), np.split(energies, ends), strict=True)
        return job, [Outcome(cell.task, support, energy, NO_STEPS) for cell, support, energy in parts]

    def _errors(self, job: int) -> Any:
        """The energies of a job's folds; two threads may make the same at once, which does no harm."""
        if job not in self._judges:
            grid = self._jobs[job][0]
            self._judges[job] = grid.problem.loss.held_out(grid.problem, grid.folds)
        return self._judges[job]


def _alike(cells: Sequence[Cell], walked: Sequence[WalkResult]) -> list[tuple[list[Cell], list[WalkResult]]]:
    """Cells of one job and one size, whose chains are judged together; those of all rows by themselves."""
    groups = defaultdict[tuple[int, int, bool], tuple[list[Cell], list[WalkResult]]](lambda: ([], []))
    for cell, result in zip(cells, walked, strict=False):  # nothing was walked where the device failed
        cells_alike, walked_alike = groups[cell.job, cell.task.size, cell.task.fold == ALL_ROWS]
        cells_alike.append(cell)
        walked_alike.append(result)
    return list(groups.values())


def _on_cpu(job: int, grid: Grid, tasks: Sequence[Task], stop: Stop) -> tuple[int, list[Outcome]]:
    return job, run_batch(grid, tasks, stop, "numba")
