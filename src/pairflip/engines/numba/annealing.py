r"""Simulated annealing: flips proposed at random, accepted with probability :math:`\min(1, e^{-\beta \Delta E})`.

A flip takes the column in slot i out and column j in. With A, Q, s of `table` (rows of A and Q: the targets, then the
slots), :math:`p = P_{ii}`, :math:`w = W_{ij}`, :math:`a = Q_{:i} / p` and :math:`f = A_{:j} - a w`,
:math:`s' = s_j + w^2 / p`, it changes the energy by :math:`\Delta E = \frac12 (|C_i|^2 / p - |f_R|^2 / s')`, where
:math:`f_R` are the rows of the targets. Accepted, with :math:`u = P_{i:}`, :math:`v = f_W`, :math:`f_i = v_i = -1`, it
changes

.. math:: Q \to Q - a u^T + f v^T / s', \quad A_{:m} \to A_{:m} - a W_{im} - f h_m / s', \quad
          s_m \to s_m + W_{im}^2 / p - h_m^2 / s' ,

with :math:`h_m = G_{jm} - G_{jS'} W'_m`, what column m shares with j beside the other slots.

While many flips are accepted, the next LANES flips are evaluated together from Q alone (O(k^2) each); an accepted one
corrects those behind it, which is exact because random numbers are addressed. When few are accepted, the table of all
columns makes a flip O(1) and an acceptance O(k N). When nothing has been accepted for long, the smallest Delta E of all
flips tells which random numbers can accept anything at all: most flips then cost only their random number, and a chain
for which none can is finished.

Flips to singular supports and against the rules are refused. Rounding is watched, not judged: Q is computed anew from G
when `DRIFT` is used up, and a flip after which that fails is refused.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import BETTER, DRIFT, EPSILON, FROZEN, INFLATION, TIE
from pairflip.engines.numba.compile import apart, entry
from pairflip.engines.numba.draws import accepts, draw_flips, draw_start
from pairflip.engines.numba.table import (
    CLOSED,
    ENTERS,
    GAIN,
    HELD,
    LEAVES,
    NOWHERE,
    SUPPORT,
    Form,
    S,
    Table,
    add,
    close,
    cost_of,
    empty,
    gains,
    new_table,
    remove,
)
from pairflip.least_squares import SINGULAR

LANES = 8
"""Flips evaluated together: those behind an accepted one have to be corrected, so more would waste work."""
BLOCK = 1024
"""Flips drawn at a time, so that random numbers are made in vectors."""
ROW_CACHE_BYTES = 32 * 2**20
"""Memory for rows of G where there is no G."""
AUTO, SQUARE, TABLE = 0, 1, 2


class System(NamedTuple):
    """The problem: G (N, N), or columns (N, M) when G is too large (the other is empty).

    Needs of column j are rows first_need[j] to first_need[j + 1] - 1 of `form.needs`. `orders` (chains, N) are the
    columns of each chain, its first support in front; without any rows, chains draw their own.
    """

    G: Any
    columns: Any
    form: Form
    first_need: Any
    orders: Any


class Workspace(NamedTuple):
    """Memory that chains share: drawn flips, and rows of G with their columns."""

    slot: Any
    position: Any
    uniform: Any
    rows: Any
    cached: Any


class Plan(NamedTuple):
    """Flip t of a step a with ends[a - 1] <= t < ends[a] has beta betas[a].

    `coldest[a]` is the smallest beta from step a on; `keys` (chains, 2); `way` forces a way of evaluating flips;
    `table_cost` is the price of an acceptance in the table in units of an O(k^2) flip; `window` how many flips to watch
    before changing the way.
    """

    betas: Any
    ends: Any
    coldest: Any
    keys: Any
    way: int
    table_cost: float
    window: int


class Output(NamedTuple):
    """Where finished steps and chains are written (see `WalkResult`); `record` is empty where nobody asks for it."""

    energy: Any
    accepted: Any
    support: Any
    best_support: Any
    final_energy: Any
    refreshes: Any
    record: Any
    record_energy: Any


class Chain(NamedTuple):
    """Memory of a chain, used again for the next one.

    `order` lists the support in its first k places and the columns outside it after; `best` is the lowest support met.
    Of the table, Q always belongs to the support, the rest where it is used.
    """

    order: Any
    best: Any
    table: Table


CLOCK = np.dtype(
    [
        (name, np.int64)
        for name in (
            "chain",  # the chain that is walked now
            "t",  # its flip; -1: not started
            "step",  # its step of the schedule
            "mark",  # the flip up to which the step's energies are summed
            "mode",  # how flips are evaluated: SQUARE or TABLE
            "width",  # how many flips are evaluated together
            "built",  # whether the table belongs to the support
            "quiet",  # flips since the last accepted one
            "window_flips",  # flips and acceptances since the way was last thought over
            "window_accepted",
        )
    ]
    + [
        (name, np.float64)
        for name in (
            "energy",  # of the support
            "best_energy",  # the lowest met
            "lowest",  # bound on the lowest Delta E of all flips; NaN: not known
            "error",  # rounding since Q was computed
        )
    ]
)
"""Where a chain stands between two calls: one record, which kernels change in place (``clock.quiet += 1``)."""


def new_chain(k: int, n_columns: int, targets: int) -> Chain:
    """Memory for a chain of size k."""
    return Chain(np.zeros(n_columns, np.int32), np.zeros(k, np.int32), new_table(k, n_columns, targets))


def new_workspace(n_columns: int, *, dense: bool) -> Workspace:
    """Memory for chains on tables of so many columns."""
    rows = 0 if dense else max(2, min(256, ROW_CACHE_BYTES // (8 * n_columns)))
    return Workspace(
        np.zeros(BLOCK, np.int32), np.zeros(BLOCK, np.int32), np.zeros(BLOCK),
        np.zeros((rows, n_columns if rows else 0)), np.full(rows + 1, -1, np.int64),
    )  # fmt: skip


@apart
def inner(G, columns, a, b):
    """G_ab of two different columns."""
    if G.size:
        return G[a, b]
    total = 0.0
    for m in range(columns.shape[1]):
        total += columns[a, m] * columns[b, m]
    return total


@apart
def gram_row(system, work, j):
    """Row j of G; where only columns are kept, from those computed lately."""
    if system.G.size:
        return system.G[j]
    rows, cached, last = work.rows, work.cached, work.rows.shape[0]
    for at in range(last):
        if cached[at] == j:
            return rows[at]
    cached[last] = (cached[last] + 1) % last  # the place that was filled longest ago
    at = cached[last]
    np.dot(system.columns, system.columns[j], rows[at])
    rows[at, j] = 1.0  # the diagonal holds the ridge, which the product of the columns does not
    cached[at] = j
    return rows[at]


@apart
def extend(Q, q, n, g):
    """Border P, the inverse for n columns in Q, by a column with inner products g (n,); False if that is singular."""
    v, s = np.empty(n), 1.0
    for m in range(n):
        total = 0.0
        for l in range(n):
            total += Q[q + m, l] * g[l]
        v[m] = total
        s -= total * g[m]
    if s <= SINGULAR:
        return False
    for m in range(n):
        if Q[q + m, m] + v[m] * v[m] / s >= INFLATION:
            return False
    for m in range(n):
        a = v[m] / s
        for l in range(n):
            Q[q + m, l] += a * v[l]
        Q[q + m, n] = -a
        Q[q + n, m] = -a
    Q[q + n, n] = 1.0 / s
    return True


@apart
def energy_at(form, order, Q):
    """Minus the coefficients, from P, into Q, free of accumulated rounding; returns E of the support."""
    k, q, total = Q.shape[1], len(form.B), form.yy
    for t in range(q):
        for m in range(k):
            x = 0.0
            for l in range(k):
                x += Q[q + m, l] * form.B[t, order[l]]
            Q[t, m] = -x
            total -= x * form.B[t, order[m]]
    return 0.5 * total


@apart
def rebuild(system, order, Q):
    """Q of the support from G; False, and Q as it was, if that is singular."""
    height, k = Q.shape
    g, fresh = np.empty(k), np.empty((height, k))
    for m in range(k):
        for l in range(m):
            g[l] = inner(system.G, system.columns, order[m], order[l])
        if not extend(fresh, height - k, m, g):
            return False
    for m in range(height - k, height):
        for l in range(k):
            Q[m, l] = fresh[m, l]
    return True


@apart
def load(Q, C, P):
    """The coefficients C (q, k) and P (k, k) in Q."""
    q, k = C.shape
    for m in range(k):
        for b in range(q):
            C[b, m] = -Q[b, m]
        for l in range(k):
            P[m, l] = Q[q + m, l]


@apart
def spread(P, u, v, p, s):
    """Bound on the largest variance inflation factor (diagonal element of P, at least 1) after a flip.

    Infinite when one of them makes the support singular.
    """
    # No factor is below 1, so the largest is at most the sum of all less k - 1, and a sum needs no branches.
    k, p_inverse, s_inverse = u.size, 1.0 / p, 1.0 / s
    total = 1.0 - k
    for m in range(k):
        total += P[m, m] - u[m] * u[m] * p_inverse + v[m] * v[m] * s_inverse
    if total >= INFLATION:
        for m in range(k):
            if P[m, m] - u[m] * u[m] * p_inverse + v[m] * v[m] * s_inverse >= INFLATION:
                return np.inf
    return total


@apart
def count_rules(form, table, order, k):
    """What the columns of a support keep out and need, where there is no table of it."""
    empty(form, table)
    for m in range(k):
        close(form, table, order[m], ENTERS)


@apart
def breaks_rules(system, table, out, j):
    """Whether column j may not take the place of column `out`."""
    form, closed, held = system.form, table.columns[CLOSED], table.columns[HELD]
    group, position = form.marks[0], form.marks[1]
    clash = (group[out] == group[j] and group[j] != NOWHERE) or abs(position[out] - position[j]) < form.apart
    if held[out] > 0 or closed[j] > int(clash):
        return True
    needs = False
    for n in range(system.first_need[j], system.first_need[j + 1]):
        needs = needs or form.needs[n, 1] == out
    return needs


@apart
def build_table(system, work, chain):
    """The table of the chain's support; False where rounding makes that singular (Q is then as it was)."""
    form, table, order, k = system.form, chain.table, chain.order, chain.best.size
    before, built = table.Q.copy(), 0
    empty(form, table)
    while built < k and table.values[S, order[built]] > SINGULAR:
        add(form, table, built, order[built], gram_row(system, work, order[built]))
        built += 1
    if built < k:
        count_rules(form, table, order, k)
        for m in range(before.shape[0]):
            for l in range(k):
                table.Q[m, l] = before[m, l]
    return built == k


@apart
def swap_slots(table, q, i, l):
    """Exchange the columns in two slots."""
    A, Q, support = table.A, table.Q, table.columns[SUPPORT]
    support[i], support[l] = support[l], support[i]
    for n in range(A.shape[1]):
        A[q + i, n], A[q + l, n] = A[q + l, n], A[q + i, n]
    for n in range(Q.shape[1]):
        Q[q + i, n], Q[q + l, n] = Q[q + l, n], Q[q + i, n]
    for m in range(Q.shape[0]):
        Q[m, i], Q[m, l] = Q[m, l], Q[m, i]


@apart
def choose_way(clock, plan, k, dense):
    """Change between the two ways when the acceptance measured over a window says that the other is cheaper."""
    rate = clock.window_accepted / clock.window_flips
    # One flip at a time where correcting those ahead would cost more than evaluating them together saves.
    clock.width = 1 if dense and 15.0 + 0.08 * k * k < rate * (25.0 + 1.1 * k) else LANES
    # Between 1 and 4 nothing changes: a chain at the border would else build its table again and again.
    price = rate * plan.table_cost if plan.way == AUTO else (2.0 if plan.way == SQUARE else 0.0)
    if clock.mode == SQUARE and price < 1.0:
        clock.mode, clock.lowest, clock.quiet, clock.built = TABLE, np.nan, 0, 0
    elif clock.mode == TABLE and price > 4.0:
        clock.mode = SQUARE
    clock.window_flips, clock.window_accepted = 0, 0


@apart
def draw_block(work, chain, clock, plan):
    """Draw the next flips, all of one step; how many."""
    k, c, n = chain.best.size, clock.chain, min(BLOCK, plan.ends[clock.step] - clock.t)
    outside = chain.order.size - k
    draw_flips(clock.t, n, plan.keys[c, 0], plan.keys[c, 1], k, outside, work.slot, work.position, work.uniform)
    return n


@apart
def end_step(chain, clock, plan, output):
    """Write the step in which the chain stands."""
    c, a = clock.chain, clock.step
    begin = plan.ends[a - 1] if a else 0
    # Of the step it stands in, what comes after `mark`; later ones, which it need not walk, from their beginning.
    output.energy[c, a] += clock.energy * (plan.ends[a] - max(begin, clock.mark))
    output.energy[c, a] /= plan.ends[a] - begin
    if output.record.size:
        output.record_energy[c, a] = clock.energy
        for m in range(chain.best.size):
            output.record[c, a, m] = chain.order[m]
    clock.mark = plan.ends[a]
    clock.step += 1


@apart
def end_block(chain, clock, plan, output, n, dense):
    """Enter that n flips have passed."""
    clock.t += n
    clock.window_flips += n
    if clock.t == plan.ends[clock.step]:
        end_step(chain, clock, plan, output)
    if clock.window_flips >= plan.window:
        choose_way(clock, plan, chain.best.size, dense)


@apart
def book(chain, clock, output, t, new_energy, better):
    """Enter an accepted flip at time t into the step's sums and the clock, and keep the best support met."""
    # The energy has been the same since `mark`, so a step's sum is touched only where it changes.
    c, a = clock.chain, clock.step
    output.accepted[c, a] += 1
    output.energy[c, a] += clock.energy * (t - clock.mark)
    clock.energy = new_energy
    clock.lowest = np.nan
    clock.mark = t
    clock.window_accepted += 1
    if new_energy < clock.best_energy - better:
        clock.best_energy = new_energy
        for m in range(chain.best.size):
            chain.best[m] = chain.order[m]


@entry
def walk_square(system, work, chain, clocks, plan, output, budget):
    """About `budget` flips, up to LANES at a time from P and C, while the chain goes on in this way; how many."""
    G, columns, form, order, B, clock = system.G, system.columns, system.form, chain.order, system.form.B, clocks[0]
    slot, position, uniform = work.slot, work.position, work.uniform
    k, q, tie, by_columns, done = chain.best.size, len(B), TIE * form.yy, G.size == 0, 0
    # Copies, whose addresses the compiler knows not to overlap with anything: the loops below vectorize.
    P, C = np.empty((k, k)), np.empty((q, k))
    load(chain.table.Q, C, P)
    u, v, g, r, c_i = np.empty(k), np.empty(k), np.empty(k), np.empty(q), np.empty(q)
    ahead, ahead_G, ahead_W = np.empty(LANES, np.uint64), np.empty((LANES, k)), np.empty((LANES, k))
    ahead_R, ahead_s, ahead_h = np.empty((LANES, q)), np.empty(LANES), np.empty(LANES)
    support_columns, ahead_columns = np.empty((k, columns.shape[1])), np.empty((LANES, columns.shape[1]))
    if by_columns:
        for m in range(k):
            for l in range(columns.shape[1]):
                support_columns[m, l] = columns[order[m], l]
    first, n, beta = 0, 0, 0.0
    while True:
        if first == n:
            if n:
                end_block(chain, clock, plan, output, n, not by_columns)
                done += n
            if done >= budget or clock.mode != SQUARE or clock.step == plan.ends.size:
                break
            first, n, beta = 0, draw_block(work, chain, clock, plan), plan.betas[clock.step]
        lanes = min(clock.width, n - first)
        for d in range(lanes):
            ahead[d] = order[k + position[first + d]]
        if by_columns:
            for d in range(lanes):
                for l in range(columns.shape[1]):
                    ahead_columns[d, l] = columns[ahead[d], l]
            # Whole sets, which BLAS likes; rows behind `lanes` hold numbers of before, and nobody reads them.
            np.dot(ahead_columns, support_columns.T, ahead_G)
        else:
            # Row by row of G, which lies together in memory; unsigned indices spare the test for negative ones.
            for m in range(k):
                row = np.uint64(order[m])
                for d in range(lanes):
                    ahead_G[d, m] = G[row, ahead[d]]
        # BLAS for whole sets only: fewer lanes are what is left of a block, or a choice for small k.
        if lanes == LANES:
            np.dot(ahead_G, P, ahead_W)
        else:
            for d in range(lanes):
                for m in range(k):
                    total = 0.0
                    for l in range(k):
                        total += P[m, l] * ahead_G[d, l]
                    ahead_W[d, m] = total
        for d in range(lanes):
            s = 0.0
            for m in range(k):
                s += ahead_G[d, m] * ahead_W[d, m]
            ahead_s[d] = 1.0 - s
            for b in range(q):
                total = 0.0
                for m in range(k):
                    total += ahead_G[d, m] * C[b, m]
                ahead_R[d, b] = B[b, ahead[d]] - total
        d = -1
        while d + 1 < lanes:
            d += 1
            i, place = slot[first + d], position[first + d]
            p, w, cost, gain = P[i, i], ahead_W[d, i], 0.0, 0.0
            p_inverse = 1.0 / p
            s = ahead_s[d] + w * w * p_inverse
            for b in range(q):
                r_b = ahead_R[d, b] + C[b, i] * w * p_inverse
                cost += C[b, i] * C[b, i]
                gain += r_b * r_b
            delta = 0.5 * (cost * p_inverse - gain / s)
            # The usual end of a cold flip, so nothing else comes first.
            if s <= SINGULAR or (delta > tie and not accepts(uniform[first + d], beta * delta)):
                continue
            j, out = order[k + place], order[i]
            if form.ruled and breaks_rules(system, chain.table, out, j):
                continue
            for m in range(k):
                u[m] = P[i, m]
                v[m] = ahead_W[d, m] - u[m] * (w * p_inverse)
                g[m] = ahead_G[d, m]
            v[i] = -1.0
            inflated = spread(P, u, v, p, s)
            if inflated == np.inf:
                continue
            order[i], order[k + place] = j, out
            if clock.error + EPSILON * inflated < DRIFT:
                clock.error += EPSILON * inflated
                new_energy, s_inverse = clock.energy + delta, 1.0 / s
                for b in range(q):
                    c_i[b] = C[b, i] * p_inverse
                    r[b] = ahead_R[d, b] + c_i[b] * w
                    x = r[b] * s_inverse
                    for m in range(k):
                        C[b, m] -= c_i[b] * u[m] + x * v[m]
                    C[b, i] = x
                for m in range(k):
                    a, c = u[m] * p_inverse, v[m] * s_inverse
                    for l in range(k):
                        P[m, l] += c * v[l] - a * u[l]
                # Slot i is known in closed form; the sums above leave rounding there that grows with the inflation.
                for m in range(k):
                    P[i, m] = -v[m] * s_inverse
                    P[m, i] = -v[m] * s_inverse
                P[i, i] = s_inverse
                for later in range(d + 1, lanes):  # a later flip that wanted this place sees another column now
                    if position[first + later] == place:
                        lanes = later
                        break
                for later in range(d + 1, lanes):
                    if by_columns:
                        shared = 0.0
                        for m in range(columns.shape[1]):
                            shared += columns[j, m] * ahead_columns[later, m]
                        ahead_h[later] = shared
                    else:
                        ahead_h[later] = G[j, ahead[later]]
                beside = 0.0
                for m in range(k):
                    beside += g[m] * u[m]
                beside = (beside - g[i] * u[i]) * p_inverse + g[i]
                for later in range(d + 1, lanes):
                    w = ahead_W[later, i]
                    h = ahead_h[later] + beside * w  # less the sum over the other slots
                    for m in range(k):
                        h -= g[m] * ahead_W[later, m]
                    a, c = w * p_inverse, h * s_inverse
                    for m in range(k):
                        ahead_W[later, m] -= a * u[m] + c * v[m]
                    ahead_W[later, i] = c
                    for b in range(q):
                        ahead_R[later, b] += c_i[b] * w - r[b] * c
                    ahead_s[later] += w * a - h * c
                    ahead_G[later, i] = ahead_h[later]
            elif rebuild(system, order, chain.table.Q):
                # The rounding was used up; the lanes ahead, which came from the old P, are given up.
                new_energy, clock.error, lanes = energy_at(form, order, chain.table.Q), 0.0, d + 1
                load(chain.table.Q, C, P)
                output.refreshes[clock.chain] += 1
            else:
                order[i], order[k + place] = out, j
                continue
            if by_columns:
                for l in range(columns.shape[1]):
                    support_columns[i, l] = columns[j, l]
            if form.ruled:
                close(form, chain.table, out, LEAVES)
                close(form, chain.table, j, ENTERS)
            book(chain, clock, output, clock.t + first + d, new_energy, BETTER * form.yy)
        first += lanes
    for m in range(k):
        for b in range(q):
            chain.table.Q[b, m] = -C[b, m]
        for l in range(k):
            chain.table.Q[q + m, l] = P[m, l]
    return done


@apart
def smallest_change(system, table, order, k):
    """The lowest Delta E of all flips, 0 when one is a tie, by the table."""
    form, gain, lowest = system.form, table.values[GAIN], np.inf
    for i in range(k):
        gains(form, table, k, i)
        cost = cost_of(form, table, i)
        for place in range(k, order.size):
            j = order[place]
            refused = gain[j] < 0.0 or cost - gain[j] >= lowest
            if not refused and not (form.ruled and breaks_rules(system, table, order[i], j)):
                lowest = cost - gain[j]
    lowest = 0.5 * lowest - TIE * form.yy
    return lowest if lowest > TIE * form.yy else 0.0


@entry
def walk_table(system, work, chain, clocks, plan, output, budget):
    """About `budget` flips by the table while the chain goes on in this way; how many.

    Flips whose random number can accept nothing are passed over; those of a frozen chain all at once.
    """
    form, table, order, clock = system.form, chain.table, chain.order, clocks[0]
    slot, position, uniform, A, Q, table_s = work.slot, work.position, work.uniform, table.A, table.Q, table.values[S]
    k, q, tie, steps, done, last = chain.best.size, len(form.B), TIE * form.yy, plan.ends.size, 0, chain.best.size - 1
    u, v, every = np.empty(k), np.empty(k), k * (order.size - k)
    while done < budget and clock.step < steps:
        # A chain that cannot accept anything at this or any later temperature is at its end.
        # (Where the bound is not known it is NaN, and the comparison false.)
        if clock.lowest * plan.coldest[clock.step] > FROZEN:
            done, clock.t = done + plan.ends[-1] - clock.t, plan.ends[-1]
            while clock.step < steps:
                end_step(chain, clock, plan, output)
            break
        if clock.built == 0:
            clock.built = 1
            if not build_table(system, work, chain):
                clock.mode = SQUARE
        if clock.mode == SQUARE:
            break
        n, beta, ceiling = draw_block(work, chain, clock, plan), plan.betas[clock.step], 1.0
        # No flip has a Delta E below `lowest`, so a random number above this ceiling accepts none of them.
        if clock.lowest > 0.0:
            ceiling = np.exp(-beta * clock.lowest)
        for d in range(n):
            if uniform[d] > ceiling:
                continue
            i, place = slot[d], k + position[d]
            j, out = order[place], order[i]
            p, w, cost, gain = Q[q + i, i], A[q + i, j], 0.0, 0.0
            p_inverse = 1.0 / p
            s = table_s[j] + w * w * p_inverse
            for b in range(q):
                r = A[b, j] - Q[b, i] * w * p_inverse
                cost += Q[b, i] * Q[b, i]
                gain += r * r
            delta = 0.5 * (cost * p_inverse - gain / s)
            if s <= SINGULAR or (delta > tie and not accepts(uniform[d], beta * delta)):
                continue
            if form.ruled and breaks_rules(system, table, out, j):
                continue
            for m in range(k):
                u[m] = Q[q + i, m]
                v[m] = A[q + m, j] - u[m] * (w * p_inverse)
            v[i] = -1.0
            inflated = spread(Q[q:], u, v, p, s)
            if inflated == np.inf:
                continue
            order[i], order[place] = j, out
            if clock.error + EPSILON * inflated < DRIFT:
                clock.error += EPSILON * inflated
                new_energy = clock.energy + delta
                remove(form, table, k, i)
                add(form, table, last, j, gram_row(system, work, j))
                swap_slots(table, q, i, last)  # j came last, and the last one into slot i; slots are part of an address
            elif rebuild(system, order, Q):
                output.refreshes[clock.chain] += 1
                new_energy, clock.error, clock.built = energy_at(form, order, Q), 0.0, 0
            else:
                order[i], order[place] = out, j
                continue
            book(chain, clock, output, clock.t + d, new_energy, BETTER * form.yy)
            # So that adding n at the end counts the flips after this one; the ceiling of the old support is void.
            clock.quiet, ceiling = -(d + 1), 1.0
            if clock.built == 0:
                n = d + 1
                break
        clock.quiet += n
        # It looks at all flips, and is void with the next acceptance: only after a quarter as many refusals.
        if np.isnan(clock.lowest) and 4 * clock.quiet > every and clock.built:
            clock.lowest = smallest_change(system, table, order, k)
        end_block(chain, clock, plan, output, n, system.G.size > 0)
        done += n
    return done


@entry
def begin(system, chain, clocks, plan):
    """The first support of a chain, the first k columns of a random order that stay independent; how many there are."""
    form, order, Q, k, n, clock = system.form, chain.order, chain.table.Q, chain.best.size, chain.order.size, clocks[0]
    c, g, found, rest = clock.chain, np.empty(k), 0, k
    candidates = np.empty(n, np.int32)
    if system.orders.shape[0]:
        for m in range(n):
            candidates[m] = system.orders[c, m]
    else:
        draw_start(plan.keys[c, 0], plan.keys[c, 1], candidates)
    # Columns passed over go behind the support in the order drawn: places are part of an address.
    for j in candidates:
        added = False
        if found < k:
            for m in range(found):
                g[m] = inner(system.G, system.columns, order[m], j)
            added = extend(Q, len(form.B), found, g)
        if added:
            order[found] = j
            found += 1
        elif rest < n:
            # (Where fewer than k are found, the others do not all fit behind them; nobody walks from there.)
            order[rest] = j
            rest += 1
    if found == k:
        count_rules(form, chain.table, order, k)
        for m in range(k):
            chain.best[m] = order[m]
        clock.energy = energy_at(form, order, Q)
        clock.best_energy, clock.lowest, clock.error = clock.energy, np.nan, 0.0
        clock.t, clock.step, clock.mark, clock.mode, clock.quiet = 0, 0, 0, SQUARE, 0
        clock.window_flips, clock.window_accepted = plan.window, plan.window  # when it is hot, all are accepted
        choose_way(clock, plan, k, system.G.size > 0)
    return found


@entry
def survey(system, work, order, table, delta):
    """Fill delta (k, N - k) with Delta E of exchanging slot i with the column at place j outside; False if singular."""
    k, outside = delta.shape
    chain, form, q = Chain(order, np.empty(k, np.int32), table), system.form, len(system.form.B)
    u, v = np.empty(k), np.empty(k)
    if not build_table(system, work, chain):
        return False
    for i in range(k):
        gains(form, table, k, i)
        cost, p = cost_of(form, table, i), table.Q[q + i, i]
        for place in range(outside):
            j = order[k + place]
            w, change = table.A[q + i, j], 0.5 * (cost - table.values[GAIN, j])
            for m in range(k):
                u[m] = table.Q[q + i, m]
                v[m] = table.A[q + m, j] - u[m] * (w / p)
            v[i] = -1.0
            refused = table.values[GAIN, j] < 0.0 or (form.ruled and breaks_rules(system, table, order[i], j))
            if refused or spread(table.Q[q:], u, v, p, table.values[S, j] + w * w / p) == np.inf:
                change = np.inf
            delta[i, place] = 0.0 if abs(change) <= TIE * form.yy else change
    return True


@entry
def decide(u, z):
    """Whether the random number u accepts a flip of beta Delta E = z."""
    return accepts(u, z)
