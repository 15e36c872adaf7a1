"""What is asked of a table once its size is chosen: half-samples, shuffled targets, probabilities of columns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from pairflip.journal_file import MANIFEST, Folder
from pairflip.search.posterior import Posterior
from pairflip.selection.curve import Inclusion, NullCheck, SizeCurve
from pairflip.selection.permutation import PAIRS, SHUFFLED_FOLDER, permutation_check
from pairflip.selection.progress import Show, foreseen_seconds
from pairflip.selection.settings import Selection
from pairflip.selection.stability import Stability, check_room, summarize
from pairflip.selection.subsampling import HALVES_FOLDER, TooFewRows, half_samples, search_halves
from pairflip.selection.tasks import Grid, plan_halves
from pairflip.selection.verdict import size_to_show
from pairflip.selection.worker import TooFewColumns

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
    halves = 2 * selection.stability + selection.null * (2 * (selection.stability or PAIRS) + 1)
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
    run: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress}
    stability: Stability | None = None
    null: NullCheck | None = None
    notes: list[str] = []
    try:
        if selection.stability:
            sizes = (size,) if selection.stability_at == "chosen" else grid.sizes
            halves_folder = None if folder is None else folder / HALVES_FOLDER
            stability, notes = _stability(curve, grid, selection, sizes, groups, journal=halves_folder, **run)
        if selection.null:
            shuffled_folder = None if folder is None else folder / SHUFFLED_FOLDER
            null = permutation_check(grid, selection, size, groups=groups, journal=shuffled_folder, **run)
    except (TooFewRows, TooFewColumns) as error:
        notes = [*notes, f"stability is not known: {str(error).rstrip('.')}"]
    seconds = curve.seconds + time.perf_counter() - began
    return replace(curve, stability=stability, null=null, notes=(*curve.notes, *notes), seconds=seconds)


def _stability(
    curve: SizeCurve,
    grid: Grid,
    selection: Selection,
    sizes: tuple[int, ...],
    groups: ArrayLike | None,
    **run: Any,
) -> tuple[Stability, list[str]]:
    """Half-samples at the sizes that are asked for and that half of the rows allow, and what to know about them."""
    problem = grid.problem
    halves = half_samples(problem, selection.stability, selection.seed, groups, selection.cv)
    how = {"seed": selection.seed, "engine": grid.search.engine, "effort": selection.effort, **run}
    possible, supports = [], []
    for k in sizes:
        try:
            check_room(problem, (k,), halves)
        except TooFewRows:
            if k == min(sizes):
                raise
            break
        possible.append(k)
        supports.append(search_halves(problem, k, halves, **how)[0])
    final = [curve.supports[curve.at(k)] for k in possible]
    if problem.units is not None:
        final = [problem.units.units_of(columns) for columns in final]
    different = len({left_out.tobytes() for left_out in halves.left_out})
    few = [f"of so few groups or blocks only {different} different halves were made"]
    return summarize(problem, halves, possible, final, supports), few if 2 * different < len(halves) else []


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
