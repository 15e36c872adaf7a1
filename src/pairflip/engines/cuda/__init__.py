"""The engine for many chains: a CUDA device through CuPy, all chains of a batch in one queue."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import Pair, Refused, Steps, Tick, WalkPlan, WalkResult, undefined
from pairflip.engines.cuda.batch import WORTH_CHAINS, WORTH_SECONDS, cut, refusal, size_class, worthwhile
from pairflip.engines.cuda.device import WALK, Matrices, device_name, free_bytes, kernels, order_bytes, why_unavailable
from pairflip.engines.cuda.ladders import run_ladders
from pairflip.engines.cuda.launch import SLICE_NS, run_group
from pairflip.engines.exchange import LadderResult
from pairflip.gram import Gram, HeldOutGram
from pairflip.least_squares import Floats

__all__ = [
    "WORTH_CHAINS",
    "WORTH_SECONDS",
    "CudaEngine",
    "device_name",
    "free_bytes",
    "why_unavailable",
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
    prefers_many = True

    def __init__(self, memory: int | None = None, slice_ns: int = SLICE_NS) -> None:
        reason = why_unavailable()
        if reason is not None:
            raise ValueError(f'engine="cuda" cannot be used here: {reason}')
        self._memory = memory
        self._slice_ns = slice_ns

    def refuses(self, gram: Gram, plan: WalkPlan) -> str | None:
        """Objectives other than the energy, and what its kernels or its free memory cannot hold."""
        if plan.descent is not None:
            return "Descents, kicks and paths are left to the CPU."
        return undefined(gram, plan) or refusal(gram, plan.k, int(plan.flips.max(initial=0)), free_bytes())

    def path(self, gram: Gram, largest: int, *, passes: int = 1, tick: Tick | None = None) -> Steps:
        """Refused: a path is one chain, and a device needs many."""
        raise Refused("Descents, kicks and paths are left to the CPU.")

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
        scratch = cupy.zeros(size.largest**2 + (n - k) * (size.largest + 2 + 2 * size.warps))
        delta, far = cupy.zeros((k, n - k)), cupy.zeros(0 if room else 65536, np.uint16)
        shared = compiled.shared_bytes + room
        compiled.flip_energies.max_dynamic_shared_size_bytes = shared
        arguments = cupy.asarray(table.view(np.uint8)), cupy.asarray(order.astype(np.int32)), far, scratch, delta
        compiled.flip_energies((1,), (32 * size.warps,), arguments, shared_mem=shared)
        return np.asarray(delta.get())

    def walk(self, pairs: Sequence[Pair], *, n_jobs: int = 1, tick: Tick | None = None) -> list[WalkResult]:
        """Walk the chains of many problems, sizes and folds together; `n_jobs` has no meaning here."""
        free = free_bytes()
        # Thousands of pairs share few problems, sizes and schedules, and each distinct one is asked about once.
        distinct = {(id(gram), plan.k, id(plan.flips)): (gram, plan) for gram, plan in pairs}
        for gram, plan in distinct.values():
            reason = refusal(gram, plan.k, int(plan.flips.max(initial=0)), free)
            if reason is not None:
                raise Refused(reason)
        # A fifth is left for what `cut` does not count: the slots of running chains, the queue, what CuPy keeps.
        budget = self._memory if self._memory is not None else free * 4 // 5
        matrices = Matrices()
        parts: list[list[tuple[int, WalkResult]]] = [[] for _ in pairs]
        for group in cut(pairs, budget):
            for piece, result in run_group(pairs, group, matrices, tick, self._slice_ns):
                parts[piece.walk].append((piece.first, result))
        return [
            pieces[0][1] if len(pieces) == 1 else _joined(plan, pieces)
            for (_, plan), pieces in zip(pairs, parts, strict=True)
        ]

    def ladders(
        self, gram: Gram, k: int, betas: Floats, rounds: int, flips: int, keys: NDArray[np.uint32]
    ) -> list[LadderResult]:
        """Ladders of walkers that trade places, together.

        Parameters
        ----------
        gram, k
            The problem, and the number of columns.
        betas : (R,)
            Inverse temperatures, ascending.
        rounds, flips : int
            How many rounds there are, and flips of each walker in each.
        keys : (L, R, 2)
            Of the walkers of each ladder.
        """
        free = free_bytes()
        reason = refusal(gram, k, flips, free)
        if reason is not None:
            raise Refused(reason)
        budget = self._memory if self._memory is not None else free * 3 // 5
        return list(run_ladders(gram, k, betas, rounds, flips, keys, budget))


def _joined(plan: WalkPlan, pieces: list[tuple[int, WalkResult]]) -> WalkResult:
    """One result from those of pieces that begin at the chains given."""
    if not pieces:
        steps, slots = np.zeros((0, plan.betas.size)), np.zeros((0, plan.k), np.int64)
        none = np.zeros(0)
        return WalkResult(steps, steps.astype(np.int64), slots, slots.copy(), none, none.astype(np.int64))
    ordered = [result for _, result in sorted(pieces, key=lambda piece: piece[0])]
    fields = [name for name in WalkResult.__dataclass_fields__ if getattr(ordered[0], name) is not None]
    return WalkResult(**{name: np.concatenate([getattr(result, name) for result in ordered]) for name in fields})
