r"""Walking on the fixed-support leave-one-out error: O(M k) a flip, O(M k + k^2) more for an accepted one.

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

from pairflip.engines.base import BETTER, FROZEN
from pairflip.engines.numba.algebra import INFLATION, accepts, exchange, extend, inflation, is_singular
from pairflip.engines.numba.chain import BLOCK, inner, refresh
from pairflip.engines.numba.compile import entry, inlined, kernel
from pairflip.engines.numba.draws import draw_flips, draw_start
from pairflip.engines.numba.walk import (
    BEST,
    CHAIN,
    DRIFT,
    ENERGY,
    EPSILON,
    ERROR,
    LAST_CHAIN,
    LOWEST,
    MARK,
    OK,
    QUIET,
    RANK_TOO_SMALL,
    STEP,
    T,
    book,
)
from pairflip.least_squares import SATURATED, SINGULAR

SAFE = 1e-4
"""The quick bound is asked only about columns of which more than this is new: rounding cannot mislead it."""


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


@inlined
def entering(G, columns, P, order, k, i, j, g, v):
    """Fill g = G_Sj and v = W_j - u w / p (so that v_i = 0); returns w = W_ij."""
    p = P[i, i]
    for m in range(k):
        g[m] = inner(G, columns, order[m], j)
        v[m] = 0.0
    for l in range(k):
        for m in range(k):
            v[m] += g[l] * P[l, m]
    w = v[i]
    for m in range(k):
        v[m] -= P[i, m] * (w / p)
    v[i] = 0.0
    return w


@inlined
def new_part(columns, A, k, i, j, g, w, p, q):
    """Fill q = X_j - A g + a w / p, four slots at a time; g is spent."""
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


@inlined
def loo_after(columns, A, e, h, i, j, x_i, p, q, ridge):
    """(E_loo, r', s', sum of (1 - h)^-4) after the flip; infinite when it is singular or a row is saturated."""
    x_p, p_inverse, r, s = x_i / p, 1.0 / p, 0.0, ridge
    for t in range(q.size):
        r += columns[j, t] * (e[t] + x_p * A[i, t])
        s += q[t] * q[t]
    if s <= SINGULAR:
        return np.inf, r, s, np.inf
    x_j, s_inverse, energy, saturated, amplified = r / s, 1.0 / s, 0.0, 0.0, 0.0
    for t in range(q.size):
        rest = 1.0 - h[t] + A[i, t] * A[i, t] * p_inverse - q[t] * q[t] * s_inverse
        inverse = 1.0 / rest
        left_out = (e[t] + x_p * A[i, t] - x_j * q[t]) * inverse
        energy += left_out * left_out
        amplified += inverse * inverse * inverse * inverse
        saturated += 1.0 if rest <= SATURATED else 0.0
    return (np.inf if saturated > 0.0 else 0.5 * energy), r, s, amplified


@inlined
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
def start_loo(system, chain, key0, key1):
    """First support: the first k columns of a random order that stay independent and saturate no row.

    Returns how many there are.
    """
    columns, order, P = system.columns, chain.order, chain.P
    k, n, n_rows = chain.x.size, chain.order.size, chain.e.size
    g, q, h_new, random_order = np.empty(k), np.empty(n_rows), np.empty(n_rows), np.empty(n, np.int32)
    draw_start(key0, key1, random_order)
    h = system.leverage.copy()
    found, rest = 0, k
    for c in random_order:
        added = False
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
            if s > SINGULAR:
                for t in range(n_rows):
                    h_new[t] = h[t] + q[t] * q[t] / s
                added = least_rest(h_new) > SATURATED and extend(P, found, g, system.diagonal[c])
        if added:
            h[:] = h_new
            order[found] = c
            found += 1
        elif rest < n:
            order[rest] = c
            rest += 1
    return found


@inlined
def take_flip(A, e, h, k, i, p, x_i, u, v, q, r, s):
    """A, e, h after the flip (u, v, p as before `exchange`; v_i = -1)."""
    x_p, x_j, p_inverse, s_inverse = x_i / p, r / s, 1.0 / p, 1.0 / s
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
def exact(system, chain):
    """E_loo of the chain's support, and its state, recomputed."""
    return refresh_loo(system, chain.order, chain.P, chain.x, chain.A, chain.e, chain.h)


@kernel
def confirm_loo(system, order, P, x, A, e, h, value, i, other, cost):
    """Recompute everything after the flip of order[i] and order[other]; take it back if it is refused after all.

    Returns the energy, NaN when the flip was taken back.
    """
    energy = refresh_loo(system, order, P, x, A, e, h)
    if not np.isfinite(energy):
        order[i], order[other] = order[other], order[i]
        before = refresh_loo(system, order, P, x, A, e, h)
        if np.isfinite(before):
            value[ENERGY] = before
        energy = np.nan
    value[ERROR] = cost
    return energy


@kernel
def walk_loo(system, chain, clock, output, t, n, beta):
    """Flips t, ..., t + n - 1 (drawn into the chain's block).

    Without ridge, :math:`E_loo >= E`, and E after the flip costs O(k^2): most flips of a cold chain are refused by that
    alone. Once the smallest Delta E is known, those whose random number can accept nothing are passed over.
    """
    G, columns, b, diagonal, penalty = system.G, system.columns, system.b, system.diagonal, system.penalty
    order, P, x, best = chain.order, chain.P.copy(), chain.x.copy(), chain.best
    A, e, h = chain.A.copy(), chain.e.copy(), chain.h.copy()
    slot, position, uniform = chain.slot, chain.position, chain.uniform
    count, value, energy, accepted = clock.count, clock.value, output.energy, output.accepted
    k, yy = x.size, system.yy
    g, u, v, q = np.empty(k), np.empty(k), np.empty(k), np.empty(e.size)
    bounded, ceiling, plain = not np.any(penalty), 1.0, half_square(e)
    if value[LOWEST] > 0.0:
        ceiling = np.exp(-beta * value[LOWEST])
    for f in range(n):
        if uniform[f] > ceiling:
            continue
        i, place = slot[f], position[f]
        j, p, x_i = order[k + place], P[i, i], x[i]
        w = entering(G, columns, P, order, k, i, j, g, v)
        if bounded:
            r, s = b[j] + x_i * w / p, diagonal[j]
            for m in range(k):
                r -= g[m] * x[m]
                s -= g[m] * v[m]
            if s > SAFE:
                least = plain + 0.5 * (x_i * x_i / p - r * r / s) - 1e-9 * yy
                if not accepts(uniform[f], beta * (least - value[ENERGY])):
                    continue
        new_part(columns, A, k, i, j, g, w, p, q)
        ridge = ridge_part(penalty, order, k, j, v)
        new_energy, r, s, amplified = loo_after(columns, A, e, h, i, j, x_i, p, q, ridge)
        if new_energy == np.inf or not accepts(uniform[f], beta * (new_energy - value[ENERGY])):
            continue
        for m in range(k):
            u[m] = P[i, m]
        v[i] = -1.0
        worst = inflation(P, k, u, v, p, s)
        if worst >= INFLATION and is_singular(P, k, u, v, i, p, s):
            continue
        order[i], order[k + place] = j, order[i]
        take_flip(A, e, h, k, i, p, x_i, u, v, q, r, s)
        cost = EPSILON * worst * amplified**0.25  # at least the largest 1 / (1 - h)
        value[ERROR] += cost
        if value[ERROR] < DRIFT:
            exchange(P, x, k, u, v, i, p, r, s)
        else:
            output.refreshes[count[CHAIN]] += 1
            new_energy = confirm_loo(system, order, P, x, A, e, h, value, i, k + place, cost)
        plain = half_square(e)
        if not np.isnan(new_energy):
            book(count, value, energy, accepted, best, order, BETTER * yy, t + f, new_energy)
            count[QUIET] = -(f + 1)
            ceiling = 1.0
    count[QUIET] += n
    chain.P[:], chain.x[:], chain.A[:], chain.e[:], chain.h[:] = P, x, A, e, h


@entry
def survey(system, chain, by_table, delta):
    """Fill delta (k, N - k) with the change of E_loo of exchanging slot i with the column at place j outside."""
    k, outside = delta.shape
    g, u, v, q = np.empty(k), np.empty(k), np.empty(k), np.empty(chain.e.size)
    G, columns, penalty = system.G, system.columns, system.penalty
    P, x, A, e, h, order = chain.P, chain.x, chain.A, chain.e, chain.h, chain.order
    now = exact(system, chain)
    for i in range(k):
        p = P[i, i]
        for place in range(outside):
            j = order[k + place]
            w = entering(G, columns, P, order, k, i, j, g, v)
            new_part(columns, A, k, i, j, g, w, p, q)
            ridge = ridge_part(penalty, order, k, j, v)
            energy, _, s, _ = loo_after(columns, A, e, h, i, j, x[i], p, q, ridge)
            for m in range(k):
                u[m] = P[i, m]
            v[i] = -1.0
            delta[i, place] = np.inf if is_singular(P, k, u, v, i, p, s) else energy - now


@kernel
def begin(system, chain, clock, plan, output):
    """Start the next chain; False when fewer than k columns are independent and saturate no row."""
    count, value = clock.count, clock.value
    c = count[CHAIN]
    found = start_loo(system, chain, plan.keys[c, 0], plan.keys[c, 1])
    if found < chain.x.size:
        output.support[c, 0] = found
        return False
    energy = exact(system, chain)
    value[ENERGY], value[BEST], value[LOWEST], value[ERROR] = energy, energy, np.nan, 0.0
    for m in range(chain.best.size):
        chain.best[m] = chain.order[m]
    for field in range(T, LAST_CHAIN):
        count[field] = 0
    return True


@kernel
def finish(system, chain, clock, plan, output):
    """Write the chain's ends; steps it froze before reaching keep the final energy."""
    count, value = clock.count, clock.value
    c = count[CHAIN]
    energy = exact(system, chain)
    if np.isfinite(energy):
        value[ENERGY] = energy
    for a in range(count[STEP], plan.betas.size):
        begin_step = plan.ends[a - 1] if a else 0
        output.energy[c, a] += value[ENERGY] * (plan.ends[a] - max(begin_step, count[MARK]))
    for a in range(plan.betas.size):
        output.energy[c, a] /= plan.ends[a] - (plan.ends[a - 1] if a else 0)
    output.final_energy[c] = value[ENERGY]
    for m in range(chain.best.size):
        output.support[c, m] = chain.order[m]
        output.best_support[c, m] = chain.best[m]
    count[CHAIN] += 1
    count[T] = -1


@entry
def advance(system, chain, clock, plan, output, budget):
    """Walk about `budget` flips on; returns (status, flips done, frozen ones included)."""
    count, value = clock.count, clock.value
    k, outside = chain.x.size, chain.order.size - chain.x.size
    total = plan.ends[-1]
    delta, done = np.empty((k, outside)), 0
    while done < budget and count[CHAIN] < count[LAST_CHAIN]:
        c = count[CHAIN]
        if count[T] < 0 and not begin(system, chain, clock, plan, output):
            return RANK_TOO_SMALL, done
        t, a = count[T], count[STEP]
        if value[LOWEST] * plan.coldest[a] > FROZEN:
            done += total - t
            finish(system, chain, clock, plan, output)
            continue
        n = min(BLOCK, plan.ends[a] - t)
        draw_flips(t, n, plan.keys[c, 0], plan.keys[c, 1], k, outside, chain.slot, chain.position, chain.uniform)
        walk_loo(system, chain, clock, output, t, n, plan.betas[a])
        if np.isnan(value[LOWEST]) and count[QUIET] > k * outside <= budget:
            survey(system, chain, False, delta)
            value[LOWEST], value[ERROR] = delta.min() - 1e-9 * system.yy, 0.0
        done += n
        count[T] += n
        if count[T] == plan.ends[a]:
            output.energy[c, a] += value[ENERGY] * (plan.ends[a] - count[MARK])
            count[MARK] = plan.ends[a]
            count[STEP] += 1
            if count[STEP] == plan.betas.size:
                finish(system, chain, clock, plan, output)
    return OK, done
