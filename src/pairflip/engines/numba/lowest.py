r"""The lowest supports that an exhaustive search meets, judged from the columns and kept.

What an enumeration or a branch of a tree cannot rule out by cheap algebra comes here: an orthonormal basis of the
columns chosen so far, one more unit beside them, and with it the exact energy and the rule for singular supports.
Energies are told as 2E, the residual sum of squares.

Q (K, L) is the basis, T (K, K) are the coordinates of the dual vectors, :math:`A_l = \sum_m T_{lm} Q_m` with
:math:`X_l \cdot A_m = \delta_{lm}`, so that :math:`G_{SS}^{-1} = T T^T` and the variance inflation factor of slot l is
:math:`|T_l|^2`. The ridge is one more row for each slot, which holds :math:`\sqrt{\lambda_j}` of the column in that
slot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.compiled import apart, entry, template
from pairflip.engines.base import EQUAL, INFLATION, NOTHING
from pairflip.rules import NOWHERE

NOTHING_COMES = np.int64(0)


class Exact(NamedTuple):
    """A problem by its columns: `vectors` (D + q, L), the targets after the columns; `root` (D,) of the ridge or (0,).

    With a ridge, vectors end with a zero for each slot. Unit u, what enters and leaves together, is columns `start[u]`
    to `start[u + 1]` - 1; `rules` between units matter if `ruled`.
    """

    vectors: Any
    root: Any
    start: Any
    rules: Any
    ruled: bool


class Basis(NamedTuple):
    """Memory: Q, T, and `rest` (1 + q, L), what the basis leaves of the last vector and of the targets.

    `inflated` (K + 1, K + 1): inflations of the first n columns in row n, and the largest of them at its end; `c`
    (K,): coordinates of the last vector.
    """

    Q: Any
    T: Any
    rest: Any
    inflated: Any
    c: Any


class Chosen(NamedTuple):
    """Units `at` (k,) taken so far, `built` (k,) those in the basis, and which units are to be judged (U,)."""

    at: Any
    built: Any
    seen: Any


def most_columns(start: Any, k: int) -> int:
    """How many columns k units have at the most."""
    return int(np.sort(np.diff(start))[-k:].sum())


def new_basis(exact: Exact, k: int) -> tuple[Basis, Chosen]:
    """Memory for supports of k units, none of them chosen yet."""
    K, (rows, length) = most_columns(exact.start, k), exact.vectors.shape
    rest, inflated, c = np.empty((1 + rows - exact.start[-1], length)), np.zeros((K + 1, K + 1)), np.empty(K)
    basis = Basis(np.empty((K, length)), np.empty((K, K)), rest, inflated, c)
    return basis, Chosen(np.zeros(k, np.int64), np.full(k, -1, np.int64), np.zeros(exact.start.size - 1, np.uint8))


@apart
def beside(exact, basis, j, n):
    """What the first n vectors of the basis leave of vector j: its squared norm.

    A column becomes vector n of the basis, and `inflated` says what that inflates; what is left of a target is put
    into `rest`.
    """
    Q, T, c, inflated, rest, L = basis.Q, basis.T, basis.c, basis.inflated, basis.rest, basis.rest.shape[1]
    D = exact.vectors.shape[0] - rest.shape[0] + 1
    at = max(j - D + 1, 0)
    for t in range(L):
        rest[at, t] = exact.vectors[j, t]
    if j < exact.root.size:
        rest[at, L - T.shape[0] + n] = exact.root[j]
    for m in range(n):
        c[m] = 0.0
    for m in range(2 * n):  # once leaves a rest that is not orthogonal when little is left; twice is enough (Kahan)
        total, m = 0.0, m % n
        for t in range(L):
            total += Q[m, t] * rest[at, t]
        for t in range(L):
            rest[at, t] -= total * Q[m, t]
        c[m] += total
    s = 0.0
    for t in range(L):
        s += rest[at, t] * rest[at, t]
    if j < D:
        scale, largest = 1.0 / s**0.5, 1.0 / s
        for l in range(n):
            total = 0.0
            for m in range(l, n):
                total += T[l, m] * c[m]
            T[l, n] = -total * scale
            inflated[n + 1, l] = inflated[n, l] + T[l, n] * T[l, n]
            largest = max(largest, inflated[n + 1, l])
        T[n, n], inflated[n + 1, n] = scale, 1.0 / s
        inflated[n + 1, T.shape[0]] = largest if largest < np.inf else np.inf  # nor anything that is not a number
        for t in range(L):
            Q[n, t] = rest[at, t] * scale
    return s


@template
def build(exact, basis, chosen, depth):
    """An orthonormal basis of the columns of the first `depth` units chosen, as far as it is new; their number."""
    at, built, start, n, new = chosen.at, chosen.built, exact.start, 0, False
    for m in range(depth):
        new = new or built[m] != at[m]
        built[m] = at[m]
        for j in range(start[at[m]], start[at[m] + 1]):
            if new:
                beside(exact, basis, j, n)
            n += 1
    for m in range(depth, built.size):
        built[m] = -1
    return n


@template
def set_rests(exact, basis, n):
    """What the first n vectors of the basis leave of each target, into `rest`; the sum of its squares."""
    whole, q = 0.0, basis.rest.shape[0] - 1
    for t in range(q):
        whole += beside(exact, basis, exact.vectors.shape[0] - q + t, n)
    return whole


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


def new_kept(k: int, wanted: int, limit: float, levels: Any) -> Kept:
    """Room for the `wanted` lowest supports of k units, whose 2E is known not to exceed `limit`."""
    room, levels = 2 * wanted + 4096, np.array(levels, dtype=np.float64)
    return Kept(
        np.empty((room, k), np.int64), np.empty(room), np.full(wanted, np.inf), np.array([limit]),
        np.zeros(2, np.int64), levels, np.zeros(levels.size, np.int64),
    )  # fmt: skip


@apart
def limit_of(kept, yy):
    """What is not worth keeping has a larger 2E; equals of the last one are."""
    return min(kept.limit[0], kept.lowest[kept.lowest.size - 1]) * (1.0 + 2.0 * EQUAL) + 2.0 * NOTHING * yy


@apart
def reach_of(kept, yy):
    """What has a larger 2E is neither kept nor counted."""
    reach = limit_of(kept, yy)
    if kept.levels.size:
        reach = max(reach, kept.levels[kept.levels.size - 1])
    return min(reach, 2.0 * yy)  # never infinite: 2E of no columns is y'y


@template
def keep(kept, support, doubled, yy):
    """Count a support, and keep it if it is among the lowest."""
    # Counted even if not kept: how many supports reach a level is part of the answer.
    for level in range(kept.levels.size):
        kept.counts[level] += doubled <= kept.levels[level]
    lowest, at, room = kept.lowest, kept.lowest.size, True
    worth = doubled <= limit_of(kept, yy)
    while worth and at > 0 and doubled < lowest[at - 1]:
        if at < lowest.size:
            lowest[at] = lowest[at - 1]
        at -= 1
    if worth and at < lowest.size:
        lowest[at] = doubled
    # Full: what is no longer among the lowest leaves at once, so that this happens seldom.
    if worth and kept.n[0] == kept.doubled.size:
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
            room = at < lowest.size
            kept.n[0] -= room
    if worth and room:
        for m in range(support.size):
            kept.supports[kept.n[0], m] = support[m]
        kept.doubled[kept.n[0]] = doubled
        kept.n[0] += 1


@apart
def keeps_rules(exact, at, n, coming):
    """Whether the first n units `at` may stand together, with what they need among them or among units < `coming`."""
    rules = exact.rules
    for i in range(n):
        u = at[i]
        for l in range(i):
            near = abs(rules.position[at[l]] - rules.position[u]) < rules.apart
            if rules.clash.size:
                near = rules.clash[at[l], u]
            if near or (rules.group[u] != NOWHERE and rules.group[at[l]] == rules.group[u]):
                return False
        for m in range(rules.need_start[u], rules.need_start[u + 1]):
            need = rules.need[m]
            found = need != NOWHERE and need < coming
            for l in range(n):
                found = found or at[l] == need
            if not found:
                return False
    return True


@apart
def judge(exact, basis, chosen, kept, last, yy):
    """Supports of the k - 1 units chosen and one more, of those u < `last` that are marked in `seen`."""
    at, seen, k, K = chosen.at, chosen.seen, chosen.at.size, basis.T.shape[0]
    some = not exact.ruled
    for u in range(last if exact.ruled else 0):
        if seen[u]:
            at[k - 1] = u
            seen[u] = keeps_rules(exact, at, k, NOTHING_COMES)
            some = some or seen[u] > 0
    if not some:
        return
    # The basis of k - 1 units serves every last unit, and is kept from call to call as far as it stays the same.
    first = build(exact, basis, chosen, k - 1)
    if not basis.inflated[first, K] < INFLATION:
        return
    for u in range(last):
        n = first
        if seen[u]:
            for j in range(exact.start[u], exact.start[u + 1]):
                beside(exact, basis, j, n)
                n += 1
        if n == first or not basis.inflated[n, K] < INFLATION:
            continue
        at[k - 1] = u
        keep(kept, at, set_rests(exact, basis, n), yy)


@entry
def judge_supports(exact, basis, chosen, kept, supports, yy):
    """Supports (n, k), units descending, that something else could not rule out; quick where neighbours are alike."""
    k, at = supports.shape[1], 0
    for u in range(chosen.seen.size):
        chosen.seen[u] = 0
    while at < supports.shape[0]:
        for m in range(k - 1):
            chosen.at[m] = supports[at, m]
        end, alike = at, True
        while end < supports.shape[0] and alike:  # those that differ in their last unit alone
            for m in range(k - 1):
                alike = alike and supports[end, m] == supports[at, m]
            if alike:
                chosen.seen[supports[end, k - 1]] = 1
                end += 1
        judge(exact, basis, chosen, kept, supports[at, k - 2], yy)
        for m in range(at, end):
            chosen.seen[supports[m, k - 1]] = 0
        at = end
