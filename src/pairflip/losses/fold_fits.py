r"""Coefficients of a support fitted without some rows: what a fold predicts with.

With Q R the factors of the columns of a support (forced ones and the intercept included) on all rows, x their
coefficients and e their residuals, the coefficients without the rows H are

.. math:: x^{(H)} = x - R^{-1} Q_H^T (I - Q_H Q_H^T)^{-1} e_H = x - R^{-1} (I - Q_H^T Q_H)^{-1} Q_H^T e_H .

This is exact, so folds that chose the same support share one factorization. Where the held-out rows dwarf the others,
so that it would lose digits, the support is fitted again on the remaining rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairflip.distinct import distinct_supports
from pairflip.least_squares import SINGULAR, Floats, orthonormal_basis
from pairflip.losses.stacked_fits import coefficients_without_one
from pairflip.projection import powers_of_two, take_out

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection.folds import Folds

UNSEEN = 1e-3
"""Below this value of 1 - h (for rows left out together, of the smallest eigenvalue) the identity would lose digits."""
_TRUSTED = 0.05  # of the variation of the target must remain in the training rows, for the same reason


@dataclass(frozen=True)
class FoldCoefficients:
    """What F folds predict with: coefficients (F, k) of their columns, (F, A) of forced ones, intercepts (F,).

    With q targets these are (F, k, q), (F, A, q) and (F, q).
    """

    coefs: Floats
    always_coefs: Floats
    intercepts: Floats


@dataclass(frozen=True)
class SolvedWithout:
    """One support, solved without some rows, in columns that were shifted and scaled.

    `table` (M, p + 1) has the intercept (if it is fitted), forced and chosen columns and the target, rows times the
    root of their weights; `x` (p,) are its coefficients, `powers` and `shift` what leads back to the units of X.
    `energy` is E(S) on the rows that were fitted.
    """

    table: Floats
    x: Floats
    powers: Floats
    shift: Floats
    energy: float

    def in_units(self, x: Floats) -> tuple[Floats, Floats]:
        """Coefficients (..., p) of forced and chosen columns in the units of the table, and intercepts (...)."""
        constant = self.table.shape[1] - self.shift.size  # 1 where a column of ones comes first
        slopes = x[..., constant:]
        intercept = self.shift[-1] - slopes @ self.shift[:-1]
        return slopes / self.powers, intercept + (x[..., 0] if constant else 0.0)


def solve_without(problem: SubsetProblem, support: NDArray[np.int64], rows: NDArray[np.int64]) -> SolvedWithout:
    """One support fitted on the other rows; a forced column that only `rows` determine has coefficient zero.

    From the table itself: of a column that only the held-out rows see, projection on all rows leaves nothing.

    Parameters
    ----------
    problem : SubsetProblem
        Table and target.
    support : (k,)
        Chosen columns.
    rows : (H,)
        Rows to leave out.
    """
    seen = problem.sample_weight.copy()
    if problem.center == "fold":
        seen[rows] = 0.0  # the intercept makes up for any shift, and theirs might be large
    columns = problem.X[:, np.concatenate([problem.always, support])].astype(np.float64)
    powers = powers_of_two(np.delete(columns, rows, axis=0))
    table, shift = _design(problem, columns / powers, seen)
    first = table.shape[1] - 1 - support.size
    kept = np.delete(table, rows, axis=0)
    used = [*_independent(kept[:, :first]), *range(first, first + support.size)]
    penalty = _penalty(problem, powers, support.size, table.shape[1])
    if problem.shrinkage:
        penalty[:, first:-1] = np.diag(np.sqrt(problem.shrinkage) * _norms_beside(kept[:, :first], kept[:, first:-1]))
    design = np.vstack([kept, penalty])
    norms = np.linalg.norm(design[:, used], axis=0)
    norms[norms == 0] = 1.0
    x = np.zeros(table.shape[1] - 1)
    x[used] = np.linalg.lstsq(design[:, used] / norms, design[:, -1], rcond=None)[0] / norms
    residual = design[:, -1] - design[:, :-1] @ x
    return SolvedWithout(table, x, powers, shift, 0.5 * float(residual @ residual))


def fold_coefficients(problem: SubsetProblem, folds: Folds, supports: NDArray[np.int64]) -> FoldCoefficients:
    """Coefficients of the folds' own supports on their training rows.

    Parameters
    ----------
    problem : SubsetProblem
        Table and target.
    folds : Folds
        Which rows each fold leaves out.
    supports : (F, k)
        Columns that each fold chose.
    """
    n, k, forced = len(folds), supports.shape[1], problem.always.size
    coefs, intercepts = np.empty((n, forced + k)), np.empty(n)
    safe = _target_remains(problem, folds)
    distinct, _, which, _ = distinct_supports(supports)
    finished = np.zeros(n, dtype=bool)
    if all(rows.size == 1 for rows in folds.left_out):
        row = np.concatenate(folds.left_out)
        for some, x, constant in coefficients_without_one(problem, distinct, which, row, safe=safe, unseen=UNSEEN):
            coefs[some], intercepts[some], finished[some] = x, constant, True
    for u in np.unique(which[~finished]).tolist():
        support, here = distinct[u], np.flatnonzero(which == u)
        left = here
        shared = _Shared.of(problem, support)
        if shared is not None:
            trusted = here[safe[here]]
            x = shared.without([folds.left_out[fold] for fold in trusted])
            done = np.isfinite(x).all(axis=1)
            coefs[trusted[done]], intercepts[trusted[done]] = shared.solved.in_units(x[done])
            left = np.setdiff1d(here, trusted[done])
        for fold in left.tolist():
            alone = solve_without(problem, support, folds.left_out[fold])
            coefs[fold], intercepts[fold] = alone.in_units(alone.x)
    return FoldCoefficients(coefs[:, forced:], coefs[:, :forced], intercepts)


@dataclass(frozen=True)
class _Shared:
    """The factors of one support on all rows."""

    solved: SolvedWithout
    q: Floats
    inverse: Floats
    residual: Floats

    @classmethod
    def of(cls, problem: SubsetProblem, support: NDArray[np.int64]) -> _Shared | None:
        """None where columns are dependent on all rows, as forced ones may be, or the penalty differs between folds."""
        if problem.shrinkage:
            return None
        columns = problem.X[:, np.concatenate([problem.always, support])].astype(np.float64)
        powers = powers_of_two(columns)
        table, shift = _design(problem, columns / powers, problem.sample_weight)
        whole = np.vstack([table, _penalty(problem, powers, support.size, table.shape[1])])
        norms = np.linalg.norm(whole[:, :-1], axis=0)
        if not (norms > 0).all() or whole.shape[0] < norms.size:
            return None
        q, r = np.linalg.qr(whole[:, :-1] / norms)
        if np.min(np.abs(np.diag(r)), initial=1.0) ** 2 <= SINGULAR:
            return None
        inverse = np.linalg.inv(r) / norms[:, None]
        x = inverse @ (q.T @ whole[:, -1])
        x += inverse @ (q.T @ (whole[:, -1] - whole[:, :-1] @ x))
        residual = whole[:, -1] - whole[:, :-1] @ x
        m = table.shape[0]
        energy = 0.5 * float(residual @ residual)
        return cls(SolvedWithout(table, x, powers, shift, energy), q[:m], inverse, residual[:m])

    def without(self, left_out: list[NDArray[np.int64]]) -> Floats:
        """Coefficients (n, p) without these rows and those; NaN where rows leave too little to the others."""
        if all(rows.size == 1 for rows in left_out):
            row = np.array(left_out, dtype=np.int64).reshape(-1)
            q = self.q[row]
            inside = 1.0 - np.einsum("np,np->n", q, q)
            ratio = np.where(inside > UNSEEN, self.residual[row] / np.where(inside > UNSEEN, inside, 1.0), np.nan)
            return np.asarray(self.solved.x - ratio[:, None] * (q @ self.inverse.T))
        found = np.full((len(left_out), self.solved.x.size), np.nan)
        for at, rows in enumerate(left_out):
            q, e = self.q[rows], self.residual[rows]
            few = rows.size < q.shape[1]
            inside = np.eye(rows.size) - q @ q.T if few else np.eye(q.shape[1]) - q.T @ q
            if np.linalg.eigvalsh(inside)[:1].min(initial=1.0) > UNSEEN:
                step = q.T @ np.linalg.solve(inside, e) if few else np.linalg.solve(inside, q.T @ e)
                found[at] = self.solved.x - self.inverse @ step
        return found


def _design(problem: SubsetProblem, columns: Floats, seen: Floats) -> tuple[Floats, Floats]:
    """Intercept (if fitted), columns and target, rows times the root of their weights, and what was subtracted."""
    table = np.column_stack([columns, problem.y])
    shift = np.zeros(table.shape[1])
    if problem.center is not None:
        shift = np.average(table, axis=0, weights=seen)
        table -= shift
    if problem.center == "fold":
        table = np.column_stack([np.ones(problem.n_rows), table])
    table *= np.sqrt(problem.sample_weight)[:, None]
    return table, shift


def _penalty(problem: SubsetProblem, powers: Floats, k: int, width: int) -> Floats:
    """The ridge term of the k chosen columns as more rows below the table."""
    penalty = np.zeros((k, width))
    if problem.ridge:
        penalty[:, width - 1 - k : -1] = np.diag(np.sqrt(problem.ridge) / powers[problem.always.size :])
    return penalty


def _norms_beside(forced: Floats, columns: Floats) -> Floats:
    """Norms (k,) of `columns` (M, k) after `forced` (M, f) were projected out of them."""
    rest = columns.T.copy()
    take_out(rest, orthonormal_basis(forced))
    return np.asarray(np.linalg.norm(rest, axis=1))


def _target_remains(problem: SubsetProblem, folds: Folds) -> NDArray[np.bool_]:
    """Whether (F,) enough of the variation of the target is in the other rows to compute them by subtraction."""
    w = problem.sample_weight
    t = problem.y - (0.0 if problem.center is None else np.average(problem.y, weights=w))
    moments = np.stack([w, w * t, w * t**2])
    single = all(rows.size == 1 for rows in folds.left_out)
    left_out = (
        moments[:, np.concatenate(folds.left_out)].T
        if single
        else np.stack([moments[:, rows].sum(axis=1) for rows in folds.left_out])
    )
    rest = moments.sum(axis=1) - left_out
    shift = 0.0 if problem.center is None else rest[:, 1] ** 2 / rest[:, 0]
    return np.asarray(rest[:, 2] - shift >= _TRUSTED * moments[2].sum())


def _independent(columns: Floats) -> list[int]:
    """Columns of (M, f) that are not linear combinations of those before them."""
    basis = np.zeros((columns.shape[0], 0))
    used = []
    for j, column in enumerate(columns.T):
        rest = column - basis @ (basis.T @ column)
        rest -= basis @ (basis.T @ rest)
        if rest @ rest > 1e-20 * (column @ column):
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
            used.append(j)
    return used
