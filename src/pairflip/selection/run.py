"""Choosing the number of columns: every fold of every size gets its own search. One loop, for one problem or many."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Semaphore
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from pairflip.engines import Engine, get_engine
from pairflip.jobs import check_jobs, local_threads, threads_beside_a_device, workers
from pairflip.problem import SubsetProblem
from pairflip.selection.assemble import assemble
from pairflip.selection.curve import SizeCurve
from pairflip.selection.further import look_further, seconds_after_grid
from pairflip.selection.hands import Hands, choose_hands
from pairflip.selection.loop import Folder, RunningJob, open_job, walk_jobs
from pairflip.selection.outer import outer_error, outer_folds
from pairflip.selection.progress import Show, check_show, followed_by
from pairflip.selection.score import Scores, scores
from pairflip.selection.settings import Selection, as_selection
from pairflip.selection.shrinkage import ridges_for, with_surface
from pairflip.selection.tasks import Work, identity, parse_shard, plan_work


def select_size(
    problem: SubsetProblem,
    sizes: Iterable[int] | Selection | None = None,
    cv: Any = "loo",
    *,
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    journal: Folder | None = None,
    progress: Show = None,
    groups: ArrayLike | None = None,
    **settings: Any,
) -> SizeCurve:
    r"""Choose the number of columns by cross validation in which every fold gets its own search.

    What a fold finds depends on its training rows alone: neither the columns that other folds found, nor the
    temperatures, nor any scale come from the rows it is tested on. Size 0 (the mean, or the forced columns alone) is
    always among the results.

    Parameters
    ----------
    problem
        Table and target.
    sizes, cv
        Numbers of columns to try, and how rows are left out, see `Selection`; or a whole `Selection`.
    engine
        ``"auto"``, ``"numba"``, ``"cuda"`` or ``"reference"``.
    n_jobs
        Threads; None is one (or what ``joblib.parallel_config`` says), -1 all cores. Inside
        ``with joblib.parallel_config("dask")`` the same runs on a cluster.
    journal
        Folder in which finished work is kept. Run the same again to resume.
    progress
        True: show progress on standard error; None: only if it is a terminal; False: never; ``"log"``: a bar on a
        terminal, otherwise one line per minute; ``"late"``: only on a terminal or in a notebook, after 5 s.
    groups
        Labels of the rows for splitters that keep groups together; with ``cv="loo"``, leave one group out.
    **settings
        ``schedule``, ``chains``, ``seed``, ``polish``, ``method``, ``effort``, ``stability``, ``null``, ``outer``,
        ``ridge``: the other fields of `Selection`.
    """
    check_jobs(n_jobs)
    chosen = _selection(sizes, cv, settings, problem)
    works = [plan_work(each, chosen, engine, groups) for each in _with_ridges(problem, chosen)]
    if chosen.outer:
        outer_folds(problem, chosen, groups)  # what is wrong with them is said before anything is searched
    curves = []
    for number, work in enumerate(works):
        with followed_by(None if number else seconds_after_grid(works, workers(n_jobs))):
            ((_, curve),) = _choose([work], [journal], n_jobs, progress)
        curves.append(curve)
    work, curve = works[0], curves[0]
    if chosen.ridges:
        curve = with_surface(curves, chosen.ridges)
        work = works[chosen.ridges.index(curve.ridge)]
    with followed_by(None):
        curve = look_further(work, curve, groups, journal, n_jobs, progress)
    if not chosen.outer:
        return curve

    def choose(part: SubsetProblem, how: Selection, labels: ArrayLike | None, folder: Path | None) -> SizeCurve:
        run: dict[str, Any] = {"engine": engine, "n_jobs": n_jobs, "progress": progress}
        return select_size(part, how, journal=folder, groups=labels, **run)

    began = time.perf_counter()
    with followed_by(None):
        outer = outer_error(problem, chosen, groups, None if journal is None else Path(journal), choose)
    return replace(curve, outer=outer, seconds=curve.seconds + time.perf_counter() - began)


def select_many(
    problems: Sequence[SubsetProblem],
    sizes: Iterable[int] | Selection | None = None,
    cv: Any = "loo",
    *,
    seeds: Sequence[int] = (0,),
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    journal: Folder | None = None,
    **settings: Any,
) -> Iterator[tuple[int, SizeCurve]]:
    """(problem, curve) for every problem as it is finished: what `select_size` gives for each alone."""
    chosen = _selection(sizes, cv, settings)
    if chosen.ridge is not None:
        raise ValueError("ridge is to be chosen for many problems; expected None, or select_size for each problem.")
    if chosen.outer:
        raise ValueError(f"outer is {chosen.outer} for many problems; expected 0, or select_size for each problem.")
    seeds = list(seeds) * len(problems) if len(seeds) == 1 else list(seeds)
    works = [
        plan_work(problem, replace(chosen, seed=seed), engine, None)
        for problem, seed in zip(problems, seeds, strict=True)
    ]
    folders = [None if journal is None else Path(journal) / f"{index:04d}" for index in range(len(works))]
    for index, curve in _choose(works, folders, n_jobs, progress=False):
        yield index, look_further(works[index], curve, None, folders[index], n_jobs, progress=False)


def score_many(
    asked: Sequence[tuple[SubsetProblem, Selection]],
    *,
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    journals: Sequence[Folder | None] | None = None,
) -> Iterator[tuple[int, Scores]]:
    """(problem, scores) for every problem as it is finished: errors (to ten digits) and energies of `select_size`."""
    works = [plan_work(problem, selection, engine, None) for problem, selection in asked]
    folders = [None] * len(works) if journals is None else journals

    def finish(job: RunningJob, _: Hands) -> Scores:
        return scores(job.work, job.found)

    yield from _each(works, folders, n_jobs, False, finish)


def run_shard(
    problem: SubsetProblem,
    sizes: Iterable[int] | Selection | None = None,
    cv: Any = "loo",
    *,
    journal: Folder,
    shard: str | tuple[int, int],
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    progress: Show = None,
    groups: ArrayLike | None = None,
    **settings: Any,
) -> int:
    """Do one part of a selection into a journal; returns the number of chains it holds.

    Afterwards `select_size` with the same arguments and journal has only the rest to do. Shards that could not share a
    folder are joined by `merge_journals`.

    Parameters
    ----------
    problem, sizes, cv, engine, n_jobs, progress, groups, **settings
        As in `select_size`.
    journal
        Folder in which finished work is kept.
    shard
        Which part, for instance ``"3/64"``.
    """
    part, chosen = parse_shard(shard), _selection(sizes, cv, settings, problem)
    held = 0
    for each in _with_ridges(problem, chosen):
        with ExitStack() as stack:
            job = open_job(stack, plan_work(each, chosen, engine, groups), journal, part)
            for _ in walk_jobs(stack, [job], choose_hands([job.work] if job.tasks else [], n_jobs), progress):
                pass
        held += len(job.found.done)
    return held


def identify(
    problem: SubsetProblem,
    sizes: Iterable[int] | Selection | None = None,
    cv: Any = "loo",
    *,
    engine: str | Engine = "auto",
    groups: ArrayLike | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """What the journal of `select_size` with the same arguments says about itself, for `merge_journals`."""
    return identity(plan_work(problem, _selection(sizes, cv, settings, problem), engine, groups))


def _with_ridges(problem: SubsetProblem, chosen: Selection) -> Iterator[SubsetProblem]:
    """The problem with each ridge to choose from, or as it is."""
    if not isinstance(problem, SubsetProblem) or not chosen.ridges:
        yield problem
        return
    for ridge in chosen.ridges:
        yield problem.with_shrinkage(ridge)


def _selection(
    sizes: Iterable[int] | Selection | None, cv: Any, settings: dict[str, Any], problem: SubsetProblem | None = None
) -> Selection:
    """The selection as one value; with a problem, its ridge terms are those to be tried there."""
    selection = as_selection(sizes, settings if isinstance(sizes, Selection) else {"cv": cv, **settings})
    if not isinstance(problem, SubsetProblem):
        return selection
    return replace(selection, ridge=ridges_for(problem, selection.ridge))


def _choose(
    works: Sequence[Work], folders: Sequence[Folder | None], n_jobs: int | None, progress: Show
) -> Iterator[tuple[int, SizeCurve]]:
    """A curve of each problem."""
    began = time.perf_counter()
    threads = n_jobs if len(works) == 1 else 1  # curves of many problems are assembled in parallel

    def finish(job: RunningJob, hands: Hands) -> SizeCurve:
        name = hands.name or get_engine(job.work.engine).name
        return assemble(job.work, job.found, engine=name, notes=job.notes(hands), began=began, n_jobs=threads)

    yield from _each(works, folders, n_jobs, progress, finish)


Result = TypeVar("Result")


def _each(
    works: Sequence[Work],
    folders: Sequence[Folder | None],
    n_jobs: int | None,
    progress: Show,
    finish: Callable[[RunningJob, Hands], Result],
) -> Iterator[tuple[int, Result]]:
    """The loop: do what the journals do not hold yet, and finish each problem as soon as its chains are there."""
    check_jobs(n_jobs)
    check_show(progress)
    with ExitStack() as stack:
        jobs = [open_job(stack, work, folder) for work, folder in zip(works, folders, strict=True)]
        hands = choose_hands([job.work for job in jobs if job.tasks], n_jobs)

        threads = local_threads(n_jobs)
        at_work = Semaphore(threads_beside_a_device(n_jobs, len(works)) if hands.n_jobs == 0 else threads)

        def finished(index: int) -> tuple[int, Result]:
            with at_work:
                result = finish(jobs[index], hands)
            jobs[index].found.clear()
            return index, result

        pool = stack.enter_context(ThreadPoolExecutor(threads, thread_name_prefix="pairflip"))
        waiting: list[Future[tuple[int, Result]]] = []
        waiting += [pool.submit(finished, index) for index, job in enumerate(jobs) if not job.tasks]
        for index in walk_jobs(stack, jobs, hands, progress):
            waiting.append(pool.submit(finished, index))
            while waiting and waiting[0].done():
                yield waiting.pop(0).result()
        at_work.release(threads)  # nobody feeds a device any more
        for future in waiting:
            yield future.result()
