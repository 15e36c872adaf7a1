"""The engine for many chains: a CUDA device through CuPy, all chains of a batch in one queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import Engine, Pair, Refused, Steps, Tick, WalkPlan, WalkResult, undefined
from pairflip.engines.cuda.batch import (
    LARGEST,
    WORTH_CHAINS,
    WORTH_SECONDS,
    cut,
    refusal,
    size_class,
    worthwhile,
)
from pairflip.engines.cuda.device import (
    WALK,
    Matrices,
    device_count,
    device_name,
    failures,
    free_bytes,
    gone_is_refused,
    kernels,
    on_lane,
    order_bytes,
    request,
    why_unavailable,
)
from pairflip.engines.cuda.host_work import HostWork
from pairflip.engines.cuda.ladders import run_ladders
from pairflip.engines.cuda.launch import SLICE_NS, run_group
from pairflip.engines.cuda.packing import keep_what_is_sent
from pairflip.engines.cuda.searches import run_searches, search_refusal
from pairflip.engines.cuda.staging import reserve
from pairflip.engines.cuda.wide_rows import WORTH_ENTRIES, lend_rows
from pairflip.engines.exchange import LadderPlan, LadderResult
from pairflip.engines.searches import ManyFound, ManySearches
from pairflip.engines.together import ManyWalked, ManyWalks, completed_many, interleaved, join, share
from pairflip.gram import Gram, HeldOutGram
from pairflip.jobs import local_threads
from pairflip.least_squares import Floats

__all__ = [
    "WORTH_CHAINS",
    "WORTH_ENTRIES",
    "WORTH_SECONDS",
    "CudaEngine",
    "device_name",
    "free_bytes",
    "why_unavailable",
    "worthwhile",
]

LANES = 2
"""Queues of one device: the last chains of a launch leave most of it idle, and those of another one fill it."""


class CudaEngine:
    """Walks chains on a CUDA device, the same chains as on the CPU.

    Parameters
    ----------
    memory : int, optional
        Bytes of device memory a group of walks may take; default four fifths of what is free.
    slice_ns : int
        How long one launch may last.
    rest : Engine, optional
        Walks the chains that the device gives up, if it does so. Without it these come back with `refreshes` -1, and
        nothing else of them has a meaning; so they do from `walk_many` in any case.
    devices : sequence of int, optional
        Numbers of the devices that share the chains; default all of them.
    """

    name = "cuda"
    prefers_many = True

    def __init__(
        self,
        memory: int | None = None,
        slice_ns: int = SLICE_NS,
        rest: Engine | None = None,
        devices: Sequence[int] | None = None,
    ) -> None:
        reason = why_unavailable()
        if reason is not None:
            raise ValueError(f'engine="cuda" cannot be used here: {reason}')
        self._memory = memory
        self._slice_ns = slice_ns
        self._rest = rest
        self._devices = list(range(device_count())) if devices is None else list(devices)

    @property
    def lanes(self) -> int:
        """How many threads may call `walk_many` at a time: while one prepares or its last chains end, others walk."""
        return LANES * len(self._devices)

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What is raised where a device fails."""
        return failures()

    @gone_is_refused
    def refuses(self, gram: Gram, plan: WalkPlan) -> str | None:
        """Objectives other than the energy, and what its kernels or its free memory cannot hold."""
        if plan.descent is not None:
            return "Descents, kicks and paths are left to the CPU."
        return undefined(gram, plan) or refusal(gram, plan.k, int(plan.flips.max(initial=0)), free_bytes())

    def path(self, gram: Gram, largest: int, *, passes: int = 1, tick: Tick | None = None) -> Steps:
        """Refused: a path is one chain, and a device needs many."""
        raise Refused("Descents, kicks and paths are left to the CPU.")

    def lend_rows(self, gram: Gram) -> bool:
        """Have rows of the matrix of a wide problem computed on the device, for descents on the CPU."""
        return lend_rows(gram)

    def acceptance(self, beta: float, delta: float) -> float:
        r"""Probability :math:`\min(1, e^{-\beta \Delta E})`, read off the compiled decision by bisection."""
        import cupy

        probability = cupy.zeros(1)
        # beta = 0 times an infinite Delta E would be NaN; such a flip is refused at every temperature.
        z = np.float64(np.inf) if np.isinf(delta) and delta > 0 else np.float64(beta * delta)
        kernels(size_class(1), False).acceptance((1,), (1,), (z, probability))
        return float(probability[0])

    def flip_energies(self, gram: Gram, order: NDArray[np.int64], k: int) -> Floats:
        """Delta E (k, N - k) of every flip from the support order[:k]; infinite where the flip is refused."""
        import cupy

        reason = refusal(gram, k, 0, free_bytes())
        if reason is not None:
            raise Refused(reason)
        n, size, room = gram.n_columns, size_class(k), order_bytes(gram.n_columns)
        compiled = kernels(size, room == 0)
        vectors = {"b": cupy.asarray(gram.b), "unit": cupy.asarray(gram.diagonal)}
        if isinstance(gram, HeldOutGram) and gram.left_out.shape[0] == 1:
            vectors["unit"], vectors["left_out"] = cupy.asarray(gram.unit), cupy.asarray(gram.left_out)
        vectors["G"] = Matrices().of(gram)
        table = np.zeros(1, WALK)
        for name, vector in vectors.items():
            table[name] = vector.data.ptr
        table["yy"], table["N"], table["k"] = gram.yy, n, k
        scratch = cupy.zeros(size.largest**2 + (n - k) * (size.largest + 2))
        delta, far = cupy.zeros((k, n - k)), cupy.zeros(0 if room else 65536, np.uint16)
        shared = compiled.shared_bytes + room
        compiled.flip_energies.max_dynamic_shared_size_bytes = shared
        arguments = cupy.asarray(table.view(np.uint8)), cupy.asarray(order.astype(np.int32)), far, scratch, delta
        compiled.flip_energies((1,), (32,), arguments, shared_mem=shared)
        return np.asarray(delta.get())

    def walk(self, pairs: Sequence[Pair], *, n_jobs: int = 1, tick: Tick | None = None) -> list[WalkResult]:
        """Walk the chains of many problems, sizes and folds together; `n_jobs` has no meaning here."""
        together, members = join(pairs)
        results: list[Any] = [None] * len(pairs)
        for walks, which, walked in zip(together, members, self._divided(together, tick), strict=True):
            if self._rest is not None:
                completed_many(self._rest, walks, walked, local_threads(-1))
            for at, pair in enumerate(which.tolist()):
                results[pair] = walked.result(at)
        return results

    def get_walks_ready(self, together: Sequence[ManyWalks]) -> HostWork:
        """Walks that are whole arrays already, for `walk_many`: cut to what each device holds, the first packed."""
        free = self._free_on_each()
        # Thousands of walks share few problems, sizes and schedules, and each distinct one is asked about once.
        distinct = {(id(each.forms.root), each.k, id(each.flips)): each for each in together}
        for each in distinct.values():
            reason = refusal(each.forms.root, each.k, int(each.flips.max(initial=0)), free)
            if reason is not None:
                raise Refused(reason)
        # A fifth is left for what `cut` does not count: the slots of running chains, the queue, what CuPy keeps.
        budget = self._memory if self._memory is not None else free * 4 // 5 // LANES
        return HostWork(together, cut(together, budget), free)

    def walk_many(
        self,
        work: HostWork,
        ready: Callable[[int, ManyWalked], None],
        *,
        tick: Tick | None = None,
        lane: int = 0,
    ) -> None:
        """Walk what `get_walks_ready` gave, on one lane; several threads may do so at a time.

        Parameters
        ----------
        work
            The walks.
        ready
            Is given the number of each of them and its result, as soon as it is there.
        tick
            Hears of flips as they are done.
        lane
            A number from 0 to `lanes` - 1, which says which of the devices it is.
        """
        work.hand_to(ready)
        with on_lane(self._devices[lane % len(self._devices)]), keep_what_is_sent():
            reserve(work.needed, work.free)
            matrices = Matrices()
            try:
                while work.following:
                    packed = work.take(_compiled_first(work.following))
                    work.keep(packed, run_group(packed, matrices, tick, self._slice_ns, work.go_on))
            except self.failures:
                work.hand_on()  # those before it were walked
                raise
            work.hand_on()

    @gone_is_refused
    def refuses_search(self, gram: Gram, largest: int) -> str | None:
        """Why the device cannot search supports of up to `largest` columns, in one sentence; None when it can."""
        return search_refusal(gram, largest, free_bytes())

    def search_many(
        self, together: Sequence[ManySearches], *, tick: Tick | None = None, lane: int = 0
    ) -> list[ManyFound]:
        """Descents with kicks, and paths, of many problems, on one lane; several threads may do so at a time.

        Parameters
        ----------
        together
            The searches.
        tick
            Hears of chains as they are done.
        lane
            As in `walk_many`.
        """
        with on_lane(self._devices[lane % len(self._devices)]):
            budget = self._memory if self._memory is not None else free_bytes() * 4 // 5 // LANES
            found = dict(run_searches(together, budget, tick, self._slice_ns))
        return [found[at] for at in range(len(together))]

    def get_ready(self, sizes: Sequence[tuple[int, int]]) -> None:
        """Begin to compile what supports of (k, number of columns) need."""
        for size, far in dict.fromkeys((size_class(k), order_bytes(n) == 0) for k, n in sizes if k <= LARGEST):
            request(size, far)

    def ladders(self, gram: Gram, plan: LadderPlan, n_jobs: int = 1) -> list[LadderResult]:
        """Ladders of walkers that trade places; what the device gives up is walked in `n_jobs` threads."""
        free = free_bytes()
        reason = refusal(gram, plan.k, plan.flips, free)
        if reason is not None:
            raise Refused(reason)
        budget = self._memory if self._memory is not None else free * 3 // 5
        found = list(run_ladders(gram, plan, budget))
        missing = [ladder for ladder, told in enumerate(found) if told is None]
        if missing and self._rest is None:
            raise Refused("rounding might decide some of its flips.")
        if missing:
            others = cast(Any, self._rest).ladders(gram, replace(plan, keys=plan.keys[missing]), n_jobs)
            for ladder, told in zip(missing, others, strict=True):
                found[ladder] = told
        return cast(list[LadderResult], found)

    def _free_on_each(self) -> int:
        """Bytes of memory that can be had on every device."""
        import cupy

        free = []
        for number in self._devices:
            with cupy.cuda.Device(number):
                free.append(free_bytes())
        return min(free)

    def _divided(self, together: Sequence[ManyWalks], tick: Tick | None) -> list[ManyWalked]:
        """All walks, each device its share of the chains."""
        devices = len(self._devices)
        if devices == 1:
            return self._on_one(together, tick, 0)
        shares = [[share(each, device, devices) for each in together] for device in range(devices)]
        with ThreadPoolExecutor(devices, thread_name_prefix="pairflip") as pool:
            walking = [pool.submit(self._on_one, own, tick, device) for device, own in enumerate(shares)]
            found = [future.result() for future in walking]
        return [interleaved(each, [own[at] for own in found]) for at, each in enumerate(together)]

    def _on_one(self, together: Sequence[ManyWalks], tick: Tick | None, lane: int) -> list[ManyWalked]:
        found: dict[int, ManyWalked] = {}
        self.walk_many(self.get_walks_ready(together), found.__setitem__, tick=tick, lane=lane)
        return [found[at] for at in range(len(together))]


def _compiled_first(walks: Sequence[ManyWalks]) -> int:
    """The first of these whose kernels are compiled, when those of one of them are: a device need not wait for all."""
    compiling = [request(size_class(each.k), order_bytes(each.forms.root.n_columns) == 0) for each in walks]
    wait(compiling, return_when=FIRST_COMPLETED)
    return next(at for at, future in enumerate(compiling) if future.done())
