r"""Branch and bound over supports with several targets, or under rules: the tree of `branching`.

With the inverse factor T of the columns B of a node and the coordinates Z (D, q) of the targets, leaving out column j
costs :math:`c_j = |Z^T h|^2`, :math:`h = T_j / |T_j|`, and afterwards :math:`Z - h (h^T Z)` takes the place of Z.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pairflip.engines.base import EPSILON
from pairflip.engines.numba.branching import Branches, new_branches, walk_tree
from pairflip.engines.numba.compile import apart, entry, template
from pairflip.engines.numba.several_lowest import judge_last_several


def new_several_branches(k: int, n_columns: int, dimensions: int, q: int) -> Branches:
    """As `new_branches`, with z (levels, D, q) and r (k, N, q).

    Parameters
    ----------
    k, n_columns, dimensions, q : int
        Size of a support, columns to choose from, length of the rows of T, and targets.
    """

    def empty(*shape: int) -> Any:
        return np.empty(shape)

    return new_branches(k, n_columns, dimensions)._replace(
        z=empty(n_columns - k + 1, dimensions, q), r=empty(k, n_columns, q)
    )


@template
def begin_several(tree, B):
    """Elimination before any column is in."""
    for j in range(B.shape[0]):
        tree.s[0, j] = 1.0
        for t in range(B.shape[1]):
            tree.r[0, j, t] = B[j, t]


@template
def open_several(tree, level):
    """Costs of leaving out each column of a level, and their order."""
    T, Z, cost, order, n = tree.T, tree.z, tree.cost, tree.order, tree.n[level]
    tree.place[level] = 0
    for m in range(n):
        norm, square = 0.0, 0.0
        for d in range(Z.shape[1]):
            norm += T[level, m, d] * T[level, m, d]
        for t in range(Z.shape[2]):
            along = 0.0
            for d in range(Z.shape[1]):
                along += T[level, m, d] * Z[level, d, t]
            square += along * along
        cost[level, m] = square / norm
        # Columns come in the order of the level above, which is nearly theirs.
        at = m
        while at > 0 and cost[level, order[level, at - 1]] < cost[level, m]:
            order[level, at] = order[level, at - 1]
            at -= 1
        order[level, at] = m


@template
def leave_several(tree, level, first):
    """The level below: the columns after place `first` of the order, without the one at this place."""
    T, Z, below, dim, out = tree.T, tree.z, level + 1, tree.z.shape[1], tree.order[level, first]
    norm = 0.0
    for d in range(dim):
        norm += T[level, out, d] * T[level, out, d]
    for t in range(Z.shape[2]):
        along = 0.0
        for d in range(dim):
            along += T[level, out, d] * Z[level, d, t]
        for d in range(dim):
            Z[below, d, t] = Z[level, d, t] - along / norm * T[level, out, d]
    left = tree.n[level] - first - 1
    for m in range(left):
        own = tree.order[level, first + 1 + m]
        tree.columns[below, m] = tree.columns[level, own]
        total = 0.0
        for d in range(dim):
            total += T[level, own, d] * T[level, out, d]
        total /= norm
        for d in range(dim):
            T[below, m, d] = T[level, own, d] - total * T[level, out, d]
    tree.n[below] = left
    tree.doubled[below] = tree.doubled[level] + tree.cost[level, out]
    tree.taken[below] = tree.taken[level] + first


@template
def take_several_in(G, tree, chosen, a, column):
    """Column `column` is the a-th that is in: one step of elimination."""
    V, r, s, n = tree.V, tree.r, tree.s, tree.s.shape[1]
    chosen.at[a] = column
    if a + 1 >= chosen.at.size:
        return
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
    for t in range(r.shape[2]):
        along = r[a, column, t] * scale
        gained += along * along
        for j in range(n):
            r[a + 1, j, t] = r[a, j, t] - V[a, j] * along
    tree.rest[a + 1] = tree.rest[a] - gained


@apart
def judge_several_leaf(exact, basis, chosen, kept, tree, level, first, only, reach, error, yy):
    """Supports that lack one column: each after place `first` of the order; or (`only`) all of these together."""
    a, n, k = tree.taken[level] + first, tree.n[level], chosen.at.size
    last = k - 1
    hits = 1 if only else 0
    wanted, slack = tree.rest[last] - reach - error * yy, 2.0 * error * yy
    for m in range(first, n):
        j = tree.columns[level, tree.order[level, m]]
        if only and a < last:
            chosen.at[a] = j
            a += 1
        elif only:
            chosen.seen[j] = 1
        else:
            square = slack
            for t in range(tree.r.shape[2]):
                square += tree.r[last, j, t] * tree.r[last, j, t]
            if square >= wanted * tree.s[last, j]:
                chosen.seen[j] = 1
                hits += 1
    if hits:
        judge_last_several(exact, basis, chosen, kept, chosen.seen.size, yy)
        for m in range(n):
            chosen.seen[tree.columns[level, m]] = 0


@entry
def branch_several(G, B, exact, basis, chosen, kept, tree, yy, slack, error, most, looked, stop):
    """Walk down a tree for several targets; see `branching.walk_tree`."""
    return walk_tree(
        G, B, exact, basis, chosen, kept, tree, yy, slack, error, most, looked, stop,
        begin_several, open_several, leave_several, take_several_in, judge_several_leaf,
    )  # fmt: skip
