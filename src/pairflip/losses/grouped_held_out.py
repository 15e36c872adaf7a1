r"""Held-out rows of groups of columns.

Supports are units, of different numbers of columns, and are fitted again on the training rows of their fold; what
depends on each other is decided there. A column that does not vary on them (the dummy of a level that only held-out
rows have) has the coefficient 0. Where single rows are left out, the leave-one-out identity does
the same for all folds at once: a row that alone determines a direction has leverage 1, and is left to a fit of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.losses.base import FoldCoefficients
from pairflip.losses.fold_by_fold import FoldByFold
from pairflip.losses.grouped import GroupedForm, forced_part
from pairflip.losses.squares import project_rows
from pairflip.losses.units import ABSENT
from pairflip.moments import TRUSTED, Form

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection.folds import Folds

Ints = NDArray[np.int64]
_SHARED = 4_000_000  # coefficients without each row that are kept


class Refit(NamedTuple):
    """What a fold predicts with: columns and their coefficients, those of forced columns, the constant, the energy."""

    columns: Ints
    coef: Floats
    always_coef: Floats
    intercept: float
    energy: float


@dataclass(frozen=True, eq=False)
class _AllRows:
    """Some units on all rows, and without each of them: what is left of the target, 1 - h and coefficients (M, ...)."""

    columns: Ints
    residual: Floats
    left: Floats
    energy: float
    coefs: Floats
    always_coefs: Floats
    intercepts: Floats

    @classmethod
    def of(cls, problem: SubsetProblem, units: Ints) -> _AllRows | None:
        """None where the units are singular together."""
        form: Any = problem.gram
        at, m = form.positions(units), problem.n_rows
        if not np.isfinite(form.energy(at)):
            return None
        design, target = form.design(at)
        q, r = np.linalg.qr(design)
        inverse = np.linalg.inv(r)
        z = inverse @ (q.T @ target)
        z += inverse @ (q.T @ (target - design @ z))
        residual = target - design @ z
        basis, on_rows = problem.forced_basis, q[:m]
        left = 1.0 - np.einsum("mf,mf->m", basis, basis) - np.einsum("mn,mn->m", on_rows, on_rows)
        ratio = residual[:m] / np.where(left > TRUSTED, left, 1.0)
        place, to_table = form.to_table(at, problem.scale)
        columns = problem.candidates[place]
        coefs = (z - ratio[:, None] * (on_rows @ inverse.T)) @ to_table.T
        # What is always in the model is fitted to the rest: its coefficients change by the same identity.
        root, means, first = np.sqrt(problem.sample_weight), problem.means, int(problem.center == "fold")
        norms = np.linalg.norm(problem.forced, axis=0)
        norms[norms == 0] = 1.0
        to_forced = np.linalg.pinv(problem.forced / norms) / norms[:, None]
        other = to_forced @ (root[:, None] * (problem.X[:, columns] - means[columns]))
        of_forced = to_forced @ (root * (problem.y - problem.y_mean))
        forced = of_forced - ratio[:, None] * (problem.forced @ (to_forced @ to_forced.T)) - coefs @ other.T
        always = forced[:, first:] / problem.powers
        constant = forced[:, 0] if first else np.zeros(m)
        intercepts = constant + problem.y_mean - coefs @ means[columns] - always @ means[problem.always]
        return cls(columns, residual[:m], left, 0.5 * float(residual @ residual), coefs, always, intercepts)

    def without(self, row: int) -> Refit:
        """The fit without one row."""
        energy = self.energy - 0.5 * float(self.residual[row] ** 2) / float(self.left[row])
        return Refit(
            self.columns, self.coefs[row], self.always_coefs[row], float(self.intercepts[row]), max(energy, 0.0)
        )


class HeldOutGroups(FoldByFold):
    """Errors of held-out rows under units fitted without them; `yy` (F,) is y'y on the rows of each fold."""

    def __init__(self, problem: SubsetProblem, folds: Folds) -> None:
        super().__init__(problem.loss, problem, folds)
        self._known: dict[tuple[int, bytes], Refit] = {}
        self._shared: dict[bytes, _AllRows | None] = {}
        nothing = np.empty(0, dtype=np.int64)
        self.yy = np.array([2.0 * self._fit_anew(fold, nothing).energy for fold in range(len(folds.left_out))])
        self._single = np.array([rows.size == 1 for rows in folds.left_out]) & (self.yy >= TRUSTED * problem.gram.yy)

    def _fit(self, fold: int, units: Ints) -> Refit:
        """Some units on the training rows of a fold."""
        found = self._without_row(fold, units) if self._single[fold] else None
        if found is not None:
            return found
        key = fold, units.tobytes()
        if key not in self._known:
            self._known[key] = self._fit_anew(fold, units)
        return self._known[key]

    def _without_row(self, fold: int, units: Ints) -> Refit | None:
        """The same by the identity for single rows; None where that would lose digits."""
        key, (row,) = units.tobytes(), self._folds.left_out[fold]
        if key not in self._shared:
            if sum(each.coefs.size for each in self._shared.values() if each is not None) > _SHARED:
                self._shared.clear()
            self._shared[key] = _AllRows.of(self._problem, units)
        shared = self._shared[key]
        return None if shared is None or shared.left[row] <= TRUSTED else shared.without(int(row))

    def _fit_anew(self, fold: int, units: Ints) -> Refit:
        problem, a = self._problem, self._problem.always.size
        assert problem.units is not None
        columns = problem.columns_of(units)
        kept = np.delete(np.arange(problem.n_rows), self._folds.left_out[fold])
        which = np.concatenate([problem.always, columns]).astype(np.int64)
        inside = project_rows(problem, kept, which)
        target = inside.targets[:, 0]
        coef, energy = np.zeros(columns.size), 0.5 * float(target @ target)
        if inside.candidates.size:
            form = Form(inside.columns, target, inside.penalty, which[inside.candidates], dense=True)
            grouped = GroupedForm(form, problem.units)
            at, own_coef, energy = grouped.solve(np.arange(grouped.n_columns), inside.scale)
            coef[inside.candidates[at] - a] = own_coef
        always_coef, intercept = forced_part(problem, kept, columns, coef, inside)
        return Refit(columns, coef, always_coef, intercept, energy)

    def _judge(self, fold: int, support: Ints) -> tuple[Floats, float]:
        problem, rows, found = self._problem, self._folds.rows[fold], self._fit(fold, support)
        told = problem.X[np.ix_(rows, found.columns)] @ found.coef + found.intercept
        told = told + problem.X[np.ix_(rows, problem.always)] @ found.always_coef
        return problem.y[rows] - told, found.energy

    def fits(self, supports: Ints) -> FoldCoefficients:
        """What the folds predict with.

        Parameters
        ----------
        supports : (F, n)
            Columns that each fold chose, `ABSENT` in front where they are fewer: so are the coefficients, with zeros.
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
