"""What is asked of a table once its size is chosen: half-samples, shuffled targets, probabilities of columns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from numpy.typing import ArrayLike

from pairflip.manifest import MANIFEST
from pairflip.search.posterior import Posterior
from pairflip.selection.curve import Inclusion, NullCheck, SizeCurve
from pairflip.selection.halves import (
    HALVES_FOLDER,
    TooFewRows,
    half_identity,
    half_samples,
    half_work,
    search_all,
    supports_of,
)
from pairflip.selection.loop import Folder
from pairflip.selection.null import NULL_FOLDER, PAIRS, null_check
from pairflip.selection.progress import Show, foreseen_seconds
from pairflip.selection.stability import Stability, check_room, summarize
from pairflip.selection.tasks import ALL_ROWS, Work
from pairflip.selection.verdict import size_to_show
from pairflip.selection.walks import TooFewColumns

_ASSEMBLED_S = 0.5  # final fits, shuffled targets, corrected errors


def seconds_after_grid(works: Sequence[Work], threads: int) -> float:
    """Seconds, by the cost models, of all that a selection does after the searches of its first grid.

    That is the grids of other ridges, half-samples, shuffled targets and outer folds, and what assembles a curve.
    """
    work, chosen = works[0], works[0].selection
    grids = len(works) - 1 + chosen.outer * len(works)
    seconds = _ASSEMBLED_S * (1 + grids)
    if grids:
        chains = {k: work.chains * len(work.folds) + work.chains_of(k, ALL_ROWS) for k in work.sizes}
        seconds += grids * foreseen_seconds(work, chains, 1 + len(work.folds), threads)
    halves = 2 * chosen.stability + chosen.null * (2 * (chosen.stability or PAIRS) + 1)
    if halves:
        sizes = work.sizes if chosen.stability_at == "all" else work.sizes[len(work.sizes) // 2 :][:1]
        for k in sizes:
            half = half_work(work.problem, k, work.folds, seed=0, engine=work.engine, effort=chosen.effort)
            seconds += foreseen_seconds(half, {k: halves * half.chains}, halves, threads)
    return seconds


def look_further(
    work: Work, curve: SizeCurve, groups: ArrayLike | None, journal: Folder | None, n_jobs: int | None, progress: Show
) -> SizeCurve:
    """The curve with what the selection asks for beyond it; where rows are too few for that, a note says so."""
    chosen, size, began = work.selection, size_to_show(curve), time.perf_counter()
    if not (chosen.stability or chosen.null) or size == 0:
        return curve
    # A journal that was removed during the run is not made again.
    kept = None if journal is None or not (Path(journal) / MANIFEST).exists() else Path(journal)
    halves: Stability | None = None
    null: NullCheck | None = None
    notes: list[str] = []
    try:
        if chosen.stability:
            sizes = (size,) if chosen.stability_at == "chosen" else work.sizes
            halves, notes = _stability(work, curve, sizes, groups, kept, n_jobs, progress)
        if chosen.null:
            folder = None if kept is None else kept / NULL_FOLDER
            null = null_check(work, size, groups=groups, journal=folder, n_jobs=n_jobs, progress=progress)
    except (TooFewRows, TooFewColumns) as error:
        notes = [*notes, f"stability is not known: {str(error).rstrip('.')}"]
    seconds = curve.seconds + time.perf_counter() - began
    return replace(curve, stability=halves, null=null, notes=(*curve.notes, *notes), seconds=seconds)


def _stability(
    work: Work,
    curve: SizeCurve,
    sizes: tuple[int, ...],
    groups: ArrayLike | None,
    kept: Path | None,
    n_jobs: int | None,
    progress: Show,
) -> tuple[Stability, list[str]]:
    """Half-samples at the sizes that are asked for and that half of the rows allow, and what to know about them."""
    problem, chosen = work.problem, work.selection
    halves = half_samples(problem, chosen.stability, chosen.seed, groups, chosen.cv)
    possible = []
    for k in sizes:
        try:
            check_room(problem, (k,), halves)
        except TooFewRows:
            if len(sizes) == 1 or k == min(sizes):
                raise
            continue
        possible.append(k)
    folder = None if kept is None else kept / HALVES_FOLDER
    supports = []
    for k in possible:
        grid = half_work(problem, k, halves, seed=chosen.seed, engine=work.engine, effort=chosen.effort)
        found = search_all(grid, half_identity(grid, halves.first(2)), folder, n_jobs, progress)
        supports.append(supports_of(grid, found, range(len(halves))))
    final = [curve.supports[curve.at(k)] for k in possible]
    if problem.units is not None:
        final = [problem.units.units_of(columns) for columns in final]
    different = len({left.tobytes() for left in halves.left_out})
    few = (
        [f"of so few groups or blocks only {different} different halves were made"]
        if 2 * different < len(halves)
        else []
    )
    return summarize(problem, halves, possible, final, supports), few


def with_posterior(curve: SizeCurve, found: Posterior) -> SizeCurve:
    """The curve with the probabilities of `posterior` beside it: report, figures and files then show them."""
    problem = found.problem
    theirs = curve.data_hash, curve.always.tolist(), curve.settings.get("center", problem.center)
    if (problem.hash, problem.always.tolist(), problem.center) != theirs:
        raise ValueError(
            "the posterior is about other data, forced columns or centring than the curve; expected posterior(problem) "
            "of the problem that select_size was given."
        )
    at = problem.candidates
    inclusion = Inclusion(
        columns=at.astype("int64"),
        probability=found.inclusion_probability[at],
        error=found.inclusion_se[at],
        coef_mean=found.coef_mean[at],
        coef_sd=found.coef_sd[at],
        prior=found.prior.inclusion,
        assumptions=found.assumptions,
    )
    return replace(curve, inclusion=inclusion)
