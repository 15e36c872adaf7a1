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
from pairflip.selection.curve import SizeCurve
from pairflip.selection.folds import Blocks, Folds, as_folds
from pairflip.selection.records import OuterError
from pairflip.selection.settings import Selection
from pairflip.selection.verdict import recommended_size
from pairflip.text import numbered

OUTER_FOLDER = "outer"
"""Folder inside a journal that has those of the outer folds."""
Select = Callable[[SubsetProblem, Selection, ArrayLike | None, Path | None], SizeCurve]


def outer_folds(problem: SubsetProblem, selection: Selection, groups: ArrayLike | None) -> Folds:
    """The rows that are set aside together: whole groups, or blocks where the selection has blocks.

    Parameters
    ----------
    problem : SubsetProblem
        The table.
    selection : Selection
        How a size is chosen, with the number of outer folds.
    groups : (M,), optional
        Labels of the rows.
    """
    if isinstance(selection.cv, tuple):
        raise ValueError(
            "outer (--outer) is given together with splits of this very table; expected a way to make folds of any "
            "rows, for instance cv='5x10'."
        )
    return as_folds(Blocks(selection.outer) if isinstance(selection.cv, Blocks) else selection.outer, problem, groups)


def outer_error(
    problem: SubsetProblem, selection: Selection, groups: ArrayLike | None, journal: Path | None, select: Select
) -> OuterError:
    """The error of rows that had no part in choosing anything.

    Parameters
    ----------
    problem, selection, groups
        The table, how a size is chosen, and labels of the rows.
    journal : Path or None
        Where finished work of the outer folds is kept, each in a folder of its own.
    select : callable
        Chooses on one table: called with a problem, a selection, groups and a journal.
    """
    folds = outer_folds(problem, selection, groups)
    inner = replace(selection, outer=0, stability=0, null=0)
    labels = None if groups is None else np.asarray(groups)
    predictions, sizes, supports = [], [], []
    for number, (rows, left_out) in enumerate(zip(folds.rows, folds.left_out, strict=True)):
        kept = np.setdiff1d(np.arange(problem.n_rows), left_out)
        folder = None if journal is None else journal / OUTER_FOLDER / f"{number + 1:02d}"
        try:
            own = None if labels is None else labels[kept]
            curve = select(_rows_of(problem, kept), inner, own, folder)
        except ValueError as error:
            raise ValueError(f"outer {numbered('fold', number)}: {error}") from None
        size = recommended_size(curve)
        told = curve.predict(np.asarray(problem.X[rows]), size)
        predictions.append(told if problem.offset is None else told * np.exp(problem.offset[rows]))
        sizes.append(size)
        supports.append(curve.supports[curve.at(size)])
    return _summary(problem, folds, np.concatenate(predictions), np.array(sizes, dtype=np.int64), tuple(supports))


def _rows_of(problem: SubsetProblem, rows: NDArray[np.int64]) -> SubsetProblem:
    """The same problem on some of its rows."""
    part = SubsetProblem(
        problem.X[rows],
        problem.y[rows],
        names=problem.column_names,
        center=problem.center,
        always=[int(j) for j in problem.always],
        sample_weight=problem.sample_weight[rows],
        ridge=problem.ridge,
        loss=problem.loss.name,
        offset=None if problem.offset is None else problem.offset[rows],
        memory_budget=problem.memory_budget,
        **problem.limits.arguments(),
    )
    return part.with_shrinkage(problem.shrinkage) if problem.shrinkage else part


def _summary(
    problem: SubsetProblem,
    folds: Folds,
    predictions: Floats,
    sizes: NDArray[np.int64],
    supports: tuple[NDArray[np.int64], ...],
) -> OuterError:
    """Errors of all rows that were set aside.

    Parameters
    ----------
    problem, folds
        The table, and which rows were set aside together.
    predictions : (P,)
        Of these rows, fold by fold.
    sizes, supports
        What was chosen in each fold.
    """
    row = folds.row
    observed, weights = problem.y[row], problem.sample_weight[row]
    error, spread = mean_and_error(problem.loss.row_errors(observed, predictions)[None, :], weights, folds.unit)
    mean = np.full(observed.size, np.average(observed, weights=weights))
    total = 0.5 * float(np.average(problem.loss.row_errors(observed, mean), weights=weights))
    r2 = 1.0 - float(error[0]) / total if total > 0 else float("nan")
    return OuterError(float(error[0]), float(spread[0]), r2, sizes, supports, row, folds.fold, predictions)
