r"""One column more or less: how a table of k slots becomes one of k + 1 or k - 1, in O(k N).

Adding column j lowers the energy by :math:`r_j^2 / (2 s_j)`; with :math:`h = (G_j - G_{jS} W) / s_j`

.. math:: W_m \to W_m - W_{mj} h, \quad W_{k+1} = h, \quad r \to r - r_j h, \quad s \to s - s_j h^2 .

Removing slot i raises it by :math:`x_i^2 / (2 P_{ii})`; with :math:`u = P_{:i} / P_{ii}`

.. math:: W_m \to W_m - u_m W_i, \quad r \to r + x_i W_i / P_{ii}, \quad s \to s + W_i^2 / P_{ii} .

The rule is that of flips: what lowers the energy most (or raises it least), and of equals the first column.
"""

from __future__ import annotations

import numpy as np

from pairflip.engines.base import DRIFT, EPSILON, TIE
from pairflip.engines.numba.algebra import surely_singular
from pairflip.engines.numba.compile import kernel
from pairflip.engines.numba.descent import (
    DOUBT,
    FLIP,
    MINIMUM,
    SHAKY,
    TOGETHER,
    all_rows,
    border,
    enlist,
    fill,
    row_of,
    seat,
    tau_of,
)
from pairflip.least_squares import SINGULAR


@kernel
def gain_bounds(form, table, state, j, tau, v):
    """(lowest, highest) gain r_j^2 / 2 s_j of adding column j; (-inf, -inf) surely singular, (-inf, inf) in doubt."""
    r, s = table.r[j], table.s[j]
    if s > 2.0 * SINGULAR + 4.0 * tau:
        gain, x_j = 0.5 * r * r / s, r / s
        off = tau * (1.5 * form.yy + x_j * x_j)
        return gain - off, gain + off
    for m in range(state.k):
        v[m] = table.W[m, j]
    if surely_singular(v, state.k, s, state.inflated, state.error):
        return -np.inf, -np.inf
    return -np.inf, np.inf


@kernel
def find_addition(form, table, state, allowed):
    """FLIP (which column in the state), DOUBT (columns in question on the list), or MINIMUM: no column can enter.

    `allowed` (N,) is 0 for columns that may not enter, or empty.
    """
    n, tie, tau = table.r.size, TIE * form.yy, tau_of(state)
    v, floor = np.empty(state.k), -np.inf
    state.doubts, state.slot, state.column = 0, -1, -1
    for j in range(n):
        if table.outside[j] > 0 and (allowed.size == 0 or allowed[j]):
            low, _ = gain_bounds(form, table, state, j, tau, v)
            floor = max(floor, low)
    count, lowest, highest = 0, np.inf, -np.inf
    for j in range(n):
        if table.outside[j] > 0 and (allowed.size == 0 or allowed[j]):
            low, high = gain_bounds(form, table, state, j, tau, v)
            if high > -np.inf and high >= floor - tie:
                count = enlist(table, count, -1, j)
                lowest, highest = min(lowest, low), max(highest, high)
                if state.column < 0:
                    state.column = j
    state.doubts = count
    if count == 0:
        return MINIMUM
    return FLIP if lowest > -np.inf and (count == 1 or highest - lowest <= tie) else DOUBT


@kernel
def add_column(form, table, state, j):
    """Add column j, whose Gram row is at hand, by the table; False (nothing changed) if only the columns can tell."""
    k, n = state.k, table.r.size
    P, x, W, r, s = table.P, table.x, table.W, table.r, table.s
    s_j, r_j = s[j], r[j]
    c, g, worst = np.empty(k), np.empty(k), 1.0 / s_j - 1.0
    for m in range(k):
        c[m] = W[m, j]
        worst += P[m, m] + c[m] * c[m] / s_j - 1.0
    worst += 1.0
    if s_j <= 2.0 * SINGULAR + 4.0 * tau_of(state) or not worst <= SHAKY:
        return False
    row = row_of(form, table, j)
    for m in range(k):
        g[m] = row[table.support[m]]
    h = np.empty(TOGETHER)
    for first in range(0, n, TOGETHER):
        part = slice(first, min(first + TOGETHER, n))
        r_part, s_part, row_part, W_k = r[part], s[part], row[part], W[k, part]
        for l in range(r_part.size):
            h[l] = row_part[l]
        for m in range(k):
            g_m, W_m = g[m], W[m, part]
            for l in range(r_part.size):
                h[l] -= g_m * W_m[l]
        for l in range(r_part.size):
            h[l] /= s_j
        for m in range(k):
            c_m, W_m = c[m], W[m, part]
            for l in range(r_part.size):
                W_m[l] -= c_m * h[l]
        for l in range(r_part.size):
            W_k[l] = h[l]
        for l in range(r_part.size):
            r_part[l] -= r_j * h[l]
        for l in range(r_part.size):
            s_part[l] -= s_j * h[l] * h[l]
    for m in range(k):
        a = c[m] / s_j
        x[m] -= a * r_j
        for l in range(k):
            P[m, l] += a * c[l]
        P[m, k] = -a
        P[k, m] = -a
    P[k, k], x[k] = 1.0 / s_j, r_j / s_j
    table.support[k] = j
    state.k = k + 1
    seat(table, k + 1, k)
    settle_rounding(form, table, state, worst)
    return True


@kernel
def find_removal(form, table, state):
    """FLIP (which slot in the state) or DOUBT (slots in question on the list): the column that is missed least."""
    tie, off, ceiling = TIE * form.yy, 1.5 * tau_of(state) * form.yy, np.inf
    for i in range(state.k):
        ceiling = min(ceiling, 0.5 * table.x[i] * table.x[i] / table.P[i, i] + off)
    count, lowest, highest, slot = 0, np.inf, -np.inf, -1
    for i in range(state.k):
        cost = 0.5 * table.x[i] * table.x[i] / table.P[i, i]
        if cost - off <= ceiling + tie:
            count = enlist(table, count, i, -1)
            lowest, highest = min(lowest, cost - off), max(highest, cost + off)
            if slot < 0 or table.support[i] < table.support[slot]:
                slot = i
    state.doubts, state.slot, state.column = count, slot, -1
    return FLIP if count == 1 or highest - lowest <= tie else DOUBT


@kernel
def remove_slot(form, table, state, i):
    """Remove the column in slot i; the last slot takes its place."""
    k, n = state.k, table.r.size
    P, x, W, r, s, support = table.P, table.x, table.W, table.r, table.s, table.support
    p, x_i, e = P[i, i], x[i], k - 1
    u, W_i = np.empty(k), W[i].copy()
    for m in range(k):
        u[m] = P[m, i] / p
    for m in range(k):
        if m != i:
            u_m = u[m]
            x[m] -= u_m * x_i
            for l in range(n):
                W[m, l] -= u_m * W_i[l]
            for l in range(k):
                P[m, l] -= u_m * u[l] * p
    a = x_i / p
    for l in range(n):
        r[l] += a * W_i[l]
        s[l] += W_i[l] * W_i[l] / p
    table.outside[support[i]] = 1
    if i != e:
        support[i], x[i] = support[e], x[e]
        for l in range(n):
            W[i, l] = W[e, l]
        for m in range(k):
            P[i, m] = P[e, m]
        for m in range(k):
            P[m, i] = P[m, e]
    worst = state.inflated
    state.k = e
    settle_rounding(form, table, state, worst)


@kernel
def settle_rounding(form, table, state, worst):
    """Enter what a change cost in digits, and compute the table anew when they are used up."""
    state.error += EPSILON * worst
    total = 1.0
    for m in range(state.k):
        total += table.P[m, m] - 1.0
    state.inflated = total
    if state.error >= DRIFT and all_rows(form, table, state.k):
        border(form, table, state.k)
        fill(form, table, state)
