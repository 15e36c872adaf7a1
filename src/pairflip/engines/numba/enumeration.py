r"""Every support of k units, one after the other, down the residual Gram matrix; the last two columns in closed form.

With the columns S of a node projected out, :math:`R = G - G_{:S} P G_{S:}` and :math:`r = B - C G_{S:}` (q, N); taking
column i in as well is one step of elimination, a unit of d columns d steps. Where two single columns are missing, the
pair (i, j) explains

.. math:: \frac{|r_i|^2}{s_i} + \frac{|r_j - c \, r_i|^2}{s_j - c R_{ij}}, \quad c = R_{ij} / s_i, \ s_i = R_{ii},

more of :math:`\mathrm{tr} Y^T Y`. A pair is looked at again, from the columns, if it may reach what is asked for:

.. math:: |r_j - c \, r_i|^2 + \delta_{ij} \ge (\text{wanted} - \text{explained}) \, (s_j - c R_{ij}),

without a division, and with :math:`\delta_{ij}` so large that rounding leaves nothing out. The elimination errs as if
the elements of G were off by :math:`\varepsilon`, so that a support with coefficients x errs by at most
:math:`\varepsilon (|x|_1^2 + 2 |x|_1 |y|)` for each target; of these :math:`x_j^2` is what column j explains divided by
its pivot, and the others follow from P. Where units have several columns, one unit is missing, and that is at most
:math:`3 \varepsilon K \, \mathrm{tr} P \; \mathrm{tr} Y^T Y` for K columns. A pivot that is itself in doubt is had from
the columns, and so is everything below it (`look_again`). Nothing that is kept has seen the Gram matrix (`judge`).

Units of a support are taken in descending order, so that loops run from 0 on: such loops vectorize.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.compiled import apart, entry
from pairflip.engines.base import EPSILON
from pairflip.engines.numba.lowest import Exact, beside, build, judge, keeps_rules, most_columns, reach_of, set_rests
from pairflip.least_squares import SINGULAR

ROUNDING = 32.0 * EPSILON
"""How far elements of G (unit-norm columns) are off, elimination included."""
_DOUBT = 20.0  # a pivot is in doubt if it is less than so many times its error
SURELY = 1.0 - 1e-4
"""Of SINGULAR: what is below is singular, whatever rounding did."""
TRACE, EXPLAINED, ERROR = 0, 1, 2
"""Columns of `Levels.node`: trace of P, what is explained of all targets, and the error of R."""
FIRST, ROWS, NEXT = 0, 1, 2
"""Columns of `Levels.count`: where the columns begin that P and T know of (since the last `look_again`), where they
end, and the unit that is taken next."""
OVER_S, GAIN, SLACK, SIZE, SPREAD, EDGE, TOTAL, RATIO = 0, 1, 2, 3, 4, 5, 6, 7
"""Rows of `Levels.pair`, numbers of each column as the first of a pair (RATIO: r / s, for each target)."""


ALL = np.int64(0)


class Levels(NamedTuple):
    """Memory of a walk down the tree: what each depth (number of units taken) needs.

    R (depths, D, D) with depth 0 unused; r (k + 1, q, D), s (k + 1, D): residual correlations and pivots; V (K + 1, D):
    scaled rows of elimination, one for each column taken, and a row of zeros; `dead` (k + 1, U): units that are
    singular beside those chosen; T (K, K): inverse factor of the chosen columns; `along` (K, q) what each explains of
    the targets, as a root; `rest` (D, L) the columns beside those chosen.
    """

    R: Any
    r: Any
    s: Any
    V: Any
    dead: Any
    T: Any
    along: Any
    node: Any
    count: Any
    rest: Any
    pair: Any


def new_levels(exact: Exact, k: int, B: Any) -> Levels:
    """Memory for supports of k units; what is not touched is not taken. B (q, D) are the products at the root."""
    length, units, (q, columns) = exact.vectors.shape[1], exact.start.size - 1, B.shape
    most, single = most_columns(exact.start, k), units == columns
    depths, inner = k - single, 0 if single and k == 2 else columns
    r, s = np.empty((k + 1, q, columns)), np.empty((k + 1, columns))
    r[0], s[0] = B, 1.0
    return Levels(
        R=np.empty((depths, inner, columns)), r=r, s=s,
        V=np.zeros((most + 1, columns)), dead=np.zeros((k + 1, units), np.uint8), T=np.zeros((most, most)),
        along=np.zeros((most, q)), node=np.zeros((k + 1, 3)), count=np.zeros((k + 1, 3), np.int64),
        rest=np.empty((inner, length)), pair=np.empty((7 + q, columns)),
    )  # fmt: skip


@apart
def doubt(error, w2, k):
    r"""A pivot :math:`1 - w \cdot g` errs by at most error (1 + |w|_1)^2; below this it may be singular or not."""
    return 2.0 * _DOUBT * error * (1.0 + k * w2)


@apart
def enter(R, exact, levels, depth, u, low):
    """Take unit u at `depth`, where R is: columns from `low` on at depth + 1, of which so many pivots are in doubt.

    -1 if a pivot of u itself is.
    """
    below, s, r, V, T, start = depth + 1, levels.s, levels.r, levels.V, levels.T, exact.start
    most, q, end, base, first = T.shape[0], r.shape[1], start[u + 1], levels.count[depth, ROWS], levels.count[depth, 0]
    trace, explained, error = levels.node[depth, TRACE], levels.node[depth, EXPLAINED], levels.node[depth, ERROR]
    # What is singular beside fewer units is singular beside more.
    for l in range(u):
        levels.dead[below, l] = levels.dead[depth, l]
    for j in range(low, end):
        s[below, j] = s[depth, j]
    for t in range(q):
        for j in range(low, end):
            r[below, t, j] = r[depth, t, j]
    top = base
    for i in range(end - 1, start[u] - 1, -1):
        # The next row of the inverse factor of the chosen columns, w / root(s); its squares add up to the trace of P.
        w2 = 0.0
        for l in range(first, top):
            T[top, l] = 0.0
            for m in range(l, top):
                T[top, l] -= V[m, i] * T[m, l]
            w2 += T[top, l] * T[top, l]
        if s[below, i] <= doubt(error, w2, most):
            return -1.0
        scale = 1.0 / s[below, i] ** 0.5
        T[top, top] = scale
        for l in range(first, top):
            T[top, l] *= scale
        for j in range(low, i):
            V[top, j] = R[i, j] * scale
        for m in range(base, top):
            factor = V[m, i] * scale
            for j in range(low, i):
                V[top, j] -= factor * V[m, j]
        for j in range(low, i):
            s[below, j] -= V[top, j] * V[top, j]
        for t in range(q):
            along = r[below, t, i] * scale
            levels.along[top, t] = along
            explained += along * along
            for j in range(low, i):
                r[below, t, j] -= V[top, j] * along
        trace += (1.0 + w2) * scale * scale
        top += 1
    levels.count[below, FIRST], levels.count[below, ROWS] = first, top
    levels.node[below, TRACE], levels.node[below, EXPLAINED], levels.node[below, ERROR] = trace, explained, error
    limit, few = doubt(error, trace, most), 0.0
    for j in range(low, start[u]):
        few += 1.0 if s[below, j] <= limit else 0.0
    return few


@apart
def look_again(exact, basis, chosen, levels, depth, whole, yy):
    """What is in doubt at `depth`, of the units before the last one taken, from the columns.

    Units that are singular beside those chosen are dead from here on: they explain nothing. If the pivot of a chosen
    column is in doubt (`whole`), everything is had from the columns: unit-norm ones beside those chosen. False if these
    are singular themselves, so that nothing below needs to be looked at.
    """
    n, last, rest, L = build(exact, basis, chosen, depth), chosen.at[depth - 1], levels.rest, basis.rest.shape[1]
    if whole and not SURELY * basis.inflated[n, basis.T.shape[0]] <= 1.0 / SINGULAR:
        return False
    R, r, s, dead, q, smallest = levels.R, levels.r, levels.s, levels.dead, levels.r.shape[1], 1.0
    limit, left = doubt(levels.node[depth, ERROR], levels.node[depth, TRACE], levels.T.shape[0]), 0.0
    if whole:
        left = set_rests(exact, basis, n)
    for u in range(last):
        for j in range(exact.start[u], exact.start[u + 1]):
            if not dead[depth, u] and (whole or s[depth, j] <= limit):
                pivot = beside(exact, basis, j, n)
                dead[depth, u] = pivot <= SURELY * SINGULAR
                smallest = smallest if dead[depth, u] else min(smallest, pivot)
            for t in range(L if whole else 0):
                rest[j, t] = basis.Q[n, t]
        for j in range(exact.start[u], exact.start[u + 1]):
            if whole or dead[depth, u]:
                s[depth, j] = 1.0
                for t in range(q):
                    r[depth, t, j] = 0.0
                    for m in range(0 if dead[depth, u] else L):
                        r[depth, t, j] += rest[j, m] * basis.rest[1 + t, m]
    if whole:
        for j in range(exact.start[last]):
            for l in range(j + 1):
                total = 0.0
                for t in range(L):
                    total += rest[j, t] * rest[l, t]
                R[depth, j, l] = total
        levels.node[depth, TRACE], levels.node[depth, EXPLAINED] = 0.0, yy - left
        levels.node[depth, ERROR] = ROUNDING / smallest**0.5
        levels.count[depth, FIRST] = levels.count[depth, ROWS] = n
    return True


@apart
def eliminate(R, exact, levels, depth, u):
    """R of the next depth, beside unit u of this one."""
    V, below, base = levels.V, depth + 1, levels.count[depth, ROWS]
    for j in range(exact.start[u]):
        v = V[base, j]
        for l in range(j + 1):
            levels.R[below, j, l] = R[j, l] - v * V[base, l]
    for m in range(base + 1, levels.count[below, ROWS]):
        for j in range(exact.start[u]):
            v = V[m, j]
            for l in range(j + 1):
                levels.R[below, j, l] -= v * V[m, l]


@apart
def prepare_pairs(levels, depth, last, yy):
    """What each column i < `last` brings as the first of a pair: GAIN, what is explained with it at the most.

    SIZE is 1 + |w|^2 of each column beside those chosen, w = P g. Beside column i as well, that of column j is at most
    twice size_j + (R_ij / s_i)^2 size_i, which SLACK and SPREAD make the rounding of the pair.
    """
    k, pair, q, V = depth + 2, levels.pair, levels.r.shape[1], levels.V
    before, explained, error = levels.node[depth, TRACE], levels.node[depth, EXPLAINED], levels.node[depth, ERROR]
    for i in range(last):
        pair[SIZE, i] = 1.0
    for l in range(levels.count[depth, FIRST], depth):
        for i in range(last):
            pair[TOTAL, i] = 0.0
        for m in range(l, depth):
            factor = levels.T[m, l]
            for i in range(last):
                pair[TOTAL, i] += V[m, i] * factor
        for i in range(last):
            pair[SIZE, i] += pair[TOTAL, i] * pair[TOTAL, i]
    # All that depends on one column of a pair is computed once, so that a pair costs a few operations.
    for i in range(last):
        size, inverse, own = pair[SIZE, i], 1.0 / levels.s[depth, i], explained
        for t in range(q):
            pair[RATIO + t, i] = levels.r[depth, t, i] * inverse
            own += levels.r[depth, t, i] * pair[RATIO + t, i]
        pair[EDGE, i] = doubt(error, size - 1.0, k)
        pair[SPREAD, i] = size * inverse * inverse
        pair[OVER_S, i] = inverse
        pair[SLACK, i] = 32.0 * k * error * max(yy - own, EPSILON * yy)
        pair[GAIN, i] = own + error * (4.0 * k * (before + size * inverse) * own + yy)


@apart
def next_row(R, at, levels, depth, first, before, last, wanted):
    """The next row i below `last` in which a pair (i, j), j < i, of single columns may reach what is asked for.

    R has rows from `first` on, and v_i v_j, v = V[at], is still to be subtracted from it.
    """
    q, r, s, v, pair = levels.r.shape[1], levels.r, levels.s, levels.V, levels.pair
    for i in range(before + 1, last):
        v_i, over_s, slack, spread = v[at, i], pair[OVER_S, i], pair[SLACK, i], pair[SPREAD, i]
        gain = wanted - pair[GAIN, i]
        hits = 0.0  # not a whole number: loops over numbers of one kind vectorize
        if q == 1:  # the usual case: one loop, without an array of totals
            ratio = pair[RATIO, i]
            for j in range(i):
                g = R[i - first, j] - v_i * v[at, j]
                a, p = r[depth, 0, j] - ratio * g, s[depth, j] - over_s * g * g
                hits += 1.0 if a * a + slack * (pair[SIZE, j] + spread * g * g) >= gain * p else 0.0
        else:
            for j in range(i):
                g = R[i - first, j] - v_i * v[at, j]
                pair[TOTAL, j] = slack * (pair[SIZE, j] + spread * g * g) - gain * (s[depth, j] - over_s * g * g)
            for t in range(q):
                ratio = pair[RATIO + t, i]
                for j in range(i):
                    a = r[depth, t, j] - ratio * (R[i - first, j] - v_i * v[at, j])
                    pair[TOTAL, j] += a * a
            for j in range(i):
                hits += 1.0 if pair[TOTAL, j] >= 0.0 else 0.0
        if hits > 0.0 or s[depth, i] <= pair[EDGE, i]:
            return i
    return last


@apart
def second_look(R, at, levels, chosen, depth, first, i, wanted, yy):
    r"""Mark columns j < i that may reach what is asked for as the second of a pair with i; whether there are any.

    What passes is asked again with the rounding of its own coefficients. With the coordinates l of column j in the
    factor T of those before, :math:`w = T^T l` and :math:`x = (T^T (along) - w x_j, x_j)`; the pivot p errs by
    :math:`\varepsilon (1 + |w|_1)^2`.
    """
    r, s, V, T, along, pair, seen = levels.r, levels.s, levels.V, levels.T, levels.along, levels.pair, chosen.seen
    start, error, q, some = levels.count[depth, FIRST], levels.node[depth, ERROR], r.shape[1], False
    over_s, slack, spread, explained = pair[OVER_S, i], pair[SLACK, i], pair[SPREAD, i], levels.node[depth, EXPLAINED]
    scale, sure, gain = over_s**0.5, s[depth, i] > pair[EDGE, i], wanted - pair[GAIN, i]
    for l in range(start, depth):  # column i in the factor, and what it explains
        T[depth, l] = 0.0
        for m in range(l, depth):
            T[depth, l] -= V[m, i] * T[m, l] * scale
    T[depth, depth] = scale
    for t in range(q):
        along[depth, t] = r[depth, t, i] * scale
        explained += along[depth, t] * along[depth, t]
    for j in range(i):
        g, square = R[i - first, j] - V[at, i] * V[at, j], 0.0
        p = s[depth, j] - over_s * g * g
        for t in range(q):
            a = r[depth, t, j] - pair[RATIO + t, i] * g
            square += a * a
        passes = square + slack * (pair[SIZE, j] + spread * g * g) >= gain * p
        seen[j] = (passes or not sure) and not levels.dead[depth, j]
        # The first test used bounds on coefficients; with the coefficients themselves few pairs are left.
        if seen[j] and sure and p > 0.0:
            wide, errors = 0.0, 0.0
            for t in range(q):
                x_j = (r[depth, t, j] - pair[RATIO + t, i] * g) / p
                size, norm = 1.0, abs(x_j)
                for l in range(start, depth + 1):
                    w, x = g * scale * T[depth, l], along[depth, t] * T[depth, l]
                    for m in range(l, depth):
                        w += V[m, j] * T[m, l]
                        x += along[m, t] * T[m, l]
                    size += abs(w)
                    norm += abs(x - w * x_j)
                wide = size
                errors += (norm + yy**0.5) ** 2
            certain = p >= _DOUBT * error * wide * wide
            seen[j] = not certain or explained + square / p + 2.0 * error * errors >= wanted
        some = some or seen[j] > 0
    return some


@apart
def last_units(R, exact, chosen, levels, last, wanted, yy):
    """Mark units before `last` that may be the last of a support, where units have several columns; if any are."""
    k, most, node, some = chosen.at.size, levels.T.shape[0], levels.node, False
    for u in range(last):
        seen = not levels.dead[k - 1, u]
        if seen and enter(R, exact, levels, k - 1, u, exact.start[u]) >= 0.0:
            slack = 8.0 * most * node[k, ERROR] * (1.0 + 2.0 * node[k, TRACE]) * yy
            seen = node[k, EXPLAINED] + slack >= wanted
        chosen.seen[u] = seen
        some = some or seen
    return some


@entry
def enumerate_from(G, exact, basis, chosen, levels, kept, yy, rounding, first, last, stop, prefix):
    """All supports of k >= 2 units whose largest unit is one of `first` to `last` - 1.

    For two single columns, G has only the rows of these. If `prefix` is not empty (k >= 3), its units, descending, are
    the largest of every support. `stop` (1,) is looked at now and then; False if it was set before the end.
    """
    k, single = chosen.at.size, exact.start.size - 1 == levels.s.shape[1]
    leaf = k - 2 if single else k - 1
    levels.node[0, ERROR] = rounding
    place, none = levels.count, levels.T.shape[0]  # the next unit to be taken at each depth; a row of zeros
    for top in range(max(first, k - 1) if leaf > 0 else last - 1, last):
        depth = 0
        place[0, NEXT] = top
        while depth >= 0:
            R, at, from_row, i = G, none, 0, last
            if leaf == 0:
                from_row = first
                depth = -1
            else:
                i = place[depth, NEXT]
                if (depth == 0 and i < top) or i < k - 1 - depth or (depth < prefix.size and i < prefix[depth]):
                    depth -= 1
                    continue
                place[depth, NEXT] = i - 1
                chosen.at[depth] = i
                if levels.dead[depth, i] or (exact.ruled and not keeps_rules(exact, chosen.at, depth + 1, i)):
                    continue
                if depth == leaf - 1 and stop[0]:
                    return False
                if depth > 0:
                    R = levels.R[depth]
                few = enter(R, exact, levels, depth, i, ALL)
                fresh = few < 0.0
                if few != 0.0 and not look_again(exact, basis, chosen, levels, depth + 1, fresh, yy):
                    continue
                if not fresh and (depth + 1 < leaf or not single):
                    eliminate(R, exact, levels, depth, i)
                if depth + 1 < leaf:
                    depth += 1
                    place[depth, NEXT] = prefix[depth] if depth < prefix.size else i - 1
                    continue
                # Two columns are missing: R of the last depth need not be formed, unless it is new.
                if fresh or not single:
                    R = levels.R[leaf]
                else:
                    at = depth
            # Rows of pairs in which something may reach what is asked for; or all of the last units as one row.
            row, wanted = from_row - 1, yy - reach_of(kept, yy)
            if single:
                prepare_pairs(levels, leaf, i, yy)
            while row < i:
                some = False
                if not single:
                    some, row = last_units(R, exact, chosen, levels, i, wanted, yy), i
                else:
                    row = next_row(R, at, levels, leaf, from_row, row, i, wanted)
                    if row < i and not levels.dead[leaf, row]:
                        chosen.at[leaf] = row
                        some = not exact.ruled or keeps_rules(exact, chosen.at, leaf + 1, row)
                        some = some and second_look(R, at, levels, chosen, leaf, from_row, row, wanted, yy)
                if some:
                    judge(exact, basis, chosen, kept, row, yy)
                    wanted = yy - reach_of(kept, yy)
    return True
