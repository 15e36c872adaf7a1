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
from pairflip.engines.numba.compile import entry, kernel
from pairflip.engines.numba.descent import (
    DOUBT,
    FLIP,
    MINIMUM,
    NEED_ROW,
    border,
    descend,
    energy_at,
    fill,
    has_row,
)
from pairflip.engines.numba.draws import HALF, philox
from pairflip.engines.numba.growth import add_column, find_addition
from pairflip.philox import KICK_ADD, KICK_DROP, KICK_FILL, STREAM_KICKS

KICKS = uint64(STREAM_KICKS)
DROP, FILL, ADD = uint64(KICK_DROP), uint64(KICK_FILL), uint64(KICK_ADD)
RANDOM, BEST, HALF_BEST = 0, 1, 2
SEATING, FILLING, ADDING, DESCENDING, OVER = 0, 1, 2, 3, 4
DONE = 9


class Kicks(NamedTuple):
    """The plan of some chains: keys (chains, 2), first supports (chains, k) or (0, k), and how many columns kicks take.

    `rounds` is the number of kicks and random starts after the first descent.
    """

    keys: Any
    starts: Any
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
            "chain",  # the chain that is walked now
            "last_chain",  # the chain to end before
            "round",  # its round
            "phase",
            "pooled",  # minima in the pool
            "fresh",  # random starts so far, round 0 included
            "anew",  # 1: this round starts at random
            "drawn",  # random places used in this round
            "kind",  # how the kick under way fills up
            "size",  # columns of the chains' supports
        )
    ]
)
"""Where a chain stands between two calls."""


@kernel
def draw(key0, key1, round_, part, place):
    """Four words for one place of one part (what leaves, what enters, halves) of a round."""
    return philox((uint64(round_) << HALF) + uint64(place), KICKS + part, uint64(key0), uint64(key1))


@kernel
def below(word, n):
    """A whole number from 0 to n - 1."""
    return int((word * uint64(n)) >> HALF)


@kernel
def begin_round(table, state, clock, plan, pool):
    """Write the columns that stay into the first places of the support, and say how the others are found."""
    c, k, support = clock.chain, clock.size, table.support
    key0, key1 = plan.keys[c, 0], plan.keys[c, 1]
    clock.drawn, clock.anew = 0, 1
    for j in range(pool.left.size):
        pool.left[j] = 0
    if clock.round == 0 and plan.starts.shape[0]:
        for m in range(k):
            support[m] = plan.starts[c, m]
        state.k, clock.kind = k, BEST
        return
    w0, w1, w2, _ = draw(key0, key1, clock.round, uint64(0), 0)
    if clock.pooled < pool.energies.size:
        state.k, clock.kind = 0, RANDOM
        return
    clock.anew = 0
    member, m_left = below(w0, clock.pooled), plan.least + below(w1, plan.most - plan.least + 1)
    clock.kind = below(w2, 3)
    place = 0
    while m_left > 0:
        w0, _, _, _ = draw(key0, key1, clock.round, DROP, place)
        column = pool.supports[member, below(w0, k)]
        place += 1
        if pool.left[column] == 0:
            pool.left[column] = 1
            m_left -= 1
    n = 0
    for m in range(k):
        column = pool.supports[member, m]
        if pool.left[column] == 0:
            support[n] = column
            n += 1
    state.k = n


@kernel
def enter_random(form, table, state, clock, plan, pool):
    """Add random columns until the support is full: MINIMUM, NEED_ROW, or DOUBT where only the columns can tell.

    Columns that just left do not come back.
    """
    c, n = clock.chain, table.r.size
    while state.k < clock.size:
        if clock.drawn >= 8 * n + 64:
            return DOUBT
        w0, _, _, _ = draw(plan.keys[c, 0], plan.keys[c, 1], clock.round, FILL, clock.drawn)
        j = below(w0, n)
        if table.outside[j] > 0 and pool.left[j] == 0:
            if not has_row(form, table, j):
                state.wanted = j
                return NEED_ROW
            if not add_column(form, table, state, j):
                return DOUBT
        clock.drawn += 1
    return MINIMUM


@kernel
def enter_best(form, table, state, clock, plan, pool):
    """Add the best columns (of all, or of a random half that is drawn anew for each) until the support is full."""
    c, n = clock.chain, table.r.size
    while state.k < clock.size:
        allowed = pool.allowed[:0]
        if clock.kind == HALF_BEST:
            allowed = pool.allowed
            for block in range((n + 127) // 128):
                words = draw(plan.keys[c, 0], plan.keys[c, 1], clock.round, ADD + uint64(state.k), block)
                for q in range(4):
                    word = words[q]
                    for bit in range(32):
                        j = 128 * block + 32 * q + bit
                        if j < n:
                            allowed[j] = (word >> uint64(bit)) & uint64(1)
        found = find_addition(form, table, state, allowed)
        if found != FLIP:
            return DOUBT
        if not has_row(form, table, state.column):
            state.wanted = state.column
            return NEED_ROW
        if not add_column(form, table, state, state.column):
            return DOUBT
    return MINIMUM


@kernel
def end_round(energy, table, clock, plan, pool, better):
    """Keep the minimum that was reached if the pool has none like it and is not full, or has a higher one."""
    k = clock.size
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
        ordered = np.sort(table.support[:k])
        for m in range(k):
            pool.supports[worst, m] = ordered[m]
    clock.round += 1
    clock.drawn = -1
    clock.phase = OVER if clock.round > plan.rounds else SEATING


@entry
def advance_chain(form, table, states, clocks, plan, pool, budget):
    """Go on with a chain for about `budget` scans; the status says who must help before the next call.

    DONE: the chain is at its end. MINIMUM: the budget is used up. DOUBT, NEED_ROW: see `descend`.
    """
    state, clock = states[0], clocks[0]
    better, until = BETTER * form.yy, state.scans + budget
    while clock.phase != OVER:
        if state.scans >= until:
            return MINIMUM
        if clock.phase == SEATING:
            if clock.drawn < 0:
                begin_round(table, state, clock, plan, pool)
            for m in range(state.k):
                if not has_row(form, table, table.support[m]):
                    state.wanted = table.support[m]
                    return NEED_ROW
            if border(form, table, state.k) < state.k:
                return DOUBT
            fill(form, table, state)
            clock.phase = FILLING if clock.kind == RANDOM else ADDING
        if clock.phase == FILLING:
            status = enter_random(form, table, state, clock, plan, pool)
            if status != MINIMUM:
                return status
            clock.phase = DESCENDING
        if clock.phase == ADDING:
            status = enter_best(form, table, state, clock, plan, pool)
            if status != MINIMUM:
                return status
            clock.phase = DESCENDING
        status = descend(form, table, state)
        if status != MINIMUM:
            return status
        end_round(energy_at(form, table, state.k), table, clock, plan, pool, better)
    return DONE


@entry
def end_round_at(energy, table, clocks, plan, pool, better):
    """End a round whose minimum was reached elsewhere."""
    end_round(energy, table, clocks[0], plan, pool, better)
