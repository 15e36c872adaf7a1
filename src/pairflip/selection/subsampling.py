"""Complementary pairs of random half-samples, and the search that each of them gets.

A half-sample is a fold whose left-out rows are all that are not in it, with random numbers of its own. Pair b depends
on (seed, b) and the rows alone, and each size is searched on its own: more pairs or sizes change nothing of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pairflip.blas import one_blas_thread
from pairflip.engines import Engine
from pairflip.journal_file import Folder
from pairflip.least_squares import Floats
from pairflip.losses import HeldOutJudge
from pairflip.philox import address_keys, check_seed, start_order
from pairflip.problem import SubsetProblem
from pairflip.rules import Units
from pairflip.search.portfolio import first_best
from pairflip.selection.executors import Execution, search_grid
from pairflip.selection.folds import Blocks, Folds, Rows, check_groups, parse_cv
from pairflip.selection.progress import Show
from pairflip.selection.settings import check_count
from pairflip.selection.stability import Clusters, Family, Stability, disjoint_clusters
from pairflip.selection.tasks import Results, plan_halves
from pairflip.supports import ABSENT, Ints, filled_up
from pairflip.text import plural

_FEWEST_UNITS = 4
_NO_SIZE = 0  # nothing is searched at size 0, so its addresses are free: those of the halves


class TooFewRows(ValueError):
    """Half of the rows are too few."""


def half_samples(
    problem: SubsetProblem, pairs: int, seed: int, groups: ArrayLike | None = None, cv: Any = None
) -> Folds:
    """Folds 2b and 2b + 1 are the two halves of pair b: disjoint, with half of the rows (rounded down) each."""
    present = np.flatnonzero(problem.sample_weight > 0)
    units, whole = rows_together(problem, groups, cv)
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


def rows_together(problem: SubsetProblem, groups: ArrayLike | None, cv: Any) -> tuple[list[Rows], str]:
    """Rows (of a weight above zero) that are in a half as a whole, and what they are called."""
    present, cv = np.flatnonzero(problem.sample_weight > 0), parse_cv(cv)
    if groups is not None:
        label = np.unique(check_groups(problem, groups)[present], return_inverse=True)[1].ravel()
        kind = "groups" if problem.condensed is None else "blocks"
        return [present[label == g] for g in range(int(label.max()) + 1)], kind
    if isinstance(cv, Blocks):
        return list(np.array_split(present, cv.folds)), "blocks"
    return list(present[:, None]), "rows"


def search_halves(
    problem: SubsetProblem, sizes: Sequence[int], halves: Folds, run: Execution, *, first_folds: int = 2, **plan: Any
) -> Results:
    """What the chains of all halves find at some sizes; `plan` are the other arguments of `plan_halves`."""
    grid = plan_halves(problem, tuple(sizes), halves, run.engine, **plan)
    return search_grid(grid, run, first_folds=first_folds)


def found_in_halves(results: Results, size: int) -> Ints:
    """Sorted columns (folds, chains, size) of all chains."""
    return np.sort(results.of(size)[0], axis=2)


def found_on_all_rows(results: Results, size: int) -> Ints:
    """Sorted columns (size,) of the best chain on all rows."""
    (supports,), (energies,) = results.of(size, final=True)
    return np.sort(supports[first_best(energies, results.grid.problem.form.yy)])


def half_sample_stability(
    problem: SubsetProblem,
    sizes: int | Iterable[int],
    pairs: int = 50,
    *,
    seed: int = 0,
    groups: ArrayLike | None = None,
    cv: Any = None,
    effort: Literal["quick", "normal", "thorough"] = "normal",
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    journal: Folder | None = None,
    progress: Show = False,
) -> Stability:
    """Select columns in random halves of the rows, and count.

    Parameters
    ----------
    problem
        Table and target.
    sizes
        One number of columns, or several.
    pairs
        Complementary pairs of half-samples: twice as many searches.
    seed
        Of the halves.
    groups
        Labels of the rows; groups are in a half as a whole.
    cv
        ``"blocks:5"``: halves consist of whole blocks of neighbouring rows; other values are of no importance.
    effort
        How long each half is searched. ``"quick"`` may miss the best columns of many halves, as if they were unstable.
    engine, n_jobs, journal, progress
        As in `select_size`.
    """
    wanted = tuple(sorted({int(k) for k in ([sizes] if isinstance(sizes, (int, np.integer)) else sizes)}))
    pairs = check_count("pairs", pairs, least=1)
    halves = half_samples(problem, pairs, check_seed(seed), groups, cv)
    check_enough_rows(problem, wanted, halves)
    run = Execution(engine, n_jobs, journal, progress)
    chosen, supports = [], []
    for k in wanted:
        results = search_halves(problem, (k,), halves, run, seed=seed, effort=effort, final=True)
        chosen.append(found_on_all_rows(results, k))
        supports.append(found_in_halves(results, k))
    return with_clusters(problem, summarize(problem, halves, wanted, chosen, supports))


def check_enough_rows(problem: SubsetProblem, sizes: Sequence[int], halves: Folds) -> None:
    """Refuse sizes for which a half-sample has too few rows: with as many columns as rows every choice fits."""
    rows = min(problem.rows_present - problem.count_rows(left) for left in halves.left_out)
    most = max(rows - problem.forced.shape[1] - 1, 0)
    smallest, largest = min(sizes, default=0), max(sizes, default=0)
    unit = "column" if problem.units is None else "group"
    if smallest < 1 or largest > problem.most_columns:
        bad = smallest if smallest < 1 else largest
        raise ValueError(f"size is {bad}; expected a number of {unit}s from 1 to {problem.most_columns}.")
    if (problem.ridge == 0 or not problem.loss.squared) and np.sort(problem.form.widths)[:largest].sum() > most:
        limit = f"sizes up to {most}" if problem.units is None else f"at most {most} columns in them"
        raise TooFewRows(
            f"half-samples at {plural(largest, unit)} were asked for, but a half has only {plural(rows, 'row')}"
            f"; expected {limit}."
        )


def possible_sizes(problem: SubsetProblem, sizes: Iterable[int], halves: Folds) -> tuple[int, ...]:
    """The sizes, from the smallest on, for which half of the rows are enough; refused where there is none."""
    possible: list[int] = []
    for k in sorted(sizes):
        try:
            check_enough_rows(problem, (k,), halves)
        except TooFewRows:
            if not possible:
                raise
            break
        possible.append(k)
    return tuple(possible)


@one_blas_thread()
def summarize(
    problem: SubsetProblem, halves: Folds, sizes: Sequence[int], chosen: Sequence[Ints], supports: Sequence[Ints]
) -> Stability:
    """The record of what half-samples found, with the coefficients in each."""
    judge, units = problem.loss.held_out(problem, halves), problem.units
    best = [first_best(judge.judged(every)[1], judge.yy) for every in supports]
    selected = tuple(every[np.arange(len(halves)), place] for every, place in zip(supports, best, strict=True))
    columns = np.unique(np.concatenate([*(s.ravel() for s in selected), *chosen]))
    names = problem.names
    if units is None:
        coefs = tuple(judge.fits(each).coefs for each in selected)
    else:
        coefs = tuple(_group_coefficients(problem, units, judge, each) for each in selected)
    return Stability(
        sizes=np.array(sizes, dtype=np.int64),
        pairs=len(halves) // 2,
        rows=min(problem.rows_present - problem.count_rows(left) for left in halves.left_out),
        n_candidates=problem.form.n_columns,
        how=halves.how,
        chosen=tuple(np.asarray(c, dtype=np.int64) for c in chosen),
        columns=columns,
        names=[names[j] if units is None else units.name(j, names) for j in columns.tolist()],
        supports=selected,
        coefs=coefs,
    )


@one_blas_thread()
def with_clusters(problem: SubsetProblem, stability: Stability) -> Stability:
    """The record with the clusters that half-samples selected; as it is where groups are chosen as a whole."""
    if problem.units is not None:
        return stability
    family, clusters = Family(problem), list[Clusters]()
    sizes = family.sizes()
    for supports in stability.supports:
        members = disjoint_clusters(family.of(np.unique(supports)), supports)
        clusters.append(Clusters(members, *sizes))
    w = problem.sample_weight
    profile = np.asarray(w @ problem.X) / float(w.sum()) if family.ordered else None
    return replace(stability, clusters=tuple(clusters), profile=profile)


def _group_coefficients(problem: SubsetProblem, units: Units, judge: HeldOutJudge, supports: Ints) -> Floats:
    """Coefficients (F, k) or (F, k, q) of the units of each fold; not-a-number for a group of several columns."""
    columns = filled_up([problem.columns_of(support) for support in supports])
    fits = judge.fits(columns).coefs
    coefs = np.full((*supports.shape, *fits.shape[2:]), np.nan)
    for fold, support in enumerate(supports):
        unit_of = np.where(columns[fold] == ABSENT, ABSENT, units.first[columns[fold]])
        for place, unit in enumerate(support.tolist()):
            if np.count_nonzero(unit_of == unit) == 1:
                coefs[fold, place] = fits[fold, unit_of == unit][0]
    return coefs
