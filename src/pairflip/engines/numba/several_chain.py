r"""Simulated annealing with several targets: the flip algebra of one target with rows of R (N, q) in place of r.

For the support S with :math:`P = G_{SS}^{-1}`, :math:`X = P B_S` (k, q), and for a column j with
:math:`W_j = P G_{Sj}`, :math:`R_j = B_j - G_{jS} X`, :math:`s_j = G_{jj} - G_{jS} W_j`, taking column j into slot i
(:math:`p = P_{ii}`) gives

.. math::
    R' = R_j + X_i W_{ij} / p, \quad s' = s_j + W_{ij}^2 / p, \quad
    \Delta E = \tfrac12 \left(|X_i|^2 / p - |R'|^2 / s'\right),

O(k^2 + k q). P changes as for one target (`algebra`), and X by the rows of :math:`X \to X - u X_i / p - v R' / s'`.
Rounding is budgeted as there, target by target, so that the sum over the targets is off by at most
:math:`\tau (\frac32 \mathrm{tr}\, Y^T Y + |R' / s'|^2)`; what that might decide is judged from the columns
(`several_delicate`). Flips against the rules are refused before any arithmetic.

After N refused flips in a row W, R and s of all columns are computed, which costs about as much; until the next
accepted flip every flip then costs O(q), and the smallest Delta E says which random numbers can accept anything.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import BETTER, DRIFT, EPSILON, TIE
from pairflip.engines.numba.algebra import (
    BEYOND,
    DELICATE,
    accepts,
    extend,
    inflation,
    inflation_at,
    rounding,
    surely_singular,
)
from pairflip.engines.numba.chain import BLOCK
from pairflip.engines.numba.clock import SQUARE, TABLE, book
from pairflip.engines.numba.compile import entry, kernel, template
from pairflip.engines.numba.delicate import is_delicate
from pairflip.engines.numba.driver import drive
from pairflip.engines.numba.orthogonal import inflation_of, stays_regular
from pairflip.engines.numba.rules import may_flip
from pairflip.engines.numba.several_delicate import (
    build_several,
    energy_of_several,
    may_several,
    meet_several,
    weigh_several,
)
from pairflip.least_squares import SINGULAR


class SeveralSystem(NamedTuple):
    """The problem as kernels see it; `orders` (chains, N) are the columns of each chain, its first support in front."""

    G: Any
    B: Any
    diagonal: Any
    yy: float
    rules: Any
    ruled: bool
    orders: Any


class SeveralChain(NamedTuple):
    """Memory of one chain (see `chain.Chain`): `x` (k,) squared lengths of the rows of X (k, q).

    The table has W (N, k), R (N, q), s (N,).
    """

    order: Any
    P: Any
    x: Any
    X: Any
    best: Any
    slot: Any
    position: Any
    uniform: Any
    W: Any
    R: Any
    s: Any


def new_several_chain(k: int, n_columns: int, q: int) -> SeveralChain:
    """Uninitialized memory for a chain of size k.

    Parameters
    ----------
    k, n_columns, q : int
        Size, number of columns, number of targets.
    """
    return SeveralChain(
        order=np.empty(n_columns, np.int32), P=np.empty((k, k)), x=np.empty(k), X=np.empty((k, q)),
        best=np.empty(k, np.int32), slot=np.empty(BLOCK, np.int32), position=np.empty(BLOCK, np.int32),
        uniform=np.empty(BLOCK), W=np.empty((n_columns, k)), R=np.empty((n_columns, q)), s=np.empty(n_columns),
    )  # fmt: skip


@kernel
def squared(a, i):
    """|a_i|^2 of a row."""
    total = 0.0
    for t in range(a.shape[1]):
        total += a[i, t] * a[i, t]
    return total


@kernel
def refresh_several(system, order, P, X):
    """P, X of the support from G, free of accumulated rounding; returns the energy, NaN if it is too delicate."""
    k, q = X.shape
    g, energy = np.empty(k), system.yy
    for m in range(k):
        for l in range(m):
            g[l] = system.G[order[m], order[l]]
        if extend(P, m, g, system.diagonal[order[m]]) != 1:
            return np.nan
    for m in range(k):
        for t in range(q):
            total = 0.0
            for l in range(k):
                total += P[m, l] * system.B[order[l], t]
            X[m, t] = total
            energy -= total * system.B[order[m], t]
    return 0.5 * energy


@kernel
def recomputed(system, chain):
    """Energy of the chain's support, its P and X."""
    energy = refresh_several(system, chain.order, chain.P, chain.X)
    for m in range(chain.x.size):
        chain.x[m] = squared(chain.X, m)
    return energy


@kernel
def look_at(system, order, P, X, k, j, g, v, r):
    """Fill v = W_j and r = R_j of column j; returns s_j."""
    # Row by row of P, which is symmetric, so that the inner loop runs along memory.
    s = system.diagonal[j]
    for m in range(k):
        g[m] = system.G[j, order[m]]
        v[m] = 0.0
    for t in range(r.size):
        r[t] = system.B[j, t]
    for l in range(k):
        for m in range(k):
            v[m] += g[l] * P[l, m]
        for t in range(r.size):
            r[t] -= g[l] * X[l, t]
    for m in range(k):
        s -= g[m] * v[m]
    return s


@kernel
def several_energy(lost, square, p, s, tau, yy):
    """(lowest Delta E, Delta E) with |X_i|^2 = lost, |R'|^2 = square; BEYOND where rounding may hide a dependence."""
    delta = 0.5 * (lost / p - square / s)
    if s <= 2.0 * SINGULAR + 4.0 * tau:  # as in `flip_energy`
        return BEYOND, delta
    return delta - tau * (1.5 * yy + square / (s * s)), delta


@kernel
def entered(X, i, w, p, r):
    """R' (in r) of the column whose R_j is in r, in slot i; returns its squared length."""
    square, factor = 0.0, w / p
    for t in range(r.size):
        r[t] += X[i, t] * factor
        square += r[t] * r[t]
    return square


@kernel
def exchange_several(P, X, x, k, u, v, i, p, r, s):
    """P, X and x after the flip at slot i; see `algebra.exchange`."""
    p_inverse, s_inverse = 1.0 / p, 1.0 / s
    own = X[i].copy()
    for m in range(k):
        a, c = -u[m] * p_inverse, v[m] * s_inverse
        for n in range(k):
            P[m, n] += a * u[n] + c * v[n]
        for t in range(r.size):
            X[m, t] += a * own[t] - c * r[t]
    for m in range(k):
        P[i, m] = -v[m] * s_inverse
        P[m, i] = -v[m] * s_inverse
    P[i, i] = s_inverse
    for t in range(r.size):
        X[i, t] = r[t] * s_inverse
    for m in range(k):
        x[m] = squared(X, m)


@kernel
def build_several_table(system, chain):
    """W, R, s of every column."""
    k, n = chain.x.size, chain.order.size
    rows = np.empty((n, k))
    for j in range(n):
        chain.s[j] = system.diagonal[j]
        for m in range(k):
            rows[j, m] = system.G[j, chain.order[m]]
    np.dot(rows, chain.P, chain.W)
    np.dot(rows, chain.X, chain.R)
    for j in range(n):
        for t in range(chain.R.shape[1]):
            chain.R[j, t] = system.B[j, t] - chain.R[j, t]
        for m in range(k):
            chain.s[j] -= rows[j, m] * chain.W[j, m]


@kernel
def smallest_several(system, chain, inflated, error):
    """Lowest Delta E that any flip may have by the table, 0 when one is a tie; surely singular ones do not count."""
    k, n, q = chain.x.size, chain.order.size, chain.R.shape[1]
    order, P, X, W, R = chain.order, chain.P, chain.X, chain.W, chain.R
    lowest, tau, v = np.inf, rounding(inflated, error) * inflated, np.empty(k)
    for place in range(k, n):
        j = order[place]
        for i in range(k):
            if system.ruled and not may_flip(system.rules, order, k, i, j):
                continue
            p, w = P[i, i], W[j, i]
            s, square = chain.s[j] + w * w / p, 0.0
            for t in range(q):
                r = R[j, t] + X[i, t] * (w / p)
                square += r * r
            low, _ = several_energy(chain.x[i], square, p, s, tau, system.yy)
            if low == BEYOND:
                for m in range(k):
                    v[m] = W[j, m] - P[i, m] * (w / p)
                v[i] = -1.0
                if surely_singular(v, k, s, inflated, error):
                    continue
            lowest = min(lowest, low - tau * system.yy)
    return lowest if lowest > TIE * system.yy else 0.0


@kernel
def walk_several(system, chain, clock, output, t, n, beta):
    """Flips t, ..., t + n - 1 (drawn into the chain's block); returns how many were done."""
    order, best = chain.order, chain.best
    # Copies, as in `walk_square`: the compiler knows that they overlap with nothing.
    P, X, x = chain.P.copy(), chain.X.copy(), chain.x.copy()
    k, yy, tie, done, ceiling = x.size, system.yy, TIE * system.yy, n, 1.0
    u, v, g, r = np.empty(k), np.empty(k), np.empty(k), np.empty(X.shape[1])
    # No flip has a Delta E below `lowest`, so a random number above this ceiling accepts none of them.
    if clock.lowest > 0.0:
        ceiling = np.exp(-beta * clock.lowest)
    tau = rounding(clock.inflated, clock.error) * clock.inflated
    for f in range(n):
        if chain.uniform[f] > ceiling:
            continue
        i, place = chain.slot[f], chain.position[f]
        j, p = order[k + place], P[i, i]
        if system.ruled and not may_flip(system.rules, order, k, i, j):
            continue
        if clock.mode == TABLE:
            w, s = chain.W[j, i], chain.s[j]
            for m in range(r.size):
                r[m] = chain.R[j, m]
        else:
            s = look_at(system, order, P, X, k, j, g, v, r)
            w = v[i]
        s += w * w / p
        square = entered(X, i, w, p, r)
        low, delta = several_energy(x[i], square, p, s, tau, yy)
        # Refused even with all rounding in its favour.
        if low > tie and not accepts(chain.uniform[f], beta * low):
            continue
        if clock.mode == TABLE:
            for m in range(k):
                v[m] = chain.W[j, m]
        for m in range(k):
            u[m] = P[i, m]
            v[m] -= u[m] * (w / p)
        v[i] = -1.0
        if low == BEYOND and surely_singular(v, k, s, clock.inflated, clock.error):
            continue
        worst = inflation(P, k, u, v, p, s)
        if is_delicate(chain.uniform[f], beta, low, delta, tie, worst):
            clock.judged, done = 1, f
            break
        order[i], order[k + place] = j, order[i]
        clock.factored, clock.mode, clock.inflated = 0, SQUARE, worst
        clock.error += EPSILON * worst
        if clock.error < DRIFT:
            exchange_several(P, X, x, k, u, v, i, p, r, s)
            new_energy = clock.energy + delta
        else:
            output.refreshes[clock.chain] += 1
            new_energy = refresh_several(system, order, P, X)
            for m in range(k):
                x[m] = squared(X, m)
            clock.error = 0.0
        tau = rounding(worst, clock.error) * worst
        book(clock, output.energy, output.accepted, best, order, BETTER * yy, t + f, new_energy)
        # As in `walk_table`: adding `done` at the end counts the flips after this one.
        clock.quiet = -(f + 1)
        ceiling = 1.0
    clock.quiet += done
    chain.P[:], chain.X[:], chain.x[:] = P, X, x
    return done


@kernel
def start(system, chain, clock, plan, random_order):
    """The first support of a chain, chosen before; k, or -1 when the Gram matrix cannot carry it."""
    clock.mode = SQUARE
    for m in range(chain.order.size):
        chain.order[m] = system.orders[clock.chain, m]
    return -1 if np.isnan(recomputed(system, chain)) else chain.x.size


@kernel
def catch_up(system, chain, clock):
    """P and X of a support that was flipped elsewhere; returns its energy."""
    clock.mode = SQUARE
    return recomputed(system, chain)


@template
def walk_block(system, chain, clock, plan, output, t, n, budget):
    """The next n flips, t, ..., drawn into the chain's block; returns how many were done."""
    done = walk_several(system, chain, clock, output, t, n, plan.betas[clock.step])
    if clock.mode == SQUARE and not clock.judged and clock.quiet > chain.order.size:
        clock.mode = TABLE
        build_several_table(system, chain)
        clock.lowest = smallest_several(system, chain, clock.inflated, clock.error)
    return done


@kernel
def keep_way(system, chain, clock, plan):
    """The way is chosen in `walk_block`."""


@entry
def advance(system, chain, clocks, plan, output, budget):
    """Walk about `budget` flips on; see `drive`."""
    return drive(system, chain, clocks[0], plan, output, budget, start, recomputed, catch_up, walk_block, keep_way)


@entry
def survey(system, chain, exact, basis, by_table, delta):
    """Fill delta (k, N - k) with Delta E of exchanging slot i with the column at place j outside."""
    k, outside = delta.shape
    order, P, X = chain.order, chain.P, chain.X
    W, v, g, R, r = np.empty(k), np.empty(k), np.empty(k), np.empty(X.shape[1]), np.empty(X.shape[1])
    build_several(exact, basis, order, False, order)
    now, inflated = energy_of_several(exact, basis), inflation_of(basis)
    calm = inflated <= DELICATE and not np.isnan(recomputed(system, chain))
    if calm:
        inflated = inflation_at(P, k)
        if by_table:
            build_several_table(system, chain)
    tau = rounding(inflated, 0.0) * inflated
    for place in range(outside):
        j, s_j = order[k + place], 0.0
        if calm:
            s_j = look_at(system, order, P, X, k, j, g, W, R)
        if calm and by_table:
            s_j = chain.s[j]
            W[:], R[:] = chain.W[j], chain.R[j]
        for i in range(k):
            if not may_several(exact, order, k, i, j):
                delta[i, place] = np.inf
                continue
            hard, energy = not calm, 0.0
            if calm:
                p, w = P[i, i], W[i]
                s = s_j + w * w / p
                r[:] = R
                low, energy = several_energy(chain.x[i], entered(X, i, w, p, r), p, s, tau, system.yy)
                for m in range(k):
                    v[m] = W[m] - P[i, m] * (w / p)
                v[i] = -1.0
                hard = low == BEYOND or not inflation(P, k, P[i], v, p, s) <= DELICATE
            if hard:
                meet_several(exact, basis, i, j, False)
                energy, alpha, s = weigh_several(exact, basis, i, j, now)
                if not stays_regular(basis, i, j, alpha, s):
                    energy = np.inf
            delta[i, place] = 0.0 if abs(energy) <= TIE * system.yy else energy
