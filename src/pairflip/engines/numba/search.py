r"""Path, descent and kicks: how supports are searched with the moves of the table.

A descent makes the best of all exchanges until none lowers the energy. The path has a support of every size, each from
its neighbour with a descent: upwards the best unit is added, downwards the one that is missed least leaves. A chain
descends from its first support, then kicks: some units of one of the lowest minima it knows leave, as many enter (at
random, or the best ones, or the best ones of a random half of all units), and it descends again. Random numbers are
addressed by (key, round, place), so a chain is the same wherever it is walked.

A unit is a column, or a group of columns: supports, sizes and all numbers k here are those of units.

The functions here only choose and call moves. Compiled (`walk_path`, `walk_rounds`) they run on the matrix G; as they
stand, in Python, on anything whose item j is row j of G, for tables so wide that G does not fit.
"""

from __future__ import annotations

from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numba import uint64

from pairflip.compiled import apart, entry
from pairflip.engines.numba.draws import below, draw
from pairflip.engines.numba.table import (
    CLOSED,
    SLOTS,
    STATE,
    SUPPORT,
    add,
    best_addition,
    best_flip,
    block_gain,
    cheapest_removal,
    empty,
    energy,
    is_open,
    remove,
    trace,
)
from pairflip.philox import KICK_ADD, KICK_DROP, KICK_FILL

NONE, BEST, HALF_BEST, KINDS = np.int64(0), np.int64(1), np.int64(2), np.int64(3)
RANDOM, LACKING_NONE = NONE, np.int64(-1)
WHAT, DROP, FILL, ADD = NONE, np.int64(KICK_DROP), np.int64(KICK_FILL), np.int64(KICK_ADD)
LOWER = 1e-12
"""A flip is made if it lowers the energy by more than this fraction of y'y, which is rounding."""
SAME = 1e-10
"""Two minima are the same if their energies differ by less than this fraction."""
LARGEST_SET = 4
"""Units that are tried together, a product and the factors it lacks, at most."""
DRIFT = 1e4
"""Rounding, in units of the machine precision, up to which a table is as good as new."""
GROWTH = 10.0
"""Beyond it, a table is computed anew when its rounding exceeds so many times what computing it anew costs."""


class Rounds(NamedTuple):
    """Plan and memory of a chain: its key (2,), the fewest and most units that leave in a kick, and its minima.

    `pool` (P, k) and `levels` (P,) are the minima and their energies, in the order in which they were found, `pooled`
    (1,) says how many there are. Rounds start at random until there are `starts` of them. `allowed` (U,) and `target`
    (k,) are memory for the kick under way.
    """

    key: Any
    least: int
    most: int
    pool: Any
    levels: Any
    pooled: Any
    starts: int
    allowed: Any
    target: Any


@apart
def draw_below(key, round_, part, place, n):
    """A whole number from 0 to n - 1 for one place of one part (what leaves, what enters) of a round."""
    return below(draw(key, round_, uint64(part), place)[0], n)


@apart
def allow_half(key, round_, taken, allowed):
    """The random half of the units that may enter a kicked support which has `taken` of them."""
    for j in range(allowed.size):
        allowed[j] = draw_below(key, round_, ADD + taken, j, HALF_BEST)


@apart
def same_columns(a, b, k):
    """Whether two arrays have the same k units, in any order."""
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
def drifted(form, table, k):
    """Whether the table has to be computed anew."""
    drift = table.values[STATE, 0]
    return drift > DRIFT and drift > GROWTH * trace(form, table, k)


@apart
def add_unit(G, form, table, k, u):
    """Unit u enters as number k: here, a column."""
    add(form, table, k, u, G[u])


@apart
def go_to(G, form, table, k, target, n):
    """The table of the first n units of `target`, from that of a support of k; how many could be taken.

    Units that lack one they need leave with it. A unit may be closed until another, which it needs, is there: those
    left out are asked again while some enter.
    """
    # Usually most units are in both supports: removing and adding a few costs less than building anew.
    if drifted(form, table, k):
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
            if is_open(form, table, j):
                add_unit(G, form, table, k, j)
                k += 1
    return k


@apart
def rebuild(G, form, table, k):
    """The table computed anew; how many units could be taken."""
    target = table.columns[SUPPORT].copy()
    k = go_to(G, form, table, NONE, target, k)
    table.values[STATE, 0] = 0.0
    return k


@apart
def descend(G, form, table, k, allowed):
    """The best of all exchanges until none lowers the energy; the number of units, fewer if they are dependent."""
    for _ in range(200 + 10 * k):  # rounding could lead round in a circle; no real descent is so long
        if drifted(form, table, k):
            k = rebuild(G, form, table, k)
        slot, unit = best_flip(form, table, k, LOWER * form.yy, allowed)
        if slot >= 0:
            remove(form, table, k, slot)
            add_unit(G, form, table, k - 1, unit)
        elif table.values[STATE, 0] > DRIFT:
            k = rebuild(G, form, table, k)  # without the rounding of what led here there may be a flip
        else:
            return k
    return k


@apart
def settle(G, form, table, k, size, allowed):
    """The best units enter until there are `size`, then a descent; how many units there are in the end.

    Where units turn out to be dependent, others take their place.
    """
    for _ in range(3):
        while k < size:
            j = best_addition(form, table, k, allowed)
            if j < 0:
                return k
            add_unit(G, form, table, k, j)
            k += 1
        k = descend(G, form, table, k, allowed)
        if k == size:
            break
    return k


@apart
def enter(G, form, table, k, j, most):
    """Add unit j, and before it what it needs, as long as there are at most `most`; the new number of units."""
    support = table.columns[SUPPORT]
    while k < most and table.columns[CLOSED, j] > 0:
        lacking = LACKING_NONE
        for n in range(form.needs.shape[0]):
            if form.needs[n, 0] == j and form.needs[n, 1] >= 0 and find(support, k, form.needs[n, 1]) < 0:
                lacking = form.needs[n, 1]
        if lacking < 0 or k + 1 == most or not is_open(form, table, lacking):
            return k
        add_unit(G, form, table, k, lacking)
        k += 1
    if k < most and is_open(form, table, j):
        add_unit(G, form, table, k, j)
        k += 1
    return k


@apart
def set_gain(G, form, table, k, columns):
    """Twice what some columns lower the energy by together, by their Schur block; -1 if they are dependent."""
    A, slots, q, d = table.A, table.columns[SLOTS], len(form.B), columns.size
    L, r = np.empty((d, d)), np.empty((q, d))
    for a in range(d):
        for t in range(q):
            r[t, a] = A[t, columns[a]]
        for b in range(a + 1):
            L[a, b] = G[columns[a], columns[b]]
            for m in range(k):
                L[a, b] -= G[columns[a], slots[m]] * A[q + m, columns[b]]
    return block_gain(L, r, d)


@apart
def best_set(G, form, table, k, units):
    """Write the best unit, behind the `units.size` - 1 units that it lacks, into `units`; False if there is none.

    A product whose factors say nothing by themselves is found only with them.
    """
    closed, support, size, best, n = table.columns[CLOSED], table.columns[SUPPORT], units.size, -1.0, 0
    trial = np.empty(size, np.int64)
    while n < form.needs.shape[0]:
        owner, lacking, may = form.needs[n, 0], 0, True
        while n < form.needs.shape[0] and form.needs[n, 0] == owner:
            needed = form.needs[n, 1]
            if needed < 0:
                may = False
            elif find(support, k, needed) < 0:
                may = may and closed[needed] == 0
                if lacking < size:
                    trial[lacking] = needed
                lacking += 1
            n += 1
        if may and lacking == size - 1 and closed[owner] == lacking:
            trial[lacking] = owner
            gain = set_gain(G, form, table, k, trial)
            if gain > best:
                best = gain
                for m in range(size):
                    units[m] = trial[m]
    return best > 0.0


@apart
def with_products(G, form, table, k, supports, energies, allowed):
    """Try products with their factors on smaller supports of the path; then the table is that of the lowest."""
    for extra in range(2, min(k, LARGEST_SET) + 1):
        units = np.zeros(extra, np.int64)
        # A product and its factors take `extra` places, so that they are tried on the best support so much smaller.
        at = go_to(G, form, table, k, supports[max(k - extra - 1, 0)], k - extra)
        if at == k - extra and best_set(G, form, table, at, units):
            for m in range(extra):
                at = enter(G, form, table, at, units[m], k)
            if at == k:
                at = settle(G, form, table, at, k, allowed)
        if at == k:
            keep(table, k, energy(form, table, k), supports, energies)
        k = go_to(G, form, table, at, supports[k - 1], k)
    return k


@apart
def keep(table, k, level, supports, energies):
    """Enter a support of the path if it is the lowest known of its size; whether it is."""
    if not level < energies[k - 1] * (1.0 - SAME):
        return False
    energies[k - 1] = level
    for m in range(k):
        supports[k - 1, m] = table.columns[SUPPORT, m]
    return True


@apart
def fill(G, form, table, k, size, rounds, round_, kind, avoid):
    """Units enter until there are `size`; how many there are in the end.

    At random: units that just left (the first `avoid` of `target`) do not come back, and after many draws in vain the
    best unit is taken.
    """
    n, place, allowed = rounds.allowed.size, 0, rounds.allowed
    while k < size:
        if kind == RANDOM and place < 4 * n + 64:
            j = draw_below(rounds.key, round_, FILL, place, n)
            place += 1
            if find(rounds.target, avoid, j) < 0:
                k = enter(G, form, table, k, j, size)
            continue
        # A random half of the units: the best of all would often be what has just left.
        if kind == HALF_BEST:
            allow_half(rounds.key, round_, k, allowed)
        j = best_addition(form, table, k, allowed)
        for l in range(n if kind == HALF_BEST else 0):
            allowed[l] = 1
        if j < 0 and kind == HALF_BEST:
            j = best_addition(form, table, k, allowed)
        if j < 0:
            return k
        add_unit(G, form, table, k, j)
        k += 1
    return k


@apart
def remember(rounds, table, k, level):
    """Put a minimum into the pool unless it is there, in place of the highest one where the pool is full."""
    pooled, worst = rounds.pooled[0], 0
    for m in range(pooled):
        # Equal energies are one minimum even with other columns: copies of a column must not fill the pool.
        same = abs(rounds.levels[m] - level) <= SAME * abs(level)
        if same or same_columns(rounds.pool[m], table.columns[SUPPORT], k):
            return
        if rounds.levels[m] > rounds.levels[worst]:
            worst = m
    if pooled < rounds.levels.size:
        worst = pooled
        rounds.pooled[0] += 1
    elif level >= rounds.levels[worst]:
        return
    rounds.levels[worst] = level
    for m in range(k):
        rounds.pool[worst, m] = table.columns[SUPPORT, m]


@entry
def walk_rounds(G, form, table, k, size, rounds, first, last):
    """Rounds `first` to `last` - 1 of a chain, from a table of k units; the number of units of the table after it.

    Round 0 descends from `target` if that is a support (its first unit is not negative). Rounds start at random until
    enough minima are known; then they kick.
    """
    for round_ in range(first, last):
        given = round_ == 0 and rounds.target[0] >= 0
        if given:
            k = go_to(G, form, table, k, rounds.target, size)
            k = fill(G, form, table, k, size, rounds, round_, BEST, NONE)
        elif rounds.pooled[0] < rounds.starts:
            k = go_to(G, form, table, k, rounds.target, NONE)
            k = fill(G, form, table, k, size, rounds, round_, RANDOM, NONE)
        else:
            leaving = rounds.least + draw_below(rounds.key, round_, WHAT, BEST, rounds.most - rounds.least + 1)
            member = rounds.pool[draw_below(rounds.key, round_, WHAT, NONE, rounds.pooled[0])]
            for m in range(size):
                rounds.target[m] = member[m]
            for m in range(leaving):  # a shuffle brings those that leave to the front
                there = m + draw_below(rounds.key, round_, DROP, m, size - m)
                rounds.target[m], rounds.target[there] = rounds.target[there], rounds.target[m]
            k = go_to(G, form, table, k, rounds.target[leaving:], size - leaving)
            k = fill(
                G, form, table, k, size, rounds, round_, draw_below(rounds.key, round_, WHAT, HALF_BEST, KINDS), leaving
            )
        if k == size:
            k = settle(G, form, table, k, size, rounds.allowed)
        if k == size:
            remember(rounds, table, k, energy(form, table, k))
    return k


@entry
def walk_path(G, form, table, k, last, supports, energies, allowed):
    """Go on with a pass from size k, whose table this is, to size `last`; (size reached, how many sizes got lower).

    Supports are rows of `supports` (K, K), energies (K,); where the neighbour leads to a higher energy than was known,
    the pass goes on from what was known.
    """
    lower = 0
    if k == 0:
        empty(form, table)
    while k != last:
        size = k + 1 if k < last else k - 1
        if size < k:
            remove(form, table, k, cheapest_removal(form, table, k))
            k -= 1
        k, before = settle(G, form, table, k, size, allowed), energies[size - 1]
        if k == size:
            level = energy(form, table, k)
            # A pass goes on from the lowest support known, which may be that of an earlier pass.
            if not keep(table, k, level, supports, energies) and level > before * (1.0 + SAME):
                k = go_to(G, form, table, k, supports[k - 1], k)
                if k < size:  # rounding lets not all of its units enter again
                    k = settle(G, form, table, k, size, allowed)
        if k < size:  # no other unit can enter
            return (go_to(G, form, table, k, supports[size - 2], size - 1) if size > 1 else 0), lower
        if form.needs.shape[0] > 0:
            k = with_products(G, form, table, k, supports, energies, allowed)
        lower += int(energies[k - 1] < before)
    return k, lower


@cache
def _scope() -> dict[str, Any]:
    """The names of this module, with compiled moves that Python can call."""
    return {name: entry(each.py_func) if hasattr(each, "py_func") else each for name, each in globals().items()}


def in_python(**replaced: Any) -> dict[str, Any]:
    """The functions of this module as Python runs them, with others in place of some of them."""
    scope = {**_scope(), **replaced}
    walks = (
        add_unit, go_to, drifted, rebuild, descend, settle, enter, best_set, with_products, fill, keep, remember,
        walk_rounds, walk_path,
    )  # fmt: skip
    for function in walks:
        if function.py_func.__name__ not in replaced:
            scope[function.py_func.__name__] = FunctionType(function.py_func.__code__, scope)
    return scope
