r"""What `judging` does for all flips and columns, compiled: descents and additions decided from the columns.

For tables without ridge whose columns are at hand, which is the ordinary case. The basis of a support is that of
`orthogonal`; all columns meet it together, so that the work is a few products of matrices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import INFLATION
from pairflip.engines.numba.compile import entry, kernel
from pairflip.engines.numba.kicks import FILL, HALF_BEST, RANDOM, allow_half, below, draw
from pairflip.engines.numba.orthogonal import append, combine, dot, project_out, row_dot
from pairflip.least_squares import SINGULAR

_LITTLE = 1e-3
_TOGETHER = 512  # columns that are projected together


class JudgeMemory(NamedTuple):
    """Memory: Q (K, M), T, H (K, K) and what follows from them; of all columns c (N, K), |q|^2, q.e (N,), Delta E.

    `H` and `alone` are the directions that slots contribute alone, and what these explain of y.
    """

    Q: Any
    T: Any
    H: Any
    Qy: Any
    e: Any
    inflated: Any
    alone: Any
    q: Any
    c: Any
    met_c: Any
    left: Any
    along: Any
    delta: Any
    inside: Any


def new_room(largest: int, n_columns: int, n_rows: int) -> JudgeMemory:
    """Uninitialized memory for supports of up to `largest` columns."""

    def empty(*shape: int) -> Any:
        return np.empty(shape)

    return JudgeMemory(
        Q=empty(largest, n_rows), T=empty(largest, largest), H=empty(largest, largest), Qy=empty(largest),
        e=empty(n_rows), inflated=empty(largest), alone=empty(largest), q=empty(n_rows), c=empty(largest),
        met_c=empty(n_columns, largest), left=empty(n_columns), along=empty(n_columns),
        delta=empty(n_columns, largest), inside=np.zeros(n_columns, np.uint8),
    )  # fmt: skip


@kernel
def orthogonalize(columns, target, support, k, room):
    """The basis of a support and all that follows from it; False if the support is singular."""
    Q, T, H, e = room.Q, room.T, room.H, room.e
    for m in range(k):
        for t in range(e.size):
            room.q[t] = columns[support[m], t]
        s = project_out(Q, m, room.q, room.c)
        if not s > SINGULAR:
            return False
        append(room, m, s)
    for m in range(k):
        if not room.inflated[m] < INFLATION:
            return False
    for t in range(e.size):
        e[t] = target[t]
    project_out(Q, k, e, room.Qy)
    for i in range(k):
        root, total = room.inflated[i] ** 0.5, 0.0
        for m in range(k):
            H[i, m] = T[i, m] / root
            total += H[i, m] * room.Qy[m]
        room.alone[i] = total
    return True


@kernel
def inflation_in(room, k):
    """Bound on the largest variance inflation factor: their sum less k - 1."""
    total = 1.0
    for m in range(k):
        total += room.inflated[m] - 1.0
    return total


@kernel
def meet(columns, j, k, room):
    """Coordinates of column j in the basis, what is left of it, and how much of that lies along the residual."""
    for t in range(room.q.size):
        room.q[t] = columns[j, t]
    room.left[j] = project_out(room.Q, k, room.q, room.c)
    for m in range(k):
        room.met_c[j, m] = room.c[m]
    room.along[j] = dot(room.q, room.e)


@kernel
def meet_all(columns, k, room):
    """`meet` for all columns; of those of which little is left, the rest is projected once more."""
    Q, n, rows = room.Q[:k], columns.shape[0], columns.shape[1]
    for first in range(0, n, _TOGETHER):
        last = min(first + _TOGETHER, n)
        block = columns[first:last]
        c = np.dot(block, Q.T)
        rest = block - np.dot(c, Q)
        for l in range(last - first):
            j, q = first + l, rest[l]
            s = dot(q, q)
            for m in range(k):
                room.met_c[j, m] = c[l, m]
            if s < _LITTLE:
                for m in range(k):
                    room.c[m] = row_dot(Q, m, q)
                    room.met_c[j, m] += room.c[m]
                combine(Q, k, room.c, -1.0, q)
                s = dot(q, q)
            room.left[j] = s
            along = 0.0
            for t in range(rows):
                along += q[t] * room.e[t]
            room.along[j] = along


@kernel
def weigh_flips(columns, support, k, listed, room):
    """Delta E (N, k) of all flips, or of those listed (slot, column), the others infinite; so are singular ones."""
    n = columns.shape[0]
    for j in range(n):
        for i in range(k):
            room.delta[j, i] = np.inf
    if listed.shape[0] == 0:
        meet_all(columns, k, room)
    for at in range(listed.shape[0] if listed.shape[0] else n):
        j, slot = (listed[at, 1], listed[at, 0]) if listed.shape[0] else (at, -1)
        if room.inside[j]:
            continue
        if slot >= 0 and (at == 0 or listed[at - 1, 1] != j):  # a column stands there once for each of its slots
            meet(columns, j, k, room)
        for i in range(k):
            if slot < 0 or i == slot:
                alpha, g = 0.0, room.alone[i]
                for m in range(k):
                    alpha += room.H[i, m] * room.met_c[j, m]
                s, r = room.left[j] + alpha * alpha, room.along[j] + alpha * g
                if s > SINGULAR:
                    room.delta[j, i] = 0.5 * (g * g - r * r / s)


@kernel
def lowest_flip(support, k, tie, room):
    """Slot and column of the lowest flip in `delta`, of equals the first by what enters, then by what leaves; or -1."""
    n, lowest = room.left.size, np.inf
    for j in range(n):
        for i in range(k):
            lowest = min(lowest, room.delta[j, i])
    if lowest < -tie:
        for j in range(n):
            slot = -1
            for i in range(k):
                delta = room.delta[j, i]
                if delta <= lowest + tie and delta < -tie and (slot < 0 or support[i] < support[slot]):
                    slot = i
            if slot >= 0:
                return slot, j
    return -1, -1


@entry
def descend_by_columns(columns, target, support, k, listed, asked, tie, calm, room):
    """Flip until the support is well conditioned (inflation up to `calm`) or at a minimum: (at a minimum, energy).

    If a flip is `asked` for, the first one is made whatever the inflation. With a list of flips (slot, column), that is
    the best of these; if it is singular, the best of all, because the others were left out for a flip that cannot be
    made.
    """
    for j in range(columns.shape[0]):
        room.inside[j] = 0
    for m in range(k):
        room.inside[support[m]] = 1
    slot, column, leaving, energy = -1, -1, -1, 0.0  # the flip that is tried
    known = False  # whether `delta` belongs to the support
    while True:
        regular = orthogonalize(columns, target, support, k, room)
        if slot >= 0 and regular:
            if not 0.5 * dot(room.e, room.e) < energy:  # near the largest inflation rounding could go in circles
                support[slot] = leaving
                return True, energy
            room.inside[leaving], room.inside[column], asked, known = 0, 1, False, False
            listed = listed[:0]
        elif slot >= 0:
            support[slot], room.delta[column, slot] = leaving, np.inf
            known = listed.shape[0] == 0
            listed = listed[:0]
            if not known:
                slot = -1
                continue  # for the basis of the support as it was
        if not known:
            energy = 0.5 * dot(room.e, room.e)
            if not asked and inflation_in(room, k) <= calm:
                return False, energy
            weigh_flips(columns, support, k, listed, room)
            known = True
        slot, column = lowest_flip(support, k, tie, room)
        if slot < 0:
            return True, energy
        leaving = support[slot]
        support[slot] = column


@kernel
def append_column(columns, j, k, room):
    """Make column j the next one of the basis; False (nothing changed) if the support would be singular."""
    for t in range(room.q.size):
        room.q[t] = columns[j, t]
    s = project_out(room.Q, k, room.q, room.c)
    if not s > SINGULAR:
        return False
    for l in range(k):
        along = 0.0
        for m in range(k):
            along += room.T[l, m] * room.c[m]
        if not room.inflated[l] + along * along / s < INFLATION:
            return False
    if not 1.0 / s < INFLATION:
        return False
    append(room, k, s)
    explained = row_dot(room.Q, k, room.e)
    for t in range(room.e.size):
        room.e[t] -= explained * room.Q[k, t]
    return True


@kernel
def first_of_best(gain, tie):
    """The first column whose gain equals the largest, -1 if none has any."""
    most = -np.inf
    for j in range(gain.size):
        most = max(most, gain[j])
    for j in range(gain.size):
        if most > -np.inf and gain[j] >= most - tie:
            return j
    return -1


@entry
def fill_by_columns(columns, target, support, k, size, kind, plan, round_, drawn, pool, tie, calm, room):
    """Add columns as `kicks.enter` would, until there are `size` or the support is well conditioned: (k, drawn).

    At least one is added; k is -1 if no column can be.
    """
    n, inside, gain, first = columns.shape[0], room.inside, room.delta[:, 0], k
    for j in range(n):
        inside[j] = 0
    for m in range(k):
        inside[support[m]] = 1
    orthogonalize(columns, target, support, k, room)
    last = 0
    while k < size and (k == first or inflation_in(room, k) > calm):
        if kind != RANDOM:
            meet_all(columns, k, room)
            allow_half(plan.key, round_, k, pool.allowed)
        half = kind == HALF_BEST
        while True:
            # The next column to be tried: drawn, the first one that was not tried, or the best one.
            if kind == RANDOM and drawn < 8 * n + 64:
                w0, _, _, _ = draw(plan.key, round_, FILL, drawn)
                j = below(w0, n)
                drawn += 1
                if pool.left[j] or inside[j]:
                    continue
            elif kind == RANDOM:
                j, last = last, last + 1
                if j < n and inside[j]:
                    continue
            else:
                for j in range(n):
                    gain[j] = -np.inf
                    if room.left[j] > SINGULAR and not inside[j] and (pool.allowed[j] or not half):
                        gain[j] = 0.5 * room.along[j] * room.along[j] / room.left[j]
                j = first_of_best(gain, tie)
                if j < 0 and half:
                    half = False
                    continue
            if j < 0 or j >= n:
                return -1, drawn
            if append_column(columns, j, k, room):
                support[k], inside[j] = j, 1
                k += 1
                break
            room.left[j] = 0.0  # it cannot be added
    return k, drawn
