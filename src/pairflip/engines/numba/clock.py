"""What a chain reads and writes while it walks: the plan, where it stands, and what becomes of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.numba.compile import kernel

# Plain numbers: kernels take them in as constants.
AUTO, SQUARE, TABLE = 0, 1, 2
OK, RANK_TOO_SMALL, TO_BE_JUDGED = 0, 1, 2


class Plan(NamedTuple):
    """The plan as kernels see it: flip t of a step a with ends[a - 1] <= t < ends[a] has beta betas[a].

    `coldest[a]` is the smallest beta from step a on; `table_cost` the price of an acceptance in the table in
    units of an O(k^2) flip; `window` how many flips to watch before changing the way.
    """

    betas: Any
    ends: Any
    coldest: Any
    keys: Any
    way: int
    table_cost: float
    window: int


class Output(NamedTuple):
    """Where finished steps and chains are written (see `WalkResult`); `record` is empty where nobody asks for it."""

    energy: Any
    accepted: Any
    support: Any
    best_support: Any
    final_energy: Any
    refreshes: Any
    record: Any
    record_energy: Any


CLOCK = np.dtype(
    [
        (name, np.int64)
        for name in (
            "chain",  # the chain that is walked now
            "last_chain",  # the chain to end before
            "t",  # its flip; -1: not started
            "step",  # its step of the schedule
            "mark",  # the flip up to which the step's energies are summed
            "mode",  # how flips are evaluated: SQUARE or TABLE
            "width",  # how many flips are evaluated together
            "quiet",  # flips since the last accepted one
            "window_flips",  # flips and acceptances since the way was last thought over
            "window_accepted",
            "judged",  # 1: flips are decided from the columns now
            "factored",  # 1: the orthonormal basis belongs to the support
            "stale",  # 1: P, x and the table do not
        )
    ]
    + [
        (name, np.float64)
        for name in (
            "energy",  # of the support
            "best_energy",  # the lowest met
            "lowest",  # bound on the lowest Delta E of all flips; NaN: not known
            "error",  # rounding since P was computed
            "inflated",  # bound on the variance inflation of the support
        )
    ]
)
"""Where a chain stands between two calls: one record, which kernels change in place (``clock.quiet += 1``).

A record is one pointer for the compiler, as fast as numbered slots of an array; eighteen small arrays would be eighteen
pointers of which it has to assume that any two may overlap.
"""


def new_clock(first: int, last: int) -> Any:
    """A clock for chains first, ..., last - 1, none of them started.

    Entries take it as an array of one record, which numba recognizes three times as fast as the record itself: delicate
    chains call them for every few flips.
    """
    clocks = np.zeros(1, CLOCK)
    clocks["chain"], clocks["t"], clocks["last_chain"] = first, -1, last
    return clocks


@kernel
def book(clock, energy, accepted, best, order, better, t, new_energy):
    """Enter an accepted flip at time t into the step's sums and the clock, and keep the best support met."""
    # The energy has been the same since `mark`, so a step's sum is touched only where it changes.
    c, a = clock.chain, clock.step
    accepted[c, a] += 1
    energy[c, a] += clock.energy * (t - clock.mark)
    clock.energy = new_energy
    clock.lowest = np.nan
    clock.mark = t
    clock.window_accepted += 1
    if new_energy < clock.best_energy - better:
        clock.best_energy = new_energy
        for m in range(best.size):
            best[m] = order[m]


@kernel
def keep_record(order, clock, output, a):
    """Write the support at the end of step a."""
    c = clock.chain
    for m in range(output.record.shape[2]):
        output.record[c, a, m] = order[m]
    output.record_energy[c, a] = clock.energy


@kernel
def write_ends(order, best, clock, plan, output):
    """Write where the chain ended; steps it froze before reaching keep the final energy."""
    c = clock.chain
    for a in range(clock.step, plan.betas.size):
        # Of the step it stands in, what comes after `mark`; later ones, which it need not walk, from their beginning.
        begin_step = plan.ends[a - 1] if a else 0
        output.energy[c, a] += clock.energy * (plan.ends[a] - max(begin_step, clock.mark))
        if output.record.size:
            keep_record(order, clock, output, a)
    for a in range(plan.betas.size):
        output.energy[c, a] /= plan.ends[a] - (plan.ends[a - 1] if a else 0)
    output.final_energy[c] = clock.energy
    for m in range(best.size):
        output.support[c, m] = order[m]
        output.best_support[c, m] = best[m]
    clock.chain += 1
    clock.t = -1


@kernel
def pass_flips(order, clock, plan, output, n):
    """Enter that n flips have passed; True when they were the chain's last."""
    a = clock.step
    clock.t += n
    clock.window_flips += n
    if clock.t < plan.ends[a]:
        return False
    # A block never reaches beyond its step, so one step ends here at most.
    output.energy[clock.chain, a] += clock.energy * (plan.ends[a] - clock.mark)
    clock.mark = plan.ends[a]
    if output.record.size:
        keep_record(order, clock, output, a)
    clock.step += 1
    return clock.step == plan.betas.size


@kernel
def start_clock(clock, order, best, energy, inflated):
    """Flip 0 of a chain whose first support stands in `order`."""
    clock.energy = energy
    clock.best_energy = energy
    clock.lowest = np.nan
    clock.error = 0.0
    clock.inflated = inflated
    for m in range(best.size):
        best[m] = order[m]
    clock.t = 0


@kernel
def reset_clock(clock):
    """Forget the chain before: everything but the chain's number and energies, which `start_clock` sets."""
    clock.step = 0
    clock.mark = 0
    clock.mode = 0
    clock.width = 0
    clock.quiet = 0
    clock.window_flips = 0
    clock.window_accepted = 0
    clock.judged = 0
    clock.factored = 0
    clock.stale = 0
