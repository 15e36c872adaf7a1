"""Ladders of walkers that trade places (see `exchange`), round by round in one compiled loop.

The walkers of a ladder are chains of `walk`: their memory lies in arrays with one row for each, and they go on at
whatever temperature the place has where they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import RankTooSmall
from pairflip.engines.exchange import LadderPlan, LadderResult, from_places
from pairflip.engines.numba.chain import Chain, System, new_chain
from pairflip.engines.numba.clock import AUTO, CLOCK, OK, RANK_TOO_SMALL, Output, Plan
from pairflip.engines.numba.compile import entry, kernel
from pairflip.engines.numba.delicate import Memory, judge
from pairflip.engines.numba.driver import drive
from pairflip.engines.numba.walk import catch_up, choose_way, recomputed, start, walk_block
from pairflip.gram import Gram

_SLICE = 1_000_000
"""Flips after which the interpreter may see Ctrl-C."""


class Ladder(NamedTuple):
    """A ladder as kernels see it: R places, D rounds.

    `betas` (R,) of the places, `drawn` (D, R) the random numbers of the exchanges, `who` (D + 1, R) which walker stands
    where, `heat` (R, D) the inverse temperatures that each walker met.
    """

    betas: Any
    drawn: Any
    who: Any
    heat: Any


@kernel
def trade(ladder, energies, round_):
    """Neighbours trade places after a round, or do not: `who` of the next one."""
    betas, places = ladder.betas, ladder.betas.size
    for place in range(places):
        ladder.who[round_ + 1, place] = ladder.who[round_, place]
    for place in range(round_ % 2, places - 1, 2):
        one, other = ladder.who[round_, place], ladder.who[round_, place + 1]
        gain = (betas[place + 1] - betas[place]) * (energies[other, round_] - energies[one, round_])
        if gain >= 0.0 or ladder.drawn[round_, place] <= np.exp(gain):
            ladder.who[round_ + 1, place], ladder.who[round_ + 1, place + 1] = other, one


@entry
def advance_ladder(system, memory, clocks, plan, output, ladder, at, budget):
    """Walk about `budget` flips on; `at` (3,) says where: round, place, and flips done of it.

    Returns OK, or what keeps the walker at that place from going on (see `drive`).
    """
    rounds, places, flips, spent = ladder.drawn.shape[0], ladder.betas.size, plan.ends[0], 0
    while at[0] < rounds and spent < budget:
        while at[1] < places:
            walker = ladder.who[at[0], at[1]]
            ladder.heat[walker, at[0]] = ladder.betas[at[1]]
            own = Plan(ladder.heat[walker], plan.ends, plan.coldest, plan.keys, plan.way, plan.table_cost, plan.window)
            chain = Chain(
                memory.order[walker], memory.P[walker], memory.x[walker], memory.best[walker], memory.slot[walker],
                memory.position[walker], memory.uniform[walker], memory.W[walker], memory.r[walker], memory.s[walker],
                memory.outside[walker], memory.cached_rows[walker], memory.cached_column[walker],
                memory.cache_slot[walker],
            )  # fmt: skip
            status, done = drive(
                system, chain, clocks[walker], own, output, flips - at[2],
                start, recomputed, catch_up, walk_block, choose_way,
            )  # fmt: skip
            at[2] += done
            spent += done
            if status != OK:
                return status
            if at[2] >= flips:
                at[1] += 1
                at[2] = 0
        trade(ladder, output.record_energy, at[0])
        at[0] += 1
        at[1] = 0
    return OK


def walk_ladder(
    gram: Gram, ladders: LadderPlan, which: int, table: tuple[float, int],
    new_judge: Callable[[Gram, int], tuple[Any, Any]],
) -> LadderResult:  # fmt: skip
    """Let the walkers of one ladder walk and trade places.

    Parameters
    ----------
    gram, ladders, which
        The problem, its ladders, and which of them.
    table : (float, int)
        When a table of all columns pays, see `Plan`.
    new_judge : callable
        Makes what delicate flips need, when they are met.
    """
    k, betas, rounds, flips, keys = ladders.k, ladders.betas, ladders.rounds, ladders.flips, ladders.keys[which]
    n, none = betas.size, np.empty((0, 0))
    G, columns = (gram.matrix, none) if gram.dense else (none, gram.columns)
    system = System(G, columns, gram.b, gram.diagonal, gram.yy)
    memory = Chain(*(np.stack([part] * n) for part in new_chain(k, gram.n_columns, dense=gram.dense)))
    clocks = np.zeros(n, CLOCK)
    clocks["chain"], clocks["last_chain"], clocks["t"] = np.arange(n), np.arange(n) + 1, -1
    # Temperatures come round by round, so that no chain may be taken for frozen: the coldest is 0.
    plan = Plan(np.zeros(rounds), np.arange(1, rounds + 1) * flips, np.zeros(rounds), keys, AUTO, *table)
    output = _output(n, rounds, k)
    who = np.zeros((rounds + 1, n), np.int64)
    who[0] = np.arange(n)
    ladder, at = Ladder(betas, ladders.drawn(which), who, np.zeros((n, rounds))), np.zeros(3, np.int64)
    judging: dict[int, tuple[Any, Any]] = {}
    while at[0] < rounds:
        status = advance_ladder(system, memory, clocks, plan, output, ladder, at, _SLICE)
        walker = int(who[at[0], at[1]]) if status != OK else 0
        if status not in (OK, RANK_TOO_SMALL):
            if walker not in judging:
                judging[walker] = new_judge(gram, k)
            shared = Memory(*(getattr(memory, name)[walker] for name in Memory._fields))
            own = plan._replace(betas=ladder.heat[walker])
            left = flips - int(at[2])
            status, done = judge(*judging[walker], shared, clocks[walker : walker + 1], own, output, gram.yy, left)
            at[2] += done
        if status == RANK_TOO_SMALL:
            raise RankTooSmall(k, int(output.support[walker, 0]))
    output.record.sort(axis=2)
    return from_places(output.record, output.record_energy, output.accepted, who[:-1])


def _output(walkers: int, rounds: int, k: int) -> Output:
    """Where steps are written."""
    ends, shape = np.zeros((walkers, k), np.int64), (walkers, rounds)
    return Output(
        np.zeros(shape), np.zeros(shape, np.int64), ends, ends.copy(), np.zeros(walkers), np.zeros(walkers, np.int64),
        np.zeros((*shape, k), np.int32), np.zeros(shape),
    )  # fmt: skip
