"""How chains are walked one after the other, with one target (`walk`) or several (`several_chain`)."""

from __future__ import annotations

import numpy as np

from pairflip.engines.base import FROZEN
from pairflip.engines.numba.algebra import DELICATE, inflation_at
from pairflip.engines.numba.chain import BLOCK
from pairflip.engines.numba.clock import (
    OK,
    RANK_TOO_SMALL,
    TO_BE_JUDGED,
    pass_flips,
    reset_clock,
    start_clock,
    write_ends,
)
from pairflip.engines.numba.compile import kernel, template
from pairflip.engines.numba.draws import draw_flips, draw_start


@kernel
def begin(system, chain, clock, plan, output, start, recompute):
    """Start the next chain: OK, RANK_TOO_SMALL when there are no k columns to start with, or TO_BE_JUDGED."""
    c, k = clock.chain, chain.x.size
    random_order = np.empty(chain.order.size, np.int32)
    draw_start(plan.keys[c, 0], plan.keys[c, 1], random_order)
    reset_clock(clock)
    found = start(system, chain, clock, plan, random_order)
    if 0 <= found < k:
        # There is no support to report, so its place tells how many columns there were.
        output.support[c, 0] = found
        return RANK_TOO_SMALL
    if found < 0 or inflation_at(chain.P, k) > DELICATE:
        clock.judged = 1
        return TO_BE_JUDGED
    start_clock(clock, chain.order, chain.best, recompute(system, chain), inflation_at(chain.P, k))
    return OK


@kernel
def come_back(system, chain, clock, catch_up):
    """Go on from a support that was flipped elsewhere."""
    # (`inflated` is right already: whoever flips elsewhere keeps it.)
    clock.energy = catch_up(system, chain, clock)
    clock.error = 0.0
    clock.stale = 0
    clock.quiet = 0


@kernel
def finish(system, chain, clock, plan, output, recompute):
    """End the chain with its energy computed anew."""
    clock.energy = recompute(system, chain)
    write_ends(chain.order, chain.best, clock, plan, output)


@template
def drive(system, chain, clock, plan, output, budget, start, recompute, catch_up, walk_block, choose_way):
    """Walk about `budget` flips on; returns (status, flips done, those that frozen chains need not try included).

    TO_BE_JUDGED means that `judge` must be called before the next call. What depends on the energy is handed over as
    kernels, which are inlined here like all others (decision 017), so that each entry is one compiled function:

    - ``start(system, chain, clock, plan, random_order)``: the first support; how many columns it found, -1 when only
      the columns can tell;
    - ``recompute(system, chain)``: the energy and what belongs to the support, without accumulated rounding;
    - ``catch_up(system, chain, clock)``: the same and all that the walk needs beside, after flips made elsewhere;
    - ``walk_block(system, chain, clock, plan, output, t, n, budget)``: n flips; how many were done;
    - ``choose_way(system, chain, clock, plan)``: think over how flips are evaluated.
    """
    k, outside = chain.x.size, chain.order.size - chain.x.size
    done = 0
    while done < budget and clock.chain < clock.last_chain:
        if clock.t < 0:
            status = begin(system, chain, clock, plan, output, start, recompute)
            if status != OK:
                return status, done
        if clock.judged:  # its flips are still decided from the columns: G knows nothing of this support
            return TO_BE_JUDGED, done
        if clock.stale:
            come_back(system, chain, clock, catch_up)
        c, t, a = clock.chain, clock.t, clock.step
        # A chain that cannot accept anything at this or any later temperature is at its end.
        # (Where the bound is not known it is NaN, and the comparison false.)
        if clock.lowest * plan.coldest[a] > FROZEN:
            done += plan.ends[-1] - t
            finish(system, chain, clock, plan, output, recompute)
            continue
        # Where the walk stops early, the rest of the block is drawn again: the address decides, so it is the same.
        n = min(BLOCK, plan.ends[a] - t)
        draw_flips(t, n, plan.keys[c, 0], plan.keys[c, 1], k, outside, chain.slot, chain.position, chain.uniform)
        n = walk_block(system, chain, clock, plan, output, t, n, budget)
        done += n
        over = pass_flips(chain.order, clock, plan, output, n)
        choose_way(system, chain, clock, plan)
        if over:
            finish(system, chain, clock, plan, output, recompute)
        elif clock.judged:
            return TO_BE_JUDGED, done
    return OK, done
