"""The engine for many chains: a CUDA device through CuPy, all chains of a batch in one queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any

from pairflip.engines.base import Pair, Refused, Steps, Tick, WalkPlan, WalkResult, undefined
from pairflip.engines.cuda.batch import (
    LARGEST,
    WORTH_CHAINS,
    WORTH_SECONDS,
    cut,
    order_bytes,
    refusal,
    size_class,
    worthwhile,
)
from pairflip.engines.cuda.device import (
    SLICE_NS,
    device_name,
    failures,
    free_bytes,
    gone_is_refused,
    request,
    why_unavailable,
)
from pairflip.engines.cuda.walks import Held, run_group
from pairflip.engines.together import ManyWalked, ManyWalks, join
from pairflip.gram import Gram

__all__ = ["WORTH_CHAINS", "WORTH_SECONDS", "CudaEngine", "device_name", "free_bytes", "why_unavailable", "worthwhile"]

_launching = Lock()
"""Groups of several threads come one after the other."""


class CudaEngine:
    """Walks chains on a CUDA device.

    Parameters
    ----------
    memory : int, optional
        Bytes of device memory a group of walks may take; default four fifths of what is free.
    slice_ns : int
        How long one launch may last.
    """

    name = "cuda"
    prefers_many = True
    searches = False

    def __init__(self, memory: int | None = None, slice_ns: int = SLICE_NS) -> None:
        reason = why_unavailable()
        if reason is not None:
            raise ValueError(f'engine="cuda" cannot be used here: {reason}')
        self._memory, self._slice_ns = memory, slice_ns

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What is raised where a device fails."""
        return failures()

    @gone_is_refused
    def refuses(self, gram: Gram, plan: WalkPlan) -> str | None:
        """Everything but annealing of the energy, and what its kernels or its free memory cannot hold."""
        if plan.descent is not None or plan.record:
            return "The GPU engine anneals; descents and sampling are left to the CPU."
        return undefined(gram, plan) or refusal(gram, plan.k, int(plan.flips.max(initial=0)), free_bytes())

    def path(self, gram: Gram, largest: int, *, passes: int = 1, tick: Tick | None = None) -> Steps:
        """Refused: a path is one chain, and a device needs many."""
        raise Refused("Descents, kicks and paths are left to the CPU.")

    def walk(self, pairs: Sequence[Pair], *, n_jobs: int = 1, tick: Tick | None = None) -> list[WalkResult]:
        """Walk the chains of many problems, sizes and folds together; `n_jobs` has no meaning here."""
        for gram, plan in pairs:
            reason = self.refuses(gram, plan)
            if reason is not None:
                raise Refused(reason)
        together, members = join(pairs)
        results: list[Any] = [None] * len(pairs)
        for number, walked in self.walk_many(together, tick=tick):
            for at, pair in enumerate(members[number].tolist()):
                results[pair] = walked.result(at)
        return results

    def walk_many(self, together: Sequence[ManyWalks], *, tick: Tick | None = None) -> Iterator[tuple[int, ManyWalked]]:
        """Walk what is whole arrays already; the number of each and its result, as soon as it is there."""
        # A fifth is left for what `cut` does not count: the slots of running chains, the queue, what CuPy keeps.
        budget = self._memory if self._memory is not None else free_bytes() * 4 // 5
        self.get_ready([(each.k, each.forms.root.n_columns) for each in together])
        held = Held()
        for group in cut(together, budget):
            with _launching:
                answers = run_group([together[at] for at in group], held, tick, self._slice_ns)
            yield from zip(group, answers, strict=True)

    def get_ready(self, sizes: Sequence[tuple[int, int]]) -> None:
        """Begin to compile what supports of (k, number of columns) need."""
        for size, far in dict.fromkeys((size_class(k), order_bytes(n) == 0) for k, n in sizes if k <= LARGEST):
            request(size, far)
