"""Complementary pairs of random half-samples, and the search that each of them gets.

A half-sample is a fold whose left-out rows are all that are not in it, so that searches, journal and workers are those
of folds, with random numbers of their own. Pair b depends on (seed, b) and the rows alone: a run with more pairs begins
with the same ones. Each size is searched on its own (paths run to that size), so that it does not depend on others.
The effort is that of folds: a search that misses the best columns of a half looks like instability.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.engines import Engine, get_engine
from pairflip.philox import address_keys, start_order
from pairflip.problem import SubsetProblem
from pairflip.search.effort import FINAL_EFFORTS, FOLD_EFFORTS
from pairflip.search.portfolio import first_best
from pairflip.selection.folds import Blocks, Folds, Rows, parse_cv
from pairflip.selection.hands import choose_hands
from pairflip.selection.journal import Found
from pairflip.selection.loop import Folder, open_job, walk_jobs
from pairflip.selection.progress import Show
from pairflip.selection.settings import Selection
from pairflip.selection.tasks import ALL_ROWS, Work, identity

HALVES_FOLDER = "half-samples"
"""Where in a journal's folder the half-samples have a journal of their own."""
FEWEST_UNITS = 4


class TooFewRows(ValueError):
    """Half of the rows are too few."""


_FIRST_ADDRESS = 1 << 30  # beyond all folds
_NO_SIZE = 0  # nothing is searched at size 0, so its addresses are free: those of the halves


def half_samples(
    problem: SubsetProblem, pairs: int, seed: int, groups: ArrayLike | None = None, cv: Any = None
) -> Folds:
    """Folds 2b and 2b + 1 are the two halves of pair b: disjoint, with half of the rows (rounded down) each."""
    present = np.flatnonzero(problem.sample_weight > 0)
    units = _units(problem, present, groups, cv)
    if len(units) < FEWEST_UNITS:
        what = "rows" if groups is None else "groups of rows"
        raise TooFewRows(
            f"half-samples of {len(units)} {what} were asked for; expected at least {FEWEST_UNITS} (--stability 0, in "
            "Python stability=0, does without)."
        )
    half = len(units) // 2
    kinds = problem.loss.strata(problem.y[present]) if all(unit.size == 1 for unit in units) else None
    learned: list[Rows] = []
    for key in address_keys(seed, _NO_SIZE, -1, np.arange(pairs)):
        order = start_order(key, len(units))
        parts = (order[:half], order[half : 2 * half]) if kinds is None else _by_class(order, kinds)
        learned += [np.sort(np.concatenate([units[u] for u in part])) for part in parts]
    left = tuple(np.setdiff1d(present, rows) for rows in learned)
    whole = "groups" if groups is not None else "blocks" if isinstance(parse_cv(cv), Blocks) else "rows"
    for rows in learned:
        why = problem.loss.lacking(problem, rows)
        if why is not None:
            raise TooFewRows(
                f"half-samples were asked for, but half of the {whole} may have {why}; expected more rows."
            )
    return Folds(left, left, f"random halves of the {whole}", by_row=True)


def _by_class(order: NDArray[np.int64], kinds: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two halves of the rows in this random order that have half of each class (rounded down)."""
    of_class = [order[kinds[order] == kind] for kind in np.unique(kinds)]
    first = [rows[: rows.size // 2] for rows in of_class]
    second = [rows[rows.size // 2 : 2 * (rows.size // 2)] for rows in of_class]
    return np.concatenate(first), np.concatenate(second)


def _units(problem: SubsetProblem, present: Rows, groups: ArrayLike | None, cv: Any) -> list[Rows]:
    """Rows that stay together: themselves, groups, or blocks."""
    if groups is not None:
        labels = np.asarray(groups)
        if labels.shape[:1] != (problem.n_rows,):
            raise ValueError(f"groups has shape {labels.shape}; expected one label for each of {problem.n_rows} rows.")
        which = np.unique(labels[present], return_inverse=True)[1].ravel()
        return [present[which == g] for g in range(int(which.max()) + 1)]
    cv = parse_cv(cv)
    if isinstance(cv, Blocks):
        return list(np.array_split(present, cv.folds))
    return list(present[:, None])


def half_work(
    problem: SubsetProblem,
    size: int,
    folds: Folds,
    *,
    seed: int,
    engine: str | Engine,
    effort: Any,
    final: bool = False,
) -> Work:
    """A grid of searches at one size, one for each fold."""
    if not get_engine(engine).searches:
        engine = "numba"
    selection = Selection((size,), "loo", seed=seed, method="auto", effort=effort)
    chains = FINAL_EFFORTS[selection.effort].chains if final else 0
    inside = FOLD_EFFORTS[selection.effort].chains
    return Work(
        problem, selection, folds, (size,), inside, (chains,), engine, sparing=True, first_address=_FIRST_ADDRESS
    )


def half_identity(work: Work, first: Folds) -> dict[str, Any]:
    """What the journal of these searches says: it can be extended by sizes, and by folds after the `first` ones."""
    return {**identity(work), "largest_size": None, "folds": first.hash}


def search_all(work: Work, whose: dict[str, Any], folder: Folder | None, n_jobs: int | None, progress: Show) -> Found:
    """What all searches of a grid found, those in the journal included."""
    with ExitStack() as stack:
        job = open_job(stack, work, folder, whose=whose)
        for _ in walk_jobs(stack, [job], choose_hands([work] if job.tasks else [], n_jobs), progress):
            pass
    return job.found


def supports_of(work: Work, found: Found, folds: range) -> NDArray[np.int64]:
    """Columns (folds, chains, size) that the chains of some folds found, each sorted."""
    (size,) = work.sizes
    return np.stack([np.sort(found.cell(size, fold, work.chains)[0], axis=1) for fold in folds])


def best_of_all_rows(work: Work, found: Found) -> NDArray[np.int64]:
    """Columns (size,) of the best search on all rows, of a grid with final fits."""
    (size,) = work.sizes
    supports, energies = found.cell(size, ALL_ROWS, work.chains_of(size, ALL_ROWS))
    return np.sort(supports[first_best(energies, work.problem.form.yy)])
