r"""Held-out errors of a support, for every fold, from one QR.

With e the residuals and h the hat matrix of a support S (forced columns included) fitted on all rows, the residuals of
the rows H when the same support is fitted without them are

.. math:: e^{(H)}_H = (I - h_{HH})^{-1} e_H .

This is exact, so folds that chose the same support share one factorization.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pairflip.crossval.folds import Folds
from pairflip.crossval.loo_stack import loo_stack
from pairflip.least_squares import Floats, orthonormal_basis
from pairflip.problem import SubsetProblem

_UNSEEN = 1e-8  # below this, what the held-out rows decide alone is refitted without them


class HeldOutErrors:
    """Residuals of held-out rows under supports fitted without them."""

    def __init__(self, problem: SubsetProblem, folds: Folds) -> None:
        self._problem = problem
        self._folds = folds
        self._basis = orthonormal_basis(problem.forced)
        self._root = np.sqrt(problem.sample_weight)
        self._single = all(rows.size == left.size == 1 for rows, left in zip(folds.rows, folds.left_out, strict=True))
        ends = np.cumsum([rows.size for rows in folds.rows])
        self._places = [slice(end - rows.size, end) for end, rows in zip(ends, folds.rows, strict=True)]

    def residuals(self, supports: NDArray[np.int64]) -> Floats:
        """y minus prediction (C, P), in units of y, when fold f is predicted by supports[f, c] of (F, C, k)."""
        _, chains, k = supports.shape
        distinct, which = np.unique(supports.reshape(-1, k), axis=0, return_inverse=True)
        which = which.reshape(-1, chains)
        result = np.empty((chains, self._places[-1].stop))
        (self._single_rows if self._single else self._blocks)(distinct, which, result)
        return result / self._root[self._folds.row]

    def _single_rows(self, distinct: NDArray[np.int64], which: NDArray[np.int64], result: Floats) -> None:
        """Fill in residuals (C, P) of rows left out one by one; fold f, chain c uses distinct[which[f, c]]."""
        row = self._folds.row
        for part, left, e, _ in loo_stack(self._problem, distinct):
            fold, chain = np.nonzero((which >= part.start) & (which < part.stop))
            at = which[fold, chain] - part.start, row[fold]
            unseen = left[at] <= _UNSEEN
            result[chain, fold] = e[at] / np.where(unseen, 1.0, left[at])
            for f, c in zip(fold[unseen], chain[unseen], strict=True):
                result[c, f] = self._refit(distinct[which[f, c]], self._folds.left_out[f])[0]

    def _blocks(self, distinct: NDArray[np.int64], which: NDArray[np.int64], result: Floats) -> None:
        """The same for rows left out together."""
        for u, support in enumerate(distinct):
            q, e = self._factor(support)
            for fold, chain in zip(*np.nonzero(which == u), strict=True):
                rows, place = self._folds.left_out[fold], self._places[fold]
                residuals = self._block(support, rows, q[rows], e[rows])
                result[chain, place] = residuals[np.searchsorted(rows, self._folds.rows[fold])]

    def lowest(self, supports: NDArray[np.int64]) -> tuple[NDArray[np.int64], Floats, int]:
        r"""Which of `supports` (U, k) is lowest in each fold (F,), its training energy, and the lowest on all rows.

        .. math:: E^{(H)} = E - \tfrac12 e_H^T (I - h_{HH})^{-1} e_H ;

        infinite where the held-out rows alone decide a coefficient.
        """
        which, low = np.zeros(len(self._folds), dtype=np.int64), np.full(len(self._folds), np.inf)
        best, best_energy = 0, np.inf
        for first, inside, whole in self.energies(supports):
            at = np.argmin(inside, axis=0)
            energy = inside[at, np.arange(low.size)]
            which, low = np.where(energy < low, at + first, which), np.minimum(energy, low)
            if whole.min() < best_energy:
                best, best_energy = int(np.argmin(whole)) + first, float(whole.min())
        return which, low, best

    def energies(self, supports: NDArray[np.int64]) -> Iterator[tuple[int, Floats, Floats]]:
        """Part by part: the first support of the part, energies (u, F) in the folds, and (u,) on all rows."""
        if self._single:
            row = self._folds.row
            for part, left, e, energy in loo_stack(self._problem, supports):
                seen = left[:, row] > _UNSEEN
                share = e[:, row] ** 2 / np.where(seen, left[:, row], 1.0)
                yield part.start, np.where(seen, energy[:, None] - 0.5 * share, np.inf), energy
            return
        for u, support in enumerate(supports):
            q, e = self._factor(support)
            whole, inside = self._problem.energy(support), np.empty((1, len(self._folds)))
            for f, rows in enumerate(self._folds.left_out):
                block = np.eye(rows.size) - q[rows] @ q[rows].T
                seen = np.linalg.eigvalsh(block)[0] > _UNSEEN
                inside[0, f] = whole - 0.5 * e[rows] @ np.linalg.solve(block, e[rows]) if seen else np.inf
            yield u, inside, np.array([whole])

    def _block(self, support: NDArray[np.int64], rows: NDArray[np.int64], q: Floats, e: Floats) -> Floats:
        """Weighted residuals of several rows held out together."""
        inside = np.eye(rows.size) - q @ q.T
        if np.linalg.eigvalsh(inside)[0] > _UNSEEN:
            return np.asarray(np.linalg.solve(inside, e))
        return self._refit(support, rows)

    def _factor(self, support: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Orthonormal basis of forced and chosen columns (its rows give the hat matrix), and the residuals."""
        gram = self._problem.gram
        at = self._problem.slots(support)
        columns, m = gram.columns[at].T, gram.target.size
        ridge = bool(gram.penalty[at].any())
        if ridge:
            columns = np.vstack([columns, np.diag(np.sqrt(gram.penalty[at]))])
        q = np.linalg.qr(columns)[0][:m]
        residual = gram.target - q @ (q.T @ gram.target)
        if not ridge:
            residual -= q @ (q.T @ residual)
        return np.hstack([self._basis, q]), residual

    def _refit(self, support: NDArray[np.int64], rows: NDArray[np.int64]) -> Floats:
        """The same by fitting without the rows; the coefficient of a forced column that only they decide is zero.

        From the table itself: of a column that only the held-out rows see, projection on all rows leaves nothing.
        """
        problem = self._problem
        columns = problem.X[:, np.concatenate([problem.always, support])]
        table = np.column_stack([columns, problem.y])
        if problem.center is not None:
            table -= np.average(table, axis=0, weights=problem.sample_weight)
        if problem.center == "fold":
            table = np.column_stack([np.ones(problem.n_rows), table])
        table *= self._root[:, None]
        first = table.shape[1] - 1 - support.size
        kept = np.delete(table, rows, axis=0)
        used = [*_independent(kept[:, :first]), *range(first, first + support.size)]
        penalty = np.zeros((support.size, table.shape[1]))
        penalty[:, first:-1] = np.sqrt(problem.ridge) * np.eye(support.size)
        design = np.vstack([kept, penalty])
        norms = np.linalg.norm(design[:, used], axis=0)
        norms[norms == 0] = 1.0
        x = np.linalg.lstsq(design[:, used] / norms, design[:, -1], rcond=None)[0] / norms
        return np.asarray(table[rows, -1] - table[np.ix_(rows, used)] @ x)


def _independent(columns: Floats) -> list[int]:
    """Columns of (M, f) that are no combination of those before them."""
    basis = np.zeros((columns.shape[0], 0))
    used = []
    for j, column in enumerate(columns.T):
        rest = column - basis @ (basis.T @ column)
        rest -= basis @ (basis.T @ rest)
        if rest @ rest > 1e-20 * (column @ column):
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
            used.append(j)
    return used


def mean_and_error(squares: Floats, weights: Floats, fold: NDArray[np.int64]) -> tuple[Floats, Floats]:
    r"""Half the mean square :math:`\frac12 \sum w r^2 / \sum w` (S,) of `squares` (S, P) and its standard error.

    The error comes from the spread of the fold means: :math:`\sqrt{\sum_f W_f (m_f - m)^2 / (W (F - 1))}`.
    """
    n_folds = int(fold.max()) + 1
    total = np.bincount(fold, weights, n_folds)
    sums = np.stack([np.bincount(fold, weights * row, n_folds) for row in squares])
    mean = sums.sum(axis=1) / total.sum()
    spread = (total * (sums / total - mean[:, None]) ** 2).sum(axis=1) / total.sum() / (n_folds - 1)
    return 0.5 * mean, 0.5 * np.sqrt(spread)
