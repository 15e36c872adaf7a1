r"""The table of one support: P, x of its columns and W, r, s of all columns, from which every flip is known in O(1).

Where the Gram matrix has lost too many digits (inflation above SHAKY), there is no table, and the columns decide.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import BETTER, EPSILON, SHAKY
from pairflip.engines.numba.algebra import extend_within, inflation_at, rounding
from pairflip.engines.numba.compile import kernel, template

LISTED = 64
"""Flips in doubt at a time; more, and all flips are judged."""
ROWS_BYTES = 32 * 2**20
"""Memory for Gram rows when there is no G; in any case there is room for those of a support."""
TOGETHER = 1024
"""Columns of the table that are worked on together: what they need for all slots stays in the cache."""
SURE = 1e-2 * BETTER
"""Rounding of an energy (in units of y'y) that is far too small to make two minima of one."""

MINIMUM, FLIP, DOUBT, NEED_ROW, NEED_COLUMNS, DONE = 0, 1, 2, 3, 4, 9
"""What kernels answer: nothing left to do, something to do (see the state), or who must help before the next call."""


class Form(NamedTuple):
    """The quadratic form as these kernels see it; G (N, N) is empty where it would be too large.

    `columns` (N, M) and `target` (M,) are empty until an energy is so delicate that they are needed; in wide problems
    they always are.
    """

    G: Any
    b: Any
    diagonal: Any
    yy: float
    columns: Any
    target: Any
    penalty: Any


class FlipTable(NamedTuple):
    """P, x of the support and W, r, s of all columns, for up to K slots; and what scanning needs.

    `outside` (N,) is 1 for columns outside the support. Of TOGETHER columns, `free` is the same in floating point, and
    `upper` and `lower` bound twice the gains in one slot; `most` and `sure` (K,) the largest of these for each slot.
    `rows` keeps Gram rows where there is no G: row `at[j]` is that of column j, -1 where it is not kept; `whose` is the
    column of each row.
    """

    support: Any
    P: Any
    x: Any
    W: Any
    r: Any
    s: Any
    outside: Any
    free: Any
    upper: Any
    lower: Any
    most: Any
    sure: Any
    listed: Any
    rows: Any
    at: Any
    whose: Any


STATE = np.dtype(
    [
        (name, np.int64)
        for name in (
            "k",  # columns in the support
            "stale",  # 1: the table does not belong to the support, or has used up its digits
            "at_minimum",  # 1: no flip lowers the energy, which is below
            "wanted",  # the column whose Gram row is needed, after NEED_ROW
            "slot",  # the flip that was found, after FLIP
            "column",
            "doubts",  # entries of the short list, after DOUBT; none, or more than LISTED: judge all
            "flips",  # made so far
            "scans",  # of the whole table so far
        )
    ]
    + [
        (name, np.float64)
        for name in (
            "error",  # rounding since P was computed
            "inflated",  # bound on the variance inflation of the support
            "energy",  # at a minimum
        )
    ]
)
"""What is known of the support in a `FlipTable`, in one record that kernels change in place."""


def new_table(largest: int, n_columns: int, *, dense: bool) -> FlipTable:
    """Uninitialized memory for supports of up to `largest` columns."""
    kept = 0 if dense else max(largest, min(256, ROWS_BYTES // (8 * n_columns)))

    def empty(*shape: int) -> Any:
        return np.empty(shape)

    return FlipTable(
        support=np.empty(largest, np.int64), P=empty(largest, largest), x=empty(largest),
        W=empty(largest, n_columns), r=empty(n_columns), s=empty(n_columns), outside=np.empty(n_columns, np.uint8),
        free=empty(TOGETHER), upper=empty(TOGETHER), lower=empty(TOGETHER), most=empty(largest), sure=empty(largest),
        listed=np.empty((LISTED, 2), np.int64),
        rows=empty(kept, n_columns if kept else 0), at=np.full(n_columns if kept else 0, -1, np.int32),
        whose=np.full(kept, -1, np.int64),
    )  # fmt: skip


@kernel
def copy_sorted(support, k, into, at):
    """Columns of the support, ascending, into row `at` of `into` (numba's own sort takes a second to compile)."""
    for m in range(k):
        column, l = support[m], m
        while l > 0 and into[at, l - 1] > column:
            into[at, l] = into[at, l - 1]
            l -= 1
        into[at, l] = column


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
def residual_of(form, table, k):
    r"""Residual :math:`e = y - X_S x` (M,) and gradient :math:`X_S^T e - \lambda x` (k,), from the columns at hand."""
    e, h = form.target.copy(), np.empty(k)
    for m in range(k):
        x_m, column = table.x[m], form.columns[table.support[m]]
        for t in range(e.size):
            e[t] -= x_m * column[t]
    for m in range(k):
        column = form.columns[table.support[m]]
        along = -form.penalty[table.support[m]] * table.x[m]
        for t in range(e.size):
            along += column[t] * e[t]
        h[m] = along
    return e, h


@kernel
def sharpen(form, table, k, j, e, h, w):
    r"""(r_j, s_j, error) of a column of which the support leaves hardly anything, and its coefficients `w` (k,).

    With :math:`q = X_j - X_S W_j`, its gradient :math:`g = X_S^T q - \lambda W_j` and :math:`\delta = P g`: errors of
    the table count with their square in :math:`s = q \cdot q - g \cdot \delta`, and with that of x in
    :math:`r = q \cdot e - h \cdot \delta`. What is left is the rounding of q, the error, a length. `e` and `h` are
    those of `residual_of`.
    """
    q, g, size = form.columns[j].copy(), np.empty(k), 1.0
    s, r = form.penalty[j], 0.0
    for m in range(k):
        w_m, column, penalty = table.W[m, j], form.columns[table.support[m]], form.penalty[table.support[m]]
        size += abs(w_m)
        s += penalty * w_m * w_m
        r += penalty * w_m * table.x[m]
        for t in range(q.size):
            q[t] -= w_m * column[t]
    for t in range(q.size):
        s += q[t] * q[t]
        r += q[t] * e[t]
    for m in range(k):
        column = form.columns[table.support[m]]
        along = -form.penalty[table.support[m]] * table.W[m, j]
        for t in range(q.size):
            along += column[t] * q[t]
        g[m] = along
    for m in range(k):
        change = 0.0
        for l in range(k):
            change += table.P[m, l] * g[l]
        w[m] = table.W[m, j] + change
        s -= change * g[m]
        r -= change * h[m]
    return r, s, 4.0 * EPSILON * (k + 4) * size


@kernel
def enlist(table, count, i, j):
    """Put flip (i, j) on the short list; returns how many there are, counting those for which there is no room."""
    if count < LISTED:
        table.listed[count, 0], table.listed[count, 1] = i, j
    return count + 1


@template
def refresh(form, table, state):
    """The table of the support, free of accumulated rounding: MINIMUM, NEED_ROW, or DOUBT if only the columns can tell.

    Like every `template` here it has one place in each entry: what stands there twice is compiled twice.
    """
    state.doubts = 0
    for m in range(state.k):
        if not has_row(form, table, table.support[m]):
            state.wanted = table.support[m]
            return NEED_ROW
    if border(form, table, state.k) < state.k:
        return DOUBT
    fill(form, table, state)
    state.stale = 0
    return MINIMUM


@template
def border(form, table, n):
    """P of the first n slots of the support, from G; how many slots it could border."""
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
def weigh(form, table, state):
    r"""Enter E of the support, known to SURE y'y; False if that takes the columns, which are not at hand.

    From the columns, with the residual e and the gradient :math:`g = X_S^T e - \lambda x` of the x at hand, it is
    :math:`\frac12 (e^T e + x^T \lambda x - g^T P g)`: errors of x count with their square, and then with those of P.
    """
    k, x, P = state.k, table.x, table.P
    if 1.5 * tau_of(state) <= SURE:
        total = form.yy
        for m in range(k):
            total -= x[m] * form.b[table.support[m]]
        state.energy = 0.5 * total
        return True
    if form.target.size == 0:
        return False
    (e, g), total = residual_of(form, table, k), 0.0
    for t in range(e.size):
        total += e[t] * e[t]
    for m in range(k):
        total += form.penalty[table.support[m]] * x[m] * x[m]
    for m in range(k):
        for l in range(k):
            total -= g[m] * P[m, l] * g[l]
    state.energy = 0.5 * total
    return True
