r"""Squared error: forced columns are projected out, and the quadratic form is the Gram matrix itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.gram import Gram, HeldOutGram
from pairflip.inputs import as_target
from pairflip.least_squares import Floats, qr_solve
from pairflip.losses.base import Fit, HeldOutJudge, Words
from pairflip.losses.held_out import HeldOutErrors
from pairflip.losses.one_row_out import TRUSTED
from pairflip.losses.wide import WideGram
from pairflip.projection import Projected, check_range, is_nothing, project

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection.folds import Folds

HELD_OUT_BYTES = 64 * 2**20
"""Of a wide table, the left-out rows may take this much in a fold's form; beyond it the fold makes its own pass."""


class SquaredError:
    r""":math:`E(S) = \tfrac12 \min_{x, z} \|\sqrt w (y - X_S x - Z z)\|^2 + \tfrac{\lambda}{2} \|x\|^2`."""

    name = "squares"
    words = Words(error="RMSE", cv_error="half the mean squared error of held-out rows")
    quadratic = True
    squared = True

    def read_target(self, y: Any, n_rows: int) -> tuple[Floats, NDArray[Any] | None]:
        """Numbers."""
        return as_target(y, n_rows), None

    def mean(self, eta: Floats) -> Floats:
        """The linear predictor itself."""
        return eta

    def lacking(self, problem: SubsetProblem, kept: NDArray[np.int64]) -> str | None:
        """Nothing: a target that does not vary is predicted by its mean."""
        return None

    def remark(self, problem: SubsetProblem, support: NDArray[np.int64]) -> str:
        """Nothing: a support without a fit is refused."""
        return ""

    def row_errors(self, observed: Floats, predicted: Floats) -> Floats:
        """Squared errors."""
        return np.asarray((observed - predicted) ** 2)

    def prepare(self, problem: SubsetProblem) -> Gram:
        """Project the forced columns out of all rows and scale what remains to unit norm."""
        check_range(problem.X, problem.y, problem.column_names)
        means = (np.zeros(problem.n_columns), 0.0) if problem.center is None else None
        everything = np.arange(problem.n_rows)
        whole = _wide(problem, everything, means) if problem.wide else _projected(problem, everything, means)
        if is_nothing(whole.target, problem.y, problem.sample_weight):
            raise ValueError(
                "y is constant (or explained by what is always in the model), so there is nothing to predict; "
                "check that the target column is the right one."
            )
        if not whole.candidates.size:
            raise ValueError(
                f"none of the {problem.n_columns} columns of X varies (apart from what is always in the model); "
                "expected at least one column that is not constant."
            )
        problem.means, problem.y_mean = whole.means, whole.target_mean
        problem.powers = whole.powers if problem.wide else whole.powers[problem.always]
        problem.forced, problem.forced_basis = whole.forced, whole.basis
        problem.candidates, problem.scale = whole.candidates, whole.scale
        return _gram(problem, whole)

    def without_rows(self, problem: SubsetProblem, rows: NDArray[np.int64], anew: bool = False) -> Gram:
        """A low-rank change of the Gram matrix where that is accurate, otherwise the remaining rows as a new problem.

        Where the held-out rows hold most of a column or of the target, or alone make a column vary, subtraction would
        leave rounding errors.

        Parameters
        ----------
        problem, rows
            The problem, and the rows left out.
        anew
            The remaining rows as a new problem in any case: faster where they are few.
        """
        if not anew and (
            problem.gram.dense or 8 * rows.size * problem.gram.n_columns <= HELD_OUT_BYTES or not problem.wide
        ):
            fold = HeldOutGram(problem.gram, problem.forced, problem.forced_basis, rows)
            if fold.trust >= TRUSTED:
                return fold
        return _remaining(problem, rows)

    def fit(self, problem: SubsetProblem, support: NDArray[np.int64]) -> Fit:
        """Coefficients and energy by QR on the columns of X."""
        at, gram = problem.slots(support), problem.gram
        x, energy = qr_solve(gram.columns_of(at).T, gram.target, gram.penalty[at])
        coef = x / problem.scale[at]
        means, forced = problem.means, problem.forced
        rest = problem.y - problem.y_mean - (problem.X[:, support] - means[support]) @ coef
        norms = np.linalg.norm(forced, axis=0)
        norms[norms == 0] = 1.0
        z = np.linalg.lstsq(forced / norms, np.sqrt(problem.sample_weight) * rest, rcond=None)[0] / norms
        intercept, always_coef = (float(z[0]), z[1:]) if problem.center == "fold" else (0.0, z)
        always_coef = always_coef / problem.powers
        intercept += problem.y_mean - float(means[support] @ coef + means[problem.always] @ always_coef)
        return Fit(support, coef, intercept, always_coef, energy)

    def standard_errors(self, problem: SubsetProblem, support: NDArray[np.int64]) -> Floats:
        """They need an estimate of the noise, which `selection.coefficients` makes."""
        raise NotImplementedError

    def held_out(self, problem: SubsetProblem, folds: Folds) -> HeldOutJudge:
        """Held-out residuals by the leave-one-out identity."""
        return HeldOutErrors(problem, folds)


def _projected(problem: SubsetProblem, rows: NDArray[np.int64], means: tuple[Floats, float] | None) -> Projected:
    """Some rows as a table of their own, centred on `means`, or on their own means."""
    everything = rows.size == problem.n_rows
    return project(
        problem.X if everything else problem.X[rows],
        problem.y if everything else problem.y[rows],
        problem.sample_weight[rows],
        always=problem.always,
        ridge=problem.ridge,
        intercept=problem.center == "fold",
        means=means,
    )


def _remaining(problem: SubsetProblem, held_out: NDArray[np.int64]) -> Gram:
    """The rows that are left as a problem of their own; a target that does not vary there is zero."""
    rest = np.delete(np.arange(problem.n_rows), held_out)
    means = None if problem.center == "fold" else (problem.means, problem.y_mean)
    if problem.wide:
        return _gram(problem, _wide(problem, rest, means))
    inside = _projected(problem, rest, means)
    if is_nothing(inside.target, problem.y[rest], problem.sample_weight[rest]):
        inside = replace(inside, target=np.zeros(rest.size))
    return _gram(problem, inside)


def _wide(problem: SubsetProblem, rows: NDArray[np.int64], means: tuple[Floats, float] | None) -> WideGram:
    """Some rows of a wide table, without copying them."""
    return WideGram(
        problem.X,
        problem.y,
        problem.sample_weight,
        always=problem.always,
        ridge=problem.ridge,
        intercept=problem.center == "fold",
        means=means,
        rows=None if rows.size == problem.n_rows else rows,
    )


def _gram(problem: SubsetProblem, of: Projected | WideGram) -> Gram:
    """The form to walk on; a wide table with few candidates is an ordinary problem."""
    dense = 8 * of.candidates.size**2 <= problem.memory_budget
    if isinstance(of, WideGram) and not dense:
        return of
    return Gram(of.columns, of.target, of.penalty, of.candidates, dense=dense)
