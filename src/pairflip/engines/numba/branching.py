r"""Branch and bound without ridge: a branch is cut when all the columns that it may still use do not fit well enough.

A node has columns A that are in and columns B that may be; all of A and B together leave 2E, a lower bound on every
support in between. With :math:`P = T T^T` the inverse of their Gram matrix and z the coordinates of y (x = T z),
leaving out column j of B costs

.. math:: c_j = x_j^2 / P_{jj} = (h \cdot z)^2, \quad h = T_j / |T_j|,

and afterwards :math:`T - (T h) h^T`, :math:`z - (h \cdot z) h` take their places: one projection, which keeps small
errors small. Taking a column in changes nothing but that it cannot be left out any more. So the costs at a node hold
for all its children: with the columns of B in descending order of cost, child m has the first m - 1 in and the m-th
out; a column that is too expensive to be left out is in. Where one column is missing, all are tried by elimination.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import EPSILON
from pairflip.engines.numba.compile import apart, entry, template
from pairflip.engines.numba.lowest import judge_last, reach_of


class Branches(NamedTuple):
    """Memory of a walk down the tree: levels 0 .. N - k, one for each column left out.

    T (levels, N, D), z (levels, D): the inverse factor and y in its coordinates; `columns` (levels, N), the `n` columns
    that may be used, `cost` (levels, N) of leaving each out, and their places in descending `order` of it; `doubled`
    (levels,): 2E with all of them; `taken` (levels,): columns that were in before; `place` the next child. V, r, s
    (k, N): elimination of the columns that are in, `rest` (k,) what they leave of y'y.
    """

    T: Any
    z: Any
    columns: Any
    cost: Any
    order: Any
    n: Any
    doubled: Any
    taken: Any
    place: Any
    V: Any
    r: Any
    s: Any
    rest: Any


def new_branches(k: int, n_columns: int, dimensions: int) -> Branches:
    """Memory for supports of k columns; what is not touched is not taken.

    Parameters
    ----------
    k, n_columns, dimensions : int
        Size of a support, columns to choose from, and length of the rows of T.
    """
    levels = n_columns - k + 1

    def empty(*shape: int) -> Any:
        return np.empty(shape)

    def whole(*shape: int) -> Any:
        return np.zeros(shape, np.int64)

    return Branches(
        T=empty(levels, n_columns, dimensions), z=empty(levels, dimensions), columns=whole(levels, n_columns),
        cost=empty(levels, n_columns), order=whole(levels, n_columns), n=whole(levels), doubled=empty(levels),
        taken=whole(levels), place=whole(levels), V=empty(k, n_columns), r=empty(k, n_columns), s=empty(k, n_columns),
        rest=empty(k),
    )  # fmt: skip


@template
def open_level(tree, level):
    """Costs of leaving out each column of a level, and their order."""
    T, z, cost, order, n = tree.T, tree.z, tree.cost, tree.order, tree.n[level]
    tree.place[level] = 0
    for m in range(n):
        norm, along = 0.0, 0.0
        for t in range(z.shape[1]):
            norm += T[level, m, t] * T[level, m, t]
            along += T[level, m, t] * z[level, t]
        cost[level, m] = along * along / norm
        # Columns come in the order of the level above, which is nearly theirs.
        at = m
        while at > 0 and cost[level, order[level, at - 1]] < cost[level, m]:
            order[level, at] = order[level, at - 1]
            at -= 1
        order[level, at] = m


@template
def leave_out(tree, level, first):
    """The level below: the columns after place `first` of the order, without the one at this place."""
    T, below, dim, out = tree.T, level + 1, tree.z.shape[1], tree.order[level, first]
    norm, along = 0.0, 0.0
    for t in range(dim):
        norm += T[level, out, t] * T[level, out, t]
        along += T[level, out, t] * tree.z[level, t]
    for t in range(dim):
        tree.z[below, t] = tree.z[level, t] - along / norm * T[level, out, t]
    left = tree.n[level] - first - 1
    for m in range(left):
        own = tree.order[level, first + 1 + m]
        tree.columns[below, m] = tree.columns[level, own]
        total = 0.0
        for t in range(dim):
            total += T[level, own, t] * T[level, out, t]
        total /= norm
        for t in range(dim):
            T[below, m, t] = T[level, own, t] - total * T[level, out, t]
    tree.n[below] = left
    tree.doubled[below] = tree.doubled[level] + tree.cost[level, out]
    tree.taken[below] = tree.taken[level] + first


@template
def take_in(G, tree, chosen, a, column):
    """Column `column` is the a-th that is in: one step of elimination."""
    V, r, s = tree.V, tree.r, tree.s
    chosen.at[a] = column
    if a + 1 >= chosen.at.size:
        return
    for j in range(r.shape[1]):
        V[a, j] = G[column, j]
    for m in range(a):
        factor = V[m, column]
        for j in range(r.shape[1]):
            V[a, j] -= factor * V[m, j]
    scale = 1.0 / max(s[a, column], EPSILON) ** 0.5
    along = r[a, column] * scale
    for j in range(r.shape[1]):
        V[a, j] *= scale
        r[a + 1, j] = r[a, j] - V[a, j] * along
        s[a + 1, j] = s[a, j] - V[a, j] * V[a, j]
    tree.rest[a + 1] = tree.rest[a] - along * along


@apart
def judge_leaf(exact, basis, chosen, kept, tree, level, first, only, reach, error, yy):
    """Supports that lack one column: each after place `first` of the order; or (`only`) all of these together."""
    a, n, k = tree.taken[level] + first, tree.n[level], chosen.at.size
    last = k - 1
    if only:
        for m in range(first, n):
            column = tree.columns[level, tree.order[level, m]]
            if a < last:
                chosen.at[a] = column
                a += 1
            else:
                chosen.seen[column] = 1
    hits = 1 if only else 0
    if not only:
        wanted, slack = tree.rest[last] - reach - error * yy, 2.0 * error * yy
        for m in range(first, n):
            j = tree.columns[level, tree.order[level, m]]
            if tree.r[last, j] * tree.r[last, j] + slack >= wanted * tree.s[last, j]:
                chosen.seen[j] = 1
                hits += 1
    if hits:
        judge_last(exact, basis, chosen, kept, chosen.seen.size, yy)
        for m in range(n):
            chosen.seen[tree.columns[level, m]] = 0


@template
def begin_tree(tree, b):
    """Elimination before any column is in."""
    for j in range(b.size):
        tree.r[0, j], tree.s[0, j] = b[j], 1.0


@template
def walk_tree(
    G, b, exact, basis, chosen, kept, tree, yy, slack, error, most, looked, stop,
    begin, open_level, leave_out, take_in, judge_leaf,
):  # fmt: skip
    """Walk down a tree (k >= 2 columns) whose root is in level 0 of `tree`; False if it was given up.

    `slack`: what rounding may add to a bound, `error`: that of what elimination explains, both relative to y'y. After
    `most` branches it is given up. `looked` (2,): supports evaluated, branches entered. What depends on the targets is
    handed over as kernels (decision 017).
    """
    k, level = chosen.at.size, 0
    begin(tree, b)
    tree.rest[0] = yy
    for a in range(tree.taken[0]):  # columns that are in from the start
        take_in(G, tree, chosen, a, chosen.at[a])
    open_level(tree, 0)
    while level >= 0:
        first = tree.place[level]
        a, left = tree.taken[level] + first, tree.n[level] - first
        if first > 0:
            take_in(G, tree, chosen, a - 1, tree.columns[level, tree.order[level, first - 1]])
        reach = reach_of(kept, yy) + slack * yy
        missing = k - a
        if left <= missing or missing == 1:
            if left >= missing:
                looked[0] += 1.0 if left == missing else float(left)
                judge_leaf(exact, basis, chosen, kept, tree, level, first, left == missing, reach, error, yy)
            level -= 1
            continue
        tree.place[level] = first + 1
        if tree.doubled[level] + tree.cost[level, tree.order[level, first]] > reach:
            continue
        if stop[0] or looked[1] >= most:
            return False
        looked[1] += 1.0
        leave_out(tree, level, first)
        level += 1
        open_level(tree, level)
    return True


@entry
def branch(G, b, exact, basis, chosen, kept, tree, yy, slack, error, most, looked, stop):
    """Walk down a tree for one target; see `walk_tree`."""
    return walk_tree(
        G, b, exact, basis, chosen, kept, tree, yy, slack, error, most, looked, stop,
        begin_tree, open_level, leave_out, take_in, judge_leaf,
    )  # fmt: skip
