"""The engine for many chains: a CUDA device through CuPy, all chains of a batch in one queue."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

from pairflip.engines.base import Pair, Refused, Steps, Tick, WalkPlan, WalkResult, undefined
from pairflip.engines.cuda.batch import (
    WORTH_CHAINS,
    WORTH_SECONDS,
    cut,
    kinds_of,
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
from pairflip.engines.cuda.walks import run_group
from pairflip.moments import Form

__all__ = ["WORTH_CHAINS", "WORTH_SECONDS", "CudaEngine", "device_name", "free_bytes", "why_unavailable", "worthwhile"]

_launching = Lock()
"""Groups of several threads come one after the other."""


class CudaEngine:
    """Walks chains on a CUDA device, in launches of at most `slice_ns`.

    A group of walks may take `memory` bytes of the device, by default four fifths of what is free.
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
    def refuses(self, form: Form, plan: WalkPlan) -> str | None:
        """Everything but annealing of the energy, and what its kernels or its free memory cannot hold."""
        if plan.descent is not None or plan.record:
            return "The GPU engine anneals; descents and sampling are left to the CPU."
        return undefined(form, plan) or refusal(form, plan.k, int(plan.flips.max(initial=0)), free_bytes())

    def path(self, form: Form, largest: int, *, passes: int = 1, tick: Tick | None = None) -> Steps:
        """Refused: a path is one chain, and a device needs many."""
        raise Refused("Descents, kicks and paths are left to the CPU.")

    def walk(self, pairs: Sequence[Pair], *, n_jobs: int = 1, tick: Tick | None = None) -> list[WalkResult]:
        """Walk the chains of many problems, sizes and folds together; `n_jobs` has no meaning here."""
        kinds = kinds_of(pairs)
        for members in kinds.values():
            reason = self.refuses(*pairs[members[0]])
            if reason is not None:
                raise Refused(reason)
        # A fifth is left for what `cut` does not count: the slots of running chains, the queue, what CuPy keeps.
        budget = self._memory if self._memory is not None else free_bytes() * 4 // 5
        n_columns = [form.n_columns for form, _ in pairs]
        sizes = dict.fromkeys((kind.k, n_columns[members[0]]) for kind, members in kinds.items())
        for size, far in dict.fromkeys((size_class(k), order_bytes(n) == 0) for k, n in sizes):
            request(size, far)  # all of them, so that they are compiled together
        results: list[Any] = [None] * len(pairs)
        matrices: dict[int, Any] = {}
        for group in cut(kinds, n_columns, budget):
            with _launching:
                run_group(pairs, group, matrices, results, tick, self._slice_ns)
        return results
