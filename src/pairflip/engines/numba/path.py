r"""The path: supports of all sizes in one pass, each from its neighbour.

On the way up the best column is added, on the way down the one that is missed least is removed; after each step the
support descends. Where the neighbour leads to a lower energy than was known for a size, it is kept; where it leads to a
higher one, the pass goes on from the support that was known.
"""

from __future__ import annotations

import numpy as np

from pairflip.engines.base import BETTER
from pairflip.engines.numba.compile import entry, kernel, template
from pairflip.engines.numba.descent import step_down
from pairflip.engines.numba.growth import find_addition, find_removal, remove_slot, take_in
from pairflip.engines.numba.support_table import DONE, DOUBT, FLIP, MINIMUM, NEED_COLUMNS, copy_sorted, refresh, weigh

MOVING, DESCENDING = 0, 1
PATH = np.dtype(
    [
        (name, np.int64)
        for name in (
            "phase",
            "up",  # 1: towards larger supports
            "last",  # the size at which the pass ends
            "changed",  # sizes for which the pass found a lower energy
        )
    ]
)
"""Where a pass stands between two calls."""


@kernel
def end_descent(table, state, clock, supports, energies, better):
    """Keep the minimum reached if it is the lowest known of its size; if it is not, go on from the lowest."""
    k, energy = state.k, state.energy
    if energy < energies[k - 1] - better:
        energies[k - 1] = energy
        copy_sorted(table.support, k, supports, k - 1)
        clock.changed += 1
    elif energy > energies[k - 1] + better:
        for m in range(k):
            table.support[m] = supports[k - 1, m]
        state.stale = 1
    state.at_minimum, clock.phase = 0, MOVING


@template
def move(form, table, state, clock):
    """One column more or less: FLIP, or NEED_ROW or DOUBT where someone else must help first."""
    if clock.up:
        found = find_addition(form, table, state, np.empty(0, np.uint8))
        if found == FLIP:
            return take_in(form, table, state, state.column)
        return DOUBT
    found = find_removal(form, table, state)
    if found == FLIP:
        remove_slot(table, state, state.slot)
    return found


@entry
def advance_path(form, table, states, clocks, supports, energies, budget):
    """Go on with a pass for about `budget` scans; the answer says who must help before the next call.

    DONE: the pass is at its end. MINIMUM: the budget is used up. DOUBT: the columns must decide.
    """
    state, clock = states[0], clocks[0]
    better, until = BETTER * form.yy, state.scans + budget
    while state.scans < until:
        if state.at_minimum:
            end_descent(table, state, clock, supports, energies, better)
        if clock.phase == MOVING and state.k == clock.last:
            return DONE
        if state.stale:
            status = refresh(form, table, state)
        elif clock.phase == MOVING:
            status = move(form, table, state, clock)
            if status == FLIP:
                clock.phase = DESCENDING
        else:
            status = step_down(form, table, state)
            if status == MINIMUM:
                state.at_minimum = int(weigh(form, table, state))
                status = MINIMUM if state.at_minimum else NEED_COLUMNS
        if status != MINIMUM and status != FLIP:
            return status
    return MINIMUM
