"""One group of pieces on the device: upload, walk in slices, download."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import RankTooSmall, Tick, WalkPlan, WalkResult
from pairflip.engines.cuda.batch import Piece, cost, queue, size_class
from pairflip.engines.cuda.device import WALK, Matrices, kernels, order_bytes
from pairflip.gram import Gram, HeldOutGram

SLICE_NS = 500_000_000
"""How long one launch may keep the interpreter from showing progress and seeing Ctrl-C."""
NO_RANK = 2**31 - 1

Walks = Sequence[tuple[Gram, WalkPlan]]


class _Packer:
    """Arrays laid end to end, for one upload; equal ones (by key) once."""

    def __init__(self, dtype: Any) -> None:
        self._parts: list[NDArray[Any]] = []
        self._offsets: dict[Any, int] = {}
        self._size = 0
        self._dtype: np.dtype[Any] = np.dtype(dtype)

    def add(self, key: Any, array: NDArray[Any]) -> int:
        """Offset in bytes of the array."""
        if key is None or key not in self._offsets:
            at: int = self._size * self._dtype.itemsize
            self._parts.append(np.asarray(array, dtype=self._dtype).ravel())
            self._size += array.size
            if key is None:
                return int(at)
            self._offsets[key] = at
        return self._offsets[key]

    def upload(self) -> Any:
        import cupy

        return cupy.asarray(np.concatenate(self._parts) if self._parts else np.zeros(1, self._dtype))


class _Results:
    """Room for what the chains of a group answer, pieces one after the other."""

    def __init__(
        self, chains: NDArray[np.int64], steps: NDArray[np.int64], k: NDArray[np.int64], records: NDArray[np.bool_]
    ) -> None:
        import cupy

        def offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

        self.by_chain, self.by_step, self.by_slot = offsets(chains), offsets(chains * steps), offsets(chains * k)
        self._k, self._records = k, records
        kept = chains * steps * records
        self.by_record_step, self.by_record = offsets(kept), offsets(kept * k)
        self.energy, self.accepted = cupy.zeros(self.by_step[-1]), cupy.zeros(self.by_step[-1], np.int32)
        self.support, self.best = (cupy.zeros(self.by_slot[-1], np.int32) for _ in range(2))
        self.final_energy, self.refreshes = cupy.zeros(self.by_chain[-1]), cupy.zeros(self.by_chain[-1], np.int32)
        self.record_energy = cupy.zeros(self.by_record_step[-1])
        self.record = cupy.zeros(self.by_record[-1], np.int32)

    def addresses(self, table: Any) -> None:
        """Enter the room of each piece into the kernel's table."""
        for name, at, size in (
            ("energy", self.by_step, 8),
            ("accepted", self.by_step, 4),
            ("support", self.by_slot, 4),
            ("best", self.by_slot, 4),
            ("final_energy", self.by_chain, 8),
            ("refreshes", self.by_chain, 4),
        ):
            table[name] = getattr(self, name).data.ptr + size * at[:-1].astype(np.uint64)
        for name, at, size in (("record_energy", self.by_record_step, 8), ("record", self.by_record, 4)):
            there = getattr(self, name).data.ptr + size * at[:-1].astype(np.uint64)
            table[name] = np.where(self._records, there, 0).astype(np.uint64)

    def download(self, steps: NDArray[np.int64]) -> list[WalkResult]:
        """The answers of each piece, as rows of arrays that pieces of equal shape share (there may be very many)."""
        energy, final = self.energy.get(), self.final_energy.get()
        accepted, refreshes = self.accepted.get().astype(np.int64), self.refreshes.get().astype(np.int64)
        support, best = self.support.get().astype(np.int64), self.best.get().astype(np.int64)
        alike = np.flatnonzero((np.diff(self._k, prepend=-1) != 0) | (np.diff(steps, prepend=-1) != 0)).tolist()
        results = []
        for a, b in pairwise([*alike, len(steps)]):
            by_step, by_slot = slice(*self.by_step[[a, b]]), slice(*self.by_slot[[a, b]])
            by_chain = slice(*self.by_chain[[a, b]])
            steps_of = energy[by_step].reshape(-1, steps[a]), accepted[by_step].reshape(-1, steps[a])
            slots_of = support[by_slot].reshape(-1, self._k[a]), best[by_slot].reshape(-1, self._k[a])
            for columns in slots_of:
                columns.sort(axis=1)
            fields = *steps_of, *slots_of, final[by_chain], refreshes[by_chain]
            edges = (self.by_chain[a : b + 1] - self.by_chain[a]).tolist()
            results += [WalkResult(*(field[first:last] for field in fields)) for first, last in pairwise(edges)]
        return self._with_records(results, steps) if self._records.any() else results

    def _with_records(self, results: list[WalkResult], steps: NDArray[np.int64]) -> list[WalkResult]:
        """The same with the supports at the ends of steps, where they were asked for."""
        supports, energies = self.record.get(), self.record_energy.get()
        for number in np.flatnonzero(self._records).tolist():
            shape = -1, int(steps[number])
            record = supports[slice(*self.by_record[number : number + 2])].reshape(*shape, int(self._k[number]))
            record.sort(axis=2)
            energy = energies[slice(*self.by_record_step[number : number + 2])].reshape(shape)
            results[number] = replace(results[number], record=record, record_energy=energy)
        return results


class _Table:
    """The pieces of a group as the kernel reads them, with everything they share packed once."""

    def __init__(self) -> None:
        self.doubles, self.wholes, self.keys = _Packer(np.float64), _Packer(np.int64), _Packer(np.uint32)
        self._grams: dict[int, tuple[int, int, int]] = {}
        self._schedules: dict[tuple[int, int, int, int], tuple[int, int, int, float]] = {}

    def gram(self, gram: Gram) -> tuple[int, int, int]:
        """Offsets of b, unit and left_out (-1 when nothing is left out on the fly)."""
        # By identity: whoever calls holds the problems and schedules for as long as this table lives.
        if id(gram) not in self._grams:
            add, left_out, unit = self.doubles.add, -1, gram.diagonal
            if isinstance(gram, HeldOutGram) and gram.left_out.shape[0] == 1:
                left_out, unit = add(None, gram.left_out), gram.unit
            self._grams[id(gram)] = add(None, gram.b), add(None, unit), left_out
        return self._grams[id(gram)]

    def schedule(self, gram: Gram, plan: WalkPlan) -> tuple[int, int, int, float]:
        """Offsets of betas, coldest and ends, and what a chain costs. Equal arrays are packed once."""
        key = id(plan.betas), id(plan.flips), plan.k, gram.n_columns
        if key not in self._schedules:
            content = plan.betas.tobytes(), plan.flips.tobytes()
            coldest = np.minimum.accumulate(plan.betas[::-1])[::-1]
            self._schedules[key] = (
                self.doubles.add((content, 0), plan.betas),
                self.doubles.add((content, 1), coldest),
                self.wholes.add(content, np.cumsum(plan.flips)),
                cost(gram, plan),
            )
        return self._schedules[key]


def run_group(
    walks: Walks, pieces: list[Piece], matrices: Matrices, tick: Tick | None, slice_ns: int
) -> list[tuple[Piece, WalkResult]]:
    """Walk the pieces of one group, all of one size class."""
    import cupy

    # Equal sizes side by side: `download` makes one array for each run of equal shapes.
    pieces = sorted(pieces, key=lambda piece: walks[piece.walk][1].k)
    grams = [walks[piece.walk][0] for piece in pieces]
    plans = [walks[piece.walk][1] for piece in pieces]
    matrices.keep_only(grams)
    packed = _Table()
    of_gram = np.array([packed.gram(gram) for gram in grams], dtype=np.int64).T
    of_plan = [packed.schedule(gram, plan) for gram, plan in zip(grams, plans, strict=True)]
    of_schedule = np.array([row[:3] for row in of_plan], dtype=np.int64).T
    all_keys = zip(plans, pieces, strict=True)
    of_keys = np.array([packed.keys.add(None, plan.keys[one.first : one.last]) for plan, one in all_keys], np.int64)
    chains = np.array([piece.last - piece.first for piece in pieces], dtype=np.int64)
    steps = np.array([plan.betas.size for plan in plans], dtype=np.int64)
    k = np.array([plan.k for plan in plans], dtype=np.int64)
    doubles, wholes, keys = packed.doubles.upload(), packed.wholes.upload(), packed.keys.upload()
    table = np.zeros(len(pieces), WALK)
    addresses = {id(gram): matrices.of(gram).data.ptr for gram in {id(gram): gram for gram in grams}.values()}
    table["G"] = [addresses[id(gram)] for gram in grams]
    for name, offset in zip(("b", "unit", "left_out"), of_gram, strict=True):
        table[name] = np.where(offset < 0, 0, doubles.data.ptr + offset).astype(np.uint64)
    for name, offset, memory in zip(("betas", "coldest", "ends"), of_schedule, (doubles, doubles, wholes), strict=True):
        table[name] = (memory.data.ptr + offset).astype(np.uint64)
    table["keys"] = (keys.data.ptr + of_keys).astype(np.uint64)
    table["yy"] = [gram.yy for gram in grams]
    table["N"] = [gram.n_columns for gram in grams]
    table["k"], table["steps"] = k, steps
    results = _Results(chains, steps, k, np.array([plan.record for plan in plans]))
    results.addresses(table)
    tasks = queue(np.array([row[3] for row in of_plan]), chains)
    _walk(cupy.asarray(table.view(np.uint8)), tasks, int(k.max()), int(table["N"].max()), k, tick, slice_ns)
    return list(zip(pieces, results.download(steps), strict=True))


def _walk(
    table: Any, tasks: NDArray[np.int32], k: int, n_columns: int, sizes: NDArray[np.int64],
    tick: Tick | None, slice_ns: int,
) -> None:  # fmt: skip
    """Launch the kernel again and again until every task is done."""
    import cupy

    size, order = size_class(k), order_bytes(n_columns)
    compiled = kernels(size, order == 0)
    shared = size.chains * (compiled.shared_bytes + order)
    threads = 32 * size.warps * size.chains
    compiled.walk.max_dynamic_shared_size_bytes = shared
    fit = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(compiled.walk.kernel.ptr, threads, shared)
    processors = cupy.cuda.Device().attributes["MultiProcessorCount"]
    # No more blocks than run at a time: chains come from a queue, and others would only wait and hold memory.
    blocks = min(max(1, fit) * processors, -(-len(tasks) // size.chains))
    slot_bytes = 8 * size.largest**2 + compiled.shared_bytes + order
    # Zero: no slot holds a chain that was put away.
    slots = cupy.zeros(blocks * size.chains * slot_bytes, np.uint8)
    far = cupy.zeros(0 if order else blocks * size.chains * 65536, np.uint16)
    queued = cupy.asarray(tasks)
    following, done = cupy.zeros(1, np.int32), cupy.zeros(2, np.uint64)
    rank = cupy.full(1, NO_RANK, np.int32)
    arguments = (
        table, queued, np.int32(len(tasks)), following, done, rank, slots, np.int64(slot_bytes), np.int32(order),
        far, np.int64(slice_ns),
    )  # fmt: skip
    heard = finished = 0
    while finished < len(tasks):
        compiled.walk((blocks,), (threads,), arguments, shared_mem=shared)
        # This waits for the launch; between two of them progress is shown and Ctrl-C is heard.
        flips, finished = (int(number) for number in done.get())
        found = int(rank[0])
        if found != NO_RANK:
            # Piece and number of columns in one word, so that one atomic minimum keeps both (k is at most 128).
            raise RankTooSmall(int(sizes[found >> 8]), found & 255)
        if tick is not None and flips > heard:
            tick(flips - heard)
        heard = flips
