"""The task grid: from a selection and a problem to all chains that are to be walked, and the identity of the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.engines import Engine, get_engine
from pairflip.engines.base import flip_nanoseconds
from pairflip.engines.blas import one_blas_thread
from pairflip.losses.base import HeldOutJudge
from pairflip.moments import Form
from pairflip.problem import SubsetProblem
from pairflip.search.automatic_proof import is_solved
from pairflip.search.best_subset import ON_THE_CPU
from pairflip.search.effort import (
    FINAL_EFFORTS,
    FOLD_EFFORTS,
    Effort,
    check_engine,
    count_chains,
    effort_in_folds,
    kick_nanoseconds,
    work_of,
)
from pairflip.search.schedule import Schedule
from pairflip.selection.allowed_sizes import check_sizes
from pairflip.selection.by_loss import by_descents, check_learnable, loss_settings
from pairflip.selection.folds import Folds, as_folds
from pairflip.selection.settings import Selection

ALL_ROWS = -1
"""In place of a fold: no row is left out (the final fit)."""


class Task(NamedTuple):
    """Chains `first` to `last` - 1 of one size in one fold: the smallest piece of work that is handed out."""

    size: int
    fold: int
    first: int
    last: int


class Tasks(Sequence[Task]):
    """Tasks as rows (size, fold, first, last) of a table: of hundreds of thousands, each is made when it is asked for.

    Parameters
    ----------
    table : (n, 4)
        The rows.
    """

    def __init__(self, table: NDArray[np.int64]) -> None:
        self.table = table

    @classmethod
    def of(cls, tasks: Sequence[Task]) -> Tasks:
        """The same tasks."""
        return tasks if isinstance(tasks, Tasks) else cls(np.array(tasks, dtype=np.int64).reshape(-1, 4))

    @property
    def chains(self) -> int:
        """Chains of all of them."""
        return int((self.table[:, 3] - self.table[:, 2]).sum())

    def __len__(self) -> int:
        return len(self.table)

    @overload
    def __getitem__(self, at: int) -> Task: ...
    @overload
    def __getitem__(self, at: slice) -> Tasks: ...
    def __getitem__(self, at: int | slice) -> Task | Tasks:
        return Tasks(self.table[at]) if isinstance(at, slice) else Task(*self.table[at].tolist())

    def __iter__(self) -> Iterator[Task]:
        return (Task(*row) for row in self.table.tolist())


class Stop:
    """Tells the threads of a run that it was given up; another process has one of its own."""

    def __init__(self) -> None:
        self.wanted = False

    def __reduce__(self) -> tuple[type[Stop], tuple[()]]:
        return Stop, ()


@dataclass(frozen=True)
class Work:
    """All that a worker needs to know, sent to it once.

    `sizes` and `chains` are those of the selection, fitted to the table: `chains` walk each size in a fold,
    `final_chains` (S,) on all rows. What the schedule means in a fold, its temperatures and numbers of flips, follows
    from the training rows of the fold (`walks.plans`). `sparing`: searches are so short that forming the matrix of a
    fold would take longer, where there are many columns. `first_address` is added to the numbers of folds in the
    addresses of their random numbers, which are then not those of other folds.
    """

    problem: SubsetProblem
    selection: Selection
    folds: Folds
    sizes: tuple[int, ...]
    chains: int
    final_chains: tuple[int, ...]
    engine: Any
    notes: tuple[str, ...] = ()
    sparing: bool = False
    first_address: int = 0
    stop: Stop = field(default_factory=lambda: Stop())

    @property
    def schedule(self) -> Schedule:
        """How chains are cooled."""
        return self.selection.plan

    @property
    def fold_effort(self) -> Effort:
        """What the search of a fold does; that of half-samples does not depend on how many there are."""
        named = self.selection.effort
        return FOLD_EFFORTS[named] if self.sparing else effort_in_folds(named, len(self.folds))

    @property
    def settings(self) -> dict[str, Any]:
        """All that determines the result apart from the data: the selection, fitted to the table, and the model."""
        problem = self.problem
        chosen = self.selection.to_dict()
        if not self.selection.anneals:
            del chosen["schedule"]
        return chosen | {
            "sizes": list(self.sizes),
            "cv": self.folds.how,
            "chains": self.chains,
            "final_chains": list(self.final_chains),
            "center": problem.center,
            "always": [problem.names[j] for j in problem.always],
            "ridge": chosen["ridge"] or problem.ridge,
            **loss_settings(problem),
        }

    @cached_property
    def flips(self) -> NDArray[np.int64]:
        """Attempted flips (steps,) of a chain on all rows."""
        return self.schedule.flips(self.problem.form.n_columns)

    @cached_property
    def errors(self) -> HeldOutJudge:
        """Of held-out rows, under supports that were fitted without them."""
        return self.problem.loss.held_out(self.problem, self.folds)

    def __sizeof__(self) -> int:
        """Bytes of the arrays: a cluster's scheduler asks, and sends what is large only once."""
        form = self.problem.form
        return int(self.problem.X.nbytes + form.nbytes + (8 * form.n_columns**2 if form.dense else 0))

    def solves(self, size: int) -> bool:
        """Whether folds of this size are solved by looking at every support, by the size of the table alone."""
        chosen = self.selection
        if chosen.anneals or not chosen.prove or not self.problem.has_proofs:
            return False
        return is_solved(self.problem.form, size, chosen.effort, self.nanoseconds(size, self.chains))

    def chains_of(self, size: int, fold: int) -> int:
        """How many chains walk a size in a fold."""
        return self.final_chains[self.sizes.index(size)] if fold == ALL_ROWS else self.chains

    def grid(self) -> Iterator[tuple[int, int]]:
        """Every (size, fold), fold by fold, the final fit first."""
        for fold in (ALL_ROWS, *range(len(self.folds))):
            for size in self.sizes:
                yield size, fold

    def nanoseconds(self, size: int, chains: int) -> float:
        """Estimated time of a task on one core, by the cost model."""
        if not self.selection.anneals:
            effort = self.fold_effort
            plain = self.problem.form.plain
            descent = effort.descent(size, from_path=True) if plain else effort.costly_descent(size)
            kicks = 3 + descent.kicks
            return chains * (kicks * kick_nanoseconds(self.problem.form, size) + 2e4)
        # Half: the model is that of hot flips, and cold ones cost less. 0.1 ms to start a chain and judge its end.
        return chains * (int(self.flips.sum()) * flip_nanoseconds(self.problem.form, size) / 2.0 + 1e5)


Job = tuple[Work, Sequence[Task]]
"""The tasks of one problem."""


def missing(work: Work, done: set[tuple[int, int, int]], shard: tuple[int, int] = (1, 1)) -> Tasks:
    """What remains to be done of a shard, as runs of chains."""
    part, of = shard
    if not done and of == 1:
        final = [(size, ALL_ROWS, 0, n) for size, n in zip(work.sizes, work.final_chains, strict=True) if n]
        sizes, folds = len(work.sizes), len(work.folds)
        table = np.zeros((len(final) + sizes * folds, 4), np.int64)
        table[: len(final)] = np.array(final, np.int64).reshape(-1, 4)
        inside = table[len(final) :]
        inside[:, 0], inside[:, 1] = np.tile(work.sizes, folds), np.repeat(np.arange(folds), sizes)
        inside[:, 3] = work.chains
        return Tasks(table)
    tasks = []
    for place, (size, fold) in enumerate(work.grid()):
        # A path runs over all sizes of a fold, so that these stay together.
        if (place if work.selection.anneals else place // len(work.sizes)) % of != part - 1:
            continue
        chains = work.chains_of(size, fold)
        if chains == 0:  # half-samples have no final fits
            continue
        open_chains = [c for c in range(chains) if (size, fold, c) not in done] if done else range(chains)
        for first, last in [(0, chains)] if len(open_chains) == chains else _runs(open_chains):
            tasks.append(Task(size, fold, first, last))
    return Tasks.of(tasks)


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Consecutive numbers as (first, last + 1)."""
    start = 0
    for i in range(1, len(numbers) + 1):
        if i == len(numbers) or numbers[i] != numbers[i - 1] + 1:
            yield numbers[start], numbers[i - 1] + 1
            start = i


def batches(work: Work, tasks: Iterable[Task], target_ns: float) -> list[list[Task]]:
    """Tasks in their order, joined until a batch takes about `target_ns`, split where one alone takes longer.

    Where paths are followed, the tasks of a fold stay together.
    """
    result: list[list[Task]] = []
    batch: list[Task] = []
    filled, each = 0.0, {size: work.nanoseconds(size, 1) for size in work.sizes}
    for task in tasks:
        per_chain = each[task.size]
        if not work.selection.anneals:
            if batch and batch[-1].fold != task.fold and filled >= target_ns:
                result.append(batch)
                batch, filled = [], 0.0
            batch.append(task)
            filled += per_chain * (task.last - task.first)
            continue
        step = max(1, int(target_ns / per_chain))
        for first in range(task.first, task.last, step):
            piece = Task(task.size, task.fold, first, min(first + step, task.last))
            batch.append(piece)
            filled += per_chain * (piece.last - piece.first)
            if filled >= target_ns:
                result.append(batch)
                batch, filled = [], 0.0
    if batch:
        result.append(batch)
    return result


def parse_shard(shard: str | tuple[int, int]) -> tuple[int, int]:
    """(3, 64) from "3/64": the third of 64 parts."""
    try:
        part, of = (int(n) for n in (shard.split("/") if isinstance(shard, str) else shard))
    except (ValueError, TypeError):
        part, of = 0, 0
    if not 1 <= part <= of:
        raise ValueError(f"shard is {shard!r}; expected 'part/of' with 1 <= part <= of, for instance '3/64'.")
    return part, of


_CELL_NS = 5e7  # what the chains of one fold may take by default


@one_blas_thread()  # more would round differently
def plan_work(problem: SubsetProblem, selection: Selection, engine: str | Engine, groups: ArrayLike | None) -> Work:
    """Check everything against the table, and fix the grid of tasks."""
    if not isinstance(problem, SubsetProblem):
        raise TypeError(f"problem is a {type(problem).__name__}; expected a pairflip.SubsetProblem.")
    if not problem.can_anneal:
        selection = by_descents(problem, selection)
    if not problem.form.plain:
        engine = check_engine(problem, engine)
    notes: tuple[str, ...] = ()
    if not (selection.anneals or get_engine(engine).searches):
        engine, notes = "numba", (ON_THE_CPU,)
    folds = as_folds(selection.cv, problem, groups, selection.seed)
    check_learnable(problem, folds)
    wanted = check_sizes(problem, selection.sizes, problem.rows_present - max(f.size for f in folds.left_out))
    form = problem.form
    flips = int(selection.plan.flips(form.n_columns).sum())
    if not selection.anneals:
        inside, final = FOLD_EFFORTS[selection.effort].chains, FINAL_EFFORTS[selection.effort].chains
        return Work(problem, selection, folds, wanted, inside, (final,) * len(wanted), engine, notes)
    return Work(
        problem=problem,
        selection=selection,
        folds=folds,
        sizes=wanted,
        chains=fold_chains(form, wanted[-1], flips) if selection.chains is None else selection.chains,
        final_chains=tuple(count_chains(selection.chains, form, k, flips) for k in wanted),
        engine=engine,
    )


def fold_chains(form: Form, k: int, flips: int) -> int:
    """Chains in a fold by default: what takes about 0.05 s by a cost model, but at least 8 and at most 16.

    With fewer, some folds miss their best columns, and the held-out error comes out too high.
    """
    return int(np.clip(_CELL_NS / (flips * flip_nanoseconds(form, k)), 8, 16))


_EXTENT = ("sizes", "chains", "final_chains", "polish", "stability", "stability_at", "null", "outer")
"""How much is walked and what is done afterwards: a chain depends on its own (seed, size, fold, chain) only."""
RIDGE_CHOSEN = "chosen with the size"
"""The ridge of a run that tries several, in its manifest: each has lines of its own, and more may be added later."""


def identity(work: Work) -> dict[str, Any]:
    """What a journal's manifest says: everything that a chain depends on apart from its address.

    Sizes and numbers of chains are left out, so a journal can be extended by more of them, or used for fewer; but a
    path depends on the largest size that it runs to, and its chains on what an effort stands for in this version.
    """
    unused = ("method", "effort", "prove") if work.selection.anneals else ()
    more: dict[str, Any] = {}
    if not work.selection.anneals:
        more = {"largest_size": max(work.sizes), "work": work_of(work.fold_effort)}
    if work.selection.ridges:
        more["ridge"] = RIDGE_CHOSEN
    return {
        "data": work.problem.hash,
        "rows": work.problem.n_rows,
        "columns": work.problem.n_columns,
        **{name: value for name, value in work.settings.items() if name not in _EXTENT + unused},
        **more,
        "folds": work.folds.hash,
    }
