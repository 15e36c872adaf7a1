r"""The table of a support, from which every move is scored, and the moves that change it.

With the support S of k columns, :math:`P = G_{SS}^{-1}`, :math:`C = B_S P` (q, k), :math:`W = P G_{S:}` (k, N),
:math:`R = B - C G_{S:}` (q, N) and :math:`s_j = G_{jj} - G_{jS} W_j`, exchanging slot i (:math:`p = P_{ii}`) for column
j changes the energy by

.. math:: \Delta E = \tfrac12 \left(|C_i|^2 / p - |R_j + C_i W_{ij} / p|^2 / (s_j + W_{ij}^2 / p)\right) .

Targets and slots change alike: the rows R above W are one array `A`, the rows :math:`-C` above P another, `Q`. Adding
column j with :math:`h = (G_j - G_{jS} W) / s_j`, and removing slot i, are

.. math:: A_m \to A_m - A_{mj} h, \quad s \to s - s_j h^2, \qquad
          A_m \to A_m - (Q_{mi} / p) W_i, \quad s \to s + W_i^2 / p

for all rows m, and the same for Q. Any number of targets, and ridge (a part of the diagonal of G), are data.

Where units of several columns enter and leave together, `units` keeps more rows in the same table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.compiled import apart
from pairflip.moments import Form

NOWHERE = -1
ENTERS, LEAVES = np.int64(1), np.int64(-1)
"""Not plain numbers, for each of which a function that takes them would be compiled once more."""
THIN = 1e-9
"""A column of which less than this is independent of the support (of its squared norm) does not enter."""
S, GAIN, STATE = 0, 1, 2
"""Rows of `Table.values`: Schur complements, gains; and two numbers, the rounding that was added since the table was
computed anew, in units of the machine precision, and the rows that were worked on so far (further rows: `units`)."""
CLOSED, HELD, SLOTS, SUPPORT = 0, 1, 2, -1
"""Rows of `Table.columns`. By unit: how many reasons keep it out (it is in the support, or may not stand beside one
that is, or lacks one that it needs); how many units of the support need it. The columns in the slots of the table; and
the units of the support, which is the same row where units are columns."""


class KernelForm(NamedTuple):
    """What moves need to know of a problem beside rows of G (few arrays, because they are slow to compile).

    `B` (q, N), `yy`. `left` (2, N), d and l: folds that leave out one row share the matrix H of all rows, and
    :math:`G_{ij} = d_i H_{ij} d_j - l_i l_j`. Rules: at most one column of each group, `marks[0]` (`NOWHERE`: of none);
    no two columns whose positions, `marks[1]`, are closer than `apart`; of each pair `needs` (n, 2) the first needs the
    second. `ruled`: whether there are rules at all.
    """

    B: Any
    yy: float
    left: Any
    marks: Any
    apart: float
    needs: Any
    ruled: bool


class Table(NamedTuple):
    """Everything known of a support of k columns; arrays have room for K."""

    A: Any  # (q + K, N): residual correlations R, then W
    Q: Any  # (q + K, K): minus the coefficients C, then P
    values: Any  # (3, N), or more where units have several columns
    columns: Any  # (3, N), or (4, N) where units have several columns


def plain_form(B: Any, yy: float) -> KernelForm:
    """Columns and targets without rules."""
    n = B.shape[1]
    free = np.stack([np.full(n, float(NOWHERE)), np.arange(n, dtype=float)])
    return KernelForm(B, yy, np.stack([np.ones(n), np.zeros(n)]), free, 0.0, np.zeros((0, 2), np.int64), False)


def form_of(form: Form) -> KernelForm:
    """A problem as the moves see it."""
    targets, rules, n = form.B, form.rules, form.n_columns
    if not rules.any:
        return plain_form(targets, form.yy)
    left = np.stack([np.ones(targets.shape[1]), np.zeros(targets.shape[1])])
    owners = np.repeat(np.arange(n), np.diff(rules.need_start))
    marks = np.stack([rules.group.astype(float), rules.position])
    return KernelForm(targets, form.yy, left, marks, float(rules.apart), np.stack([owners, rules.need], axis=1), True)


def new_table(largest: int, n_columns: int, targets: int) -> Table:
    """Memory for supports of up to `largest` columns."""
    rows = targets + largest
    return Table(
        np.zeros((rows, n_columns)), np.zeros((rows, largest)),
        np.zeros((3, max(n_columns, 2))), np.zeros((3, n_columns), np.int64),
    )  # fmt: skip


def new_tables(count: int, largest: int, n_columns: int, targets: int) -> Table:
    """Memory for so many tables."""
    return Table(*(np.zeros((count, *each.shape), each.dtype) for each in new_table(largest, n_columns, targets)))


@apart
def table_at(tables, at):
    """One of several tables."""
    return Table(tables.A[at], tables.Q[at], tables.values[at], tables.columns[at])


@apart
def clash(form, l, j):
    """Whether columns l and j cannot be chosen together."""
    group, position = form.marks[0], form.marks[1]
    same = group[l] == group[j] and group[j] != NOWHERE
    return l != j and (same or abs(position[l] - position[j]) < form.apart)


@apart
def close(form, table, j, by):
    """Unit j enters or leaves (ENTERS, LEAVES): what it keeps out, what needs it, and what it needs."""
    closed, held = table.columns[CLOSED], table.columns[HELD]
    closed[j] += by
    if form.ruled:
        for l in range(form.marks.shape[1]):
            if clash(form, l, j):
                closed[l] += by
        for n in range(form.needs.shape[0]):
            owner, needed = form.needs[n, 0], form.needs[n, 1]
            if needed == j:
                closed[owner] -= by
            elif owner == j and needed != NOWHERE:
                held[needed] += by


@apart
def empty(form, table):
    """The table of no columns."""
    s, state, closed, held = table.values[S], table.values[STATE], table.columns[CLOSED], table.columns[HELD]
    state[0] = 0.0
    for l in range(closed.size):
        s[l], closed[l], held[l] = 1.0, 0, 0
    for n in range(form.needs.shape[0]):
        closed[form.needs[n, 0]] += 1
    for t in range(form.B.shape[0]):
        B, R = form.B[t], table.A[t]
        for l in range(B.size):
            R[l] = B[l]


@apart
def add(form, table, k, j, row):
    """Column j enters as number k; `row` (N,) is its row of the matrix."""
    A, Q, s, slots, q, n = table.A, table.Q, table.values[S], table.columns[SLOTS], len(form.B), row.size
    top, s_j, s_inverse = q + k, s[j], 1.0 / s[j]
    # Of its own, so that the compiler knows that it overlaps with nothing: twice as fast.
    f, h = np.empty(top), np.empty(n)
    for m in range(top):
        f[m] = A[m, j]
    d, left = form.left[0], form.left[1]
    d_j, left_j = d[j] * s_inverse, left[j] * s_inverse
    for l in range(n):
        h[l] = row[l] * d_j * d[l] - left_j * left[l]
    for m in range(k):
        own = slots[m]
        g = row[own] * d_j * d[own] - left_j * left[own]
        for l in range(n):
            h[l] -= g * A[q + m, l]
    for m in range(k):  # exactly: rounding in columns of the support would grow with every move
        h[slots[m]] = 0.0
    for m in range(top):
        f_m = f[m]
        for l in range(n):
            A[m, l] -= f_m * h[l]
        for l in range(k):
            Q[m, l] += f_m * f[q + l] * s_inverse
        A[m, j], Q[m, k] = 0.0, -f_m * s_inverse
    for l in range(n):
        s[l] -= s_j * h[l] * h[l]
    for l in range(n):
        A[top, l] = h[l]
    for l in range(k):
        Q[top, l] = -f[q + l] * s_inverse
    Q[top, k], A[top, j], s[j], slots[k] = s_inverse, 1.0, 0.0, j
    table.values[STATE, 0] += s_inverse
    table.values[STATE, 1] += 2.0 * top
    close(form, table, j, ENTERS)


@apart
def remove(form, table, k, i):
    """The column in slot i of k leaves; the last one takes its slot."""
    A, Q, s, slots, q = table.A, table.Q, table.values[S], table.columns[SLOTS], len(form.B)
    last, p, W, Q_i, column = k - 1, Q[q + i, i], A[q + i].copy(), Q[q + i].copy(), slots[i]
    for m in range(q + k):
        if m != q + i:
            f_m = Q[m, i] / p
            for l in range(W.size):
                A[m, l] -= f_m * W[l]
            for l in range(k):
                Q[m, l] -= f_m * Q_i[l]
            Q[m, i] = Q[m, last]
    for l in range(W.size):
        s[l] += W[l] * W[l] / p
    for l in range(W.size):
        A[q + i, l] = A[q + last, l]
    for l in range(k):
        Q[q + i, l] = Q[q + last, l]
    slots[i] = slots[last]
    table.values[STATE, 0] += p
    table.values[STATE, 1] += q + k
    close(form, table, column, LEAVES)


@apart
def gains(form, table, k, i):
    """Of every column the gain |R'|^2 / s' that it brings in place of slot i (i = k: in addition), or -1."""
    A, Q, s, gain, q, here = table.A, table.Q, table.values[S], table.values[GAIN], len(form.B), i < k
    # With 1 / p = 0 the same formulas give additions, so that there is one loop for both.
    W, p_inverse = A[q + i] if here else A[0], 1.0 / Q[q + i, i] if here else 0.0
    table.values[STATE, 1] += 2.0 + q
    for l in range(W.size):
        gain[l] = 0.0
    for t in range(q):
        a, R = Q[t, i] * p_inverse if here else 0.0, A[t]
        for l in range(W.size):
            r = R[l] - a * W[l]
            gain[l] += r * r
    for l in range(W.size):
        schur = s[l] + W[l] * W[l] * p_inverse
        gain[l] = gain[l] / schur if schur > THIN else -1.0


@apart
def block_gain(L, r, d):
    """The sum over targets of r' inv(L) r for a d x d block L (its lower half) and r (q, d); -1 if it is singular.

    Both are overwritten: L by its Cholesky factor, r by the solutions.
    """
    gain = 0.0
    for a in range(d):
        for b in range(a + 1):
            rest = L[a, b]
            for c in range(b):
                rest -= L[a, c] * L[b, c]
            if a > b:
                L[a, b] = rest / L[b, b]
            elif rest <= THIN:
                return -1.0
            else:
                L[a, a] = rest**0.5
    for t in range(len(r)):
        for a in range(d):
            rest = r[t, a]
            for c in range(a):
                rest -= L[a, c] * r[t, c]
            r[t, a] = rest / L[a, a]
            gain += r[t, a] * r[t, a]
    return gain


@apart
def is_open(form, table, j):
    """Whether column j may enter: nothing closes it, and it is independent of the support."""
    return table.columns[CLOSED, j] == 0 and table.values[S, j] > THIN


@apart
def may_gain(form, table, i, enough):
    """Whether a column may bring more than `enough` in place of slot i: for one target, without a division."""
    A, Q, s, q = table.A, table.Q, table.values[S], len(form.B)
    R, W, p_inverse, some = A[0], A[q + i], 1.0 / Q[q + i, i], q - 1
    a = Q[0, i] * p_inverse
    # Near a minimum most slots have no better column, which a test without division or branch tells.
    for l in range(W.size):
        r, schur = R[l] - a * W[l], s[l] + W[l] * W[l] * p_inverse
        some |= int(r * r > enough * schur)
    return some > 0


@apart
def best_column(table, allowed):
    """The open unit with the largest gain of those that `allowed` (U,) does not bar, or -1."""
    gain, closed, best, most = table.values[GAIN], table.columns[CLOSED], -1, -1.0
    for l in range(allowed.size):
        if gain[l] > most and closed[l] == 0 and allowed[l]:
            best, most = l, gain[l]
    return best


@apart
def best_addition(form, table, k, allowed):
    """The open unit that lowers the energy most, of those that `allowed` (U,) does not bar, or -1."""
    gains(form, table, k, k)
    return best_column(table, allowed)


@apart
def cost_of(form, table, i):
    """Twice the energy that removing slot i costs."""
    q, total = len(form.B), 0.0
    for t in range(q):
        total += table.Q[t, i] * table.Q[t, i]
    return total / table.Q[q + i, i]


@apart
def cheapest_removal(form, table, k):
    """The slot whose column is missed least, of those that no other column needs."""
    slot, least = 0, np.inf
    for i in range(k):
        cost = cost_of(form, table, i)
        if cost < least and table.columns[HELD, table.columns[SUPPORT, i]] == 0:
            slot, least = i, cost
    return slot


@apart
def best_flip(form, table, k, least, allowed):
    """(slot, column) of the exchange that lowers the energy most, by more than half of `least`; or (-1, -1)."""
    gain, slot, column = table.values[GAIN], -1, -1
    table.values[STATE, 1] += k
    for i in range(k):
        own = table.columns[SUPPORT, i]
        cost = cost_of(form, table, i)
        if table.columns[HELD, own] == 0 and may_gain(form, table, i, cost + least):
            gains(form, table, k, i)
            gain[own] = -1.0
            # What the leaving unit keeps out may enter in its place.
            close(form, table, own, LEAVES)
            j = best_column(table, allowed)
            close(form, table, own, ENTERS)
            if j >= 0 and gain[j] - cost > least:
                slot, column, least = i, j, gain[j] - cost
    return slot, column


@apart
def trace(form, table, k):
    """The trace of P: the sum of the columns' variance inflation factors, in which rounding is measured."""
    total = 0.0
    for m in range(k):
        total += table.Q[len(form.B) + m, m]
    return total


@apart
def energy(form, table, k):
    """E of the support."""
    total = form.yy
    for t in range(len(form.B)):
        for m in range(k):
            total += table.Q[t, m] * form.B[t, table.columns[SLOTS, m]]
    return 0.5 * total
