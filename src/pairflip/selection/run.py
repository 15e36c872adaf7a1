"""Choosing the number of columns: every fold of every size gets its own search, for one problem or many."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pairflip.engines import Engine
from pairflip.jobs import check_jobs
from pairflip.journal_file import Folder
from pairflip.problem import SubsetProblem, check_problem
from pairflip.selection.after_selection import (
    outer_error,
    outer_folds,
    with_checks,
    with_imputations,
)
from pairflip.selection.assemble import assemble
from pairflip.selection.averaging import with_average
from pairflip.selection.curve import RidgeSurface, SizeCurve
from pairflip.selection.executors import Execution, search_grid, search_grids
from pairflip.selection.folds import blocks_as_groups
from pairflip.selection.journal import identity
from pairflip.selection.progress import Show
from pairflip.selection.settings import Selection, as_selection
from pairflip.selection.tasks import Grid, plan_work


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
    preprocess: Any = None,
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
    preprocess
        A scikit-learn transformer of the table, fitted on the training rows of each fold: that of
        ``SubsetProblem(..., preprocess=...)``, for a problem without one.
    **settings
        ``schedule``, ``chains``, ``seed``, ``polish``, ``method``, ``effort``, ``stability``, ``null``, ``outer``,
        ``ridge``: the other fields of `Selection`.
    """
    check_jobs(n_jobs)
    problem = check_problem(problem).preprocessed(preprocess)
    selection, grids = _plan(problem, sizes, cv, settings, engine, groups)
    run = Execution(engine, n_jobs, journal, progress, blocks_as_groups(problem, selection.cv, groups))
    if selection.outer:
        outer_folds(problem, selection, run.groups)  # what is wrong with them is said before anything is searched
    curves, most = [], max(grids[0].sizes)
    for grid in grids:
        ((_, curve),) = _curves([grid], [selection], [journal], n_jobs, progress, most)
        curves.append(curve)
        most = int(curve.sizes[-1])  # a larger ridge allows more sizes, but all are compared at the same ones
    grid, curve = grids[0], curves[0]
    if selection.ridges:
        curve = _with_surface(curves, selection.ridges)
        grid = grids[selection.ridges.index(curve.ridge)]
    of_grid = run._replace(engine=grid.engine)
    curve = with_checks(curve, grid, selection, of_grid)
    curve = with_average(curve, problem, selection, of_grid)
    curve = with_imputations(curve, grid.problem, selection, run)
    if not selection.outer:
        return curve
    began = time.perf_counter()
    outer = outer_error(problem, selection, run, select_size)
    return replace(curve, outer=outer, seconds=curve.seconds + time.perf_counter() - began)


def _with_surface(curves: Sequence[SizeCurve], ridges: Sequence[float]) -> SizeCurve:
    """The curve of the ridge with the lowest held-out error at any size, and the errors of all.

    Of equal errors the smaller ridge counts. Which size of that curve to keep is then decided as without ridge, by
    `verdict.recommended_size`.
    """
    errors = np.stack([curve.cv_error for curve in curves])
    at = int(np.argmin(errors.min(axis=1)))
    surface = RidgeSurface(
        ridges=np.array(ridges, dtype=float),
        errors=errors,
        predictions=np.stack([curve.predictions for curve in curves]) if len(curves) > 1 else None,
        ridge=float(ridges[at]),
    )
    notes = dict.fromkeys(note for curve in curves for note in curve.notes)
    seconds = sum(curve.seconds for curve in curves)
    return replace(curves[at], ridge_surface=surface, notes=tuple(notes), seconds=seconds)


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
    selection = as_selection(sizes, settings if isinstance(sizes, Selection) else {"cv": cv, **settings})
    if selection.ridge is not None:
        raise ValueError("ridge is to be chosen for many problems; expected None, or select_size for each problem.")
    if selection.outer:
        raise ValueError(f"outer is {selection.outer} for many problems; expected 0, or select_size for each problem.")
    each_seed = list(seeds) * len(problems) if len(seeds) == 1 else list(seeds)
    chosen = [replace(selection, seed=seed) for seed in each_seed]
    grids = [plan_work(problem, each, engine, None) for problem, each in zip(problems, chosen, strict=True)]
    folders = [None if journal is None else Path(journal) / f"{number:04d}" for number in range(len(grids))]
    most = max(size for grid in grids for size in grid.sizes)
    for number, curve in _curves(grids, chosen, folders, n_jobs, False, most):
        run = Execution(grids[number].engine, n_jobs, folders[number])
        checked = with_checks(curve, grids[number], chosen[number], run)
        yield number, with_average(checked, problems[number], chosen[number], run)


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
    preprocess: Any = None,
    **settings: Any,
) -> int:
    """Do one part of a selection into a journal; returns the number of chains it holds.

    Afterwards `select_size` with the same arguments and journal has only the rest to do. Shards that could not share a
    folder are joined by `merge_journals`.

    Parameters
    ----------
    problem, sizes, cv, engine, n_jobs, progress, groups, preprocess, **settings
        As in `select_size`.
    journal
        Folder in which finished work is kept.
    shard
        Which part, for instance ``"3/64"``.
    """
    try:
        part, of = (int(n) for n in (shard.split("/") if isinstance(shard, str) else shard))
    except (ValueError, TypeError):
        part, of = 0, 0
    if not 1 <= part <= of:
        raise ValueError(f"shard is {shard!r}; expected 'part/of' with 1 <= part <= of, for instance '3/64'.")
    _, grids = _plan(check_problem(problem).preprocessed(preprocess), sizes, cv, settings, engine, groups)
    run = Execution(engine, n_jobs, journal, progress)
    return sum(search_grid(grid, run, shard=(part, of)).n_chains for grid in grids)


def identify(
    problem: SubsetProblem,
    sizes: Iterable[int] | Selection | None = None,
    cv: Any = "loo",
    *,
    engine: str | Engine = "auto",
    groups: ArrayLike | None = None,
    preprocess: Any = None,
    **settings: Any,
) -> dict[str, Any]:
    """What the journal of `select_size` with the same arguments says about itself, for `merge_journals`."""
    return identity(_plan(check_problem(problem).preprocessed(preprocess), sizes, cv, settings, engine, groups)[1][0])


def _plan(
    problem: SubsetProblem,
    sizes: Iterable[int] | Selection | None,
    cv: Any,
    settings: dict[str, Any],
    engine: str | Engine,
    groups: ArrayLike | None,
) -> tuple[Selection, list[Grid]]:
    """The selection as one value, and its searches: a grid for each ridge to choose from, or one."""
    selection = as_selection(sizes, settings if isinstance(sizes, Selection) else {"cv": cv, **settings}, problem)
    groups = blocks_as_groups(problem, selection.cv, groups)
    problems = [problem.with_shrinkage(ridge) for ridge in selection.ridges] or [problem]
    return selection, [plan_work(each, selection, engine, groups) for each in problems]


def _curves(
    grids: Sequence[Grid],
    selections: Sequence[Selection],
    folders: Sequence[Folder | None],
    n_jobs: int | None,
    progress: Show,
    most: int,
) -> Iterator[tuple[int, SizeCurve]]:
    """(grid, curve) of every grid as it is finished, of sizes up to `most`."""
    began = time.perf_counter()
    for searched in search_grids(grids, folders, n_jobs, progress):
        yield searched.number, assemble(searched, selections[searched.number], began, n_jobs, most)
