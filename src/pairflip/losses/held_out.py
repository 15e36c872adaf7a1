r"""Held-out errors of a support, for every fold, from one QR.

With e the residuals and h the hat matrix of a support S (forced columns included) fitted on all rows, the residuals of
the rows H when the same support is fitted without them are

.. math:: e^{(H)}_H = (I - h_{HH})^{-1} e_H .

This is exact, so folds that chose the same support share one factorization. Where the held-out rows dwarf the others,
so that it would lose digits, the support is fitted again on the remaining rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.distinct import distinct_supports
from pairflip.gram import HeldOutGram
from pairflip.least_squares import Floats
from pairflip.losses.fold_fits import UNSEEN, FoldCoefficients, fold_coefficients, solve_without
from pairflip.losses.one_row_out import OneRowOut, leaves_one_out
from pairflip.losses.wide import energy_without

if TYPE_CHECKING:
    from pairflip.losses.weighing import Weights
    from pairflip.problem import SubsetProblem
    from pairflip.selection.folds import Folds


class HeldOutErrors:
    """Residuals of held-out rows under supports fitted without them; `yy` (F,) is y'y on the rows of each fold."""

    def __init__(self, problem: SubsetProblem, folds: Folds) -> None:
        self._problem = problem
        self._folds = folds
        self._basis = problem.forced_basis
        self._outside = 1.0 - np.einsum("mf,mf->m", self._basis, self._basis)  # 1 - h of the forced columns alone
        self._root = np.sqrt(problem.sample_weight)
        self._single = all(rows.size == left.size == 1 for rows, left in zip(folds.rows, folds.left_out, strict=True))
        if problem.wide:  # the form of a fold would take a pass over the table: supports are fitted again instead
            nothing = np.empty(0, dtype=np.int64)
            self._apart = np.ones(len(folds.left_out), bool)
            self.yy = np.array([2.0 * energy_without(problem, rows, nothing) for rows in folds.left_out])
        elif self._single and leaves_one_out(problem) and problem.rows_present > 2:
            together = OneRowOut.of(problem, np.concatenate(folds.left_out))
            self._apart, self.yy = ~together.trusted, together.yy.copy()
            for fold in np.flatnonzero(self._apart).tolist():
                self.yy[fold] = problem.held_out(folds.left_out[fold]).yy
        else:
            fold_grams = [problem.held_out(rows) for rows in folds.left_out]
            self._apart = np.array([not isinstance(gram, HeldOutGram) for gram in fold_grams])
            self.yy = np.array([gram.yy for gram in fold_grams])
        self._places = folds.places

    def residuals(self, supports: NDArray[np.int64]) -> Floats:
        """y minus prediction (C, P), in units of y, when fold f is predicted by supports[f, c] of (F, C, k)."""
        return self.judged(supports)[0]

    def judged(self, supports: NDArray[np.int64], *, quick: bool = False) -> tuple[Floats, Floats]:
        """The same, and the energies (F, C) of the supports on the training rows of their folds.

        Parameters
        ----------
        supports : (F, C, k)
            Columns chosen by each chain of each fold.
        quick
            Whether well-conditioned supports may be judged from the Gram matrix (to ten digits) where single rows are
            left out: a QR for each of very many supports takes longer than finding them.
        """
        folds, chains, _ = supports.shape
        result, energies = np.empty((chains, self._places[-1].stop)), np.empty((folds, chains))
        done = np.zeros((folds, chains), dtype=bool)
        if quick and self._single and self._problem.gram.dense:
            done = self._by_gram(supports, result, energies)
        if not done.all():
            which = np.full((folds, chains), -1)
            distinct, _, which[~done], _ = distinct_supports(supports[~done])
            (self._single_rows if self._single else self._blocks)(distinct, which, result, energies)
        return result / self._root[self._folds.row], energies

    def _by_gram(self, supports: NDArray[np.int64], result: Floats, energies: Floats) -> NDArray[np.bool_]:
        """Fill in what the Gram matrix tells safely; which (F, C) that was."""
        folds, chains, k = supports.shape
        found = without_one_row(self._problem, supports.reshape(-1, k), np.repeat(self._folds.row, chains))
        result[:] = found.residual.reshape(folds, chains).T
        energies[:] = found.energy.reshape(folds, chains)
        return np.asarray(found.safe.reshape(folds, chains) & ~self._apart[:, None])

    def _single_rows(
        self, distinct: NDArray[np.int64], which: NDArray[np.int64], result: Floats, energies: Floats
    ) -> None:
        """Fill in residuals (C, P) and energies (F, C) of single rows left out; fold f, chain c uses which[f, c]."""
        row = self._folds.row
        for part, left, e, energy in loo_stack(self._problem, distinct):
            fold, chain = np.nonzero((which >= part.start) & (which < part.stop))
            at = which[fold, chain] - part.start, row[fold]
            unseen = (left[at] <= UNSEEN) | self._apart[fold]
            result[chain, fold] = e[at] / np.where(unseen, 1.0, left[at])
            energies[fold, chain] = energy[at[0]] - 0.5 * e[at] * result[chain, fold]
            for f, c in zip(fold[unseen], chain[unseen], strict=True):
                result[c, f] = self._refit(distinct[which[f, c]], self._folds.left_out[f])[0]
                energies[f, c] = self._training_energy(distinct[which[f, c]], f)

    def _training_energy(self, support: NDArray[np.int64], fold: int) -> float:
        """E of a support on the training rows of a fold, by QR."""
        if self._problem.wide:
            return energy_without(self._problem, self._folds.left_out[fold], support)
        gram = self._problem.held_out(self._folds.left_out[fold])
        return gram.energy(gram.positions(support))

    def _blocks(self, distinct: NDArray[np.int64], which: NDArray[np.int64], result: Floats, energies: Floats) -> None:
        """Fill in residuals (C, P) and energies (F, C) of rows left out together."""
        for u, support in enumerate(distinct):
            q, e, energy = self._factor(support)
            for fold, chain in zip(*np.nonzero(which == u), strict=True):
                rows, place = self._folds.left_out[fold], self._places[fold]
                left = None if self._apart[fold] else _block(q[rows], e[rows])
                residuals = self._refit(support, rows) if left is None else left
                if left is None:
                    energies[fold, chain] = self._training_energy(support, fold)
                else:
                    energies[fold, chain] = energy - 0.5 * float(e[rows] @ left)
                result[chain, place] = residuals[np.searchsorted(rows, self._folds.rows[fold])]

    def without_columns(self, *, quick: bool = False) -> Floats:
        """y minus prediction (P,) when nothing is chosen: by the mean and the forced columns of the other rows.

        If it may be `quick`, by the identity for single rows left out.
        """
        row, nothing = self._folds.row, np.empty(0, dtype=np.int64)
        refit = np.ones(len(self._folds.rows), dtype=bool)
        result = np.empty(row.size)
        if self._problem.center != "fold" and not self._problem.always.size:
            # Nothing is fitted, so what is left of the target does not depend on the fold.
            target = solve_without(self._problem, nothing, self._folds.left_out[0]).table[:, -1]
            return np.asarray(target[row] / self._root[row])
        if quick and self._single:
            refit = (self._outside[row] <= UNSEEN) | self._apart
            result[~refit] = (self._problem.gram.target[row] / np.where(refit, 1.0, self._outside[row]))[~refit]
        for fold in np.flatnonzero(refit).tolist():
            left = self._folds.left_out[fold]
            result[self._places[fold]] = self._refit(nothing, left)[np.searchsorted(left, self._folds.rows[fold])]
        return np.asarray(result / self._root[row])

    def fits(self, supports: NDArray[np.int64], *, quick: bool = False) -> FoldCoefficients:
        """What the folds predict with: coefficients of supports (F, k), each on the training rows of its fold.

        Parameters
        ----------
        supports : (F, k)
            Columns that each fold chose.
        quick
            As in `judged`.
        """
        problem = self._problem
        if not (quick and self._single and problem.gram.dense and supports.size) or problem.always.size:
            return fold_coefficients(problem, self._folds, supports)
        coefs, intercepts, safe = self._fits_by_gram(supports)
        if not safe.all():
            found = fold_coefficients(problem, self._folds.some(np.flatnonzero(~safe)), supports[~safe])
            coefs[~safe], intercepts[~safe] = found.coefs, found.intercepts
        return FoldCoefficients(coefs, np.empty((len(supports), 0)), intercepts)

    def _fits_by_gram(self, supports: NDArray[np.int64]) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Coefficients (F, k) and intercepts (F,) without the row of each fold, and where (F,) they can be relied on.

        With a weight w of W the row moves the means that the intercept makes up for by w / (W - w) of its distance.
        """
        problem, row = self._problem, self._folds.row
        found = without_one_row(problem, supports, row, solve=True)
        weights, safe = found.weights, found.safe & ~self._apart
        scale = problem.scale[np.searchsorted(problem.candidates, supports)]
        coefs = (weights.x - found.residual[:, None] * weights.of_row) / scale
        means, middle, w = problem.means[supports], problem.y_mean, problem.sample_weight
        intercepts = middle - np.einsum("fk,fk->f", means, coefs)
        if problem.center == "fold":
            away = problem.y[row] - middle - np.einsum("fk,fk->f", problem.X[row[:, None], supports] - means, coefs)
            intercepts -= w[row] / (w.sum() - w[row]) * away
        return coefs, intercepts, safe

    def row_errors(self, residuals: Floats) -> Floats:
        """Squared errors."""
        return np.asarray(residuals**2)

    def _factor(self, support: NDArray[np.int64]) -> tuple[Floats, Floats, float]:
        """Orthonormal basis of forced and chosen columns (its rows give the hat matrix), the residuals, the energy."""
        gram = self._problem.gram
        at = self._problem.slots(support)
        columns, m = gram.columns_of(at).T, gram.target.size
        ridge = bool(gram.penalty[at].any())
        if ridge:
            columns = np.vstack([columns, np.diag(np.sqrt(gram.penalty[at]))])
        q = np.linalg.qr(columns)[0][:m]
        fitted = q.T @ gram.target
        residual = gram.target - q @ fitted
        if not ridge:
            residual -= q @ (q.T @ residual)
        # With ridge the rows below have residuals, too: together with these, y is what was fitted and what was not.
        energy = 0.5 * float(residual @ residual if not ridge else gram.yy - fitted @ fitted)
        return np.hstack([self._basis, q]), residual, energy

    def _refit(self, support: NDArray[np.int64], rows: NDArray[np.int64]) -> Floats:
        """Weighted residuals of the rows by fitting without them."""
        found = solve_without(self._problem, support, rows)
        return np.asarray(found.table[rows, -1] - found.table[rows, :-1] @ found.x)


class OneRowLess(NamedTuple):
    """n supports, each fitted without one row: residuals (n,) of these rows, weighted, and energies (n,) on the others.

    `safe` (n,) says which of them the Gram matrix tells; `weights` are of all rows.
    """

    residual: Floats
    energy: Floats
    safe: NDArray[np.bool_]
    weights: Weights


def without_one_row(
    problem: SubsetProblem, supports: NDArray[np.int64], rows: NDArray[np.int64], *, solve: bool = False
) -> OneRowLess:
    r"""Supports without one row each, from the Gram matrix, to ten digits where that is safe.

    With h the hat matrix and e the residuals of all rows, :math:`e_m / (1 - h_{mm})` is the residual of row m without
    it, and :math:`E - e_m^2 / (2 (1 - h_{mm}))` the energy of the others.

    Parameters
    ----------
    problem : SubsetProblem
        The problem; its matrix can be formed.
    supports : (n, k)
        Columns.
    rows : (n,)
        The row that is left out for each support.
    solve
        Whether `weights` are to have coefficients.
    """
    from pairflip.losses.weighing import weigh  # compiled

    gram, basis = problem.gram, problem.forced_basis[rows]
    weights = weigh(gram, np.searchsorted(problem.candidates, supports), rows, solve=solve)
    left, e = 1.0 - np.einsum("mf,mf->m", basis, basis) - weights.leverage, gram.target[rows] - weights.fitted
    safe = weights.calm & (left > UNSEEN)
    residual = e / np.where(safe, left, 1.0)
    return OneRowLess(residual, weights.energy - 0.5 * e * residual, safe, weights)


def _block(q: Floats, e: Floats) -> Floats | None:
    """Weighted residuals of several rows left out together; None where they leave too little to the others."""
    few = e.size <= q.shape[1]  # otherwise by Woodbury's identity, in the size of the columns
    inside = np.eye(e.size) - q @ q.T if few else np.eye(q.shape[1]) - q.T @ q
    if np.linalg.eigvalsh(inside)[0] <= UNSEEN:
        return None
    return np.asarray(np.linalg.solve(inside, e) if few else e + q @ np.linalg.solve(inside, q.T @ e))


def mean_and_error(squares: Floats, weights: Floats, unit: NDArray[np.int64]) -> tuple[Floats, Floats]:
    r"""Half the mean square :math:`\frac12 \sum w r^2 / \sum w` (S,) of `squares` (S, P) and its standard error.

    The error comes from the spread of the means of independent units (rows, or groups of rows that belong together; a
    row that is predicted several times counts once): :math:`\sqrt{\sum_u W_u (m_u - m)^2 / (W (U - 1))}`.

    Parameters
    ----------
    squares : (S, P)
        Squared errors of P predictions at S sizes.
    weights : (P,)
        Weight of each prediction.
    unit : (P,)
        The independent unit that each belongs to, from 0.
    """
    n_units = int(unit.max()) + 1
    total = np.bincount(unit, weights, n_units)
    sums = np.stack([np.bincount(unit, weights * row, n_units) for row in squares])
    mean = sums.sum(axis=1) / total.sum()
    spread = (total * (sums / total - mean[:, None]) ** 2).sum(axis=1) / total.sum() / (n_units - 1)
    return 0.5 * mean, 0.5 * np.sqrt(spread)


_STACK_BYTES = 32 * 2**20


def loo_stack(problem: SubsetProblem, supports: NDArray[np.int64]) -> Iterator[tuple[slice, Floats, Floats, Floats]]:
    """For parts of `supports` (U, k): which part, 1 - h (u, M), e (u, M) in weighted rows, and the energies E (u,)."""
    gram = problem.gram
    m, k = gram.target.size, supports.shape[1]
    basis = problem.forced_basis
    outside_forced = 1.0 - np.einsum("mf,mf->m", basis, basis)
    at = np.searchsorted(problem.candidates, supports)
    ridge = bool(gram.penalty.any())
    step = max(1, _STACK_BYTES // (8 * (m + ridge * k) * k))
    for first in range(0, supports.shape[0], step):
        part = slice(first, min(first + step, supports.shape[0]))
        columns = gram.columns_of(at[part].ravel()).reshape(-1, k, m).transpose(0, 2, 1)
        if ridge:
            tails = np.sqrt(gram.penalty[at[part]])[:, :, None] * np.eye(k)
            columns = np.concatenate([columns, tails], axis=1)
        target = np.concatenate([gram.target, np.zeros(ridge * k)])
        q = np.linalg.qr(columns)[0]
        e = target - np.einsum("umk,uk->um", q, np.einsum("umk,m->uk", q, target, optimize=True), optimize=True)
        e -= np.einsum("umk,uk->um", q, np.einsum("umk,um->uk", q, e, optimize=True), optimize=True)
        left = outside_forced - np.einsum("umk,umk->um", q[:, :m], q[:, :m])
        yield part, left, e[:, :m], 0.5 * np.einsum("um,um->u", e, e)
