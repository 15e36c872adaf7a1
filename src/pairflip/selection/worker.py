"""What a worker runs, be it a thread, another process or another machine: the searches of some tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.blas import one_blas_thread
from pairflip.engines import Pair, RankTooSmall, Tick, WalkPlan, WalkResult, get_engine
from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.philox import address_keys
from pairflip.search.effort import kick_nanoseconds
from pairflip.search.exhaustive import best_support
from pairflip.search.portfolio import NO_FLIPS, settle
from pairflip.search.schedule import Schedule, forward_energies, scale_of
from pairflip.selection.tasks import ALL_ROWS, Grid, Outcome, Task
from pairflip.supports import Ints
from pairflip.text import numbered

FORMED = 500
"""Columns up to which a short search forms the matrix of its inner products."""
NO_STEPS = np.empty((0, 2, 0))
_FIRST_HALF = 1 << 30  # address of the first half-sample, beyond all folds
_KICKING_NS = 5e8  # what kicks of one chain of one size may take in a fold of a wide table,
_MANY_SIZES = 10  # and less where there are more sizes
_SHOWN_CHAINS = 16  # of an annealed final fit whose course is kept, for the figures


class TooFewColumns(ValueError):
    """A fold has fewer linearly independent columns than a size asks for."""


class Halted(Exception):
    """The run that a task belongs to was given up."""


@dataclass
class Stop:
    """Tells the threads of a run that it was given up; another process has a copy, which is never told."""

    wanted: bool = False

    def tick(self, _: int = 0) -> None:
        """End the search that calls this now and then."""
        if self.wanted:
            raise Halted


@one_blas_thread()  # more would round differently
def run_batch(grid: Grid, tasks: Sequence[Task], stop: Stop | None = None, engine: str | None = None) -> list[Outcome]:
    """What the chains of all tasks found; tasks of one fold that follow each other share its form."""
    walker = get_engine(engine or grid.engine)
    tick = (stop or Stop()).tick
    outcomes = []
    for fold, group in groupby(tasks, key=lambda task: task.fold):
        form, of_fold = training_form(grid, fold), list(group)
        if grid.schedule is None:
            outcomes += _descents(grid, of_fold, form, walker, tick)
            continue
        for task, plan in zip(of_fold, annealing_plans(grid, of_fold, form), strict=True):
            if task.size >= form.n_columns:
                outcomes.append(_all_columns(grid, task, form))
                continue
            try:
                (walked,) = walker.walk([(form, plan)], tick=tick)
            except RankTooSmall as error:
                outcomes.append(_none(grid, task, error.rank))
                continue
            outcomes.append(annealed(task, form, plan, walked))
    return outcomes


def training_form(grid: Grid, fold: int) -> Form:
    """The problem of one fold."""
    # Half-samples are searched so shortly that forming the matrix of a wide one would take longer.
    problem, sparing = grid.problem, grid.half_samples
    if fold == ALL_ROWS:
        return problem.form
    left_out = grid.folds.left_out[fold]
    form = problem.held_out(left_out, anew=sparing and 3 * left_out.size > problem.rows_present)
    if sparing and form.n_columns > FORMED:
        form.dense = False  # the few rows of the matrix that are looked at come from the columns
    return form


# Path, descents and kicks ---------------------------------------------------------------------------------------------


def _descents(grid: Grid, tasks: Sequence[Task], form: Form, walker: Any, tick: Tick) -> list[Outcome]:
    """Outcomes of tasks of one fold: chain 0 of a size starts from the path, the others from random supports."""
    final, n = tasks[0].fold == ALL_ROWS, form.n_columns
    effort = grid.final_effort if final else grid.in_fold
    enumerable = set() if final else {k for k in grid.exact if k < n and (form.dense or k == 1)}
    exact = {task.size: best_support(form, task.size) for task in tasks if task.size in enumerable}
    path: list[Ints] = []
    low = np.zeros(0)
    affordable = _KICKING_NS * min(1.0, _MANY_SIZES / len(grid.sizes))
    # A random start takes k exchanges to descend from, a kick about three.
    random_start = {task.size: task.size / 3 * kick_nanoseconds(form, task.size) <= affordable for task in tasks}
    if any(
        task.size not in exact and (not task.first or task.size >= n or not random_start[task.size]) for task in tasks
    ):
        path, low = walker.path(form, max(grid.sizes), passes=effort.passes, tick=tick)
    outcomes, pairs, places = list[Outcome](), list[Pair](), []
    for task, keys in zip(tasks, _keys(grid, tasks), strict=True):
        k, chains, from_path = task.size, task.last - task.first, int(task.first == 0)
        best = exact.get(k)
        if k in exact and best is None:
            outcomes.append(_none(grid, task, form.rank()))
            continue
        if k not in exact and (from_path or k >= n or not random_start[k]) and len(path) < k:
            outcomes.append(_none(grid, task, len(path)))
            continue
        supports, energies = np.empty((chains, k), dtype=np.int64), np.empty(chains)
        outcomes.append(Outcome(task, supports, energies, NO_STEPS))
        if best is not None:
            supports[:], energies[:] = form.candidates[best[0]], best[1]
            continue
        if k == n:
            supports[:], energies[:] = form.candidates, low[k - 1]
            continue
        others = None if random_start[k] else np.tile(path[k - 1], (chains - from_path, 1))
        starts: list[tuple[slice, Any]] = [(slice(from_path, chains), others)] if chains > from_path else []
        if from_path:
            supports[0], energies[0] = form.candidates[path[k - 1]], low[k - 1]
            starts += [(slice(0, 1), path[k - 1][None])] if effort.kicks else []
        for part, start in starts:
            descent = effort.descent(k, from_path=start is not None)
            # Fewer kicks on tables so wide that each takes long, and where energies take long.
            descent = replace(descent, kicks=min(descent.kicks, int(affordable / kick_nanoseconds(form, k))))
            if not random_start[k]:
                descent = replace(descent, pool=1)
            if not form.quadratic or (form.grouped and not final):
                descent = effort.costly_descent(k)
            pairs.append((form, WalkPlan(k, *NO_FLIPS, keys[part], start, descent)))
            places.append((supports, energies, part))
    try:
        walked_pairs = walker.walk(pairs, tick=tick) if pairs else []
    except RankTooSmall as error:
        smaller = [task for task in tasks if task.size < error.k]
        found = _descents(grid, smaller, form, walker, tick) if smaller else []
        return found + [_none(grid, task, error.rank) for task in tasks if task.size >= error.k]
    for (supports, energies, part), walked in zip(places, walked_pairs, strict=True):
        supports[part], energies[part] = form.candidates[walked.support], walked.final_energy
    return outcomes


def _keys(grid: Grid, tasks: Sequence[Task]) -> list[NDArray[np.uint32]]:
    """The keys (chains, 2) of the chains of each task, by their addresses (seed, size, fold, chain)."""
    counts = [task.last - task.first for task in tasks]
    sizes = np.repeat([task.size for task in tasks], counts)
    first = _FIRST_HALF if grid.half_samples else 0
    addresses = [task.fold if task.fold == ALL_ROWS else first + task.fold for task in tasks]
    chains = np.concatenate([np.arange(task.first, task.last) for task in tasks])
    return np.split(address_keys(grid.seed, sizes, np.repeat(addresses, counts), chains), np.cumsum(counts)[:-1])


# Annealing ------------------------------------------------------------------------------------------------------------


def annealing_plans(grid: Grid, tasks: Sequence[Task], form: Form) -> list[WalkPlan]:
    """The chains of each task of one fold."""
    schedule = grid.schedule
    assert schedule is not None
    betas, flips = temperatures(schedule, form, {task.size for task in tasks}), schedule.flips(form.n_columns)
    keys = _keys(grid, tasks)
    return [WalkPlan(task.size, betas[task.size], flips, key) for task, key in zip(tasks, keys, strict=True)]


def temperatures(schedule: Schedule, form: Form, sizes: Iterable[int]) -> dict[int, Floats]:
    """The betas (steps,) of each size on this problem; their unit comes from these rows and no others."""
    if schedule.unit != "greedy":
        return dict.fromkeys(sizes, schedule.absolute_betas(1.0))
    greedy = forward_energies(form, max(sizes))
    return {size: schedule.absolute_betas(scale_of(greedy[: size + 1])) for size in sizes}


def annealed(task: Task, form: Form, plan: WalkPlan, walked: WalkResult) -> Outcome:
    """What annealing found, judged by QR."""
    supports, energies = settle(form, walked)
    steps = NO_STEPS
    if task.fold == ALL_ROWS:
        shown = max(0, min(task.last, _SHOWN_CHAINS) - task.first)
        steps = np.stack([walked.energy[:shown], walked.accepted[:shown] / plan.flips], axis=1)
    return Outcome(task, form.candidates[supports], energies, steps)


def _all_columns(grid: Grid, task: Task, form: Form) -> Outcome:
    """The support of all columns, which needs no search."""
    energy, chains = form.energy(np.arange(form.n_columns)), task.last - task.first
    if task.size > form.n_columns or not np.isfinite(energy):
        return _none(grid, task, form.rank())
    return Outcome(task, np.tile(form.candidates, (chains, 1)), np.full(chains, energy), NO_STEPS)


def _none(grid: Grid, task: Task, rank: int) -> Outcome:
    """That a fold has no support of a size, as infinite energies; refused where no smaller size is asked for."""
    if task.size > min(grid.sizes):
        chains = task.last - task.first
        return Outcome(task, np.zeros((chains, task.size), np.int64), np.full(chains, np.inf), NO_STEPS)
    where = "the table" if task.fold == ALL_ROWS else f"{numbered('fold', task.fold)} (without its held-out rows)"
    rules = " that keep the rules together" if grid.problem.limits.ruled else ""
    raise TooFewColumns(
        f"size {task.size} was asked for, but {where} has only {rank} linearly independent candidate "
        f"{grid.problem.form.what}{rules}; expected sizes up to {rank}."
    )
