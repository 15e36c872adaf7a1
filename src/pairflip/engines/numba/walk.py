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

from pairflip.engines.base import BETTER, FROZEN, TIE
from pairflip.engines.numba.algebra import (
    BEYOND,
    DELICATE,
    EPSILON,
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
from pairflip.engines.numba.clock import (
    AUTO,
    CHAIN,
    ENERGY,
    ERROR,
    FACTORED,
    INFLATED,
    JUDGED,
    LAST_CHAIN,
    LOWEST,
    MODE,
    OK,
    QUIET,
    RANK_TOO_SMALL,
    SQUARE,
    STALE,
    STEP,
    TABLE,
    TO_BE_JUDGED,
    WIDTH,
    WIN_ACCEPTED,
    WIN_FLIPS,
    T,
    book,
    pass_flips,
    start_clock,
    write_ends,
)
from pairflip.engines.numba.compile import entry, kernel
from pairflip.engines.numba.delicate import accepts_change
from pairflip.engines.numba.draws import draw_flips, draw_start

DRIFT = 1e-11
"""Rounding (in units of G) that may add up before P is computed anew: EPSILON times the inflation at each flip."""


@kernel
def is_delicate(u, beta, low, delta, tie, worst):
    """Whether rounding might decide a flip that may be accepted, or the support would be badly conditioned."""
    high = 2.0 * delta - low
    return low == BEYOND or not worst <= DELICATE or not accepts_change(u, beta, high, tie)


@kernel
def walk_square(system, chain, clock, output, t, n, beta):
    """Flips t, ..., t + n - 1 (drawn into the chain's block), LANES at a time from P; returns how many were done."""
    G, columns, b, diagonal, yy = system.G, system.columns, system.b, system.diagonal, system.yy
    order, P, x, best = chain.order, chain.P.copy(), chain.x.copy(), chain.best
    slot, position, uniform = chain.slot, chain.position, chain.uniform
    count, value, energy, accepted = clock.count, clock.value, output.energy, output.accepted
    k, better, tie, by_columns = x.size, BETTER * yy, TIE * yy, G.size == 0
    u, v, g, support_columns = np.empty(k), np.empty(k), np.empty(k), np.empty((k, columns.shape[1]))
    ahead, ahead_columns = np.empty(LANES, np.uint64), np.empty((LANES, columns.shape[1]))
    ahead_G, ahead_W = np.empty((LANES, k)), np.empty((LANES, k))
    ahead_r, ahead_s, ahead_h = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    if by_columns:
        for m in range(k):
            copy_row(columns, order[m], support_columns, m)
    first, width = 0, count[WIDTH]
    tau = rounding(value[INFLATED], value[ERROR]) * value[INFLATED]
    while first < n and not count[JUDGED]:
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
            low, delta, r, s = flip_energy(x_i, p, ahead_r[q], ahead_s[q], w, tau, yy)
            if low > tie and not accepts(uniform[first + q], beta * low):
                continue
            for m in range(k):
                u[m] = P[i, m]
                v[m] = ahead_W[q, m] - u[m] * (w / p)
                g[m] = ahead_G[q, m]
            v[i] = -1.0
            if low == BEYOND and surely_singular(v, k, s, value[INFLATED], value[ERROR]):
                continue
            worst = inflation(P, k, u, v, p, s)
            if is_delicate(uniform[first + q], beta, low, delta, tie, worst):
                count[JUDGED], lanes = 1, q
                break
            j = order[k + place]
            order[i], order[k + place] = j, order[i]
            count[FACTORED] = 0
            value[INFLATED] = worst
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
                new_energy = refresh(G, columns, b, diagonal, yy, order, P, x)
                value[ERROR], lanes = 0.0, q + 1
            tau = rounding(worst, value[ERROR]) * worst
            if by_columns:
                copy_row(columns, order[i], support_columns, i)
            book(count, value, energy, accepted, best, order, better, t + first + q, new_energy)
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
    count, value, energy, accepted = clock.count, clock.value, output.energy, output.accepted
    k, yy, better, tie, ceiling = x.size, system.yy, BETTER * system.yy, TIE * system.yy, 1.0
    u, v, g = np.empty(k), np.empty(k), np.empty(k)
    if value[LOWEST] > 0.0:
        ceiling = np.exp(-beta * value[LOWEST])
    tau = rounding(value[INFLATED], value[ERROR]) * value[INFLATED]
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
        if low == BEYOND and surely_singular(v, k, s, value[INFLATED], value[ERROR]):
            continue
        worst = inflation(P, k, u, v, p, s)
        if is_delicate(uniform[q], beta, low, delta, tie, worst):
            count[JUDGED] = 1
            count[QUIET] += q
            return q
        count[FACTORED] = 0
        value[INFLATED] = worst
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
            new_energy = refresh(system.G, system.columns, system.b, system.diagonal, yy, order, P, x)
            value[ERROR] = 0.0
            build_table(system, chain)
        tau = rounding(worst, value[ERROR]) * worst
        book(count, value, energy, accepted, best, order, better, t + q, new_energy)
        count[QUIET] = -(q + 1)
        ceiling = 1.0
    count[QUIET] += n
    return n


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
    count[WIDTH] = flips_ahead(chain.x.size, rate, system.G.size == 0)
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
def recomputed(system, chain):
    """Energy of the chain's support (and its P, x) recomputed from G."""
    return refresh(system.G, system.columns, system.b, system.diagonal, system.yy, chain.order, chain.P, chain.x)


@kernel
def begin(system, chain, clock, plan, output):
    """Start the next chain; RANK_TOO_SMALL when fewer than k columns are independent."""
    count = clock.count
    c, k = count[CHAIN], chain.x.size
    random_order = np.empty(chain.order.size, np.int32)
    draw_start(plan.keys[c, 0], plan.keys[c, 1], random_order)
    for field in range(STEP, LAST_CHAIN):
        count[field] = 0
    count[MODE] = TABLE if plan.way == TABLE else SQUARE
    count[WIDTH] = flips_ahead(k, 1.0, system.G.size == 0)
    count[STALE] = 1  # there is no table yet
    found = start_chain(system, chain, random_order)
    if 0 <= found < k:
        output.support[c, 0] = found
        return RANK_TOO_SMALL
    if found < 0 or inflation_at(chain.P, k) > DELICATE:
        count[JUDGED] = 1
        return TO_BE_JUDGED
    start_clock(clock, chain.order, chain.best, recomputed(system, chain), inflation_at(chain.P, k))
    return OK


@kernel
def inflation_at(P, k):
    """Bound on the largest variance inflation factor, as `inflation` gives it after a flip."""
    total = 0.0
    for m in range(k):
        total += P[m, m]
    return total - (k - 1)


@kernel
def come_back(system, chain, clock):
    """P, x and the table of a support that was flipped elsewhere."""
    clock.value[ENERGY] = recomputed(system, chain)
    clock.value[ERROR] = 0.0
    clock.count[STALE] = 0
    clock.count[QUIET] = 0
    if clock.count[MODE] == TABLE:
        build_table(system, chain)


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
    done = 0
    while done < budget and count[CHAIN] < count[LAST_CHAIN]:
        c = count[CHAIN]
        if count[T] < 0:
            status = begin(system, chain, clock, plan, output)
            if status != OK:
                return status, done
        if count[STALE]:
            come_back(system, chain, clock)
        t, a = count[T], count[STEP]
        if value[LOWEST] * plan.coldest[a] > FROZEN:
            done += total - t
            finish(system, chain, clock, plan, output)
            continue
        n = min(BLOCK, plan.ends[a] - t)
        draw_flips(t, n, plan.keys[c, 0], plan.keys[c, 1], k, outside, chain.slot, chain.position, chain.uniform)
        if count[MODE] == SQUARE:
            n = walk_square(system, chain, clock, output, t, n, plan.betas[a])
        else:
            n = walk_table(system, chain, clock, output, t, n, plan.betas[a])
            if np.isnan(value[LOWEST]) and 4 * count[QUIET] > k * outside:
                value[LOWEST] = smallest_delta(
                    chain.P, chain.x, chain.W, chain.r, chain.s, chain.outside, k,
                    value[INFLATED], value[ERROR], system.yy, TIE * system.yy,
                )  # fmt: skip
        done += n
        over = pass_flips(clock, plan, output, n)
        choose_way(system, chain, clock, plan)
        if over:
            finish(system, chain, clock, plan, output)
        elif count[JUDGED]:
            return TO_BE_JUDGED, done
    return OK, done
