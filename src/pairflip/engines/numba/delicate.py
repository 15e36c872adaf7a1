"""Delicate flips: how a chain decides from the columns.

The Gram matrix decides a flip only where rounding cannot: when Delta E less its error is accepted but Delta E plus its
error is not, or when the inflation would exceed DELICATE, the walk stops before that flip (JUDGED), and it is decided
here, as the reference engine would. A chain stays here until its support is calm again; the walk then computes P anew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import BETTER, TIE
from pairflip.engines.numba.algebra import BEYOND, DELICATE, accepts
from pairflip.engines.numba.clock import (
    OK,
    RANK_TOO_SMALL,
    book,
    pass_flips,
    start_clock,
    write_ends,
)
from pairflip.engines.numba.compile import entry, kernel, template
from pairflip.engines.numba.draws import draw_flips, draw_start
from pairflip.engines.numba.orthogonal import (
    TILT,
    build,
    energy_of,
    inflation_of,
    meet,
    stays_regular,
    take,
    weigh,
)


class Memory(NamedTuple):
    """The part of a chain's memory that is used here too."""

    order: Any
    best: Any
    slot: Any
    position: Any
    uniform: Any


CALM = DELICATE / 4.0
"""Inflation below which a chain goes back to the Gram matrix: well below DELICATE, so that it does not come and go."""
FEW = 64
"""Flips drawn at a time: most visits decide one."""


@kernel
def accepts_change(u, beta, delta, tie):
    """Whether u accepts a flip of that Delta E; a tie costs nothing."""
    return delta <= tie or accepts(u, beta * delta)


@kernel
def is_delicate(u, beta, low, delta, tie, worst):
    """Whether rounding might decide a flip that may be accepted, or the support would be badly conditioned."""
    # As far above Delta E as `low` is below it; NaN of a hopeless P must end here too, hence `not worst <=`.
    high = 2.0 * delta - low
    return low == BEYOND or not worst <= DELICATE or not accepts_change(u, beta, high, tie)


@kernel
def may_always(exact, order, k, i, j):
    """Any column may take any place."""
    return True


@kernel
def walk_delicate(exact, basis, memory, clock, output, t, n, beta, yy, may, meet, weigh, take):
    """Flips t, ..., t + n - 1 (drawn into the memory) from the columns, until the support is calm.

    Returns how many were done. The last four arguments are kernels, see `judge_by`.
    """
    order, slot, position, uniform = memory.order, memory.slot, memory.position, memory.uniform
    k, f = memory.best.size, 0
    anew = False
    while f < n:
        i, place = slot[f], position[f]
        j = order[k + place]
        if not may(exact, order, k, i, j):
            f += 1
            continue
        meet(exact, basis, i, j, anew)
        delta, alpha, s = weigh(exact, basis, i, j, clock.energy)
        # The inflations of all slots cost O(k^2), so they are asked for only where the flip would be made.
        yes = delta < np.inf and accepts_change(uniform[f], beta, delta, TIE * yy)
        if yes and stays_regular(basis, i, j, alpha, s):
            # Its numbers were remembered but its vectors are not there: meet it again, then take it.
            if basis.loaded[0] != j:
                anew = True
                continue
            take(exact, basis, i)
            order[i], order[k + place] = j, order[i]
            new_energy = clock.energy + delta
            book(clock, output.energy, output.accepted, memory.best, order, BETTER * yy, t + f, new_energy)
            clock.inflated = inflation_of(basis)
            clock.stale = 1
        f += 1
        anew = False
        if clock.inflated <= CALM:
            clock.judged = 0
            break
        # The basis has turned by too much rounding; `judge` builds it anew before the next flip.
        if basis.tilted[0] >= TILT:
            clock.factored = 0
            break
    return f


@template
def judge_by(exact, basis, memory, clock, plan, output, yy, budget, build, energy_of, may, meet, weigh, take):
    """Walk about `budget` flips on, or until the chain's support is calm; returns (status, flips done).

    What depends on the targets is handed over as kernels, as in `drive`: `build`, `energy_of`, `meet`, `weigh` and
    `take` do what those of `orthogonal` do for one target; `may` says whether a flip keeps the rules.
    """
    order, k = memory.order, memory.best.size
    c, done = clock.chain, 0
    key0, key1 = plan.keys[c, 0], plan.keys[c, 1]
    while done < budget and clock.judged:
        if not clock.factored:
            first = clock.t < 0
            candidates = np.empty(order.size if first else k, np.int32)
            if first:
                draw_start(key0, key1, candidates)
            else:
                for m in range(k):
                    candidates[m] = order[m]
                # No column is chosen anew: the support was accepted, and only its basis has to be computed.
                output.refreshes[c] += 1
            found = build(exact, basis, candidates, first, order)
            if found < k:
                output.support[c, 0] = found
                return RANK_TOO_SMALL, done
            clock.factored = 1
            if first:
                clock.stale = 1
                start_clock(clock, order, memory.best, energy_of(exact, basis), inflation_of(basis))
        t, a = clock.t, clock.step
        n = min(FEW, plan.ends[a] - t)
        draw_flips(t, n, key0, key1, k, order.size - k, memory.slot, memory.position, memory.uniform)
        n = walk_delicate(exact, basis, memory, clock, output, t, n, plan.betas[a], yy, may, meet, weigh, take)
        done += n
        if pass_flips(order, clock, plan, output, n):
            clock.energy = energy_of(exact, basis)
            write_ends(order, memory.best, clock, plan, output)
            clock.judged = 0
    return OK, done


@entry
def judge(exact, basis, memory, clocks, plan, output, yy, budget):
    """Walk about `budget` flips on, or until the chain's support is calm; returns (status, flips done)."""
    return judge_by(
        exact, basis, memory, clocks[0], plan, output, yy, budget, build, energy_of, may_always, meet, weigh, take
    )
