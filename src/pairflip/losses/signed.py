r"""Squared error of one target where coefficients have given signs,

.. math:: E^+(S) = \tfrac12 \min_{x, z} \|\sqrt w (y - X_S x - Z z)\|^2 + \tfrac{\lambda}{2} \|x\|^2
          \quad\text{with}\quad \sigma_j x_j \ge 0 .

:math:`\sigma_j` is 1 or -1, or 0 for a coefficient that is free, as are those of the forced columns Z. Coefficients may
be zero at the minimum: then fewer than k columns carry the fit, and the smaller support of these does the same. On the
carrying columns the fit is ordinary least squares, so all numbers come from where they always come from.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.limits import Limits, Rules
from pairflip.losses.base import Fit, HeldOutJudge
from pairflip.losses.sign_fit import Carrying, signed_energy
from pairflip.losses.squares import SquaredError
from pairflip.moments import Form
from pairflip.text import plural, shorten

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection.folds import Folds

Rows = NDArray[np.int64]


class SignedForm(Form):
    """The inner products of some rows, where coefficients have signs.

    Attributes
    ----------
    form : Form
        The same without signs; its energy is a lower bound.
    signs : (N,)
        Of the candidates: 1, -1, or 0 for free.
    rules : Rules
        Which columns may be chosen together.
    """

    objective = "signed"

    def __init__(self, form: Form, signs: NDArray[np.int8], rules: Rules) -> None:
        self.form, self.signs, self.rules = form, signs, rules
        self.candidates, self.penalty, self.diagonal = form.candidates, form.penalty, form.diagonal
        self.B, self.targets, self.target_scale = form.B, form.targets, form.target_scale
        self.yy, self.dense = form.yy, form.dense

    @property
    def columns(self) -> Floats:  # type: ignore[override]
        """Columns (N, M)."""
        return self.form.columns

    @property
    def nbytes(self) -> int:
        """Bytes held beside the user's table, without the matrix."""
        return self.form.nbytes

    @property
    def matrix(self) -> Floats:
        """G (N, N)."""
        return self.form.matrix

    def columns_of(self, which: Rows) -> Floats:
        """Some columns (n, M)."""
        return self.form.columns_of(which)

    def row(self, j: int) -> Floats:
        """Row j of G (N,)."""
        return self.form.row(j)

    def judged(self, support: Rows) -> tuple[Carrying, float]:
        """Which columns (k,) of a support carry its fit, and its energy; infinite where it is singular."""
        return signed_energy(self.columns_of(support).T, self.target, self.penalty[support], self.signs[support])

    def energy(self, support: Rows) -> float:
        """E+(S) by QR on the columns, infinite when S is singular or against the rules."""
        if self.rules.any and not self.rules.allow(support):
            return np.inf
        return self.judged(support)[1]


class SignedError(SquaredError):
    """Squared error of one target with signs of coefficients."""

    quadratic = False

    def prepare(self, problem: SubsetProblem) -> Form:
        """As for squared error; the signs of the candidates come with it."""
        signs = problem.limits.signs
        assert signs is not None
        if not (signs == 1).all() and signs[problem.always].any():
            named = problem.column_names[int(problem.always[signs[problem.always] != 0][0])]
            raise ValueError(
                f"positive names {named!r}, which is always in the model with a coefficient of any sign; expected "
                "candidate columns only: leave it out of positive, or out of always."
            )
        form = super().prepare(problem)
        if not form.dense:
            needed = 8 * form.n_columns**2
            raise ValueError(
                f"the matrix of {form.n_columns:,} columns takes more than the memory budget of "
                f"{problem.memory_budget:,} bytes, and coefficients with signs cannot be searched without it; expected "
                f"fewer columns, or memory_budget={needed}."
            )
        return _signed(problem, form)

    def without_rows(self, problem: SubsetProblem, rows: Rows, anew: bool = False) -> Form:
        """As for squared error.

        Parameters
        ----------
        problem, rows, anew
            As there.
        """
        return _signed(problem, super().without_rows(without_signs(problem), rows, anew))

    def fit(self, problem: SubsetProblem, support: Rows) -> Fit:
        """Coefficients and energy: ordinary ones of the columns that carry the fit, zero for the others."""
        form = problem.gram
        assert isinstance(form, SignedForm)
        carrying, energy = form.judged(problem.slots(support))
        ordinary = without_signs(problem)
        if not np.isfinite(energy):
            return super().fit(ordinary, support)  # says what is wrong
        found = super().fit(ordinary, support[carrying])
        coef = np.zeros(support.size)
        coef[carrying] = with_signs(found.coef, form.signs[problem.slots(support[carrying])])
        return Fit(support, coef, found.intercept, found.always_coef, found.energy)

    def remark(self, problem: SubsetProblem, support: Rows) -> str:
        """Which columns have no weight because of their sign."""
        form = problem.gram
        assert isinstance(form, SignedForm)
        idle = support[~form.judged(problem.slots(support))[0]]
        if not idle.size:
            return ""
        named = ", ".join(repr(shorten(problem.column_names[int(j)], 40)) for j in idle[:5])
        more = f" and {idle.size - 5} more" if idle.size > 5 else ""
        return (
            f"{named}{more} {'has' if idle.size == 1 else 'have'} the coefficient zero, at the bound of the sign: "
            f"{plural(support.size - idle.size, 'column')} fit{'s' * (support.size - idle.size == 1)} as well"
        )

    def held_out(self, problem: SubsetProblem, folds: Folds) -> HeldOutJudge:
        """Every support is fitted with its signs on the training rows of its fold."""
        from pairflip.losses.signed_held_out import HeldOutSigned

        return HeldOutSigned(problem, folds)


def with_signs(coef: Floats, signs: NDArray[np.int8]) -> Floats:
    """Coefficients of carrying columns; one that is zero but for rounding must not have the wrong sign."""
    return np.where(coef * signs < 0, 0.0, coef)


def without_signs(problem: SubsetProblem) -> SubsetProblem:
    """The same problem as one of ordinary least squares: what is fitted on columns that are known to carry."""
    form = problem.gram
    assert isinstance(form, SignedForm)
    ordinary = copy(problem)
    ordinary.loss, ordinary.gram, ordinary.limits = SquaredError(), form.form, Limits()
    return ordinary


def _signed(problem: SubsetProblem, form: Form) -> SignedForm:
    """A form with the signs and rules of its candidates."""
    signs = problem.limits.signs
    assert signs is not None
    return SignedForm(form, signs[form.candidates], problem.limits.rules(form.candidates, problem.always))
