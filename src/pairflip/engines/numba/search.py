r"""Path, descent and kicks: how supports are searched with the moves of the table.

A descent makes the best of all exchanges until none lowers the energy. The path has a support of every size, each from
its neighbour with a descent: upwards the best column is added, downwards the one that is missed least leaves. A chain
descends from its first support, then kicks: some columns of one of the lowest minima it knows leave, as many enter (at
random, or the best ones, or the best ones of a random half of all columns), and it descends again. Random numbers are
addressed by (key, round, place), so a chain is the same wherever it is walked.

The functions here only choose and call moves. Compiled (`walk_path`, `walk_rounds`) they run on the matrix G; as they
stand, in Python, on anything whose item j is row j of G, for tables so wide that G does not fit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import uint64
from numba.extending import register_jitable

from pairflip.engines.numba.compile import apart, entry
from pairflip.engines.numba.draws import HALF, philox
from pairflip.engines.numba.table import (
    CLOSED,
    STATE,
    SUPPORT,
    S,
    add,
    best_addition,
    best_flip,
    cheapest_removal,
    empty,
    energy,
    remove,
)
from pairflip.least_squares import SINGULAR
from pairflip.philox import KICK_ADD, KICK_DROP, KICK_FILL, STREAM_KICKS

driver: Any = register_jitable(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
RANDOM, BEST, HALF_BEST = 0, 1, 2
WHAT, DROP, FILL, ADD = 0, KICK_DROP, KICK_FILL, KICK_ADD
LOWER = 1e-12
"""A flip is made if it lowers the energy by more than this fraction of y'y, which is rounding."""
SAME = 1e-10
"""Two minima are the same if their energies differ by less than this fraction."""
REFRESH = 50
"""Exchanges after which the table is computed anew where columns are nearly dependent."""
DRIFT = 1e4
"""Rounding, in units of the machine precision, up to which it never is."""


class Rounds(NamedTuple):
    """Plan and memory of a chain: its key (2,), the fewest and most columns that leave in a kick, and its minima.

    `pool` (P, k) and `levels` (P,) are the minima and their energies, in the order in which they were found; `fresh`
    (rounds,) the energies that random starts reached; `counts` (2,) how many there are of both. `allowed` (N,) and
    `target` (k,) are memory for the kick under way.
    """

    key: Any
    least: int
    most: int
    pool: Any
    levels: Any
    fresh: Any
    counts: Any
    allowed: Any
    target: Any


@apart
def draw(key, round_, part, place, n):
    """A whole number from 0 to n - 1 for one place of one part (what leaves, what enters) of a round."""
    word, _, _, _ = philox(
        (uint64(round_) << HALF) + uint64(place), uint64(STREAM_KICKS + part), uint64(key[0]), uint64(key[1])
    )
    return np.int64((word * uint64(n)) >> HALF)


@apart
def allow_half(key, round_, taken, allowed):
    """The random half of the columns that may enter a kicked support which has `taken` columns."""
    for j in range(allowed.size):
        allowed[j] = draw(key, round_, ADD + taken, j, 2)


@apart
def same_columns(a, b, k):
    """Whether two arrays have the same k columns, in any order."""
    for m in range(k):
        found = False
        for l in range(k):
            found = found or a[m] == b[l]
        if not found:
            return False
    return True


@apart
def find(columns, n, j):
    """The place of j among the first n of `columns`, or -1."""
    for m in range(n):
        if columns[m] == j:
            return m
    return -1


@apart
def drifted(table):
    """Whether the table has to be computed anew."""
    return table.values[STATE, 0] >= REFRESH and table.values[STATE, 1] > DRIFT


@driver
def go_to(G, form, table, k, target, n):
    """The table of the first n columns of `target`, from that of a support of k; how many could be taken.

    Columns that lack one they need leave with it. A column may be closed until another, which it needs, is there: those
    left out are asked again while some enter.
    """
    if drifted(table):
        k = 0
    before = k + 1
    while k < before:
        before = k
        for i in range(before - 1, -1, -1):
            j = table.columns[SUPPORT, i]
            if find(target, n, j) < 0 or table.columns[CLOSED, j] > 1:
                remove(form, table, k, i)
                k -= 1
    if k == 0:
        empty(form, table)
    before = -1
    while before < k < n:
        before = k
        for m in range(n):
            j = target[m]
            if table.columns[CLOSED, j] == 0 and table.values[S, j] > SINGULAR:
                add(form, table, k, j, G[j])
                k += 1
    return k


@driver
def descend(G, form, table, k, allowed):
    """The best of all exchanges until none lowers the energy."""
    for _ in range(200 + 10 * k):
        if drifted(table):
            target = table.columns[SUPPORT].copy()
            if go_to(G, form, table, k, target, k) < k:
                return
        slot, column = best_flip(form, table, k, LOWER * form.yy, allowed)
        if slot < 0:
            return
        remove(form, table, k, slot)
        add(form, table, k - 1, column, G[column])


@driver
def enter(G, form, table, k, j, most):
    """Add column j, and before it what it needs, as long as there are at most `most`; the new number of columns."""
    support = table.columns[SUPPORT]
    while k < most and table.columns[CLOSED, j] > 0:
        lacking = -1
        for n in range(form.needs.shape[0]):
            if form.needs[n, 0] == j and form.needs[n, 1] >= 0 and find(support, k, form.needs[n, 1]) < 0:
                lacking = form.needs[n, 1]
        if lacking < 0 or table.columns[CLOSED, lacking] > 0 or table.values[S, lacking] <= SINGULAR or k + 1 == most:
            return k
        add(form, table, k, lacking, G[lacking])
        k += 1
    if k < most and table.columns[CLOSED, j] == 0 and table.values[S, j] > SINGULAR:
        add(form, table, k, j, G[j])
        k += 1
    return k


@driver
def fill(G, form, table, k, size, rounds, round_, kind, avoid):
    """Columns enter until there are `size`; how many there are in the end.

    At random: columns that just left (the first `avoid` of `target`) do not come back, and after many draws in vain the
    best column is taken.
    """
    n, place, allowed = table.columns.shape[1], 0, rounds.allowed
    while k < size:
        if kind == RANDOM and place < 4 * n + 64:
            j = draw(rounds.key, round_, FILL, place, n)
            place += 1
            if find(rounds.target, avoid, j) < 0:
                k = enter(G, form, table, k, j, size)
            continue
        if kind == HALF_BEST:
            allow_half(rounds.key, round_, k, allowed)
        j = best_addition(form, table, k, allowed)
        for l in range(n if kind == HALF_BEST else 0):
            allowed[l] = 1
        if j < 0 and kind == HALF_BEST:
            j = best_addition(form, table, k, allowed)
        if j < 0:
            return k
        add(form, table, k, j, G[j])
        k += 1
    return k


@apart
def remember(rounds, table, k, level):
    """Put a minimum into the pool unless it is there, in place of the highest one where the pool is full."""
    pooled, worst = rounds.counts[0], 0
    for m in range(pooled):
        if abs(rounds.levels[m] - level) <= SAME * abs(level) or same_columns(
            rounds.pool[m], table.columns[SUPPORT], k
        ):
            return
        if rounds.levels[m] > rounds.levels[worst]:
            worst = m
    if pooled < rounds.levels.size:
        worst = pooled
        rounds.counts[0] += 1
    elif level >= rounds.levels[worst]:
        return
    rounds.levels[worst] = level
    for m in range(k):
        rounds.pool[worst, m] = table.columns[SUPPORT, m]


@driver
def search_rounds(G, form, table, k, size, rounds, first, last):
    """Rounds `first` to `last` - 1 of a chain, from a table of k columns; the number of columns of the table after it.

    Round 0 descends from `target` if that is a support (its first column is not negative), otherwise from a random one;
    rounds start at random until the pool is full.
    """
    for round_ in range(first, last):
        given = round_ == 0 and rounds.target[0] >= 0
        anew = given or rounds.counts[0] < rounds.levels.size
        if given:
            k = go_to(G, form, table, k, rounds.target, size)
            k = fill(G, form, table, k, size, rounds, round_, BEST, 0)
        elif anew:
            k = go_to(G, form, table, k, rounds.target, 0)
            k = fill(G, form, table, k, size, rounds, round_, RANDOM, 0)
        else:
            leaving = rounds.least + draw(rounds.key, round_, WHAT, 1, rounds.most - rounds.least + 1)
            member = rounds.pool[draw(rounds.key, round_, WHAT, 0, rounds.counts[0])]
            for m in range(size):
                rounds.target[m] = member[m]
            for m in range(leaving):  # a shuffle brings those that leave to the front
                there = m + draw(rounds.key, round_, DROP, m, size - m)
                rounds.target[m], rounds.target[there] = rounds.target[there], rounds.target[m]
            k = go_to(G, form, table, k, rounds.target[leaving:], size - leaving)
            k = fill(G, form, table, k, size, rounds, round_, draw(rounds.key, round_, WHAT, 2, 3), leaving)
        if k == size:
            descend(G, form, table, k, rounds.allowed)
            level = energy(form, table, k)
            if anew:
                rounds.fresh[rounds.counts[1]] = level
                rounds.counts[1] += 1
            remember(rounds, table, k, level)
    return k


@driver
def search_path(G, form, table, k, last, supports, energies, allowed):
    """Go on with a pass from size k, whose table this is, to size `last`; (size reached, how many sizes got lower).

    Supports are rows of `supports` (K, K), energies (K,); where the neighbour leads to a higher energy than was known,
    the pass goes on from what was known.
    """
    lower = 0
    if k == 0:
        empty(form, table)
    while k != last:
        if k < last:
            j = best_addition(form, table, k, allowed)
            if j < 0:
                return k, lower
            add(form, table, k, j, G[j])
            k += 1
        else:
            remove(form, table, k, cheapest_removal(form, table, k))
            k -= 1
        if k == 0:
            break
        descend(G, form, table, k, allowed)
        level = energy(form, table, k)
        if level < energies[k - 1] * (1.0 - SAME):
            energies[k - 1] = level
            lower += 1
            for m in range(k):
                supports[k - 1, m] = table.columns[SUPPORT, m]
        elif level > energies[k - 1] * (1.0 + SAME):
            k = go_to(G, form, table, k, supports[k - 1], k)
    return k, lower


walk_rounds = entry(search_rounds)
walk_path = entry(search_path)
