"""Walking on the fixed-support leave-one-out error: O(M k) a flip, O(M k + k^2) more for an accepted one."""

from __future__ import annotations

import numpy as np

from pairflip.engines.base import BETTER, FROZEN
from pairflip.engines.numba.algebra import INFLATION, accepts, exchange, inflation, is_singular
from pairflip.engines.numba.chain import BLOCK
from pairflip.engines.numba.compile import entry, kernel
from pairflip.engines.numba.draws import draw_flips
from pairflip.engines.numba.loo_chain import (
    entering,
    exact,
    half_square,
    loo_after,
    new_part,
    refresh_loo,
    ridge_part,
    start_loo,
    take_flip,
)
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
    write_ends,
)

SAFE = 1e-4
"""The quick bound is asked only about columns of which more than this is new: rounding cannot mislead it."""


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
    """End the chain with its energy computed anew, if rounding has not led it beyond a limit."""
    energy = exact(system, chain)
    if np.isfinite(energy):
        clock.value[ENERGY] = energy
    write_ends(chain, clock, plan, output)


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
