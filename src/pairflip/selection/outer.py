"""A second cross validation around the first: everything is chosen anew without the rows that are predicted.

What a size's held-out errors cannot say is how good the whole way of choosing is. Here some rows are set aside, size
and columns are chosen on the others, as they would be if these were the whole table, and the rows set aside are
predicted by that. It costs as many selections as there are outer folds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.least_squares import Floats
from pairflip.losses.held_out import mean_and_error
from pairflip.problem import SubsetProblem
from pairflip.selection.curve import OuterError, SizeCurve
from pairflip.selection.facts import told_by_the_mean
from pairflip.selection.folds import Blocks, Folds, as_folds
from pairflip.selection.settings import Selection
from pairflip.selection.verdict import explained_fraction, recommended_size
from pairflip.text import numbered

OUTER_FOLDER = "outer"
"""Folder inside a journal that has those of the outer folds."""
Select = Callable[[SubsetProblem, Selection, ArrayLike | None, Path | None], SizeCurve]


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
    problem: SubsetProblem, selection: Selection, groups: ArrayLike | None, journal: Path | None, select: Select
) -> OuterError:
    """The error of rows that had no part in choosing anything."""
    folds = outer_folds(problem, selection, groups)
    inner = replace(selection, outer=0, stability=0, null=0)
    labels = None if groups is None else np.asarray(groups)
    predictions, without, sizes, supports, scales = [], [], [], [], []
    for number, (rows, left_out) in enumerate(zip(folds.rows, folds.left_out, strict=True)):
        kept = np.setdiff1d(np.arange(problem.n_rows), left_out)
        folder = None if journal is None else journal / OUTER_FOLDER / f"{number + 1:02d}"
        try:
            own = None if labels is None else labels[kept]
            part = _rows_of(problem, kept)
            curve = select(part, inner, own, folder)
        except ValueError as error:
            raise ValueError(f"outer {numbered('fold', number)}: {error}") from None
        size = recommended_size(curve)
        support = curve.supports[curve.at(size)]
        if problem.loss.squared:
            told = curve.predict(np.asarray(problem.X[rows]), size)
        else:  # with offsets, or the hazard of the other rows
            known = problem.loss.observed(problem.y[rows])
            judge = problem.loss.held_out(problem.with_shrinkage(curve.ridge), folds.only(number))
            told = known - judge.residuals(support[None, None])[0].reshape(known.shape)
            without.append(known - judge.without_columns().reshape(known.shape))
        predictions.append(told)
        sizes.append(size)
        supports.append(support)
        scales.append(np.broadcast_to(getattr(part.form, "target_scale", 1.0), told.shape))
    told, scale = np.concatenate(predictions), np.concatenate(scales)
    mean = told_by_the_mean(problem, folds.row)
    mean = np.concatenate(without) if mean is None else mean
    return _summary(problem, folds, told, mean, scale, np.array(sizes, dtype=np.int64), tuple(supports))


def _rows_of(problem: SubsetProblem, rows: NDArray[np.int64]) -> SubsetProblem:
    """The same problem on some of its rows."""
    y = problem.y[rows]
    if problem.classes is not None:
        y = problem.classes[np.asarray(problem.loss.strata(y), dtype=np.int64)]
    part = SubsetProblem(
        problem.X[rows],
        y,
        names=problem.column_names,
        center=problem.center,
        always=[int(j) for j in problem.always],
        sample_weight=problem.sample_weight[rows],
        ridge=problem.ridge,
        loss="squares" if problem.target_names else problem.loss.name,
        offset=None if problem.offset is None else problem.offset[rows],
        memory_budget=problem.memory_budget,
        **problem.target_options(),
        **problem.limits.arguments(),
    )
    return part.with_shrinkage(problem.shrinkage) if problem.shrinkage else part


def _summary(
    problem: SubsetProblem,
    folds: Folds,
    predictions: Floats,
    mean: Floats,
    scale: Floats,
    sizes: NDArray[np.int64],
    supports: tuple[NDArray[np.int64], ...],
) -> OuterError:
    """Errors of all rows that were set aside."""
    row = folds.row
    observed, weights = problem.loss.observed(problem.y[row]), problem.sample_weight[row]

    def half_of(told: Floats) -> Floats:
        """Errors (P,) of the rows, the mean over their targets."""
        each = problem.loss.row_errors(observed / scale, told / scale)
        return np.asarray(each.reshape(len(each), -1).mean(axis=1))

    error, spread = mean_and_error(half_of(predictions)[None, :], weights, folds.unit)
    total = 0.5 * float(np.average(half_of(mean), weights=weights))
    r2 = 1.0 - float(error[0]) / total if total > 0 else float("nan")
    found = OuterError(float(error[0]), float(spread[0]), r2, sizes, supports, row, folds.fold, predictions)
    if not problem.target_names:
        return found
    left = observed - predictions
    shares = [explained_fraction(y, rest, weights) for y, rest in zip(observed.T, left.T, strict=True)]
    return replace(found, target_rmse=np.sqrt(np.average(left**2, axis=0, weights=weights)), target_r2=np.array(shares))
