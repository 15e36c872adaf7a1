"""Walking on the fixed-support leave-one-out error: O(M k) a flip, O(M k + k^2) more for an accepted one."""

from __future__ import annotations

import numpy as np

from pairflip.engines.base import BETTER, FROZEN, TIE
from pairflip.engines.numba.algebra import BEYOND, DELICATE, EPSILON, accepts, exchange, inflation, rounding
from pairflip.engines.numba.chain import BLOCK
from pairflip.engines.numba.clock import (
    CHAIN,
    ENERGY,
    ERROR,
    FACTORED,
    INFLATED,
    JUDGED,
    LAST_CHAIN,
    LOWEST,
    OK,
    QUIET,
    RANK_TOO_SMALL,
    STALE,
    STEP,
    TO_BE_JUDGED,
    T,
    book,
    pass_flips,
    start_clock,
    write_ends,
)
from pairflip.engines.numba.compile import entry, kernel
from pairflip.engines.numba.draws import draw_flips, draw_start
from pairflip.engines.numba.loo_chain import (
    entering,
    half_square,
    loo_after,
    lowest_loo,
    new_part,
    recomputed,
    refresh_loo,
    ridge_part,
    start_loo,
    take_flip,
)
from pairflip.engines.numba.orthogonal import build, energy_of, inflation_of, meet, stays_regular, weigh
from pairflip.engines.numba.walk import DRIFT, inflation_at, is_delicate

SAFE = 1e-4
"""The quick bound is asked only about columns of which more than this is new: rounding cannot mislead it."""


@kernel
def walk_loo(system, chain, clock, output, t, n, beta):
    """Flips t, ..., t + n - 1 (drawn into the chain's block); returns how many were done.

    Without ridge, :math:`E_loo >= E`, and E after the flip costs O(k^2): most flips of a cold chain are refused by that
    alone. Once the smallest Delta E is known, those whose random number can accept nothing are passed over.
    """
    G, columns, b, diagonal, penalty = system.G, system.columns, system.b, system.diagonal, system.penalty
    order, P, x, best = chain.order, chain.P.copy(), chain.x.copy(), chain.best
    A, e, h = chain.A.copy(), chain.e.copy(), chain.h.copy()
    slot, position, uniform = chain.slot, chain.position, chain.uniform
    count, value, energy, accepted = clock.count, clock.value, output.energy, output.accepted
    k, yy, tie, done = x.size, system.yy, TIE * system.yy, n
    g, u, v, q = np.empty(k), np.empty(k), np.empty(k), np.empty(e.size)
    bounded, ceiling, plain = not np.any(penalty), 1.0, half_square(e)
    if value[LOWEST] > 0.0:
        ceiling = np.exp(-beta * value[LOWEST])
    tau = rounding(value[INFLATED], value[ERROR]) * value[INFLATED]
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
                least = plain + 0.5 * (x_i * x_i / p - r * r / s) - tau * (1.5 * yy + (r / s) ** 2) - 1e-9 * yy
                if not accepts(uniform[f], beta * (least - value[ENERGY])):
                    continue
        new_part(columns, A, k, i, j, g, w, p, q)
        ridge = ridge_part(penalty, order, k, j, v)
        new_energy, r, s, least, amplified = loo_after(columns, A, e, h, i, j, x_i, p, q, ridge)
        low = lowest_loo(value[ENERGY], new_energy, r, s, least, amplified, v, k, value[INFLATED], value[ERROR], yy)
        if low == np.inf or (low > tie and not accepts(uniform[f], beta * low)):
            continue
        for m in range(k):
            u[m] = P[i, m]
        v[i] = -1.0
        worst = inflation(P, k, u, v, p, s)
        if is_delicate(uniform[f], beta, low, new_energy - value[ENERGY], tie, worst):
            count[JUDGED], done = 1, f
            break
        order[i], order[k + place] = j, order[i]
        take_flip(A, e, h, k, i, p, x_i, u, v, q, r, s)
        count[FACTORED] = 0
        value[INFLATED] = worst
        value[ERROR] += EPSILON * worst * amplified**0.25  # at least the largest 1 / (1 - h)
        if value[ERROR] < DRIFT:
            exchange(P, x, k, u, v, i, p, r, s)
        else:
            output.refreshes[count[CHAIN]] += 1
            new_energy = refresh_loo(system, order, P, x, A, e, h)
            value[ERROR] = 0.0
        tau = rounding(worst, value[ERROR]) * worst
        plain = half_square(e)
        book(count, value, energy, accepted, best, order, BETTER * yy, t + f, new_energy)
        count[QUIET] = -(f + 1)
        ceiling = 1.0
    count[QUIET] += done
    chain.P[:], chain.x[:], chain.A[:], chain.e[:], chain.h[:] = P, x, A, e, h
    return done


@kernel
def scan(system, chain, now, inflated, low, delta):
    """Fill delta (k, N - k) with the change of E_loo of every flip, and low with the lowest that it may be."""
    k, outside = delta.shape
    g, u, v, q = np.empty(k), np.empty(k), np.empty(k), np.empty(chain.e.size)
    G, columns, penalty = system.G, system.columns, system.penalty
    P, x, A, e, h, order = chain.P, chain.x, chain.A, chain.e, chain.h, chain.order
    for i in range(k):
        p = P[i, i]
        for m in range(k):
            u[m] = P[i, m]
        for place in range(outside):
            j = order[k + place]
            w = entering(G, columns, P, order, k, i, j, g, v)
            new_part(columns, A, k, i, j, g, w, p, q)
            ridge = ridge_part(penalty, order, k, j, v)
            energy, r, s, least, amplified = loo_after(columns, A, e, h, i, j, x[i], p, q, ridge)
            delta[i, place] = energy - now
            low[i, place] = lowest_loo(now, energy, r, s, least, amplified, v, k, inflated, 0.0, system.yy)
            v[i] = -1.0
            if not inflation(P, k, u, v, p, s) <= DELICATE and low[i, place] < np.inf:
                low[i, place] = BEYOND


@entry
def survey(system, chain, exact, basis, by_table, delta):
    """Fill delta (k, N - k) with the change of E_loo of exchanging slot i with the column at place j outside."""
    k, outside = delta.shape
    build(exact, basis, chain.order[:k].copy(), False, chain.order)
    now, low, tie = energy_of(exact, basis), np.full(delta.shape, BEYOND), TIE * system.yy
    inflated = inflation_of(basis)
    if inflated <= DELICATE:
        now = recomputed(system, chain)
        scan(system, chain, now, inflated, low, delta)
    for i in range(k):
        for place in range(outside):
            j = chain.order[k + place]
            if low[i, place] == BEYOND:
                meet(exact, basis, i, j, False)
                delta[i, place], alpha, s = weigh(exact, basis, i, j, now)
                if not stays_regular(basis, i, j, alpha, s):
                    delta[i, place] = np.inf
            elif low[i, place] == np.inf:
                delta[i, place] = np.inf
            if abs(delta[i, place]) <= tie:
                delta[i, place] = 0.0


@kernel
def begin(system, chain, clock, plan, output):
    """Start the next chain; RANK_TOO_SMALL when fewer than k columns are independent and saturate no row."""
    count = clock.count
    c, k = count[CHAIN], chain.x.size
    random_order = np.empty(chain.order.size, np.int32)
    draw_start(plan.keys[c, 0], plan.keys[c, 1], random_order)
    for field in range(STEP, LAST_CHAIN):
        count[field] = 0
    found = start_loo(system, chain, random_order)
    if 0 <= found < k:
        output.support[c, 0] = found
        return RANK_TOO_SMALL
    if found < 0 or inflation_at(chain.P, k) > DELICATE:
        count[JUDGED] = 1
        return TO_BE_JUDGED
    start_clock(clock, chain.order, chain.best, recomputed(system, chain), inflation_at(chain.P, k))
    return OK


@kernel
def finish(system, chain, clock, plan, output):
    """End the chain with its energy computed anew."""
    clock.value[ENERGY] = recomputed(system, chain)
    write_ends(chain.order, chain.best, clock, plan, output)


@entry
def advance(system, chain, clock, plan, output, budget):
    """Walk about `budget` flips on; returns (status, flips done, frozen ones included).

    TO_BE_JUDGED means that `judge` must be called before the next call.
    """
    count, value = clock.count, clock.value
    k, outside = chain.x.size, chain.order.size - chain.x.size
    total = plan.ends[-1]
    low, delta, done = np.empty((k, outside)), np.empty((k, outside)), 0
    while done < budget and count[CHAIN] < count[LAST_CHAIN]:
        c = count[CHAIN]
        if count[T] < 0:
            status = begin(system, chain, clock, plan, output)
            if status != OK:
                return status, done
        if count[STALE]:
            value[ENERGY], value[ERROR] = recomputed(system, chain), 0.0
            count[STALE], count[QUIET] = 0, 0
        t, a = count[T], count[STEP]
        if value[LOWEST] * plan.coldest[a] > FROZEN:
            done += total - t
            finish(system, chain, clock, plan, output)
            continue
        n = min(BLOCK, plan.ends[a] - t)
        draw_flips(t, n, plan.keys[c, 0], plan.keys[c, 1], k, outside, chain.slot, chain.position, chain.uniform)
        n = walk_loo(system, chain, clock, output, t, n, plan.betas[a])
        if np.isnan(value[LOWEST]) and not count[JUDGED] and count[QUIET] > k * outside <= budget:
            scan(system, chain, recomputed(system, chain), value[INFLATED], low, delta)
            lowest = low.min() - 1e-9 * system.yy
            value[LOWEST], value[ERROR] = (lowest if lowest > TIE * system.yy else 0.0), 0.0
        done += n
        if pass_flips(clock, plan, output, n):
            finish(system, chain, clock, plan, output)
        elif count[JUDGED]:
            return TO_BE_JUDGED, done
    return OK, done
