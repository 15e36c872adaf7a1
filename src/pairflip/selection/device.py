"""Tasks on a device: the chains of many folds, sizes and problems in one launch."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from typing import Any

import numpy as np

from pairflip.engines import Engine, Tick, WalkPlan, WalkResult, get_engine
from pairflip.engines.base import is_lower
from pairflip.engines.blas import one_blas_thread
from pairflip.gram import Gram, HeldOutGram
from pairflip.jobs import local_threads
from pairflip.losses.held_out import loo_stack
from pairflip.selection.tasks import ALL_ROWS, Job, Task, Work
from pairflip.selection.walks import Outcome, gram_of, no_steps, outcome, plans, run_batch

_LAUNCH_NS = 1e13  # of one CPU core: about a minute of the device, which small launches leave idle


def find_device(engine: str | Engine, works: Sequence[Work]) -> Engine | None:
    """The engine that takes whole batches, if that was asked for ("auto": if it is worth it), otherwise None."""
    if not works[0].selection.anneals:
        return None  # descents, kicks and paths are the CPU's
    if engine == "auto":
        from pairflip.engines.cuda import WORTH_CHAINS, WORTH_SECONDS, why_unavailable

        chains, seconds = sum(map(_chains, works)), sum(map(_seconds, works))
        if chains < WORTH_CHAINS or seconds < WORTH_SECONDS or why_unavailable() is not None:
            return None
        engine = "cuda"
    found = get_engine(engine)
    return found if found.prefers_many else None


class Device:
    """A device that walks the chains of many folds, sizes and problems in shared launches."""

    n_jobs: int | None = 0

    def __init__(self, engine: Any, judges: int | None) -> None:
        self.name: str = engine.name
        self._engine, self._judges = engine, judges

    def notes(self, work: Work) -> list[str]:
        """Sizes that the device cannot hold, and why."""
        reasons: dict[str, list[int]] = defaultdict(list)
        gram = work.problem.gram
        for size in work.sizes:
            no_chains = WalkPlan(size, np.zeros(0), work.schedule.flips(gram.n_columns), np.zeros((0, 2), np.uint32))
            reason = self._engine.refuses(gram, no_chains) if size < gram.n_columns else None
            if reason is not None:
                reasons[reason.rstrip(".")].append(size)
        return [f"walked on the CPU: sizes {', '.join(map(str, sizes))} ({why})" for why, sizes in reasons.items()]

    def outcomes(self, jobs: Sequence[Job], tick: Tick | None) -> Iterator[tuple[int, list[Outcome]]]:
        """The jobs together, judged by threads while the device walks on."""
        return run_on_device(self._engine, jobs, self._judges, tick)


def _chains(work: Work) -> int:
    return work.chains * len(work.folds) * len(work.sizes)


def _seconds(work: Work) -> float:
    return 1e-9 * len(work.folds) * sum(work.nanoseconds(size, work.chains) for size in work.sizes)


def run_on_device(
    engine: Any, jobs: Sequence[Job], n_jobs: int | None, tick: Tick | None = None
) -> Iterator[tuple[int, list[Outcome]]]:
    """(job, outcomes) of all tasks of several problems; what the device cannot hold is walked on the CPU.

    Parameters
    ----------
    engine : Engine
        The engine of the device.
    jobs : sequence of (Work, tasks)
        The tasks of each problem.
    n_jobs : int or None
        Threads that judge what the device has walked.
    tick : callable, optional
        Told of flips as they are done.
    """
    later: deque[tuple[int, Future[list[Outcome]]]] = deque()
    with ThreadPoolExecutor(local_threads(n_jobs), thread_name_prefix="pairflip") as pool:
        try:
            for batch in _launches(jobs):
                walks, on_cpu = _prepare(engine, jobs, batch)
                walked = engine.walk([(gram, chains) for _, _, gram, chains in walks], tick=tick)
                parts: dict[tuple[int, int], list[tuple[Task, Gram, WalkResult]]] = defaultdict(list)
                for (job, task, gram, _), result in zip(walks, walked, strict=True):
                    parts[job, task.size].append((task, gram, result))
                for (job, _), part in parts.items():
                    later.append((job, pool.submit(_judge, jobs[job][0], part)))  # while the device walks on
                for job, task in on_cpu:
                    later.append((job, pool.submit(run_batch, jobs[job][0], [task], "numba")))
                while later and later[0][1].done():
                    job, found = later.popleft()
                    yield job, found.result()
            while later:
                job, found = later.popleft()
                yield job, found.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for work, _ in jobs:
                work.stop.wanted = True
            raise


def _prepare(
    engine: Any, jobs: Sequence[Job], batch: Sequence[tuple[int, Task]]
) -> tuple[list[tuple[int, Task, Gram, WalkPlan]], list[tuple[int, Task]]]:
    """The tasks of a batch as walks for the device, and those that it cannot hold."""
    tasks: dict[int, list[Task]] = defaultdict(list)
    for job, task in batch:
        tasks[job].append(task)
    walks: list[tuple[int, Task, Gram, WalkPlan]] = []
    on_cpu: list[tuple[int, Task]] = []
    for job, own in tasks.items():
        work = jobs[job][0]
        held: dict[tuple[int, bool, type], bool] = {}  # the folds of one problem are alike
        for fold, of_fold in groupby(sorted(own, key=lambda task: task.fold), key=lambda task: task.fold):
            gram, together = gram_of(work, fold), list(of_fold)
            for task, chains in zip(together, plans(work, together, gram), strict=True):
                key = task.size, task.fold == ALL_ROWS, type(gram)
                if key not in held:
                    held[key] = engine.refuses(gram, chains) is None
                if held[key] and task.size < gram.n_columns:
                    walks.append((job, task, gram, chains))
                else:
                    on_cpu.append((job, task))
    return walks, on_cpu


def _launches(jobs: Sequence[Job]) -> Iterator[list[tuple[int, Task]]]:
    """All tasks, in parts that keep a device busy for some seconds."""
    batch: list[tuple[int, Task]] = []
    filled = 0.0
    for job, (work, tasks) in enumerate(jobs):
        for task in tasks:
            batch.append((job, task))
            filled += work.nanoseconds(task.size, task.last - task.first)
            if filled >= _LAUNCH_NS:
                yield batch
                batch, filled = [], 0.0
    if batch:
        yield batch


@one_blas_thread()
def _judge(work: Work, part: Sequence[tuple[Task, Gram, WalkResult]]) -> list[Outcome]:
    """Outcomes of the walks of one size: leave-one-out folds together, by one stacked QR."""
    single = [p for p in part if isinstance(p[1], HeldOutGram) and p[1].rows.size == 1]
    others = [p for p in part if not (isinstance(p[1], HeldOutGram) and p[1].rows.size == 1)]
    outcomes = [outcome(work, task, gram, walked) for task, gram, walked in others]
    if not single:
        return outcomes
    candidates = work.problem.candidates
    ends = np.cumsum([task.last - task.first for task, _, _ in single])
    row = np.concatenate([np.repeat(work.folds.left_out[t.fold], t.last - t.first) for t, _, _ in single])
    last = candidates[np.concatenate([walked.support for _, _, walked in single])]
    best = candidates[np.concatenate([walked.best_support for _, _, walked in single])]
    distinct, which = np.unique(np.vstack([last, best]), axis=0, return_inverse=True)
    inside = np.empty((2, row.size))
    of_last, of_best = which.reshape(2, -1)
    for chunk, left, e, energy in loo_stack(work.problem, distinct):
        for target, of in zip(inside, (of_last, of_best), strict=True):
            here = np.flatnonzero((of >= chunk.start) & (of < chunk.stop))
            u, m = of[here] - chunk.start, row[here]
            # What the row added to the energy goes with it: E - e^2 / (2 (1 - h)), the leave-one-out identity.
            target[here] = energy[u] - 0.5 * e[u, m] ** 2 / np.maximum(left[u, m], 1e-300)
    yy = np.concatenate([np.repeat(gram.yy, t.last - t.first) for t, gram, _ in single])
    better = is_lower(inside[1], inside[0], yy)
    supports = np.where(better[:, None], best, last)
    energies = np.where(better, inside[1], inside[0])
    for (task, _, _), end in zip(single, ends, strict=True):
        chains = slice(end - (task.last - task.first), end)
        outcomes.append(Outcome(task, supports[chains], energies[chains], no_steps(work)))
    return outcomes
