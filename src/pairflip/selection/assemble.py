"""From finished chains to a `SizeCurve`: errors, counts, agreement, and the final fits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import pairflip
from pairflip.engines.blas import one_blas_thread
from pairflip.jobs import local_threads
from pairflip.least_squares import Floats
from pairflip.losses import Fit, HeldOutJudge
from pairflip.losses.held_out import HeldOutErrors, mean_and_error
from pairflip.problem import SubsetProblem
from pairflip.search.certain import proof_of, proof_seconds
from pairflip.search.proof import Proof
from pairflip.search.settle import descended, first_best, first_bests, is_lower, reaches
from pairflip.selection.class_errors import class_errors
from pairflip.selection.coefficients import standard_errors
from pairflip.selection.criteria import FinalFits, information_criteria
from pairflip.selection.curve import SizeCurve
from pairflip.selection.facts import error_of_the_mean, separated_folds, shuffled_targets, table_facts
from pairflip.selection.folds import Folds
from pairflip.selection.journal import Found
from pairflip.selection.prediction import with_fold_fits, with_training_ranges
from pairflip.selection.records import AnnealCurves, Proved, StandIns
from pairflip.selection.survival_errors import survival_errors
from pairflip.selection.target_errors import target_errors
from pairflip.selection.tasks import ALL_ROWS, Work
from pairflip.selection.walks import temperatures
from pairflip.supports import ABSENT, distinct_supports, filled_up, unchanged_in
from pairflip.text import label_text

Supports = NDArray[np.int64]
_STAND_INS = 20
_FEW = 20
_POOL = 5_000  # supports of the folds that are tried on all rows, at most


@one_blas_thread()  # more would round differently
def assemble(
    work: Work,
    found: Found,
    *,
    engine: str,
    notes: Sequence[str],
    began: float,
    n_jobs: int | None,
) -> SizeCurve:
    """The whole record, size 0 first; every number in it comes from X, y and the supports found."""
    problem, folds = work.problem, work.folds
    errors = work.errors
    loss, n_targets = problem.loss, max(1, len(problem.target_names))
    squared = loss.squared
    compared = loss.observed(problem.y).reshape(problem.n_rows, -1)
    q = compared.shape[1]  # predictions of a row, those of each target or class
    row, unit = np.repeat(folds.row, q), np.repeat(folds.unit, q)
    weights = problem.sample_weight[row]

    threads = local_threads(n_jobs)
    with ThreadPoolExecutor(threads) as pool:
        # Large sizes take longest and come first; with several threads, proofs of small ones are sought here meanwhile.
        finally_fitted = [pool.submit(final_fit, work, found, size) for size in reversed(work.sizes)][::-1]
        scored = [pool.submit(of_size, work, found, errors, size) for size in reversed(work.sizes)][::-1]
        if threads == 1:
            wait(scored)
        fitted = [(problem.fit([]), 1.0)]
        proved = _proofs(work, finally_fitted, fitted)
        inside = [_of_nothing(work, errors), *(future.result() for future in scored)]
    fits, final_agreement = zip(*fitted, strict=True)
    residuals = np.stack([each.residuals for each in inside])
    cv_error, cv_error_se = mean_and_error(errors.row_errors(residuals), weights, unit)
    selected = tuple(_in_columns(problem, each.supports) for each in inside)
    counts = np.stack([np.bincount(s[s != ABSENT], minlength=problem.n_columns) for s in selected])
    sizes, units = np.array([0, *work.sizes], dtype=np.int64), problem.units
    energies = np.array([fit.energy for fit in fits])
    final = FinalFits(
        energies,
        sizes.astype(float),
        n_rows=problem.rows_present,
        n_candidates=problem.form.n_columns,
        n_forced=len(problem.always) + (problem.center is not None),
        yy=problem.form.yy,
        likelihood=not squared,
        n_targets=n_targets if squared else max(1, q - 1),  # those of one class follow from the others
        coefficients=_coefficients(problem, fits),
    )
    facts = {**table_facts(problem, folds), "p_value": shuffled_targets(problem.form.working, max(work.sizes))}
    separated = (
        []
        if squared
        else [int(k) for k, fit in zip(sizes, fits, strict=True) if problem.loss.remark(problem, fit.support)]
    )
    if separated:
        facts["separated"] = separated
    if not squared:
        facts["error_of_the_mean"] = error_of_the_mean(problem, folds.row, 2.0 * float(cv_error[0]))
    observed = errors.observed if isinstance(errors, HeldOutErrors) else compared[folds.row].ravel()
    predictions = observed - residuals
    curve = SizeCurve(
        sizes=sizes,
        names=problem.names,
        n_rows=problem.n_rows,
        n_folds=len(folds),
        cv_error=cv_error,
        cv_error_se=cv_error_se,
        energy_per_row=np.array([each.energy_per_row for each in inside]) / n_targets,
        selection_counts=counts,
        unchanged=np.array(
            [unchanged_in(columns, fit.support) for columns, fit in zip(selected, fits, strict=True)]
        ),
        agreement=np.array([each.agreement for each in inside]),
        chain_cv_error=np.stack(
            [mean_and_error(errors.row_errors(each.chain_residuals), weights, unit)[0] for each in inside]
        ),
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
        stand_ins=stand_ins(problem, np.unique(np.concatenate([fit.support for fit in fits]))),
        annealing=anneal_curves(work, found),
        settings=work.settings,
        facts=facts,
        data_hash=problem.hash,
        engine=engine,
        version=pairflip.__version__,
        seconds=time.perf_counter() - began,
        notes=tuple(notes),
        standard_errors=standard_errors(problem, fits) if q == 1 else None,
        exact=np.array([True] + [size == problem.form.n_columns or work.solves(size) for size in work.sizes]),
        proved=proved,
        classes=None if problem.classes is None else class_errors(
            observed, predictions, weights, [label_text(label) for label in problem.classes.tolist()],
            constant=problem.always.size == 0,
        ),
        survival=survival_errors(problem, errors, folds, selected) if loss.name == "cox" else None,
        targets=target_errors(problem, errors, folds, residuals)
        if problem.target_names and isinstance(errors, HeldOutErrors) else None,
        groups=None if units is None else dict(units.groups),
    )  # fmt: skip
    curve = with_training_ranges(with_fold_fits(curve, errors), problem)
    if problem.classes is not None:
        facts["separated_folds"] = separated_folds(curve, problem, folds)
    return curve


@dataclass(frozen=True)
class _Folds:
    """What the folds of one size say."""

    supports: Supports
    residuals: Floats
    chain_residuals: Floats
    energy_per_row: float
    agreement: float


def of_size(work: Work, found: Found, errors: HeldOutJudge, size: int) -> _Folds:
    """Supports of the folds (the lowest training energy of a fold's own chains counts) and held-out residuals."""
    folds = np.arange(len(work.folds))
    supports, _ = found.cells(size, folds.tolist(), work.chains)
    by_chain, energies = errors.judged(supports)  # those found are of the Gram matrix
    best = first_bests(energies, errors.yy)
    chosen, low = supports[folds, best], energies[folds, best]
    agreed = np.mean(reaches(energies, low[:, None], errors.yy[:, None]), axis=1)
    fold = np.repeat(work.folds.fold, by_chain.shape[1] // work.folds.fold.size)
    residuals = by_chain[best[fold], np.arange(fold.size)]
    return _Folds(chosen, residuals, by_chain, float(np.mean(low / _training_rows(work))), float(np.mean(agreed)))


def _of_nothing(work: Work, errors: HeldOutJudge) -> _Folds:
    """Size 0: the mean, or the forced columns alone."""
    residuals = errors.without_columns()
    supports = np.empty((len(work.folds), 0), dtype=np.int64)
    chains = np.tile(residuals, (work.chains, 1))
    return _Folds(supports, residuals, chains, float(np.mean(0.5 * errors.yy / _training_rows(work))), 1.0)


def _training_rows(work: Work) -> NDArray[np.int64]:
    return np.asarray(work.problem.rows_present - np.array([held.size for held in work.folds.left_out]))


def final_fit(work: Work, found: Found, size: int) -> tuple[Fit, float]:
    """The best support on all rows, and the fraction of its chains that agree with it.

    Polished: what the chains of the folds found is tried, too (no row is held out here), and a descent.
    """
    problem = work.problem
    supports, energies = found.cell(size, ALL_ROWS, work.chains_of(size, ALL_ROWS))
    # `own`: how many chains agree is asked of these alone, not of what the folds found.
    own, polish = energies, work.selection.polish and size < problem.form.n_columns
    if polish:
        other = _best_of_folds(work, found, size)
        supports, energies = np.vstack([supports, other]), np.append(energies, _energy(problem, other))
    chosen = supports[first_best(energies, problem.form.yy)]
    if polish and work.selection.anneals and problem.has_proofs:
        form = problem.form
        chosen = form.candidates[descended(form, form.positions(chosen))]
    fit = problem.fit(problem.columns_of(chosen))
    return fit, float(np.mean(reaches(own, fit.energy, problem.form.yy)))


def _proofs(work: Work, given: Sequence[Future[tuple[Fit, float]]], fitted: list[tuple[Fit, float]]) -> Proved | None:
    """Proofs of the final fits where they are cheap; a better support found on the way takes the place of a fit.

    Sizes in ascending order: where one could not be ruled out branch by branch, larger ones take longer still.
    """
    chosen, problem, n = work.selection, work.problem, work.problem.form.n_columns
    sought = chosen.prove and chosen.polish and problem.has_proofs
    seconds = proof_seconds(None if chosen.anneals else chosen.effort) if sought else 0.0
    proofs: list[Proof | None] = [None]  # size 0
    hopeless = not sought
    for size, future in zip(work.sizes, given, strict=True):
        fit, agreement = future.result()
        proof = None if hopeless or size >= n else proof_of(problem, size, fit.support, seconds)
        hopeless = hopeless or (proof is None and 2 * size < n)
        if proof is not None and is_lower(proof.energy, fit.energy, problem.form.yy):
            fit, agreement = problem.fit(problem.columns_of(proof.support)), 0.0  # no chain had found it
        fitted.append((fit, agreement))
        proofs.append(proof)
    return Proved(tuple(proofs)) if sought else None


def _best_of_folds(work: Work, found: Found, size: int) -> Supports:
    """The support with the lowest energy on all rows among those (the most frequent) that chains of folds found."""
    every = found.cells(size, range(len(work.folds)), work.chains)[0].reshape(-1, size)
    different, _, _, times = distinct_supports(every)
    pool = different[np.argsort(-times, kind="stable")[: _POOL if work.selection.anneals else _FEW]]
    if len(pool) == 1:
        return np.asarray(pool[0])
    if not work.problem.loss.quadratic:
        return np.asarray(pool[int(np.argmin([_energy(work.problem, support) for support in pool]))])
    none = np.zeros(0, np.int64)
    everything = HeldOutErrors(work.problem, Folds((none,), (none,), "all rows", True))
    return np.asarray(pool[int(np.argmin(everything.energies(np.zeros(len(pool), np.int64), pool)))])


def _energy(problem: SubsetProblem, support: Supports) -> float:
    """E of a support that a search found."""
    return problem.form.energy(problem.form.positions(support))


def _in_columns(problem: SubsetProblem, supports: Supports) -> Supports:
    """Supports (F, k) of the folds in columns; of whole groups there may be more in one fold than in another."""
    return supports if problem.units is None else filled_up([problem.columns_of(each) for each in supports])


def _coefficients(problem: SubsetProblem, fits: Sequence[Fit]) -> Floats | None:
    """Chosen coefficients that the rows determine (S,), where they are not as many as the size says."""
    if not problem.form.grouped:
        return None
    return np.array([problem.form.widths[problem.slots(fit.support)].sum() for fit in fits], dtype=float)


def anneal_curves(work: Work, found: Found) -> AnnealCurves:
    """The course of the final annealings, for the chains of which it was kept."""
    if not work.selection.anneals:
        none = np.empty((1 + len(work.sizes), 0, 0))
        return AnnealCurves(betas=np.empty((1 + len(work.sizes), 0)), energy=none, acceptance=none)
    kept = {a: s for a, s in found.steps.items() if a[1] == ALL_ROWS}
    chains = max((chain + 1 for _, _, chain in kept), default=0)
    steps_of = temperatures(work, work.problem.form, work.sizes)
    betas = np.full((1 + len(work.sizes), len(work.schedule)), np.nan)  # nothing was annealed at size 0
    betas[1:] = [steps_of[size] for size in work.sizes]
    both = np.full((2, len(betas), chains, len(work.schedule)), np.nan)
    for (size, _, chain), steps in kept.items():
        both[:, 1 + work.sizes.index(size), chain] = steps
    return AnnealCurves(betas=betas, energy=both[0], acceptance=both[1])


def stand_ins(problem: SubsetProblem, columns: NDArray[np.int64], count: int = _STAND_INS) -> StandIns:
    """The candidates most correlated with each of some columns, once what is always in the model is removed."""
    form = problem.form.working if problem.form.grouped else problem.form
    norms = np.sqrt(np.maximum(1.0 - form.penalty, 1e-300))  # the ridge term is part of the unit norm
    count = min(count, form.n_columns - 1)
    others = np.full((columns.size, count), -1, dtype=np.int64)
    correlation = np.zeros((columns.size, count))
    for u, at in enumerate(np.searchsorted(problem.candidates, columns)):
        # Not from a matrix that may or may not have been formed: it rounds differently.
        shared = form.row(int(at)) if problem.wide else form.columns @ form.columns[at]
        shared = shared / (norms * norms[at])
        size = np.abs(shared)
        size[at] = -1.0
        if problem.units is not None:  # columns of the same group are there with it
            size[problem.units.first[problem.candidates] == problem.units.first[columns[u]]] = -1.0
        top = np.argsort(-size, kind="stable")[:count]
        others[u], correlation[u] = problem.candidates[top], np.clip(shared[top], -1.0, 1.0)
        others[u, size[top] < 0] = -1
    return StandIns(columns=columns, others=others, correlation=correlation)
