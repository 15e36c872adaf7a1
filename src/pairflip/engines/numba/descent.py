r"""Best flips: the lowest of all flips of a support, or none, by its table.

Of all k (N - k) flips one scan of the table finds the lowest, in O(k N). *The rule*: a flip is made if it lowers the
energy by more than TIE y'y. Of these flips, those within TIE y'y of the lowest are equal to it, and of equal flips the
one that takes the first column in is made, of these the one that takes the first column out. Rounding must not decide:
each Delta E is known within an interval (as in `flip_energy`), and where the intervals leave a doubt the flips in
question go to a short list that is judged from the columns (`judging`). So every engine makes the same flips.
"""

from __future__ import annotations

import numpy as np

from pairflip.engines.base import DRIFT, EPSILON, TIE
from pairflip.engines.numba.algebra import exchange, inflation, rounding_of_s, update_table
from pairflip.engines.numba.compile import kernel, template
from pairflip.engines.numba.support_table import (
    DOUBT,
    FLIP,
    MINIMUM,
    NEED_ROW,
    SHAKY,
    enlist,
    has_row,
    row_of,
    seat,
    tau_of,
)
from pairflip.least_squares import SINGULAR


@kernel
def comes_first(table, i, j, slot, column):
    """Whether flip (i, j) comes before flip (slot, column) among equals: first by what enters, then by what leaves."""
    return slot < 0 or j < column or (j == column and table.support[i] < table.support[slot])


@kernel
def bound_gains(table, i, edge, tau):
    """Bounds `upper` and `lower` (N,) of r'^2 / s', twice the gain of each column in slot i, but for 3 tau y'y.

    They are minus infinity for columns of the support and where s' is not surely above the limit.
    """
    p_inverse = 1.0 / table.P[i, i]
    a, twice = table.x[i] * p_inverse, 2.0 * tau
    W_i, r, s, outside, upper, lower = table.W[i], table.r, table.s, table.outside, table.upper, table.lower
    # No branches, and no sum or maximum of floating-point numbers, so that it vectorizes.
    for j in range(r.size):
        w = W_i[j]
        r_new, s_new = r[j] + a * w, (s[j] + w * w * p_inverse) * outside[j]
        x_j = r_new / (s_new if s_new > edge else edge)
        gain, off = r_new * x_j, twice * x_j * x_j
        upper[j] = gain + off if s_new > edge else -np.inf
        lower[j] = gain - off if s_new > edge else -np.inf


@kernel
def keep_largest(values, kept, i):
    """Keep the largest of `values` (n,), or 0, in place i: the bits of numbers from 0 on are in the order of these."""
    bits, most = values.view(np.int64), np.int64(0)
    for j in range(bits.size):
        most = max(most, bits[j])
    kept.view(np.int64)[i] = most


@kernel
def doubt_singular(table, state, count, edge):
    r"""List the flips that may be singular or not: s' is not surely above the limit, and not surely below.

    As in `surely_singular`, with :math:`|v|^2 \le 2 |W_j|^2 + 2 |u|^2 w^2 / p^2 + 1`.
    """
    k, P, W, s = state.k, table.P, table.W, table.s
    unsure = rounding_of_s(state.inflated, state.error)
    for j in range(s.size):
        if table.outside[j] > 0.0 and s[j] <= edge:
            size = 1.0 + k**0.5
            for m in range(k):
                size += 2.0 * W[m, j] * W[m, j]
            for i in range(k):
                w = W[i, j] / P[i, i]
                s_new = s[j] + w * W[i, j]
                if s_new <= edge:
                    norm = 0.0
                    for m in range(k):
                        norm += P[i, m] * P[i, m]
                    if not s_new + unsure * (size + 2.0 * norm * w * w) <= SINGULAR:
                        count = enlist(table, count, i, j)
    return count


@kernel
def find_flip(form, table, state):
    """MINIMUM, FLIP (slot and column in the state) or DOUBT (flips in question on the short list)."""
    k, n, tie, tau = state.k, table.r.size, TIE * form.yy, tau_of(state)
    edge, common = 2.0 * SINGULAR + 4.0 * tau, 3.0 * tau * form.yy
    state.scans += 1
    ceiling, limit = np.inf, -tie  # no flip that matters has a lowest Delta E above the limit
    doubts = doubt_singular(table, state, 0, edge)
    count, lowest, highest, slot, column = doubts, np.inf, -np.inf, -1, -1
    # All slots, and then again those that have flips to be listed.
    for step in range(2 * k):
        i = step % k
        cost = table.x[i] * table.x[i] / table.P[i, i]
        if step >= k and 0.5 * (cost - table.most[i] - common) > limit:
            continue
        bound_gains(table, i, edge, tau)
        if step < k:
            keep_largest(table.upper, table.most, i)
            keep_largest(table.lower, table.sure, i)
            ceiling = min(ceiling, 0.5 * (cost - table.sure[i] + common))
            limit = min(ceiling + tie, -tie)
            continue
        enough = cost - common - 2.0 * limit
        for j in range(n):
            if table.upper[j] >= enough:
                count = enlist(table, count, i, j)
                lowest = min(lowest, 0.5 * (cost - table.upper[j] - common))
                highest = max(highest, 0.5 * (cost - table.lower[j] + common))
                if comes_first(table, i, j, slot, column):
                    slot, column = i, j
    state.doubts, state.slot, state.column = count, slot, column
    if count == 0:
        return MINIMUM
    # One flip that is surely lower, or several that are surely equal.
    if doubts == 0 and highest < -tie and (count == 1 or highest - lowest <= tie):
        return FLIP
    return DOUBT


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
    update_table(W[:k], table.r, table.s, G_j, k, g, u, v, i, p, x_i, r_new, s_new)
    exchange(P, x, k, u, v, i, p, r_new, s_new)
    table.outside[table.support[i]] = 1.0
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
