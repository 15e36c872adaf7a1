"""Rules for what may be in a support together, asked before a flip, an addition or a removal (see `limits.Rules`)."""

from __future__ import annotations

from pairflip.engines.numba.compile import kernel
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
