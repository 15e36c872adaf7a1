r"""The lowest supports that an exhaustive search meets, judged from the columns and kept.

What an enumeration or a branch of a tree cannot rule out by cheap algebra comes here: an orthonormal basis of the
columns chosen so far (`orthogonal`), one more column beside them, and with it the exact energy and the rule for
singular supports. Energies are told as 2E, the residual sum of squares.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import EQUAL, INFLATION, NOTHING
from pairflip.engines.numba.compile import apart, entry, kernel
from pairflip.engines.numba.orthogonal import append, can_append, dot, load, load_target, project_out


class Kept(NamedTuple):
    """Supports (room, k) with 2E (room,), in the order in which they were found.

    `lowest` (n,): the n lowest 2E so far, ascending; what exceeds the last of them, or `limit` (1,), is not worth
    keeping. `n` (2,): how many supports are there, and whether equals of the last one had to be left out; `levels`,
    `counts` (L,): numbers of supports with 2E up to each level, ascending.
    """

    supports: Any
    doubled: Any
    lowest: Any
    limit: Any
    n: Any
    levels: Any
    counts: Any


class Chosen(NamedTuple):
    """Columns `at` (k,) taken so far, `built` (k,) those in the basis, and which columns are to be judged (N,)."""

    at: Any
    built: Any
    seen: Any


def new_chosen(k: int, n_columns: int) -> Chosen:
    """Nothing chosen yet."""
    return Chosen(np.zeros(k, np.int64), np.full(k, -1, np.int64), np.zeros(n_columns, np.uint8))


def new_kept(k: int, wanted: int, limit: float, levels: Any) -> Kept:
    """Room for the lowest supports.

    Parameters
    ----------
    k, wanted : int
        Size of a support, and how many of the lowest are wanted.
    limit : float
        2E that these are known not to exceed.
    levels : (L,)
        Values of 2E, ascending, up to which supports are counted.
    """
    room, levels = 2 * wanted + 4096, np.array(levels, dtype=np.float64)
    return Kept(
        np.empty((room, k), np.int64), np.empty(room), np.full(wanted, np.inf), np.array([limit]),
        np.zeros(2, np.int64), levels, np.zeros(levels.size, np.int64),
    )  # fmt: skip


@kernel
def limit_of(kept, yy):
    """What is not worth keeping has a larger 2E; equals of the last one are."""
    return min(kept.limit[0], kept.lowest[kept.lowest.size - 1]) * (1.0 + 2.0 * EQUAL) + 2.0 * NOTHING * yy


@kernel
def reach_of(kept, yy):
    """What has a larger 2E is neither kept nor counted."""
    reach = limit_of(kept, yy)
    if kept.levels.size:
        reach = max(reach, kept.levels[kept.levels.size - 1])
    return min(reach, 2.0 * yy)  # never infinite: 2E of no columns is y'y


@apart
def keep(kept, support, doubled, yy):
    """Count a support, and keep it if it is among the lowest."""
    for level in range(kept.levels.size):
        if doubled <= kept.levels[level]:
            kept.counts[level] += 1
    if doubled > limit_of(kept, yy):
        return
    lowest, at = kept.lowest, kept.lowest.size
    while at > 0 and doubled < lowest[at - 1]:
        if at < lowest.size:
            lowest[at] = lowest[at - 1]
        at -= 1
    if at < lowest.size:
        lowest[at] = doubled
    if kept.n[0] == kept.doubled.size:
        limit, left = limit_of(kept, yy), 0
        for m in range(kept.n[0]):
            if kept.doubled[m] <= limit:
                for l in range(support.size):
                    kept.supports[left, l] = kept.supports[m, l]
                kept.doubled[left] = kept.doubled[m]
                left += 1
        kept.n[0] = left
        if left == kept.doubled.size:  # all are equal to the last one wanted: those found first stay
            kept.n[1] = 1
            if at == lowest.size:
                return
            kept.n[0] -= 1
    for m in range(support.size):
        kept.supports[kept.n[0], m] = support[m]
    kept.doubled[kept.n[0]] = doubled
    kept.n[0] += 1


@apart
def take_out(basis, n, q):
    """`project_out` of the first n vectors of the basis."""
    return project_out(basis.Q, n, q, basis.c)


@apart
def build(exact, basis, chosen, depth):
    """An orthonormal basis of the first `depth` columns chosen; what is there already is used."""
    first = 0
    while first < depth and chosen.built[first] == chosen.at[first]:
        first += 1
    for m in range(depth, chosen.built.size):
        chosen.built[m] = -1
    for m in range(first, depth):
        load(exact, chosen.at[m], m, basis.q)
        s = take_out(basis, m, basis.q)
        for l in range(m):
            basis.inflated[l] = 0.0
            for n in range(m):
                basis.inflated[l] += basis.T[l, n] * basis.T[l, n]
        append(basis, m, s)
        chosen.built[m] = chosen.at[m]


@apart
def pivot_of(exact, basis, chosen, depth, j):
    """What is left of column j beside the first `depth` columns chosen, from the columns; q and c are those of j."""
    build(exact, basis, chosen, depth)
    load(exact, j, depth, basis.q)
    return take_out(basis, depth, basis.q)


@apart
def judge_last(exact, basis, chosen, kept, last, yy):
    """Supports of the k - 1 columns chosen and one more, of those j < `last` that are marked in `seen`."""
    k, depth = chosen.at.size, chosen.at.size - 1
    build(exact, basis, chosen, depth)
    for l in range(depth):
        basis.inflated[l] = 0.0
        for n in range(depth):
            basis.inflated[l] += basis.T[l, n] * basis.T[l, n]
        if not basis.inflated[l] < INFLATION:
            return
    load_target(exact, basis.e)
    take_out(basis, depth, basis.e)
    whole = dot(basis.e, basis.e)
    for j in range(last):
        if not chosen.seen[j]:
            continue
        load(exact, j, depth, basis.q)
        s = take_out(basis, depth, basis.q)
        if not can_append(exact, basis, depth, s):
            continue
        along = dot(basis.q, basis.e)
        doubled = whole - along * along / s
        if doubled < 1e-3 * whole:  # the difference would leave little but rounding
            doubled = 0.0
            for t in range(basis.q.size):
                left = basis.e[t] - along / s * basis.q[t]
                doubled += left * left
        chosen.at[k - 1] = j
        keep(kept, chosen.at, doubled, yy)


@entry
def judge_supports(exact, basis, chosen, kept, supports, yy):
    """Supports (n, k), columns descending, that something else could not rule out; quick where neighbours are alike."""
    k, at = supports.shape[1], 0
    for j in range(chosen.seen.size):
        chosen.seen[j] = 0
    while at < supports.shape[0]:
        for m in range(k - 1):
            chosen.at[m] = supports[at, m]
        end, alike = at, True
        while end < supports.shape[0] and alike:  # those that differ in their last column alone
            for m in range(k - 1):
                alike = alike and supports[end, m] == supports[at, m]
            if alike:
                chosen.seen[supports[end, k - 1]] = 1
                end += 1
        judge_last(exact, basis, chosen, kept, supports[at, k - 2], yy)
        for m in range(at, end):
            chosen.seen[supports[m, k - 1]] = 0
        at = end
