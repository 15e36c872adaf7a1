"""The plan of a run as plain values: who searches which sizes in which folds, with what effort, task by task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pairflip.blas import one_blas_thread
from pairflip.engines import Engine, get_engine
from pairflip.engines.base import flip_nanoseconds
from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.problem import SubsetProblem, check_problem
from pairflip.search.best_subset import ON_THE_CPU
from pairflip.search.effort import (
    FEW_FOLD_EFFORTS,
    FEW_FOLDS,
    FINAL_EFFORTS,
    FOLD_EFFORTS,
    MANY_FOLDS,
    Effort,
    as_descent,
    check_engine,
    count_chains,
    kick_nanoseconds,
)
from pairflip.search.prove import is_solved
from pairflip.search.schedule import Schedule, as_schedule
from pairflip.selection.folds import DEFAULT_CV, Folds, Repeats, as_folds, check_learnable
from pairflip.selection.settings import Selection, check_sizes, model_settings
from pairflip.sparse import table_bytes
from pairflip.supports import Ints

ALL_ROWS = -1
"""In place of a fold: no row is left out (the final fit)."""
_FOLD_NS = 5e7  # what the annealing chains of one fold may take by default
_FOLDS, _FEWEST_TIMES, _OTHER_TIMES, _MOST_TIMES = 10, 5, 10, 100
"""Ten folds are repeated so often by default: with 50 repetitions the same size was chosen for four seeds on 91 % of 35
tables, with 25 on 86 %, with 5 and a longer search of each fold on 75 % (docs/decisions/020)."""
_PREDICTIONS = 20_000  # held-out predictions of a size beyond which rows make up for fewer repetitions
_SECONDS = 2.0  # for the paths of all folds, by the cost model


class Task(NamedTuple):
    """Chains `first` to `last` - 1 of one size in one fold: the smallest piece of work that is handed out."""

    size: int
    fold: int
    first: int
    last: int


class Outcome(NamedTuple):
    """What a task found: supports (chains, k) as column indices of X, and their energies."""

    task: Task
    supports: Ints
    energies: Floats
    steps: Floats  # (chains, 2, steps): energies and acceptances of the first chains annealed on all rows, else empty


@dataclass(frozen=True)
class Grid:
    """Every search of one problem: all sizes in all folds and on all rows."""

    problem: SubsetProblem
    folds: Folds
    sizes: tuple[int, ...]
    chains: int  # of each size in a fold
    final_chains: dict[int, int]  # of each size on all rows
    chain_ns: dict[int, float]  # what a chain of each size takes on one core, by the cost model
    exact: frozenset[int]  # sizes of which every support is looked at in the folds
    engine: Any
    seed: int
    schedule: Schedule | None  # of annealing; None: path, descents and kicks
    in_fold: Effort
    final_effort: Effort  # on all rows
    half_samples: bool  # in place of folds
    settings: dict[str, Any]  # all that determines the result apart from the data, for files and readers
    notes: tuple[str, ...]
    row_groups: Ints | None = None  # (M,), where rows belong together
    cv: Any = None  # how rows were left out, as `folds.parse_cv` gives it

    def __sizeof__(self) -> int:
        """Bytes of the arrays: a cluster's scheduler asks, and sends what is large only once."""
        form, copies = self.problem.form, 1 if self.problem.wide else 2
        return int(copies * table_bytes(self.problem.X) + (8 * form.n_columns**2 if form.dense else 0))


@one_blas_thread()  # more would round differently
def plan_work(problem: SubsetProblem, selection: Selection, engine: str | Engine, groups: ArrayLike | None) -> Grid:
    """The searches of a selection, everything checked against the table."""
    check_problem(problem)
    if not problem.form.quadratic or problem.form.grouped:
        if selection.null and not problem.loss.squared:
            raise ValueError(
                f"null (--null) is {selection.null} and loss is {problem.loss.name!r}; expected 0: shuffled targets "
                "are for squared error (the p-value in the answer is there for all)."
            )
        selection = replace(selection, method=as_descent(problem, selection.method))
    if not problem.form.plain:
        engine = check_engine(problem, engine)
    cv = _folds_of(selection, problem)
    folds = as_folds(cv, problem, groups, selection.seed)
    if not problem.loss.squared:
        check_learnable(problem, folds)
    fewest_rows = problem.rows_present - max(problem.count_rows(left_out) for left_out in folds.left_out)
    grid = _decide(problem, selection, folds, check_sizes(problem, selection.sizes, fewest_rows), engine)
    grid = replace(grid, cv=cv)
    if groups is None:
        return grid
    from pandas import factorize

    labels = np.array([str(label) for label in np.asarray(groups).tolist()], dtype=object)
    return replace(grid, row_groups=factorize(labels)[0].astype(np.int64))


def _folds_of(selection: Selection, problem: SubsetProblem) -> Any:
    """How rows are left out; "auto" is ten folds, repeated as often as is cheap: the path alone is searched in each."""
    if selection.cv != DEFAULT_CV:
        return selection.cv
    form, times = problem.form, _FEWEST_TIMES
    if form.quadratic and not form.grouped and selection.method != "anneal":
        most = _MOST_TIMES if selection.effort == "normal" else _OTHER_TIMES
        path = 3e-9 * sum(kick_nanoseconds(form, k) for k in range(1, 11))
        times = int(np.clip(min(_PREDICTIONS // problem.rows_present, _SECONDS / (_FOLDS * path)), times, most))
    condensed = problem.condensed
    return Repeats(times, min(_FOLDS, problem.rows_present if condensed is None else np.unique(condensed.block).size))


def plan_halves(
    problem: SubsetProblem, sizes: tuple[int, ...], folds: Folds, engine: str | Engine, final: bool = False, **how: Any
) -> Grid:
    """The searches of half-samples at some sizes, by settings of a selection; with `final`, also those on all rows."""
    selection = Selection(sizes, "loo", method="auto", **how)
    return _decide(problem, selection, folds, sizes, engine, halves=True, final=final)


def _decide(
    problem: SubsetProblem,
    selection: Selection,
    folds: Folds,
    sizes: tuple[int, ...],
    engine: str | Engine,
    halves: bool = False,
    final: bool = True,
) -> Grid:
    """Who searches, with what effort, and how many chains: decided here for folds, final fits and half-samples."""
    form, effort, anneals = problem.form, selection.effort, selection.method == "anneal"
    notes: tuple[str, ...] = ()
    if not (anneals or get_engine(engine).searches):
        engine, notes = "numba", (ON_THE_CPU,)
    in_fold = (FOLD_EFFORTS if halves or len(folds) > FEW_FOLDS else FEW_FOLD_EFFORTS)[effort]
    if len(folds) > MANY_FOLDS and not halves and effort == "normal":
        in_fold = FOLD_EFFORTS["quick"]
    schedule = as_schedule(selection.schedule) if anneals else None
    written = selection.to_dict()
    if schedule is None:
        del written["schedule"]
        chains, on_all_rows = in_fold.chains, FINAL_EFFORTS[effort]
        final_chains = {size: on_all_rows.n_chains(size, form.n_columns) * final for size in sizes}
        exact_allowed = selection.prove and problem.form.quadratic and (halves or len(folds) <= MANY_FOLDS)
    else:
        flips = int(schedule.flips(form.n_columns).sum())
        # With fewer than 8 chains some folds miss their best columns, and the held-out error comes out too high.
        affordable = int(np.clip(_FOLD_NS / (flips * flip_nanoseconds(form, sizes[-1])), 8, 16))
        chains = affordable if selection.chains is None else selection.chains
        final_chains = {size: count_chains(selection.chains, form, size, flips) for size in sizes}
        exact_allowed = False
    chain_ns = {size: chain_nanoseconds(form, size, schedule, in_fold) for size in sizes}
    return Grid(
        problem=problem,
        folds=folds,
        sizes=sizes,
        chains=chains,
        final_chains=final_chains,
        chain_ns=chain_ns,
        exact=frozenset(k for k in sizes if exact_allowed and is_solved(form, k, effort, chains * chain_ns[k])),
        engine=engine,
        seed=selection.seed,
        schedule=schedule,
        in_fold=in_fold,
        final_effort=FINAL_EFFORTS[effort],
        half_samples=halves,
        settings=written
        | {
            "sizes": list(sizes),
            "cv": folds.how,
            "chains": chains,
            "final_chains": list(final_chains.values()),
            "ridge": written["ridge"] or problem.ridge,
            **model_settings(problem),
        },
        notes=notes,
    )


def chain_nanoseconds(form: Form, size: int, schedule: Schedule | None, effort: Effort) -> float:
    """Cost model: what one chain takes on one core."""
    if schedule is None:
        descent = effort.descent(size, from_path=True) if form.plain else effort.costly_descent(size)
        return (3 + descent.kicks) * kick_nanoseconds(form, size) + 2e4
    # Half: the model is that of hot flips, and cold ones cost less. 0.1 ms to start a chain and judge its end.
    return int(schedule.flips(form.n_columns).sum()) * flip_nanoseconds(form, size) / 2.0 + 1e5


@dataclass
class Results:
    """What the chains of a grid found so far, and how some final fits were annealed."""

    grid: Grid
    cells: dict[tuple[int, bool], tuple[Ints, Floats]] = field(default_factory=dict)
    steps: dict[tuple[int, int], list[list[float]]] = field(default_factory=dict)  # of (size, chain) on all rows

    def add(self, outcome: Outcome) -> None:
        """Take in what a task found."""
        size, fold, first, last = outcome.task
        supports, energies = self.of(size, final=fold == ALL_ROWS)
        at = max(fold, 0), slice(first, last)
        supports[at], energies[at] = outcome.supports, outcome.energies
        for chain, course in enumerate(outcome.steps, start=first):
            self.steps[size, chain] = course.tolist()

    def of(self, size: int, final: bool = False) -> tuple[Ints, Floats]:
        """Supports (F, chains, k) and energies (F, chains) of one size; all rows are one fold; not-a-number: open."""
        if (size, final) not in self.cells:
            shape = (1, self.grid.final_chains[size]) if final else (len(self.grid.folds), self.grid.chains)
            self.cells[size, final] = np.zeros((*shape, size), np.int64), np.full(shape, np.nan)
        return self.cells[size, final]

    @property
    def n_chains(self) -> int:
        """How many chains are finished."""
        return sum(int(np.count_nonzero(np.isfinite(energies))) for _, energies in self.cells.values())

    def up_to(self, most: int) -> Results:
        """The sizes up to `most` of which every fold has a support, with a note about those that a fold lacks."""
        grid, notes = self.grid, self.grid.notes
        for size in grid.sizes:
            in_table, in_folds = (np.isinf(self.of(size, final)[1]).any(axis=1) for final in (True, False))
            if in_table.any() or in_folds.any():
                where = "the table" if in_table.any() else f"{in_folds.sum()} of {in_folds.size} folds"
                what = f"{grid.problem.form.what} that are linearly independent to working precision"
                notes = (*notes, f"sizes from {size} on are left out: in {where} there are no {size} {what}")
                most = min(most, size - 1)
                break
        return replace(self, grid=replace(grid, sizes=tuple(k for k in grid.sizes if k <= most), notes=notes))


def missing(results: Results, shard: tuple[int, int] = (1, 1)) -> list[Task]:
    """What remains to be done of a shard, fold by fold, the final fits first, as runs of chains."""
    (part, of), grid, tasks = shard, results.grid, []
    for row, fold in enumerate((ALL_ROWS, *range(len(grid.folds)))):
        for column, size in enumerate(grid.sizes):
            # A path runs over all sizes of a fold, so that these stay together.
            place = row if grid.schedule is None else row * len(grid.sizes) + column
            if place % of != part - 1:
                continue
            if (size, fold == ALL_ROWS) not in results.cells:
                chains = grid.final_chains[size] if fold == ALL_ROWS else grid.chains
                tasks += [Task(size, fold, 0, chains)] * (chains > 0)  # half-samples have no final fits
                continue
            _, energies = results.of(size, fold == ALL_ROWS)
            still_open = np.flatnonzero(np.isnan(energies[max(fold, 0)]))
            runs = np.split(still_open, np.flatnonzero(np.diff(still_open) > 1) + 1)
            tasks += [Task(size, fold, int(run[0]), int(run[-1]) + 1) for run in runs if run.size]
    return tasks


def batches(grid: Grid, tasks: Iterable[Task], target_ns: float) -> list[list[Task]]:
    """Tasks in order, joined or split so that a batch takes about `target_ns`; paths keep folds whole."""
    result: list[list[Task]] = []
    filled, whole_folds = np.inf, grid.schedule is None
    for task in tasks:
        chain_ns = grid.chain_ns[task.size]
        step = task.last - task.first if whole_folds else max(1, int(target_ns / chain_ns))
        for first in range(task.first, task.last, step):
            piece = task._replace(first=first, last=min(first + step, task.last))
            if filled >= target_ns and not (whole_folds and result and result[-1][-1].fold == task.fold):
                result.append([])
                filled = 0.0
            result[-1].append(piece)
            filled += chain_ns * (piece.last - piece.first)
    return result


def n_chains(tasks: Sequence[Task]) -> int:
    """Chains of all tasks."""
    return sum(task.last - task.first for task in tasks)
