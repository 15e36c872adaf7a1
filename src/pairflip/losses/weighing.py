r"""Very many supports weighed by the Gram matrix: energies, and what one row contributes, from a Cholesky factor each.

With :math:`G_{SS} = L L^T`, :math:`z = L^{-1} b_S` and, for a row m of the table, :math:`w = L^{-1} x_{mS}`,

.. math:: E = \tfrac12 (y^T y - z \cdot z), \quad \hat y_m = w \cdot z, \quad h_m = w \cdot w, \quad
          \text{inflation}_i = (G_{SS}^{-1})_{ii} = \textstyle\sum_l (L^{-1})_{li}^2 ,

and the coefficients are :math:`x = L^{-T} z`; without row m, whose residual is e, they are
:math:`x - L^{-T} w \, e / (1 - h_m)`. That is a small part of what a QR of each takes, and it loses digits where
columns are nearly dependent: the largest inflation says how many.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pairflip.distinct import distinct_supports
from pairflip.gram import Gram
from pairflip.least_squares import Floats

CALM = 1e4
"""Variance inflation up to which the Gram matrix tells ten digits."""
_njit: Any = njit


class Weights:
    """What is known of n supports; all (n,). `inflation` is infinite where the factor does not exist.

    If they were asked for, `x` and `of_row` (n, k) are the coefficients of the scaled columns, and those of the row.
    """

    def __init__(self, gram: Gram, table: Floats, solved: Floats) -> None:
        explained, self.fitted, self.leverage, self.inflation = table.T
        self.x, self.of_row = solved[:, 0], solved[:, 1]
        self.energy: Floats = 0.5 * (gram.yy - explained)
        self.calm: NDArray[np.bool_] = (self.inflation < CALM) & (self.energy > 1e-6 * gram.yy)


def weigh(
    gram: Gram, supports: NDArray[np.int64], rows: NDArray[np.int64] | None = None, *, solve: bool = False
) -> Weights:
    """Energies of supports, and fitted value and leverage of one row for each; equal supports share their factor.

    Parameters
    ----------
    gram : Gram
        The problem; its matrix can be formed.
    supports : (n, k)
        Candidate positions.
    rows : (n,), optional
        A row of the table for each support.
    solve
        Whether coefficients are wanted.
    """
    places = np.ascontiguousarray(supports)
    order = np.argsort(distinct_supports(places).which, kind="stable")
    table = np.empty((len(places), 4))
    which = np.empty(0, dtype=np.int64) if rows is None else np.ascontiguousarray(rows)
    solved = np.empty((len(places) if solve else 0, 2, places.shape[1]))
    _weigh(gram.matrix, gram.b, gram.columns, places, order, which, table, solved)
    return Weights(gram, table, solved)


@_njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _weigh(G: Any, b: Any, columns: Any, supports: Any, order: Any, rows: Any, table: Any, solved: Any) -> None:
    """Fill in (z.z, w.z, w.w, largest inflation) of each support, those with the same columns one after the other.

    Where there is room for them, `solved` are the coefficients x and those of the row.
    """
    k = supports.shape[1]
    L, V, z, w, inflation = np.empty((k, k)), np.empty((k, k)), np.empty(k), np.empty(k), np.empty(k)
    last = -1
    for now in order:
        S, same = supports[now], last >= 0
        for m in range(k if same else 0):
            same = same and S[m] == supports[last, m]
        if same:
            table[now, 0], table[now, 3] = table[last, 0], table[last, 3]
        else:
            explained, positive = 0.0, True
            inflation[:] = 0.0
            for i in range(k):
                G_i, L_i, V_i = G[S[i]], L[i], V[i]
                rest = G_i[S[i]]
                for j in range(i):
                    total, L_j = G_i[S[j]], L[j]
                    for l in range(j):
                        total -= L_i[l] * L_j[l]
                    total /= L_j[j]
                    L_i[j] = total
                    rest -= total * total
                positive = positive and rest > 0.0
                root = max(rest, 1e-300) ** 0.5
                L_i[i] = root
                V_i[: i + 1] = 0.0
                total = b[S[i]]
                for l in range(i):
                    a, V_l = L_i[l], V[l]
                    total -= a * z[l]
                    for j in range(l + 1):
                        V_i[j] -= a * V_l[j]
                z[i] = total / root
                explained += z[i] * z[i]
                V_i[i] = 1.0
                for j in range(i + 1):
                    V_i[j] /= root
                    inflation[j] += V_i[j] * V_i[j]
            table[now, 0] = explained
            table[now, 3] = inflation.max() if positive else np.inf
        last = now
        fitted, leverage = 0.0, 0.0
        for i in range(k if rows.size else 0):
            total, L_i = columns[S[i], rows[now]], L[i]
            for l in range(i):
                total -= L_i[l] * w[l]
            w[i] = total / L_i[i]
            fitted += w[i] * z[i]
            leverage += w[i] * w[i]
        table[now, 1], table[now, 2] = fitted, leverage
        if solved.size:
            solved[now] = 0.0
            for i in range(k):
                x, of_row, V_i = solved[now, 0], solved[now, 1], V[i]
                for j in range(i + 1):
                    x[j] += z[i] * V_i[j]
                    of_row[j] += w[i] * V_i[j]
