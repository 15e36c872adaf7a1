r"""Units of several columns: the moves of the table and the search, made for groups that enter and leave as a whole.

A unit u of d columns enters and leaves column by column. It brings :math:`R_u S_u^{-1} R_u^T` with its d x d block of
the matrix :math:`S = G - G_{:S} W` of Schur complements. The table keeps a band of S that contains all these blocks:
beside s, its diagonal, rows STATE + b of `values` with :math:`S_{j, j - b}`. In place of another unit v,

.. math:: R' = R + C_v P_{vv}^{-1} W_v, \qquad S' = S + W_v^T P_{vv}^{-1} W_v

take the places of R and S. Removing v costs :math:`C_v P_{vv}^{-1} C_v^T`. The columns of a unit are orthonormal.

Everything else is the code of `table` and `search` with these functions in place of theirs. The search itself runs in
Python: compiling it once more would take longer than most searches.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from pairflip.compiled import apart, entry, with_names
from pairflip.engines.numba import search, table
from pairflip.engines.numba.table import (
    CLOSED,
    ENTERS,
    GAIN,
    LEAVES,
    SLOTS,
    STATE,
    SUPPORT,
    S,
    Table,
    block_gain,
)
from pairflip.moments import Form

UnitsForm: Any = namedtuple("UnitsForm", (*table.KernelForm._fields, "start", "clash"))  # type: ignore[misc]
"""As `table.KernelForm`; where the columns of each unit begin, `start` (U + 1,), and which units `clash` (U, U)."""


def form_of(form: Form) -> Any:
    """A problem of units as the moves see it; conflicts of all kinds are in `clash`."""
    return UnitsForm(*table.form_of(form), form.start, form.rules.clash)  # type: ignore[call-arg]


def new_table(form: Any, largest: int) -> Table:
    """Memory for supports of up to `largest` units."""
    (targets, n), widths = form.B.shape, np.sort(np.diff(form.start))[::-1]
    slots = int(widths[:largest].sum())
    values, columns = np.zeros((STATE + int(widths[0]), max(n, 2))), np.zeros((4, n), np.int64)
    return Table(np.zeros((targets + slots, n)), np.zeros((targets + slots, slots)), values, columns)


@apart
def columns_in(form, table, k):
    """How many columns the k units of the support have."""
    total = 0
    for i in range(k):
        u = table.columns[SUPPORT, i]
        total += form.start[u + 1] - form.start[u]
    return total


@apart
def slot_of(table, column):
    """The slot that has a column."""
    slot = 0
    while table.columns[SLOTS, slot] != column:
        slot += 1
    return slot


@apart
def close_nothing(form, table, j, by):
    """A column of a unit enters or leaves; what that closes is up to the unit."""


@apart
def clash(form, l, j):
    """Whether units l and j cannot be chosen together."""
    return form.clash[l, j]


@apart
def schur_gain(form, R, values, u, L, r):
    """What unit u brings, from residual correlations R (q, N) and Schur complements (in `values`); -1 if it depends."""
    first, d = form.start[u], form.start[u + 1] - form.start[u]
    for a in range(d):
        for t in range(len(r)):
            r[t, a] = R[t, first + a]
        for b in range(a + 1):
            L[a, b] = values[S if a == b else STATE + a - b, first + a]
    return block_gain(L, r, d)


@apart
def slot_block(form, table, u):
    """The block of P and minus the coefficients (q, d) of a unit of the support, as `block_gain` leaves them; cost."""
    first, d, q = form.start[u], form.start[u + 1] - form.start[u], len(form.B)
    L, r = np.empty((d, d)), np.empty((q, d))
    for a in range(d):
        slot = slot_of(table, first + a)
        for t in range(q):
            r[t, a] = table.Q[t, slot]
        for b in range(a + 1):
            L[a, b] = table.Q[q + slot, slot_of(table, first + b)]
    return L, r, block_gain(L, r, d)


@apart
def cost_of(form, table, i):
    """Twice the energy that removing unit number i costs."""
    return slot_block(form, table, table.columns[SUPPORT, i])[2]


@apart
def gains(form, table, k, i):
    """Of every unit the gain that it brings in place of unit number i (i = k: in addition), or -1."""
    q, n, width = len(form.B), form.B.shape[1], table.values.shape[0] - STATE
    R, values = np.empty((q, n)), table.values.copy()
    for l in range(n):
        for t in range(q):
            R[t, l] = table.A[t, l]
    if i < k:
        u = table.columns[SUPPORT, i]
        L, r, _ = slot_block(form, table, u)
        d = len(L)
        V = np.empty((d, n))  # inv(L) W_u, so that V'V is what the unit took from S
        for a in range(d):
            v, W, f = V[a], table.A[q + slot_of(table, form.start[u] + a)], 1.0 / L[a, a]
            for l in range(n):
                v[l] = W[l]
            for c in range(a):
                for l in range(n):
                    v[l] -= L[a, c] * V[c, l]
            for l in range(n):
                v[l] *= f
            for t in range(q):
                for l in range(n):
                    R[t, l] -= r[t, a] * v[l]
            for b in range(width):
                s = values[STATE + b if b > 0 else S]
                for l in range(b, n):
                    s[l] += v[l] * v[l - b]
        table.values[STATE, 1] += d * (q + width + d)
    # Memory for one block, used for all units in turn.
    L, r = np.empty((width, width)), np.empty((q, width))
    for u in range(form.start.size - 1):
        table.values[GAIN, u] = schur_gain(form, R, values, u, L, r)
    table.values[STATE, 1] += (q + width) * width


@apart
def may_gain(form, table, i, enough):
    """Whether a unit may bring more than `enough` in place of another: not known in advance."""
    return True


@entry
def is_open(form, table, u):
    """Whether unit u may enter: nothing closes it, and its columns are independent of the support."""
    q, width = len(form.B), table.values.shape[0] - STATE
    if table.columns[CLOSED, u] > 0:
        return False
    return schur_gain(form, table.A, table.values, u, np.empty((width, width)), np.empty((q, width))) >= 0.0


close = apart(with_names(table.close, "unit_close", clash=clash))
add_column = apart(with_names(table.add, "unit_add", close=close_nothing))
remove_column = apart(with_names(table.remove, "unit_remove", close=close_nothing))


empty_columns = apart(table.empty.py_func)


@entry
def empty(form, table):
    """The table of no units; the columns of each are orthonormal."""
    empty_columns(form, table)
    for b in range(STATE + 1, table.values.shape[0]):
        for l in range(table.values.shape[1]):
            table.values[b, l] = 0.0


@apart
def move_band(form, table, slot, sign):
    """What the column in a slot takes of the band when it enters (sign -1), or gives back before it leaves (1)."""
    q = len(form.B)
    # s, the diagonal, is moved by add and remove themselves; here are the elements beside it.
    W, f = table.A[q + slot], sign / table.Q[q + slot, slot]
    for b in range(1, table.values.shape[0] - STATE):
        band = table.values[STATE + b]
        for l in range(b, W.size):
            band[l] += f * W[l] * W[l - b]


@entry
def add_rows(form, table, k, u, rows):
    """Unit u enters as number k, column by column; `rows` (d, N) are those of its columns of the matrix."""
    n, first = columns_in(form, table, k), form.start[u]
    for a in range(len(rows)):
        add_column(form, table, n, first + a, rows[a])
        move_band(form, table, n, -1.0)
        n += 1
    table.columns[SUPPORT, k] = u
    close(form, table, u, ENTERS)


@entry
def remove(form, table, k, i):
    """Unit number i of k leaves; the last one takes its place in the support."""
    support, n = table.columns[SUPPORT], columns_in(form, table, k)
    u = support[i]
    # Column by column, each where it stands now: removing one moves the last slot into its place.
    for column in range(form.start[u], form.start[u + 1]):
        slot = slot_of(table, column)
        move_band(form, table, slot, 1.0)
        remove_column(form, table, n, slot)
        n -= 1
    support[i] = support[k - 1]
    close(form, table, u, LEAVES)


column_energy, column_trace = apart(table.energy.py_func), apart(table.trace.py_func)


@entry
def energy(form, table, k):
    """E of the support."""
    return column_energy(form, table, columns_in(form, table, k))


@entry
def trace(form, table, k):
    """The trace of P."""
    return column_trace(form, table, columns_in(form, table, k))


count_columns = entry(columns_in.py_func)
column_set_gain = entry(search.set_gain.py_func)


def add_unit(G: Any, form: Any, table: Table, k: int, u: int) -> None:
    """Unit u enters as number k; item j of G is row j of the matrix."""
    add_rows(form, table, k, u, np.stack([G[j] for j in range(form.start[u], form.start[u + 1])]))


def set_gain(G: Any, form: Any, table: Table, k: int, units: Any) -> float:
    """Twice what some units lower the energy by together; -1 if they are dependent."""
    columns = np.concatenate([np.arange(form.start[u], form.start[u + 1]) for u in units])
    return float(column_set_gain(G, form, table, count_columns(form, table, k), columns))


_names = {"gains": gains, "cost_of": cost_of, "may_gain": may_gain, "close": close}
best_addition = entry(with_names(table.best_addition, "unit_best_addition", **_names))
best_flip = entry(with_names(table.best_flip, "unit_best_flip", **_names))
cheapest_removal = entry(with_names(table.cheapest_removal, "unit_cheapest_removal", **_names))


def in_units(**replaced: Any) -> dict[str, Any]:
    """The functions of `search` for units of several columns, as Python runs them, with others for some of them."""
    own = {
        "is_open": is_open, "empty": empty, "remove": remove, "energy": energy, "trace": trace, "add_unit": add_unit,
        "set_gain": set_gain, "best_addition": best_addition, "best_flip": best_flip,
        "cheapest_removal": cheapest_removal,
    }  # fmt: skip
    return search.in_python(**own | replaced)
