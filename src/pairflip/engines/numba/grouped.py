r"""Descents in whole groups of columns, compiled: the best exchange of two units, from the Gram matrix of their bases.

With P = inv(G_SS) over all columns of the support, :math:`W = P G_S`, x = P b_S, :math:`R = b - G_S^T x` and the blocks
:math:`C_h = G_{hh} - G_{hS} W_{Sh}`, and with :math:`P_{ii} = L_i L_i^T` the block of slot i, the flip of slot i and
unit h changes the energy by

.. math:: \Delta E = \tfrac12 \left(|c_i|^2 - r^T (C_h + V_{ih}^T V_{ih})^{-1} r\right), \quad
          V_{ih} = L_i^{-1} W_{ih}, \quad c_i = L_i^{-1} x_i, \quad r = R_h + V_{ih}^T c_i .

The small systems are solved by Cholesky factors, whose smallest pivot says how much of a unit is independent. Rounding
is judged as for several targets (`several`): where the Gram matrix cannot tell, the answer is DOUBT and the columns
decide (`grouped_search`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.numba.cholesky import (
    CALM,
    DOUBT,
    GRAY,
    LOST,
    MINIMUM,
    SEATED,
    THIN,
    add_pivot,
    invert,
    optimistic,
)
from pairflip.engines.numba.compile import entry, kernel, template
from pairflip.engines.numba.draws import WHAT, below, draw, draw_start, mix, move_out


class Grouped(NamedTuple):
    """The problem: `G` (D, D) with identity blocks, `b` (D,), where units begin `start` (U + 1,), `yy`."""

    G: Any
    b: Any
    start: Any
    yy: float


class GroupedPlace(NamedTuple):
    """Memory of a search, for up to k units of K columns together.

    `support` (k,); `columns` (K,): those of the support, slot by slot from `slot` (k + 1,) on; `P`, `L` (K, K); `rows`,
    `W`, `V` (K, D); `x`, `c` (K,); `R` (D,); `C`: the blocks C_h, one after the other from `block` (U + 1,) on; `T`
    (w, w), `t`, `z` (w,) for the widest unit; `inside` (U,): 1 for units that cannot enter; `order` (U,).
    """

    support: Any
    columns: Any
    slot: Any
    P: Any
    L: Any
    rows: Any
    W: Any
    V: Any
    x: Any
    c: Any
    R: Any
    C: Any
    block: Any
    T: Any
    t: Any
    z: Any
    inside: Any
    order: Any


def new_place(form: Grouped, k: int) -> GroupedPlace:
    """Memory for supports of up to k units."""
    widths = np.diff(form.start)
    n, d = widths.size, int(form.start[-1])
    most, wide = int(np.sort(widths)[::-1][:k].sum()), int(widths.max(initial=1))
    block = np.concatenate([[0], np.cumsum(widths**2)]).astype(np.int64)
    square, table = (most, most), (most, d)
    return GroupedPlace(
        support=np.zeros(k, np.int64), columns=np.zeros(most, np.int64), slot=np.zeros(k + 1, np.int64),
        P=np.zeros(square), L=np.zeros(square), rows=np.zeros(table), W=np.zeros(table), V=np.zeros(table),
        x=np.zeros(most), c=np.zeros(most), R=np.zeros(d), C=np.zeros(int(block[-1])), block=block,
        T=np.zeros((wide, wide)), t=np.zeros(wide), z=np.zeros(wide), inside=np.zeros(n, np.int8),
        order=np.zeros(n, np.int64),
    )  # fmt: skip


@kernel
def lay_out(form, place, k):
    """The columns of the support, slot by slot; how many there are."""
    at = 0
    for i in range(k):
        place.slot[i] = at
        for column in range(form.start[place.support[i]], form.start[place.support[i] + 1]):
            place.columns[at] = column
            at += 1
    place.slot[k] = at
    return at


@kernel
def factor_slot(place, i, T):
    """The Cholesky factor of the block P_ii into T, and c_i = inv(L_i) x_i."""
    first, width = place.slot[i], place.slot[i + 1] - place.slot[i]
    for a in range(width):
        for b in range(a + 1):
            t = place.P[first + a, first + b]
            for l in range(b):
                t -= T[a, l] * T[b, l]
            T[a, b] = np.sqrt(t) if a == b else t / T[b, b]
        t = place.x[first + a]
        for l in range(a):
            t -= T[a, l] * place.c[first + l]
        place.c[first + a] = t / T[a, a]


@template
def build(form, place, k):
    """All that flips are made of, at the support; whether the Gram matrix can be relied on."""
    G, b, d = form.G, form.b, form.b.size
    K = lay_out(form, place, k)
    for at in range(K):
        if not add_pivot(G, place.L, place.columns, at, place.columns[at]) > 0.5 / CALM:
            return False
    if invert(place.L, place.P, K) > CALM:
        return False
    R, rows, W, V = place.R, place.rows, place.W, place.V
    for j in range(d):
        R[j] = b[j]
    for at in range(K):
        G_at, rows_at = G[place.columns[at]], rows[at]
        for j in range(d):
            rows_at[j] = G_at[j]
        total = 0.0
        for l in range(K):
            total += place.P[at, l] * b[place.columns[l]]
        place.x[at] = total
    for at in range(K):
        W_at, rows_at, x = W[at], rows[at], place.x[at]
        for j in range(d):
            W_at[j] = 0.0
            R[j] -= rows_at[j] * x
        for l in range(K):
            p, rows_l = place.P[at, l], rows[l]
            for j in range(d):
                W_at[j] += p * rows_l[j]
    for h in range(form.start.size - 1):
        first, width, C = form.start[h], form.start[h + 1] - form.start[h], place.block[h]
        for u in range(width):
            for v in range(u + 1):
                t = G[first + u, first + v]
                for l in range(K):
                    t -= rows[l, first + u] * W[l, first + v]
                place.C[C + u * width + v] = t
    for i in range(k):
        factor_slot(place, i, place.T)
        for a in range(place.slot[i + 1] - place.slot[i]):
            at = place.slot[i] + a
            V_at, W_at, scale = V[at], W[at], 1.0 / place.T[a, a]
            for j in range(d):
                V_at[j] = W_at[j]
            for l in range(a):
                t, V_l = place.T[a, l], V[place.slot[i] + l]
                for j in range(d):
                    V_at[j] -= t * V_l[j]
            for j in range(d):
                V_at[j] *= scale
    return True


@kernel
def solve_small(T, t, z, width, yy):
    """r' inv(A) r of A in the lower part of T and r in t; the smallest pivot; the most that rounding leaves open.

    A pivot that is nothing ends it: the unit depends on the others.
    """
    gain, might, least = 0.0, 0.0, np.inf
    for a in range(width):
        for b in range(a):
            s = T[a, b]
            for l in range(b):
                s -= T[a, l] * T[b, l]
            T[a, b] = s / T[b, b]
        pivot, r = T[a, a], t[a]
        for l in range(a):
            pivot -= T[a, l] * T[a, l]
            r -= T[a, l] * z[l]
        least = min(least, pivot)
        if not pivot > 5.0 * LOST:
            return gain, least, might
        T[a, a] = np.sqrt(pivot)
        z[a] = r / T[a, a]
        gain += z[a] * z[a]
        might += optimistic(r * r, pivot, yy)
    return gain, least, might


@kernel
def gain_of(form, place, i, h):
    """What unit h lowers 2 E by once slot i is empty (-1: beside all), see `solve_small`."""
    first, width, C = form.start[h], form.start[h + 1] - form.start[h], place.block[h]
    for u in range(width):
        place.t[u] = place.R[first + u]
        for v in range(u + 1):
            place.T[u, v] = place.C[C + u * width + v]
    if i >= 0:
        for at in range(place.slot[i], place.slot[i + 1]):
            V_at, c = place.V[at], place.c[at]
            for u in range(width):
                place.t[u] += V_at[first + u] * c
                for v in range(u + 1):
                    place.T[u, v] += V_at[first + u] * V_at[first + v]
    return solve_small(place.T, place.t, place.z, width, form.yy)


@template
def best_flip(form, place, k):
    """Slot, unit and what the best sure flip lowers 2 E by, and the most that an unsure one might."""
    slot, unit, best, might = -1, -1, -np.inf, -np.inf
    for i in range(k):
        lost = 0.0
        for at in range(place.slot[i], place.slot[i + 1]):
            lost += place.c[at] * place.c[at]
        for h in range(place.inside.size):
            if place.inside[h] == 0:
                gain, least, most = gain_of(form, place, i, h)
                if least >= THIN:
                    if gain - lost > best:
                        slot, unit, best = i, h, gain - lost
                elif least > 5.0 * LOST:
                    might = max(might, most - lost)
    return slot, unit, best, might


@kernel
def mark(place, k):
    """Which units are in the support."""
    for h in range(place.inside.size):
        place.inside[h] = 0
    for i in range(k):
        place.inside[place.support[i]] = 1


@entry
def walk_down(form, place, k, most):
    """Make the best flips, at most so many; MINIMUM, or DOUBT where the columns must decide how to go on."""
    mark(place, k)
    for _ in range(most):
        if not build(form, place, k):
            return DOUBT
        slot, unit, best, might = best_flip(form, place, k)
        if best > GRAY * form.yy:
            place.inside[place.support[slot]] = 0
            place.inside[unit] = 1
            place.support[slot] = unit
        elif max(best, might) > -GRAY * form.yy:
            return DOUBT
        else:
            return MINIMUM
    return DOUBT


@entry
def find_addition(form, place, k, barred):
    """The unit that lowers the energy of the first k most, none of the `barred`; -1 where the columns must decide."""
    mark(place, k)
    for h in barred:
        place.inside[h] = 1
    if not build(form, place, k):
        return -1
    unit, best, might = -1, -1.0, -1.0
    for h in range(place.inside.size):
        if place.inside[h] == 0:
            gain, least, most = gain_of(form, place, -1, h)
            if least >= THIN:
                if gain > best:
                    unit, best = h, gain
            elif least > 5.0 * LOST:
                might = max(might, most)
    return unit if best >= might else -1


@kernel
def seat(form, place, stays, k):
    """Units of `order` after the first `stays` of the support, each independent of those before; how many there are.

    Units that are `inside` already are passed over.
    """
    K = lay_out(form, place, stays)
    for at in range(K):
        add_pivot(form.G, place.L, place.columns, at, place.columns[at])
    seated = stays
    for h in place.order:
        if seated == k:
            break
        if place.inside[h] == 0:
            least, at = np.inf, K
            for column in range(form.start[h], form.start[h + 1]):
                if least > SEATED:
                    least = min(least, add_pivot(form.G, place.L, place.columns, at, column))
                    place.columns[at] = column
                    at += 1
            if least > SEATED:
                place.support[seated] = h
                seated, K = seated + 1, at
    return seated


@entry
def begin_at_random(form, place, k, key):
    """Seat the first units of the random order of a key; how many could be seated."""
    draw_start(key[0], key[1], place.order)
    mark(place, 0)
    return seat(form, place, 0, k)


@entry
def kick(form, place, k, key, round_, least, most):
    """Random units of the support leave; random ones enter, or (if few come back) the caller fills up.

    How many units are there then comes back; those that left stand behind the ones that stay, if none entered.
    """
    w0, w1, _, _ = draw(key, round_, WHAT, 0)
    mark(place, k)
    stays = move_out(place.support, k, least + below(w0, most - least + 1), key, round_)
    if stays and below(w1, 2) == 1:
        return stays
    mix(place.order, key, round_)
    return seat(form, place, stays, k)
