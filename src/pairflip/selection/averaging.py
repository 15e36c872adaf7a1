r"""Prediction by the average over half-samples: each half has its own columns, and the mean of all models predicts.

Size and ridge are chosen by rows that a model did not see: row i is predicted by the mean over the halves that left it
out, and the pair with the lowest error of these means counts. That error is told after the same correction for choosing
as the error of a size (`selection.verdict`). Halves are those of the stability step, searched by the path alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pairflip.blas import one_blas_thread
from pairflip.least_squares import Floats
from pairflip.losses import HeldOutJudge
from pairflip.problem import SubsetProblem
from pairflip.selection.criteria import auc, concordance
from pairflip.selection.curve import Average, SizeCurve
from pairflip.selection.executors import Execution
from pairflip.selection.facts import told_by_the_mean
from pairflip.selection.folds import Folds
from pairflip.selection.prediction import sampled_errors
from pairflip.selection.progress import foreseen_seconds
from pairflip.selection.settings import GRID, LIKELIHOOD_GRID, Selection
from pairflip.selection.subsampling import (
    TooFewRows,
    found_in_halves,
    half_samples,
    possible_sizes,
    rows_together,
    search_halves,
)
from pairflip.selection.tasks import Grid, plan_halves
from pairflip.selection.verdict import Candidates, Ranking, corrected_error
from pairflip.selection.worker import TooFewColumns
from pairflip.supports import Ints, filled_up

_PAIRS = 50  # of half-samples that are averaged at most ...
_FEW_PAIRS = 12  # ... and where a path takes long, because energies are not quadratic or groups are chosen as a whole


def averages(selection: Selection) -> bool:
    """Whether a selection averages half-samples: where it draws them anyway, or is to predict by them."""
    return selection.stability > 0 or selection.predict_with == "average"


def ridges_of(problem: SubsetProblem, selection: Selection) -> tuple[float, ...]:
    """Relative ridge terms to choose from: those of the selection, or the usual ones where no penalty was given."""
    squared = problem.loss.squared
    if problem.shrinkage:
        return (problem.shrinkage,)
    if problem.ridge > 0 if squared else problem.ridge_given:
        return selection.ridges or (0.0,)
    return selection.ridges or (GRID if squared else LIKELIHOOD_GRID)


def _pairs(problem: SubsetProblem, selection: Selection) -> int:
    """How many pairs of half-samples are averaged."""
    most = _PAIRS if problem.form.quadratic and not problem.form.grouped else _FEW_PAIRS
    return min(selection.stability or _PAIRS, most)


def foreseen_average(grid: Grid, selection: Selection, threads: int) -> float:
    """Seconds, by the cost models, of the paths of all half-samples at every ridge; 0 where nothing is averaged."""
    if not averages(selection):
        return 0.0
    problem, count = grid.problem, 2 * _pairs(grid.problem, selection)
    half = plan_halves(problem, grid.sizes, grid.folds, grid.engine, effort="quick", prove=False)
    chains = {k: count * half.chains for k in grid.sizes}
    return len(ridges_of(problem, selection)) * foreseen_seconds(half, chains, count, threads)


def with_average(curve: SizeCurve, problem: SubsetProblem, selection: Selection, run: Execution) -> SizeCurve:
    """The curve with the average over half-samples; without it where rows are too few and nobody asked for it."""
    if not averages(selection):
        return curve
    sizes = tuple(int(k) for k in curve.sizes if k > 0)
    try:
        return replace(curve, average=average_halves(problem, sizes, selection, run.below("averaged")))
    except (TooFewRows, TooFewColumns):
        if selection.predict_with == "average":
            raise
        return curve


def average_halves(problem: SubsetProblem, sizes: Sequence[int], selection: Selection, run: Execution) -> Average:
    """The models of half-samples at the size and ridge whose means predict the left-out rows best."""
    halves = half_samples(problem, _pairs(problem, selection), selection.seed, run.groups, selection.cv)
    possible = possible_sizes(problem, sizes, halves)
    ridges = ridges_of(problem, selection)
    problems = [problem] if problem.shrinkage else [problem.with_shrinkage(ridge) for ridge in ridges]
    plan: dict[str, Any] = {"seed": selection.seed, "effort": "quick", "prove": False, "ridge": ridges}
    while True:  # a half may have fewer independent columns than rows
        try:
            results = [search_halves(each, possible, halves, run, **plan) for each in problems]
            break
        except TooFewColumns:
            if len(possible) == 1:
                raise
            possible = possible[:-1]
    supports = [[found_in_halves(each, k)[:, 0] for k in possible] for each in results]  # of the path alone
    unit = np.zeros(problem.n_rows, np.int64)  # rows that vary together
    for number, rows in enumerate(rows_together(problem, run.groups, selection.cv)[0]):
        unit[rows] = number
    return _chosen(problems, possible, halves, supports, unit)


@one_blas_thread()
def _chosen(
    problems: Sequence[SubsetProblem],
    sizes: tuple[int, ...],
    halves: Folds,
    supports: Sequence[Sequence[Ints]],
    unit: Ints,
) -> Average:
    """The average of the best ridge and size, and its error; `unit` (M,) are rows that belong together."""
    problem, loss = problems[0], problems[0].loss
    judges = [loss.held_out(each, halves) for each in problems]
    rows = np.flatnonzero(problem.sample_weight > 0)
    place = np.searchsorted(rows, halves.row)
    times = np.bincount(place, minlength=rows.size)

    def mean(values: Floats) -> Floats:
        """Means (n, q) over the halves that left a row out, of values (P, q)."""
        sums = [np.bincount(place, column, rows.size) for column in values.reshape(place.size, -1).T]
        return np.asarray(np.stack(sums, axis=1) / times[:, None])

    predicted = np.stack(
        [
            np.stack([mean(judge.predicted(judge.judged(each[:, None])[0])[0]) for each in of_ridge])
            for judge, of_ridge in zip(judges, supports, strict=True)
        ]
    )  # (R, S, n, q)
    observed = loss.observed(problem.y[rows]).reshape(rows.size, -1)
    weights, scale = problem.sample_weight[rows], problem.form.target_scale if problem.target_names else 1.0
    q, n_candidates = observed.shape[1], predicted.shape[:2]

    def row_errors(values: Floats) -> Floats:
        """What rows add to twice the error (..., n q), when they are predicted so (..., n, q)."""
        errors = loss.row_errors(observed / scale, values / scale)
        return errors.reshape(*values.shape[:-2], -1)

    each = np.repeat(weights, q)
    candidates = Candidates(row_errors(predicted), each, np.repeat(unit[rows], q), np.array(sizes))
    errors = 0.5 * np.average(candidates.errors, axis=-1, weights=each)
    ridge, size = (int(at) for at in np.unravel_index(int(np.argmin(errors)), n_candidates))
    middle = told_by_the_mean(problem, rows)
    if middle is None:
        middle = mean(judges[0].predicted(judges[0].without_columns()[None])[0])
    columns = _columns(problem, supports[ridge][size])
    fits = judges[ridge].fits(columns)
    several = slice(None) if q > 1 else 0
    return Average(
        sizes=np.array(sizes),
        ridges=np.array([each.shrinkage for each in problems]),
        errors=errors,
        size=sizes[size],
        ridge=problems[ridge].shrinkage,
        supports=columns,
        coefs=fits.coefs,
        always_coefs=fits.always_coefs,
        intercepts=fits.intercepts,
        rows=rows,
        weights=weights,
        observed=observed[:, several],
        predictions=predicted[ridge, size][:, several],
        corrected=corrected_error(
            candidates,
            (ridge, size),
            variance=0.5 * float(np.average(row_errors(middle.reshape(observed.shape)), weights=each)),
            squares=loss.squared,
            ranking=_ranking(problem, judges, supports, mean, predicted),
        ),
        sampled=sampled_errors(problem, halves.left_out, fits, columns, mean=True),
    )


def _columns(problem: SubsetProblem, supports: Ints) -> Ints:
    """Columns of units; where halves have different numbers of them, -1 comes first."""
    return supports if problem.units is None else filled_up([problem.columns_of(each) for each in supports])


def _ranking(
    problem: SubsetProblem,
    judges: Sequence[HeldOutJudge],
    supports: Sequence[Sequence[Ints]],
    mean: Callable[[Floats], Floats],
    predicted: Floats,
) -> Ranking | None:
    """What ranks rows, where that is told: probabilities of two classes, or mean risks of survival times."""
    name, rows = problem.loss.words.ranking, np.flatnonzero(problem.sample_weight > 0)
    if not name or predicted.shape[-1] > 1:
        return None
    if problem.y.ndim == 1:
        return Ranking(name, auc, problem.y[rows], predicted[..., 0])
    risks = [
        [mean(problem.loss.mean(judge.predictors(_columns(problem, each))))[:, 0] for each in of_ridge]
        for judge, of_ridge in zip(judges, supports, strict=True)
    ]
    return Ranking(name, concordance, problem.y[rows], np.array(risks))
