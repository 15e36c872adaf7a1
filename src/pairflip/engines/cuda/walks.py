"""One group of pairs on the device: what the kernel is told, launches until all chains are done, what they answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import Pair, RankTooSmall, Tick, WalkResult
from pairflip.engines.cuda.batch import Group, Kind, cost, order_bytes, queue, size_class
from pairflip.engines.cuda.device import request
from pairflip.least_squares import Floats
from pairflip.moments import Form

# Eight-byte fields first and an even number of four-byte ones: no padding, so that both sides agree.
WALK = np.dtype(
    [(name, np.uint64) for name in ("G", "b", "unit", "left_out", "betas", "coldest", "ends", "energy")]
    + [(name, np.uint64) for name in ("final_energy", "accepted", "support", "best", "refreshes", "keys")]
    + [("yy", np.float64)]
    + [(name, np.int32) for name in ("N", "k", "steps", "unused")]
)
"""`struct Walk` of the kernel."""
_NO_RANK = 2**31 - 1


class _Upload:
    """Arrays of eight-byte words laid end to end, for one upload; the first word is none of them."""

    def __init__(self) -> None:
        self._parts: list[NDArray[np.uint64]] = [np.zeros(1, np.uint64)]
        self._bytes = 8

    def add(self, array: NDArray[Any] | None) -> int:
        """Offset of an array in bytes; 0 for None."""
        if array is None:
            return 0
        self._parts.append(np.ascontiguousarray(array).reshape(-1).view(np.uint64))
        self._bytes += self._parts[-1].nbytes
        return self._bytes - self._parts[-1].nbytes

    def send(self) -> Any:
        """All of them on the device."""
        import cupy

        return cupy.asarray(np.concatenate(self._parts))


def _matrix(form: Form) -> Any:
    """G on the device, with ones on its diagonal; that of a problem which has no matrix here is formed there."""
    import cupy

    there = cupy.asarray(np.ascontiguousarray(form.matrix if form.dense else form.columns))
    if not form.dense:
        there = there @ there.T
        there.reshape(-1)[:: form.n_columns + 1] = 1.0
    return there


def _vectors(form: Form) -> tuple[Floats, Floats, Floats | None]:
    """b, unit and, where a row is left out, left_out (N,) of a problem."""
    if form.root is form:
        return form.b, form.diagonal, None
    single: Any = form
    return form.b, single.unit, single.left_out[0]


def _answers(kind: Kind, n: int) -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Types and shapes of what n pairs answer, doubles first, so that each begins at a multiple of its size."""
    course, support = (n, kind.chains, kind.steps), (n, kind.chains, kind.k)
    return {
        "final_energy": (np.float64, (n, kind.chains)), "energy": (np.float64, course), "accepted": (np.int32, course),
        "support": (np.int32, support), "best": (np.int32, support), "refreshes": (np.int32, (n, kind.chains)),
    }  # fmt: skip


def run_group(
    pairs: Sequence[Pair], group: Group, matrices: dict[int, Any], results: list[Any], tick: Tick | None, slice_ns: int
) -> None:
    """Walk the chains of one group, all of one size class, in launches of at most `slice_ns`, and enter the results.

    `matrices` are those of the group before, by the numbers of their problems; then those of this one.
    """
    import cupy

    owners = {kind.owner: pairs[members[0]][0].root for kind, members in group}
    for owner in [owner for owner in matrices if owner not in owners]:
        del matrices[owner]
    matrices |= {owner: _matrix(form) for owner, form in owners.items() if owner not in matrices}
    walked = [pairs[at] for _, members in group for at in members]
    upload, table, size, first, places = _Upload(), np.zeros(len(walked), WALK), 0, 0, []
    # Pairs share arrays, each of which is sent once.
    problems, betas = {id(form): form for form, _ in walked}, {id(plan.betas): plan.betas for _, plan in walked}
    flips = {id(plan.flips): plan.flips for _, plan in walked}
    vectors = {number: [upload.add(vector) for vector in _vectors(form)] for number, form in problems.items()}
    table["b"], table["unit"], table["left_out"] = np.array([vectors[id(form)] for form, _ in walked], np.uint64).T
    sent_betas = {number: upload.add(beta) for number, beta in betas.items()}
    coldest = {number: upload.add(np.minimum.accumulate(beta[::-1])[::-1]) for number, beta in betas.items()}
    ends = {number: upload.add(np.cumsum(count)) for number, count in flips.items()}
    table["betas"], table["coldest"] = np.array([(sent_betas[id(p.betas)], coldest[id(p.betas)]) for _, p in walked]).T
    table["ends"], table["yy"] = [ends[id(p.flips)] for _, p in walked], [form.yy for form, _ in walked]
    for kind, members in group:
        here, numbers = table[first : first + len(members)], np.arange(len(members), dtype=np.uint64)
        here["G"], here["N"] = matrices[kind.owner].data.ptr, owners[kind.owner].n_columns
        here["k"], here["steps"] = kind.k, kind.steps
        keys = [plan.keys for _, plan in walked[first : first + len(members)]]
        here["keys"] = upload.add(np.stack(keys)) + 8 * kind.chains * numbers
        for name, (dtype, shape) in _answers(kind, len(members)).items():
            size = -(-size // 8) * 8
            each = np.dtype(dtype).itemsize * prod(shape[1:])
            here[name] = size + each * numbers
            places.append(size)
            size += each * len(members)
        first += len(members)
    sent, answers = upload.send(), cupy.empty(size, np.uint8)
    for name in ("b", "unit", "left_out", "betas", "coldest", "ends", "keys"):
        table[name] += np.where(table[name] > 0, np.uint64(sent.data.ptr), np.uint64(0))
    for name in _answers(group[0][0], 0):
        table[name] += np.uint64(answers.data.ptr)
    tasks = queue(
        np.concatenate([np.full(len(members), cost(*pairs[members[0]])) for _, members in group]),
        np.concatenate([np.full(len(members), kind.chains) for kind, members in group]),
    )
    _launch(table, tasks, tick, slice_ns)
    _answered(answers.get(), group, iter(places), results)


def _answered(found: NDArray[np.uint8], group: Group, places: Iterator[int], results: list[Any]) -> None:
    """Answers as arrays, whole numbers as wide as everywhere."""
    for kind, members in group:
        arrays: dict[str, Any] = {}
        for name, (dtype, shape) in _answers(kind, len(members)).items():
            each = np.frombuffer(found, dtype, prod(shape), next(places)).reshape(shape)
            arrays[name] = each.copy() if dtype is np.float64 else each.astype(np.int64)
        arrays["best_support"] = arrays.pop("best")
        for number, at in enumerate(members):
            results[at] = WalkResult(**{name: each[number] for name, each in arrays.items()})


def _launch(table: NDArray[Any], tasks: NDArray[np.int32], tick: Tick | None, slice_ns: int) -> None:
    """Launch the kernel again and again until every chain is done."""
    import cupy

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
        known = state.get()
        flips, finished = (int(number) for number in known[2:6].view(np.uint64))
        if known[1] != _NO_RANK:
            # Problem and number of columns in one word, so that one atomic minimum keeps both (k is at most 128).
            raise RankTooSmall(int(table["k"][known[1] >> 8]), int(known[1]) & 255)
        if tick is not None and flips > heard:
            tick(flips - heard)
        heard = flips
