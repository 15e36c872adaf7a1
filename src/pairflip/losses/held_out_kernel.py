r"""The fits of many supports, each without the held-out rows H of its fold, from a Cholesky factor each.

With Z the columns and Y the targets (forced columns swept out of all rows), F an orthonormal basis of the forced
columns and :math:`K = I - F_H^T F_H`, the training rows give for a support S

.. math:: A = G_{SS} - Z_H^T Z_H - Z_H^T F_H K^{-1} F_H^T Z_H + \lambda D, \quad x = A^{-1} c , \quad
          g = -K^{-1} F_H^T (Y_H - Z_H x) ,

with D the diagonal before the ridge is added and c the same of the targets; the residuals of the held-out rows are
:math:`Y_H - Z_H x - F_H g`. Where columns are nearly dependent, or hardly anything is left of the targets, x is refined
with the residuals of the training rows, which gives the digits of an orthogonal factorization.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.compiled import apart, entry

DELICATE = 1e-3
"""Pivots (what is independent of the columns before, as a fraction) below which coefficients are refined."""
DEPENDENT = 1e-7
"""Pivots below which a support is left to an orthogonal factorization."""
EXPLAINED = 1e-5
"""Fractions of the targets that are left below which energies are computed from the rows."""
_PASSES = 3
_FEW = 8  # rows left out of which products are added row by row


class Rows(NamedTuple):
    """All rows: columns (n, M), their products G (n, n), B (q, n), targets (q, M), basis (f, M), penalties (n,)."""

    Z: Any
    G: Any
    B: Any
    Y: Any
    F: Any
    penalty: Any
    ridge: float
    trusted: float


class Left(NamedTuple):
    """Rows left out: those of fold f are `rows[start[f]:start[f + 1]]`; K^{-1} = R'R (F, f, f), weights (F, q).

    `weight` are what squares of residuals are multiplied by; `yy` (F, q) what the training rows have of each target.
    """

    rows: Any
    start: Any
    K: Any
    R: Any
    weight: Any
    yy: Any


@entry
def solve_pairs(
    data: Any, left_out: Any, fold: Any, supports: Any, x: Any, g: Any, energy: Any, residual: Any, at: Any
) -> None:
    """Fill in x (P, q, k), g (P, q, f), energies (P,) and residuals of held-out rows (q, .) from `at[p]` on.

    The energy is -1 where a support is left to an orthogonal factorization.
    """
    (P, k), q, nf, M = supports.shape, data.B.shape[0], data.F.shape[0], data.Z.shape[1]
    most = 1
    for f in range(left_out.start.size - 1):
        most = max(most, left_out.start[f + 1] - left_out.start[f])
    ZH, YH, FH = np.empty((k, most + nf)), np.empty((q, most + nf)), np.empty((nf, most))
    U, D, c, v, rest = np.empty((k, k)), np.empty(k), np.empty(k), np.empty(max(k, nf)), np.empty(M)
    Z, G, B, rows, G_S = data.Z, data.G, data.B, left_out.rows, np.empty((k, k))
    last_fold = -1
    for p in range(P):
        S, f = supports[p], fold[p]
        first, h = left_out.start[f], left_out.start[f + 1] - left_out.start[f]
        K = left_out.K[f]
        if f != last_fold:  # pairs of one fold stand together: its rows are gathered once
            last_fold = f
            for a in range(nf):
                for m in range(h):
                    FH[a, m] = data.F[a, rows[first + m]]
            for t in range(q):
                _take(data.Y[t], rows, first, h, FH, left_out.R[f], v, YH[t])
        # Many folds choose the same support, whose block of G need not be gathered again.
        same = p > 0
        for i in range(k):
            same = same and S[i] == supports[p - 1, i]
        for i in range(0 if same else k):
            column = S[i]
            for j in range(i, k):
                G_S[i, j] = G[column, S[j]]
        for i in range(k):
            _take(Z[S[i]], rows, first, h, FH, left_out.R[f], v, ZH[i])
        regular = True
        for i in range(k):
            for j in range(i, k):
                U[i, j] = G_S[i, j]
            # Few rows: row by row, so that the inner loop runs over columns and vectorizes.
            if h > _FEW:
                for j in range(i, k):
                    U[i, j] -= _dot(ZH[i], ZH[j], h + nf)
            else:
                for m in range(h + nf):
                    z = ZH[i, m]
                    for j in range(i, k):
                        U[i, j] -= z * ZH[j, m]
            D[i] = U[i, i]
            U[i, i] *= 1.0 + data.ridge
            regular = regular and D[i] >= data.trusted
        least = _factor(U, k, v) if regular else 0.0
        regular, calm = regular and least > DEPENDENT, least > DELICATE
        if not regular:
            energy[p] = -1.0
            continue
        E, everything = 0.0, 0.0
        for t in range(q):
            for i in range(k):
                c[i] = B[t, S[i]] - _dot(YH[t], ZH[i], h + nf)
            explained = _solve(U, k, c, x[p, t])
            E += 0.5 * left_out.weight[f, t] * (left_out.yy[f, t] - explained)
            everything += 0.5 * left_out.weight[f, t] * left_out.yy[f, t]
        # A difference of nearly equal numbers has no digits: then the energy comes from the residuals themselves.
        if not calm or EXPLAINED * everything > E:
            E = 0.0
            for t in range(q):
                for turn in range(_PASSES):
                    _training_residual(data, left_out, f, S, x[p, t], t, v, rest)
                    if turn == _PASSES - 1:
                        break
                    for i in range(k):
                        penalty = data.penalty[S[i]] + data.ridge * D[i]
                        c[i] = _dot(data.Z[S[i]], rest, M) - penalty * x[p, t, i]
                    _solve(U, k, c, v)
                    for i in range(k):
                        x[p, t, i] += v[i]
                total = _dot(rest, rest, M)
                for i in range(k):
                    total += (data.penalty[S[i]] + data.ridge * D[i]) * x[p, t, i] ** 2
                E += 0.5 * left_out.weight[f, t] * total
        energy[p] = max(E, 0.0)
        for t in range(q):
            here = at[p]
            for m in range(h):
                residual[t, here + m] = YH[t, m]
            for i in range(k):
                x_i = x[p, t, i]
                for m in range(h):
                    residual[t, here + m] -= x_i * ZH[i, m]
            # Forced columns were swept out of all rows; without the held-out ones their coefficients move by g.
            for a in range(nf):
                total = 0.0
                for m in range(h):
                    total += FH[a, m] * residual[t, here + m]
                v[a] = total
            for a in range(nf):
                total = 0.0
                for b in range(nf):
                    total -= K[a, b] * v[b]
                g[p, t, a] = total
            for a in range(nf):
                for m in range(h):
                    residual[t, here + m] -= FH[a, m] * g[p, t, a]


@apart
def _take(column: Any, rows: Any, first: Any, h: Any, FH: Any, R: Any, v: Any, out: Any) -> None:
    """A column z on the h rows left out, and behind them R F_H' z, so that products take away what these rows do."""
    for m in range(h):
        out[m] = column[rows[first + m]]
    for a in range(FH.shape[0]):
        v[a] = _dot(FH[a], out, h)
    for a in range(FH.shape[0]):
        out[h + a] = _dot(R[a], v, FH.shape[0])


@apart
def _dot(a: Any, b: Any, n: Any) -> Any:
    """The inner product of the first n numbers of two vectors."""
    total = 0.0
    for m in range(n):
        total += a[m] * b[m]
    return total


@apart
def _factor(U: Any, k: Any, whole: Any) -> Any:
    """U (k, k), the upper half of a matrix, becomes its Cholesky factor; the least pivot, over its diagonal element.

    Four rows at a time are subtracted from those below, so that these are read and written a fourth as often.
    """
    least = 1.0
    for i in range(k):
        whole[i] = U[i, i]
    first = 0
    while first < k:
        last = min(first + 4, k)
        for i in range(first, last):
            U_i = U[i]
            for l in range(first, i):
                f, U_l = U[l, i], U[l]
                for j in range(i, k):
                    U_i[j] -= f * U_l[j]
            pivot = U_i[i]
            least = min(least, pivot / whole[i])
            if not pivot > 0.0:  # nor NaN
                return 0.0
            root = 1.0 / pivot**0.5
            for j in range(i, k):
                U_i[j] *= root
        if last - first == 4:
            A, B, C, D = U[first], U[first + 1], U[first + 2], U[first + 3]
            for i in range(last, k):
                U_i, a, b, c, d = U[i], A[i], B[i], C[i], D[i]
                for j in range(i, k):
                    U_i[j] -= a * A[j] + b * B[j] + c * C[j] + d * D[j]
        first = last
    return least


@apart
def _solve(U: Any, k: Any, c: Any, x: Any) -> Any:
    """Solve U' U x = c, which is overwritten; the inner product of x and c."""
    explained = 0.0
    for i in range(k):
        U_i = U[i]
        c[i] /= U_i[i]
        z = c[i]
        explained += z * z
        for j in range(i + 1, k):
            c[j] -= z * U_i[j]
    for i in range(k - 1, -1, -1):
        U_i, total = U[i], c[i]
        for j in range(i + 1, k):
            total -= U_i[j] * x[j]
        x[i] = total / U_i[i]
    return explained


@apart
def _training_residual(data: Any, left_out: Any, f: Any, S: Any, x: Any, t: Any, v: Any, rest: Any) -> None:
    """What x leaves of target t on the training rows, forced columns fitted there, too; zero on the rows left out."""
    nf, K = data.F.shape[0], left_out.K[f]
    for m in range(rest.size):
        rest[m] = data.Y[t, m]
    for i in range(S.size):
        x_i, Z_i = x[i], data.Z[S[i]]
        for m in range(rest.size):
            rest[m] -= x_i * Z_i[m]
    for m in range(left_out.start[f], left_out.start[f + 1]):
        rest[left_out.rows[m]] = 0.0
    for _ in range(2):  # a second projection removes what rounding left of the first
        for a in range(nf):
            v[a] = _dot(data.F[a], rest, rest.size)
        for a in range(nf):
            total, F_a = 0.0, data.F[a]
            for b in range(nf):
                total += K[a, b] * v[b]
            for m in range(rest.size):
                rest[m] -= total * F_a[m]
        for m in range(left_out.start[f], left_out.start[f + 1]):
            rest[left_out.rows[m]] = 0.0
