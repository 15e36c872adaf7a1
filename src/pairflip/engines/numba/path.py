r"""The path: supports of all sizes in one pass, each from its neighbour.

On the way up the best column is added, on the way down the one that is missed least is removed; after each step the
support descends. Where the neighbour leads to a lower energy than was known for a size, it is kept; where it leads to a
higher one, the pass goes on from the support that was known.
"""

from __future__ import annotations

import numpy as np

from pairflip.engines.base import BETTER
from pairflip.engines.numba.compile import entry, kernel
from pairflip.engines.numba.descent import (
    DOUBT,
    FLIP,
    MINIMUM,
    NEED_ROW,
    border,
    descend,
    energy_at,
    fill,
    has_row,
)
from pairflip.engines.numba.growth import add_column, find_addition, find_removal, remove_slot

MOVING, DESCENDING, LOADING = 0, 1, 2
DONE = 9


@kernel
def compare(energy, table, k, supports, energies, better):
    """Keep the minimum reached if it is the lowest known of its size; 1 kept, -1 one that is lower is known, else 0."""
    if energy < energies[k - 1] - better:
        energies[k - 1] = energy
        ordered = np.sort(table.support[:k])
        for m in range(k):
            supports[k - 1, m] = ordered[m]
        return 1
    return -1 if energy > energies[k - 1] + better else 0


@entry
def advance_path(form, table, states, clocks, supports, energies, budget):
    """Go on with a pass; MINIMUM: the budget of scans is used up, DONE: the pass is at its end, else see `descend`."""
    state, clock = states[0], clocks[0]
    better, until, nothing = BETTER * form.yy, state.scans + budget, np.empty(0, np.uint8)
    while state.scans < until:
        if clock.phase == LOADING:
            for m in range(state.k):
                if not has_row(form, table, table.support[m]):
                    state.wanted = table.support[m]
                    return NEED_ROW
            if border(form, table, state.k) < state.k:
                return DOUBT
            fill(form, table, state)
            clock.phase = MOVING
        if clock.phase == MOVING:
            if state.k == clock.last:
                return DONE
            if clock.up:
                found = find_addition(form, table, state, nothing)
                if found == FLIP and not has_row(form, table, state.column):
                    state.wanted = state.column
                    return NEED_ROW
                if found != FLIP or not add_column(form, table, state, state.column):
                    return DOUBT
            else:
                if find_removal(form, table, state) != FLIP:
                    return DOUBT
                remove_slot(form, table, state, state.slot)
            clock.phase = DESCENDING
        status = descend(form, table, state)
        if status != MINIMUM:
            return status
        better_known = compare(energy_at(form, table, state.k), table, state.k, supports, energies, better)
        clock.changed += better_known == 1
        clock.phase = MOVING
        if better_known == -1:
            for m in range(state.k):
                table.support[m] = supports[state.k - 1, m]
            clock.phase = LOADING
    return MINIMUM


PATH = np.dtype([(name, np.int64) for name in ("phase", "up", "last", "changed")])
"""Where a pass stands between two calls."""


@entry
def compare_at(energy, table, states, clocks, supports, energies, better):
    """Compare a minimum that was reached elsewhere; see `compare`."""
    found = compare(energy, table, states[0].k, supports, energies, better)
    clocks[0].changed += found == 1
    return found


@entry
def load_support(form, table, states):
    """P and the table of the support that was written there; False if only the columns can tell."""
    state = states[0]
    if border(form, table, state.k) < state.k:
        return False
    fill(form, table, state)
    return True
