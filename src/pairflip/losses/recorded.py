r"""Held-out residuals of very many supports of one fold: those where its chains stood at the end of every temperature.

With :math:`G_{SS} = L L^T` and :math:`x = G_{SS}^{-1} b_S` on the training rows of the fold, h the hat matrix of what
is always in the model, and X and y projected on all rows, the residuals of the rows H left out are

.. math:: e_H = (I - h_{HH})^{-1} (y_H - X_{HS} D x) ,

where D leads from the unit of the columns in the fold to that on all rows. Eight supports are factored side by side, so
that a processor can do with all of them at once what it does with one. Where columns are nearly dependent, x is then
refined: with r = y - X_S x on the training rows and p the ridge terms, :math:`x \to x + G_{SS}^{-1} (X_S^T r - p x)`
until nothing changes, which gives the digits of a QR (Björck's corrected seminormal equations).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pairflip.gram import Gram, HeldOutGram
from pairflip.least_squares import Floats
from pairflip.losses.fold_fits import solve_without
from pairflip.losses.shrunken import ShrunkenGram
from pairflip.losses.weighing import CALM
from pairflip.projection import powers_of_two

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem

_PLAIN = 0.05  # what every column has beyond those before it: then no inflation is large enough to be looked at
_ROUNDS = 5
_STILL = 1e-12  # of the coefficients: they do not change any more
_SETTLED = 1e-8  # the last digits of the most inflated ones come and go, as they would with a QR
_njit: Any = njit


@dataclass(frozen=True)
class FoldRows:
    """A fold as its held-out rows see it.

    `columns` (N, H) and `target` (H,) give their residuals, target - x . columns[S], in the unit of y, from the
    coefficients x of the fold's scaled columns; None where every support is to be fitted from the rows.
    """

    problem: SubsetProblem
    gram: Gram
    left_out: NDArray[np.int64]
    predicted: NDArray[np.int64]
    columns: Floats | None
    target: Floats | None

    def residuals(self, record: NDArray[Any]) -> Floats:
        """Observed minus predicted (..., H) under each support of a record (chains, steps, k) of candidate positions.

        A support is fitted once for as long as a chain stays there.
        """
        chains, steps, k = record.shape
        stays, supports = np.empty((chains, steps), dtype=np.int64), np.empty((chains * steps, k), dtype=np.int64)
        supports = supports[: _runs(np.ascontiguousarray(record, dtype=np.int32), stays, supports)]
        found, again = np.empty((len(supports), self.predicted.size)), np.arange(len(supports))
        if self.columns is not None:
            gram, inflation = self.gram, np.empty(len(supports))
            _residuals(gram.matrix, gram.b, self.columns, self.target, supports, found, inflation)
            again = np.flatnonzero(~(inflation < CALM))
            if again.size:
                training = gram.matrix, gram.b, gram.columns, gram.target, gram.penalty
                again = again[~_refined(*training, self.columns, self.target, supports, again, found)]
        for at in again.tolist():
            found[at] = self._fitted_again(supports[at])
        return np.asarray(found[stays])

    def _fitted_again(self, support: NDArray[np.int64]) -> Floats:
        """The same of one support, from the rows of the table."""
        found, rows = solve_without(self.problem, self.gram.candidates[support], self.left_out), self.predicted
        residuals = found.table[rows, -1] - found.table[rows, :-1] @ found.x
        return np.asarray(residuals / np.sqrt(self.problem.sample_weight[rows]))


def fold_rows(
    problem: SubsetProblem, gram: Gram, left_out: NDArray[np.int64], predicted: NDArray[np.int64]
) -> FoldRows:
    """What predicts the held-out rows of one fold.

    Parameters
    ----------
    problem : SubsetProblem
        Table and target.
    gram : Gram
        The form of the fold.
    left_out, predicted : (L,), (H,)
        Rows that the fold does not learn from, sorted, and those among them that it predicts.
    """
    fold, shrink = (gram.base, np.sqrt(1.0 + gram.ridge)) if isinstance(gram, ShrunkenGram) else (gram, 1.0)
    if not isinstance(fold, HeldOutGram):
        return FoldRows(problem, gram, left_out, predicted, *_beside(problem, gram, left_out, predicted))
    basis = problem.forced_basis[left_out]
    inside = np.linalg.inv(np.eye(left_out.size) - basis @ basis.T)[np.searchsorted(left_out, predicted)]
    inside /= np.sqrt(problem.sample_weight[predicted])[:, None]
    columns = np.ascontiguousarray(((inside @ fold.base.on_rows(left_out)) * (fold.unit / shrink)).T)
    return FoldRows(problem, gram, left_out, predicted, columns, inside @ fold.base.target[left_out])


def _beside(
    problem: SubsetProblem, gram: Gram, left_out: NDArray[np.int64], predicted: NDArray[np.int64]
) -> tuple[Floats, Floats] | tuple[None, None]:
    """Columns (N, H) and target (H,) on the predicted rows, as a fold has them that is a problem of its own.

    What is always in the model is fitted to every column on the training rows, and taken out of the others as well.
    None where the training rows do not determine that fit.
    """
    rest = np.delete(np.arange(problem.n_rows), left_out)
    weight = problem.sample_weight[rest]
    rest, root = rest[weight > 0], np.sqrt(weight[weight > 0])[:, None]
    table = np.column_stack([problem.X[:, problem.always], problem.X[:, gram.candidates], problem.y]).astype(np.float64)
    if problem.center == "fold":
        table -= np.average(table[rest], axis=0, weights=root[:, 0] ** 2)
    elif problem.center is not None:
        table -= np.concatenate([problem.means[problem.always], problem.means[gram.candidates], [problem.y_mean]])
    table /= np.append(powers_of_two(table[rest, :-1]), 1.0)
    forced = np.column_stack(
        [np.ones((problem.n_rows, int(problem.center == "fold"))), table[:, : problem.always.size]]
    )
    others = table[:, problem.always.size :]
    norms = np.linalg.norm(root * forced[rest], axis=0)
    if not norms.all():
        return None, None
    fitted, _, rank, _ = np.linalg.lstsq(root * forced[rest] / norms, root * others[rest], rcond=None)
    if rank < norms.size:
        return None, None
    others = others - (forced / norms) @ fitted
    scale = np.linalg.norm(gram.columns, axis=1) / np.linalg.norm(root * others[rest, :-1], axis=0)
    return np.ascontiguousarray((others[predicted, :-1] * scale).T), others[predicted, -1].copy()


@_njit(cache=True, nogil=True)
def _runs(record: Any, stays: Any, supports: Any) -> int:
    """Every support of a record once for as long as its chain stays there, and which one each step has (C, T)."""
    chains, steps, k = record.shape
    count = 0
    for c in range(chains):
        for t in range(steps):
            new = t == 0
            for i in range(k):
                new = new or record[c, t, i] != record[c, t - 1, i]
            if new:
                for i in range(k):
                    supports[count, i] = record[c, t, i]
                count += 1
            stays[c, t] = count - 1
    return count


@_njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})
def _residuals(G: Any, b: Any, columns: Any, target: Any, supports: Any, found: Any, inflation: Any) -> None:
    """Fill in residuals (n, H) and the largest inflation (n,) of each support; 0 where it was seen not to be large.

    Row k of L becomes z = L^{-1} b_S, as any other row of the factor does. Every lane does the same arithmetic whatever
    its neighbours are, so that results do not depend on how supports are put together.
    """
    n, k = supports.shape
    L, inverse, x, v = np.empty((k + 1, k, 8)), np.empty((k, 8)), np.empty((k, 8)), np.empty((k, 8))
    now, least, high, total = np.empty(8), np.empty(8), np.empty(8), np.empty(8)
    for first in range(0, n, 8):
        for lane in range(8):
            S = supports[min(first + lane, n - 1)]
            for i in range(k):
                G_i = G[S[i]]
                for j in range(i + 1):
                    L[i, j, lane] = G_i[S[j]]
                L[k, i, lane] = b[S[i]]
        least[:] = 1.0
        for i in range(k + 1):
            for j in range(min(i + 1, k)):
                for lane in range(8):
                    now[lane] = L[i, j, lane]
                for m in range(j):
                    for lane in range(8):
                        now[lane] -= L[i, m, lane] * L[j, m, lane]
                if j == i:
                    for lane in range(8):
                        least[lane] = min(least[lane], now[lane])
                        inverse[i, lane] = 1.0 / np.sqrt(max(now[lane], 1e-300))
                else:
                    for lane in range(8):
                        L[i, j, lane] = now[lane] * inverse[j, lane]
        for i in range(k - 1, -1, -1):
            for lane in range(8):
                now[lane] = L[k, i, lane]
            for m in range(i + 1, k):
                for lane in range(8):
                    now[lane] -= L[m, i, lane] * x[m, lane]
            for lane in range(8):
                x[i, lane] = now[lane] * inverse[i, lane]
        high[:] = 0.0
        if least.min() < _PLAIN:
            for c in range(k):  # column c of L^{-1}, whose square is the inflation of column c
                for i in range(c, k):
                    for lane in range(8):
                        now[lane] = 1.0 if i == c else 0.0
                    for m in range(c, i):
                        for lane in range(8):
                            now[lane] -= L[i, m, lane] * v[m, lane]
                    for lane in range(8):
                        v[i, lane] = now[lane] * inverse[i, lane]
                total[:] = 0.0
                for i in range(c, k):
                    for lane in range(8):
                        total[lane] += v[i, lane] * v[i, lane]
                for lane in range(8):
                    high[lane] = max(high[lane], total[lane])
        for lane in range(min(8, n - first)):
            S, out = supports[first + lane], found[first + lane]
            out[:] = target
            for i in range(k):
                of, factor = columns[S[i]], x[i, lane]
                for h in range(out.size):
                    out[h] -= factor * of[h]
            inflation[first + lane] = 0.0 if least[lane] >= _PLAIN else (high[lane] if least[lane] > 0.0 else np.inf)


@_njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _refined(
    G: Any,
    b: Any,
    training: Any,
    y: Any,
    penalty: Any,
    columns: Any,
    target: Any,
    supports: Any,
    which: Any,
    found: Any,
) -> Any:
    """Fill in residuals of some supports with refined coefficients; where (len(which),) these settled."""
    k, settled = supports.shape[1], np.zeros(which.size, dtype=np.bool_)
    L, x, dx, r = np.empty((k, k)), np.empty(k), np.empty(k), np.empty(y.size)
    for n in range(which.size):
        S, positive = supports[which[n]], True
        for i in range(k):
            for j in range(i + 1):
                total = G[S[i], S[j]]
                for m in range(j):
                    total -= L[i, m] * L[j, m]
                if j < i:
                    L[i, j] = total / L[j, j]
                else:
                    positive = positive and total > 0.0
                    L[i, i] = np.sqrt(max(total, 1e-300))
            x[i], dx[i] = 0.0, b[S[i]]
        for _ in range(_ROUNDS if positive else 0):
            for i in range(k):
                for m in range(i):
                    dx[i] -= L[i, m] * dx[m]
                dx[i] /= L[i, i]
            size, change = 0.0, 0.0
            for i in range(k - 1, -1, -1):
                for m in range(i + 1, k):
                    dx[i] -= L[m, i] * dx[m]
                dx[i] /= L[i, i]
                x[i] += dx[i]
                size, change = max(size, abs(x[i])), max(change, abs(dx[i]))
            settled[n] = change <= _SETTLED * size
            if change <= _STILL * size:
                break
            r[:] = y
            for i in range(k):
                of, factor = training[S[i]], x[i]
                for m in range(r.size):
                    r[m] -= factor * of[m]
            for i in range(k):
                of, total = training[S[i]], 0.0
                for m in range(r.size):
                    total += of[m] * r[m]
                dx[i] = total - penalty[S[i]] * x[i]
        out = found[which[n]]
        out[:] = target
        for i in range(k):
            of, factor = columns[S[i]], x[i]
            for h in range(out.size):
                out[h] -= factor * of[h]
    return settled
