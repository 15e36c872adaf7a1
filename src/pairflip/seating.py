"""How many columns the rules let stand together, and sets of so many.

Columns that are taken one by one, at random or the best first, may leave no place for the last ones although another
choice would have: two columns in the middle of a band block four. Here a column is taken only if enough others can
follow. With one kind of rule that is decided exactly (`room`), so that nothing has to be taken back:

- bands: of the columns that are left, the leftmost first, then the next that is far enough, and so on, are the most;
- groups: as many as there are groups, and columns of none;
- products with their factors: all whose factors can be there.

With several kinds together, or units of several columns, the least of these numbers is a bound, and sets are looked for
in several orders.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.limits import NOWHERE, Ints, Rules

_ORDERS = 8  # random ones, where several kinds of rules have to be kept together
Mask = NDArray[np.bool_]


def with_needs(rules: Rules, j: int) -> list[int]:
    """A candidate and all that it needs, directly or by way of others; empty where one of these cannot be chosen."""
    found = [j]
    for column in found:
        for other in rules.need[rules.need_start[column] : rules.need_start[column + 1]].tolist():
            if other == NOWHERE:
                return []
            if other not in found:
                found.append(other)
    return found


def choosable(rules: Rules) -> Mask:
    """Which candidates (N,) can be chosen at all: what they need is there, and may stand beside each other."""
    able = np.ones(rules.group.size, dtype=bool)
    for j in np.flatnonzero(np.diff(rules.need_start)).tolist():
        together = with_needs(rules, j)
        able[j] = bool(together) and rules.allow(np.array(together))
    return able


def room(rules: Rules, support: Iterable[int] = (), able: Mask | None = None) -> int:
    """The most columns that may be chosen beside a support: exact for one kind of rule, otherwise a bound."""
    free = _free(rules, list(support), choosable(rules) if able is None else able)
    most = int(np.count_nonzero(free))
    if rules.apart > 0:
        most = min(most, _packed(np.sort(rules.position[free]), rules.apart))
    own = rules.group[free]
    return min(most, int(np.unique(own[own != NOWHERE]).size + np.count_nonzero(own == NOWHERE)))


def _free(rules: Rules, support: list[int], able: Mask) -> Mask:
    """Which candidates (N,) may still be chosen beside a support, what they need with them."""
    free = able.copy()
    for i in support:
        if rules.group[i] != NOWHERE:
            free &= rules.group != rules.group[i]
        if rules.apart > 0:
            free &= ~rules.near(i)
    free[support] = False
    if rules.need.size:
        owner = np.repeat(np.arange(free.size), np.diff(rules.need_start))
        while True:
            there = free.copy()
            there[support] = True
            lost = owner[~there[rules.need]]  # a column that is NOWHERE has an owner that is not able to be chosen
            if not free[lost].any():
                break
            free[lost] = False
    return free


def _packed(positions: Floats, apart: float) -> int:
    """How many of the sorted positions can be chosen with at least that distance: the leftmost first."""
    count, at = 0, 0
    while at < positions.size:
        count, here = count + 1, positions[at]
        at = int(np.searchsorted(positions, here + apart))
        while at < positions.size and positions[at] - here < apart:
            at += 1
    return count


def seated(rules: Rules, k: int, order: Ints) -> Ints | None:
    """A set of k columns that keeps the rules, sorted, the first in `order` preferred; None where none was found."""
    able = choosable(rules)
    if room(rules, (), able) < k:
        return None
    random = np.random.default_rng(0)
    by_place = np.argsort(rules.position, kind="stable")
    for one in (order, by_place, by_place[::-1], *(random.permutation(order) for _ in range(_ORDERS))):
        found = _in_order(rules, k, one.tolist(), able)
        if found is not None:
            return found
    return None


def _in_order(rules: Rules, k: int, order: list[int], able: Mask) -> Ints | None:
    """The same for one order of the columns: each is taken, with what it needs, if enough others can follow."""
    support: list[int] = []
    grown = True
    while len(support) < k and grown:
        grown, free = False, _free(rules, support, able)
        for j in order:
            if not free[j]:
                continue
            more = [c for c in with_needs(rules, j) if c not in support]
            if len(support) + len(more) <= k <= len(support) + len(more) + room(rules, [*support, *more], able):
                support += more
                free, grown = _free(rules, support, able), True
            if len(support) == k:
                return np.sort(np.array(support, dtype=np.int64))
    return None


def largest(rules: Rules) -> int:
    """The most columns that may be chosen together; with several kinds of rules the most that were found."""
    bound = room(rules)
    kinds = [rules.apart > 0, bool(rules.need.size), bool((rules.group != NOWHERE).any()), bool(rules.clash.any())]
    if sum(kinds) < 2:
        return bound
    order = np.arange(rules.group.size)
    return next((k for k in range(bound, 0, -1) if seated(rules, k, order) is not None), 0)
