r"""Squared error with a relative ridge: a penalty in units of the scaled columns,

.. math:: E(S) = \tfrac12 \min_{x, z} \|\sqrt w (y - X_S x - Z z)\|^2 + \tfrac{\lambda}{2} \sum_j |X_j|^2 x_j^2 ,

with :math:`|X_j|` the norm of column j, forced columns projected out, on the rows that are fitted. In a fold these are
its training rows, so that nothing of the held-out rows enters. Multiplying a column by a number changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairflip.distinct import distinct_supports
from pairflip.gram import Gram
from pairflip.least_squares import Floats
from pairflip.losses.base import HeldOutJudge
from pairflip.losses.fold_fits import FoldCoefficients, solve_without
from pairflip.losses.held_out import HeldOutErrors
from pairflip.losses.squares import SquaredError

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection.folds import Folds

LARGEST = 1e6
"""More shrinkage than this leaves nothing of the coefficients."""


def check_shrinkage(ridge: object) -> float:
    """A relative ridge: a finite number >= 0."""
    if isinstance(ridge, (bool, str)) or not isinstance(ridge, (int, float, np.number)):
        raise TypeError(f"ridge holds {ridge!r}; expected numbers >= 0, in units of the scaled columns.")
    if not (np.isfinite(ridge) and 0 <= ridge <= LARGEST):
        raise ValueError(f"ridge holds {float(ridge):g}; expected numbers from 0 to {LARGEST:g}.")
    return float(ridge)


class ShrunkenGram(Gram):
    r"""A problem without ridge, `base`, with a relative ridge :math:`\lambda`: columns of unit norm give

    .. math:: (G + \lambda I) / (1 + \lambda), \quad b / \sqrt{1 + \lambda}, \quad y^T y .

    Columns, together with their ridge term, have unit norm again, so engines need not know.
    """

    def __init__(self, base: Gram, ridge: float) -> None:
        self.base = base
        self.ridge = ridge
        self.candidates = base.candidates
        self.b = base.b / np.sqrt(1.0 + ridge)
        self.yy = base.yy
        self.penalty = np.full(base.n_columns, ridge / (1.0 + ridge))
        self.diagonal = np.ones(base.n_columns)
        self.dense = base.dense

    @cached_property
    def columns(self) -> Floats:  # type: ignore[override]
        """Column j as contiguous row j (N, M), without its ridge term."""
        return np.asarray(self.base.columns / np.sqrt(1.0 + self.ridge))

    @property
    def target(self) -> Floats:  # type: ignore[override]
        """The projected target (M,)."""
        return self.base.target

    @property
    def nbytes(self) -> int:
        """Bytes held beside the user's table, without the matrix."""
        return int(self.base.nbytes + (self.columns.nbytes if "columns" in self.__dict__ else 0))

    def columns_of(self, which: NDArray[np.int64]) -> Floats:
        """Rows `which` of `columns`, without forming the others."""
        return np.asarray(self.base.columns_of(which) / np.sqrt(1.0 + self.ridge))

    def on_rows(self, rows: NDArray[np.int64]) -> Floats:
        """All columns on some rows (h, N)."""
        return np.asarray(self.base.on_rows(rows) / np.sqrt(1.0 + self.ridge))

    def products(self, vectors: Floats) -> Floats:
        """Inner products (p, N) of all columns with `vectors` (p, M)."""
        return np.asarray(self.base.products(vectors) / np.sqrt(1.0 + self.ridge))

    def rank(self) -> int:
        """All columns are independent: every one has a ridge term of its own."""
        return self.n_columns

    @cached_property
    def matrix(self) -> Floats:
        """G (N, N), formed at first use."""
        gram: Floats = self.base.matrix / (1.0 + self.ridge)
        np.fill_diagonal(gram, self.diagonal)
        return gram

    def row(self, j: int) -> Floats:
        """Row j of G (N,)."""
        row: Floats = self.base.row(j) / (1.0 + self.ridge)
        row[j] = self.diagonal[j]
        return row

    def write_rows(self, which: Sequence[int], out: Sequence[Floats]) -> None:
        """Rows of G into as many arrays (N,)."""
        self.base.write_rows(which, out)
        for j, row in zip(which, out, strict=True):
            row /= 1.0 + self.ridge
            row[j] = self.diagonal[j]


class ShrunkenError(SquaredError):
    """Squared error of the problem `plain` (which has no ridge of its own) with a relative ridge."""

    def __init__(self, plain: SubsetProblem, ridge: float) -> None:
        self.plain = plain
        self.ridge = ridge

    def prepare(self, problem: SubsetProblem) -> Gram:
        """The form of all rows; columns are divided by the root of 1 + ridge more than without."""
        problem.scale = self.plain.scale * np.sqrt(1.0 + self.ridge)
        return ShrunkenGram(self.plain.gram, self.ridge)

    def without_rows(self, problem: SubsetProblem, rows: NDArray[np.int64], anew: bool = False) -> Gram:
        """The form without some rows: columns have unit norm on the others before their ridge terms are added.

        Parameters
        ----------
        problem, rows, anew
            As in `SquaredError.without_rows`.
        """
        return ShrunkenGram(self.plain.loss.without_rows(self.plain, rows, anew), self.ridge)

    def held_out(self, problem: SubsetProblem, folds: Folds) -> HeldOutJudge:
        """Every fold is fitted by itself: its penalty follows its own norms, so the leave-one-out identity fails."""
        return ShrunkenErrors(problem, folds)


class ShrunkenErrors(HeldOutErrors):
    """Residuals of held-out rows under supports that are fitted again, with ridge, on the training rows of the fold."""

    def fits(self, supports: NDArray[np.int64], *, quick: bool = False) -> FoldCoefficients:
        """Coefficients of each fold, never from the Gram matrix of all rows: its norms are not those of the fold."""
        return super().fits(supports, quick=False)

    def judged(self, supports: NDArray[np.int64], *, quick: bool = False) -> tuple[Floats, Floats]:
        """Residuals (C, P) and training energies (F, C), one solution for each fold and support.

        Parameters
        ----------
        supports : (F, C, k)
            Columns chosen by each chain of each fold.
        quick
            Nothing here: numbers do not come from the Gram matrix.
        """
        folds, chains, _ = supports.shape
        residuals, energies = np.empty((chains, self._places[-1].stop)), np.empty((folds, chains))
        for fold in range(folds):
            left_out, predicted = self._folds.left_out[fold], self._folds.rows[fold]
            distinct, _, which, _ = distinct_supports(supports[fold])
            for u, support in enumerate(distinct):
                found = solve_without(self._problem, support, left_out)
                own = which == u
                residuals[own, self._places[fold]] = found.table[predicted, -1] - found.table[predicted, :-1] @ found.x
                energies[fold, own] = found.energy
        return residuals / self._root[self._folds.row], energies
