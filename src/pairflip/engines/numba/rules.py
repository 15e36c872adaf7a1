"""Rules for what may be in a support together, asked before a flip, an addition or a removal (see `limits.Rules`).

Nothing here rounds, so that what is long is compiled once (`apart`).
"""

from __future__ import annotations

from pairflip.engines.numba.compile import apart, kernel
from pairflip.limits import NOWHERE


@kernel
def clash(rules, i, j):
    """Whether two candidates cannot be chosen together."""
    if rules.group[j] != NOWHERE and rules.group[i] == rules.group[j]:
        return True
    return abs(rules.position[i] - rules.position[j]) < rules.apart


@kernel
def is_needed(rules, support, k, slot):
    """Whether another column of the support needs the one at `slot`."""
    for i in range(k):
        if i != slot:
            for at in range(rules.need_start[support[i]], rules.need_start[support[i] + 1]):
                if rules.need[at] == support[slot]:
                    return True
    return False


@kernel
def may_enter(rules, support, k, slot, j):
    """Whether candidate j may stand beside the columns of a support other than the one at `slot` (-1: beside all)."""
    for i in range(k):
        if i != slot and clash(rules, support[i], j):
            return False
    for at in range(rules.need_start[j], rules.need_start[j + 1]):
        found = False
        for i in range(k):
            found = found or (i != slot and support[i] == rules.need[at])
        if not found:
            return False
    return True


@kernel
def may_flip(rules, support, k, slot, j):
    """Whether candidate j may take the place of the column at `slot`."""
    return may_enter(rules, support, k, slot, j) and not is_needed(rules, support, k, slot)


@apart
def consider(rules, support, k, inside, clashes, only, missing):
    """For every candidate with how many columns of a support it clashes, the slot of one, and how many it lacks.

    `inside` (n,) is 1 for the columns of the support.
    """
    for j in range(inside.size):
        count, slot = 0, -1
        for i in range(k):
            if clash(rules, support[i], j):
                count, slot = count + 1, i
        clashes[j], only[j], missing[j] = count, slot, 0
        for at in range(rules.need_start[j], rules.need_start[j + 1]):
            if rules.need[at] == NOWHERE or inside[rules.need[at]] == 0:
                missing[j] += 1


@apart
def close(rules, support, k, slot, inside, clashes, only, missing):
    """Mark `inside` what may not take the place of the column at `slot` (-1: stand beside all), after `consider`."""
    needed = slot >= 0 and is_needed(rules, support, k, slot)
    for j in range(inside.size):
        shut = needed or missing[j] > 0 or clashes[j] > 1 or (clashes[j] == 1 and only[j] != slot)
        if slot >= 0:
            for at in range(rules.need_start[j], rules.need_start[j + 1]):
                shut = shut or rules.need[at] == support[slot]
        inside[j] = shut
    for i in range(k):
        inside[support[i]] = 1


@apart
def gather(rules, inside, j, batch):
    """Write candidate j and what it needs beside the columns that are `inside` into `batch`; how many, 0 if in vain.

    `inside` is 1 for columns of the support, 0 for others, and above 1 for those that must not enter.
    """
    count, now = 1, 0
    batch[0] = j
    while now < count:
        for at in range(rules.need_start[batch[now]], rules.need_start[batch[now] + 1]):
            other = rules.need[at]
            if other == NOWHERE or inside[other] > 1:
                return 0
            new = inside[other] == 0
            for i in range(count):
                new = new and batch[i] != other
            if new:
                if count == batch.size:
                    return 0
                batch[count] = other
                count += 1
        now += 1
    return count


@apart
def fits(rules, support, k, batch, count):
    """Whether the gathered columns clash neither with a support nor with each other."""
    for b in range(count):
        for i in range(k):
            if clash(rules, support[i], batch[b]):
                return False
        for c in range(b):
            if clash(rules, batch[c], batch[b]):
                return False
    return True
