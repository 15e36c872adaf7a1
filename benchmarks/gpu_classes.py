"""Flips per second of size classes, to choose those of `engines/cuda/batch.py` anew for another device or kernel.

`python -m benchmarks gpu-classes` reads lines of a size and classes for it from standard input, for instance
"72 9,1,8,32 9,1,8,28": tiles, chains a block, blocks a multiprocessor, and tiles in registers (see `SizeClass`).
Without any it tells of the classes as they are. Registers that do not fit (bytes of local memory) cost most.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

from benchmarks.gpu import busy_share, leave_one_out
from pairflip.engines import cuda
from pairflip.engines.cuda import batch, device


def report():
    """A line for each class."""
    reason = cuda.why_unavailable()
    if reason is not None:
        print(f"size classes: not measured, {reason}")
        return
    asked = {} if sys.stdin.isatty() else _asked(sys.stdin)
    asked = asked or {one.largest: [one] for one in batch.CLASSES}
    wanted = [one for classes in asked.values() for one in classes]
    with ThreadPoolExecutor(len(wanted)) as pool:  # NVRTC works in threads, and the kernels are kept
        list(pool.map(lambda one: device.request(one, False).result(), wanted))
    print(f"size classes on {device.device_name()}: leave-one-out chains, paper's schedule, N = 400 (276 for k = 5)")
    print("   k  class           flips/s  whole call  registers  local  shared  chains fit")
    for k, classes in asked.items():
        n_columns = 276 if k == 5 else 400
        walks = leave_one_out(n_columns, k, 8448 if k <= 24 else 4224 if k <= 56 else 3168)
        for one in classes:
            _tell(k, one, walks, n_columns)


def _asked(lines):
    split = [line.split() for line in lines if line.strip()]
    return {int(k): [batch.SizeClass(*map(int, one.split(","))) for one in classes] for k, *classes in split}


def _tell(k, one, walks, n_columns):
    import cupy

    compiled, order = device.request(one, False).result(), batch.order_bytes(n_columns)
    shared = one.chains * (compiled.shared_bytes + order)
    compiled.walk.max_dynamic_shared_size_bytes = shared
    fit = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(compiled.walk.kernel.ptr, 32 * one.chains, shared)
    flips = sum(plan.chains * int(plan.flips.sum()) for _, plan in walks)
    places, usual = (cuda, cuda.walks), batch.size_class
    try:
        for place in places:
            place.size_class = lambda _: one
        found = [busy_share(lambda: cuda.CudaEngine().walk(walks)) for _ in range(2)]
    finally:
        for place in places:
            place.size_class = usual
    whole, kernels = min(seconds for seconds, _ in found), min(seconds * share for seconds, share in found)
    name = f"{one.tiles},{one.chains},{one.blocks},{one.near}"
    told = f"{k:4d}  {name:12s}{flips / kernels:11.3e}{flips / whole:12.3e}{compiled.walk.num_regs:11d}"
    told += f"{compiled.walk.local_size_bytes:7d}{compiled.shared_bytes:8d}{one.chains * fit:12d}"
    print(told, flush=True)
