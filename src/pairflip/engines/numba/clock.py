"""What a chain reads and writes while it walks: the plan, where it stands, and what becomes of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.numba.compile import kernel

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
    """Where finished steps and chains are written (see `WalkResult`)."""

    energy: Any
    accepted: Any
    support: Any
    best_support: Any
    final_energy: Any
    refreshes: Any


class Clock(NamedTuple):
    """Where a chain stands between two calls: `count` whole numbers, `value` real ones, by the names below."""

    count: Any
    value: Any


# Whole numbers: the chain, its flip and step; how flips are evaluated; flips since the last accepted one; flips and
# acceptances of the window; the flip up to which energies are summed; flips evaluated together; whether flips are
# decided from the columns now, whether the basis belongs to the support, whether P, x (and the table) do not; and the
# chain to end before.
CHAIN, T, STEP, MODE, QUIET, WIN_FLIPS, WIN_ACCEPTED, MARK, WIDTH, JUDGED, FACTORED, STALE, LAST_CHAIN = range(13)
# Real ones: the energy, the best met, the lowest Delta E of all flips (NaN: not known), rounding since P was
# computed, and the bound on the variance inflation of the support.
ENERGY, BEST, LOWEST, ERROR, INFLATED = range(5)


def new_clock(first: int, last: int) -> Clock:
    """A clock for chains first, ..., last - 1, none of them started."""
    count = np.zeros(LAST_CHAIN + 1, np.int64)
    count[CHAIN], count[T], count[LAST_CHAIN] = first, -1, last
    return Clock(count, np.zeros(INFLATED + 1))


@kernel
def book(count, value, energy, accepted, best, order, better, t, new_energy):
    """Enter an accepted flip at time t into the step's sums and the clock, and keep the best support met."""
    c, a = count[CHAIN], count[STEP]
    accepted[c, a] += 1
    energy[c, a] += value[ENERGY] * (t - count[MARK])
    value[ENERGY] = new_energy
    value[LOWEST] = np.nan
    count[MARK] = t
    count[WIN_ACCEPTED] += 1
    if new_energy < value[BEST] - better:
        value[BEST] = new_energy
        for m in range(best.size):
            best[m] = order[m]


@kernel
def write_ends(order, best, clock, plan, output):
    """Write where the chain ended; steps it froze before reaching keep the final energy."""
    count, value = clock.count, clock.value
    c = count[CHAIN]
    for a in range(count[STEP], plan.betas.size):
        begin_step = plan.ends[a - 1] if a else 0
        output.energy[c, a] += value[ENERGY] * (plan.ends[a] - max(begin_step, count[MARK]))
    for a in range(plan.betas.size):
        output.energy[c, a] /= plan.ends[a] - (plan.ends[a - 1] if a else 0)
    output.final_energy[c] = value[ENERGY]
    for m in range(best.size):
        output.support[c, m] = order[m]
        output.best_support[c, m] = best[m]
    count[CHAIN] += 1
    count[T] = -1


@kernel
def pass_flips(clock, plan, output, n):
    """Enter that n flips have passed; True when they were the chain's last."""
    count, value = clock.count, clock.value
    a = count[STEP]
    count[T] += n
    count[WIN_FLIPS] += n
    if count[T] < plan.ends[a]:
        return False
    output.energy[count[CHAIN], a] += value[ENERGY] * (plan.ends[a] - count[MARK])
    count[MARK] = plan.ends[a]
    count[STEP] += 1
    return count[STEP] == plan.betas.size


@kernel
def start_clock(clock, order, best, energy, inflated):
    """Flip 0 of a chain whose first support stands in `order`."""
    count, value = clock.count, clock.value
    value[ENERGY], value[BEST], value[LOWEST], value[ERROR], value[INFLATED] = energy, energy, np.nan, 0.0, inflated
    for m in range(best.size):
        best[m] = order[m]
    count[T] = 0
