"""The same choice on many problems: what a study of samples needs, on a device in common launches."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from pairflip.crossval.assemble import assemble
from pairflip.crossval.curve import SizeCurve
from pairflip.crossval.device import find_device, run_on_device
from pairflip.crossval.identity import identity
from pairflip.crossval.journal import Found, Journal
from pairflip.crossval.parallel import local_threads, run_all
from pairflip.crossval.selection import plan_work
from pairflip.crossval.tasks import Task, Work, missing
from pairflip.crossval.walks import Outcome
from pairflip.engines import Engine, get_engine
from pairflip.problem import SubsetProblem
from pairflip.schedule import Schedule


def select_many(
    problems: Sequence[SubsetProblem],
    sizes: Iterable[int] | None = None,
    cv: Any = "loo",
    schedule: Schedule | Literal["auto", "paper"] = "auto",
    chains: int | None = None,
    seeds: Sequence[int] = (0,),
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    polish: bool = True,
) -> Iterator[tuple[int, SizeCurve]]:
    """(problem, curve) for every problem as it is finished: what `select_size` gives for each alone.

    `seeds` has one seed for each problem, or one for all. A journal has one folder for each problem.
    """
    began = time.perf_counter()
    seeds = list(seeds) * len(problems) if len(seeds) == 1 else list(seeds)
    sizes = None if sizes is None else list(sizes)
    with ExitStack() as stack:
        jobs, kept = [], []
        for index, (problem, seed) in enumerate(zip(problems, seeds, strict=True)):
            work, settings = plan_work(problem, sizes, cv, schedule, chains, seed, engine, None)
            book = None
            if journal is not None:
                book = stack.enter_context(Journal(Path(journal) / f"{index:04d}", identity(work, settings)))
            found = Found() if book is None else book.read(work)
            jobs.append((work, missing(work, found.done)))
            kept.append((settings, book, found))
        device = find_device(engine, [work for work, tasks in jobs if tasks])
        left = [sum(task.last - task.first for task in tasks) for _, tasks in jobs]

        def finish(index: int) -> tuple[int, SizeCurve]:
            (work, _), (settings, book, found) = jobs[index], kept[index]
            said = () if book is None else book.notes
            chosen = {**settings, "polish": polish}
            name = get_engine(engine).name if device is None else device.name
            curve = assemble(
                work, found, settings=chosen, engine=name, notes=said, began=began, polish=polish, n_jobs=1
            )
            found.clear()
            return index, curve

        finished = [index for index, count in enumerate(left) if count == 0]
        with ThreadPoolExecutor(local_threads(n_jobs), thread_name_prefix="pairflip") as pool:
            waiting = [pool.submit(finish, index) for index in finished]
            for index, outcomes in _run(jobs, device, n_jobs):
                _, book, found = kept[index]
                if book is not None:
                    book.write(outcomes)
                for result in outcomes:
                    found.add(result)
                    left[index] -= result.task.last - result.task.first
                if left[index] == 0:
                    waiting.append(pool.submit(finish, index))
                while waiting and waiting[0].done():
                    yield waiting.pop(0).result()
            for future in waiting:
                yield future.result()


def _run(
    jobs: Sequence[tuple[Work, Sequence[Task]]], device: Any, n_jobs: int | None
) -> Iterator[tuple[int, list[Outcome]]]:
    if device is not None:
        yield from run_on_device(device, jobs, n_jobs)
        return
    for index, (work, tasks) in enumerate(jobs):
        for outcomes in run_all(work, tasks, n_jobs):
            yield index, outcomes
