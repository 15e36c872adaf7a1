r"""Branch and bound over supports: a branch is cut when all the columns that it may still use do not fit well enough.

A node has columns A that are in and columns B that may be; all of A and B together leave 2E, a lower bound on every
support in between. With :math:`P = T T^T` the inverse of their Gram matrix and Z (q, D) the coordinates of the targets,
leaving out column j of B costs

.. math:: c_j = |Z h|^2, \quad h = T_j / |T_j|,

and afterwards :math:`T - (T h) h^T`, :math:`Z - (Z h) h^T` take their places: one projection, which keeps small errors
small. Taking a column in changes nothing but that it cannot be left out any more. So the costs at a node hold
for all its children: with the columns of B in descending order of cost, child m has the first m - 1 in and the m-th
out; a column that is too expensive to be left out is in. Where one column is missing, all are tried by elimination.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.compiled import apart, entry, template
from pairflip.engines.base import EPSILON
from pairflip.engines.numba.lowest import judge, keeps_rules, reach_of


class Branches(NamedTuple):
    """Memory of a walk down the tree: levels 0 .. N - k, one for each column left out.

    T (levels, N, D), Z (levels, q, D): the inverse factor and the targets in its coordinates; `columns` (levels, N)
    that may be used, `cost` (levels, N) of leaving each out, and their places in descending `order` of it; `doubled`
    (levels,): 2E with all of them; `count` (levels, 3): how many columns may be used (FREE), how many were in before
    (TAKEN), and the next child (NEXT). V, s (k, N), r (k, q, N): elimination of the columns that are in, `rest` (k,)
    what they leave of the targets.
    """

    T: Any
    Z: Any
    columns: Any
    cost: Any
    order: Any
    doubled: Any
    count: Any
    V: Any
    r: Any
    s: Any
    rest: Any


class BranchPlan(NamedTuple):
    """Numbers of a walk down the tree: y'y, and relative to it what rounding may add to a bound (`slack`) and to what
    elimination explains (`error`); after `most` branches the walk is given up.
    """

    yy: float
    slack: float
    error: float
    most: float


FREE, TAKEN, NEXT = 0, 1, 2


def new_branches(k: int, n: int, q: int) -> Branches:
    """Memory for supports of k of n columns and q targets; what is not touched is not taken."""
    levels = n - k + 1
    return Branches(
        T=np.empty((levels, n, n)), Z=np.empty((levels, q, n)), columns=np.zeros((levels, n), np.int64),
        cost=np.empty((levels, n)), order=np.zeros((levels, n), np.int64), doubled=np.empty(levels),
        count=np.zeros((levels, 3), np.int64), V=np.empty((k, n)), r=np.empty((k, q, n)), s=np.empty((k, n)),
        rest=np.empty(k),
    )  # fmt: skip


@apart
def open_level(tree, level):
    """Costs of leaving out each column of a level, and their order."""
    T, Z, cost, order = tree.T, tree.Z, tree.cost, tree.order
    for m in range(tree.count[level, FREE]):
        square, norm = 0.0, 0.0
        for t in range(Z.shape[1]):
            along = norm = 0.0
            for d in range(Z.shape[2]):
                norm += T[level, m, d] * T[level, m, d]
                along += T[level, m, d] * Z[level, t, d]
            square += along * along
        cost[level, m] = square / norm
        # Columns come in the order of the level above, which is nearly theirs.
        at = m
        while at > 0 and cost[level, order[level, at - 1]] < cost[level, m]:
            order[level, at] = order[level, at - 1]
            at -= 1
        order[level, at] = m


@apart
def leave_out(tree, level, first):
    """The level below: the columns after place `first` of the order, without the one at this place."""
    T, Z, below, dim, out = tree.T, tree.Z, level + 1, tree.Z.shape[2], tree.order[level, first]
    norm = 0.0
    for t in range(Z.shape[1]):
        along = norm = 0.0
        for d in range(dim):
            norm += T[level, out, d] * T[level, out, d]
            along += T[level, out, d] * Z[level, t, d]
        for d in range(dim):
            Z[below, t, d] = Z[level, t, d] - along / norm * T[level, out, d]
    left = tree.count[level, FREE] - first - 1
    for m in range(left):
        own = tree.order[level, first + 1 + m]
        tree.columns[below, m] = tree.columns[level, own]
        total = 0.0
        for d in range(dim):
            total += T[level, own, d] * T[level, out, d]
        total /= norm
        for d in range(dim):  # a projection, which never enlarges an error
            T[below, m, d] = T[level, own, d] - total * T[level, out, d]
    tree.count[below, FREE], tree.count[below, TAKEN] = left, tree.count[level, TAKEN] + first
    tree.count[below, NEXT] = 0
    tree.doubled[below] = tree.doubled[level] + tree.cost[level, out]


@apart
def take_in(G, tree, a, column):
    """Column `column` is the a-th that is in: one step of elimination."""
    V, r, s, n = tree.V, tree.r, tree.s, tree.s.shape[1]
    for j in range(n):
        V[a, j] = G[column, j]
    for m in range(a):
        factor = V[m, column]
        for j in range(n):
            V[a, j] -= factor * V[m, j]
    scale, gained = 1.0 / max(s[a, column], EPSILON) ** 0.5, 0.0
    for j in range(n):
        V[a, j] *= scale
        s[a + 1, j] = s[a, j] - V[a, j] * V[a, j]
    for t in range(r.shape[1]):
        along = r[a, t, column] * scale
        gained += along * along
        for j in range(n):
            r[a + 1, t, j] = r[a, t, j] - V[a, j] * along
    tree.rest[a + 1] = tree.rest[a] - gained


@template
def judge_leaf(exact, basis, chosen, kept, tree, plan, level, first, only, reach):
    """Supports that lack one column: each after place `first` of the order; or (`only`) all of these together."""
    a, n, last, hits = tree.count[level, TAKEN] + first, tree.count[level, FREE], chosen.at.size - 1, int(only)
    wanted, slack = tree.rest[last] - reach - plan.error * plan.yy, 2.0 * plan.error * plan.yy
    for m in range(first, n):
        j = tree.columns[level, tree.order[level, m]]
        if only and a < last:
            chosen.at[a] = j
            a += 1
        elif only:
            chosen.seen[j] = 1
        else:
            # Compared without a division, with all that rounding may hide: what is passed here is never the lowest.
            square = slack
            for t in range(tree.r.shape[1]):
                square += tree.r[last, t, j] * tree.r[last, t, j]
            if square >= wanted * tree.s[last, j]:
                chosen.seen[j] = 1
                hits += 1
    if hits:
        judge(exact, basis, chosen, kept, chosen.seen.size, plan.yy)
        for m in range(n):
            chosen.seen[tree.columns[level, m]] = 0


@entry
def branch(G, B, exact, basis, chosen, kept, tree, plan, looked, stop):
    """Walk down a tree (k >= 2 single columns) whose root is in level 0 of `tree`; False if it was given up.

    `looked` (2,): supports evaluated, branches entered.
    """
    k, n, level, yy = chosen.at.size, B.shape[1], 0, plan.yy
    for j in range(n):
        tree.s[0, j] = 1.0
        for t in range(B.shape[0]):
            tree.r[0, t, j] = B[t, j]
    tree.rest[0] = yy
    tree.count[0, NEXT] = 0
    known = 0  # so many of the columns that are in were eliminated
    while level >= 0:
        first = tree.count[level, NEXT]
        a, left = tree.count[level, TAKEN] + first, tree.count[level, FREE] - first
        if first == 0:
            open_level(tree, level)
        else:
            chosen.at[a - 1] = tree.columns[level, tree.order[level, first - 1]]
            known = min(known, a - 1)
            if exact.ruled and not keeps_rules(exact, chosen.at, a, n):  # nor does any support of the children to come
                level -= 1
                continue
        # Elimination is needed at leaves only, but shared by all leaves that have these columns in.
        while known < min(a, k - 1):
            take_in(G, tree, known, chosen.at[known])
            known += 1
        reach = reach_of(kept, yy) + plan.slack * yy
        missing = k - a
        # Nothing to choose any more, or one column: its place is not worth levels of their own.
        if left <= missing or missing == 1:
            if left >= missing:
                looked[0] += 1.0 if left == missing else float(left)
                judge_leaf(exact, basis, chosen, kept, tree, plan, level, first, left == missing, reach)
            level -= 1
            continue
        tree.count[level, NEXT] = first + 1
        # Too expensive to leave out: the column is in, and the next child is looked at.
        if tree.doubled[level] + tree.cost[level, tree.order[level, first]] > reach:
            continue
        if stop[0] or looked[1] >= plan.most:
            return False
        looked[1] += 1.0
        leave_out(tree, level, first)
        level += 1
    return True
