"""Every support of k columns on a CUDA device: parents of k - 3 columns from a queue, in slices of half a second.

The device rules supports out; what it cannot rule out is handed over for judging (`Passed`). What is at work there is
in `enumerate.cu`. Items are parents (all sets of k - 3 columns, the largest first) or, where these are few or large,
stripes of their nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.cuda.device import SLICE_NS, free_bytes, gone_is_refused, why_unavailable
from pairflip.moments import Form
from pairflip.supports import distinct_supports

Columns = NDArray[np.int64]

SMALLEST, LARGEST = 3, 12
"""Sizes of supports that the kernel is compiled for."""
MOST_COLUMNS = 32767
CAPACITY = 1 << 21
"""Supports that may be handed over at a time."""
_NEAR = 110 * 1024  # bytes of shared memory of a large block: two fit on a multiprocessor
_WORK = 2e7  # supports of an item, at most: some milliseconds
_ROWS = 8  # of a tile
_RESIDENT = 512  # threads that the compiler is told to fit on a multiprocessor: it sets the registers of each
_ITEMS = 4096  # fewer than this do not fill a device
# `struct Question` of the kernel: eight-byte fields first, an even number of four-byte ones.
ASK = np.dtype(
    [(name, np.uint64) for name in ("G", "b", "binomials", "list", "next", "count", "records", "failed", "scratch")]
    + [(name, np.float64) for name in ("yy", "wanted", "error")]
    + [(name, np.int64) for name in ("items", "parents", "capacity", "slice_ns")]
    + [(name, np.int32) for name in ("N", "padded", "stripes", "width")]
)


@dataclass(frozen=True)
class Passed:
    """What a launch did not rule out: columns in descending order.

    supports (m, k), sorted; parents (p, k - 3) and nodes (q, k - 2) below which pivots are in doubt, so that all their
    supports are still to be looked at.
    """

    supports: Columns
    parents: Columns
    nodes: Columns


@dataclass(frozen=True)
class Shape:
    """How a problem is laid out on the device: nodes at a time, columns of a tile, threads, and where numbers live."""

    nodes: int
    spans: int
    threads: int
    far: bool
    padded: int
    stripes: int
    width: int

    def doubles(self, k: int) -> int:
        """Numbers that a block needs."""
        return self.padded * (k - 1 + 8 * self.nodes)


@gone_is_refused
def refusal(form: Form, k: int) -> str | None:
    """Why supports of k columns are not enumerated on a device; None if they can be."""
    reason = why_unavailable()
    if reason is not None:
        return reason
    if not SMALLEST <= k <= LARGEST:
        return f"supports of {SMALLEST} to {LARGEST} columns are enumerated on a device, not of {k}."
    if not form.dense or form.n_columns > MOST_COLUMNS or comb(form.n_columns, k - 3) * form.n_columns >= 2**62:
        return f"{form.n_columns} columns are too many to be enumerated on a device."
    if 8 * form.n_columns**2 + 2**28 > free_bytes():
        return "the device has too little free memory."
    return None


def shape_of(n: int, k: int) -> Shape:
    """The layout for n columns and supports of k."""
    # Measured on an H200 (docs/decisions/032-enumeration-on-the-gpu.md).
    spans, threads = 1 if n <= 450 else 2, 128 if n <= 160 else 256
    step = 32 * spans
    padded = -(-n // step) * step
    each, fixed = 64 * padded, 8 * (k - 1) * padded
    nodes = min(8, (_NEAR * threads // 256 - fixed) // each)
    far = nodes < 1
    nodes = 4 if far else nodes
    parents = comb(n, k - 3)
    largest = comb(n - (k - 3), 3)
    groups = -(-n // nodes)
    stripes = min(groups, max(1, int(largest / _WORK), -(-_ITEMS // parents)))
    width = -(-groups // stripes) * nodes
    return Shape(nodes, spans, threads, far, padded, -(-n // width), width)


def binomials(n: int, largest: int) -> NDArray[np.int64]:
    """C(c, m) at [m, c], m = 0 .. largest, c = 0 .. n, in which parents are counted."""
    return np.array([[comb(c, m) for c in range(n + 1)] for m in range(largest + 1)], dtype=np.int64)


def unrank(ranks: NDArray[np.int64], table: NDArray[np.int64]) -> Columns:
    """Columns (n, d), descending, of sets number `ranks`: sums of C(c_0, d) + C(c_1, d - 1) + ..."""
    left, largest = ranks.copy(), table.shape[0] - 1
    columns = np.empty((ranks.size, largest), np.int64)
    for m in range(largest, 0, -1):
        columns[:, largest - m] = np.searchsorted(table[m], left, side="right") - 1
        left -= table[m, columns[:, largest - m]]
    return columns


@cache
def _kernel(k: int, nodes: int, spans: int, threads: int, far: bool) -> Any:
    import cupy

    code = (Path(__file__).parent / "enumerate.cu").read_text(encoding="utf-8")
    sizes = {"K": k, "LANES": 32, "NODES": nodes, "SPANS": spans, "ROWS": _ROWS, "THREADS": threads}
    sizes["MINBLOCKS"] = _RESIDENT // threads
    options = ["-std=c++17", "-lineinfo", *(f"-D{name}={value}" for name, value in sizes.items())]
    module = cupy.RawModule(code=code, options=(*options, "-DFAR") if far else tuple(options))
    return module.get_function("enumerate_supports")


class Enumeration:
    """All supports of k columns of one problem, a launch of at most `slice_ns` at a time.

    Elements of G may be off by `error`; up to `capacity` supports may be handed over at a time.
    """

    def __init__(self, form: Form, k: int, error: float, capacity: int = CAPACITY, slice_ns: int = SLICE_NS) -> None:
        import cupy

        n = form.n_columns
        self.n, self.k, self.shape = n, k, shape_of(n, k)
        self._table = binomials(n, k - 3)
        self._parents = comb(n, k - 3)
        self._items, self._position, self._again = self._parents * self.shape.stripes, 0, list[int]()
        self._yy = float(form.yy)
        self._kernel = _kernel(k, self.shape.nodes, self.shape.spans, self.shape.threads, self.shape.far)
        bytes_of_block = 8 * self.shape.doubles(k)
        self._shared = 0 if self.shape.far else bytes_of_block
        self._kernel.max_dynamic_shared_size_bytes = self._shared
        fit = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
            self._kernel.kernel.ptr, self.shape.threads, self._shared
        )
        # No more blocks than run at a time: they take items from a queue, and others would only wait.
        self._blocks = min(max(1, fit) * cupy.cuda.Device().attributes["MultiProcessorCount"], self._items)
        self._held = {
            "G": cupy.asarray(np.ascontiguousarray(form.matrix)),
            "b": cupy.asarray(np.ascontiguousarray(form.b)),
            "binomials": cupy.asarray(self._table),
            "next": cupy.zeros(1, np.uint64),
            "count": cupy.zeros(1, np.uint64),
            "records": cupy.empty(2 * capacity, np.uint64),
            "failed": cupy.zeros(1 + self._blocks, np.uint64),
            "scratch": cupy.empty(self._blocks * bytes_of_block // 8 if self.shape.far else 1),
        }
        ask = np.zeros(1, ASK)
        for name, array in self._held.items():
            ask[name] = array.data.ptr
        ask["yy"], ask["error"], ask["items"], ask["parents"] = self._yy, error, self._items, self._parents
        ask["capacity"], ask["slice_ns"], ask["N"], ask["padded"] = capacity, slice_ns, n, self.shape.padded
        ask["stripes"], ask["width"] = self.shape.stripes, self.shape.width
        self._ask, self._capacity = ask, capacity

    @property
    def below(self) -> int:
        """All supports with a column of this number or a larger one were looked at; 0: all there are."""
        columns = self._open()
        if self.k == 3:
            return max(self.n - min([self._position, *self._again]) * self.shape.width, 0)
        return int(columns[0]) + 1 if columns.size else 0

    @property
    def share(self) -> float:
        """Which part of all supports was looked at, at least."""
        columns = self._open()
        left = comb(self.below, 3) if self.k == 3 else 0
        if columns.size:  # those below the parent that comes next, and its own
            left = sum(comb(int(c), self.k - m) for m, c in enumerate(columns)) + comb(int(columns[-1]), 3)
        return 1.0 - left / comb(self.n, self.k)

    def _open(self) -> Columns:
        """Columns of the first parent that is not done (none if there is no such, or parents have no columns)."""
        rank = self._parents - 1 - min([self._position, *self._again]) // self.shape.stripes
        return unrank(np.array([rank], np.int64), self._table)[0] if rank >= 0 else np.zeros(0, np.int64)

    def step(self, reach: float) -> Passed:
        """One launch: what may have a 2E of at most `reach`, of the items that come next.

        Should more pass than can be handed over, the items concerned are done again, one in a launch; of one that is
        too much alone, everything is handed over as if it were in doubt.
        """
        if self._position == 0 and reach >= self._yy:  # everything would pass: one item alone gives a first limit
            self._position, self._again = 1, [0]
            self._held["next"][:] = 1
        item = self._again.pop() if self._again else None
        records, failed = self._launch(reach, item)
        if item is None:
            self._position = min(int(self._held["next"].get()[0]), self._items)
            self._again = failed.tolist()
            failed = failed[:0]
        return self._passed(records, failed)

    def _launch(self, reach: float, item: int | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lines (m, 2) of items that were done, and the items that are to be done again."""
        import cupy

        held, ask = self._held, self._ask.copy()
        # 2E does not exceed y'y, so that a larger reach means the same.
        ask["wanted"] = max(self._yy - reach, -self._yy)
        if item is not None:
            only, first = cupy.array([item], np.uint64), cupy.zeros(1, np.uint64)
            ask["list"], ask["next"], ask["items"] = only.data.ptr, first.data.ptr, 1
        for name in ("count", "failed"):
            held[name][:1] = 0
        blocks = 1 if item is not None else self._blocks
        self._kernel((blocks,), (self.shape.threads,), (cupy.asarray(ask.view(np.uint8)),), shared_mem=self._shared)
        # This waits for the launch; between two of them progress is shown and Ctrl-C is heard.
        count, lost = int(held["count"].get()[0]), int(held["failed"][:1].get()[0])
        records = held["records"][: 2 * min(count, self._capacity)].get().astype(np.int64).reshape(-1, 2)
        failed = held["failed"][1 : 1 + lost].get().astype(np.int64)
        return records[~np.isin(records[:, 0], failed)] if lost else records, failed

    def _passed(self, records: NDArray[np.int64], too_much: NDArray[np.int64]) -> Passed:
        stripes, what = self.shape.stripes, records[:, 1]
        prefixes = unrank(self._parents - 1 - records[:, 0] // stripes, self._table)
        last = np.column_stack([what >> 32, what >> 16 & 65535, what & 65535])
        whole, node = what == 0, (what != 0) & (last[:, 1] == 0)
        supports = np.hstack([prefixes, last])[last[:, 1] > 0]
        supports = supports[np.lexsort(supports.T[::-1])]
        parents, nodes = prefixes[whole], np.hstack([prefixes, last[:, :1]])[node]
        if too_much.size and stripes == 1:
            parents = np.vstack([parents, unrank(self._parents - 1 - too_much, self._table)])
        elif too_much.size:  # the nodes of a stripe
            nodes = np.vstack([nodes, *(self._nodes_of(item) for item in too_much.tolist())])
        return Passed(supports, distinct_supports(parents).supports if parents.shape[1] else parents, nodes)

    def _nodes_of(self, item: int) -> Columns:
        """All nodes (m, k - 2) of an item."""
        parent, stripe = divmod(item, self.shape.stripes)
        columns = unrank(np.array([self._parents - 1 - parent], np.int64), self._table)
        highest = self.n - 1 - stripe * self.shape.width
        lowest, top = max(highest - self.shape.width + 1, 2), int(columns[0, -1]) if columns.size else self.n
        last = np.arange(lowest, min(highest, top - 1) + 1)
        return np.hstack([np.repeat(columns, last.size, axis=0), last[:, None]])


def device_seconds(n: int, k: int) -> float:
    """Time to look at every support of k of n columns on a device, by a cost model: supports, rows, nodes."""
    return 0.3 + 1e-9 * (1.4e-3 * comb(n, k) + 0.06 * comb(n, k - 1) + 1.0 * comb(n, k - 2))
