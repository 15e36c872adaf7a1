r"""Descents under rules from the columns themselves, compiled: for supports of which the Gram matrix says too little.

With Q an orthonormal basis of the support, :math:`z_j` what of column j is orthogonal to it, :math:`u_i` the unit
vector of the support orthogonal to its columns other than i, :math:`c_i = u_i^T Y` and :math:`V_{ij} = u_i^T x_j`,

.. math:: 2 \Delta E = |c_i|^2 - |Y^T z_j + V_{ij} c_i|^2 / (|z_j|^2 + V_{ij}^2) ,

sums of squares that lose nothing. What is left to QR: nearly singular supports, and changes near zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import EQUAL
from pairflip.engines.numba.compile import apart, kernel
from pairflip.engines.numba.several import DOUBT, GRAY, MINIMUM, mark, shut
from pairflip.least_squares import SINGULAR

FAINT = 1e-8
"""A column of which less than this is independent of the others is judged by QR."""
EXACT = 1e-6
"""A support that leaves less than this of the targets, too."""


class ColumnRows(NamedTuple):
    """Columns (n, m) and targets (q, m), ridge terms among the rows; memory for a basis.

    `Q`, `U` (K, m), `T` (K, K), `c` (K, q), `z` (m,); `left` (1,): twice the energy of the support.
    """

    columns: Any
    targets: Any
    Q: Any
    U: Any
    T: Any
    c: Any
    z: Any
    left: Any


def new_rows(columns: Any, targets: Any, largest: int) -> ColumnRows:
    """The same for supports of up to `largest` of the columns (n, m), with targets (m, q)."""
    m, q = targets.shape
    basis, square = np.zeros((largest, m)), np.zeros((largest, largest))
    targets = np.ascontiguousarray(targets.T)
    return ColumnRows(
        columns, targets, basis, basis.copy(), square, np.zeros((largest, q)), np.zeros(m), np.zeros(1)
    )  # fmt: skip


@kernel
def dot(a, b):
    """Inner product."""
    total = 0.0
    for m in range(a.size):
        total += a[m] * b[m]
    return total


@kernel
def project_out(rows, z, k, coef):
    """Take the first k vectors of the basis out of z, and add what was there to `coef` (k,)."""
    for l in range(k):
        Q_l = rows.Q[l]
        d = dot(z, Q_l)
        coef[l] += d
        for m in range(z.size):
            z[m] -= d * Q_l[m]


@kernel
def orthogonalize(rows, support, k):
    """Q, T with X_S = Q' T, and what is left of the targets; whether every column has something of its own."""
    T = rows.T
    for i in range(k):
        Q_i, x = rows.Q[i], rows.columns[support[i]]
        for l in range(T.shape[0]):
            T[i, l] = 0.0  # row i: coefficients of column i
        for m in range(x.size):
            Q_i[m] = x[m]
        project_out(rows, Q_i, i, T[i])
        project_out(rows, Q_i, i, T[i])  # what rounding left of the first time
        square = dot(Q_i, Q_i)
        if not square > FAINT:
            return False
        T[i, i] = np.sqrt(square)
        for m in range(x.size):
            Q_i[m] /= T[i, i]
    left = 0.0
    for t in range(rows.targets.shape[0]):
        y = rows.targets[t]
        left += dot(y, y)
        for i in range(k):
            b = dot(y, rows.Q[i])
            left -= b * b
    rows.left[0] = left
    return True


@kernel
def directions(rows, k):
    """U: for each slot the unit vector of the support orthogonal to its other columns; its products c."""
    for i in range(k - 1, -1, -1):
        U_i, Q_i = rows.U[i], rows.Q[i]
        for m in range(U_i.size):
            U_i[m] = Q_i[m]
        for l in range(i + 1, k):
            share, U_l = rows.T[l, i], rows.U[l]
            for m in range(U_i.size):
                U_i[m] -= share * U_l[m]
        for m in range(U_i.size):
            U_i[m] /= rows.T[i, i]
    for i in range(k):
        U_i = rows.U[i]
        norm = np.sqrt(dot(U_i, U_i))
        for m in range(U_i.size):
            U_i[m] /= norm
        for t in range(rows.targets.shape[0]):
            rows.c[i, t] = dot(U_i, rows.targets[t])


@kernel
def beside(place, rows, k, j):
    """s_j and R_j of one column: what of it is orthogonal to the support, and its products with the targets."""
    z, x = rows.z, rows.columns[j]
    for m in range(x.size):
        z[m] = x[m]
    for _ in range(2):
        for l in range(k):
            Q_l = rows.Q[l]
            d = dot(z, Q_l)
            for m in range(z.size):
                z[m] -= d * Q_l[m]
    place.s[j] = dot(z, z)
    for t in range(rows.targets.shape[0]):
        place.R[j, t] = dot(z, rows.targets[t])


@apart
def go_down_by_columns(form, place, rows, k, most):
    """Make the best flips, at most so many; MINIMUM, or DOUBT where QR must decide how to go on."""
    n, q = form.G.shape[0], form.B.shape[1]
    for _ in range(most):
        if not orthogonalize(rows, place.support, k) or rows.left[0] < EXACT * form.yy:
            return DOUBT
        directions(rows, k)
        mark(form, place, k)
        for j in range(n):
            if place.inside[j] == 0:
                beside(place, rows, k, j)
                for i in range(k):
                    place.V[i, j] = dot(rows.U[i], rows.columns[j])
        slot, column, best, faint = -1, -1, -np.inf, -np.inf
        for i in range(k):
            shut(form, place, k, i)
            lost = 0.0
            for t in range(q):
                lost += rows.c[i, t] * rows.c[i, t]
            for j in range(n):
                if place.inside[j] == 0:
                    v, square = place.V[i, j], 0.0
                    s = place.s[j] + v * v
                    for t in range(q):
                        r = place.R[j, t] + v * rows.c[i, t]
                        square += r * r
                    if s >= FAINT:
                        if square / s - lost > best:
                            slot, column, best = i, j, square / s - lost
                    elif s > 0.5 * SINGULAR:
                        faint = max(faint, square / s - lost)
        if faint > best and faint > GRAY * form.yy:
            return DOUBT
        if best > GRAY * form.yy:
            place.support[slot] = column
        elif max(best, faint) > 0.1 * EQUAL * rows.left[0]:
            return DOUBT
        else:
            return MINIMUM
    return DOUBT


@apart
def addition_by_columns(form, place, rows, k, barred):
    """The column that lowers the energy of the first k most, none of the `barred`; -1 where there is none."""
    column, best = -1, -1.0
    if not orthogonalize(rows, place.support, k):
        return column
    mark(form, place, k)
    shut(form, place, k, -1)
    for j in barred:
        place.inside[j] = 1
    for j in range(form.G.shape[0]):
        if place.inside[j] == 0:
            beside(place, rows, k, j)
            square = 0.0
            for t in range(form.B.shape[1]):
                square += place.R[j, t] * place.R[j, t]
            if place.s[j] > FAINT and square / place.s[j] > best:
                column, best = j, square / place.s[j]
    return column
