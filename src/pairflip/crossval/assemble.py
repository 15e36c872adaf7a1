"""From finished chains to a `SizeCurve`: errors, counts, agreement, and the final fits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pairflip
from pairflip.crossval.criteria import information_criteria
from pairflip.crossval.curve import AnnealCurves, SizeCurve, StandIns
from pairflip.crossval.identity import data_hash
from pairflip.crossval.journal import Found
from pairflip.crossval.parallel import local_threads
from pairflip.crossval.scoring import HeldOutErrors, mean_and_error
from pairflip.crossval.tasks import ALL_ROWS, Work
from pairflip.crossval.walks import gram_of
from pairflip.double_flip import improve
from pairflip.engines.blas import one_blas_thread
from pairflip.least_squares import Floats
from pairflip.problem import Fit, SubsetProblem
from pairflip.settle import first_best, reaches

Supports = NDArray[np.int64]
_STAND_INS = 5
_POOL = 20_000  # supports that folds show each other, at most
_BETTER = 1e-9  # of y'y: by less than this, energies computed in two ways are equal


@one_blas_thread()  # more would round differently
def assemble(
    work: Work,
    found: Found,
    *,
    settings: dict[str, Any],
    engine: str,
    notes: Sequence[str],
    began: float,
    share: bool,
    polish: bool,
    n_jobs: int | None,
) -> SizeCurve:
    """The whole record; every number in it comes from X, y and the supports found."""
    problem, folds = work.problem, work.folds
    errors = HeldOutErrors(problem, folds)
    row, fold = folds.row, folds.fold
    weights = problem.sample_weight[row]

    def one(size: int) -> tuple[_Folds, Fit, float]:
        inside = _of_size(work, found, errors, size, share)
        return inside, *_final_fit(work, found, size, inside.pooled, polish)

    with ThreadPoolExecutor(local_threads(n_jobs)) as pool:
        inside, fits, final_agreement = zip(*pool.map(one, work.sizes), strict=True)
    residuals = np.stack([of_size.residuals for of_size in inside])
    cv_error, cv_error_se = mean_and_error(residuals**2, weights, fold)
    counts = np.stack([np.bincount(of_size.supports.ravel(), minlength=problem.n_columns) for of_size in inside])
    sizes = np.array(work.sizes, dtype=np.int64)
    energies = np.array([fit.energy for fit in fits])
    aic, bic, ebic = information_criteria(
        energies,
        sizes.astype(float),
        n_rows=problem.rows_present,
        n_candidates=int(problem.candidates.size),
        n_forced=len(problem.always) + (problem.center is not None),
        yy=problem.gram.yy,
    )
    return SizeCurve(
        sizes=sizes,
        names=problem.names,
        n_rows=problem.n_rows,
        n_folds=len(folds),
        cv_error=cv_error,
        cv_error_se=cv_error_se,
        energy_per_row=np.array([of_size.energy_per_row for of_size in inside]),
        selection_counts=counts,
        stability=np.array([_stability(of_size.supports, c) for of_size, c in zip(inside, counts, strict=True)]),
        agreement=np.array([of_size.agreement for of_size in inside]),
        chain_cv_error=np.stack([mean_and_error(of_size.chain_residuals**2, weights, fold)[0] for of_size in inside]),
        fold_supports=tuple(of_size.supports for of_size in inside),
        held_out_rows=row,
        held_out_fold=fold,
        observed=problem.y[row],
        weights=weights,
        predictions=problem.y[row] - residuals,
        supports=tuple(fit.support for fit in fits),
        coefs=tuple(fit.coef for fit in fits),
        intercepts=np.array([fit.intercept for fit in fits]),
        energies=energies,
        final_agreement=np.array(final_agreement),
        always=np.array(problem.always, dtype=np.int64),
        always_coefs=np.stack([fit.always_coef for fit in fits]),
        aic=aic,
        bic=bic,
        ebic=ebic,
        stand_ins=stand_ins(problem, np.unique(np.concatenate([fit.support for fit in fits]))),
        annealing=_annealing(work, found),
        settings=settings,
        data_hash=data_hash(problem),
        engine=engine,
        version=pairflip.__version__,
        seconds=time.perf_counter() - began,
        notes=tuple(notes),
    )


@dataclass(frozen=True)
class _Folds:
    """What the folds of one size say; `pooled` is the support that is best on all rows, if folds were shared."""

    supports: Supports
    residuals: Floats
    chain_residuals: Floats
    energy_per_row: float
    agreement: float
    pooled: Supports | None


def _of_size(work: Work, found: Found, errors: HeldOutErrors, size: int, share: bool) -> _Folds:
    """Supports of the folds (the lowest training energy counts), their held-out residuals, and those of each chain."""
    cells = [found.cell(size, f, work.chains) for f in range(len(work.folds))]
    supports, energies = np.stack([cell[0] for cell in cells]), np.stack([cell[1] for cell in cells])
    yy = work.problem.gram.yy
    best = np.array([first_best(e, yy) for e in energies])
    folds = np.arange(len(work.folds))
    chosen, low = supports[folds, best], energies[folds, best]
    pooled = None
    if share and size < work.problem.gram.n_columns:
        final, final_energies = found.cell(size, ALL_ROWS, work.chains_of(size, ALL_ROWS))
        behind = np.concatenate([(energies - low[:, None]).ravel(), final_energies - final_energies.min()])
        pool = np.vstack([supports.reshape(-1, size), final])[np.argsort(behind, kind="stable")]
        chosen, low, pooled = _shared(work, errors, pool, chosen, low)
    rows = np.array([work.problem.rows_present - held.size for held in work.folds.left_out])
    agreement = float(np.mean([np.mean(reaches(e, bound, yy)) for e, bound in zip(energies, low, strict=True)]))
    by_chain = errors.residuals(supports)
    fold = work.folds.fold
    residuals = by_chain[best[fold], np.arange(fold.size)]
    taken = np.flatnonzero(np.any(chosen != supports[folds, best], axis=1))
    if taken.size:
        shared = errors.residuals(chosen[:, None, :])[0]
        residuals = np.where(np.isin(fold, taken), shared, residuals)
    return _Folds(chosen, residuals, by_chain, float(np.mean(low / rows)), agreement, pooled)


def _shared(
    work: Work, errors: HeldOutErrors, pool: Supports, chosen: Supports, low: Floats
) -> tuple[Supports, Floats, Supports]:
    """Let every fold take the support of the pool with the lowest training energy there, if lower than its own.

    The pool is in the order of promise; a large one is cut. Returns supports and energies of the folds, and the support
    of the pool that is best on all rows.
    """
    _, first = np.unique(pool, axis=0, return_index=True)
    pool = pool[np.sort(first)[:_POOL]]
    which, inside, best = errors.lowest(pool)
    chosen, low = chosen.copy(), low.copy()
    for f in np.flatnonzero(inside < low - _BETTER * work.problem.gram.yy).tolist():
        energy = gram_of(work, f).energy(work.problem.slots(pool[which[f]]))
        if energy < low[f]:
            chosen[f], low[f] = pool[which[f]], energy
    return chosen, low, pool[best]


def _stability(fold_supports: Supports, counts: NDArray[np.int64]) -> float:
    """Part of the folds whose support is that of the k columns selected most often."""
    top = np.sort(np.argsort(-counts, kind="stable")[: fold_supports.shape[1]])
    return float(np.mean(np.all(fold_supports == top, axis=1)))


def _final_fit(work: Work, found: Found, size: int, pooled: Supports | None, polish: bool) -> tuple[Fit, float]:
    """The best support on all rows, polished by double flips, and the part of the chains that agree with it."""
    problem = work.problem
    supports, energies = found.cell(size, ALL_ROWS, work.chains_of(size, ALL_ROWS))
    own = energies
    if pooled is not None:
        supports, energies = np.vstack([supports, pooled]), np.append(energies, problem.energy(pooled))
    chosen = supports[first_best(energies, problem.gram.yy)]
    if polish and size < problem.gram.n_columns:
        improved = improve(problem.gram, np.searchsorted(problem.candidates, supports), energies)
        if improved is not None:
            chosen = problem.candidates[improved[0]]
    fit = problem.fit(chosen)
    return fit, float(np.mean(reaches(own, fit.energy, problem.gram.yy)))


def _annealing(work: Work, found: Found) -> AnnealCurves:
    """The course of the final annealings, as far as it was kept."""
    kept = {a: s for a, s in found.steps.items() if a[1] == ALL_ROWS}
    chains = max((chain + 1 for _, _, chain in kept), default=0)
    both = np.full((2, len(work.sizes), chains, work.flips.size), np.nan)
    for (size, _, chain), steps in kept.items():
        both[:, work.sizes.index(size), chain] = steps
    return AnnealCurves(betas=work.betas, energy=both[0], acceptance=both[1])


def stand_ins(problem: SubsetProblem, columns: NDArray[np.int64], count: int = _STAND_INS) -> StandIns:
    """The candidates most correlated with each of `columns`, beside what is always in the model."""
    gram = problem.gram
    norms = np.sqrt(np.maximum(1.0 - gram.penalty, 1e-300))  # the ridge term is part of the unit norm
    count = min(count, gram.n_columns - 1)
    others = np.full((columns.size, count), -1, dtype=np.int64)
    correlation = np.zeros((columns.size, count))
    for u, at in enumerate(problem.slots(columns)):
        shared = gram.columns @ gram.columns[at] / (norms * norms[at])
        size = np.abs(shared)
        size[at] = -1.0
        top = np.argsort(-size, kind="stable")[:count]
        others[u], correlation[u] = problem.candidates[top], np.clip(shared[top], -1.0, 1.0)
    return StandIns(columns=columns, others=others, correlation=correlation)
