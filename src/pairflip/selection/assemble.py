"""From finished chains to a `SizeCurve`: errors, counts, agreement, and the final fits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

import pairflip
from pairflip.blas import one_blas_thread
from pairflip.engines.base import is_lower, reaches
from pairflip.jobs import local_threads
from pairflip.least_squares import Floats
from pairflip.losses import Fit, HeldOutJudge
from pairflip.losses.held_out import HeldOutErrors, mean_and_error
from pairflip.problem import SubsetProblem
from pairflip.search.best_subset import best_subset
from pairflip.search.portfolio import descended, first_best
from pairflip.search.prove import Proof, proof_of, proof_seconds
from pairflip.selection.averaging import FoldModels, fold_models
from pairflip.selection.coefficients import standard_errors
from pairflip.selection.criteria import FinalFits, class_errors, information_criteria, survival_errors, target_errors
from pairflip.selection.curve import AnnealCurves, SizeCurve, StandIns
from pairflip.selection.decide import by_unit, chosen_in_draws
from pairflip.selection.executors import Searched
from pairflip.selection.facts import error_of_the_mean, separated_folds, shuffled_targets, table_facts
from pairflip.selection.folds import Blocks, Folds
from pairflip.selection.prediction import with_predictors
from pairflip.selection.settings import Selection
from pairflip.selection.stability import correlations
from pairflip.selection.tasks import Grid, Results
from pairflip.selection.worker import temperatures
from pairflip.supports import ABSENT, Ints, distinct_supports, filled_up, unchanged_in
from pairflip.text import label_text

_STAND_INS = 20
_FOLDS_TRIED = 20  # different supports of the folds that are tried on all rows, the most frequent first
_FOLDS_TRIED_ANNEALED = 5_000


@one_blas_thread()  # more would round differently
def assemble(
    searched: Searched, selection: Selection, began: float, n_jobs: int | None, most: int
) -> tuple[SizeCurve, Callable[[], FoldModels]]:
    """The whole record of sizes up to `most`, 0 first; every number in it comes from X, y and the supports found.

    Also what makes the models of its folds, which predict together.
    """
    results = searched.results.up_to(most)
    grid = results.grid
    problem, form, folds, loss = grid.problem, grid.problem.form, grid.folds, grid.problem.loss
    errors, units, n_targets = loss.held_out(problem, folds), problem.units, max(1, len(problem.target_names))
    q = loss.observed(problem.y).size // problem.n_rows  # predictions of a row, those of each target or class
    row, unit = np.repeat(folds.row, q), np.repeat(folds.unit, q)
    weights = problem.sample_weight[row]

    threads = local_threads(n_jobs)
    with ThreadPoolExecutor(threads) as pool:
        # Large sizes take longest and come first; with several threads, proofs of small ones are sought here meanwhile.
        large_first = grid.sizes[::-1]
        scored = [pool.submit(_held_out, results, errors, size) for size in large_first][::-1]
        without = errors.without_columns()  # size 0: the mean, or the forced columns alone
        no_columns = np.empty((len(folds), 0), dtype=np.int64)
        by_size = [_HeldOut(no_columns, without, np.tile(without, (grid.chains, 1)), 0.5 * errors.yy, 1.0)]
        by_size += [future.result() for future in scored]
        row_errors = errors.row_errors(np.stack([each.residuals for each in by_size]))
        _search_on(results, selection, row_errors, weights, unit)
        final_fits = [pool.submit(_final_fit, results, selection.polish, size) for size in large_first][::-1]
        fitted, proved = _proved(grid, selection, final_fits)
    fits, final_agreement = zip(*fitted, strict=True)
    residuals = np.stack([each.residuals for each in by_size])
    cv_error, cv_error_se = mean_and_error(row_errors, weights, unit)
    by_chain = [mean_and_error(errors.row_errors(each.chain_residuals), weights, unit)[0] for each in by_size]
    selected = tuple(each.supports for each in by_size)
    if units is not None:  # of whole groups there may be more columns in one fold than in another
        selected = tuple(filled_up([problem.columns_of(each) for each in supports]) for supports in selected)
    counts = [np.bincount(columns[columns != ABSENT], minlength=problem.n_columns) for columns in selected]
    unchanged = [unchanged_in(columns, fit.support) for columns, fit in zip(selected, fits, strict=True)]
    training_rows = problem.rows_present - np.array([problem.count_rows(left_out) for left_out in folds.left_out])
    sizes, energies = np.array([0, *grid.sizes], dtype=np.int64), np.array([fit.energy for fit in fits])
    n_coefficients = None  # that the rows determine, where they are not as many as the size says
    if form.grouped:
        n_coefficients = np.array([form.widths[problem.slots(fit.support)].sum() for fit in fits], dtype=float)
    final = FinalFits(
        energies,
        sizes.astype(float),
        n_rows=problem.rows_present,
        n_candidates=form.n_columns,
        n_forced=len(problem.always) + (problem.center is not None),
        yy=form.yy,
        likelihood=not loss.squared,
        n_targets=n_targets if loss.squared else max(1, q - 1),  # those of one class follow from the others
        coefficients=n_coefficients,
    )
    share = form.n_rows / problem.rows_present if problem.condensed is not None else 1.0
    facts = table_facts(problem, folds, grid.row_groups)
    if grid.row_groups is not None:
        facts["left_out_together"] = "groups"
    elif isinstance(grid.cv, Blocks) or type(grid.cv).__name__ == "TimeSeriesSplit":
        facts["left_out_together"] = "blocks"
    facts["p_value"] = shuffled_targets(form.working, max(grid.sizes), share=share)
    if not loss.squared:
        separated = [int(k) for k, fit in zip(sizes, fits, strict=True) if loss.remark(problem, fit.support)]
        facts |= {"separated": separated} if separated else {}
        facts["error_of_the_mean"] = error_of_the_mean(problem, folds.row, 2.0 * float(cv_error[0]))
    observed, predictions = errors.observed, errors.observed - residuals
    ordinary, robust, clustered = standard_errors(problem, fits, grid.row_groups) if q == 1 else (None, None, None)
    curve = SizeCurve(
        sizes=sizes,
        names=problem.names,
        n_rows=problem.n_rows,
        n_folds=len(folds),
        cv_error=cv_error,
        cv_error_se=cv_error_se,
        energy_per_row=np.array([np.mean(each.energies / training_rows) for each in by_size]) / n_targets,
        selection_counts=np.stack(counts),
        unchanged=np.array(unchanged),
        agreement=np.array([each.agreement for each in by_size]),
        chain_cv_error=np.stack(by_chain),
        fold_supports=selected,
        held_out_rows=row,
        held_out_fold=np.repeat(folds.fold, q),
        held_out_unit=unit,
        observed=observed,
        weights=weights,
        predictions=predictions,
        supports=tuple(fit.support for fit in fits),
        coefs=tuple(fit.coef for fit in fits),
        intercepts=np.array([fit.intercept for fit in fits]),
        energies=energies,
        final_agreement=np.array(final_agreement),
        always=np.array(problem.always, dtype=np.int64),
        always_coefs=np.stack([fit.always_coef for fit in fits]),
        criteria=information_criteria(final),
        stand_ins=_stand_ins(problem, np.unique(np.concatenate([fit.support for fit in fits]))),
        annealing=_anneal_curves(results),
        settings=grid.settings,
        facts=facts,
        data_hash=problem.hash,
        engine=searched.engine,
        version=pairflip.__version__,
        seconds=time.perf_counter() - began,
        notes=(*grid.notes, *searched.notes),
        standard_errors=ordinary,
        robust_errors=robust,
        clustered_errors=clustered,
        exact=np.array([True] + [size == form.n_columns or size in grid.exact for size in grid.sizes]),
        proved=proved,
        classes=None if problem.classes is None else class_errors(
            observed, predictions, weights, [label_text(label) for label in problem.classes.tolist()],
            constant=problem.always.size == 0,
        ),
        survival=survival_errors(problem, errors, folds, selected) if loss.name == "cox" else None,
        targets=target_errors(problem, errors, folds, residuals) if problem.target_names else None,
        groups=None if units is None else dict(units.groups),
        preparation=problem.preparation,
    )  # fmt: skip
    curve = with_predictors(curve, problem, errors)
    if problem.classes is not None:
        facts["separated_folds"] = separated_folds(curve, problem, folds)

    def models() -> FoldModels:
        return fold_models(problem, folds, errors, [each.supports for each in by_size])

    return curve, models


class _HeldOut(NamedTuple):
    """Ints, held-out residuals and training energies of all folds at one size."""

    supports: Ints  # (F, k)
    residuals: Floats  # (P,)
    chain_residuals: Floats  # (chains, P)
    energies: Floats  # (F,) of the training rows
    agreement: float


def _held_out(results: Results, errors: HeldOutJudge, size: int) -> _HeldOut:
    """Ints of the folds (the lowest training energy of a fold's own chains counts) and held-out residuals."""
    grid = results.grid
    every, _ = results.of(size)
    by_chain, energies = errors.judged(every)  # the energies found are those of the Gram matrix
    best = first_best(energies, errors.yy)
    folds = np.arange(len(grid.folds))
    supports, low = every[folds, best], energies[folds, best]
    agreed = np.mean(reaches(energies, low[:, None], errors.yy[:, None]), axis=1)
    fold = np.repeat(grid.folds.fold, by_chain.shape[1] // grid.folds.fold.size)
    residuals = by_chain[best[fold], np.arange(fold.size)]
    return _HeldOut(supports, residuals, by_chain, low, float(np.mean(agreed)))


def _search_on(results: Results, selection: Selection, row_errors: Floats, weights: Floats, unit: Ints) -> None:
    """Search all rows longer at the size that held-out rows choose, if not all of its chains agree."""
    grid, problem = results.grid, results.grid.problem
    sums, total = by_unit(row_errors, unit, weights)
    at = int(chosen_in_draws(sums, total, np.ones((1, total.size)), np.array([0, *grid.sizes]), "auto")[0])
    size = grid.sizes[at - 1]
    supports, energies = results.of(size, final=True)
    agree = reaches(energies[0], float(energies.min()), problem.form.yy)
    descends = grid.schedule is None and problem.form.plain and selection.effort == "normal" and selection.polish
    if not descends or size >= problem.form.n_columns or agree.all():
        return
    trace = best_subset(problem, size, seed=selection.seed, engine=grid.engine, n_jobs=1)
    further = problem.form.energy(problem.slots(trace.best_support))
    results.cells[size, True] = (
        np.concatenate([supports, trace.best_support[None, None]], axis=1), np.append(energies, [[further]], axis=1)
    )  # fmt: skip


def _final_fit(results: Results, polish: bool, size: int) -> tuple[Fit, float]:
    """The best support on all rows, and the fraction of its chains that agree with it.

    Polished: what the chains of the folds found is tried, too (no row is held out here), and a descent.
    """
    problem, form = results.grid.problem, results.grid.problem.form
    (supports,), (energies,) = results.of(size, final=True)
    final_energies = energies  # how many chains agree is asked of these alone, not of what the folds found
    polish = polish and size < form.n_columns
    if polish:
        other = _best_of_folds(results, size)
        energy = form.energy(form.positions(other))
        supports, energies = np.vstack([supports, other]), np.append(energies, energy)
    best = supports[first_best(energies, form.yy)]
    if polish and results.grid.schedule is not None and problem.form.quadratic:
        best = form.candidates[descended(form, form.positions(best))]
    fit = problem.fit(problem.columns_of(best))
    return fit, float(np.mean(reaches(final_energies, fit.energy, form.yy)))


def _best_of_folds(results: Results, size: int) -> Ints:
    """The support with the lowest energy on all rows among those (the most frequent) that chains of folds found."""
    problem, form = results.grid.problem, results.grid.problem.form
    different, _, _, times = distinct_supports(results.of(size)[0].reshape(-1, size))
    most = _FOLDS_TRIED if results.grid.schedule is None else _FOLDS_TRIED_ANNEALED
    pool = different[np.argsort(-times, kind="stable")[:most]]
    if len(pool) == 1:
        return np.asarray(pool[0])
    if not problem.loss.quadratic:
        return np.asarray(pool[int(np.argmin([form.energy(form.positions(support)) for support in pool]))])
    no_rows = np.zeros(0, np.int64)
    everything = HeldOutErrors(problem, Folds((no_rows,), (no_rows,), "all rows", True))
    return np.asarray(pool[int(np.argmin(everything.energies(np.zeros(len(pool), np.int64), pool)))])


def _proved(
    grid: Grid, selection: Selection, final_fits: Sequence[Future[tuple[Fit, float]]]
) -> tuple[list[tuple[Fit, float]], tuple[Proof | None, ...] | None]:
    """Final fits of all sizes with their agreement, and proofs of them where they are cheap.

    A better support found by a proof takes the place of a fit. Sizes in ascending order: where one could not be ruled
    out branch by branch, larger ones take longer still.
    """
    problem, n = grid.problem, grid.problem.form.n_columns
    sought = selection.prove and selection.polish and problem.form.quadratic
    seconds = proof_seconds(None if selection.method == "anneal" else selection.effort)
    fitted, proofs = [(problem.fit([]), 1.0)], list[Proof | None]([None])  # size 0
    hopeless = not sought
    for size, future in zip(grid.sizes, final_fits, strict=True):
        fit, agreement = future.result()
        proof = None if hopeless or size >= n else proof_of(problem, size, fit.support, seconds)
        hopeless = hopeless or (proof is None and 2 * size < n)
        if proof is not None and is_lower(proof.energy, fit.energy, problem.form.yy):
            fit, agreement = problem.fit(problem.columns_of(proof.support)), 0.0  # no chain had found it
        fitted.append((fit, agreement))
        proofs.append(proof)
    return fitted, tuple(proofs) if sought else None


def _anneal_curves(results: Results) -> AnnealCurves:
    """The course of the final annealings, for the chains of which it was kept; nothing was annealed at size 0."""
    grid, schedule = results.grid, results.grid.schedule
    chains = max((chain + 1 for _, chain in results.steps), default=0)
    n_steps = 0 if schedule is None else len(schedule)
    betas = np.full((1 + len(grid.sizes), n_steps), np.nan)
    course = np.full((2, len(betas), chains, n_steps), np.nan)
    if schedule is not None:
        by_size = temperatures(schedule, grid.problem.form, grid.sizes)
        betas[1:] = [by_size[size] for size in grid.sizes]
    for (size, chain), steps in results.steps.items():
        if size in grid.sizes:
            course[:, 1 + grid.sizes.index(size), chain] = steps
    return AnnealCurves(betas=betas, energy=course[0], acceptance=course[1])


def _stand_ins(problem: SubsetProblem, columns: Ints) -> StandIns:
    """The candidates most correlated with each of some columns, once what is always in the model is removed."""
    form = problem.form.working
    count = min(_STAND_INS, form.n_columns - 1)
    others = np.full((columns.size, count), -1, dtype=np.int64)
    correlation = np.zeros((columns.size, count))
    for u, at in enumerate(np.searchsorted(problem.candidates, columns)):
        # Not from a matrix that may or may not have been formed: it rounds differently.
        r = correlations(form, at[None])[0]
        strength = np.abs(r)
        strength[at] = -1.0
        if problem.units is not None:  # columns of the same group are there with it
            strength[problem.units.first[problem.candidates] == problem.units.first[columns[u]]] = -1.0
        top = np.argsort(-strength, kind="stable")[:count]
        others[u], correlation[u] = problem.candidates[top], np.clip(r[top], -1.0, 1.0)
        others[u, strength[top] < 0] = -1
    return StandIns(columns=columns, others=others, correlation=correlation)
