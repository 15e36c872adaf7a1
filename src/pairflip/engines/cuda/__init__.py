"""The engine for many chains: a CUDA device through CuPy, all chains of a batch in one queue."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import Tick, WalkPlan, WalkResult
from pairflip.engines.cuda.batch import WORTH_CHAINS, WORTH_SECONDS, cut, size_class, why_not, worthwhile
from pairflip.engines.cuda.device import WALK, Matrices, available, device_name, free_bytes, kernels, order_bytes
from pairflip.engines.cuda.launch import SLICE_NS, run_group
from pairflip.gram import Gram, HeldOutGram
from pairflip.least_squares import Floats

__all__ = [
    "WORTH_CHAINS",
    "WORTH_SECONDS",
    "CudaEngine",
    "available",
    "device_name",
    "free_bytes",
    "worthwhile",
]


class CudaEngine:
    """Walks chains on a CUDA device, the same chains as on the CPU.

    Parameters
    ----------
    memory : int, optional
        Bytes of device memory a group of walks may take; default four fifths of what is free.
    slice_ns : int
        How long one launch may last.
    """

    name = "cuda"

    def __init__(self, memory: int | None = None, slice_ns: int = SLICE_NS) -> None:
        reason = available()
        if reason:
            raise ValueError(f'engine="cuda" cannot be used here: {reason}')
        self._memory = memory
        self._slice_ns = slice_ns

    def can_hold(self, gram: Gram, k: int) -> str:
        """Why the device cannot walk chains of size k on this problem, in one sentence; empty when it can."""
        return why_not(gram, k, free_bytes())

    def acceptance(self, beta: float, delta: float) -> float:
        r"""Probability :math:`\min(1, e^{-\beta \Delta E})`, read off the compiled decision by bisection."""
        import cupy

        probability = cupy.zeros(1)
        z = np.float64(np.inf) if np.isinf(delta) and delta > 0 else np.float64(beta * delta)
        kernels(size_class(1), False).acceptance((1,), (1,), (z, probability))
        return float(probability[0])

    def flip_energies(self, gram: Gram, order: NDArray[np.int64], k: int) -> Floats:
        """Delta E (k, N - k) of every flip from the support order[:k]; infinite where the flip is refused."""
        import cupy

        _check(gram, k, free_bytes())
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
        scratch = cupy.zeros(size.largest**2 + (n - k) * (size.largest + 2 + 2 * size.warps))
        delta, far = cupy.zeros((k, n - k)), cupy.zeros(0 if room else 65536, np.uint16)
        shared = compiled.shared_bytes + room
        compiled.flip_energies.max_dynamic_shared_size_bytes = shared
        arguments = cupy.asarray(table.view(np.uint8)), cupy.asarray(order.astype(np.int32)), far, scratch, delta
        compiled.flip_energies((1,), (32 * size.warps,), arguments, shared_mem=shared)
        return np.asarray(delta.get())

    def walk(self, gram: Gram, plan: WalkPlan, *, n_jobs: int = 1, tick: Tick | None = None) -> WalkResult:
        """Walk every chain of the plan; `n_jobs` has no meaning here."""
        return self.walk_batch([(gram, plan)], tick=tick)[0]

    def walk_batch(self, walks: Sequence[tuple[Gram, WalkPlan]], *, tick: Tick | None = None) -> list[WalkResult]:
        """Walk the chains of many problems, sizes and folds together; results in the order of `walks`."""
        free = free_bytes()
        for gram, plan in {(id(g), p.k): (g, p) for g, p in walks}.values():
            _check(gram, plan.k, free)
            if int(plan.flips.max(initial=0)) >= 2**31:
                raise ValueError('a step has 2**31 flips or more; use engine="numba" for this one.')
        budget = self._memory if self._memory is not None else free * 4 // 5
        matrices = Matrices()
        parts: list[list[tuple[int, WalkResult]]] = [[] for _ in walks]
        for group in cut(walks, budget):
            for piece, result in run_group(walks, group, matrices, tick, self._slice_ns):
                parts[piece.walk].append((piece.first, result))
        return [
            pieces[0][1] if len(pieces) == 1 else _joined(plan, pieces)
            for (_, plan), pieces in zip(walks, parts, strict=True)
        ]


def _check(gram: Gram, k: int, free: int) -> None:
    reason = why_not(gram, k, free)
    if reason:
        raise ValueError(f'{reason} Use engine="numba" for this one.')


def _joined(plan: WalkPlan, pieces: list[tuple[int, WalkResult]]) -> WalkResult:
    """One result from those of pieces that begin at the chains given."""
    if not pieces:
        steps, slots = np.zeros((0, plan.betas.size)), np.zeros((0, plan.k), np.int64)
        none = np.zeros(0)
        return WalkResult(steps, steps.astype(np.int64), slots, slots.copy(), none, none.astype(np.int64))
    ordered = [result for _, result in sorted(pieces, key=lambda piece: piece[0])]
    fields = WalkResult.__dataclass_fields__
    return WalkResult(**{name: np.concatenate([getattr(result, name) for result in ordered]) for name in fields})
