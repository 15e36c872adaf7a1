"""Ladders of temperatures on the device: all walkers walk a round, then neighbours trade places, without the host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pairflip.engines.base import RankTooSmall
from pairflip.engines.cuda.batch import size_class
from pairflip.engines.cuda.device import WALK, Matrices, kernels, order_bytes
from pairflip.engines.cuda.launch import NO_RANK
from pairflip.engines.exchange import LadderPlan, LadderResult, from_places
from pairflip.gram import Gram, HeldOutGram

_EVERY = 64
"""Rounds that are queued before the host waits for the device, and hears Ctrl-C."""
_NO_HURRY = 2**60


def run_ladders(gram: Gram, plan: LadderPlan, budget: int) -> Iterator[LadderResult | None]:
    """Walk ladders together, as many at a time as fit; None where the Gram matrix cannot decide a flip.

    Parameters
    ----------
    gram, plan
        The problem, and its ladders.
    budget : int
        Bytes of device memory that may be taken.
    """
    k, keys = plan.k, plan.keys
    size, order = size_class(k), order_bytes(gram.n_columns)
    slot = 8 * size.largest**2 + kernels(size, order == 0).shared_bytes + order + (0 if order else 2 * 65536)
    one = plan.betas.size * (plan.rounds * (4 * k + 40) + slot + 8 * k)
    at_a_time = int(max(1, budget // one))
    matrices = Matrices()
    for first in range(0, len(keys), at_a_time):
        yield from _together(gram, replace(plan, keys=keys[first : first + at_a_time]), matrices)


def _together(gram: Gram, plan: LadderPlan, matrices: Matrices) -> list[LadderResult | None]:
    """All of these at once."""
    import cupy

    k, betas, rounds, flips, keys = plan.k, plan.betas, plan.rounds, plan.flips, plan.keys
    ladders, places = keys.shape[:2]
    walkers = ladders * places
    # What the device reads: one row for each walker, whose temperatures are its own.
    vectors: dict[str, Any] = {"G": matrices.of(gram), "b": cupy.asarray(gram.b), "unit": cupy.asarray(gram.diagonal)}
    if isinstance(gram, HeldOutGram) and gram.left_out.shape[0] == 1:
        vectors["unit"], vectors["left_out"] = cupy.asarray(gram.unit), cupy.asarray(gram.left_out)
    # Temperatures come round by round, so that no chain may be taken for frozen: the coldest is 0.
    vectors["coldest"] = cupy.zeros(rounds)
    vectors["ends"] = cupy.asarray(np.arange(1, rounds + 1, dtype=np.int64) * flips)
    heat = np.zeros((walkers, rounds))
    heat[:, 0] = np.tile(betas, ladders)
    rows: dict[str, Any] = {
        "betas": cupy.asarray(heat),
        "keys": cupy.asarray(keys.reshape(walkers, 2)),
        "energy": cupy.zeros((walkers, rounds)),
        "record_energy": cupy.zeros((walkers, rounds)),
        "accepted": cupy.zeros((walkers, rounds), np.int32),
        "record": cupy.zeros((walkers, rounds, k), np.int32),
        "support": cupy.zeros((walkers, k), np.int32),
        "best": cupy.zeros((walkers, k), np.int32),
        "final_energy": cupy.zeros((walkers, 1)),
        "refreshes": cupy.zeros((walkers, 1), np.int32),
    }
    table = np.zeros(walkers, WALK)
    for name, vector in vectors.items():
        table[name] = vector.data.ptr
    for name, array in rows.items():
        table[name] = array.data.ptr + array.nbytes // walkers * np.arange(walkers, dtype=np.uint64)
    table["yy"], table["N"], table["k"], table["steps"], table["pauses"] = gram.yy, gram.n_columns, k, rounds, 1
    drawn = np.stack([plan.drawn(ladder) for ladder in range(ladders)])
    who = cupy.zeros((ladders, rounds, places), np.int32)
    who[:, 0] = cupy.arange(places)
    walk = _walker(cupy.asarray(table.view(np.uint8)), k, gram.n_columns, walkers)
    trade = kernels(size_class(k), order_bytes(gram.n_columns) == 0).trade_places
    ladder, drawn_there = cupy.asarray(betas), cupy.asarray(drawn)
    for round_ in range(rounds):
        walk(wait=round_ % _EVERY == 0)
        if round_ + 1 < rounds:
            heads = ladder, np.int32(places), np.int32(round_), np.int32(rounds), drawn_there
            trade((ladders,), (32,), (*heads, rows["record_energy"], rows["betas"], who))
    shape = ladders, places, rounds
    supports = np.sort(rows["record"].get(), axis=2).reshape(*shape, k)
    energies, accepted = rows["record_energy"].get().reshape(shape), rows["accepted"].get().reshape(shape)
    stood = who.get()
    whole = (rows["refreshes"].get().reshape(ladders, places) >= 0).all(axis=1)
    return [
        from_places(supports[l], energies[l], accepted[l].astype(np.int64), stood[l]) if whole[l] else None
        for l in range(ladders)
    ]


def _walker(table: Any, k: int, n_columns: int, walkers: int) -> Any:
    """A function that makes the flips of one round; every walker has a slot, where it is put away between rounds."""
    import cupy

    size, order = size_class(k), order_bytes(n_columns)
    compiled = kernels(size, order == 0)
    shared = size.chains * (compiled.shared_bytes + order)
    compiled.allow(shared)
    blocks = -(-walkers // size.chains)
    slot_bytes = 8 * size.largest**2 + compiled.shared_bytes + order
    slots = cupy.zeros(blocks * size.chains * slot_bytes, np.uint8)
    far = cupy.zeros(0 if order else blocks * size.chains * 65536, np.uint16)
    tasks = cupy.asarray(np.stack([np.arange(walkers), np.zeros(walkers)], axis=1).astype(np.int32))
    following, done, rank = cupy.zeros(1, np.int32), cupy.zeros(2, np.uint64), cupy.full(1, NO_RANK, np.int32)
    over, launch = cupy.zeros(1, np.int32), np.int32(1)  # the time is never up
    arguments = (
        table, tasks, np.int32(walkers), following, done, rank, slots, np.int64(slot_bytes), np.int32(order), far,
        np.int64(_NO_HURRY), over, launch,
    )  # fmt: skip

    def walk(wait: bool) -> None:
        compiled.walk((blocks,), (32 * size.chains,), arguments, shared_mem=shared)
        if wait and int(rank[0]) != NO_RANK:
            raise RankTooSmall(k, int(rank[0]) & 255)

    return walk
