r"""Held-out rows of groups of columns: every support is fitted again on the training rows of its fold.

Supports are units, of different numbers of columns; what depends on each other among the training rows is decided
there. A column that does not vary on them (the dummy of a level that only held-out rows have) has the coefficient 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.gram import Gram
from pairflip.least_squares import Floats
from pairflip.losses.fold_fits import FoldCoefficients
from pairflip.losses.grouped import GroupedForm, forced_part
from pairflip.losses.units import ABSENT
from pairflip.projection import is_nothing, project

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection.folds import Folds

Ints = NDArray[np.int64]


class Refit(NamedTuple):
    """What a fold predicts with: columns and their coefficients, those of forced columns, the constant, the energy."""

    columns: Ints
    coef: Floats
    always_coef: Floats
    intercept: float
    energy: float


class HeldOutGroups:
    """Errors of held-out rows under units fitted without them; `yy` (F,) is y'y on the rows of each fold."""

    def __init__(self, problem: SubsetProblem, folds: Folds) -> None:
        self._problem, self._folds = problem, folds
        self._known: dict[tuple[int, bytes], Refit] = {}
        nothing = np.empty(0, dtype=np.int64)
        self.yy = np.array([2.0 * self._fit(fold, nothing).energy for fold in range(len(folds.left_out))])

    def _fit(self, fold: int, units: Ints) -> Refit:
        """Some units on the training rows of a fold."""
        key = fold, units.tobytes()
        if key not in self._known:
            self._known[key] = self._fit_anew(fold, units)
        return self._known[key]

    def _fit_anew(self, fold: int, units: Ints) -> Refit:
        problem, a = self._problem, self._problem.always.size
        assert problem.units is not None
        columns = problem.columns_of(units)
        kept = np.delete(np.arange(problem.n_rows), self._folds.left_out[fold])
        which = np.concatenate([problem.always, columns]).astype(np.int64)
        own = problem.center == "fold"
        inside = project(
            problem.X[np.ix_(kept, which)],
            problem.y[kept],
            problem.sample_weight[kept],
            always=np.arange(a),
            ridge=problem.ridge,
            intercept=own,
            means=None if own else (problem.means[which], problem.y_mean),
        )
        target = inside.target
        if is_nothing(target, problem.y[kept], problem.sample_weight[kept]):
            target = np.zeros(kept.size)
        coef, energy = np.zeros(columns.size), 0.5 * float(target @ target)
        if inside.candidates.size:
            form = Gram(inside.columns, target, inside.penalty, which[inside.candidates], dense=True)
            grouped = GroupedForm(form, problem.units)
            at, own_coef, energy = grouped.solve(np.arange(grouped.n_columns), inside.scale)
            coef[inside.candidates[at] - a] = own_coef
        always_coef, intercept = forced_part(problem, kept, columns, coef, inside)
        return Refit(columns, coef, always_coef, intercept, energy)

    def residuals(self, supports: Ints) -> Floats:
        """y minus prediction (C, P) when fold f is predicted by the units supports[f, c] of (F, C, k)."""
        return self.judged(supports)[0]

    def judged(self, supports: Ints, *, quick: bool = False) -> tuple[Floats, Floats]:
        """The same, and the energies (F, C) of the supports on the training rows of their folds.

        Parameters
        ----------
        supports : (F, C, k)
            Units chosen by each chain of each fold.
        quick
            Nothing here: there is one way only.
        """
        problem, (folds, chains, _) = self._problem, supports.shape
        places = self._folds.places
        residuals, energies = np.empty((chains, places[-1].stop)), np.empty((folds, chains))
        for fold in range(folds):
            rows = self._folds.rows[fold]
            for chain in range(chains):
                found = self._fit(fold, supports[fold, chain])
                told = problem.X[np.ix_(rows, found.columns)] @ found.coef + found.intercept
                told = told + problem.X[np.ix_(rows, problem.always)] @ found.always_coef
                residuals[chain, places[fold]] = problem.y[rows] - told
                energies[fold, chain] = found.energy
        return residuals, energies

    def without_columns(self, *, quick: bool = False) -> Floats:
        """y minus prediction (P,) by the mean, or by the forced columns alone."""
        nothing = np.empty((len(self._folds.left_out), 1, 0), dtype=np.int64)
        return np.asarray(self.judged(nothing)[0][0])

    def fits(self, supports: Ints, *, quick: bool = False) -> FoldCoefficients:
        """What the folds predict with.

        Parameters
        ----------
        supports : (F, n)
            Columns that each fold chose, `ABSENT` in front where they are fewer: so are the coefficients, with zeros.
        quick
            Nothing here.
        """
        units = self._problem.units
        assert units is not None
        coefs = np.zeros(supports.shape)
        found = [self._fit(fold, units.units_of(row[row != ABSENT])) for fold, row in enumerate(supports)]
        for fold, fit in enumerate(found):
            coefs[fold, supports.shape[1] - fit.columns.size :] = fit.coef
        always_coefs = np.stack([fit.always_coef for fit in found])
        return FoldCoefficients(coefs, always_coefs, np.array([fit.intercept for fit in found]))

    def row_errors(self, residuals: Floats) -> Floats:
        """Squared errors."""
        return np.asarray(residuals**2)
