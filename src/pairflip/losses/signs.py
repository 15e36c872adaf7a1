r"""Squared error of one target where coefficients have given signs,

.. math:: E^+(S) = \tfrac12 \min_{x, z} \|\sqrt w (y - X_S x - Z z)\|^2 + \tfrac{\lambda}{2} \|x\|^2
          \quad\text{with}\quad \sigma_j x_j \ge 0 .

:math:`\sigma_j` is 1 or -1, or 0 for a coefficient that is free, as are those of the forced columns Z. At the minimum
some coefficients are zero: the others, the *carrying* columns, have those of ordinary least squares on these columns
alone, so that every reported number comes from an ordinary QR. Which columns carry is found by non-negative least
squares (Lawson & Hanson 1974, as SciPy has it) after the free columns were swept out.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import SINGULAR, Floats, factor, qr_energy
from pairflip.losses.base import Fit, Fits, Quadratic
from pairflip.losses.squares import SquaredError, constants, project_rows
from pairflip.moments import Form
from pairflip.rules import Limits
from pairflip.text import plural, shorten

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem

Ints = NDArray[np.int64]
Signs = NDArray[np.int8]
_THIN = 1e-9  # of a column's squared norm: one of which less is independent of the support does not enter


def with_signs(r: Floats, c: Floats, signs: Signs, free: int) -> Floats:
    """The x (k,) of given signs that is best for r x = c; r (k, k) is a triangle, its first `free` columns are free."""
    from scipy.optimize import nnls

    x, sign = np.zeros(signs.size), signs[free:]
    if sign.size:
        x[free:] = nnls(r[free:, free:] * sign, c[free:], maxiter=30 * signs.size)[0] * sign
    if free:
        x[:free] = np.linalg.lstsq(r[:free, :free], c[:free] - r[:free, free:] @ x[free:], rcond=None)[0]
    return x


def signed_fit(columns: Floats, target: Floats, penalty: Floats, signs: Signs) -> Floats:
    """Coefficients (k,) of columns (M, k) with ridge terms (k,) and signs (k,); the columns may be dependent."""
    order = np.argsort(signs != 0, kind="stable")
    design = np.vstack([columns, np.diag(np.sqrt(penalty))])[:, order]
    q, r = np.linalg.qr(design)
    x = np.empty(signs.size)
    c = q.T @ np.concatenate([target, np.zeros(signs.size)])
    x[order] = with_signs(r, c, signs[order], int(np.count_nonzero(signs == 0)))
    return x


class SignedForm(Form):
    """The inner products of some rows, `form`, where coefficients of candidates have `signs` (N,): 1, -1, or 0."""

    quadratic = False
    bound = True
    q = 1
    signs: Signs

    def __init__(self, problem: SubsetProblem, form: Form) -> None:
        assert problem.limits.signs is not None
        self.form, self.signs = form, problem.limits.signs[form.candidates]
        self.rules = problem.limits.rules(form.candidates, problem.always)
        self.candidates, self.penalty, self.diagonal = form.candidates, form.penalty, form.diagonal
        self.B, self.targets, self.target_scale = form.B, form.targets, form.target_scale
        self.yy, self.dense, self.n_columns, self.n_rows = form.yy, form.dense, form.n_columns, form.n_rows

    @property
    def columns(self) -> Floats:  # type: ignore[override]
        """Columns (N, M)."""
        return self.form.columns

    @property
    def matrix(self) -> Floats:
        """G (N, N)."""
        return self.form.matrix

    def columns_of(self, which: Ints) -> Floats:
        """Some columns (n, M)."""
        return self.form.columns_of(which)

    def products(self, vectors: Floats) -> Floats:
        """Inner products (p, N) of all columns with `vectors` (p, M)."""
        return self.form.products(vectors)

    def write_rows(self, which: Sequence[int], out: Sequence[Floats]) -> None:
        """Rows of G into as many arrays (N,)."""
        self.form.write_rows(which, out)

    def carrying(self, support: Ints) -> NDArray[np.bool_]:
        """Which columns (k,) of a support carry its fit; free ones always count as such."""
        signs = self.signs[support]
        x = signed_fit(self.columns_of(support).T, self.target, self.penalty[support], signs)
        return np.asarray((signs == 0) | (x != 0))

    def energy(self, support: Ints) -> float:
        """E+(S) by QR on the carrying columns, infinite when S is singular or against the rules."""
        if self.rules.any and not self.rules.allow(support):
            return np.inf
        if factor(self.columns_of(support).T, self.target, self.penalty[support]) is None:
            return np.inf
        carrying = support[self.carrying(support)]
        return qr_energy(self.columns_of(carrying).T, self.target, self.penalty[carrying])

    def fit_many(self, supports: Ints, start: Any = None, **_: Any) -> Fits:
        """Fits of supports (T, k) from their inner products; infinite energies where they are singular."""
        energies, theta = np.full(len(supports), np.inf), np.zeros((*supports.shape, 1))
        for t, support in enumerate(supports):
            signs = self.signs[support]
            order = np.argsort(signs != 0, kind="stable")
            at, free = support[order], int(np.count_nonzero(signs == 0))
            try:
                lower: Floats = np.asarray(np.linalg.cholesky(self.matrix[np.ix_(at, at)]), dtype=np.float64)
            except np.linalg.LinAlgError:
                continue
            inverse = np.linalg.inv(lower)
            if at.size and np.max(np.einsum("ab,ab->b", inverse, inverse)) >= 1.0 / SINGULAR:
                continue
            c = inverse @ self.b[at]
            x = inverse.T @ c
            if np.any(x * signs[order] < 0):
                x = with_signs(lower.T, c, signs[order], free)
            theta[t, order, 0] = x
            energies[t] = max(0.5 * (self.yy - float(x @ self.b[at])), 0.0)
        return Fits(supports, energies, theta)

    def quadratic_at(self, fit: Fits) -> Quadratic:
        """The table of the carrying columns; a column that carries nothing stands in a row of zeros."""
        support, x, G = fit.supports[0], fit.theta[0, :, 0], self.matrix
        carries = np.flatnonzero((x != 0) | (self.signs[support] == 0))
        carrying = support[carries]
        P, W = np.eye(support.size), np.zeros((support.size, self.n_columns))
        inverse = np.linalg.inv(G[np.ix_(carrying, carrying)])
        P[np.ix_(carries, carries)] = inverse
        W[carries] = inverse @ G[carrying]
        W[:, support] = 0.0
        W[carries, carrying] = 1.0
        s = self.diagonal - np.einsum("an,an->n", G[carrying], W[carries])
        if carrying.size < support.size:  # what depends on the whole support must not enter
            W_of_all = np.linalg.solve(G[np.ix_(support, support)], G[support])
            s[self.diagonal - np.einsum("an,an->n", G[support], W_of_all) < _THIN] = 0.0
        return Quadratic(P, x[None], W, self.B - x @ G[support], s[None], self.form.row)

    def kick_nanoseconds(self, k: int) -> float:
        """Cost model: what one kick and the descent after it take on one core, some tables and fits."""
        return 2e6 + 1e5 * k + 20.0 * k * self.n_columns


class SignedError(SquaredError):
    """Squared error of one target with signs of coefficients."""

    quadratic = False

    def prepare(self, problem: SubsetProblem) -> Form:
        """As for squared error; the signs of the candidates come with it."""
        signs = problem.limits.signs
        assert signs is not None
        if not (signs == 1).all() and signs[problem.always].any():
            named = problem.names[int(problem.always[signs[problem.always] != 0][0])]
            raise ValueError(
                f"positive names {named!r}, which is always in the model with a coefficient of any sign; expected "
                "candidate columns only: leave it out of positive, or out of always."
            )
        if problem.shrinkage:
            problem.form = _form_of(problem).form
        form = super().prepare(problem)
        if not form.dense:
            needed = 8 * form.n_columns**2
            raise ValueError(
                f"the matrix of {form.n_columns:,} columns takes more than the memory budget of "
                f"{problem.memory_budget:,} bytes, and coefficients with signs cannot be searched without it; expected "
                f"fewer columns, or memory_budget={needed}."
            )
        return SignedForm(problem, form)

    def without_rows(self, problem: SubsetProblem, rows: Ints, anew: bool = False) -> Form:
        """As for squared error, with the signs of the candidates there."""
        return SignedForm(problem, super().without_rows(_without_signs(problem), rows, anew))

    def fit(self, problem: SubsetProblem, support: Ints) -> Fit:
        """Coefficients and energy: ordinary ones of the columns that carry the fit, zero for the others."""
        form, at = _form_of(problem), problem.slots(support)
        ordinary = _without_signs(problem)
        if factor(form.columns_of(at).T, form.target, form.penalty[at]) is None:
            return super().fit(ordinary, support)  # says what is wrong
        carrying = form.carrying(at)
        fit, coef = super().fit(ordinary, support[carrying]), np.zeros(support.size)
        coef[carrying] = np.where(fit.coef * form.signs[at[carrying]] < 0, 0.0, fit.coef)
        return replace(fit, support=support, coef=coef)

    def fit_rows(self, problem: SubsetProblem, kept: Ints, support: Ints) -> tuple[Fit, None]:
        """The same on some rows; a column that does not vary there has the coefficient 0."""
        assert problem.limits.signs is not None
        inside = project_rows(problem, kept, np.concatenate([problem.always, support]).astype(np.int64))
        at = inside.candidates - problem.always.size
        signs, coef = problem.limits.signs[support[at]], np.zeros((support.size, 1))
        x = signed_fit(inside.columns.T, inside.targets[:, 0], inside.penalty, signs)
        carrying = (signs == 0) | (x != 0)
        design = np.vstack([inside.columns[carrying].T, np.diag(np.sqrt(inside.penalty[carrying]))])
        target = np.concatenate([inside.targets[:, 0], np.zeros(design.shape[1])])
        x[carrying] = np.linalg.lstsq(design, target, rcond=None)[0]
        rest = target - design @ x[carrying]
        coef[at, 0] = np.where(x * signs < 0, 0.0, x / inside.scale)
        always_coef, intercept, _ = constants(problem, kept, support, coef, inside)
        return Fit(support, coef[:, 0], float(intercept[0]), always_coef[:, 0], 0.5 * float(rest @ rest)), None

    def remark(self, problem: SubsetProblem, support: Ints) -> str:
        """Which columns have no weight because of their sign."""
        idle = support[~_form_of(problem).carrying(problem.slots(support))]
        if not idle.size:
            return ""
        named = ", ".join(repr(shorten(problem.names[int(j)], 40)) for j in idle[:5])
        more = f" and {idle.size - 5} more" if idle.size > 5 else ""
        return (
            f"{named}{more} {'has' if idle.size == 1 else 'have'} the coefficient zero, at the bound of the sign: "
            f"{plural(support.size - idle.size, 'column')} fit{'s' * (support.size - idle.size == 1)} as well"
        )


def _form_of(problem: SubsetProblem) -> SignedForm:
    form = problem.form
    assert isinstance(form, SignedForm)
    return form


def _without_signs(problem: SubsetProblem) -> SubsetProblem:
    """The same problem as one of ordinary least squares: what is fitted on columns that are known to carry."""
    ordinary = copy(problem)
    ordinary.loss, ordinary.form, ordinary.limits = SquaredError(), _form_of(problem).form, Limits()
    return ordinary
