r"""Best flips: the lowest of all flips of a support, or none, by its table.

Of all k (N - k) flips one scan of the table finds the lowest, in O(k N). *The rule*: a flip is made if it lowers the
energy by more than TIE y'y. Of these flips, those within TIE y'y of the lowest are equal to it, and of equal flips the
one that takes the first column in is made, of these the one that takes the first column out. Rounding must not decide:
each Delta E is known within an interval (as in `flip_energy`), and where the intervals leave a doubt the flips in
question go to a short list that is judged from the columns (`judging`). So every engine makes the same flips.
"""

from __future__ import annotations

import numpy as np

from pairflip.engines.base import DRIFT, EPSILON, SHAKY, TIE
from pairflip.engines.numba.algebra import exchange, inflation, rounding_of_s, shared_part
from pairflip.engines.numba.compile import kernel, template
from pairflip.engines.numba.support_table import (
    DOUBT,
    FLIP,
    MINIMUM,
    NEED_ROW,
    TOGETHER,
    enlist,
    has_row,
    residual_of,
    row_of,
    seat,
    sharpen,
    tau_of,
)
from pairflip.least_squares import SINGULAR

UNKNOWN = 1e-4
"""Relative error of a length up to which a nearly singular flip is weighed by it."""
PLAIN = 1e-3
"""A part of a column outside the support that is far too large for rounding to matter."""


@kernel
def comes_first(table, i, j, slot, column):
    """Whether flip (i, j) comes before flip (slot, column) among equals: first by what enters, then by what leaves."""
    return slot < 0 or j < column or (j == column and table.support[i] < table.support[slot])


@kernel
def free_columns(table, first):
    """Write which of TOGETHER columns from `first` on are free, as numbers; the column after the last of these."""
    last = min(first + TOGETHER, table.r.size)
    free, outside = table.free, table.outside[first:last]
    for j in range(outside.size):
        free[j] = outside[j]
    return last


@kernel
def bound_gains(table, i, first, last, edge, tau):
    """Bounds `upper` and `lower` of r'^2 / s', twice the gain of columns in slot i, but for 3 tau y'y.

    They are minus infinity for columns of the support and where s' is not surely above the limit. The columns are those
    from `first` to `last - 1`; `free` belongs to these.
    """
    p_inverse = 1.0 / table.P[i, i]
    a, twice = table.x[i] * p_inverse, 2.0 * tau
    W_i, r, s = table.W[i, first:last], table.r[first:last], table.s[first:last]
    free, upper, lower = table.free, table.upper, table.lower
    # No branches, and no sum or maximum of floating-point numbers, so that it vectorizes.
    for j in range(r.size):
        w = W_i[j]
        r_new, s_new = r[j] + a * w, (s[j] + w * w * p_inverse) * free[j]
        x_j = r_new / (s_new if s_new > edge else edge)
        gain, off = r_new * x_j, twice * x_j * x_j
        upper[j] = gain + off if s_new > edge else -np.inf
        lower[j] = gain - off if s_new > edge else -np.inf


@kernel
def may_gain(table, i, first, last, tau, enough):
    r"""Whether `bound_gains` may find an upper bound of at least `enough` in slot i, without its divisions.

    Where :math:`s' \ge` `PLAIN`, the upper bound :math:`(r'^2 / s') (1 + 2 \tau / s')` reaches `enough` only if
    :math:`r'^2 (1 + 2 \tau / \text{PLAIN}) \ge \text{enough} \cdot s'`; any smaller s' is looked at.
    """
    p_inverse = 1.0 / table.P[i, i]
    a, more, some = table.x[i] * p_inverse, 1.0 + 2.0 * tau / PLAIN + 1e-12, 0
    W_i, r, s, free = table.W[i, first:last], table.r[first:last], table.s[first:last], table.free
    for j in range(r.size):
        w = W_i[j]
        r_new, s_new = r[j] + a * w, s[j] + w * w * p_inverse
        least = enough * s_new if s_new >= PLAIN else -1.0
        some |= int(r_new * r_new * more * free[j] >= least) & int(free[j])
    return some > 0


@kernel
def keep_largest(values, n, kept, i):
    """Keep the largest of n `values` and of kept[i], which is not negative.

    The bits of numbers from 0 on are in the order of these.
    """
    bits, most = values.view(np.int64), kept.view(np.int64)[i]
    for j in range(n):
        most = max(most, bits[j])
    kept.view(np.int64)[i] = most


@kernel
def some_below(table, edge):
    """Whether of some column outside the support no more than `edge` is left."""
    s, outside, some = table.s, table.outside, 0
    for j in range(s.size):
        some |= int(s[j] <= edge) & int(outside[j])
    return some > 0


@kernel
def doubt_singular(form, table, state, count, edge, limit):
    r"""List the flips that may be singular or not (s' is not surely above the limit, and not surely below) and matter.

    As in `surely_singular`, with :math:`|v|^2 \le 2 |W_j|^2 + 2 |u|^2 w^2 / p^2 + 1`. Where that leaves it open and
    the columns are at hand, they tell r' and s' to many digits (`sharpen`), and so whether Delta E may be below the
    limit.
    """
    k, P, W, s = state.k, table.P, table.W, table.s
    unsure, off = rounding_of_s(state.inflated, state.error), 3.0 * tau_of(state) * form.yy
    w, e, h = np.empty(k), np.empty(0), np.empty(0)
    for j in range(s.size):
        if table.outside[j] > 0 and s[j] <= edge:
            size, sharp, r_j, s_j, error = 1.0 + k**0.5, False, 0.0, 0.0, 0.0
            for m in range(k):
                size += 2.0 * W[m, j] * W[m, j]
            for i in range(k):
                p = P[i, i]
                s_new = s[j] + W[i, j] * W[i, j] / p
                if s_new > edge:
                    continue
                norm = 0.0
                for m in range(k):
                    norm += P[i, m] * P[i, m]
                if s_new + unsure * (size + 2.0 * norm * (W[i, j] / p) ** 2) <= SINGULAR:
                    continue
                if form.target.size > 0 and not sharp:
                    if e.size == 0:
                        e, h = residual_of(form, table, k)
                    r_j, s_j, error = sharpen(form, table, k, j, e, h, w)
                    sharp = True
                if sharp:
                    s_new, r_new = s_j + w[i] * w[i] / p, r_j + table.x[i] * w[i] / p
                    error_i = error * (1.0 + state.inflated**0.5)
                    if (max(s_new, 0.0) ** 0.5 + error_i) ** 2 <= SINGULAR:
                        continue
                    gain = r_new * r_new / max(s_new, SINGULAR)
                    known = error_i * error_i <= UNKNOWN * UNKNOWN * s_new
                    if known and 0.5 * (table.x[i] * table.x[i] / p - (1.0 + 10.0 * UNKNOWN) * gain - off) > limit:
                        continue
                count = enlist(table, count, i, j)
    return count


@kernel
def find_flip(form, table, state):
    """MINIMUM, FLIP (slot and column in the state) or DOUBT (flips in question on the short list)."""
    k, n, tie, tau = state.k, table.r.size, TIE * form.yy, tau_of(state)
    edge, common = 2.0 * SINGULAR + 4.0 * tau, 3.0 * tau * form.yy
    state.scans += 1
    ceiling, limit = np.inf, -tie  # no flip that matters has a lowest Delta E above the limit
    doubts, count, lowest, highest, slot, column = 0, 0, np.inf, -np.inf, -1, -1
    for i in range(k):
        table.most[i], table.sure[i] = 0.0, 0.0
    # All slots, and then again those that have flips to be listed; some columns at a time, which stay in the cache.
    blocks = (n + TOGETHER - 1) // TOGETHER
    for step in range(2 * blocks):
        first = TOGETHER * (step % blocks)
        last = free_columns(table, first)
        if step == blocks and some_below(table, edge):
            doubts = doubt_singular(form, table, state, 0, edge, limit)
            count = doubts
        for i in range(k):
            cost = table.x[i] * table.x[i] / table.P[i, i]
            if step >= blocks and 0.5 * (cost - table.most[i] - common) > limit:
                continue
            # Most slots have no flip that could matter, and then nothing of theirs is listed nor lowers the ceiling.
            if step < blocks and not may_gain(table, i, first, last, tau, cost - common - 2.0 * limit):
                continue
            bound_gains(table, i, first, last, edge, tau)
            if step < blocks:
                keep_largest(table.upper, last - first, table.most, i)
                keep_largest(table.lower, last - first, table.sure, i)
                ceiling = min(ceiling, 0.5 * (cost - table.sure[i] + common))
                limit = min(ceiling + tie, -tie)
                continue
            enough = cost - common - 2.0 * limit
            for j in range(last - first):
                if table.upper[j] >= enough:
                    count = enlist(table, count, i, first + j)
                    lowest = min(lowest, 0.5 * (cost - table.upper[j] - common))
                    highest = max(highest, 0.5 * (cost - table.lower[j] + common))
                    if comes_first(table, i, first + j, slot, column):
                        slot, column = i, first + j
    state.doubts, state.slot, state.column = count, slot, column
    if count == 0:
        return MINIMUM
    # One flip that is surely lower, or several that are surely equal.
    if doubts == 0 and highest < -tie and (count == 1 or highest - lowest <= tie):
        return FLIP
    return DOUBT


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
    state.stale = int(state.error >= DRIFT)
    state.flips += 1
    return True


@template
def step_down(form, table, state):
    """Make the best flip: FLIP; MINIMUM if there is none; DOUBT or NEED_ROW where someone else must help first."""
    found = find_flip(form, table, state)
    # Without the rounding of earlier flips the table may know: computing it anew takes less than judging.
    if found == DOUBT and state.error > 0.0:
        state.stale = 1
        return FLIP
    if found != FLIP:
        return found
    if not has_row(form, table, state.column):
        state.wanted = state.column
        return NEED_ROW
    return FLIP if make_flip(form, table, state) else DOUBT
