r"""Moves between supports that keep rules, compiled: random supports, kicks, products brought in with their factors.

Columns that need others enter together with what they lack; columns whose factors leave go with them. A pair flip
cannot bring in a product of two columns that are not there: `include` tries that at a minimum. With T the support and m
columns more, :math:`P = G_{TT}^{-1}` and x = P B_T, the m columns that are missed least and that no other needs leave
one after the other, each at the cost

.. math:: |x_i|^2 / P_{ii}, \quad x \to x - P_i x_i / P_{ii}, \quad P \to P - P_i P_i^T / P_{ii} .
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import ANEW
from pairflip.engines.numba.compile import apart, entry, kernel
from pairflip.engines.numba.draws import draw_start
from pairflip.engines.numba.kicks import DROP, FILL, WHAT, below, draw, mix
from pairflip.engines.numba.ruled_columns import addition_by_columns, go_down_by_columns
from pairflip.engines.numba.rules import clash, fits, gather, is_needed
from pairflip.engines.numba.several import (
    BATCH,
    CALM,
    GRAY,
    MINIMUM,
    SEATED,
    add_pivot,
    best_addition,
    go_down,
    invert,
    mark,
    shut,
)

LEFT = 2
"""In `inside`: a column that has just left, and does not come back at random."""
BEST, INSERTED = 0, 2
KICK, SEAT, CHANGE, ADD, DESCEND = 0, 1, 2, 3, 4
FLIPS = 1000
"""Of a descent in one call, far more than it takes."""


class Wider(NamedTuple):
    """Memory for a support and a batch of columns more: `support`, `L`, `P`, `x`; `found` (k,), the best so far."""

    support: Any
    L: Any
    P: Any
    x: Any
    found: Any


def new_wider(largest: int, q: int) -> Wider:
    """Memory for supports of up to `largest` columns and a batch, with q targets."""
    wide = largest + BATCH
    square = np.zeros((wide, wide))
    return Wider(np.zeros(wide, np.int64), square, square.copy(), np.zeros((wide, q)), np.zeros(largest, np.int64))


@kernel
def enter(form, place, at, k, j):
    """Let column j and what it lacks into the support of the first `at`, if all may; how many there are then."""
    count = gather(form.rules, place.inside, j, place.batch)
    if count == 0 or at + count > k or not fits(form.rules, place.support, at, place.batch, count):
        return at
    for b in range(count):
        if not add_pivot(form.G, place.L, place.support, at + b, place.batch[b]) > SEATED:
            return at
        place.support[at + b] = place.batch[b]
    for b in range(count):
        place.inside[place.batch[b]] = 1
    return at + count


@apart
def seat_by_rules(form, place, stays, k):
    """Columns of `order` after the first `stays` of the support, as long as some may enter; how many there are."""
    for i in range(stays):
        add_pivot(form.G, place.L, place.support, i, place.support[i])
    at, before = stays, -1
    while before < at < k:  # what lacked a column may enter in the next turn
        before = at
        for j in place.order:
            if at < k and place.inside[j] == 0:
                at = enter(form, place, at, k, j)
    return at


@kernel
def leave(place, stays, at):
    """The column at a slot goes behind those that stay; how many stay then."""
    support = place.support
    place.inside[support[at]] = LEFT
    support[at], support[stays - 1] = support[stays - 1], support[at]
    return stays - 1


@apart
def leave_together(rules, place, stays):
    """Columns whose factors have left go, too; how many stay."""
    changed = True
    while changed:
        changed = False
        for i in range(stays - 1, -1, -1):
            lacks = False
            for at in range(rules.need_start[place.support[i]], rules.need_start[place.support[i] + 1]):
                lacks = lacks or place.inside[rules.need[at]] != 1
            if lacks:
                stays = leave(place, stays, i)
                changed = True
    return stays


@kernel
def insert(form, place, k, stays, key, round_):
    """A random column enters with what it lacks; what clashes with these leaves, and random ones if there are too many.

    How many columns are there then, and whether it entered.
    """
    rules, support = form.rules, place.support
    w0, _, _, _ = draw(key, round_, FILL, 0)
    j = below(w0, place.inside.size)
    count = gather(rules, place.inside, j, place.batch) if place.inside[j] == 0 else 0
    if count == 0 or count > k:
        return stays, False
    for i in range(stays - 1, -1, -1):
        for b in range(count):
            if i < stays and clash(rules, support[i], place.batch[b]):
                stays = leave(place, stays, i)
                break
    stays = leave_together(rules, place, stays)
    turn = 0
    while stays + count > k and turn < 8 * k:
        w0, _, _, _ = draw(key, round_, DROP, turn)
        slot = below(w0, stays)
        needed = is_needed(rules, support, stays, slot)
        for b in range(count):
            for at in range(rules.need_start[place.batch[b]], rules.need_start[place.batch[b] + 1]):
                needed = needed or rules.need[at] == support[slot]
        if not needed:
            stays = leave(place, stays, slot)
        turn += 1
    for i in range(stays):
        add_pivot(form.G, place.L, support, i, support[i])
    now = enter(form, place, stays, k, j)
    return now, now > stays


@apart
def change(form, place, k, key, round_, least, most):
    """Random columns of the support leave, with those that need them; or a random one enters, and what is in its way.

    Random ones follow, or (if few come back) the caller fills up. How many columns are there then comes back.
    """
    w0, w1, w2, _ = draw(key, round_, WHAT, 0)
    leaving, kind, stays, entered = least + below(w0, most - least + 1), below(w1, 4), k, False
    mark(form, place, k)
    if kind >= INSERTED:
        stays, entered = insert(form, place, k, stays, key, round_)
        kind = below(w2, 2)
    for i in range(0 if entered else leaving):
        if stays > 0:
            w2, _, _, _ = draw(key, round_, DROP, i)
            stays = leave(place, stays, below(w2, stays))
    stays = leave_together(form.rules, place, stays)
    if stays and kind == BEST:
        return stays
    mix(place.order, key, round_)
    return seat_by_rules(form, place, stays, k)


@kernel
def explained(form, support, k, x):
    """tr B_S' x, twice what a support lowers the energy by."""
    total = 0.0
    for i in range(k):
        for t in range(form.B.shape[1]):
            total += form.B[support[i], t] * x[i, t]
    return total


@kernel
def solve(form, wide, k):
    """P and x of the first k columns; whether the Gram matrix can be relied on."""
    for i in range(k):
        if not add_pivot(form.G, wide.L, wide.support, i, wide.support[i]) > 0.5 / CALM:
            return False
    if invert(wide.L, wide.P, k) > CALM:
        return False
    for i in range(k):
        for t in range(form.B.shape[1]):
            total = 0.0
            for l in range(k):
                total += wide.P[i, l] * form.B[wide.support[l], t]
            wide.x[i, t] = total
    return True


@kernel
def drop_least(form, wide, k):
    """The column that is missed least, of those that no other needs, leaves; what that costs (twice the energy)."""
    q, slot, least = form.B.shape[1], -1, np.inf
    for i in range(k):
        cost = 0.0
        for t in range(q):
            cost += wide.x[i, t] * wide.x[i, t]
        cost /= wide.P[i, i]
        if cost < least and not is_needed(form.rules, wide.support, k, i):
            slot, least = i, cost
    p, last, P = wide.P[slot, slot], k - 1, wide.P
    for i in range(k):
        if i != slot:
            share = P[i, slot] / p
            for t in range(q):
                wide.x[i, t] -= share * wide.x[slot, t]
            for l in range(k):
                if l != slot:
                    P[i, l] -= share * P[slot, l]
    wide.support[slot] = wide.support[last]  # the last one takes its place
    for t in range(q):
        wide.x[slot, t] = wide.x[last, t]
    for l in range(k):
        P[slot, l] = P[last, l]
    for l in range(k):
        P[l, slot] = P[l, last]
    return least


@apart
def best_inclusion(form, place, wide, k):
    """Bring in the column, with others that it lacks, that lowers the energy most; whether there was one."""
    mark(form, place, k)
    for i in range(k):
        wide.support[i] = place.support[i]
    if not solve(form, wide, k):
        return False
    now, found, best = explained(form, wide.support, k, wide.x), False, GRAY * form.yy
    for j in range(form.G.shape[0]):
        if place.inside[j] == 0 and place.missing[j] > 0:
            count = gather(form.rules, place.inside, j, place.batch)
            if count == 0 or count > k or not fits(form.rules, place.support, k, place.batch, count):
                continue
            for i in range(k):
                wide.support[i] = place.support[i]
            for b in range(count):
                wide.support[k + b] = place.batch[b]
            if not solve(form, wide, k + count):
                continue
            gain = explained(form, wide.support, k + count, wide.x) - now
            for m in range(count):
                gain -= drop_least(form, wide, k + count - m)
            if gain > best:
                found, best = True, gain
                for i in range(k):
                    wide.found[i] = wide.support[i]
    if found:
        for i in range(k):
            place.support[i] = wide.found[i]
    return found


@apart
def add(form, place, rows, k, barred):
    """The column that lowers the energy of the first k most, none of the `barred`; -1 where QR must decide."""
    column = best_addition(form, place, k, barred)
    return addition_by_columns(form, place, rows, k, barred) if column < 0 else column


@apart
def descend(form, place, wide, rows, k):
    """Down to a minimum that no product with its factors lowers; its energy, or infinity where QR must decide."""
    while True:
        left = form.yy
        if go_down(form, place, k, FLIPS) == MINIMUM:
            for i in range(k):
                for t in range(form.B.shape[1]):
                    left -= place.BS[i, t] * place.x[i, t] * np.sqrt(place.P[i, i])
        elif go_down_by_columns(form, place, rows, k, FLIPS) == MINIMUM:
            left = rows.left[0]
        else:
            return np.inf
        if form.rules.need.size == 0 or not best_inclusion(form, place, wide, k):
            return 0.5 * left


@apart
def seat_at_random(form, place, k, key0, key1):
    """Seat the first columns of the random order of a key that may stand together; how many could be seated."""
    draw_start(key0, key1, place.order)
    mark(form, place, 0)
    return seat_by_rules(form, place, 0, k)


@entry
def go(form, place, wide, rows, k, key, best, low, first, last, least, most, what):
    """Rounds of kicks and descents from `best`; the first that QR must judge, and whether it found something new.

    What is new has an energy below `low` as far as can be told here, and stands in the support; another round is one in
    which rounding might decide, or nothing could follow, and has to be done again by whoever can. The parts of a round
    can be asked for alone, all by one entry so that they are compiled once: to SEAT random columns (how many there
    are), to CHANGE the support as round `first` does (how many stay), to ADD a column to the first k, none of `best`
    (which), to DESCEND (whether that ended at a minimum).
    """
    if what == SEAT:
        return seat_at_random(form, place, k, key[0], key[1]), True
    if what == CHANGE:
        return change(form, place, k, key, first, least, most), True
    if what == ADD:
        return add(form, place, rows, k, best), True
    if what == DESCEND:
        return 0, np.isfinite(descend(form, place, wide, rows, k))
    for round_ in range(first, last):
        if round_ % ANEW == 0:
            w0, w1, _, _ = draw(key, round_, WHAT, 1)
            found, barred = seat_at_random(form, place, k, np.uint32(w0), np.uint32(w1)), best[:0]
        else:
            for i in range(k):
                place.support[i] = best[i]
            found, barred = change(form, place, k, key, round_, least, most), best
        while found < k:
            column = add(form, place, rows, found, barred)
            if column < 0:
                return round_, False
            place.support[found] = column
            found += 1
        energy = descend(form, place, wide, rows, k)
        if energy == np.inf:
            return round_, False
        if energy <= low + GRAY * form.yy:
            mark(form, place, k)
            known = True
            for i in range(k):
                known = known and place.inside[best[i]] == 1
            if not known:
                return round_, True
    return last, False


@entry
def open_columns(form, place, k, out):
    """Which columns (k + 1, n) may take the place of each of the first k, and (the last row) stand beside them."""
    mark(form, place, k)
    for slot in range(k + 1):
        shut(form, place, k, slot if slot < k else -1)
        for j in range(out.shape[1]):
            out[slot, j] = place.inside[j] == 0
