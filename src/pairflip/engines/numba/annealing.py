r"""One chain: moves proposed at random, accepted with probability :math:`\min(1, e^{\Delta \ln w})` of their weight w.

Annealing and sampling flip pairs, :math:`\ln w = -\beta E`. A walk over models of all sizes also adds and drops columns
(one move in four each), :math:`\ln w = L_k - \beta E` or :math:`L_k - \beta \ln(E + c)` with L of the size k; k of n
columns can be extended in n - k ways and taken back in k + 1, which L accounts for by :math:`\ln \binom nk`.

A flip takes the column in slot i out and column j in. With A, Q, s of `table` (rows of A and Q: the targets, then the
slots), :math:`p = P_{ii}`, :math:`w = W_{ij}`, :math:`a = Q_{:i} / p` and :math:`f = A_{:j} - a w`,
:math:`s' = s_j + w^2 / p`, it changes the energy by :math:`\Delta E = \frac12 (|C_i|^2 / p - |f_R|^2 / s')`, where
:math:`f_R` are the rows of the targets. Accepted, with :math:`u = P_{i:}`, :math:`v = f_W`, :math:`f_i = v_i = -1`, it
changes

.. math:: Q \to Q - a u^T + f v^T / s', \quad A_{:m} \to A_{:m} - a W_{im} - f h_m / s', \quad
          s_m \to s_m + W_{im}^2 / p - h_m^2 / s' ,

with :math:`h_m = G_{jm} - G_{jS'} W'_m`, what column m shares with j beside the other slots. Adding is the flip of an
empty slot (1 / p = 0), dropping the flip with no column (1 / s' = 0).

While many moves are accepted, the next LANES flips are evaluated together from Q alone (O(k^2) each); an accepted one
corrects those behind it, which is exact because random numbers are addressed. When few are accepted, the table of all
columns makes a move O(1) and an acceptance O(k N). When nothing has been accepted for long, the smallest Delta E of all
flips tells which random numbers can accept anything at all: most flips then cost only their random number, and a chain
for which none can is finished.

Moves to singular supports and against the rules are refused. Rounding is watched, not judged: Q is computed anew from G
when `DRIFT` is used up, and a move after which that fails is refused.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.blas import one_blas_thread
from pairflip.compiled import apart, entry
from pairflip.engines.base import (
    BETTER,
    DRIFT,
    EPSILON,
    FROZEN,
    INFLATION,
    TIE,
    RankTooSmall,
    Tick,
    first_order,
    flip_nanoseconds,
)
from pairflip.engines.exchange import LadderPlan, LadderResult, run_ladder
from pairflip.engines.numba.draws import accepts, draw_flips, draw_moves, draw_start
from pairflip.engines.numba.models import NO_MIXTURE, Mixture, mixed
from pairflip.engines.numba.table import (
    CLOSED,
    ENTERS,
    GAIN,
    HELD,
    LEAVES,
    NOWHERE,
    SUPPORT,
    KernelForm,
    S,
    Table,
    add,
    clash,
    close,
    cost_of,
    empty,
    form_of,
    gains,
    new_tables,
    remove,
    table_at,
)
from pairflip.least_squares import SINGULAR, Floats
from pairflip.moments import Form

LANES = 8
"""Flips evaluated together: those behind an accepted one have to be corrected, so more would waste work."""
BLOCK, SHORT_BLOCK = 1024, 32
"""Moves drawn at a time, so that random numbers are made in vectors; few where an accepted one changes the size, and so
what the next ones mean."""
ROW_CACHE_BYTES = 32 * 2**20
"""Memory for rows of G where there is no G."""
WAYS = "auto", "square", "table"
AUTO, SQUARE, TABLE = range(3)
ADDED, DROPPED, FLIPPED = 0, 1, 2
_WINDOW = 512  # moves that are watched at least before the way of evaluating them is changed
_SLICE_NS = 2e7  # how long a kernel may keep the interpreter from seeing Ctrl-C
ZERO = np.int64(0)
"""Not a plain number, for which functions that take it would be compiled once more."""


class System(NamedTuple):
    """The problem: G (N, N), or columns (N, M) when G is too large (the other is empty).

    Needs of column j are rows first_need[j] to first_need[j + 1] - 1 of `form.needs`. `orders` (chains, N) are the
    columns of each chain, its first support in front; without any rows, chains draw their own.
    """

    G: Any
    columns: Any
    form: KernelForm
    first_need: Any
    orders: Any


class Workspace(NamedTuple):
    """Memory that chains share: drawn moves, and rows of G with their columns."""

    slot: Any
    position: Any
    uniform: Any
    rows: Any
    cached: Any


class Plan(NamedTuple):
    """Move t of a step a with ends[a - 1] <= t < ends[a] has, in chain c, beta betas[c % len(betas), a].

    `coldest[a]` is the smallest beta from step a on; `keys` (chains, 2). `sizes` (K + 2,) is L above, minus infinity
    where a size is not allowed; empty for chains of one size. `offset` is c, 0 for weights without a logarithm;
    `mixture` stands for both beta and c where g is integrated out.
    `inflation`: supports with a variance inflation factor that reaches this are singular. `way` forces a way of
    evaluating moves; `table_cost` is the price of an acceptance in the table in units of an O(k^2) flip; `window` how
    many moves to watch before changing the way.
    """

    betas: Any
    ends: Any
    coldest: Any
    keys: Any
    sizes: Any
    offset: float
    inflation: float
    way: int
    table_cost: float
    window: int
    mixture: Mixture


class Output(NamedTuple):
    """Where finished steps and chains are written (see `WalkResult`); `record` is empty where nobody asks for it.

    `moves` (chains, 3): accepted additions, removals and flips.
    """

    energy: Any
    accepted: Any
    support: Any
    best_support: Any
    final_energy: Any
    refreshes: Any
    record: Any
    record_energy: Any
    moves: Any


class Chains(NamedTuple):
    """Memory of some chains that are walked in turn, and used again for the next ones.

    `order` (chains, N) lists the support in its first k places and the columns outside it after; `best` (chains, K) is
    the lowest support met. Of each table, Q always belongs to the support, the rest where it is used.
    """

    order: Any
    best: Any
    tables: Table


CLOCK = np.dtype(
    [
        (name, np.int64)
        for name in (
            "chain",  # the chain that is walked now
            "k",  # size of its support
            "t",  # its move
            "step",  # its step of the schedule
            "mark",  # the move up to which the step's energies are summed
            "mode",  # how moves are evaluated: SQUARE or TABLE
            "width",  # how many moves are evaluated together
            "built",  # whether the table belongs to the support
            "quiet",  # moves since the last accepted one
            "window_flips",  # moves and acceptances since the way was last thought over
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


def new_chains(count: int, k: int, n_columns: int, targets: int) -> Chains:
    """Memory for so many chains of sizes up to k."""
    orders, best = np.zeros((count, n_columns), np.int32), np.zeros((count, k), np.int32)
    return Chains(orders, best, new_tables(count, k, n_columns, targets))


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
def matrix_row(system, work, j):
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
def extend(system, order, Q, n, j, inflation):
    """Column j enters as number n into Q of order[:n]; False, and Q as it was, if that is singular."""
    q, s = len(system.form.B), 1.0
    g, f = np.empty(n), np.empty(q + n)
    for m in range(n):
        g[m] = inner(system.G, system.columns, np.int64(order[m]), j)
    for m in range(q + n):
        f[m] = system.form.B[m, j] if m < q else 0.0
        for l in range(n):
            f[m] += Q[m, l] * g[l]
    for m in range(n):
        s -= f[q + m] * g[m]
    if s * inflation <= 1.0:
        return False
    for m in range(n):
        if Q[q + m, m] + f[q + m] * f[q + m] / s >= inflation:
            return False
    for m in range(q + n):
        for l in range(n):
            Q[m, l] += f[m] * f[q + l] / s
        Q[m, n] = -f[m] / s
    for l in range(n):
        Q[q + n, l] = -f[q + l] / s
    Q[q + n, n] = 1.0 / s
    return True


@apart
def rebuild(system, order, Q, k, inflation):
    """Q of the support from G; False if that is singular."""
    m = ZERO
    while m < k and extend(system, order, Q, m, np.int64(order[m]), inflation):
        m += 1
    return m == k


@apart
def energy_at(form, order, Q, k):
    """E of the support."""
    total = form.yy
    for t in range(len(form.B)):
        for m in range(k):
            total += Q[t, m] * form.B[t, order[m]]
    return 0.5 * total


@apart
def spread(P, k, i, u, v, p_inverse, s_inverse, inflation):
    """Bound on the largest variance inflation factor (diagonal element of P, at least 1) after a move.

    Infinite when one of them makes the support singular.
    """
    # No factor is below 1, so the largest is at most the sum of all less k - 1, and a sum needs no branches.
    total = 1.0 - k if i < k else s_inverse - k
    for m in range(k):
        total += P[m, m] - u[m] * u[m] * p_inverse + v[m] * v[m] * s_inverse
    if total >= inflation:
        for m in range(k):
            if P[m, m] - u[m] * u[m] * p_inverse + v[m] * v[m] * s_inverse >= inflation:
                return np.inf
    return total


@apart
def count_rules(form, table, order, k):
    """What the columns of a support keep out and need, where there is no table of it."""
    empty(form, table)
    for m in range(k):
        close(form, table, np.int64(order[m]), ENTERS)


@apart
def breaks_rules(system, table, out, j):
    """Whether column j may not take the place of column `out`; one of them may be NOWHERE."""
    form, closed, held = system.form, table.columns[CLOSED], table.columns[HELD]
    if out == NOWHERE:
        return closed[j] > 0
    if held[out] > 0 or j == NOWHERE:
        return held[out] > 0
    needs = closed[j] > int(clash(form, out, j))
    for n in range(system.first_need[j], system.first_need[j + 1]):
        needs = needs or form.needs[n, 1] == out
    return needs


@apart
def build_table(system, work, order, table, k):
    """The table of the support; False where rounding makes that singular."""
    built = ZERO
    empty(system.form, table)
    while built < k and table.values[S, order[built]] > SINGULAR:
        j = np.int64(order[built])
        add(system.form, table, built, j, matrix_row(system, work, j))
        built += 1
    if built < k:
        count_rules(system.form, table, order, k)
    return built == k


@apart
def load(Q, C, P, k):
    """The coefficients C (q, K) and P (K, K) in Q."""
    q = len(C)
    for m in range(k):
        for b in range(q):
            C[b, m] = -Q[b, m]
        for l in range(k):
            P[m, l] = Q[q + m, l]


@apart
def exchange(system, work, table, k, i, out, j):
    """Column `out` in slot i of the table's k leaves, and column j takes its slot (slots are part of an address)."""
    form, q, A, Q, support = system.form, len(system.form.B), table.A, table.Q, table.columns[SUPPORT]
    if out != NOWHERE:
        k -= 1
        remove(form, table, k + 1, i)
    if j != NOWHERE:
        add(form, table, k, j, matrix_row(system, work, j))
        if i < k and out != NOWHERE:
            support[i], support[k] = support[k], support[i]
            for n in range(A.shape[1]):
                A[q + i, n], A[q + k, n] = A[q + k, n], A[q + i, n]
            for n in range(Q.shape[1]):
                Q[q + i, n], Q[q + k, n] = Q[q + k, n], Q[q + i, n]
            for n in range(Q.shape[0]):
                Q[n, i], Q[n, k] = Q[n, k], Q[n, i]


@apart
def choose_way(clock, plan, dense):
    """Change between the two ways when the acceptance measured over a window says that the other is cheaper."""
    rate, k = clock.window_accepted / clock.window_flips, clock.k
    # One at a time where correcting those ahead would cost more than evaluating them together saves.
    alone = dense and 15.0 + 0.08 * k * k < rate * (25.0 + 1.1 * k)
    clock.width = 1 if alone or plan.sizes.size else LANES
    # Between 1 and 4 nothing changes: a chain at the border would else build its table again and again.
    price = rate * plan.table_cost if plan.way == AUTO else (2.0 if plan.way == SQUARE else 0.0)
    if clock.mode == SQUARE and price < 1.0:
        clock.mode, clock.lowest, clock.quiet, clock.built = TABLE, np.nan, 0, 0
    elif clock.mode == TABLE and price > 4.0:
        clock.mode = SQUARE
    clock.window_flips, clock.window_accepted = 0, 0


@apart
def draw_block(work, clock, plan, n_columns):
    """Draw the next moves, all of one step; how many."""
    c, k, n = clock.chain, clock.k, min(SHORT_BLOCK if plan.sizes.size else BLOCK, plan.ends[clock.step] - clock.t)
    slot, position, uniform, outside = work.slot, work.position, work.uniform, n_columns - k
    if plan.sizes.size:
        draw_moves(clock.t, n, plan.keys[c, 0], plan.keys[c, 1], k, outside, slot, position, uniform)
    else:
        draw_flips(clock.t, n, plan.keys[c, 0], plan.keys[c, 1], k, outside, slot, position, uniform)
    return n


@apart
def end_step(order, clock, plan, output):
    """Write the step in which the chain stands."""
    c, a = clock.chain, clock.step
    begin = plan.ends[a - 1] if a else 0
    # Of the step it stands in, what comes after `mark`; later ones, which it need not walk, from their beginning.
    output.energy[c, a] += clock.energy * (plan.ends[a] - max(begin, clock.mark))
    output.energy[c, a] /= plan.ends[a] - begin
    if output.record.size:
        output.record_energy[c, a] = clock.energy
        for m in range(output.record.shape[2]):
            output.record[c, a, m] = order[m] if m < clock.k else NOWHERE
    clock.mark = plan.ends[a]
    clock.step += 1


@apart
def end_block(order, clock, plan, output, n, dense):
    """Enter that n moves have passed."""
    clock.t += n
    clock.quiet += n
    clock.window_flips += n
    if clock.t == plan.ends[clock.step]:
        end_step(order, clock, plan, output)
    if clock.window_flips >= plan.window:
        choose_way(clock, plan, dense)


@apart
def book(order, best, clock, output, t, kind, new_energy, better):
    """Enter an accepted move at time t into the step's sums and the clock, and keep the best support met."""
    # The energy has been the same since `mark`, so a step's sum is touched only where it changes.
    c, a = clock.chain, clock.step
    output.accepted[c, a] += 1
    output.moves[c, kind] += 1
    output.energy[c, a] += clock.energy * (t - clock.mark)
    clock.energy = new_energy
    clock.lowest = np.nan
    clock.mark = t
    clock.window_accepted += 1
    if new_energy < clock.best_energy - better:
        clock.best_energy = new_energy
        for m in range(clock.k):
            best[m] = order[m]


@apart
def smallest_change(system, table, order, k):
    """The lowest Delta E of all flips, 0 when one is a tie, by the table."""
    form, gain, lowest = system.form, table.values[GAIN], np.inf
    for i in range(k):
        gains(form, table, k, i)
        cost = cost_of(form, table, i)
        for place in range(k, order.size):
            j = np.int64(order[place])
            refused = gain[j] < 0.0 or cost - gain[j] >= lowest
            if not refused and not (form.ruled and breaks_rules(system, table, np.int64(order[i]), j)):
                lowest = cost - gain[j]
    lowest = 0.5 * lowest - TIE * form.yy
    return lowest if lowest > TIE * form.yy else 0.0


@apart
def exponent(plan, beta, energy, delta, k, size):
    """By how much the logarithm of the weight falls when the energy and the size change."""
    if plan.mixture.table.size:
        falls = mixed(plan.mixture, k, energy, 0) - mixed(plan.mixture, size, energy + delta, 0)
        return plan.sizes[k] - plan.sizes[size] + falls
    if plan.offset == 0.0:
        return plan.sizes[k] - plan.sizes[size] + beta * delta
    now, then = max(energy, 0.0) + plan.offset, max(energy + delta, 0.0) + plan.offset
    return plan.sizes[k] - plan.sizes[size] + beta * np.log(then / now)


@entry
def walk(system, work, chains, clocks, plan, output, budget):
    """About `budget` moves of each chain (exactly, if they end a step); how many the last one made.

    Moves whose random number can accept nothing are passed over; those of a frozen chain all at once.
    """
    G, columns, form, B, q = system.G, system.columns, system.form, system.form.B, len(system.form.B)
    slot, position, uniform, room = work.slot, work.position, work.uniform, chains.best.shape[1]
    by_columns, sized, tie, done = G.size == 0, plan.sizes.size > 0, TIE * form.yy, 0
    # Arrays of its own, whose addresses the compiler knows not to overlap with anything: the loops below vectorize.
    P, C, u, v, g = np.empty((room, room)), np.empty((q, room)), np.empty(room), np.empty(room), np.empty(room)
    ahead, ahead_G, ahead_W = np.empty(LANES, np.uint64), np.empty((LANES, room)), np.empty((LANES, room))
    ahead_R, ahead_s, ahead_h, r, c_i = np.empty((LANES, q)), np.empty(LANES), np.empty(LANES), np.empty(q), np.empty(q)
    support_columns, ahead_columns = np.empty((room, columns.shape[1])), np.empty((LANES, columns.shape[1]))
    for at in range(clocks.size):
        clock, order, table, k, done = clocks[at], chains.order[at], table_at(chains.tables, at), clocks[at].k, 0
        A, table_s, n_columns, steps = table.A, table.values[S], order.size, plan.ends.size
        every = k * (n_columns - k)
        load(table.Q, C, P, k)
        if by_columns:
            for m in range(k):
                for l in range(columns.shape[1]):
                    support_columns[m, l] = columns[order[m], l]
        while done < budget and clock.step < steps:
            # A chain that cannot accept anything at this or any later temperature is at its end.
            # (Where the bound is not known it is NaN, and the comparison false.)
            if clock.lowest * plan.coldest[clock.step] > FROZEN:
                done, clock.t = done + plan.ends[-1] - clock.t, plan.ends[-1]
                while clock.step < steps:
                    end_step(order, clock, plan, output)
                break
            if clock.mode == TABLE and clock.built == 0:
                clock.built = 1
                if build_table(system, work, order, table, k):
                    load(table.Q, C, P, k)
                else:
                    clock.mode = SQUARE
            square, beta, ceiling = clock.mode == SQUARE, plan.betas[clock.chain % len(plan.betas), clock.step], 1.0
            n, first, lanes, t = draw_block(work, clock, plan, n_columns), 0, 0, -1
            # No flip has a Delta E below `lowest`, so a random number above this ceiling accepts none of them.
            if clock.lowest > 0.0:
                ceiling = np.exp(-beta * clock.lowest)
            while t + 1 < n:
                t += 1
                if uniform[t] > ceiling:
                    continue
                d = t - first
                if square and d >= lanes:
                    first, d, lanes = t, 0, min(clock.width, n - t)
                    for c in range(lanes):
                        ahead[c] = order[k + max(position[t + c], 0)] if k < n_columns else 0
                    if by_columns:
                        for c in range(lanes):
                            for l in range(columns.shape[1]):
                                ahead_columns[c, l] = columns[ahead[c], l]
                        # Whole sets, which BLAS likes; nobody reads the rows behind `lanes`.
                        np.dot(ahead_columns, support_columns.T, ahead_G)
                    else:
                        # Row by row of G, which lies together in memory; unsigned indices need no test.
                        for m in range(k):
                            row = np.uint64(order[m])
                            for c in range(lanes):
                                ahead_G[c, m] = G[row, ahead[c]]
                    # BLAS for whole sets only: fewer lanes are what is left of a block, or a choice for small k.
                    if lanes == LANES:
                        np.dot(ahead_G, P, ahead_W)
                    else:
                        for c in range(lanes):
                            for m in range(k):
                                total = 0.0
                                for l in range(k):
                                    total += P[m, l] * ahead_G[c, l]
                                ahead_W[c, m] = total
                    for c in range(lanes):
                        total = 0.0
                        for m in range(k):
                            total += ahead_G[c, m] * ahead_W[c, m]
                        ahead_s[c] = 1.0 - total
                        for b in range(q):
                            total = 0.0
                            for m in range(k):
                                total += ahead_G[c, m] * C[b, m]
                            ahead_R[c, b] = B[b, ahead[c]] - total
                i, place, delta = slot[t], position[t], 0.0
                leaves, enters = not sized or i < k, not sized or place >= 0
                p_inverse, w, s_inverse, j = 0.0, 0.0, 0.0, NOWHERE
                if leaves:
                    p_inverse = 1.0 / P[i, i]
                if enters:
                    j = np.int64(order[k + place])
                    s = ahead_s[d] if square else table_s[j]
                    if leaves:
                        w = ahead_W[d, i] if square else A[q + i, j]
                        s += w * w * p_inverse
                    if s * plan.inflation <= 1.0:
                        continue
                    s_inverse = 1.0 / s
                for b in range(q):
                    c_i[b], r[b] = 0.0, 0.0
                    if leaves:
                        c_i[b] = C[b, i] * p_inverse
                        delta += C[b, i] * c_i[b]
                    if enters:
                        r[b] = (ahead_R[d, b] if square else A[b, j]) + c_i[b] * w
                        delta -= r[b] * r[b] * s_inverse
                delta *= 0.5
                # The usual end of a cold flip, so nothing else comes first.
                size = k + int(enters) - int(leaves)
                if sized:
                    if not (leaves or enters) or not accepts(
                        uniform[t], exponent(plan, beta, clock.energy, delta, k, size)
                    ):
                        continue
                elif delta > tie and not accepts(uniform[t], beta * delta):
                    continue
                out = np.int64(order[i]) if leaves else NOWHERE
                if form.ruled and breaks_rules(system, table, out, j):
                    continue
                for m in range(k):
                    u[m], v[m] = P[i, m] if leaves else 0.0, 0.0
                if enters and square:
                    for m in range(k):
                        g[m] = ahead_G[d, m]
                        v[m] = ahead_W[d, m] - u[m] * (w * p_inverse)
                elif enters:
                    for m in range(k):
                        v[m] = A[q + m, j] - u[m] * (w * p_inverse)
                if enters:
                    v[i] = -1.0
                inflated = spread(P, k, i, u, v, p_inverse, s_inverse, plan.inflation)
                if inflated == np.inf:
                    continue
                # An added column comes behind the support; the last one takes the place of one that is dropped.
                other = k + place if enters else k - 1
                order[i], order[other] = order[other], order[i]
                if clock.error + EPSILON * inflated < DRIFT:
                    clock.error += EPSILON * inflated
                    new_energy = clock.energy + delta
                    if not square:
                        exchange(system, work, table, k, np.int64(i), out, j)
                        load(table.Q, C, P, size)
                    else:
                        if size > k:
                            u[k] = 0.0
                            for m in range(size):
                                P[m, k] = P[k, m] = 0.0
                        for b in range(q):
                            x = r[b] * s_inverse
                            for m in range(k):
                                C[b, m] -= c_i[b] * u[m] + x * v[m]
                            C[b, i] = x
                        for m in range(max(k, size)):
                            x, y = v[m] * s_inverse, u[m] * p_inverse
                            for l in range(max(k, size)):
                                P[m, l] += x * v[l] - y * u[l]
                        # Slot i is known in closed form; the sums above leave rounding that grows with the inflation.
                        for m in range(max(k, size)):
                            P[i, m] = -v[m] * s_inverse
                            P[m, i] = -v[m] * s_inverse
                        if size < k:  # the last column takes the slot that is free
                            for b in range(q):
                                C[b, i] = C[b, size]
                            for m in range(k):
                                P[i, m] = P[size, m]
                            for m in range(size):
                                P[m, i] = P[m, size]
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
                        if d + 1 < lanes:
                            for m in range(k):
                                beside += g[m] * u[m]
                            beside = (beside - g[i] * u[i]) * p_inverse + g[i]
                        for later in range(d + 1, lanes):
                            w = ahead_W[later, i]
                            h = ahead_h[later] + beside * w  # less the sum over the other slots
                            for m in range(k):
                                h -= g[m] * ahead_W[later, m]
                            x, y = h * s_inverse, w * p_inverse
                            for m in range(k):
                                ahead_W[later, m] -= y * u[m] + x * v[m]
                            ahead_W[later, i] = x
                            for b in range(q):
                                ahead_R[later, b] += c_i[b] * w - r[b] * x
                            ahead_s[later] += w * y - h * x
                            ahead_G[later, i] = ahead_h[later]
                elif rebuild(system, order, table.Q, size, plan.inflation):
                    # The rounding was used up; lanes ahead and the table, which came from the old Q, are given up.
                    new_energy, clock.error, clock.built = energy_at(form, order, table.Q, size), 0.0, 0
                    load(table.Q, C, P, size)
                    output.refreshes[clock.chain] += 1
                    lanes = d + 1
                else:
                    order[i], order[other] = order[other], order[i]
                    clock.built, n = 0, n if square else t + 1  # the table has lost its Q
                    continue
                if by_columns:
                    for l in range(columns.shape[1]):
                        support_columns[i, l] = columns[j, l]
                if form.ruled and (square or clock.built == 0):
                    if out != NOWHERE:
                        close(form, table, out, LEAVES)
                    if j != NOWHERE:
                        close(form, table, j, ENTERS)
                kind = FLIPPED if size == k else (ADDED if size > k else DROPPED)
                if size != k or not (square or clock.built):
                    n = t + 1
                k = clock.k = size
                book(order, chains.best[at], clock, output, clock.t + t, kind, new_energy, BETTER * form.yy)
                # So that adding n at the end counts the moves after this one; the ceiling of the old support is void.
                clock.quiet, ceiling = -(t + 1), 1.0
            # It looks at all flips, and is void with the next acceptance: only after a quarter as many refusals.
            if not (square or sized) and clock.built and np.isnan(clock.lowest) and 4 * (clock.quiet + n) > every:
                clock.lowest = smallest_change(system, table, order, k)
            end_block(order, clock, plan, output, n, not by_columns)
            done += n
        for m in range(k):
            for b in range(q):
                table.Q[b, m] = -C[b, m]
            for l in range(k):
                table.Q[q + m, l] = P[m, l]
    return done


@entry
def begin(system, chains, clocks, at, plan):
    """The first support of a chain, the first k columns of a random order that stay independent; how many there are."""
    form, order, clock, table = system.form, chains.order[at], clocks[at], table_at(chains.tables, at)
    Q, k, n, c, found = table.Q, clock.k, order.size, clock.chain, ZERO
    candidates, rest = np.empty(n, np.int32), k
    if system.orders.shape[0]:
        for m in range(n):
            candidates[m] = system.orders[c, m]
    else:
        draw_start(plan.keys[c, 0], plan.keys[c, 1], candidates)
    # Columns passed over go behind the support in the order drawn: places are part of an address.
    for m in range(n):
        j = np.int64(candidates[m])
        if found < k and extend(system, order, Q, found, j, plan.inflation):
            order[found] = j
            found += 1
        elif rest < n:
            # (Where fewer than k are found, the others do not all fit behind them; nobody walks from there.)
            order[rest] = j
            rest += 1
    if found == k:
        count_rules(form, table, order, k)
        for m in range(k):
            chains.best[at, m] = order[m]
        clock.energy = energy_at(form, order, Q, k)
        clock.best_energy, clock.lowest, clock.error = clock.energy, np.nan, 0.0
        clock.t, clock.step, clock.mark, clock.mode, clock.quiet = 0, 0, 0, SQUARE, 0
        clock.window_flips, clock.window_accepted = plan.window, plan.window  # when it is hot, all are accepted
        choose_way(clock, plan, system.G.size > 0)
    return found


@entry
def survey(system, work, chains, delta, inflation):
    """Fill delta (k, N - k) with Delta E of exchanging slot i with the column at place j outside; False if singular."""
    k, outside = delta.shape
    order, table, form, q = chains.order[0], table_at(chains.tables, 0), system.form, len(system.form.B)
    u, v = np.empty(k), np.empty(k)
    if not build_table(system, work, order, table, k):
        return False
    for i in range(k):
        gains(form, table, k, i)
        cost, p = cost_of(form, table, i), table.Q[q + i, i]
        for place in range(outside):
            j = np.int64(order[k + place])
            w, change = table.A[q + i, j], 0.5 * (cost - table.values[GAIN, j])
            for m in range(k):
                u[m] = table.Q[q + i, m]
                v[m] = table.A[q + m, j] - u[m] * (w / p)
            v[i] = -1.0
            s_inverse = 1.0 / (table.values[S, j] + w * w / p)
            refused = table.values[GAIN, j] < 0.0 or (form.ruled and breaks_rules(system, table, np.int64(order[i]), j))
            if refused or spread(table.Q[q:], k, i, u, v, 1.0 / p, s_inverse, inflation) == np.inf:
                change = np.inf
            delta[i, place] = 0.0 if abs(change) <= TIE * form.yy else change
    return True


@entry
def decide(u, z):
    """Whether the random number u accepts a flip of beta Delta E = z."""
    return accepts(u, z)


# Called from Python ---------------------------------------------------------------------------------------------------


def new_output(chains: int, steps: int, k: int, *, record: bool) -> Output:
    """Where steps are written."""
    shape, kept = (chains, steps), (chains, steps) if record else (0, 0)
    return Output(
        np.zeros(shape), np.zeros(shape, np.int64), np.zeros((chains, k), np.int64), np.zeros((chains, k), np.int64),
        np.zeros(chains), np.zeros(chains, np.int64), np.zeros((*kept, k), np.int32), np.zeros(kept),
        np.zeros((chains, 3), np.int64),
    )  # fmt: skip


class Walks:
    """Chains with these keys (chains, 2) on one problem; parts of them may run in threads of their own.

    `k` is their size; with `sizes` (K + 2,), and `offset` or `mixture` (see `Plan`), they walk over sizes up to K and
    begin with k.
    """

    def __init__(
        self, form: Form, k: int, keys: NDArray[np.uint32], way: str = "auto", *,
        sizes: Floats | None = None, offset: float = 0.0, inflation: float = INFLATION,
        mixture: Mixture = NO_MIXTURE,
    ) -> None:  # fmt: skip
        self._form, self._k, self._keys = form, k, keys
        self._room = k if sizes is None else sizes.size - 1
        kernel_form, none = form_of(form), np.empty((0, 0))
        orders = np.zeros((len(keys) if kernel_form.ruled else 0, form.n_columns), np.int32)
        with one_blas_thread():  # the last bits of a QR must not depend on the number of threads
            for c in range(len(orders)):
                orders[c] = first_order(form, k, keys[c])
        needs = np.searchsorted(kernel_form.needs[:, 0], np.arange(form.n_columns + 1))
        self._system = System(
            form.matrix if form.dense else none, none if form.dense else form.columns, kernel_form, needs, orders
        )
        typical = max(k, min(self._room, 8))
        flip_ns = flip_nanoseconds(form, typical)
        # Cost model: what an acceptance takes in the table, where a row of G may have to be computed, in flips.
        n_rows = 0 if form.dense else form.n_rows
        cost = form.n_columns * (1.5 + 0.35 * typical + n_rows / 4.0) / flip_ns
        # A window is long enough to see a rate at which the table pays.
        how = WAYS.index(way), cost, int(max(_WINDOW, 2.0 * cost))
        self._weight = (np.zeros(0) if sizes is None else sizes), offset, inflation, *how, mixture
        self._slice = int(_SLICE_NS / flip_ns) + 1

    def _begun(self, numbers: range, plan: Plan) -> tuple[System, Workspace, Chains, NDArray[Any]]:
        """Memory of some chains at their first supports, and where they stand."""
        n, targets = self._form.n_columns, len(self._system.form.B)
        chains, clocks = new_chains(len(numbers), self._room, n, targets), np.zeros(len(numbers), CLOCK)
        for at, number in enumerate(numbers):
            clocks[at]["chain"], clocks[at]["k"] = number, self._k
            found = begin(self._system, chains, clocks, at, plan)
            if found < self._k:
                raise RankTooSmall(self._k, found, self._form.what)
        return self._system, new_workspace(n, dense=self._form.dense), chains, clocks

    def chains(
        self, betas: Floats, flips: NDArray[np.int64], output: Output, first: int, last: int, stop: list[bool],
        tick: Tick,
    ) -> None:  # fmt: skip
        """Chains first to last - 1 into the output, unless `stop` gets an item."""
        coldest = np.minimum.accumulate(betas[::-1])[::-1].copy()
        plan = Plan(betas[None], np.cumsum(flips), coldest, self._keys, *self._weight)
        for c in range(first, last):
            memory = self._begun(range(c, c + 1), plan)
            clock, chains = memory[3][0], memory[2]
            while clock["step"] < plan.ends.size:
                tick(int(walk(*memory, plan, output, self._slice)))
                if stop:
                    return
            if self._room > self._k:
                continue
            # Free of what rounding added flip by flip, and of what bordering an inverse adds.
            support, form = chains.order[0, : self._k], self._form
            columns, B = np.zeros((0, 0)) if form.dense else form.columns[support], form.B[:, support]
            G = form.matrix[np.ix_(support, support)] if form.dense else columns @ columns.T
            G[np.diag_indices(self._k)] = form.diagonal[support]
            output.final_energy[c] = 0.5 * (form.yy - float(np.vdot(np.linalg.solve(G, B.T), B.T)))
            output.support[c], output.best_support[c] = support, chains.best[0]

    def ladder(self, plan: LadderPlan, which: int) -> LadderResult:
        """The walkers of one ladder, who walk and trade places."""
        n, first, rounds, k = plan.betas.size, which * plan.betas.size, plan.rounds, plan.k
        # Temperatures come round by round, so that no walker may be taken for frozen: the coldest is 0.
        ends, heat = np.arange(1, rounds + 1) * plan.flips, np.zeros((n, rounds))
        walk_plan = Plan(heat, ends, np.zeros(rounds), self._keys, *self._weight)
        output = new_output(len(self._keys), rounds, k, record=False)
        memory = self._begun(range(first, first + n), walk_plan)
        chains, clocks = memory[2:]

        def walk_all(round_: int, betas: Floats) -> tuple[NDArray[np.int32], Floats, NDArray[np.int64]]:
            heat[:, round_] = betas
            walk(*memory, walk_plan, output, plan.flips)
            return np.sort(chains.order[:, :k], axis=1), clocks["energy"], output.accepted[first : first + n, round_]

        return run_ladder(plan, which, walk_all)


def flip_energies(form: Form, order: NDArray[np.int64], k: int) -> Floats:
    """Delta E (k, N - k) of every flip from the support order[:k]; infinite where the flip is refused."""
    n, delta = form.n_columns, np.full((k, form.n_columns - k), np.inf)
    system = Walks(form, k, np.zeros((0, 2), np.uint32))._system
    chains = new_chains(1, k, n, len(system.form.B))
    chains.order[0] = order
    survey(system, new_workspace(n, dense=form.dense), chains, delta, INFLATION)
    return delta
