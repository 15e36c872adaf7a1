"""A second cross validation around the first: everything is chosen anew without the rows that are predicted.

What a size's held-out errors cannot say is how good the whole way of choosing is. Here some rows are set aside, size
and columns are chosen on the others, as they would be if these were the whole table, and the rows set aside are
predicted by that. It costs as many selections as there are outer folds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.journal_file import Folder
from pairflip.least_squares import Floats
from pairflip.losses.held_out import mean_and_error
from pairflip.problem import SubsetProblem
from pairflip.selection.curve import OuterError, SizeCurve
from pairflip.selection.facts import told_by_the_mean
from pairflip.selection.folds import Blocks, Folds, as_folds
from pairflip.selection.settings import Selection
from pairflip.selection.verdict import explained_fraction, recommended_size
from pairflip.text import numbered

_FOLDER = "outer"  # inside a journal: the journals of the outer folds


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
    problem: SubsetProblem,
    selection: Selection,
    groups: ArrayLike | None,
    journal: Folder | None,
    select: Callable[..., SizeCurve],
) -> OuterError:
    """The error of rows that had no part in choosing anything; `select` is `select_size`, told how to run."""
    folds, loss = outer_folds(problem, selection, groups), problem.loss
    inner = replace(selection, outer=0, stability=0, null=0)
    told, by_the_mean, sizes, supports, scales = [], [], [], [], []
    for number, (rows, left_out) in enumerate(zip(folds.rows, folds.left_out, strict=True)):
        others = np.setdiff1d(np.arange(problem.n_rows), left_out)
        folder = None if journal is None else Path(journal) / _FOLDER / f"{number + 1:02d}"
        labels = None if groups is None else np.asarray(groups)[others]
        try:
            part = rebuilt(problem, others)
            curve = select(part, inner, groups=labels, journal=folder)
        except ValueError as refusal:
            raise ValueError(f"outer {numbered('fold', number)}: {refusal}") from None
        sizes.append(recommended_size(curve))
        supports.append(curve.supports[curve.at(sizes[-1])])
        if loss.squared:
            told.append(curve.predict(np.asarray(problem.X[rows]), sizes[-1]))
        else:  # with offsets, or the hazard of the other rows
            known = loss.observed(problem.y[rows])
            judge = loss.held_out(problem.with_shrinkage(curve.ridge), folds.some([number]))
            told.append(known - judge.judged(supports[-1][None, None])[0][0].reshape(known.shape))
            by_the_mean.append(known - judge.without_columns().reshape(known.shape))
        scales.append(np.broadcast_to(getattr(part.form, "target_scale", 1.0), told[-1].shape))

    row, predictions, scale = folds.row, np.concatenate(told), np.concatenate(scales)
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


def rebuilt(problem: SubsetProblem, rows: NDArray[np.int64] | slice, y: Any = None) -> SubsetProblem:
    """The same problem on some of its rows, with its own target or another one."""
    if y is None:
        y = problem.y[rows]
        if problem.classes is not None:
            y = problem.classes[np.asarray(problem.loss.strata(y), dtype=np.int64)]
    part = SubsetProblem(
        problem.X[rows],
        y,
        names=problem.column_names,
        center=problem.center,
        always=problem.always.tolist(),
        sample_weight=problem.sample_weight[rows],
        ridge=problem.ridge,
        loss="squares" if problem.target_names else problem.loss.name,
        offset=None if problem.offset is None else problem.offset[rows],
        memory_budget=problem.memory_budget,
        **problem.target_options(),
        **problem.limits.arguments(),
    )
    return part.with_shrinkage(problem.shrinkage)
