"""What is asked of a table once its size is chosen: half-samples, shuffled targets, probabilities of columns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pairflip.journal_file import MANIFEST, Folder
from pairflip.losses.held_out import HeldOutErrors
from pairflip.philox import address_keys, start_order
from pairflip.problem import SubsetProblem
from pairflip.search.portfolio import first_best
from pairflip.search.posterior import Posterior
from pairflip.selection.curve import Inclusion, NullCheck, SizeCurve
from pairflip.selection.folds import Folds
from pairflip.selection.outer import rebuilt
from pairflip.selection.progress import Show, foreseen_seconds
from pairflip.selection.settings import Selection
from pairflip.selection.stability import Stability
from pairflip.selection.subsampling import TooFewRows, check_room, half_samples, search_halves, summarize
from pairflip.selection.tasks import Grid, plan_halves
from pairflip.selection.verdict import explained_fraction, size_to_show
from pairflip.selection.worker import FORMED, TooFewColumns

_PAIRS = 50  # of half-samples for each shuffled target, where the selection itself asks for none
_SHUFFLES = 0  # in place of a fold, at size 0: where the halves have all rows
_ASSEMBLED_S = 0.5  # final fits, shuffled targets, corrected errors


def seconds_after_grid(grids: Sequence[Grid], selection: Selection, threads: int) -> float:
    """Seconds, by the cost models, of all that a selection does after the searches of its first grid.

    That is the grids of other ridges, half-samples, shuffled targets and outer folds, and what assembles a curve.
    """
    grid, problem = grids[0], grids[0].problem
    others = len(grids) - 1 + selection.outer * len(grids)
    seconds = _ASSEMBLED_S * (1 + others)
    if others:
        chains = {k: grid.chains * len(grid.folds) + grid.final_chains[k] for k in grid.sizes}
        seconds += others * foreseen_seconds(grid, chains, 1 + len(grid.folds), threads)
    halves = 2 * selection.stability + selection.null * (2 * (selection.stability or _PAIRS) + 1)
    if halves:
        how: dict[str, Any] = {"seed": 0, "engine": grid.search.engine, "effort": selection.effort, "final": False}
        for k in grid.sizes if selection.stability_at == "all" else grid.sizes[len(grid.sizes) // 2 :][:1]:
            half = plan_halves(problem, k, grid.folds, **how)
            seconds += foreseen_seconds(half, {k: halves * half.chains}, halves, threads)
    return seconds


def with_checks(
    curve: SizeCurve,
    grid: Grid,
    selection: Selection,
    groups: ArrayLike | None,
    journal: Folder | None,
    n_jobs: int | None,
    progress: Show,
) -> SizeCurve:
    """The curve with the half-samples and shuffled targets that are asked for; of too few rows, a note says so."""
    size, began = size_to_show(curve), time.perf_counter()
    if not (selection.stability or selection.null) or size == 0:
        return curve
    # A journal that was removed during the run is not made again.
    folder = None if journal is None or not (Path(journal) / MANIFEST).exists() else Path(journal)
    pairs = selection.stability or _PAIRS  # the same for shuffled targets: the highest frequency depends on it
    how: dict[str, Any] = {"seed": selection.seed, "engine": grid.search.engine, "effort": selection.effort}
    how |= {"n_jobs": n_jobs, "progress": progress}
    stability: Stability | None = None
    null: NullCheck | None = None
    notes = list(curve.notes)
    try:
        halves = half_samples(grid.problem, pairs, selection.seed, groups, selection.cv)
        if selection.stability:
            sizes = (size,) if selection.stability_at == "chosen" else grid.sizes
            stability = _stability(curve, grid.problem, halves, sizes, folder, how)
            different = len({left_out.tobytes() for left_out in halves.left_out})
            if 2 * different < len(halves):
                notes.append(f"of so few groups or blocks only {different} different halves were made")
        if selection.null:
            check_room(grid.problem, (size,), halves)
            null = _permutation_check(grid, size, halves, selection.null, folder, how)
    except (TooFewRows, TooFewColumns) as error:
        notes.append(f"stability is not known: {str(error).rstrip('.')}")
    seconds = curve.seconds + time.perf_counter() - began
    return replace(curve, stability=stability, null=null, notes=tuple(notes), seconds=seconds)


def _stability(
    curve: SizeCurve, problem: SubsetProblem, halves: Folds, sizes: tuple[int, ...], folder: Path | None, how: Any
) -> Stability:
    """What half-samples select at the sizes that half of the rows allow."""
    possible, supports = [], []
    for k in sizes:
        try:
            check_room(problem, (k,), halves)
        except TooFewRows:
            if k == min(sizes):
                raise
            break
        possible.append(k)
        journal = None if folder is None else folder / "half-samples"
        supports.append(search_halves(problem, k, halves, journal=journal, **how)[0])
    final = [curve.supports[curve.at(k)] for k in possible]
    if problem.units is not None:
        final = [problem.units.units_of(columns) for columns in final]
    return summarize(problem, halves, possible, final, supports)


def _permutation_check(grid: Grid, size: int, halves: Folds, shuffles: int, folder: Path | None, how: Any) -> NullCheck:
    """What noise would give: the same selection at the same size, of folds, halves and all rows, in shuffled targets.

    Explained variance and stability are then those of chance: of this table, with its rows, columns and correlations,
    and of this way of selecting. Rows are shuffled one by one, also where they belong together.
    """
    folds, n_folds = grid.folds, len(grid.folds)
    both = Folds((*folds.rows, *halves.rows), (*folds.left_out, *halves.left_out), "folds and random halves", True)
    rows = []
    for number in range(shuffles):
        problem = shuffled(grid.problem, how["seed"], number)
        journal = None if folder is None else folder / "shuffled" / f"{number:04d}"
        every, best = search_halves(problem, size, both, journal=journal, final=True, first_folds=n_folds + 2, **how)
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
    return NullCheck(size, len(halves) // 2, r2s, sets, overlaps, highest)


def shuffled(problem: SubsetProblem, seed: int, number: int) -> SubsetProblem:
    """The same table with a shuffled target; of forced columns, what they leave of the target is shuffled."""
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


def with_posterior(curve: SizeCurve, posterior: Posterior) -> SizeCurve:
    """The curve with the probabilities of `posterior` beside it: report, figures and files then show them."""
    problem = posterior.problem
    theirs = curve.data_hash, curve.always.tolist(), curve.settings.get("center", problem.center)
    if (problem.hash, problem.always.tolist(), problem.center) != theirs:
        raise ValueError(
            "the posterior is about other data, forced columns or centring than the curve; expected posterior(problem) "
            "of the problem that select_size was given."
        )
    at = problem.candidates
    inclusion = Inclusion(
        columns=at.astype("int64"),
        probability=posterior.inclusion_probability[at],
        error=posterior.inclusion_se[at],
        coef_mean=posterior.coef_mean[at],
        coef_sd=posterior.coef_sd[at],
        prior=posterior.prior.inclusion,
        assumptions=posterior.assumptions,
    )
    return replace(curve, inclusion=inclusion)
