"""The walk itself: two ways to evaluate flips, and when to change from one to the other.

While many flips are accepted, the next LANES flips are evaluated together from P (O(k^2) each); an accepted
one corrects those behind it, which is exact because random numbers are addressed. When few are accepted, a
table of W, r, s for all columns makes a flip O(1) and an acceptance O(k N). When nothing has been accepted
for long, the smallest Delta E of all flips tells which random numbers can accept anything at all: most flips
then cost only their random number, and a chain for which none can is finished. Both ways know their rounding and stop
before a flip that it might decide; see `delicate`.
"""

from __future__ import annotations

import numpy as np

from pairflip.engines.base import BETTER, DRIFT, EPSILON, TIE
from pairflip.engines.numba.algebra import (
    BEYOND,
    accepts,
    exchange,
    flip_energy,
    inflation,
    rounding,
    smallest_delta,
    surely_singular,
    update_ahead,
    update_table,
)
from pairflip.engines.numba.chain import (
    LANES,
    build_table,
    copy_row,
    correlate,
    gather,
    gather_from_columns,
    gram_row,
    project,
    refresh,
    start_chain,
)
from pairflip.engines.numba.clock import (
    AUTO,
    SQUARE,
    TABLE,
    book,
)
from pairflip.engines.numba.compile import entry, kernel, template
from pairflip.engines.numba.delicate import is_delicate
from pairflip.engines.numba.driver import drive


@kernel
def walk_square(system, chain, clock, output, t, n, beta):
    """Flips t, ..., t + n - 1 (drawn into the chain's block), LANES at a time from P; returns how many were done."""
    G, columns, b, diagonal, yy = system.G, system.columns, system.b, system.diagonal, system.yy
    order, P, x, best = chain.order, chain.P.copy(), chain.x.copy(), chain.best
    slot, position, uniform = chain.slot, chain.position, chain.uniform
    energy, accepted = output.energy, output.accepted
    k, better, tie, by_columns = x.size, BETTER * yy, TIE * yy, G.size == 0
    u, v, g, support_columns = np.empty(k), np.empty(k), np.empty(k), np.empty((k, columns.shape[1]))
    ahead, ahead_columns = np.empty(LANES, np.uint64), np.empty((LANES, columns.shape[1]))
    ahead_G, ahead_W = np.empty((LANES, k)), np.empty((LANES, k))
    ahead_r, ahead_s, ahead_h = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    # P and x are copies, whose addresses the compiler knows not to overlap with anything: the loops below vectorize.
    if by_columns:
        for m in range(k):
            copy_row(columns, order[m], support_columns, m)
    first, width = 0, clock.width
    tau = rounding(clock.inflated, clock.error) * clock.inflated
    while first < n and not clock.judged:
        lanes = min(width, n - first)
        for q in range(lanes):
            ahead[q] = order[k + position[first + q]]
        if by_columns:
            gather_from_columns(columns, support_columns, ahead, lanes, ahead_columns, ahead_G)
        else:
            gather(G, order, ahead, lanes, k, ahead_G)
        # BLAS for whole sets only: fewer lanes are what is left of a block, or a choice for small k.
        if lanes == LANES:
            np.dot(ahead_G, P, ahead_W)
        else:
            project(P, ahead_G, lanes, k, ahead_W)
        correlate(b, diagonal, x, ahead, lanes, k, ahead_G, ahead_W, ahead_r, ahead_s)
        q = -1
        while q + 1 < lanes:
            q += 1
            i, place = slot[first + q], position[first + q]
            p, x_i, w = P[i, i], x[i], ahead_W[q, i]
            low, delta, r, s = flip_energy(x_i, p, ahead_r[q], ahead_s[q], w, tau, yy)
            # Refused even with all rounding in its favour: the usual end of a cold flip, so nothing else comes first.
            if low > tie and not accepts(uniform[first + q], beta * low):
                continue
            for m in range(k):
                u[m] = P[i, m]
                v[m] = ahead_W[q, m] - u[m] * (w / p)
                g[m] = ahead_G[q, m]
            v[i] = -1.0
            if low == BEYOND and surely_singular(v, k, s, clock.inflated, clock.error):
                continue
            # Before anything is changed: a delicate flip is left to `judge`, with the lanes before it done.
            worst = inflation(P, k, u, v, p, s)
            if is_delicate(uniform[first + q], beta, low, delta, tie, worst):
                clock.judged, lanes = 1, q
                break
            j = order[k + place]
            order[i], order[k + place] = j, order[i]
            clock.factored = 0
            clock.inflated = worst
            clock.error += EPSILON * worst
            if clock.error < DRIFT:
                exchange(P, x, k, u, v, i, p, r, s)
                new_energy = clock.energy + delta
                for later in range(q + 1, lanes):  # a later flip that wanted this place sees another column now
                    if position[first + later] == place:
                        lanes = later
                        break
                for later in range(q + 1, lanes):
                    if by_columns:
                        shared = 0.0
                        for m in range(columns.shape[1]):
                            shared += columns[j, m] * ahead_columns[later, m]
                        ahead_h[later] = shared
                    else:
                        ahead_h[later] = G[j, ahead[later]]
                update_ahead(ahead_W, ahead_r, ahead_s, ahead_G, ahead_h, q + 1, lanes, k, g, u, v, i, p, x_i, r, s)
            else:
                # The rounding is used up: P from G, and the lanes ahead, which came from the old P, are given up.
                output.refreshes[clock.chain] += 1
                new_energy = refresh(G, columns, b, diagonal, yy, order, P, x)
                clock.error, lanes = 0.0, q + 1
            tau = rounding(worst, clock.error) * worst
            if by_columns:
                copy_row(columns, order[i], support_columns, i)
            book(clock, energy, accepted, best, order, better, t + first + q, new_energy)
        first += lanes
    for m in range(k):
        chain.x[m] = x[m]
        copy_row(P, m, chain.P, m)
    return first


@kernel
def walk_table(system, chain, clock, output, t, n, beta):
    """Flips t, ..., t + n - 1 by the table; those whose random number can accept nothing are passed over.

    Returns how many were done.
    """
    order, P, x, best = chain.order, chain.P, chain.x, chain.best
    slot, position, uniform = chain.slot, chain.position, chain.uniform
    W, W_r, W_s, outside = chain.W, chain.r, chain.s, chain.outside
    energy, accepted = output.energy, output.accepted
    k, yy, better, tie, ceiling = x.size, system.yy, BETTER * system.yy, TIE * system.yy, 1.0
    u, v, g = np.empty(k), np.empty(k), np.empty(k)
    # No flip has a Delta E below `lowest`, so a random number above this ceiling accepts none of them.
    if clock.lowest > 0.0:
        ceiling = np.exp(-beta * clock.lowest)
    tau = rounding(clock.inflated, clock.error) * clock.inflated
    for q in range(n):
        if uniform[q] > ceiling:
            continue
        i, place = slot[q], position[q]
        j, p, x_i = order[k + place], P[i, i], x[i]
        w = W[i, j]
        low, delta, r, s = flip_energy(x_i, p, W_r[j], W_s[j], w, tau, yy)
        if low > tie and not accepts(uniform[q], beta * low):
            continue
        for m in range(k):
            u[m] = P[i, m]
            v[m] = W[m, j] - u[m] * (w / p)
        v[i] = -1.0
        if low == BEYOND and surely_singular(v, k, s, clock.inflated, clock.error):
            continue
        worst = inflation(P, k, u, v, p, s)
        if is_delicate(uniform[q], beta, low, delta, tie, worst):
            clock.judged = 1
            clock.quiet += q
            return q
        clock.factored = 0
        clock.inflated = worst
        clock.error += EPSILON * worst
        if clock.error < DRIFT:
            G_j = gram_row(system, chain, j)
            for m in range(k):
                g[m] = G_j[order[m]]
            update_table(W, W_r, W_s, G_j, k, g, u, v, i, p, x_i, r, s)
            exchange(P, x, k, u, v, i, p, r, s)
            outside[order[i]], outside[j] = 1.0, 0.0
            order[i], order[k + place] = j, order[i]
            new_energy = clock.energy + delta
        else:
            order[i], order[k + place] = j, order[i]
            output.refreshes[clock.chain] += 1
            new_energy = refresh(system.G, system.columns, system.b, system.diagonal, yy, order, P, x)
            clock.error = 0.0
            build_table(system, chain)
        tau = rounding(worst, clock.error) * worst
        book(clock, energy, accepted, best, order, better, t + q, new_energy)
        # So that adding n at the end counts the flips after this one; the ceiling of the old support is void.
        clock.quiet = -(q + 1)
        ceiling = 1.0
    clock.quiet += n
    return n


@kernel
def flips_ahead(k, rate, by_columns):
    """How many flips to evaluate together: one when correcting the others would cost more than it saves."""
    return 1 if not by_columns and 15.0 + 0.08 * k * k < rate * (25.0 + 1.1 * k) else LANES


@kernel
def choose_way(system, chain, clock, plan):
    """Change between the two ways when the acceptance measured over a window says that the other is cheaper."""
    if clock.window_flips < plan.window:
        return
    rate = clock.window_accepted / clock.window_flips
    clock.width = flips_ahead(chain.x.size, rate, system.G.size == 0)
    # Between 1 and 4 nothing changes: a chain at the border would else build its table again and again.
    price = rate * plan.table_cost if plan.way == AUTO else 2.0
    if clock.mode == SQUARE and price < 1.0:
        clock.mode = TABLE
        build_table(system, chain)
        clock.lowest = np.nan
        clock.quiet = 0
    elif clock.mode == TABLE and price > 4.0:
        clock.mode = SQUARE
    clock.window_flips = 0
    clock.window_accepted = 0


@kernel
def recomputed(system, chain):
    """Energy of the chain's support (and its P, x) recomputed from G."""
    return refresh(system.G, system.columns, system.b, system.diagonal, system.yy, chain.order, chain.P, chain.x)


@kernel
def start(system, chain, clock, plan, random_order):
    """First support of a chain, and the way in which it begins; see `start_chain` for what is returned."""
    clock.mode = TABLE if plan.way == TABLE else SQUARE
    clock.width = flips_ahead(chain.x.size, 1.0, system.G.size == 0)
    clock.stale = 1  # there is no table yet
    return start_chain(system, chain, random_order)


@kernel
def catch_up(system, chain, clock):
    """P, x and the table of a support that was flipped elsewhere; returns its energy."""
    energy = recomputed(system, chain)
    if clock.mode == TABLE:
        build_table(system, chain)
    return energy


@template
def walk_block(system, chain, clock, plan, output, t, n, budget):
    """The next n flips, t, ..., drawn into the chain's block; returns how many were done."""
    beta, k, outside = plan.betas[clock.step], chain.x.size, chain.order.size - chain.x.size
    if clock.mode == SQUARE:
        return walk_square(system, chain, clock, output, t, n, beta)
    done = walk_table(system, chain, clock, output, t, n, beta)
    # It looks at all flips, and is void with the next acceptance: only when a quarter as many were refused in a row.
    if np.isnan(clock.lowest) and 4 * clock.quiet > k * outside:
        clock.lowest = smallest_delta(
            chain.P, chain.x, chain.W, chain.r, chain.s, chain.outside, k,
            clock.inflated, clock.error, system.yy, TIE * system.yy,
        )  # fmt: skip
    return done


@entry
def advance(system, chain, clocks, plan, output, budget):
    """Walk about `budget` flips on; see `drive`."""
    return drive(system, chain, clocks[0], plan, output, budget, start, recomputed, catch_up, walk_block, choose_way)
