"""One group of walks on the device: what the kernel is told, launches until all chains are done, what they answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import RankTooSmall, Tick
from pairflip.engines.cuda.batch import cost, order_bytes, queue, size_class
from pairflip.engines.cuda.device import request
from pairflip.engines.together import Forms, ManyWalked, ManyWalks
from pairflip.gram import Gram

# Eight-byte fields first and an even number of four-byte ones: no padding, so that both sides agree.
WALK = np.dtype(
    [(name, np.uint64) for name in ("G", "b", "unit", "left_out", "betas", "coldest", "ends", "energy")]
    + [(name, np.uint64) for name in ("final_energy", "accepted", "support", "best", "refreshes", "keys")]
    + [("yy", np.float64)]
    + [(name, np.int32) for name in ("N", "k", "steps", "unused")]
)
"""`struct Walk` of the kernel."""
_NO_RANK = 2**31 - 1


class Held:
    """What groups share on the device, matrices and vectors of problems: sent once, and kept while a group needs it."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[Any, Any]] = {}

    def keep_only(self, group: Sequence[ManyWalks]) -> None:
        """Let go of what this group does not need."""
        wanted = {id(walks.forms) for walks in group} | {id(walks.forms.root) for walks in group}
        self._held = {key: held for key, held in self._held.items() if key in wanted}

    def matrix(self, gram: Gram) -> Any:
        """G, with ones on its diagonal; that of a problem which has no matrix here is formed there."""
        import cupy

        if id(gram) not in self._held:
            there = cupy.asarray(np.ascontiguousarray(gram.matrix if gram.dense else gram.columns))
            if not gram.dense:
                there = there @ there.T
                there.reshape(-1)[:: gram.n_columns + 1] = 1.0
            self._held[id(gram)] = gram, there
        return self._held[id(gram)][1]

    def vectors(self, forms: Forms) -> dict[str, Any]:
        """b, unit and left_out (F, N) of problems."""
        import cupy

        if id(forms) not in self._held:
            arrays = {"b": forms.b, "unit": forms.unit, "left_out": forms.left_out}
            self._held[id(forms)] = (
                forms, {name: cupy.asarray(np.ascontiguousarray(a)) for name, a in arrays.items() if a is not None}
            )  # fmt: skip
        vectors: dict[str, Any] = self._held[id(forms)][1]
        return vectors


class _Words:
    """Arrays of eight-byte words laid end to end, for one upload; those of one key once."""

    def __init__(self) -> None:
        self._parts: list[NDArray[np.uint64]] = []
        self._offsets: dict[Any, int] = {}
        self._bytes = 0

    def add(self, key: Any, array: NDArray[Any]) -> int:
        """Offset of an array in bytes."""
        if key not in self._offsets:
            self._offsets[key] = self._bytes
            self._parts.append(np.ascontiguousarray(array).reshape(-1).view(np.uint64))
            self._bytes += self._parts[-1].nbytes
        return self._offsets[key]

    def upload(self) -> Any:
        """All of them on the device."""
        import cupy

        return cupy.asarray(np.concatenate(self._parts))


def _answers(walks: ManyWalks) -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Types and shapes of what is answered, doubles first, so that each begins at a multiple of its size."""
    shape = len(walks.which), walks.chains
    course = {"energy": (np.float64, (*shape, walks.steps)), "accepted": (np.int32, (*shape, walks.steps))}
    supports = {name: (np.int32, (*shape, walks.k)) for name in ("support", "best")}
    every = {"final_energy": (np.float64, shape), **(course if walks.course else {}), **supports}
    return {**every, "refreshes": (np.int32, shape)}


def run_group(group: Sequence[ManyWalks], held: Held, tick: Tick | None, slice_ns: int) -> list[ManyWalked]:
    """Walk the chains of one group, all of one size class, in launches of at most `slice_ns`."""
    import cupy

    held.keep_only(group)
    words, tables, places, size = _Words(), [], [], 0
    for walks in group:
        # By identity: the group holds the arrays for as long as they are needed.
        betas, rows = id(walks.betas), np.arange(len(walks.which), dtype=np.uint64)
        table, own = np.zeros(rows.size, WALK), 8 * walks.steps * (walks.betas.ndim - 1) * rows
        table["betas"] = words.add((betas, "betas"), walks.betas) + own
        coldest = np.minimum.accumulate(walks.betas[..., ::-1], axis=-1)[..., ::-1]
        table["coldest"] = words.add((betas, "coldest"), coldest) + own
        table["ends"] = words.add(id(walks.flips), np.cumsum(walks.flips))
        table["keys"] = words.add(id(walks.keys), walks.keys) + 8 * walks.chains * rows
        table["G"] = held.matrix(walks.forms.root).data.ptr
        for name, vector in held.vectors(walks.forms).items():
            table[name] = vector.data.ptr + 8 * vector.shape[1] * walks.which.astype(np.uint64)
        table["yy"], table["N"] = walks.forms.yy[walks.which], walks.forms.root.n_columns
        table["k"], table["steps"] = walks.k, walks.steps
        for name, (dtype, shape) in _answers(walks).items():
            row = np.dtype(dtype).itemsize * int(np.prod(shape[1:]))
            size = -(-size // 8) * 8
            table[name] = size + row * rows
            places.append(slice(size, size + row * rows.size))
            size += row * rows.size
        tables.append(table)
    told, answers = words.upload(), cupy.empty(size, np.uint8)
    for walks, table in zip(group, tables, strict=True):
        for name in ("betas", "coldest", "ends", "keys"):
            table[name] += np.uint64(told.data.ptr)
        for name in _answers(walks):
            table[name] += np.uint64(answers.data.ptr)
    _launch(np.concatenate(tables), group, tick, slice_ns)
    found, at = answers.get(), iter(places)
    return [_answered(walks, {name: found[next(at)] for name in _answers(walks)}) for walks in group]


def _answered(walks: ManyWalks, bytes_of: dict[str, NDArray[np.uint8]]) -> ManyWalked:
    """Answers as arrays, whole numbers as wide as everywhere."""
    arrays = {name: bytes_of[name].view(dtype).reshape(shape) for name, (dtype, shape) in _answers(walks).items()}
    wide = {name: a.copy() if a.dtype == np.float64 else a.astype(np.int64) for name, a in arrays.items()}
    return ManyWalked(best_support=wide.pop("best"), **wide)


def _launch(table: NDArray[Any], group: Sequence[ManyWalks], tick: Tick | None, slice_ns: int) -> None:
    """Launch the kernel again and again until every chain is done."""
    import cupy

    counts = [len(walks.which) for walks in group]
    tasks = queue(
        np.repeat([cost(walks.forms.root, walks) for walks in group], counts),
        np.repeat([walks.chains for walks in group], counts),
    )
    size, order = size_class(int(table["k"].max())), order_bytes(int(table["N"].max()))
    compiled, threads = request(size, order == 0).result(), 32 * size.chains
    shared = size.chains * (compiled.shared_bytes + order)
    if compiled.walk.max_dynamic_shared_size_bytes < shared:
        compiled.walk.max_dynamic_shared_size_bytes = shared
    fit = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(compiled.walk.kernel.ptr, threads, shared)
    processors = cupy.cuda.Device().attributes["MultiProcessorCount"]
    # No more blocks than run at a time: chains come from a queue, and others would only wait and hold memory.
    blocks = min(max(1, fit) * processors, -(-len(tasks) // size.chains))
    slot_bytes = 8 * size.largest**2 + compiled.shared_bytes + order
    # Next task, rank found, flips and chains done, the last launch whose time was up: one transfer tells them all.
    state = cupy.asarray(np.array([0, _NO_RANK, 0, 0, 0, 0, 0], np.int32))
    slots = cupy.zeros(blocks * size.chains * slot_bytes, np.uint8)  # zero: none holds a chain that was put away
    far = cupy.zeros(0 if order else blocks * size.chains * 65536, np.uint16)
    arguments = (
        cupy.asarray(table.view(np.uint8)), cupy.asarray(tasks), np.int32(len(tasks)), state[:1], state[2:6],
        state[1:2], slots, np.int64(slot_bytes), np.int32(order), far, np.int64(slice_ns), state[6:],
    )  # fmt: skip
    heard = finished = launch = 0
    while finished < len(tasks):
        launch += 1
        compiled.walk((blocks,), (threads,), (*arguments, np.int32(launch)), shared_mem=shared)
        # This waits for the launch; between two of them progress is shown and Ctrl-C is heard.
        now = state.get()
        flips, finished = (int(number) for number in now[2:6].view(np.uint64))
        if now[1] != _NO_RANK:
            # Problem and number of columns in one word, so that one atomic minimum keeps both (k is at most 128).
            raise RankTooSmall(int(table["k"][now[1] >> 8]), int(now[1]) & 255)
        if tick is not None and flips > heard:
            tick(flips - heard)
        heard = flips
