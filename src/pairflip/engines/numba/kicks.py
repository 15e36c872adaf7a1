r"""Descents and kicks: a chain that remembers its lowest minima and starts again from parts of them.

Round 0 descends from the chain's first support, a given or a random one. While fewer than `pool` minima are known, a
round starts from a random support; after that it kicks one of them: m of its columns leave, and as many enter, at
random, or the best ones, or the best ones of a random half of the columns. What a round reaches is kept in place of the
highest minimum of the pool if it is lower and differs from all others (energies within BETTER y'y are the same
minimum). All random numbers are addressed by (key, round, place), so a chain is the same wherever it is walked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import uint64

from pairflip.engines.base import BETTER
from pairflip.engines.numba.compile import entry, kernel, template
from pairflip.engines.numba.descent import step_down
from pairflip.engines.numba.draws import HALF, philox
from pairflip.engines.numba.growth import cannot_enter, find_addition, take_in
from pairflip.engines.numba.support_table import DONE, DOUBT, FLIP, MINIMUM, NEED_COLUMNS, copy_sorted, refresh, weigh
from pairflip.philox import KICK_ADD, KICK_DROP, KICK_FILL, STREAM_KICKS

KICKS = uint64(STREAM_KICKS)
WHAT, DROP, FILL, ADD = uint64(0), uint64(KICK_DROP), uint64(KICK_FILL), uint64(KICK_ADD)
RANDOM, BEST, HALF_BEST = 0, 1, 2
SEATING, ENTERING, DESCENDING, OVER = 0, 1, 2, 3


class Kicks(NamedTuple):
    """The plan of a chain: its key (2,), its first support (k,) or (0,), and how many columns kicks take.

    `rounds` is the number of kicks and random starts after the first descent.
    """

    key: Any
    start: Any
    rounds: int
    least: int
    most: int


class Pool(NamedTuple):
    """Lowest minima of the chain that is walked: supports (pool, k) in ascending order of columns, energies (pool,).

    `fresh` are the energies that random starts reached, `allowed` and `left` are memory for the kick under way.
    """

    supports: Any
    energies: Any
    fresh: Any
    allowed: Any
    left: Any


KICK = np.dtype(
    [
        (name, np.int64)
        for name in (
            "round",
            "phase",
            "pooled",  # minima in the pool
            "fresh",  # random starts so far, round 0 included
            "anew",  # 1: this round starts at random
            "drawn",  # random places used in this round
            "kind",  # how the kick under way fills up
            "size",  # columns of the chain's supports
        )
    ]
)
"""Where a chain stands between two calls."""


@kernel
def draw(key, round_, part, place):
    """Four words for one place of one part (what leaves, what enters, halves) of a round."""
    return philox((uint64(round_) << HALF) + uint64(place), KICKS + part, uint64(key[0]), uint64(key[1]))


@kernel
def below(word, n):
    """A whole number from 0 to n - 1."""
    return np.int64((word * uint64(n)) >> HALF)


@kernel
def move_out(support, k, leaving, key, round_):
    """Random columns go to the end of a support; how many stay."""
    stays = k
    for i in range(leaving):
        w0, _, _, _ = draw(key, round_, DROP, i)
        at = below(w0, stays)
        support[at], support[stays - 1] = support[stays - 1], support[at]
        stays -= 1
    return stays


@kernel
def mix(order, key, round_):
    """All columns in the random order of a round."""
    n = order.size
    for i in range(n):
        order[i] = i
    for i in range(n):
        w0, _, _, _ = draw(key, round_, FILL, i)
        there = i + below(w0, n - i)
        order[i], order[there] = order[there], order[i]


@kernel
def begin_round(table, state, clock, plan, pool):
    """Write the columns that stay into the first places of the support, and say how the others are found."""
    k, support = clock.size, table.support
    clock.drawn, clock.anew, clock.phase = 0, 1, ENTERING
    state.stale = 1
    for j in range(pool.left.size):
        pool.left[j] = 0
    if clock.round == 0 and plan.start.size:
        for m in range(k):
            support[m] = plan.start[m]
        state.k, clock.kind = k, BEST
        return
    if clock.pooled < pool.energies.size:
        state.k, clock.kind = 0, RANDOM
        return
    clock.anew = 0
    w0, w1, w2, _ = draw(plan.key, clock.round, WHAT, 0)
    member, leaving = below(w0, clock.pooled), plan.least + below(w1, plan.most - plan.least + 1)
    clock.kind = below(w2, 3)
    place = 0
    while leaving > 0:
        w0, _, _, _ = draw(plan.key, clock.round, DROP, place)
        column = pool.supports[member, below(w0, k)]
        place += 1
        if pool.left[column] == 0:
            pool.left[column] = 1
            leaving -= 1
    n = 0
    for m in range(k):
        column = pool.supports[member, m]
        if pool.left[column] == 0:
            support[n] = column
            n += 1
    state.k = n


@kernel
def find_random(table, state, clock, plan, pool):
    """FLIP (which column in the state), or DOUBT if no column can surely enter.

    Columns that just left do not come back, and those that would make the support singular are passed over; after many
    draws in vain the first column that can enter is taken.
    """
    n, first = table.r.size, 0
    while first < n:
        j, may = first, True
        if clock.drawn < 8 * n + 64:
            w0, _, _, _ = draw(plan.key, clock.round, FILL, clock.drawn)
            j = below(w0, n)
            may = pool.left[j] == 0
        if may and table.outside[j] > 0 and not cannot_enter(table, state, j):
            state.column = j
            return FLIP
        if clock.drawn < 8 * n + 64:
            clock.drawn += 1
        else:
            first += 1
    return DOUBT


@kernel
def allow_half(key, round_, taken, allowed):
    """The random half of the columns that may enter a kicked support which has `taken` columns."""
    n = allowed.size
    for block in range((n + 127) // 128):
        words = draw(key, round_, ADD + uint64(taken), block)
        for q in range(4):
            word = words[q]
            for bit in range(32):
                j = 128 * block + 32 * q + bit
                if j < n:
                    allowed[j] = (word >> uint64(bit)) & uint64(1)


@template
def find_best(form, table, state, clock, plan, pool):
    """FLIP (which column in the state) or DOUBT: the best of all columns, or of a random half, drawn for each anew."""
    half = clock.kind == HALF_BEST
    if half:
        allow_half(plan.key, clock.round, state.k, pool.allowed)
    while True:
        found = find_addition(form, table, state, pool.allowed if half else pool.allowed[:0])
        if found == MINIMUM and half:  # none of this half can enter
            half = False
        else:
            return FLIP if found == FLIP else DOUBT


@template
def enter(form, table, state, clock, plan, pool):
    """Add the next column: FLIP, or NEED_ROW or DOUBT where someone else must help first."""
    if clock.kind == RANDOM:
        found = find_random(table, state, clock, plan, pool)
    else:
        found = find_best(form, table, state, clock, plan, pool)
    if found == FLIP:
        found = take_in(form, table, state, state.column)
    if found == FLIP and clock.kind == RANDOM and clock.drawn < 8 * table.r.size + 64:
        clock.drawn += 1
    return found


@kernel
def end_round(energy, table, clock, plan, pool, better):
    """Keep the minimum that was reached if the pool has none like it and is not full, or has a higher one."""
    if clock.anew:
        pool.fresh[clock.fresh] = energy
        clock.fresh += 1
    worst, known = 0, False
    for m in range(clock.pooled):
        known = known or abs(pool.energies[m] - energy) <= better
        if pool.energies[m] > pool.energies[worst]:
            worst = m
    if clock.pooled < pool.energies.size and not known:
        worst = clock.pooled
        clock.pooled += 1
    elif known or energy >= pool.energies[worst]:
        worst = -1
    if worst >= 0:
        pool.energies[worst] = energy
        copy_sorted(table.support, clock.size, pool.supports, worst)
    clock.round += 1
    clock.phase = OVER if clock.round > plan.rounds else SEATING


@entry
def advance_chain(form, table, states, clocks, plan, pool, budget):
    """Go on with a chain for about `budget` scans; the answer says who must help before the next call.

    DONE: the chain is at its end. MINIMUM: the budget is used up. DOUBT: the columns must decide.
    """
    state, clock = states[0], clocks[0]
    better, until = BETTER * form.yy, state.scans + budget
    while state.scans < until:
        if clock.phase == OVER:
            return DONE
        if clock.phase == SEATING:
            begin_round(table, state, clock, plan, pool)
        if clock.phase == DESCENDING and state.at_minimum:
            end_round(state.energy, table, clock, plan, pool, better)
            state.at_minimum = 0
            continue
        if state.stale:
            status = refresh(form, table, state)
        elif clock.phase == ENTERING and state.k < clock.size:
            status = enter(form, table, state, clock, plan, pool)
        else:
            clock.phase = DESCENDING
            status = step_down(form, table, state)
            if status == MINIMUM:
                state.at_minimum = int(weigh(form, table, state))
                status = MINIMUM if state.at_minimum else NEED_COLUMNS
        if status != MINIMUM and status != FLIP:
            return status
    return MINIMUM
