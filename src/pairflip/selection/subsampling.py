"""Complementary pairs of random half-samples, and the search that each of them gets.

A half-sample is a fold whose left-out rows are all that are not in it, so that searches, journal and workers are those
of folds, with random numbers of their own. Pair b depends on (seed, b) and the rows alone: a run with more pairs begins
with the same ones. Each size is searched on its own (paths run to that size), so that it does not depend on others.
The effort is that of folds: a search that misses the best columns of a half looks like instability.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.engines import Engine
from pairflip.journal_file import Folder
from pairflip.philox import address_keys, start_order
from pairflip.problem import SubsetProblem
from pairflip.search.portfolio import first_best
from pairflip.selection.executors import search_grids
from pairflip.selection.folds import Blocks, Folds, Rows, check_groups, parse_cv
from pairflip.selection.progress import Show
from pairflip.selection.tasks import plan_halves

HALVES_FOLDER = "half-samples"
"""Where in a journal's folder the half-samples have a journal of their own."""
_FEWEST_UNITS = 4
_NO_SIZE = 0  # nothing is searched at size 0, so its addresses are free: those of the halves


class TooFewRows(ValueError):
    """Half of the rows are too few."""


def half_samples(
    problem: SubsetProblem, pairs: int, seed: int, groups: ArrayLike | None = None, cv: Any = None
) -> Folds:
    """Folds 2b and 2b + 1 are the two halves of pair b: disjoint, with half of the rows (rounded down) each."""
    present, cv = np.flatnonzero(problem.sample_weight > 0), parse_cv(cv)
    units, whole = list(present[:, None]), "rows"  # rows that stay together
    if groups is not None:
        label = np.unique(check_groups(problem, groups)[present], return_inverse=True)[1].ravel()
        units, whole = [present[label == g] for g in range(int(label.max()) + 1)], "groups"
    elif isinstance(cv, Blocks):
        units, whole = list(np.array_split(present, cv.folds)), "blocks"
    if len(units) < _FEWEST_UNITS:
        asked = "rows" if groups is None else "groups of rows"
        raise TooFewRows(
            f"half-samples of {len(units)} {asked} were asked for; expected at least {_FEWEST_UNITS} (--stability 0, "
            "in Python stability=0, does without)."
        )
    # Each half has half of each class (rounded down), where there are classes and rows are drawn one by one.
    strata = problem.loss.strata(problem.y[present]) if all(unit.size == 1 for unit in units) else None
    kinds = np.zeros(len(units)) if strata is None else strata
    learned: list[Rows] = []
    for key in address_keys(seed, _NO_SIZE, -1, np.arange(pairs)):
        order = start_order(key, len(units))
        by_kind = [order[kinds[order] == kind] for kind in np.unique(kinds)]
        for half in (0, 1):
            drawn = np.concatenate([kind[half * (kind.size // 2) :][: kind.size // 2] for kind in by_kind])
            learned.append(np.sort(np.concatenate([units[u] for u in drawn])))
    for rows in learned:
        why = problem.loss.lacking(problem, rows)
        if why is not None:
            raise TooFewRows(
                f"half-samples were asked for, but half of the {whole} may have {why}; expected more rows."
            )
    left_out = tuple(np.setdiff1d(present, rows) for rows in learned)
    return Folds(left_out, left_out, f"random halves of the {whole}", by_row=True)


def search_halves(
    problem: SubsetProblem,
    size: int,
    halves: Folds,
    *,
    seed: int,
    engine: str | Engine,
    effort: str,
    journal: Folder | None,
    n_jobs: int | None,
    progress: Show,
    final: bool = False,
    first_folds: int = 2,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Columns (folds, chains, size) that the searches of all folds found, and the best (size,) of all rows if `final`.

    Columns are sorted. A journal is known by its `first_folds`: it can be extended by more of them, and by other sizes.
    """
    grid = plan_halves(problem, size, halves, seed=seed, engine=engine, effort=effort, final=final)
    ((_, results),) = search_grids(
        [grid], [journal], n_jobs, progress, lambda searched: searched.results, first_folds=first_folds
    )
    every = np.sort(results.of(size)[0], axis=2)
    if not final:
        return every, np.zeros(0, np.int64)
    (supports,), (energies,) = results.of(size, final=True)
    return every, np.sort(supports[first_best(energies, problem.form.yy)])
