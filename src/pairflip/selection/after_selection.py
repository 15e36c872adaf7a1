"""What is asked of a table once its size is chosen: half-samples, shuffled targets, outer folds, other imputations."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pairflip.least_squares import Floats
from pairflip.losses.held_out import mean_and_error
from pairflip.philox import address_keys, start_order
from pairflip.preparation import take_rows
from pairflip.problem import SubsetProblem
from pairflip.search.best_subset import best_subset
from pairflip.search.portfolio import first_best
from pairflip.search.posterior import Posterior
from pairflip.selection.criteria import explained_fraction
from pairflip.selection.curve import Inclusion, NullCheck, OuterError, SizeCurve
from pairflip.selection.executors import Execution
from pairflip.selection.facts import told_by_the_mean
from pairflip.selection.folds import Blocks, Folds, as_folds
from pairflip.selection.prediction import predict_any
from pairflip.selection.settings import Selection
from pairflip.selection.stability import Stability
from pairflip.selection.subsampling import (
    TooFewRows,
    check_enough_rows,
    found_in_halves,
    found_on_all_rows,
    half_samples,
    possible_sizes,
    search_halves,
    summarize,
    with_clusters,
)
from pairflip.selection.tasks import Grid
from pairflip.selection.worker import FORMED, TooFewColumns
from pairflip.text import numbered

_PAIRS = 50  # of half-samples for each shuffled target, where the selection itself asks for none
_SHUFFLES = 0  # in place of a fold, at size 0: where the halves have all rows
_FAR = 6.0  # robust standard deviations: of normal errors of a thousand tables with a thousand rows, one has such a row
_FEW_ROWS, _LEAST_OTHERS = 3, 10
_IMPUTATIONS = 3  # tables with noise in filled values


def with_checks(curve: SizeCurve, grid: Grid, selection: Selection, run: Execution) -> SizeCurve:
    """The curve with the half-samples and shuffled targets that are asked for; of too few rows, a note says so."""
    size, began = curve.answer.shown, time.perf_counter()
    if not (selection.stability or selection.null) or size == 0:
        return curve
    pairs = selection.stability or _PAIRS  # the same for shuffled targets: the highest frequency depends on it
    stability: Stability | None = None
    null: NullCheck | None = None
    notes = list(curve.notes)
    try:
        halves = half_samples(grid.problem, pairs, selection.seed, run.groups, selection.cv)
        if selection.stability:
            stability = _stability(curve, grid, halves, selection, run.below("half-samples"))
            different = len({left_out.tobytes() for left_out in halves.left_out})
            if 2 * different < len(halves):
                notes.append(f"of so few groups or blocks only {different} different halves were made")
        if selection.null:
            check_enough_rows(grid.problem, (size,), halves)
            null = _permutation_check(grid, size, halves, selection, run)
    except (TooFewRows, TooFewColumns) as error:
        notes.append(f"stability is not known: {str(error).rstrip('.')}")
    seconds = curve.seconds + time.perf_counter() - began
    return replace(curve, stability=stability, null=null, notes=tuple(notes), seconds=seconds)


def _stability(curve: SizeCurve, grid: Grid, halves: Folds, selection: Selection, run: Execution) -> Stability:
    """What half-samples select at the sizes that half of the rows allow."""
    problem, every = grid.problem, selection.stability_at == "all"
    sizes = curve.sizes[1:].tolist() if every else [curve.answer.shown]
    possible, supports = possible_sizes(problem, sizes, halves), []
    for k in possible:
        results = search_halves(problem, (k,), halves, run, seed=selection.seed, effort=selection.effort)
        supports.append(found_in_halves(results, k))
    final = [curve.supports[curve.at(k)] for k in possible]
    if problem.units is not None:
        final = [problem.units.units_of(columns) for columns in final]
    return with_clusters(problem, summarize(problem, halves, possible, final, supports))


def _permutation_check(grid: Grid, size: int, halves: Folds, selection: Selection, run: Execution) -> NullCheck:
    """What noise would give: the same selection of folds, halves and all rows at one size, of shuffled targets."""
    folds, n_folds = grid.folds, len(grid.folds)
    both = Folds((*folds.rows, *halves.rows), (*folds.left_out, *halves.left_out), "folds and random halves", True)
    plan: dict[str, Any] = {"seed": selection.seed, "effort": selection.effort, "final": True}
    checks = []
    for number in range(selection.null):
        problem = shuffled(grid.problem, selection.seed, number)
        below = run.below("shuffled", f"{number:04d}")
        results = search_halves(problem, (size,), both, below, first_folds=n_folds + 2, **plan)
        every, best = found_in_halves(results, size), found_on_all_rows(results, size)
        errors = problem.loss.held_out(problem, folds)
        by_chain, energies = errors.judged(every[:n_folds])
        q = max(1, len(problem.target_names))  # predictions of a row, those of each target
        fold, weights = folds.fold.repeat(q), problem.sample_weight[folds.row].repeat(q)
        residuals = by_chain[first_best(energies, errors.yy)[fold], np.arange(fold.size)]
        # In units of the training rows, as the errors are, where there are such units.
        r2 = explained_fraction(errors.observed, residuals, weights)
        halved = summarize(problem, halves, (size,), [best], [every[n_folds:]])
        checks.append((r2, halved.set_frequency[0], halved.overlap[0], halved.frequencies.max()))
    return NullCheck(size, len(halves) // 2, *np.array(checks).T)


def shuffled(problem: SubsetProblem, seed: int, number: int) -> SubsetProblem:
    """The same table with a shuffled target; of forced columns, what they leave of the target is shuffled."""
    present = np.flatnonzero(problem.sample_weight > 0)
    (key,) = address_keys(seed, 0, _SHUFFLES, [number])
    form, root = problem.form.working, np.sqrt(problem.sample_weight[present])
    unexplained = form.targets[present] * form.target_scale / root[:, None]  # by the forced columns
    y = problem.targets.copy()
    y[present] += unexplained[start_order(key, present.size)] - unexplained  # several targets stay together
    other = problem.rebuilt(slice(None), y if problem.target_names else y[:, 0])
    if other.form.n_columns > FORMED:
        other.form.dense = False
    return other


def outer_folds(problem: SubsetProblem, selection: Selection, groups: ArrayLike | None) -> Folds:
    """The rows that are set aside together: whole groups, or blocks where the selection has blocks."""
    if isinstance(selection.cv, tuple):
        raise ValueError(
            "outer (--outer) is given together with splits of this very table; expected a way to make folds of any "
            "rows, for instance cv='5x10'."
        )
    cv = Blocks(selection.outer) if isinstance(selection.cv, Blocks) else selection.outer
    return as_folds(cv, problem, groups, selection.seed)


def outer_error(
    problem: SubsetProblem, selection: Selection, run: Execution, select: Callable[..., SizeCurve]
) -> OuterError:
    """The error of rows that had no part in choosing anything: a second cross validation around the first."""
    folds, loss = outer_folds(problem, selection, run.groups), problem.loss
    inner = replace(selection, outer=0, stability=0, null=0)
    predicted, by_the_mean, sizes, supports, scales = [], [], [], [], []
    for number, (rows, left_out) in enumerate(zip(folds.rows, folds.left_out, strict=True)):
        others = np.setdiff1d(np.arange(problem.n_rows), left_out)
        groups = None if run.groups is None else np.asarray(run.groups)[others]
        below = run.below("outer", f"{number + 1:02d}")._replace(groups=groups)
        try:
            part = problem.rebuilt(others)
            curve = select(part, inner, below)
        except ValueError as refusal:
            raise ValueError(f"outer {numbered('fold', number)}: {refusal}") from None
        sizes.append(curve.answer.size)
        supports.append(curve.supports[curve.at(sizes[-1])])
        if loss.squared:
            predicted.append(np.asarray(predict_any(curve, take_rows(problem.raw, rows), sizes[-1], None)[0]))
        else:  # with offsets, or the hazard of the other rows
            known = loss.observed(problem.y[rows])
            judge = loss.held_out(problem.with_shrinkage(curve.ridge), folds.some([number]))
            predicted.append(known - judge.judged(supports[-1][None, None])[0][0].reshape(known.shape))
            by_the_mean.append(known - judge.without_columns().reshape(known.shape))
        scales.append(np.broadcast_to(getattr(part.form, "target_scale", 1.0), predicted[-1].shape))

    row, predictions, scale = folds.row, np.concatenate(predicted), np.concatenate(scales)
    mean = told_by_the_mean(problem, row)
    mean = np.concatenate(by_the_mean) if mean is None else mean
    observed, weights = loss.observed(problem.y[row]), problem.sample_weight[row]

    def row_errors(values: Floats) -> Floats:
        """Errors (P,) of the rows, the mean over their targets."""
        each = loss.row_errors(observed / scale, values / scale)
        return np.asarray(each.reshape(len(each), -1).mean(axis=1))

    error, spread = mean_and_error(row_errors(predictions)[None, :], weights, folds.unit)
    total = 0.5 * float(np.average(row_errors(mean), weights=weights))
    r2 = 1.0 - float(error[0]) / total if total > 0 else float("nan")
    chosen = np.array(sizes, dtype=np.int64), tuple(supports)
    outer = OuterError(float(error[0]), float(spread[0]), r2, *chosen, row, folds.fold, predictions)
    if not problem.target_names:
        return outer
    residuals = observed - predictions
    shares = [explained_fraction(y, rest, weights) for y, rest in zip(observed.T, residuals.T, strict=True)]
    rmse = np.sqrt(np.average(residuals**2, axis=0, weights=weights))
    return replace(outer, target_rmse=rmse, target_r2=np.array(shares))


def with_imputations(curve: SizeCurve, problem: SubsetProblem, selection: Selection, run: Execution) -> SizeCurve:
    """The curve with the fact ``imputed``: of how many tables with noise in filled values the same columns are best."""
    size = curve.answer.shown
    if problem.preparation is None or size == 0:
        return curve
    from sklearn.base import clone

    from pairflip.preprocessing import imputers

    raw = np.asarray(take_rows(problem.raw, np.flatnonzero(problem.sample_weight > 0)))
    missing = int(np.count_nonzero(raw != raw))
    if not missing or not imputers(problem.preprocess):
        return curve
    search: dict[str, Any] = {"effort": selection.effort, "seed": selection.seed, "prove": selection.prove}
    same = 0
    for number in range(_IMPUTATIONS):
        other, noisy = copy(problem), clone(problem.preprocess)
        for each in imputers(noisy):
            each.set_params(noise=1.0, random_state=_IMPUTATIONS * selection.seed + number)
        other.preparation = replace(problem.preparation, transformer=noisy)
        trace = best_subset(other.rebuilt(slice(None)), size, engine=run.engine, n_jobs=run.n_jobs, **search)
        same += set(trace.best_names) == {curve.names[j] for j in curve.supports[curve.at(size)]}
    return replace(curve, facts={**curve.facts, "imputed": {"missing": missing, "same": same, "of": _IMPUTATIONS}})


def with_influence(
    curve: SizeCurve, problem: SubsetProblem, selection: Selection, run: Execution, select: Callable[..., SizeCurve]
) -> SizeCurve:
    """The curve with the fact ``influential``: what changes without rows that lie far out, where the answer does.

    Far out is a row whose target, or whose error when it is held out, is more than `_FAR` robust standard deviations
    from the median. `rows` are at most `_FEW_ROWS` of them, the farthest ones; `size`, `stay` and `r2` are those of the
    same selection without them: the size, how many of the columns are chosen again, and the explained fraction.
    """
    size, loss = curve.answer.size, problem.loss
    if not size or not loss.squared or problem.target_names or not curve.single_rows or problem.units is not None:
        return curve
    rows = np.unique(curve.held_out_rows)
    place = np.searchsorted(rows, curve.held_out_rows)
    off = np.bincount(place, curve.observed - curve.predictions[curve.at(size)]) / np.bincount(place)
    far = np.maximum(_robust_deviations(problem.y[rows]), _robust_deviations(off))
    out = np.sort(rows[np.argsort(-far, kind="stable")[: min(_FEW_ROWS, np.count_nonzero(far > _FAR))]])
    if not out.size or rows.size - out.size < 2 * _LEAST_OTHERS:
        return curve
    others = np.setdiff1d(np.arange(problem.n_rows), out)
    how: dict[str, Any] = {"outer": 0, "stability": 0, "null": 0, "effort": "quick", "prove": False}
    inner = replace(selection, sizes=curve.settings["sizes"], **how)
    if isinstance(inner.cv, tuple):  # splits of this very table
        return curve
    groups = None if run.groups is None else np.asarray(run.groups)[others]
    below = run.below("influence")._replace(groups=groups, progress=False)
    try:
        without = select(problem.rebuilt(others), inner, below)
    except ValueError:  # these rows alone make a column vary, or a fold possible
        return curve
    answer, columns = without.answer, curve.supports[curve.at(size)]
    stay = int(np.isin(columns, without.supports[without.at(answer.size)]).sum())
    if answer.size == size and stay == columns.size:
        return curve
    share = None if answer.error is None else answer.error.r2[0]
    fact = {"rows": out.tolist(), "size": answer.size, "stay": stay, "of": int(columns.size), "r2": share}
    return replace(curve, facts={**curve.facts, "influential": fact})


def _robust_deviations(values: Floats) -> Floats:
    """Distances from the median in robust standard deviations; 0 where half of the values are equal."""
    away = np.abs(values - np.median(values))
    scale = 1.4826 * float(np.median(away))
    return away / scale if scale > 0 else np.zeros(values.size)


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
