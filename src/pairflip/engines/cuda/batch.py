"""What is walked together on the device: size classes, pieces of work, and how they are cut to its memory.

Plain numpy, so that it can be tested where there is no device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import WalkPlan, flip_nanoseconds, kind_of
from pairflip.engines.together import ManyWalks, root
from pairflip.gram import Gram, HeldOutGram

MOST_COLUMNS = 65535
"""Columns are numbered by 16 bits in the kernel."""
MOST_FLIPS = 2**31
"""Flips of a step are counted by 31 bits in the kernel."""
NEAR_COLUMNS = 12000
"""Up to this many columns the order of a chain fits in shared memory."""
WORTH_SECONDS, WORTH_CHAINS = 10.0, 128
"""A batch is worth the device from this much work on one core, and this many chains to fill it."""


@dataclass(frozen=True)
class SizeClass:
    """One compiled kernel: supports of up to 8 * tiles columns, `chains` to a block, one warp each."""

    tiles: int
    chains: int
    blocks: int
    """Blocks that the compiler is told to fit on one multiprocessor: it sets the registers a thread may use."""
    near: int
    """Of the tiles (tiles + 1) / 2 tiles of the lower half of P, how many a warp keeps in registers."""

    @property
    def largest(self) -> int:
        """The largest k."""
        return 8 * self.tiles


CLASSES = (
    SizeClass(1, 8, 2, 1),
    SizeClass(2, 4, 4, 3),
    SizeClass(3, 4, 4, 6),
    SizeClass(4, 4, 4, 9),
    SizeClass(5, 4, 3, 15),
    SizeClass(6, 4, 2, 21),
    SizeClass(7, 4, 2, 28),
    SizeClass(8, 4, 2, 32),
    SizeClass(9, 1, 8, 32),
    SizeClass(10, 1, 8, 31),
    SizeClass(12, 1, 5, 26),
    SizeClass(16, 1, 3, 31),
)
"""Measured to be the fastest on an H200 (docs/decisions/016-gpu-engine.md)."""
LARGEST = CLASSES[-1].largest


@cache
def size_class(k: int) -> SizeClass:
    """The smallest class that holds k."""
    return next(one for one in CLASSES if k <= one.largest)


def matrix_bytes(gram: Gram) -> int:
    """Device memory of the matrix (and, for a fold of several rows, of the matrix it is made from)."""
    size = 8 * gram.n_columns**2
    return 2 * size if isinstance(gram, HeldOutGram) else size


def result_bytes(plan: WalkPlan | ManyWalks) -> int:
    """Device memory of what one chain is told and answers."""
    steps = int(plan.betas.shape[-1])
    return 12 * steps + 8 * plan.k + 32 + ((4 * plan.k + 8) * steps if plan.record else 0)


def form_bytes(walks: ManyWalks) -> int:
    """Device memory of what is told of each problem: b, unit and left_out; betas, coldest and ends."""
    return 24 * walks.forms.root.n_columns + 24 * walks.steps


def refusal(gram: Gram, k: int, longest: int, free: int) -> str | None:
    """Why the device cannot walk chains on this problem, in one sentence; None when it can.

    Parameters
    ----------
    gram
        The problem.
    k
        Size of the supports.
    longest
        Flips of the longest step.
    free
        Bytes of device memory that can be had.
    """
    n = gram.n_columns
    if not gram.plain:
        return f"the GPU engine walks on the energy of one target without rules, not on {kind_of(gram)!r}."
    if k > LARGEST:
        return f"k is {k}, and the GPU engine holds supports of up to {LARGEST} columns."
    if n > MOST_COLUMNS:
        return f"the table has {n} candidate columns, and the GPU engine numbers up to {MOST_COLUMNS}."
    if longest >= MOST_FLIPS:
        return f"a step has {longest} flips, and the GPU engine counts fewer than 2**31 in a step."
    need = matrix_bytes(root(gram))
    if not gram.dense:  # the columns go to the device, and the matrix is formed there
        need += 8 * n * (gram.base if isinstance(gram, HeldOutGram) else gram).n_rows
    # Half: forming a fold's matrix takes another one for a moment, and chains need room for their results.
    if need > free // 2:
        return f"its {n} x {n} matrix takes {need / 2**30:.1f} GiB, and the GPU has {free / 2**30:.1f} GiB free."
    return None


@dataclass(frozen=True)
class WalkPart:
    """Chains chains.start, ..., chains.stop - 1 on problems forms.start, ..., forms.stop - 1 of some walks."""

    walks: int
    forms: slice
    chains: slice


def cost(gram: Gram, plan: WalkPlan | ManyWalks) -> float:
    """What one chain costs: nanoseconds on one core, which order tasks well enough."""
    return flip_nanoseconds(gram, plan.k) * float(plan.flips.sum())


def worthwhile(walks: Sequence[tuple[Gram, WalkPlan]]) -> bool:
    """Whether the work pays for waking the device."""
    chains = sum(plan.chains for _, plan in walks)
    return chains >= WORTH_CHAINS and sum(cost(g, p) * p.chains for g, p in walks) > 1e9 * WORTH_SECONDS


def cut(together: Sequence[ManyWalks], budget: int) -> list[list[WalkPart]]:
    """Groups of parts, each of one size class and within `budget` bytes of device memory.

    A part is at least one chain, so a group may exceed a budget that does not even hold one.
    """
    roots: dict[int, int] = {}
    keys = []
    for walks in together:
        number = roots.setdefault(id(walks.forms.root), len(roots))
        # One kernel after the other, and problem by problem, so that a matrix is sent once; then equal shapes together.
        # Long chains first: what comes last ends soon after the device falls idle, and takes little time to be judged.
        keys.append((-size_class(walks.k).tiles, number, walks.k))
    groups: list[list[WalkPart]] = []
    used, held, tiles = 0, set[int](), 0
    for at in sorted(range(len(together)), key=keys.__getitem__):
        walks, number = together[at], keys[at][1]
        matrix = matrix_bytes(walks.forms.root)
        for forms, chains in _pieces(walks, budget - matrix):
            need = _part_bytes(walks, forms, chains)
            # A matrix that the group holds already costs nothing more.
            if keys[at][0] != tiles or used + need + (0 if number in held else matrix) > budget:
                groups.append([])
                used, held, tiles = 0, set(), keys[at][0]
            groups[-1].append(WalkPart(at, forms, chains))
            used += need + (0 if number in held else matrix)
            held.add(number)
    return groups


def group_bytes(together: Sequence[ManyWalks], group: Sequence[WalkPart]) -> int:
    """Device memory of a group, as `cut` counts it."""
    roots = {id(together[part.walks].forms.root): together[part.walks].forms.root for part in group}
    parts = sum(_part_bytes(together[part.walks], part.forms, part.chains) for part in group)
    return parts + sum(matrix_bytes(owner) for owner in roots.values())


def _part_bytes(walks: ManyWalks, forms: slice, chains: slice) -> int:
    """Device memory of a part beside its matrix."""
    return int((forms.stop - forms.start) * (form_bytes(walks) + (chains.stop - chains.start) * result_bytes(walks)))


def _pieces(walks: ManyWalks, room: int) -> Iterator[tuple[slice, slice]]:
    """(problems, chains) such that each takes at most `room` bytes, if that holds one chain."""
    if not walks.chains:
        return
    form, chain, problems = form_bytes(walks), result_bytes(walks), len(walks.which)
    forms = max(1, room // (form + walks.chains * chain))
    chains = max(1, min(walks.chains, (room // forms - form) // chain))
    for first in range(0, problems, forms):
        for begin in range(0, walks.chains, chains):
            yield slice(first, min(first + forms, problems)), slice(begin, min(begin + chains, walks.chains))


def queue(costs: NDArray[np.float64], chains: NDArray[np.int64]) -> NDArray[np.int32]:
    """Tasks (problem, chain) in the order they are taken: long ones first, so that none is left alone at the end."""
    order = np.argsort(-costs, kind="stable")
    piece = np.repeat(order, chains[order])
    ends = np.cumsum(chains[order])
    chain = np.arange(piece.size) - np.repeat(ends - chains[order], chains[order])
    return np.stack([piece, chain], axis=1).astype(np.int32)
