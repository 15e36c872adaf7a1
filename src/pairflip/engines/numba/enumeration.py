r"""Every support of k columns, one after the other, down the residual Gram matrix; the last two columns in closed form.

With the columns S of a node projected out, :math:`R = G - G_{:S} P G_{S:}` and :math:`r = b - G_{:S} x`; taking
column i in as well is one step of elimination. Where only two columns are missing, the pair (i, j) explains

.. math:: \frac{r_i^2}{s_i} + \frac{(r_j - c \, r_i)^2}{s_j - c R_{ij}}, \quad c = R_{ij} / s_i, \ s_i = R_{ii},

more of :math:`y^T y`. A pair is looked at again, from the columns, if it may reach what is asked for: this is

.. math:: (r_j - c \, r_i)^2 + \delta_{ij} \ge (\text{wanted} - \text{explained}) \, (s_j - c R_{ij}),

without a division, and with :math:`\delta_{ij}` so large that rounding leaves nothing out. The elimination errs as if
the elements of G were off by :math:`\varepsilon`, so that a support with coefficients x errs by at most
:math:`\varepsilon (|x|_1^2 + 2 |x|_1 |y|)`; of these :math:`x_j^2` is what column j explains divided by its pivot, and
the others follow from P. A pivot that is itself in doubt is had from the columns, and so is everything below it
(`rebase`). Nothing that is kept has seen the Gram matrix: `lowest.judge_last`.

Columns of a support are taken in descending order, so that loops run from 0 on: such loops vectorize.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import EPSILON
from pairflip.engines.numba.compile import apart, entry, kernel, template
from pairflip.engines.numba.lowest import build, judge_last, pivot_of, reach_of, take_out
from pairflip.engines.numba.orthogonal import dot, load, load_target, row_dot
from pairflip.least_squares import SINGULAR

ROUNDING = 32.0 * EPSILON
"""How far elements of G (unit-norm columns) are off, elimination included."""
_DOUBT = 20.0  # a pivot is in doubt if it is less than so many times its error
SURELY = 1.0 - 1e-4
"""Of SINGULAR: what is below is singular, whatever rounding did."""


class Depths(NamedTuple):
    """Memory of a walk down the tree: what each depth d = 0 .. k - 2 needs.

    R (k - 1, N, N) with depth 0 unused; r, s, V (k - 1, N): residual correlations, pivots, scaled rows of elimination;
    `dead`: columns that are singular beside those chosen; T (k, k): inverse factor of the chosen ones since depth
    `start`; `along` what each explains of y, as a root; `trace` of P, `explained` part of y'y and `error` of R; `rest`
    (N, M + k) the columns beside those chosen; the others (N,): numbers of each column as the first of a pair.
    """

    R: Any
    r: Any
    s: Any
    V: Any
    dead: Any
    T: Any
    trace: Any
    along: Any
    explained: Any
    error: Any
    start: Any
    rest: Any
    ratio: Any
    over_s: Any
    gain: Any
    slack: Any
    size: Any
    spread: Any
    edge: Any


def new_levels(k: int, n_columns: int, n_rows: int) -> Depths:
    """Memory for supports of k columns of so many columns and rows; what is not touched is not taken.

    Parameters
    ----------
    k, n_columns, n_rows : int
        Size of a support, columns to choose from, and length of the vectors (rows, and one more for each slot where
        there is a ridge).
    """
    depths, inner = max(k - 1, 1), n_columns if k > 2 else 0

    def empty(*shape: int) -> Any:
        return np.empty(shape)

    return Depths(
        R=empty(depths, inner, n_columns), r=empty(depths, n_columns), s=empty(depths, n_columns),
        V=np.zeros((depths, n_columns)), dead=np.zeros((depths, n_columns), np.uint8), T=np.zeros((k, k)),
        trace=np.zeros(depths), along=np.zeros(k), explained=np.zeros(depths), error=np.zeros(depths),
        start=np.zeros(depths, np.int64), rest=empty(inner, n_rows), ratio=empty(n_columns), over_s=empty(n_columns),
        gain=empty(n_columns), slack=empty(n_columns), size=empty(n_columns),
        spread=empty(n_columns), edge=empty(n_columns),
    )  # fmt: skip


@apart
def rebase(exact, basis, chosen, levels, depth, i, yy):
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
    R, rest, dead = levels.R[depth], levels.rest, levels.dead[depth]
    load_target(exact, basis.e)
    take_out(basis, depth, basis.e)
    smallest = 1.0
    for j in range(i):
        load(exact, j, depth, basis.q)
        s = take_out(basis, depth, basis.q)
        dead[j] = s <= SURELY * SINGULAR
        scale = 0.0 if dead[j] else 1.0 / s**0.5
        for t in range(basis.q.size):
            rest[j, t] = scale * basis.q[t]
        if not dead[j]:
            smallest = min(smallest, s)
        levels.r[depth, j] = row_dot(rest, j, basis.e)
        levels.s[depth, j] = 1.0
        for l in range(j + 1):
            R[j, l] = row_dot(rest, l, rest[j])
    levels.explained[depth] = yy - dot(basis.e, basis.e)
    levels.trace[depth] = 0.0
    levels.error[depth] = ROUNDING / smallest**0.5
    levels.start[depth] = depth
    return True


@kernel
def doubt(error, w2, k):
    r"""A pivot :math:`1 - w \cdot g` errs by at most error (1 + |w|_1)^2; below this it may be singular or not."""
    return 2.0 * _DOUBT * error * (1.0 + k * w2)


@template
def descend(R, exact, basis, chosen, levels, depth, i, k, yy):
    """Take column i at `depth`, where R is, which leads to depth + 1; False if there is nothing below."""
    below, start, V, s, r = depth + 1, levels.start[depth], levels.V, levels.s, levels.r
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
        return rebase(exact, basis, chosen, levels, below, i, yy)
    scale = 1.0 / s[depth, i] ** 0.5
    along = r[depth, i] * scale
    T[depth, depth] = scale
    for l in range(start, depth):
        T[depth, l] *= scale
    for j in range(i):
        v = R[i, j] * scale
        V[depth, j] = v
        r[below, j] = r[depth, j] - v * along
        s[below, j] = s[depth, j] - v * v
    levels.along[depth] = along
    levels.trace[below] = levels.trace[depth] + (1.0 + w2) * scale * scale
    levels.explained[below] = levels.explained[depth] + along * along
    levels.error[below] = levels.error[depth]
    levels.start[below] = start
    limit, few = doubt(levels.error[below], levels.trace[below], k), 0.0
    for j in range(i):
        few += 1.0 if s[below, j] <= limit else 0.0
    if few > 0.0:
        bury(exact, basis, chosen, levels, below, i, limit)
    return True


@apart
def bury(exact, basis, chosen, levels, depth, i, limit):
    """Columns that are singular beside those chosen are dead from here on: they explain nothing."""
    for j in range(i):
        if levels.s[depth, j] <= limit and not levels.dead[depth, j]:
            levels.dead[depth, j] = pivot_of(exact, basis, chosen, depth, j) <= SURELY * SINGULAR
        if levels.dead[depth, j]:
            levels.s[depth, j], levels.r[depth, j] = 1.0, 0.0


@template
def eliminate(R, levels, depth, i):
    """R of the next depth, beside column i of this one."""
    V, below = levels.V, depth + 1
    for j in range(i):
        v = V[depth, j]
        for l in range(j + 1):
            levels.R[below, j, l] = R[j, l] - v * V[depth, l]


@template
def prepare_pairs(levels, depth, last, yy):
    """What each column i < `last` brings as the first of a pair: `gain`, what is explained with it at the most.

    `size` is 1 + |w|^2 of each column beside those chosen, w = P g. Beside column i as well, that of column j is at
    most twice size_j + (R_ij / s_i)^2 size_i, which `slack` and `spread` make the rounding of the pair.
    """
    k, error, before = depth + 2, levels.error[depth], levels.trace[depth]
    ratio, over_s, gain, size, explained = (
        levels.ratio, levels.over_s, levels.gain, levels.size, levels.explained[depth],
    )  # fmt: skip
    for i in range(last):
        size[i] = 1.0
    for l in range(levels.start[depth], depth):
        for i in range(last):
            gain[i] = 0.0
        for m in range(l, depth):
            t = levels.T[m, l]
            for i in range(last):
                gain[i] += levels.V[m, i] * t
        for i in range(last):
            size[i] += gain[i] * gain[i]
    for i in range(last):
        levels.edge[i] = doubt(error, size[i] - 1.0, k)
        inverse = 1.0 / levels.s[depth, i]
        trace = before + size[i] * inverse
        levels.spread[i] = size[i] * inverse * inverse
        over_s[i] = inverse
        ratio[i] = levels.r[depth, i] * inverse
        own = explained + levels.r[depth, i] * ratio[i]
        levels.slack[i] = 32.0 * k * error * max(yy - own, EPSILON * yy)
        gain[i] = own + error * (4.0 * k * trace * own + yy)


@template
def pairs(R, v, at, exact, basis, chosen, levels, kept, first, last, yy):
    """All pairs (i, j), j < i, `first` <= i < `last`, at the last node.

    R has rows from `first` on, and v_i v_j, v = V[at], is still to be subtracted from it.
    """
    depth = chosen.at.size - 2
    r, s, size = levels.r, levels.s, levels.size
    wanted = yy - reach_of(kept, yy)
    prepare_pairs(levels, depth, last, yy)
    for i in range(first, last):
        v_i, ratio, over_s, slack, spread = (
            v[at, i],
            levels.ratio[i],
            levels.over_s[i],
            levels.slack[i],
            levels.spread[i],
        )
        gain = wanted - levels.gain[i]
        hits = 0.0  # not a whole number: loops over numbers of one kind vectorize
        for j in range(i):
            q = R[i - first, j] - v_i * v[at, j]
            a, p = r[depth, j] - ratio * q, s[depth, j] - over_s * q * q
            hits += 1.0 if a * a + slack * (size[j] + spread * q * q) >= gain * p else 0.0
        sure = s[depth, i] > levels.edge[i]
        if levels.dead[depth, i] or (hits == 0.0 and sure):
            continue
        if sure:
            take_first(levels, depth, i)
        any_left = False
        for j in range(i):
            q = R[i - first, j] - v_i * v[at, j]
            a, p = r[depth, j] - ratio * q, s[depth, j] - over_s * q * q
            passes = a * a + slack * (size[j] + spread * q * q) >= gain * p
            seen = (passes or not sure) and not levels.dead[depth, j]
            if seen and sure:
                seen = still_passes(levels, depth, j, q * over_s**0.5, a, p, wanted, yy)
            chosen.seen[j] = seen
            any_left = any_left or seen
        if any_left:
            chosen.at[depth] = i
            judge_last(exact, basis, chosen, kept, i, yy)
            wanted = yy - reach_of(kept, yy)


@kernel
def take_first(levels, depth, i):
    """Column i as the first of a pair: its row of the inverse factor, and what it explains."""
    T, scale = levels.T, levels.over_s[i] ** 0.5
    for l in range(levels.start[depth], depth):
        total = 0.0
        for m in range(l, depth):
            total += levels.V[m, i] * T[m, l]
        T[depth, l] = -total * scale
    T[depth, depth] = scale
    levels.along[depth] = levels.r[depth, i] * scale


@kernel
def still_passes(levels, depth, j, factor, a, p, wanted, yy):
    r"""The same question about column j as the second of a pair, with the rounding of its own coefficients.

    With the coordinates l of column j in the factor of those before, :math:`w = T^T l` and
    :math:`x = (T^T (along) - w x_j, x_j)`; the pivot p errs by :math:`\varepsilon (1 + |w|_1)^2`.
    """
    size, norm, error = 0.0, 0.0, levels.error[depth]
    if not p > 0.0:
        return True
    x_j = a / p
    for l in range(levels.start[depth], depth + 1):
        w, x = factor * levels.T[depth, l], levels.along[depth] * levels.T[depth, l]
        for m in range(l, depth):
            w += levels.V[m, j] * levels.T[m, l]
            x += levels.along[m] * levels.T[m, l]
        size += abs(w)
        norm += abs(x - w * x_j)
    norm += abs(x_j)
    if p < _DOUBT * error * (1.0 + size) * (1.0 + size):
        return True
    first = levels.along[depth] * levels.along[depth]
    explained = levels.explained[depth] + first + a * x_j
    return explained + 2.0 * error * (norm + yy**0.5) ** 2 >= wanted


@template
def begin(b, levels, rounding):
    """The root of the tree."""
    levels.error[0] = rounding
    for j in range(b.size):
        levels.r[0, j], levels.s[0, j], levels.dead[0, j] = b[j], 1.0, 0


@entry
def enumerate_from(G, b, exact, basis, chosen, levels, kept, yy, rounding, first, last, stop, prefix):
    """All supports of k >= 2 columns whose largest column is one of `first` to `last` - 1.

    For k = 2, G has only the rows of these. If `prefix` is not empty (k >= 3), its columns, descending, are the largest
    of every support. `stop` (1,) is looked at now and then; False if it was set before the end.
    """
    k = chosen.at.size
    begin(b, levels, rounding)
    none = np.zeros((1, b.size))
    place = np.zeros(k, np.int64)  # next column to be taken at each depth
    for top in range(max(first, k - 1) if k > 2 else last - 1, last):
        depth = 0
        place[0] = top
        while depth >= 0:
            R, v, at, from_row, i = G, none, 0, 0, last
            if k == 2:
                from_row = first
                depth = -1
            else:
                i = place[depth]
                if (depth == 0 and i < top) or i < k - 1 - depth or (depth < prefix.size and i < prefix[depth]):
                    depth -= 1
                    continue
                place[depth] = i - 1
                if levels.dead[depth, i]:
                    continue
                if depth == k - 3 and stop[0]:
                    return False
                if depth > 0:
                    R = levels.R[depth]
                if not descend(R, exact, basis, chosen, levels, depth, i, k, yy):
                    continue
                fresh = levels.start[depth + 1] == depth + 1
                if depth + 1 < k - 2:
                    if not fresh:
                        eliminate(R, levels, depth, i)
                    depth += 1
                    place[depth] = prefix[depth] if depth < prefix.size else i - 1
                    continue
                # Two columns are missing: R of the last depth need not be formed, unless it is new.
                if fresh:
                    R = levels.R[k - 2]
                else:
                    v, at = levels.V, depth
            pairs(R, v, at, exact, basis, chosen, levels, kept, from_row, i, yy)
    return True
