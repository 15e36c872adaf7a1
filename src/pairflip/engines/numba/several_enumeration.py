r"""Every support of k columns for several targets, or under rules, down the residual Gram matrix.

With the columns S of a node projected out, :math:`R = G - G_{:S} P G_{S:}` and the rows :math:`r_j` (q,) of
:math:`B - G_{:S} X`; taking column i in as well is one step of elimination. Where one column is missing, column j is
looked at again, from the columns, if it may reach what is asked for:

.. math:: |r_j|^2 + \delta \ge (\text{wanted} - \text{explained}) \, s_j .

As in `enumeration`, elimination errs as if the elements of G were off by :math:`\varepsilon`, so that a support errs by
at most :math:`\varepsilon \sum_t (|x_t|_1^2 + 2 |x_t|_1 |y_t|) \le 3 \varepsilon k \, \mathrm{tr} P \; \mathrm{tr} Y^T Y`;
beside the chosen ones, with :math:`\tau = \mathrm{tr} P`, that of column j is at most :math:`\tau + (1 + \tau) / s_j`,
which makes :math:`\delta` of it (times 8 for 3). Pivots that are in doubt are had from the columns, and so is everything
below them (`rebase_several`). Columns that clash by the rules are not taken; a whole support is asked when it is judged.
"""  # noqa: E501

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.numba.compile import apart, entry, template
from pairflip.engines.numba.enumeration import ROUNDING, SURELY, doubt
from pairflip.engines.numba.lowest import build, pivot_of, reach_of, take_out
from pairflip.engines.numba.orthogonal import load, row_dot
from pairflip.engines.numba.several_lowest import clashes, judge_last_several, set_rests
from pairflip.least_squares import SINGULAR


class SeveralDepths(NamedTuple):
    """Memory of a walk down the tree, for each depth 0 .. k - 1; see `enumeration.Depths`. `r` is (k, N, q)."""

    R: Any
    r: Any
    s: Any
    V: Any
    dead: Any
    T: Any
    trace: Any
    explained: Any
    error: Any
    start: Any
    rest: Any


def new_several_depths(k: int, n_columns: int, n_rows: int, q: int) -> SeveralDepths:
    """Memory for supports of k columns; what is not touched is not taken.

    Parameters
    ----------
    k, n_columns, n_rows, q : int
        Size of a support, columns to choose from, length of the vectors, and targets.
    """
    return SeveralDepths(
        R=np.empty((max(k - 1, 1), n_columns, n_columns)), r=np.empty((k, n_columns, q)), s=np.empty((k, n_columns)),
        V=np.zeros((k, n_columns)), dead=np.zeros((k, n_columns), np.uint8), T=np.zeros((k, k)), trace=np.zeros(k),
        explained=np.zeros(k), error=np.zeros(k), start=np.zeros(k, np.int64), rest=np.empty((n_columns, n_rows)),
    )  # fmt: skip


@apart
def rebase_several(exact, basis, chosen, levels, depth, i, yy):
    """Everything at `depth`, where i was taken last, from the columns: unit-norm columns beside those chosen.

    False if these are singular, so that nothing below needs to be looked at.
    """
    chosen.at[depth - 1] = i
    build(exact, basis, chosen, depth)
    for l in range(depth):
        total = 0.0
        for n in range(depth):
            total += basis.T[l, n] * basis.T[l, n]
        if SURELY * total > 1.0 / SINGULAR:
            return False
    levels.explained[depth] = yy - set_rests(exact, basis, depth)
    rest, dead, smallest = levels.rest, levels.dead[depth], 1.0
    for j in range(i):
        load(exact, j, depth, basis.q)
        s = take_out(basis, depth, basis.q)
        dead[j] = s <= SURELY * SINGULAR
        scale = 0.0 if dead[j] else 1.0 / s**0.5
        for m in range(basis.q.size):
            rest[j, m] = scale * basis.q[m]
        if not dead[j]:
            smallest = min(smallest, s)
        for t in range(exact.targets.shape[0]):
            levels.r[depth, j, t] = row_dot(rest, j, basis.E[t])
        levels.s[depth, j] = 1.0
        if depth < levels.R.shape[0]:
            for l in range(j + 1):
                levels.R[depth, j, l] = row_dot(rest, l, rest[j])
    levels.trace[depth] = 0.0
    levels.error[depth] = ROUNDING / smallest**0.5
    levels.start[depth] = depth
    return True


@apart
def bury_several(exact, basis, chosen, levels, depth, i, limit):
    """Columns that are singular beside those chosen are dead from here on: they explain nothing."""
    for j in range(i):
        if levels.s[depth, j] <= limit and not levels.dead[depth, j]:
            levels.dead[depth, j] = pivot_of(exact, basis, chosen, depth, j) <= SURELY * SINGULAR
        if levels.dead[depth, j]:
            levels.s[depth, j] = 1.0
            for t in range(levels.r.shape[2]):
                levels.r[depth, j, t] = 0.0


@template
def descend_several(R, exact, basis, chosen, levels, depth, i, k, yy):
    """Take column i at `depth`, where R is, which leads to depth + 1; False if there is nothing below."""
    below, start, V, s, r, q = depth + 1, levels.start[depth], levels.V, levels.s, levels.r, levels.r.shape[2]
    chosen.at[depth] = i
    for j in range(i):
        levels.dead[below, j] = levels.dead[depth, j]
    # The next row of the inverse factor of the chosen columns, w / root(s); its squares add up to the trace of P.
    T, w2 = levels.T, 0.0
    for l in range(start, depth):
        T[depth, l] = 0.0
        for m in range(l, depth):
            T[depth, l] -= V[m, i] * T[m, l]
        w2 += T[depth, l] * T[depth, l]
    if s[depth, i] <= doubt(levels.error[depth], w2, k):
        return rebase_several(exact, basis, chosen, levels, below, i, yy)
    scale, gained = 1.0 / s[depth, i] ** 0.5, 0.0
    T[depth, depth] = scale
    for l in range(start, depth):
        T[depth, l] *= scale
    for j in range(i):
        v = R[i, j] * scale
        V[depth, j] = v
        s[below, j] = s[depth, j] - v * v
    for t in range(q):
        along = r[depth, i, t] * scale
        gained += along * along
        for j in range(i):
            r[below, j, t] = r[depth, j, t] - V[depth, j] * along
    levels.trace[below] = levels.trace[depth] + (1.0 + w2) * scale * scale
    levels.explained[below] = levels.explained[depth] + gained
    levels.error[below] = levels.error[depth]
    levels.start[below] = start
    limit, few = doubt(levels.error[below], levels.trace[below], k), 0.0
    for j in range(i):
        few += 1.0 if s[below, j] <= limit else 0.0
    if few > 0.0:
        bury_several(exact, basis, chosen, levels, below, i, limit)
    return True


@template
def last_columns(exact, basis, chosen, levels, kept, last, k, yy):
    """All columns j < `last` as the last of a support; what may reach what is asked for is judged."""
    depth, q, hits = k - 1, levels.r.shape[2], 0
    error, trace = levels.error[depth], levels.trace[depth]
    wanted = yy - reach_of(kept, yy) - levels.explained[depth]
    slack, limit = 8.0 * k * error * (1.0 + 2.0 * trace) * yy, doubt(error, trace, k)
    for j in range(last):
        square = slack
        for t in range(q):
            square += levels.r[depth, j, t] * levels.r[depth, j, t]
        s = levels.s[depth, j]
        seen = (square >= wanted * s or s <= limit) and not levels.dead[depth, j]
        chosen.seen[j] = seen
        hits += seen
    if hits:
        judge_last_several(exact, basis, chosen, kept, last, yy)


@entry
def enumerate_several(G, B, exact, basis, chosen, levels, kept, yy, rounding, first, last, stop):
    """All supports of k >= 2 columns whose largest column is one of `first` to `last` - 1.

    `stop` (1,) is looked at now and then; False if it was set before the end.
    """
    k = chosen.at.size
    levels.error[0] = rounding
    for j in range(B.shape[0]):
        levels.s[0, j], levels.dead[0, j] = 1.0, 0
        for t in range(B.shape[1]):
            levels.r[0, j, t] = B[j, t]
    place = np.zeros(k, np.int64)  # next column to be taken at each depth
    for top in range(max(first, k - 1), last):
        depth = 0
        place[0] = top
        while depth >= 0:
            i = place[depth]
            if (depth == 0 and i < top) or i < k - 1 - depth:
                depth -= 1
                continue
            place[depth] = i - 1
            if levels.dead[depth, i] or clashes(exact, chosen.at, depth, i):
                continue
            if stop[0]:
                return False
            R = G if depth == 0 else levels.R[depth]
            if not descend_several(R, exact, basis, chosen, levels, depth, i, k, yy):
                continue
            if depth + 1 < k - 1:
                if levels.start[depth + 1] != depth + 1:
                    for j in range(i):
                        v = levels.V[depth, j]
                        for l in range(j + 1):
                            levels.R[depth + 1, j, l] = R[j, l] - v * levels.V[depth, l]
                depth += 1
                place[depth] = i - 1
                continue
            last_columns(exact, basis, chosen, levels, kept, i, k, yy)
    return True
