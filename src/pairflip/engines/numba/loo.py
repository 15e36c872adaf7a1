"""Walking on the fixed-support leave-one-out error: O(M k) a flip, O(M k + k^2) more for an accepted one."""

from __future__ import annotations

import numpy as np

from pairflip.engines.base import BETTER, DRIFT, EPSILON, TIE
from pairflip.engines.numba.algebra import BEYOND, DELICATE, accepts, exchange, inflation, rounding
from pairflip.engines.numba.clock import book
from pairflip.engines.numba.compile import entry, kernel, template
from pairflip.engines.numba.delicate import is_delicate
from pairflip.engines.numba.driver import drive
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
    # Copies, as in `walk_square`: the compiler knows that they overlap with nothing.
    A, e, h = chain.A.copy(), chain.e.copy(), chain.h.copy()
    slot, position, uniform = chain.slot, chain.position, chain.uniform
    energy, accepted = output.energy, output.accepted
    k, yy, tie, done = x.size, system.yy, TIE * system.yy, n
    g, u, v, q = np.empty(k), np.empty(k), np.empty(k), np.empty(e.size)
    bounded, ceiling, plain = not np.any(penalty), 1.0, half_square(e)
    # No flip has a Delta E below `lowest`, so a random number above this ceiling accepts none of them.
    if clock.lowest > 0.0:
        ceiling = np.exp(-beta * clock.lowest)
    tau = rounding(clock.inflated, clock.error) * clock.inflated
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
            # E_loo is at least E: when that is refused, less all rounding, the O(M k) below can be spared.
            if s > SAFE:
                least = plain + 0.5 * (x_i * x_i / p - r * r / s) - tau * (1.5 * yy + (r / s) ** 2) - 1e-9 * yy
                if not accepts(uniform[f], beta * (least - clock.energy)):
                    continue
        new_part(columns, A, k, i, j, g, w, p, q)
        ridge = ridge_part(penalty, order, k, j, v)
        new_energy, r, s, least, amplified = loo_after(columns, A, e, h, i, j, x_i, p, q, ridge)
        low = lowest_loo(clock.energy, new_energy, r, s, least, amplified, v, k, clock.inflated, clock.error, yy)
        if low == np.inf or (low > tie and not accepts(uniform[f], beta * low)):
            continue
        for m in range(k):
            u[m] = P[i, m]
        v[i] = -1.0
        worst = inflation(P, k, u, v, p, s)
        if is_delicate(uniform[f], beta, low, new_energy - clock.energy, tie, worst):
            clock.judged, done = 1, f
            break
        order[i], order[k + place] = j, order[i]
        take_flip(A, e, h, k, i, p, x_i, u, v, q, r, s)
        clock.factored = 0
        clock.inflated = worst
        clock.error += EPSILON * worst * amplified**0.25  # at least the largest 1 / (1 - h)
        if clock.error < DRIFT:
            exchange(P, x, k, u, v, i, p, r, s)
        else:
            output.refreshes[clock.chain] += 1
            new_energy = refresh_loo(system, order, P, x, A, e, h)
            clock.error = 0.0
        tau = rounding(worst, clock.error) * worst
        plain = half_square(e)
        book(clock, energy, accepted, best, order, BETTER * yy, t + f, new_energy)
        # As in `walk_table`: adding `done` at the end counts the flips after this one.
        clock.quiet = -(f + 1)
        ceiling = 1.0
    clock.quiet += done
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
            # Only now: the bound above is for v_i = 0 (see `entering`).
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
def start(system, chain, clock, plan, random_order):
    """First support of a chain; see `start_loo` for what is returned."""
    return start_loo(system, chain, random_order)


@kernel
def catch_up(system, chain, clock):
    """The state of a support that was flipped elsewhere; returns its E_loo."""
    return recomputed(system, chain)


@template
def walk_block(system, chain, clock, plan, output, t, n, budget):
    """The next n flips, t, ..., drawn into the chain's block; returns how many were done."""
    k, outside = chain.x.size, chain.order.size - chain.x.size
    done = walk_loo(system, chain, clock, output, t, n, plan.betas[clock.step])
    # A scan of all flips costs O(M k) for each: worth it when as many were refused, and only if it fits a call.
    if np.isnan(clock.lowest) and not clock.judged and clock.quiet > k * outside <= budget:
        low, delta = np.empty((k, outside)), np.empty((k, outside))
        scan(system, chain, recomputed(system, chain), clock.inflated, low, delta)
        lowest = low.min() - 1e-9 * system.yy
        clock.lowest = lowest if lowest > TIE * system.yy else 0.0
        # `recomputed` has just left everything free of rounding, so the budget begins anew.
        clock.error = 0.0
    return done


@kernel
def keep_way(system, chain, clock, plan):
    """There is one way to evaluate a flip of this objective."""


@entry
def advance(system, chain, clocks, plan, output, budget):
    """Walk about `budget` flips on; see `drive`."""
    return drive(system, chain, clocks[0], plan, output, budget, start, recomputed, catch_up, walk_block, keep_way)
