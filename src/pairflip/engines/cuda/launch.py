"""One group of walks on the device: upload, walk in slices, download."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import RankTooSmall, Tick
from pairflip.engines.cuda.batch import WalkPart, queue, size_class
from pairflip.engines.cuda.device import Matrices, kernels, order_bytes
from pairflip.engines.cuda.packing import Packed
from pairflip.engines.cuda.staging import download, download_into, upload
from pairflip.engines.together import ManyWalked, ManyWalks

SLICE_NS = 500_000_000
"""How long one launch may keep the interpreter from showing progress and seeing Ctrl-C."""
NO_RANK = 2**31 - 1


class _Results:
    """Room for what the chains of a group answer, problem after problem."""

    def __init__(
        self, chains: NDArray[np.int64], steps: NDArray[np.int64], k: NDArray[np.int64], records: NDArray[np.bool_]
    ) -> None:
        import cupy

        def offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

        self.by_chain, self.by_step, self.by_slot = offsets(chains), offsets(chains * steps), offsets(chains * k)
        self._records = records
        kept = chains * steps * records
        self.by_record_step, self.by_record = offsets(kept), offsets(kept * k)
        self.energy, self.accepted = cupy.zeros(self.by_step[-1]), cupy.zeros(self.by_step[-1], np.int32)
        self.support, self.best = (cupy.zeros(self.by_slot[-1], np.int32) for _ in range(2))
        self.final_energy, self.refreshes = cupy.zeros(self.by_chain[-1]), cupy.zeros(self.by_chain[-1], np.int32)
        self.record_energy = cupy.zeros(self.by_record_step[-1])
        self.record = cupy.zeros(self.by_record[-1], np.int32)
        self._courses: list[tuple[NDArray[np.float64], NDArray[np.int64]] | None] = []

    def addresses(self, table: Any) -> None:
        """Enter the room of each problem into the kernel's table."""
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

    def make_room(self, rows: Sequence[slice], walks: Sequence[ManyWalks]) -> None:
        """Memory of the host for courses, written once while the device walks.

        New memory costs more when it is written for the first time, page by page, than the transfer does.
        """
        sizes = [int(self.by_step[own.stop] - self.by_step[own.start]) for own in rows]
        wanted = [size if each.course else 0 for size, each in zip(sizes, walks, strict=True)]
        self._courses = [(np.full(size, 0.0), np.full(size, 0)) if size else None for size in wanted]

    def download(self, rows: Sequence[slice], walks: Sequence[ManyWalks]) -> list[ManyWalked]:
        """The answers of each part, problems by chains; a course is fetched only where it is wanted."""
        answers = self.support, self.best, self.final_energy, self.refreshes
        support, best, final, refreshes = map(download, answers)
        results = []
        first = [int(self.by_step[own.start]) for own in rows]
        for which, there in enumerate((self.energy, self.accepted)):
            wanted = zip(first, self._courses, strict=True)
            download_into(there, [(at, course[which]) for at, course in wanted if course is not None])
        for own, each, course in zip(rows, walks, self._courses, strict=True):
            by_chain, by_slot, by_record_step, by_record = (
                slice(int(at[own.start]), int(at[own.stop]))
                for at in (self.by_chain, self.by_slot, self.by_record_step, self.by_record)
            )
            shape = own.stop - own.start, (by_chain.stop - by_chain.start) // (own.stop - own.start)
            last, lowest = (columns[by_slot].reshape(*shape, each.k).astype(np.int64) for columns in (support, best))
            more: dict[str, Any] = {}
            if course is not None:
                energy, accepted = course
                more = {"energy": energy.reshape(*shape, -1), "accepted": accepted.reshape(*shape, -1)}
            if each.record:
                more["record_energy"] = download(self.record_energy[by_record_step]).reshape(*shape, each.steps)
                more["record"] = np.sort(download(self.record[by_record]).reshape(*shape, each.steps, each.k), axis=-1)
            ends, again = final[by_chain].reshape(shape), refreshes[by_chain].reshape(shape).astype(np.int64)
            results.append(ManyWalked(last, lowest, ends, again, **more))
        return results


def run_group(
    together: Sequence[ManyWalks], parts: list[WalkPart], matrices: Matrices, tick: Tick | None, slice_ns: int
) -> list[tuple[WalkPart, ManyWalked]]:
    """Walk the parts of one group, all of one size class.

    Parameters
    ----------
    together
        All walks.
    parts
        Which of them belong to the group.
    matrices
        What is on the device already.
    tick
        Hears of flips as they are done.
    slice_ns
        How long one launch may last.
    """
    roots = [together[part.walks].forms.root for part in parts]
    matrices.keep_only(roots)
    packed = Packed(together, parts)
    packed.upload([matrices.of(gram).data.ptr for gram in roots])
    results = _Results(packed.chains, packed.steps, packed.k, packed.records)
    results.addresses(packed.table)
    tasks = queue(packed.costs, packed.chains)
    columns = int(packed.table["N"].max())
    walks, table = [together[part.walks] for part in parts], upload(packed.table.view(np.uint8))

    def meanwhile() -> None:
        results.make_room(packed.rows, walks)

    _walk(table, tasks, int(packed.k.max()), columns, packed.k, tick, slice_ns, meanwhile)
    return list(zip(parts, results.download(packed.rows, walks), strict=True))


def _walk(
    table: Any, tasks: NDArray[np.int32], k: int, n_columns: int, sizes: NDArray[np.int64],
    tick: Tick | None, slice_ns: int, meanwhile: Callable[[], None] | None,
) -> None:  # fmt: skip
    """Launch the kernel again and again until every task is done; `meanwhile` is called during the first launch."""
    import cupy

    size, order = size_class(k), order_bytes(n_columns)
    compiled = kernels(size, order == 0)
    shared = size.chains * (compiled.shared_bytes + order)
    threads = 32 * size.chains
    compiled.allow(shared)
    fit = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(compiled.walk.kernel.ptr, threads, shared)
    processors = cupy.cuda.Device().attributes["MultiProcessorCount"]
    # No more blocks than run at a time: chains come from a queue, and others would only wait and hold memory.
    blocks = min(max(1, fit) * processors, -(-len(tasks) // size.chains))
    slot_bytes = 8 * size.largest**2 + compiled.shared_bytes + order
    queued = upload(tasks)
    # `following`, `rank` and the two numbers of `done`: one transfer tells how far the walks are.
    state = upload(np.array([0, NO_RANK, 0, 0, 0, 0], np.int32))
    following, rank, done = state[:1], state[1:2], state[2:]
    # Zero: no slot holds a chain that was put away.
    slots = cupy.zeros(blocks * size.chains * slot_bytes, np.uint8)
    far = cupy.zeros(0 if order else blocks * size.chains * 65536, np.uint16)
    arguments = (
        table, queued, np.int32(len(tasks)), following, done, rank, slots, np.int64(slot_bytes), np.int32(order),
        far, np.int64(slice_ns),
    )  # fmt: skip
    heard = finished = 0
    while finished < len(tasks):
        compiled.walk((blocks,), (threads,), arguments, shared_mem=shared)
        if meanwhile is not None:
            meanwhile()
            meanwhile = None
        # This waits for the launch; between two of them progress is shown and Ctrl-C is heard.
        told = download(state)
        flips, finished = (int(number) for number in told[2:].view(np.uint64))
        found = int(told[1])
        if found != NO_RANK:
            # Problem and number of columns in one word, so that one atomic minimum keeps both (k is at most 128).
            raise RankTooSmall(int(sizes[found >> 8]), found & 255)
        if tick is not None and flips > heard:
            tick(flips - heard)
        heard = flips
