"""The task grid: every (size, fold, chain) has a place of its own, whoever walks it and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.crossval.folds import Folds
from pairflip.crossval.settings import Selection
from pairflip.engines.base import flip_nanoseconds
from pairflip.problem import SubsetProblem
from pairflip.schedule import Schedule

ALL_ROWS = -1
"""In place of a fold: no row is left out (the final fit)."""


@dataclass(frozen=True)
class Task:
    """Chains `first` to `last` - 1 of one size in one fold: the smallest piece of work that is handed out."""

    size: int
    fold: int
    first: int
    last: int


class Stop:
    """Says to the threads of a run that it was given up; another process has one of its own."""

    def __init__(self) -> None:
        self.wanted = False

    def __reduce__(self) -> tuple[type[Stop], tuple[()]]:
        return Stop, ()


@dataclass(frozen=True)
class Work:
    """All that a worker needs to know, sent to it once.

    `sizes` and `chains` are those of the selection, fitted to the table: `chains` walk each size in a fold,
    `final_chains` (S,) on all rows. What the schedule means in a fold, its temperatures and numbers of flips, follows
    from the training rows of the fold (`walks.plans`).
    """

    problem: SubsetProblem
    selection: Selection
    folds: Folds
    sizes: tuple[int, ...]
    chains: int
    final_chains: tuple[int, ...]
    engine: Any
    stop: Stop = field(default_factory=lambda: Stop())

    @property
    def schedule(self) -> Schedule:
        """How chains are cooled."""
        return self.selection.plan

    @property
    def settings(self) -> dict[str, Any]:
        """All that determines the result beside the data: the selection, fitted to the table, and the model."""
        problem = self.problem
        return self.selection.to_dict() | {
            "sizes": list(self.sizes),
            "cv": self.folds.how,
            "chains": self.chains,
            "final_chains": list(self.final_chains),
            "center": problem.center,
            "always": [problem.names[j] for j in problem.always],
            "ridge": problem.ridge,
        }

    @property
    def flips(self) -> NDArray[np.int64]:
        """Attempted flips (steps,) of a chain on all rows."""
        return self.schedule.flips(self.problem.gram.n_columns)

    def __sizeof__(self) -> int:
        """Bytes of the arrays: a cluster's scheduler asks, and sends what is large only once."""
        gram = self.problem.gram
        return int(self.problem.X.nbytes + gram.columns.nbytes + (8 * gram.n_columns**2 if gram.dense else 0))

    def chains_of(self, size: int, fold: int) -> int:
        """How many chains walk a size in a fold."""
        return self.final_chains[self.sizes.index(size)] if fold == ALL_ROWS else self.chains

    def grid(self) -> Iterator[tuple[int, int]]:
        """Every (size, fold), fold by fold, the final fit first."""
        for fold in (ALL_ROWS, *range(len(self.folds))):
            for size in self.sizes:
                yield size, fold

    def nanoseconds(self, size: int, chains: int) -> float:
        """Estimated time of a task on one core, by the cost model (it sets batches, never results)."""
        return chains * (int(self.flips.sum()) * flip_nanoseconds(self.problem.gram, size) / 2.0 + 1e5)


Job = tuple[Work, Sequence[Task]]
"""The tasks of one problem."""


def missing(work: Work, done: set[tuple[int, int, int]], shard: tuple[int, int] = (1, 1)) -> list[Task]:
    """What remains to be done of a shard, as runs of chains; a shard owns every `of`-th (size, fold)."""
    part, of = shard
    tasks = []
    for place, (size, fold) in enumerate(work.grid()):
        if place % of != part - 1:
            continue
        open_chains = [c for c in range(work.chains_of(size, fold)) if (size, fold, c) not in done]
        for first, last in _runs(open_chains):
            tasks.append(Task(size, fold, first, last))
    return tasks


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Consecutive numbers as (first, last + 1)."""
    start = 0
    for i in range(1, len(numbers) + 1):
        if i == len(numbers) or numbers[i] != numbers[i - 1] + 1:
            yield numbers[start], numbers[i - 1] + 1
            start = i


def batches(work: Work, tasks: Iterable[Task], target_ns: float) -> list[list[Task]]:
    """Tasks in their order, joined until a batch takes about `target_ns`, split where one alone takes longer."""
    result: list[list[Task]] = []
    batch: list[Task] = []
    filled = 0.0
    for task in tasks:
        per_chain = work.nanoseconds(task.size, 1)
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
