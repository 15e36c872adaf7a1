"""From a selection and a problem to the whole task grid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pairflip.annealing import check_size, count_chains
from pairflip.crossval.folds import as_folds
from pairflip.crossval.settings import Selection
from pairflip.crossval.tasks import Work
from pairflip.engines import Engine, get_engine
from pairflip.engines.base import flip_nanoseconds
from pairflip.engines.blas import one_blas_thread
from pairflip.gram import Gram
from pairflip.problem import SubsetProblem

_CELL_NS = 5e7  # what the chains of one fold may take by default
DEFAULT_LARGEST = 10


@one_blas_thread()  # more would round differently
def plan_work(problem: SubsetProblem, selection: Selection, engine: str | Engine, groups: ArrayLike | None) -> Work:
    """Everything checked against the table, and the grid of tasks fixed."""
    if not isinstance(problem, SubsetProblem):
        raise TypeError(f"problem is a {type(problem).__name__}; expected a pairflip.SubsetProblem.")
    get_engine(engine)
    folds = as_folds(selection.cv, problem, groups)
    wanted = check_sizes(problem, selection.sizes, min(problem.rows_present - f.size for f in folds.left_out))
    gram = problem.gram
    flips = int(selection.plan.flips(gram.n_columns).sum())
    return Work(
        problem=problem,
        selection=selection,
        folds=folds,
        sizes=wanted,
        chains=fold_chains(gram, wanted[-1], flips) if selection.chains is None else selection.chains,
        final_chains=tuple(count_chains(selection.chains, gram, k, flips) for k in wanted),
        engine=engine,
    )


def fold_chains(gram: Gram, k: int, flips: int) -> int:
    """Chains in a fold by default: what takes about 0.05 s by a cost model, but at least 8 and at most 16.

    With fewer, some folds miss their best columns, and the held-out error comes out too high.
    """
    return int(np.clip(_CELL_NS / (flips * flip_nanoseconds(gram, k)), 8, 16))


def check_sizes(problem: SubsetProblem, sizes: Any, fewest_rows: int) -> tuple[int, ...]:
    """Sizes, sorted, each once; `fewest_rows` are left in the largest fold's training rows."""
    n = int(problem.candidates.size)
    room = fewest_rows - problem.forced.shape[1]
    if sizes is None:
        return tuple(range(1, max(1, min(DEFAULT_LARGEST, n, room - 1)) + 1))
    allowed = f"from 1 to {max(1, n if problem.ridge > 0 else min(n, room))}"
    for size in sizes:
        if isinstance(size, (bool, np.bool_)) or not isinstance(size, (int, np.integer)):
            raise TypeError(f"sizes (--sizes) holds {size!r}; expected whole numbers of columns {allowed}.")
    if min(sizes) < 1:
        raise ValueError(f"sizes (--sizes) holds {min(sizes)}; expected numbers of columns {allowed}.")
    if max(sizes) > n:
        columns = "1 candidate column that varies" if n == 1 else f"{n} candidate columns that vary"
        raise ValueError(f"sizes (--sizes) holds {max(sizes)}, but the table has {columns}; expected sizes {allowed}.")
    wanted = [n if size == n else check_size(problem, size) for size in sizes]
    largest = max(wanted)
    if largest > room and problem.ridge == 0:
        forced = problem.forced.shape[1]
        beside = f" and {forced} coefficient{'s' * (forced != 1)} fitted anyway" if forced else ""
        raise ValueError(
            f"size {largest} was asked for, but a fold has {fewest_rows} rows to learn from{beside}; "
            f"expected sizes up to {max(room, 0)}."
        )
    return tuple(sorted(set(wanted)))
