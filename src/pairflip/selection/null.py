"""What noise would give: the same selection at the same size, on the same table with its target shuffled.

Where the target cannot depend on the columns, explained variance and stability are those of chance: of this table, with
its rows, columns and correlations, and of this way of selecting. With forced columns (other than the constant)
what they leave of the target is shuffled. Rows are shuffled one by one, also where they belong together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.losses.held_out import HeldOutErrors
from pairflip.philox import address_keys, start_order
from pairflip.problem import SubsetProblem
from pairflip.search.portfolio import first_best
from pairflip.selection.curve import NullCheck
from pairflip.selection.folds import Folds
from pairflip.selection.halves import (
    best_of_all_rows,
    half_identity,
    half_samples,
    half_work,
    search_all,
    supports_of,
)
from pairflip.selection.loop import Folder
from pairflip.selection.progress import Show
from pairflip.selection.stability import check_room, summarize
from pairflip.selection.tasks import Work
from pairflip.selection.verdict import explained_fraction
from pairflip.selection.walks import FORMED

NULL_FOLDER = "shuffled"
PAIRS = 50
"""Pairs of half-samples for each shuffled target where the selection itself asks for none."""
_SHUFFLES = 0  # in place of a fold, at size 0: where the halves have all rows


def shuffled(problem: SubsetProblem, seed: int, number: int) -> SubsetProblem:
    """The same table with a shuffled target."""
    present = np.flatnonzero(problem.sample_weight > 0)
    (key,) = address_keys(seed, 0, _SHUFFLES, [number])
    form, root = problem.form.working, np.sqrt(problem.sample_weight[present])
    left = form.targets[present] * form.target_scale / root[:, None]
    y = problem.targets.copy()
    y[present] += left[start_order(key, present.size)] - left  # several targets stay together
    other = SubsetProblem(
        problem.X,
        y if problem.target_names else y[:, 0],
        names=problem.column_names,
        center=problem.center,
        always=problem.always.tolist(),
        sample_weight=problem.sample_weight,
        ridge=problem.ridge,
        memory_budget=problem.memory_budget,
        **problem.target_options(),
        **problem.limits.arguments(),
    )
    if other.form.n_columns > FORMED:
        other.form.dense = False
    return other.with_shrinkage(problem.shrinkage)


def null_check(
    work: Work,
    size: int,
    *,
    groups: ArrayLike | None,
    journal: Folder | None,
    n_jobs: int | None,
    progress: Show,
) -> NullCheck:
    """Shuffle the target as often as the selection says, and search folds, halves and all rows each time."""
    from pathlib import Path

    chosen, folds = work.selection, work.folds
    pairs = chosen.stability or PAIRS  # as many as for the target itself: the highest frequency depends on it
    halves = half_samples(work.problem, pairs, chosen.seed, groups, chosen.cv)
    check_room(work.problem, (size,), halves)
    both = Folds((*folds.rows, *halves.rows), (*folds.left_out, *halves.left_out), "folds and random halves", True)
    rows = []
    for number in range(chosen.null):
        problem = shuffled(work.problem, chosen.seed, number)
        grid = half_work(problem, size, both, seed=chosen.seed, engine=work.engine, effort=chosen.effort, final=True)
        folder = None if journal is None else Path(journal) / f"{number:04d}"
        whose = half_identity(grid, both.first(len(folds) + 2))
        found = search_all(grid, whose, folder, n_jobs, progress)
        r2 = _explained(problem, folds, supports_of(grid, found, range(len(folds))))
        supports = supports_of(grid, found, range(len(folds), len(both)))
        halved = summarize(problem, halves, (size,), [best_of_all_rows(grid, found)], [supports])
        rows.append((r2, halved.set_frequency[0], halved.overlap[0], halved.frequencies.max()))
    r2s, sets, overlaps, highest = np.array(rows).T
    return NullCheck(size, pairs, r2s, sets, overlaps, highest)


def _explained(problem: SubsetProblem, folds: Folds, supports: NDArray[np.int64]) -> float:
    """R2 of held-out rows by the chain of each fold that has the lowest energy; supports (F, C, k)."""
    errors = problem.loss.held_out(problem, folds)
    by_chain, energies = errors.judged(supports)
    best = np.array([first_best(e, yy) for e, yy in zip(energies, errors.yy, strict=True)])
    q = max(1, len(problem.target_names))  # predictions of a row, those of each target
    fold, observed, weights = folds.fold.repeat(q), problem.y[folds.row], problem.sample_weight[folds.row].repeat(q)
    if isinstance(errors, HeldOutErrors):
        observed = errors.observed  # in units of the training rows, as the errors are
    return explained_fraction(observed, by_chain[best[fold], np.arange(fold.size)], weights)
