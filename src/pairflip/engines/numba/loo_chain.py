r"""The fixed-support leave-one-out error of a chain: its state, what a flip does to it, and its first support.

For the support S keep P, x as in the flip algebra, and on the rows :math:`A = X_S P` (M, k), the residuals
:math:`e = y - X_S x` and the leverages :math:`h = h_0 + \mathrm{diag}(A X_S^T)`, with :math:`h_0` those of the forced
columns. Taking column j into slot i (:math:`p = P_{ii}, a = A_{:i}, g = G_{Sj}, w = P_{i:} g`) leaves

.. math::
    q = X_j - A g + a w / p, \quad e' = e + a x_i / p, \quad h' = h - a^2 / p

without slot i (q is what the others do not explain of j), and with :math:`r' = X_j^T e'` and
:math:`s' = |q|^2 + \lambda_j + \sum_{l \ne i} \lambda_l v_l^2` (v as in the flip algebra, :math:`\lambda` the ridge)

.. math::
    e'' = e' - q r' / s', \quad h'' = h' + q^2 / s', \quad
    E''_\mathrm{loo} = \tfrac12 \sum_\mu \left(\frac{e''_\mu}{1 - h''_\mu}\right)^2 .

When it is accepted, :math:`A_{:m} \to A_{:m} - a u_m / p - q v_m / s'` and :math:`A_{:i} \to q / s'`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.numba.algebra import BEYOND, extend, rounding, surely_singular
from pairflip.engines.numba.chain import BLOCK, inner, refresh
from pairflip.engines.numba.compile import kernel
from pairflip.least_squares import SATURATED, SINGULAR


class LooSystem(NamedTuple):
    """The problem as kernels see it: G (N, N) may be empty; the columns (N, M) are always there."""

    G: Any
    columns: Any
    b: Any
    diagonal: Any
    yy: float
    target: Any
    penalty: Any
    leverage: Any


class LooChain(NamedTuple):
    """Memory of one chain (see `chain.Chain`); A is kept as (k, M), e and h as (M,)."""

    order: Any
    P: Any
    x: Any
    best: Any
    slot: Any
    position: Any
    uniform: Any
    A: Any
    e: Any
    h: Any


def new_loo_chain(k: int, n_columns: int, n_rows: int) -> LooChain:
    """Uninitialized memory for a chain of size k."""
    return LooChain(
        order=np.empty(n_columns, np.int32),
        P=np.empty((k, k)),
        x=np.empty(k),
        best=np.empty(k, np.int32),
        slot=np.empty(BLOCK, np.int32),
        position=np.empty(BLOCK, np.int32),
        uniform=np.empty(BLOCK),
        A=np.empty((k, n_rows)),
        e=np.empty(n_rows),
        h=np.empty(n_rows),
    )


@kernel
def entering(G, columns, P, order, k, i, j, g, v):
    """Fill g = G_Sj and v = W_j - u w / p (so that v_i = 0); returns w = W_ij."""
    p = P[i, i]
    for m in range(k):
        g[m] = inner(G, columns, order[m], j)
        v[m] = 0.0
    # Row by row of P, which is symmetric, so that the inner loop runs along memory.
    for l in range(k):
        for m in range(k):
            v[m] += g[l] * P[l, m]
    w = v[i]
    for m in range(k):
        v[m] -= P[i, m] * (w / p)
    # Slot i is empty while the ridge and the bounds are summed; whoever takes the flip sets v_i = -1.
    v[i] = 0.0
    return w


@kernel
def new_part(columns, A, k, i, j, g, w, p, q):
    """Fill q = X_j - A g + a w / p, four slots at a time; g is spent."""
    # a is column i of A, so a w / p is a change of its coefficient; four slots share one pass through q.
    g[i] -= w / p
    for t in range(q.size):
        q[t] = columns[j, t]
    m = 0
    while m + 4 <= k:
        c_0, c_1, c_2, c_3 = g[m], g[m + 1], g[m + 2], g[m + 3]
        for t in range(q.size):
            q[t] -= c_0 * A[m, t] + c_1 * A[m + 1, t] + c_2 * A[m + 2, t] + c_3 * A[m + 3, t]
        m += 4
    while m < k:
        c_0 = g[m]
        for t in range(q.size):
            q[t] -= c_0 * A[m, t]
        m += 1


@kernel
def loo_after(columns, A, e, h, i, j, x_i, p, q, ridge):
    """(E_loo, r', s', smallest 1 - h, sum of (1 - h)^-4) after the flip."""
    x_p, p_inverse, r, s = x_i / p, 1.0 / p, 0.0, ridge
    for t in range(q.size):
        r += columns[j, t] * (e[t] + x_p * A[i, t])
        s += q[t] * q[t]
    x_j, s_inverse, energy, least, amplified = r / s, 1.0 / s, 0.0, 1.0, 0.0
    for t in range(q.size):
        rest = 1.0 - h[t] + A[i, t] * A[i, t] * p_inverse - q[t] * q[t] * s_inverse
        inverse = 1.0 / rest
        left_out = (e[t] + x_p * A[i, t] - x_j * q[t]) * inverse
        energy += left_out * left_out
        # Its fourth root is at least the largest 1 / (1 - h), by which E_loo multiplies rounding.
        amplified += inverse * inverse * inverse * inverse
        least = min(least, rest)
    return 0.5 * energy, r, s, least, amplified


@kernel
def lowest_loo(now, energy, r, s, least, amplified, v, k, inflated, error, yy):
    """Lowest change of E_loo that a flip may have: infinite if it is surely refused, BEYOND if rounding hides it.

    e is off by tau |y| and h by tau, and E_loo multiplies both with the largest 1 / (1 - h).
    """
    tau = rounding(inflated, error) * inflated
    # The same room for doubt as in `flip_energy`: around both limits four times the error.
    if s <= 2.0 * SINGULAR + 4.0 * tau:
        return np.inf if surely_singular(v, k, s, inflated, error) else BEYOND
    if not least > SATURATED + 4.0 * tau:
        return np.inf if least <= SATURATED - 4.0 * tau else BEYOND
    return energy - now - tau * amplified**0.25 * (3.0 * energy + 1.5 * yy + (r / s) ** 2)


@kernel
def ridge_part(penalty, order, k, j, v):
    """What the ridge adds to s'."""
    total = penalty[j]
    for m in range(k):
        total += penalty[order[m]] * v[m] * v[m]
    return total


@kernel
def half_square(e):
    """|e|^2 / 2."""
    total = 0.0
    for t in range(e.size):
        total += e[t] * e[t]
    return 0.5 * total


@kernel
def least_rest(h):
    """Smallest 1 - h of all rows."""
    lowest = 1.0
    for t in range(h.size):
        lowest = min(lowest, 1.0 - h[t])
    return lowest


@kernel
def refresh_loo(system, order, P, x, A, e, h):
    """P, x, A, e, h of the support from G and X; returns E_loo, NaN if singular, infinite if a row is saturated."""
    k, n_rows = x.size, e.size
    if np.isnan(refresh(system.G, system.columns, system.b, system.diagonal, system.yy, order, P, x)):
        return np.nan
    for t in range(n_rows):
        e[t], h[t] = system.target[t], system.leverage[t]
    for m in range(k):
        for t in range(n_rows):
            A[m, t] = 0.0
        for l in range(k):
            for t in range(n_rows):
                A[m, t] += P[m, l] * system.columns[order[l], t]
        for t in range(n_rows):
            e[t] -= x[m] * system.columns[order[m], t]
            h[t] += A[m, t] * system.columns[order[m], t]
    if least_rest(h) <= SATURATED:
        return np.inf
    energy = 0.0
    for t in range(n_rows):
        energy += (e[t] / (1.0 - h[t])) ** 2
    return 0.5 * energy


@kernel
def start_loo(system, chain, random_order):
    """First support: the first k columns of a random order that stay independent and saturate no row.

    Returns how many there are, -1 when only the columns can tell.
    """
    columns, order, P = system.columns, chain.order, chain.P
    k, n, n_rows = chain.x.size, chain.order.size, chain.e.size
    g, q, h_new = np.empty(k), np.empty(n_rows), np.empty(n_rows)
    h = system.leverage.copy()
    found, rest = 0, k
    for c in random_order:
        added = 0
        if found < k:
            for t in range(n_rows):
                q[t] = columns[c, t]
            s = system.diagonal[c]
            for m in range(found):
                g[m] = inner(system.G, columns, order[m], c)
            for m in range(found):
                v = 0.0
                for l in range(found):
                    v += P[m, l] * g[l]
                s -= v * g[m]
                for t in range(n_rows):
                    q[t] -= v * columns[order[m], t]
            for t in range(n_rows):
                h_new[t] = h[t] + q[t] * q[t] / s
            # Where s has vanished h_new means nothing, and `extend` says: singular, or only the columns can tell.
            if not s > SINGULAR or least_rest(h_new) > SATURATED:
                added = extend(P, found, g, system.diagonal[c])
        if added < 0:
            return -1
        if added:
            h[:] = h_new
            order[found] = c
            found += 1
        elif rest < n:
            order[rest] = c
            rest += 1
    return found


@kernel
def take_flip(A, e, h, k, i, p, x_i, u, v, q, r, s):
    """A, e, h after the flip (u, v, p as before `exchange`; v_i = -1)."""
    x_p, x_j, p_inverse, s_inverse = x_i / p, r / s, 1.0 / p, 1.0 / s
    # e and h first, while A_i is still the column that leaves; A_i itself comes last.
    for t in range(q.size):
        e[t] += x_p * A[i, t] - x_j * q[t]
        h[t] += q[t] * q[t] * s_inverse - A[i, t] * A[i, t] * p_inverse
    for m in range(k):
        if m != i:
            a, c = u[m] * p_inverse, v[m] * s_inverse
            for t in range(q.size):
                A[m, t] -= a * A[i, t] + c * q[t]
    for t in range(q.size):
        A[i, t] = q[t] * s_inverse


@kernel
def recomputed(system, chain):
    """E_loo of the chain's support, and its state, recomputed."""
    return refresh_loo(system, chain.order, chain.P, chain.x, chain.A, chain.e, chain.h)
