"""Descents, kicks, paths and pairs on the device: a block for each chain, chains taken from a queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import Refused, Tick
from pairflip.engines.cuda.batch import LARGEST, matrix_bytes, refusal
from pairflip.engines.cuda.device import Matrices, free_bytes
from pairflip.engines.cuda.staging import download, reserve, upload
from pairflip.engines.searches import ManyDescents, ManyFound, ManyPairs, ManyPaths, ManySearches
from pairflip.engines.together import root
from pairflip.gram import Gram

HERE = Path(__file__).parent
SEARCH_SOURCES = ("algebra.cuh", "table.cuh", "flips.cuh", "search.cu")
PROBLEM = np.dtype(
    [(name, np.uint64) for name in ("G", "b", "unit", "left_out")]
    + [("yy", np.float64), ("N", np.int32), ("padding", np.int32)]
)
"""`struct Problem` of the kernel."""
TASK = np.dtype(
    [(name, np.uint64) for name in ("start", "support", "energy", "status")]
    + [("key0", np.uint32), ("key1", np.uint32)]
    + [(name, np.int32) for name in ("problem", "k", "rounds", "minima", "least", "most")]
)
"""`struct Task` of the kernel."""
MOST_MINIMA = 32
"""Minima that a chain can remember on the device."""
ROOM = 3072
"""Bytes of shared memory of a block beside what its slots and columns take."""
_CLASSES = (8, 16, 32, 48, 64, 96, LARGEST)  # supports up to these share a launch, and so their shared memory
_THREADS = ((512, 64), (2048, 128))  # of a block, for tables of up to so many columns
_MOST_THREADS = 256
_REGISTERS = 768  # threads of a multiprocessor that the compiler is to leave registers for


def search_refusal(gram: Gram, largest: int, free: int) -> str | None:
    """Why the device cannot search supports of up to `largest` columns of this problem; None when it can.

    Parameters
    ----------
    gram
        The problem.
    largest
        The largest size.
    free
        Bytes of device memory that can be had.
    """
    if not root(gram).dense:
        return "the table is too wide for a matrix of all columns."
    reason = refusal(gram, largest, 0, free)
    if reason is None and shared_bytes(largest, gram.n_columns) > _shared_limit():
        return f"k is {largest}, and a multiprocessor of this GPU has too little shared memory for it."
    return reason


def shared_bytes(k: int, n_columns: int) -> int:
    """Shared memory of a block: P, eight numbers and two columns of each slot, a bit for each column, and the rest."""
    return 8 * k * k + 72 * k + 4 * ((n_columns + 31) // 32) + ROOM


def _shared_limit() -> int:
    import cupy

    return int(cupy.cuda.Device().attributes.get("MaxSharedMemoryPerBlockOptin", 48 * 1024))


def home_bytes(k: int, n_columns: int) -> int:
    """Global memory of a block: W, r, s, and the minima that it remembers."""
    return 8 * (k + 2) * _pitch(n_columns) + 4 * MOST_MINIMA * k


def _threads(n_columns: int) -> int:
    """Threads of a block."""
    return next((threads for most, threads in _THREADS if n_columns <= most), _MOST_THREADS)


def _pitch(n_columns: int) -> int:
    return (n_columns + 15) // 16 * 16


_lock = Lock()


def _allowed_kernel(threads: int, shared: int) -> Any:
    """The kernel for the current device, which may have so much shared memory; several threads ask for it."""
    import cupy

    with _lock:
        kernel = kernel_of(threads, int(cupy.cuda.Device().id))
        if kernel.max_dynamic_shared_size_bytes < shared:
            kernel.max_dynamic_shared_size_bytes = shared
    return kernel


@cache
def kernel_of(threads: int, device: int) -> Any:
    """The kernel for blocks of so many threads, compiled for this device."""
    import cupy

    code = "".join((HERE / name).read_text(encoding="utf-8") for name in SEARCH_SOURCES)
    options = "-std=c++17", "-lineinfo", f"-DTHREADS={threads}", f"-DMINBLOCKS={_REGISTERS // threads}"
    return cupy.RawModule(code=code, options=options).get_function("search")


@dataclass(frozen=True)
class SearchPart:
    """Problems forms.start, ..., forms.stop - 1 of some searches."""

    search: int
    forms: slice


def cut_searches(together: Sequence[ManySearches], budget: int) -> list[list[SearchPart]]:
    """Groups of parts that are searched in one launch each, within `budget` bytes of device memory.

    A part is at least one problem, so a group may exceed a budget that does not even hold one.
    """

    def kind(at: int) -> tuple[int, int]:
        return -_class_of(together[at].k), _MODES[type(together[at])]

    groups: list[list[SearchPart]] = []
    used, held, last = 0, set[int](), None
    for at in sorted(range(len(together)), key=kind):  # long chains first
        asked = together[at]
        owner, each = asked.forms.root, _problem_bytes(asked)
        most = max(1, (budget - matrix_bytes(owner)) // (2 * each))
        for first in range(0, asked.shape[0], most):
            part = slice(first, min(first + most, asked.shape[0]))
            need = each * (part.stop - first)
            matrix = 0 if id(owner) in held else matrix_bytes(owner)
            if kind(at) != last or used + need + matrix > budget:
                groups.append([])
                used, held, last, matrix = 0, set(), kind(at), matrix_bytes(owner)
            groups[-1].append(SearchPart(at, part))
            used += need + matrix
            held.add(id(owner))
    return groups


def _problem_bytes(asked: ManySearches) -> int:
    """Device memory of one problem, its tasks and its answers, beside its matrix."""
    answers = TASK.itemsize + 4 * prod(asked.answer[0]) + 8 * asked.k
    return 24 * asked.forms.root.n_columns + asked.shape[1] * answers


_MODES: dict[type[ManySearches], int] = {ManyDescents: 0, ManyPaths: 1, ManyPairs: 2}  # `enum Mode` of the kernel


def _class_of(k: int) -> int:
    return next(largest for largest in _CLASSES if k <= largest)


def run_searches(
    together: Sequence[ManySearches], budget: int, tick: Tick | None, slice_ns: int
) -> Iterator[tuple[int, ManyFound]]:
    """Search everything; yields the number of each of them and what it found, as soon as it is there.

    Parameters
    ----------
    together
        What is asked.
    budget
        Bytes of device memory that they may take.
    tick
        Hears of chains as they are done.
    slice_ns
        How long one launch may last before no more chains are begun.
    """
    matrices, found = Matrices(), {at: ManyFound.room(asked) for at, asked in enumerate(together)}
    groups = cut_searches(together, budget // 2)  # the other half is for the tables of running chains
    reserve(max((_group_bytes(together, group) for group in groups), default=0), free_bytes())
    left = Counter(part.search for group in groups for part in group)
    for at in [at for at in found if not left[at]]:
        yield at, found.pop(at)
    for group in groups:
        matrices.keep_only([together[part.search].forms.root for part in group])
        _Group(together, group, matrices).run(found, budget // 2, tick, slice_ns)
        for part in group:
            left[part.search] -= 1
            if not left[part.search]:
                yield part.search, found.pop(part.search)


def _group_bytes(together: Sequence[ManySearches], group: Sequence[SearchPart]) -> int:
    """Device memory of a group and, about, of the tables of its running chains."""
    import cupy

    asked = [together[part.search] for part in group]
    roots = {id(each.forms.root): each.forms.root for each in asked}
    problems = [int(part.forms.stop - part.forms.start) for part in group]
    parts = sum(count * _problem_bytes(each) for count, each in zip(problems, asked, strict=True))
    tasks = sum(count * each.shape[1] for count, each in zip(problems, asked, strict=True))
    k, n = max(each.k for each in asked), max(root.n_columns for root in roots.values())
    blocks = _REGISTERS // _threads(n) * int(cupy.cuda.Device().attributes["MultiProcessorCount"])
    return parts + sum(map(matrix_bytes, roots.values())) + min(blocks, tasks) * home_bytes(k, n)


class _Group:
    """Searches of one launch: what the kernel is told, and where it answers."""

    def __init__(self, together: Sequence[ManySearches], parts: Sequence[SearchPart], matrices: Matrices) -> None:
        import cupy

        self.parts, self.asked = parts, [together[part.search] for part in parts]
        self.mode = _MODES[type(self.asked[0])]
        self.k, self.n_columns = (
            max(asked.k for asked in self.asked),
            max(asked.forms.root.n_columns for asked in self.asked),
        )
        self._memory: list[Any] = []
        rows: dict[tuple[int, int, int, int], NDArray[np.int64]] = {}
        problems: list[NDArray[Any]] = []
        tasks, begins, slots, sizes = [], [], 0, 0
        for part, asked in zip(parts, self.asked, strict=True):
            # By identity: whoever calls holds the problems for as long as this lives.
            key = id(asked.forms), id(asked.which), part.forms.start, part.forms.stop
            if key not in rows:
                first = sum(map(len, problems))
                problems.append(self._problems(asked, part.forms, matrices))
                rows[key] = first + np.arange(part.forms.stop - part.forms.start)
            own = self._tasks(asked, part.forms, rows[key])
            columns, energies = map(prod, asked.answer)
            own["support"] = 4 * (slots + columns * np.arange(own.size))
            own["energy"] = 8 * (sizes + energies * np.arange(own.size))
            begins.append((slots, sizes))
            slots, sizes = slots + columns * own.size, sizes + energies * own.size
            tasks.append(own)
        self.tasks = np.concatenate(tasks)
        self.begins = begins
        self.supports, self.energies = cupy.zeros(slots, np.int32), cupy.zeros(sizes)
        self.status = cupy.zeros(self.tasks.size, np.int32)
        self.tasks["support"] += np.uint64(self.supports.data.ptr)
        self.tasks["energy"] += np.uint64(self.energies.data.ptr)
        self.tasks["status"] = self.status.data.ptr + 4 * np.arange(self.tasks.size, dtype=np.uint64)
        self.problems = upload(np.concatenate(problems).view(np.uint8))

    def _upload(self, array: NDArray[Any]) -> int:
        self._memory.append(upload(np.ascontiguousarray(array)))
        return int(self._memory[-1].data.ptr)

    def _problems(self, asked: ManySearches, part: slice, matrices: Matrices) -> NDArray[Any]:
        """Rows of the kernel's table of problems."""
        forms, which = asked.forms, asked.which[part]
        table, n = np.zeros(which.size, PROBLEM), forms.root.n_columns
        step = 8 * n * np.arange(which.size, dtype=np.uint64)
        matrix = matrices.of(forms.root)
        self._memory.append(matrix)
        table["G"] = matrix.data.ptr
        table["b"] = np.uint64(self._upload(forms.b[which])) + step
        table["unit"] = np.uint64(self._upload(forms.unit[which])) + step
        if forms.left_out is not None:
            table["left_out"] = np.uint64(self._upload(forms.left_out[which])) + step
        table["yy"], table["N"] = forms.yy[which], n
        return table

    def _tasks(self, asked: ManySearches, part: slice, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Rows of the kernel's table of tasks, without where answers go."""
        chains = asked.shape[1]
        table = np.zeros(rows.size * chains, TASK)
        table["problem"], table["k"] = np.repeat(rows, chains), asked.k
        if isinstance(asked, ManyPaths):
            table["rounds"] = asked.passes
        if not isinstance(asked, ManyDescents):
            return table
        descent, keys = asked.descent, asked.keys[part].reshape(-1, 2)
        if descent.pool > MOST_MINIMA:
            raise Refused(f"a chain is to remember {descent.pool} minima, and the GPU engine remembers {MOST_MINIMA}.")
        table["rounds"], table["minima"] = descent.kicks, descent.pool
        table["least"], table["most"] = descent.columns(asked.k)
        table["key0"], table["key1"] = keys[:, 0], keys[:, 1]
        if asked.starts is not None:
            there = self._upload(asked.starts[part].astype(np.int32))
            table["start"] = np.uint64(there) + 4 * asked.k * np.arange(table.size, dtype=np.uint64)
        return table

    def run(self, found: dict[int, ManyFound], budget: int, tick: Tick | None, slice_ns: int) -> None:
        """Launch until everything is done, and enter the answers."""
        import cupy

        n, k = self.n_columns, self.k
        threads = _threads(n)
        shared, home = shared_bytes(k, n), home_bytes(k, n)
        kernel = _allowed_kernel(threads, shared)
        fit = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.kernel.ptr, threads, shared)
        processors = cupy.cuda.Device().attributes["MultiProcessorCount"]
        # No more blocks than run at a time: chains come from a queue, and others would only hold memory.
        blocks = max(1, min(max(1, fit) * processors, self.tasks.size, budget // home))
        homes = cupy.empty(blocks * home, np.uint8)
        table, state = upload(self.tasks.view(np.uint8)), upload(np.zeros(2, np.int32))
        following, done = state[:1], state[1:]
        arguments = (
            self.problems, table, np.int32(self.tasks.size), following, done, homes, np.int64(home), np.int32(k),
            np.int32(_pitch(n)), np.int32(self.mode), np.int64(slice_ns),
        )  # fmt: skip
        heard = 0
        while heard < self.tasks.size:
            kernel((blocks,), (threads,), arguments, shared_mem=shared)
            finished = int(download(done)[0])  # this waits for the launch
            if tick is not None and finished > heard:
                tick(finished - heard)
            heard = finished
        self._enter(found)

    def _enter(self, found: dict[int, ManyFound]) -> None:
        """Write the answers where they belong."""
        (supports, energies, status), task = map(download, (self.supports, self.energies, self.status)), 0
        for part, (slots, sizes) in zip(self.parts, self.begins, strict=True):
            into = found[part.search]
            for there, given, first in ((into.supports, supports, slots), (into.energies, energies, sizes)):
                here = there[part.forms]
                here[...] = given[first : first + here.size].reshape(here.shape)
            lost = into.given_up[part.forms]
            lost[...] = (status[task : task + lost.size] < 0).reshape(lost.shape)
            task += lost.size
