"""One group of walks on the device: upload, walk in slices, download."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import RankTooSmall, Tick
from pairflip.engines.cuda.batch import size_class
from pairflip.engines.cuda.device import Matrices, kernels, order_bytes
from pairflip.engines.cuda.packing import Packed
from pairflip.engines.cuda.staging import download, download_into, upload

SLICE_NS = 500_000_000
"""How long one launch may keep the interpreter from showing progress and seeing Ctrl-C."""
NO_RANK = 2**31 - 1


def run_group(
    packed: Packed, matrices: Matrices, tick: Tick | None, slice_ns: int, meanwhile: Callable[[], None]
) -> NDArray[np.uint8]:
    """Walk the parts of one group, all of one size class; what `packed.answers` can split comes back.

    Parameters
    ----------
    packed
        The group.
    matrices
        What is on the device already.
    tick
        Hears of flips as they are done.
    slice_ns
        How long one launch may last.
    meanwhile
        Is called during each launch: what the host does then costs no time.
    """
    import cupy

    roots = [walks.forms.root for walks in packed.walks]
    addresses = [matrix.data.ptr for matrix in matrices.bring(roots)]
    room = cupy.empty(packed.answers.size, np.uint8)
    sent = packed.upload(addresses, room.data.ptr)
    table = upload(packed.table.view(np.uint8))
    # After all uploads but small ones: this waits for multiprocessors that another lane fills, and they would with it.
    room.fill(0)
    told: list[NDArray[np.uint8]] = []

    def host_work() -> None:
        if not told:
            told.append(packed.answers.room())
        meanwhile()

    _walk(table, packed.tasks, int(packed.k.max()), int(packed.table["N"].max()), packed.k, tick, slice_ns, host_work)
    del sent  # the kernel has read it
    download_into(room, [(0, told[0])])
    return told[0]


def _walk(
    table: Any, tasks: NDArray[np.int32], k: int, n_columns: int, sizes: NDArray[np.int64],
    tick: Tick | None, slice_ns: int, meanwhile: Callable[[], None],
) -> None:  # fmt: skip
    """Launch the kernel again and again until every task is done; `meanwhile` is called during each launch."""
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
    # `following`, `rank`, the two numbers of `done`, and `over`: one transfer tells how far the walks are.
    state = upload(np.array([0, NO_RANK, 0, 0, 0, 0, 0], np.int32))
    following, rank, done, over = state[:1], state[1:2], state[2:6], state[6:]
    # Zero: no slot holds a chain that was put away.
    slots = cupy.zeros(blocks * size.chains * slot_bytes, np.uint8)
    far = cupy.zeros(0 if order else blocks * size.chains * 65536, np.uint16)
    arguments = (
        table, queued, np.int32(len(tasks)), following, done, rank, slots, np.int64(slot_bytes), np.int32(order),
        far, np.int64(slice_ns), over,
    )  # fmt: skip
    heard = finished = launch = 0
    while finished < len(tasks):
        launch += 1
        compiled.walk((blocks,), (threads,), (*arguments, np.int32(launch)), shared_mem=shared)
        meanwhile()
        # This waits for the launch; between two of them progress is shown and Ctrl-C is heard.
        told = download(state)
        flips, finished = (int(number) for number in told[2:6].view(np.uint64))
        found = int(told[1])
        if found != NO_RANK:
            # Problem and number of columns in one word, so that one atomic minimum keeps both (k is at most 128).
            raise RankTooSmall(int(sizes[found >> 8]), found & 255)
        if tick is not None and flips > heard:
            tick(flips - heard)
        heard = flips
