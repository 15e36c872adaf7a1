r"""Descents with several targets, compiled: the best flip of all, from the Gram matrix, until none lowers the energy.

With :math:`P = G_{SS}^{-1}`, :math:`W = P G_S`, x = P B_S (k, q), :math:`R = B - G_S^T x` (N, q) and s the Schur
complements, the flip of slot i and column j changes the energy by

.. math:: \Delta E = \tfrac12 \left(|c_i|^2 - |R_j + V_{ij} c_i|^2 / (s_j + V_{ij}^2)\right), \quad
          V_{ij} = W_{ij} / \sqrt{P_{ii}}, \quad c_i = x_i / \sqrt{P_{ii}} .

Everything is computed anew at every support, so that no rounding adds up. Where the Gram matrix cannot tell (a support
of large inflation, a column that nearly depends on the others, a change of energy near zero), the answer is DOUBT and
the columns decide (`several_search`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.numba.compile import entry, kernel, template
from pairflip.engines.numba.draws import draw_start
from pairflip.engines.numba.kicks import WHAT, below, draw, mix, move_out
from pairflip.engines.numba.rules import close, consider

MINIMUM, DOUBT = 0, 1
CALM = 1e4
"""Inflation up to which the Gram matrix is asked: Schur complements then have errors of some 1e-11."""
THIN = 1e-4
"""A column of which less than this is independent of the others is judged from the columns."""
LOST = 1e-11
"""What rounding may have changed of a Schur complement."""
GRAY = 1e-8
"""Changes of energy within this fraction of tr Y'Y are judged from the columns."""
SEATED = 1e-6
"""Random supports take columns of which at least this is independent of those before."""
BATCH = 8
"""Columns that enter together, because they need each other, at most."""


class Several(NamedTuple):
    """The problem: `G` (n, n), `B` (n, q), `yy`; `rules` for what may be chosen together, if it is `ruled`."""

    G: Any
    B: Any
    yy: float
    rules: Any
    ruled: bool


class Spot(NamedTuple):
    """Memory of a search, for up to K columns.

    `support` (K,); `P`, `L` (K, K); `rows`, `V`, `D` (K, n): rows of G, V above, and products c R'; `x` (K, q),
    `R` (n, q), `s`, `r2` (n,) with r2 the squared norms of R; `inside` (n,): 1 for columns that cannot enter;
    `clashes`, `only`, `missing` (n,) and `batch`: see `rules`.
    """

    support: Any
    L: Any
    P: Any
    rows: Any
    V: Any
    D: Any
    x: Any
    BS: Any
    R: Any
    s: Any
    r2: Any
    inside: Any
    order: Any
    clashes: Any
    only: Any
    missing: Any
    batch: Any


def new_spot(largest: int, n: int, q: int) -> Spot:
    """Memory for supports of up to `largest` of n columns, and q targets."""
    return Spot(
        support=np.zeros(largest, np.int64), L=np.zeros((largest, largest)), P=np.zeros((largest, largest)),
        rows=np.zeros((largest, n)), V=np.zeros((largest, n)), D=np.zeros((largest, n)), x=np.zeros((largest, q)),
        BS=np.zeros((largest, q)), R=np.zeros((n, q)), s=np.zeros(n), r2=np.zeros(n), inside=np.zeros(n, np.int8),
        order=np.zeros(n, np.int64), clashes=np.zeros(n, np.int64), only=np.zeros(n, np.int64),
        missing=np.zeros(n, np.int64), batch=np.zeros(min(n, BATCH), np.int64),
    )  # fmt: skip


@kernel
def invert(L, P, k):
    """P = inv(L L') of the first k; the largest diagonal element."""
    for a in range(k):  # inv(L) into the lower part of P
        for b in range(a, k):
            t = 1.0 if b == a else 0.0
            for l in range(a, b):
                t -= L[b, l] * P[l, a]
            P[b, a] = t / L[b, b]
    top = 0.0
    for a in range(k):
        for b in range(a, k):
            t = 0.0
            for l in range(b, k):
                t += P[l, a] * P[l, b]
            P[a, b] = t  # reads rows l >= b of columns a and b: those below the diagonal, not yet overwritten
        top = max(top, P[a, a])
    for a in range(k):
        for b in range(a):
            P[a, b] = P[b, a]
    return top


@kernel
def add_pivot(G, L, support, k, column):
    """Row k of the Cholesky factor for one column more; its squared pivot."""
    for a in range(k):
        t = G[column, support[a]]
        for l in range(a):
            t -= L[k, l] * L[a, l]
        L[k, a] = t / L[a, a]
    pivot = G[column, column]
    for l in range(k):
        pivot -= L[k, l] * L[k, l]
    L[k, k] = np.sqrt(max(pivot, 0.0))
    return pivot


@template
def build(form, place, k):
    """All that flips are made of, at the support; whether the Gram matrix can be relied on."""
    G, B, n, q = form.G, form.B, form.G.shape[0], form.B.shape[1]
    for i in range(k):
        if not add_pivot(G, place.L, place.support, i, place.support[i]) > 0.5 / CALM:
            return False
    if invert(place.L, place.P, k) > CALM:
        return False
    R, s, x, V, rows = place.R, place.s, place.x, place.V, place.rows
    for j in range(n):
        s[j] = G[j, j]
        for t in range(q):
            R[j, t] = B[j, t]
    for i in range(k):
        own, G_i, rows_i = place.support[i], G[place.support[i]], rows[i]
        for j in range(n):
            rows_i[j] = G_i[j]
        for t in range(q):
            place.BS[i, t] = B[own, t]
    for i in range(k):
        V_i = V[i]
        for j in range(n):
            V_i[j] = 0.0
        for l in range(k):
            p, rows_l = place.P[i, l], rows[l]
            for j in range(n):
                V_i[j] += p * rows_l[j]
        rows_i = rows[i]
        for j in range(n):
            s[j] -= rows_i[j] * V_i[j]
        for t in range(q):
            total = 0.0
            for l in range(k):
                total += place.P[i, l] * place.BS[l, t]
            x[i, t] = total
    for i in range(k):
        rows_i = rows[i]
        for j in range(n):
            g = rows_i[j]
            for t in range(q):
                R[j, t] -= g * x[i, t]
    for j in range(n):
        total = 0.0
        for t in range(q):
            total += R[j, t] * R[j, t]
        place.r2[j] = total
    for i in range(k):  # V and c in units of the root of P_ii
        d, V_i, D_i = 1.0 / np.sqrt(place.P[i, i]), V[i], place.D[i]
        for t in range(q):
            x[i, t] *= d
        for j in range(n):
            V_i[j] *= d
            total = 0.0
            for t in range(q):
                total += x[i, t] * R[j, t]
            D_i[j] = total
    return True


@kernel
def optimistic(square, s, yy):
    """The most that a column may gain, given what rounding leaves open."""
    top = np.sqrt(max(square, 0.0)) + LOST * np.sqrt(yy)
    return top * top / max(s - 2.0 * LOST, LOST)


@kernel
def mark(form, place, k):
    """Which columns are in the support, and what the rules say beside it."""
    for j in range(place.inside.size):
        place.inside[j] = 0
    for i in range(k):
        place.inside[place.support[i]] = 1
    if form.ruled:
        consider(form.rules, place.support, k, place.inside, place.clashes, place.only, place.missing)


@kernel
def shut(form, place, k, slot):
    """Mark what may not take the place of the column at `slot`; -1: what may not stand beside all."""
    close(form.rules, place.support, k, slot, place.inside, place.clashes, place.only, place.missing)


@template
def best_flip(form, place, k):
    """Slot, column and what the best sure flip lowers 2 E by, and the most that an unsure one might."""
    slot, column, best, might = -1, -1, -np.inf, -np.inf
    for i in range(k):
        if form.ruled:
            shut(form, place, k, i)
        lost = 0.0
        for t in range(form.B.shape[1]):
            lost += place.x[i, t] * place.x[i, t]
        V_i, D_i = place.V[i], place.D[i]
        for j in range(form.G.shape[0]):
            if place.inside[j] == 0:
                v = V_i[j]
                s = place.s[j] + v * v
                square = place.r2[j] + 2.0 * v * D_i[j] + v * v * lost
                if s >= THIN:
                    gain = square / s - lost
                    if gain > best:
                        slot, column, best = i, j, gain
                elif s > 5.0 * LOST:
                    might = max(might, optimistic(square, s, form.yy) - lost)
    return slot, column, best, might


@template
def go_down(form, place, k, most):
    """Make the best flips, at most so many; MINIMUM, or DOUBT where the columns must decide how to go on."""
    mark(form, place, k)
    for _ in range(most):
        if not build(form, place, k):
            return DOUBT
        slot, column, best, might = best_flip(form, place, k)
        if best > GRAY * form.yy:
            place.inside[place.support[slot]] = 0
            place.inside[column] = 1
            place.support[slot] = column
            if form.ruled:
                mark(form, place, k)
        elif max(best, might) > -GRAY * form.yy:
            return DOUBT
        else:
            return MINIMUM
    return DOUBT


@entry
def walk_down(form, place, k, most):
    """`go_down`."""
    return go_down(form, place, k, most)


@template
def best_addition(form, place, k, barred):
    """The column that lowers the energy of the first k most, none of the `barred`; -1 where the columns must decide."""
    mark(form, place, k)
    if form.ruled:
        shut(form, place, k, -1)
    for j in barred:
        place.inside[j] = 1
    if not build(form, place, k):
        return -1
    column, best, might = -1, -1.0, -1.0
    for j in range(form.G.shape[0]):
        if place.inside[j] == 0:
            if place.s[j] >= THIN:
                gain = place.r2[j] / place.s[j]
                if gain > best:
                    column, best = j, gain
            elif place.s[j] > 5.0 * LOST:
                might = max(might, optimistic(place.r2[j], place.s[j], form.yy))
    return column if best >= might else -1


@entry
def find_addition(form, place, k, barred):
    """`best_addition`."""
    return best_addition(form, place, k, barred)


@kernel
def seat(form, place, stays, k):
    """Columns of `order` after the first `stays` of the support, each independent of those before; how many there are.

    Columns that are `inside` already are passed over.
    """
    for i in range(stays):
        add_pivot(form.G, place.L, place.support, i, place.support[i])
    at = stays
    for j in place.order:
        if at == k:
            break
        if place.inside[j] == 0 and add_pivot(form.G, place.L, place.support, at, j) > SEATED:
            place.support[at] = j
            at += 1
    return at


@entry
def begin_at_random(form, place, k, key):
    """Seat the first columns of the random order of a key; how many could be seated."""
    draw_start(key[0], key[1], place.order)
    mark(form, place, 0)
    return seat(form, place, 0, k)


@entry
def kick(form, place, k, key, round_, least, most):
    """Random columns of the support leave; random ones enter, or (if few come back) the caller fills up.

    How many columns are there then comes back; those that left stand behind the ones that stay, if none entered.
    """
    w0, w1, _, _ = draw(key, round_, WHAT, 0)
    mark(form, place, k)
    stays = move_out(place.support, k, least + below(w0, most - least + 1), key, round_)
    if stays and below(w1, 2) == 1:
        return stays
    mix(place.order, key, round_)
    return seat(form, place, stays, k)
