"""Choosing the number of columns: every fold of every size gets its own search, for one problem or many."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pairflip.engines import Engine
from pairflip.jobs import check_jobs
from pairflip.journal_file import Folder
from pairflip.problem import SubsetProblem, check_problem
from pairflip.search.effort import kick_nanoseconds
from pairflip.selection.after_selection import (
    outer_error,
    outer_folds,
    with_checks,
    with_imputations,
    with_influence,
)
from pairflip.selection.assemble import assemble
from pairflip.selection.averaging import FoldModels, fold_models, weighted_average
from pairflip.selection.curve import RidgeSurface, SizeCurve
from pairflip.selection.decide import is_settled
from pairflip.selection.executors import Execution, search_grid, search_grids
from pairflip.selection.folds import DEFAULT_CV, Repeats, blocks_as_groups
from pairflip.selection.journal import identity
from pairflip.selection.progress import Show
from pairflip.selection.settings import GRID, Selection, as_selection
from pairflip.selection.subsampling import found_in_halves
from pairflip.selection.tasks import Grid, plan_halves, plan_work


def select_size(
    problem: SubsetProblem,
    sizes: Iterable[int] | Selection | None = None,
    cv: Any = DEFAULT_CV,
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
    selection = as_selection(sizes, settings if isinstance(sizes, Selection) else {"cv": cv, **settings}, problem)
    run = Execution(engine, n_jobs, journal, progress, blocks_as_groups(problem, selection.cv, groups))
    if selection.outer:
        outer_folds(problem, selection, run.groups)  # what is wrong with them is said before anything is searched
    curve = with_influence(_selected(problem, selection, run), problem, selection, run, _selected)
    if not selection.outer:
        return curve
    began = time.perf_counter()
    outer = outer_error(problem, selection, run, _selected)
    return replace(curve, outer=outer, seconds=curve.seconds + time.perf_counter() - began)


def _selected(problem: SubsetProblem, selection: Selection, run: Execution) -> SizeCurve:
    """The curve of a selection, with half-samples and shuffled targets where these are asked for."""
    plan, steps = selection, [run]
    while True:
        grids = _grids(problem, plan, run.engine, run.groups)
        curve, models = _searched(grids, plan, steps[-1])
        further = _further(curve, grids[0], selection, plan)
        if further is None:
            break
        plan = further
        steps.append(run.below(f"further-{len(steps)}"))
    grid = grids[selection.ridges.index(curve.ridge)] if selection.ridges else grids[0]
    run = run._replace(engine=grid.engine)
    shrunken = _shrunken(grids[0], curve, selection, run)
    curve = replace(curve, average=weighted_average([*(of_folds() for of_folds in models), *shrunken]))
    return with_imputations(with_checks(curve, grid, selection, run), grid.problem, selection, run)


def _searched(
    grids: Sequence[Grid], selection: Selection, run: Execution
) -> tuple[SizeCurve, list[Callable[[], FoldModels]]]:
    """The curve of all grids, one for each ridge, and what makes the models of their folds."""
    curves, models, most = [], [], max(grids[0].sizes)
    for grid in grids:
        ((_, curve, of_folds),) = _curves([grid], [selection], [run.journal], run.n_jobs, run.progress, most)
        curves.append(curve)
        models.append(of_folds)
        most = int(curve.sizes[-1])  # a larger ridge allows more sizes, but all are compared at the same ones
    return _with_surface(curves, selection.ridges) if selection.ridges else curves[0], models


_MOST_SIZES, _NEAR_THE_END = 40, 0.8
_MOST_TIMES, _MOST_PREDICTIONS = 400, 80_000
_FURTHER_S = 6.0  # for the searches of larger sizes or of more repetitions, by the cost model


def _further(curve: SizeCurve, grid: Grid, asked: Selection, plan: Selection) -> Selection | None:
    """A plan that goes further than a finished one where that is left to us; None where the answer is settled.

    Twice as many sizes where the lowest error is near the largest one; twice as many repetitions of the folds where
    quarters of them choose different sizes.
    """
    most, larger, form = max(grid.sizes), plan.sizes, grid.problem.form
    if not form.quadratic or form.grouped or plan.method == "anneal":  # every further search takes long
        return None
    if asked.sizes is None and most == curve.sizes[-1] and curve.best_size >= _NEAR_THE_END * most:
        rows = grid.problem.rows_present - max(grid.problem.count_rows(rows) for rows in grid.folds.left_out)
        most = max(most, min(2 * most, _MOST_SIZES, grid.problem.most_columns, rows // 2))
        larger = range(1, most + 1) if most > max(grid.sizes) else larger
    cv, times = plan.cv, 1
    if asked.cv == DEFAULT_CV and isinstance(grid.cv, Repeats) and len(grid.folds) == grid.cv.times * grid.cv.folds:
        cv, twice = grid.cv, 2 * grid.cv.times
        affordable = twice <= _MOST_TIMES and twice * grid.problem.rows_present <= _MOST_PREDICTIONS
        if larger is plan.sizes and affordable and not is_settled(curve, cv.folds):
            cv, times = replace(cv, times=twice), 2
    kicks = sum(kick_nanoseconds(form, k) for k in range(1, most + 1))
    if (larger is plan.sizes and times == 1) or 3e-9 * times * (1 + len(grid.folds)) * kicks > _FURTHER_S:
        return None
    return replace(plan, sizes=larger, cv=cv)


def _with_surface(curves: Sequence[SizeCurve], ridges: Sequence[float]) -> SizeCurve:
    """The curve of the ridge with the lowest held-out error at any size, and the errors of all.

    Of equal errors the smaller ridge counts. Which size of that curve to keep is then decided as without ridge, by
    `decide.decide`.
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
    cv: Any = DEFAULT_CV,
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
    for number, curve, of_folds in _curves(grids, chosen, folders, n_jobs, False, most):
        run = Execution(grids[number].engine, n_jobs, folders[number])
        models = [of_folds(), *_shrunken(grids[number], curve, chosen[number], run)]
        curve = replace(curve, average=weighted_average(models))
        yield number, with_checks(curve, grids[number], chosen[number], run)


def run_shard(
    problem: SubsetProblem,
    sizes: Iterable[int] | Selection | None = None,
    cv: Any = DEFAULT_CV,
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
    grids = _plan(check_problem(problem).preprocessed(preprocess), sizes, cv, settings, engine, groups)
    run = Execution(engine, n_jobs, journal, progress)
    return sum(search_grid(grid, run, shard=(part, of)).n_chains for grid in grids)


def identify(
    problem: SubsetProblem,
    sizes: Iterable[int] | Selection | None = None,
    cv: Any = DEFAULT_CV,
    *,
    engine: str | Engine = "auto",
    groups: ArrayLike | None = None,
    preprocess: Any = None,
    **settings: Any,
) -> dict[str, Any]:
    """What the journal of `select_size` with the same arguments says about itself, for `merge_journals`."""
    return identity(_plan(check_problem(problem).preprocessed(preprocess), sizes, cv, settings, engine, groups)[0])


def _plan(
    problem: SubsetProblem,
    sizes: Iterable[int] | Selection | None,
    cv: Any,
    settings: dict[str, Any],
    engine: str | Engine,
    groups: ArrayLike | None,
) -> list[Grid]:
    """The searches of a selection, given by its settings."""
    selection = as_selection(sizes, settings if isinstance(sizes, Selection) else {"cv": cv, **settings}, problem)
    return _grids(problem, selection, engine, blocks_as_groups(problem, selection.cv, groups))


def _grids(problem: SubsetProblem, selection: Selection, engine: str | Engine, groups: Any) -> list[Grid]:
    """The searches of a selection: a grid for each ridge to choose from, or one."""
    problems = [problem.with_shrinkage(ridge) for ridge in selection.ridges] or [problem]
    return [plan_work(each, selection, engine, groups) for each in problems]


def _curves(
    grids: Sequence[Grid],
    selections: Sequence[Selection],
    folders: Sequence[Folder | None],
    n_jobs: int | None,
    progress: Show,
    most: int,
) -> Iterator[tuple[int, SizeCurve, Callable[[], FoldModels]]]:
    """Number, curve and models of the folds of every grid as it is finished, of sizes up to `most`."""
    began = time.perf_counter()
    for searched in search_grids(grids, folders, n_jobs, progress):
        yield searched.number, *assemble(searched, selections[searched.number], began, n_jobs, most)


_SHRUNKEN = 10  # repetitions of the folds that are also searched with ridge terms


def _shrunken(grid: Grid, curve: SizeCurve, selection: Selection, run: Execution) -> list[FoldModels]:
    """Models of some folds whose columns were searched with a ridge, for the average; none where a ridge is given."""
    problem, cv = grid.problem, grid.cv
    penalized = selection.ridges or problem.shrinkage or problem.ridge > 0
    repeated = isinstance(cv, Repeats) and cv.times > 1 and cv.times * cv.folds == len(grid.folds)
    if penalized or not problem.loss.squared or problem.limits.signs is not None or not repeated:
        return []
    folds, searches = grid.folds.some(range(cv.folds * min(cv.times, _SHRUNKEN))), []
    sizes = tuple(int(k) for k in curve.sizes if k > 0)
    how: dict[str, Any] = {"seed": selection.seed, "effort": "quick", "prove": False}
    for ridge in GRID:
        if ridge == 0:
            continue
        other = problem.with_shrinkage(ridge)
        below = run.below(f"ridge-{ridge:g}-sizes-{sizes[-1]}")._replace(progress=False)
        results = search_grid(plan_halves(other, sizes, folds, grid.engine, **how), below)
        supports = [np.empty((len(folds), 0), dtype=np.int64), *(found_in_halves(results, k)[:, 0] for k in sizes)]
        searches.append(fold_models(other, folds, other.loss.held_out(other, folds), supports))
    return searches
