r"""Best flips: the table W, r, s of one support, and the lowest of all its flips, or none.

Of all k (N - k) flips one scan of the table finds the lowest, in O(k N). *The rule*: a flip is made if it lowers the
energy by more than TIE y'y; energies within TIE y'y of the lowest are equal to it, and of equal flips the one that
takes the first column in is made, of these the one that takes the first column out. Rounding must not decide: each
Delta E is known within an interval (`flip_energy`), and where the intervals leave a doubt the flips in question go to a
short list that is judged from the columns (`judging`). So every engine makes the same flips.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import DRIFT, EPSILON, TIE
from pairflip.engines.numba.algebra import (
    BEYOND,
    exchange,
    extend_within,
    flip_energy,
    inflation,
    inflation_at,
    rounding,
    shared_part,
    surely_singular,
)
from pairflip.engines.numba.compile import kernel
from pairflip.least_squares import SINGULAR

NEAR = 1e-6
"""Columns of which less is left beside the support are looked at one by one: their flips may be singular."""
SHAKY = 3e6
"""Inflation above which the table says too little; all flips of such supports are judged from the columns.

A walk stops at DELICATE already, because it decides about any flip; here only the lowest ones matter, and their
intervals mostly lie apart however wide they are.
"""
LISTED = 64
"""Flips in doubt at a time; more, and all flips are judged."""
MINIMUM, FLIP, DOUBT, NEED_ROW = 0, 1, 2, 3
ROWS_BYTES = 32 * 2**20
"""Memory for Gram rows when there is no G; in any case there is room for those of a support."""
TOGETHER = 1024
"""Columns of the table that are worked on together: what they need for all slots stays in the cache."""


class Form(NamedTuple):
    """The quadratic form as these kernels see it; G (N, N) is empty where it would be too large."""

    G: Any
    b: Any
    diagonal: Any
    yy: float


class Table(NamedTuple):
    """P, x of the support and W, r, s of all columns, for up to K slots; and what scanning needs.

    `outside` (N,) is 1 for columns that are not in the support, `safe` (N,) for those of them that can enter any slot
    without doubt. `rows` keeps Gram rows where there is no G: row `at[j]` is that of column j, -1 where it is not kept;
    `whose` is the column of each row.
    """

    support: Any
    P: Any
    x: Any
    W: Any
    r: Any
    s: Any
    outside: Any
    safe: Any
    most: Any
    listed: Any
    rows: Any
    at: Any
    whose: Any


STATE = np.dtype(
    [
        (name, np.int64)
        for name in (
            "k",  # columns in the support
            "wanted",  # the column whose Gram row is needed, after NEED_ROW
            "slot",  # the flip that was found, after FLIP
            "column",
            "doubts",  # entries of the short list, after DOUBT; more than LISTED: judge all
            "flips",  # made so far
            "scans",  # of the whole table so far
        )
    ]
    + [
        (name, np.float64)
        for name in (
            "error",  # rounding since P was computed
            "inflated",  # bound on the variance inflation of the support
        )
    ]
)
"""What is known of the support in a `Table`, in one record that kernels change in place."""


def new_table(largest: int, n_columns: int, *, dense: bool) -> Table:
    """Uninitialized memory for supports of up to `largest` columns."""
    kept = 0 if dense else max(largest, min(256, ROWS_BYTES // (8 * n_columns)))

    def empty(*shape: int) -> Any:
        return np.empty(shape)

    return Table(
        support=np.empty(largest, np.int64), P=empty(largest, largest), x=empty(largest),
        W=empty(largest, n_columns), r=empty(n_columns), s=empty(n_columns), outside=np.empty(n_columns, np.uint8),
        safe=empty(n_columns), most=empty(largest), listed=np.empty((LISTED, 2), np.int64),
        rows=empty(kept, n_columns if kept else 0), at=np.full(n_columns if kept else 0, -1, np.int16),
        whose=np.full(kept, -1, np.int64),
    )  # fmt: skip


@kernel
def has_row(form, table, j):
    """Whether row j of G is at hand."""
    return form.G.size > 0 or table.at[j] >= 0


@kernel
def row_of(form, table, j):
    """Row j of G, which is at hand."""
    if form.G.size:
        return form.G[j]
    return table.rows[table.at[j]]


@kernel
def tau_of(state):
    """Rounding times inflation: what bounds the error of r', s' and Delta E."""
    return rounding(state.inflated, state.error) * state.inflated


@kernel
def border(form, table, n):
    """P of the first n slots of the support, free of accumulated rounding; how many slots it could border.

    Fewer than n mean that only the columns can tell.
    """
    g = np.empty(n)
    for m in range(n):
        row = row_of(form, table, table.support[m])
        for l in range(m):
            g[l] = row[table.support[l]]
        if extend_within(table.P, m, g, form.diagonal[table.support[m]], 4.0 * SHAKY) != 1:
            return m
    return n


@kernel
def fill(form, table, state):
    """x, W, r, s of the support, from P and G; all rows of the support are at hand."""
    k, n = state.k, table.r.size
    support, P, x, W, r, s = table.support, table.P, table.x, table.W, table.r, table.s
    for j in range(n):
        r[j], s[j], table.outside[j] = form.b[j], form.diagonal[j], 1
    P_k = np.empty((k, k))
    for m in range(k):
        total = 0.0
        for l in range(k):
            P_k[m, l] = P[m, l]
            total += P[m, l] * form.b[support[l]]
        x[m] = total
    for first in range(0, n if k > 0 else 0, 4 * TOGETHER):
        part = slice(first, min(first + 4 * TOGETHER, n))
        r_part, s_part = r[part], s[part]
        G_S = np.empty((k, r_part.size))
        for m in range(k):
            G_S[m] = row_of(form, table, support[m])[part]
        W_S = np.dot(P_k, G_S)
        for m in range(k):
            x_m, W_m = x[m], W[m, part]
            for j in range(r_part.size):
                W_m[j] = W_S[m, j]
                r_part[j] -= x_m * G_S[m, j]
                s_part[j] -= G_S[m, j] * W_S[m, j]
    for m in range(k):
        seat(table, k, m)
    state.error = 0.0
    state.inflated = inflation_at(P, k)


@kernel
def seat(table, k, m):
    """What W, r, s are for the column in slot m, exactly: rounding there would grow with every change."""
    c = table.support[m]
    table.outside[c], table.r[c], table.s[c] = 0, 0.0, 0.0
    for l in range(k):
        table.W[l, c] = 0.0
    table.W[m, c] = 1.0


@kernel
def energy_at(form, table, k):
    """E of the support."""
    total = form.yy
    for m in range(k):
        total -= table.x[m] * form.b[table.support[m]]
    return 0.5 * total


@kernel
def comes_first(table, i, j, slot, column):
    """Whether flip (i, j) comes before flip (slot, column) among equals: first by what enters, then by what leaves."""
    return j < column or (j == column and table.support[i] < table.support[slot])


@kernel
def scan(form, table, state, edge, near):
    """most[i]: twice the largest gain of safe columns in slot i; the slot where that is largest."""
    P, x, W, r, s, safe = table.P, table.x, table.W, table.r, table.s, table.safe
    for j in range(r.size):
        safe[j] = table.outside[j] if s[j] > near else 0.0
    top = 0
    for i in range(state.k):
        p_inverse = 1.0 / P[i, i]
        a, most = x[i] * p_inverse, 0.0
        # No branches, so that it vectorizes; columns that do not count have weight 0.
        for j in range(r.size):
            w = W[i, j]
            r_new = r[j] + a * w
            most = max(most, safe[j] * (r_new * r_new) / max(s[j] + w * w * p_inverse, edge))
        table.most[i] = most - x[i] * a
        if table.most[i] > table.most[top]:
            top = i
    state.scans += 1
    return top


@kernel
def bounds_of(form, table, state, i, j, tau, v):
    """(lowest, highest) Delta E of flip (i, j); (inf, inf) where it is surely singular, (BEYOND, inf) in doubt."""
    k, p, w = state.k, table.P[i, i], table.W[i, j]
    low, delta, _, s = flip_energy(table.x[i], p, table.r[j], table.s[j], w, tau, form.yy)
    if low != BEYOND:
        return low, 2.0 * delta - low
    for m in range(k):
        v[m] = table.W[m, j] - table.P[i, m] * (w / p)
    v[i] = -1.0
    if surely_singular(v, k, s, state.inflated, state.error):
        return np.inf, np.inf
    return BEYOND, np.inf


@kernel
def find_flip(form, table, state):
    """MINIMUM, FLIP (slot and column in the state) or DOUBT (flips in question on the short list)."""
    k, n, yy, tie = state.k, table.r.size, form.yy, TIE * form.yy
    tau = tau_of(state)
    edge = 2.0 * SINGULAR + 4.0 * tau
    near = max(NEAR, edge)
    top = scan(form, table, state, edge, near)
    v = np.empty(k)
    ceiling = np.inf  # no flip that matters has a lowest Delta E above this: one of them is surely lower
    if table.most[top] > -np.inf:
        p = table.P[top, top]
        a, target, best = table.x[top] / p, table.most[top], -1
        for j in range(n):
            w = table.W[top, j]
            r_new = table.r[j] + a * w
            gain = table.safe[j] * (r_new * r_new) / max(table.s[j] + w * w / p, edge) - table.x[top] * a
            if table.safe[j] > 0.0 and gain >= target * (1.0 - 1e-12) - 1e-300 and best < 0:
                best = j
        if best >= 0:
            _, ceiling = bounds_of(form, table, state, top, best, tau, v)
    for j in range(n):
        if table.outside[j] > 0.0 and table.s[j] <= near:
            for i in range(k):
                _, high = bounds_of(form, table, state, i, j, tau, v)
                ceiling = min(ceiling, high)
    # Where even the lowest is no gain, nothing need be listed; the error of a safe column is at most that at `near`.
    slack = tau * yy * (1.5 + 1.0 / near)
    count, lowest, highest, slot, column = 0, np.inf, -np.inf, -1, -1
    limit = min(ceiling + tie, -tie)
    for i in range(k):
        if -0.5 * table.most[i] - slack <= limit:
            for j in range(n):
                if table.safe[j] > 0.0:
                    low, high = bounds_of(form, table, state, i, j, tau, v)
                    if low <= limit:
                        count = enlist(table, count, i, j)
                        lowest, highest = min(lowest, low), max(highest, high)
                        if slot < 0 or comes_first(table, i, j, slot, column):
                            slot, column = i, j
    for j in range(n):
        if table.outside[j] > 0.0 and table.s[j] <= near:
            for i in range(k):
                low, high = bounds_of(form, table, state, i, j, tau, v)
                if low <= limit and low < np.inf:
                    count = enlist(table, count, i, j)
                    lowest, highest = min(lowest, low), max(highest, high)
                    if slot < 0 or comes_first(table, i, j, slot, column):
                        slot, column = i, j
    state.doubts = count
    if count == 0:
        return MINIMUM
    state.slot, state.column = slot, column
    # One flip that is surely lower, or several that are surely equal.
    if highest < -tie and (count == 1 or highest - lowest <= tie):
        return FLIP
    return DOUBT


@kernel
def enlist(table, count, i, j):
    """Put flip (i, j) on the short list; returns how many there are, counting those for which there is no room."""
    if count < LISTED:
        table.listed[count, 0], table.listed[count, 1] = i, j
    return count + 1


@kernel
def exchange_columns(table, G_j, k, g, u, v, i, p, x_i, r_new, s_new):
    """`update_table`, some columns at a time, so that W is read from memory once."""
    W, r, s = table.W, table.r, table.s
    t, p_inverse, s_inverse, x_p, x_j = shared_part(g, u, k, i, p), 1.0 / p, 1.0 / s_new, x_i / p, r_new / s_new
    h, W_i = np.empty(TOGETHER), np.empty(TOGETHER)
    for first in range(0, r.size, TOGETHER):
        # Views, because loops over first + j do not vectorize: the compiler must allow for negative indices.
        part = slice(first, min(first + TOGETHER, r.size))
        r_part, s_part, G_part, W_part = r[part], s[part], G_j[part], W[i, part]
        n = r_part.size
        for j in range(n):
            W_i[j] = W_part[j]
            h[j] = G_part[j] + t * W_part[j]
        for m in range(k):
            g_m, W_m = g[m] if m != i else 0.0, W[m, part]
            for j in range(n):
                h[j] -= g_m * W_m[j]
        for m in range(k):
            if m != i:
                a, c, W_m = u[m] * p_inverse, v[m] * s_inverse, W[m, part]
                for j in range(n):
                    W_m[j] -= a * W_i[j] + c * h[j]
        for j in range(n):
            r_part[j] += x_p * W_i[j] - x_j * h[j]
        for j in range(n):
            s_part[j] += W_i[j] * W_i[j] * p_inverse - h[j] * h[j] * s_inverse
        for j in range(n):
            W_part[j] = h[j] * s_inverse


@kernel
def make_flip(form, table, state):
    """Make the flip in the state by the table; False (nothing changed) where only the columns can tell."""
    k, i, j = state.k, state.slot, state.column
    P, x, W = table.P, table.x, table.W
    p, x_i, w = P[i, i], x[i], W[i, j]
    u, v, g = np.empty(k), np.empty(k), np.empty(k)
    r_new, s_new = table.r[j] + x_i * w / p, table.s[j] + w * w / p
    for m in range(k):
        u[m] = P[i, m]
        v[m] = W[m, j] - u[m] * (w / p)
    v[i] = -1.0
    worst = inflation(P, k, u, v, p, s_new)
    if not worst <= SHAKY:
        return False
    G_j = row_of(form, table, j)
    for m in range(k):
        g[m] = G_j[table.support[m]]
    exchange_columns(table, G_j, k, g, u, v, i, p, x_i, r_new, s_new)
    exchange(P, x, k, u, v, i, p, r_new, s_new)
    table.outside[table.support[i]] = 1
    table.support[i] = j
    seat(table, k, i)
    state.inflated = worst
    state.error += EPSILON * worst
    state.flips += 1
    if state.error >= DRIFT and all_rows(form, table, k):
        border(form, table, k)
        fill(form, table, state)
    return True


@kernel
def all_rows(form, table, k):
    """Whether the rows of the whole support are at hand."""
    missing = 0
    for m in range(k):
        missing += not has_row(form, table, table.support[m])
    return missing == 0


@kernel
def descend(form, table, state):
    """Make best flips until there is none; MINIMUM, or DOUBT or NEED_ROW where someone else must help first."""
    while True:
        found = find_flip(form, table, state)
        if found != FLIP:
            return found
        if not has_row(form, table, state.column):
            state.wanted = state.column
            return NEED_ROW
        if not make_flip(form, table, state):
            return DOUBT
