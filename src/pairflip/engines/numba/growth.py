r"""One column more or less: how a table of k slots becomes one of k + 1 or k - 1, in O(k N).

Adding column j lowers the energy by :math:`r_j^2 / (2 s_j)`; with :math:`h = (G_j - G_{jS} W) / s_j`

.. math:: W_m \to W_m - W_{mj} h, \quad W_{k+1} = h, \quad r \to r - r_j h, \quad s \to s - s_j h^2 .

Removing slot i raises it by :math:`x_i^2 / (2 P_{ii})`; with :math:`u = P_{:i} / P_{ii}`

.. math:: W_m \to W_m - u_m W_i, \quad r \to r + x_i W_i / P_{ii}, \quad s \to s + W_i^2 / P_{ii} .

The rule is that of flips: what lowers the energy most (or raises it least), and of equals the first column.
"""

from __future__ import annotations

import numpy as np

from pairflip.engines.base import DRIFT, EPSILON, SHAKY, TIE
from pairflip.engines.numba.algebra import inflation_at, surely_singular
from pairflip.engines.numba.compile import kernel, template
from pairflip.engines.numba.descent import UNKNOWN
from pairflip.engines.numba.support_table import (
    DOUBT,
    FLIP,
    MINIMUM,
    NEED_ROW,
    TOGETHER,
    has_row,
    residual_of,
    row_of,
    seat,
    sharpen,
    tau_of,
)
from pairflip.least_squares import SINGULAR


@kernel
def cannot_enter(table, state, j):
    """Whether the support would surely be singular with column j."""
    v = table.W[: state.k, j]
    return surely_singular(v, state.k, table.s[j], state.inflated, state.error)


@kernel
def may_be_best(form, table, state, j, enough):
    """Whether a column that may be singular or not may gain `enough`, as the columns tell if these are at hand."""
    if cannot_enter(table, state, j):
        return False
    if form.target.size == 0:
        return True
    e, h = residual_of(form, table, state.k)
    r, s, error = sharpen(form, table, state.k, j, e, h, np.empty(state.k))
    if (max(s, 0.0) ** 0.5 + error) ** 2 <= SINGULAR:
        return False
    gain = (1.0 + 10.0 * UNKNOWN) * 0.5 * r * r / max(s, SINGULAR) + 1.5 * tau_of(state) * form.yy
    return error * error > UNKNOWN * UNKNOWN * s or gain >= enough


@kernel
def find_addition(form, table, state, allowed):
    """FLIP (which column in the state), DOUBT (no list: all are judged), or MINIMUM: no column can enter.

    `allowed` (N,) is 0 for columns that may not enter, or empty.
    """
    n, tie, tau = table.r.size, TIE * form.yy, tau_of(state)
    edge, floor, enough = 2.0 * SINGULAR + 4.0 * tau, -np.inf, -np.inf
    count, lowest, highest = 0, np.inf, -np.inf
    state.doubts, state.slot, state.column = 0, -1, -1
    # All columns, and then again those whose gain may equal the largest.
    for turn in range(2):
        for j in range(n):
            if table.outside[j] > 0 and (allowed.size == 0 or allowed[j]):
                r, s = table.r[j], table.s[j]
                if s <= edge:
                    if turn and may_be_best(form, table, state, j, enough):
                        count, lowest = count + 1, -np.inf
                    continue
                gain, x_j = 0.5 * r * r / s, r / s
                off = tau * (1.5 * form.yy + x_j * x_j)
                if turn == 0:
                    floor = max(floor, gain - off)
                elif gain + off >= enough:
                    count, lowest, highest = count + 1, min(lowest, gain - off), max(highest, gain + off)
                    if state.column < 0:
                        state.column = j
        enough = floor - tie
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
    settle_rounding(table, state, worst)
    return True


@template
def take_in(form, table, state, j):
    """Add column j: FLIP, or NEED_ROW or DOUBT where someone else must help first."""
    if not has_row(form, table, j):
        state.wanted = j
        return NEED_ROW
    return FLIP if add_column(form, table, state, j) else DOUBT


@kernel
def find_removal(form, table, state):
    """FLIP (which slot in the state) or DOUBT: the column that is missed least."""
    tie, off, ceiling = TIE * form.yy, 1.5 * tau_of(state) * form.yy, np.inf
    for i in range(state.k):
        ceiling = min(ceiling, 0.5 * table.x[i] * table.x[i] / table.P[i, i] + off)
    count, lowest, highest, slot = 0, np.inf, -np.inf, -1
    for i in range(state.k):
        cost = 0.5 * table.x[i] * table.x[i] / table.P[i, i]
        if cost - off <= ceiling + tie:
            count += 1
            lowest, highest = min(lowest, cost - off), max(highest, cost + off)
            if slot < 0 or table.support[i] < table.support[slot]:
                slot = i
    state.doubts, state.slot, state.column = 0, slot, -1
    return FLIP if count == 1 or highest - lowest <= tie else DOUBT


@kernel
def remove_slot(table, state, i):
    """Remove the column in slot i; the last slot takes its place."""
    k, n = state.k, table.r.size
    P, x, W, r, s, support = table.P, table.x, table.W, table.r, table.s, table.support
    p, x_i, e = P[i, i], x[i], k - 1
    u, a = np.empty(k), x_i / p
    for m in range(k):
        u[m] = P[m, i] / p
    for m in range(k):
        if m != i:
            u_m = u[m]
            x[m] -= u_m * x_i
            for l in range(k):
                P[m, l] -= u_m * u[l] * p
    for first in range(0, n, TOGETHER):
        part = slice(first, min(first + TOGETHER, n))
        r_part, s_part, W_i, W_e = r[part], s[part], W[i, part], W[e, part]
        for m in range(k):
            if m != i:
                u_m, W_m = u[m], W[m, part]
                for l in range(W_m.size):
                    W_m[l] -= u_m * W_i[l]
        for l in range(r_part.size):
            r_part[l] += a * W_i[l]
            s_part[l] += W_i[l] * W_i[l] / p
        if i != e:
            for l in range(W_e.size):
                W_i[l] = W_e[l]
    table.outside[support[i]] = 1
    if i != e:
        support[i], x[i] = support[e], x[e]
        for m in range(k):
            P[i, m] = P[e, m]
        for m in range(k):
            P[m, i] = P[m, e]
    state.k = e
    settle_rounding(table, state, state.inflated)


@kernel
def settle_rounding(table, state, worst):
    """Enter what a change cost in digits, and whether they are used up."""
    state.error += EPSILON * worst
    state.inflated = inflation_at(table.P, state.k)
    state.stale = int(state.error >= DRIFT)
