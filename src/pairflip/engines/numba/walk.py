"""The walk itself: two ways to evaluate flips, and when to change from one to the other.

While many flips are accepted, the next LANES flips are evaluated together from P (O(k^2) each); an accepted
one corrects those behind it, which is exact because random numbers are addressed. When few are accepted, a
table of W, r, s for all columns makes a flip O(1) and an acceptance O(k N). When nothing has been accepted
for long, the smallest Delta E of all flips tells which random numbers can accept anything at all: most flips
then cost only their random number, and a chain for which none can is finished.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import BETTER, FROZEN
from pairflip.engines.numba.algebra import (
    INFLATION,
    accepts,
    exchange,
    flip_energy,
    inflation,
    is_singular,
    smallest_delta,
    update_ahead,
    update_table,
)
from pairflip.engines.numba.chain import (
    BLOCK,
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
from pairflip.engines.numba.compile import entry, kernel
from pairflip.engines.numba.draws import draw_flips

AUTO, SQUARE, TABLE = 0, 1, 2
OK, RANK_TOO_SMALL = 0, 1
EPSILON = 2.0**-52
DRIFT = 1e-11
"""Rounding (in units of G) that may add up before P is computed anew: EPSILON times the inflation at each flip."""


class Plan(NamedTuple):
    """The plan as kernels see it: flip t of a step a with ends[a - 1] <= t < ends[a] has beta betas[a].

    `coldest[a]` is the smallest beta from step a on; `table_cost` the price of an acceptance in the table in
    units of an O(k^2) flip; `window` how many flips to watch before changing the way.
    """

    betas: Any
    ends: Any
    coldest: Any
    keys: Any
    way: int
    table_cost: float
    window: int


class Output(NamedTuple):
    """Where finished steps and chains are written (see `WalkResult`)."""

    energy: Any
    accepted: Any
    support: Any
    best_support: Any
    final_energy: Any
    refreshes: Any


class Clock(NamedTuple):
    """Where a chain stands between two calls: `count` whole numbers, `value` real ones, by the names below."""

    count: Any
    value: Any


CHAIN, T, STEP, MODE, QUIET, WIN_FLIPS, WIN_ACCEPTED, MARK, WIDTH, LAST_CHAIN = range(10)
ENERGY, BEST, LOWEST, ERROR = range(4)


def new_clock(first: int, last: int) -> Clock:
    """A clock for chains first, ..., last - 1, none of them started."""
    count = np.zeros(10, np.int64)
    count[CHAIN], count[T], count[LAST_CHAIN] = first, -1, last
    return Clock(count, np.zeros(4))


@kernel
def book(count, value, energy, accepted, best, order, better, t, new_energy):
    """Enter an accepted flip at time t into the step's sums and the clock, and keep the best support met."""
    c, a = count[CHAIN], count[STEP]
    accepted[c, a] += 1
    energy[c, a] += value[ENERGY] * (t - count[MARK])
    value[ENERGY] = new_energy
    value[LOWEST] = np.nan
    count[MARK] = t
    count[WIN_ACCEPTED] += 1
    if new_energy < value[BEST] - better:
        value[BEST] = new_energy
        for m in range(best.size):
            best[m] = order[m]


@kernel
def confirm(G, columns, b, diagonal, yy, order, P, x, i, other, value, worst):
    """Recompute P, x after the flip of order[i] and order[other]; take it back if it is singular after all.

    Returns the energy, NaN when the flip was taken back.
    """
    energy = refresh(G, columns, b, diagonal, yy, order, P, x)
    if np.isnan(energy):
        order[i], order[other] = order[other], order[i]
        value[ENERGY] = refresh(G, columns, b, diagonal, yy, order, P, x)
    value[ERROR] = EPSILON * worst
    return energy


@kernel
def walk_square(system, chain, clock, output, t, n, beta):
    """Flips t, ..., t + n - 1 (drawn into the chain's block), LANES at a time from P."""
    G, columns, b, diagonal, yy = system.G, system.columns, system.b, system.diagonal, system.yy
    order, P, x, best = chain.order, chain.P.copy(), chain.x.copy(), chain.best
    slot, position, uniform = chain.slot, chain.position, chain.uniform
    count, value, energy, accepted = clock.count, clock.value, output.energy, output.accepted
    k, better, by_columns = x.size, BETTER * yy, columns.size > 0
    u, v, g, support_columns = np.empty(k), np.empty(k), np.empty(k), np.empty((k, columns.shape[1]))
    ahead, ahead_columns = np.empty(LANES, np.uint64), np.empty((LANES, columns.shape[1]))
    ahead_G, ahead_W = np.empty((LANES, k)), np.empty((LANES, k))
    ahead_r, ahead_s, ahead_h = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    if by_columns:
        for m in range(k):
            copy_row(columns, order[m], support_columns, m)
    first, width = 0, count[WIDTH]
    while first < n:
        lanes = min(width, n - first)
        for q in range(lanes):
            ahead[q] = order[k + position[first + q]]
        if by_columns:
            gather_from_columns(columns, support_columns, ahead, lanes, ahead_columns, ahead_G)
        else:
            gather(G, order, ahead, lanes, k, ahead_G)
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
            delta, r, s = flip_energy(x_i, p, ahead_r[q], ahead_s[q], w)
            if not accepts(uniform[first + q], beta * delta):
                continue
            for m in range(k):
                u[m] = P[i, m]
                v[m] = ahead_W[q, m] - u[m] * (w / p)
                g[m] = ahead_G[q, m]
            v[i] = -1.0
            worst = inflation(P, k, u, v, p, s)
            if worst >= INFLATION and is_singular(P, k, u, v, i, p, s):
                continue
            j, other = order[k + place], k + place
            order[i], order[other] = j, order[i]
            value[ERROR] += EPSILON * worst
            if value[ERROR] < DRIFT:
                exchange(P, x, k, u, v, i, p, r, s)
                new_energy = value[ENERGY] + delta
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
                output.refreshes[count[CHAIN]] += 1
                new_energy = confirm(G, columns, b, diagonal, yy, order, P, x, i, other, value, worst)
                lanes = q + 1
            if by_columns:
                copy_row(columns, order[i], support_columns, i)
            if not np.isnan(new_energy):
                book(count, value, energy, accepted, best, order, better, t + first + q, new_energy)
        first += lanes
    for m in range(k):
        chain.x[m] = x[m]
        copy_row(P, m, chain.P, m)


@kernel
def walk_table(system, chain, clock, output, t, n, beta):
    """Flips t, ..., t + n - 1 by the table; those whose random number can accept nothing are passed over."""
    order, P, x, best = chain.order, chain.P, chain.x, chain.best
    slot, position, uniform = chain.slot, chain.position, chain.uniform
    W, W_r, W_s, outside = chain.W, chain.r, chain.s, chain.outside
    count, value, energy, accepted = clock.count, clock.value, output.energy, output.accepted
    k, better, ceiling = x.size, BETTER * system.yy, 1.0
    u, v, g = np.empty(k), np.empty(k), np.empty(k)
    if value[LOWEST] > 0.0:
        ceiling = np.exp(-beta * value[LOWEST])
    for q in range(n):
        if uniform[q] > ceiling:
            continue
        i, place = slot[q], position[q]
        j, p, x_i = order[k + place], P[i, i], x[i]
        w = W[i, j]
        delta, r, s = flip_energy(x_i, p, W_r[j], W_s[j], w)
        if not accepts(uniform[q], beta * delta):
            continue
        for m in range(k):
            u[m] = P[i, m]
            v[m] = W[m, j] - u[m] * (w / p)
        v[i] = -1.0
        worst = inflation(P, k, u, v, p, s)
        if worst >= INFLATION and is_singular(P, k, u, v, i, p, s):
            continue
        value[ERROR] += EPSILON * worst
        if value[ERROR] < DRIFT:
            G_j = gram_row(system, chain, j)
            for m in range(k):
                g[m] = G_j[order[m]]
            update_table(W, W_r, W_s, G_j, k, g, u, v, i, p, x_i, r, s)
            exchange(P, x, k, u, v, i, p, r, s)
            outside[order[i]], outside[j] = 1.0, 0.0
            order[i], order[k + place] = j, order[i]
            new_energy = value[ENERGY] + delta
        else:
            order[i], order[k + place] = j, order[i]
            output.refreshes[count[CHAIN]] += 1
            new_energy = confirm(
                system.G, system.columns, system.b, system.diagonal, system.yy,
                order, P, x, i, k + place, value, worst,
            )  # fmt: skip
            build_table(system, chain)
        if not np.isnan(new_energy):
            book(count, value, energy, accepted, best, order, better, t + q, new_energy)
            count[QUIET] = -(q + 1)
            ceiling = 1.0
    count[QUIET] += n


@kernel
def flips_ahead(k, rate, by_columns):
    """How many flips to evaluate together: one when correcting the others would cost more than it saves."""
    return 1 if not by_columns and 15.0 + 0.08 * k * k < rate * (25.0 + 1.1 * k) else LANES


@kernel
def choose_way(system, chain, clock, plan):
    """Change between the two ways when the acceptance measured over a window says that the other is cheaper."""
    count = clock.count
    if count[WIN_FLIPS] < plan.window:
        return
    rate = count[WIN_ACCEPTED] / count[WIN_FLIPS]
    count[WIDTH] = flips_ahead(chain.x.size, rate, system.columns.size > 0)
    price = rate * plan.table_cost if plan.way == AUTO else 2.0
    if count[MODE] == SQUARE and price < 1.0:
        count[MODE] = TABLE
        build_table(system, chain)
        clock.value[LOWEST] = np.nan
        count[QUIET] = 0
    elif count[MODE] == TABLE and price > 4.0:
        count[MODE] = SQUARE
    count[WIN_FLIPS] = 0
    count[WIN_ACCEPTED] = 0


@kernel
def exact_energy(system, chain):
    """Energy of the chain's support (and its P, x) recomputed from G."""
    return refresh(system.G, system.columns, system.b, system.diagonal, system.yy, chain.order, chain.P, chain.x)


@kernel
def begin(system, chain, clock, plan, output):
    """Start the next chain; False when fewer than k columns are independent."""
    count, value = clock.count, clock.value
    c = count[CHAIN]
    found = start_chain(system, chain, plan.keys[c, 0], plan.keys[c, 1])
    if found < chain.x.size:
        output.support[c, 0] = found
        return False
    energy = exact_energy(system, chain)
    value[ENERGY], value[BEST], value[LOWEST], value[ERROR] = energy, energy, np.nan, 0.0
    for m in range(chain.best.size):
        chain.best[m] = chain.order[m]
    for field in range(T, LAST_CHAIN):
        count[field] = 0
    count[MODE] = SQUARE
    count[WIDTH] = flips_ahead(chain.x.size, 1.0, system.columns.size > 0)
    if plan.way == TABLE:
        count[MODE] = TABLE
        build_table(system, chain)
    return True


@kernel
def write_ends(chain, clock, plan, output):
    """Write where the chain ended; steps it froze before reaching keep the final energy."""
    count, value = clock.count, clock.value
    c = count[CHAIN]
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


@kernel
def finish(system, chain, clock, plan, output):
    """End the chain with its energy computed anew."""
    clock.value[ENERGY] = exact_energy(system, chain)
    write_ends(chain, clock, plan, output)


@entry
def advance(system, chain, clock, plan, output, budget):
    """Walk about `budget` flips on; returns (status, flips done, frozen ones included)."""
    count, value = clock.count, clock.value
    k, outside = chain.x.size, chain.order.size - chain.x.size
    total = plan.ends[-1]
    done = 0
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
        if count[MODE] == SQUARE:
            walk_square(system, chain, clock, output, t, n, plan.betas[a])
        else:
            walk_table(system, chain, clock, output, t, n, plan.betas[a])
            if np.isnan(value[LOWEST]) and 4 * count[QUIET] > k * outside:
                value[LOWEST] = smallest_delta(chain.P, chain.x, chain.W, chain.r, chain.s, chain.outside, k)
        done += n
        count[T] += n
        count[WIN_FLIPS] += n
        choose_way(system, chain, clock, plan)
        if count[T] == plan.ends[a]:
            output.energy[c, a] += value[ENERGY] * (plan.ends[a] - count[MARK])
            count[MARK] = plan.ends[a]
            count[STEP] += 1
            if count[STEP] == plan.betas.size:
                finish(system, chain, clock, plan, output)
    return OK, done
