r"""Delicate flips, decided from the columns: an orthonormal basis of the support instead of the inverse of G.

The Gram matrix squares the condition of a support. Where its algebra might decide a flip wrongly, the chain visits this
room: for the support S keep an orthonormal basis Q (k, M) of its columns and the coordinates T (k, k) of the dual
vectors, :math:`A_l = \sum_m T_{lm} Q_m` with :math:`X_l \cdot A_m = \delta_{lm}`, so that :math:`P = T T^T` and the
variance inflation factor of slot l is :math:`|T_l|^2`. With :math:`h = T_i / |T_i|` the direction that slot i alone
contributes, and :math:`c = Q X_j`, :math:`q = X_j - Q^T c` (projected twice) for an entering column j,

.. math::
    \alpha = h \cdot c, \quad s' = |q|^2 + \alpha^2, \quad r' = q \cdot e + \alpha \, (h \cdot Q y), \quad
    \Delta E = \tfrac12 \left((h \cdot Q y)^2 - r'^2 / s'\right), \quad e = y - Q^T Q y .

An accepted flip reflects the basis so that h becomes one of its vectors, m, and puts
:math:`f = (q + c_m Q_m) / \sqrt{s'}` in its place: O(M k), and rounding grows with the square root of the inflation.
The ridge is one more row for each slot, which holds :math:`\sqrt{\lambda_j}` of the column in that slot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import EPSILON, INFLATION
from pairflip.engines.numba.compile import kernel
from pairflip.least_squares import SINGULAR

TILT = 1e-10
"""Rounding (as an angle) that may add up before the basis is computed anew: `TURN` EPSILON |T_l| at each flip."""
TURN = 4.0


class Exact(NamedTuple):
    """What is read here: `vectors` (N, M), `target` (M,), `root` (N,) of the ridge or (0,)."""

    vectors: Any
    target: Any
    root: Any


class Basis(NamedTuple):
    """Memory: Q, T and what follows from them; c, |q|^2 and q.e of the columns that this support has met.

    `met` says with which version of the support, `loaded` which column's q and c are there.
    """

    Q: Any
    T: Any
    Qy: Any
    e: Any
    inflated: Any
    h: Any
    q: Any
    c: Any
    a: Any
    met_c: Any
    met_s: Any
    met_r: Any
    met: Any
    version: Any
    loaded: Any
    tilted: Any


def new_basis(k: int, n_columns: int, n_rows: int, *, ridge: bool) -> Basis:
    """Uninitialized memory for supports of size k."""
    length = n_rows + (k if ridge else 0)

    def empty(*shape: int) -> Any:
        return np.empty(shape)

    return Basis(
        Q=empty(k, length), T=empty(k, k), Qy=empty(k), e=empty(length), inflated=empty(k),
        h=empty(k), q=empty(length), c=empty(k), a=empty(length),
        met_c=empty(n_columns, k), met_s=empty(n_columns), met_r=empty(n_columns),
        met=np.zeros(n_columns, np.int64), version=np.zeros(1, np.int64), loaded=np.zeros(1, np.int64),
        tilted=np.zeros(1),
    )  # fmt: skip


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
def inflation_of(basis):
    """Bound on the largest variance inflation factor: their sum less k - 1."""
    total = 1.0
    for m in range(basis.Qy.size):
        total += basis.inflated[m] - 1.0
    return total


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
    """Whether the column in q, c may join the first n: nothing singular then."""
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


@kernel
def energy_of(exact, basis):
    """E of the support."""
    return 0.5 * dot(basis.e, basis.e)


@kernel
def build(exact, basis, candidates, choose, order):
    """Basis and e of the first k candidates; with `choose`, of the first k that may stand together.

    The target comes last. With `choose`, the columns found go to the front of `order` and the others behind them.
    Returns how many were found.
    """
    Q, q, c, k = basis.Q, basis.q, basis.c, basis.Qy.size
    found, rest = 0, k
    for at in range(candidates.size + 1):
        last = at == candidates.size
        if last:
            load_target(exact, q)
        elif found == k:
            if choose and rest < order.size:
                order[rest] = candidates[at]
                rest += 1
            continue
        else:
            load(exact, candidates[at], found, q)
        s = project_out(Q, found, q, c)
        if last:
            continue
        # Without `choose` nothing is asked: such a support was accepted before, and rounding must not turn it down now.
        if not choose or can_append(exact, basis, found, s):
            append(basis, found, s)
            order[found] = candidates[at]
            found += 1
        elif rest < order.size:
            order[rest] = candidates[at]
            rest += 1
    for t in range(q.size):
        basis.e[t] = q[t]
    for m in range(k):
        basis.Qy[m] = c[m]
    basis.tilted[0] = 0.0
    new_version(basis)
    return found


@kernel
def new_version(basis):
    """The support is another one: what columns met, and q, are not valid any more."""
    # A new number makes all of `met` stale at once; clearing it would cost O(N) for each accepted flip.
    basis.version[0] += 1
    basis.loaded[0] = -1


@kernel
def meet(exact, basis, i, j, anew):
    """c, |q|^2, q.e of column j for slot i; with `anew` (or ridge, where q depends on i) also q and c."""
    # At low temperature the same columns are proposed again and again to a support that does not change.
    if not anew and exact.root.size == 0 and basis.met[j] == basis.version[0]:
        return
    load(exact, j, i, basis.q)
    basis.met_s[j] = project_out(basis.Q, basis.Qy.size, basis.q, basis.c)
    basis.met_r[j] = dot(basis.q, basis.e)
    for m in range(basis.Qy.size):
        basis.met_c[j, m] = basis.c[m]
    basis.met[j], basis.loaded[0] = basis.version[0], j


@kernel
def weigh(exact, basis, i, j, now):
    """(Delta E, alpha, s') of taking column j, just met, into slot i; `now` is E. Infinite when it is singular."""
    T, Qy, h, k = basis.T, basis.Qy, basis.h, basis.Qy.size
    norm, alpha, left = basis.inflated[i] ** 0.5, 0.0, 0.0
    for m in range(k):
        h[m] = T[i, m] / norm
        alpha += h[m] * basis.met_c[j, m]
        left += h[m] * Qy[m]
    s, r = basis.met_s[j] + alpha * alpha, basis.met_r[j] + alpha * left
    if s <= SINGULAR:
        return np.inf, alpha, s
    return 0.5 * (left * left - r * r / s), alpha, s


@kernel
def stays_regular(basis, i, j, alpha, s):
    """Whether no variance inflation factor reaches the limit when column j takes slot i (h as `weigh` left it)."""
    T, h, k = basis.T, basis.h, basis.Qy.size
    for l in range(k):
        # Without slot i, the dual vector of slot l is T_l less its part along h.
        along = 0.0
        for m in range(k):
            along += T[l, m] * h[m]
        size, shared = 0.0, 0.0
        for m in range(k):
            other = T[l, m] - along * h[m]
            size += other * other
            shared += other * basis.met_c[j, m]
        if l != i and size + shared * shared / s >= INFLATION:
            return False
    return True


@kernel
def take(exact, basis, i):
    """Put the column in q, c into slot i (h as `weigh` left it)."""
    Q, T, Qy, e, h, q, c, a = basis.Q, basis.T, basis.Qy, basis.e, basis.h, basis.q, basis.c, basis.a
    k, worst = Qy.size, inflation_of(basis)
    # The reflection that turns h into unit vector `at`: with its largest entry, nothing cancels.
    at = 0
    for m in range(k):
        if abs(h[m]) > abs(h[at]):
            at = m
    scale = 1.0 / (1.0 + abs(h[at]))
    h[at] += 1.0 if h[at] >= 0.0 else -1.0
    for t in range(a.size):
        a[t] = 0.0
    combine(Q, k, h, 1.0, a)
    along_c, along_y = scale * dot(c, h), scale * dot(Qy, h)
    for m in range(k):
        turn = scale * h[m]
        for t in range(a.size):
            Q[m, t] -= turn * a[t]
        along = scale * row_dot(T, m, h)
        for l in range(k):
            T[m, l] -= along * h[l]
        c[m] -= along_c * h[m]
        Qy[m] -= along_y * h[m]
    # Slot i alone contributes Q[at] now: give its share back to e, and let q fill the place.
    s = 0.0
    for t in range(q.size):
        e[t] += Q[at, t] * Qy[at]
        q[t] += c[at] * Q[at, t]
        s += q[t] * q[t]
    norm, y_part = s**0.5, 0.0
    for t in range(q.size):
        Q[at, t] = q[t] / norm
        y_part += Q[at, t] * e[t]
    Qy[at] = y_part
    for t in range(q.size):
        e[t] -= Q[at, t] * y_part
    # Dual vectors stay dual: what the others have along the new direction follows from X_j . A_l = 0.
    for l in range(k):
        # (Zero first, so that the product below leaves this coordinate out.)
        T[l, at] = 0.0
        T[l, at] = -row_dot(T, l, c) / norm
        if l == i:
            for m in range(k):
                T[i, m] = 0.0
            T[i, at] = 1.0 / norm
        size = 0.0
        for m in range(k):
            size += T[l, m] * T[l, m]
        basis.inflated[l] = size
    # The support before and the one after both took part in the rounding; the worse one counts.
    basis.tilted[0] += TURN * EPSILON * max(worst, inflation_of(basis)) ** 0.5
    new_version(basis)
