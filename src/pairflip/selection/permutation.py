"""What noise would give: the same selection at the same size, on the same table with its target shuffled.

Where the target cannot depend on the columns, explained variance and stability are those of chance: of this table, with
its rows, columns and correlations, and of this way of selecting. With forced columns (other than the constant)
what they leave of the target is shuffled. Rows are shuffled one by one, also where they belong together.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from pairflip.journal_file import Folder
from pairflip.losses.held_out import HeldOutErrors
from pairflip.philox import address_keys, start_order
from pairflip.problem import SubsetProblem
from pairflip.search.portfolio import first_best
from pairflip.selection.curve import NullCheck
from pairflip.selection.folds import Folds
from pairflip.selection.outer import rebuilt
from pairflip.selection.progress import Show
from pairflip.selection.settings import Selection
from pairflip.selection.stability import check_room, summarize
from pairflip.selection.subsampling import half_samples, search_halves
from pairflip.selection.tasks import Grid
from pairflip.selection.verdict import explained_fraction
from pairflip.selection.worker import FORMED

SHUFFLED_FOLDER = "shuffled"
PAIRS = 50
"""Pairs of half-samples for each shuffled target where the selection itself asks for none."""
_SHUFFLES = 0  # in place of a fold, at size 0: where the halves have all rows


def shuffled(problem: SubsetProblem, seed: int, number: int) -> SubsetProblem:
    """The same table with a shuffled target."""
    present = np.flatnonzero(problem.sample_weight > 0)
    (key,) = address_keys(seed, 0, _SHUFFLES, [number])
    form, root = problem.form.working, np.sqrt(problem.sample_weight[present])
    unexplained = form.targets[present] * form.target_scale / root[:, None]  # by the forced columns
    y = problem.targets.copy()
    y[present] += unexplained[start_order(key, present.size)] - unexplained  # several targets stay together
    other = rebuilt(problem, slice(None), y if problem.target_names else y[:, 0])
    if other.form.n_columns > FORMED:
        other.form.dense = False
    return other


def permutation_check(
    grid: Grid,
    selection: Selection,
    size: int,
    *,
    groups: ArrayLike | None,
    journal: Folder | None,
    n_jobs: int | None,
    progress: Show,
) -> NullCheck:
    """Shuffle the target as often as the selection says, and search folds, halves and all rows each time."""
    folds, n_folds = grid.folds, len(grid.folds)
    pairs = selection.stability or PAIRS  # as many as for the target itself: the highest frequency depends on it
    halves = half_samples(grid.problem, pairs, selection.seed, groups, selection.cv)
    check_room(grid.problem, (size,), halves)
    both = Folds((*folds.rows, *halves.rows), (*folds.left_out, *halves.left_out), "folds and random halves", True)
    rows = []
    for number in range(selection.null):
        problem = shuffled(grid.problem, selection.seed, number)
        every, best = search_halves(
            problem,
            size,
            both,
            seed=selection.seed,
            engine=grid.search.engine,
            effort=selection.effort,
            journal=None if journal is None else Path(journal) / f"{number:04d}",
            n_jobs=n_jobs,
            progress=progress,
            final=True,
            first_folds=n_folds + 2,
        )
        errors = problem.loss.held_out(problem, folds)
        by_chain, energies = errors.judged(every[:n_folds])
        q = max(1, len(problem.target_names))  # predictions of a row, those of each target
        fold, weights = folds.fold.repeat(q), problem.sample_weight[folds.row].repeat(q)
        residuals = by_chain[first_best(energies, errors.yy)[fold], np.arange(fold.size)]
        # In units of the training rows, as the errors are, where there are such units.
        observed = errors.observed if isinstance(errors, HeldOutErrors) else problem.y[folds.row]
        r2 = explained_fraction(observed, residuals, weights)
        halved = summarize(problem, halves, (size,), [best], [every[n_folds:]])
        rows.append((r2, halved.set_frequency[0], halved.overlap[0], halved.frequencies.max()))
    r2s, sets, overlaps, highest = np.array(rows).T
    return NullCheck(size, pairs, r2s, sets, overlaps, highest)
