r"""An orthonormal basis of the columns of a support, for energies that rounding must not decide.

Q (k, M) is the basis, T (k, k) are the coordinates of the dual vectors, :math:`A_l = \sum_m T_{lm} Q_m` with
:math:`X_l \cdot A_m = \delta_{lm}`, so that :math:`G_{SS}^{-1} = T T^T` and the variance inflation factor of slot l is
:math:`|T_l|^2`. The ridge is one more row for each slot, which holds :math:`\sqrt{\lambda_j}` of the column in that
slot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import INFLATION
from pairflip.engines.numba.compile import kernel
from pairflip.least_squares import SINGULAR


class Exact(NamedTuple):
    """What is read here: `vectors` (N, M), `target` (M,), `root` (N,) of the ridge or (0,)."""

    vectors: Any
    target: Any
    root: Any


class Basis(NamedTuple):
    """Memory: Q, T, what they leave of the target (e), inflations; q and c of a column that may join."""

    Q: Any
    T: Any
    e: Any
    inflated: Any
    q: Any
    c: Any


def new_basis(k: int, n_rows: int, *, ridge: bool) -> Basis:
    """Uninitialized memory for supports of size k."""
    length = n_rows + (k if ridge else 0)
    return Basis(np.empty((k, length)), np.empty((k, k)), np.empty(length), np.empty(k), np.empty(length), np.empty(k))


@kernel
def load(exact, j, slot, q):
    """Column j as it would stand in that slot, into q."""
    n_rows = exact.target.size
    for t in range(n_rows):
        q[t] = exact.vectors[j, t]
    for t in range(n_rows, q.size):
        q[t] = 0.0
    if exact.root.size:
        q[n_rows + slot] = exact.root[j]


@kernel
def load_target(exact, q):
    """The target into q."""
    for t in range(q.size):
        q[t] = exact.target[t] if t < exact.target.size else 0.0


@kernel
def dot(a, b):
    """a . b"""
    total = 0.0
    for t in range(a.size):
        total += a[t] * b[t]
    return total


@kernel
def combine(Q, n, c, sign, q):
    """Add to q the combination c of the first n rows of Q, times `sign`; four rows at a time."""
    # q is read and written once for four rows: the loop waits for memory, not for arithmetic.
    m = 0
    while m + 4 <= n:
        c_0, c_1, c_2, c_3 = sign * c[m], sign * c[m + 1], sign * c[m + 2], sign * c[m + 3]
        for t in range(q.size):
            q[t] += c_0 * Q[m, t] + c_1 * Q[m + 1, t] + c_2 * Q[m + 2, t] + c_3 * Q[m + 3, t]
        m += 4
    while m < n:
        c_0 = sign * c[m]
        for t in range(q.size):
            q[t] += c_0 * Q[m, t]
        m += 1


@kernel
def row_dot(Q, m, b):
    """Row m of Q . b"""
    total = 0.0
    for t in range(b.size):
        total += Q[m, t] * b[t]
    return total


@kernel
def project_out(Q, n, q, c):
    """Take the first n vectors of the basis out of q, twice; c gets the coordinates, the squared rest is returned."""
    again = np.empty(n)
    for m in range(n):
        c[m] = 0.0
    # Once leaves a rest that is not orthogonal when little is left of q; twice is enough (Kahan, Parlett).
    for _ in range(2):
        for m in range(n):
            again[m] = row_dot(Q, m, q)
            c[m] += again[m]
        combine(Q, n, again, -1.0, q)
    return dot(q, q)


@kernel
def append(basis, n, s):
    """Vector n of the basis, from q and c of the column in slot n, with s = |q|^2."""
    Q, T, q, c, inflated, norm = basis.Q, basis.T, basis.q, basis.c, basis.inflated, s**0.5
    for l in range(n):
        total = 0.0
        for m in range(n):
            total += T[l, m] * c[m]
        T[l, n] = -total / norm
        inflated[l] += T[l, n] * T[l, n]
        T[n, l] = 0.0
    T[n, n] = 1.0 / norm
    inflated[n] = 1.0 / s
    for t in range(q.size):
        Q[n, t] = q[t] / norm


@kernel
def can_append(exact, basis, n, s):
    """Whether the column in q, c may join the first n: nothing is singular then."""
    T, c, inflated = basis.T, basis.c, basis.inflated
    if s <= SINGULAR:
        return False
    for l in range(n):
        total = 0.0
        for m in range(n):
            total += T[l, m] * c[m]
        if inflated[l] + total * total / s >= INFLATION:
            return False
    return True
